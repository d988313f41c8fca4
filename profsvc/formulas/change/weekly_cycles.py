"""What the day of the week adds to the values of series, as they and their siblings say."""

import numpy as np

from profsvc.formulas.numerics.arrays import Array
from profsvc.formulas.numerics.series import MAD_TO_SD, Index

DAYS = 7
MIN_OF_WEEK = 4  # values of the seven days about a day that say its usual level
MIN_DAYS = 14  # with such a level, before a cycle can be known: two of each day
MAX_P = 1e-4  # of days that differ so much in a family without a cycle
MAX_OWN_P = 1e-6  # the same, of one series among many
MAX_SAMPLED = 200  # siblings that say what the days have in common
ROWS_AT_ONCE = 2000


def weekly_cycles(x: Array, weekday: Index) -> Array:
    r"""Return what the day of the week adds to each value.

    .. math:: r_{st} = \frac{x_{st} - \mathrm{med}_{|u - t| \le 3}\, x_{su}}{\sigma_s}, \qquad
              c_{st} = \sigma_s \left(b_s\, w_{d(t)} + e_{s\,d(t)}\right)

    Each value is held against the median of the seven days about it, which has each day of the week once. w is what
    siblings have in common: the median of the nights of a day, each the median of the siblings. b is how much of it a
    series has; where their b scatter no more than their noise explains, all have that of the median. e is a series' own
    cycle. Both are 0 unless nights of one day resemble each other more than those of other days do: by an F test of
    nights, so that a state which all siblings share in a night is one value, and no cycle until weeks repeat it.

    Source: own model; seasonal decomposition by a running median, shrinkage after [James1961].

    Args:
        x: Values of siblings, of shape (series, days), for all days since the first [any]; NaN where one is missing.
        weekday: Day of the week of each column, from 0 to 6.

    Returns: the part of each value, of the same shape, in its unit; the usual day has 0.

    Range: 0 for fewer than 20 days, or where no cycle is sure.

    Fifty series for six weeks, 5 higher on weekends:

    >>> x, weekday = 10.0 + np.random.default_rng(1).standard_normal((50, 42)), np.arange(42) % 7
    >>> cycle = weekly_cycles(x + 5.0 * (weekday >= 5), weekday)
    >>> float(weekly_cycles(x, weekday).max()), abs(cycle[:, 0].mean().round(0)), cycle[:, 5].mean().round(0)
    (0.0, np.float64(0.0), np.float64(5.0))
    """
    out = np.zeros(x.shape)
    if not len(x) or x.shape[1] < MIN_DAYS + DAYS - 1:
        return out
    away, sd = _from_week(x)
    common = np.zeros(DAYS)
    nights = _middle(away[:: -(-len(x) // MAX_SAMPLED)].T)
    if _days_differ(nights[np.newaxis], weekday)[0][0] <= MAX_P:
        days = _middle(np.where(weekday == np.arange(DAYS)[:, np.newaxis], nights, np.nan))
        common = np.nan_to_num(days - np.nanmedian(days))
        share = _shares(away, common[weekday])
        out = sd * share * common[weekday]
        away = away - share * common[weekday]
    p, means, ratio = _days_differ(away, weekday)
    own = p <= MAX_OWN_P
    if own.any():
        with np.errstate(all="ignore"):
            kept = (1.0 - 1.0 / ratio[own])[:, np.newaxis]
        cycle = kept * np.nan_to_num(means[own] - np.nanmedian(means[own], axis=1, keepdims=True))
        out[own] += sd[own] * cycle[:, weekday]
    return out


def _from_week(x: Array) -> tuple[Array, Array]:
    """Return the distance of values from their week in units of their noise, and the noise of each series."""
    away, half = np.full(x.shape, np.nan), DAYS // 2
    for first in range(0, len(x), ROWS_AT_ONCE):
        rows = slice(first, first + ROWS_AT_ONCE)
        week = np.sort(np.lib.stride_tricks.sliding_window_view(x[rows], DAYS, axis=1), axis=2)
        away[rows, half:-half] = x[rows, half:-half] - _middle_of_sorted(week, MIN_OF_WEEK)
    sd = MAD_TO_SD * _middle(np.abs(away))[:, np.newaxis]
    with np.errstate(all="ignore"):
        return np.where(sd > 0, away / sd, np.nan), np.nan_to_num(sd)


def _middle(x: Array) -> Array:
    """Median of each row without what is missing; NaN where it is empty."""
    return _middle_of_sorted(np.sort(x, axis=1), 1)


def _middle_of_sorted(x: Array, fewest: int) -> Array:
    """Median of the last axis, which is sorted with what is missing at its end; NaN where fewer are known."""
    known = np.isfinite(x).sum(axis=-1, keepdims=True)
    low, high = (
        np.take_along_axis(x, np.maximum(place, 0), axis=-1)[..., 0] for place in ((known - 1) // 2, known // 2)
    )
    return np.where(known[..., 0] >= fewest, (low + high) / 2, np.nan)


def _days_differ(x: Array, weekday: Index) -> tuple[Array, Array, Array]:
    """Return p and the ratio of the F test that days of the week have one level, of each row, and their means."""
    from scipy.special import fdtrc

    of_day = weekday[:, np.newaxis] == np.arange(DAYS)
    known = np.isfinite(x)
    filled = np.where(known, x, 0.0)
    count = known @ of_day.astype(np.float64)
    n, days = count.sum(axis=1), (count > 0).sum(axis=1)
    with np.errstate(all="ignore"):
        means = (filled @ of_day.astype(np.float64)) / count
        overall = filled.sum(axis=1) / n
        between = np.nansum(count * (means - overall[:, np.newaxis]) ** 2, axis=1)
        within = (filled**2).sum(axis=1) - n * overall**2 - between
        ratio = between / (days - 1) / (within / (n - days))
        p = fdtrc(np.maximum(days - 1, 1), np.maximum(n - days, 1), ratio)
    return np.where((n >= MIN_DAYS) & (days > 1) & (within > 0), p, 1.0), means, ratio


def _shares(away: Array, common: Array) -> Array:
    """Return how much of the common cycle each series has, of shape (series, 1)."""
    known = np.isfinite(away)
    with np.errstate(all="ignore"):
        n = known.sum(axis=1)
        weight = known @ common**2 - (known @ common) ** 2 / n
        filled = np.where(known, away, 0.0)
        own = (filled @ common - filled.sum(axis=1) * (known @ common) / n) / weight
        error = 1.0 / weight
        usual = np.nanmedian(own)
        between = max((MAD_TO_SD * np.nanmedian(np.abs(own - usual))) ** 2 - float(np.nanmedian(error)), 0.0)
        shrunk = usual + between / (between + error) * (own - usual)
    return np.asarray(np.nan_to_num(shrunk, nan=float(usual)))[:, np.newaxis]
