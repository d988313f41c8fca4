"""The offset between the clocks of a power log and a temperature log, from what the power does to the temperature."""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from profsvc.formulas.numerics.arrays import Array, Mask, mask
from profsvc.formulas.numerics.flags import Flag
from profsvc.formulas.sensors import logs as _logs
from profsvc.formulas.thermal import step_response
from profsvc.formulas.thermal.clock_offset import joint_offset_fit, offset_search
from profsvc.formulas.thermal.noise import quantization

SEARCH_S = 60.0
MAX_HALF_INTERVAL_S = 0.2  # of the 95 % interval of an offset that is accepted
INTERVAL_STANDARD_ERRORS = 2.0  # half the 95 % interval
MAX_LOG_S = 1800.0
MIN_LOG_READINGS = 2000
MAX_READINGS = 20_000
MAX_GAPS = 30  # gaps in which the power stepped
MIN_RISE_C = 5.0  # a smaller rise shows only whole degrees
MIN_EXPLAINED_SHARE = 0.5
MIN_EVIDENCE = 10.0  # of a response: twice the log-likelihood
MAX_REPORTED_STEPS = 1_000_000
MAX_LOG_LIKELIHOOD_LOSS = 20.0  # a worse least squares fit is not refined
SAME_OFFSET_S = 0.01  # two fits with closer offsets are the same,
SAME_LOG_CONSTANT = 0.02  # if the logarithms of their time constants are this close
MIN_WEIGHT = 0.01


class Offset(NamedTuple):
    """Result of `estimate_offset`; ``refused`` is empty, or a word for why there is no offset.

    ``low_s`` to ``high_s`` holds the offset with 95 %, also where it is too wide to be used: ``more_steps`` of the
    power as large as those of the log would make it narrow enough.
    """

    offset_s: float
    se_s: float
    low_s: float
    high_s: float
    rise_c: float
    explained: float
    rc_rise_s: Array
    rc_decay_s: Array
    residual_c: float
    readings: int
    steps: int
    more_steps: int
    refused: str
    flags: Mask


class _AveragedOffset(NamedTuple):
    """The offset over several fits, and the best of them."""

    offset: float
    se: float
    best: joint_offset_fit.JointFit


