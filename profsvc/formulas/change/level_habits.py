"""What a series does without being changed: excursions to other levels and back."""

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
GEOMETRIC = 10.0  # excursions of which nothing but a constant chance to end is known, beside those that were seen
MAX_STEPS = 200  # of the estimate of how frequent each rate is


class Excursions(NamedTuple):
    """Stretches away from the usual level, with a return, of series that resemble each other."""

    begun: Index  # number, of each series
    nights: Index  # of each series
    length: Index  # of each excursion, in nights, ascending
    room: Index  # nights that each could have lasted and still been seen to end


def excursions(series: Series, smallest: Array | float = 0.0) -> Excursions:
    """Return the stretches of two values or more that lie on one side of the values before and after them.

    Where one level is the usual one, stretches at it are not excursions.

    ``smallest``: the least distance from a level that counts, of each series in the unit of its values.

    What begins in the same night in far more series than usual is one event of all of them, and no habit of each.
    """
    nights = lengths(series)
    series = without_spikes(series)
    codes, sd = codes_of(series), np.fmax(difference_sd(series), np.asarray(smallest) / APART_SD)
    if not series.x.size:
        none = np.zeros(0, dtype=np.intp)
        return Excursions(np.zeros(nights.size, dtype=np.intp), nights, none, none)
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
    lasted, room = length[back], (series.stop[own] - first - 1)[back]
    order = np.argsort(lasted, kind="stable")
    return Excursions(np.bincount(own[back], minlength=nights.size), nights, lasted[order], room[order])


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
