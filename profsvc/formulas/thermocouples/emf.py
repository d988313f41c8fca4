r"""Thermocouples between a chip and its heat sink: from emf to temperature, and the mean once they have settled."""

from typing import NamedTuple

import numpy as np
from numpy.polynomial import polynomial
from numpy.typing import ArrayLike, NDArray

from profsvc.formulas.numerics.arrays import Array, Bools, Mask, arrays, floats, is_implausible, mask
from profsvc.formulas.numerics.flags import AS_PUBLISHED, CONSISTENT, Flag, check_form

# Emf of type J in uV for a reference junction at 0 degC, t in degC from -210 to 760, lowest power first.
TYPE_J_UV = (
    0.0, 5.038118781500e01, 3.047583693000e-02, -8.568106572000e-05, 1.322819529500e-07,
    -1.705295833700e-10, 2.094809069700e-13, -1.253839533600e-16, 1.563172569700e-20,
)  # fmt: skip
TYPE_J_C = (-210.0, 760.0)
ROUNDED_UV = 0.5  # the printed tables end at emfs rounded to 1 uV
PUBLISHED_C = (0.0, 750.0)
PUBLISHED_V_PER_C = 55e-6

READINGS = 30
WINDOW_S = 30.0
DRIFT_LIMIT_C_PER_MIN = 0.2
SETTLING_TIME_CONSTANTS = 5.0
MAX_AUTOCORRELATION = 0.9  # beyond it 30 readings do not tell noise from drift
SAME_C = 1e-6  # readings closer than this are equal: no logger resolves it
DECIMALS_C = (1.0, 0.1, 0.01, 0.001)


class Temperature(NamedTuple):
    """Temperatures [degC]."""

    value: Array
    flags: Mask


class SteadyMean(NamedTuple):
    """Result of `steady_mean`; ``raw`` is the mean whether settled or not."""

    raw: Array
    value: Array
    standard_error: Array
    drift: Array
    drift_error: Array
    window_s: Array
    readings: NDArray[np.int64]
    settled: Bools
    flags: Mask


class Drift(NamedTuple):
    """Slope of the last readings and its standard error [degC/min], and the window both are of."""

    slope: Array
    error: Array
    window_s: Array


def emf_to_temperature(emf_v: ArrayLike, reference_c: ArrayLike, form: str = CONSISTENT) -> Temperature:
    r"""Temperature of the measuring junction of a type J thermocouple.

    .. math:: E_J(T) = V + E_J(T_{ref}), \qquad E_J(t) = \sum_{i=0}^{8} c_i t^i

    solved for T by Newton's method. Printed: T = T_ref + V / 55 uV/degC, which is one slope for 0 to 750 degC; near
    room temperature the slope is 51 uV/degC, so that a chip at 80 degC reads 2 degC too low.

    Source: [Burns1993] table 6.3.1, coefficients of the reference function for -210 to 760 degC; [Hong2012]
    section 4.3.1 for the type, its range and 55 uV/degC.

    Args:
        emf_v: What the instrument measured between the wires, V [V].
        reference_c: Temperature of the reference junction, where the wires end [degC].
        form: ``consistent`` solves the reference function; ``as_published`` takes the one slope.

    Returns: Temperature, of the common shape.

    Range: consistent [-210, 760] degC, and NaN with EXTRAPOLATED beyond; as_published any, EXTRAPOLATED outside
    [0, 750]. NaN or inf: NaN, INPUT_SUSPECT.

    Errors: TypeError for a wrong dtype, ValueError for shapes that do not broadcast or an unknown form.

    >>> emf_to_temperature([5.269e-3, 0.0], [0.0, 25.0]).value.round(2).tolist()
    [100.0, 25.0]
    >>> float(emf_to_temperature(5.5e-3, 25.0, "as_published").value.round(9))
    125.0
    """
    check_form(form)
    V, T_ref = floats(emf_v=emf_v, reference_c=reference_c)
    bad = ~(np.isfinite(V) & np.isfinite(T_ref))
    with np.errstate(all="ignore"):
        if form == AS_PUBLISHED:
            T = T_ref + V / PUBLISHED_V_PER_C
            beyond = _outside(T, *PUBLISHED_C)
            T = np.where(bad, np.nan, T)
        else:
            E = V * 1e6 + polynomial.polyval(T_ref, TYPE_J_UV)
            low, high = polynomial.polyval(np.array(TYPE_J_C), TYPE_J_UV)
            beyond = _outside(E, low - ROUNDED_UV, high + ROUNDED_UV) | _outside(T_ref, *TYPE_J_C)
            T = _inverse(np.where(bad | beyond, np.nan, E))
    return Temperature(*arrays(T, mask((Flag.INPUT_SUSPECT, bad), (Flag.EXTRAPOLATED, beyond & ~bad))))


def _outside(x: Array, low: float, high: float) -> Bools:
    return np.asarray((x < low) | (x > high))


