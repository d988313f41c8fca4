"""The test of a night: newest value, false-discovery rate, noise floor, effects. Rates are of seeded noise."""

import numpy as np
import pytest
from scipy import stats

from profsvc.formulas.change.nightly_test import (
    MIN_TESTS,
    effect,
    false_discovery,
    newest_value,
    nightly_verdict,
    noise_floor,
)
from profsvc.formulas.change.steps.newest_step import ALPHA, newest_step
from profsvc.formulas.numerics.flags import Flag
from tests.benchmarks import change as simulated
from tests.formulas.change.steady_series import STEADY, at_most


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(simulated.SEED)


def test_few_findings_of_a_night_are_false(rng: np.random.Generator) -> None:
    real, false = np.sum([simulated.one_night(rng, 60, 4.0, 500, 5) for _ in range(5)], axis=0)
    assert real >= 20
    assert false <= at_most(0.05, 25) * 25


def test_one_finding_a_change_and_not_one_a_night(rng: np.random.Generator) -> None:
    got = simulated.season(rng, 40, 20, 45, {3: 25, 8: 30}, 6.0, reruns=2)
    assert set(got["delay"]) == {3, 8}
    assert max(got["delay"].values()) <= 3
    assert len(got["false"]) <= 1


def test_a_change_too_small_to_matter_is_not_found() -> None:
    value = np.tile([*STEADY, 10.9, 11.0, 11.1, 11.0, 10.9], 2)
    group = np.repeat([4, 9], 17)
    assert nightly_verdict(value, group).found.tolist() == [True, True]
    assert nightly_verdict(value, group, relative=[0.05, 0.2]).found.tolist() == [True, False]
    assert nightly_verdict(value, group, absolute=2.0).found.tolist() == [False, False]
    assert nightly_verdict(value, group, alpha=1e-12).found.tolist() == [False, False]
    assert nightly_verdict(value, group, share=1e-12).rerun_wanted.tolist() == [True, True]


def test_many_tests_share_one_rate() -> None:
    p = np.array([1e-6, 0.2, 0.01, np.nan, 2.0, -1.0])
    found = false_discovery(p, 0.05)
    assert found.found.tolist() == [True, False, True, False, False, False]
    np.testing.assert_allclose(found.adjusted[:3], stats.false_discovery_control(p[:3]))
    np.testing.assert_allclose(
        false_discovery(p, dependent=True).adjusted[:3], stats.false_discovery_control(p[:3], method="by")
    )
    assert np.isnan(found.adjusted[3:]).all()


def test_noise_floor_needs_repeats_and_bears_one_bad_run(rng: np.random.Generator) -> None:
    none = noise_floor([1.0, 2.0], [1, 2])
    assert np.isnan(none.sd)
    assert none.flags == Flag.NOT_APPLICABLE
    binary = np.repeat(np.arange(400), 2)
    value = rng.standard_normal(800) * 0.3 + binary * 5.0
    assert noise_floor(value, binary).sd == pytest.approx(0.3, rel=0.12)
    value[0] = 1e9
    assert noise_floor(value, binary).sd == pytest.approx(0.3, rel=0.12)
    assert noise_floor([np.nan, 1.0, 2.0], [1, 1, 1]).df == 1


def test_effects() -> None:
    assert effect([1.0, np.nan], [np.nan, 1.0]).material.tolist() == [False, False]
    with pytest.raises(ValueError, match="do not broadcast"):
        effect([1.0, 2.0], [1.0, 2.0, 3.0])


def test_constant_until_now() -> None:
    tail = newest_value([7.0] * 9 + [8.0, 7.0, 7.0])
    assert tail.p == 1


def test_the_optimum_is_where_the_literature_has_it(rng: np.random.Generator) -> None:
    false, soon = simulated.optimal(rng, 4.2, 4000)
    assert false == pytest.approx(0.01, abs=0.005)
    assert soon < 0.8


def test_small_histories_say_what_they_need() -> None:
    for n in range(8):
        step, tail = newest_step(STEADY[:n]), newest_value(STEADY[:n])
        assert step.needed == 8 - n
        assert np.isnan(step.p)
        assert tail.needed == max(6 - n, 0)
        assert np.isnan(tail.p) == (n < 6)
    night = nightly_verdict(STEADY[:3])
    assert (bool(night.found), bool(night.rerun_wanted), int(night.needed)) == (False, False, 5)


def test_missing_nights_close_up() -> None:
    value = [*STEADY, 12.0, 12.1, 11.9]
    with_gaps = [x for pair in zip(value, [np.nan] * len(value), strict=True) for x in pair]
    assert newest_step(with_gaps).p == newest_step(value).p
    assert newest_step(with_gaps).at == 2 * newest_step(value).at == 24
    tail = newest_value([*STEADY, np.nan])
    assert np.isnan(tail.p)
    assert tail.flags & Flag.NOT_APPLICABLE
    assert newest_step([*STEADY, np.inf]).flags == Flag.INPUT_SUSPECT
    assert newest_step([*STEADY, np.inf]).p == newest_step(STEADY).p


def test_known_errors_of_measurement_are_no_step() -> None:
    value = [*STEADY, 10.6, 10.5, 10.7, 10.5, 10.6]
    assert newest_step(value).p < 0.001
    assert newest_step(value, standard_error=0.5).p > ALPHA
    assert newest_step(value, standard_error=[np.nan] * 17).p == newest_step(value).p
    unsure = newest_value([*STEADY, 11.0], standard_error=[0.0] * 12 + [0.5])
    assert unsure.p > newest_value([*STEADY, 11.0]).p
    assert newest_value([*STEADY, 10.3], standard_error=0.4).sd > 0.4


def test_a_step_of_a_lone_kernel_is_found_in_its_third_night() -> None:
    """Nine values before and three after: no order of twelve values is rarer than one in 220."""
    verdict = nightly_verdict([10.1, 9.9, 10.0, 10.2, 10.0, 9.8, 10.1, 9.9, 10.0, 11.1, 10.9, 11.0])
    assert verdict.found
    assert verdict.adjusted == pytest.approx(MIN_TESTS / 220)


def test_a_night_of_few_series_counts_as_one_of_eight() -> None:
    """Five series with p of 0.008, 0.5, ...: as one of five it would be found; two such series are."""
    p = np.array([0.008, 0.5, 0.6, 0.7, 0.8])
    assert false_discovery(p).found.tolist() == [True, False, False, False, False]
    assert not false_discovery(p, least=MIN_TESTS).found.any()
    assert false_discovery(p, least=MIN_TESTS).adjusted[0] == pytest.approx(8 * 0.008)
    assert false_discovery(np.r_[0.008, p], least=MIN_TESTS).found[:2].all()
    assert false_discovery(np.r_[p, np.full(20, 0.9)], least=MIN_TESTS).adjusted[0] == pytest.approx(25 * 0.008)
