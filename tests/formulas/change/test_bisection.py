"""Probabilistic bisection: how often it finds the commit, and in how many measurements."""

import numpy as np
import pytest

from profsvc.formulas.change.bisection import bisection

COUNT, GOOD, BAD = 64, 100.0, 103.0


def search(
    rng: np.random.Generator, first: int, most: int, noise: float = 1.0, broken: frozenset[int] = frozenset()
) -> tuple[bool, int, int]:
    """Return whether the commit is found, how many commits were measured, and how many runs that took.

    It counts as found if it and what cannot be distinguished from it, for ``broken`` commits, have 95 % together.
    """
    place: list[int] = []
    value: list[float] = []
    blocked: list[int] = []
    while True:
        state = bisection([1] * COUNT, place, value, GOOD, BAD, noise, blocked)
        if state.measure < 0 or len({*place, state.measure}) > most:
            low = next(one for one in range(first, -1, -1) if one - 1 not in broken)
            high = next(one for one in range(first, COUNT) if one not in broken)
            return bool(state.probability[low : high + 1].sum() >= 0.95), len(set(place)), len(place)
        if state.measure in broken:
            blocked.append(state.measure)
            continue
        place.append(state.measure)
        value.append(rng.normal(BAD if state.measure >= first else GOOD, noise))


def test_the_commit_among_64_is_found_in_7_measured_commits_at_noise_of_1_and_an_effect_of_3_percent():
    rng = np.random.default_rng(7)
    made = [search(rng, int(rng.integers(COUNT)), 7) for _ in range(1000)]
    assert np.mean([found for found, _, _ in made]) >= 0.95
    assert np.mean([runs for _, _, runs in made]) < 10


def test_a_quiet_program_needs_one_run_of_six_commits():
    rng = np.random.default_rng(8)
    made = [search(rng, first, 7, 0.1) for first in range(COUNT)]
    assert {found for found, _, _ in made} == {True}
    assert max(runs for _, _, runs in made) == 6


@pytest.mark.parametrize("first", [0, 1, COUNT - 2, COUNT - 1])
def test_the_first_and_the_last_commit_are_found_as_often(first):
    rng = np.random.default_rng(9)
    assert np.mean([search(rng, first, 7)[0] for _ in range(400)]) >= 0.95


def test_commits_that_do_not_build_end_the_search_as_soon():
    rng = np.random.default_rng(10)
    made = [
        search(rng, int(rng.integers(COUNT)), 7, broken=frozenset(rng.choice(COUNT - 1, 6, replace=False).tolist()))
        for _ in range(1000)
    ]
    assert np.mean([found for found, _, _ in made]) >= 0.95
    assert max(runs for _, _, runs in made) <= 28


def test_an_outlier_does_not_decide():
    state = bisection([1] * COUNT, [31], [1e9], GOOD, BAD, 1.0)
    assert not state.found
    assert state.probability[32:].sum() > 1e-4


def test_a_blocked_commit_is_never_measured():
    state = bisection([1] * 4, [], [], GOOD, BAD, 1.0, blocked=[0, 1, 2])
    assert (state.measure, state.found) == (-1, False)
    assert bisection([1] * 4, [], [], GOOD, BAD, 1.0, blocked=[1]).measure in (0, 2)


@pytest.mark.parametrize(
    "wrong",
    [
        {"candidates": []}, {"candidates": [-1, 2]}, {"candidates": [0, 0]}, {"bad": GOOD}, {"noise": 0.0},
        {"noise": np.nan}, {"place": [2]}, {"place": [-1]}, {"place": [0, 1]},
    ],
)  # fmt: skip
def test_what_makes_no_search_is_refused(wrong):
    asked = {"candidates": [1, 1], "place": [0], "value": [101.0], "good": GOOD, "bad": BAD, "noise": 1.0}
    with pytest.raises(ValueError, match=r"must|need"):
        bisection(**asked | wrong)
