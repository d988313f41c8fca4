"""Levels that a series visited before a change of its own, and visits since at the same distance."""

import numpy as np

from profsvc.formulas.change.levels.level_habits import NEAR_SD
from profsvc.formulas.change.levels.level_visits import visit_probability
from profsvc.formulas.change.levels.series_length import MIN_SEGMENT
from profsvc.formulas.change.levels.stretches import JUMP_SD
from profsvc.formulas.change.night_states import MEDIAN_VARIANCE
from profsvc.formulas.numerics.arrays import Array
from profsvc.formulas.numerics.series import Index, Series, difference_sd

APART_SD = 4.5  # medians of two groups as far apart are two levels: those of even values are 3.5 apart


def carried_visit_probability(older: Array, x: Array, split: int, apart: float) -> float:
    r"""Probability that newest values only visit a level that their series visited before its last change too.

    .. math:: P = \max_{(i, j)} P_{visit}\left(\frac{x_b}{y_i}\, y,\ x\right), \qquad
              \left|\frac{x_b}{y_i}\, y_j - x_a\right|
              \le 2 s \sqrt{\frac{\pi}{2} \left(\frac{1}{n_a} + \frac{1}{n_b} + \frac{1}{n_i} + \frac{1}{n_j}\right)}

    A change multiplies all levels of a series alike: a kernel that takes 1 % longer on a cold board does so after its
    work changed as well. So the values before the change count as values of the series once more, as if it had not
    been: with one of their levels, y_i, at the level before the step, x_b, if another one, y_j, is at that after it,
    x_a, but for two standard errors of these medians. A level is that of three values or more between two jumps, for
    noise makes levels of fewer. Which of the two came more often before the change does not matter, nor which came
    last.

    Source: own model; the chain of `visit_probability`.

    Args:
        older: Values y of before the last change, in order, of shape (n,) [any].
        x: Values since, likewise [as the older ones].
        split: Place in ``x`` of the first value after the step.
        apart: Least distance of the levels, in sd of the noise.

    Returns: the probability [1].

    Range: 0 to 1; 0 where the older values were not on two levels as far apart. Where a value is not positive, levels
    are as far apart as before in units of the value, and not of the level.

    Ten nights at 100 and 101 in turns of five, then 5 % more; the first nights 1 % above that are a visit:

    >>> wave = np.tile([0.1, -0.1, 0.0, 0.1, -0.1], 10)
    >>> older = 100.0 + np.repeat([0.0, 1.0], 5)[np.arange(50) % 10] + wave
    >>> x = 105.0 + np.r_[np.zeros(8), np.full(4, 1.05)] + wave[:12]
    >>> round(carried_visit_probability(older, x, 8, 3.0), 2)
    0.22
    >>> carried_visit_probability(older, x + np.where(x > 105.5, 0.6, 0.0), 8, 3.0)
    0.0
    """
    before, after = float(np.median(x[:split])), float(np.median(x[split:]))
    if older.size < 2 * MIN_SEGMENT or before == after:
        return 0.0
    relative = bool(min(older.min(), x.min()) > 0)
    levels, sizes, sd = levels_of(older)
    known = list[Array]()
    noise = list[float]()
    for level, size in zip(levels.tolist(), sizes.tolist(), strict=True):
        factor, shift = (before / level, 0.0) if relative else (1.0, before - level)
        variance = MEDIAN_VARIANCE * (1 / split + 1 / (x.size - split) + 1 / size + 1 / sizes)
        if (np.abs(factor * levels + shift - after) <= NEAR_SD * factor * sd * np.sqrt(variance)).any():
            known.append(factor * older + shift)
            noise.append(factor * sd)
    if not known:
        return 0.0
    whole = np.concatenate([np.concatenate((one, x)) for one in known])
    stop = np.cumsum([older.size + x.size] * len(known), dtype=np.intp)
    start: Index = stop - (older.size + x.size)
    series = Series(whole, np.zeros(whole.size), np.arange(whole.size), start, stop)
    own = np.fmin(difference_sd(series), noise)  # of levels that alternate, adjacent values say nothing of the noise
    levels = np.tile([before, after], (len(known), 1))
    return float(visit_probability(series, start + older.size + split, apart, levels, own).max())


def levels_of(x: Array) -> tuple[Array, Index, float]:
    """Return the levels of a series, how many values each has, and the noise.

    Levels are the medians of the stretches of three values or more between jumps. A series that changes its level every
    second or third night has few such stretches, and most of its adjacent values are a jump apart, so that these say
    nothing of the noise. So its values are also put into the two groups whose sum of squares is the least. Where these
    are far enough apart, a change of the group is a jump, and each group without a stretch of its own is a level too,
    if three values or more are near its median. Where adjacent values hide the jumps, the noise is that within
    the groups.

    Source: own model; the jumps of `stretches_of_siblings`, the groups of [Fisher1958].

    Args:
        x: Values in order, of shape (n,) [any].

    Returns: the levels, of shape (levels,) [as the value]; how many values each has; the sd of the noise [value].

    Range: no level where neither jumps nor groups leave three values together. Of three levels that alternate, two are
    distinguished at most.

    >>> levels_of(np.array([1.0, 1.1, 1.0, 1.1, 1.0, 5.0, 5.1, 1.0, 1.1, 1.0]))[0].tolist()
    [1.0, 1.0]
    >>> levels_of(np.array([1.0, 5.0, 1.1, 5.1, 5.0, 1.0, 5.1, 1.1, 5.0, 1.0]))[0].tolist()
    [1.0, 5.0]
    """
    whole = Series(x, np.zeros(x.size), np.arange(x.size), np.array([0]), np.array([x.size]))
    sd = float(np.nan_to_num(difference_sd(whole))[0])
    groups, within = _two_groups(x)
    if groups and JUMP_SD * sd > np.median(groups[1]) - np.median(groups[0]):
        sd = within
    jumps = np.abs(np.diff(x)) >= max(JUMP_SD * sd, np.finfo(np.float64).tiny)
    if groups:
        jumps |= np.diff(x >= groups[1][0])
    ends = np.flatnonzero(jumps) + 1
    parts = [part for part in np.split(x, ends) if part.size >= MIN_SEGMENT]
    parts += [one for one in groups if not any(one[0] <= np.median(part) <= one[-1] for part in parts)]
    return np.array([np.median(part) for part in parts]), np.array([part.size for part in parts], dtype=np.intp), sd


def _two_groups(x: Array) -> tuple[list[Array], float]:
    """Return the two groups of values, in order of size, with the least squares, and the sd within them.

    There are none where their medians are nearer to each other than `APART_SD`, or fewer than three values near one.
    """
    y, n = np.sort(x), x.size
    if n < 2 * MIN_SEGMENT:
        return [], 0.0
    y = y - y[0]
    total, square = np.cumsum(y), np.cumsum(y * y)
    low = np.arange(MIN_SEGMENT, n - MIN_SEGMENT + 1)
    before = square[low - 1] - total[low - 1] ** 2 / low
    after = square[-1] - square[low - 1] - (total[-1] - total[low - 1]) ** 2 / (n - low)
    best = int(np.argmin(before + after))
    within = float(np.sqrt(max((before + after)[best], 0.0) / (n - 2)))
    groups = [np.sort(x)[: low[best]], np.sort(x)[low[best] :]]
    apart = float(np.median(groups[1]) - np.median(groups[0]))
    near = [np.count_nonzero(np.abs(one - np.median(one)) <= NEAR_SD * within) for one in groups]
    return (groups, within) if apart > 0 and apart >= APART_SD * within and min(near) >= MIN_SEGMENT else ([], within)
