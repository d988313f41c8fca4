"""The wall time of lanes, from streams in any pieces, against a sweep over single instants."""

from collections import Counter
from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from profsvc.analysis.launches import wall_time as subject
from profsvc.analysis.launches.wall_time import (
    CATEGORIES,
    FIRST_GAP,
    NO_ACTIVITY,
    NO_LANE,
    NO_PROCESS,
    NOT_RECORDED,
    Activity,
    Lane,
    wall_time_of_lanes,
    windows,
)

DEVICE = st.tuples(
    st.integers(0, 40), st.integers(0, 12), st.integers(0, FIRST_GAP - 1), st.integers(0, 1), st.just(-1), st.just(-1)
)
HOST = st.tuples(
    st.integers(-5, 45), st.integers(0, 20), st.integers(FIRST_GAP, NOT_RECORDED), st.just(NO_LANE),
    st.sampled_from([NO_PROCESS, 0, 1]), st.integers(-1, 2),
)  # fmt: skip
LANES = [Lane(2, 50, 0, [(0, 7), (7, 20), (33, 60)]), Lane(5, 44, 1), Lane(0, 3)]
Row = tuple[int, ...]


def stream(rows: list[Row], pieces: int) -> Iterator[Activity]:
    rows = sorted(rows, key=lambda row: row[0])
    for at in range(0, len(rows), pieces):
        start, length, *rest = (np.array(column, np.int64) for column in zip(*rows[at : at + pieces], strict=True))
        yield Activity(start, start + length, *rest)


@given(st.lists(DEVICE, max_size=15), st.lists(HOST, max_size=15), st.lists(HOST, max_size=8), st.integers(1, 4))
def test_every_instant_counts_once(device: list[Row], calls: list[Row], ranges: list[Row], pieces: int) -> None:
    found = wall_time_of_lanes(LANES, [stream(rows, pieces) for rows in (device, calls, ranges)])
    for number, (lane, one) in enumerate(zip(LANES, found, strict=True)):
        own = [
            row for row in (*device, *calls, *ranges)
            if row[3] == number or (row[3] == NO_LANE and NO_PROCESS in (lane.process, row[4]))
            or (row[3] == NO_LANE and row[4] == lane.process)
        ]  # fmt: skip
        exposed, active = [0] * len(CATEGORIES), [0] * len(CATEGORIES)
        of_iterations = [[0] * len(CATEGORIES) for _ in lane.iterations]
        for t in range(lane.begin, lane.stop):
            there = {row[2] for row in own if row[0] <= t < row[0] + row[1]}
            top = min(there, default=NOT_RECORDED)
            exposed[top] += 1
            for category in there - {NOT_RECORDED}:
                active[category] += 1
            for k, (begin, stop) in enumerate(lane.iterations):
                of_iterations[k][top] += begin <= t < stop
        active[NOT_RECORDED] = exposed[NOT_RECORDED]
        assert one.exposed.tolist() == exposed
        assert one.active.tolist() == active
        assert one.of_iterations.tolist() == of_iterations
        assert one.events.tolist() == [sum(row[2] == code for row in own) for code in range(len(CATEGORIES))]
        assert one.exposed.sum() == lane.stop - lane.begin


@given(st.lists(HOST, max_size=20, unique_by=lambda row: (row[0], row[2])), st.integers(1, 4))
def test_a_gap_counts_for_the_call_that_began_last(calls: list[Row], pieces: int) -> None:
    lane = Lane(0, 40)
    (found,) = wall_time_of_lanes([lane], [stream(calls, pieces)])
    wanted = Counter[tuple[int, int]]()
    for t in range(lane.begin, lane.stop):
        there = [(row[2], -row[0], row[5]) for row in calls if row[0] <= t < row[0] + row[1]]
        if there and (one := min(there))[2] >= 0:
            wanted[one[0], one[2]] += 1
    assert found.details == wanted


@given(st.lists(st.lists(DEVICE, max_size=12), max_size=4), st.integers(1, 3))
def test_windows_bring_every_event_once_in_its_window(streams: list[list[Row]], pieces: int) -> None:
    before, count = -(2**60), 0
    for events, end in windows([stream(rows, pieces) for rows in streams]):
        assert (events.start >= before).all()
        assert end is None or (events.start < end).all()
        before, count = before if end is None else end, count + events.start.size
    assert count == sum(map(len, streams))


def test_memory_does_not_grow_with_long_calls() -> None:
    start = np.arange(1000)
    same = np.zeros(1000, np.int64)
    nested = Activity(start, start + 5000, same + NOT_RECORDED, same + NO_LANE, same, same)
    assert subject._going_on(nested, 1000).start.tolist() == [999]
    assert subject._going_on(NO_ACTIVITY, 5).start.size == 0


def test_names_of_least_time_are_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subject, "MAX_DETAILS", 4)
    (found,) = wall_time_of_lanes(
        [Lane(0, 100)], [stream([(10 * k, k + 1, FIRST_GAP, NO_LANE, 0, k) for k in range(6)], 2)]
    )
    assert max(found.details, key=lambda one: found.details[one]) == (FIRST_GAP, 5)
    assert len(found.details) <= 4
    assert found.exposed[FIRST_GAP] == 21
