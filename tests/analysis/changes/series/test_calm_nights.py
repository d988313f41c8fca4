"""Nights of a board in another state: they neither hide a change nor make one, and the report says so."""

import numpy as np
import pandas as pd
import pytest

from profsvc.analysis.changes.explanations.families import families
from profsvc.analysis.changes.nightly import find_changes
from profsvc.analysis.changes.series.calm_nights import calm_nights
from tests.benchmarks.detection import points_of, walk

SEED = 20261128
KERNELS, NIGHTS = 20, 40


def throttled(seed: int, nights: int = NIGHTS, share: float = 0.4) -> tuple[np.ndarray, np.ndarray]:
    """Return nights of 20 kernels with 0.1 % of noise, in sd of 2 %, of which some are up to 30 % slower."""
    rng = np.random.default_rng([SEED, seed])
    away = rng.random(nights) < share
    away[:6] = [False, True, False, True, False, False]
    x = 0.05 * rng.standard_normal((KERNELS, nights))
    x[:14] += away * rng.uniform(2.5, 15.0, (14, nights))
    return x[:, :, np.newaxis], away


def test_a_change_of_two_percent_is_found_after_two_calm_nights_and_none_else() -> None:
    x, away = throttled(1)
    away[-4:] = [False, True, False, True]
    x[:14, -4:] = 0.05 * np.random.default_rng(3).standard_normal((14, 4, 1)) + 5 * away[-4:, np.newaxis]
    x[3, -4:] += 1.0
    told = walk(x, NIGHTS - 4)
    assert [(row["subject"], row["night"]) for row in told.rows] == [("s000003", NIGHTS - 2)]
    assert told.rows[0]["after"] / told.rows[0]["before"] - 1 == pytest.approx(0.02, abs=0.002)


def test_two_adjacent_calm_nights_are_too_few() -> None:
    x, away = throttled(1)
    x[:14, -3:] = 0.05 * np.random.default_rng(3).standard_normal((14, 3, 1))
    x[3, -3:] = [[-0.05], [1.0], [1.0]]
    assert walk(x, NIGHTS - 2).rows == []
    assert not away.all()


@pytest.mark.parametrize("seed", range(2))
def test_nights_without_a_change_have_no_finding(seed: int) -> None:
    x, _ = throttled(seed, 60)
    assert walk(x, 20).rows == []


def test_the_verdict_says_what_is_left_out() -> None:
    x, away = throttled(2)
    x[:14, -1] += 10.0
    away[-1] = True
    verdict = find_changes(points_of(x, np.arange(KERNELS)), [])
    assert verdict.left_out == {"nights": int(away.sum()), "series": 14, "tonight": 14, "weekly": 0}


def test_series_of_other_devices_and_kinds_do_not_say_the_state() -> None:
    x, _ = throttled(2)
    points = points_of(x, np.arange(KERNELS))
    points["device"] = np.where(points["group"] % 2, "a", "b")
    points["kind"] = np.where(points["group"] < 10, "duration", "power")
    family = families(points.drop_duplicates("group"))
    assert not calm_nights(points, family).left_out.any()
    assert not calm_nights(pd.DataFrame(points_of(x[:9], np.arange(9))), np.zeros(9, dtype=np.intp)).left_out.any()


@pytest.mark.parametrize("seed", [0, 6])
def test_siblings_that_became_louder_have_no_findings_but_of_their_steps(seed: int) -> None:
    rng = np.random.default_rng([SEED, seed])
    x = rng.standard_normal((60, 60, 1))
    x[:, 30:] *= 2.5
    assert walk(x, 50).rows == []
    x[3, -5:] += 12.0
    assert [row["subject"] for row in walk(x, 55).rows] == ["s000003"]


@pytest.mark.parametrize(("series", "quiet"), [(20, 12), (1, 30)])
def test_small_steps_are_found_once_the_noise_is_quieter(series: int, quiet: int) -> None:
    """Three of its new sd are less than one of before: a fixed clock, or another board."""
    x = np.random.default_rng([SEED, series]).standard_normal((series, 40 + quiet + 5, 1))
    x[:, 40:] /= 5.0
    x[0, -5:] += 0.8
    told = walk(x, 40 + quiet)
    assert {row["subject"] for row in told.rows} == {"s000000"}
    assert told.rows[0]["noise"] < 0.5 * 0.02 * 1e6


def test_a_step_with_which_a_series_became_quieter_is_one_still() -> None:
    x = np.random.default_rng([SEED, 3]).standard_normal((20, 52, 1))
    x[:, 40:] /= 5.0
    x[0, 40:] += 3.0
    assert {row["subject"] for row in walk(x, 42).rows} == {"s000000"}
