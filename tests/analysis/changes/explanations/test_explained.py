"""Steps that are no change: drift, levels that a series or its siblings visit, values that depend on each other."""

from collections import Counter

import numpy as np
import pytest

from profsvc.analysis.changes.nightly import NightlyFindings, find_changes
from profsvc.formulas.change.levels.level_habits import BEGINS, ENDS, excursion_probability, habit_shares, habit_weights
from profsvc.formulas.numerics.series import Series
from tests.benchmarks.detection import points_of, walk
from tests.inputs.noise import (
    autoregressive,
    bursts,
    drifting,
    lognormal,
    slow_wave,
    three_states,
    two_states,
    weekly,
    white,
)


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(20261124)


def of(x: np.ndarray) -> Series:
    start = np.arange(len(x)) * x.shape[1]
    return Series(x.ravel(), x.ravel() * 0, np.arange(x.size), start, start + x.shape[1])


def look(x: np.ndarray) -> NightlyFindings:
    return find_changes(points_of(x[:, :, np.newaxis], np.arange(len(x))), [])


def shapes(verdict: NightlyFindings) -> Counter:
    return Counter(row["shape"] for row in verdict.told)


def names(verdict: NightlyFindings) -> set[str]:
    return {row["series"] for row in verdict.found}


def test_a_drift_is_told_as_one_with_its_size(rng):
    verdict = look(drifting(rng, 40, 100))
    assert len(verdict.found) <= 1
    assert shapes(verdict)["drift"] >= 35
    row = next(row for row in verdict.told if row["shape"] == "drift")
    assert row["after"] / row["before"] - 1 == pytest.approx(0.1, abs=0.03)  # 5 sd of 2 %
    assert row["runs"] == 100


def test_a_step_on_a_drift_is_found(rng):
    x = drifting(rng, 20, 100)
    x[:, -5:] += 8.0
    verdict = look(x)
    assert len(verdict.found) >= 18
    sizes = [row["after"] - row["before"] for row in verdict.found]
    assert np.median(sizes) == pytest.approx(8 * 0.02 * 1e6, rel=0.4)


def test_a_step_long_after_a_drift_is_found(rng):
    """The drift of six sd ended 50 nights before a step of five sd, either way."""
    x = white(rng, 20, 100) + np.minimum(np.arange(100), 45) * 6 / 45
    quiet = look(x)
    assert len(quiet.found) <= 1
    assert shapes(quiet)["drift"] <= 3
    x[:, -5:] += np.where(np.arange(20) % 2, 5.0, -5.0)[:, np.newaxis]
    verdict = look(x)
    assert len(verdict.found) >= 15
    assert np.median([abs(row["after"] - row["before"]) for row in verdict.found]) == pytest.approx(1e5, rel=0.2)


def test_a_step_in_steady_siblings_is_found_and_nothing_else_is_told(rng):
    x = white(rng, 100, 60)
    x[:5, -4:] += 8.0
    verdict = look(x)
    assert names(verdict) == {f"s{number:06}" for number in range(5)}
    assert verdict.told == []


def test_the_first_excursion_of_a_series_is_judged_by_those_of_its_siblings(rng):
    quiet = look(two_states(rng, 60, 20, 0.1, 0.1))
    assert len(quiet.found) <= 2  # 20 without siblings
    assert shapes(quiet)["levels"] >= 3
    burst = bursts(rng, 60, 60)
    burst[:, -13:] = white(rng, 60, 13)
    burst[0] = white(rng, 1, 60)
    burst[0, -3:] += 8.0
    assert names(look(burst)) == set()  # as long as their bursts
    burst[0, -13:] = 8.0 + white(rng, 1, 13)
    assert names(look(burst)) == {"s000000"}  # four times as long


def test_excursions_upwards_of_four_siblings_hide_no_step_down(rng):
    x = white(rng, 20, 60)
    x[1, 20:24] += 8.0
    x[2, 40:48] += 8.0
    x[3, 30:35] += 8.0
    x[4, 12:15] += 8.0
    down, up = x.copy(), x.copy()
    down[0, -3:] -= 8.0
    up[0, -3:] += 8.0
    assert names(look(down)) == {"s000000"}
    assert names(look(up)) == set()
    assert shapes(look(up)) == {"levels": 1}


