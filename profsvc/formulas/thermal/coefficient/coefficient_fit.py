r"""Temperature coefficient of the power of a board, from its own logs: additional watts per degree.

A hot chip leaks more. Under one load, at one clock and voltage, power and temperature creep up together, and the
slope between them is the coefficient of this board at this clock; it holds for no other. What makes the slope hard
to get right is not the line but its errors:

* the temperature is rounded to whole degrees, noisy and late. A regression on it is too flat. Here the temperature
  is replaced by exponentials fitted to it, which carry none of the reading's noise (they are the instrument of an
  instrumental-variable estimate: the fit needs them smooth, not right). Delay has to be removed before, by the
  offset of the two logs; its error comes in as `offset_error_s`.
* the power wanders, so that a thousand readings are not a thousand witnesses. The interval comes from noise models
  that remember, weighed by how well they explain the rest (`profsvc.formulas.thermal.noise.autocorrelated_fit`).
* where a rounded temperature comes to rest, the residuals cannot show by how much it is off, nor how far it moved
  where it passed few steps; these parts are added. What is left decides: no range of temperature is too small as such.
* power that changes because the work does looks the same. An interval that leakage cannot explain is refused; the
  rest `profsvc.formulas.thermal.coefficient.repeated_loads` checks.
"""

import numpy as np
from numpy.typing import ArrayLike

from profsvc.formulas.numerics.arrays import Array, flat_floats, mask
from profsvc.formulas.numerics.distributions import NORMAL_975, f_tail
from profsvc.formulas.numerics.flags import Flag, check_form
from profsvc.formulas.numerics.series import medians
from profsvc.formulas.thermal.coefficient.temperature_coefficient import (
    NO_COEFFICIENT,
    Coefficient,
    coefficient_refusal,
)
from profsvc.formulas.thermal.noise import autocorrelated_fit, constant_load_segments
from profsvc.formulas.thermal.noise.autocorrelated_fit import NoiseModels
from profsvc.formulas.thermal.noise.constant_load_segments import Blocks, HiddenError, Readings
from profsvc.formulas.thermal.rc_model import FAN, sigma

LAWS = ("auto", "linear", "exponential")
WIDE_RANGE_C = 30.0  # from here on the curvature of leakage shows
MIN_AIC_GAIN = 10.0  # difference of AICc that is taken for proof
MIN_INFORMATIVE_RANGE_C = 1.0  # a load that warms by less says nothing on whether the loads agree


