"""The range of a potential, and how many pairs of kernels lie in it."""

import numpy as np
import pandas as pd
import pytest

from profsvc.analysis.causes.mended_range import with_ranges
from profsvc.formulas.numerics.flags import Flag
from profsvc.specs.advice.causes import least_shares
from profsvc.specs.advice.mended_ranges import mended_ranges
from tests.benchmarks.mended_ranges import OUTSIDE, RECORD, fitted, left_out, recorded, said_today


def ranges_of(first: list[str], flags: int = 0, threads: float = 1.0) -> pd.DataFrame:
    """Ranges of launches with a potential of 4 and these first causes; an empty name is of one without causes."""
    ids = list(range(7, 7 + len(first)))
    causes = pd.DataFrame(
        [{"launch_id": i, "rank": 1 + rank, "cause": name} for i, own in zip(ids, first, strict=True) if own
         for rank, name in enumerate((own, "unexplained"))],
        columns=["launch_id", "rank", "cause"],
    )  # fmt: skip
    bounds = pd.DataFrame({"speedup": 4.0, "flags": flags}, index=ids)
    return with_ranges(bounds, causes, pd.DataFrame({"inst_fp32_thread": threads}, index=ids))


def test_the_first_cause_tells_the_range() -> None:
    found, one = ranges_of(["memory_limit", "bank_conflicts"]), mended_ranges()["bank_conflicts"]
    assert found["speedup_low"].tolist() == pytest.approx([1.0, 4**one.least_exponent])
    assert found["speedup_high"].tolist() == pytest.approx([4.0, 4 * one.largest_factor])
    assert found["speedup"].tolist() == [4.0, 4.0]


def test_a_range_of_a_bound_or_without_causes_is_not_known() -> None:
    ends = ["speedup_low", "speedup_high"]
    assert ranges_of(["", "barriers"])[ends].isna().all(axis=1).tolist() == [True, False]
    assert ranges_of([""])[ends].isna().to_numpy().all()
    for flag in (Flag.LOWER_BOUND, Flag.UPPER_BOUND):
        assert ranges_of(["barriers", "memory_limit"], int(flag | Flag.CLIPPED))[ends].isna().to_numpy().all()
    assert ranges_of(["barriers", "memory_limit"], int(Flag.CLIPPED))[ends].notna().to_numpy().all()


def test_without_counts_by_class_a_launch_at_its_limit_has_no_range() -> None:
    found = ranges_of(["memory_limit", "barriers"], threads=np.nan)
    assert found["speedup_high"].isna().tolist() == [True, False]


def test_the_table_is_the_fit_to_all_sets_by_the_rules_of_today() -> None:
    assert dict(mended_ranges()) == dict(fitted(recorded()))


def test_what_is_recorded_is_what_the_rules_say() -> None:
    now, table = said_today("fourth"), pd.read_csv(RECORD)
    then = table[table["set"] == "fourth"].reset_index(drop=True)
    assert (now["cause"] == then["cause"]).all()
    assert now["potential"].tolist() == pytest.approx(then["potential"], rel=0.01)
    assert now["achieved"].tolist() == then["achieved"].tolist()


def test_eight_of_ten_pairs_of_a_set_that_is_left_out_lie_in_their_range() -> None:
    pairs, expected = recorded(), 1 - 2 * OUTSIDE
    inside = left_out(pairs)
    assert inside.mean() == pytest.approx(expected, abs=0.03)
    for _, own in inside.groupby(pd.cut(pairs["potential"], [1, 1.5, 2, 3, 5, np.inf]), observed=True):
        # Of so few pairs another share is seen by chance: 99 of 100 times it lies within 2.6 standard errors.
        assert own.mean() == pytest.approx(expected, abs=2.6 * np.sqrt(expected * (1 - expected) / own.size))


def test_a_cause_without_pairs_has_the_range_of_its_evidence() -> None:
    pairs = recorded()
    others = pairs[pairs["cause"] != "integer_division"]
    counted = others[[least_shares()[name].evidence == "counted" for name in others["cause"]]]
    found = fitted(others)["integer_division"]
    exponents = np.log(counted["achieved"]) / np.log(counted["potential"])
    assert found.pairs == 0
    assert found.least_exponent == pytest.approx(np.quantile(exponents, OUTSIDE), abs=0.02)
    assert found.largest_factor == pytest.approx(np.quantile(counted["achieved"] / counted["potential"], 0.9), abs=0.02)
    assert mended_ranges()["integer_division"].least_exponent < found.least_exponent - 0.1
