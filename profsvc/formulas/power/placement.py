"""Placement of active cores: cores of a cluster, the coolest choice, and the cost of each further cluster."""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from profsvc.formulas.numerics.arrays import (
    RELATIVE_TOLERANCE,
    Array,
    Bools,
    Groups,
    Mask,
    arrays,
    flat_floats,
    floats,
    mask,
    numbers,
)
from profsvc.formulas.numerics.flags import Flag

TPCS_8800GT = 7
MIN_DOUBLED_RATIO = 0.1  # how far from 2 the ratio of the two times may be


class Placements(NamedTuple):
    """Result of `rank_placements`: per option its active TPCs, -1 for none such, and the least distance of two [mm].

    ``compact`` and ``spread`` list the options, best first, by each ranking.
    """

    active_tpcs: NDArray[np.int64]
    distance_mm: Array
    compact: NDArray[np.int64]
    spread: NDArray[np.int64]
    flags: Mask


class OneBlock(NamedTuple):
    """Result of `verify_one_block_per_sm`."""

    ratio: Array
    holds: Bools
    flags: Mask


class TpcEffect(NamedTuple):
    """Result of `tpc_effect`; ``power_w`` and ``temperature_c`` are means over the runs with ``active_tpcs``."""

    active_tpcs: NDArray[np.int64]
    power_w: Array
    temperature_c: Array
    power_per_tpc_w: Array
    power_range_w: Array
    temperature_range_c: Array
    power_per_degree_w: Array
    correlation: Array
    flags: Mask


def _integers(name: str, value: ArrayLike) -> NDArray[np.int64]:
    array = numbers(name, value)
    if array.dtype.kind not in "iu" and array.size:
        raise TypeError(f"{name} has dtype {array.dtype}; allowed: integers")
    return array.astype(np.int64)


def tpc_of_core(core: ArrayLike, tpcs: int = TPCS_8800GT) -> NDArray[np.int64]:
    r"""Texture processing cluster (TPC) of a core that the hardware numbers round robin.

    .. math:: TPC = core \bmod N_{TPC}

    Source: [Hong2012] section 4.5.2: on the 8800GT the heat maps of cores 0 and 7, 1 and 8, ... 6 and 13 are alike;
    the rule gives all nine counts of its table 12.

    Args:
        core: Number of the core, from 0, integers of any shape.
        tpcs: Clusters of the chip, N_TPC.

    Returns: numbers of the clusters, from 0.

    Range: [0, tpcs); -1 for a negative core.

    Errors: TypeError for a dtype that is not integer, ValueError for no cluster.

    >>> tpc_of_core([0, 7, 1, 8]).tolist()
    [0, 0, 1, 1]
    """
    if tpcs < 1:
        raise ValueError(f"tpcs is {tpcs}; allowed: 1 or more")
    cores = _integers("core", core)
    return np.where(cores < 0, -1, cores % tpcs)


def rank_placements(
    options: ArrayLike, tpc: ArrayLike, x_mm: ArrayLike | None = None, y_mm: ArrayLike | None = None
) -> Placements:
    r"""Choices of active cores, ranked for power and temperature, and for kernels that compete for memory units.

    .. math:: \text{compact: } \min |\{TPC\}|, \text{ then } \max \min_{i<j} d_{ij} \qquad
              \text{spread: } \max |\{TPC\}|, \text{ then } \max \min_{i<j} d_{ij}

    An active TPC costs power whatever its cores do, and TPCs far apart have idle ones between them as lateral heat
    sinks: the compact ranking. Cores of one TPC share load and store units, so that kernels with much memory traffic
    may run better spread.

    Source: [Hong2012] sections 4.6.2 and 4.7.

    Args:
        options: Active cores of each option, integers of shape (M, n).
        tpc: TPC of each core of the chip, as `tpc_of_core` gives it, integers of shape (C,).
        x_mm: Centre of each TPC, flat [mm]; None where the floor plan is unknown, then only the number counts.
        y_mm: Likewise [mm].

    Returns: Placements; ties keep the order of the options.

    Range: distances of 0 or more; inf with one TPC, NaN without a floor plan. An option that names a core twice, or
    one the chip has not: INPUT_SUSPECT, -1 TPCs, last in both rankings.

    Errors: TypeError for dtypes that are not integer, ValueError for shapes that do not fit.

    >>> ranked = rank_placements([[0, 1, 2, 3], [0, 7, 1, 8], [4, 11, 0, 1]], tpc_of_core(range(14)))
    >>> ranked.active_tpcs.tolist(), ranked.compact.tolist(), ranked.spread.tolist()
    ([4, 2, 3], [1, 2, 0], [0, 2, 1])
    """
    cores, of = _integers("options", options), _integers("tpc", tpc)
    if cores.ndim != 2 or of.ndim != 1 or (x_mm is None) != (y_mm is None):
        raise ValueError(
            f"options has shape {cores.shape}, tpc {of.shape}; allowed: (M, n) and (C,), and x_mm with y_mm"
        )
    ordered = np.sort(cores, axis=1)
    twice = (ordered[:, 1:] == ordered[:, :-1]).any(axis=1)
    wrong = twice | (cores < 0).any(axis=1) | (cores >= of.size).any(axis=1) | (cores.shape[1] == 0)
    active = np.zeros((len(cores), int(of.max(initial=-1)) + 1), dtype=np.bool_)
    held = of[np.where(wrong[:, np.newaxis], 0, cores)] if of.size and cores.size else np.zeros((0, 0), dtype=np.int64)
    wrong = wrong | (held < 0).any(axis=1) if held.size else np.ones(len(cores), dtype=np.bool_)
    if held.size:
        active[np.arange(len(cores))[:, np.newaxis], np.maximum(held, 0)] = True
    count = np.where(wrong, -1, active.sum(axis=1))
    distance = np.where(wrong, np.nan, _least_distance(active, x_mm, y_mm))
    far = -np.nan_to_num(distance, nan=0.0)
    compact, spread = np.lexsort((far, count, wrong)), np.lexsort((far, -count, wrong))
    return Placements(*arrays(count, distance, compact, spread, mask((Flag.INPUT_SUSPECT, wrong))))


