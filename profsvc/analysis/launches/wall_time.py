"""The wall time of devices from a trace, added up window by window, so that memory does not grow with the trace.

Events come in streams, each in the order of its starts. A window ends where no stream can still bring an event that
begins in it. Events that go on behind its end are carried into the next window, without those that can no longer be on
top.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from profsvc import specs
from profsvc.formulas.numerics.intervals import longest_behind
from profsvc.formulas.performance.wall_time import wall_time

Ints = NDArray[np.int64]
NO_LANE, NO_NAME = -1, -1
NO_PROCESS = -(2**63 - 1)  # a file may have any number that looks less strange
MAX_DETAILS = 100_000  # names of calls, ranges and kernels per device; beyond it those of least time are dropped
CATEGORIES = tuple(specs.wall_time_categories())
CODES = {category: code for code, category in enumerate(CATEGORIES)}
FIRST_GAP = CODES["not_started"]
NOT_RECORDED = CODES["not_recorded"]


class Activity(NamedTuple):
    """Events, one entry each: on a device (its ``lane``), or of a process on the host (``lane`` is NO_LANE).

    ``category`` is a place in `CATEGORIES`, ``name`` the number of the name under which the time is added up.
    """

    start: Ints
    end: Ints
    category: Ints
    lane: Ints
    process: Ints
    name: Ints

    def take(self, rows: NDArray[np.bool_] | NDArray[np.intp]) -> "Activity":
        """Return some of the events."""
        return Activity(*(column[rows] for column in self))


class Lane(NamedTuple):
    """A device of a process: its wall time [begin, stop), and its iterations [begin, stop), which do not overlap."""

    begin: int
    stop: int
    process: int = NO_PROCESS
    iterations: Sequence[tuple[int, int]] = ()


class LaneWallTime(NamedTuple):
    """The wall time of a lane by category [ns]: ``exposed`` adds up to it.

    ``active`` is the time in which a category goes on at all, ``events`` how many begin. ``of_iterations`` has a row
    per iteration, which adds up to its part of the wall time. ``details`` are parts of ``exposed`` by category and
    name.
    """

    exposed: Ints
    active: Ints
    events: Ints
    of_iterations: Ints
    details: Mapping[tuple[int, int], int]


NO_ACTIVITY = Activity(*(np.empty(0, np.int64) for _ in Activity._fields))


def _joined(parts: Sequence[Activity]) -> Activity:
    return Activity(*(np.concatenate(columns) for columns in zip(*parts, strict=True)))


def windows(streams: Sequence[Iterator[Activity]]) -> Iterator[tuple[Activity, int | None]]:
    """Yield the events of all streams in windows of time, each with its end; None for the last, which has no end."""
    held, open_streams = [NO_ACTIVITY for _ in streams], set(range(len(streams)))
    while open_streams:
        behind = min(open_streams, key=lambda k: (held[k].start.size > 0, held[k].start[-1:].tolist()))
        if (more := next(streams[behind], None)) is None:
            open_streams.remove(behind)
            continue
        held[behind] = _joined((held[behind], more))
        if all(held[k].start.size for k in open_streams):
            end = min(int(held[k].start[-1]) for k in open_streams)
            early = [some.start < end for some in held]
            if any(rows.any() for rows in early):
                yield _joined([some.take(rows) for some, rows in zip(held, early, strict=True)]), end
                held = [some.take(~rows) for some, rows in zip(held, early, strict=True)]
    yield _joined([NO_ACTIVITY, *held]), None


class _LaneSum:
    """The sums of one lane as far as they are known."""

    def __init__(self, number: int, lane: Lane) -> None:
        self.number, self.lane = number, lane
        self.exposed, self.active, self.events = (np.zeros(len(CATEGORIES), np.int64) for _ in range(3))
        edges = np.array(lane.iterations, np.int64).reshape(-1, 2)
        self.starts, self.ends = edges[:, 0], edges[:, 1]
        self.of_iterations = np.zeros((len(edges), len(CATEGORIES)), np.int64)
        self.details: dict[tuple[int, int], int] = {}

    def own(self, events: Activity) -> Activity:
        """Return the events of the lane, and those of its process on the host."""
        host = events.lane == NO_LANE
        if self.lane.process != NO_PROCESS:
            host &= (events.process == self.lane.process) | (events.process == NO_PROCESS)
        return events.take((events.lane == self.number) | host)

    def add(self, events: Activity, begin: int, stop: int) -> None:
        """Add the time from ``begin`` to ``stop``."""
        first, behind = np.searchsorted(self.ends, begin, "right"), np.searchsorted(self.starts, stop)
        marks = slice(first, max(first, behind))
        count = self.starts[marks].size
        # Below all else, an iteration only cuts the pieces at its ends.
        start = np.concatenate((events.start, self.starts[marks]))
        end = np.concatenate((events.end, self.ends[marks]))
        category = np.concatenate((events.category, np.full(count, NOT_RECORDED)))
        name = np.concatenate((events.name, np.full(count, NO_NAME)))
        found = wall_time(start, end, category, len(CATEGORIES), begin, stop)
        self.exposed += found.exposed
        self.exposed[NOT_RECORDED] += found.uncovered
        self.active += found.active
        of_piece = category[found.piece_top]
        if self.starts.size:
            at = np.searchsorted(self.starts, found.piece_start, "right") - 1
            inside = (at >= 0) & (found.piece_start < self.ends[at])
            np.add.at(self.of_iterations, (at[inside], of_piece[inside]), found.piece_length[inside])
        named = (of_piece >= FIRST_GAP) & (name[found.piece_top] != NO_NAME)
        self._add_details(of_piece[named], name[found.piece_top][named], found.piece_length[named])

    def _add_details(self, category: Ints, name: Ints, length: Ints) -> None:
        order = np.lexsort((name, category))
        category, name, length = category[order], name[order], length[order]
        first = np.flatnonzero((np.diff(category, prepend=-1) != 0) | (np.diff(name, prepend=NO_NAME) != 0))
        sums = np.add.reduceat(length, first) if first.size else first
        for code, number, total in zip(category[first].tolist(), name[first].tolist(), sums.tolist(), strict=True):
            self.details[code, number] = self.details.get((code, number), 0) + total
        if len(self.details) > MAX_DETAILS:
            longest = sorted(self.details, key=lambda one: -self.details[one])[: MAX_DETAILS // 2]
            self.details = {one: self.details[one] for one in longest}

    def result(self) -> LaneWallTime:
        """Return the sums."""
        self.active[NOT_RECORDED] = self.exposed[NOT_RECORDED]
        return LaneWallTime(self.exposed, self.active, self.events, self.of_iterations, self.details)


def wall_time_of_lanes(lanes: Sequence[Lane], streams: Sequence[Iterator[Activity]]) -> list[LaneWallTime]:
    """Return the wall time of every lane, from streams of the events of all, each in the order of its starts.

    A kernel from 0 to 60, the call that launched the next one from 20 to 70, and that kernel from 80 to 100:

    >>> columns = [[0, 80], [60, 100], [0, 0], [0, 0], [-1, -1], [-1, -1]]
    >>> device = Activity(*(np.array(column) for column in columns))
    >>> call = Activity(*(np.array([x]) for x in (20, 70, CODES["launch_calls"], NO_LANE, NO_PROCESS, 7)))
    >>> (found,) = wall_time_of_lanes([Lane(0, 100)], [iter([device]), iter([call])])
    >>> {name: time for name, time in zip(CATEGORIES, found.exposed.tolist(), strict=True) if time}
    {'kernels': 80, 'launch_calls': 10, 'not_recorded': 10}
    """
    sums = [_LaneSum(number, lane) for number, lane in enumerate(lanes)]
    carried, begin = NO_ACTIVITY, min((lane.begin for lane in lanes), default=0)
    for events, end in windows(streams):
        for one in sums:
            one.events += np.bincount(one.own(events).category, minlength=len(CATEGORIES))
        events = _joined((carried, events))
        for one in sums:
            stop = one.lane.stop if end is None else min(end, one.lane.stop)
            if max(begin, one.lane.begin) < stop:
                one.add(one.own(events), max(begin, one.lane.begin), stop)
        if end is not None:
            begin, carried = max(begin, end), _going_on(events, end)
    return [one.result() for one in sums]


def _going_on(events: Activity, end: int) -> Activity:
    """Return the events that go on behind ``end`` and may be on top there."""
    later = events.take(events.end > end)
    group = np.unique(np.stack((later.category, later.lane, later.process)), axis=1, return_inverse=True)[1].ravel()
    return later.take(longest_behind(later.start, later.end, group))
