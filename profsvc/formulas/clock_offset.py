"""The offset between the clocks of a power log and a temperature log, from what the power does to the temperature."""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from profsvc.formulas import _heating, _logs
from profsvc.formulas._arrays import Array, Bools, Mask, mask
from profsvc.formulas.flags import Flag

SEARCH_S = 60.0
WIDEST_S = 1.0
LADDER_S = np.geomspace(0.3, 300.0, 11)  # time constants that together follow any response
RATIO = 1.2  # of decay to rise, to begin with
PARTS_S = ((None,), (None, 1.5), (None, 150.0), (None, 4.0, 0.4))  # beginnings; None is what the ladder tells
INITIAL_S = (8.0, 40.0)  # decays of what the board still held when the log began
GAP_S = (8.0, 35.0)  # and of what it took up in a gap
BLOCK_S = 0.5  # readings of temperature that stand as their mean
LONGEST_S = 1800.0
LONGEST_READINGS = 2000
SCREENED = 400
REACH_S = 3.0  # of the refinement about the best of the search
LEAST_RISE_C = 5.0  # below it the whole degrees of a sensor are all there is
LEAST_EXPLAINED = 0.5
LEAST_EVIDENCE = 10.0  # of the response, and of the offset against any other: twice the logarithm of the likelihood
A_PART = 4.0  # the same of each part beyond the first
LEAST_WEIGHT = 0.01
LEAST_PART = 0.02  # of all resistance; a smaller part is none
ROUNDS = 3
STEP = 1e-3


class Offset(NamedTuple):
    """Result of `estimate_offset`; ``refused`` is empty, or a word for why there is no offset."""

    offset_s: float
    se_s: float
    rise_c: float
    explained: float
    rc_rise_s: Array
    rc_decay_s: Array
    residual_c: float
    readings: int
    steps: int
    refused: str
    flags: Mask


class _Fit(NamedTuple):
    """A fit of offset, ratio and time constants, in this order the last two as logarithms."""

    phi: Array
    rss: float
    residual: Array
    amplitude: Array
    driven: Array
    jacobian: Array


class _Found(NamedTuple):
    """The offset over several fits, the best of them, and what is left of the temperatures without power."""

    offset: float
    se: float
    best: _Fit
    alone: Array
    effective: float


