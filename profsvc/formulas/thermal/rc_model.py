"""Temperature of a board under power: one thermal resistance and capacity."""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from profsvc.formulas.numerics.arrays import Array, Mask, arrays, floats, is_implausible, mask, numbers
from profsvc.formulas.numerics.flags import AS_PUBLISHED, CONSISTENT, Flag, check_form

KINDS = ("rise", "decay")
FAN = ("removed", "included")
FIXED_POINT = "fixed_point"


class Peak(NamedTuple):
    """Highest temperature, and the power that leakage adds there."""

    temperature_c: Array
    rise_c: Array
    added_power_w: Array
    flags: Mask


def temperature(
    time_s: ArrayLike, idle_c: ArrayLike, change_c: ArrayLike, rc_s: ArrayLike, *, kind: str = "rise"
) -> Array:
    r"""Temperature after a load began on a cold board, or after it stopped.

    .. math:: T_{rise}(t) = T_{idle} + \delta\,(1 - e^{-t/RC}) \qquad T_{decay}(t) = T_{idle} + \gamma\,e^{-t/RC}

    Source: [Hong2012] Eq 49 and 50; delta and gamma are Eq 51 and 52.

    Args:
        time_s: Time since the load began, or stopped [s]; before that the temperature stands still.
        idle_c: Temperature of the idle board [degC].
        change_c: delta, the rise in the end; or gamma, what the board was above idle when the load stopped [degC].
        rc_s: Time constant of the rise, or of the decay [s].
        kind: ``rise`` or ``decay``.

    Returns: degC, of the common shape.

    Range: between idle and idle + change; NaN for a constant that is not positive and numbers that are not finite.

    Errors: TypeError for a wrong dtype, ValueError for shapes that do not broadcast or an unknown kind.

    A GTX280 after one constant, and a saturated one:

    >>> temperature([35.0, 600.0], 57.0, 21.0, 35.0).round(3).tolist()
    [70.275, 78.0]
    """
    check_form(kind, KINDS)
    t, idle, change, RC = floats(time_s=time_s, idle_c=idle_c, change_c=change_c, rc_s=rc_s)
    bad = ~np.isfinite(t + idle + change) | is_implausible(RC) | (RC == 0)
    left = np.exp(-np.maximum(t, 0.0) / np.where(bad, 1.0, RC))
    return np.asarray(np.where(bad, np.nan, idle + change * (1 - left if kind == "rise" else left)))


def temperature_scan(
    target_c: ArrayLike, step_s: ArrayLike, start_c: ArrayLike, rc_rise_s: ArrayLike, rc_decay_s: ArrayLike
) -> Array:
    r"""Temperature under a varying load, step by step, each step solved exactly.

    .. math:: T_{k+1} = T^\infty_k + (T_k - T^\infty_k)\,e^{-\Delta t_k/RC}, \qquad
              RC = RC_{rise} \text{ if } T_k < T^\infty_k \text{ else } RC_{decay}

    Source: the differential equation of which [Hong2012] Eq 49 and 50 are two solutions.

    Args:
        target_c: Temperature at which the board would come to rest under the load of each step, time on the last
            axis: idle plus `max_rise` [degC].
        step_s: Length of each step, on the last axis, or one for all [s].
        start_c: Temperature at the start, of the shape of the other axes [degC].
        rc_rise_s: Time constant of warming, likewise [s].
        rc_decay_s: Time constant of cooling, likewise [s].

    Returns: degC at the end of each step, in the shape of ``target_c``.

    Range: between the start and the targets. NaN from the first number on that is not finite, or from the start for
        a constant that is not positive.

    Errors: TypeError for a wrong dtype, ValueError for shapes that do not broadcast.

    >>> temperature_scan([78.0, 57.0], [35.0, 60.0], 57.0, 35.0, 60.0).round(3).tolist()
    [70.275, 61.883]
    """
    target, step = floats(target_c=np.atleast_1d(numbers("target_c", target_c)), step_s=step_s)
    T, rise, decay, _ = (
        np.array(x) for x in floats(start_c=start_c, rc_rise_s=rc_rise_s, rc_decay_s=rc_decay_s, logs=target[..., 0])
    )
    T = np.where(is_implausible(rise, decay) | (rise == 0) | (decay == 0), np.nan, T)
    out = np.empty((*T.shape, target.shape[-1]))
    with np.errstate(invalid="ignore", divide="ignore"):
        for k in range(target.shape[-1]):
            rest, dt = target[..., k], np.where(step[..., k] >= 0, step[..., k], np.nan)
            T = rest + (T - rest) * np.exp(-dt / np.where(rest > T, rise, decay))
            out[..., k] = T
    return out