def fit_coefficient(
    time_s: ArrayLike,
    power_w: ArrayLike,
    temperature_c: ArrayLike,
    segment: ArrayLike,
    *,
    load: ArrayLike | None = None,
    clock: ArrayLike | None = None,
    throttled: ArrayLike | None = None,
    fan_w: ArrayLike | None = None,
    fan_speed: ArrayLike | None = None,
    fan: str | None = None,
    law: str = "auto",
    offset_error_s: float = 0.0,
    settle_s: float = 5.0,
) -> Coefficient:
    r"""Temperature coefficient of a board's power, from segments of constant load, with an interval of 95 %.

    .. math:: P_{ij} = a_j + \sigma\,\hat T_{ij} + u_{ij} \qquad\text{or}\qquad
              \ln P_{ij} = a_j + k\,\hat T_{ij} + u_{ij}

    for reading i of segment j: one slope, one intercept per segment, so that loads of different power may be pooled.
    The hat is the temperature without its rounding and noise, u the autocorrelated noise.

    Source: [Hong2012] Eq 56 for the law and section 3.2.7 for the fan; the exponential law [DeVogeleer2014]; the
    estimate and its interval are this project's.

    Args:
        time_s: Stamps, flat [s].
        power_w: Power of the board [W].
        temperature_c: Its temperature at these stamps, the clocks aligned [degC]; NaN where unknown.
        segment: Segment of constant load of each reading, an integer; negative for readings of none.
        load: Which load each reading belongs to; segments of one load share it. One load per segment, if not given.
        clock: Clock of the cores, any unit; segments in which it moves by more than 1 % are left out.
        throttled: Where the board throttled; segments in which it did are left out.
        fan_w: Power of the fan within ``power_w`` [W].
        fan_speed: Speed of the fan where its power is not known, any unit; a regressor beside the temperature.
        fan: ``removed`` or ``included``; to be chosen as soon as the fan is known.
        law: ``linear``, ``exponential``, or ``auto``: the better by AICc over more than 30 degC; over less linear,
            unless AICc speaks for the exponential by more than 10.
        offset_error_s: Standard error of the alignment of the two clocks [s].
        settle_s: Readings so soon after the start of a segment are left out [s].

    Returns: Coefficient. ``loads_probability`` is that of loads that agree looking as different as these, NaN with
        one load. ``published_w_per_c`` is `sigma` from the ends, pooled over the segments.

    Range: refused, with the figure in ``refusal`` and INPUT_SUSPECT, where no segment has 20 readings, an unmoved
        clock and no throttling; where segments differ in clock by more than 1 %; where in no segment the temperature
        stands out from the scatter of its readings, or the power from its resolution; and by `coefficient_refusal`,
        which keeps the figures.

    Errors: TypeError for a wrong dtype; ValueError for shapes that do not fit, an unknown law or choice of fan, and
        for a fan without a choice.

    >>> t = np.arange(0.0, 200.0, 0.5)
    >>> T = 50 + 20 * (1 - np.exp(-t / 30))
    >>> found = fit_coefficient(t, 300 + 0.5 * T + 0.3 * np.sin(7 * t), np.floor(T), np.zeros(t.size, dtype=int))
    >>> round(found.coefficient_w_per_c, 1), found.refusal, found.segments
    (0.5, '', 1)
    >>> fit_coefficient(t, 300 + 0 * t, 50 + 0 * t, np.zeros(t.size, dtype=int)).refusal
    'the temperature spans 0.0 °C within a load, no more than the scatter of its readings'
    """
    check_form(law, LAWS)
    removed = _fan_choice(fan, fan_w is not None or fan_speed is not None)
    r = _readings(time_s, power_w, temperature_c, segment, load, clock, throttled, fan_speed if removed else None)
    fan_power = flat_floats(time_s=time_s, fan_w=fan_w)[1]
    if removed and fan_w is not None:
        r = r._replace(power=r.power - fan_power)
    given = r.take((r.segment >= 0) & np.isfinite(r.time + r.power + r.temperature + r.fan) & (r.power > 0))
    r, refusal = constant_load_segments.usable_readings(given, settle_s)
    found = NO_COEFFICIENT._replace(
        readings=r.time.size, segments=r.segments(), segments_left_out=given.segments() - r.segments(), refusal=refusal
    )
    if refusal:
        return found
    step = constant_load_segments.rounding_step(r.temperature)
    r = constant_load_segments.without_spikes(r)
    b = constant_load_segments.segment_blocks(r)
    span = constant_load_segments.significant_ranges(b)
    found = found._replace(
        range_c=float(span.max()), temperature_c=float(r.temperature.mean()), power_w=float(r.power.mean()),
        temperature_low_c=float(b.smooth.min()), temperature_high_c=float(b.smooth.max()),
        published_w_per_c=_published_slope(r),
    )  # fmt: skip
    if not span.max() > 0:
        most = constant_load_segments.segment_ranges(b.smooth, b.segment).max()
        words = f"the temperature spans {most:.1f} \u00b0C within a load, no more than the scatter of its readings"
        return found._replace(refusal=words)
    if not any(np.ptp(b.power[b.segment == k]) > 0 for k in range(r.segments())):
        levels = " to ".join(dict.fromkeys(f"{power:g}" for power in (b.power.min(), b.power.max())))
        words = f"no reading of a load differs in power ({levels} W): a change below its resolution is not seen"
        return found._replace(refusal=words)
    unseen = [
        *constant_load_segments.rounded_plateau(r, b, step),
        *constant_load_segments.unseen_range(r, b, step),
        (b.drift, offset_error_s**2),
    ]
    noise = autocorrelated_fit.noise_models(b.time, b.size, b.span)
    gain = _exponential_gain(b, noise)
    proof = 0.0 if span.max() > WIDE_RANGE_C else MIN_AIC_GAIN
    bent = law == "exponential" or (law == "auto" and gain > proof)
    loads = medians(r.load, r.segment, r.segments())[b.segment]
    return _with_slope(found._replace(aicc_gain=gain), b, bent, noise, loads, unseen)


