"""Thermal constants from logs: time constants under one load, the rise in the end, and whether it has been reached."""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from profsvc.formulas.numerics.arrays import Array, Bools, Mask, flat_floats, floats, is_implausible, mask
from profsvc.formulas.numerics.distributions import student_quantile
from profsvc.formulas.numerics.flags import Flag
from profsvc.formulas.thermal.noise import constant_load_segments
from profsvc.formulas.thermal.time_constants import relaxation
from profsvc.formulas.thermal.time_constants.relaxation import BlockMeans, Estimate

MAX_SATURATED_SLOPE_C_PER_MIN = 0.2
SATURATION_WINDOW_S = 30.0
MIN_BENCHMARKS = 4
MIN_CHANGE_C = 3.0
MAX_KNOWN_ERROR = 0.05  # of a time constant


class RcFit(NamedTuple):
    """Exponentials through a log, the fastest first; ends of the intervals hold 95 %.

    A constant that is faster than the readings tell is NaN with a low end of 0: it lies below the high end. One that is
    NaN otherwise is not known within a factor of 10; nor is an end that is NaN. `refusal` is empty where the fit may be
    used.
    """

    rc_s: Array
    low_s: Array
    high_s: Array
    change_c: Array
    start_c: float
    end_c: float
    residual_c: float
    readings: int
    refusal: str
    flags: Mask


class Saturation(NamedTuple):
    """Whether the temperature has come to rest, the slope over the last stretch, and its standard error."""

    saturated: bool
    slope_c_per_min: float
    standard_error_c_per_min: float
    readings: int
    flags: Mask


class MaxRise(NamedTuple):
    """Parameters of Eq 53 with the ends of their intervals of 95 %, in the order mu, lambda, rho."""

    mu: float
    lam: float
    rho: float
    low: Array
    high: Array
    residual_c: float
    benchmarks: int
    flags: Mask


def fit_rise(time_s: ArrayLike, temperature_c: ArrayLike) -> RcFit:
    r"""Time constant of warming under one load, from any temperature.

    .. math:: T(t) = T_\infty + (T_0 - T_\infty)\,e^{-t/RC}

    A board has more constants than this one: to it are added, up to four, what the likelihood wants; each interval
    knows rounding and wander (`profsvc.formulas.thermal.noise.autocorrelated_fit`).

    Source: [Hong2012] Eq 49 with the start left free. Leakage feeds back, so that under a constant load the constant
    is RC / (1 - mu sigma): a few percent above that of
    `profsvc.formulas.thermal.time_constants.rc_fit_under_load.fit_load`, which knows the power.

    Args:
        time_s: Stamps within one load, flat [s].
        temperature_c: Temperature [degC].

    Returns: RcFit; the sum of ``change_c`` is delta if the board started idle.

    Range: refused, with the figure, for fewer than 20 readings, a change below 3 degC or within the scatter of the
        readings, a temperature that falls, and where no constant is known within a factor of 3
        or as a bound.

    Errors: TypeError for a wrong dtype, ValueError for shapes that do not fit.

    >>> t = np.arange(0.0, 150.0, 0.5)
    >>> found = fit_rise(t, np.floor(57 + 21 * (1 - np.exp(-t / 35))))
    >>> (found.low_s < 35) & (35 < found.high_s), found.refusal
    (array([ True]), '')
    """
    return _exponential_fit(time_s, temperature_c, 1.0)


def fit_decay(time_s: ArrayLike, temperature_c: ArrayLike) -> RcFit:
    r"""Time constant of cooling after a load, down to any temperature.

    .. math:: T(t) = T_\infty + \gamma\,e^{-t/RC}

    Source: [Hong2012] Eq 50; see `fit_rise`.

    Args:
        time_s: Stamps after the load, flat [s].
        temperature_c: Temperature [degC].

    Returns: RcFit; the sum of ``change_c`` is minus gamma.

    Range: as `fit_rise`, for a temperature that rises instead.

    Errors: TypeError for a wrong dtype, ValueError for shapes that do not fit.

    >>> t = np.arange(0.0, 200.0, 0.5)
    >>> found = fit_decay(t, np.floor(57 + 21 * np.exp(-t / 60)))
    >>> (found.low_s < 60) & (60 < found.high_s), found.refusal
    (array([ True]), '')
    >>> fit_decay(t, 40 + 0 * t).refusal
    'the temperature changes by 0.0 °C; a time constant needs 3 °C'
    """
    return _exponential_fit(time_s, temperature_c, -1.0)


