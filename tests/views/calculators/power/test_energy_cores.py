"""Cores and clocks: figures by hand."""

import pytest

from profsvc.views.calculators.answers import calculate
from profsvc.views.calculators.catalog import CALCULATORS

MODEL = CALCULATORS["energy-cores"]


def test_cores_and_clocks_by_hand() -> None:
    given = {"cores": "2,4", "clock": "1000,2000", "time": "8", "power": "100", "idle_power": "60"}
    rows = calculate(MODEL, given)["rows"]
    assert [(row["cores"], row["clock_mhz"], row["time_s"], row["power_w"]) for row in rows] == [
        (2, 1000, 8, 100), (2, 2000, 4, 60 + 40 * 8), (4, 1000, 4, 140), (4, 2000, 2, 60 + 80 * 8)
    ]  # fmt: skip
    assert [row["efficiency"] for row in rows] == pytest.approx([1, 800 / 1520, 800 / 560, 800 / 1400])
    assert [row["better"] for row in rows] == ["neither", "time only", "time and energy", "time only"]


def test_a_limit_slows_all_but_the_measured_point() -> None:
    given = {"cores": "1,2", "power": "100", "idle_power": "50", "slowdown": "4"}
    first, second = calculate(MODEL, given)["rows"]
    assert (first["speedup"], second["speedup"]) == pytest.approx((1, 0.5))
    assert second["better"] == "neither"


def test_idle_power_above_the_power_is_refused() -> None:
    with pytest.raises(Exception, match="idle_power is 50 W but power is 40 W"):
        calculate(MODEL, {"power": "40", "idle_power": "50"})
