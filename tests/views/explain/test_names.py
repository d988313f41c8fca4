"""Every title and identifier on a screen is accepted by `explain`, in any case."""

import re

import pytest

from profsvc import specs, views
from profsvc.errors import NotFoundError
from profsvc.reports.text.launches import details as launch_text
from profsvc.reports.text.runs.run import SUMMARY
from profsvc.views.catalog import titles_and_hints
from profsvc.views.explain.names import canonical
from profsvc.views.explain.numbers import explain


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("l2_granularity", "l2_granularity"),
        ("L2_GRANULARITY", "l2_granularity"),
        ("l2 granularity", "l2_granularity"),
        ("upper_bound", "UPPER_BOUND"),
        ("Overall potential speedup", "potential"),
        ("DRAM__BYTES_READ.SUM", "dram__bytes_read.sum"),
    ],
)
def test_case_and_spelling_do_not_matter(typed: str, meant: str) -> None:
    assert canonical(typed) == meant
    assert explain(None, typed, None, None)["name"] == meant


def names() -> dict[str, str]:
    """Everything that a person may have seen, with the name that it belongs to."""
    found = {entry["title"]: name for name, entry in titles_and_hints().items()} | {
        name: name for name in titles_and_hints()
    }
    for name, model in specs.models().items():
        found |= {name: name, model.title: name}
    for known in (specs.counters(), specs.model_inputs()):
        found |= {name: name for name in known}
    for name, meanings in specs.terms().items():
        if "flag" in meanings:
            found |= {name: name, meanings["flag"]: name}
    return found


def test_every_title_identifier_and_flag_is_accepted_in_any_case() -> None:
    for typed in names():
        for spelled in (typed, typed.upper(), typed.lower()):
            assert explain(None, spelled, None, None)["meaning"], spelled


def test_what_the_details_of_a_launch_print_is_accepted(demo) -> None:
    view = views.launch(demo, "h200", "14")
    (one,) = view["launches"]
    printed = [*(row["title"] for row in (*one["criteria"], *one["of_run"], *one["units"])), *SUMMARY.values()]
    printed += [flag for row in one["criteria"] for flag in (row["flags"] or "").split()]
    printed += [hint["title"] for hint in one["advice"]]
    page = launch_text.launches(view)
    printed += re.findall(r"^   (\S.*?) {2,}[\d.]+ us", page, re.MULTILINE)  # models
    for typed in printed:
        if typed not in ("#", "kernel"):
            assert explain(None, typed, None, None)["meaning"], typed


def test_an_unknown_name_lists_similar_ones() -> None:
    with pytest.raises(NotFoundError, match="did you mean 'divergence'"):
        explain(None, "divergense", None, None)
