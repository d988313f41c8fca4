"""What to do first."""

from profsvc.analysis.advice import advice

TEXTS = {name: {"title": name.title(), "hint": "do"} for name in ("a", "b", "waste", "dram")}


def test_the_largest_saving_comes_first_and_none_passes_the_potential() -> None:
    criteria = [{"criterion": "a", "value": 0.1, "speedup": 10.0}, {"criterion": "b", "value": 0.5, "speedup": 1.1}]
    waste = [{"quantity": "waste", "value": 0.3}]
    hints = advice(criteria, waste, {"ideal_bound": "dram", "speedup": 2.0, "duration_ns": 100.0}, TEXTS)
    assert [h["name"] for h in hints] == ["a", "waste", "b", "dram"]
    assert hints[0]["saving_fraction"] == 0.5
    assert hints[0]["capped"]
    assert hints[1]["saving_ns"] == 30.0
    assert hints[-1]["kind"] == "limit"


def test_less_than_a_per_cent_is_no_hint() -> None:
    assert advice([{"criterion": "a", "value": 0.999, "speedup": 1.005}], [], {}, TEXTS) == []


def test_a_unit_whose_useful_work_nobody_counted_is_not_called_used_up() -> None:
    hints = advice([], [], {"ideal_bound": "dram", "speedup": 1.0, "flags": "UPPER_BOUND LOWER_BOUND"}, TEXTS)
    assert [(hint["kind"], hint["name"]) for hint in hints] == [("uncounted", "dram")]
    assert "may need less time" in hints[0]["hint"]
