"""The joint bound: limits, order, and that nothing is promised beyond the time."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from profsvc.formulas.performance import useful_work as f

times = arrays(np.float64, (5, 4), elements=st.one_of(st.just(np.nan), st.floats(0, 1e12), st.floats(-1, 0)))
shares = arrays(np.float64, (5, 4), elements=st.one_of(st.just(np.nan), st.floats(0, 1)))
count = st.floats(0, 1e15)


@given(times, st.floats(1e-3, 1e12), st.one_of(st.just(float("nan")), st.floats(-1, 1e13)))
def test_the_saving_is_less_than_the_time(unit_times: np.ndarray, duration: float, ramp: float) -> None:
    bound = f.joint_bound(duration, ramp, unit_times, np.full(4, 0.8))
    known = bound.unit >= 0
    assert ((bound.speedup >= 1) & (bound.speedup <= 1.000001e9))[known].all()
    assert ((bound.saving >= 0) & (bound.saving < 1))[known].all()
    assert ((bound.ideal > 0) & (bound.ideal <= duration))[known].all()
    assert np.isnan(bound.speedup[~known]).all()


@given(times)
def test_more_useful_work_means_less_potential(unit_times: np.ndarray) -> None:
    less = f.joint_bound(1e6, 0.0, unit_times, np.full(4, 0.8)).speedup
    more = f.joint_bound(1e6, 0.0, unit_times * 2, np.full(4, 0.8)).speedup
    known = ~np.isnan(less)
    assert (more[known] <= less[known] * (1 + 1e-12)).all()


def test_the_source_is_the_case_of_one_memory_and_one_arithmetic_unit() -> None:
    memthr, ariththr = 0.25, 0.1
    assert f.joint_bound(1.0, 0.0, [memthr, ariththr], [1.0, 1.0]).speedup == pytest.approx(1 / memthr)


def test_units_of_time_cancel() -> None:
    in_ns = f.joint_bound(3e5, 2e3, [5e4, 1e4], [0.8, 0.9])
    in_us = f.joint_bound(300.0, 2.0, [50.0, 10.0], [0.8, 0.9])
    assert in_ns.speedup == pytest.approx(float(in_us.speedup))


def test_a_duration_that_is_none_gives_none() -> None:
    bound = f.joint_bound([np.nan, 0.0, -1.0, np.inf], 0.0, np.ones((4, 2)), [1.0, 1.0])
    assert np.isnan(bound.speedup).all()
    assert (bound.unit == -1).all()


@given(count, count, count)
def test_useful_parts_are_parts(a: float, b: float, c: float) -> None:
    assert 0 <= f.useful_bytes(a, b) <= a
    assert 0 <= f.operand_limited(a, b, c) <= a
    assert 0 <= f.payload_instructions(a, 0.5, b, c) <= a / 2


@given(count, count, count)
def test_larger_tiles_need_fewer_operands(a: float, b: float, c: float) -> None:
    four, eight = (f.operand_limited(a, b, 0.0, c, share) for share in (0.5, 0.75))
    assert 0 <= eight <= four <= f.operand_limited(a, b, 0.0) <= a


def test_a_copy_uses_all_it_moves() -> None:
    assert f.operand_limited(100.0, 0.0, 0.0) == 100.0
    assert f.operand_limited(100.0, np.nan, 0.0) == 100.0
