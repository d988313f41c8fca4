"""Suggested number of SMs, warps and frequency, and the split between CPU and GPU."""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from profsvc.formulas.numerics.arrays import Array, Bools, Flagged, Mask, arrays, flagged, floats, is_implausible, mask
from profsvc.formulas.numerics.flags import AS_PUBLISHED, CONSISTENT, Flag, check_form

MIN_SHARE = 0.02


class Suggestion(NamedTuple):
    """A number to use, and the factor it came from."""

    value: Array
    factor: Array
    flags: Mask


def suggest_cores(app: ArrayLike, bw: ArrayLike, active_sms: ArrayLike, sms: ArrayLike) -> Suggestion:
    r"""SMs that just use up the bandwidth; all of them where it is not used up.

    .. math:: \alpha = \frac{App}{BW}, \qquad SMs_{new} = \lfloor SMs_{active} / \alpha \rfloor

    The same alpha is the bandwidth that all of them would need, over the one there is.

    Source: [Hong2012] equations 83 to 88.

    Args:
        app: Requests the application needs [requests].
        bw: Requests of an SM at which the bandwidth is used up, with the active SMs; inf where it is not [requests].
        active_sms: SMs that work [count].
        sms: SMs of the device [count].

    Returns: Suggestion [SMs], whole.

    Range: [1, sms], factor 1 or more. No bandwidth, or no SM: NaN, ZERO_DENOM. A number that is negative, NaN or inf:
    NaN, INPUT_SUSPECT; more active SMs than there are: the flag alone.

    Errors: TypeError for a wrong dtype, ValueError for shapes that do not broadcast.

    Two requests of each of 24 warps, where 40 use up the bandwidth of 16 SMs; the source prints 13:

    >>> float(suggest_cores(48, 40, 16, 16).value)
    13.0
    """
    A, B, n, most = floats(app=app, bw=bw, active_sms=active_sms, sms=sms)
    bad = is_implausible(A, np.where(np.isposinf(B), 0.0, B), n, most)
    zero = ((B == 0) & (A > 0)) | (most == 0) | (n == 0)
    with np.errstate(all="ignore"):
        alpha = np.where(A <= B, 1.0, A / B)
        cores = np.where(A <= B, most, np.clip(np.floor(n / alpha * (1 + 1e-12)), 1, most))
    return _suggestion(cores, alpha, bad, zero, n > most)


def suggest_warps(bw: ArrayLike, mstr: ArrayLike, N: ArrayLike, InfiN: ArrayLike, form: str = CONSISTENT) -> Suggestion:
    r"""Warps of an SM that just use up the bandwidth; all of them where it is not used up.

    .. math:: \alpha = \frac{BW}{App}, \qquad N_{new} = \lfloor \alpha \min(InfiN, N) \rfloor = \lfloor BW/MSTR \rfloor

    Source: [Hong2012] equations 89 to 92.

    Args:
        bw: Requests at which the bandwidth is used up; inf where it is not [requests].
        mstr: Requests a warp issues together [count].
        N: Warps resident on an SM [count].
        InfiN: Warps whose requests overlap at most, M/C and at least 1 [warps].
        form: ``consistent`` or ``as_published``.

    Returns: Suggestion [warps]; the published number is not whole.

    Range: [1, N], factor in [0, 1]. No warps or no requests: NaN, ZERO_DENOM. A number that is negative, NaN or inf:
    NaN, INPUT_SUSPECT.

    Errors: TypeError for a wrong dtype, ValueError for shapes that do not broadcast or an unknown form.

    Defect of the print: N is reduced by 1 - alpha ("percent") although with InfiN below N the first warps removed
    change nothing; default consistent.

    >>> float(suggest_warps(10, 1, 32, 16).value), float(suggest_warps(10, 1, 32, 16, "as_published").value)
    (10.0, 20.0)
    """
    check_form(form)
    B, s, n, I = floats(bw=bw, mstr=mstr, N=N, InfiN=InfiN)
    bad = is_implausible(np.where(np.isposinf(B), 0.0, B), s, n, I)
    needed = np.minimum(I, n)
    zero = (needed == 0) | (s == 0)
    with np.errstate(all="ignore"):
        alpha = np.where(needed * s <= B, 1.0, B / (needed * s))
        fewer = np.clip(np.floor(alpha * needed * (1 + 1e-12)), 1, n)
        warps = np.where(alpha == 1, n, alpha * n if form == AS_PUBLISHED else fewer)
    return _suggestion(warps, alpha, bad, zero, np.zeros((), dtype=np.bool_))


