"""Energy and mean power of windows of a power log, compared with the energy counter of the board."""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from profsvc.formulas.numerics.arrays import RELATIVE_TOLERANCE, Array, Bools, Mask, arrays, floats, mask
from profsvc.formulas.numerics.flags import Flag
from profsvc.formulas.sensors import logs
from profsvc.formulas.sensors.log_quality import update_period

MAX_DISAGREEMENT = 0.02  # power and energy counter agree within it


class WindowEnergy(NamedTuple):
    """Result of `window_energy`; ``mean_begin_s`` and ``mean_end_s`` are what the guard left for mean and spread."""

    energy_j: Array
    covered_s: Array
    mean_w: Array
    sd_w: Array
    readings: Array
    mean_begin_s: Array
    mean_end_s: Array
    flags: Mask


class CounterEnergy(NamedTuple):
    """Result of `counter_energy`; ``period_s`` is the counter's own, ``resets`` how often it fell back."""

    energy_j: Array
    error_j: Array
    period_s: float
    resets: int
    flags: Mask


class CounterRatio(NamedTuple):
    """Result of `counter_ratio`."""

    ratio: Array
    low: Array
    high: Array
    agrees: Bools
    flags: Mask


def window_energy(
    time_s: ArrayLike,
    power_w: ArrayLike,
    begin_s: ArrayLike,
    end_s: ArrayLike,
    *,
    averaging_s: float = 0.0,
    lag_s: float = 0.0,
    gap_s: float | None = None,
) -> WindowEnergy:
    r"""Energy, mean power and spread of windows of a power log.

    .. math:: E = \sum_i \int_{t_i}^{t_{i+1}} P(t)\,dt, \quad P \text{ linear between readings}, \qquad
              \bar P = \frac{1}{d'} \int_{b + g}^{e - \delta} P(t)\,dt, \qquad g = \max(\delta, w + l)

    with δ the usual interval of the readings, w the window over which the sensor averages and l its lag. Energies take
    the whole window, with partial intervals at its edges; means and spreads leave out what the sensor still averages
    with the time before, and one reading at the end. Nothing is drawn over gaps: ``covered_s`` says how much of the
    window the log holds, and the energy is that part's.

    Source: [Hong2012] chapter III (first sample after each start and stop excluded); [Zeus2023] for trapezoids over
    readings without repeats.

    Args:
        time_s: Stamps of the log, flat [s].
        power_w: Its readings [W].
        begin_s: Begins of the windows, any shape [s].
        end_s: Their ends, likewise [s].
        averaging_s: Window over which the sensor averages, from `averaging_window` [s].
        lag_s: Its additional delay [s].
        gap_s: Longest interval to draw a line over [s]; None: 3 s, or three of the log's usual intervals if it is
            slower.

    Returns: WindowEnergy, in the shape of the windows. ``sd_w`` is the standard deviation of the readings in the part
    that the mean is over, ``readings`` their number.

    Range: covered_s in [0, end - begin]. Less than all of it is covered: EXTRAPOLATED; nothing: energy NaN. A window
    too short for its guard has no mean (NaN, NOT_APPLICABLE), but an energy. A window that ends before it begins, or
    NaN: NaN, INPUT_SUSPECT. Stamps that are out of order are left out, with INPUT_SUSPECT.

    Errors: TypeError for a wrong dtype, ValueError for shapes that do not fit.

    >>> found = window_energy([0.0, 1.0, 2.0, 3.0, 4.0], [100.0, 100.0, 200.0, 200.0, 200.0], [0.5, 1.0], [1.5, 4.0])
    >>> found.energy_j.tolist(), found.mean_w.tolist(), found.covered_s.tolist()
    ([112.5, 550.0], [nan, 200.0], [1.0, 3.0])
    """
    b, e = floats(begin_s=begin_s, end_s=end_s)
    t, p, disordered = logs.readings(time_s=time_s, power_w=power_w)
    bad = ~(np.isfinite(b) & np.isfinite(e)) | (e < b)
    b, e = np.where(bad, 0.0, b), np.where(bad, 0.0, e)
    log = logs.integral(t, p, logs.gap_limit(t, gap_s))
    energy, covered = _between(log, b, e)
    usual = np.nan_to_num(logs.median_interval(t))
    inner_b, inner_e = b + max(usual, averaging_s + lag_s), e - usual
    short = (inner_e <= inner_b) | bad
    inner_e = np.maximum(inner_e, inner_b)
    area, held = _between(log, inner_b, inner_e)
    with np.errstate(all="ignore"):
        mean = np.where(short | (held <= 0), np.nan, area / held)
    sd, count = _spread(t, p, inner_b, inner_e)
    none = bad | ((covered <= 0) & (e > b))
    energy, sd = np.where(none, np.nan, energy), np.where(short, np.nan, sd)
    raised = mask(
        (Flag.EXTRAPOLATED, (covered < (e - b) * (1 - RELATIVE_TOLERANCE)) & ~bad),
        (Flag.NOT_APPLICABLE, short & ~bad),
        (Flag.INPUT_SUSPECT, bad | disordered),
    )
    inner = (np.where(short, np.nan, inner_b), np.where(short, np.nan, inner_e))
    covered, count = np.where(bad, np.nan, covered), np.where(short, 0, count)
    return WindowEnergy(*arrays(energy, covered, mean, sd, count, *inner, raised))


