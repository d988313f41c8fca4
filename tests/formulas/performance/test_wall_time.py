"""The wall time of a device: a sweep over single instants is the second method."""

import tracemalloc

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from profsvc.formulas.performance.wall_time import wall_time

EVENTS = st.lists(st.tuples(st.integers(-20, 40), st.integers(-2, 15), st.integers(0, 4)), max_size=25)


@given(EVENTS, st.integers(-10, 20), st.integers(-5, 30))
def test_every_instant_counts_once(events: list[tuple[int, int, int]], begin: int, length: int) -> None:
    start, last, category = (np.array([event[k] for event in events], np.int64) for k in range(3))
    end = start + last
    found = wall_time(start, end, category, 5, begin, begin + length)
    exposed, active, uncovered, pieces = [0] * 5, [0] * 5, 0, [0] * len(events)
    for t in range(begin, begin + length):
        there = {
            c: i for i, c in sorted(enumerate(category), key=lambda x: (start[x[0]], x[0])) if start[i] <= t < end[i]
        }
        for c in there:
            active[c] += 1
        if there:
            exposed[min(there)] += 1
            pieces[there[min(there)]] += 1
        else:
            uncovered += 1
    assert (found.exposed.tolist(), found.active.tolist(), found.uncovered) == (exposed, active, uncovered)
    assert found.exposed.sum() + found.uncovered == max(length, 0)
    assert np.bincount(found.piece_top, found.piece_length, len(events)).tolist() == pieces


def test_times_far_from_zero_lose_nothing() -> None:
    begin = 2**62
    found = wall_time([begin, begin + 3], [begin + 1, begin + 2**40], [0, 1], 2, begin, begin + 2**40 + 5)
    assert found.exposed.tolist() == [1, 2**40 - 3]
    assert found.uncovered == 2 + 5


def test_many_events_need_memory_in_proportion() -> None:
    peaks = []
    for events in (50_000, 200_000):
        start = np.arange(events, dtype=np.int64) * 10
        tracemalloc.start()
        found = wall_time(start, start + np.arange(events) % 30, np.arange(events) % 3, 3, 0, events * 10)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
        assert found.exposed.sum() + found.uncovered == events * 10
    assert peaks[1] < 5 * peaks[0]