def _fan_choice(fan: str | None, known: bool) -> bool:
    if fan is not None:
        check_form(fan, FAN)
    elif known:
        raise ValueError("the power of a fan is in the log; fan='removed' or fan='included' has to say what to do")
    return fan == "removed"


def _readings(
    time_s: ArrayLike,
    power_w: ArrayLike,
    temperature_c: ArrayLike,
    segment: ArrayLike,
    load: ArrayLike | None,
    clock: ArrayLike | None,
    throttled: ArrayLike | None,
    fan_speed: ArrayLike | None,
) -> Readings:
    """All of them flat and of one length; what is not known does not vary."""
    slow = np.asarray(False if throttled is None else throttled)
    if slow.dtype.kind not in "b":
        raise TypeError(f"throttled has dtype {slow.dtype}; allowed: booleans")
    codes = np.asarray(segment)
    if codes.dtype.kind not in "iu" and codes.size:
        raise TypeError(f"segment has dtype {codes.dtype}; allowed: integers")
    t, P, T, F, C, S, L, j = flat_floats(
        time_s=time_s, power_w=power_w, temperature_c=temperature_c, fan_speed=0.0 if fan_speed is None else fan_speed,
        clock=1.0 if clock is None else clock, throttled=slow.astype(np.float64),
        load=codes if load is None else load, segment=codes,
    )  # fmt: skip
    return Readings(t, P, T, F, np.nan_to_num(C), S, L, j.astype(np.intp))


