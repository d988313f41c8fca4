"""Temperature coefficient from one load repeated at different temperatures, and its agreement with fits.

Within a load the power may change for two reasons that look alike: the chip warms up, or the work changes. Repeats of
the load do not: at one temperature they draw the same, whatever changed within each.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from profsvc.formulas.numerics.arrays import Array, Mask, flat_floats, mask
from profsvc.formulas.numerics.distributions import NORMAL_975, chi_squared_tail, student_quantile
from profsvc.formulas.numerics.flags import Flag

MIN_VARIANCE_RATIO = 4.0  # times the variance that rounding gives temperatures, which theirs has to be


class Repeats(NamedTuple):
    """Result of `repeat_slope`: slope between the repeats with its interval of 95 %, and what it rests on."""

    slope_w_per_c: float
    low_w_per_c: float
    high_w_per_c: float
    standard_error_w_per_c: float
    loads: int
    repeats: int
    temperature_low_c: float
    temperature_high_c: float
    flags: Mask


class Pooled(NamedTuple):
    """Result of `pool`: the mean, its interval of 95 %, and how probable it is that one truth looks so apart."""

    value: float
    low: float
    high: float
    standard_error: float
    probability: float
    flags: Mask


def repeat_slope(
    power_w: ArrayLike,
    temperature_c: ArrayLike,
    load: ArrayLike,
    *,
    power_error_w: ArrayLike = 0.0,
    temperature_error_c: float = 0.0,
) -> Repeats:
    r"""Temperature coefficient from repeats of the same loads at different temperatures.

    .. math:: P_{jk} = a_j + \sigma\,T_{jk} + u_{jk}, \qquad
              \mathrm{se}^2 = \frac{\max(s^2,\ \overline{\mathrm{var}(P)})}{\sum (T_{jk} - \bar T_j)^2}

    for repeat k of load j: one intercept per load, where `profsvc.formulas.thermal.coefficient.coefficient_fit` has one
    per stretch of time. The scatter s of the repeats has as many degrees of freedom as there are repeats less loads
    less one; Student's t makes the interval of it.

    Source: [Hong2012] Eq 56 for the law; analysis of covariance, no paper for the rule of what is telling.

    Args:
        power_w: Mean power of each repeat, flat [W].
        temperature_c: Its mean temperature [degC].
        load: Which load each repeats, any numbers.
        power_error_w: Standard error of each power [W].
        temperature_error_c: Standard error of a temperature, as by its rounding [degC].

    Returns: Repeats; the standard error is half the interval over 1.96. ``repeats`` counts those of loads that have
        more than one.

    Range: NaN with INPUT_SUSPECT where fewer than three repeats of a load, or of several loads together, are left, and
        where the temperatures of a load differ by no more than their errors explain. Repeats that are NaN are left out.

    Errors: TypeError for a wrong dtype, ValueError for shapes that do not fit.

    >>> found = repeat_slope([320.0, 325.1, 329.9, 500.0, 505.0], [40.0, 50.0, 60.0, 45.0, 55.0], [1, 1, 1, 2, 2])
    >>> round(found.slope_w_per_c, 2), found.loads, found.repeats, found.low_w_per_c < 0.5 < found.high_w_per_c
    (0.5, 2, 5, True)
    """
    P, T, L, error = flat_floats(power_w=power_w, temperature_c=temperature_c, load=load, power_error_w=power_error_w)
    known = np.isfinite(P) & np.isfinite(T) & np.isfinite(L) & np.isfinite(error)
    P, T, error = P[known], T[known], error[known]
    codes = np.unique(L[known], return_inverse=True)[1]
    count = np.bincount(codes)
    again = count[codes] > 1
    P, T, error = P[again], T[again], error[again]
    codes = np.unique(codes[again], return_inverse=True)[1]
    loads, freedom = int(codes.max(initial=-1)) + 1, P.size - int(codes.max(initial=-1)) - 2
    nan = float("nan")
    ends = (float(T.min()), float(T.max())) if T.size else (nan, nan)
    nothing = Repeats(nan, nan, nan, nan, loads, P.size, *ends, mask((Flag.INPUT_SUSPECT, True)))
    if freedom < 1:
        return nothing
    count = np.bincount(codes)
    x, y = (z - (np.bincount(codes, z) / count)[codes] for z in (T, P))
    square, rounded = float(x @ x), (P.size - loads) * temperature_error_c**2
    if square <= MIN_VARIANCE_RATIO * rounded or square <= 0:
        return nothing
    slope = float(x @ y) / (square - rounded)  # what rounding adds to the temperatures flattens the line
    scatter = max(float(((y - slope * x) ** 2).sum()) / freedom, float(np.mean(error**2)))
    half = float(student_quantile(0.975, freedom) * np.sqrt(scatter * square) / (square - rounded))
    return nothing._replace(
        slope_w_per_c=slope, low_w_per_c=slope - half, high_w_per_c=slope + half,
        standard_error_w_per_c=half / NORMAL_975, flags=mask((Flag.INPUT_SUSPECT, False)),
    )  # fmt: skip


def pool(value: ArrayLike, low: ArrayLike, high: ArrayLike) -> Pooled:
    r"""Mean of figures that were found apart from each other, each weighed by its interval, and whether they agree.

    .. math:: \bar x = \frac{\sum_i x_i / s_i^2}{\sum_i 1 / s_i^2}, \qquad s^2 = \frac{1}{\sum_i 1 / s_i^2}, \qquad
              Q = \sum_i \frac{(x_i - \bar x)^2}{s_i^2} \sim \chi^2_{n-1}

    with s the half interval over 1.96. The interval of a figure that rests on few degrees of freedom is wide for
    them, and so weighs little.

    Source: [Cochran1954], the mean of independent estimates and the test that they are of one.

    Args:
        value: Figures of one quantity, flat [any].
        low: Lower ends of their intervals of 95 % [any].
        high: Upper ends [any].

    Returns: Pooled; ``probability`` is that of figures of one truth lying so far apart, 1 for a single one.

    Range: within the figures. Those without a finite interval are left out; none left: NaN with INPUT_SUSPECT.

    Errors: TypeError for a wrong dtype, ValueError for shapes that do not fit.

    >>> found = pool([0.4, 0.6], [0.2, 0.4], [0.6, 0.8])
    >>> round(found.value, 3), round(found.low, 3), round(found.high, 3), round(found.probability, 2)
    (0.5, 0.359, 0.641, 0.17)
    """
    x, a, b = flat_floats(value=value, low=low, high=high)
    known = np.isfinite(x) & np.isfinite(a) & np.isfinite(b) & (b > a)
    x, s = x[known], (b[known] - a[known]) / (2 * NORMAL_975)
    if not x.size:
        nan = float("nan")
        return Pooled(nan, nan, nan, nan, nan, mask((Flag.INPUT_SUSPECT, True)))
    weight: Array = (s.min() / s) ** 2
    mean = float(weight @ x / weight.sum())
    error = float(s.min() / np.sqrt(weight.sum()))
    apart = float((((x - mean) / s) ** 2).sum())
    probability = float(chi_squared_tail(apart, x.size - 1)) if x.size > 1 else 1.0
    reach = NORMAL_975 * error
    return Pooled(mean, mean - reach, mean + reach, error, probability, mask((Flag.INPUT_SUSPECT, False)))
