"""Series of other kinds than durations with noise: shares, constants, few digits, gaps, odd numbers and odd times."""

import numpy as np
import pandas as pd
import pytest

from profsvc.analysis.changes.nightly import NightlyFindings, find_changes
from tests.benchmarks.detection import points_of, walk

NIGHTS, LATE = 30, 5


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(33)


def look(x: np.ndarray, kind: str = "duration", at: np.ndarray | None = None) -> NightlyFindings:
    points = points_of(np.zeros((*x.shape, 1)), np.arange(len(x))).assign(value=x.ravel(), kind=kind, quantity=kind)
    return find_changes(points if at is None else points.assign(at=np.tile(at, len(x))), [])


def found(verdict: NightlyFindings) -> list[tuple[int, int, int | None]]:
    """Return series, first night and direction of the findings."""
    return [(int(row["series"][1:]), row["run_id"] - 1, row["worse"]) for row in verdict.found]


@pytest.mark.parametrize(
    ("level", "noise", "step", "worse"),
    [(0.5, 0.01, -0.2, 1), (0.5, 0.01, 0.2, 0), (0.0, 0.002, 0.05, 0), (1.0, -0.002, -0.05, 1), (0.0, 0.0, 0.1, 0),
     (0.1, 0.0, -0.1, 1)],
)  # fmt: skip
def test_a_share_is_better_when_higher_also_at_its_bounds(
    level: float, noise: float, step: float, worse: int, rng: np.random.Generator
) -> None:
    x = np.clip(level + noise * np.abs(rng.standard_normal((20, NIGHTS))), 0.0, 1.0)
    x[0, -LATE:] = np.clip(x[0, -LATE:] + step, 0.0, 1.0)
    assert found(look(x, "criterion")) == [(0, NIGHTS - LATE, worse)]


@pytest.mark.parametrize("series", [1, 20])
@pytest.mark.parametrize("late", [1, 2, 3, 5])
def test_a_constant_series_that_steps_once_needs_three_nights(series: int, late: int) -> None:
    x = np.full((series, NIGHTS), 1e6)
    x[0, -late:] = 1.1e6
    verdict = look(x)
    assert found(verdict) == ([(0, NIGHTS - late, 1)] if late >= 3 else [])
    assert len(verdict.reruns) == (late < 3)


@pytest.mark.parametrize(("scattering", "most"), [(4, 0), (40, 12)])
def test_constant_series_that_begin_to_scatter_do_not_change_each_night(
    scattering: int, most: int, rng: np.random.Generator
) -> None:
    """Held against the constant level, 40 of them have 31 findings in fifteen nights."""
    x = np.zeros((40, 55))
    x[:scattering, 40:] = rng.standard_normal((scattering, 15))
    assert walk(x[:, :, np.newaxis], 40).false <= most
    x[:4, -4:] += 9.0
    if scattering == 4:
        assert found(look(1e6 * (1 + 0.02 * x))) == [(one, 51, 1) for one in range(4)]


@pytest.mark.parametrize(("noise", "digit", "step"), [(0.01, 1e4, 6e4), (0.01, 1e5, 2e5), (0.03, 1e5, 2e5)])
def test_values_of_two_or_three_digits(noise: float, digit: float, step: float, rng: np.random.Generator) -> None:
    x = np.round(1e6 * (1 + noise * rng.standard_normal((20, NIGHTS))) / digit) * digit
    x[0, -LATE:] += step
    assert found(look(x)) == [(0, NIGHTS - LATE, 1)]


def test_a_series_that_vanishes_and_returns(rng: np.random.Generator) -> None:
    """As it was it is no finding; slower it is one; and one that stays away is neither."""
    x = 1e6 * (1 + 0.01 * rng.standard_normal((20, 40)))
    x[1, 15:] *= 1.1
    x[:2, 15:36] = np.nan
    x[2, 10:] = np.nan
    assert found(look(x)) == [(1, 36, 1)]


def test_numbers_that_are_none(rng: np.random.Generator) -> None:
    x = 1e6 * (1 + 0.01 * rng.standard_normal((20, NIGHTS)))
    x[0, -LATE:] *= 1.1
    x[1, 3], x[2, 7], x[3, :], x[4, -1], x[5, -1], x[6, :] = np.inf, -np.inf, np.inf, np.nan, np.inf, 5e-324
    verdict = look(x)
    assert found(verdict) == [(0, NIGHTS - LATE, 1)]
    assert verdict.short == 1


@pytest.mark.parametrize("form", ["%Y-%m-%d", "%Y-%m-%dT%H:%M:%SZ", "%Y-%m-%dT%H:%M:%S.%f000Z"])
def test_times_of_days_and_of_nanoseconds(form: str) -> None:
    x = np.tile([1e6, 1.01e6, 0.99e6], (12, NIGHTS // 3))
    x[0, -LATE:] *= 1.1
    at = np.array([time.strftime(form) for time in pd.date_range("2026-01-01", periods=NIGHTS)], dtype=object)
    assert found(look(x, at=at)) == [(0, NIGHTS - LATE, 1)]


@pytest.mark.parametrize("series", [128, 256])
def test_the_last_of_many_series(series: int, rng: np.random.Generator) -> None:
    x = 1e6 * (1 + 0.01 * rng.standard_normal((series, 20)))
    x[[0, -1], -LATE:] *= 1.15
    assert [one for one, _, _ in found(look(x))] == [0, series - 1]
