"""Temperature of a board over a plan of loads, with an interval, and what its warmth adds to power and energy."""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from profsvc.formulas.numerics.arrays import Array, flat_floats, floats
from profsvc.formulas.numerics.distributions import student_quantile
from profsvc.formulas.thermal.rc_model import temperature_scan

POINTS = 240  # per load
MIN_ERRORS = 3


class RcNetwork(NamedTuple):
    """A thermal model of parts with one time constant each, all arrays flat and of one length.

    ``zero_c`` is the temperature without any power. A part has its constant of the rise while it warms.
    """

    zero_c: float
    resistance_c_per_w: Array
    rc_rise_s: Array
    rc_decay_s: Array

    @property
    def total_c_per_w(self) -> float:
        """Steady rise per watt."""
        return float(self.resistance_c_per_w.sum())


class PlanCurve(NamedTuple):
    """Temperature over a plan, and the ends of its interval; NaN where that is unknown."""

    time_s: Array
    power_w: Array
    temperature_c: Array
    low_c: Array
    high_c: Array


def plan_curve(network: RcNetwork, power_w: ArrayLike, duration_s: ArrayLike, start_c: float) -> PlanCurve:
    r"""Temperature of a board over loads that follow each other.

    .. math:: T(t) = T_0 + \sum_i R_i\,\theta_i(t), \qquad \dot\theta_i = \frac{P - \theta_i}{RC_i}

    The board begins in the equilibrium that has the temperature at the start.

    Source: [Hong2012] Eq 49 and 50 are the cases of one part.

    Args:
        network: The model.
        power_w: Power of each load, flat [W].
        duration_s: Its duration, of the same shape [s].
        start_c: Temperature at the start [degC].

    Returns: PlanCurve with the start and `POINTS` moments per load, denser after each begin; no interval yet.

    Range: NaN for constants or durations that are not positive.

    Errors: TypeError for a wrong dtype, ValueError for shapes that do not broadcast.

    A GTX280 with 21 degC of rise, 35 s on and 60 s off:

    >>> board = RcNetwork(57.0, np.array([21 / 115.7]), np.array([35.0]), np.array([60.0]))
    >>> curve = plan_curve(board, [115.7, 0.0], [35.0, 60.0], 57.0)
    >>> curve.temperature_c[[0, POINTS, -1]].round(3).tolist()
    [57.0, 70.275, 61.883]
    """
    P, S = flat_floats(power_w=power_w, duration_s=duration_s)
    S = np.where(S > 0, S, np.nan)
    inner = S[:, np.newaxis] * (np.arange(POINTS + 1) / POINTS) ** 2
    step, power = np.diff(inner, axis=1).ravel(), np.repeat(P, POINTS)
    R = network.resistance_c_per_w
    held = np.full(R.size, (start_c - network.zero_c) / network.total_c_per_w)
    theta = temperature_scan(np.tile(power, (R.size, 1)), step, held, network.rc_rise_s, network.rc_decay_s)
    T = np.concatenate(([start_c], network.zero_c + R @ theta))
    time = np.concatenate(([0.0], np.cumsum(step)))
    unknown = np.full(T.size, np.nan)
    return PlanCurve(time, np.concatenate((P[:1], power)), T, unknown, unknown)


def error_reach_c(error_c: ArrayLike, extrapolation: ArrayLike = 1.0) -> Array:
    r"""Half the 95 % interval of a predicted temperature, from errors at loads that were left out of the fit.

    .. math:: \pm\, t_{0.975,\,n}\, \sqrt{\tfrac1n \textstyle\sum e^2}\,\sqrt{1 + \tfrac1n}\; x

    Source: this project's; the errors are those of `profsvc.formulas.thermal.time_constants.left_out_windows`.

    Args:
        error_c: Predicted minus measured temperature of each load, flat [degC].
        extrapolation: How many times the range of power of the log the plan reaches; from 1.

    Returns: degC, of the shape of ``extrapolation``.

    Range: from 0; NaN for fewer than three errors.

    Errors: TypeError for a wrong dtype.

    >>> error_reach_c([0.5, -0.5, 0.5, -0.5]).round(2).tolist(), error_reach_c([0.5]).tolist()
    (1.55, nan)
    """
    (errors,) = flat_floats(error_c=error_c)
    (times,) = floats(extrapolation=extrapolation)
    errors = errors[np.isfinite(errors)]
    if errors.size < MIN_ERRORS:
        return np.full(times.shape, np.nan)
    reach = student_quantile(0.975, errors.size) * np.sqrt(np.mean(errors**2) * (1 + 1 / errors.size))
    return np.asarray(reach * np.maximum(times, 1.0))


