r"""Thermal constants of a board from a whole log of any load: the power drives the model, the temperature judges it.

.. math:: T(t) = T_0 + \sum_i R_i\,\theta_i(t), \qquad \dot\theta_i = \frac{P - \theta_i}{RC_i}

with one to three constants (a die, what it sits on, what cools that), each of them other while it warms than while it
cools, in one proportion. As the measured power drives it, leakage is part of the drive and not of the constants. A
boxcar in the power, or a lag of the temperature, shifts the two against each other and is taken out by the offset of
the logs.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from profsvc.formulas import _heating, _joint_offset, _logs, _relaxing, _rounded, _segments
from profsvc.formulas._arrays import Array, Bools, Mask, mask, rows
from profsvc.formulas._relaxing import Estimate, Problem, Rows
from profsvc.formulas.flags import Flag
from profsvc.formulas.thermal_fits import LEAST_CHANGE_C

PROPORTIONS = np.array([0.7, 1.0, 1.4, 2.0])
LEAST_STEP = 0.1  # of the mean power; a load that varies less does not drive the temperature
JUMP = 0.1  # of the range of the power: after it the temperature moves fast

LONGEST_S = 7200.0
MOST_READINGS = 20_000
MOST_GAPS = 30
INTERVAL = 2.3  # standard errors to either side; 2 of them hold 91 % on synthetic logs, whose power is read, not known
LEAST_OFFSET_S = 1e-3  # by which the logs may be off, however well they are aligned
MOST_PARTS = 3
A_PART = 20.0  # of twice the logarithm of the likelihood; what the power does between its readings is worth ten
FAST_S, SLOWER = 1.5, 4.0  # where one constant more is looked for: at the first, and beyond the slowest
FARTHEST = 3.0  # a factor by which a constant may move from blocks of readings to the readings
LEAST_EXPLAINED = 0.9  # of the variance of the temperature; what heats elsewhere than the sensor is has no one answer


class LoadFit(NamedTuple):
    """Time constants, the fastest first, with the ends of their intervals of 95 %.

    A constant that is faster than the readings tell is NaN with a low end of 0: it lies below the high end. One that is
    NaN otherwise is not told within a factor of 10; nor is an end that is NaN. `zero_c` is the temperature without any
    power. `refusal` is empty where the fit may be used.
    """

    rc_rise_s: Array
    rc_rise_low_s: Array
    rc_rise_high_s: Array
    rc_decay_s: Array
    rc_decay_low_s: Array
    rc_decay_high_s: Array
    resistance_c_per_w: Array
    zero_c: float
    residual_c: float
    readings: int
    refusal: str
    flags: Mask


def fit_load(
    power_time_s: ArrayLike,
    power_w: ArrayLike,
    temperature_time_s: ArrayLike,
    temperature_c: ArrayLike,
    *,
    offset_error_s: float = 0.0,
    offset_estimated: bool = False,
) -> LoadFit:
    r"""Time constants and thermal resistances of a board from a log of any load.

    The first of one to three constants that the likelihood wants. How many there are, and which are only bounds, means
    over blocks of readings tell, under noise that wanders (`profsvc.formulas._wander`). The others are the likeliest
    for readings that the sensor has rounded (`profsvc.formulas._rounded`), with the places of the steps between two
    readings of the power and the offset free within its error; each has its own interval.
    `profsvc.formulas.thermal_fits.known_within` says which are known within 5 %.

    Source: the differential equation behind [Hong2012] Eq 49 and 50; the search and the interval are this project's.

    Args:
        power_time_s: Stamps of the power, flat, ascending [s].
        power_w: Power [W].
        temperature_time_s: Stamps of the temperature on the same clock, the offset removed, flat [s].
        temperature_c: Temperature [degC].
        offset_error_s: Standard error of the offset [s].
        offset_estimated: Whether the offset was estimated from these logs: then they do not know it twice.

    Returns: LoadFit. Of a longer log the two hours count in which power moves most.

    Range: refused, with the figure, for fewer than 20 readings of either, a temperature that changes by less than
        3 degC, a power that varies by less than a tenth, a power that explains less than 90 % of
        what the temperature does, and where no constant is told within a factor of 3 or as a bound.

    Errors: TypeError for a wrong dtype, ValueError for shapes that do not fit.

    >>> from profsvc.formulas.thermal import temperature_scan
    >>> t = np.arange(0.0, 600.0, 0.5)
    >>> P = np.where((t // 100) % 2 == 1, 300.0, 60.0)
    >>> T = temperature_scan(30 + 0.08 * P, 0.5, 34.8, 20.0, 30.0)
    >>> found = fit_load(t, P, t + 0.5, np.floor(T))
    >>> np.abs(found.rc_rise_s / 20 - 1) < 0.05, np.abs(found.rc_decay_s / 30 - 1) < 0.05, found.refusal
    (array([ True]), array([ True]), '')
    """
    tp, P = _finite(*rows(power_time_s=power_time_s, power_w=power_w))
    tT, T = _finite(*rows(temperature_time_s=temperature_time_s, temperature_c=temperature_c))
    inside = (tT >= tp.min(initial=np.inf)) & (tT <= tp.max(initial=-np.inf))
    tT, T = tT[inside], T[inside]
    refusal = _useless(tp, P, T)
    if refusal:
        return _nothing(T.size, refusal)
    (tp, P), (tT, T) = _logs.most_telling((tp, P), (tT, T), LONGEST_S, 0.0)
    refusal = _useless(tp, P, T)
    if refusal:
        return _nothing(T.size, refusal)
    power = _heating.load(tp, P)
    tT = tT - power.early_s
    if power.level.size < 2:
        return _nothing(T.size, "the power shows no level that lasts: nothing drives the temperature")
    keep = ~_blind(power, tT)
    if keep.sum() < _segments.ENOUGH:
        return _nothing(T.size, f"readings of the temperature while the power is known: {keep.sum()}")
    jumps = np.abs(np.diff(power.level)) > JUMP * np.ptp(power.level)
    resumed = [end for _, end in power.gaps]
    steps = np.append(power.edges[1:-1][jumps], resumed)
    problem = _problem(power, _relaxing.rows_of(tT[keep], T[keep], steps, float(np.median(np.diff(np.unique(tp))))))
    now, step = _parts(problem), _segments.step_of(T)
    hidden = [offset_error_s * _pace(power, problem.rows, now)]
    hidden += _relaxing.creeping(problem.rows, step)
    found = _told(problem.rows, now, hidden)
    if not found.refusal and len(power.gaps) <= MOST_GAPS:
        unsure = np.inf if offset_estimated else max(offset_error_s, LEAST_OFFSET_S)
        found = _sharper(found, power, tT[keep], T[keep], unsure, now)
    explained = _explained(problem.rows, now.rest, step)
    if not explained > LEAST_EXPLAINED:
        refusal = f"the power explains {explained:.0%} of what the temperature does; a time constant needs 90 %"
        found = found._replace(refusal=refusal, flags=mask((Flag.INPUT_SUSPECT, True)))
    without_power = (
        found.zero_c - power.level[0] * found.resistance_c_per_w.sum()
    )  # the model begins at the first level
    return found._replace(zero_c=float(without_power), readings=T.size)


def _finite(t: Array, x: Array) -> tuple[Array, Array]:
    good = np.isfinite(t) & np.isfinite(x)
    return t[good], x[good]


def _nothing(readings: int, refusal: str) -> LoadFit:
    nan, none = float("nan"), np.empty(0)
    flags = mask((Flag.INPUT_SUSPECT, True))
    return LoadFit(none, none, none, none, none, none, none, nan, nan, readings, refusal, flags)


def _useless(tp: Array, P: Array, T: Array) -> str:
    """Why there is nothing to fit, if there is nothing."""
    for name, x in (("power", P), ("temperature", T)):
        if x.size < _segments.ENOUGH:
            return f"readings of the {name}: {x.size}; a time constant needs {_segments.ENOUGH}"
    if not (np.diff(tp) >= 0).all() or not np.ptp(tp) > 0:
        return "the stamps of the power do not ascend"
    low, high = np.quantile(T, (0.02, 0.98))
    if high - low < LEAST_CHANGE_C:
        return f"the temperature changes by {high - low:.1f} \u00b0C; a time constant needs {LEAST_CHANGE_C:g} \u00b0C"
    low, high = np.quantile(P, (0.02, 0.98))
    if high - low < LEAST_STEP * abs(P.mean()):
        return f"the power varies by {high - low:.1f} W, less than a tenth of it: nothing drives the temperature"
    return ""


def _blind(power: _heating.Load, time: Array) -> Bools:
    """Temperatures read while the power was lost and changed: what heat came is not known."""
    blind = np.zeros(time.size, dtype=np.bool_)
    for begin, end in power.gaps:
        blind |= (time > begin) & (time < end)
    return blind


def _problem(power: _heating.Load, blocks: Rows) -> Problem:
    """Design of logarithms of a proportion and constants: driven parts, state at each beginning, constant."""
    begins = [float(power.edges[0]), *(end for _, end in power.gaps)]

    def columns(p: Array) -> Array:
        rise = np.exp(p[:, 1:])
        decay = rise * np.exp(p[:, :1])
        known = _heating.states(power, rise.ravel(), decay.ravel())
        driven = blocks.mean(_heating.response(power, known, blocks.point))
        parts = [driven.reshape(-1, *rise.shape).swapaxes(0, 1)]
        for begin in begins:  # what the board held then is not known
            age = (blocks.time - begin)[:, np.newaxis]
            held = np.exp(-np.maximum(age, 0.0) / decay[:, np.newaxis]) * (age >= 0)
            parts.append(held)
        parts.append(np.ones((len(p), blocks.time.size, 1)))
        return np.concatenate(parts, axis=2)

    return Problem(blocks, columns)


def _parts(problem: Problem) -> Estimate:
    """As many constants as the likelihood wants, each of a positive resistance."""
    ladder, ratios = np.log(_relaxing.LADDER_S), np.log(PROPORTIONS)
    ratio, rc = (x.ravel() for x in np.meshgrid(ratios, ladder, indexing="ij"))
    pairs = _relaxing.pairs(ladder)

    def more(p: Array) -> Array:
        beside = np.column_stack([np.tile(p, (ladder.size, 1)), ladder])
        return np.vstack([beside, np.column_stack([np.full(len(pairs), p[0]), pairs])]) if p.size == 2 else beside

    return _relaxing.forward(
        problem, np.column_stack([ratio, rc]), more, lambda p, linear: np.maximum(linear[: p.size - 1], 0.0)
    )


def _told(blocks: Rows, now: Estimate, hidden: list[Array]) -> LoadFit:
    order = np.argsort(now.p[1:])
    one = np.eye(now.p.size)[1:][order]
    directions = np.vstack([one, one + np.eye(now.p.size)[0]])  # the proportion is part of a decay
    ends = _relaxing.intervals(now, directions, hidden, blocks.noise).reshape(2, -1, 3)
    told = _relaxing.said(ends, blocks.interval, float(np.ptp(blocks.time)))
    (rise, rise_low, rise_high), (decay, decay_low, decay_high) = told.transpose(0, 2, 1)
    refusal = _relaxing.refusal(now, order, ends[0], told[0])
    return LoadFit(
        rise, rise_low, rise_high, decay, decay_low, decay_high, now.linear[order], float(now.linear[-1]),
        float(np.sqrt(np.average(now.rest**2, weights=blocks.size))), 0, refusal,
        mask((Flag.INPUT_SUSPECT, bool(refusal))),
    )  # fmt: skip


def _sharper(found: LoadFit, power: _heating.Load, t: Array, T: Array, offset_se_s: float, now: Estimate) -> LoadFit:
    """The likeliest constants for readings that the sensor has rounded, where blocks of them tell that there are such.

    A bound stays what it is, and so does all where the readings want it far away.
    """
    some = slice(None, None, max(-(-t.size // MOST_READINGS), 1))
    logs = _joint_offset.Logs(power, t[some], _rounded.rounded(T[some]), offset_se_s)
    order = 1 + np.argsort(now.p[1:])
    begin = np.array([0.0, now.p[0], *now.p[order]])
    joint = _joint_offset.fit(logs, begin, _directions(begin.size - 2))
    moved = np.abs(joint.phi - begin)[1:]
    told = np.isfinite(np.array([found.rc_rise_s, found.rc_decay_s]))
    if (joint.resistance <= 0).any() or (moved[1:] + moved[0])[told.any(axis=0)].max(initial=0.0) > np.log(FARTHEST):
        return found
    known = np.reshape(found[:6], (2, 3, -1))
    more = _one_more(logs, joint) if told.all() else None  # beside a bound nothing can be told apart
    if more is not None:
        joint, told, known = more, np.ones((2, begin.size - 1), dtype=np.bool_), np.full((2, 3, begin.size - 1), np.nan)
    error = joint.error.reshape(told.shape)
    told &= 2 * INTERVAL * error < np.log(_relaxing.TOLD)
    reach = np.array([0.0, -INTERVAL, INTERVAL])[:, np.newaxis] * np.minimum(error, 1.0)[:, np.newaxis]
    middle = (_directions(joint.resistance.size) @ joint.phi).reshape(2, 1, -1)
    rise, decay = np.where(told[:, np.newaxis], np.exp(middle + reach), known)
    return found._replace(
        **dict(zip(LoadFit._fields[:6], (*rise, *decay), strict=True)),
        resistance_c_per_w=joint.resistance, zero_c=joint.level_c, residual_c=joint.residual_c,
    )  # fmt: skip


def _directions(parts: int) -> Array:
    """Along the logarithm of each constant of the rise, then of the decay."""
    one = np.eye(parts + 2)[2:]
    return np.vstack([one, one + np.eye(parts + 2)[1]])


def _one_more(logs: _joint_offset.Logs, joint: _joint_offset.Joint) -> _joint_offset.Joint | None:
    """A fit with one constant more, where the readings leave no doubt of it."""
    if joint.resistance.size >= MOST_PARTS:
        return None
    slow = np.log(SLOWER) + joint.phi[2:].max()
    best = None
    for extra in (np.log(FAST_S), slow):
        more = _joint_offset.fit(logs, np.append(joint.phi, extra))
        if (more.resistance > 0).all() and more.lost + A_PART < (joint if best is None else best).lost:
            best = more
    if best is None:
        return None
    order = np.argsort(best.phi[2:])
    return _joint_offset.fit(logs, np.append(best.phi[:2], best.phi[2:][order]), _directions(order.size))


def _explained(blocks: Rows, rest: Array, step: float) -> float:
    """Share of the variance of the temperature, what its rounding makes left out."""
    away = blocks.temperature - np.average(blocks.temperature, weights=blocks.size)
    left, all_of_it = (float(np.average(x**2, weights=blocks.size)) for x in (rest, away))
    return 1 - max(left - step**2 / 6, 0.0) / all_of_it


def _pace(power: _heating.Load, blocks: Rows, now: Estimate) -> Array:
    """Slope of the temperature in time: what a second of offset changes."""
    rise = np.exp(now.p[1:])
    known = _heating.states(power, rise, rise * np.exp(now.p[0]))
    early, late = (blocks.mean(_heating.response(power, known, blocks.point + shift)) for shift in (-0.02, 0.02))
    return np.asarray((late - early) @ now.linear[: rise.size] / 0.04)
