"""Calibration of thermocouples between plates of uniform temperature: what each reads beside the mean of all."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from profsvc.formulas.numerics.arrays import Array, Bools, Mask, arrays, floats, mask, numbers
from profsvc.formulas.numerics.flags import Flag
from profsvc.formulas.thermocouples.emf import READINGS, Temperature

BATCH = 5
RESIDUAL_LIMIT_C = 1.0
MIN_RANGE_C = 5.0  # of the plates: over less, noise makes the gain


class Calibration(NamedTuple):
    """Result of `calibrate`: one value per sensor; of ``begin_s``, ``readings`` and ``settled`` one value per plate."""

    offset_c: Array
    gain: Array
    standard_error_c: Array
    residual_c: Array
    begin_s: Array
    readings: NDArray[np.int64]
    settled: Bools
    passed: Bools
    flags: Mask


class _Plate(NamedTuple):
    begin: float
    T: Array
    M: Array
    settled: bool


def calibrate(
    time_s: ArrayLike,
    temperature_c: ArrayLike,
    plate: ArrayLike | None = None,
    *,
    gain: bool = False,
    limit_c: float = RESIDUAL_LIMIT_C,
) -> Calibration:
    r"""Offset, and on demand gain, of each thermocouple against the mean of all on plates of uniform temperature.

    .. math:: T_k = a_k + g_k M, \quad M = \frac{1}{K} \sum_k T_k, \qquad
              a_k = \mathrm{mean}_t (T_k - M), \; g_k = 1 \text{ without gain}

    With gain a line is fitted through the means of at least two plates. Only the settled window counts: the first
    differences come from uneven pressure. It begins where the standard error of what follows is smallest, over all
    sensors together: with d deleted of n batches, the minimum over d < n/2 of

    .. math:: \frac{1}{(n-d)^2} \sum_k \sum_{i>d} (D_{k,i} - \bar D_k)^2, \qquad D_k = T_k - M

    The plates themselves may drift: that is common to all sensors. So is an error common to all, which no difference
    shows: offsets are relative to the mean.

    Source: [Hong2012] section 4.5.1 for the two plates; [WhiteMinnox1994] for the window, in batches of five; the
    limit on the residual is this project's.

    Args:
        time_s: Times of the readings, of shape (N,) [s].
        temperature_c: Readings, of shape (K, N) [degC]; a time without a reading of a sensor is left out, and a sensor
            without readings at half of the times is left out altogether.
        plate: Which plate temperature each reading is of, integers of shape (N,); one plate if not given.
        gain: Fit the gain as well.
        limit_c: Largest residual of a reading that passes [degC].

    Returns: Calibration; ``standard_error_c`` is that of the offset, ``residual_c`` the largest residual of a settled
    reading, plates in ascending order of their ids. `calibrated` applies it.

    Range: offsets of the sensors used sum to 0, their gains have mean 1. INPUT_SUSPECT and NaN for a sensor left out;
    INPUT_SUSPECT and not passed for fewer than two sensors, where a plate never settles or has fewer than 30 settled
    readings, and with gain where the plates differ by less than 5 degC.

    Errors: TypeError for a wrong dtype, ValueError for shapes that do not fit.

    >>> t = np.arange(200.0)
    >>> pressed = 3 * np.exp(-t / 10)
    >>> fit = calibrate(t, [25.2 + 0 * t, 24.9 + pressed, 24.9 + 0.01 * (-1) ** t])
    >>> fit.offset_c.round(2).tolist(), bool(fit.passed), float(fit.begin_s[0])
    ([0.2, -0.1, -0.1], True, 70.0)
    """
    t, T, ids = _shaped(time_s, temperature_c, plate)
    read = np.isfinite(T)
    alive = read.mean(axis=1, where=np.isfinite(t)) > 0.5 if t.size else np.zeros(len(T), dtype=np.bool_)
    whole = read[alive].all(axis=0) & np.isfinite(t)
    names = np.unique(ids)
    plates = [_plate(t[rows], T[alive][:, rows]) for rows in (whole & (ids == name) for name in names)]
    a, g, error = _fit(plates, gain, int(alive.sum()))
    residual = np.zeros(len(a))
    for one in plates:
        if one.M.size:
            deviation = (one.T - a[:, np.newaxis]) / g[:, np.newaxis] - one.M
            residual = np.maximum(residual, np.abs(deviation).max(axis=1))
    settled = np.array([one.settled for one in plates], dtype=np.bool_)
    sound = alive.sum() > 1 and settled.size > 0 and bool(settled.all())
    if gain:
        M = [one.M.mean() for one in plates if one.M.size]
        sound = sound and max(M) - min(M) >= MIN_RANGE_C
    passed = sound and bool((residual < limit_c).all())
    spread = [np.full(len(T), np.nan) for _ in range(4)]
    for target, values in zip(spread, (a, g, error, residual), strict=True):
        target[alive] = values
    begin = np.array([one.begin for one in plates])
    count = np.array([one.M.size for one in plates], dtype=np.int64)
    flags = mask((Flag.INPUT_SUSPECT, ~alive | (not sound)))
    return Calibration(*arrays(*spread, begin, count, settled, passed, flags))


def _shaped(time_s: ArrayLike, temperature_c: ArrayLike, plate: ArrayLike | None) -> tuple[Array, Array, NDArray[Any]]:
    (t,), (T,) = floats(time_s=time_s), floats(temperature_c=temperature_c)
    ids = np.zeros(t.shape, dtype=np.int64) if plate is None else numbers("plate", plate)
    if ids.dtype.kind not in "iu":
        raise TypeError(f"plate has dtype {ids.dtype}; allowed: integers")
    if T.ndim != 2 or t.shape != T.shape[1:] or ids.shape != t.shape:
        raise ValueError(
            f"time_s has shape {t.shape}, temperature_c {T.shape}, plate {ids.shape}; allowed: (N,), (K, N), (N,)"
        )
    return t, T, ids


def _plate(t: Array, T: Array) -> _Plate:
    """The settled window of one plate: its begin, the readings in it and their mean."""
    order = np.argsort(t, kind="stable")
    t, T = t[order], T[:, order]
    n = t.size // BATCH
    if n < 2 or len(T) < 2:
        return _Plate(np.nan, T[:, :0], np.empty(0), False)
    batches = T[:, : n * BATCH].reshape(len(T), n, BATCH).mean(axis=2)
    D = batches - batches.mean(axis=0)
    left = np.arange(n, 0, -1)
    total, squares = (np.cumsum(x[:, ::-1], axis=1)[:, ::-1] for x in (D, D**2))
    cost = np.sum(squares - total**2 / left, axis=0) / left**2
    half = max(n // 2, 1)
    d = int(np.argmin(cost[: half + 1]))
    kept = T[:, d * BATCH :]
    return _Plate(t[d * BATCH], kept, kept.mean(axis=0), d < half and kept.shape[1] >= READINGS)


def _fit(plates: list[_Plate], gain: bool, K: int) -> tuple[Array, Array, Array]:
    known = [one for one in plates if one.M.size]
    if not known:
        return np.full(K, np.nan), np.full(K, np.nan), np.full(K, np.nan)
    T = np.array([one.T.mean(axis=1) for one in known])
    M = np.array([one.M.mean() for one in known])
    within = np.array([np.var(one.T - one.M, axis=1) / one.M.size for one in known])
    a, g = (T - M[:, np.newaxis]).mean(axis=0), np.ones(K)
    free = len(known) - 1
    if gain:
        x = M - M.mean()
        with np.errstate(all="ignore"):
            g = x @ T / (x @ x)
        a, free = T.mean(axis=0) - g * M.mean(), free - 1
    between = np.sum((T - a - np.outer(M, g)) ** 2, axis=0) / max(free, 1)
    return a, g, np.sqrt((within.mean(axis=0) + between) / len(known))


def calibrated(temperature_c: ArrayLike, offset_c: ArrayLike, gain: ArrayLike = 1.0) -> Temperature:
    r"""Temperatures with the error of each sensor taken off.

    .. math:: T = \frac{T_k - a_k}{g_k}

    Source: this project, for `calibrate`; without gain T - offset.

    Args:
        temperature_c: Readings or means [degC].
        offset_c: Offset of the sensor, a_k [degC].
        gain: Its gain, g_k [1].

    Returns: Temperature, of the common shape.

    Range: any; NaN with INPUT_SUSPECT where an argument is NaN or inf, or the gain is not positive.

    Errors: TypeError for a wrong dtype, ValueError for shapes that do not broadcast.

    >>> calibrated([65.5, 64.0], [0.5, -1.0]).value.tolist()
    [65.0, 65.0]
    """
    T, a, g = floats(temperature_c=temperature_c, offset_c=offset_c, gain=gain)
    bad = ~(np.isfinite(T) & np.isfinite(a) & np.isfinite(g) & (g > 0))
    with np.errstate(all="ignore"):
        value = np.where(bad, np.nan, (T - a) / g)
    return Temperature(*arrays(value, mask((Flag.INPUT_SUSPECT, bad))))
