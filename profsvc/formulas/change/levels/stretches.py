"""How probable it is that a series leaves its level for a few values without a change, as its siblings say."""

from typing import NamedTuple

import numpy as np

from profsvc.formulas.change.noise.siblings import MIN_SIBLINGS
from profsvc.formulas.numerics.arrays import Array
from profsvc.formulas.numerics.series import Index, Series, codes_of, difference_sd, lengths, medians

JUMP_SD = 4.0  # adjacent values further apart may be on two levels


class Stretches(NamedTuple):
    """What the values of a series and its siblings say together, of shape (series,)."""

    values: Array  # of all of them; 0: too few siblings
    begun: Array  # stretches away from the level, with a return
    stayed: Array  # values in them beside the first


def stretches_of_siblings(series: Series, family: Index, smallest: Array) -> Stretches:
    """Return how often the series of each family leave their level, of one value or more, and come back.

    Of two adjacent stretches the longer one is the level.

    Source: own model.

    Args:
        series: Values.
        family: Number of the family of each series.
        smallest: The least distance from the level that counts, of each series [as the value].

    Returns: Stretches; each series has the counts of its family.

    Range: counts from 0; all 0 for families of fewer than ten series.

    Ten series of nine values; one has two values elsewhere:

    >>> x = np.tile([1.0, 1.1, 1.0, 1.1, 1.0, 1.1, 1.0, 1.1, 1.0], 10)
    >>> x[3:5] += 5.0
    >>> ten = Series(x, x * 0, np.arange(90), np.arange(0, 90, 9), np.arange(9, 99, 9))
    >>> [float(part[0]) for part in stretches_of_siblings(ten, np.zeros(10, dtype=np.intp), np.zeros(10))]
    [90.0, 1.0, 1.0]
    """
    n, codes = lengths(series), codes_of(series)
    size = n.size
    begun: Array = np.zeros(size)
    stayed: Array = np.zeros(size)
    if series.x.size:
        same = np.r_[False, codes[1:] == codes[:-1]]
        bound = np.fmax(JUMP_SD * np.nan_to_num(difference_sd(series)), smallest)
        begins = ~same | (np.abs(np.diff(series.x, prepend=np.nan)) >= bound[codes])
        first = np.flatnonzero(begins)
        own, length = codes[first], np.diff(np.append(first, series.x.size))
        level = medians(series.x, np.cumsum(begins) - 1, first.size)
        rise = np.diff(level, prepend=np.nan)
        fall = -np.append(rise[1:], np.nan)
        inside = np.r_[False, own[1:] == own[:-1]] & np.r_[own[1:] == own[:-1], False]
        with np.errstate(invalid="ignore"):
            back = inside & (np.sign(rise) == np.sign(fall)) & (np.minimum(np.abs(rise), np.abs(fall)) >= bound[own])
        # Of two adjacent stretches one is the level: the longer one.
        back &= length <= np.fmin(np.append(np.nan, length[:-1]), np.append(length[1:], np.nan))
        begun = np.bincount(own[back], minlength=size).astype(np.float64)
        stayed = np.asarray(np.bincount(own[back], length[back] - 1, size), dtype=np.float64)
    members = np.bincount(family)
    enough = (members >= MIN_SIBLINGS)[family]
    sums = (np.bincount(family, part, members.size)[family] for part in (n.astype(np.float64), begun, stayed))
    return Stretches(*(np.where(enough, part, 0.0) for part in sums))


def stretch_probability(stretches: Stretches, m: Array) -> Array:
    r"""Probability that a stretch of m values or more begins at a value.

    .. math:: P = \frac{k + 1/2}{N + 1} \cdot
              \frac{B(s + 1/2 + m - 1,\; k + 1/2)}{B(s + 1/2,\; k + 1/2)}

    k stretches began among N values and stayed for s values more; each value ends a stretch with the same probability,
    which is integrated over (Jeffreys' prior).

    Source: own model.

    Args:
        stretches: Counts, of shape (series,).
        m: Values of the stretch, of shape (series, windows).

    Returns: the probability [1].

    Range: 1 where there are too few siblings.

    >>> counts = Stretches(np.array([199.0]), np.array([0.0]), np.array([0.0]))
    >>> stretch_probability(counts, np.array([[2.0, 3.0]])).round(5).tolist()
    [[0.00125, 0.00094]]
    """
    from scipy.special import betaln

    values, begun, stayed = (part[:, np.newaxis] for part in stretches)
    stay, leave = stayed + 0.5, begun + 0.5
    long = np.exp(betaln(stay + m - 1.0, leave) - betaln(stay, leave))
    return np.where(values > 0, leave / (values + 1.0) * long, 1.0)
