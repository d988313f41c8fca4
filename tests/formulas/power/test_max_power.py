"""MaxPower from runs: recovered where it can be, refused where it cannot, and never claimed beyond what is shown."""

import numpy as np
import pytest

from profsvc.formulas.numerics.flags import Flag
from profsvc.formulas.power.component_power import LAWS, runtime_power
from profsvc.formulas.power.max_power import MaxPowerFit, fit_maxpower
from profsvc.specs import components

UNITS = [
    c for c in components("GTX280") if c.name in ("FP", "REG", "SFU", "INT", "FDS", "Shared", "Const_SM", "Global")
]
KINDS = {"special": [c.special for c in UNITS], "per_sm": [c.per_sm for c in UNITS]}
MAX_POWER = np.array([c.max_power_w for c in UNITS])


def runs(count: int, seed: int = 1) -> tuple[np.ndarray, np.ndarray]:
    """Access rates and numbers of SMs of benchmarks that stress different units."""
    rng = np.random.default_rng(seed)
    access = rng.uniform(0.001, 1, (count, len(UNITS))) ** 3 + 1e-3
    access = np.where([c.always_on for c in UNITS], 1.0, np.minimum(access, 1.0))
    return access, rng.integers(5, 31, count).astype(np.float64)


def fit(access: np.ndarray, power: np.ndarray, sms: np.ndarray, law: str = "log") -> MaxPowerFit:
    return fit_maxpower(access, power, **KINDS, active_sms=sms, num_sms=30, law=law)


@pytest.mark.parametrize("law", LAWS)
def test_exact_runs_give_the_table_back(law: str) -> None:
    access, sms = runs(25)
    power = runtime_power(access, MAX_POWER, **KINDS, active_sms=sms, num_sms=30, law=law).total_w
    got = fit(access, power, sms, law)
    np.testing.assert_allclose(got.max_power_w, MAX_POWER, rtol=1e-6)
    np.testing.assert_allclose(got.left_out_rms_w, 0, atol=1e-6)
    assert got.beats_constant
    assert got.skill > 0.999999
    assert (int(got.flags), int(got.runs)) == (0, 25)
    assert 1 < got.condition < 1e3


def test_errors_on_runs_left_out_are_those_of_fits_without_them() -> None:
    access, sms = runs(12)
    rng = np.random.default_rng(4)
    power = runtime_power(access, MAX_POWER, **KINDS, active_sms=sms, num_sms=30).total_w + rng.normal(0, 5, 12)
    got = fit(access, power, sms)
    for k in range(12):
        kept = np.arange(12) != k
        without = fit(access[kept], power[kept], sms[kept])
        predicted = runtime_power(access[k], without.max_power_w, **KINDS, active_sms=sms[k], num_sms=30).total_w
        assert got.left_out_w[k] == pytest.approx(float(predicted) - power[k], abs=1e-6)
        assert got.constant_w[k] == pytest.approx(power[kept].mean() - power[k])
        assert (got.lowest_w <= without.max_power_w + 1e-9).all()
        assert (without.max_power_w <= got.highest_w + 1e-9).all()
    assert got.left_out_rms_w > got.residual_rms_w
    assert got.skill == pytest.approx(1 - (got.left_out_rms_w / got.constant_rms_w) ** 2)


def test_power_that_has_nothing_to_do_with_access_is_not_claimed() -> None:
    rng = np.random.default_rng(8)
    claims = 0
    for seed in range(60):
        access, _ = runs(14, seed)
        got = fit(access, rng.normal(80, 5, 14), np.full(14, 30.0))
        claims += bool(got.beats_constant)
        assert not got.beats_constant or got.left_out_rms_w < got.constant_rms_w
    assert claims <= 3


def test_few_runs_are_suspect_and_show_their_errors() -> None:
    access, sms = runs(9)
    power = runtime_power(access, MAX_POWER, **KINDS, active_sms=sms, num_sms=30).total_w
    got = fit(access, power, sms)
    assert got.flags == Flag.INPUT_SUSPECT
    assert np.isfinite([got.left_out_rms_w, got.constant_rms_w]).all()
    two = fit(access[:2], power[:2], sms[:2])
    assert np.isnan([two.left_out_rms_w, two.constant_rms_w, two.skill]).all()
    assert not two.beats_constant
    assert np.isinf(two.condition)
    none = fit(access[:0], power[:0], sms[:0])
    assert np.isnan(none.max_power_w).all()
    assert (int(none.runs), int(none.flags)) == (0, Flag.INPUT_SUSPECT)


def test_a_unit_that_no_run_uses_has_no_max_power() -> None:
    access, sms = runs(20)
    access[:, 2] = 0.0
    power = runtime_power(access, MAX_POWER, **KINDS, active_sms=sms, num_sms=30).total_w
    got = fit(access, power, sms)
    assert np.isnan(got.max_power_w).tolist() == [False, False, True, *[False] * 5]
    assert np.isnan(got.lowest_w[2])
    np.testing.assert_allclose(np.delete(got.max_power_w, 2), np.delete(MAX_POWER, 2), rtol=1e-6)
    assert got.flags == 0


def test_units_that_always_work_together_cannot_be_distinguished() -> None:
    access, sms = runs(20)
    access[:, 1] = access[:, 0]
    power = runtime_power(access, MAX_POWER, **KINDS, active_sms=sms, num_sms=30).total_w
    got = fit(access, power, sms)
    assert got.condition > 1e8
    assert got.flags == Flag.INPUT_SUSPECT
    assert got.left_out_rms_w < 1e-6


def test_no_max_power_is_negative() -> None:
    access, sms = runs(15)
    got = fit(access, 100 - 60 * access[:, 2], sms)
    assert (got.max_power_w >= 0).all()
    assert got.max_power_w[2] == 0


def test_bad_runs_are_left_out() -> None:
    access, sms = runs(20)
    power = np.array(runtime_power(access, MAX_POWER, **KINDS, active_sms=sms, num_sms=30).total_w)
    power[3], access[5, 0], sms[7] = np.nan, -0.1, np.inf
    got = fit(access, power, sms)
    assert int(got.runs) == 17
    assert got.flags == Flag.INPUT_SUSPECT
    assert np.isnan(got.left_out_w).nonzero()[0].tolist() == [3, 5, 7]
    np.testing.assert_allclose(got.max_power_w, MAX_POWER, rtol=1e-6)


def test_wrong_arguments() -> None:
    access, sms = runs(4)
    with pytest.raises(ValueError, match=r"access has shape \(8,\); allowed: \(runs, units\)"):
        fit(access[0], np.ones(1), sms[:1])
    with pytest.raises(ValueError, match="runtime_w has 3 runs; allowed: 4"):
        fit(access, np.ones(3), sms[:3])
    with pytest.raises(TypeError, match="access has dtype"):
        fit(access.astype(str), np.ones(4), sms)
    with pytest.raises(ValueError, match="no form 'square'"):
        fit(access, np.ones(4), sms, "square")
