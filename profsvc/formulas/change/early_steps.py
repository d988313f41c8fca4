"""A second step soon after a first one, before its level has a history of its own."""

from typing import NamedTuple

import numpy as np

from profsvc.formulas.change.nightly_test import MAD_EFFICIENCY, MEDIAN_VARIANCE
from profsvc.formulas.change.surest_step import MIN_HISTORY, MIN_SEGMENT
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

    .. math:: p = 2 K T_\nu\!\left(\frac{|\mathrm{med}_{i \ge k} x_i - \mathrm{med}_{i < k} x_i|}
              {s \sqrt{\frac{\pi}{2} \left(\frac{1}{k} + \frac{1}{n - k}\right)}}\right), \quad \nu = 0.37 (N - 1)

    `newest_step` needs five values before a step. Where a second step follows a first one sooner, it would be hidden
    for ever. K is the number of places that are tried (Bonferroni). The step is at the place that leaves the least
    square about two means: medians of three values would hide that the first of them is still at the old level. Where
    that place has fewer than three values since, or five before it, no step is found yet.

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
    free = np.array(max(MAD_EFFICIENCY * (points - 1.0), 1.0))
    before, after = float(np.median(x[:best])), float(np.median(x[best:]))
    spread = sd * np.sqrt(MEDIAN_VARIANCE * (1 / best + 1 / (n - best)))
    p = min(1.0, len(places) * 2.0 * float(student_tail(np.array(abs(after - before) / spread), free)))
    return EarlyStep(p, best, before, after)


def _square(x: Array) -> float:
    return float(np.sum((x - x.mean()) ** 2))