def _inverse(E: Array) -> Array:
    T = E * 1e-6 / PUBLISHED_V_PER_C
    slope = polynomial.polyder(np.array(TYPE_J_UV))
    for _ in range(8):  # E_J is smooth and increasing: the error squares with every step, from 60 degC at most
        T = np.clip(T - (polynomial.polyval(T, TYPE_J_UV) - E) / polynomial.polyval(T, slope), *TYPE_J_C)
    return np.asarray(T)


def saturation(time_s: ArrayLike, rc_s: ArrayLike) -> Array:
    r"""Share of the rise that a chip has made some time after the load began.

    .. math:: \frac{T(t) - T_{idle}}{\delta} = 1 - e^{-t/RC}

    Source: [Hong2012] Eq 49, divided by its delta.

    Args:
        time_s: Time since the load began, t [s].
        rc_s: Time constant of the rise, RC [s].

    Returns: shares, of the common shape [1].

    Range: [0, 1). Negative, NaN or inf, or RC = 0: NaN.

    Errors: TypeError for a wrong dtype, ValueError for shapes that do not broadcast.

    The source's runs of 120 s, had the card the 35 s of the GTX280:

    >>> float(saturation(120, 35).round(4))
    0.9676
    """
    t, RC = floats(time_s=time_s, rc_s=rc_s)
    with np.errstate(all="ignore"):
        return np.asarray(np.where(is_implausible(t, RC) | (RC == 0), np.nan, -np.expm1(-t / RC)))


def steady_mean(
    time_s: ArrayLike,
    temperature_c: ArrayLike,
    *,
    readings: int = READINGS,
    window_s: float = WINDOW_S,
    limit_c_per_min: float = DRIFT_LIMIT_C_PER_MIN,
    rc_s: ArrayLike | None = None,
) -> SteadyMean:
    r"""Mean of the last readings of each sensor, once it no longer drifts.

    .. math:: \bar T = \frac{1}{n} \sum_{i=N-n+1}^{N} T_i, \qquad
              \Bigl|\frac{dT}{dt}\Bigr| < 0.2 \text{ degC/min over the last } w \text{ s, or } t > 5\,RC

    The slope is by least squares; w is ``window_s``, or what the readings averaged span if that is more, doubled until
    the slope is known within a third of the limit, so that noise and coarse steps of the logger neither feign nor hide
    a drift. A longer window sees more of an exponential approach, never less. Standard errors allow for correlation of
    consecutive readings; steps of the logger count as noise, and readings that move by less than half a step do not
    average it away. Where all readings are equal the step is their last decimal, such as 1 degC for 60.

    Source: [Hong2012] section 4.5.2, an average of 30 readings after saturation; the rule for saturation is this
    project's.

    Args:
        time_s: Times of the readings, series on the last axis [s]; in any order.
        temperature_c: Readings, likewise, one series a sensor [degC]; NaN is no reading.
        readings: How many of the last readings are averaged, n.
        window_s: Shortest window for the slope [s].
        limit_c_per_min: Slope from which a sensor is not settled [degC/min].
        rc_s: Time constant of the rise, one value per sensor; then a series that begins with the load counts as settled
            after five of them [s].

    Returns: SteadyMean, one value per sensor. ``value`` is NaN where the sensor has not settled, with INPUT_SUSPECT.

    Range: raw within the readings; NaN with INPUT_SUSPECT where there are fewer than ``readings``.

    Errors: TypeError for a wrong dtype, ValueError for shapes that do not broadcast or limits that are not positive.

    >>> t = np.arange(0.0, 600.0)
    >>> rise = 45 + 20 * (1 - np.exp(-t / 35)) + 0.05 * (-1) ** np.arange(600)
    >>> both = steady_mean(t, [rise, np.where(t < 60, rise, np.nan)])
    >>> both.settled.tolist(), both.raw.round(2).tolist(), both.value.round(2).tolist()
    ([True, False], [65.0, 59.22], [65.0, nan])
    """
    if readings < 3 or not window_s > 0 or not limit_c_per_min > 0:
        raise ValueError(
            f"readings={readings}, window_s={window_s}, limit_c_per_min={limit_c_per_min}; "
            "allowed: at least 3 readings, the others positive"
        )
    t, T = (np.atleast_1d(x) for x in floats(time_s=time_s, temperature_c=temperature_c))
    t, T, n = _in_order(t, T)
    step = _step(T)
    enough = n >= readings
    last = T[..., -readings:]
    with np.errstate(all="ignore"):
        raw = np.where(enough, last.sum(axis=-1) / readings, np.nan)
        deviation = last - raw[..., np.newaxis]
        error = _mean_error(deviation, step)
        averaged = np.where(enough, (t[..., -1:] - t[..., -readings:]).max(axis=-1, initial=0.0), 0.0)
        slope, slope_error, window = _drift(t, T, step, np.maximum(averaged, window_s), window_s, limit_c_per_min)
        steady = (np.abs(slope) < limit_c_per_min) & (slope_error <= limit_c_per_min / 3)
        if rc_s is not None:
            since = t[..., -1] - np.min(np.where(np.isfinite(t), t, np.inf), axis=-1, initial=np.inf)
            RC = np.broadcast_to(floats(rc_s=rc_s)[0], since.shape)
            steady = steady | ((since > SETTLING_TIME_CONSTANTS * RC) & (RC > 0))
    settled = np.asarray(enough & steady)
    value, error = np.where(settled, raw, np.nan), np.where(enough, error, np.nan)
    flags = mask((Flag.INPUT_SUSPECT, ~settled))
    return SteadyMean(*arrays(raw, value, error, slope, slope_error, window, np.minimum(n, readings), settled, flags))


