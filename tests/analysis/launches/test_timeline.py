"""Launches in pieces give the numbers of all launches at once."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from profsvc.analysis.launches import criteria
from profsvc.analysis.launches.timeline import append_launches, is_in_order
from profsvc.formulas.criteria import host_sync

EPOCH = 1_700_000_000_000_000_000
whole = st.tuples(st.integers(0, 60), st.integers(0, 20))
# No tool prints parts of a femtosecond; near the least float, quotients of durations overflow.
printed = st.tuples(st.integers(0, 10**9), st.just(0.0) | st.floats(1e-6, 1e6))
launches = st.one_of(st.lists(whole, min_size=1, max_size=40), st.lists(printed, min_size=1, max_size=40))


def arrays(rows: list[tuple[int, float]], origin: int = 0) -> tuple[np.ndarray, np.ndarray]:
    start, duration = zip(*rows, strict=True)
    return np.array(start, dtype=np.int64) + origin, np.array(duration, dtype=np.float64)


@given(launches, st.lists(st.integers(0, 40), max_size=5), st.sampled_from([0, EPOCH, -(2**62)]))
@example([(0, 1.0), (0, 1.5638980372554189e-145)], [], 0)
def test_pieces_give_what_the_formula_gives(rows: list[tuple[int, float]], cuts: list[int], origin: int) -> None:
    start, duration = arrays(sorted(rows, key=lambda row: row[0]), origin)
    line, places = None, sorted({0, len(start), *(min(cut, len(start)) for cut in cuts)})
    for begin, end in pairwise(places):
        assert is_in_order(line, start[begin:end])
        line = append_launches(line, start[begin:end], duration[begin:end])
    row = criteria.host_sync(line)
    ours, published = host_sync(start, duration), host_sync(start, duration, form="as_published")
    assert row["value"] == pytest.approx(float(ours.value), rel=1e-12)
    assert row["speedup"] == pytest.approx(float(ours.speedup), rel=1e-12)
    assert row["value_as_published"] == pytest.approx(float(published.raw), rel=1e-12, nan_ok=True)
    assert row["flags"] == int(ours.flags)
    assert line is not None
    assert line.first_ns == start[0]
    assert line.span_ns == float(ours.span)


@given(launches, st.integers(0, 40))
def test_what_is_out_of_order_is_told(rows: list[tuple[int, float]], cut: int) -> None:
    start, duration = arrays(rows)
    begin = append_launches(None, np.sort(start[:cut]), duration[:cut])
    expected = bool((np.diff(start[cut:]) >= 0).all()) and not (start[:cut, np.newaxis] > start[cut:][:1]).any()
    assert is_in_order(begin, start[cut:]) == expected


@pytest.mark.parametrize("wrong", [-1.0, np.inf])
def test_a_duration_that_is_none_makes_the_whole_unknown(wrong: float) -> None:
    line = append_launches(append_launches(None, np.array([0]), np.array([wrong])), np.array([5]), np.array([1.0]))
    ours = host_sync(np.array([0, 5]), np.array([wrong, 1.0]))
    row = criteria.host_sync(line)
    assert np.isnan(row["value"])
    assert row["flags"] == int(ours.flags)


def test_no_launch_makes_no_timeline() -> None:
    none = np.array([], dtype=np.int64)
    assert append_launches(None, none, none.astype(float)) is None
    assert is_in_order(None, none)
    assert "start times" in criteria.host_sync(None)["reason"]
