"""Power at a reference temperature: it undoes the law, and its error is carried whole."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from profsvc.formulas.numerics.flags import Flag
from profsvc.formulas.thermal.coefficient.temperature_coefficient import NO_COEFFICIENT, Coefficient, given_coefficient
from profsvc.formulas.thermal.coefficient.temperature_correction import correct_to_reference, corrected_mean
from tests.benchmarks.power_recovery import coefficient_of, joined
from tests.formulas.thermal import synthetic_logs

LINEAR = given_coefficient(0.5, 0.05, 40.0, 60.0)
CURVED = LINEAR._replace(law="exponential", rate_per_c=0.005, rate_standard_error_per_c=0.0005)
temperatures = st.floats(20, 100)


@given(st.floats(10, 800), temperatures, temperatures, st.sampled_from([LINEAR, CURVED]))
def test_there_and_back(power: float, hot: float, cold: float, coefficient: Coefficient) -> None:
    there = correct_to_reference(power, hot, coefficient, cold).power_w
    back = correct_to_reference(there, cold, coefficient, hot).power_w
    assert float(back) == pytest.approx(power)
    assert hot == pytest.approx(cold) or (there <= power) == (hot > cold)


def test_the_laws_are_undone() -> None:
    T = np.linspace(40, 70, 7)
    np.testing.assert_allclose(correct_to_reference(300 + 0.5 * (T - 40), T, LINEAR, 40.0).power_w, 300)
    np.testing.assert_allclose(correct_to_reference(300 * np.exp(0.005 * (T - 40)), T, CURVED, 40.0).power_w, 300)


@pytest.mark.parametrize("coefficient", [LINEAR, CURVED])
def test_the_error_is_that_of_a_simulation(coefficient: Coefficient) -> None:
    rng = np.random.default_rng(8)
    n = 200_000
    P, T = 300 + 2 * rng.standard_normal(n), 60 + 1.5 * rng.standard_normal(n)
    if coefficient.law == "linear":
        simulated = (P - (0.5 + 0.05 * rng.standard_normal(n)) * (T - 40)).std()
    else:
        simulated = (P * np.exp(-(0.005 + 0.0005 * rng.standard_normal(n)) * (T - 40))).std()
    told = correct_to_reference(300.0, 60.0, coefficient, 40.0, power_error_w=2.0, temperature_error_c=1.5)
    assert float(np.hypot(told.own_w, told.common_w)) == pytest.approx(simulated, rel=0.02)
    assert float(told.high_w - told.power_w) == pytest.approx(1.96 * simulated, rel=0.02)


def test_a_mean_averages_what_is_its_own_and_nothing_else() -> None:
    n = 400
    one = correct_to_reference(np.full(n, 300.0), 60.0, LINEAR, 40.0, power_error_w=4.0)
    mean = corrected_mean(one, 0.5)
    assert float(mean.power_w) == pytest.approx(290.0)
    assert float(mean.energy_j) == pytest.approx(290.0 * 200)
    assert float(mean.high_w - mean.power_w) == pytest.approx(1.96 * np.hypot(4 / 20, 20 * 0.05), rel=1e-4)
    assert float(mean.energy_high_j - mean.energy_j) == pytest.approx(200 * float(mean.high_w - mean.power_w))


def test_errors_of_both_sides_of_the_reference_cancel() -> None:
    around = correct_to_reference([300.0, 300.0], [30.0, 50.0], LINEAR, 40.0)
    assert float(corrected_mean(around, 1.0).high_w) == pytest.approx(300.0)


def test_groups_and_gaps() -> None:
    readings = correct_to_reference([300.0, np.nan, 310.0, 320.0], 40.0, LINEAR, 40.0)
    mean = corrected_mean(readings, [1.0, 1.0, 1.0, 3.0], group=[7, 7, 9, 9])
    np.testing.assert_allclose(mean.power_w, [300, 317.5])
    np.testing.assert_allclose(mean.duration_s, [1, 4])
    assert [bool(f & Flag.INPUT_SUSPECT) for f in mean.flags] == [True, False]
    empty = corrected_mean(correct_to_reference([np.nan], 40.0, LINEAR, 40.0), 1.0)
    assert np.isnan(empty.power_w)


def test_far_from_what_was_seen_is_said() -> None:
    flags = correct_to_reference(300.0, [65.0, 69.9, 70.1, 9.0], LINEAR, 40.0).flags
    assert [bool(f & Flag.EXTRAPOLATED) for f in flags] == [False, False, True, True]


def test_a_refused_coefficient_corrects_nothing() -> None:
    found = correct_to_reference([300.0, 310.0], 50.0, NO_COEFFICIENT._replace(refusal="the range is 2 degC"), 40.0)
    assert np.isnan(found.power_w).all()
    assert (found.flags & Flag.INPUT_SUSPECT).all()


@pytest.mark.parametrize("wrong", [np.nan, np.inf])
def test_a_wrong_number_makes_nan_and_leaves_the_next_one_unchanged(wrong: float) -> None:
    for name in ("power_w", "temperature_c", "reference_c", "power_error_w", "temperature_error_c"):
        given = {"power_w": [300.0] * 2, "temperature_c": [50.0] * 2, "reference_c": [40.0] * 2,
                 "power_error_w": [1.0] * 2, "temperature_error_c": [1.0] * 2} | {name: [wrong, 1.0]}  # fmt: skip
        found = correct_to_reference(coefficient=LINEAR, **given)
        assert np.isnan(found.power_w[0])
        assert np.isfinite(found.low_w[1])


def test_a_warming_plateau_is_flat_once_corrected() -> None:
    """The first load of a board without a second constant: raw power climbs by watts, the corrected one does not."""
    log = next(x for x in synthetic_logs.simulate(14, 9) if x.truth.resistance_c_per_w[1] == 0 and x.fan_w.max() == 0)
    found = coefficient_of(log, log.truth.shift_s)
    T = joined(log, log.truth.shift_s)
    late = (log.segments() == np.flatnonzero(log.load > 0)[0]) & np.isfinite(T)
    late &= log.power_time_s > log.start_s[1] + 5
    corrected = correct_to_reference(log.power_w, T, found, log.truth.idle_temperature_c).power_w

    def climb(x: np.ndarray) -> float:
        half = np.median(log.power_time_s[late])
        return float(np.median(x[late & (log.power_time_s > half)]) - np.median(x[late & (log.power_time_s <= half)]))

    assert abs(climb(corrected)) < 0.2 * abs(climb(log.power_w))
