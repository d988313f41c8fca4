"""Search for the first commit of a change by measurements with noise: probabilistic bisection."""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from profsvc.formulas.numerics.arrays import Array, Bools, floats
from profsvc.formulas.numerics.series import Index

SURE_PROBABILITY = 0.95
"""A candidate with this probability is found."""
DECIDED_LOG_ODDS = math.log(99.0)
"""Evidence of 99 to 1 decides on which side of the change a commit lies."""
MAX_RUNS_OF_COMMIT = 4
"""Runs of one commit that are asked for, as long as they do not decide."""
MAX_EVIDENCE_OF_RUN = 7.0
"""Evidence that one run may add, so that an outlier does not decide."""


class Bisection(NamedTuple):
    """State of a search among candidates; the first one that is bad is looked for."""

    probability: Array  # of each candidate to be the first bad one
    best: int  # most probable candidate
    found: bool  # its probability is at least SURE_PROBABILITY
    measure: int  # candidate to measure next; -1 if no measurement says more


def bisection(
    candidates: ArrayLike,
    place: ArrayLike,
    value: ArrayLike,
    good: float,
    bad: float,
    noise: float,
    blocked: ArrayLike = (),
) -> Bisection:
    r"""Probability of each candidate commit to be the first bad one, and the commit to measure next.

    .. math:: \lambda_i = \frac{(x_b - x_g)(v_i - \frac{x_g + x_b}{2})}{s^2}, \qquad
              \ln P(f) = \ln P_0(f) + \sum_{p_i \ge f} \frac{\lambda_i}{2} - \sum_{p_i < f} \frac{\lambda_i}{2} + c

    A commit whose own evidence is below ln 99 is measured again, at most four times. Otherwise the commit that halves
    the probability is next. A run adds at most 7, so that an outlier does not decide. Candidates with only blocked
    ones between them cannot be distinguished: where such a group has 95 % together, the search ends without a best one.

    Source: [Horstein1963] for the search at the median of the probability, [Wald1945] for the evidence that decides on
    one commit; the limit for one run is this project's.

    Args:
        candidates: Weight of each candidate, oldest first [1]; equal weights know nothing. The newest one is bad.
        place: Candidate of each run, from 0, flat [1].
        value: Value of each run, flat [any]; NaN where a run gave none.
        good: Level before the change [as the value].
        bad: Level since the change [as the value].
        noise: Standard deviation of a run about its level [as the value].
        blocked: Candidates that cannot be measured, flat [1].

    Returns: Bisection.

    Range: without runs the probability is that of the weights.

    Errors: ValueError for no candidates, for equal levels, for noise that is not positive and for a run of a candidate
    that does not exist.

    >>> state = bisection([1] * 4, [1], [100.1], 100.0, 103.0, 1.0)
    >>> state.measure, state.best, state.found
    (2, 2, False)
    >>> bisection([1] * 4, [1, 2], [99.9, 103.2], 100.0, 103.0, 0.5)[1:]
    (2, True, -1)

    The third one does not build, so it or the fourth one is it:

    >>> state = bisection([1] * 4, [1], [99.9], 100.0, 103.0, 0.5, blocked=[2])
    >>> state.probability.round(2).tolist(), state.found, state.measure
    ([0.0, 0.0, 0.5, 0.5], False, -1)
    """
    weight, x = floats(candidates=candidates)[0].ravel(), floats(value=value)[0].ravel()
    at = np.asarray(place, dtype=np.int64).ravel()
    count = weight.size
    if not count or not (weight >= 0).all() or not weight.sum() > 0:
        raise ValueError("candidates need weights from 0, and one above 0")
    if not (np.isfinite([good, bad, noise]).all() and good != bad and noise > 0):
        raise ValueError("good and bad must differ, and noise must be positive")
    if ((at < 0) | (at >= count)).any() or at.size != x.size:
        raise ValueError(f"place must name one of {count} candidates for each value")
    each = (bad - good) * (x - (good + bad) / 2) / noise**2
    each = np.clip(np.nan_to_num(each), -MAX_EVIDENCE_OF_RUN, MAX_EVIDENCE_OF_RUN)
    own: Array = np.bincount(at, each, count).astype(np.float64)
    runs: Index = np.bincount(at[~np.isnan(x)], minlength=count)
    # A run at p says the same of all candidates up to p, and the opposite of those behind it.
    later = np.cumsum(own[::-1])[::-1]
    with np.errstate(divide="ignore"):
        score = np.log(weight) + later - own.sum() / 2
    probability = np.exp(score - score.max())
    probability /= probability.sum()
    best = int(np.argmax(probability))
    found = bool(probability[best] >= SURE_PROBABILITY)
    free = np.ones(count, dtype=np.bool_)
    free[-1] = False  # known to be bad
    free[np.asarray(blocked, dtype=np.int64)] = False
    group = np.cumsum(np.r_[0, free[:-1]])  # a measured candidate tells itself and the next one apart
    over = bool(np.bincount(group, probability).max() >= SURE_PROBABILITY)
    return Bisection(probability, best, found, -1 if over else _next(probability, own, runs, free))


def _next(probability: Array, own: Array, runs: Index, free: Bools) -> int:
    """Return the candidate to measure next: one whose own runs do not decide yet, else the one that halves."""
    reached = np.cumsum(probability)
    apart = np.abs(reached - 0.5)
    undecided = free & (runs > 0) & (runs < MAX_RUNS_OF_COMMIT) & (np.abs(own) < DECIDED_LOG_ODDS)
    undecided &= (reached > 1 - SURE_PROBABILITY) & (reached < SURE_PROBABILITY)
    allowed = undecided if undecided.any() else free & (reached > 0) & (reached < 1)
    if not allowed.any():
        return -1
    return int(np.argmin(np.where(allowed, apart, np.inf)))
