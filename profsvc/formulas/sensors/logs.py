"""Common steps of formulas on sensor logs: valid readings, gap limit, integrals, long-run variance."""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from profsvc.formulas.numerics.arrays import Array, Bools, flat_floats

Log = tuple[Array, Array]  # stamps and values

MIN_GAP_S = 3.0  # readings further apart than this leave a gap
MAX_LAGS = 400
MIN_GAP_INTERVALS = 3.0  # or than this many median intervals, if that is longer


class Readings(NamedTuple):
    """Valid readings in order of time; whether a stamp did not ascend."""

    time: Array
    value: Array
    disordered: bool


class Integral(NamedTuple):
    """Running integral of a log by trapezoids, and the running time that it covers."""

    time: Array
    value: Array
    area: Array
    covered: Array
    bridged: Bools


def ascending(t: Array) -> Bools:
    """Return which stamps to keep so that they ascend: of the two ways to drop others, the one that drops fewer.

    One stamp far ahead would otherwise throw away all that follow it.
    """
    if t.size < 2:
        return np.ones(t.size, dtype=np.bool_)
    if (np.diff(t) > 0).all():
        return np.ones(t.size, dtype=np.bool_)
    highest = np.maximum.accumulate(t)
    forward = np.concatenate(([True], t[1:] > highest[:-1]))
    lowest = np.minimum.accumulate(t[::-1])[::-1]
    backward = np.concatenate((t[:-1] < lowest[1:], [True]))
    return backward if backward.sum() > forward.sum() else forward


def readings(**named: ArrayLike) -> Readings:
    """Return the valid readings of a time and a value; errors use the names of the caller."""
    t, v = flat_floats(**named)
    finite = np.isfinite(t) & np.isfinite(v)
    t, v = (t, v) if finite.all() else (t[finite], v[finite])
    keep = ascending(t)
    if keep.all():
        return Readings(t, v, False)
    return Readings(t[keep], v[keep], True)


def median_interval(t: Array) -> float:
    """Median of the intervals between readings; NaN where there are none."""
    return float(np.median(np.diff(t))) if t.size > 1 else float("nan")


def gap_limit(t: Array, gap_s: float | None) -> float:
    """Longest interval between two readings that is no gap."""
    if gap_s is not None:
        return float(gap_s)
    interval = median_interval(t)
    return MIN_GAP_S if np.isnan(interval) else max(MIN_GAP_S, MIN_GAP_INTERVALS * interval)


def most_active_stretch(power: Log, other: Log, longest_s: float, margin_s: float) -> tuple[Log, Log]:
    """The stretch of both logs in which power moves most, if they are longer; the other one with a margin."""
    (tP, P), (tT, T) = power, other
    if tP[-1] - tP[0] <= longest_s:
        return power, other
    coarse = np.arange(tP[0], tP[-1], longest_s / 200)
    first = np.searchsorted(tP, coarse)
    mean = np.add.reduceat(P, np.minimum(first, P.size - 1)) / np.maximum(np.diff(np.append(first, P.size)), 1)
    moved = np.concatenate(([0.0], np.cumsum(np.abs(np.diff(mean)))))
    k = int(np.argmax(moved[200:] - moved[:-200])) if moved.size > 200 else 0
    begin, end = coarse[k], coarse[k] + longest_s
    inP, inT = (tP >= begin) & (tP <= end), (tT >= begin - margin_s) & (tT <= end + margin_s)
    return (tP[inP], P[inP]), (tT[inT], T[inT])


def integral(t: Array, v: Array, limit: float) -> Integral:
    """Running integral, standing still over gaps."""
    dt = np.diff(t)
    bridged = dt <= limit
    step = np.where(bridged, dt, 0.0)
    area = np.concatenate(([0.0], np.cumsum(0.5 * (v[1:] + v[:-1]) * step)))
    return Integral(t, v, area, np.concatenate(([0.0], np.cumsum(step))), bridged)


def integral_at(log: Integral, x: Array) -> tuple[Array, Array]:
    """Return integral and covered time from the first reading to x; beyond the ends they are constant."""
    t, v = log.time, log.value
    if t.size < 2:
        return np.zeros(x.shape), np.zeros(x.shape)
    x = np.clip(x, t[0], t[-1])
    k = np.clip(np.searchsorted(t, x, side="right") - 1, 0, t.size - 2)
    part = np.where(log.bridged[k], x - t[k], 0.0)
    slope = (v[k + 1] - v[k]) / (t[k + 1] - t[k])
    area = log.area[k] + part * (v[k] + 0.5 * part * slope)
    covered = log.covered[k] + part
    last = x == t[-1]
    return np.where(last, log.area[-1], area), np.where(last, log.covered[-1], covered)


def robust_covariance(J: NDArray[np.float64], residual: Array, lags: int) -> NDArray[np.float64]:
    """Return the covariance of a least squares fit whose residuals are correlated over a number of lags."""
    n, k = J.shape
    bread = np.linalg.pinv(J.T @ J)
    score = J * residual[:, np.newaxis]
    meat = score.T @ score
    for lag in range(1, min(lags, n - 1) + 1):
        part = score[lag:].T @ score[:-lag]
        meat += (1 - lag / (lags + 1)) * (part + part.T)
    return np.asarray(bread @ meat @ bread * (n / max(n - k, 1)))


def long_run_variance(u: Array, r: Array, g: NDArray[np.intp], n: NDArray[np.int64]) -> tuple[Array, NDArray[np.int64]]:
    """Long-run variance of the scores u r of each group, and over how many lags."""

    def product(x: Array, lag: int) -> Array:
        same = g[lag:] == g[:-lag]
        return np.bincount(g[lag:][same], weights=(x[lag:] * x[:-lag])[same], minlength=n.size) / n

    def correlation(x: Array) -> Array:
        return np.asarray(np.nan_to_num(product(x, 1) / (np.bincount(g, weights=x * x, minlength=n.size) / n)))

    rho = correlation(r)
    rho = np.clip(rho + (2 + 4 * rho) / n, 0.0, np.minimum(0.98, 1 - 2 / n))  # a trend taken out biases it down
    white = u * r
    inside = np.flatnonzero(g[1:] == g[:-1]) + 1
    white[inside] -= rho[g[inside]] * (u * r)[inside - 1]
    left = np.clip(correlation(white), -0.97, 0.97)
    wanted = 1.1447 * (4 * left**2 / (1 - left**2) ** 2 * n) ** (1 / 3)
    lags = np.minimum(np.maximum(np.ceil(wanted), 4 * (n / 100) ** (2 / 9)), np.minimum(n // 4, MAX_LAGS))
    lags = np.maximum(lags, 0).astype(np.int64)
    omega = np.bincount(g, weights=white * white, minlength=n.size) / n
    for lag in range(1, int(lags.max(initial=0)) + 1):
        omega = omega + 2 * np.maximum(1 - lag / (lags + 1.0), 0.0) * product(white, lag)
    return np.maximum(omega, 0.0) / (1 - rho) ** 2, lags


def error_inflation(share: Array) -> Array:
    """Return the factor on an error whose estimate used lags, given as a share of the readings: 1 for none."""
    return np.asarray(1 + (2.9694 * share + 0.4160 * share**2 - 0.5324 * share**3) / 1.96)
