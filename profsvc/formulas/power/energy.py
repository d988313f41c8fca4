"""Energy: products with delay, efficiency against speedup, and what cores and frequency do to both."""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from profsvc.formulas.numerics.arrays import (
    Array,
    Flagged,
    Mask,
    arrays,
    flagged,
    flat_floats,
    floats,
    is_implausible,
    is_not_finite,
    mask,
)
from profsvc.formulas.numerics.distributions import student_quantile
from profsvc.formulas.numerics.flags import Flag
from profsvc.formulas.numerics.regression import ordinary_least_squares

CUBE = 3.0
CONFIDENCE = 0.95


class Efficiency(NamedTuple):
    """Speedup and energy efficiency over a baseline, and the ratios of time and power that make them up."""

    speedup: Array
    efficiency: Array
    time_ratio: Array
    power_ratio: Array
    quadrant: NDArray[np.int8]
    flags: Mask


class Frequency(NamedTuple):
    """Speedup and energy efficiency at a frequency over another."""

    speedup: Array
    efficiency: Array
    flags: Mask


class Linearity(NamedTuple):
    """Slope at the mean speedup, second derivative with its standard error and 95 % interval."""

    slope: Array
    curvature: Array
    curvature_se: Array
    curvature_low: Array
    curvature_high: Array
    linear: NDArray[np.bool_]
    flags: Mask


@np.errstate(all="ignore")
def energy(power_w: ArrayLike, time_s: ArrayLike) -> Flagged:
    r"""Energy of a mean power over a time.

    .. math:: E = P\,T

    Source: equations (94), (99) and (100) of [Hong2012].

    Args:
        power_w: Mean power [W].
        time_s: Time [s].

    Returns: Valued [J].

    Range: >= 0; NaN with INPUT_SUSPECT where an argument is negative, NaN or inf.

    Errors: TypeError for a wrong dtype, ValueError for shapes that do not broadcast.

    >>> float(energy(534.0, 150.0).value)
    80100.0
    """
    P, T = floats(power_w=power_w, time_s=time_s)
    return flagged(P * T, is_implausible(P, T))


@np.errstate(all="ignore")
def energy_delay(energy_j: ArrayLike, time_s: ArrayLike, exponent: ArrayLike = 1.0) -> Flagged:
    r"""Energy-delay product: energy weighed by the time it took.

    .. math:: E\,T^k

    Source: [GonzalezHorowitz1996] for k = 1; k = 2 weighs time as a change of the supply voltage does.

    Args:
        energy_j: Energy [J].
        time_s: Time [s].
        exponent: k: 0 is the energy, 1 the energy-delay product, 2 the energy-delay-squared product [1].

    Returns: Valued [J s^k].

    Range: >= 0; NaN with INPUT_SUSPECT where an argument is negative, NaN or inf.

    Errors: TypeError for a wrong dtype, ValueError for shapes that do not broadcast.

    >>> energy_delay(100.0, 2.0, [0, 1, 2]).value.tolist()
    [100.0, 200.0, 400.0]
    """
    E, T, k = floats(energy_j=energy_j, time_s=time_s, exponent=exponent)
    bad = is_implausible(E, T, k)
    return flagged(E * np.where(bad, 1.0, T) ** np.where(bad, 1.0, k), bad)


@np.errstate(all="ignore")
def efficiency(time_base_s: ArrayLike, power_base_w: ArrayLike, time_s: ArrayLike, power_w: ArrayLike) -> Efficiency:
    r"""Speedup and energy efficiency over a baseline.

    .. math:: S = \frac{T_o}{T_N}, \qquad E = \frac{E_o}{E_N} = \frac{P_o}{P_N} S = \frac{1}{\alpha_P \alpha_T}, \qquad
              \alpha_T = \frac{T_N}{T_o}, \quad \alpha_P = \frac{P_N}{P_o}

    Of several runs take the sums of time and of energy (power = energy over time), not the mean of ratios.

    Source: equations (95) to (98), (101) to (103) of [Hong2012].

    Args:
        time_base_s: Time of the baseline [s].
        power_base_w: Its mean power [W].
        time_s: Time now [s].
        power_w: Mean power now [W].

    Returns: Efficiency; ``quadrant`` is 2 where faster and greener, 1 faster only, 0 greener only, -1 neither; a ratio
    of 1 counts as not better.

    Range: > 0. NaN with ZERO_DENOM where a time or power is 0, with INPUT_SUSPECT where one is negative, NaN or inf;
    then the quadrant is -1.

    Errors: TypeError for a wrong dtype, ValueError for shapes that do not broadcast.

    Half the time at 1.2 times the power:

    >>> result = efficiency(1.0, 100.0, 0.5, 120.0)
    >>> float(result.speedup), round(float(result.efficiency), 6), int(result.quadrant)
    (2.0, 1.666667, 2)
    """
    To, Po, T, P = floats(time_base_s=time_base_s, power_base_w=power_base_w, time_s=time_s, power_w=power_w)
    zero, bad = (To == 0) | (Po == 0) | (T == 0) | (P == 0), is_implausible(To, Po, T, P)
    a_T, a_P, S = (np.where(zero | bad, np.nan, x) for x in (T / To, P / Po, To / T))
    E = flagged(S / a_P, bad, (Flag.ZERO_DENOM, zero))
    faster, greener = S > 1, E.value > 1
    quadrant = np.select([faster & greener, faster, greener], [2, 1, 0], -1).astype(np.int8)
    return Efficiency(*arrays(S, E.value, a_T, a_P, quadrant, E.flags))


