"""Work split between a CPU and a GPU: time, energy, and the share of the GPU that is best."""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from profsvc.formulas.numerics.arrays import Array, Mask, arrays, floats, is_implausible, mask
from profsvc.formulas.numerics.flags import AS_PUBLISHED, CONSISTENT, Flag, check_form

OBJECTIVES = {"time": (0, 1), "energy": (1, 0), "edp": (1, 1), "ed2p": (1, 2)}
"""Powers of energy and of time whose product shall be least."""


class Split(NamedTuple):
    """Time and energy of a split, and what it gains over the CPU alone."""

    time_s: Array
    energy_j: Array
    speedup: Array
    efficiency: Array
    time_cpu_s: Array
    time_gpu_s: Array
    flags: Mask


class BestSplit(NamedTuple):
    """Best share of the GPU, and the resulting time and energy."""

    share: Array
    time_s: Array
    energy_j: Array
    speedup: Array
    efficiency: Array
    flags: Mask


class ShareErrors(NamedTuple):
    """Differences of the shares of a model from the best shares found by search."""

    relative_mean: Array
    relative_max: Array
    points_mean: Array
    points_max: Array
    flags: Mask


@np.errstate(all="ignore")
def share_errors(model: ArrayLike, best: ArrayLike) -> ShareErrors:
    r"""Errors of modelled shares of the work, relative to the best share and in points.

    .. math:: \overline{|m - b| / b}, \qquad \overline{|m - b|}

    Source: [Hong2012] figure 147, whose "within 17 %" is the mean of the relative errors; the largest is 92 %.

    Args:
        model: Shares by a model, one program per place on the last axis [1 or %].
        best: Shares that were best when all were tried, in the same unit.

    Returns: ShareErrors; the relative ones [1], those in points in the unit of the shares.

    Range: 0 or more, without the last axis. A best share of 0 leaves the relative errors NaN, ZERO_DENOM. No program,
    or a number that is negative, NaN or inf: NaN, INPUT_SUSPECT.

    Errors: TypeError for a wrong dtype, ValueError for shapes that do not broadcast.

    >>> found = share_errors([50.0, 90.0], [40.0, 90.0])
    >>> float(found.relative_mean), float(found.relative_max), float(found.points_mean)
    (0.125, 0.25, 5.0)
    """
    m, b = (np.atleast_1d(x) for x in floats(model=model, best=best))
    bad = is_implausible(m, b).any(axis=-1) | (m.shape[-1] == 0)
    none = (b == 0).any(axis=-1) & ~bad
    points = np.abs(m - b)
    found = [
        np.where(bad | (none & (x is not points)), np.nan, reduced)
        for x in (points / b, points)
        for reduced in (x.sum(axis=-1) / m.shape[-1], x.max(axis=-1, initial=0.0))
    ]
    return ShareErrors(*arrays(*found, mask((Flag.INPUT_SUSPECT, bad), (Flag.ZERO_DENOM, none))))


@np.errstate(all="ignore")
def split(
    data: ArrayLike,
    share: ArrayLike,
    rate_cpu: ArrayLike,
    rate_gpu: ArrayLike,
    dyn_cpu_w: ArrayLike,
    dyn_gpu_w: ArrayLike,
    idle_w: ArrayLike,
    transfer_s: ArrayLike = 0.0,
    idle_fraction: ArrayLike = 0.0,
    form: str = CONSISTENT,
) -> Split:
    r"""Time and energy when a share of the data goes to the GPU and the rest to the CPU.

    .. math:: T_C = \frac{(1-x) D}{r_C}, \quad T_G = x D \Bigl(\frac{1}{r_G} + \tau\Bigr), \quad T = \max(T_C, T_G)
    .. math:: E = \sum_{d \in \{C, G\}} P_d \bigl(T_d + g\,(T - T_d)\bigr) + B\,T

    ``as_published`` has both dynamic powers on all the time (g = 1), also that of a device without data; ``consistent``
    has a device that is done cost only its part of B. Compared with the CPU alone, (P_C + B) D / r_C.

    Source: equations (110) to (114) of [Hong2012]; the transfer is in its text only, and left out as published.

    Args:
        data: Data D [data].
        share: Share x of the GPU [1].
        rate_cpu: Data rate of the CPU, of `energy.rate` [data/s].
        rate_gpu: That of the GPU [data/s].
        dyn_cpu_w: Dynamic power of the CPU at work [W].
        dyn_gpu_w: That of the GPU [W].
        idle_w: Power B of the box at rest with both in it [W].
        transfer_s: Time to move one piece of data to the GPU and back, tau [s/data].
        idle_fraction: Share g of its dynamic power that a device consumes when it is done, such as a host thread that
            waits busily [1].
        form: ``consistent`` or ``as_published``.

    Returns: Split; ``efficiency`` is energy of the CPU alone over energy.

    Range: >= 0. A device without data takes no time, whatever its rate; one with data and no rate, or a time or energy
    of 0 in a ratio: NaN with ZERO_DENOM. NaN with INPUT_SUSPECT where an argument is negative, NaN or inf, or the share
    or the fraction is above 1.

    Errors: TypeError for a wrong dtype, ValueError for shapes that do not broadcast or an unknown form.

    A GPU three times as fast that draws twice the power, in a box of 50 W:

    >>> result = split(100.0, [0.0, 0.75, 1.0], 1.0, 3.0, 50.0, 100.0, 50.0)
    >>> result.speedup.round(2).tolist(), result.efficiency.round(2).tolist()
    ([1.0, 4.0, 3.0], [1.0, 2.0, 2.0])
    """
    check_form(form)
    D, x, r_C, r_G, P_C, P_G, B, tau, g = floats(
        data=data, share=share, rate_cpu=rate_cpu, rate_gpu=rate_gpu, dyn_cpu_w=dyn_cpu_w, dyn_gpu_w=dyn_gpu_w,
        idle_w=idle_w, transfer_s=transfer_s, idle_fraction=idle_fraction,
    )  # fmt: skip
    bad = is_implausible(D, x, r_C, r_G, P_C, P_G, B, tau, g) | (x > 1) | (g > 1)
    if form == AS_PUBLISHED:
        tau, g = np.zeros_like(tau), np.ones_like(g)
    to_cpu, to_gpu = (1 - x) * D, x * D
    T_C = np.where(to_cpu == 0, 0.0, to_cpu / r_C)
    T_G = np.where(to_gpu == 0, 0.0, to_gpu / r_G + tau * to_gpu)
    T = np.maximum(T_C, T_G)
    E = P_C * (T_C + g * (T - T_C)) + P_G * (T_G + g * (T - T_G)) + B * T
    T_alone = np.where(D == 0, 0.0, D / r_C)
    S, gain = T_alone / T, (P_C + B) * T_alone / E
    never = np.isinf(T)
    T, E, T_C, T_G = (np.where(bad | never, np.nan, found) for found in (T, E, T_C, T_G))
    S, gain = (np.where(bad | ~np.isfinite(ratio), np.nan, ratio) for ratio in (S, gain))
    flags = mask((Flag.INPUT_SUSPECT, bad), (Flag.ZERO_DENOM, ~bad & (never | np.isnan(S) | np.isnan(gain))))
    return Split(*arrays(T, E, S, gain, T_C, T_G, flags))


