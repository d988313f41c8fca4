"""The least time that two rates allow, the time above it, and which pattern of a kernel may have taken it."""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from profsvc.formulas.numerics.arrays import (
    RELATIVE_TOLERANCE,
    Array,
    Flagged,
    Mask,
    arrays,
    flagged,
    floats,
    is_implausible,
    mask,
)
from profsvc.formulas.numerics.flags import Flag, check_form

COMPUTE, MEMORY = 0, 1
LOST, KEPT, FACTOR = "lost", "kept", "factor"
READINGS = (LOST, KEPT, FACTOR)
"""What the metric of a pattern is: the share lost, the share kept, or how many times as much as needed."""


class TimeBound(NamedTuple):
    """Result of `time_bound`, in seconds; ``bound`` is COMPUTE or MEMORY, -1 where it is not known."""

    t_ops: Array
    t_accesses: Array
    t_min: Array
    t_serial: Array
    t_delta: Array
    overlap_gap: Array
    unexplained: Array
    bound: NDArray[np.int8]
    flags: Mask


def time_bound(
    ops: ArrayLike, op_rate: ArrayLike, accesses: ArrayLike, access_rate: ArrayLike, t_actual: ArrayLike | None = None
) -> TimeBound:
    r"""Least time of a kernel whose computation and memory overlap wholly, and what the measured time is above it.

    .. math:: t_{min} = \max(t_1, t_2), \qquad t_\Delta = t_{actual} - t_{min}, \qquad
              unexplained = \max\bigl(0,\; t_\Delta - \min(t_1, t_2)\bigr)

    with t_1 = ops / rate and t_2 = accesses / rate. Where nothing overlaps, a kernel takes t_1 + t_2
    (``t_serial``), so that min(t_1, t_2) is the most that missing overlap explains (``overlap_gap``); the rest is of
    other patterns, see `antiparallel_report`.

    Source: [Lemeire2017], performance and anti-parallel patterns; the split of the rest is ours.

    Args:
        ops: Operations [count].
        op_rate: Their peak rate [1/s].
        accesses: Memory accesses, or bytes [count].
        access_rate: Their peak rate [1/s].
        t_actual: Measured time of the kernel alone, without launch and transfers [s]; None, or NaN in a row, is
            unknown.

    Returns: TimeBound.

    Range: t_min in [max, t_serial], 0 or more. t_delta below 0: the rates or counts are wrong, INPUT_SUSPECT. A rate of
    0 for a count above 0: NaN, ZERO_DENOM. Without a measured time the last three are NaN but ``overlap_gap``.

    Errors: TypeError for a wrong dtype, ValueError for shapes that do not broadcast.

    >>> kernel = time_bound(8e9, 1e12, 2e9, 1e11, 0.031)
    >>> float(kernel.t_min), round(float(kernel.t_delta), 9), round(float(kernel.unexplained), 9)
    (0.02, 0.011, 0.003)
    """
    W, P, Q, B, T = floats(ops=ops, op_rate=op_rate, accesses=accesses, access_rate=access_rate, t_actual=t_actual)
    zero = ((W > 0) & (P == 0)) | ((Q > 0) & (B == 0))
    bad = is_implausible(W, P, Q, B) | (is_implausible(T) & ~np.isnan(T))
    none = bad | zero
    with np.errstate(all="ignore"):
        t1, t2 = np.where(W == 0, 0.0, W / P), np.where(Q == 0, 0.0, Q / B)
        least, gap = np.maximum(t1, t2), np.minimum(t1, t2)
        above = T - least
        results = (t1, t2, least, t1 + t2, above, gap, np.maximum(0.0, above - gap))
    bound = np.where(none, -1, np.where(t2 > t1, MEMORY, COMPUTE)).astype(np.int8)
    flags = mask((Flag.INPUT_SUSPECT, bad | (above < -RELATIVE_TOLERANCE * least)), (Flag.ZERO_DENOM, zero & ~bad))
    return TimeBound(*arrays(*(np.where(none, np.nan, x) for x in results), bound, flags))


def lost_share(metric: ArrayLike, reading: str = LOST) -> Flagged:
    r"""Share of a resource that an antipattern loses, from its metric.

    .. math:: x \quad (lost), \qquad 1 - x \quad (kept), \qquad 1 - 1/x \quad (factor)

    Source: the last column but one of the table of anti-parallel patterns, [Lemeire2017], as shares.

    Args:
        metric: The metric x of the pattern; NaN where it is not known [1].
        reading: ``lost``: the share lost, as of stalls. ``kept``: the share used, as of lanes. ``factor``: how many
            times as much as needed, as of bytes.

    Returns: Valued [1].

    Range: [0, 1]. Not known: NaN without a flag. A share above 1, a factor below 1: clipped, RAW_OUT_OF_RANGE and
    CLIPPED; a share above 1.5 is taken for a percentage, INPUT_SUSPECT too. Negative or inf: NaN, INPUT_SUSPECT.

    Errors: TypeError for a wrong dtype, ValueError for an unknown reading.

    Half of the lanes idle; twice the bytes that were asked for:

    >>> float(lost_share(0.5, "kept").value), float(lost_share(2.0, "factor").value)
    (0.5, 0.5)
    """
    check_form(reading, READINGS)
    (x,) = floats(metric=metric)
    unknown = np.isnan(x)
    bad = is_implausible(x) & ~unknown
    with np.errstate(all="ignore"):
        raw = x if reading == LOST else 1 - x if reading == KEPT else 1 - 1 / x
    outside = (raw < 0) | (raw > 1)
    percent = (reading != FACTOR) & (x > 1.5) & ~bad
    got = flagged(
        np.clip(raw, 0.0, 1.0), bad, (Flag.RAW_OUT_OF_RANGE | Flag.CLIPPED, outside), (Flag.INPUT_SUSPECT, percent)
    )
    return Flagged(got.value, np.asarray(got.flags, dtype=np.uint32))


def antiparallel_report(metrics: Mapping[str, ArrayLike], readings: Mapping[str, str]) -> dict[str, Flagged]:
    r"""Share that each anti-parallel pattern loses, where its metric is known.

    Shares of different patterns overlap and do not add up.

    Source: the table of anti-parallel patterns, [Lemeire2017], which is `profsvc.specs.advice.antipatterns`.

    Args:
        metrics: Metric of a pattern by its key [1].
        readings: Reading of the metric of every pattern by its key, see `lost_share`.

    Returns: the share of every pattern of ``readings``, in their order; NaN where no metric is given.

    Range: as `lost_share`.

    Errors: ValueError for a metric of no pattern, or an unknown reading; TypeError for a wrong dtype.

    >>> report = antiparallel_report({"divergence": 0.75}, {"divergence": "kept", "barriers": "lost"})
    >>> {name: float(lost.value) for name, lost in report.items()}
    {'divergence': 0.25, 'barriers': nan}
    """
    if unknown := sorted(set(metrics) - set(readings)):
        raise ValueError(f"no pattern {', '.join(map(repr, unknown))}; allowed: {', '.join(map(repr, readings))}")
    return {name: lost_share(metrics.get(name, np.nan), reading) for name, reading in readings.items()}