def _in_order(t: Array, T: Array) -> tuple[Array, Array, NDArray[np.int64]]:
    """Series in order of time, what is no reading first, as NaN at time -inf; and how many readings each has."""
    good = np.isfinite(t) & np.isfinite(T)
    t, T = np.where(good, t, -np.inf), np.where(good, T, np.nan)
    order = np.argsort(t, axis=-1, kind="stable")
    return np.take_along_axis(t, order, -1), np.take_along_axis(T, order, -1), good.sum(axis=-1)


def _step(T: Array) -> Array:
    """Step of the logger: the smallest difference of two readings, or the last decimal of the only one."""
    gaps = np.diff(np.sort(T, axis=-1), axis=-1)
    least = np.min(np.where(gaps > SAME_C, gaps, np.inf), axis=-1, initial=np.inf)
    only = np.max(np.where(np.isfinite(T), np.abs(T), 0.0), axis=-1, initial=0.0)
    decimal = np.full(only.shape, DECIMALS_C[-1])
    for unit in DECIMALS_C[::-1]:
        decimal = np.where(np.abs(only / unit - np.round(only / unit)) * unit < SAME_C, unit, decimal)
    return np.asarray(np.where(np.isfinite(least), least, decimal))


def _inflation(deviation: Array) -> Array:
    """Factor on the variance of a mean of readings that are correlated (first-order autoregression)."""
    before, after = deviation[..., :-1], deviation[..., 1:]
    r = np.sum(before * after, axis=-1) / np.sum(deviation**2, axis=-1)
    r = np.clip(np.nan_to_num(r), 0.0, MAX_AUTOCORRELATION)
    return np.asarray((1 + r) / (1 - r))


def _mean_error(deviation: Array, step: Array) -> Array:
    n = deviation.shape[-1]
    variance = np.sum(deviation**2, axis=-1) / (n - 1)
    error = np.sqrt(variance * _inflation(deviation) / n)
    stepped = np.sqrt(variance) < step / 2
    return np.asarray(np.where(stepped, np.maximum(error, step / np.sqrt(12)), error))


def _drift(t: Array, T: Array, step: Array, window: Array, least_s: float, limit: float) -> Drift:
    shape = t.shape[:-1]
    if t.shape[-1] == 0:
        return Drift(*(np.full(shape, np.nan) for _ in range(3)))
    span = t[..., -1] - np.min(np.where(np.isfinite(t), t, np.inf), axis=-1)
    best = _slope(t, T, window, step)
    while (wanting := ~(best[1] <= limit / 3) & (span >= 2 * window)).any():
        window = np.where(wanting, 2 * window, window)
        wider = _slope(t, T, window, step)
        best = np.where(wanting, wider[0], best[0]), np.where(wanting, wider[1], best[1])
    covered = span >= 0.9 * least_s  # 30 readings a second apart span 29 s
    return Drift(*(np.where(covered, x, np.nan) for x in (*best, window)))


def _slope(t: Array, T: Array, window: Array, step: Array) -> tuple[Array, Array]:
    """Slope by least squares and its standard error, in degC/min, of the readings in the last window."""
    inside = np.isfinite(t) & (t >= (t[..., -1] - window)[..., np.newaxis])
    # Of a long log only the end is looked at.
    first = int(np.argmax(inside.any(axis=tuple(range(inside.ndim - 1)))))
    inside, t, T = inside[..., first:], t[..., first:], T[..., first:]
    n = inside.sum(axis=-1, keepdims=True)
    t, T = (np.where(inside, x, 0.0) for x in (t, T))
    t, T = (np.where(inside, x - x.sum(axis=-1, keepdims=True) / n, 0.0) for x in (t, T))
    S_tt = np.sum(t * t, axis=-1)
    slope = np.sum(t * T, axis=-1) / S_tt
    residual = np.where(inside, T - slope[..., np.newaxis] * t, 0.0)
    variance = np.sum(residual**2, axis=-1) / (n[..., 0] - 2) * _inflation(residual)
    variance = np.maximum(variance, step**2 / 12)
    known = n[..., 0] > 2
    return np.where(known, 60 * slope, np.nan), np.where(known, 60 * np.sqrt(variance / S_tt), np.nan)
