r"""Work that counters prove to be avoidable, or do not prove to be: conversions, expanded functions, single sectors.

`profsvc.formulas.performance.useful_work` needs the useful part of the work. These formulas find it where the result
of an instruction is used, but a cheaper instruction gives it as well.
"""

import numpy as np
from numpy.typing import ArrayLike

from profsvc.formulas.numerics.arrays import Array, floats


def excess_conversions(conversions: ArrayLike, values: ArrayLike) -> Array:
    r"""Conversions between types beyond one for each value that was loaded or stored, or that tensor cores gave.

    .. math:: C_{excess} = \max(0, C - V)

    A value takes at least one byte in memory, so no more than the bytes had another type there. Further conversions are
    of values that already were converted, or of results: range reduction, or arithmetic in a type that no operand has.

    Source: own model.

    Args:
        conversions: Conversions C of all threads [count]; NaN counts as 0.
        values: Values V: bytes that threads loaded and stored, and results of tensor cores [count]; NaN counts as 0.

    Returns: conversions, of the common shape.

    Range: [0, conversions].

    Errors: TypeError for a wrong dtype, ValueError for shapes that do not broadcast.

    64 steps that convert to double precision and back, for 4 bytes in and out; an image of bytes:

    >>> excess_conversions([256.0, 1.0], [8.0, 5.0]).tolist()
    [248.0, 0.0]
    """
    C, V = floats(conversions=conversions, values=values)
    return np.clip(np.nan_to_num(C) - np.nan_to_num(V), 0, None)


def expanded_arithmetic(arithmetic: ArrayLike, conversions: ArrayLike, length: float = 18.0) -> Array:
    r"""Floating-point instructions that belong to the expansion of accurate library functions.

    .. math:: A_{expanded} = C \, L \, \min\Bigl(1, \frac{A}{C L}\Bigr)^2

    An accurate power, logarithm or sine reduces its argument with conversions to an integer and back, and evaluates a
    polynomial of about L instructions for each; the fast form is one instruction of the special function unit. Less
    arithmetic than L for a conversion leaves room for fewer polynomials than there are conversions.

    Source: own model; the accurate and the fast functions are those of [CudaGuide2025].

    Args:
        arithmetic: Single precision instructions A of all threads [count]; NaN counts as 0.
        conversions: Excess conversions C of the kernel, see `excess_conversions` [count]; NaN counts as 0.
        length: Instructions L of the polynomial and the special cases for each conversion [count].

    Returns: instructions, of the common shape.

    Range: [0, arithmetic].

    Errors: TypeError for a wrong dtype, ValueError for shapes that do not broadcast.

    A logarithm with 20 instructions a conversion, and products of values that are converted before each use:

    >>> expanded_arithmetic([2000.0, 200.0], [100.0, 100.0]).round(1).tolist()
    [1800.0, 22.2]
    """
    A, C = floats(arithmetic=arithmetic, conversions=conversions)
    A, polynomials = np.nan_to_num(A), np.nan_to_num(C) * length
    with np.errstate(all="ignore"):
        room = np.where(polynomials > 0, np.minimum(1.0, A / polynomials), 0.0)
    return np.asarray(polynomials * room**2, dtype=np.float64)


def single_sector_share(sectors: ArrayLike, requests: ArrayLike) -> Array:
    r"""Share of the sectors that L1 asked L2 for one at a time, at least.

    .. math:: \sigma = \frac{2}{r} - 1, \qquad r = S / Q

    A request to L2 covers one line: four sectors of a coalesced access, two or more of a short stride, one of an access
    to an unrelated place. With r sectors for a request, of which each has one or two, the share is as above; with
    requests of more sectors among them it is larger.

    Source: own model.

    Args:
        sectors: Sectors S that L1 asked L2 for [count].
        requests: Requests Q that carried them [count].

    Returns: shares, of the common shape.

    Range: [0, 1]; 0 where unknown.

    Errors: TypeError for a wrong dtype, ValueError for shapes that do not broadcast.

    Random gathers; records of 48 bytes; rows:

    >>> single_sector_share([104.0, 267.0, 400.0], [100.0, 100.0, 100.0]).round(2).tolist()
    [0.92, 0.0, 0.0]
    """
    S, Q = floats(sectors=sectors, requests=requests)
    with np.errstate(all="ignore"):
        share = 2 * Q / S - 1
    return np.asarray(np.clip(np.nan_to_num(share, posinf=0.0), 0, 1), dtype=np.float64)
