import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from profsvc.formulas.criteria import device_sync, host_sync
from profsvc.formulas.numerics.flags import Flag
from tests.benchmarks.merged_launches import changes

# (group, start, duration)
launches = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 60), st.integers(0, 20)), min_size=1, max_size=40)
fraction = st.floats(0, 1)


def columns(rows: list[tuple[int, ...]]) -> tuple[np.ndarray, ...]:
    return tuple(np.array(column) for column in zip(*rows, strict=True))


@given(launches)
def test_union_against_a_grid(rows: list[tuple[int, ...]]) -> None:
    group, start, duration = columns(rows)
    result = host_sync(start, duration, group)
    for k, name in enumerate(result.group):
        covered: set[int] = set()
        for g, s, d in rows:
            covered |= set(range(s, s + d)) if g == name else set()
        assert result.busy[k] == len(covered)
        of = group == name
        span = (start + duration)[of].max() - start[of].min()
        assert result.span[k] == span
        assert result.gaps[of].sum() == span - len(covered)
        assert result.value[k] == (len(covered) / span if span else 1)
        assert result.concurrency[k] >= 1


@given(launches)
def test_range_and_speedup(rows: list[tuple[int, ...]]) -> None:
    group, start, duration = columns(rows)
    result = host_sync(start, duration, group)
    assert ((result.value >= 0) & (result.value <= 1)).all()
    assert (result.speedup >= 1).all()
    assert not (result.flags & (Flag.RAW_OUT_OF_RANGE | Flag.CLIPPED)).any()


seconds = st.lists(st.tuples(st.integers(0, 2), st.floats(0, 1e3), st.floats(0, 10)), min_size=1, max_size=30)


@given(seconds, st.randoms(use_true_random=False), st.sampled_from(["as_published", "consistent"]))
def test_order_of_rows_changes_no_bit(rows: list[tuple[int, float, float]], random, form: str) -> None:
    shuffled = random.sample(range(len(rows)), len(rows))
    group, start, duration = columns(rows)
    a = host_sync(start, duration, group, form)
    b = host_sync(start[shuffled], duration[shuffled], group[shuffled], form)
    for x, y in zip(a._replace(gaps=0), b._replace(gaps=0), strict=True):
        np.testing.assert_array_equal(x, y)
    assert a.gaps.sum() == pytest.approx(b.gaps.sum())


@given(seconds, st.sampled_from(["as_published", "consistent"]))
def test_groups_as_one_at_a_time(rows: list[tuple[int, float, float]], form: str) -> None:
    group, start, duration = columns(rows)
    whole = host_sync(start, duration, group, form)
    for k, name in enumerate(whole.group):
        of = group == name
        alone = host_sync(start[of], duration[of], form=form)
        for field in ("raw", "value", "busy", "span", "concurrency", "speedup", "flags"):
            np.testing.assert_array_equal(getattr(alone, field), getattr(whole, field)[k])
        np.testing.assert_array_equal(alone.gaps, whole.gaps[of])


@given(st.lists(st.tuples(st.integers(0, 50), st.integers(1, 20)), min_size=1, max_size=20))
def test_published_is_the_printed_quotient(rows: list[tuple[int, int]]) -> None:
    start, duration = columns(sorted(rows, key=lambda row: (row[0], row[0] + row[1])))
    printed = duration.sum() / (start[-1] + duration[-1] - start[0])
    assert host_sync(start, duration, form="as_published").value == printed


def test_nanoseconds_of_an_epoch_are_exact() -> None:
    start = np.array([1_700_000_000_000_000_001, 1_700_000_000_000_000_004], dtype=np.int64)
    for dtype in (np.int64, np.uint64):
        result = host_sync(start.astype(dtype), np.array([1, 1], dtype=dtype))
        assert (float(result.span), float(result.busy), float(result.value)) == (4.0, 2.0, 0.5)
    far = np.array([np.iinfo(np.int64).min, np.iinfo(np.int64).max])
    assert host_sync(far, [1, 1]).span == 2.0**64


def test_seconds_that_only_rounding_makes_overlap() -> None:
    start = 1.7e9 + np.arange(50) * 0.1
    assert host_sync(start, np.full(50, 0.1)).flags == 0
    assert host_sync(start, np.full(50, 0.11)).flags == Flag.OVERLAP


def test_whole_start_with_durations_that_were_rounded() -> None:
    assert host_sync([0, 3, 6], np.array([0.3, 0.3, 0.3]) * 10 + 4e-16).flags == 0
    assert host_sync([10**15, 10**15 + 3], [4, 3]).flags == Flag.OVERLAP


def test_overlap_is_flagged_in_both_forms() -> None:
    assert host_sync([0, 5], [10, 10]).flags == Flag.OVERLAP
    assert host_sync([0, 0], [10, 10], form="as_published").flags == Flag.OVERLAP | Flag.RAW_OUT_OF_RANGE
    assert host_sync([0, 10], [10, 10]).flags == 0


def test_edges() -> None:
    none = host_sync([], [])
    assert np.isnan([none.value, none.speedup]).all()
    assert none.flags == Flag.NOT_APPLICABLE
    assert host_sync([], [], []).value.shape == (0,)
    one = host_sync(7, 3)
    assert (float(one.value), one.gaps.tolist(), int(one.flags)) == (1.0, [0.0], 0)
    instant = host_sync([7, 7], [0, 0])
    assert (float(instant.value), int(instant.flags)) == (1.0, Flag.ZERO_DENOM)
    instants = host_sync([7, 9], [0, 0])
    assert (float(instants.value), float(instants.speedup), int(instants.flags)) == (0.0, np.inf, Flag.ZERO_DENOM)


