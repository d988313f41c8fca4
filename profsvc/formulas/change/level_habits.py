"""What a series does without being changed: excursions to other levels and back, and trends."""

from typing import NamedTuple

import numpy as np

from profsvc.formulas.numerics.arrays import Array
from profsvc.formulas.numerics.series import Index, Series, codes_of, difference_sd, lengths, medians, without_spikes

JUMP_SD = 4.0  # adjacent values further apart may be on two levels
APART_SD = 3.0  # levels further apart are two
RATES = np.array(
    [0.0, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.4]
)  # excursions that begin in a night, of series that make them
MIN_USUAL_SHARE = 0.8  # of the values, near the median: it is the usual level
MAX_STEPS = 200  # of the estimate of how frequent each rate is
MIN_SQUARED_TREND = 40  # values from which a trend may be bent
MIN_BEFORE, MIN_AFTER = 5, 3  # values of a level
MIN_SLOPE_SE = 1.3  # slope on both sides of the step, in its direction, over its standard error
STEP_GAIN = 4.0  # in twice the logarithm of the likelihood, that a step must fit better: its place is chosen too


class Excursions(NamedTuple):
    """Stretches away from the usual level, with a return, of series that resemble each other."""

    begun: Index  # number, of each series
    nights: Index  # of each series
    length: Index  # of each excursion, in nights, ascending


class Trend(NamedTuple):
    """A trend of one series."""

    fitted: Array
    better: bool  # than any step


def excursions(series: Series) -> Excursions:
    """Return the stretches of two values or more that lie on one side of the values before and after them.

    Where one level is the usual one, stretches at it are not excursions.

    What begins in the same night in far more series than usual is one event of all of them, and no habit of each.
    """
    nights = lengths(series)
    series = without_spikes(series)
    codes, sd = codes_of(series), difference_sd(series)
    if not series.x.size:
        return Excursions(np.zeros(nights.size, dtype=np.intp), nights, np.zeros(0, dtype=np.intp))
    same = np.r_[False, codes[1:] == codes[:-1]]
    jump = same & (np.abs(np.diff(series.x, prepend=np.nan)) >= JUMP_SD * sd[codes]) & (sd[codes] > 0)
    begins = ~same | jump
    stretch = np.cumsum(begins) - 1
    first = np.flatnonzero(begins)
    own, length = codes[first], np.diff(np.append(first, series.x.size))
    level = medians(series.x, stretch, first.size)
    rise = np.diff(level, prepend=np.nan)
    fall = -np.append(rise[1:], np.nan)
    inside = np.r_[False, own[1:] == own[:-1]] & np.r_[own[1:] == own[:-1], False]
    with np.errstate(invalid="ignore"):
        far = np.minimum(np.abs(rise), np.abs(fall)) >= APART_SD * sd[own]
        back = inside & far & (np.sign(rise) == np.sign(fall)) & (length > 1)
    center = medians(series.x, codes, nights.size)
    near = np.abs(series.x - center[codes]) < APART_SD / 2 * sd[codes]
    usual_level = np.bincount(codes, near, nights.size) >= MIN_USUAL_SHARE * lengths(series)
    back &= ~(usual_level[own] & (np.abs(level - center[own]) < APART_SD / 2 * sd[own]))
    at = first - series.start[own]
    started = np.bincount(at[back], minlength=int(nights.max()))
    usual = np.median(started[1:]) if started.size > 1 else 0.0
    back &= started[at] <= 4 * usual + 3
    return Excursions(np.bincount(own[back], minlength=nights.size), nights, np.sort(length[back]))


def excursion_rates(seen: Excursions) -> Array:
    """Return how many excursions each series begins in a night, as its own nights and those of its siblings say.

    How frequent each of `RATES` is among the siblings is estimated by expectation and maximization.
    """
    if not seen.length.size:
        return np.zeros(seen.begun.size)
    k, n = seen.begun[:, np.newaxis], seen.nights[:, np.newaxis]
    with np.errstate(divide="ignore", invalid="ignore"):
        likelihood = np.where(k > 0, k * np.log(RATES), 0.0) - RATES * n
    likelihood = np.exp(likelihood - likelihood.max(axis=1, keepdims=True))
    weight = np.full(RATES.size, 1.0 / RATES.size)
    for _ in range(MAX_STEPS):
        share = likelihood * weight
        share /= share.sum(axis=1, keepdims=True)
        weight = share.mean(axis=0)
    return np.asarray(share @ RATES)


def lasting_share(seen: Excursions, nights: Index) -> Array:
    """Return the share of excursions that last so many nights at least; beyond the longest it falls by its square."""
    if not seen.length.size:
        return np.zeros(np.shape(nights))
    longest, many = seen.length[-1], seen.length.size + 1.0
    longer = seen.length.size - np.searchsorted(seen.length, nights, side="left")
    beyond = np.minimum(longest / np.maximum(nights, 1), 1.0) ** 2
    return np.asarray((longer + 0.5 * beyond) / many)


def trend(x: Array) -> Trend:
    """Return the line, or the parabola of a long series, and whether it fits better than a step does anywhere."""
    n = x.size
    place = np.linspace(-1.0, 1.0, n)
    fitted = np.polynomial.polynomial.polyval(
        place, np.polynomial.polynomial.polyfit(place, x, 2 if n >= MIN_SQUARED_TREND else 1)
    )
    left = float(((x - fitted) ** 2).sum())
    about = x - x.mean()
    m = np.arange(1.0, n)
    explained = np.cumsum(about)[:-1] ** 2 * (1 / m + 1 / (n - m))
    inside = explained[MIN_BEFORE - 1 : n - MIN_AFTER]
    if not inside.size:
        return Trend(np.asarray(fitted), False)
    split = MIN_BEFORE + int(inside.argmax())
    better = left <= ((about**2).sum() - inside.max()) * np.exp(STEP_GAIN / n)
    return Trend(np.asarray(fitted), bool(better and _slope_beside_step(x, place, split) >= MIN_SLOPE_SE))


def _slope_beside_step(x: Array, place: Array, split: int) -> float:
    """Return the slope that both sides of a step share over its standard error, positive in the step's direction."""
    y, t = (np.concatenate([side - side.mean() for side in np.split(values, [split])]) for values in (x, place))
    slope = float((t * y).sum() / (t**2).sum())
    variance = float(((y - slope * t) ** 2).sum()) / max(x.size - 3, 1) / float((t**2).sum())
    rise = float(x[split:].mean() - x[:split].mean())
    return float(np.sign(rise) * slope / np.sqrt(variance)) if variance > 0 else float(np.sign(rise * slope) * np.inf)