@np.errstate(all="ignore")
def rate(cores: ArrayLike, throughput: ArrayLike, frequency_hz: ArrayLike, slowdown: ArrayLike = 1.0) -> Flagged:
    r"""Data a device gets through in a second.

    .. math:: r = \frac{C\,\zeta\,F}{\phi}, \qquad T = D / r

    Source: equations (104) to (106) and (113) of [Hong2012], whose factors of proportion cancel in every ratio.

    Args:
        cores: Cores at work C [count].
        throughput: Data a core and cycle zeta [data/cycle].
        frequency_hz: Clock F [Hz].
        slowdown: Factor phi by which the benchmark falls short on this architecture, large is slow [1].

    Returns: Valued [data/s].

    Range: >= 0; NaN with ZERO_DENOM where the slowdown is 0, with INPUT_SUSPECT where an argument is negative, NaN or
    inf.

    Errors: TypeError for a wrong dtype, ValueError for shapes that do not broadcast.

    >>> float(rate(4, 2.0, 3.0, 2.0).value)
    12.0
    """
    C, zeta, F, phi = floats(cores=cores, throughput=throughput, frequency_hz=frequency_hz, slowdown=slowdown)
    r = np.where(phi == 0, np.nan, C * zeta * F / phi)
    return flagged(r, is_implausible(C, zeta, F, phi), (Flag.ZERO_DENOM, phi == 0))


@np.errstate(all="ignore")
def dyn_power(cores: ArrayLike, frequency_hz: ArrayLike, weight: ArrayLike, exponent: ArrayLike = CUBE) -> Flagged:
    r"""Dynamic power of a device against its clock.

    .. math:: P_{dyn} = C\,F^3 \lambda

    The cube holds while the voltage follows the clock; at a fixed voltage the exponent is 1.

    Source: equations (107), (108) and (114) of [Hong2012].

    Args:
        cores: Cores at work C [count].
        frequency_hz: Clock F [Hz].
        weight: Weight lambda of the benchmark [W/Hz^exponent].
        exponent: Power of the clock [1].

    Returns: Valued [W].

    Range: >= 0; NaN with INPUT_SUSPECT where an argument is negative, NaN or inf.

    Errors: TypeError for a wrong dtype, ValueError for shapes that do not broadcast.

    >>> float(dyn_power(2, 3.0, 0.5).value)
    27.0
    """
    C, F, weight_, k = floats(cores=cores, frequency_hz=frequency_hz, weight=weight, exponent=exponent)
    bad = is_implausible(C, F, weight_, k)
    return flagged(C * np.where(bad, 1.0, F) ** np.where(bad, 1.0, k) * weight_, bad)


@np.errstate(all="ignore")
def frequency_efficiency(
    frequency_hz: ArrayLike,
    base_hz: ArrayLike,
    cores: ArrayLike,
    weight: ArrayLike,
    idle_w: ArrayLike,
    exponent: ArrayLike = CUBE,
) -> Frequency:
    r"""Speedup and energy efficiency of a clock over another, for work that follows the clock.

    .. math:: S = \frac{F}{F_o}, \qquad E = S\, \frac{C F_o^3 \lambda + B}{C F^3 \lambda + B}

    Source: equation (109) of [Hong2012] with the same cores and data; its section A.6.

    Args:
        frequency_hz: Clock F [Hz].
        base_hz: Clock of the baseline [Hz].
        cores: Cores at work C [count].
        weight: Weight lambda of `dyn_power` [W/Hz^exponent].
        idle_w: Power B that does not depend on the clock [W].
        exponent: Power of the clock [1].

    Returns: Frequency.

    Range: >= 0; NaN with ZERO_DENOM where ``base_hz`` is 0 or there is no power at either clock, with INPUT_SUSPECT
    where an argument is negative, NaN or inf.

    Errors: TypeError for a wrong dtype, ValueError for shapes that do not broadcast.

    Twice the clock, with as much idle as dynamic power at the first:

    >>> result = frequency_efficiency(2.0, 1.0, 1, 10.0, 10.0)
    >>> float(result.speedup), round(float(result.efficiency), 4)
    (2.0, 0.4444)
    """
    F, Fo, C, weight_, B, k = floats(
        frequency_hz=frequency_hz, base_hz=base_hz, cores=cores, weight=weight, idle_w=idle_w, exponent=exponent
    )
    bad = is_implausible(F, Fo, C, weight_, B, k)
    now, before = (dyn_power(C, x, weight_, k).value + B for x in (F, Fo))
    zero = (Fo == 0) | (now == 0) | (before == 0)
    S = np.where(zero, np.nan, F / Fo)
    E = flagged(S * before / now, bad, (Flag.ZERO_DENOM, zero))
    return Frequency(flagged(S, bad).value, E.value, E.flags)


