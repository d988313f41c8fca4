"""Intervals: every instant looked at alone is the second method."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from profsvc.formulas.numerics.intervals import longest_behind, topmost, union_lengths

EVENTS = st.lists(st.tuples(st.integers(-20, 20), st.integers(-3, 15), st.integers(0, 3)), max_size=25)
FAR = 2**62


def columns(events: list[tuple[int, int, int]], shift: int = 0) -> tuple[list[int], list[int], list[int]]:
    start, length, rank = ([event[k] for event in events] for k in range(3))
    return [s + shift for s in start], [s + d + shift for s, d in zip(start, length, strict=True)], rank


@given(EVENTS, st.sampled_from([0, FAR, -FAR]))
def test_the_interval_on_top_of_each_instant(events: list[tuple[int, int, int]], shift: int) -> None:
    start, end, rank = columns(events, shift)
    found = topmost(*(np.array(x, np.int64) for x in (start, end, rank)))
    assert (found.end > found.start).all()
    assert (found.start[1:] == found.end[:-1]).all()
    shown = {}
    for begin, stop, top in zip(found.start.tolist(), found.end.tolist(), found.top.tolist(), strict=True):
        shown |= dict.fromkeys(range(begin, stop), top)
    for t in range(shift - 30, shift + 50):
        there = [(rank[i], start[i], i) for i in range(len(start)) if start[i] <= t < end[i]]
        assert shown.get(t, -1) == (max(there)[2] if there else -1)


@given(EVENTS)
def test_the_length_of_unions(events: list[tuple[int, int, int]]) -> None:
    start, end, group = columns(events)
    covered: list[set[int]] = [set() for _ in range(4)]
    for s, e, g in zip(start, end, group, strict=True):
        covered[g] |= set(range(s, e))
    assert union_lengths(*(np.array(x, np.int64) for x in (start, end, group)), 4).tolist() == list(map(len, covered))


@pytest.mark.parametrize("function", [lambda *x: topmost(*x), lambda *x: union_lengths(*x, 2)])
def test_what_is_no_interval_is_refused(function) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(TypeError, match="end has dtype float64; allowed: integers"):
        function([1], [2.5], [0])
    with pytest.raises(ValueError, match=r"start \(1,\), end \(2,\).*flat arrays of one length"):
        function([1], [2, 3], [0])
    function([], [], [])


@given(EVENTS)
def test_what_can_still_be_the_last_to_have_started(events: list[tuple[int, int, int]]) -> None:
    start, end, group = columns(events)
    wanted = set()
    for g in range(4):
        for t in range(-30, 50):  # all of them have begun
            there = [(start[i], i) for i in range(len(start)) if group[i] == g and end[i] > t]
            wanted |= {max(there)[1]} if there else set()
    assert longest_behind(*(np.array(x, np.int64) for x in (start, end, group))).tolist() == sorted(wanted)