def estimate_offset(
    power_time_s: ArrayLike,
    power_w: ArrayLike,
    temperature_time_s: ArrayLike,
    temperature_c: ArrayLike,
    *,
    search_s: float = SEARCH_S,
    widest_s: float = WIDEST_S,
    power_late_s: float = 0.0,
    temperature_lag_s: float = 0.0,
) -> Offset:
    r"""Clock of the temperature log minus clock of the power log: subtract it from the stamps of the temperatures.

    .. math:: T(t + o) = T_a + \sum_k R_k\,\theta_k(t), \qquad
              \frac{d\theta_k}{dt} = \frac{P(t) - \theta_k}{\tau_k}, \quad
              \tau_k = RC_k \text{ where } \theta_k < P, \; \rho\,RC_k \text{ else}

    with one to three parts of positive resistance R, one ratio ρ of decay to rise, and what the board still held at
    the begin and took up in gaps. All steps of the log count, up and down, and any other load as well: the power goes
    in as pieces of one level, the recurrence over them is exact. R and T_a are linear and eliminated, o, RC and ρ found
    by Gauss-Newton from the best whole second of the search. Fits with fewer and more parts are averaged by their
    likelihood, where a part more costs what raises twice its logarithm by 4.

    The standard error allows for correlated residuals (rounding to whole degrees, parts left out), for all other
    parameters, for what the fits differ by, and for the age that a reading has where the sensor's own updates were not
    seen.

    A lag of the temperature sensor looks like an offset and cannot be told from it. Two logs with one clock measure the
    lag itself: the estimate is then lag minus lateness, and with the same two kinds of sensors on two machines it is
    ``temperature_lag_s``. Where no such log exists, the offset carries the lag: a sensor on the die of a board is read
    within its polling interval, a thermocouple lags by its own time constant. Where power is at hand both instant and
    averaged, the instant sensor tells more: an average smooths away what a fast part answers, which ``power_late_s``
    does not bring back.

    Source: [Hong2012] Eq 49 to 52 and chapter III for the step as a common mark; the elimination of the linear part:
    [GolubPereyra1973]; the error: [NeweyWest1987], [Andrews1991], [Buckland1997]; parts and any load: this project.

    Args:
        power_time_s: Stamps of the power log, flat [s].
        power_w: Its readings [W].
        temperature_time_s: Stamps of the temperature log, in seconds of its own clock since the same origin [s].
        temperature_c: Its readings [degC].
        search_s: Offsets looked for, to either side of 0 [s].
        widest_s: Standard error from which the offset is refused [s].
        power_late_s: How late the power sensor is, from `averaging_window` [s].
        temperature_lag_s: How late the temperature sensor is, where that is known [s].

    Returns: Offset. Of longer logs the half hour with most steps counts (or 2000 readings); temperatures stand as means
    of half a second.

    Range: |offset_s| <= search_s, before lateness and lag. Refused, with NaN, INPUT_SUSPECT and the word, but with the
    standard error where there is one: ``too_few`` readings (fewer than 30, or half of them outside the power log),
    ``no_step`` in the power, ``flat_temperature`` (less than 5 degC), ``no_response`` (the power explains less than 5
    degC or less than half of what the temperature does, or no more than chance might), ``ambiguous`` (another offset
    explains it as well, as under a periodic load), ``outside_search`` (best at the edge), ``uncertain`` (standard error
    of ``widest_s`` or more).

    Errors: TypeError for a wrong dtype, ValueError for shapes that do not fit.

    >>> t = np.arange(0.0, 400.0)
    >>> power = np.where((t > 50) & (t < 150) | (t > 220) & (t < 300), 400.0, 80.0)
    >>> warm = 31 + 15 * (np.exp(-np.fmax(t - 150, 0) / 30) - np.exp(-np.fmax(t - 50, 0) / 30)) + 15 * (
    ...     np.exp(-np.fmax(t - 300, 0) / 30) - np.exp(-np.fmax(t - 220, 0) / 30))
    >>> found = estimate_offset(t, power, t + 7.0, np.round(warm))
    >>> abs(found.offset_s - 7.0) < 0.5, found.se_s < 0.5, found.refused
    (True, True, '')
    """
    tP, P, _ = _logs.readings(power_time_s=power_time_s, power_w=power_w)
    tT, T, _ = _logs.readings(temperature_time_s=temperature_time_s, temperature_c=temperature_c)
    if min(tP.size, tT.size) < 30:
        return _refused("too_few", readings=min(tP.size, tT.size))
    (tP, P), (tT, T) = _most_telling(tP, P, tT, T, search_s)
    power = _heating.load(tP, P)
    if power.steps == 0:
        return _refused("no_step", readings=tT.size)
    x, T = _means(tT, T)
    if x.size < 30 or np.ptp(T) < LEAST_RISE_C:
        return _refused("too_few" if x.size < 30 else "flat_temperature", readings=x.size, steps=power.steps)
    start, doubt = _searched(power, x, T, search_s)
    found = None if doubt == "too_few" else _fitted(power, x, T, start)
    if found is None:
        return _refused("too_few", readings=x.size, steps=power.steps)
    fit = found.best
    alone = max(float(found.alone @ found.alone), 1e-300)
    explained, rise = 1 - fit.rss / alone, float(np.ptp(fit.driven))
    evidence = found.effective * np.log(alone / max(fit.rss, 1e-300))
    if rise < LEAST_RISE_C or explained < LEAST_EXPLAINED or evidence < LEAST_EVIDENCE or (fit.amplitude <= 0).any():
        doubt = "no_response"
    elif not doubt and abs(found.offset) > search_s:
        doubt = "outside_search"
    elif not doubt and not found.se < widest_s:
        doubt = "uncertain"
    offset = float("nan") if doubt else found.offset + power_late_s - temperature_lag_s
    rc, n = np.sort(np.exp(fit.phi[2:])), fit.residual.size
    decay, rms = rc * np.exp(fit.phi[1]), float(np.sqrt(fit.rss / n))
    flags = mask((Flag.INPUT_SUSPECT, bool(doubt)))
    return Offset(offset, found.se, rise, explained, rc, decay, rms, n, power.steps, doubt, flags)


