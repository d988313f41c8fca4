"""Requests that an application needs under way, and those that are."""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from profsvc.formulas.numerics.arrays import (
    Array,
    Flagged,
    Mask,
    arrays,
    flagged,
    floats,
    is_implausible,
    mask,
    smallest_with_index,
)
from profsvc.formulas.numerics.flags import AS_PUBLISHED, CONSISTENT, Flag, check_form

APPLICATION, BANDWIDTH, DEPARTURE, WARPS = range(4)


class MemoryDemand(NamedTuple):
    """Warps that hide a memory period, warps whose requests overlap, and the requests the application needs."""

    InfiN: Array
    OneMemWarp: Array
    App: Array
    flags: Mask


class TotalParallelism(NamedTuple):
    """Result of `mwp_total`; ``limiter`` is APPLICATION, BANDWIDTH, DEPARTURE or WARPS, -1 where not known."""

    MWP: Array
    limiter: NDArray[np.int8]
    flags: Mask


def mwp_app(
    eff_mem: ArrayLike, eff_comp: ArrayLike, N: ArrayLike, mstr: ArrayLike = 1.0, form: str = CONSISTENT
) -> MemoryDemand:
    r"""Requests that an application needs under way to hide its memory periods.

    .. math:: InfiN = \frac{M}{C} + 1, \qquad
              App = \min\bigl(\max(M/C, 1), N\bigr)\, MSTR, \qquad InfiN_{published} = \max(M/C, 1)

    Source: [Hong2012] equations 72 to 74 and 92.

    Args:
        eff_mem: Memory period of a warp, M [cycles].
        eff_comp: Computation between two of them, C [cycles].
        N: Warps resident on an SM [count].
        mstr: Requests a warp issues together, see `memory_strength` [count].
        form: ``consistent`` or ``as_published``.

    Returns: MemoryDemand [warps, warps, requests].

    Range: InfiN 1 or more, App in (0, N MSTR]. No computation: InfiN inf, ZERO_DENOM; neither: 1. A number that is
    negative, NaN or inf: NaN, INPUT_SUSPECT.

    Errors: TypeError for a wrong dtype, ValueError for shapes that do not broadcast or an unknown form.

    Defect of the print: InfiN has no place for the warp that waits: figure 130, M = 3C, needs 4 warps. Default
    consistent; the requests under way are M/C in both.

    >>> float(mwp_app(3, 1, 2).InfiN), float(mwp_app(3, 1, 2, form="as_published").InfiN), float(mwp_app(3, 1, 2).App)
    (4.0, 3.0, 2.0)
    """
    check_form(form)
    M, C, n, s = floats(eff_mem=eff_mem, eff_comp=eff_comp, N=N, mstr=mstr)
    bad, zero = is_implausible(M, C, n, s), (C == 0) & (M > 0)
    with np.errstate(all="ignore"):
        ratio = np.where(M == 0, 0.0, M / C)
        needed = np.maximum(ratio, 1.0)
        one = np.minimum(needed, n)
        results = (needed if form == AS_PUBLISHED else ratio + 1, one, one * s)
    flags = mask((Flag.INPUT_SUSPECT, bad), (Flag.ZERO_DENOM, zero & ~bad))
    return MemoryDemand(*arrays(*(np.where(bad, np.nan, x) for x in results), flags))


def mwp_total(
    app: ArrayLike, bw: ArrayLike, proc: ArrayLike, N: ArrayLike, mstr: ArrayLike = 1.0, form: str = CONSISTENT
) -> TotalParallelism:
    r"""Requests of an SM that are under way together.

    .. math:: MWP = \min(App, BW, Proc, N\, MSTR)

    Source: [Hong2012] equation 71.

    Args:
        app: Requests the application needs, see `mwp_app` [requests].
        bw: Requests at which the bandwidth is used up; inf where it sets no limit [requests].
        proc: Requests that may depart within a latency; inf likewise [requests].
        N: Warps resident on an SM [count].
        mstr: Requests a warp issues together [count].
        form: ``consistent`` or ``as_published``.

    Returns: TotalParallelism [requests]; of equal limits the first in the order of the formula.

    Range: [0, N MSTR]. A number that is negative or NaN, or an inf that does not mean unlimited: NaN, INPUT_SUSPECT.

    Errors: TypeError for a wrong dtype, ValueError for shapes that do not broadcast or an unknown form.

    Defect of the print: N caps requests, of which a warp has MSTR; default consistent.

    Figure 101 of the source, two warps:

    >>> float(mwp_total(4, 3, np.inf, 2).MWP), float(mwp_total(4, 3, np.inf, 2, 2).MWP)
    (2.0, 3.0)
    """
    check_form(form)
    a, b, p, n, s = floats(app=app, bw=bw, proc=proc, N=N, mstr=mstr)
    bad = is_implausible(a, *(np.where(np.isposinf(x), 0.0, x) for x in (b, p)), n, s)
    cap = n if form == AS_PUBLISHED else n * s
    least, place = smallest_with_index(np.moveaxis(np.stack([a, b, p, cap]), 0, -1))
    limiter = np.where(bad, -1, place).astype(np.int8)
    return TotalParallelism(*arrays(np.where(bad, np.nan, least), limiter, mask((Flag.INPUT_SUSPECT, bad))))


def effective_latency(share: ArrayLike, latency: ArrayLike) -> Flagged:
    r"""Latency of a memory period from where its requests are answered.

    .. math:: M = \sum_l h_l\, lat_l

    With all requests in L1, or all in DRAM, the model gives an upper and a lower line of performance.

    Source: [Hong2012] section 5.6, figure 131.

    Args:
        share: Share of the requests that each level answers, on the last axis [1].
        latency: Latency of each level, likewise [cycles].

    Returns: Valued [cycles], without the last axis.

    Range: between the lowest and the highest latency. Shares that do not add up to 1: INPUT_SUSPECT. A number that is
    negative, NaN or inf: NaN, INPUT_SUSPECT.

    Errors: TypeError for a wrong dtype, ValueError for shapes that do not broadcast.

    >>> effective_latency([[1, 0, 0], [0, 0.5, 0.5]], [30, 200, 450]).value.tolist()
    [30.0, 325.0]
    """
    h, lat = floats(share=np.atleast_1d(share), latency=np.atleast_1d(latency))
    bad = np.asarray(is_implausible(h, lat).any(axis=-1))
    odd = np.abs(h.sum(axis=-1) - 1) > 1e-6
    return flagged((h * lat).sum(axis=-1), bad, (Flag.INPUT_SUSPECT, odd))
