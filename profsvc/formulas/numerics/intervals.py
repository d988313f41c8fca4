"""Half-open intervals [start, end) of integers: which one is on top at each instant, and the length of unions.

Integers are exact, so parts of a time span add up to it to the last unit. Nothing here loops over intervals.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

Ints = NDArray[np.int64]


class Segments(NamedTuple):
    """Times from one end of an interval to the next; ``top`` is the interval on top of each, -1 where there is none."""

    start: Ints
    end: Ints
    top: Ints


def topmost(start: ArrayLike, end: ArrayLike, rank: ArrayLike) -> Segments:
    r"""Cut the time at the ends of all intervals, and find the interval on top of each segment.

    .. math:: top(t) = \arg\max_{i:\; start_i \le t < end_i} (rank_i,\; start_i,\; i)

    Source: definition; computed as range updates of a sparse table, :math:`O(n \log n)`.

    Args:
        start: First instant of each interval [any unit], integers.
        end: First instant behind it; an interval that does not end after its start covers nothing.
        rank: Intervals of a higher rank lie above those of a lower one; of one rank, the one that starts last.

    Returns: Segments in the order of time, without the empty time before the first and behind the last interval.

    Range: ``top`` in [-1, n). No interval: no segment.

    Errors: TypeError unless all are integers, ValueError for shapes that differ or are not flat.

    >>> found = topmost([0, 2, 20], [10, 5, 30], [0, 1, 0])
    >>> found.start.tolist(), found.end.tolist(), found.top.tolist()
    ([0, 2, 5, 10, 20], [2, 5, 10, 20, 30], [0, 1, 0, -1, 2])
    """
    s, e, r = _integers(start=start, end=end, rank=rank)
    covering = np.flatnonzero(e > s)
    order = covering[np.lexsort((covering, s[covering], r[covering]))]
    edges = np.sort(np.concatenate((s[order], e[order])))
    edges = edges[np.concatenate((np.ones(min(edges.size, 1), np.bool_), edges[1:] != edges[:-1]))]
    segments = max(edges.size - 1, 0)
    left, right = np.searchsorted(edges, s[order]), np.searchsorted(edges, e[order])
    # The highest power of two that fits into an interval; two such blocks, at both its ends, cover it.
    level = np.frexp((right - left).astype(np.float64))[1] - 1
    by_level = np.argsort(level, kind="stable")
    bounds = np.searchsorted(level[by_level], np.arange(level.max(initial=-1) + 2))
    top = np.full(segments, -1, np.int64)
    for k in range(bounds.size - 2, -1, -1):
        if 2 << k <= segments:  # what covers a block twice as long covers both its halves
            longer = top.copy()
            np.maximum(top[1 << k :], longer[: segments - (1 << k)], out=top[1 << k :])
        own = by_level[bounds[k] : bounds[k + 1]]
        np.maximum.at(top, left[own], own)
        np.maximum.at(top, right[own] - (1 << k), own)
    return Segments(edges[:-1], edges[1:], np.where(top >= 0, order[top] if order.size else -1, -1))


def union_lengths(start: ArrayLike, end: ArrayLike, group: ArrayLike, groups: int) -> Ints:
    r"""Return the length of the union of the intervals of each group.

    .. math:: L_g = \Bigl|\bigcup_{i:\; group_i = g} [start_i, end_i)\Bigr|

    Source: definition; sorted by start, each interval adds what lies behind the latest end before it.

    Args:
        start: First instant of each interval [any unit], integers.
        end: First instant behind it; an interval that does not end after its start covers nothing.
        group: Group of each interval, 0 to ``groups`` - 1.
        groups: Number of groups.

    Returns: One length per group, in the unit of ``start``.

    Range: at least 0; at most the sum of the lengths of the group.

    Errors: TypeError unless all are integers, ValueError for shapes that differ or are not flat.

    >>> union_lengths([0, 5, 30, 7], [10, 20, 40, 8], [0, 0, 0, 1], 3).tolist()
    [30, 1, 0]
    """
    s, e, g = _integers(start=start, end=end, group=group)
    order = np.lexsort((s, g))
    order = order[(e > s)[order]]
    s, e, g = s[order], e[order], g[order]
    if not s.size:
        return np.zeros(groups, np.int64)
    latest = _latest(e, g)
    before = np.concatenate((s[:1], latest[:-1]))
    before = np.where(np.concatenate(([True], g[1:] != g[:-1])), s, before)
    lengths = np.zeros(groups, np.int64)
    np.add.at(lengths, g, np.maximum(0, e - np.maximum(s, before)))
    return lengths


def longest_behind(start: ArrayLike, end: ArrayLike, group: ArrayLike) -> NDArray[np.intp]:
    """Return the intervals that can be the last to have started among those that still go on at some later instant.

    Those are the ones that end behind all of their group that start later. Of equal ones the last counts.

    Source: definition; a running maximum from the last start to the first.

    Returns: Their places, in the order of the arguments.

    Range: all places of a group without nesting intervals that end in the order of their starts: only the last.

    >>> longest_behind([0, 1, 2], [9, 5, 7], [0, 0, 0]).tolist()
    [0, 2]
    """
    s, e, g = _integers(start=start, end=end, group=group)
    order = np.lexsort((np.arange(s.size), s, g))[::-1]
    e, g = e[order], -g[order]
    before = np.concatenate((e[:1], _latest(e, g)[:-1]))
    first = np.concatenate(([True], g[1:] != g[:-1]))[: e.size]
    return np.sort(order[first | (e > before)])


def _latest(end: Ints, group: Ints) -> Ints:
    """Return the running maximum of each group; groups stand in their order."""
    # Ranks grow from group to group, so that their running maximum restarts with each group.
    by_end = np.lexsort((end, group))
    rank = np.empty_like(by_end)
    rank[by_end] = np.arange(by_end.size)
    return end[by_end[np.maximum.accumulate(rank)]]


def _integers(**given: Any) -> list[Ints]:
    found = []
    for name, values in given.items():
        array = np.asarray(values)
        if array.size and array.dtype.kind not in "iu":
            raise TypeError(f"{name} has dtype {array.dtype}; allowed: integers")
        found.append(array.astype(np.int64))
    if any(array.ndim != 1 or array.shape != found[0].shape for array in found):
        shapes = ", ".join(f"{name} {array.shape}" for name, array in zip(given, found, strict=True))
        raise ValueError(f"the shapes are {shapes}; allowed: flat arrays of one length")
    return found
