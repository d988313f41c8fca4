"""Power against the number of SMs that work: fits to a sweep, the law that predicts it best, and predictions.

The laws are those of `profsvc.formulas.power.sm_laws`.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from profsvc.formulas.numerics.arrays import Array, Mask, arrays, flat_floats, floats, is_implausible, mask
from profsvc.formulas.numerics.distributions import f_tail, student_quantile
from profsvc.formulas.numerics.flags import Flag, check_form
from profsvc.formulas.numerics.regression import ordinary_least_squares
from profsvc.formulas.power.sm_laws import (
    LAWS,
    LawFit,
    curve,
    fit_law,
    fitted_columns,
    is_at_the_end,
    jacobian,
    power_by_law,
    solve,
)

MIN_LEVELS = 4
CONFIDENCE = 0.95


class SweepFit(NamedTuple):
    """The law chosen, all laws fitted, and what the sweep was."""

    law: str
    laws: tuple[LawFit, ...]
    activation_w: Array
    idle_w: Array
    num_sms: Array
    lowest_sms: Array
    highest_sms: Array
    error_w: Array
    flags: Mask


class Predicted(NamedTuple):
    """Power, and the 95 % interval of a new reading."""

    power_w: Array
    low_w: Array
    high_w: Array
    flags: Mask


class Beta(NamedTuple):
    """Parameters of the logarithmic law, and the 95 % interval of beta."""

    beta: Array
    low: Array
    high: Array
    alpha: Array
    max_sm_w: Array
    residual_sd_w: Array
    flags: Mask


class Activation(NamedTuple):
    """Line through a sweep: step at the first SM, slope, and reading with one SM, each with a 95 % interval."""

    activation_w: Array
    activation_low_w: Array
    activation_high_w: Array
    slope_w: Array
    slope_low_w: Array
    slope_high_w: Array
    one_sm_w: Array
    one_sm_low_w: Array
    one_sm_high_w: Array
    residual_sd_w: Array
    flags: Mask


@np.errstate(all="ignore")
def fit_activation(active_sms: ArrayLike, power_w: ArrayLike, idle_w: float | None = None) -> Activation:
    r"""Power that switching the device on costs, and power of each SM, from a sweep.

    .. math:: P = a + s\,n \quad (n \ge 1), \qquad Activation = a - P_{idle}, \qquad P(1) = a + s

    Source: section 3.11.1 of [Hong2012], which prints the readings but no equation; ordinary least squares.

    Args:
        active_sms: SMs that worked, flat; rows with 0 are power at rest [count].
        power_w: Power of the board, cleaned of temperature [W].
        idle_w: Power at rest; None takes the mean of the rows with 0 SMs [W].

    Returns: Activation, without dimension. The interval of the activation does not hold the error of ``idle_w``.

    Range: any. NaN with INPUT_SUSPECT where fewer than two numbers of SMs are left; intervals are NaN with two rows.
    Rows that are negative, NaN or inf are left out with INPUT_SUSPECT. The activation is NaN, with INPUT_SUSPECT,
    where the power at rest is not known.

    Errors: TypeError for a wrong dtype, ValueError for shapes that do not fit.

    The GTX580: 27 W at rest, 93 W on one SM, 60 W more on sixteen:

    >>> fit = fit_activation([1, 4, 8, 16], [93.0, 105.0, 121.0, 153.0], 27.0)
    >>> [round(float(x), 6) for x in (fit.activation_w, fit.slope_w, fit.one_sm_w)]
    [62.0, 4.0, 93.0]
    """
    n, P, idle, flags = _sweep(active_sms, power_w, idle_w)
    if np.unique(n).size < 2:
        return Activation(*arrays(*[np.nan] * 10, flags | np.uint32(Flag.INPUT_SUSPECT)))
    line = ordinary_least_squares(np.stack((np.ones_like(n), n), axis=1), P)
    t = student_quantile((1 + CONFIDENCE) / 2, line.dof)
    found = []
    for weights, minus in (([1.0, 0.0], idle), ([0.0, 1.0], 0.0), ([1.0, 1.0], 0.0)):
        value = np.asarray(weights) @ line.coefficients - minus
        half = t * np.sqrt(np.asarray(weights) @ line.covariance @ np.asarray(weights))
        found += [value, value - half, value + half]
    sd = np.sqrt(line.residuals @ line.residuals / line.dof) if line.dof else np.nan
    flags = flags | mask((Flag.INPUT_SUSPECT, np.isnan(idle)))
    return Activation(*arrays(*found, sd, flags))


@np.errstate(all="ignore")
def fit_beta(active_sms: ArrayLike, sm_power_w: ArrayLike, num_sms: float, max_sm_w: float | None = None) -> Beta:
    r"""Parameter of the logarithmic law from a sweep, by a search in one dimension.

    .. math:: \min_\beta \sum_i \bigl(P_i - Max_{SM} \log_{10}(\alpha n_i + \beta)\bigr)^2, \qquad
              \alpha = (10 - \beta)/N

    Source: equations (44), (46) and (47) of [Hong2012], which has beta = 1.1.

    Args:
        active_sms: SMs that worked, flat [count].
        sm_power_w: Power above rest [W].
        num_sms: SMs of the device, N [count].
        max_sm_w: Power above rest on all SMs; None fits it as well [W].

    Returns: Beta, without dimension.

    Range: beta in (0, 10). NaN with INPUT_SUSPECT where fewer than three numbers of SMs are left (two where
    ``max_sm_w`` is given); rows that are negative, NaN or inf, or of no SM, are left out with INPUT_SUSPECT.
    CLIPPED where beta lies at the end of its range.

    Errors: TypeError for a wrong dtype, ValueError for shapes that do not fit.

    >>> n = np.array([1.0, 10.0, 20.0, 30.0])
    >>> fit = fit_beta(n, 43.28 * np.log10((10 - 1.1) / 30 * n + 1.1), 30)
    >>> round(float(fit.beta), 4), round(float(fit.max_sm_w), 2)
    (1.1, 43.28)
    """
    n, P, _, flags = _sweep(active_sms, sm_power_w, None)
    free = 1 if max_sm_w is not None else 2
    if np.unique(n).size < free + 1 or is_implausible(np.asarray(float(num_sms))) or num_sms == 0:
        return Beta(*arrays(*[np.nan] * 6, flags | np.uint32(Flag.INPUT_SUSPECT)))
    _, M, beta = solve("log", n, P, num_sms, 0.0, max_sm_w)
    J = jacobian("log", n, num_sms, M, beta)[:, 3 - free :]
    line = ordinary_least_squares(J, P - M * curve("log", n, num_sms, beta))
    half = student_quantile((1 + CONFIDENCE) / 2, line.dof) * np.sqrt(line.covariance[-1, -1])
    sd = np.sqrt(line.residuals @ line.residuals / line.dof)
    flags = flags | mask((Flag.CLIPPED, is_at_the_end("log", beta)))
    return Beta(*arrays(beta, beta - half, beta + half, (10 - beta) / num_sms, M, sd, flags))


@np.errstate(all="ignore")
def fit_active_sms(
    active_sms: ArrayLike, power_w: ArrayLike, num_sms: float, idle_w: float | None = None, *, error_w: float = 0.0
) -> SweepFit:
    r"""Fit the laws to a sweep and choose the one that best predicts a number of SMs it was not fitted to.

    .. math:: \min_{law} \sqrt{\tfrac{1}{m} \sum_i \bigl(P_i - \hat P_{-n_i}(n_i)\bigr)^2}

    Each number of SMs is left out in turn, with all its rows. Equal errors give the law with fewer parameters. The
    corrected criterion of Akaike [HurvichTsai1989] is stated as well, but does not exist for three parameters on five
    rows, the usual length of a sweep.

    Source: laws: equation (44) and section 3.11.1 of [Hong2012], and this project; choice: [Stone1974].

    Args:
        active_sms: SMs that worked, flat; rows with 0 are power at rest [count].
        power_w: Power of the board, at one temperature and clock [W].
        num_sms: SMs of the device, N [count].
        idle_w: Power at rest, from which the logarithmic law starts; None takes the mean of the rows with 0 SMs, and
            where there are none the law's base is fitted [W].
        error_w: Standard error common to all readings, in addition to their scatter, as by their temperature [W].

    Returns: SweepFit, for `predict_active_sms`. ``activation_w`` is the step from rest at the first SM.

    Range: any. Fewer than 4 numbers of SMs, or a device without SMs: no law (``law`` is empty), INPUT_SUSPECT. Rows
    that are negative, NaN or inf are left out with INPUT_SUSPECT. CASE_AMBIGUOUS where the criterion of Akaike exists
    for the law chosen and prefers another; CLIPPED where the shape of that law lies at the end of what is searched.

    Errors: TypeError for a wrong dtype, ValueError for shapes that do not fit.

    >>> n = np.array([1.0, 4.0, 8.0, 12.0, 16.0])
    >>> fit = fit_active_sms(n, 89.0 + 4.0 * n + [0.1, -0.1, -0.1, 0.1, 0.0], 16, 27.0)
    >>> fit.law, round(float(fit.activation_w), 1)
    ('linear', 62.0)
    """
    n, P, idle, flags = _sweep(active_sms, power_w, idle_w)
    N = float(num_sms)
    ends = (n.min(), n.max()) if n.size else (np.nan, np.nan)
    if np.unique(n).size < MIN_LEVELS or not (np.isfinite(N) and N > 0):
        return SweepFit("", (), *arrays(np.nan, idle, N, *ends, error_w, flags | np.uint32(Flag.INPUT_SUSPECT)))
    laws = tuple(fit_law(law, n, P, N, None if np.isnan(idle) or law != "log" else idle) for law in LAWS)
    best = min(laws, key=lambda fit: (float(fit.left_out_rms_w), fit.parameters))
    akaike = min(laws, key=lambda fit: (float(fit.aicc), fit.parameters))
    start = best.base_w + best.amplitude_w * curve(best.law, np.zeros(1), N, float(best.shape))[0]
    flags = flags | mask(
        (Flag.CASE_AMBIGUOUS, np.isfinite(best.aicc) & (akaike.law != best.law)),
        (Flag.CLIPPED, is_at_the_end(best.law, float(best.shape))),
    )
    return SweepFit(best.law, laws, *arrays(start - idle, idle, N, *ends, error_w, flags))


@np.errstate(all="ignore")
def predict_active_sms(fit: SweepFit, active_sms: ArrayLike, law: str | None = None) -> Predicted:
    r"""Power on any number of SMs by a law that was fitted, with the interval of a new reading.

    .. math:: \hat P(n) \pm t_{0.975}\, k \sqrt{s^2 + j(n)^T C\, j(n)}, \qquad k^2 = \frac{\max(s, r)^2 + e^2}{s^2}

    with the covariance C of the parameters, the derivatives j of the law by them, the scatter s of the sweep, and the
    error e that its readings share. Which law it is, the sweep tells only so far: every law whose error r on numbers
    that were left out is not clearly larger than that of the law chosen (F, 5 %) may be the true one, and the interval
    holds those of all of them. A law that is named is assumed to be true, and r for s.

    Source: [Hong2012] section 3.2.5 for the laws; the interval is that of linear regression, at the
    solution; over laws that none rules out it is the widest.

    Args:
        fit: Result of `fit_active_sms`.
        active_sms: SMs that work, of any shape [count].
        law: One of ``fit.laws``; None takes the one chosen.

    Returns: Predicted, of the shape of ``active_sms``.

    Range: any; at 0 SMs the power at rest, with no interval. EXTRAPOLATED beyond the numbers of the sweep, and
    INPUT_SUSPECT beyond the device. NaN with INPUT_SUSPECT where a number is negative, NaN or inf, or there is no fit.

    Errors: TypeError for a wrong dtype, ValueError for a law that does not exist.

    >>> n = np.array([1.0, 4.0, 8.0, 12.0])
    >>> fit = fit_active_sms(n, 89.0 + 4.0 * n + [0.1, -0.1, -0.1, 0.1], 16, 27.0)
    >>> predicted = predict_active_sms(fit, 16, "linear")
    >>> round(float(predicted.power_w), 1), bool(predicted.low_w < 153.0 < predicted.high_w), int(predicted.flags)
    (153.0, True, 16)
    """
    (n,) = floats(active_sms=active_sms)
    if law is not None:
        check_form(law, LAWS)
    chosen = [known for known in fit.laws if known.law == (law or fit.law)]
    if not chosen:
        nothing = np.full(n.shape, np.nan)
        return Predicted(nothing, nothing, nothing, np.full(n.shape, np.uint32(Flag.INPUT_SUSPECT)))
    N, wrong = float(fit.num_sms), is_implausible(n)
    at, rest = np.where(wrong, 1.0, n).ravel(), n == 0
    P = power_by_law(chosen[0], at, N)
    low, high = P.copy(), P.copy()
    for known in _plausible_laws(fit, chosen[0]) if law is None else chosen:
        half = _half_interval(known, at, N, float(fit.error_w), named=law is not None)
        low, high = (
            np.minimum(low, power_by_law(known, at, N) - half),
            np.maximum(high, power_by_law(known, at, N) + half),
        )
    value = np.where(wrong, np.nan, np.where(rest, fit.idle_w, P.reshape(n.shape)))
    low, high = (np.where(wrong | rest, np.nan, end.reshape(n.shape)) for end in (np.maximum(low, 0.0), high))
    beyond = ((n < fit.lowest_sms) | (n > fit.highest_sms)) & ~rest
    flags = mask((Flag.INPUT_SUSPECT, wrong | (n > N)), (Flag.EXTRAPOLATED, beyond & ~wrong))
    return Predicted(np.asarray(value), np.asarray(low), np.asarray(high), np.asarray(flags))


def _plausible_laws(fit: SweepFit, chosen: LawFit) -> list[LawFit]:
    """Laws whose errors on the levels left out are not clearly larger than those of the chosen one."""
    levels, least = float(chosen.levels), float(chosen.left_out_rms_w)
    ratios = [(known, (float(known.left_out_rms_w) / max(least, 1e-12)) ** 2) for known in fit.laws]
    return [known for known, ratio in ratios if known is chosen or f_tail(ratio, levels, levels) > 1 - CONFIDENCE]


def _half_interval(known: LawFit, n: Array, N: float, error_w: float, *, named: bool) -> Array:
    """Half the interval of a new reading by a law."""
    J = jacobian(known.law, n, N, float(known.amplitude_w), float(known.shape))[
        :, fitted_columns(known.law, known.parameters)
    ]
    s = float(known.residual_sd_w)
    spread = np.sqrt(s**2 + np.einsum("ij,jk,ik->i", J, known.covariance, J))
    scatter = s if named or not np.isfinite(known.left_out_rms_w) else max(s, float(known.left_out_rms_w))
    more = np.hypot(scatter, error_w)
    spread = spread * more / s if s > 0 else np.full(n.shape, more)
    return np.asarray(student_quantile((1 + CONFIDENCE) / 2, known.dof) * spread)


def _sweep(active_sms: ArrayLike, power_w: ArrayLike, idle_w: float | None) -> tuple[Array, Array, float, Mask]:
    """Good rows with SMs at work, the power at rest, and INPUT_SUSPECT where rows were left out."""
    n, P = flat_floats(active_sms=active_sms, power_w=power_w)
    bad = is_implausible(n, P)
    at_rest = P[~bad & (n == 0)]
    idle = float(idle_w) if idle_w is not None else float(at_rest.mean()) if at_rest.size else np.nan
    used = ~bad & (n > 0)
    return n[used], P[used], idle, mask((Flag.INPUT_SUSPECT, bad.any()))