def memory_intensity(memory_instructions: ArrayLike, other_instructions: ArrayLike) -> Array:
    r"""Memory instructions a non-memory instruction.

    .. math:: I = \frac{N_{mem}}{N_{non\,mem}}

    Source: [Hong2012] Eq 54.

    Args:
        memory_instructions: Memory instructions [count].
        other_instructions: All others [count].

    Returns: ratio, of the common shape.

    Range: from 0; NaN without other instructions, and for counts that are negative or not finite.

    Errors: TypeError for a wrong dtype, ValueError for shapes that do not broadcast.

    >>> memory_intensity([0.0, 3.0], [13.3, 0.0]).tolist()
    [0.0, nan]
    """
    M, N = floats(memory_instructions=memory_instructions, other_instructions=other_instructions)
    bad = is_implausible(M, N) | (N == 0)
    return np.asarray(np.where(bad, np.nan, M / np.where(bad, 1.0, N)))


def max_rise(
    runtime_power_w: ArrayLike,
    intensity: ArrayLike,
    mu: ArrayLike,
    lam: ArrayLike,
    rho: ArrayLike,
    sigma: ArrayLike = 0.0,
    *,
    form: str = CONSISTENT,
) -> Array:
    r"""Final temperature rise of a board under a load.

    .. math:: \delta = \mu P + \lambda + \rho I \qquad\text{or, with leakage,}\qquad
              \delta = \frac{\mu P_0 + \lambda + \rho I}{1 - \mu\sigma}

    Source: [Hong2012] Eq 53, which calls it the maximum temperature; read so, integer arithmetic would consume 521 W.
    The fixed point, where the power is the warmed one, is this project's.

    Args:
        runtime_power_w: Power above idle, of the cold board [W].
        intensity: Result of `memory_intensity`.
        mu: Rise a watt [degC/W].
        lam: Rise of any load [degC].
        rho: Rise a unit of intensity [degC].
        sigma: Temperature coefficient, for the fixed point only [W/degC].
        form: ``consistent`` and ``as_published`` take the cold power, with which the parameters were fitted;
            ``fixed_point`` lets the warmth feed back.

    Returns: degC above idle, of the common shape.

    Range: any; NaN for a negative or unknown power or intensity, and where mu sigma reaches 1: nothing would stop
        the board from warming.

    Errors: TypeError for a wrong dtype, ValueError for shapes that do not broadcast or an unknown form.

    >>> cold = max_rise(115.7, 1 / 13.3, 0.12, 5.5, 21.505)
    >>> warm = max_rise(115.7, 1 / 13.3, 0.12, 5.5, 21.505, 10 / 22, form="fixed_point")
    >>> round(float(cold), 2), round(float(warm / cold), 4)
    (21.0, 1.0577)
    """
    check_form(form, (CONSISTENT, AS_PUBLISHED, FIXED_POINT))
    P, I, mu, lam, rho, sigma = floats(
        runtime_power_w=runtime_power_w, intensity=intensity, mu=mu, lam=lam, rho=rho, sigma=sigma
    )
    gain = mu * sigma if form == FIXED_POINT else 0 * mu
    bad = is_implausible(P, I) | ~(gain < 1)
    return np.asarray(np.where(bad, np.nan, (mu * P + lam + rho * I) / np.where(bad, 1.0, 1 - gain)))


