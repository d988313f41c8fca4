"""Load balance from a number per SM."""

import pytest

from profsvc.errors import UsageError
from profsvc.views.calculators.answers import calculate
from profsvc.views.calculators.catalog import CALCULATORS

MODEL = CALCULATORS["load-balance"]


def balance(cycles, warps=None, **given):
    heads = ["active_cycles", *(["active_warps"] if warps else [])]
    lines = [heads, *zip(cycles, *([warps] if warps else []), strict=True)]
    view = calculate(MODEL, {"table": "\n".join(",".join(map(str, line)) for line in lines), **given})
    return {row["quantity"]: row["value"] for row in view["rows"]}, view["notes"]


def test_an_sm_that_ends_early() -> None:
    found, notes = balance([100, 100, 100, 60])
    assert (found["load_balance_sm"], found["speedup_sm"]) == (0.9, pytest.approx(1 / 0.9))
    assert any("upper limit" in note for note in notes)
    found, notes = balance([90, 100, 80, 90], elapsed="200")
    assert found["speedup_sm"] == pytest.approx(1.0526, abs=1e-4)


def test_warps_that_are_missing() -> None:
    found, _ = balance([100, 100], [2400, 800], block="256", blocks_per_sm="4", idle="0.5")
    assert found["load_balance_warp"] == 0.5
    assert found["speedup_warp"] == pytest.approx(4 / 3)


def test_what_cannot_be_is_refused() -> None:
    with pytest.raises(UsageError, match="no SM was active"):
        balance([0, 0])
    with pytest.raises(UsageError, match="50 cycles are fewer than the 100"):
        balance([100], elapsed="50")
