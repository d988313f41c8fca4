"""The best clock: laws that are known, public measurements, and optima that were not measured."""

import numpy as np
import pytest

from profsvc.analysis.power.sweeps.frequency import Laws, best_clock, fit_sweep
from profsvc.errors import UsageError
from profsvc.formulas.power.energy import frequency_optimum
from profsvc.views.calculators.answers import calculate
from profsvc.views.calculators.catalog import CALCULATORS

MODEL = CALCULATORS["energy-frequency"]
CLOCK = np.linspace(500e6, 1000e6, 6)


def sweep_of(laws: Laws, clock: np.ndarray = CLOCK, noise: float = 0.0, seed: int = 1):
    f = clock / clock[-1]
    factors = np.exp(np.random.default_rng(seed).normal(0, noise, (2, clock.size)))
    time, power = laws.fixed_s + laws.clocked_s / f, laws.idle_w + laws.dynamic_w * f**3
    return fit_sweep(clock, time * factors[0], power * factors[1])


def test_laws_without_noise_are_found_again() -> None:
    laws = Laws(*map(np.asarray, (0.2, 0.8, 60.0, 90.0)))
    found = sweep_of(laws)
    assert [float(x) for x in found.laws] == pytest.approx([0.2, 0.8, 60, 90])
    scan = np.linspace(0.5, 1, 50_001)
    assert found.best_hz == pytest.approx(1e9 * scan[laws.energy_j(scan, 3).argmin()], rel=1e-4)
    assert found.low_hz == pytest.approx(found.high_hz) == pytest.approx(found.best_hz)
    assert found.left_out_error < 1e-9 < found.constant_error


def test_where_all_time_follows_the_clock_the_published_optimum_holds() -> None:
    laws = Laws(*map(np.asarray, (0.0, 1.0, 50.0, 100.0)))
    want = float(frequency_optimum(1, 100.0, 50.0).value)
    assert float(best_clock(laws, 3)) == pytest.approx(want) == pytest.approx(0.25 ** (1 / 3))
    assert float(best_clock(laws._replace(fixed_s=np.asarray(0.1)), 3)) < want


def test_the_interval_holds_the_optimum_as_often_as_it_says() -> None:
    laws = Laws(*map(np.asarray, (0.1, 0.9, 60.0, 90.0)))
    best = float(best_clock(laws, 3)) * 1e9
    inside = [
        found.low_hz <= best <= found.high_hz for n in range(60) for found in [sweep_of(laws, noise=0.02, seed=n)]
    ]
    assert np.mean(inside) >= 0.9


@pytest.mark.parametrize(
    ("laws", "clock", "said"),
    [
        ((0.0, 1.0, 5.0, 100.0), CLOCK, "least below 500 MHz, the lowest clock measured"),
        ((0.0, 1.0, 900.0, 10.0), CLOCK, "least above 1000 MHz, the highest clock measured"),
        ((1.0, 0.0, 50.0, 50.0), CLOCK, "least below 500 MHz"),
        ((0.0, 1.0, 50.0, 0.0), CLOCK, "least above 1000 MHz"),
        ((0.1, 0.9, 60.0, 90.0), CLOCK[:3], "3 clocks were measured"),
    ],
)
def test_an_optimum_that_was_not_measured_is_refused(laws, clock, said) -> None:
    found = sweep_of(Laws(*map(np.asarray, laws)), clock)
    assert said in str(found.reason)
    assert np.isnan(found.best_hz)


def test_laws_no_better_than_a_constant_name_no_clock() -> None:
    time = [1.424838, 1.455906, 1.442207, 1.473634, 1.383035]
    power = [212.56, 212.39, 217.20, 212.16, 214.50]  # bound by memory: BlackScholes of an RTX 2070 Super
    found = fit_sweep(np.array([1680, 1780, 1880, 1980, 2080]) * 1e6, time, power)
    assert "no less than the mean of the other points" in str(found.reason)


def test_public_measurements_have_their_optimum_inside() -> None:
    view = calculate(MODEL, MODEL.examples[0].values)
    assert view["notes"][0].startswith("best clock: 631 MHz, 95 % interval 535 to 726 MHz")
    (mark,) = view["figure"]["marks"]
    assert mark["low"] < mark["x"] < mark["high"]
    beyond = calculate(MODEL, MODEL.examples[1].values)
    assert beyond["notes"][0].startswith("no best clock: the energy is least below 1680 MHz")
    assert beyond["figure"]["marks"] == []


def test_a_baseline_that_is_not_there_is_refused() -> None:
    with pytest.raises(UsageError, match="baseline is 700 MHz, but the table has 1000, 2000"):
        calculate(MODEL, {"table": "clock,time,power\n1000,1,1\n2000,1,1\n", "baseline": "700"})
