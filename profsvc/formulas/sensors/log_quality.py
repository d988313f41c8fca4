"""Quality of a sensor log: invalid readings, gaps, update period, stuck values."""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from profsvc.formulas.numerics.arrays import Array, Bools, flat_floats
from profsvc.formulas.sensors import logs

MIN_EXPLAINED_SHARE = 0.95  # of the intervals between changes that a period must explain
MIN_POLLS_PER_UPDATE = 1.5  # polls per period from which the period can be distinguished from chance
MAX_INTERVALS = 20_000  # of a longer log so many, evenly spread, tell the period
STUCK_RATIO = 10.0  # a run that much longer than all but 1 % of the runs is no chance
MIN_STUCK_READINGS = 20


class Cleaned(NamedTuple):
    """Valid readings, a mask of them among the given ones, and counts of the others by reason."""

    time_s: Array
    value: Array
    kept: Bools
    missing: int
    duplicate: int
    disordered: int
    glitches: int


class Gaps(NamedTuple):
    """Stretches without readings, and the length from which they count."""

    begin_s: Array
    end_s: Array
    limit_s: float


class UpdatePeriod(NamedTuple):
    """A sensor's own period; ``resolved`` is False where polling was too slow to determine it."""

    period_s: float
    poll_s: float
    polls_per_update: float
    resolved: bool
    first_reading: Bools
    changes: int


class Stuck(NamedTuple):
    """Stretches in which the sensor stood still, and whether it never moved at all."""

    begin_s: Array
    end_s: Array
    constant: bool
    limit_s: float


def clean(time_s: ArrayLike, value: ArrayLike, *, median: bool = False) -> Cleaned:
    r"""Readings of a log in ascending order of time, without those that are missing, doubled or out of order.

    .. math:: v'_i = \mathrm{median}(v_{i-1}, v_i, v_{i+1}) \quad \text{if asked for}

    Of two readings with one stamp the first stands. Where stamps step back, either the one before was too late or the
    ones after are too early: the reading that costs fewer others falls.

    Source: [Hong2012] chapter III, practice of measurement; the rule for stamps that step back is this project's.

    Args:
        time_s: Stamps, flat, relative to an origin that the caller has subtracted [s].
        value: Readings [any].
        median: Replace each reading by the median of itself and the two adjacent ones: a glitch of one reading
            vanishes, steps stay. The first and the last reading stay as they are.

    Returns: Cleaned; ``kept`` has an entry for each given reading, ``glitches`` counts those that the median changed.

    Range: missing + duplicate + disordered + size of ``time_s`` is the number of readings given. NaN and inf are
    missing.

    Errors: TypeError for a wrong dtype, ValueError for shapes that do not fit.

    >>> log = clean([0.0, 1.0, 1.0, 2.0, 1.5, 3.0], [5.0, 6.0, 6.0, 90.0, 6.0, 6.0], median=True)
    >>> log.time_s.tolist(), log.value.tolist(), log.duplicate, log.disordered, log.glitches
    ([0.0, 1.0, 2.0, 3.0], [5.0, 6.0, 6.0, 6.0], 1, 1, 1)
    """
    t, v = flat_floats(time_s=time_s, value=value)
    kept = np.isfinite(t) & np.isfinite(v)
    missing = int(t.size - kept.sum())
    place = np.flatnonzero(kept)
    keep = logs.ascending(t[place])
    kept[place[~keep]] = False
    duplicate = int(np.isin(t[place[~keep]], t[kept]).sum())
    t, v = t[kept], v[kept]
    smooth = v
    if median and v.size > 2:
        low, high = np.minimum(v[:-2], v[2:]), np.maximum(v[:-2], v[2:])
        smooth = np.concatenate((v[:1], np.clip(v[1:-1], low, high), v[-1:]))
    glitches = int((smooth != v).sum())
    return Cleaned(t, smooth, kept, missing, duplicate, int((~keep).sum()) - duplicate, glitches)


