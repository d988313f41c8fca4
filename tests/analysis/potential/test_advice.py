"""What to do first."""

import pytest

from profsvc.analysis.potential.advice import advice

TEXTS = {name: {"title": name.title(), "hint": "do"} for name in ("a", "b", "dram")}


def test_the_largest_saving_comes_first_and_none_passes_the_potential() -> None:
    criteria = [{"criterion": "a", "value": 0.1, "speedup": 10.0}, {"criterion": "b", "value": 0.5, "speedup": 1.1}]
    hints = advice(criteria, {"ideal_bound": "dram", "speedup": 2.0, "duration_ns": 100.0}, TEXTS)
    assert [h["name"] for h in hints] == ["a", "b", "dram"]
    assert hints[0]["saving_fraction"] == 0.5
    assert hints[0]["capped"]
    assert hints[1]["saving_ns"] == pytest.approx(100 - 100 / 1.1)
    assert hints[-1]["kind"] == "limit"


def test_less_than_a_per_cent_is_no_hint() -> None:
    assert advice([{"criterion": "a", "value": 0.999, "speedup": 1.005}], {}, TEXTS) == []


def test_a_unit_whose_useful_work_nobody_counted_is_not_called_used_up() -> None:
    hints = advice([], {"ideal_bound": "dram", "speedup": 1.0, "flags": "UPPER_BOUND LOWER_BOUND"}, TEXTS)
    assert [(hint["kind"], hint["name"]) for hint in hints] == [("uncounted", "dram")]
    assert "the real potential may be higher" in hints[0]["hint"]


def test_idle_time_is_of_the_wall_time_and_the_potential_of_the_kernels_does_not_cap_it() -> None:
    texts = TEXTS | {"idle": {"title": "Idle", "hint": "do", "level": "run"}}
    criteria = [
        {"criterion": "a", "value": 0.7, "speedup": 1 / 0.7},
        {"criterion": "idle", "value": 0.15, "speedup": 1 / 0.15, "flags": None},
    ]
    hints = advice(criteria, {"ideal_bound": None, "speedup": 1.06, "duration_ns": 150.0}, texts)
    assert [(h["name"], h["budget"], h["capped"]) for h in hints] == [
        ("idle", "wall time", False), ("a", "kernel time", True)
    ]  # fmt: skip
    assert [round(h["saving_fraction"], 3) for h in hints] == [0.85, 0.057]
    assert [round(h["saving_ns"], 1) for h in hints] == [850.0, 8.5]


def test_savings_of_two_budgets_are_ranked_by_the_time_they_save() -> None:
    texts = TEXTS | {"idle": {"title": "Idle", "hint": "do", "level": "run"}}
    criteria = [
        {"criterion": "idle", "value": 0.25, "speedup": 4.0, "flags": None},
        {"criterion": "a", "value": 0.1, "speedup": 10.0},
    ]
    hints = advice(criteria, {"ideal_bound": None, "speedup": None, "duration_ns": 100.0}, texts)
    assert [(h["name"], h["saving_ns"]) for h in hints] == [("idle", 300.0), ("a", 90.0)]
    criteria[0]["flags"] = "OVERLAP"  # kernels that run at the same time: their sum is not the time in which one runs
    assert advice(criteria, {"speedup": None, "duration_ns": 100.0}, texts)[0]["saving_ns"] is None
