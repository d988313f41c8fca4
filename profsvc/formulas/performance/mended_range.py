"""What a mended kernel achieves of its potential: a range from how close mended kernels came to theirs."""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from profsvc.formulas.numerics.arrays import Array, arrays, floats, is_implausible


class SpeedupRange(NamedTuple):
    """Ends of the range in which what is achieved lies."""

    low: Array
    high: Array


def mended_range(potential: ArrayLike, least_exponent: ArrayLike, largest_factor: ArrayLike) -> SpeedupRange:
    r"""Range of the speedups that mending a kernel achieves, from how close mended kernels came to their potential.

    .. math:: S_{low} = S^{k} \qquad S_{high} = h\,S

    Who mends a kernel leaves a part of the waste, so the low end is a power of the potential: of a large gain more is
    missing than of a small one, and no gain has none missing. The ideal time is too long by a factor, which is the
    same whatever the potential.

    Source: this project; the exponent and the factor are quantiles over pairs of kernels.

    Args:
        potential: Potential speedup S [1].
        least_exponent: Share k of its logarithm that is achieved at least [1].
        largest_factor: Factor h by which it is exceeded at most [1].

    Returns: SpeedupRange.

    Range: 1 <= low <= potential <= high. NaN where the potential or the factor lies below 1, or the exponent outside
    [0, 1].

    Errors: TypeError for a wrong dtype, ValueError for shapes that do not broadcast.

    >>> low, high = mended_range(4.0, 0.5, 1.25)
    >>> float(low), float(high)
    (2.0, 5.0)
    """
    S, k, h = floats(potential=potential, least_exponent=least_exponent, largest_factor=largest_factor)
    with np.errstate(all="ignore"):
        bad = is_implausible(S, k, h) | (S < 1) | (k > 1) | (h < 1)
        low, high = (np.where(bad, np.nan, end) for end in (S**k, S * h))
    return SpeedupRange(*arrays(low, high))
