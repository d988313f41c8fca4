"""``report accuracy``, and what ``compare`` records for it."""

import csv
import io
import json
import re

import pytest

from profsvc import store
from profsvc.web.http.state import AppState
from tests.conftest import ROOT
from tests.web.conftest import running

MAPPED = ("compare", "h200", "h200", "--map", "reduce_v1_divergent=reduce_v7_multielement")
FORMS = ["table", "csv", "json", "ndjson", "md"]


@pytest.fixture
def own(cli, demo, tmp_path):
    """A copy of the store with the run ``h200``, to write to."""
    file = tmp_path / "own.sqlite"
    store.backup(demo, file)
    return lambda *words: cli("--store", file, *words)


def test_a_comparison_records_unless_told_not_to(own):
    assert json.loads(own(*MAPPED, "--no-record", "-o", "json").out).get("predictions") is None
    assert "no predictions saved" in own("report", "accuracy").out
    page = own(*MAPPED).out
    assert re.search(r"scored:\s+profsvc --store \S+ report accuracy", page)
    recorded = json.loads(own(*MAPPED, "-o", "json").out)["predictions"]
    view = json.loads(own("report", "accuracy", "-o", "json").out)
    assert (view["recorded"], view["counted"]) == (recorded["recorded"], recorded["scored"])
    assert recorded["recorded"] > 8
    assert {row["n"] for row in view["scores"]} == {1}
    assert all(row["rank_correlation"] is None and "8 pairs" in row["reason"] for row in view["scores"])


@pytest.mark.parametrize("form", FORMS)
def test_it_answers_in_every_form(own, form):
    own(*MAPPED)
    result = own("report", "accuracy", "--source", "profsvc", "-o", form)
    assert (result.code, result.err) == (0, "")
    if form == "csv":
        rows = list(csv.DictReader(io.StringIO(result.out)))
        assert {row["source"] for row in rows} == {"profsvc"}
        assert "overall" in {row["criterion"] for row in rows}
    assert "overall" in result.out
    assert "throughput_occupancy" not in result.out  # it claims no whole change


def test_a_picture_and_a_wrong_question(own, tmp_path):
    own(*MAPPED)
    for name in ("a.svg", "a.png"):
        result = own("report", "accuracy", "--plot", tmp_path / name)
        assert (result.code, result.err) == (0, f"written: {tmp_path / name}\n")
        assert (tmp_path / name).stat().st_size > 1000
    wrong = own("report", "accuracy", "--plot", tmp_path / "a.pdf")
    assert (wrong.code, "end it with .svg or .png" in wrong.err) == (2, True)
    assert own("report", "accuracy", "--source", "nobody").code == 3


def test_a_run_of_an_unchanged_program_does_not_count_unless_asked(own):
    assert own("upload", ROOT / "fixtures" / "ncu_raw" / "h200_three_launches.csv.gz", "--run", "again").code == 0
    compared = json.loads(own("compare", "h200", "again", "-o", "json").out)["predictions"]
    assert compared["recorded"] > 8
    assert compared["scored"] == 0
    *unchanged, parts = compared["reasons"]
    assert all("instructions, traffic and launch configuration are the same" in reason for reason in unchanged)
    assert parts.startswith("single criteria, models and rules: ")
    left_out = json.loads(own("report", "accuracy", "-o", "json").out)["left_out"]
    assert left_out["unchanged"] + left_out["part"] == compared["recorded"]
    page = own("report", "accuracy").out
    assert f"{left_out['unchanged']} of kernels that are identical in both runs" in page
    view = json.loads(own("report", "accuracy", "--unchanged", "-o", "json").out)
    parts = {"not comparable": 0, "bound": 0, "part": left_out["part"]}
    assert (view["counted"], view["left_out"]) == (left_out["unchanged"], parts)
    assert {pair["achieved"] for pair in view["pairs"]} == {1.0}


@pytest.fixture
def closed(demo, tmp_path):
    """A service that needs tokens, on another copy of the store."""
    store.backup(demo, tmp_path / "served.sqlite")
    engine = store.open_store(str(tmp_path / "served.sqlite"), pooled=True)
    with running(AppState(engine, store.blob_store_of(engine), is_public=True)) as service:
        yield service
    engine.dispose()


def test_a_service_records_where_the_token_may_write(cli, own, closed, monkeypatch):
    tokens = {scope: store.create_token(closed.site.engine, scope, [scope, "read"]) for scope in ("upload", "read")}
    monkeypatch.setenv("PROFSVC_URL", closed.url)
    monkeypatch.setenv("PROFSVC_TOKEN", tokens["read"])
    kept_out = cli(*MAPPED, "-o", "json")
    assert kept_out.code == 0
    assert "predictions are not saved: this needs a token with the scope 'upload'" in kept_out.err
    assert "predictions" not in json.loads(kept_out.out)
    assert cli(*MAPPED, "--no-record").err == ""
    monkeypatch.setenv("PROFSVC_TOKEN", tokens["upload"])
    written = cli(*MAPPED, "-o", "json")
    assert (written.code, written.err) == (0, "")
    there = json.loads(cli("report", "accuracy", "--best", "--unchanged", "-o", "json").out)
    monkeypatch.delenv("PROFSVC_URL")
    assert json.loads(own(*MAPPED, "-o", "json").out)["predictions"] == json.loads(written.out)["predictions"]
    here = json.loads(own("report", "accuracy", "--best", "--unchanged", "-o", "json").out)
    for view in (here, there):
        assert {row.pop("prediction_id") for row in view["pairs"]}
    assert here == there