@pytest.mark.parametrize(("start", "duration"), [(np.nan, 1.0), (np.inf, 1.0), (0.0, -1.0), (0.0, np.nan)])
def test_a_suspect_row_makes_its_group_nan(start: float, duration: float) -> None:
    result = host_sync([start, 5.0, 0.0, 20.0], [duration, 1.0, 10.0, 10.0], [1, 1, 2, 2])
    np.testing.assert_allclose(result.value, [np.nan, 2 / 3])
    assert result.flags.tolist() == [Flag.INPUT_SUSPECT, 0]


def test_copies_are_gaps_unless_asked_for() -> None:
    start, duration, group = [0, 10, 30, 0], [10, 10, 10, 5], [1, 1, 1, 2]
    is_copy = [False, True, False, True]
    kernels = host_sync(start, duration, group, is_copy=is_copy)
    both = host_sync(start, duration, group, is_copy=is_copy, busy="kernels+copies")
    np.testing.assert_array_equal(kernels.value, [0.5, np.nan])
    assert kernels.flags.tolist() == [0, Flag.NOT_APPLICABLE]
    assert kernels.gaps.tolist() == [0.0, 0.0, 20.0, 0.0]
    assert both.value.tolist() == [0.75, 1.0]
    with pytest.raises(ValueError, match="allowed: 'kernels', 'kernels\\+copies'"):
        host_sync(start, duration, busy="all")
    with pytest.raises(TypeError, match="is_copy has dtype"):
        host_sync(start, duration, is_copy=[0, 1, 0, 0])


def test_arguments_stay_as_they_are() -> None:
    arrays = [np.array(x) for x in ([5, 0, 7], [1, 2, 3], [1, 0, 1])]
    for x in arrays:
        x.flags.writeable = False
    host_sync(*arrays)
    assert [x.tolist() for x in arrays] == [[5, 0, 7], [1, 2, 3], [1, 0, 1]]


def test_wrong_arguments() -> None:
    with pytest.raises(ValueError, match="no form 'issue'"):
        host_sync([0], [1], form="issue")
    with pytest.raises(TypeError, match="start has dtype datetime64"):
        host_sync(np.array(["2026-01-01"], dtype="datetime64[ns]"), [1])
    with pytest.raises(ValueError, match="do not broadcast"):
        host_sync([0, 1], [1, 2, 3])
    with pytest.raises(ValueError, match="flat arrays"):
        host_sync(np.zeros((2, 2)), 1)


@given(fraction, fraction)
def test_device_sync_range(stall: float, active: float) -> None:
    result = device_sync(stall, active * 640, 64, 10)
    assert 0 <= result.value <= 1
    assert result.speedup >= 1
    saved = device_sync(stall, active * 640, 64, 10, "as_published").speedup
    np.testing.assert_allclose(1 - 1 / result.speedup, saved, atol=1e-12)


def test_device_sync_edges() -> None:
    beyond = device_sync(0.5, 20, 1, 10)
    assert (float(beyond.share), float(beyond.speedup), int(beyond.flags)) == (0.0, 1.0, Flag.INPUT_SUSPECT)
    stopped = device_sync(0.5, 20, 1, 0)
    assert np.isnan([stopped.share, stopped.speedup]).all()
    assert (float(stopped.value), int(stopped.flags)) == (0.5, Flag.ZERO_DENOM)
    free = device_sync(0.5, 5, 1, 10, barriers=0)
    assert (float(free.value), float(free.share), float(free.speedup)) == (1.0, 0.0, 1.0)
    assert free.flags & Flag.NOT_APPLICABLE
    all_stalled = device_sync(1.0, 0, 1, 10)
    assert all_stalled.speedup == np.inf


def test_device_sync_by_issue_slots() -> None:
    known = device_sync(0.5, 10, 1, 10, "issue", issue_utilization=0.6)
    assert float(known.share) == pytest.approx(0.4)
    assert float(known.speedup) == pytest.approx(1.25)
    unknown = device_sync(0.5, 10, 1, 10, "issue", issue_utilization=[np.nan, 60.0, -1.0])
    np.testing.assert_array_equal(unknown.share, [1.0, 0.0, np.nan])
    assert unknown.flags.tolist() == [Flag.UPPER_BOUND, Flag.INPUT_SUSPECT, Flag.INPUT_SUSPECT]


def test_the_share_of_the_time_in_kernels_tells_what_fewer_launches_saved_on_a_device() -> None:
    known = changes()
    assert len(known) == 9
    for one in known:
        # The clock of the program runs in its loop, the trace counts from the kernel before it.
        assert one.predicted == pytest.approx(one.traced, rel=0.01)
        assert one.untraced <= one.bound * 1.01
    saved = {(one.mode, one.values): one.untraced for one in known}
    assert saved["graph_node", 65536] > 2 > saved["graph_node", 1048576] > 1.1 > saved["graph_node", 8388608] > 1
    # Where kernels run almost all of the time, nothing is promised and nothing was gained.
    assert all(one.bound < 1.06 > one.untraced for one in known if one.values == 8388608 and one.mode != "merged")
