"""Nights on which the board was in another state, or louder, or quieter, as all its kernels say together."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from profsvc.formulas.numerics.arrays import Array, Bools
from profsvc.formulas.numerics.distributions import student_tail
from profsvc.formulas.numerics.series import MAD_TO_SD

MIN_SERIES = 10  # that say together in which state a night was
MIN_CALM_NIGHTS = 5
MIN_CALM_SHARE = 0.25
MIN_OTHER_NIGHTS = 2
MIN_NOISE_RATIO = 2.0  # of the other nights over the calm ones, from which the calm ones alone decide about a series
MIN_AFFECTED_SHARE = 0.3  # of the series have so much more noise
MIN_JUMP_SPREADS = 1.0  # or go to another level, so many spreads away,
FEW_JUMPS = 3.0  # and more of them where few transitions say so,
MIN_JUMP = 4e-3  # relative: half of what is reported of a duration
MAX_STRETCH_RATIO = 2  # a stretch of other nights longer than this times the longest that ended is a change,
USUAL_STRETCH = 10  # if it is longer than so many nights
MAX_DEVIATION = 3.0  # so that no series, and no night, outweighs the others
SPLITS = 48
MIN_SPREAD = 1e-4  # relative: what a timer shows
USUAL_SHARE = 0.85  # of the differences of adjacent nights; the others may be steps and spikes
MAX_SAMPLED = 200  # series that choose the split
MIN_LOUD_NIGHTS = 3
MAX_LOUD_P = 1e-4  # of nights that are so much louder in a family whose noise stays
MEAN_APART_VARIANCE = 0.8  # of the logarithm of the mean of n differences of adjacent normal values, times n
MEDIAN_VARIANCE = np.pi / 2  # of the median of normal values, over that of their mean
LOWER_END = 1.645  # standard errors from a logarithm to an end of its interval of 90 %
MIN_APART, MAX_APART = 0.1, 4.0  # so that no jump outweighs the others, in units of the usual difference


class NightStates(NamedTuple):
    """What the nights of a board are to its series."""

    calm: Bools  # of each night
    affected: Bools  # of each series, whether its other nights are so noisy that the calm ones alone tell a change


def night_states(x: Array) -> NightStates:
    r"""Nights in the state of a board in which its series scatter least, and the series for which that matters.

    A board at its power limit has a lower clock, which changes while it runs: then times of all kernels that depend on
    it are longer, each by another share. The first principal component of all series says the state of a night; its
    split into two states is the one of least spread,

    .. math:: \min_c \sum_k \left( n_{low} \ln s_{k,low} + n_{high} \ln s_{k,high} \right)

    with s the mean difference of adjacent nights. Where the board is in the other state for longer than ever, or where
    few series scatter less in one of them, all nights count: a change of the level alone, of all kernels at once, is
    not another state. A state of few nights adds little to the mean difference of all; once the board has left it, it
    is one where a series goes elsewhere and its nights differ.

    Source: own model.

    Args:
        x: Values, of shape (series, nights) [any positive], NaN where one is missing.

    Returns: NightStates.

    Range: fewer than ten series, or than five calm nights: all are calm.

    Every third night the clock is low for all of twelve kernels:

    >>> rng = np.random.default_rng(1)
    >>> x = 100 + 0.1 * rng.standard_normal((12, 30))
    >>> x[:, ::3] += rng.uniform(5, 30, (12, 10))
    >>> states = night_states(x)
    >>> bool(states.affected.all()), np.flatnonzero(~states.calm).tolist()
    (True, [0, 3, 6, 9, 12, 15, 18, 21, 24, 27])
    """
    count, nights = x.shape
    every = NightStates(np.ones(nights, dtype=np.bool_), np.zeros(count, dtype=np.bool_))
    if count < MIN_SERIES or nights < MIN_CALM_NIGHTS + MIN_OTHER_NIGHTS:
        return every
    with np.errstate(all="ignore"):
        away = x / _middle(x) - 1.0
        known = np.isfinite(away)
        spread = np.maximum(MAD_TO_SD * _middle(np.where(known, np.abs(away), np.nan)), MIN_SPREAD)
    scaled = np.where(known, np.clip(away / spread, -MAX_DEVIATION, MAX_DEVIATION), 0.0)
    component = _first_component(scaled)
    away = np.where(known, away, np.nan)
    sample = away[:: -(-count // MAX_SAMPLED)]
    bounds = np.sort(component)[1:-1]
    near = bounds[:: -(-bounds.size // SPLITS)]
    best = min(near, key=lambda bound: _cost(sample, component <= bound))
    place = np.searchsorted(bounds, [near[near < best].max(initial=-np.inf), near[near > best].min(initial=np.inf)])
    best = min(bounds[place[0] : place[1]], key=lambda bound: _cost(sample, component <= bound))
    calm = component <= best
    if np.mean(np.log(_spread(sample[:, calm]) / _spread(sample[:, ~calm]))) > 0:
        calm = ~calm
    steady = _spread(away[:, calm], USUAL_SHARE)
    noisier = _spread(away, USUAL_SHARE) >= MIN_NOISE_RATIO * steady
    enough = known[:, calm].sum(axis=1) >= MIN_CALM_NIGHTS
    elsewhere = _goes_elsewhere(away, calm, steady)
    # A state that a board has left before is known, however few its nights are, by how these differ.
    apart = elsewhere & (_spread(away[:, ~calm]) >= MIN_NOISE_RATIO * steady) & _left_before(calm)
    share = (enough & (noisier | apart)).mean()
    if calm.mean() < MIN_CALM_SHARE or share < MIN_AFFECTED_SHARE or _stays(calm):
        return every
    return NightStates(calm, enough & (noisier | elsewhere))


def _goes_elsewhere(away: Array, calm: Bools, steady: Array) -> Bools:
    """Return which series have another level on the other nights, by the adjacent nights of both kinds."""
    last = np.flatnonzero(calm[1:] != calm[:-1])
    jumps = np.where(calm[last], 1.0, -1.0) * (away[:, last + 1] - away[:, last])
    known = np.isfinite(jumps).sum(axis=1)
    with np.errstate(all="ignore"):
        bound = np.maximum(MIN_JUMP_SPREADS, FEW_JUMPS / np.sqrt(known))
        return np.asarray(np.abs(_middle(jumps)[:, 0]) >= np.maximum(bound * steady, MIN_JUMP))


def _left_before(calm: Bools) -> bool:
    """Return whether the board was calm between two stretches of the other state, for as many nights as tell it."""
    stretches = np.split(calm, np.flatnonzero(calm[1:] != calm[:-1]) + 1)
    return any(bool(part[0]) and part.size >= MIN_CALM_NIGHTS for part in stretches[1:-1])


def _middle(x: Array) -> Array:
    """Median of each row; NaN where it is empty."""
    out = np.full((len(x), 1), np.nan)
    filled = ~np.isnan(x).all(axis=1)
    out[filled] = np.nanmedian(x[filled], axis=1, keepdims=True)
    return out


def _cost(away: Array, below: Bools) -> float:
    return float(
        np.mean(below.sum() * np.log(_spread(away[:, below])) + (~below).sum() * np.log(_spread(away[:, ~below])))
    )


def _first_component(scaled: Array) -> Array:
    from scipy.sparse.linalg import eigsh

    if not scaled.any():
        return np.zeros(scaled.shape[1])
    start = np.random.default_rng(0).standard_normal(scaled.shape[1])
    values, vectors = eigsh(scaled.T @ scaled, k=1, which="LA", v0=start)
    return np.asarray(vectors[:, 0] * np.sqrt(max(values[0], 0.0)))


def _spread(away: Array, share: float = 1.0) -> Array:
    """Average difference of adjacent nights, of the smallest ones."""
    nights = away.shape[1]
    if nights < 3:
        return np.full(len(away), MIN_SPREAD)
    steps = np.sort(np.abs(np.diff(away, axis=1)), axis=1)  # those with a missing night come last
    known = np.isfinite(steps).sum(axis=1, keepdims=True)
    counted = np.arange(nights - 1) < np.ceil(share * known)
    total = np.where(counted, steps, 0.0).sum(axis=1)
    return np.asarray(np.maximum(total / np.maximum(counted.sum(axis=1), 1), MIN_SPREAD))


def _stays(calm: Bools) -> bool:
    """Return whether the board stays in the other state for longer than ever before and than usual: it may stay so."""
    edges = np.flatnonzero(np.diff(np.r_[True, calm, True].astype(np.int8)))
    stretches: NDArray[np.intp] = np.diff(edges)[::2]
    if calm[-1] or not len(stretches):
        return False
    longest = int(stretches[:-1].max(initial=0))
    return bool(stretches[-1] > max(MAX_STRETCH_RATIO * longest, USUAL_STRETCH))


def noise_ratios(x: Array) -> Array:
    r"""Return how much louder a series is in its newest nights than in each night.

    .. math:: u_{st} = \min\left(\frac{|x_{st} - x_{s,t-1}|}{m_s}, 4\right), \qquad
              \hat k = \arg\max_k t_k, \qquad
              \ln r_s = \ln r + \frac{\tau^2}{\tau^2 + \sigma_s^2} \left(\ln \hat r_s - \ln r\right)

    Where a driver, a host or other work on the board makes its series noisier, older nights promise less noise than
    there is. m is the usual difference of adjacent nights of a series, t that of the nights since k against those
    before, by the logarithm of the mean u of all series, no further than three spreads from the median: a night in
    which all series step is no noise. The ratio of the mean u of a series since k and before is shrunk to r, the median
    of all series.

    Source: own model; shrinkage after [James1961].

    Args:
        x: Values of siblings, of shape (series, nights) [any]; NaN where one is missing.

    Returns: the ratio of each night, of the same shape [1].

    Range: from 1; 1 for the newest nights, and for all where nothing is surely louder, or in fewer than ten series.

    Twenty series that scatter twice as much since ten nights:

    >>> x = np.random.default_rng(1).standard_normal((20, 40))
    >>> x[:, 30:] *= 2.0
    >>> np.median(noise_ratios(x), axis=0).round(1)[[0, 29, 30, 39]].tolist()
    [2.1, 2.1, 1.0, 1.0]
    """
    out = np.ones(x.shape)
    if len(x) < MIN_SERIES:
        return out
    apart = _usual_differences(x)
    since = _other_noise_since(apart, 1.0)
    if since is not None:
        out[:, : since + 1] = np.maximum(np.exp(_ratios_since(apart, since)[0]), 1.0)[:, np.newaxis]
    return out


def quieter_since(x: Array) -> tuple[int, Array] | None:
    r"""Return the first night since which siblings are quieter, and how many older values say as much as a newer one.

    .. math:: b_s = \lfloor e^{-2 (\ln r_s + 1.645\, e_s)} \rfloor

    The opposite of `noise_ratios`, by the same test. r is the shrunk ratio of the noise since to that before, e its
    standard error: b is the lower end of the interval of the ratio of both variances.

    Source: own model; shrinkage after [James1961].

    Args:
        x: Values of siblings, of shape (series, nights) [any]; NaN where one is missing.

    Returns: the night, and the number of each series [1]; None where nothing is surely quieter.

    Range: numbers from 1; None for fewer than ten series.

    Twenty series that scatter a third as much since twelve nights, whose variance was nine times as large:

    >>> x = np.random.default_rng(1).standard_normal((20, 40))
    >>> x[:, 28:] /= 3.0
    >>> since, equivalent = quieter_since(x)
    >>> since, float(np.median(equivalent))
    (28, 4.0)
    """
    if len(x) < MIN_SERIES:
        return None
    apart = _usual_differences(x)
    since = _other_noise_since(apart, -1.0)
    if since is None:
        return None
    ratio, error = _ratios_since(apart, since)
    return since, np.floor(np.exp(np.maximum(-2.0 * (ratio + LOWER_END * error), 0.0)))


def _usual_differences(x: Array) -> Array:
    """Return the differences of adjacent nights of each series, in units of its usual one, and not too large."""
    apart = np.abs(np.diff(x, axis=1))
    with np.errstate(all="ignore"):
        return np.asarray(np.minimum(apart / _middle(np.where(apart > 0, apart, np.nan)), MAX_APART))


def _other_noise_since(apart: Array, sign: float) -> int | None:
    """Return the first of the differences of adjacent nights that are surely larger than those before, if any.

    ``apart``: differences of each series, in units of its usual one; ``sign``: 1, or -1 for those that are smaller.
    """
    known = np.isfinite(apart)
    series = known.sum(axis=0)
    measured = np.flatnonzero(series >= MIN_SERIES)
    n = measured.size
    if n < 2 * MIN_LOUD_NIGHTS:
        return None
    mean = np.where(known, apart, 0.0).sum(axis=0)[measured] / series[measured]
    loud = np.log(np.maximum(mean, MIN_APART))
    away = loud - np.median(loud)
    spread = MAD_TO_SD * np.median(np.abs(away))
    loud = np.clip(away, -MAX_DEVIATION * spread, MAX_DEVIATION * spread)
    m = np.arange(MIN_LOUD_NIGHTS, n - MIN_LOUD_NIGHTS + 1)
    excess = np.cumsum(loud[::-1])[m - 1] - m * loud.mean()
    explained = n * excess**2 / (m * (n - m))
    left = np.sum((loud - loud.mean()) ** 2) - explained
    with np.errstate(all="ignore"):
        t = sign * np.sign(excess) * np.sqrt(explained / (left / (n - 2)))
    if not student_tail(np.array(t.max()), np.array(n - 2.0)) <= MAX_LOUD_P:
        return None
    return int(measured[n - m[t.argmax()]])


def _ratios_since(apart: Array, since: int) -> tuple[Array, Array]:
    """Return how much larger the differences of each series are since one of them, shrunk to what its siblings say.

    It is a logarithm; beside it stands its standard error.
    """
    before, after = np.hsplit(apart, [since])
    n, m = (np.isfinite(part).sum(axis=1) for part in (before, after))
    with np.errstate(all="ignore"):
        own = np.log(np.nansum(after, axis=1) / m / (np.nansum(before, axis=1) / n))
        own += MEAN_APART_VARIANCE / 2 * (1 / m - 1 / n)  # a mean's logarithm is low
        own[~np.isfinite(own)] = np.nan
        error = MEAN_APART_VARIANCE * (1 / n + 1 / m)
        usual = np.nanmedian(own)
        between = max((MAD_TO_SD * np.nanmedian(np.abs(own - usual))) ** 2 - float(np.nanmedian(error)), 0.0)
        shrunk = usual + between / (between + error) * (own - usual)
        of_usual = MEDIAN_VARIANCE * (between + np.nanmedian(error)) / np.isfinite(own).sum()
        left = np.sqrt(between * error / (between + error) + of_usual)
    unknown = np.isnan(own)
    return np.where(unknown, usual, shrunk), np.where(unknown, np.sqrt(between + of_usual), left)