def _fitted(power: _heating.Load, x: Array, T: Array, start: float) -> _Found | None:
    """Fits with one part and more about a start, about the end of the way where it leads far from there."""
    found = None
    for _ in range(ROUNDS):
        use = _usable(power, x, start)
        if use.sum() < 30:
            return found
        own, read = x[use], T[use]
        free = _free(power, own - start)
        *few, many = _beginnings(power, own, read, start)
        fits = [_refine(phi, power, own, read, free) for phi in few]
        weight, effective = _weighed(fits)
        best = fits[int(weight.argmax())]
        if best.amplitude.size > 1 and effective * np.log(fits[0].rss / best.rss) > LEAST_EVIDENCE:
            fits.append(_refine(many, power, own, read, free))
            weight, effective = _weighed(fits)
            best = fits[int(weight.argmax())]
        offset, se = _mean(fits, weight, free.shape[1], power.poll_s, float(np.median(np.diff(own))))
        alone = read - free @ np.linalg.lstsq(free, read, rcond=None)[0]
        found = _Found(offset, se, best, alone, effective)
        if abs(best.phi[0] - start) < REACH_S / 2:
            break
        start = float(best.phi[0])
    return found


def _refused(why: str, readings: int = 0, steps: int = 0) -> Offset:
    nan, none = float("nan"), np.empty(0)
    return Offset(nan, nan, nan, nan, none, none, nan, readings, steps, why, mask((Flag.INPUT_SUSPECT, True)))


def _most_telling(
    tP: Array, P: Array, tT: Array, T: Array, search: float
) -> tuple[tuple[Array, Array], tuple[Array, Array]]:
    """The stretch of both logs in which power moves most, if they are longer than can be looked through."""
    longest = max(LONGEST_S, LONGEST_READINGS * _logs.usual_interval(tT))
    if tP[-1] - tP[0] <= longest:
        return (tP, P), (tT, T)
    coarse = np.arange(tP[0], tP[-1], longest / 200)
    first = np.searchsorted(tP, coarse)
    mean = np.add.reduceat(P, np.minimum(first, P.size - 1)) / np.maximum(np.diff(np.append(first, P.size)), 1)
    moved = np.concatenate(([0.0], np.cumsum(np.abs(np.diff(mean)))))
    k = int(np.argmax(moved[200:] - moved[:-200])) if moved.size > 200 else 0
    begin = coarse[k]
    inP = (tP >= begin) & (tP <= begin + longest)
    inT = (tT >= begin - search) & (tT <= begin + longest + search)
    return (tP[inP], P[inP]), (tT[inT], T[inT])


def _means(t: Array, T: Array) -> tuple[Array, Array]:
    """Means over blocks of neighbours; no block reaches over a gap."""
    size = max(int(BLOCK_S / _logs.usual_interval(t)), 1)
    n = t.size // size * size
    blocks, values = t[:n].reshape(-1, size), T[:n].reshape(-1, size)
    near = blocks[:, -1] - blocks[:, 0] <= 2 * BLOCK_S
    return blocks[near].mean(axis=1), values[near].mean(axis=1)


def _free(power: _heating.Load, t: Array) -> Array:
    """What does not depend on power: a level, what was held at the begin, what was taken up in gaps."""
    since = np.maximum(t - power.edges[0], 0.0)
    columns = [np.ones(t.size)] + [np.exp(-since / tau) for tau in INITIAL_S]
    for _, end in power.gaps:
        columns += [np.where(t > end, np.exp(-np.maximum(t - end, 0.0) / tau), 0.0) for tau in GAP_S]
    return np.column_stack(columns)


def _ladder(power: _heating.Load, known: _heating.States, t: Array, T: Array) -> tuple[Array, Array, Array]:
    """What is left without power and with the ladder of time constants, and the ladder's resistances."""
    Q = np.linalg.qr(_free(power, t))[0]
    Y = _heating.response(power, known, t)
    Y, r = Y - Q @ (Q.T @ Y), T - Q @ (Q.T @ T)
    a = _heating.nonnegative(Y.T @ Y, Y.T @ r)
    return r, r - Y @ a, a


