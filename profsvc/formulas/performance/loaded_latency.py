"""Time of a launch from the latency of its warps and the rate of its units: Little's law with a queue.

With few warps, each waits only for itself, and the time is their latency over the number of warps. With many, the
busiest unit sets the time. Between both, requests queue, and the latency is a loaded one.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from profsvc.formulas.numerics.arrays import (
    RELATIVE_TOLERANCE,
    Array,
    Flagged,
    Mask,
    arrays,
    flagged,
    floats,
    is_implausible,
    mask,
)
from profsvc.formulas.numerics.flags import Flag


class Rounds(NamedTuple):
    """Rounds of blocks one after another, blocks of the busiest SM at a time, and its blocks over all rounds."""

    rounds: Array
    resident: Array
    of_busiest: Array
    flags: Mask


def loaded_time(latency_time: ArrayLike, least_time: ArrayLike, queueing: ArrayLike = 0.0) -> Flagged:
    r"""Time of work whose latency rises with the load of the busiest unit.

    .. math:: T = L \Bigl(1 + k \frac{\rho}{1 - \rho}\Bigr), \quad \rho = \frac{P}{T}
              \quad\Rightarrow\quad (T - L)(T - P) = k L P

    Without a queue (k = 0) it is the larger of both: throughput is the smaller of the peak and of the requests under
    way over their latency.

    Source: [Little1961], N = X W; [Lazowska1984] chapter 5 for the bounds, and the waiting time of a queue by its
    utilization, :math:`\rho / (1 - \rho)`; that k is measured once for a launch is this project's.

    Args:
        latency_time: Time of all rounds of warps if nothing waits for others, L [any unit of time].
        least_time: Time of the busiest unit at its peak, P [the same unit].
        queueing: Waiting in the queue at half load over the latency, k [1].

    Returns: Valued [the same unit].

    Range: at least the larger of both times, and with k up to 1 at most their sum. A number that is negative, NaN or
    inf: NaN, INPUT_SUSPECT.

    Errors: TypeError for a wrong dtype, ValueError for shapes that do not broadcast.

    Four times the work of the unit in latency, as much, and a quarter:

    >>> loaded_time([4.0, 1.0, 0.25], 1.0).value.tolist(), loaded_time([4.0, 1.0, 0.25], 1.0, 0.25).value.tolist()
    ([4.0, 1.0, 1.0], [4.302775637731995, 1.5, 1.0756939094329987])
    """
    L, P, k = floats(latency_time=latency_time, least_time=least_time, queueing=queueing)
    with np.errstate(all="ignore"):
        # Of the larger time plus what it is above it, which keeps k = 0 exact.
        apart = np.abs(L - P)
        product = 4 * k * L * P
        above = np.where(product == 0, 0.0, product / (np.sqrt(apart**2 + product) + apart) / 2)
        return flagged(np.maximum(L, P) + above, is_implausible(L, P, k))


def queueing_share(measured: ArrayLike, latency_time: ArrayLike, least_time: ArrayLike) -> Flagged:
    r"""Share of one measured time spent in queues; the inverse of `loaded_time`.

    .. math:: k = \frac{(T - L)(T - P)}{L P}

    Source: as `loaded_time`.

    Args:
        measured: Measured time, T [any unit of time].
        latency_time: Time of all rounds of warps if nothing waits for others, L [the same unit].
        least_time: Time of the busiest unit at its peak, P [the same unit].

    Returns: Valued [1].

    Range: 0 or more. A measured time below one of both: 0, RAW_OUT_OF_RANGE. No latency or no work of a unit: 0,
    NOT_APPLICABLE. A number that is negative, NaN or inf: NaN, INPUT_SUSPECT.

    Errors: TypeError for a wrong dtype, ValueError for shapes that do not broadcast.

    >>> queueing_share(1.5, 1.0, 1.0).value.item()
    0.25
    """
    T, L, P = floats(measured=measured, latency_time=latency_time, least_time=least_time)
    none = (L == 0) | (P == 0)
    with np.errstate(all="ignore"):
        k = np.where(none, 0.0, np.maximum(T - L, 0.0) * np.maximum(T - P, 0.0) / (L * P))
    below = np.maximum(L, P) * (1 - RELATIVE_TOLERANCE) > T
    return flagged(k, is_implausible(T, L, P), (Flag.NOT_APPLICABLE, none), (Flag.RAW_OUT_OF_RANGE, below & ~none))


def unloaded_wait(wait: ArrayLike, unloaded: ArrayLike, busy: ArrayLike) -> Flagged:
    r"""Part of a measured wait that remains if no other warp uses the unit.

    .. math:: \min(w, \max(u, w (1 - \rho)))

    A queue makes a wait longer than that of the idle unit, by :math:`1 / (1 - \rho)` at most, the waiting of a queue
    with one server.

    Source: [Lazowska1984] chapter 5; the bounds of the estimate are this project's.

    Args:
        wait: Measured wait, w [cycles].
        unloaded: Wait by the number of dependent requests and the latency of an idle unit, u [cycles].
        busy: Share of the time in which the unit was busy, rho [1].

    Returns: Valued [cycles].

    Range: [0, w]. A share above 1 counts as 1. A number that is negative, NaN or inf: NaN, INPUT_SUSPECT.

    Errors: TypeError for a wrong dtype, ValueError for shapes that do not broadcast.

    A wait twice as long as requests need, at an idle unit and at a busy one:

    >>> unloaded_wait(1400.0, 700.0, [0.0, 0.9]).value.tolist()
    [1400.0, 700.0]
    """
    w, u, rho = floats(wait=wait, unloaded=unloaded, busy=busy)
    with np.errstate(all="ignore"):
        least = w * (1 - np.minimum(rho, 1.0))
        return flagged(np.minimum(w, np.maximum(u, least)), is_implausible(w, u, rho))


def rounds_of(blocks: ArrayLike, sms: ArrayLike, resident: ArrayLike) -> Rounds:
    r"""Rounds in which blocks run, and the blocks of the busiest SM.

    .. math:: rounds = \Bigl\lceil \frac{B}{S\, b} \Bigr\rceil, \quad at\ a\ time = \min(b, \lceil B / S \rceil),
              \quad of\ the\ busiest = \lceil B / S \rceil

    Source: [Lemeire2017], insufficient parallelism.

    Args:
        blocks: Blocks of the grid, B [count].
        sms: SMs of the device, S [count].
        resident: Blocks that fit on an SM, b [count].

    Returns: Rounds [count].

    Range: 0 or more. No SMs, or no block that fits: NaN, ZERO_DENOM. A number that is negative, NaN or inf: NaN,
    INPUT_SUSPECT.

    Errors: TypeError for a wrong dtype, ValueError for shapes that do not broadcast.

    Blocks for half of the SMs, for one and a half times all, and for two rounds of two:

    >>> [x.tolist() for x in rounds_of([66, 198, 528], 132, 2)[:3]]
    [[1.0, 1.0, 2.0], [1.0, 2.0, 2.0], [1.0, 2.0, 4.0]]
    """
    B, S, b = floats(blocks=blocks, sms=sms, resident=resident)
    bad, zero = is_implausible(B, S, b), (S == 0) | (b == 0)
    with np.errstate(all="ignore"):
        of_busiest = np.ceil(B / S)
        results = (np.ceil(of_busiest / b * (1 - RELATIVE_TOLERANCE)), np.minimum(b, of_busiest), of_busiest)
    flags = mask((Flag.INPUT_SUSPECT, bad), (Flag.ZERO_DENOM, zero & ~bad))
    return Rounds(*arrays(*(np.where(bad | zero, np.nan, x) for x in results), flags))


def scheduler_imbalance(warps: ArrayLike, schedulers: ArrayLike) -> Flagged:
    r"""Warps of the busiest scheduler of an SM over their mean: what its issue slots take longer for.

    .. math:: \frac{\lceil N / s \rceil s}{N}

    Source: NVIDIA's tuning guides: a warp stays with the scheduler that it was given to.

    Args:
        warps: Warps resident on an SM, N [count].
        schedulers: Schedulers of an SM, s [count].

    Returns: Valued [1].

    Range: 1 or more; s for one warp. No warps or no schedulers: NaN, ZERO_DENOM. A number that is negative, NaN or
    inf: NaN, INPUT_SUSPECT.

    Errors: TypeError for a wrong dtype, ValueError for shapes that do not broadcast.

    >>> scheduler_imbalance([1, 2, 6, 8], 4).value.tolist()
    [4.0, 2.0, 1.3333333333333333, 1.0]
    """
    n, s = floats(warps=warps, schedulers=schedulers)
    zero = (n == 0) | (s == 0)
    with np.errstate(all="ignore"):
        value = np.where(zero, np.nan, np.ceil(n / s * (1 - RELATIVE_TOLERANCE)) * s / n)
    return flagged(value, is_implausible(n, s), (Flag.ZERO_DENOM, zero))
