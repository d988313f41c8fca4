"""Hits of a set-associative cache."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from profsvc.formulas.memory_hierarchy.lru import Ints, hits
from profsvc.formulas.numerics.arrays import Bools


def cache_sim(line: ArrayLike, sets: int, ways: int, cache: ArrayLike | None = None) -> Bools:
    r"""Hits of references in a cache with least-recently-used replacement; each miss fetches its line.

    .. math:: hit_t \iff |\{line_s : p_t < s < t,\; set_s = set_t\}| < ways

    with p_t the last use of the same line; the set of a line is its number modulo ``sets``.

    Source: the first and second step of the memory hierarchy model of [Baghsorkhi2012], after [Kim2012] section 4.2.3;
    reuse distances are those of [Mattson1970].

    Args:
        line: Line numbers, address over line size, in the order of the references on the last axis; leading axes are
            runs apart.
        sets: Sets of the cache [count]; 1 is fully associative.
        ways: Lines of a set [count].
        cache: Number of the cache a reference goes to, if there are several; of the shape of ``line``.

    Returns: booleans of the shape of ``line``.

    Range: the first use of a line is a miss. More ways never lose a hit.

    Errors: TypeError for line or cache numbers that are no integers, ValueError for negative ones, for shapes that
    differ, or without a set, a way or an axis.

    Three lines in turn, in two ways and in three:

    >>> cache_sim([1, 2, 3, 1, 2, 3], 1, 2).sum(), cache_sim([1, 2, 3, 1, 2, 3], 1, 3).sum()
    (np.int64(0), np.int64(3))
    """
    lines, caches = _integers("line", line), _integers("cache", 0 if cache is None else cache)
    if lines.ndim == 0 or sets < 1 or ways < 1:
        raise ValueError(f"line has {lines.ndim} axes, sets {sets}, ways {ways}; allowed: 1 or more of each")
    if cache is not None and caches.shape != lines.shape:
        raise ValueError(f"cache has shape {caches.shape}; allowed: {lines.shape}, that of line")
    runs = np.arange(lines[..., 0].size if lines.size else 0).reshape((*lines.shape[:-1], 1)) if lines.size else 0
    apart = runs * (int(caches.max(initial=0)) + 1) + caches
    place = np.broadcast_to(apart, lines.shape).ravel()
    return hits(lines.ravel(), place * sets + lines.ravel() % sets, ways).reshape(lines.shape)


def _integers(name: str, given: ArrayLike) -> Ints:
    array: NDArray[Any] = np.asarray(given)
    if array.dtype.kind not in "iu" and array.size:
        raise TypeError(f"{name} has dtype {array.dtype}; allowed: integers")
    if array.size and array.min() < 0:
        raise ValueError(f"{name} holds {array.min()}; allowed: 0 or more")
    return array.astype(np.int64)
