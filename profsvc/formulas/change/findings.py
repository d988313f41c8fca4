"""States of a finding: later values confirm or revoke a detected change, and people accept it."""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from profsvc.formulas.numerics.arrays import Array, Bools, Mask, floats, mask
from profsvc.formulas.numerics.flags import Flag
from profsvc.formulas.numerics.series import Index, gather, lengths, read_series

NEW, CONFIRMED, ACCEPTED, FIXED = STATES = ("new", "confirmed", "accepted", "fixed")

CONFIRM_LOG_ODDS = math.log(19.0)  # evidence of 19 to 1: both errors 5 % (Wald)
RETURN_LOG_ODDS = math.log(1000.0)  # a change that lasts is taken for gone once in 1000 nights at most (Lorden)
MAX_EVIDENCE_PER_VALUE = 2.5  # evidence that one value may add, so that no spike decides
MAX_SHORT_SHARE = 0.25  # of a change: a level that is nearer to half way has not returned
MAX_SHORT_SD = 2.5  # unless its values are too few to tell

# State changes made by nightly checks. People may set any state at any time. A finding they accepted or called
# fixed keeps that state: a later change is another finding.
AUTOMATIC_STATES = {
    (NEW, "holds"): CONFIRMED,
    (NEW, "returned"): FIXED,
    (CONFIRMED, "returned"): FIXED,
}


class Evidence(NamedTuple):
    """Evidence of the values since a finding, one entry per group."""

    log_odds: Array  # that the level is still the one after the change, not the one before
    holds: Bools
    returned: Bools
    flags: Mask


def evidence(
    value: ArrayLike, before: ArrayLike, after: ArrayLike, sd: ArrayLike, group: ArrayLike | None = None
) -> Evidence:
    r"""Evidence whether the values after a finding still lie on the new level, or back on the old one.

    .. math:: \lambda_i = \frac{(x_1 - x_0)(x_i - \frac{x_0 + x_1}{2})}{s^2}, \qquad
              \text{holds: } \sum_i \lambda_i \ge \ln 19, \qquad
              \text{returned: } \max_k \sum_{i \ge k} -\lambda_i \ge \ln 1000 \text{ or } \sum_i \lambda_i \le -\ln 19

    The sum is a sequential test of the two levels; its first bound that is reached decides. Later the cumulative sum
    against the new level, restarted at 0 whenever it would be negative, watches for the return. No value adds more
    than 2.5 either way, so that two at least decide and a spike never. Half way between the two levels each is as
    probable as the other, so the sum wanders to a bound by chance: nothing returned where the mean since is surely
    nearer to half way than to the level before, as `is_back` says.

    Source: [Wald1945] for the bounds of the test, [Page1954] for the cumulative sum, [Lorden1971] for its rate of
    false alarms; the limit for one value is this project's.

    Args:
        value: Values since the finding was made, in order, flat [any]; NaN where one is missing. Those by which it
            was found are no evidence: they were chosen for being far out.
        before: Level before the change, one a group in ascending order of ids, or one for all [as the value].
        after: Level after it, likewise [as the value].
        sd: Noise of a value about its level, likewise [as the value]; widened by the caller where values are
            autocorrelated.
        group: Id of the finding of each value; None: one finding.

    Returns: Evidence.

    Range: without values log_odds is 0, and nothing holds or returned. Levels that are equal or NaN, or an sd that is
    not positive: NaN, with INPUT_SUSPECT.

    Errors: TypeError for a wrong dtype, ValueError for shapes that do not fit.

    From 10 to 11, with noise of 0.4: two nights at 11 confirm it, nights back at 10 end it.

    >>> evidence([11.0, 11.1], 10.0, 11.0, 0.4).holds.tolist()
    True
    >>> evidence([11.0, 11.1, 10.0, 9.9, 10.1], 10.0, 11.0, 0.4).returned.tolist()
    True
    """
    x, error, groups = read_series(value, group, None)
    series = gather(x, error, groups, ~np.isnan(x))
    n = lengths(series)
    x0, x1, s = (np.broadcast_to(level.ravel(), n.shape) for level in floats(before=before, after=after, sd=sd))
    with np.errstate(all="ignore"):
        scale = (x1 - x0) / s**2
        good = np.isfinite(scale) & (scale != 0) & (s > 0)
        each = np.where(good, scale, 0.0)
        step = np.clip(
            np.repeat(each, n) * (series.x - np.repeat((x0 + x1) / 2, n)),
            -MAX_EVIDENCE_PER_VALUE,
            MAX_EVIDENCE_PER_VALUE,
        )
    step = np.nan_to_num(step)
    total = np.concatenate(([0.0], np.cumsum(step)))
    log_odds = total[series.stop] - total[series.start]
    lowest, highest = _first_reached(series.start, series.stop, total)
    confirmed = highest < lowest
    fell, since = _since_highest(series.start, series.stop, total)
    early = lowest < highest
    since = np.where(early & ~fell, series.start, since)
    with np.errstate(all="ignore"):
        share = np.where(np.repeat(good, n), (series.x - np.repeat(x0, n)) / np.repeat(x1 - x0, n), 0.0)
        sums = np.concatenate(([0.0], np.cumsum(share)))
        newest = series.stop - since
        level = (sums[series.stop] - sums[since]) / newest
        back = (early | fell) & is_back(level, 0.0, 1.0, s / np.abs(x1 - x0), newest)
    results = (np.where(good, log_odds, np.nan), confirmed & ~back & good, back & good)
    return Evidence(*groups.shaped(*results, mask((Flag.INPUT_SUSPECT, ~good))))


