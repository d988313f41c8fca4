"""Static power: the leakage of transistors against voltage and temperature, and its linear form for a warm chip."""

import numpy as np
from numpy.typing import ArrayLike

from profsvc.formulas.numerics.arrays import Flagged, flagged, floats, is_implausible, is_not_finite
from profsvc.formulas.numerics.flags import AS_PUBLISHED, CONSISTENT, Flag, check_form

THERMAL_VOLTAGE_PER_K = 1.380649e-23 / 1.602176634e-19  # k/q
ZERO_CELSIUS_K = 273.15


@np.errstate(all="ignore")
def static_power(vcc_v: ArrayLike, transistors: ArrayLike, k_design: ArrayLike, leakage_a: ArrayLike) -> Flagged:
    r"""Leakage power of a chip.

    .. math:: P_{static} = V_{cc} \cdot N \cdot K_{design} \cdot I_{leak}

    Source: [ButtsSohi2000], as equation (33) of [Hong2012].

    Args:
        vcc_v: Supply voltage [V].
        transistors: Number of transistors [count].
        k_design: Factor of the design and the technology [1].
        leakage_a: Leakage of one transistor [A].

    Returns: Valued, static power [W].

    Range: >= 0; NaN with INPUT_SUSPECT where an argument is negative, NaN or inf.

    Errors: TypeError for a wrong dtype, ValueError for shapes that do not broadcast.

    >>> round(float(static_power(1.0, 1.4e9, 2.0, 1e-8).value), 6)
    28.0
    """
    V, N, K, I = floats(vcc_v=vcc_v, transistors=transistors, k_design=k_design, leakage_a=leakage_a)
    return flagged(V * N * K * I, is_implausible(V, N, K, I))


@np.errstate(all="ignore")
def leakage_current(
    temperature_c: ArrayLike,
    vdd_v: ArrayLike,
    vdd0_v: ArrayLike,
    vth_v: ArrayLike,
    voff_v: ArrayLike,
    swing: ArrayLike,
    *,
    gain: ArrayLike = 1.0,
    b_per_v: ArrayLike = 0.0,
    form: str = CONSISTENT,
) -> Flagged:
    r"""Leakage of one transistor against temperature.

    .. math:: I_{leak} = \mu_0 C_{ox} \frac{W}{L}\, e^{b (V_{dd} - V_{dd0})}\, v_t^2 \bigl(1 - e^{-V_{dd}/v_t}\bigr)
              e^{-(|V_{th}| \pm V_{off}) / (n v_t)}, \qquad v_t = k T / q

    ``as_published`` has the minus before V_off that [Hong2012] prints; ``consistent`` the plus of [Zhang2003]. For the
    small range of an operating chip `power_at_temperature` is the linear form of it.

    Source: [Zhang2003], as equation (34) of [Hong2012].

    Args:
        temperature_c: Temperature of the chip [degC].
        vdd_v: Supply voltage [V].
        vdd0_v: Supply voltage for which the parameters hold [V].
        vth_v: Threshold voltage, of either sign [V].
        voff_v: Offset voltage, of either sign [V].
        swing: Sub-threshold swing coefficient n [1].
        gain: mu_0 C_ox W/L [A/V^2].
        b_per_v: Coefficient of the supply voltage b [1/V].
        form: ``consistent`` or ``as_published``.

    Returns: Valued, the current [A].

    Range: >= 0; NaN with INPUT_SUSPECT where a number is NaN or inf, a voltage of supply, the swing or the gain is
    negative, or the temperature below absolute zero. ZERO_DENOM where the swing is 0.

    Errors: TypeError for a wrong dtype, ValueError for shapes that do not broadcast or an unknown form.

    Twenty degrees more, at 0.3 V threshold:

    >>> cold, warm = leakage_current([57.0, 77.0], 1.0, 1.0, 0.3, 0.0, 1.5).value
    >>> round(float(warm / cold), 3)
    1.681
    """
    check_form(form)
    T, V, V0, Vth, Voff, n, gain_, b = floats(
        temperature_c=temperature_c, vdd_v=vdd_v, vdd0_v=vdd0_v, vth_v=vth_v, voff_v=voff_v, swing=swing,
        gain=gain, b_per_v=b_per_v,
    )  # fmt: skip
    sign = -1.0 if form == AS_PUBLISHED else 1.0
    vt = THERMAL_VOLTAGE_PER_K * (T + ZERO_CELSIUS_K)
    barrier = np.exp(-(np.abs(Vth) + sign * Voff) / (n * vt))
    I = gain_ * np.exp(b * (V - V0)) * vt**2 * (1 - np.exp(-V / vt)) * barrier
    bad = is_not_finite(T, Vth, Voff, b) | is_implausible(V, V0, n, gain_) | (T <= -ZERO_CELSIUS_K)
    return flagged(np.where(n == 0, np.nan, I), bad, (Flag.ZERO_DENOM, n == 0))


@np.errstate(all="ignore")
def delta_temperature(temperature_c: ArrayLike, idle_temperature_c: ArrayLike) -> Flagged:
    r"""Temperature of a chip above rest.

    .. math:: \Delta T(t) = T(t) - T_{idle}

    Source: equation (57) of [Hong2012].

    Args:
        temperature_c: Temperature of the chip [degC].
        idle_temperature_c: Its temperature at rest [degC].

    Returns: Valued [degC].

    Range: any; NaN with INPUT_SUSPECT where an argument is NaN or inf.

    Errors: TypeError for a wrong dtype, ValueError for shapes that do not broadcast.

    >>> delta_temperature([57.0, 78.0], 57.0).value.tolist()
    [0.0, 21.0]
    """
    T, idle = floats(temperature_c=temperature_c, idle_temperature_c=idle_temperature_c)
    return flagged(T - idle, is_not_finite(T, idle))


@np.errstate(all="ignore")
def power_at_temperature(runtime_cold_w: ArrayLike, sigma_w_per_c: ArrayLike, delta_c: ArrayLike) -> Flagged:
    r"""Power above idle of a chip that has warmed up.

    .. math:: P(t) = P_0 + \sigma \, \Delta T(t)

    Source: equation (56) of [Hong2012]; sigma is 10/22 W/degC for its GTX280 with the fan's part removed.

    Args:
        runtime_cold_w: Power above idle on a chip as cold as at rest [W].
        sigma_w_per_c: Temperature coefficient of this card at this clock [W/degC].
        delta_c: Temperature above that at rest, of either sign [degC].

    Returns: Valued, the power [W].

    Range: any; NaN with INPUT_SUSPECT where an argument is NaN or inf, or the power or coefficient is negative.

    Errors: TypeError for a wrong dtype, ValueError for shapes that do not broadcast.

    The chip of [Hong2012] from 57 to 78 degrees:

    >>> round(float(power_at_temperature(100.0, 10 / 22, 21.0).value), 4)
    109.5455
    """
    P, sigma, delta = floats(runtime_cold_w=runtime_cold_w, sigma_w_per_c=sigma_w_per_c, delta_c=delta_c)
    return flagged(P + sigma * delta, is_implausible(P, sigma) | is_not_finite(delta))
