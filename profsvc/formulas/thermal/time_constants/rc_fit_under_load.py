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

from profsvc.formulas.numerics.arrays import Array, Bools, Mask, flat_floats, mask
from profsvc.formulas.numerics.flags import Flag
from profsvc.formulas.sensors import logs as _logs
from profsvc.formulas.thermal import step_response
from profsvc.formulas.thermal.clock_offset import joint_offset_fit
from profsvc.formulas.thermal.noise import constant_load_segments, quantization
from profsvc.formulas.thermal.time_constants import relaxation
from profsvc.formulas.thermal.time_constants.rc_fits import MIN_CHANGE_C
from profsvc.formulas.thermal.time_constants.relaxation import BlockMeans, Estimate, Problem

DECAY_RATIO_GRID = np.array([0.7, 1.0, 1.4, 2.0])
MIN_POWER_RANGE = 0.1  # share of the mean power; a smaller variation does not drive the temperature
JUMP_SHARE = 0.1  # share of the range of the power, after which the temperature moves fast

MAX_LOG_S = 7200.0
MAX_READINGS = 20_000
MAX_GAPS = 30
INTERVAL_STANDARD_ERRORS = 2.3  # half the 95 % interval; 2 hold only 91 % on synthetic logs, whose power is sampled
MIN_OFFSET_ERROR_S = 1e-3  # remaining error of aligned logs
MAX_PARTS = 3
MIN_PART_LIKELIHOOD_GAIN = 20.0  # of twice the log-likelihood; unseen power between readings makes up to ten of it
FAST_START_S, SLOW_START_RATIO = 1.5, 4.0  # where one constant more is looked for: at the first, and beyond the slowest
MAX_CONSTANT_CHANGE = 3.0  # largest factor between the fit to blocks and the fit to readings
MIN_EXPLAINED_SHARE = 0.9  # of the variance of the temperature; below it, heat from elsewhere dominates


class LoadFit(NamedTuple):
    """Time constants, the fastest first, with the ends of their intervals of 95 %.

    A constant that is faster than the readings tell is NaN with a low end of 0: it lies below the high end. One that is
    NaN otherwise is not known within a factor of 10; nor is an end that is NaN. `zero_c` is the temperature without any
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
    over blocks of readings tell, under noise that wanders (`profsvc.formulas.thermal.noise.autocorrelated_fit`). The
    others are the likeliest for readings that the sensor rounded (`profsvc.formulas.thermal.noise.quantization`), with
    the places of the steps between two readings of the power and the offset free within its error; each has its own
    interval. `profsvc.formulas.thermal.time_constants.rc_fits.is_known_within` says which are known within 5 %.

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
        what the temperature does, and where no constant is known within a factor of 3 or as a bound.

    Errors: TypeError for a wrong dtype, ValueError for shapes that do not fit.

    >>> from profsvc.formulas.thermal.rc_model import temperature_scan
    >>> t = np.arange(0.0, 600.0, 0.5)
    >>> P = np.where((t // 100) % 2 == 1, 300.0, 60.0)
    >>> T = temperature_scan(30 + 0.08 * P, 0.5, 34.8, 20.0, 30.0)
    >>> found = fit_load(t, P, t + 0.5, np.floor(T))
    >>> np.abs(found.rc_rise_s / 20 - 1) < 0.05, np.abs(found.rc_decay_s / 30 - 1) < 0.05, found.refusal
    (array([ True]), array([ True]), '')
    """
    tp, P = _finite(*flat_floats(power_time_s=power_time_s, power_w=power_w))
    tT, T = _finite(*flat_floats(temperature_time_s=temperature_time_s, temperature_c=temperature_c))
    inside = (tT >= tp.min(initial=np.inf)) & (tT <= tp.max(initial=-np.inf))
    tT, T = tT[inside], T[inside]
    refusal = _input_refusal(tp, P, T)
    if refusal:
        return _nothing(T.size, refusal)
    (tp, P), (tT, T) = _logs.most_active_stretch((tp, P), (tT, T), MAX_LOG_S, 0.0)
    refusal = _input_refusal(tp, P, T)
    if refusal:
        return _nothing(T.size, refusal)
    power = step_response.piecewise_power(tp, P)
    tT = tT - power.early_s
    if power.level.size < 2:
        return _nothing(T.size, "the power shows no level that lasts: nothing drives the temperature")
    keep = ~_in_unknown_power(power, tT)
    if keep.sum() < constant_load_segments.MIN_READINGS:
        return _nothing(T.size, f"readings of the temperature while the power is known: {keep.sum()}")
    jumps = np.abs(np.diff(power.level)) > JUMP_SHARE * np.ptp(power.level)
    resumed = [end for _, end in power.gaps]
    steps = np.append(power.edges[1:-1][jumps], resumed)
    problem = _problem(
        power, relaxation.block_means(tT[keep], T[keep], steps, float(np.median(np.diff(np.unique(tp)))))
    )
    now, step = _fit_parts(problem), constant_load_segments.rounding_step(T)
    hidden = [offset_error_s * _temperature_rate(power, problem.rows, now)]
    hidden += relaxation.rounding_drift_errors(problem.rows, step)
    found = _reported(problem.rows, now, hidden)
    if not found.refusal and len(power.gaps) <= MAX_GAPS:
        unsure = np.inf if offset_estimated else max(offset_error_s, MIN_OFFSET_ERROR_S)
        found = _refined_by_readings(found, power, tT[keep], T[keep], unsure, now)
    explained = _explained_share(problem.rows, now.rest, step)
    if not explained > MIN_EXPLAINED_SHARE:
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


