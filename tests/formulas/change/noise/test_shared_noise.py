"""Noise of a night that siblings share, and noise that only looks like it."""

import numpy as np
import pytest

from profsvc.formulas.change.noise.shared_noise import shared_noise
from tests.inputs.noise import NOISES


@pytest.mark.parametrize("kind", ["white", "t3", "lognormal", "two states", "three states", "quantised"])
def test_series_of_which_each_has_its_own_noise_share_none(kind: str) -> None:
    """By the usual difference alone, a third of such families of lognormal noise and of levels seemed to share it."""
    shared = 0
    for seed in range(20):
        x = NOISES[kind](np.random.default_rng(seed), 200, 35)
        x[:, -5:] += 2.0
        shared += shared_noise(x, -5) is not None
    assert shared <= 1


@pytest.mark.parametrize("kind", ["white", "lognormal"])
def test_a_part_that_all_series_have_is_seen(kind: str) -> None:
    for seed in range(10):
        rng = np.random.default_rng(seed)
        x = NOISES[kind](rng, 40, 40) + rng.standard_normal(40)
        assert shared_noise(x) is not None
