"""A temperature coefficient with its interval, and when it is refused: fitted to logs, or known from elsewhere."""

from typing import NamedTuple

import numpy as np

from profsvc.formulas.numerics.arrays import Mask, mask
from profsvc.formulas.numerics.distributions import NORMAL_975
from profsvc.formulas.numerics.flags import Flag

# Leakage at most doubles within 10 degC; a board of nothing but leakage would have this share of its power per degree.
MAX_SHARE_PER_C = float(np.log(2) / 10)
UNKNOWN_SIGN = "its sign is not known"


class Coefficient(NamedTuple):
    """Watts per degree of one board at one clock; `refusal` is empty where the coefficient may be used.

    The rate is that of the exponential law, NaN under the linear one; `coefficient_w_per_c` is the slope at the mean
    temperature and power under both. Ends of intervals hold 95 %.
    """

    coefficient_w_per_c: float
    low_w_per_c: float
    high_w_per_c: float
    standard_error_w_per_c: float
    rate_per_c: float
    rate_standard_error_per_c: float
    law: str
    published_w_per_c: float
    temperature_c: float
    power_w: float
    temperature_low_c: float
    temperature_high_c: float
    range_c: float
    readings: int
    segments: int
    segments_left_out: int
    loads_probability: float
    aicc_gain: float
    refusal: str
    flags: Mask


NO_COEFFICIENT = Coefficient(
    **dict.fromkeys(Coefficient._fields[:6], np.nan), law="linear",
    **dict.fromkeys(Coefficient._fields[7:13], np.nan), readings=0, segments=0, segments_left_out=0,
    loads_probability=np.nan, aicc_gain=np.nan, refusal="", flags=mask((Flag.INPUT_SUSPECT, True)),
)  # fmt: skip


def given_coefficient(
    coefficient_w_per_c: float, standard_error_w_per_c: float, temperature_low_c: float, temperature_high_c: float
) -> Coefficient:
    """A coefficient known from elsewhere, in the form
    `profsvc.formulas.thermal.coefficient.temperature_correction.correct_to_reference` takes.

    Source: no paper; a figure measured before, on this board at this clock.

    Args:
        coefficient_w_per_c: Slope [W/degC].
        standard_error_w_per_c: Its standard error [W/degC]; 0 if it is taken for exact.
        temperature_low_c: Lowest temperature at which it was measured [degC].
        temperature_high_c: Highest [degC].

    Returns: Coefficient, of the linear law.

    Range: as given; figures that are not finite, a negative error,
         an empty range or a coefficient below 0 are refused.

    Errors: none.

    >>> given_coefficient(10 / 22, 0.05, 57.0, 79.0).high_w_per_c.__round__(3)
    0.553
    """
    c, se = coefficient_w_per_c, standard_error_w_per_c
    good = np.isfinite([c, se, temperature_low_c, temperature_high_c]).all() and se >= 0
    if not good or temperature_high_c <= temperature_low_c or c + NORMAL_975 * se < 0:
        return NO_COEFFICIENT._replace(
            refusal="the figures given are not a coefficient, its error and a range of temperature"
        )
    return NO_COEFFICIENT._replace(
        coefficient_w_per_c=c, standard_error_w_per_c=se, low_w_per_c=c - NORMAL_975 * se,
        high_w_per_c=c + NORMAL_975 * se, temperature_low_c=temperature_low_c, temperature_high_c=temperature_high_c,
        range_c=temperature_high_c - temperature_low_c, flags=mask(),
    )  # fmt: skip


def coefficient_refusal(low_w_per_c: float, high_w_per_c: float, power_w: float) -> str:
    r"""Reason why power cannot be corrected with a coefficient that lies in an interval; empty where it can.

    .. math:: 0 < \sigma \le \frac{\ln 2}{10}\,P

    A chip that is warmer leaks more, and at most twice as much for 10 degC: what lies outside is not leakage, but work
    that changed while the board warmed up.

    Source: [Hong2012] section 3.2.7; the upper end is this project's: a board whose power is all leakage.

    Args:
        low_w_per_c: Lower end of the interval [W/degC].
        high_w_per_c: Upper end [W/degC].
        power_w: Mean power of the loads [W].

    Returns: the reason, with the figures.

    Range: an interval that holds 0 tells no sign; one that lies below 0, or above what leakage can do, is refused.

    Errors: none.

    >>> coefficient_refusal(-0.31, -0.15, 300.0)[:58]
    'the coefficient lies between -0.31 and -0.15 W/°C: a warme'
    >>> coefficient_refusal(0.3, 0.5, 300.0), coefficient_refusal(-0.1, 0.5, 300.0)[-21:]
    ('', 'its sign is not known')
    """
    lies = f"the coefficient lies between {low_w_per_c:.3g} and {high_w_per_c:.3g} W/\u00b0C"
    if high_w_per_c < 0:
        return f"{lies}: a warmer chip does not consume less, so the work got lighter within the loads"
    if low_w_per_c > MAX_SHARE_PER_C * power_w:
        return f"{lies}: no leakage does that at {power_w:.4g} W, so the work got heavier within the loads"
    return f"{lies}: {UNKNOWN_SIGN}" if low_w_per_c <= 0 else ""


def with_systematic_error(found: Coefficient, error_w_per_c: float) -> Coefficient:
    r"""A coefficient whose interval holds an error that more readings do not make smaller.

    .. math:: half = \sqrt{half_0^2 + (1.96\,s)^2}

    Source: no paper; errors that are independent add up in squares.

    Args:
        found: A coefficient that was fitted.
        error_w_per_c: Standard error s of another kind, such as how figures differ between parts of a log [W/degC].

    Returns: Coefficient; of the exponential law the error of the rate grows in proportion.

    Range: as given; `coefficient_refusal` decides again. Without a figure or an error it is returned as it is.

    Errors: none.

    >>> wide = with_systematic_error(given_coefficient(1.0, 0.03, 40.0, 60.0)._replace(power_w=100.0), 0.04)
    >>> round(wide.standard_error_w_per_c, 3), round(wide.low_w_per_c, 3)
    (0.05, 0.902)
    """
    if not (np.isfinite(found.coefficient_w_per_c) and error_w_per_c > 0):
        return found
    value, more = found.coefficient_w_per_c, NORMAL_975 * error_w_per_c
    low, high = value - np.hypot(value - found.low_w_per_c, more), value + np.hypot(found.high_w_per_c - value, more)
    error = float((high - low) / (2 * NORMAL_975))
    refusal = coefficient_refusal(float(low), float(high), found.power_w)
    return found._replace(
        low_w_per_c=float(low), high_w_per_c=float(high), standard_error_w_per_c=error, refusal=refusal,
        rate_standard_error_per_c=found.rate_standard_error_per_c * error / found.standard_error_w_per_c,
        flags=mask((Flag.INPUT_SUSPECT, bool(refusal))),
    )  # fmt: skip
