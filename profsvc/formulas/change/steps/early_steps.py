"""A second step soon after a first one, before its level has a history of its own."""

from typing import NamedTuple

import numpy as np

from profsvc.formulas.change.levels.series_length import MIN_HISTORY, MIN_SEGMENT
from profsvc.formulas.change.steps.surest_step import MAX_LEAVE_ONE_OUT_RATIO
from profsvc.formulas.numerics.arrays import Array
from profsvc.formulas.numerics.distributions import student_tail

FEWEST = 2  # values of a level between two steps
NEWEST = 5  # values since the second step, in which it is looked for


class EarlyStep(NamedTuple):
    """The surest second step."""

    p: float  # probability of such a step, or a surer one, in a series without
    at: int  # place of the first value after it
    before: float  # median since the first step
    after: float


def early_step(x: Array, sd: float, points: int) -> EarlyStep | None:
    r"""Return the surest step of a level that has two to four values before it, by the noise of the level before.

    .. math:: p = \max\left(q(x),\ \max_i \frac{q(x_{-i})}{5}\right), \qquad q = 2 K T_{N-1}\!\left(
              \frac{|\bar x_{i \ge k} - \bar x_{i < k}|}{s \sqrt{\frac{1}{k} + \frac{1}{n - k}}}\right)

    `newest_step` needs five values before a step. Where a second step follows a first one sooner, it would be hidden
    for ever. K is the number of places that are tried (Bonferroni). The step is at the place that leaves the least
    square about two means. As for `newest_step`, no single value may make it: without the one of each side that it
    needs most it must still be improbable, although up to five times less so. Where that place has fewer than three
    values since, or five before it, no step is found yet.

    Source: own model.

    Args:
        x: Values since the first step, of shape (n,) [any].
        sd: Noise of the values before it [as the value].
        points: How many these were, N.

    Returns: EarlyStep; None where no place has two to four values before it and three to five since, where a later
        place is likelier, or where no noise is known.

    Range: p in [0, 1].

    Two nights 10 % slower, then 20 % since three:

    >>> step = early_step(np.array([11.0, 11.1, 12.0, 12.1, 11.9]), 0.1, 20)
    >>> step.p < 1e-3, step.at, step.before, step.after
    (True, 2, 11.05, 12.0)

    Two nights alone at the new level may be a spike:

    >>> early_step(np.array([11.0, 11.1, 11.2, 11.0, 12.0, 12.1]), 0.1, 20) is None
    True
    """
    n = x.size
    places = [k for k in range(FEWEST, MIN_HISTORY) if MIN_SEGMENT <= n - k <= NEWEST]
    if not places or not sd > 0:
        return None
    tried = range(places[0], n)
    best = min(tried, key=lambda k: _square(x[:k]) + _square(x[k:]))
    if best not in places:
        return None
    low, high = x[:best], x[best:]
    if low.mean() > high.mean():
        low, high = -low, -high
    without = (np.sort(low)[1:], high), (low, np.sort(high)[:-1])
    p = max(_tail(low, high, sd, points), *(_tail(*sides, sd, points) / MAX_LEAVE_ONE_OUT_RATIO for sides in without))
    return EarlyStep(min(1.0, 2.0 * len(places) * p), best, float(np.median(x[:best])), float(np.median(x[best:])))


def _tail(low: Array, high: Array, sd: float, points: int) -> float:
    t = (high.mean() - low.mean()) / (sd * np.sqrt(1 / low.size + 1 / high.size))
    return float(student_tail(np.array(max(t, 0.0)), np.array(max(points - 1.0, 1.0))))


def _square(x: Array) -> float:
    return float(np.sum((x - x.mean()) ** 2))