def _between(log: logs.Integral, b: Array, e: Array) -> tuple[Array, Array]:
    area_b, covered_b = logs.integral_at(log, b)
    area_e, covered_e = logs.integral_at(log, e)
    return area_e - area_b, covered_e - covered_b


def _spread(t: Array, p: Array, b: Array, e: Array) -> tuple[Array, Array]:
    """Standard deviation and number of the readings in [b, e]."""
    centre = float(np.median(p)) if p.size else 0.0  # keeps the sums of squares small
    q = p - centre
    sums, squares = (np.concatenate(([0.0], np.cumsum(x))) for x in (q, q * q))
    first, last = np.searchsorted(t, b), np.searchsorted(t, e, side="right")
    n = np.maximum(last - first, 0)
    with np.errstate(all="ignore"):
        total = sums[last] - sums[first]
        variance = (squares[last] - squares[first] - total * total / n) / (n - 1)
    return np.where(n > 1, np.sqrt(np.maximum(variance, 0.0)), np.nan), n


def counter_energy(
    time_s: ArrayLike, energy_j: ArrayLike, begin_s: ArrayLike, end_s: ArrayLike, *, wrap_j: float | None = None
) -> CounterEnergy:
    r"""Energy of windows by an energy counter that is read again and again.

    .. math:: E = C(e) - C(b), \qquad C(x) = C_k + (C_{k+1} - C_k) \frac{x - u_k}{u_{k+1} - u_k}, \qquad
              \Delta E = (C_{k+1} - C_k)_b + (C_{k+1} - C_k)_e

    with u_k the first reading of each new value: between its updates the counter stands still, which says nothing of
    the power. As energy only grows, C(x) lies between adjacent readings, and the error is no more than what the counter
    counts in one update at each edge.

    Source: this project; the counter and its traps: [NVML2025], [Zeus2023].

    Args:
        time_s: Stamps of the readings, flat [s].
        energy_j: Readings of the counter [J].
        begin_s: Begins of the windows, any shape [s].
        end_s: Their ends, likewise [s].
        wrap_j: Where the counter starts over at 0, if it does [J]; a fall is then a wrap. Without it a fall is a reset,
            as when a driver is reloaded, and a window across it has no energy.

    Returns: CounterEnergy, in the shape of the windows.

    Range: energy_j >= 0, error_j >= 0. An edge before the first reading or more than one update after the last
    change, or a reset in the window: NaN, EXTRAPOLATED. A counter that never moves counts nothing: NaN, NOT_APPLICABLE;
    it does not say 0 J. A window that ends before it begins, or NaN: NaN, INPUT_SUSPECT.

    Errors: TypeError for a wrong dtype, ValueError for shapes that do not fit.

    A counter that updates every 0.1 s, at 100 W:

    >>> times = [0.05 * n for n in range(21)]
    >>> found = counter_energy(times, [10.0 * (n // 2) for n in range(21)], [0.2], [0.75])
    >>> found.energy_j.round(9).tolist(), found.error_j.round(9).tolist(), round(found.period_s, 3)
    ([55.0], [20.0], 0.1)
    """
    b, e = floats(begin_s=begin_s, end_s=end_s)
    t, c, disordered = logs.readings(time_s=time_s, energy_j=energy_j)
    bad = ~(np.isfinite(b) & np.isfinite(e)) | (e < b)
    fall = np.flatnonzero(np.diff(c) < 0) + 1
    if wrap_j is not None and fall.size:
        turns = np.zeros(c.size)
        turns[fall] = wrap_j
        c, fall = c + np.cumsum(turns), fall[:0]
    resets = np.zeros(c.size)
    resets[fall] = 1.0
    resets = np.cumsum(resets)
    moved = np.flatnonzero(np.diff(c) != 0) + 1
    if moved.size == 0:
        nothing = np.full(b.shape, np.nan)
        return CounterEnergy(nothing, nothing.copy(), float("nan"), 0, mask((Flag.NOT_APPLICABLE, np.isnan(nothing))))
    knots = np.concatenate(([0], moved))
    u, C = t[knots], c[knots]
    period = update_period(t, c).period_s
    reach = period if np.isfinite(period) else float(np.median(np.diff(u)))
    outside = ~bad & ((np.minimum(b, e) < u[0] - RELATIVE_TOLERANCE) | (np.maximum(b, e) > u[-1] + reach))
    at_b, error_b, reset_b = _counter_at(u, C, resets[knots], np.where(bad, u[0], b))
    at_e, error_e, reset_e = _counter_at(u, C, resets[knots], np.where(bad, u[0], e))
    missing = outside | (reset_b[0] != reset_e[1])
    gone = bad | missing
    energy, error = np.where(gone, np.nan, at_e - at_b), np.where(gone, np.nan, error_b + error_e)
    raised = mask((Flag.EXTRAPOLATED, missing & ~bad), (Flag.INPUT_SUSPECT, bad | disordered))
    energy, error = arrays(energy, error)
    return CounterEnergy(energy, error, period, int(resets[-1]), np.asarray(raised))


