"""Hits of a set-associative cache that evicts what was used least recently.

Sets know nothing of each other: one step takes the next reference of every set at a time. The few sets that are used
far more than the others would make many steps of a few references; their hits come from reuse distances. A reference
hits if fewer than ``ways`` other lines of its set were used since its line was used last, and that number is a count of
pairs, which a merge sort gives for all references at a time.
"""

import numpy as np
from numpy.typing import NDArray

from profsvc.formulas.numerics.arrays import Bools

Ints = NDArray[np.int64]
Sectors = NDArray[np.uint8]
MAX_PAIRWISE_REFERENCES = 8


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
    few = (
        int((counts > 2 * counts[longest[min(MAX_PAIRWISE_REFERENCES, counts.size) - 1]]).sum())
        if counts.size > MAX_PAIRWISE_REFERENCES
        else counts.size
    )
    in_step = longest[few:]
    if in_step.size:
        found[order] |= _in_step(lines, starts[in_step], counts[in_step], ways)
    if few:
        chosen = np.zeros(counts.size, dtype=np.bool_)
        chosen[longest[:few]] = True
        part = np.flatnonzero(np.repeat(chosen, counts))
        found[order[part]] = _by_distance(dense(lines[part]), dense(places[part]), ways)
    return found


class Cached:
    """A cache over references that come in parts: what it holds goes before each part."""

    def __init__(self, ways: int) -> None:
        """Begin with an empty cache."""
        self.ways = ways
        self.line = np.zeros(0, dtype=np.int64)
        self.place = np.zeros(0, dtype=np.int64)
        self.filled = np.zeros(0, dtype=np.uint8)

    def present(self, line: Ints, place: Ints, filled: Sectors) -> Sectors:
        """Sectors of its line, a bit each, that each of the next references finds; it fills those of ``filled``."""
        before = self.line.size
        lines, places = np.concatenate((self.line, line)), np.concatenate((self.place, place))
        fills = np.concatenate((self.filled, filled))
        found = present(lines, places, hits(lines, places, self.ways), fills)
        last = held(lines, places, self.ways)
        self.line, self.place, self.filled = lines[last], places[last], found[last] | fills[last]
        return found[before:]


def present(line: Ints, place: Ints, hit: Bools, filled: Sectors) -> Sectors:
    """Sectors of its line that were filled before each reference, since the line was last brought in."""
    if not (filled != 1).any():
        return hit.astype(np.uint8)  # one sector is the line
    order = by_key(line)
    order = order[by_key(place[order])]
    lines, places, fills = line[order], place[order], filled[order]
    begins = ~hit[order]
    begins[:1] = True
    begins[1:] |= (lines[1:] != lines[:-1]) | (places[1:] != places[:-1])
    begin = np.maximum.accumulate(np.where(begins, np.arange(line.size), 0))
    found = np.zeros(line.size, dtype=np.uint8)
    for bit in range(int(fills.max(initial=0)).bit_length()):
        own = fills >> bit & 1
        before = np.cumsum(own, dtype=np.int64) - own
        found[order] |= ((before > before[begin]) << bit).astype(np.uint8)
    return found


def held(line: Ints, place: Ints, ways: int) -> Ints:
    """Last uses of the lines that sets hold in the end, each set from the one that was used least recently on."""
    last = _last_uses(line, place)
    order = last[by_key(place[last])]
    places = place[order]
    ends = np.flatnonzero(np.r_[places[1:] != places[:-1], [True] * (places.size > 0)]) + 1
    behind = np.repeat(ends, np.diff(np.r_[0, ends])) - np.arange(places.size)
    return order[behind <= ways]


def _last_uses(line: Ints, place: Ints) -> Ints:
    """Return where each line of each set was used last, in the order of these uses."""
    order = by_key(line)
    order = order[by_key(place[order])]
    lines, places = line[order], place[order]
    last = np.ones(line.size, dtype=np.bool_)
    last[:-1] = (lines[1:] != lines[:-1]) | (places[1:] != places[:-1])
    return np.sort(order[last])


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
