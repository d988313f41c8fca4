"""What else differs between runs before a change and those since."""

import pandas as pd
import pytest

from profsvc.analysis.changes.differences import cause_differences, differences

COLUMNS = ["run_id", "kernel", "fact", "basis", "value", "text"]


def told(rows: list[list], before: set[int] = frozenset({1, 2}), since: set[int] = frozenset({3, 4})) -> list[tuple]:
    found = differences(pd.DataFrame(rows, columns=COLUMNS), before, since)
    return [(row["fact"], row["before"] or row["before_text"], row["after"] or row["after_text"]) for row in found]


def numbers(fact: str, *values: float | None, kernel: str | None = "k", basis: str = "") -> list[list]:
    return [[run, kernel, fact, basis, value, None] for run, value in enumerate(values, 1) if value is not None]


def texts(fact: str, *values: str | None, kernel: str | None = None) -> list[list]:
    return [[run, kernel, fact, "", None, value] for run, value in enumerate(values, 1) if value is not None]


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ((40.0, 40.0, 72.0, 72.0), [("registers_per_thread", 40.0, 72.0)]),
        ((40.0, 72.0, 72.0, 72.0), []),  # the sides overlap
        ((40.0, None, 72.0, None), [("registers_per_thread", 40.0, 72.0)]),
        ((None, None, 72.0, 72.0), []),  # not known before
        ((40.0, 40.0, 40.0, 40.0), []),
    ],
)
def test_a_number_differs_if_its_sides_do_not_overlap(values, expected):
    assert told(numbers("registers_per_thread", *values)) == expected


def test_a_difference_below_the_limits_of_its_fact_is_left_out():
    assert told(numbers("achieved_occupancy_fraction", 0.92, 0.92, 0.91, 0.91)) == []
    assert told(numbers("sm_clock_hz", 1.98e9, 1.98e9, 1.97e9, 1.97e9)) == []
    assert told(numbers("sm_clock_hz", 1.98e9, 1.98e9, 1.86e9, 1.86e9)) == [("sm_clock_hz", 1.98e9, 1.86e9)]


@pytest.mark.parametrize(
    ("earlier", "expected"), [(1.5e9, []), (1.4e9, []), (1.51e9, []), (1.98e9, [("sm_clock_hz", 1.98e9, 1.5e9)])]
)
def test_a_clock_that_was_there_without_the_change_is_none_of_its_causes(earlier, expected):
    facts = pd.DataFrame(numbers("sm_clock_hz", earlier, 1.98e9, 1.5e9, 1.5e9, kernel=None), columns=COLUMNS)
    for unmoved, wanted in (({1, 2}, expected), (set(), [("sm_clock_hz", 1.98e9, 1.5e9)])):
        found = differences(facts, {2}, {3, 4}, unmoved)
        assert [(row["fact"], row["before"], row["after"]) for row in found] == wanted


def test_a_host_that_was_there_without_the_change_is_none_of_its_causes():
    facts = pd.DataFrame(texts("host", "b", "a", "b", "b"), columns=COLUMNS)
    assert differences(facts, {2}, {3, 4}, {1, 2}) == []
    assert len(differences(facts, {2}, {3, 4}, {2})) == 1


def test_a_launch_may_go_back_to_what_it_was():
    facts = pd.DataFrame(numbers("registers_per_thread", 72.0, 40.0, 72.0, 72.0), columns=COLUMNS)
    assert len(differences(facts, {2}, {3, 4}, {1, 2})) == 1


def test_texts_differ_if_no_run_since_has_one_of_before():
    assert told(texts("grid", "1x1x1", "1x1x1", "2x1x1", "2x1x1")) == [("grid", "1x1x1", "2x1x1")]
    assert told(texts("host", "a", "b", "b", "a")) == []
    assert told(texts("tag:branch", "main", None, "wide", None)) == [("tag:branch", "main", "wide")]


def test_only_what_was_computed_in_the_same_way_is_compared():
    rows = [*numbers("dram_read_bytes", 1e9, 1e9, basis="a"), *numbers("dram_read_bytes", None, None, 2e9, basis="b")]
    assert told(rows) == []
    assert told(numbers("luck", 1.0, 1.0, 2.0, 2.0)) == []


def test_the_context_comes_first_and_work_after_the_launch():
    rows = [
        *numbers("inst_executed_warp", 100.0, 100.0, 130.0, 130.0),
        *texts("grid", "1x1x1", "1x1x1", "2x1x1", "2x1x1", kernel="k"),
        *numbers("log_clock_hz", 1.98e9, 1.98e9, 1.5e9, 1.5e9, kernel=None),
    ]
    assert [row[0] for row in told(rows)] == ["log_clock_hz", "grid", "inst_executed_warp"]


def test_causes_are_told_as_parts_of_the_time():
    part = {"cause": "barriers", "title": "Barriers", "before_ns": 5.0, "after_ns": 30.0, "change_fraction": 0.25}
    (row,) = cause_differences([part], "k")
    assert (row["fact"], row["part"], row["change"]) == ("cause:barriers", "causes", 0.25)