def suggest_frequency(InfiN: ArrayLike, N: ArrayLike, frequency_hz: ArrayLike) -> Suggestion:
    r"""Frequency of the cores at which the warps there are just hide the memory periods, its clock unchanged.

    .. math:: factor = \frac{InfiN - 1}{N - 1}, \qquad F_{new} = F / factor

    Source: [Hong2012] equation 93, which calls the factor a percentage.

    Args:
        InfiN: Warps that hide a memory period, see `mwp_app` [warps].
        N: Warps resident on an SM [count].
        frequency_hz: Frequency of the cores [Hz].

    Returns: Suggestion [Hz].

    Range: (0, F], factor 1 or more. Enough warps: F. One warp, which nothing hides at any frequency: NaN, ZERO_DENOM,
    factor inf. A number that is negative, NaN or inf: NaN, INPUT_SUSPECT; fewer than one warp: the flag alone.

    Errors: TypeError for a wrong dtype, ValueError for shapes that do not broadcast.

    Figure 130 of the source, two warps where four are needed; it prints a factor of three:

    >>> float(suggest_frequency(4, 2, 1.5e9).factor)
    3.0
    """
    I, n, F = floats(InfiN=InfiN, N=N, frequency_hz=frequency_hz)
    bad = is_implausible(I, n, F)
    enough, one = n >= I, (n < I) & (n <= 1)
    with np.errstate(all="ignore"):
        factor = np.where(enough, 1.0, np.where(one, np.inf, (I - 1) / (n - 1)))
        value = np.where(one, np.nan, F / factor)
    flags = mask((Flag.INPUT_SUSPECT, bad | (n < 1)), (Flag.ZERO_DENOM, one & ~bad))
    return Suggestion(*arrays(*(np.where(bad, np.nan, x) for x in (value, factor)), flags))


def start_share(perf_gpu: ArrayLike, perf_cpu: ArrayLike, transfer_s: ArrayLike = 0.0) -> Flagged:
    r"""Share of the work to give to the GPU first, by the predicted performance of both.

    .. math:: x = \frac{r_G}{r_G + r_C}, \qquad r_G = \frac{1}{1/P_G + \tau}

    A device whose share is below 2 % gets nothing.

    Source: [Hong2012] section 5.9, which splits by predicted performance; the equation is ours. For time and energy of
    a split see `energy_split`.

    Args:
        perf_gpu: Predicted performance of the GPU, P_G [work/s].
        perf_cpu: Predicted performance of the CPU [work/s].
        transfer_s: Time to move the data of one unit of work to the GPU and back, tau [s/work].

    Returns: Valued [1].

    Range: 0, 1 or in [0.02, 0.98]; both finish together within it. No performance at all: NaN, ZERO_DENOM. A number
    that is negative, NaN or inf: NaN, INPUT_SUSPECT.

    Errors: TypeError for a wrong dtype, ValueError for shapes that do not broadcast.

    >>> start_share([300.0, 300.0, 1.0], [100.0, 1.0, 99.0]).value.tolist()
    [0.75, 1.0, 0.0]
    """
    g, c, t = floats(perf_gpu=perf_gpu, perf_cpu=perf_cpu, transfer_s=transfer_s)
    zero = (g == 0) & (c == 0)
    with np.errstate(all="ignore"):
        rate = np.where(g == 0, 0.0, 1 / (1 / g + t))
        x = np.where(zero, np.nan, rate / (rate + c))
    x = np.where(x < MIN_SHARE, 0.0, np.where(x > 1 - MIN_SHARE, 1.0, x))
    return flagged(x, is_implausible(g, c, t), (Flag.ZERO_DENOM, zero))


def _suggestion(value: Array, factor: Array, bad: Bools, zero: Bools, odd: Bools) -> Suggestion:
    none = bad | zero
    flags = mask((Flag.INPUT_SUSPECT, bad | odd), (Flag.ZERO_DENOM, zero & ~bad))
    return Suggestion(*arrays(*(np.where(none, np.nan, x) for x in (value, factor)), flags))