def estimate_offset(
    power_time_s: ArrayLike,
    power_w: ArrayLike,
    temperature_time_s: ArrayLike,
    temperature_c: ArrayLike,
    *,
    search_s: float = SEARCH_S,
    within_s: float = MAX_HALF_INTERVAL_S,
    power_late_s: float = 0.0,
    temperature_lag_s: float = 0.0,
) -> Offset:
    r"""Clock of the temperature log minus clock of the power log: subtract it from the stamps of the temperatures.

    .. math:: T(t + o) = T_a + \sum_k R_k\,\theta_k(t), \qquad
              \frac{d\theta_k}{dt} = \frac{P(t) - \theta_k}{\tau_k}, \quad
              \tau_k = RC_k \text{ where } \theta_k < P, \; \rho\,RC_k \text{ else}

    with one to three parts of positive resistance R, one ratio ρ of decay to rise, and what each part held at the
    begin and took up in gaps. All steps of the log count, up and down, and any other load as well: the power goes in as
    pieces of one level, the recurrence over them is exact. Least squares from the best whole second of the search lead
    to the likeliest values of everything at once, the noise and the true places of the steps between two readings of
    the power included, for readings that the sensor has rounded: the moments at which they flip tell most. Fits with
    fewer and more parts, of a board that was at rest when the log began or was not, are averaged by their evidence:
    the likelihood times the share that it leaves of the prior of each parameter.

    The interval allows for correlated residuals (parts left out), for all other parameters and for what the fits differ
    by. Where it reaches farther than ``within_s`` there is no offset. The interval is still given, with the number of
    further steps that would make it narrow enough: it shrinks with the root of their number.

    The offset lays the logs over each other as they are stamped. A reading whose sensor updates now and then is on the
    mean half an update old, in both logs; that age is part of the offset.

    A lag of the temperature sensor looks like an offset and cannot be distinguished from it. Two logs with one clock
    measure the lag itself: the estimate is then lag minus delay, and with the same two kinds of sensors on two machines
    it is
    ``temperature_lag_s``. Where no such log exists, the offset carries the lag: a sensor on the die of a board is read
    within its polling interval, a thermocouple lags by its own time constant. Where power is at hand both instant and
    averaged, the instant sensor tells more: an average smooths away what a fast part answers, which ``power_late_s``
    does not bring back.

    Source: [Hong2012] Eq 49 to 52 and chapter III for the step as a common mark; the elimination of the linear part:
    [GolubPereyra1973]; the error: [NeweyWest1987], [Andrews1991], [Buckland1997]; parts, any load and the likelihood of
    rounded readings (`profsvc.formulas.thermal.noise.quantization`): this project.

    Args:
        power_time_s: Stamps of the power log, flat [s].
        power_w: Its readings [W].
        temperature_time_s: Stamps of the temperature log, in seconds of its own clock since the same origin [s].
        temperature_c: Its readings [degC].
        search_s: Offsets looked for, to either side of 0 [s].
        within_s: How far the interval of 95 % may reach to either side [s].
        power_late_s: How late the power sensor is, from `averaging_window` [s].
        temperature_lag_s: How late the temperature sensor is, where that is known [s].

    Returns: Offset. Of longer logs the half hour with most steps counts (or 2000 readings); temperatures stand as means
    of half a second.

    Range: |offset_s| <= search_s, before delay and lag. Refused, with NaN, INPUT_SUSPECT and the word, but with the
    standard error where there is one: ``too_few`` readings (fewer than 30, or half of them outside the power log),
    ``no_step`` in the power, ``flat_temperature`` (less than 5 degC), ``no_response`` (the power explains less than 5
    degC or less than half of what the temperature does, or no more than chance might), ``ambiguous`` (another offset
    explains it as well, as under a periodic load), ``outside_search`` (best at the edge), ``gaps`` (more than 30
    in which the power stepped), ``uncertain`` (the interval reaches ``within_s`` or farther to either side).

    Errors: TypeError for a wrong dtype, ValueError for shapes that do not fit.

    >>> t = np.arange(0.0, 400.0)
    >>> power = np.where((t > 50) & (t < 150) | (t > 220) & (t < 300), 400.0, 80.0)
    >>> warm = 31 + 15 * (np.exp(-np.fmax(t - 150, 0) / 30) - np.exp(-np.fmax(t - 50, 0) / 30)) + 15 * (
    ...     np.exp(-np.fmax(t - 300, 0) / 30) - np.exp(-np.fmax(t - 220, 0) / 30))
    >>> found = estimate_offset(t, power, t + 7.0, np.round(warm))
    >>> found.refused, found.low_s < 7.0 < found.high_s, found.more_steps > 5
    ('uncertain', True, True)
    >>> found = estimate_offset(t, power, t + 7.0, np.round(warm), within_s=0.5)
    >>> abs(found.offset_s - 7.0) < 0.5, found.refused
    (True, '')
    """
    tP, P, _ = _logs.readings(power_time_s=power_time_s, power_w=power_w)
    tT, T, _ = _logs.readings(temperature_time_s=temperature_time_s, temperature_c=temperature_c)
    if min(tP.size, tT.size) < 30:
        return _refusal("too_few", readings=min(tP.size, tT.size))
    longest = max(MAX_LOG_S, MIN_LOG_READINGS * _logs.median_interval(tT))
    (tP, P), (tT, T) = _logs.most_active_stretch((tP, P), (tT, T), longest, search_s)
    power = step_response.piecewise_power(tP, P)
    if power.steps == 0:
        return _refusal("no_step", readings=tT.size)
    x, means = offset_search.block_means(tT, T)
    if x.size < 30 or np.ptp(means) < MIN_RISE_C:
        return _refusal("too_few" if x.size < 30 else "flat_temperature", readings=x.size, steps=power.steps)
    if len(power.gaps) > MAX_GAPS:
        return _refusal("gaps", readings=x.size, steps=power.steps)
    start, doubt = offset_search.best_whole_second(power, x, means, search_s)
    found = None if doubt == "too_few" else offset_search.fit_offsets(power, x, means, start)
    if found is None:
        return _refusal("too_few", readings=x.size, steps=power.steps)
    averaged = _averaged_offset(power, tT, T, found)
    doubt = _no_response(averaged, found) or doubt or ("outside_search" if abs(averaged.offset) > search_s else "")
    half, middle = (
        INTERVAL_STANDARD_ERRORS * averaged.se,
        averaged.offset - power.early_s + power_late_s - temperature_lag_s,
    )
    low, high = (float("nan"),) * 2 if doubt else (middle - half, middle + half)
    more = 0
    if not doubt and not half < within_s:
        doubt, more = "uncertain", int(min(np.ceil(power.steps * ((half / within_s) ** 2 - 1)), MAX_REPORTED_STEPS))
    rc, ratio = np.sort(np.exp(averaged.best.phi[2:])), np.exp(averaged.best.phi[1])
    return Offset(
        float("nan") if doubt else middle, averaged.se, low, high, *_driven_rise(found), rc, rc * ratio,
        averaged.best.residual_c, averaged.best.readings, power.steps, more, doubt,
        mask((Flag.INPUT_SUSPECT, bool(doubt))),
    )  # fmt: skip


