"""The parts of a change of duration."""

import pytest

from profsvc.analysis.changes.cause_changes import cause_changes


def test_the_parts_add_up_to_the_change() -> None:
    before = {"uncoalesced_loads": 10.0, "barriers": 40.0, "unexplained": 5.0}
    parts = cause_changes(before, {"uncoalesced_loads": 60.0, "tail_wave": 3.0}, 100.0, 112.0)
    assert [part["cause"] for part in parts] == ["uncoalesced_loads", "barriers", "tail_wave", "unexplained"]
    assert sum(part["change_ns"] for part in parts) == pytest.approx(12.0)
    assert sum(part["change_fraction"] for part in parts) == pytest.approx(0.12)
    assert (parts[0]["before_ns"], parts[0]["after_ns"]) == (10.0, 60.0)
    assert parts[1]["change_ns"] == -40.0


def test_without_causes_on_one_side_nothing_is_explained() -> None:
    assert cause_changes({"barriers": 1.0}, {}, 100.0, 90.0) == []
    assert cause_changes({"barriers": 1.0}, {"barriers": 1.0}, 0.0, 90.0) == []
