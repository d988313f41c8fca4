"""How well a thermal model predicts the temperature of a load that it was not fitted to."""

import numpy as np
from numpy.typing import ArrayLike

from profsvc.formulas.numerics.arrays import Array, flat_floats
from profsvc.formulas.thermal import step_response

MAX_READINGS = 4000  # of the temperature; of more every so many-th is taken
MIN_WINDOW_READINGS = 5


def left_out_errors(
    power_time_s: ArrayLike,
    power_w: ArrayLike,
    temperature_time_s: ArrayLike,
    temperature_c: ArrayLike,
    rc_rise_s: ArrayLike,
    rc_decay_s: ArrayLike,
    begin_s: ArrayLike,
    end_s: ArrayLike,
) -> Array:
    r"""Predicted minus measured highest temperature of each window, each left out of the fit of the resistances.

    .. math:: T(t) = T_0 + \sum_i R_i\,\theta_i(t)

    The time constants are those of the whole log; T_0, the resistances and the state at the begin are fitted to what
    lies outside of the window.

    Source: this project's; the model is that of `profsvc.formulas.thermal.time_constants.rc_fit_under_load`.

    Args:
        power_time_s: Stamps of the power, flat, ascending [s].
        power_w: Power [W].
        temperature_time_s: Stamps of the temperature on the same clock, flat [s].
        temperature_c: Temperature [degC].
        rc_rise_s: Time constants of the rise, flat [s].
        rc_decay_s: Time constants of the decay, of the same shape [s].
        begin_s: Begin of each window, flat [s].
        end_s: End of each window [s].

    Returns: degC per window.

    Range: NaN for a window with fewer than 5 readings of the temperature, if fewer than 20 are outside of it, and for
        all windows if a time constant is unknown.

    Errors: TypeError for a wrong dtype, ValueError for shapes that do not fit.

    >>> from profsvc.formulas.thermal.rc_model import temperature_scan
    >>> t = np.arange(0.0, 600.0, 0.5)
    >>> P = np.where((t // 100) % 2 == 1, 300.0, 60.0)
    >>> T = temperature_scan(30 + 0.08 * P, 0.5, 34.8, 20.0, 30.0)
    >>> np.abs(left_out_errors(t, P, t + 0.5, T, [20.0], [30.0], [100.0], [200.0])) < 0.05
    array([ True])
    """
    from scipy.optimize import lsq_linear

    tp, P = flat_floats(power_time_s=power_time_s, power_w=power_w)
    read = np.isfinite(tp) & np.isfinite(P)
    tp, P = tp[read], P[read]
    tT, T = flat_floats(temperature_time_s=temperature_time_s, temperature_c=temperature_c)
    rise, decay = flat_floats(rc_rise_s=rc_rise_s, rc_decay_s=rc_decay_s)
    begin, end = flat_floats(begin_s=begin_s, end_s=end_s)
    errors = np.full(begin.size, np.nan)
    good = np.isfinite(T) & (tT >= tp.min(initial=np.inf)) & (tT <= tp.max(initial=-np.inf))
    some = np.flatnonzero(good)[:: max(-(-int(good.sum()) // MAX_READINGS), 1)]
    tT, T = tT[some], T[some]
    known = np.isfinite(rise) & np.isfinite(decay)
    power = step_response.piecewise_power(tp, P)
    if power.level.size < 2 or not known.all():
        return errors
    states = step_response.thermal_states(power, rise, decay)
    held = np.exp(-(tT - tT[0])[:, np.newaxis] / decay)
    X = np.column_stack((step_response.unit_response(power, states, tT), held, np.ones(tT.size)))
    lowest = np.concatenate((np.zeros(rise.size), np.full(rise.size + 1, -np.inf)))
    for k, (first, last) in enumerate(zip(begin, end, strict=True)):
        inside = (tT >= first) & (tT <= last)
        if inside.sum() >= MIN_WINDOW_READINGS and (~inside).sum() >= 4 * MIN_WINDOW_READINGS:
            fit = lsq_linear(X[~inside], T[~inside], (lowest, np.inf))
            errors[k] = (X[inside] @ fit.x).max() - T[inside].max()
    return errors