def _driven_rise(found: offset_search.OffsetFits) -> tuple[float, float]:
    """Rise that power drives, and the share of what the temperature does that it explains."""
    best = min(found.fits, key=lambda fit: fit.rss)
    return float(np.ptp(best.driven)), 1 - best.rss / max(float(found.alone @ found.alone), 1e-300)


def _no_response(averaged: _AveragedOffset, found: offset_search.OffsetFits) -> str:
    """Return ``no_response`` where the power does not explain the temperature."""
    rise, explained = _driven_rise(found)
    evidence = -found.effective * np.log(max(1 - explained, 1e-300))
    weak = rise < MIN_RISE_C or explained < MIN_EXPLAINED_SHARE or evidence < MIN_EVIDENCE
    return "no_response" if weak or (averaged.best.resistance <= 0).any() else ""


def _averaged_offset(
    power: step_response.PiecewisePower, t: Array, T: Array, found: offset_search.OffsetFits
) -> _AveragedOffset:
    """Offset over fits of fewer and more parts, at rest and not, weighed by evidence; what they differ by is error."""
    begun = sorted(found.fits, key=lambda fit: fit.rss)
    use = np.flatnonzero(offset_search.is_usable(power, t, float(begun[0].phi[0])))
    use = use[:: max(-(-use.size // MAX_READINGS), 1)]
    logs = joint_offset_fit.Logs(power, t[use], quantization.rounded_readings(T[use]))
    fits: dict[int, joint_offset_fit.JointFit] = {}
    for k, fit in enumerate(begun):
        if fits and found.effective * np.log(fit.rss / max(begun[0].rss, 1e-300)) > MAX_LOG_LIKELIHOOD_LOSS:
            break
        if not any(_is_same_start(fit.phi, other.phi) for other in begun[:k]):
            joint = joint_offset_fit.fit(logs, fit.phi)
            parts = joint.resistance.size
            worse = joint.lost >= (fits[parts].lost if parts in fits else np.inf)
            if (parts == 1 or joint.resistance.min() > 0) and not worse:
                fits[parts] = joint
    kept = list(fits.values())
    hypotheses = [at for joint in kept for at in joint.offsets]
    cost = np.array([at.cost for at in hypotheses])
    weight = np.exp(-0.5 * (cost - cost.min()))
    weight = np.where(weight > MIN_WEIGHT * weight.sum(), weight, 0.0)
    weight /= weight.sum()
    offsets, errors = (np.array(x) for x in zip(*((at.offset_s, at.error_s) for at in hypotheses), strict=True))
    middle = float(weight @ offsets)
    spread = float(weight @ np.where(weight > 0, errors**2 + (offsets - middle) ** 2, 0.0))
    return _AveragedOffset(middle, float(np.sqrt(spread)), kept[int(weight.argmax()) // 2])


def _is_same_start(a: Array, b: Array) -> bool:
    """Return whether two start values are the same, whatever the order of their parts."""
    near = a.size == b.size and abs(a[0] - b[0]) < SAME_OFFSET_S
    return bool(near and np.abs(np.sort(a[2:]) - np.sort(b[2:])).max() < SAME_LOG_CONSTANT)


def _refusal(why: str, readings: int = 0, steps: int = 0) -> Offset:
    nan, none = float("nan"), np.empty(0)
    flags = mask((Flag.INPUT_SUSPECT, True))
    return Offset(nan, nan, nan, nan, nan, nan, none, none, nan, readings, steps, 0, why, flags)