@np.errstate(all="ignore")
def frequency_optimum(cores: ArrayLike, weight: ArrayLike, idle_w: ArrayLike, exponent: ArrayLike = CUBE) -> Flagged:
    r"""Clock at which a piece of work costs least energy, time following the clock.

    .. math:: F^* = \Bigl(\frac{B}{(k - 1)\, C\,\lambda}\Bigr)^{1/k}, \qquad k = 3

    Below it, racing to idle pays; above it, it does not.

    Source: this project, where the derivative of F/(C F^k lambda + B) vanishes; equation (107) of [Hong2012].

    Args:
        cores: Cores at work C [count].
        weight: Weight lambda of `dyn_power` [W/Hz^exponent].
        idle_w: Power B that does not depend on the clock [W].
        exponent: Power of the clock, k [1].

    Returns: Valued [Hz].

    Range: >= 0; 0 where there is no idle power: then the slowest clock is best. NaN with NOT_APPLICABLE for k <= 1: the
    fastest is best; with ZERO_DENOM where there is no dynamic power; with INPUT_SUSPECT where an argument is negative,
    NaN or inf.

    Errors: TypeError for a wrong dtype, ValueError for shapes that do not broadcast.

    >>> float(frequency_optimum(2, 1.0, 32.0).value)
    2.0
    """
    C, weight_, B, k = floats(cores=cores, weight=weight, idle_w=idle_w, exponent=exponent)
    bad = is_implausible(C, weight_, B, k)
    none, zero = k <= 1, (C == 0) | (weight_ == 0)
    F = (B / ((k - 1) * C * weight_)) ** (1 / k)
    return flagged(np.where(none | zero, np.nan, F), bad, (Flag.NOT_APPLICABLE, none), (Flag.ZERO_DENOM, zero & ~none))


@np.errstate(all="ignore")
def linearity(speedup: ArrayLike, efficiency: ArrayLike) -> Linearity:
    r"""Linearity of energy efficiency over speedup, by the second derivative of a parabola.

    .. math:: E = e_0 + e_1 (S - \bar S) + \tfrac{1}{2} e_2 (S - \bar S)^2, \qquad
              \frac{\partial^2 E}{\partial S^2} = e_2 \overset{?}{=} 0

    Source: equations (115) to (117) of [Hong2012], which differentiates by hand; least squares is this project's.

    Args:
        speedup: Speedups of versions or settings, flat [1].
        efficiency: Their energy efficiencies [1].

    Returns: Linearity, without dimension; ``linear`` says that the 95 % interval of the curvature holds 0.

    Range: any. Rows that are not finite are left out with INPUT_SUSPECT. NaN with INPUT_SUSPECT for fewer than three
    distinct speedups; without a fourth row there is no standard error, and ``linear`` is false.

    Errors: TypeError for a wrong dtype, ValueError for shapes that do not fit.

    Efficiency that falls with the square of the speedup:

    >>> S = np.array([0.5, 1.0, 1.5, 2.0])
    >>> result = linearity(S, 2 * S - 0.3 * S**2)
    >>> round(float(result.slope), 6), round(float(result.curvature), 6), bool(result.linear)
    (1.25, -0.6, False)
    """
    S, E = flat_floats(speedup=speedup, efficiency=efficiency)
    bad = is_not_finite(S, E)
    S, E = S[~bad], E[~bad]
    if np.unique(S).size < 3:
        return Linearity(*arrays(*[np.nan] * 5, np.False_, np.uint32(Flag.INPUT_SUSPECT)))
    d = S - S.mean()
    line = ordinary_least_squares(np.stack((np.ones_like(d), d, d * d / 2), axis=1), E)
    slope, curvature = line.coefficients[1:]
    se = np.sqrt(line.covariance[2, 2])
    half = student_quantile((1 + CONFIDENCE) / 2, line.dof) * se
    linear = np.bool_(abs(curvature) <= half)
    flags = mask((Flag.INPUT_SUSPECT, bad.any()))
    return Linearity(*arrays(slope, curvature, se, curvature - half, curvature + half, linear, flags))