def _first_reached(start: Index, stop: Index, total: Array) -> tuple[Array, Array]:
    """Position at which the sum of each series first reaches the lower bound, and the upper one; inf: never."""
    n = stop - start
    position = np.arange(1, total.size)
    path = total[1:] - np.repeat(total[start], n)
    out = []
    for reached in (path <= -CONFIRM_LOG_ODDS, path >= CONFIRM_LOG_ODDS):
        first = np.full(start.size, np.inf)
        codes = np.repeat(np.arange(start.size), n)[reached]
        np.minimum.at(first, codes, position[reached].astype(np.float64))
        out.append(first)
    return out[0], out[1]


def _since_highest(start: Index, stop: Index, total: Array) -> tuple[Bools, Index]:
    """Return whether the sum of each series fell by more than the bound from its highest, and the first value since."""
    n = stop - start
    inside = np.repeat(np.arange(start.size), n)
    highest = total[start].copy()
    np.maximum.at(highest, inside, total[1:])
    since = start.copy()
    at_top = total[1:] == highest[inside]
    np.maximum.at(since, inside[at_top], np.arange(1, total.size)[at_top])
    return np.asarray(highest - total[stop] >= RETURN_LOG_ODDS), since


def is_back(level: ArrayLike, before: ArrayLike, after: ArrayLike, sd: ArrayLike, values: ArrayLike) -> Bools:
    r"""Whether a level is the one before a change again, and not only a part of the way back to it.

    .. math:: (x - x_0)\, \mathrm{sgn}(x_1 - x_0) \le \max\left(\frac{|x_1 - x_0|}{4},\ \frac{2.5\, s}{\sqrt n}\right)

    Source: own model.

    Args:
        level: Mean or median of the newest values, x [any].
        before: Level before the change, x_0 [as the level].
        after: Level after it, x_1 [as the level].
        sd: Noise of a value, s [as the level].
        values: Values that the level is of, n [1].

    Returns: whether it is back, of the common shape; beyond the level before it is too.

    Range: False where a level is NaN.

    Errors: TypeError for a wrong dtype, ValueError for shapes that do not broadcast.

    From 10 to 12 with noise of 0.1; six nights at 10.1 are back, six at 11 are not:

    >>> is_back([10.1, 11.0], 10.0, 12.0, 0.1, 6).tolist()
    [True, False]
    """
    x, x0, x1, s, n = floats(level=level, before=before, after=after, sd=sd, values=values)
    with np.errstate(all="ignore"):
        short = np.sign(x1 - x0) * (x - x0)
        return np.asarray(short <= np.maximum(MAX_SHORT_SHARE * np.abs(x1 - x0), MAX_SHORT_SD * s / np.sqrt(n)))


def next_state(state: str, holds: bool, returned: bool, said: str | None = None) -> str:
    """State of a finding after a night, from the one before, the `evidence`, and what people set.

    Source: own model.

    Args:
        state: State so far: ``new``, ``confirmed``, ``accepted``, ``fixed``.
        holds: Whether the values since it was found confirm it.
        returned: Whether they are back on the level before it.
        said: State that somebody set since the last night, or None.

    Returns: the state. A baseline starts at the change as long as the finding is not ``fixed``, so that tomorrow it is
    not found again; when it is fixed, values between change and return are left out of the history.

    Range: one of the four.

    Errors: ValueError for a state that there is not.

    >>> next_state("new", holds=True, returned=False), next_state("confirmed", holds=True, returned=True)
    ('confirmed', 'fixed')
    >>> next_state("confirmed", holds=False, returned=True, said="accepted")
    'accepted'
    """
    for name in (state, said or state):
        if name not in STATES:
            raise ValueError(f"no state {name!r}; allowed: {', '.join(map(repr, STATES))}")
    if said is not None:
        return said
    seen = "returned" if returned else "holds" if holds else ""
    return AUTOMATIC_STATES.get((state, seen), state)
