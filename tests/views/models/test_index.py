"""The list of models: each has functions, a command, a view and a page that exist, and says what a run lacks."""

import inspect
import re
import shlex
from importlib import import_module

import pytest

from profsvc import formats, specs, store
from profsvc.reports.text.models import index as text
from profsvc.store.queries.runs.model_coverage import coverage
from profsvc.views.models.index import COLUMNS, COLUMNS_OF_RUN, index
from profsvc.web.app import create_app
from profsvc.web.http.state import AppState
from tests.cli.conftest import COMMANDS

MODELS = specs.all_models()
ROWS = {row["name"]: row for row in index()["rows"]}


@pytest.mark.parametrize("name", MODELS)
def test_its_functions_exist(name: str) -> None:
    for function in MODELS[name].functions:
        module, _, own = function.rpartition(".")
        assert inspect.isroutine(getattr(import_module(f"profsvc.formulas.{module}"), own)), function


@pytest.mark.parametrize("name", ROWS)
def test_its_command_is_accepted(name: str) -> None:
    words = shlex.split(ROWS[name]["command"])
    assert words.pop(0) == "profsvc"
    group, context = COMMANDS, COMMANDS.make_context("profsvc", ["--help"], resilient_parsing=True)
    while hasattr(group, "commands"):
        word = words.pop(0)
        group = group.commands[word]
    group.make_context(word, words, parent=context)


@pytest.mark.parametrize("name", MODELS)
def test_the_formats_that_it_needs_exist(name: str) -> None:
    for found in re.findall(r"profsvc formats ([\w-]+)", MODELS[name].needs):
        assert found in {one.NAME for one in formats.READERS}


@pytest.mark.parametrize("name", ROWS)
def test_its_error_is_recorded_or_what_would_be_needed_for_one(name: str) -> None:
    accuracy = ROWS[name]["accuracy"]
    assert accuracy
    if re.search(r"no error on measurements is on record", accuracy):
        assert re.search(r"; needed: \S+", accuracy)


def test_its_view_and_page_exist(demo) -> None:
    patterns = {route.path for route in create_app(AppState(demo, store.blob_store_of(demo))).routes}
    for name, row in ROWS.items():
        assert row["view"] is None or row["view"] in store.VIEWS
        page = row["page"]
        path = re.sub(r"^/models/[\w-]+$", "/models/{name}", page)
        assert path in patterns, name


def test_a_run_answers_or_says_what_is_missing(demo) -> None:
    run = store.find_run(demo, "h200")
    view = index(demo, run)
    assert view["columns"] == [*COLUMNS, *COLUMNS_OF_RUN]
    rows = {row["name"]: row for row in view["rows"]}
    assert rows["occupancy"]["answers"] == "yes"
    assert "of NVIDIA H200 in this store" in rows["mwp_cwp"]["accuracy"]
    assert (rows["wall_time"]["answers"], rows["wall_time"]["why"]) == (
        "no",
        "needs a trace: Nsight Systems, PyTorch or rocprof",
    )
    assert rows["work-depth"]["answers"] == "from inputs"
    assert all(row["why"] or row["answers"] in ("yes", "from inputs") for row in view["rows"])
    assert "profsvc show id:1" in text.index(view)
    assert len(index()["rows"]) == len(ROWS)
    assert text.index(index()).startswith(f"{len(ROWS)} models.")


@pytest.mark.parametrize("name", MODELS)
def test_what_a_run_lacks_is_counted_in_its_view(engine, name: str) -> None:
    one = MODELS[name]
    assert coverage(engine, one.view, 1, one.where, one.value, one.subject) == (0, 0, "")
