"""A change that siblings share is no sign that their values depend on each other."""

import numpy as np
import pytest

from profsvc.formulas.change.steps.newest_step import noise_prior
from profsvc.formulas.change.steps.newest_values import newest_splits
from profsvc.formulas.numerics.series import gather, read_series

NIGHTS = 20


def independent(x: np.ndarray) -> float:
    """Return how probable siblings take values to be that do not depend on each other, or hardly."""
    group, night = np.repeat(np.arange(len(x)), x.shape[1]), np.tile(np.arange(x.shape[1]), len(x))
    prior = noise_prior(x.ravel(), group, np.zeros(len(x), dtype=np.intp), night)
    return float(prior.weight[0, prior.rho < 0.15].sum())


@pytest.mark.parametrize("newest", [2, 3, 4, 5, 7])
@pytest.mark.parametrize("missing", [0.0, 1 / 3])
def test_siblings_that_all_changed_some_nights_ago_are_independent(newest: int, missing: float) -> None:
    rng = np.random.default_rng([newest, 20261129])
    x = rng.standard_normal((100, NIGHTS))
    x[:, NIGHTS - newest :] += 4.0
    x[rng.random(x.shape) < missing] = np.nan
    assert independent(x) > 0.8


def test_siblings_that_depend_on_their_last_night_still_say_so() -> None:
    rng = np.random.default_rng(20261129)
    x = rng.standard_normal((100, NIGHTS))
    for night in range(1, NIGHTS):
        x[:, night] = 0.6 * x[:, night - 1] + 0.8 * x[:, night]
    assert independent(x) < 0.05


def test_without_a_common_change_five_values_may_have_their_own_level_however_many_nights_are_left_out() -> None:
    rng = np.random.default_rng(20261129)
    x = rng.standard_normal((100, NIGHTS))
    x[:, [-2, -4, -5, -6]] = np.nan
    group, night = np.repeat(np.arange(len(x)), NIGHTS), np.tile(np.arange(NIGHTS), len(x))
    value, error, groups = read_series(x.ravel(), group, None)
    series = gather(value, error, groups, ~np.isnan(value))
    split = newest_splits(series, np.zeros(len(x), dtype=np.intp), night[series.place])
    assert (series.stop - split == 5).all()