def _input_refusal(tp: Array, P: Array, T: Array) -> str:
    """Return why the logs cannot be fitted; empty where they can."""
    for name, x in (("power", P), ("temperature", T)):
        if x.size < constant_load_segments.MIN_READINGS:
            return f"readings of the {name}: {x.size}; a time constant needs {constant_load_segments.MIN_READINGS}"
    if not (np.diff(tp) >= 0).all() or not np.ptp(tp) > 0:
        return "the stamps of the power do not ascend"
    low, high = np.quantile(T, (0.02, 0.98))
    if high - low < MIN_CHANGE_C:
        return f"the temperature changes by {high - low:.1f} \u00b0C; a time constant needs {MIN_CHANGE_C:g} \u00b0C"
    low, high = np.quantile(P, (0.02, 0.98))
    if high - low < MIN_POWER_RANGE * abs(P.mean()):
        return f"the power varies by {high - low:.1f} W, less than a tenth of it: nothing drives the temperature"
    return ""


def _in_unknown_power(power: step_response.PiecewisePower, time: Array) -> Bools:
    """Temperatures read while the power was lost and changed: what heat came is not known."""
    blind = np.zeros(time.size, dtype=np.bool_)
    for begin, end in power.gaps:
        blind |= (time > begin) & (time < end)
    return blind


def _problem(power: step_response.PiecewisePower, blocks: BlockMeans) -> Problem:
    """Design of logarithms of a proportion and constants: driven parts, state at each beginning, constant."""
    begins = [float(power.edges[0]), *(end for _, end in power.gaps)]

    def columns(p: Array) -> Array:
        rise = np.exp(p[:, 1:])
        decay = rise * np.exp(p[:, :1])
        known = step_response.thermal_states(power, rise.ravel(), decay.ravel())
        driven = blocks.mean(step_response.unit_response(power, known, blocks.point))
        parts = [driven.reshape(-1, *rise.shape).swapaxes(0, 1)]
        for begin in begins:  # what the board held then is not known
            age = (blocks.time - begin)[:, np.newaxis]
            held = np.exp(-np.maximum(age, 0.0) / decay[:, np.newaxis]) * (age >= 0)
            parts.append(held)
        parts.append(np.ones((len(p), blocks.time.size, 1)))
        return np.concatenate(parts, axis=2)

    return Problem(blocks, columns)


def _fit_parts(problem: Problem) -> Estimate:
    """Return the fit with as many constants as the likelihood supports, each of a positive resistance."""
    ladder, ratios = np.log(relaxation.TIME_CONSTANT_GRID_S), np.log(DECAY_RATIO_GRID)
    ratio, rc = (x.ravel() for x in np.meshgrid(ratios, ladder, indexing="ij"))
    pairs = relaxation.constant_pairs(ladder)

    def more(p: Array) -> Array:
        beside = np.column_stack([np.tile(p, (ladder.size, 1)), ladder])
        return np.vstack([beside, np.column_stack([np.full(len(pairs), p[0]), pairs])]) if p.size == 2 else beside

    return relaxation.forward_selection(
        problem, np.column_stack([ratio, rc]), more, lambda p, linear: np.maximum(linear[: p.size - 1], 0.0)
    )


def _reported(blocks: BlockMeans, now: Estimate, hidden: list[Array]) -> LoadFit:
    order = np.argsort(now.p[1:])
    one = np.eye(now.p.size)[1:][order]
    directions = np.vstack([one, one + np.eye(now.p.size)[0]])  # the proportion is part of a decay
    ends = relaxation.intervals(now, directions, hidden, blocks.noise).reshape(2, -1, 3)
    reported = relaxation.reportable_interval(ends, blocks.interval, float(np.ptp(blocks.time)))
    (rise, rise_low, rise_high), (decay, decay_low, decay_high) = reported.transpose(0, 2, 1)
    refusal = relaxation.refusal_reason(now, order, ends[0], reported[0])
    return LoadFit(
        rise, rise_low, rise_high, decay, decay_low, decay_high, now.linear[order], float(now.linear[-1]),
        float(np.sqrt(np.average(now.rest**2, weights=blocks.size))), 0, refusal,
        mask((Flag.INPUT_SUSPECT, bool(refusal))),
    )  # fmt: skip