def _counter_at(u: Array, C: Array, resets: Array, x: Array) -> tuple[Array, Array, tuple[Array, Array]]:
    """Counter at x, what it counts in the update around x, and the resets before and after that update."""
    k = np.clip(np.searchsorted(u, x, side="right") - 1, 0, u.size - 2)
    counted = C[k + 1] - C[k]
    return np.interp(x, u, C), np.abs(counted), (resets[k], resets[k + 1])


def counter_ratio(
    energy_j: ArrayLike, counter_j: ArrayLike, error_j: ArrayLike, agree: float = MAX_DISAGREEMENT
) -> CounterRatio:
    r"""Energy by the integral of power, over the energy by the counter, and whether the two agree.

    .. math:: r = E_P / E_C, \qquad r \in \Bigl[\frac{E_P}{E_C + \Delta E}, \frac{E_P}{E_C - \Delta E}\Bigr]

    Source: this project; that the two disagree by up to 1.7 on idle boards: [Zeus2023].

    Args:
        energy_j: Energy by power [J].
        counter_j: Energy by the counter [J].
        error_j: Bound of the counter's error [J].
        agree: Relative difference up to which the two agree [1].

    Returns: CounterRatio. ``agrees`` is True where |r - 1| <= ``agree``, on the ratio itself and not on its bounds.

    Range: low <= ratio <= high; high is inf where the error reaches the energy. A counter that counted nothing: NaN,
    ZERO_DENOM. Negative or NaN inputs: NaN, INPUT_SUSPECT.

    Errors: TypeError for a wrong dtype, ValueError for shapes that do not broadcast.

    The 1 s average of a board under a load of 7 s, beside its counter:

    >>> found = counter_ratio(3217.5, 3305.8, 53.0)
    >>> float(found.ratio.round(3)), float(found.low.round(3)), float(found.high.round(3)), bool(found.agrees)
    (0.973, 0.958, 0.989, False)
    """
    E, C, error = floats(energy_j=energy_j, counter_j=counter_j, error_j=error_j)
    bad = ~((E >= 0) & (C >= 0) & (error >= 0) & np.isfinite(E) & np.isfinite(C) & np.isfinite(error))
    zero = (C == 0) & ~bad
    with np.errstate(all="ignore"):
        ratio, low = E / C, E / (C + error)
        high = np.where(error < C, E / (C - error), np.inf)
    gone = bad | zero
    ratio, low, high = (np.where(gone, np.nan, x) for x in (ratio, low, high))
    raised = mask((Flag.INPUT_SUSPECT, bad), (Flag.ZERO_DENOM, zero))
    return CounterRatio(*arrays(ratio, low, high, np.abs(ratio - 1) <= agree, raised))