def is_known_within(value_s: ArrayLike, low_s: ArrayLike, high_s: ArrayLike, share: float = MAX_KNOWN_ERROR) -> Bools:
    r"""Whether time constants are known within a share of their value: their intervals lie within it.

    .. math:: (1 - s)\,RC \le RC_{low}, \quad RC_{high} \le (1 + s)\,RC

    Source: this project.

    Args:
        value_s: Constants, of `fit_rise`, `fit_decay` or `rc_fit_under_load.fit_load` [s].
        low_s: Lower ends of their intervals [s].
        high_s: Upper ends [s].
        share: How far the ends may lie from the constant, of it.

    Returns: booleans of the common shape.

    Range: False where one of the three is NaN.

    Errors: TypeError for a wrong dtype, ValueError for shapes that do not broadcast.

    >>> is_known_within([40.0, 40.0, np.nan], [39.0, 30.0, 0.0], [41.0, 50.0, 0.2]).tolist()
    [True, False, False]
    """
    value, low, high = floats(value_s=value_s, low_s=low_s, high_s=high_s)
    return np.asarray((low >= (1 - share) * value) & (high <= (1 + share) * value))


def _exponential_fit(time_s: ArrayLike, temperature_c: ArrayLike, sign: float) -> RcFit:
    t, T = flat_floats(time_s=time_s, temperature_c=temperature_c)
    good = np.isfinite(t) & np.isfinite(T)
    t, T = t[good], T[good]
    none, unknown = np.empty(0), float("nan")
    nothing = RcFit(
        none, none, none, none, unknown, unknown, unknown, t.size, "", mask((Flag.INPUT_SUSPECT, True))
    )  # fmt: skip
    if t.size < constant_load_segments.MIN_READINGS or not np.ptp(t) > 0:
        return nothing._replace(
            refusal=f"readings: {t.size}; a time constant needs {constant_load_segments.MIN_READINGS}"
        )
    r = constant_load_segments.temperature_readings(t - t.min(), T)
    span = float(constant_load_segments.significant_ranges(constant_load_segments.segment_blocks(r))[0])
    if span < MIN_CHANGE_C:
        return nothing._replace(
            refusal=f"the temperature changes by {span:.1f} \u00b0C; a time constant needs {MIN_CHANGE_C:g} \u00b0C"
        )
    blocks = relaxation.block_means(r.time, T, np.zeros(1))
    now = _fit_exponentials(blocks)
    order = np.argsort(now.p)
    parts = now.linear[order]
    end, start = float(now.linear[-1]), float(now.linear.sum())
    step = constant_load_segments.rounding_step(T)
    hidden = [np.sqrt(v) * shown for shown, v in constant_load_segments.rounded_plateau(r, blocks, step)]
    hidden += relaxation.rounding_drift_errors(blocks, step)
    ends = relaxation.intervals(now, np.eye(now.p.size)[order], hidden, blocks.noise)
    reported = relaxation.reportable_interval(ends, blocks.interval, float(np.ptp(t)))
    refusal = relaxation.refusal_reason(now, order, ends, reported)
    if sign * parts.sum() > 0:
        refusal = f"the temperature goes from {start:.1f} to {end:.1f} \u00b0C: the wrong way"
    flags = mask((Flag.INPUT_SUSPECT, bool(refusal) or bool((~good).any())))
    value, low, high = reported.T
    residual = float(np.sqrt(np.average(now.rest**2, weights=blocks.size)))
    return RcFit(value, low, high, -parts, start, end, residual, t.size, refusal, flags)


def _fit_exponentials(blocks: BlockMeans) -> Estimate:
    """Return the fit with as many exponentials as the likelihood supports, all rising or all falling."""
    ladder = np.log(relaxation.TIME_CONSTANT_GRID_S)

    def columns(p: Array) -> Array:
        E = np.exp(-blocks.point[:, np.newaxis] / np.exp(p).reshape(-1))
        E = blocks.mean(E).reshape(-1, *p.shape).swapaxes(0, 1)
        return np.concatenate([E, np.ones((len(p), blocks.time.size, 1))], axis=2)

    def more(p: Array) -> Array:
        return (
            relaxation.constant_pairs(ladder)
            if p.size == 1
            else np.column_stack([np.tile(p, (ladder.size, 1)), ladder])
        )

    problem = relaxation.Problem(blocks, columns)
    return relaxation.forward_selection(problem, ladder[:, np.newaxis], more, lambda _, linear: linear[:-1])