def test_one_event_of_all_series_is_no_habit_of_each(rng):
    x = white(rng, 60, 60)
    x[:, 20:25] += 8.0
    x[3, -3:] += 8.0
    assert names(look(np.delete(x, 3, axis=0))) == set()
    x[3, 20:25] -= 8.0
    assert "s000003" in names(look(x))


def test_a_level_that_a_fixed_finding_visited_is_no_finding_again(rng):
    x = white(rng, 1, 80)
    x[:, 30:40] += 6.0
    x[:, 50:58] += 6.0
    x[:, 66:74] += 6.0
    told = walk(x[:, :, np.newaxis], 25)
    assert told.found == 1
    assert [one["state"] for one in told.rows] == ["fixed"]


def test_only_a_far_step_is_one_where_values_depend_on_each_other():
    rng = np.random.default_rng(2)
    x = np.cumsum(0.4 * white(rng, 300, 60), axis=1)
    verdict = look(x)
    assert len(verdict.found) <= 3
    assert set(shapes(verdict)) <= {"drift", "too dependent", "levels"}


def chance(x: np.ndarray, one: int, nights: int) -> float:
    """Return the probability of an excursion as long as the newest nights of a series."""
    asked, split = np.array([one]), np.array([(one + 1) * x.shape[1] - nights])
    night = np.tile(np.arange(x.shape[1]), len(x))
    return float(excursion_probability(of(x), asked, split, night=night)[0])