def _published_slope(r: Readings) -> float:
    """The published form over the means of the first and last 30 readings of each segment, pooled by least squares."""
    power, temperature = [], []
    for k in range(r.segments()):
        P, T = (x[r.segment == k] for x in (r.power, r.temperature))
        n = min(30, P.size // 2)
        power.append(P[-n:].mean() - P[:n].mean())
        temperature.append(T[-n:].mean() - T[:n].mean())
    dP, dT = np.array(power), np.array(temperature)
    return float(sigma(dP @ dT, dT @ dT))


def _design(b: Blocks) -> Array:
    """Return the columns: temperature, one intercept per segment, and the fan where it is not their combination."""
    inner = b.smooth - constant_load_segments.group_means(b.smooth, b.segment)[b.segment]
    design = np.column_stack([inner, np.eye(int(b.segment.max()) + 1)[b.segment]])
    fan = (b.fan - constant_load_segments.group_means(b.fan, b.segment)[b.segment]) / max(float(np.ptp(b.fan)), 1e-12)
    with_fan = np.column_stack([design, fan])
    return with_fan if np.linalg.matrix_rank(with_fan, tol=1e-3) > design.shape[1] else design


def _exponential_gain(b: Blocks, noise: NoiseModels) -> float:
    """Return the difference of AICc in favour of the exponential law; both laws have the same parameters and noise."""
    design, weight = (
        _design(b),
        _segment_weights(b.power - constant_load_segments.instrumental_line(b, b.power)[1] * b.smooth, b),
    )
    level = constant_load_segments.group_means(b.power, b.segment)[b.segment]
    straight = autocorrelated_fit.fit(noise, b.power * weight, design * weight[:, np.newaxis]).likelihood.max()
    weight = weight * level
    curved = autocorrelated_fit.fit(noise, np.log(b.power) * weight, design * weight[:, np.newaxis]).likelihood.max()
    return float(2 * (curved + np.log(level / b.power).sum() - straight))


def _segment_weights(rest: Array, b: Blocks) -> Array:
    """Return the inverse scatter of each segment, shrunk a little towards the common one."""
    inner = (rest - constant_load_segments.group_means(rest, b.segment)[b.segment]) ** 2
    rows, prior = np.bincount(b.segment), 4.0
    variance = (np.bincount(b.segment, inner) + prior * inner.mean()) / np.maximum(rows - 2 + prior, 1)
    return np.asarray(1 / np.sqrt(np.maximum(variance, 1e-30)))[b.segment]


def _hidden_covariance(slope: float, tested: Array, other: Array, weight: Array, unseen: list[HiddenError]) -> Array:
    """Covariance of slopes from errors of the temperature that leave no trace in the residuals."""
    onto = np.linalg.pinv(np.column_stack([tested, other]) * weight[:, np.newaxis])[: tested.shape[1]]
    moved = [slope * (onto @ (error * weight)) for error, _ in unseen]
    return np.asarray(sum(v * np.outer(m, m) for m, (_, v) in zip(moved, unseen, strict=True)))


def _loads_probability(
    b: Blocks, slope: float, rest: Array, weight: Array, noise: NoiseModels, loads: Array, unseen: list[HiddenError]
) -> float:
    """Probability that loads with one slope differ as much as these, by Wald's test."""
    design = _design(b)
    each = design[:, :1] * (loads[:, np.newaxis] == np.unique(loads))
    each = each[:, np.ptp(each, axis=0) > MIN_INFORMATIVE_RANGE_C]
    if each.shape[1] < 2:
        return float("nan")
    found = autocorrelated_fit.fit(noise, rest * weight, np.column_stack([each, design[:, 1:]]) * weight[:, np.newaxis])
    m, best = each.shape[1], found.best()
    C = found.covariance[best][:m, :m] + _hidden_covariance(slope, each, design[:, 1:], weight, unseen)
    inverse, d = np.linalg.pinv(C), found.estimate[best][:m]
    apart = d - inverse.sum(axis=0) @ d / inverse.sum()
    return float(f_tail(apart @ inverse @ apart / (m - 1), m - 1, found.freedom))


def _with_slope(
    found: Coefficient, b: Blocks, bent: bool, noise: NoiseModels, loads: Array, unseen: list[HiddenError]
) -> Coefficient:
    """Return the result with its slope and interval; an interval that holds 0 is refused."""
    y, design = np.log(b.power) if bent else b.power, _design(b)
    slope = constant_load_segments.instrumental_line(b, y)[1]
    rest = y - slope * b.temperature  # what the readings of the temperature miss must show in the interval
    weight = _segment_weights(rest, b)
    fitted = autocorrelated_fit.fit(noise, rest * weight, design * weight[:, np.newaxis])
    hidden = _hidden_covariance(slope, design[:, :1], design[:, 1:], weight, unseen)[0, 0]
    rate, low, high = (slope + x for x in autocorrelated_fit.interval(fitted, 0, hidden))
    watts = found.power_w if bent else 1.0
    error, refusal = (high - low) / (2 * NORMAL_975), coefficient_refusal(watts * low, watts * high, found.power_w)
    return found._replace(
        coefficient_w_per_c=watts * rate, low_w_per_c=watts * low, high_w_per_c=watts * high,
        standard_error_w_per_c=watts * error, rate_per_c=rate if bent else np.nan,
        rate_standard_error_per_c=error if bent else np.nan, law="exponential" if bent else "linear",
        loads_probability=_loads_probability(b, rate, rest, weight, noise, loads, unseen), refusal=refusal,
        flags=mask((Flag.INPUT_SUSPECT, bool(refusal))),
    )  # fmt: skip
