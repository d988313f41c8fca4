"""The best share of a GPU: from known devices, from measured splits, and shares that were not measured."""

import re

import numpy as np
import pytest

from profsvc.analysis.power.sweeps.work_split import Devices, fit_splits, modelled, share_interval
from profsvc.errors import UsageError
from profsvc.views.calculators.answers import calculate
from profsvc.views.calculators.catalog import CALCULATORS

MODEL, SHARES = CALCULATORS["energy-split"], CALCULATORS["energy-shares"]
BOX = Devices(10.0, 4.0, 80.0, 200.0, 100.0)
X = np.linspace(0, 1, 11)


def measured(x: np.ndarray = X, noise: float = 0.0, seed: int = 1):
    time, energy = modelled(BOX, x)
    a, b = np.exp(np.random.default_rng(seed).normal(0, noise, (2, x.size)))
    return x, time * a, energy / time * b


def given(**more: str) -> dict[str, str]:
    return {"cpu_time": "10", "gpu_time": "4", "cpu_power": "80", "gpu_power": "200", "idle_power": "100"} | more


def test_devices_without_noise_are_found_again() -> None:
    found = fit_splits(*measured())
    assert found.devices == pytest.approx(BOX)
    assert found.share == pytest.approx(10 / 14) == pytest.approx(found.low) == pytest.approx(found.high)
    assert found.left_out_error < 1e-9


@pytest.mark.parametrize("objective", ["time", "energy", "edp"])
def test_the_interval_of_noisy_splits_holds_the_best_share(objective: str) -> None:
    found = fit_splits(*measured(noise=0.02), objective)
    want = float(BOX.best(objective).share)
    assert found.low <= want <= found.high
    assert found.left_out_error < found.constant_error


@pytest.mark.parametrize(
    ("x", "said"),
    [
        (X[:6], "the CPU ends last, so what the other device can do is not known; .* above 50 %"),
        (X[8:-1:1], "2 shares were measured"),
        (np.linspace(0.75, 1, 6), "the GPU ends last, .* below 75 %"),
    ],
)
def test_a_share_that_was_not_measured_is_refused(x: np.ndarray, said: str) -> None:
    found = fit_splits(*measured(x, 0.01))
    assert found.reason is not None
    assert re.search(said, found.reason)
    assert np.isnan(found.share)


def test_errors_of_the_sensors_move_the_share() -> None:
    none, some = Devices(*(0.0,) * 5), Devices(0.05, 0.05, 0.1, 0.1, 0.1)
    assert share_interval(BOX, none, "energy") == pytest.approx((10 / 14, 10 / 14))
    low, high = share_interval(BOX, some, "energy")
    assert (low, high) == pytest.approx((9.5 / 13.7, 10.5 / 14.3))
    close = BOX._replace(gpu_w=449.0)  # both shares cost about the same energy
    assert share_interval(close, some, "energy")[0] == 0.0


def test_published_form_charges_the_device_that_rests() -> None:
    alone = calculate(MODEL, given())["rows"][0]
    printed = calculate(MODEL, given(form="as_published"))["rows"][0]
    assert (alone["energy_j"], printed["energy_j"]) == pytest.approx((1800, 3800))
    assert (alone["efficiency"], alone["better"]) == (1.0, "neither")
    assert printed["efficiency"] < 1


def test_eleven_shares_and_the_best_one() -> None:
    rows = calculate(MODEL, given())["rows"]
    assert [row["gpu_share_percent"] for row in rows if row["gpu_share_percent"] % 10 < 1e-9] == pytest.approx(
        [10 * n for n in range(11)]
    )
    best = min(rows, key=lambda row: row["energy_j"])
    assert best["gpu_share_percent"] == pytest.approx(100 * 10 / 14)


def test_power_of_both_devices_is_added_up() -> None:
    whole = "gpu_share,time,power\n0,10,180\n20,8,200\n40,6,233\n80,3.2,350\n100,4,300\n"
    parts = "gpu_share,time,cpu_power,gpu_power\n0,10,150,30\n20,8,150,50\n40,6,150,83\n80,3.2,150,200\n100,4,60,240\n"
    assert calculate(MODEL, {"table": whole})["rows"] == calculate(MODEL, {"table": parts})["rows"]


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({}, "cpu_time, gpu_time, cpu_power, gpu_power, idle_power: missing"),
        ({"table": "gpu_share,time,power\n0,1,1\n", "cpu_time": "3"}, "the table gives what cpu_time says"),
        ({"table": "gpu_share,time,cpu_power\n0,1,1\n"}, "give the power of the box, or cpu_power and gpu_power"),
        ({"table": "gpu_share,time,power\n0,1,1\n0.5,1,1\n1,1,1\n"}, "looks like a fraction; give per cent"),
    ],
)
def test_what_does_not_fit_is_said(values: dict[str, str], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        calculate(MODEL, values)


def test_a_best_share_of_nothing_has_no_relative_error() -> None:
    view = calculate(SHARES, {"table": "model_share,best_share\n10,0\n50,40\n"})
    assert view["rows"][0]["relative_error"] is None
    assert "not known, because a best share is 0" in view["notes"][0]
    assert view["notes"][1].startswith("difference: 10.00 points")