def _searched(power: _heating.Load, x: Array, T: Array, search: float) -> tuple[float, str]:
    """Whole second of offset at which power explains most, and what speaks against it."""
    some = slice(None, None, max(x.size // SCREENED, 1))
    x, T = x[some], T[some]
    known = _heating.states(power, LADDER_S, LADDER_S * RATIO)
    offsets = np.arange(-np.ceil(search), np.ceil(search) + 1)
    gain, each = np.full(offsets.size, -np.inf), np.zeros(offsets.size)
    for k, o in enumerate(offsets):
        inside = (x - o >= power.edges[0]) & (x - o <= power.edges[-1])
        if inside.sum() >= max(0.5 * x.size, 15):
            without, left, _ = _ladder(power, known, x[inside] - o, T[inside])
            each[k] = _independent(left) / left.size
            gain[k] = left.size * np.log((without @ without) / max(float(left @ left), 1e-12))
    if np.isinf(gain).all():
        return 0.0, "too_few"
    best = int(np.argmax(gain))
    if best in (0, offsets.size - 1):
        return float(offsets[best]), "outside_search"
    padded = np.concatenate(([-np.inf], gain, [-np.inf]))
    peak = (np.abs(offsets - offsets[best]) > REACH_S) & (gain >= padded[:-2]) & (gain >= padded[2:])
    rival = peak.any() and each[best] * (gain[best] - gain[peak].max()) < LEAST_EVIDENCE
    return float(offsets[best]), "ambiguous" if rival else ""


def _independent(residual: Array) -> float:
    """How many independent readings a residual has that is correlated from one reading to the next."""
    r = residual
    correlation = float(np.clip(r[1:] @ r[:-1] / max(float(r @ r), 1e-300), 0.0, 0.95))
    return r.size * (1 - correlation) / (1 + correlation)


def _usable(power: _heating.Load, x: Array, start: float) -> Bools:
    """Readings within the power log for any offset near the start, and not in a gap in which the power stepped."""
    t = x - start
    use = (t - REACH_S >= power.edges[0]) & (t + REACH_S <= power.edges[-1])
    for begin, end in power.gaps:
        use &= (t < begin - REACH_S) | (t > end + REACH_S)
    return np.asarray(use)


def _beginnings(power: _heating.Load, x: Array, T: Array, start: float) -> list[Array]:
    """Where the refinement begins, for each number of parts."""
    known = _heating.states(power, LADDER_S, LADDER_S * RATIO)
    a = _ladder(power, known, x - start, T)[2] * (LADDER_S > 5.0)
    main = float(np.exp(a @ np.log(LADDER_S) / a.sum())) if a.sum() > 0 else 30.0
    parts = [[main if tau is None else max(tau, 4 * main) if tau > 100 else tau for tau in taus] for taus in PARTS_S]
    return [np.concatenate(([start, np.log(RATIO)], np.log(taus))) for taus in parts]


def _model(phi: Array, power: _heating.Load, x: Array, T: Array, free: Array) -> _Fit:
    """Best linear part for these parameters, and the derivatives of what it leaves."""
    o, ratio, tau = phi[0], np.exp(phi[1]), np.exp(phi[2:])
    K = tau.size
    more = np.exp(STEP)
    rise = np.concatenate((tau, tau * more, tau))
    known = _heating.states(power, rise, np.concatenate((tau, tau * more, tau * more)) * ratio)
    own = _heating.States(known.begin[:, :K], known.tau[:, :K])
    Y = _heating.response(power, known, x - o)
    A = np.column_stack((free, Y[:, :K]))
    Q = np.linalg.qr(A)[0]
    linear = np.linalg.lstsq(A, T, rcond=None)[0]
    residual, a = T - A @ linear, linear[-K:]
    width = 0.02
    early, late = (_heating.response(power, own, x - o + shift) for shift in (-width, width))
    by = [(early - late) @ a / (2 * width), (Y[:, 2 * K :] - Y[:, :K]) @ a / STEP]
    by += [(Y[:, K + k] - Y[:, k]) * a[k] / STEP for k in range(K)]
    D = np.column_stack(by)
    driven = np.asarray(Y[:, :K] @ a)
    return _Fit(phi, float(residual @ residual), np.asarray(residual), np.asarray(a), driven, D - Q @ (Q.T @ D))


def _refine(phi: Array, power: _heating.Load, x: Array, T: Array, free: Array) -> _Fit:
    """Gauss-Newton with shorter steps where the whole one does not help."""
    K = phi.size - 2
    low = np.concatenate(([phi[0] - REACH_S, np.log(0.7)], np.full(K, np.log(0.05))))
    high = np.concatenate(([phi[0] + REACH_S, np.log(2.5)], np.full(K, np.log(2000.0))))
    longest = np.concatenate(([1.0, 0.3], np.full(K, 0.7)))
    fit = _model(phi, power, x, T, free)
    for _ in range(20):
        size = np.maximum(np.linalg.norm(fit.jacobian, axis=0), 1e-12)
        step = np.linalg.lstsq(fit.jacobian / size, fit.residual, rcond=1e-8)[0] / size
        step = np.clip(step, -longest, longest)
        for shorter in (1.0, 0.4, 0.1, 0.02):
            trial = _model(np.clip(fit.phi + shorter * step, low, high), power, x, T, free)
            if trial.rss < fit.rss:
                break
        else:
            break
        gained, fit = fit.rss - trial.rss, trial
        if gained < 1e-6 * fit.rss:
            break
    return fit


def _weighed(fits: list[_Fit]) -> tuple[Array, float]:
    """Weight of each fit by its likelihood and its number of parts, and how many independent readings there are.

    Of fits with as many parts the best counts; one with a part that takes no share in the response does not.
    """
    effective = _independent(min(fits, key=lambda fit: fit.rss).residual)
    left = np.array([max(fit.rss, 1e-300) for fit in fits])
    parts = np.array([fit.amplitude.size for fit in fits])
    share = np.array([(fit.amplitude / fit.amplitude.sum()).min() for fit in fits])
    cost = effective * np.log(left / left.min()) + A_PART * parts
    cost = np.where((share > LEAST_PART) | (parts == 1), cost, np.inf)
    best = {int(parts[k]): k for k in np.argsort(-cost, kind="stable")}
    kept = np.isin(np.arange(cost.size), list(best.values()))
    weight = np.where(kept, np.exp(-0.5 * (cost - cost.min())), 0.0)
    return weight / weight.sum(), effective


def _mean(fits: list[_Fit], weight: Array, linear: int, power_poll: float, poll: float) -> tuple[float, float]:
    """Offset over the fits, and its standard error with what they differ by."""
    kept = np.flatnonzero(weight > LEAST_WEIGHT).tolist()
    w = weight[kept] / weight[kept].sum()
    offsets = np.array([fits[k].phi[0] for k in kept])
    errors = np.array([_error(fits[k], linear, power_poll, poll) for k in kept])
    offset = float(w @ offsets)
    return offset, float(np.sqrt(w @ (errors**2 + (offsets - offset) ** 2)))


def _error(fit: _Fit, linear: int, poll_power: float, poll_temperature: float) -> float:
    """Standard error of the offset, with all other parameters free."""
    others = np.linalg.qr(fit.jacobian[:, 1:])[0]
    g = fit.jacobian[:, 0] - others @ (others.T @ fit.jacobian[:, 0])
    n, curvature = g.size, float(g @ g)
    spare = max(n - linear - fit.phi.size - fit.amplitude.size, 1)
    if not curvature > 0:
        return float("inf")
    one = np.array([n])
    long_run, lags = _logs.long_run(g, fit.residual, np.zeros(n, dtype=np.intp), one)
    hac = float(_logs.wider(lags / one)[0]) ** 2 * n * float(long_run[0]) / curvature**2 * n / spare
    white = fit.rss / spare / curvature
    age = (poll_power**2 + poll_temperature**2) / 48  # uniform up to half a poll
    return float(np.sqrt(max(hac, white) + age))
