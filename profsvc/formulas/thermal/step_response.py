"""Response of a temperature to the power: unit responses of parts with one time constant each."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from profsvc.formulas.numerics.arrays import Array
from profsvc.formulas.sensors import logs
from profsvc.formulas.sensors.log_quality import clean, update_period
from profsvc.formulas.sensors.plateaus import Plateaus, change_points
from profsvc.formulas.sensors.power_steps import MAX_STEPS, PowerSteps, power_steps

PLATEAU_PIECE_S = 4.0  # of a plateau, whose power still creeps
RAMP_PIECE_S = 0.5  # of a ramp
MAX_PIECES = 1000
MAX_UPDATE_PERIOD_S = 2.0  # update of a sensor; what changes less often is a load without noise
READINGS_AROUND_GAP = 5  # readings that tell the level before and after a gap
GAP_GUARDS = 1.2  # guards around a step, in which no other piece ends


class PiecewisePower(NamedTuple):
    """Power as pieces of one level each, its steps, and the gaps in which it stepped at a time unknown."""

    edges: Array
    level: Array
    gaps: list[tuple[float, float]]
    steps: int
    stepped: PowerSteps
    early_s: float  # how much earlier than its stamps the power stands here


class ThermalStates(NamedTuple):
    """Response of each part at the begin of each piece, and the time constant it has there."""

    begin: Array
    tau: Array


def piecewise_power(t: Array, p: Array) -> PiecewisePower:
    """Return the pieces of a power log; updates of a sensor that was polled faster lie between two polls."""
    seen = update_period(t, p)
    if not (seen.resolved and seen.period_s <= MAX_UPDATE_PERIOD_S):
        return _as_stamped(t, p)
    k = np.flatnonzero(seen.first_reading)[1:]
    return _as_stamped((t[k] + t[k - 1]) / 2, p[k])._replace(early_s=seen.period_s / 2)


def _as_stamped(t: Array, p: Array) -> PiecewisePower:
    """Pieces of a power log as it is stamped."""
    cleaned = clean(t, p, median=True)
    t, p = cleaned.time_s, cleaned.value
    found = change_points(t, p)
    none = np.empty(0)
    if found.begin_s.size == 0:
        return PiecewisePower(none, none, [], 0, PowerSteps(none, none, none, 0.0), 0.0)
    area = logs.integral(t, p, np.inf)
    sharp = power_steps(area, found.least_step_w)
    length = np.maximum(found.end_s - found.begin_s, 1e-9)
    piece = np.where(found.steady, PLATEAU_PIECE_S, RAMP_PIECE_S)
    wanted = np.ceil(length / piece)
    cut = np.maximum(np.ceil(wanted * min(1.0, MAX_PIECES / wanted.sum())), 1.0).astype(np.int64).tolist()
    parts = [np.linspace(b, e, n + 1) for b, e, n in zip(found.begin_s, found.end_s, cut, strict=True)]
    edges = np.unique(np.concatenate(parts))
    apart = np.abs(edges[:, np.newaxis] - sharp.time_s).min(axis=1, initial=np.inf)
    apart[[0, -1]] = np.inf
    edges = np.union1d(edges[apart > GAP_GUARDS * sharp.guard_s], sharp.time_s)
    low, high, at = edges[:-1].copy(), edges[1:].copy(), np.searchsorted(edges, sharp.time_s)
    low[at] += sharp.guard_s
    high[at - 1] -= sharp.guard_s
    level = (logs.integral_at(area, high)[0] - logs.integral_at(area, low)[0]) / (high - low)
    count = int((np.abs(np.diff(found.level_w)) >= found.least_step_w).sum())
    return PiecewisePower(
        edges, level, _gaps(t, p, found), count, _all_steps(found, sharp, logs.median_interval(t)), 0.0
    )


def _gaps(t: Array, p: Array, found: Plateaus) -> list[tuple[float, float]]:
    """Gaps in which the power stepped, or so near to which that no plateau shows it."""
    gaps = []
    for last in np.flatnonzero(np.diff(t) > logs.gap_limit(t, None)).tolist():
        begin, end = float(t[last]), float(t[last + 1])
        before, after = (
            p[max(last + 1 - READINGS_AROUND_GAP, 0) : last + 1],
            p[last + 1 : last + 1 + READINGS_AROUND_GAP],
        )
        level = found.level_w[np.searchsorted(found.begin_s, (begin, end), side="right") - 1]
        if abs(np.median(after) - np.median(before)) > found.least_step_w:
            gaps.append((begin, end))
        elif abs(level[1] - level[0]) > found.least_step_w:
            gaps.append((begin - found.shortest_s, end + found.shortest_s))
    return gaps


def _all_steps(found: Plateaus, sharp: PowerSteps, poll: float) -> PowerSteps:
    """The sharp steps, and the edges of plateaus too near a gap to be one: each between two readings."""
    size, edge = np.diff(found.level_w), found.begin_s[1:]
    away = np.abs(edge[:, np.newaxis] - sharp.time_s).min(axis=1, initial=np.inf) > sharp.guard_s
    blunt = (edge == found.end_s[:-1]) & (np.abs(size) >= found.least_step_w) & away
    some = np.flatnonzero(blunt)[np.argsort(-np.abs(size[blunt]), kind="stable")][: MAX_STEPS - sharp.time_s.size]
    time = np.concatenate((sharp.time_s, edge[some]))
    order = np.argsort(time, kind="stable")
    both = np.concatenate((sharp.size_w, size[some])), np.concatenate((sharp.sd_s, np.full(some.size, poll / 12**0.5)))
    return PowerSteps(time[order], both[0][order], both[1][order], sharp.guard_s)


def thermal_states(power: PiecewisePower, rise: Array, decay: Array, held: Array | None = None) -> ThermalStates:
    """Exact recurrence over the pieces, from the equilibrium with the first one.

    What each part held beside it at the begin, in the unit of power, is not part of the response, but decides
    whether the part warms or cools: one that began too cold warms while the power rests.
    """
    length, level = np.diff(power.edges), (power.level - power.level[0]).tolist()
    begin, warms = np.empty((length.size, rise.size)), np.empty((length.size, rise.size), dtype=np.bool_)
    constants = zip(rise.tolist(), decay.tolist(), [0.0] * rise.size if held is None else held.tolist(), strict=True)
    for part, (up_s, down_s, total) in enumerate(constants):
        begin[:, part], warms[:, part] = _states_of_part(
            level, np.exp(-length / up_s).tolist(), np.exp(-length / down_s).tolist(), total
        )
    return ThermalStates(begin, np.where(warms, rise, decay))


def _states_of_part(
    level: list[float], up: list[float], down: list[float], total: float
) -> tuple[list[float], list[bool]]:
    """Response of one part at the begin of each piece, and whether it warms in it.

    There are few parts and many pieces: numbers of Python take less time than arrays so short.
    """
    begin, warms, theta = [], [], 0.0
    for target, rises, falls in zip(level, up, down, strict=True):
        begin.append(theta)
        warm = total < target
        warms.append(warm)
        left = rises if warm else falls
        theta, total = target + (theta - target) * left, target + (total - target) * left
    return begin, warms


def piece_index(power: PiecewisePower, t: Array) -> NDArray[np.intp]:
    """Return the piece of each time; the first and the last one reach beyond the log."""
    return np.clip(np.searchsorted(power.edges, t, side="right") - 1, 0, power.level.size - 1)


def elapsed_time_constants(power: PiecewisePower, known: ThermalStates, t: Array) -> Array:
    """Time since the begin, of each part in its own time constants: what it held then fades as exp(-age)."""
    k = piece_index(power, t)
    past = np.cumsum(np.diff(power.edges)[:, np.newaxis] / known.tau, axis=0)
    since = np.maximum(t - power.edges[k], 0.0)[:, np.newaxis]
    return np.asarray(past[k] - (np.diff(power.edges)[k][:, np.newaxis] - since) / known.tau[k])


def unit_response(power: PiecewisePower, known: ThermalStates, t: Array) -> Array:
    """Response at each time, one column per part; in the unit of power, as each part's resistance is left out."""
    k = piece_index(power, t)
    level = (power.level[k] - power.level[0])[:, np.newaxis]
    since = np.maximum(t - power.edges[k], 0.0)[:, np.newaxis]
    return np.asarray(level + (known.begin[k] - level) * np.exp(-since / known.tau[k]))