@np.errstate(all="ignore")
def best_split(
    data: ArrayLike,
    rate_cpu: ArrayLike,
    rate_gpu: ArrayLike,
    dyn_cpu_w: ArrayLike,
    dyn_gpu_w: ArrayLike,
    idle_w: ArrayLike,
    transfer_s: ArrayLike = 0.0,
    idle_fraction: ArrayLike = 0.0,
    objective: str = "energy",
    form: str = CONSISTENT,
) -> BestSplit:
    r"""Share of the GPU that makes time, energy or a product of both least.

    .. math:: x^* = \arg\min_{x \in \{0, x_T, 1\}} E^a T^b, \qquad
              x_T = \frac{r'_G}{r_C + r'_G}, \quad \frac{1}{r'_G} = \frac{1}{r_G} + \tau

    Three points are enough: time and energy are straight lines in x on both sides of x_T, where both devices end
    together. A product of positive lines has its least value at an end of its range: where both rise or both fall that
    is plain, and where one falls while the other rises the product first rises and then falls.

    Source: this project, for equations (110) to (114) of [Hong2012], which tries 11 shares.

    Args:
        data: As in `split` [data].
        rate_cpu: Likewise [data/s].
        rate_gpu: Likewise [data/s].
        dyn_cpu_w: Likewise [W].
        dyn_gpu_w: Likewise [W].
        idle_w: Likewise [W].
        transfer_s: Likewise [s/data].
        idle_fraction: Likewise [1].
        objective: ``time``, ``energy``, ``edp`` (energy times time) or ``ed2p`` (energy times time squared).
        form: As in `split`.

    Returns: BestSplit. Ties give the smaller share of the GPU.

    Range: share in [0, 1]; NaN as in `split`.

    Errors: TypeError for a wrong dtype, ValueError for shapes that do not broadcast, an unknown objective or form.

    Fastest with both at work, but least energy without the GPU, which draws nine times the power:

    >>> [round(float(best_split(100, 1, 3, 50, 450, 50, objective=o).share), 2) for o in ("time", "energy")]
    [0.75, 0.0]
    """
    check_form(form)
    check_form(objective, tuple(OBJECTIVES))
    given = floats(
        data=data, rate_cpu=rate_cpu, rate_gpu=rate_gpu, dyn_cpu_w=dyn_cpu_w, dyn_gpu_w=dyn_gpu_w, idle_w=idle_w,
        transfer_s=transfer_s, idle_fraction=idle_fraction,
    )  # fmt: skip
    D, r_C, r_G, P_C, P_G, B, tau, g = (x[..., np.newaxis] for x in given)
    r = r_G / (1 + r_G * (0.0 if form == AS_PUBLISHED else tau))
    meeting = np.where(r_C + r > 0, r / (r_C + r), 0.0)
    points = np.concatenate((np.zeros_like(meeting), meeting, np.ones_like(meeting)), axis=-1)
    found = split(D, points, r_C, r_G, P_C, P_G, B, tau, g, form)
    a, b = OBJECTIVES[objective]
    cost = found.energy_j**a * found.time_s**b
    # Rounding must not decide a tie against the smaller share.
    least = np.fmin.reduce(cost, axis=-1, keepdims=True, initial=np.inf)
    place = (cost <= least * (1 + 1e-12)).argmax(axis=-1)[..., np.newaxis]
    names = (points, found.time_s, found.energy_j, found.speedup, found.efficiency)
    none = np.isnan(cost).all(axis=-1)
    share, *others = (np.take_along_axis(x, place, -1)[..., 0] for x in names)
    bad = is_implausible(*given) | (given[-1] > 1)
    flags = mask((Flag.INPUT_SUSPECT, bad), (Flag.ZERO_DENOM, ~bad & (none | np.isnan(others[-1]))))
    return BestSplit(*arrays(np.where(none, np.nan, share), *others, flags))