def gaps(time_s: ArrayLike, gap_s: float | None = None) -> Gaps:
    r"""Stretches of a log that are too long to draw a line over.

    .. math:: t_{i+1} - t_i > \max(3\,\mathrm{s},\; 3\,\mathrm{median}_k (t_{k+1} - t_k))

    Source: [Hong2012] chapter III for logs of one reading per second; the term for slower logs is this project's.

    Args:
        time_s: Stamps [s].
        gap_s: Longest interval that is no gap [s]; None for the rule above.

    Returns: Gaps: last reading before and first reading after each.

    Range: begin < end. Stamps that are NaN or out of order are left out.

    Errors: TypeError for a wrong dtype, ValueError for stamps that are not flat.

    >>> found = gaps([0.0, 1.0, 2.0, 9.0, 10.0])
    >>> found.begin_s.tolist(), found.end_s.tolist(), found.limit_s
    ([2.0], [9.0], 3.0)
    """
    t = logs.readings(time_s=time_s, value=0.0).time
    limit = logs.gap_limit(t, gap_s)
    k = np.flatnonzero(np.diff(t) > limit)
    return Gaps(t[k], t[k + 1], limit)


def update_period(time_s: ArrayLike, value: ArrayLike) -> UpdatePeriod:
    r"""A sensor's own period, from the instants at which its readings change.

    .. math:: t_{j+1} - t_j = n_j \tau + \epsilon, \quad -\delta_j \le \epsilon \le \delta_{j+1}, \qquad
              \tau = \frac{\sum_j (t_{j+1} - t_j)}{\sum_j n_j}

    with t_j the first reading of each new value, δ_j the time since the reading before it (the update happened in
    between), and n_j above 1 where values happened to repeat. Of the periods that explain 95 % of the intervals the
    longest is taken: any fraction of it explains them as well.

    Source: this project; that boards repeat readings until they update: [Zeus2023].

    Args:
        time_s: Stamps of the readings, at any intervals [s].
        value: Readings [any].

    Returns: UpdatePeriod. ``first_reading`` marks, for each given reading, the first one of each update: those that
    count as independent readings; the others repeat. Where a value repeats for longer than the period, the sensor is
    taken to have read the same value again. Of more than 20 000 changes as many, evenly spread, tell the period.

    Range: period_s at least half the polling interval. With fewer than 1.5 polls per period (``resolved`` False) a
    value that happened to repeat cannot be distinguished from one that was read twice: the period is then only an upper
    bound. Fewer than five changes: NaN, and every reading counts as its own. Readings that are NaN or out of order are
    no first readings.

    Errors: TypeError for a wrong dtype, ValueError for shapes that do not fit.

    A sensor of 0.1 s, polled every 0.04 s; the value 7 came twice:

    >>> values = [3, 3, 3, 5, 5, 4, 4, 4, 7, 7, 7, 7, 7, 6, 6, 9, 9, 9, 8, 8]
    >>> found = update_period([0.04 * n for n in range(20)], values)
    >>> round(found.period_s, 3), found.changes, found.first_reading.nonzero()[0].tolist()
    (0.1, 6, [0, 3, 5, 8, 10, 13, 15, 18])
    """
    t, v = flat_floats(time_s=time_s, value=value)
    first = np.zeros(t.size, dtype=np.bool_)
    place = np.flatnonzero(np.isfinite(t) & np.isfinite(v))
    place = place[logs.ascending(t[place])]
    t, v = t[place], v[place]
    poll = logs.median_interval(t)
    change = np.flatnonzero(np.diff(v) != 0) + 1
    period = _longest_period(t, change) if change.size > 4 else float("nan")
    resolved = bool(period >= MIN_POLLS_PER_UPDATE * poll)
    first[place] = _first_readings(t, change, period, poll)
    polls = place.size / max(int(first.sum()), 1) if place.size else float("nan")
    return UpdatePeriod(period, poll, polls, resolved, first, int(change.size))