def peak_temperature(
    idle_c: ArrayLike,
    rise_c: ArrayLike,
    sigma: ArrayLike,
    duration_s: ArrayLike = np.inf,
    rc_s: ArrayLike = 1.0,
    start_c: ArrayLike | None = None,
) -> Peak:
    r"""Highest temperature that a load reaches, and the power that leakage adds there.

    .. math:: T_{peak} = T_\infty + (T_0 - T_\infty)\,e^{-t/RC}, \quad T_\infty = T_{idle} + \delta, \qquad
              \Delta P = \sigma\,(T_{peak} - T_{idle})

    Source: [Hong2012] Eq 49, 51, 56 and 57.

    Args:
        idle_c: Temperature of the idle board [degC].
        rise_c: delta, result of `max_rise` or of a fit [degC].
        sigma: Temperature coefficient [W/degC].
        duration_s: How long the load runs [s]; for ever if not given.
        rc_s: Time constant of the rise [s]; without a meaning if the load runs for ever.
        start_c: Temperature at the start [degC]; idle if not given. A board that starts hotter is hottest at once.

    Returns: Peak; ``rise_c`` is above idle.

    Range: from idle to idle + delta, or the start if that is higher. NaN with INPUT_SUSPECT for numbers that are
        not finite, and a constant or a duration that cannot be.

    Errors: TypeError for a wrong dtype, ValueError for shapes that do not broadcast.

    Support vector machines on a GTX280, 57 degC idle: 9.5 W are leakage.

    >>> peak = peak_temperature(57.0, 21.0, 10 / 22)
    >>> float(peak.temperature_c), round(float(peak.added_power_w), 2)
    (78.0, 9.55)
    """
    idle, delta, sigma, t, RC, start = floats(
        idle_c=idle_c, rise_c=rise_c, sigma=sigma, duration_s=duration_s, rc_s=rc_s, start_c=start_c
    )
    start = np.where(np.isnan(start), idle, start)
    bad = ~np.isfinite(idle + delta + sigma + start) | ~(t >= 0) | ~(RC > 0)
    rest = idle + delta
    end = rest + (start - rest) * np.exp(-np.where(bad, 0.0, t) / np.where(bad, 1.0, RC))
    T = np.where(bad, np.nan, np.maximum(start, end))
    return Peak(*arrays(T, T - idle, sigma * (T - idle), mask((Flag.INPUT_SUSPECT, bad))))


def sigma(
    power_rise_w: ArrayLike, temperature_rise_c: ArrayLike, fan_rise_w: ArrayLike = 0.0, *, fan: str = "removed"
) -> Array:
    r"""Temperature coefficient from the two ends of a warming log, as the source does.

    .. math:: \sigma = \frac{\Delta P - \Delta P_{fan}}{\Delta T}

    Source: [Hong2012] Eq 55 and 56 with Figure 40: 10/22 W/degC on a GTX280, of whose 14 W the fan took 4.

    Args:
        power_rise_w: Power at the end minus at the start, each a mean of 30 readings [W].
        temperature_rise_c: The same of the temperature [degC].
        fan_rise_w: What the fan took more at the end [W].
        fan: ``removed`` takes the fan out; ``included`` leaves it in, where an automatic fan belongs to the reading.

    Returns: W/degC, of the common shape.

    Range: any; NaN where the temperature did not change or an argument is not finite.

    Errors: TypeError for a wrong dtype, ValueError for shapes that do not broadcast or an unknown choice of fan.

    >>> round(float(sigma(14.0, 22.0, 4.0)), 4), round(float(sigma(14.0, 22.0, 4.0, fan="included")), 4)
    (0.4545, 0.6364)
    """
    check_form(fan, FAN)
    dP, dT, dF = floats(power_rise_w=power_rise_w, temperature_rise_c=temperature_rise_c, fan_rise_w=fan_rise_w)
    net = dP - dF if fan == "removed" else dP
    good = np.isfinite(net) & np.isfinite(dT) & (dT != 0)
    return np.asarray(np.where(good, net / np.where(good, dT, 1.0), np.nan))
