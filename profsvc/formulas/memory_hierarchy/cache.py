"""Hits of a set-associative cache that evicts what was used least recently.

Sets know nothing of each other: one step takes the next reference of every set at a time. The few sets that are used
far more than the others would make many steps of a few references; their hits come from reuse distances. A reference
hits if fewer than ``ways`` other lines of its set were used since its line was used last, and that number is a count of
pairs, which a merge sort gives for all references at a time.
"""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from profsvc.formulas._arrays import Bools

Ints = NDArray[np.int64]
FEW = 8


def cache_sim(line: ArrayLike, sets: int, ways: int, cache: ArrayLike | None = None) -> Bools:
    r"""Which references hit in a cache that evicts what was used least recently; each miss brings in its line.

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


def dense(x: Ints) -> Ints:
    """Numbers from 0 without gaps in place of the distinct values, in their order."""
    return np.unique(x, return_inverse=True)[1].astype(np.int64) if x.size else x


def by_key(key: Ints) -> Ints:
    """Order that sorts the keys and leaves equal ones as they are; the keys are not negative."""
    bits = max(1, int(key.size - 1).bit_length())
    if int(key.max(initial=0)).bit_length() + bits > 62:
        return np.argsort(key, kind="stable")
    # Sorting numbers is several times as fast as sorting places by them.
    packed = np.sort((key << bits) | np.arange(key.size))
    return packed & ((1 << bits) - 1)


def hits(line: Ints, place: Ints, ways: int) -> Bools:
    """Hits of references in order; ``place`` is the number of the set, over all caches."""
    found = np.zeros(line.size, dtype=np.bool_)
    if not line.size:
        return found
    order = by_key(place)
    places, lines = place[order], line[order]
    again = np.zeros(line.size, dtype=np.bool_)
    again[1:] = (places[1:] == places[:-1]) & (lines[1:] == lines[:-1])
    found[order[again]] = True  # twice in a row: no other line can have come between
    order, places, lines = (x[~again] for x in (order, places, lines))
    starts = np.flatnonzero(np.r_[True, places[1:] != places[:-1]])
    counts = np.diff(np.r_[starts, places.size])
    longest = np.argsort(-counts, kind="stable")
    # Where fewer sets than this are left in step, steps cost more than sorting their references does.
    few = int((counts > 2 * counts[longest[min(FEW, counts.size) - 1]]).sum()) if counts.size > FEW else counts.size
    in_step = longest[few:]
    if in_step.size:
        found[order] |= _in_step(lines, starts[in_step], counts[in_step], ways)
    if few:
        chosen = np.zeros(counts.size, dtype=np.bool_)
        chosen[longest[:few]] = True
        part = np.flatnonzero(np.repeat(chosen, counts))
        found[order[part]] = _by_distance(dense(lines[part]), dense(places[part]), ways)
    return found


def _in_step(lines: Ints, starts: Ints, counts: Ints, ways: int) -> Bools:
    """Hits of sets of descending length, the next reference of each at a time."""
    found = np.zeros(lines.size, dtype=np.bool_)
    held = np.full((starts.size, ways), -1, dtype=np.int64)
    used = np.zeros((starts.size, ways), dtype=np.int32)
    active = starts.size - np.searchsorted(counts[::-1], np.arange(counts[0]), side="right")
    for step, n in enumerate(active, start=1):
        at = starts[:n] + (step - 1)
        wanted = lines[at]
        same = held[:n] == wanted[:, np.newaxis]
        way, oldest = same.argmax(axis=1), used[:n].argmin(axis=1)
        row = np.arange(n)
        hit = same[row, way]
        way = np.where(hit, way, oldest)
        held[row, way] = wanted
        used[row, way] = step
        found[at] = hit
    return found


def _by_distance(lines: Ints, places: Ints, ways: int) -> Bools:
    """Hits of sets that lie one after another, from reuse distances."""
    previous = _previous(lines, places)
    distance = np.arange(previous.size) - previous - 1
    found = (previous >= 0) & (distance < ways)
    # A set whose repeats are all near is decided.
    undecided = np.bincount(places[(previous >= 0) & ~found], minlength=int(places[-1]) + 1) > 0
    part = np.flatnonzero(undecided[places])
    if part.size:
        renumbered = np.cumsum(undecided[places]) - 1
        inner = np.where(previous[part] >= 0, renumbered[previous[part]], -1)
        found[part] |= (inner >= 0) & (reuse_distance(inner, places[part]) < ways)
    return found


def _previous(lines: Ints, places: Ints) -> Ints:
    """Place of the last use of the same line in the same set, -1 for the first."""
    same = by_key(places * (int(lines.max()) + 1) + lines)
    previous = np.full(lines.size, -1, dtype=np.int64)
    repeated = (lines[same[1:]] == lines[same[:-1]]) & (places[same[1:]] == places[same[:-1]])
    previous[same[1:][repeated]] = same[:-1][repeated]
    return previous


def reuse_distance(previous: Ints, places: Ints) -> Ints:
    """Distinct lines used between each reference and the last use of its line; references lie set after set.

    Among the references before t those with a last use no later than p_t number p_t + 1 up to p_t itself, and after it
    one for each distinct line. They are counted while a sort by last use is undone, one bit of the place at a time.
    """
    n = previous.size
    starts = np.flatnonzero(np.r_[True, places[1:] != places[:-1]])
    begin = np.repeat(starts, np.diff(np.r_[starts, n]))
    inside = (np.arange(n) - begin).astype(np.int64)
    first = np.flatnonzero(previous < 0)
    used = previous[previous >= 0]
    following = np.full(n, -1, dtype=np.int64)
    following[used] = np.flatnonzero(previous >= 0)
    # By set, and there by last use: lines seen for the first time, then whatever follows each reference.
    later = following[following >= 0]
    at = np.concatenate([first, later])
    at = at[by_key(begin[at])]
    earlier = np.zeros(n, dtype=np.int64)
    for bit in range(int(inside.max()).bit_length() - 1, -1, -1):
        own = inside[at]
        right = (own >> bit & 1).astype(np.bool_)
        block = begin[at] + (own >> (bit + 1) << (bit + 1))
        lefts = np.cumsum(~right)
        before = lefts - ~right
        head = np.where(block == np.arange(n), before, 0)
        base = np.maximum.accumulate(head)
        rank = before - base
        earlier[at[right]] += rank[right]
        target = np.where(right, block + (1 << bit) + (np.arange(n) - block - rank), block + rank)
        moved = np.empty_like(at)
        moved[target] = at
        at = moved
    return np.where(previous >= 0, earlier - (previous - begin) - 1, -1)
