"""Averaging window of a power sensor, from its log and that of an instant sensor."""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from profsvc.formulas.numerics.arrays import Array, Mask, mask
from profsvc.formulas.numerics.flags import Flag
from profsvc.formulas.sensors import logs

MAX_WINDOW_S = 10.0
MAX_LAG_S = 2.0  # to either side of 0
WINDOW_GRID_S = np.geomspace(0.02, MAX_WINDOW_S, 20)
LAG_GRID_S = np.linspace(-MAX_LAG_S, MAX_LAG_S, 21)
MAX_READINGS = 20_000
MAX_SEARCH_READINGS = 1_000
MIN_EXPLAINED_SHARE = 0.9  # of the variance of the averaged sensor; below it, no boxcar explains it
MAX_ERROR_SHARE = 0.25  # largest standard error, as a share of the window,
MIN_ERROR_LIMIT_S = 0.1  # but never less than this


class AveragingWindow(NamedTuple):
    """Result of `averaging_window`; ``late_s`` is by how much a step is seen late on the mean, w/2 + l."""

    window_s: float
    window_se_s: float
    lag_s: float
    lag_se_s: float
    late_s: float
    residual_w: float
    explained: float
    readings: int
    flags: Mask


def averaging_window(
    instant_time_s: ArrayLike, instant_w: ArrayLike, averaged_time_s: ArrayLike, averaged_w: ArrayLike
) -> AveragingWindow:
    r"""Length of the boxcar that turns the instant sensor into the averaged one, and the lag between the two.

    .. math:: A(t) = \frac{I(t - l) - I(t - l - w)}{w}, \qquad I(t) = \int^t P(s)\,ds

    by least squares over w and l: the best point of a grid, refined by Gauss-Newton. The standard errors allow for
    residuals that are correlated over three windows, and for steps that lie anywhere between two readings.

    Source: this project; that boards from Ampere on report the mean of a second: [NVML2025]. Errors: [NeweyWest1987].

    Args:
        instant_time_s: Stamps of the instant sensor, flat [s].
        instant_w: Its readings [W].
        averaged_time_s: Stamps of the averaged sensor, on the same clock [s].
        averaged_w: Its readings [W].

    Returns: AveragingWindow. ``explained`` is the share of the averaged sensor's variance that the boxcar explains. Of
    a longer log the 20 000 readings count before which power moved most: where it stands, every window gives the same
    mean. (They are chosen among 200 000 that are evenly spread.)

    Range: window_s in (0, 10], |lag_s| <= 2. A window below the interval of the readings means that the two sensors are
    the same. Refused, with window and lag NaN and INPUT_SUSPECT: less than 90 % explained, as where the power never
    moved; or a standard error above a quarter of the window and 0.1 s.

    Errors: TypeError for a wrong dtype, ValueError for shapes that do not fit.

    >>> t = np.arange(600) * 0.1
    >>> power = np.where((t > 20) & (t < 40), 500.0, 80.0)
    >>> averaged = np.convolve(power, np.ones(10) / 10)[:600]
    >>> found = averaging_window(t, power, t[10:], averaged[10:])
    >>> round(found.window_s, 1), round(found.late_s, 2)
    (1.0, 0.45)
    """
    t, p, _ = logs.readings(instant_time_s=instant_time_s, instant_w=instant_w)
    at, read, _ = logs.readings(averaged_time_s=averaged_time_s, averaged_w=averaged_w)
    nan = float("nan")
    nothing = AveragingWindow(nan, nan, nan, nan, nan, nan, nan, 0, mask((Flag.INPUT_SUSPECT, True)))
    if t.size < 2:
        return nothing
    log = logs.integral(t, p, logs.gap_limit(t, None))
    at, read = _informative_readings(log, at, read)
    if at.size < 10:
        return nothing
    few = np.linspace(0, at.size - 1, min(at.size, MAX_SEARCH_READINGS)).astype(np.intp)
    errors = [[_misfit(log, at[few], read[few], w, lag) for lag in LAG_GRID_S] for w in WINDOW_GRID_S]
    k, j = np.unravel_index(int(np.argmin(errors)), (WINDOW_GRID_S.size, LAG_GRID_S.size))
    w, lag = _gauss_newton(log, at, read, float(WINDOW_GRID_S[k]), float(LAG_GRID_S[j]))
    model, J = _boxcar(log, at, w, lag)
    residual = read - model
    lags = int(np.ceil(3 * w / np.median(np.diff(at))))
    placed = logs.median_interval(t) ** 2 / 12  # variance of a step's place between two readings
    w_se, lag_se = np.sqrt(np.diag(logs.robust_covariance(J, residual, lags)) + placed).tolist()
    rms, spread = float(np.sqrt(np.mean(residual**2))), float(np.std(read))
    explained = 1 - (rms / spread) ** 2 if spread > 0 else 0.0
    if explained < MIN_EXPLAINED_SHARE or not max(w_se, lag_se) <= max(MAX_ERROR_SHARE * w, MIN_ERROR_LIMIT_S):
        return AveragingWindow(np.nan, w_se, np.nan, lag_se, np.nan, rms, explained, at.size, nothing.flags)
    late = w / 2 + lag
    return AveragingWindow(w, w_se, lag, lag_se, late, rms, explained, at.size, mask((Flag.INPUT_SUSPECT, False)))


