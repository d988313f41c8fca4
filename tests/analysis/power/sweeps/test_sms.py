"""A sweep of SMs: its interval holds what it was not shown, and the largest number tried is no optimum."""

import numpy as np
import pandas as pd
import pytest

from profsvc.analysis.power.logs import UTC, Log
from profsvc.analysis.power.sensor import PowerSensor
from profsvc.analysis.power.sweeps.sms import fit_sweeps

# Means over loads of 5 s on an NVIDIA H200, with the temperature of each.
FMA = ([1, 16, 33, 49, 66, 82, 99, 115, 132], [133.27, 155.13, 180.59, 205.26, 231.64, 256.79, 284.34, 310.43, 338.12],
       [42.91, 42.67, 43.0, 44.13, 45.0, 46.91, 48.18, 50.07, 51.04])  # fmt: skip
COPY = ([1, 16, 33, 66, 99, 132], [142.61, 224.40, 273.68, 332.89, 354.66, 369.86],
        [41.83, 43.0, 44.0, 45.87, 46.84, 47.26])  # fmt: skip


def swept(sms, power, warmth, device="NVIDIA H200", launches=None) -> list[dict[str, object]]:
    number = len(sms)
    log = Log(1, 1, "power", "power.draw.instant", "W", 0, device, UTC, np.arange(2), np.ones(2))
    own = PowerSensor(log, 0, np.arange(2.0), np.ones(2), np.ones(2, dtype=bool), 0.1, 0.0, 0.0)
    nan = np.full(number, np.nan)
    table = pd.DataFrame({
        "window": [f"load, {n} SMs" for n in sms], "load": "load", "kind": "load", "active_sms": sms,
        "settled_power_w": power, "mean_power_w": power, "corrected_power_w": nan, "mean_temperature_c": warmth,
        "coefficient_low": nan, "coefficient_high": nan, "power_sd_w": 0.5, "readings": 50, "duration_s": 5.0,
        "launches": pd.array(launches or [None] * number, dtype="Int64"),
    })  # fmt: skip
    fit_sweeps(own, table, 130.0)
    return own.models + [row | {"quantity": row["flag"]} for row in own.quality]


def figure(rows, quantity) -> dict[str, object]:
    return next(row for row in rows if row["quantity"] == quantity)


@pytest.mark.parametrize(("sweep", "without"), [(FMA, 1), (FMA, 2), (FMA, 3), (COPY, 1), (COPY, 2)])
def test_the_interval_on_all_sms_holds_what_was_measured_there(sweep, without):
    """The last levels are kept back: which law it is and what the temperature did there is not known."""
    sms, power, warmth = (column[:-without] for column in sweep)
    found = figure(swept(sms, power, warmth), "power_on_all_sms_w")
    assert found["low"] < sweep[1][-1] < found["high"]
    assert found["low"] >= 0


def test_the_largest_number_tried_is_no_optimum():
    sms, power, warmth = (column[:-1] for column in FMA)
    launches = [100] * len(sms)
    rows = swept(sms, power, warmth, launches=launches)
    best = figure(rows, "best_sms")
    assert best["value"] is None
    assert "the most work per joule was on the largest SM count measured, 115 of 132" in best["reason"]
    assert figure(rows, "sweep_too_short")["value"] == 115
    unnamed = figure(swept(*FMA, device=None, launches=[100] * 9), "best_sms")
    assert unnamed["value"] is None
    whole = swept(*FMA, launches=[100] * 9)
    assert figure(whole, "best_sms")["value"] == 132
    assert "all SMs of the device: there is no optimum below" in figure(whole, "no_optimum")["message"]
    slow = swept(*FMA, launches=[100, 100, 100, 90, 60, 40, 30, 25, 20])
    assert figure(slow, "best_sms")["value"] == 49
    assert not [row for row in slow if row["quantity"] in ("no_optimum", "sweep_too_short")]