def _longest_period(t: Array, change: NDArray[np.intp]) -> float:
    d, poll = np.diff(t[change]), t[change] - t[change - 1]
    some = np.linspace(0, d.size - 1, min(d.size, MAX_INTERVALS)).astype(np.intp)
    d, before_first, before_next = d[some], poll[some], poll[some + 1]
    starts = np.unique(np.concatenate([np.quantile(d, [0.02, 0.1, 0.25, 0.5, 0.9]), [d.mean()]]))
    candidates = np.concatenate([starts / m for m in range(1, 9)])
    best = float("nan")
    for tau in candidates[candidates > 0]:
        n = np.maximum(np.round(d / tau), 1.0)
        for _ in range(20):
            near = n <= 3  # many missed updates say little of the period, and are easily miscounted
            if not near.any():
                break
            before, tau = tau, d[near].sum() / n[near].sum()
            if tau == before:
                break
            n = np.maximum(np.round(d / tau), 1.0)
        error = d - n * tau
        slack = 1e-3 * tau  # stamps are printed to the millisecond
        explained = np.mean((error >= -before_first - slack) & (error <= before_next + slack))
        if explained >= MIN_EXPLAINED_SHARE and not tau <= best:
            best = float(tau)
    return best


def _first_readings(t: Array, change: NDArray[np.intp], period: float, poll: float) -> Bools:
    """Readings of a new value, and of a value that stood for another period."""
    first = np.ones(t.size, dtype=np.bool_)
    if t.size < 2 or np.isnan(period):
        return first
    run = np.zeros(t.size, dtype=np.intp)
    run[change] = 1
    run = np.cumsum(run)
    edges = np.concatenate((t[:1], t[change], [t[-1] + poll]))
    d = np.diff(edges)
    updates = np.maximum(np.round(d / period), 1.0)
    since = (t - edges[run] + 0.5 * min(poll, period)) / (d / updates)[run]
    update = np.minimum(np.floor(since), updates[run] - 1)
    first[1:] = np.diff(run).astype(np.bool_) | (np.diff(update) > 0)
    return first


def stuck(time_s: ArrayLike, value: ArrayLike, least_s: float = 10.0) -> Stuck:
    r"""Stretches in which a sensor that otherwise moves stood still.

    .. math:: d > \max(d_{min},\; 10\, q_{0.99}(d_1, d_2, \dots)) \quad \text{and at least 20 readings}

    with d the lengths of the runs of equal readings. A sensor of whole degrees stands still for minutes in
    equilibrium, and its long runs are many: it measures its own patience. A sensor that stands still in more than 1 %
    of its runs escapes.

    Source: this project.

    Args:
        time_s: Stamps [s].
        value: Readings [any].
        least_s: Shortest stretch that counts [s].

    Returns: Stuck; ``constant`` where 20 readings or more over at least ``least_s`` are all the same.

    Range: begin < end, first and last reading of the run. Readings that are NaN or out of order are left out.

    Errors: TypeError for a wrong dtype, ValueError for shapes that do not fit.

    >>> values = [80.0 + n % 3 for n in range(300)]
    >>> values[100:160] = [80.0] * 60
    >>> found = stuck(range(300), values)
    >>> found.begin_s.tolist(), found.end_s.tolist(), found.constant
    ([99.0], [159.0], False)
    """
    t, v, _ = logs.readings(time_s=time_s, value=value)
    starts = np.concatenate(([0], np.flatnonzero(np.diff(v) != 0) + 1))
    if t.size == 0:
        return Stuck(t, t, False, float("nan"))
    ends = np.append(starts[1:] - 1, t.size - 1)
    d = t[ends] - t[starts]
    count = ends - starts + 1
    constant = bool(starts.size == 1 and count[0] >= MIN_STUCK_READINGS and d[0] >= least_s)
    limit = max(float(least_s), STUCK_RATIO * float(np.quantile(d, 0.99, method="lower")))
    found = (count >= MIN_STUCK_READINGS) & ((d > limit) | constant)
    return Stuck(t[starts[found]], t[ends[found]], constant, limit)