def at_rest(time_s: ArrayLike, temperature_c: ArrayLike, rc_s: float | None = None) -> Saturation:
    r"""Whether the temperature has come to rest at the end of a log.

    It has if the slope over the last 30 s is below 0.2 degC/min, or, where the constant is known, after five of them.

    Source: the rule this project takes for "saturated" in [Hong2012] section 4.3, which averages 30 readings after it.

    Args:
        time_s: Stamps since the load began, flat [s].
        temperature_c: Temperature [degC].
        rc_s: Time constant, if known [s].

    Returns: Saturation. A slope less than two standard errors from the limit is not proof: INPUT_SUSPECT.

    Range: not saturated, with INPUT_SUSPECT, if less than 30 s or fewer than 10 readings are there.

    Errors: TypeError for a wrong dtype, ValueError for shapes that do not fit.

    >>> from profsvc.formulas.thermal.rc_model import temperature
    >>> t = np.arange(0.0, 600.0)
    >>> at_rest(t, temperature(t, 57.0, 21.0, 35.0)).saturated, at_rest(t[:60], t[:60]).saturated
    (True, False)
    """
    t, T = flat_floats(time_s=time_s, temperature_c=temperature_c)
    good = np.isfinite(t) & np.isfinite(T)
    t, T = t[good], T[good]
    last = t >= t.max(initial=-np.inf) - SATURATION_WINDOW_S
    n = int(last.sum())
    if n < 10 or np.ptp(t) < SATURATION_WINDOW_S:
        return Saturation(False, np.nan, np.nan, n, mask((Flag.INPUT_SUSPECT, True)))
    x, y = t[last] - t[last].mean(), T[last] - T[last].mean()
    slope = 60 * float(x @ y / (x @ x))
    error = 60 * float(np.sqrt(((y - slope / 60 * x) ** 2).sum() / (n - 2) / (x @ x)))
    rests = abs(slope) < MAX_SATURATED_SLOPE_C_PER_MIN or (rc_s is not None and float(np.ptp(t)) > 5 * rc_s)
    unsure = abs(abs(slope) - MAX_SATURATED_SLOPE_C_PER_MIN) < 2 * error
    return Saturation(bool(rests), slope, error, n, mask((Flag.INPUT_SUSPECT, unsure)))


def fit_max_rise(rise_c: ArrayLike, runtime_power_w: ArrayLike, intensity: ArrayLike) -> MaxRise:
    r"""Parameters of `max_rise` from the rises of several benchmarks, by ordinary least squares.

    .. math:: \delta_b = \mu P_b + \lambda + \rho I_b

    Source: [Hong2012] Eq 53 and Table 9 (0.120, 5.5, 21.505 on a GTX280).

    Args:
        rise_c: Rise of each benchmark, saturated, above idle [degC].
        runtime_power_w: Its power above idle on the cold board [W].
        intensity: Its `memory_intensity`.

    Returns: MaxRise.

    Range: NaN with INPUT_SUSPECT for fewer than four benchmarks of different intensity, and where power and
        intensity go together so that they cannot be distinguished. With four the interval stands on one degree of
        freedom.

    Errors: TypeError for a wrong dtype, ValueError for shapes that do not fit.

    >>> from profsvc.formulas.thermal.rc_model import max_rise
    >>> P, I = np.array([45.8, 60.0, 80.0, 100.0, 115.7]), np.array([0.0, 0.2, 0.02, 0.15, 1 / 13.3])
    >>> found = fit_max_rise(max_rise(P, I, 0.12, 5.5, 21.505), P, I)
    >>> round(found.mu, 3), round(found.lam, 2), round(found.rho, 3)
    (0.12, 5.5, 21.505)
    """
    delta, P, I = flat_floats(rise_c=rise_c, runtime_power_w=runtime_power_w, intensity=intensity)
    good = np.isfinite(delta) & ~is_implausible(P, I)
    delta, P, I = delta[good], P[good], I[good]
    X = np.column_stack([P, np.ones(P.size), I])
    scale = np.maximum(np.abs(X).max(axis=0, initial=0.0), 1e-300)
    n, freedom = P.size, P.size - 3
    nothing = np.full(3, np.nan)
    if np.unique(I).size < MIN_BENCHMARKS or np.linalg.matrix_rank(X / scale, tol=1e-6) < 3:
        return MaxRise(np.nan, np.nan, np.nan, nothing, nothing, np.nan, n, mask((Flag.INPUT_SUSPECT, True)))
    found = np.linalg.lstsq(X / scale, delta, rcond=None)[0] / scale
    residual = float(np.sqrt(((delta - X @ found) ** 2).sum() / freedom))
    error = residual * np.sqrt(np.diagonal(np.linalg.inv((X / scale).T @ (X / scale)))) / scale
    reach = error * student_quantile(0.975, freedom)
    flags = mask((Flag.INPUT_SUSPECT, bool((~good).any())))
    mu, lam, rho = (float(x) for x in found)
    return MaxRise(mu, lam, rho, found - reach, found + reach, residual, n, flags)