def _least_distance(active: Bools, x_mm: ArrayLike | None, y_mm: ArrayLike | None) -> Array:
    if x_mm is None or y_mm is None:
        return np.full(len(active), np.nan)
    x, y = flat_floats(x_mm=x_mm, y_mm=y_mm)
    if x.size != active.shape[1]:
        raise ValueError(f"x_mm and y_mm have {x.size} places; allowed: {active.shape[1]}, one a TPC")
    apart = np.hypot(x[:, np.newaxis] - x, y[:, np.newaxis] - y)
    np.fill_diagonal(apart, np.inf)
    least = np.full(len(active), np.inf)
    for k in range(x.size):  # a loop over TPCs: options by TPCs by TPCs would not fit in memory
        nearest = np.where(active, apart[k], np.inf).min(axis=1, initial=np.inf)
        least = np.where(active[:, k], np.minimum(least, nearest), least)
    return least


def verify_one_block_per_sm(t_n: ArrayLike, t_n_plus_1: ArrayLike, tol: float = MIN_DOUBLED_RATIO) -> OneBlock:
    r"""Test that as many blocks as SMs ran one on each: one more block must then double the time.

    .. math:: \left| \frac{t_{n+1}}{t_n} - 2 \right| \le tol

    Source: [Hong2012] section 4.4.1; the tolerance is this project's.

    Args:
        t_n: Time with one block per SM [any unit of time].
        t_n_plus_1: Time with one block more [the same].
        tol: How far from 2 the ratio may be [1].

    Returns: OneBlock, of the common shape.

    Range: ratio positive; NaN, not held, INPUT_SUSPECT where a time is not positive, NaN or inf.

    Errors: TypeError for a wrong dtype, ValueError for shapes that do not broadcast.

    >>> verify_one_block_per_sm([1.0, 1.0], [1.98, 1.1]).holds.tolist()
    [True, False]
    """
    t, t_more = floats(t_n=t_n, t_n_plus_1=t_n_plus_1)
    bad = ~(np.isfinite(t) & np.isfinite(t_more) & (t > 0) & (t_more > 0))
    with np.errstate(all="ignore"):
        ratio = np.where(bad, np.nan, t_more / t)
        holds = np.abs(ratio - 2) <= tol + RELATIVE_TOLERANCE
    return OneBlock(*arrays(ratio, holds, mask((Flag.INPUT_SUSPECT, bad))))


def tpc_effect(active_tpcs: ArrayLike, power_w: ArrayLike, temperature_c: ArrayLike) -> TpcEffect:
    r"""Power of a further active TPC at the same number of active cores, and the effect of temperature.

    .. math:: P = a + s\, n_{TPC}, \qquad P = b + m T, \qquad r = corr(P, T)

    by least squares. The slope m is no temperature coefficient: the number of TPCs changes with T.

    Source: [Hong2012] table 12 and section 4.6.2.

    Args:
        active_tpcs: Active TPCs of each run, flat, integers.
        power_w: Mean power of each run [W].
        temperature_c: Mean temperature of each run [degC].

    Returns: TpcEffect; slopes, ranges and the correlation are over all runs.

    Range: correlation in [-1, 1]; NaN where the runs do not differ. Runs with NaN, inf or fewer than 0 TPCs are left
    out, with INPUT_SUSPECT.

    Errors: TypeError for a wrong dtype, ValueError for shapes that do not fit.

    >>> effect = tpc_effect([2, 2, 4], [253.68, 253.77, 262.53], [76.99, 76.59, 80.41])
    >>> effect.power_w.round(3).tolist(), float(effect.power_per_tpc_w.round(4)), float(effect.correlation.round(3))
    ([253.725, 262.53], 4.4025, 0.995)
    """
    n = _integers("active_tpcs", active_tpcs)
    count, P, T = flat_floats(active_tpcs=n, power_w=power_w, temperature_c=temperature_c)
    good = np.isfinite(P) & np.isfinite(T) & (count >= 0)
    count, P, T = count[good], P[good], T[good]
    groups = Groups(count.astype(np.int64), count.size)
    with np.errstate(all="ignore"):
        means = (groups.reduce(np.add, x) / groups.counts for x in (P, T))
        per_tpc, per_degree = _slope(count, P), _slope(T, P)
        r = per_degree * np.sqrt(_spread(T, T) / _spread(P, P))
    ranges = (np.ptp(x) if x.size else np.nan for x in (P, T))
    flags = mask((Flag.INPUT_SUSPECT, not good.all()))
    return TpcEffect(*arrays(groups.ids, *means, per_tpc, *ranges, per_degree, r, flags))


def _spread(x: Array, y: Array) -> np.float64:
    return np.float64(np.sum((x - x.mean()) * (y - y.mean()))) if x.size else np.float64(np.nan)


def _slope(x: Array, y: Array) -> np.float64:
    return np.float64(_spread(x, y) / _spread(x, x))
