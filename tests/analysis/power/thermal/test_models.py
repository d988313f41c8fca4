"""Figures of the thermal model as rows: which constant, its interval, and words where there is a bound alone."""

from typing import Any

import numpy as np
import pytest

from profsvc.analysis.power.logs import UTC, Log
from profsvc.analysis.power.sensor import PowerSensor, Series
from profsvc.analysis.power.thermal import models as thermal_models
from profsvc.formulas.thermal.rc_model import temperature_scan


def measured(power: np.ndarray, time: np.ndarray, temperature: np.ndarray) -> PowerSensor:
    log = Log(1, 1, "power", "power.draw.instant", "W", 0, "NVIDIA H200", UTC, (1e9 * time).astype(np.int64), power)
    own = PowerSensor(log, 0, time, power, np.ones(time.size, dtype=bool), 0.1, 0.0, 0.0)
    own.companions["temperature"] = Series(2, "temperature.gpu", time, temperature)
    return own


def rows(own: PowerSensor, quantity: str) -> list[dict[str, Any]]:
    return [row for row in own.models if row["quantity"] == quantity]


@pytest.fixture(scope="module")
def board() -> PowerSensor:
    """A part that follows within a reading, and one of 30 s."""
    time = np.arange(0.0, 360.0, 0.1)
    power = np.where((time // 90) % 2 == 1, 480.0, 80.0)
    slow = temperature_scan(0.03 * power, 0.1, 2.4, 30.0, 30.0)
    noise = 0.2 * np.random.default_rng(3).standard_normal(time.size)
    own = measured(power, time, np.floor(30 + slow + 0.02 * power + noise))
    thermal_models._fit_whole_log(own)
    return own


def test_each_constant_says_which_it_is(board: PowerSensor) -> None:
    fast, slow = rows(board, "rc_rise_s")
    assert fast["form"] == "whole log, constant 1 of 2, the fastest"
    assert slow["form"] == "whole log, constant 2 of 2, the slowest"
    assert slow["low"] < 30 < slow["high"]
    assert slow["low"] < slow["value"] < slow["high"]
    assert [row["form"] for row in rows(board, "resistance_c_per_w")] == [fast["form"], slow["form"]]


def test_a_constant_that_is_wide_says_so() -> None:
    own = measured(np.ones(3), np.arange(3.0), np.ones(3))
    ends = (np.array([1.0, 40.0, np.nan]), np.array([0.7, 39.0, 0.0]), np.array([1.4, 41.0, 0.2]))
    thermal_models._warn_wide_interval(own, None, {"rc_rise_s": ends, "rc_decay_s": ends})
    (row,) = own.quality
    assert row["flag"] == "wide_constant"
    assert row["value"] == 2
    assert "over the whole log, uncertain by more than 5%: rc_rise_s 1 s (0.7 to 1.4), rc_decay_s 1 s" in row["message"]
    thermal_models._warn_wide_interval(own, "mix", {"rc_rise_s": tuple(end[1:2] for end in ends)})
    assert len(own.quality) == 1


def test_a_bound_is_no_value_but_a_reason(board: PowerSensor) -> None:
    fast, _ = rows(board, "rc_rise_s")
    assert fast["value"] is None
    assert fast["low"] == 0
    assert fast["reason"] == f"below {fast['high']:.3g} s"


@pytest.mark.parametrize(
    ("ends", "reason"),
    [((2.0, 50.0), "between 2 and 50 s"), ((7.0, np.nan), "above 7 s"),
     ((np.nan, np.nan), "the log does not determine it"), ((np.nan, 4.0), "below 4 s")],
)  # fmt: skip
def test_what_is_not_told(ends: tuple[float, float], reason: str) -> None:
    own = measured(np.ones(3), np.arange(3.0), np.ones(3))
    thermal_models._add_constant(own, "rc_rise_s", np.nan, *ends, {"flags": 0})
    (row,) = own.models
    assert row["reason"] == reason
    assert [row.get("low"), row.get("high")] == [x if np.isfinite(x) else None for x in ends]


def test_one_window_of_one_constant() -> None:
    time = np.arange(0.0, 150.0, 0.5)
    own = measured(time, time, time)
    thermal_models._fit_window(own, "mix", time, np.floor(57 + 21 * np.exp(-time / 30)))
    thermal_models._fit_window(own, "flat", time, 50 + 0 * time)
    falls, flat = rows(own, "rc_decay_s") + rows(own, "rc_rise_s")
    assert falls["low"] < 30 < falls["high"]
    assert (falls["window"], falls["form"]) == ("mix", "one load, one constant")
    assert rows(own, "change_c")[0]["value"] == pytest.approx(-21, abs=1)
    assert "changes by 0.0 \u00b0C" in flat["reason"]
