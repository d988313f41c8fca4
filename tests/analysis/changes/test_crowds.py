"""Each suite is judged as if it were alone, among however many series of others."""

from typing import Any

import numpy as np
import pandas as pd
import pytest

from profsvc.analysis.changes.nightly import _judged, find_changes
from profsvc.analysis.changes.series.night_series import night_series
from tests.analysis.changes.test_other_state_steps import nights
from tests.benchmarks.detection import points_of, walk

NIGHTS, STEP = 46, 30


def limited(seed: int, steps: dict[int, float]) -> np.ndarray:
    """Return a suite on a board at its power limit, of which some kernels step while it is."""
    x = nights(seed)
    for one, by in steps.items():
        x[one, 40:] = (1.0 + by) * (1.0 + x[one, 40:]) - 1.0
    return x / 0.02


def visiting() -> np.ndarray:
    """Return 24 series: six visit a second level before a step of theirs and since, two others step at the end."""
    x = 0.1 * np.random.default_rng(20261205).standard_normal((24, NIGHTS))
    for one in range(6):
        visits = (np.arange(NIGHTS) - one - 3) % 9 < 4
        x[one] += 0.9 * np.where(np.arange(NIGHTS) < STEP, visits, np.arange(NIGHTS) >= NIGHTS - 4)
    x[:8, STEP:] += 2.5
    x[12:14, -5:] += 2.0
    return x


def single(seed: int) -> np.ndarray:
    """Return a series with a step."""
    x = np.random.default_rng([20261206, seed]).standard_normal((1, NIGHTS))
    x[0, -5:] += 6.0
    return x


def part(project: str, x: np.ndarray) -> pd.DataFrame:
    """Return the points of a suite."""
    points = points_of(x[:, :, np.newaxis], np.arange(len(x)))
    return points.assign(project=project, series=project + points["series"])


def verdicts(points: pd.DataFrame, known: list[dict[str, Any]]) -> pd.DataFrame:
    """Return the verdict on each series; steps stand at the place among the points of their series."""
    night = night_series(points, known, None, "UTC")
    got = _judged(night, known)
    first = np.searchsorted(night.points["group"], np.arange(len(night.heads)))
    rows = {name: getattr(got.verdict, name) for name in ("p", "before", "after", "points_after", "needed", "newest_p")}
    rows["at"] = np.where(got.verdict.at < 0, -1, got.verdict.at - first)
    rows["told"] = [got.told.get(one, {}).get("shape", "") for one in range(len(first))]
    return pd.DataFrame(rows, index=night.heads["series"])


@pytest.fixture(scope="module")
def suites() -> dict[str, tuple[pd.DataFrame, list[dict[str, Any]]]]:
    """The points of each suite, and the findings so far."""
    made = {"a limit": limited(1, {3: -0.2, 5: 0.25}), "b levels": visiting(), "c one": single(1),
            "d limit": limited(2, {0: 0.3}), "e one": single(2)}  # fmt: skip
    steps = [row | {"series": "b levels" + row["series"], "project": "b levels"}
             for row in walk(made["b levels"][:, :STEP + 6, np.newaxis], STEP + 3).rows]  # fmt: skip
    return {name: (part(name, x), steps if name == "b levels" else []) for name, x in made.items()}


@pytest.mark.parametrize("others", [1, 100, 200, 300, 40_000])
def test_a_suite_is_judged_alike_among_others(suites, others: int) -> None:
    alone = pd.concat([verdicts(*own) for own in suites.values()])
    assert (alone["told"] == "levels").sum() >= 4  # visits that are known since before the step
    assert (alone.loc["a limit" + "s000003", "p"], alone.loc["b levels" + "s000012", "p"]) < (0.01, 0.01)
    x = np.full((others, NIGHTS), np.nan)
    few = 8 if others < 1000 else 3
    x[:, -few:] = np.random.default_rng(others).standard_normal((others, few))
    parts = [points for points, _ in suites.values()]
    crowd = pd.concat([*parts[:3], part("between", x), *parts[3:]], ignore_index=True)
    crowd["group"] = pd.factorize(crowd["series"])[0]
    among = verdicts(crowd, [row for _, known in suites.values() for row in known])
    pd.testing.assert_frame_equal(among.loc[alone.index], alone, rtol=1e-6)


@pytest.mark.parametrize("kernels", [100, 200, 300])
def test_more_siblings_find_the_same_steps(kernels: int) -> None:
    """The newest six nights are at the power limit; one kernel in fifty changes in them, and no other is named."""
    x = np.concatenate([limited(seed, {3: -0.25}) for seed in [7] * (-(-kernels // 22))])[:kernels]
    x += 0.05 * np.random.default_rng(kernels).standard_normal(x.shape)
    found = find_changes(points_of(x[:, :, np.newaxis], np.arange(kernels)), []).found
    assert {row["series"] for row in found} == {f"s{number:06}" for number in range(3, kernels, 22)}
