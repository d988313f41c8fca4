"""Idle power of a board: nothing runs on it, and it has cooled down."""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from profsvc.formulas.numerics.arrays import Array, Bools, Mask, flat_floats, mask
from profsvc.formulas.numerics.distributions import student_quantile
from profsvc.formulas.numerics.flags import Flag
from profsvc.formulas.sensors import logs
from profsvc.formulas.sensors.resampling import interpolate_at

RC_DECAY_S = 60.0
COOLED_CONSTANTS = 5.0  # time constants after which a board counts as cold
MAX_ABOVE_IDLE_C = 1.0
MAX_BLOCKS = 16


class IdleWindows(NamedTuple):
    """Stretches in which the board idles and has cooled."""

    begin_s: Array
    end_s: Array


class Idle(NamedTuple):
    """Result of `fit_idle`: idle power with its 95 % interval, the temperature it was at, and what it rests on."""

    power_w: float
    low_w: float
    high_w: float
    temperature_c: float
    readings: int
    duration_s: float
    flags: Mask


def idle_windows(
    load_begin_s: ArrayLike,
    load_end_s: ArrayLike,
    log_begin_s: float,
    log_end_s: float,
    *,
    rc_s: float = RC_DECAY_S,
    guard_s: float = 0.0,
) -> IdleWindows:
    r"""Stretches of a log with no load, from five time constants after the last one.

    .. math:: [\,e_k + 5 RC,\; b_{k+1} - g\,]

    Source: [Hong2012] chapter III as repaired: 300 s after a load for the 60 s of its card.

    Args:
        load_begin_s: Begins of the loads, in any order, overlapping or not [s].
        load_end_s: Their ends [s].
        log_begin_s: Begin of the log [s]. What ran before is not known: the time before the first load counts as
            idle, and `fit_idle` drops what is not yet cold.
        log_end_s: End of the log [s].
        rc_s: Time constant of the decay of temperature [s].
        guard_s: Left out before each load [s].

    Returns: IdleWindows, in order of time; none where every pause is shorter.

    Range: begin < end, within the log. A load that is NaN or ends before it begins counts as one at its two stamps, in
    their order; NaN is left out.

    Errors: TypeError for a wrong dtype, ValueError for shapes that do not fit.

    >>> found = idle_windows([25.0, 400.0], [175.0, 407.0], 0.0, 420.0, rc_s=40.0)
    >>> found.begin_s.tolist(), found.end_s.tolist()
    ([0.0, 375.0], [25.0, 400.0])
    """
    b, e = flat_floats(load_begin_s=load_begin_s, load_end_s=load_end_s)
    known = np.isfinite(b) & np.isfinite(e)
    b, e = np.minimum(b, e)[known], np.maximum(b, e)[known]
    order = np.argsort(b, kind="stable")
    warm_until = np.concatenate(([log_begin_s], np.maximum.accumulate(e[order]) + COOLED_CONSTANTS * rc_s))
    next_load = np.append(b[order] - guard_s, log_end_s)
    begin, end = np.maximum(warm_until, log_begin_s), np.minimum(next_load, log_end_s)
    idle = begin < end
    return IdleWindows(begin[idle], end[idle])


def fit_idle(
    time_s: ArrayLike,
    power_w: ArrayLike,
    begin_s: ArrayLike,
    end_s: ArrayLike,
    temperature_time_s: ArrayLike | None = None,
    temperature_c: ArrayLike | None = None,
    *,
    near_c: float = MAX_ABOVE_IDLE_C,
) -> Idle:
    r"""Idle power and idle temperature over the idle windows of a log.

    .. math:: P_{idle} = \mathrm{median}\{P_i : |T(t_i) - T_{idle}| \le 1\}, \qquad T_{idle} = \mathrm{median}\,T(t_i)

    Source: [Hong2012] chapter III as repaired (idle power measured on a warm chip is too high by its leakage). The
    interval is this project's: medians of up to 16 blocks of consecutive readings, since adjacent readings are not
    independent, and Student's t.

    Args:
        time_s: Stamps of the power log, flat [s].
        power_w: Its readings [W].
        begin_s: Begins of the idle windows, flat, from `idle_windows` [s].
        end_s: Their ends [s].
        temperature_time_s: Stamps of the temperature log on the same clock [s]; None where there is none.
        temperature_c: Its readings [degC].
        near_c: How far from the idle temperature a reading may be [degC].

    Returns: Idle. Without temperatures all readings in the windows count, ``temperature_c`` is NaN and UPPER_BOUND is
    raised: a board that was still warm consumes more.

    Range: low <= power <= high; fewer than eight readings have no interval (NaN). No reading: NaN, INPUT_SUSPECT.

    Errors: TypeError for a wrong dtype, ValueError for shapes that do not fit.

    >>> t = np.arange(100.0)
    >>> warm = np.where(t < 30, 34.0, 31.0)
    >>> found = fit_idle(t, 79.0 + 0.5 * (warm - 31) + 0.1 * np.sin(t), [0.0], [99.0], t, warm)
    >>> round(found.power_w, 1), found.temperature_c, found.readings
    (79.0, 31.0, 70)
    """
    t, p, _ = logs.readings(time_s=time_s, power_w=power_w)
    b, e = flat_floats(begin_s=begin_s, end_s=end_s)
    inside = _within(t, b, e)
    t, p = t[inside], p[inside]
    idle_c = float("nan")
    if temperature_time_s is not None and temperature_c is not None:
        T = interpolate_at(t, temperature_time_s, temperature_c).value
        known = np.isfinite(T)
        t, p, T = t[known], p[known], T[known]
        near = np.ones(t.size, dtype=np.bool_)
        for _ in range(10):
            if not near.any():
                break
            idle_c = float(np.median(T[near]))
            before, near = near, np.abs(T - idle_c) <= near_c
            if (near == before).all():
                break
        t, p = t[near], p[near]
    if t.size == 0:
        nan = float("nan")
        return Idle(nan, nan, nan, nan, 0, 0.0, mask((Flag.INPUT_SUSPECT, True)))
    low, high = _interval(p)
    covered = float(np.diff(t)[np.diff(t) <= logs.gap_limit(t, None)].sum())
    return Idle(float(np.median(p)), low, high, idle_c, t.size, covered, mask((Flag.UPPER_BOUND, np.isnan(idle_c))))


def _within(t: Array, b: Array, e: Array) -> Bools:
    """Return whether a stamp lies in one of the windows."""
    known = np.isfinite(b) & np.isfinite(e) & (b <= e)
    depth = np.zeros(t.size + 1, dtype=np.int64)
    np.add.at(depth, np.searchsorted(t, b[known]), 1)
    np.add.at(depth, np.searchsorted(t, e[known], side="right"), -1)
    return np.asarray(np.cumsum(depth)[:-1] > 0)


def _interval(p: Array) -> tuple[float, float]:
    """95 % interval of the median, from the medians of blocks."""
    blocks = min(MAX_BLOCKS, p.size // 2)
    if blocks < 4:
        return float("nan"), float("nan")
    medians = np.array([np.median(part) for part in np.array_split(p, blocks)])
    centre, half = (
        float(np.median(p)),
        student_quantile(0.975, blocks - 1) * float(medians.std(ddof=1) / np.sqrt(blocks)),
    )
    return centre - half, centre + half
