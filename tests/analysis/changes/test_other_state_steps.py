"""Steps that are named while the board is at its power limit, and what is none."""

import numpy as np
import pytest

from tests.benchmarks.detection import Told, walk

KERNELS, NIGHTS, SINCE = 22, 46, 40
CLOCKED = 16  # kernels whose time depends on the clock


def nights(seed: int, deeper: float = 1.0) -> np.ndarray:
    """Return nights with 0.1 % of noise, of which some, and the newest six, are at the power limit."""
    rng = np.random.default_rng([20261207, seed])
    away = np.repeat([0, 1, 0, 1, 0, 1, 0, 1], [9, 4, 6, 5, 7, 3, 6, 6]).astype(bool)
    excess = rng.gamma(3.0, 0.02, NIGHTS) * np.where(np.arange(NIGHTS) >= SINCE, deeper, 1.0)
    share = np.r_[rng.uniform(0.4, 1.2, CLOCKED), np.zeros(KERNELS - CLOCKED)][:, np.newaxis]
    noise = 0.001 * rng.standard_normal((KERNELS, NIGHTS))
    return noise + away * share * (excess + 0.02 * np.abs(rng.standard_normal((KERNELS, NIGHTS))))


def told(x: np.ndarray, steps: dict[int, float]) -> Told:
    """Return what the reports say after each night, where some series change in the first of the newest six."""
    for one, by in steps.items():
        x[one, SINCE:] = (1.0 + by) * (1.0 + x[one, SINCE:]) - 1.0
    return walk((x / 0.02)[:, :, np.newaxis], 30)


@pytest.mark.parametrize("by", [-0.2, 0.25])
def test_a_step_far_beyond_the_noise_is_named_after_five_nights_at_the_limit(by: float) -> None:
    rows = told(nights(1), {3: by}).rows
    assert [row["series"] for row in rows] == ["s000003"]
    assert rows[0]["night"] <= SINCE + 4
    assert rows[0]["run_id"] - 1 == SINCE
    assert rows[0]["after"] / rows[0]["before"] - 1 == pytest.approx(by, abs=0.08)
    assert rows[0]["points_after"] >= 3


@pytest.mark.parametrize("deeper", [1.0, 2.0])
def test_a_board_further_beyond_its_limit_than_ever_changed_no_kernel(deeper: float) -> None:
    assert told(nights(2, deeper), {}).rows == []
