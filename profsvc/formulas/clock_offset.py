"""The offset between the clocks of a power log and a temperature log, from what the power does to the temperature."""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from profsvc.formulas import _heating, _joint_offset, _logs, _offset_search, _rounded
from profsvc.formulas._arrays import Array, Mask, mask
from profsvc.formulas.flags import Flag

SEARCH_S = 60.0
WITHIN_S = 0.2
INTERVAL = 2.0  # standard errors to either side hold 95 %
LONGEST_S = 1800.0
LONGEST_READINGS = 2000
MOST_READINGS = 20_000
MOST_GAPS = 30  # in which the power stepped
LEAST_RISE_C = 5.0  # below it the whole degrees of a sensor are all there is
LEAST_EXPLAINED = 0.5
LEAST_EVIDENCE = 10.0  # of the response: twice the logarithm of the likelihood
MOST_STEPS = 1_000_000
UNLIKELY = 20.0  # and from where on a fit of least squares is not looked at again
SAME_S = 0.01  # offsets, and
SAME = 0.02  # logarithms of time constants of two fits that are one
LEAST_WEIGHT = 0.01


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


class _Likeliest(NamedTuple):
    """The offset over several fits, and the best of them."""

    offset: float
    se: float
    best: _joint_offset.Joint


def estimate_offset(
    power_time_s: ArrayLike,
    power_w: ArrayLike,
    temperature_time_s: ArrayLike,
    temperature_c: ArrayLike,
    *,
    search_s: float = SEARCH_S,
    within_s: float = WITHIN_S,
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
    the likelihood times the share that it leaves of what was believed of each parameter.

    The interval allows for correlated residuals (parts left out), for all other parameters and for what the fits differ
    by. Where it reaches farther than ``within_s`` there is no offset, but the interval is told, and how many steps more
    would make it narrow enough: it shrinks with the root of their number.

    The offset lays the logs over each other as they are stamped. A reading whose sensor updates now and then is on the
    mean half an update old, in both logs; that age is part of the offset.

    A lag of the temperature sensor looks like an offset and cannot be told from it. Two logs with one clock measure the
    lag itself: the estimate is then lag minus lateness, and with the same two kinds of sensors on two machines it is
    ``temperature_lag_s``. Where no such log exists, the offset carries the lag: a sensor on the die of a board is read
    within its polling interval, a thermocouple lags by its own time constant. Where power is at hand both instant and
    averaged, the instant sensor tells more: an average smooths away what a fast part answers, which ``power_late_s``
    does not bring back.

    Source: [Hong2012] Eq 49 to 52 and chapter III for the step as a common mark; the elimination of the linear part:
    [GolubPereyra1973]; the error: [NeweyWest1987], [Andrews1991], [Buckland1997]; parts, any load and the likelihood of
    rounded readings (`profsvc.formulas._rounded`): this project.

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

    Range: |offset_s| <= search_s, before lateness and lag. Refused, with NaN, INPUT_SUSPECT and the word, but with the
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
        return _refused("too_few", readings=min(tP.size, tT.size))
    longest = max(LONGEST_S, LONGEST_READINGS * _logs.usual_interval(tT))
    (tP, P), (tT, T) = _logs.most_telling((tP, P), (tT, T), longest, search_s)
    power = _heating.load(tP, P)
    if power.steps == 0:
        return _refused("no_step", readings=tT.size)
    x, means = _offset_search.means(tT, T)
    if x.size < 30 or np.ptp(means) < LEAST_RISE_C:
        return _refused("too_few" if x.size < 30 else "flat_temperature", readings=x.size, steps=power.steps)
    if len(power.gaps) > MOST_GAPS:
        return _refused("gaps", readings=x.size, steps=power.steps)
    start, doubt = _offset_search.searched(power, x, means, search_s)
    found = None if doubt == "too_few" else _offset_search.fitted(power, x, means, start)
    if found is None:
        return _refused("too_few", readings=x.size, steps=power.steps)
    told = _likeliest(power, tT, T, found)
    doubt = _doubt(told, found) or doubt or ("outside_search" if abs(told.offset) > search_s else "")
    half, middle = INTERVAL * told.se, told.offset - power.early_s + power_late_s - temperature_lag_s
    low, high = (float("nan"),) * 2 if doubt else (middle - half, middle + half)
    more = 0
    if not doubt and not half < within_s:
        doubt, more = "uncertain", int(min(np.ceil(power.steps * ((half / within_s) ** 2 - 1)), MOST_STEPS))
    rc, ratio = np.sort(np.exp(told.best.phi[2:])), np.exp(told.best.phi[1])
    return Offset(
        float("nan") if doubt else middle, told.se, low, high, *_driven(found), rc, rc * ratio, told.best.residual_c,
        told.best.readings, power.steps, more, doubt, mask((Flag.INPUT_SUSPECT, bool(doubt))),
    )  # fmt: skip


def _driven(found: _offset_search.Found) -> tuple[float, float]:
    """Rise that power drives, and the share of what the temperature does that it explains."""
    best = min(found.fits, key=lambda fit: fit.rss)
    return float(np.ptp(best.driven)), 1 - best.rss / max(float(found.alone @ found.alone), 1e-300)


def _doubt(told: _Likeliest, found: _offset_search.Found) -> str:
    """A word where the power does not explain what the temperature does."""
    rise, explained = _driven(found)
    evidence = -found.effective * np.log(max(1 - explained, 1e-300))
    weak = rise < LEAST_RISE_C or explained < LEAST_EXPLAINED or evidence < LEAST_EVIDENCE
    return "no_response" if weak or (told.best.resistance <= 0).any() else ""


def _likeliest(power: _heating.Load, t: Array, T: Array, found: _offset_search.Found) -> _Likeliest:
    """Offset over fits of fewer and more parts, at rest and not, weighed by evidence; what they differ by is error."""
    begun = sorted(found.fits, key=lambda fit: fit.rss)
    use = np.flatnonzero(_offset_search.usable(power, t, float(begun[0].phi[0])))
    use = use[:: max(-(-use.size // MOST_READINGS), 1)]
    logs = _joint_offset.Logs(power, t[use], _rounded.rounded(T[use]))
    fits: dict[int, _joint_offset.Joint] = {}
    for k, fit in enumerate(begun):
        if fits and found.effective * np.log(fit.rss / max(begun[0].rss, 1e-300)) > UNLIKELY:
            break
        if not any(_same(fit.phi, other.phi) for other in begun[:k]):
            joint = _joint_offset.fit(logs, fit.phi)
            parts = joint.resistance.size
            if (parts == 1 or joint.resistance.min() > 0) and not joint.lost >= _lost(fits.get(parts)):
                fits[parts] = joint
    kept = list(fits.values())
    told = [at for joint in kept for at in joint.offsets]
    cost = np.array([at.cost for at in told])
    weight = np.exp(-0.5 * (cost - cost.min()))
    weight = np.where(weight > LEAST_WEIGHT * weight.sum(), weight, 0.0)
    weight /= weight.sum()
    offsets, errors = (np.array(x) for x in zip(*((at.offset_s, at.error_s) for at in told), strict=True))
    middle = float(weight @ offsets)
    spread = float(weight @ np.where(weight > 0, errors**2 + (offsets - middle) ** 2, 0.0))
    return _Likeliest(middle, float(np.sqrt(spread)), kept[int(weight.argmax()) // 2])


def _lost(joint: _joint_offset.Joint | None) -> float:
    return float("inf") if joint is None else joint.lost


def _same(a: Array, b: Array) -> bool:
    """Whether two beginnings are one, whatever the order of their parts."""
    near = a.size == b.size and abs(a[0] - b[0]) < SAME_S
    return bool(near and np.abs(np.sort(a[2:]) - np.sort(b[2:])).max() < SAME)


def _refused(why: str, readings: int = 0, steps: int = 0) -> Offset:
    nan, none = float("nan"), np.empty(0)
    flags = mask((Flag.INPUT_SUSPECT, True))
    return Offset(nan, nan, nan, nan, nan, nan, none, none, nan, readings, steps, 0, why, flags)
