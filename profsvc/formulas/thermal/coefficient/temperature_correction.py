r"""Power and energy corrected to a reference temperature.

The error of the correction has two parts that behave differently. Each reading has its own, which a mean over many
makes small; the error of the coefficient is common to all readings, and no mean makes it smaller. They are kept apart
until the interval is drawn.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from profsvc.formulas.numerics.arrays import Array, Groups, Mask, flat_floats, floats, is_implausible, mask
from profsvc.formulas.numerics.distributions import NORMAL_975
from profsvc.formulas.numerics.flags import Flag
from profsvc.formulas.thermal.coefficient.temperature_coefficient import Coefficient

MAX_EXTRAPOLATION = 1.5  # times the range of temperature over which the coefficient was fitted


class Corrected(NamedTuple):
    """Power at the reference temperature, ends of its interval of 95 %, the two parts of its error, and flags.

    `common_w` is signed: it is by how much the power moves if the coefficient is one standard error larger.
    """

    power_w: Array
    low_w: Array
    high_w: Array
    own_w: Array
    common_w: Array
    flags: Mask


class CorrectedMean(NamedTuple):
    """Mean power and energy at the reference temperature of each group, with intervals of 95 %."""

    power_w: Array
    low_w: Array
    high_w: Array
    duration_s: Array
    energy_j: Array
    energy_low_j: Array
    energy_high_j: Array
    flags: Mask


def correct_to_reference(
    power_w: ArrayLike,
    temperature_c: ArrayLike,
    coefficient: Coefficient,
    reference_c: ArrayLike,
    *,
    power_error_w: ArrayLike = 0.0,
    temperature_error_c: ArrayLike = 0.0,
) -> Corrected:
    r"""Power that the board would have consumed at the reference temperature.

    .. math:: P_{ref} = P - \sigma (T - T_{ref}) \qquad\text{or}\qquad P_{ref} = P e^{-k (T - T_{ref})}

    .. math:: \mathrm{var} = \mathrm{var}(P) + \sigma^2\,\mathrm{var}(T) + (T - T_{ref})^2\,\mathrm{var}(\sigma)

    The last term is common to all readings. Two runs are compared at one reference, never each at its own mean.

    Source: [Hong2012] Eq 56 and 57, solved for the cold power; the exponential law [DeVogeleer2014].

    Args:
        power_w: Power, of readings or means over windows [W].
        temperature_c: Temperature at the same time, or its mean over the same window [degC].
        coefficient: Result of `fit_coefficient` or `given_coefficient`; its law decides.
        reference_c: Reference temperature [degC].
        power_error_w: Standard error of each power [W].
        temperature_error_c: Standard error of each temperature [degC].

    Returns: Corrected, of the common shape.

    Range: positive as a rule. EXTRAPOLATED where the temperature lies farther from the reference than 1.5 times the
        range over which the coefficient was fitted. NaN with INPUT_SUSPECT for numbers that are not finite, for
        negative errors, and everywhere if the coefficient was refused.

    Errors: TypeError for a wrong dtype, ValueError for shapes that do not broadcast.

    >>> from profsvc.formulas.thermal.coefficient.temperature_coefficient import given_coefficient
    >>> gtx280 = given_coefficient(10 / 22, 0.0, 57.0, 79.0)
    >>> correct_to_reference([210.0, 200.0], [78.0, 57.0], gtx280, 57.0).power_w.round(2).tolist()
    [200.45, 200.0]
    """
    P, T, T_ref, var_P, var_T = floats(
        power_w=power_w, temperature_c=temperature_c, reference_c=reference_c,
        power_error_w=power_error_w, temperature_error_c=temperature_error_c,
    )  # fmt: skip
    away = T - T_ref
    bad = ~np.isfinite(P + away) | is_implausible(var_P, var_T) | bool(coefficient.refusal)
    if coefficient.law == "exponential":
        shrink = np.exp(-coefficient.rate_per_c * away)
        P_ref, var_P = P * shrink, var_P * shrink
        slope, error = coefficient.rate_per_c * P_ref, coefficient.rate_standard_error_per_c * P_ref
    else:
        slope, error = np.asarray(coefficient.coefficient_w_per_c), np.asarray(coefficient.standard_error_w_per_c)
        P_ref = P - slope * away
    own, common = np.hypot(var_P, slope * var_T), -error * away
    P_ref, own, common = (np.asarray(np.where(bad, np.nan, x)) for x in (P_ref, own, common))
    reach = NORMAL_975 * np.hypot(own, common)
    far = ~bad & (np.abs(away) > MAX_EXTRAPOLATION * coefficient.range_c)
    flags = mask((Flag.INPUT_SUSPECT, bad), (Flag.EXTRAPOLATED, far))
    return Corrected(P_ref, np.asarray(P_ref - reach), np.asarray(P_ref + reach), own, common, flags)


def corrected_mean(corrected: Corrected, duration_s: ArrayLike, group: ArrayLike | None = None) -> CorrectedMean:
    r"""Mean power and energy of windows, or of a run, with what is common to all readings carried through whole.

    .. math:: \bar P = \frac{\sum_i d_i P_i}{\sum_i d_i} \qquad
              \mathrm{var} = \frac{\sum_i d_i^2 s_i^2}{(\sum_i d_i)^2} + \Bigl(\frac{\sum_i d_i c_i}{\sum_i d_i}\Bigr)^2

    Source: propagation of errors; no paper.

    Args:
        corrected: Result of `correct_to_reference`, flat; s is its own error, c the common one.
        duration_s: Time that each reading, or window, stands for [s].
        group: Group of each, as integers; all are one if not given.

    Returns: CorrectedMean, one entry per group in the order of the ids.

    Range: within the powers. Entries without a power are left out, with INPUT_SUSPECT; a group without any is NaN.
        The flags of the entries are kept.

    Errors: TypeError for a wrong dtype, ValueError for shapes that do not fit.

    A coefficient known to 0.1 W/degC, 20 degC away: a thousand readings do not make 2 W smaller.

    >>> from profsvc.formulas.thermal.coefficient.temperature_coefficient import given_coefficient
    >>> known = given_coefficient(0.5, 0.1, 40.0, 60.0)
    >>> readings = correct_to_reference(np.full(1000, 300.0), 60.0, known, 40.0, power_error_w=3.0)
    >>> mean = corrected_mean(readings, 0.1)
    >>> mean.power_w.tolist(), round(float(mean.high_w - mean.power_w), 2), round(float(mean.energy_j))
    (290.0, 3.92, 29000)
    """
    P, own, common, d = flat_floats(
        power_w=corrected.power_w, own_w=corrected.own_w, common_w=corrected.common_w, duration_s=duration_s
    )
    missing = ~np.isfinite(P) | is_implausible(d)
    entry_flags = np.broadcast_to(np.atleast_1d(corrected.flags), P.shape)
    ids = Groups(group, P.size)
    weight = np.where(missing, 0.0, d)
    P, own, common = (np.where(missing, 0.0, x) for x in (P, own, common))
    total = ids.reduce(np.add, weight)
    some = np.where(total > 0, total, np.nan)
    mean, shared = (ids.reduce(np.add, weight * x) / some for x in (P, common))
    alone = np.sqrt(ids.reduce(np.add, (weight * own) ** 2)) / some
    reach = NORMAL_975 * np.hypot(alone, shared)
    flags = ids.reduce(np.bitwise_or, entry_flags) | mask((Flag.INPUT_SUSPECT, ids.any(missing) | ~(total > 0)))
    low, high = mean - reach, mean + reach
    return CorrectedMean(*ids.shaped(mean, low, high, total, mean * total, low * total, high * total, flags))
