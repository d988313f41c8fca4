"""Matching of launches between two files of one execution, recorded by different tools.

Both files list the kernels of a stream in the same order, each with its grid and block. A profile may contain only some
launches (a count, a kernel filter), and a trace may start late or end early. So the launches of the smaller file must
be a subsequence of the larger one. Streams, devices and processes with different numbers are matched by their kernels.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
Lane = tuple[int, ...]
Left = TypeVar("Left")
Right = TypeVar("Right")
Fit = TypeVar("Fit")
UNKNOWN = -1
# What a lane is called by: process, device, context, stream. A coarser view follows where a finer one does not fit.
LANE_VIEWS = ((0, 1, 2, 3), (0, 1), (0,))
HASH_BASE = np.uint64(0x9E3779B97F4A7C15)


class LaunchSequence(NamedTuple):
    """Launches in the order in which they began.

    ``token``: equal where kernel, grid and block are; ``place``: where each ran; ``lanes``: of every place the process,
    device, context and stream, `UNKNOWN` where the tool does not say.
    """

    token: Ints
    place: Ints
    lanes: Mapping[int, Lane]


class LaunchMatch(NamedTuple):
    """Of each launch its place among those of the other file; ``alone`` if no other assignment would fit as well."""

    at: Ints
    alone: bool


def find_launches(few: LaunchSequence, many: LaunchSequence) -> LaunchMatch | None:
    """Return where the launches of a file stand among those of another, None where they do not all stand there.

    >>> trace = LaunchSequence(np.array([1, 2, 1, 3]), np.zeros(4, int), {0: (7, 0, 1, 7)})
    >>> find_launches(LaunchSequence(np.array([2, 3]), np.zeros(2, int), {0: (9, 0, 1, 7)}), trace)
    LaunchMatch(at=array([1, 3]), alone=True)
    """
    if surplus_token(few.token, many.token) is not None:
        return None
    said = [all(lane[part] != UNKNOWN for told in (few, many) for lane in told.lanes.values()) for part in range(4)]
    for parts in dict.fromkeys(tuple(part for part in level if said[part]) for level in LANE_VIEWS):
        if (
            found := _match_lanes(
                _launches_by_lane(few, parts), _launches_by_lane(many, parts), few.token, many.token, 0 in parts
            )
        ) is not None:
            return found
    return None


def surplus_token(few: Ints, many: Ints) -> tuple[int, int, int] | None:
    """Return a token that the first has more often than the second, and both counts; None if there is none.

    >>> surplus_token(np.array([5, 5, 6]), np.array([6, 5, 6]))
    (5, 2, 1)
    """
    names, counts = np.unique(few, return_counts=True)
    held, places = np.unique(many, return_counts=True)
    at = np.minimum(np.searchsorted(held, names), max(len(held) - 1, 0))
    there = np.where(held[at] == names, places[at], 0) if len(held) else np.zeros(len(names), np.int64)
    lacking = np.flatnonzero(counts > there)
    if not len(lacking):
        return None
    first = lacking[0]
    return int(names[first]), int(counts[first]), int(there[first])


def _launches_by_lane(told: LaunchSequence, parts: Sequence[int]) -> dict[Lane, Ints]:
    """Return the positions of the launches of each lane, as far as these parts of its name tell."""
    names = {place: tuple(lane[part] for part in parts) for place, lane in told.lanes.items()}
    numbers = {name: number for number, name in enumerate(sorted(set(names.values())))}
    places = np.array(sorted(names), np.int64)
    of_place = np.array([numbers[names[place]] for place in places.tolist()], np.int64)
    lane = of_place[np.searchsorted(places, told.place)]
    order = np.argsort(lane, kind="stable")
    bounds = np.searchsorted(lane[order], np.arange(1, len(numbers)))
    return {name: at for name, at in zip(numbers, np.split(order, bounds), strict=True) if len(at)}


def _match_lanes(
    few: Mapping[Lane, Ints], many: Mapping[Lane, Ints], own: Ints, other: Ints, by_process: bool
) -> LaunchMatch | None:
    """Find the lanes of the one file in the other, those of a process in those of one process."""

    def fit(lane: Lane, there: Lane) -> tuple[Ints, bool] | None:
        if (found := _locate_sequence(own[few[lane]], other[many[there]])) is None:
            return None
        return many[there][found[0]], found[1]

    def process(lanes: list[Lane], there: list[Lane]) -> tuple[list[tuple[Lane, Ints]], bool] | None:
        paired = _pair_up(lanes, there, fit, lambda lane, other: lane[by_process:] == other[by_process:])
        if paired is None:
            return None
        return [(lane, at) for lane, (at, _) in paired[0]], paired[1] and all(alone for _, (_, alone) in paired[0])

    paired = _pair_up(
        _group_by_process(few, by_process), _group_by_process(many, by_process), process,
        lambda lanes, there: by_process and lanes[0][0] == there[0][0],
    )  # fmt: skip
    if paired is None:
        return None
    at, alone = np.empty(len(own), np.int64), paired[1]
    for _, (lanes, sure) in paired[0]:
        alone = alone and sure
        for lane, places in lanes:
            at[few[lane]] = places
    return LaunchMatch(at, alone)


def _group_by_process(lanes: Iterable[Lane], by_process: bool) -> list[list[Lane]]:
    groups: dict[int, list[Lane]] = {}
    for lane in lanes:
        groups.setdefault(lane[0] if by_process else 0, []).append(lane)
    return list(groups.values())


def _pair_up(
    left: Sequence[Left], right: Sequence[Right], fit: Callable[[Left, Right], Fit | None],
    alike: Callable[[Left, Right], bool],
) -> tuple[list[tuple[Left, Fit]], bool] | None:  # fmt: skip
    """Give each of the left one of the right that fits, a like one first; also whether no other choice would do.

    None if that cannot be. These are augmenting paths.
    """
    fits: dict[tuple[int, int], Fit | None] = {}
    taken: dict[int, int] = {}

    def fitting(one: int) -> Iterator[int]:
        for other in sorted(range(len(right)), key=lambda other: not alike(left[one], right[other])):
            if (one, other) not in fits:
                fits[one, other] = fit(left[one], right[other])
            if fits[one, other] is not None:
                yield other

    def place(one: int, tried: set[int]) -> bool:
        for other in fitting(one):
            if other not in tried:
                tried.add(other)
                if other not in taken or place(taken[other], tried):
                    taken[other] = one
                    return True
        return False

    if len(left) > len(right) or not all(place(one, set()) for one in range(len(left))):
        return None
    chosen = {one: other for other, one in taken.items()}
    sure = all(alike(left[one], right[other]) or len(list(fitting(one))) == 1 for one, other in chosen.items())
    pairs: list[tuple[Left, Fit]] = []
    for one, other in sorted(chosen.items()):
        found = fits[one, other]
        assert found is not None, "it was chosen because it fits"
        pairs.append((left[one], found))
    return pairs, sure


def _locate_sequence(few: Ints, many: Ints) -> tuple[Ints, bool] | None:
    """Return the places of a sequence in another, and whether it has no others there; None if it is not in it.

    Without a gap, as tools skip and count launches, comes before the earliest places with gaps.

    >>> _locate_sequence(np.array([1, 2]), np.array([1, 3, 2, 1, 2]))
    (array([3, 4]), True)
    """
    if len(few) > len(many):
        return None
    windows = _contiguous_places(few, many)
    if len(windows):
        return windows[0] + np.arange(len(few)), len(windows) == 1
    first = _earliest_places(few, many)
    if first is None:
        return None
    last = _earliest_places(few[::-1], many[::-1])
    assert last is not None, "what stands in a sequence stands in its reverse"
    return first, bool((len(many) - 1 - last[::-1] == first).all())


def _contiguous_places(few: Ints, many: Ints) -> Ints:
    """Return where a sequence stands in another without a gap, two places at most.

    Sums of hashes modulo 2^64 find the places, which are then looked at.
    """
    count, width = len(many), len(few)
    with np.errstate(over="ignore"):
        powers = np.cumprod(np.full(count, HASH_BASE))
        sums = np.concatenate(([np.uint64(0)], np.cumsum((many.astype(np.uint64) + HASH_BASE) * powers)))
        sought = np.sum((few.astype(np.uint64) + HASH_BASE) * powers[:width])
        windows = sums[width:] - sums[: count - width + 1]
        shift = np.concatenate(([np.uint64(1)], powers))[: count - width + 1]
        likely = np.flatnonzero(windows == sought * shift)
    right = (at for at in likely.tolist() if (many[at : at + width] == few).all())
    return np.array(list(islice(right, 2)), np.int64)


def _earliest_places(few: Ints, many: Ints) -> Ints | None:
    """Return the earliest places of a sequence in another, None if it is not in it."""
    order = np.argsort(many, kind="stable")
    held = many[order]
    low, high = np.searchsorted(held, few, "left"), np.searchsorted(held, few, "right")
    at, before = np.empty(len(few), np.int64), -1
    for number, (begin, end) in enumerate(zip(low.tolist(), high.tolist(), strict=True)):
        begin += int(np.searchsorted(order[begin:end], before, "right"))
        if begin == end:
            return None
        before = at[number] = order[begin]
    return at
