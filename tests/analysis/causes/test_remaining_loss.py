import pandas as pd
import pytest

from profsvc.analysis.causes.remaining_loss import LONGEST, REMAINING, without_remaining
from profsvc.specs.advice.causes import least_shares

LEAST = least_shares()["barriers"].share


def launch(**saved: float) -> tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame]:
    """Causes with these shares of 100 ns, the potential of their launch 7, and its counters."""
    loss = sum(saved.values())
    rows = [{"cause": name, "saving_fraction": share, "kind": "flaw"} for name, share in saved.items()]
    rows[-1]["kind"] = "unexplained" if rows[-1]["cause"] == "unexplained" else "flaw"
    rows.append({"cause": "arithmetic_limit", "saving_fraction": 0.0, "kind": "limit"})
    causes = pd.DataFrame(rows).assign(launch_id=7, low=0.0, high=1.0)
    causes["saving_ns"] = 100 * causes["saving_fraction"]
    ideal = 100 * (1 - loss)
    bounds = pd.DataFrame([{"duration_ns": 100.0, "ideal_ns": ideal, "speedup": 100 / ideal}], index=[7])
    return causes, bounds, pd.DataFrame([{"inst_fp32_thread": 1.0}], index=[7])


def test_what_does_not_stand_out_remains_in_part() -> None:
    causes, bounds = without_remaining(*launch(barriers=2 * LEAST, warp_imbalance=0.05, unexplained=0.1))
    remains = REMAINING * 0.05
    assert causes["saving_fraction"].tolist() == pytest.approx([2 * LEAST, 0.05 - remains, 0.1, 0])
    assert causes["saving_ns"].tolist() == pytest.approx([200 * LEAST, 100 * (0.05 - remains), 10, 0])
    assert causes["high"].tolist() == pytest.approx([1, 1 - remains, 1, 1 - remains])
    assert bounds["ideal_ns"].tolist() == pytest.approx([100 * (0.85 - 2 * LEAST + remains)])
    assert bounds["speedup"].tolist() == pytest.approx([100 / bounds["ideal_ns"][7]])
    assert causes["saving_ns"].sum() + bounds["ideal_ns"][7] == pytest.approx(100)


def test_all_that_stands_out_is_avoidable() -> None:
    given = launch(barriers=2 * LEAST, unexplained=0.1)
    causes, bounds = without_remaining(*given)
    pd.testing.assert_frame_equal(causes, given[0])
    pd.testing.assert_frame_equal(bounds, given[1])


def test_what_no_counter_proves_does_not_stand_out() -> None:
    causes, _ = without_remaining(*launch(cache_thrashing=0.5, unexplained=0.1))
    assert causes["saving_fraction"][0] == pytest.approx((1 - REMAINING) * 0.5)


def test_what_remains_is_no_more_than_half_of_the_ideal_time() -> None:
    small = {"warp_imbalance": 0.1, "tail_wave": 0.1, "launch_overhead": 0.1}
    causes, bounds = without_remaining(*launch(barriers=0.68, **small))
    remains = (LONGEST - 1) * 0.02
    assert remains < REMAINING * 0.3
    assert bounds["ideal_ns"][7] == pytest.approx(LONGEST * 2)
    assert causes["saving_fraction"].tolist()[1:4] == pytest.approx([0.1 - remains / 3] * 3)


def test_without_counts_by_class_or_an_ideal_time_nothing_is_known_to_remain() -> None:
    causes, bounds, counters = launch(warp_imbalance=0.05, unexplained=0.1)
    unknown = bounds.assign(ideal_ns=float("nan"), speedup=float("nan"))
    for given in ((causes, bounds, counters.assign(inst_fp32_thread=float("nan"))), (causes, unknown, counters)):
        found = without_remaining(*given)
        pd.testing.assert_frame_equal(found[0], given[0])
        pd.testing.assert_frame_equal(found[1], given[1])