def _informative_readings(log: logs.Integral, at: Array, read: Array) -> tuple[Array, Array]:
    """Readings with the longest window whole behind them; of many, those before which power moved most."""
    reach = MAX_WINDOW_S + MAX_LAG_S
    some = np.linspace(0, at.size - 1, min(at.size, 10 * MAX_READINGS)).astype(np.intp)
    at, read = at[some], read[some]
    usual = logs.median_interval(log.time)
    before, after = (logs.integral_at(log, at + shift) for shift in (-reach, MAX_LAG_S))
    whole = after[1] - before[1] >= reach + MAX_LAG_S - 1e-6
    if not whole.any():  # a log shorter than the longest window: what lies inside it has to do
        whole = (at >= log.time[0] + usual) & (at <= log.time[-1])
    at, read = at[whole], read[whole]
    if at.size <= MAX_READINGS:
        return at, read
    moved = np.abs((after[0] - before[0])[whole] / (reach + MAX_LAG_S) - np.interp(at, log.time, log.value))
    most = np.sort(np.argpartition(-moved, MAX_READINGS)[:MAX_READINGS])
    return at[most], read[most]


def _boxcar(log: logs.Integral, at: Array, w: float, lag: float) -> tuple[Array, Array]:
    """Mean over the window, and its derivatives by the window and by the lag."""
    late, early = (np.interp(at - shift, log.time, log.value) for shift in (lag, lag + w))
    mean = (logs.integral_at(log, at - lag)[0] - logs.integral_at(log, at - lag - w)[0]) / w
    return mean, np.column_stack(((early - mean) / w, (early - late) / w))


def _misfit(log: logs.Integral, at: Array, read: Array, w: float, lag: float) -> float:
    residual = read - (logs.integral_at(log, at - lag)[0] - logs.integral_at(log, at - lag - w)[0]) / w
    return float(residual @ residual)


def _gauss_newton(log: logs.Integral, at: Array, read: Array, w: float, lag: float) -> tuple[float, float]:
    error = _misfit(log, at, read, w, lag)
    for _ in range(30):
        model, J = _boxcar(log, at, w, lag)
        step = np.linalg.lstsq(J, read - model, rcond=None)[0]
        for shorter in (1.0, 0.5, 0.25, 0.1, 0.02):
            w_new = float(np.clip(w + shorter * step[0], WINDOW_GRID_S[0] / 4, MAX_WINDOW_S))
            lag_new = float(np.clip(lag + shorter * step[1], -MAX_LAG_S, MAX_LAG_S))
            error_new = _misfit(log, at, read, w_new, lag_new)
            if error_new < error:
                break
        else:
            break
        gained, w, lag, error = error - error_new, w_new, lag_new, error_new
        if gained < 1e-9 * error:
            break
    return w, lag
