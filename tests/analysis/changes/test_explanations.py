"""Steps that are no change: drift, levels that a series or its siblings visit, values that depend on each other."""

from collections import Counter

import numpy as np
import pytest

from profsvc.analysis.changes.nightly import NightlyFindings, find_changes
from profsvc.formulas.change.level_habits import (
    Excursions,
    all_step,
    chance_share,
    excursion_rates,
    excursions,
    lasting_share,
    stay_probability,
    values_away,
)
from profsvc.formulas.numerics.series import Series, gather, lengths, read_series
from tests.benchmarks.change import two_states, white
from tests.benchmarks.detection import bursts, drifting, lognormal, points_of, slow_wave, three_states, walk


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


def test_excursions_upwards_of_two_siblings_hide_no_step_down(rng):
    x = white(rng, 20, 60)
    x[1, 20:24] += 8.0
    x[2, 40:48] += 8.0
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


def test_excursions_are_counted_with_their_lengths():
    x = np.tile([0.0, 0.1, -0.1, 0.05, -0.05], 6)
    other = x.copy()
    other[10:14] += 5.0
    value, error, groups = read_series(np.r_[x, other], np.repeat([0, 1], 30), None)
    seen = excursions(gather(value, error, groups, ~np.isnan(value)))
    assert (seen.begun.tolist(), seen.nights.tolist(), seen.length.tolist()) == ([0, 1], [30, 30], [4])
    assert (seen.rising, excursions(gather(-value, error, groups, ~np.isnan(value))).rising) == (1, 0)
    none = excursions(gather(value, error, groups, np.zeros(60, dtype=bool)))
    assert none.length.size == 0
    assert excursion_rates(none).tolist() == [0.0, 0.0]
    low, high = excursion_rates(seen)
    assert 0 < low < high < 0.2
    shares = lasting_share(seen, np.array([3, 4, 5, 8, 40]))
    assert shares.tolist() == sorted(shares, reverse=True)
    assert shares[1] > shares[2] > shares[4]
    assert shares[4] < 0.1


def test_steps_of_rounded_values_are_no_excursions():
    """Most adjacent values are equal, and a value that is rounded the other way is a whole step away."""
    x = np.zeros(40)
    x[[10, 11, 20, 21, 30, 31]] = 1.0
    value, error, groups = read_series(x, np.zeros(40, dtype=int), None)
    seen = excursions(gather(value, error, groups, ~np.isnan(value)), smallest=0.5)
    assert (seen.begun.tolist(), seen.steps.tolist()) == ([0], [0])


def test_long_excursions_count_for_those_that_had_no_room():
    """Hundred excursions each of 2 and of 8 nights, but one in four of the long ones began too late to be seen."""
    length, room = np.repeat([2, 8], [100, 75]), np.repeat([9, 5, 9], [75, 25, 75])
    seen = Excursions(np.array([175]), np.array([1000]), length, room, np.array([0]), 0, 0)
    plain = 75 / 175
    (share,) = lasting_share(seen, np.array([3]))
    assert plain + 0.03 < share < 0.52


def test_few_excursions_do_not_say_that_none_lasts_longer():
    few = Excursions(np.array([3]), np.array([60]), np.array([3, 3, 3]), np.array([20, 20, 20]), np.array([0]), 0, 0)
    many = Excursions(np.array([300]), np.array([6000]), np.full(300, 3), np.full(300, 20), np.array([0]), 0, 0)
    assert lasting_share(few, np.array([5]))[0] > 10 * lasting_share(many, np.array([5]))[0]


def stepping(rng: np.random.Generator, series: int, stepped: int, nights: int = 20) -> Excursions:
    """Return what is seen of series of which some step for good, each in a night of its own."""
    x = white(rng, series, nights)
    for one in range(stepped):
        x[one, 5 + one % 10 :] += 10.0
    value, error, groups = read_series(x.ravel(), np.repeat(np.arange(series), nights), None)
    return excursions(gather(value, error, groups, np.ones(value.size, dtype=bool)))


def test_steps_of_many_siblings_at_different_times_are_a_habit(rng):
    seen = stepping(rng, 40, 12)
    assert (int(seen.steps.sum()), seen.apart, all_step(seen)) == (12, 12, True)
    rate = 12 / (40 * 20)
    assert stay_probability(seen, np.array([3, 8])).tolist() == pytest.approx(
        [rate * (1 - rate) ** 2, rate * (1 - rate) ** 7]
    )
    assert excursion_rates(seen).max() == 0.0  # no stretch with a return


def test_steps_of_few_siblings_or_in_one_night_are_no_habit(rng):
    assert not all_step(stepping(rng, 60, 4))
    x = white(rng, 40, 20)
    x[:20, 12:] += 10.0
    value, error, groups = read_series(x.ravel(), np.repeat(np.arange(40), 20), None)
    seen = excursions(gather(value, error, groups, np.ones(value.size, dtype=bool)))
    assert (int(seen.steps.sum()), seen.apart, all_step(seen)) == (20, 3, False)


@pytest.mark.parametrize("height", [2.0, 3.0])
def test_a_step_in_heavy_tails_is_no_excursion(rng, height):
    """Values far from the level come one by one here: in a random order as many follow each other."""
    x = lognormal(rng, 60, 55)
    x[:, -5:] += height
    verdict = look(x)
    assert len(verdict.found) >= 42
    assert shapes(verdict)["levels"] <= 6


def test_what_visits_a_level_by_chance_is_still_told_as_levels(rng):
    """Each night the other level comes with a probability of 0.3, so that three nights of it are no change."""
    x = two_states(rng, 100, 20, 0.3, 0.7)
    x[:20, :-3], x[:20, -3:] = white(rng, 20, 17), white(rng, 20, 3) + 6.0
    away = values_away(of(x))
    assert away.habit < 0.5
    assert away.far[:, 20:].sum() / lengths(away.older)[20:].sum() == pytest.approx(0.3, abs=0.1)
    nights = np.array([3, 5, 9])
    chance = chance_share(away, np.ones(3, dtype=bool), np.full(3, 50), nights)
    assert (np.diff(chance) < 0).all()
    assert chance[1] > 0.001 > chance[2]


def test_of_a_step_in_coarse_values_far_is_what_lies_beyond_half_of_it(rng):
    """Values rounded to two sd are often two sd away, and never near a step of eight."""
    x = np.round(white(rng, 60, 55) / 2) * 2
    x[:3] = white(rng, 3, 55)
    x[:3, -5:] += 8.0
    assert names(look(x)) == {"s000000", "s000001", "s000002"}


def test_most_of_the_newest_values_may_be_far_by_chance(rng):
    """Five of six nights at a level that each night has with a probability of 0.3 happen in one of a hundred."""
    x = 100.0 + two_states(rng, 100, 25, 0.3, 0.7)
    x[0, 19:] = 106.0, 106.0, 106.0, 100.0, 106.0, 106.0
    chance = chance_share(values_away(of(x)), np.array([True, True]), np.array([0, 0]), np.array([6, 2]))
    assert 0.001 < chance[0] < 0.03 < chance[1]


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
