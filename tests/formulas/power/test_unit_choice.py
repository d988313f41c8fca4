"""The choice of law and units: found where it is in the data, and its error honest where it is not."""

import numpy as np
import pytest

from profsvc.formulas.numerics.flags import Flag
from profsvc.formulas.power.component_power import LAWS, active_factors
from profsvc.formulas.power.unit_choice import choose_units

SMS = 30


def kernels(count: int, units: int = 5, seed: int = 1) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    return rng.uniform(0, 1, (count, units)), rng.integers(3, SMS + 1, count).astype(np.float64)


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("rates_of", ["device", "sm"])
def test_law_and_units_of_exact_power_are_found(law: str, rates_of: str) -> None:
    rates, sms = kernels(24)
    g = active_factors(sms, SMS, law).sm
    each = rates * (SMS / sms)[:, np.newaxis] if rates_of == "device" else rates
    got = choose_units(rates, 40 + g * (60 + each @ [0, 90, 0, 20, 0]), sms, SMS, rates_of=rates_of)
    assert got.law == law
    np.testing.assert_allclose(got.coefficients_w, [40, 60, 0, 90, 0, 20, 0], atol=1e-6)
    assert got.nested_rms_w < 1e-6 < got.constant_rms_w
    assert (bool(got.beats_constant), int(got.folds), int(got.flags)) == (True, 24, 0)


def test_errors_are_those_of_fits_without_the_kernel() -> None:
    rates, _ = kernels(12, 2)
    names = [f"k{number // 2}" for number in range(12)]
    power = 50 + 80 * rates[:, 0] + np.random.default_rng(3).normal(0, 8, 12)
    got = choose_units(rates, power, np.nan, SMS, names)
    chosen = np.flatnonzero(got.coefficients_w)
    design = np.column_stack([np.ones(12), np.zeros(12), rates])[:, chosen]
    for name in set(names):
        own = np.array(names) == name
        fitted = np.linalg.lstsq(design[~own], power[~own], rcond=None)[0]
        np.testing.assert_allclose(got.left_out_w[own], design[own] @ fitted - power[own], rtol=1e-9)
        again = choose_units(rates[~own], power[~own], np.nan, SMS, np.array(names)[~own].tolist())
        whole = np.column_stack([np.ones(12), np.zeros(12), rates])
        np.testing.assert_allclose(got.nested_w[own], whole[own] @ again.coefficients_w - power[own], rtol=1e-9)
        np.testing.assert_allclose(got.constant_w[own], power[~own].mean() - power[own])
    assert int(got.folds) == 6


def test_noise_is_not_claimed_although_its_chosen_error_looks_good() -> None:
    """The choice among many units finds some that fit noise; only the error of the whole procedure shows it."""
    claims, looks_better = 0, 0
    for seed in range(12):
        rates, sms = kernels(14, 6, seed)
        got = choose_units(rates, np.random.default_rng(seed).normal(200, 20, 14), sms, SMS)
        claims += bool(got.beats_constant)
        looks_better += bool(got.left_out_rms_w < got.constant_rms_w)
        assert got.nested_rms_w >= 0.9 * got.left_out_rms_w
    assert claims <= 1
    assert looks_better >= 4


def test_wrong_runs_are_left_out_and_few_kernels_are_suspect() -> None:
    rates, sms = kernels(14)
    power = 40 + 90 * rates[:, 1]
    power[3], rates[5, 0], sms[7] = np.nan, -1.0, np.inf
    got = choose_units(rates, power, sms, SMS)
    assert np.isnan(got.nested_w).nonzero()[0].tolist() == [3, 5, 7]
    assert got.flags == Flag.INPUT_SUSPECT
    few = choose_units(rates[:3], [50.0, 60.0, 70.0], np.nan, SMS)
    assert few.flags == Flag.INPUT_SUSPECT
    none = choose_units(np.empty((0, 2)), np.empty(0), np.empty(0), SMS)
    assert (none.law, bool(none.beats_constant)) == ("", False)
    assert np.isnan(none.nested_rms_w)
    with pytest.raises(ValueError, match="at most 10 units"):
        choose_units(np.ones((3, 11)), 1.0, np.nan, SMS)
    with pytest.raises(ValueError, match="no form 'chip'"):
        choose_units(rates, power, sms, SMS, rates_of="chip")


def test_power_above_rest_has_no_base() -> None:
    rates, sms = kernels(20)
    got = choose_units(rates, 90 * rates[:, 1] * sms / SMS, sms, SMS, rates_of="sm", base=False)
    np.testing.assert_allclose(got.coefficients_w, [0, 0, 0, 90, 0, 0, 0], atol=1e-6)


def test_many_kernels_are_left_out_in_parts() -> None:
    rates, sms = kernels(130, 2)
    got = choose_units(rates, 40 + 90 * rates[:, 1], sms, SMS)
    assert int(got.folds) == 60
    assert got.nested_rms_w < 1e-6
