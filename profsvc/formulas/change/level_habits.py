"""What a series does without being changed: excursions to other levels and back."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from profsvc.formulas.numerics.arrays import Array, Bools
from profsvc.formulas.numerics.series import (
    MAD_TO_SD,
    Index,
    Series,
    codes_of,
    difference_sd,
    lengths,
    medians,
    subseries,
    without_spikes,
)

JUMP_SD = 4.0  # adjacent values further apart may be on two levels
APART_SD = 3.0  # levels further apart are two
AWAY_SD = 2.0  # values further from the level are at another level from it, by chance or by habit
RATES = np.array(
    [0.0, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.4]
)  # excursions that begin in a night, of series that make them
FAR_SHARES = np.append(RATES, 0.5)  # of values that are far from the level on one side
MIN_USUAL_SHARE = 0.8  # of the values, near the median: it is the usual level
GEOMETRIC = 10.0  # excursions of which nothing but a constant chance to end is known, beside those that were seen
MAX_STEPS_IN_A_NIGHT = 3
CROWD_NIGHTS = 3  # nights around one in which many series step: noise moves some of these steps
MIN_STEPS = 5  # without a return, of series that may all have two levels,
MIN_STEPPING_SHARE = 0.1  # of the series,
MIN_STEPS_PER_RETURN = 2.0  # and so many for each return: too few returns say how long a level lasts
MAX_STEPS = 200  # of the estimate of how frequent each rate is
NEWEST = 5  # values that may have a level of their own, and say nothing of a habit
STAYS = np.log(1000.0) * np.arange(1, 25) / 24  # log odds by which a value away from the level brings another one


class Excursions(NamedTuple):
    """Stretches away from the usual level, with a return, of series that resemble each other."""

    begun: Index  # number, of each series
    nights: Index  # of each series
    length: Index  # of each excursion, in nights, ascending
    room: Index  # nights that each could have lasted and still been seen to end
    steps: Index  # of each series, to another level without a return
    apart: int  # all of these, but only a few of one night, which may have one cause
    rising: int  # of the excursions: above the level before


def excursions(series: Series, smallest: Array | float = 0.0, night: Index | None = None) -> Excursions:
    """Return the stretches of two values or more that lie on one side of the values before and after them.

    Where one level is the usual one, stretches at it are not excursions.

    ``smallest``: the least distance from a level that counts, of each series in the unit of its values. ``night``:
    number of the night of each value as they were given, so that series with missing nights have the same.

    What begins in the same night in far more series than usual is one event of all of them, and no habit of each.
    """
    nights = lengths(series)
    series = without_spikes(series)
    codes, own_sd = codes_of(series), difference_sd(series)
    sd = np.fmax(own_sd, np.asarray(smallest) / APART_SD)
    if not series.x.size:
        none = np.zeros(0, dtype=np.intp)
        return Excursions(np.zeros(nights.size, dtype=np.intp), nights, none, none, nights * 0, 0, 0)
    same = np.r_[False, codes[1:] == codes[:-1]]
    jump = same & (np.abs(np.diff(series.x, prepend=np.nan)) >= JUMP_SD * sd[codes]) & (own_sd[codes] > 0)
    begins = ~same | jump
    stretch = np.cumsum(begins) - 1
    first = np.flatnonzero(begins)
    own, length = codes[first], np.diff(np.append(first, series.x.size))
    level = medians(series.x, stretch, first.size)
    rise = np.diff(level, prepend=np.nan)
    fall = -np.append(rise[1:], np.nan)
    follows = np.r_[False, own[1:] == own[:-1]]
    inside = follows & np.r_[own[1:] == own[:-1], False]
    with np.errstate(invalid="ignore"):
        far = np.minimum(np.abs(rise), np.abs(fall)) >= APART_SD * sd[own]
        back = inside & far & (np.sign(rise) == np.sign(fall)) & (length > 1)
        lasting = (length > 1) & np.r_[False, length[:-1] > 1]
        stepped = follows & lasting & (np.abs(rise) >= APART_SD * sd[own]) & ~back & ~np.r_[False, back[:-1]]
    center = medians(series.x, codes, nights.size)
    near = np.abs(series.x - center[codes]) < APART_SD / 2 * sd[codes]
    usual_level = np.bincount(codes, near, nights.size) >= MIN_USUAL_SHARE * lengths(series)
    back &= ~(usual_level[own] & (np.abs(level - center[own]) < APART_SD / 2 * sd[own]))
    at = first - series.start[own] if night is None else night[series.place[first]]
    apart = _apart(at[stepped], int(at.max()) + 1)
    steps = np.bincount(own[stepped], minlength=nights.size)
    started = np.bincount(at[back], minlength=int(max(nights.max(), at.max() + 1)))
    usual = np.median(started[1:]) if started.size > 1 else 0.0
    back &= started[at] <= 4 * usual + 3
    lasted, room = length[back], (series.stop[own] - first - 1)[back]
    order = np.argsort(lasted, kind="stable")
    begun = np.bincount(own[back], minlength=nights.size)
    return Excursions(begun, nights, lasted[order], room[order], steps, apart, int((rise[back] > 0).sum()))


def _apart(at: Index, nights: int) -> int:
    """Return how many of the steps in these nights are not near a night with far more of them than usual."""
    begun = np.bincount(at, minlength=nights)
    crowd = np.flatnonzero(begun > 4 * np.median(begun[1:] if nights > 1 else begun) + MAX_STEPS_IN_A_NIGHT)
    near = np.abs(np.arange(nights)[:, np.newaxis] - crowd).min(axis=1, initial=nights) <= CROWD_NIGHTS
    return int(begun[~near].sum() + min(MAX_STEPS_IN_A_NIGHT, begun[near].sum()))


class Away(NamedTuple):
    """Values far from the level of their series, of series that resemble each other."""

    habit: float  # probability that such values follow each other by a habit
    scaled: Series  # distances from the level, in units of the noise
    older: Series  # of these, without the newest
    far: Index  # values of each series below its level, and above it, of shape (2, series), without the newest


def values_away(series: Series, smallest: Array | float = 0.0) -> Away:
    r"""Return the values away from the level of their series, and how probably they follow each other by a habit.

    .. math:: P(t \mid k, n, \theta) \propto \binom{k-1}{t} \binom{n-k+1}{k-t} e^{\theta t}

    Heavy tails have values far from the level too, two in a row by chance. In a random order of n values, k of them far
    on one side, t adjacent pairs are far with this probability at theta = 0, whatever the tails are. Levels that are
    visited stay: there theta is above 0. It is the same for all siblings, and as probable to be any of `STAYS` as 0.

    The newest values do not count, for they may have changed.

    Source: the number of runs in a random order [WaldWolfowitz1940]; own model for theta.

    Args:
        series: Values of a series and its siblings.
        smallest: The least distance from a level that counts, of each series in the unit of its values.

    Returns: Away.

    Range: habit is 0 to 1; 1/2 where no values are far from the level.

    Two nights away and back, in each of three of ten series; then five nights away in each of five, but one by one:

    >>> x = np.tile([0.1, -0.1, 0.0, 0.1, -0.1], (10, 6))
    >>> y, z = x.copy(), x.copy()
    >>> y[:3, 10:12] += 9.0
    >>> z[:5, 2:22:4] += 9.0
    >>> of = lambda x: Series(x.ravel(), x.ravel() * 0, np.arange(300), np.arange(0, 300, 30), np.arange(30, 330, 30))
    >>> values_away(of(y)).habit > 0.99, values_away(of(z)).habit < 0.1, values_away(of(z)).far[1].tolist()
    (True, True, [5, 5, 5, 5, 5, 0, 0, 0, 0, 0])
    """
    from scipy.special import expit, logsumexp

    series = subseries(series, series.start, series.stop)
    stop = series.stop - np.minimum(lengths(series) // 2, NEWEST)
    older = subseries(series, series.start, stop)
    codes, n, every = codes_of(older), lengths(older), codes_of(series)
    center = medians(older.x, codes, n.size)
    sd = np.fmax(_usual_sd(older, center), np.asarray(smallest) / APART_SD)
    with np.errstate(all="ignore"):
        scaled = series._replace(x=np.nan_to_num((series.x - center[every]) / sd[every]))
    older = subseries(scaled, scaled.start, stop)
    gain, counts = np.zeros(STAYS.size), []
    for sign in (-1.0, 1.0):
        far = sign * older.x >= AWAY_SD
        pair = np.r_[False, far[1:] & far[:-1] & (codes[1:] == codes[:-1])][: far.size]
        counts.append(np.bincount(codes, far, n.size).astype(np.intp))
        seen = np.stack((n, counts[-1], np.bincount(codes, pair, n.size).astype(np.intp)), axis=1)
        for one, often in zip(*np.unique(seen, axis=0, return_counts=True), strict=True):
            if one[1] > 1:
                gain += often * _stay_gain(*one.tolist())
    return Away(float(expit(logsumexp(gain) - np.log(STAYS.size))), scaled, older, np.array(counts))


def chance_share(away: Away, up: Bools, series: Index, nights: Index) -> Array:
    r"""Return how often, in a random order, the newest values of a series are as far from its level as they are.

    .. math:: P(j \mid m, \theta) = \sum_{i \ge j} \binom{m}{i} \theta^i (1 - \theta)^{m - i}

    Far are the values beyond half of the way to their median, and beyond `AWAY_SD`; j of the newest m are. How frequent
    such values are, theta, the older values of the series and of its siblings say, as they do in `excursion_rates`. A
    step of less than twice `AWAY_SD` has no value half way, and counts as if all m were far.

    Source: the binomial distribution; own model for theta.

    Args:
        away: What `values_away` says.
        up: Whether each series that is asked for stepped up.
        series: Which ones are asked for.
        nights: Values since the step of each.

    Returns: the probability of each [1].

    Range: from 0 to 1.

    Ten series of which one value in five is far, one by one; three of the newest five are, as well:

    >>> x = np.tile([0.1, -0.1, 0.0, 0.1, 9.0], (10, 6))
    >>> x[0, 25:] = [9.1, 9.0, 0.0, 9.1, 0.1]
    >>> ten = Series(x.ravel(), x.ravel() * 0, np.arange(300), np.arange(0, 300, 30), np.arange(30, 330, 30))
    >>> chance_share(values_away(ten), np.array([True]), np.array([0]), np.array([5])).round(2).tolist()
    [0.06]
    """
    from scipy.special import bdtrc

    codes, out = codes_of(away.older), np.zeros(series.size)
    shares = {(side, AWAY_SD): _far_shares(away.far[side], lengths(away.older)) for side in np.unique(up * 1).tolist()}
    for number, (one, m, side) in enumerate(zip(series.tolist(), nights.tolist(), (up * 1).tolist(), strict=True)):
        sign = 2.0 * side - 1.0
        newest = sign * away.scaled.x[away.scaled.stop[one] - m : away.scaled.stop[one]]
        bound = max(np.floor(np.median(newest)) / 2, AWAY_SD)
        if (side, bound) not in shares:
            far = np.bincount(codes, sign * away.older.x >= bound, lengths(away.older).size).astype(np.intp)
            shares[side, bound] = _far_shares(far, lengths(away.older))
        j = int((newest >= bound).sum()) if np.median(newest) >= 2 * AWAY_SD else m
        out[number] = shares[side, bound][one] @ bdtrc(j - 1, m, FAR_SHARES)
    return out


def _far_shares(far: Index, values: Index) -> Array:
    """Return how probable each of `FAR_SHARES` is for each series."""
    return _shares(far, values, lambda k, n: _log_power(FAR_SHARES, k) + (n - k) * np.log1p(-FAR_SHARES))


def _usual_sd(series: Series, center: Array) -> Array:
    """Return the noise of each series that is usual among all, in proportion to their level.

    Its own one would depend on the order: far values one by one make differences large, in a row they do not. Where
    levels are kept for long the differences know the noise, where they are left at once the distances from the median.
    """
    codes = codes_of(series)
    middle = MAD_TO_SD * medians(np.abs(series.x - center[codes]), codes, center.size)
    level = np.abs(center) if (np.nan_to_num(center) != 0).all() else np.ones(center.size)
    shares = [(sd / level)[np.isfinite(sd)] for sd in (difference_sd(series), middle)]
    return np.asarray(level * min(np.median(share) if share.size else 0.0 for share in shares))


def _stay_gain(n: int, k: int, pairs: int) -> Array:
    """Return the logarithm of the likelihood of each of `STAYS` over that of a random order."""
    from scipy.special import gammaln, logsumexp

    t = np.arange(max(0, 2 * k - n - 1), k)  # pairs that k far values may make
    # Of all orders, those with t pairs, but for a constant factor.
    orders = -gammaln(t + 1.0) - gammaln(k - t) - gammaln(k - t + 1.0) - gammaln(n - 2.0 * k + t + 2.0)
    return np.asarray(pairs * STAYS - logsumexp(orders + np.multiply.outer(STAYS, t), axis=1) + logsumexp(orders))


def all_step(seen: Excursions) -> bool:
    """Return whether so many series step at different times that other levels are a habit of them all."""
    return seen.apart >= max(MIN_STEPS, MIN_STEPPING_SHARE * seen.nights.size)


def stay_probability(seen: Excursions, nights: Index) -> Array:
    """Return the probability of a step that is still there after so many nights, of series that nearly never return.

    0 where returns say how long a level lasts: then `lasting_share` says it.
    """
    if not all_step(seen) or seen.apart < MIN_STEPS_PER_RETURN * seen.length.size:
        return np.zeros(np.shape(nights))
    rate = seen.apart / max(float(seen.nights.sum()), 1.0)
    return np.asarray(rate * (1.0 - rate) ** (nights - 1.0))


def excursion_rates(seen: Excursions) -> Array:
    """Return how many excursions each series begins in a night, as its own nights and those of its siblings say.

    How frequent each of `RATES` is among the siblings is estimated by expectation and maximization.
    """
    if not seen.length.size:
        return np.zeros(seen.begun.size)
    begun = seen.begun + seen.steps if all_step(seen) else seen.begun
    return np.asarray(_shares(begun, seen.nights, lambda k, n: _log_power(RATES, k) - RATES * n) @ RATES)


def direction_share(seen: Excursions, up: Bools) -> Array:
    r"""Return the share of the excursions that go where a step goes, or to the other side if that is no more frequent.

    .. math:: P(\text{side} \mid k, n) = \frac{k + 1/2}{n + 1}

    Times `excursion_rates` it is how often excursions raise a finding if all steps are reported that are at most as
    frequent among them as this one: other work on the board makes kernels slower, and a step down is none of it.

    Source: own model; the mean of a probability after k of n events with Jeffreys' prior.

    Args:
        seen: The excursions of a series and its siblings.
        up: Whether each step goes up.

    Returns: the share of each step [1].

    Range: 0 to 1; 1 for the side that most excursions go to, and for both where as many go to each.

    Five excursions up and none down; a step up and one down:

    >>> none = np.zeros(0, dtype=np.intp)
    >>> five = Excursions(none, none, np.full(5, 3), np.full(5, 9), none, 0, 5)
    >>> direction_share(five, np.array([True, False])).round(3).tolist()
    [1.0, 0.083]
    """
    n = seen.length.size
    k = np.where(up, seen.rising, n - seen.rising)
    return np.where(2 * k >= n, 1.0, (k + 0.5) / (n + 1.0))


def _log_power(rates: Array, k: Index) -> Array:
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(k > 0, k * np.log(rates), 0.0)


def _shares(k: Index, n: Index, log_likelihood: Callable[[Index, Index], Array]) -> Array:
    """Return how probable each possibility is for each series, by all of them together.

    Series with the same k of n are the same to it, and few of thousands differ.
    """
    _, one, which, often = np.unique(n * (k.max() + 1) + k, return_index=True, return_inverse=True, return_counts=True)
    likelihood = log_likelihood(k[one, np.newaxis], n[one, np.newaxis])
    likelihood = np.exp(likelihood - likelihood.max(axis=1, keepdims=True))
    weight = np.full(likelihood.shape[1], 1.0 / likelihood.shape[1])
    for _ in range(MAX_STEPS):
        share = likelihood * weight
        share /= share.sum(axis=1, keepdims=True)
        weight = often @ share / often.sum()
    return np.asarray(share[which])


def lasting_share(seen: Excursions, nights: Index) -> Array:
    """Return the share of excursions that last so many nights at least; beyond the longest it falls by its square.

    A long excursion is only seen where there is room for its end. So the share is the product limit of lengths that
    are truncated on the right (Lynden-Bell); an excursion more in each of its factors keeps it from 1. Few excursions
    say little of how long one can last: `GEOMETRIC` more count that end each night with the same probability, which is
    integrated over.
    """
    if not seen.length.size:
        return np.zeros(np.shape(nights))
    lengths_seen, ended = np.unique(seen.length, return_counts=True)
    shorter = np.searchsorted(seen.length, lengths_seen, side="right")
    at_risk = shorter - np.searchsorted(np.sort(seen.room), lengths_seen, side="left")
    factor = 1.0 - ended / (at_risk + 1.0)
    # up_to[i] is the share of excursions shorter than lengths_seen[i].
    up_to = np.append(np.cumprod(factor[::-1])[::-1], 1.0)
    longer = 1.0 - up_to[np.searchsorted(lengths_seen, nights, side="left")]
    beyond = np.minimum(seen.length[-1] / np.maximum(nights, 1), 1.0) ** 2
    from scipy.special import betaln

    ends, stays = seen.length.size + 0.5, float((seen.length - 1).sum()) + 0.5
    geometric = np.exp(betaln(ends, stays + np.maximum(nights, 1) - 1.0) - betaln(ends, stays))
    counted = longer * seen.length.size + 0.5 * beyond + GEOMETRIC * geometric
    return np.asarray(counted / (seen.length.size + 1.0 + GEOMETRIC))
