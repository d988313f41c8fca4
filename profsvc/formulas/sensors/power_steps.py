"""Times of power steps, finer than the interval of the readings, with their standard errors."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from profsvc.formulas.numerics.arrays import Array
from profsvc.formulas.sensors import logs

GUARD_S = 0.75  # to either side of a step, where an averaging sensor shows neither level
GUARD_READINGS = 1.5
MAX_SLOPE_SHARE = 0.1  # of a step: how much what lies beside it may slope
MIN_STEP_GUARDS = 4.0  # guards between two steps
MAX_STEPS = 120
TRANSITION_RANGE = (0.1, 0.9)  # of a step


class PowerSteps(NamedTuple):
    """Time and size of each step, its standard error, and the range around it whose readings do not count."""

    time_s: Array
    size_w: Array
    sd_s: Array
    guard_s: float


def power_steps(power: logs.Integral, least_w: float) -> PowerSteps:
    """Return the largest steps between two levels, timed so that the step has the energy of the log.

    A boxcar spreads a step over its window and leaves this place half a window late, as it does every reading.
    """
    t, poll = power.time, logs.median_interval(power.time)
    guard = max(GUARD_S, GUARD_READINGS * poll)
    at = (t[1:] + t[:-1]) / 2
    at = at[(at - 3 * guard > t[0]) & (at + 3 * guard < t[-1])]
    gap = np.flatnonzero(np.diff(t) > logs.gap_limit(t, None))
    at = at[np.searchsorted(t[gap + 1], at - 3 * guard) == np.searchsorted(t[gap], at + 3 * guard)]
    area = {k: logs.integral_at(power, at + k * guard)[0] for k in (-3, -2, -1, 1, 2, 3)}

    def mean(begin: int, end: int) -> Array:
        return np.asarray((area[end] - area[begin]) / ((end - begin) * guard))

    before, size = mean(-3, -1), mean(1, 3) - mean(-3, -1)
    sloping = np.maximum(np.abs(mean(2, 3) - mean(1, 2)), np.abs(mean(-2, -1) - mean(-3, -2)))
    sharp = np.flatnonzero((np.abs(size) > least_w) & (sloping < MAX_SLOPE_SHARE * np.abs(size)))
    kept = _spaced_best(at, sharp[np.argsort(-np.abs(size[sharp]), kind="stable")], MIN_STEP_GUARDS * guard)
    at, before, size = at[kept], before[kept], size[kept]
    place = at + guard - (mean(-1, 1)[kept] - before) * 2 * guard / size
    good = np.abs(place - at) < guard
    place, before, size = place[good], before[good], size[good]
    return PowerSteps(place, size, _time_error(power, place, before, size, guard, poll), guard)


def _spaced_best(at: Array, best_first: NDArray[np.intp], distance: float) -> NDArray[np.intp]:
    """The best of those that lie too near each other, in the order of time."""
    kept: list[int] = []
    for k in best_first.tolist():
        if all(abs(at[k] - at[other]) > distance for other in kept):
            kept.append(k)
        if len(kept) == MAX_STEPS:
            break
    return np.array(sorted(kept), dtype=np.intp)


def _time_error(power: logs.Integral, place: Array, before: Array, size: Array, guard: float, poll: float) -> Array:
    """Return the standard error of each step: between two readings, less where readings show the transition."""
    first, last = (np.searchsorted(power.time, place + side * guard) for side in (-1, 1))
    between = np.ones(place.size)
    for n, (a, b) in enumerate(zip(first.tolist(), last.tolist(), strict=True)):
        way = (power.value[a:b] - before[n]) / size[n]
        between[n] = max(((way > TRANSITION_RANGE[0]) & (way < TRANSITION_RANGE[1])).sum(), 1)
    return np.asarray(poll / np.sqrt(12 * between))
