"""Plateaus of a power log, and the slope of the power on them."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from profsvc.formulas.numerics.arrays import Array, Bools, Groups, Mask, flat_floats, mask
from profsvc.formulas.numerics.flags import Flag
from profsvc.formulas.sensors import logs

Places = NDArray[np.intp]
MIN_PLATEAU_S = 2.0
MIN_PLATEAU_READINGS = 4
BINS_PER_PLATEAU = 8  # in the shortest plateau
MIN_STEP_RANGE_SHARE = 0.02  # of the log's range of power: the least step
MIN_STEP_LEVEL_SHARE = 0.01  # of its highest power, where that is more
MIN_STEP_NOISE_SD = 3.0  # times the noise of a bin, where that is more
MIN_STEADY_SHARE = 0.9  # of the shortest plateau, once its edges are where the readings have them
NOISE_BLOCK_BINS = 32  # bins that tell the noise together
MAX_BLOCKS = 4096  # means that stand for the readings of one longer plateau


class Plateaus(NamedTuple):
    """Levels in order of time; where ``steady`` is False the power was on its way, or the stretch is too short."""

    begin_s: Array
    end_s: Array
    level_w: Array
    sd_w: Array
    steady: Bools
    least_step_w: float
    penalty_w2: float
    shortest_s: float


class Level(NamedTuple):
    """A plateau while levels are merged; ``joins`` is True where no gap lies before it."""

    begin: float
    end: float
    level: float
    sd: float
    steady: bool
    joins: bool


class Slope(NamedTuple):
    """Result of `plateau_slope`, one entry per group; ``lags`` is how far the standard error looks."""

    slope_w_per_s: Array
    se_w_per_s: Array
    mean_w: Array
    readings: NDArray[np.int64]
    lags: NDArray[np.int64]
    flags: Mask


def change_points(
    time_s: ArrayLike,
    power_w: ArrayLike,
    *,
    shortest_s: float = MIN_PLATEAU_S,
    least_step_w: float | None = None,
    gap_s: float | None = None,
) -> Plateaus:
    r"""Plateaus of a power log: the levels between which it steps.

    .. math:: \min_{c_1 < \dots < c_K} \sum_k \sum_{c_k \le i < c_{k+1}} (x_i - \bar x_k)^2 + \beta K, \qquad
              \beta = \tfrac14 m \Delta^2, \quad \Delta = \max(0.02 (\max x - \min x), 0.01 \max |x|, 3\sigma)

    x are means of an eighth of the shortest plateau, after a running median that takes away what is shorter than a
    quarter of it: a spike is no plateau. m is the shortest length in such means, Δ the least step and σ the noise of a
    mean, of the noisiest stretch. Only places where the means of half a shortest plateau to the left and to the right
    differ by Δ/2, and differ locally most, may be edges (a moving sum, linear in time); among them the exact optimum is
    found by dynamic programming with pruning. Then adjacent levels less than Δ apart are joined, and each edge is set
    between the two readings where the log passes half-way.

    Source: [Killick2012] for cost, penalty and pruning, [EichingerKirch2018] for the moving sum; the least step and
    the refined edge are this project's.

    Args:
        time_s: Stamps of the log, flat [s].
        power_w: Its readings [W].
        shortest_s: Shortest plateau [s]; four readings where they are slower.
        least_step_w: Least step Δ [W]; None for the rule above.
        gap_s: Longest interval between readings that no plateau ends at [s]; None as in `gaps`.

    Returns: Plateaus, without holes but for the log's gaps. ``level_w`` is the median of the readings, ``sd_w`` their
    standard deviation as 1.4826 median absolute deviations.

    Range: begin <= end (a reading alone between two gaps has no length). Where the first and the last third of a
    stretch differ by Δ or more the power ramps: it is not ``steady``, and adjacent ramps are one. Of a sensor that
    averages, an edge is half its window late. Readings that are NaN or out of order are left out. Fewer than four
    readings: no plateau.

    Errors: TypeError for a wrong dtype, ValueError for shapes that do not fit.

    >>> t = np.arange(600) * 0.1
    >>> power = np.where((t > 20) & (t < 40), 500.0, 80.0)
    >>> power[100:103] = 400.0  # a spike
    >>> found = change_points(t, power)
    >>> found.level_w.tolist(), found.begin_s.round(2).tolist()
    ([80.0, 500.0, 80.0], [0.0, 20.05, 39.95])
    """
    t, p, _ = logs.readings(time_s=time_s, power_w=power_w)
    usual = logs.median_interval(t)
    shortest = max(float(shortest_s), MIN_PLATEAU_READINGS * float(np.nan_to_num(usual)))
    if t.size < MIN_PLATEAU_READINGS:
        none = np.empty(0)
        return Plateaus(none, none, none, none, none.astype(np.bool_), np.nan, np.nan, shortest)
    width = max(shortest / BINS_PER_PLATEAU, usual)
    first = np.flatnonzero(np.diff(np.floor((t - t[0]) / width), prepend=-1))
    m = max(round(shortest / width), 2)
    raw = np.add.reduceat(p, first) / np.diff(np.append(first, t.size))
    x = _without_spikes(raw, 2 * (m // 4) + 1)
    least = _least_step(x, raw) if least_step_w is None else float(least_step_w)
    penalty = 0.25 * m * least**2
    breaks = np.flatnonzero(np.diff(t) > logs.gap_limit(t, gap_s)) + 1
    stretches = np.unique(np.concatenate(([0], np.searchsorted(first, breaks), [x.size])))
    edges = [0]
    for a, b in zip(stretches[:-1].tolist(), stretches[1:].tolist(), strict=True):
        cuts, levels = _join_close_levels(
            x, a + _optimal_cuts(x[a:b], _candidates(x[a:b], m, least), m, penalty), least
        )
        edges += [_refined_edge(p, first, cuts[k - 1 : k + 2], levels[k - 1 : k + 1], m) for k in range(1, len(levels))]
        edges.append(int(np.append(first, t.size)[b]))
    stands = [_level(t, p, edges[k], edges[k + 1], least, shortest, breaks) for k in range(len(edges) - 1)]
    begin, end, level, sd, steady, _ = (np.array(column) for column in zip(*_merge_ramps(stands), strict=True))
    return Plateaus(begin, end, level, sd, steady, least, penalty, shortest)


def _without_spikes(x: Array, k: int) -> Array:
    if k < 3 or x.size < k:
        return x
    padded = np.concatenate((x[k // 2 : 0 : -1], x, x[-2 : -2 - k // 2 : -1]))
    return np.asarray(np.sort(np.lib.stride_tricks.sliding_window_view(padded, k), axis=1)[:, k // 2])


def _least_step(x: Array, raw: Array) -> float:
    """Least step, with the noise of the noisiest block of means, from differences of adjacent means."""
    d = np.abs(np.diff(raw))
    blocks = (
        d[: d.size // NOISE_BLOCK_BINS * NOISE_BLOCK_BINS].reshape(-1, NOISE_BLOCK_BINS)
        if d.size >= NOISE_BLOCK_BINS
        else d.reshape(1, -1)
    )
    noise = 1.4826 * float(np.median(blocks, axis=1).max()) / np.sqrt(2) if d.size else 0.0
    return max(
        MIN_STEP_RANGE_SHARE * float(np.ptp(x)),
        MIN_STEP_LEVEL_SHARE * float(np.abs(x).max()),
        MIN_STEP_NOISE_SD * noise,
    )


def _candidates(x: Array, m: int, least: float) -> Places:
    """Places, with both ends, where the means to the left and to the right differ most."""
    h = max(m // 2, 1)
    ends = np.array([0, x.size])
    if x.size < 2 * m:
        return ends
    sums = np.concatenate(([0.0], np.cumsum(x - x.mean())))
    at = np.arange(h, x.size - h + 1)
    D = np.abs(sums[at + h] - 2 * sums[at] + sums[at - h]) / h
    r = max(h // 2, 1)
    around = np.lib.stride_tricks.sliding_window_view(np.pad(D, r), 2 * r + 1).max(axis=1)
    return np.unique(np.concatenate((ends, at[(around <= D) & (0.5 * least <= D) & (D > 0)])))


def _optimal_cuts(x: Array, c: Places, m: int, penalty: float) -> Places:
    """Cuts among the candidates that cost least; no piece is shorter than m, but for a stretch that is."""
    if c.size <= 2:
        return c
    y = x - np.median(x)
    S, Q = (np.concatenate(([0.0], np.cumsum(z)))[c] for z in (y, y * y))
    F, last = np.full(c.size, np.inf), np.zeros(c.size, dtype=np.intp)
    F[0], alive = -penalty, np.array([0])
    for j in range(1, c.size):
        n = c[j] - c[alive]
        cost = F[alive] + Q[j] - Q[alive] - (S[j] - S[alive]) ** 2 / n
        open_to = n >= m
        if open_to.any():
            k = int(np.argmin(np.where(open_to, cost, np.inf)))
            F[j], last[j] = cost[k] + penalty, alive[k]
            alive = alive[~open_to | (cost <= F[j])]
        if np.isfinite(F[j]):
            alive = np.append(alive, j)
    cuts = [c.size - 1]
    while cuts[-1]:
        cuts.append(int(last[cuts[-1]]))
    return c[cuts[::-1]]


def _join_close_levels(x: Array, cuts: Places, least: float) -> tuple[list[int], list[float]]:
    """Cuts between levels at least so far apart, and the levels; the closest levels are joined first."""
    kept = cuts.tolist()
    levels = [float(np.median(x[kept[k] : kept[k + 1]])) for k in range(len(kept) - 1)]
    while len(levels) > 1:
        step = np.abs(np.diff(levels))
        k = int(np.argmin(step))
        if step[k] >= least:
            break
        del kept[k + 1], levels[k + 1]
        levels[k] = float(np.median(x[kept[k] : kept[k + 1]]))
    return kept, levels


def _refined_edge(p: Array, first: Places, cuts: list[int], levels: list[float], m: int) -> int:
    """The reading with which the next level begins: most before lie on the one side of half-way, most after beyond."""
    before, after = levels
    low = int(first[max(cuts[1] - m // 2, cuts[0])])
    high = int(first[min(cuts[1] + m // 2, cuts[2] - 1)])
    side = np.sign((p[low:high] - (before + after) / 2) * (after - before))
    return low + int(np.argmin(np.concatenate(([0.0], np.cumsum(side)))))


def _level(t: Array, p: Array, a: int, b: int, least: float, shortest: float, breaks: Places) -> Level:
    own = p[a:b]
    joins = a > 0 and a not in breaks
    begin = (t[a - 1] + t[a]) / 2 if joins else t[a]
    end = (t[b - 1] + t[b]) / 2 if b < t.size and b not in breaks else t[b - 1]
    level = float(np.median(own))
    third = max(own.size // 3, 1)
    drift = abs(float(np.median(own[-third:]) - np.median(own[:third])))
    steady = drift < max(least, np.finfo(np.float64).tiny) and end - begin >= MIN_STEADY_SHARE * shortest
    sd = 1.4826 * float(np.median(np.abs(own - level)))
    return Level(float(begin), float(end), level, sd, bool(steady), joins)


def _merge_ramps(levels: list[Level]) -> list[Level]:
    """Levels with adjacent ramps merged; its level is their mean over time."""
    merged = levels[:1]
    for one in levels[1:]:
        last = merged[-1]
        if one.joins and not one.steady and not last.steady:
            share = (one.end - one.begin) / (one.end - last.begin)
            mean = (1 - share) * last.level + share * one.level
            merged[-1] = last._replace(end=one.end, level=mean, sd=max(last.sd, one.sd))
        else:
            merged.append(one)
    return merged


def plateau_slope(time_s: ArrayLike, power_w: ArrayLike, group: ArrayLike | None = None) -> Slope:
    r"""Slope of the power over time in each group of readings, with a standard error that knows of autocorrelation.

    .. math:: b = \frac{\sum_i (t_i - \bar t) P_i}{\sum_i (t_i - \bar t)^2}, \qquad
              \mathrm{se}^2 = \frac{n}{n - 2} \frac{n \Omega}{\bigl(\sum_i (t_i - \bar t)^2\bigr)^2}

    with Ω the long-run variance of (t - t̄) r, r the residuals: prewhitened by an autoregression of one lag, whose
    coefficient is corrected for its bias in short series, then Bartlett weights over as many lags as are left. For the
    lags that were used up the error is widened, by the factor that makes two of them hold 95 %. A plateau is flat where
    |b| is below two standard errors.

    Source: [NeweyWest1987]; number of lags by [Andrews1991], equation 6.4; the factor: [KieferVogelsang2005], table 1.

    Args:
        time_s: Stamps of the readings, flat [s].
        power_w: Readings, or readings corrected to one temperature [W].
        group: Which plateau each reading is of, integers; None for one plateau of all.

    Returns: Slope, in ascending order of group; without ``group`` of no dimension. Of more than 4096 readings in a
    group the means of 4096 blocks stand for them; ``readings`` counts the blocks then.

    Range: se > 0 unless the readings lie on a line. Fewer than eight readings, or all at one time: NaN, INPUT_SUSPECT.
    Readings that are NaN are left out.

    Errors: TypeError for a wrong dtype, ValueError for shapes that do not fit.

    >>> t = np.arange(200) * 0.1
    >>> found = plateau_slope(t, 500 + 0.25 * t + np.sin(13 * t))
    >>> round(float(found.slope_w_per_s), 2), bool(found.slope_w_per_s > 2 * found.se_w_per_s)
    (0.25, True)
    """
    t, p = flat_floats(time_s=time_s, power_w=power_w)
    known = np.isfinite(t) & np.isfinite(p)
    groups = Groups(group, t.size, known)
    order = np.lexsort((t[known], groups.codes))
    t, p, g = _blocks(t[known][order], p[known][order], groups.codes[order], groups.counts)
    k = groups.ids.size
    n = np.bincount(g, minlength=k).astype(np.int64)

    def total(x: Array) -> Array:
        return np.asarray(np.bincount(g, weights=x, minlength=k), dtype=np.float64)

    with np.errstate(all="ignore"):
        centre_t, mean = total(t) / n, total(p) / n
        u, v = t - centre_t[g], p - mean[g]
        spread = total(u * u)
        slope = total(u * v) / spread
        long_run, lags = logs.long_run_variance(u, v - slope[g] * u, g, n)
        se = logs.error_inflation(lags / n) * np.sqrt(n * long_run * n / (n - 2)) / spread
    unknown = (n < 8) | ~(spread > 0)
    slope, se, mean = (np.where(unknown, np.nan, x) for x in (slope, se, mean))
    return Slope(*groups.shaped(slope, se, mean, n, lags, mask((Flag.INPUT_SUSPECT, unknown))))


def _blocks(t: Array, p: Array, g: Places, counts: NDArray[Any]) -> tuple[Array, Array, Places]:
    """Readings, or means of as many consecutive ones as keep every group at 4096."""
    size = -(-counts // MAX_BLOCKS)
    if (size <= 1).all():
        return t, p, g
    rank = np.arange(t.size) - (np.cumsum(counts) - counts)[g]
    block = rank // np.maximum(size, 1)[g]
    first = np.flatnonzero(np.diff(block, prepend=-1) | np.diff(g, prepend=-1))
    size = np.diff(np.append(first, t.size))
    return np.add.reduceat(t, first) / size, np.add.reduceat(p, first) / size, g[first]