def _refined_by_readings(
    found: LoadFit, power: step_response.PiecewisePower, t: Array, T: Array, offset_se_s: float, now: Estimate
) -> LoadFit:
    """Return the likeliest constants for rounded readings, where the fit to blocks found some.

    A bound stays what it is, and so does all where the readings want it far away.
    """
    some = slice(None, None, max(-(-t.size // MAX_READINGS), 1))
    logs = joint_offset_fit.Logs(power, t[some], quantization.rounded_readings(T[some]), offset_se_s)
    order = 1 + np.argsort(now.p[1:])
    begin = np.array([0.0, now.p[0], *now.p[order]])
    joint = joint_offset_fit.fit(logs, begin, _log_constant_directions(begin.size - 2))
    moved = np.abs(joint.phi - begin)[1:]
    two_sided = np.isfinite(np.array([found.rc_rise_s, found.rc_decay_s]))
    if (joint.resistance <= 0).any() or (moved[1:] + moved[0])[two_sided.any(axis=0)].max(initial=0.0) > np.log(
        MAX_CONSTANT_CHANGE
    ):
        return found
    known = np.reshape(found[:6], (2, 3, -1))
    more = (
        _with_one_more_part(logs, joint) if two_sided.all() else None
    )  # beside a bound, parts cannot be distinguished
    if more is not None:
        joint, two_sided, known = (
            more,
            np.ones((2, begin.size - 1), dtype=np.bool_),
            np.full((2, 3, begin.size - 1), np.nan),
        )
    error = joint.error.reshape(two_sided.shape)
    two_sided &= 2 * INTERVAL_STANDARD_ERRORS * error < np.log(relaxation.MAX_INTERVAL_RATIO)
    reach = (
        np.array([0.0, -INTERVAL_STANDARD_ERRORS, INTERVAL_STANDARD_ERRORS])[:, np.newaxis]
        * np.minimum(error, 1.0)[:, np.newaxis]
    )
    middle = (_log_constant_directions(joint.resistance.size) @ joint.phi).reshape(2, 1, -1)
    rise, decay = np.where(two_sided[:, np.newaxis], np.exp(middle + reach), known)
    return found._replace(
        **dict(zip(LoadFit._fields[:6], (*rise, *decay), strict=True)),
        resistance_c_per_w=joint.resistance, zero_c=joint.level_c, residual_c=joint.residual_c,
    )  # fmt: skip


def _log_constant_directions(parts: int) -> Array:
    """Along the logarithm of each constant of the rise, then of the decay."""
    one = np.eye(parts + 2)[2:]
    return np.vstack([one, one + np.eye(parts + 2)[1]])


def _with_one_more_part(
    logs: joint_offset_fit.Logs, joint: joint_offset_fit.JointFit
) -> joint_offset_fit.JointFit | None:
    """A fit with one constant more, where the readings leave no doubt of it."""
    if joint.resistance.size >= MAX_PARTS:
        return None
    slow = np.log(SLOW_START_RATIO) + joint.phi[2:].max()
    best = None
    for extra in (np.log(FAST_START_S), slow):
        more = joint_offset_fit.fit(logs, np.append(joint.phi, extra))
        if (more.resistance > 0).all() and more.lost + MIN_PART_LIKELIHOOD_GAIN < (
            joint if best is None else best
        ).lost:
            best = more
    if best is None:
        return None
    order = np.argsort(best.phi[2:])
    return joint_offset_fit.fit(
        logs, np.append(best.phi[:2], best.phi[2:][order]), _log_constant_directions(order.size)
    )


def _explained_share(blocks: BlockMeans, rest: Array, step: float) -> float:
    """Share of the variance of the temperature, what its rounding makes left out."""
    away = blocks.temperature - np.average(blocks.temperature, weights=blocks.size)
    left, all_of_it = (float(np.average(x**2, weights=blocks.size)) for x in (rest, away))
    return 1 - max(left - step**2 / 6, 0.0) / all_of_it


def _temperature_rate(power: step_response.PiecewisePower, blocks: BlockMeans, now: Estimate) -> Array:
    """Slope of the temperature in time: what a second of offset changes."""
    rise = np.exp(now.p[1:])
    known = step_response.thermal_states(power, rise, rise * np.exp(now.p[0]))
    early, late = (
        blocks.mean(step_response.unit_response(power, known, blocks.point + shift)) for shift in (-0.02, 0.02)
    )
    return np.asarray((late - early) @ now.linear[: rise.size] / 0.04)
