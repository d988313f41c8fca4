"""When the power stepped, closer than from one reading to the next, and how surely that is known."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from profsvc.formulas import _logs
from profsvc.formulas._arrays import Array

GUARD_S = 0.75  # to either side of a step, where an averaging sensor shows neither level
GUARD_READINGS = 1.5
LEVEL = 0.1  # of a step: how much what lies beside it may slope
APART = 4.0  # guards between two steps
MOST = 120
ON_ITS_WAY = (0.1, 0.9)  # of a step


class Steps(NamedTuple):
    """When each step was, by how much, its standard error, and how far around it the readings do not count."""

    time_s: Array
    size_w: Array
    sd_s: Array
    guard_s: float


def steps(power: _logs.Integral, least_w: float) -> Steps:
    """The largest steps from one level to the next, each where both levels, drawn up to it, keep the energy.

    A boxcar spreads a step over its window and leaves this place half a window late, as it does every reading.
    """
    t, poll = power.time, _logs.usual_interval(power.time)
    guard = max(GUARD_S, GUARD_READINGS * poll)
    at = (t[1:] + t[:-1]) / 2
    at = at[(at - 3 * guard > t[0]) & (at + 3 * guard < t[-1])]
    gap = np.flatnonzero(np.diff(t) > _logs.gap_limit(t, None))
    at = at[np.searchsorted(t[gap + 1], at - 3 * guard) == np.searchsorted(t[gap], at + 3 * guard)]
    area = {k: _logs.integral_at(power, at + k * guard)[0] for k in (-3, -2, -1, 1, 2, 3)}

    def mean(begin: int, end: int) -> Array:
        return np.asarray((area[end] - area[begin]) / ((end - begin) * guard))

    before, size = mean(-3, -1), mean(1, 3) - mean(-3, -1)
    sloping = np.maximum(np.abs(mean(2, 3) - mean(1, 2)), np.abs(mean(-2, -1) - mean(-3, -2)))
    sharp = np.flatnonzero((np.abs(size) > least_w) & (sloping < LEVEL * np.abs(size)))
    kept = _apart(at, sharp[np.argsort(-np.abs(size[sharp]), kind="stable")], APART * guard)
    at, before, size = at[kept], before[kept], size[kept]
    place = at + guard - (mean(-1, 1)[kept] - before) * 2 * guard / size
    good = np.abs(place - at) < guard
    place, before, size = place[good], before[good], size[good]
    return Steps(place, size, _unsure(power, place, before, size, guard, poll), guard)


def _apart(at: Array, best_first: NDArray[np.intp], distance: float) -> NDArray[np.intp]:
    """The best of those that lie too near each other, in the order of time."""
    kept: list[int] = []
    for k in best_first.tolist():
        if all(abs(at[k] - at[other]) > distance for other in kept):
            kept.append(k)
        if len(kept) == MOST:
            break
    return np.array(sorted(kept), dtype=np.intp)


def _unsure(power: _logs.Integral, place: Array, before: Array, size: Array, guard: float, poll: float) -> Array:
    """Anywhere between two readings; the more readings show the power on its way, as an average does, the less so."""
    first, last = (np.searchsorted(power.time, place + side * guard) for side in (-1, 1))
    between = np.ones(place.size)
    for n, (a, b) in enumerate(zip(first.tolist(), last.tolist(), strict=True)):
        way = (power.value[a:b] - before[n]) / size[n]
        between[n] = max(((way > ON_ITS_WAY[0]) & (way < ON_ITS_WAY[1])).sum(), 1)
    return np.asarray(poll / np.sqrt(12 * between))
