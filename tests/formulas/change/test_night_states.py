"""States of a board: told by all kernels together, only where it goes to another one and comes back."""

import numpy as np
import pytest

from profsvc.formulas.change.night_states import night_states, noise_ratios

SEED = 20261128


def board(rng: np.random.Generator, away: np.ndarray, kernels: int = 20, sensitive: int = 14) -> np.ndarray:
    """Return times with 0.1 % of noise, which other nights raise by up to 30 % for some kernels."""
    x = 1.0 + 0.001 * rng.standard_normal((kernels, away.size))
    x[:sensitive] += away * rng.uniform(0.05, 0.3, (sensitive, away.size))
    return 1e5 * x


def random_nights(rng: np.random.Generator, nights: int, share: float = 0.4) -> np.ndarray:
    """Return which nights are not calm; two stretches at least ended."""
    away = rng.random(nights) < share
    away[:6] = [False, True, False, True, False, False]
    return away


@pytest.mark.parametrize("nights", [16, 40, 200, 400])
def test_other_nights_are_told_by_their_kernels(nights: int) -> None:
    rng = np.random.default_rng([SEED, nights])
    away = random_nights(rng, nights)
    states = night_states(board(rng, away))
    assert np.array_equal(states.calm, ~away)
    assert states.affected.tolist() == [True] * 14 + [False] * 6


def test_the_second_time_in_a_short_history_is_known() -> None:
    """One night at the power limit, six calm ones, and three at the limit again."""
    away = np.array([False, True, False, False, False, False, False, False, True, True, True])
    states = night_states(board(np.random.default_rng(SEED), away))
    assert np.array_equal(states.calm, ~away)


def test_a_state_of_few_nights_is_known_once_the_board_has_left_it() -> None:
    """One night of 44 at the power limit, and three more: too few for the noise of all nights to tell."""
    rng, away = np.random.default_rng([SEED, 1]), np.zeros(48)
    away[[3, 43, 44, 45]] = 1.0
    x = board(rng, away * rng.uniform(0.3, 2.0, 48))
    states = night_states(x)
    assert np.array_equal(states.calm, away == 0)
    assert states.affected[:14].all()
    assert night_states(x[:, 4:46]).calm.all(), "where it stays for the first time, it may have changed"


def test_what_siblings_have_in_common_every_night_is_no_state() -> None:
    rng = np.random.default_rng(SEED)
    together = rng.standard_normal(70) + rng.standard_normal((60, 70))
    assert night_states(100.0 + 2.0 * together).calm.all()


def test_a_change_of_one_kernel_or_all_does_not_move_the_states() -> None:
    rng = np.random.default_rng(SEED)
    away = random_nights(rng, 60)
    x = board(rng, away)
    x[3, 30:] *= 1.05
    x[:, 45:] *= 1.02
    states = night_states(x)
    assert np.array_equal(states.calm, ~away)
    assert states.affected[:14].all()


def test_missing_values_say_nothing() -> None:
    rng = np.random.default_rng(SEED)
    away = random_nights(rng, 60)
    x = np.where(rng.random((20, 60)) < 0.2, np.nan, board(rng, away))
    assert np.array_equal(night_states(x).calm, ~away)


@pytest.mark.parametrize("case", ["white", "lasting", "one", "few", "short", "independent", "empty"])
def test_what_is_no_habit_of_the_board_leaves_every_night(case: str) -> None:
    rng = np.random.default_rng([SEED, 1])
    away = np.zeros(60, dtype=bool)
    if case == "lasting":  # a lower power limit from night 40 on
        away[40:] = True
    x = board(rng, away)
    if case == "one":  # a kernel with levels of its own
        x[0] *= 1 + 0.2 * (rng.random(60) < 0.4)
    if case == "few":
        x = board(rng, random_nights(rng, 60), kernels=9, sensitive=9)
    if case == "short":
        x = board(rng, random_nights(rng, 6))
    if case == "independent":
        x = 1e5 * (1 + 0.1 * (rng.random((20, 60)) < 0.4) + 0.001 * rng.standard_normal((20, 60)))
    if case == "empty":
        x = np.full((20, 60), np.nan)
    states = night_states(x)
    assert states.calm.all()
    assert not states.affected.any()


def test_a_board_that_stays_away_longer_than_ever_is_compared_again() -> None:
    rng = np.random.default_rng(SEED)
    away = random_nights(rng, 60, 0.2)
    away[-14:] = True
    away[-15] = False
    assert not night_states(board(rng, away[:-6])).calm.all()
    assert night_states(board(rng, away)).calm.all()


def test_the_first_nights_of_another_state_are_other_nights_too() -> None:
    """Else each kernel that they slow down would be a finding of its own."""
    rng = np.random.default_rng(SEED)
    away = np.arange(16) >= 12
    assert np.array_equal(night_states(board(rng, away)).calm, ~away)


def test_a_clean_step_of_all_kernels_is_no_other_state() -> None:
    rng = np.random.default_rng(SEED)
    x = board(rng, np.zeros(20, dtype=bool))
    x[:, 12:] *= 1.06
    assert night_states(x).calm.all()


def test_a_series_that_goes_to_another_quiet_level_is_compared_in_calm_nights() -> None:
    rng = np.random.default_rng(SEED)
    away = random_nights(rng, 60)
    x = board(rng, away)
    x[16] *= 1 + 0.03 * away
    states = night_states(x)
    assert states.affected[16]
    assert not states.affected[17:].any()


@pytest.mark.parametrize("newest", [7, 10, 25])
def test_siblings_say_since_when_they_are_louder(newest: int) -> None:
    x = np.random.default_rng([SEED, newest]).standard_normal((60, 50))
    x[:, -newest:] *= 2.0
    ratios = noise_ratios(x)
    assert (ratios[:, 49 - newest] == ratios[:, 0]).all()
    assert np.median(ratios[:, 0]) == pytest.approx(2.0, rel=0.15)
    assert (ratios[:, -newest + 1 :] == 1.0).all()


def test_series_that_are_as_loud_as_before_have_a_smaller_ratio() -> None:
    x = np.random.default_rng(SEED).standard_normal((60, 60))
    x[:40, 30:] *= 3.0
    ratios = noise_ratios(x)[:, 0]
    assert np.median(ratios[:40]) == pytest.approx(3.0, rel=0.2)
    assert np.median(ratios[40:]) < 1.5


@pytest.mark.parametrize("case", ["as loud", "quieter", "step of all", "nine series", "no noise"])
def test_what_is_not_louder_leaves_every_night(case: str) -> None:
    x = np.random.default_rng(SEED).standard_normal((9 if case == "nine series" else 60, 50))
    if case == "step of all":
        x[:, -3:] += 20.0
    if case in ("quieter", "nine series"):
        x[:, 25:] *= 0.4 if case == "quieter" else 2.5
    assert (noise_ratios(x * (case != "no noise")) == 1.0).all()


def test_a_step_of_all_between_missing_nights_is_no_noise() -> None:
    rng = np.random.default_rng(SEED)
    x = rng.standard_normal((200, 55))
    x[:, -5:] += 3.0
    x[rng.random(x.shape) < 1 / 3] = np.nan
    assert (noise_ratios(x) == 1.0).all()