def test_an_excursion_of_a_series_is_as_likely_as_those_it_had(rng):
    """Fifteen of 60 nights of each of ten series, three in a row, of 100 series; the others never left their level."""
    x = white(rng, 100, 63)
    for one in range(10):
        for night in range(6 + one // 2, 54, 10):
            x[one, night : night + 3] += 9.0
    x[[0, 99], -3:] += 9.0
    own, other = chance(x, 0, 3), chance(x, 99, 3)
    assert 0.02 < own < 0.2
    assert other < own / 30


def test_a_short_history_has_the_habits_of_its_siblings(rng):
    """Bursts are usual in half of the siblings: 160 nights without one say that a series is of the others."""
    x = bursts(rng, 100, 163)
    x[:50] = white(rng, 50, 163)
    x[0, -3:] += 8.0
    long = chance(x, 0, 3)
    x[0, :-11] = np.nan
    short = x.ravel()[~np.isnan(x.ravel())]
    stop = np.cumsum((~np.isnan(x)).sum(axis=1))
    series = Series(short, short * 0, np.arange(short.size), stop - (~np.isnan(x)).sum(axis=1), stop)
    known = excursion_probability(series, np.array([0]), np.array([8]))[0]
    assert 5 * long < known < 0.02


def test_longer_excursions_are_less_likely_and_far_ones_of_which_there_were_none(rng):
    x = bursts(rng, 100, 80)
    x[0] = white(rng, 1, 80)
    of_nights = []
    for nights in (3, 5, 8, 13):
        y = x.copy()
        y[0, -nights:] += 8.0
        of_nights.append(chance(y, 0, nights))
        y[0, -nights:] += 40.0
        assert chance(y, 0, nights) < 1e-3 * of_nights[-1] + 1e-6
    assert of_nights == sorted(of_nights, reverse=True)
    assert of_nights[0] > 20 * of_nights[-1]


@pytest.mark.parametrize("kernels", [20, 300, 2000])
def test_a_first_look_finds_the_only_step_of_many_series(rng, kernels):
    """No sibling was ever away: a step of four nights is no excursion, however many series and nights one look has."""
    found = 0
    for _ in range(3):
        x = white(rng, kernels, 14)
        x[7, 10:] += 26.0
        points = points_of(x[:, :, np.newaxis], np.arange(kernels))
        said = names(find_changes(points, [], points["run_id"].unique().tolist()))
        assert said <= {"s000007"}
        found += len(said)
    assert found >= 2


def test_steps_of_many_siblings_at_different_times_are_a_habit_and_of_few_they_are_none(rng):
    for stepping, low, high in ((16, 0.002, 0.05), (6, 0.0, 5e-4)):
        x = white(rng, 80, 30)
        for one in range(1, 1 + stepping):
            x[one, 6 + one :] += 10.0
        x[0, -4:] += 10.0
        assert low <= chance(x, 0, 4) < high
    x[1:40, 12:] += 10.0
    assert chance(x, 0, 4) < 5e-4  # one event of them all


def test_most_of_the_newest_values_may_be_away(rng):
    """Each night the other level comes with a probability of 0.3: five of six are more likely than six."""
    x = 100.0 + two_states(rng, 100, 26, 0.3, 0.7, 12.0)
    x[0, :20] = 100.0 + white(rng, 1, 20)
    x[0, 20:] = 112.0, 112.2, 111.9, 100.0, 112.1, 112.0
    some = chance(x, 0, 6)
    x[0, 23] = 112.0
    assert chance(x, 0, 6) < some < 0.03


def test_habits_of_series_are_told_apart():
    """Of 50 series 40 stay, five go away for two nights and five for ten."""
    moves = np.array([[100, 0, 0, 0]] * 40 + [[80, 10, 10, 10]] * 5 + [[40, 6, 6, 54]] * 5)
    shares = habit_shares(habit_weights(moves), moves[[0, 40, 45]])
    assert shares.sum(axis=1) == pytest.approx(1.0)
    assert shares @ BEGINS == pytest.approx([0.0, 0.11, 0.13], abs=0.03)
    assert shares[1:] @ ENDS == pytest.approx([0.5, 0.1], abs=0.12)


def test_an_unrelated_crowd_silences_no_steady_series(rng):
    """Half of 200 siblings switch between three levels; two of the steady ones changed five nights ago."""
    found = Counter()
    for _ in range(4):
        x = np.concatenate((white(rng, 100, 60), three_states(rng, 100, 60)))
        x[:2, -5:] += 8.0
        for name in names(look(x)):
            found["changed" if int(name[1:]) < 2 else "others"] += 1
    assert found["changed"] >= 6
    assert found["others"] <= 2


def test_many_changes_of_a_night_let_no_older_excursions_through(rng):
    """Forty of 400 steady series change; 100 others stay on one of two levels for ten nights, at the first look."""
    x = np.concatenate((white(rng, 300, 60), two_states(rng, 100, 60, 0.1, 0.1)))
    x[:40, -5:] += 8.0
    found = names(look(x))
    changed = {f"s{number:06}" for number in range(40)}
    assert len(found & changed) >= 30
    assert len(found - changed) <= 3


@pytest.mark.parametrize("height", [2.0, 3.0])
def test_a_step_in_heavy_tails_is_no_excursion(rng, height):
    """Values far from the level come one by one here: in a random order as many follow each other."""
    x = lognormal(rng, 60, 55)
    x[:, -5:] += height
    verdict = look(x)
    assert len(verdict.found) >= 42
    assert shapes(verdict)["levels"] <= 6


def test_of_a_step_in_coarse_values_far_is_what_lies_beyond_half_of_it(rng):
    """Values rounded to two sd are often two sd away, and never near a step of eight."""
    x = np.round(white(rng, 60, 55) / 2) * 2
    x[:3] = white(rng, 3, 55)
    x[:3, -5:] += 8.0
    assert names(look(x)) == {"s000000", "s000001", "s000002"}


def test_a_slow_wave_of_all_series_is_no_step(rng):
    x = slow_wave(rng, 200, 17)
    x[:4] = white(rng, 4, 17)
    x[:4, -5:] += 8.0
    found = names(look(x))
    assert {"s000000", "s000001", "s000002", "s000003"} <= found
    assert len(found) <= 5


def test_a_first_look_at_a_backlog_finds_a_step_of_weeks_ago(rng):
    """14 nights before the step, 12 since, and no report in between, of a lone kernel and of one beside nine others."""
    found = Counter()
    for _ in range(8):
        for kernels in (1, 10):
            x = white(rng, kernels, 26)
            x[0, 14:] += 5.0
            points = points_of(x[:, :, np.newaxis], np.arange(kernels))
            for when, tonight in (("first", points["run_id"].unique().tolist()), ("nightly", [26])):
                said = names(find_changes(points, [], tonight))
                found[when, kernels] += "s000000" in said
                found["false"] += len(said - {"s000000"})
        quiet = points_of(white(rng, 10, 26)[:, :, np.newaxis], np.arange(10))
        found["false"] += len(find_changes(quiet, [], quiet["run_id"].unique().tolist()).found)
    assert found["first", 1] >= 6
    assert found["first", 10] >= 6
    assert found["nightly", 1] + found["nightly", 10] <= 6
    assert found["false"] <= 1


@pytest.mark.parametrize(("seed", "series"), [(0, "s000053"), (2, "s000032"), (12, "s000192")])
def test_series_on_three_levels_have_no_finding(seed, series):
    """A level left for the first time in 50 nights, alone or on stairs, and means of several levels are no steps."""
    verdict = look(three_states(np.random.default_rng(seed), 200, 55))
    assert not verdict.found
    assert {row["shape"] for row in verdict.told if row["series"] == series} == {"levels"}


def test_a_step_of_two_sd_is_found_beside_weekends_of_three(rng):
    x = weekly(rng, 40, 50)
    assert not look(x).found
    assert look(x).left_out["weekly"] == 40
    x[:, -5:] += 2.0
    assert len(names(look(x))) >= 30


@pytest.mark.parametrize(("nights", "first"), [(9, False), (14, True), (25, True)])
def test_levels_that_are_kept_for_nights_are_no_changes_of_a_short_history(rng, nights, first):
    """What lasts is a habit as well: siblings say so by the nights that they have in common."""
    found = 0
    for _ in range(3):
        points = points_of(three_states(rng, 300, nights)[:, :, np.newaxis], np.arange(300))
        found += len(find_changes(points, [], points["run_id"].unique().tolist() if first else None).found)
    assert found == 0


def test_a_look_at_many_nights_sees_the_longer_excursions_too(rng):
    x = bursts(rng, 100, 80, long=4)
    asked, split = np.array([0]), np.array([76])
    one, *more = (float(excursion_probability(of(x), asked, split, fresh=fresh)[0]) for fresh in (1, 2, 80))
    assert one < more[0] < 2 * one
    assert more[0] < more[1] < 1


def sharing(rng: np.random.Generator, series: int, nights: int, rho: float = 0.6) -> np.ndarray:
    """Noise of sd 1, of which each series shares another part with its siblings."""
    share = rng.uniform(0.5, 0.95, (series, 1))
    return share * autoregressive(rng, 1, nights, rho) + np.sqrt(1 - share**2) * white(rng, series, nights)


def test_noise_that_siblings_share_is_no_change_of_each(rng):
    """Without it, three of these nights have 44 findings."""
    told = [look(sharing(rng, 60, 25)) for _ in range(24)]
    assert sum(len(verdict.found) for verdict in told) <= 1
    assert sum(shapes(verdict)["shared"] for verdict in told) >= 20


def test_steps_in_shared_noise_are_found_of_one_series_and_of_all(rng):
    x = sharing(rng, 60, 35)
    x[:6, -5:] += 6.0
    assert names(look(x)) == {f"s{number:06}" for number in range(6)}
    x[:, -5:] += 6.0
    assert len(look(x).found) >= 57


@pytest.mark.parametrize("height", [5.5, 9.0])
def test_a_level_that_siblings_go_to_and_leave_is_none_for_being_there_more_often(rng, height):
    """Each level is left once in ten nights: 85 % of 150 nights after 30 % of 250 come by chance."""
    x = two_states(rng, 40, 400, 0.1, 0.1, height=height)
    away = np.r_[np.arange(250) % 20 >= 14, np.arange(150) % 20 >= 3]
    x[0] = height * away + white(rng, 1, 400)
    asked, split = np.array([0]), np.array([250])
    assert excursion_probability(of(x), asked, split)[0] > 5e-4
    x[0, :250] = white(rng, 1, 250)
    x[0, 250:] = height + white(rng, 1, 150)
    assert excursion_probability(of(x), asked, split)[0] < 1e-5


@pytest.mark.parametrize("excursions", [20, 0])
def test_a_record_that_begins_in_an_excursion_has_no_step_where_siblings_make_such(excursions: int) -> None:
    x = np.random.default_rng(3).standard_normal((40, 60))
    x[0, :6] += 7.0
    for one in range(1, 1 + excursions):
        x[one, 2 * one : 2 * one + 5] += 7.0
    points = points_of(x[:, :, np.newaxis], np.arange(40))
    verdict = find_changes(points, [], points["run_id"].unique().tolist())
    assert [row["series"] for row in verdict.found] == ["s000000"] * (not excursions)
    assert [(row["series"], row["shape"]) for row in verdict.told] == [("s000000", "levels")] * bool(excursions)
