"""Values of before a series became quieter count as means; what only looks quieter counts as it is."""

import numpy as np
import pytest

from profsvc.formulas.change.night_states import quieter_since
from profsvc.formulas.change.noise.older_values import as_sure_as_newest, equivalent_values
from profsvc.formulas.numerics.series import Series
from tests.inputs.noise import NOISES, UNSEEN

SEED = 20261130


def series_of(x: np.ndarray) -> Series:
    nights = x.shape[1]
    start = np.arange(0, x.size, nights)
    return Series(x.ravel(), np.zeros(x.size), np.arange(x.size), start, start + nights)


@pytest.mark.parametrize("kind", [kind for kind in NOISES | UNSEEN if kind != "missing"])
@pytest.mark.parametrize("nights", [20, 60])
def test_few_series_of_any_noise_look_quieter(kind: str, nights: int) -> None:
    x = (NOISES | UNSEEN)[kind](np.random.default_rng([SEED, nights]), 1000, nights)
    assert (equivalent_values(series_of(x))[0] > 1).mean() <= 0.02


@pytest.mark.parametrize(("ratio", "newest", "share"), [(3.0, 40, 0.8), (5.0, 20, 0.9)])
def test_a_series_alone_says_that_it_is_quieter(ratio: float, newest: int, share: float) -> None:
    x = np.random.default_rng(SEED).standard_normal((400, 40 + newest))
    x[:, 40:] /= ratio
    equivalent, since = equivalent_values(series_of(x))
    assert (equivalent > 1).mean() >= share
    assert (equivalent <= ratio**2).mean() >= 0.9  # the lower end of an interval
    first = since[equivalent > 1] % x.shape[1]
    assert np.median(first) == pytest.approx(40, abs=2)


@pytest.mark.parametrize("newest", [7, 12, 25])
def test_siblings_say_sooner_that_they_are_quieter(newest: int) -> None:
    x = np.random.default_rng([SEED, newest]).standard_normal((40, 40 + newest))
    x[:, 40:] /= 3.0
    quieter = quieter_since(x)
    assert quieter is not None
    assert quieter[0] == pytest.approx(40, abs=1)
    assert 3.0 <= np.median(quieter[1]) <= 9.0


@pytest.mark.parametrize("case", ["as loud", "louder", "nine series", "no noise", "step of all"])
def test_what_is_not_quieter_leaves_every_value(case: str) -> None:
    x = np.random.default_rng(SEED).standard_normal((9 if case == "nine series" else 40, 60))
    if case in ("louder", "nine series"):
        x[:, 30:] *= 3.0 if case == "louder" else 0.3
    if case == "step of all":
        x[:, :3] += 20.0
    assert quieter_since(x * (case != "no noise")) is None


def test_means_keep_the_level_and_the_newest_values() -> None:
    """Three series of 2, 27 and 4 values, of which the second counts in threes: one value is left over."""
    start, stop = np.array([0, 2, 29]), np.array([2, 29, 33])
    x = 1e9 + np.arange(33.0)
    series = Series(x, x * 0, np.arange(33), start, stop)
    y = as_sure_as_newest(series, np.array([1.0, 3.0, 1.0]), np.array([0, 27, 29]))
    means, kept = list(range(5, 27, 3)), [0, 1, *range(27, 33)]
    assert y[means].tolist() == [x[one - 2 : one + 1].mean() for one in means]
    assert np.flatnonzero(np.isfinite(y)).tolist() == sorted([*kept, *means])
    assert (y[kept] == x[kept]).all()


def test_no_values_at_all() -> None:
    none = np.zeros(0)
    empty = Series(none, none, none.astype(int), np.zeros(2, dtype=int), np.zeros(2, dtype=int))
    equivalent, since = equivalent_values(empty)
    assert equivalent.tolist() == [1.0, 1.0]
    assert as_sure_as_newest(empty, equivalent, since).size == 0
