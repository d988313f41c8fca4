r"""Where the time of a launch goes: idle SMs, issued instructions, and stalls by what the warps waited for.

Every cycle of every scheduler is one of three: its SM was idle, it issued an instruction, or no warp could issue.
A cycle without an issue is blamed on what the stalled warps waited for, in proportion to their number:

.. math:: 1 = b_{ramp} + b_{idle} + b_{issue} + \sum_r b_r

All budgets are shares of the elapsed time, averaged over the schedulers of the device.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from profsvc.formulas.numerics.arrays import Array, floats


class IdleTime(NamedTuple):
    """Result of `idle_time`, shares of the elapsed time."""

    ramp: Array
    small_grid: Array
    tail: Array
    imbalance: Array


class Interval(NamedTuple):
    """Result of `saving_interval`, shares of the elapsed time."""

    low: Array
    high: Array


class WaitParts(NamedTuple):
    """Result of `wait_parts`, of the unit of the wait."""

    waste: Array
    useful: Array
    latency: Array


def idle_time(
    elapsed: ArrayLike,
    active_max: ArrayLike,
    active_mean: ArrayLike,
    waves: ArrayLike,
    blocks: ArrayLike,
    sms: ArrayLike,
) -> IdleTime:
    r"""Time in which SMs had no warp, split by why.

    .. math::
        b_{ramp} = 1 - \frac{A_{max}}{E}, \qquad b_{idle} = \frac{A_{max} - \bar A}{E}

        b_{grid} = \min\Bigl(b_{idle}, 1 - \frac{B}{M}\Bigr), \qquad
        b_{tail} = \min\Bigl(b_{idle} - b_{grid}, \frac{\lceil w \rceil - w}{\lceil w \rceil}\Bigr)
        \quad (w > 1), \qquad b_{imbalance} = b_{idle} - b_{grid} - b_{tail}

    A grid of fewer blocks B than SMs M leaves SMs without work; a last, partial wave of equal blocks leaves the share
    of the slots that it does not fill; what is left comes from blocks of unequal length.

    Source: own model; the ratio of active cycles is criterion E of [FineGrained2016].

    Args:
        elapsed: Elapsed cycles E of an SM [cycles].
        active_max: Active cycles of the SM that worked longest [cycles].
        active_mean: Mean of the active cycles of all SMs [cycles].
        waves: Waves w of blocks per SM [1]; NaN where unknown, then a tail counts as imbalance.
        blocks: Blocks B of the grid [count].
        sms: SMs M of the device [count].

    Returns: four shares of the elapsed time, of the common shape.

    Range: [0, 1], their sum is at most 1; NaN where the cycles are unknown.

    Errors: TypeError for a wrong dtype, ValueError for shapes that do not broadcast.

    140 equal blocks on 132 SMs that hold one each: the second wave has 8 blocks.

    >>> parts = idle_time([1000.0], [990.0], [525.0], [140 / 132], [140.0], [132.0])
    >>> [round(float(part[0]), 3) for part in parts]
    [0.01, 0.0, 0.465, 0.0]
    """
    E, most, mean, w, B, M = floats(
        elapsed=elapsed, active_max=active_max, active_mean=active_mean, waves=waves, blocks=blocks, sms=sms
    )
    with np.errstate(all="ignore"):
        ramp = np.clip(1 - most / E, 0, 1)
        idle = np.clip((most - mean) / E, 0, 1 - ramp)
        small = np.where(B < M, np.minimum(idle, 1 - B / M), 0.0)
        tail = np.where(w > 1, (np.ceil(w) - w) / np.ceil(w), 0.0)
        tail = np.minimum(np.nan_to_num(tail), idle - small)
    return IdleTime(ramp, small, tail, idle - small - tail)


def stall_time(active: ArrayLike, issued: ArrayLike, waits: ArrayLike) -> Array:
    r"""Time in which no warp of a scheduler could issue, by what its warps waited for.

    .. math:: b_r = (a - i) \, \frac{C_r}{\sum_s C_s}

    Source: own model; the states are those of the warp state statistics of [NsightCompute].

    Args:
        active: Share a of the elapsed time in which the SMs held a warp [1].
        issued: Share i of the issue slots of the elapsed time that were used [1].
        waits: Warp cycles C_r by reason r, on the last axis [cycles], without the states selected and not selected:
            those warps could issue. NaN counts as 0.

    Returns: shares of the elapsed time, of the shape of ``waits``.

    Range: [0, 1], their sum over the reasons is a - i; 0 where no warp waited for anything.

    Errors: TypeError for a wrong dtype, ValueError for shapes that do not broadcast.

    >>> stall_time([0.9], [0.3], [[30.0, 10.0, 0.0]]).round(3).tolist()
    [[0.45, 0.15, 0.0]]
    """
    a, i = floats(active=active, issued=issued)
    (C,) = floats(waits=waits)
    C = np.nan_to_num(C)
    total = C.sum(axis=-1, keepdims=True)
    with np.errstate(all="ignore"):
        shares = np.where(total > 0, C / total, 0.0)
    return np.asarray(np.clip(a - i, 0, None)[..., np.newaxis] * shares, dtype=np.float64)


def wait_parts(wait: ArrayLike, utilization: ArrayLike, waste: ArrayLike) -> WaitParts:
    r"""A wait for a unit, split into the queue before it and the latency that a single request has as well.

    .. math:: q = u \, b, \qquad b_{waste} = w \, q, \qquad b_{useful} = (1 - w) \, q, \qquad b_{latency} = b - q

    A unit that is busy for a share u of the time makes a request wait for others in that share of its wait; what of
    the unit's work is waste would not be in the queue.

    Source: own model, after the utilization law of [Lazowska1984].

    Args:
        wait: Time b that warps waited for the unit [of the result].
        utilization: Share u of the time in which the unit was busy [1]; NaN counts as 0.
        waste: Share w of its work that was waste [1]; NaN counts as 0.

    Returns: three parts of the wait, of the common shape.

    Range: [0, wait]; their sum is ``wait``.

    Errors: TypeError for a wrong dtype, ValueError for shapes that do not broadcast.

    >>> [round(float(part), 3) for part in wait_parts(0.5, 0.8, 0.75)]
    [0.3, 0.1, 0.1]
    """
    b, u, w = floats(wait=wait, utilization=utilization, waste=waste)
    queue = b * np.clip(np.nan_to_num(u), 0, 1)
    wasted = queue * np.clip(np.nan_to_num(w), 0, 1)
    return WaitParts(wasted, queue - wasted, b - queue)


def saving_interval(saving: ArrayLike, loss: ArrayLike, proven: ArrayLike, error: ArrayLike) -> Interval:
    r"""Limits of what removing one cause saves, when the ideal time is known within a factor.

    .. math:: \delta_{-} = (1 - \ell) (f - 1), \qquad \delta_{+} = (1 - \ell) \Bigl(1 - \frac{1}{f}\Bigr)

        low = \max(0, s - \delta_{-}), \quad high = \min(1, s + \delta_{+}) \text{ if proven, else }
        low = 0, \quad high = \min(1, 2 s + \delta_{+})

    The loss is 1 - T_ideal / T, and so uncertain as the ideal time is; the whole of that may belong to this cause. Of
    work that counters do not prove to be avoidable the middle counts: none of it, or all, which is twice as much.

    Source: own model.

    Args:
        saving: Share s of the time that is attributed to the cause [1].
        loss: Share l of the time that the launch takes beyond its ideal time [1].
        proven: 1 where counters prove that the work of the cause is avoidable, 0 where they only count it.
        error: Factor f within which the ideal time is known, above 1 [1]; closer to 1 for a cause whose own time
            was measured.

    Returns: Interval.

    Range: [0, 1], low at most ``saving``, high at least; NaN where the loss is unknown.

    Errors: TypeError for a wrong dtype, ValueError for shapes that do not broadcast.

    Half of the time is lost, 30 % to one cause; the ideal time is known within 20 %:

    >>> interval = saving_interval(0.3, 0.5, 1.0, 1.2)
    >>> round(float(interval.low), 3), round(float(interval.high), 3)
    (0.2, 0.383)
    """
    share, lost, known, f = floats(saving=saving, loss=loss, proven=proven, error=error)
    low = np.where(known > 0, np.clip(share - (1 - lost) * (f - 1), 0, None), 0.0 * share * lost)
    most = np.where(known > 0, share, 2 * share)
    return Interval(low, np.fmin(most + (1 - lost) * (1 - 1 / f), np.where(np.isnan(lost), np.nan, 1.0)))