def with_interval(curve: PlanCurve, fast: PlanCurve, slow: PlanCurve, reach_c: ArrayLike) -> PlanCurve:
    """The curve with its interval: the reach of the errors, and what the ends of the time constants' intervals change.

    Source: this project's; both parts are independent, so that they add as squares.

    Args:
        curve: The plan with the constants themselves.
        fast: The plan with the lower ends of their intervals.
        slow: The plan with the upper ends.
        reach_c: Result of `error_reach_c`.

    Returns: PlanCurve with ``low_c`` and ``high_c``; at the start the interval is as wide as that of the errors.

    Range: NaN where the reach is.

    Errors: none.

    >>> board = RcNetwork(57.0, np.array([0.2]), np.array([35.0]), np.array([60.0]))
    >>> curve = plan_curve(board, [100.0], [600.0], 57.0)
    >>> known = with_interval(curve, curve, curve, 1.5)
    >>> float(known.high_c[-1].round(2))
    78.5
    """
    (reach,) = floats(reach_c=reach_c)
    T = curve.temperature_c
    above = np.maximum(np.maximum(fast.temperature_c, slow.temperature_c) - T, 0.0)
    below = np.maximum(T - np.minimum(fast.temperature_c, slow.temperature_c), 0.0)
    return curve._replace(low_c=T - np.hypot(reach, below), high_c=T + np.hypot(reach, above))


def time_to_limit_s(time_s: ArrayLike, temperature_c: ArrayLike, limit_c: float) -> float:
    """When a temperature first reaches a limit, between two moments along a straight line.

    Source: no paper; the first crossing.

    Args:
        time_s: Moments, flat, ascending [s].
        temperature_c: Temperature [degC].
        limit_c: The limit [degC].

    Returns: s since the first moment; 0 if it begins there, NaN if the limit is not reached.

    Range: from 0.

    Errors: TypeError for a wrong dtype.

    >>> time_to_limit_s([0.0, 10.0, 20.0], [50.0, 60.0, 80.0], 70.0), time_to_limit_s([0.0], [50.0], 70.0)
    (15.0, nan)
    """
    t, T = flat_floats(time_s=time_s, temperature_c=temperature_c)
    reached = np.flatnonzero(limit_c <= T)
    if not reached.size:
        return float("nan")
    k = int(reached[0])
    if k == 0:
        return 0.0
    return float(t[k - 1] + (t[k] - t[k - 1]) * (limit_c - T[k - 1]) / (T[k] - T[k - 1]) - t[0])


class HeatCost(NamedTuple):
    """Power and energy that a board uses because it is warmer than idle."""

    leakage_w: Array
    leakage_share: Array
    energy_j: Array


def heat_cost(curve: PlanCurve, sigma_w_per_c: ArrayLike, idle_c: float) -> HeatCost:
    r"""Power of leakage at the peak of a plan, its share of the load, and its energy over the plan.

    .. math:: \Delta P = \sigma\,(T_{peak} - T_{idle}), \qquad \Delta E = \int \sigma\,(T(t) - T_{idle})\,dt

    Source: [Hong2012] Eq 56 and 57.

    Args:
        curve: The plan.
        sigma_w_per_c: Temperature coefficient, of any shape [W/degC].
        idle_c: Temperature of the idle board [degC].

    Returns: HeatCost, of the shape of the coefficient.

    Range: negative for a plan that stays colder than idle; no share where the load at the peak is 0 W.

    Errors: TypeError for a wrong dtype.

    Support vector machines on a GTX280 for ten minutes:

    >>> board = RcNetwork(57.0, np.array([21 / 115.7]), np.array([35.0]), np.array([60.0]))
    >>> cost = heat_cost(plan_curve(board, [115.7], [600.0], 57.0), 10 / 22, 57.0)
    >>> float(cost.leakage_w.round(2)), float(cost.leakage_share.round(4)), float(cost.energy_j.round())
    (9.55, 0.0825, 5393.0)
    """
    (sigma,) = floats(sigma_w_per_c=sigma_w_per_c)
    above = curve.temperature_c - idle_c
    peak = int(np.argmax(np.where(np.isnan(above), -np.inf, above)))
    added = sigma * above[peak]
    energy = sigma * np.sum(np.diff(curve.time_s) * (above[1:] + above[:-1]) / 2)
    load = curve.power_w[peak] if curve.power_w[peak] > 0 else np.nan
    return HeatCost(np.asarray(added), np.asarray(added / load), np.asarray(energy))
