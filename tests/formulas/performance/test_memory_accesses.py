"""Bank conflicts, transactions and partitions against counting lane by lane, and their limits."""

import math
from collections import Counter
from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from profsvc.formulas.numerics.flags import Flag
from profsvc.formulas.performance.memory_accesses import bank_degree, chain_stride, partition_load, transactions
from tests.formulas.contract import holds

addresses = st.lists(st.tuples(st.integers(0, 2**48), st.booleans()), min_size=1, max_size=32)
close = st.lists(st.tuples(st.integers(0, 600), st.booleans()), min_size=1, max_size=32)
FUNCTIONS = (bank_degree, lambda a, **k: transactions(a, 4, **k), partition_load)


@given(st.one_of(addresses, close), st.sampled_from([16, 32]), st.sampled_from([4, 8]))
def test_ways_lane_by_lane(lanes: list[tuple[int, bool]], banks: int, width: int) -> None:
    words = {address // width for address, on in lanes if on}
    ways = max(Counter(word % banks for word in words).values(), default=0)
    got = bank_degree([a for a, _ in lanes], banks, width, [on for _, on in lanes])
    assert got.value == ways
    assert bool(got.flags & Flag.NOT_APPLICABLE) == (ways == 0)


@given(st.one_of(addresses, close), st.sampled_from([1, 4, 16]), st.sampled_from([32, 128]))
def test_segments_lane_by_lane(lanes: list[tuple[int, bool]], size: int, segment: int) -> None:
    touched = {byte // segment for address, on in lanes if on for byte in range(address, address + size)}
    got = transactions([a for a, _ in lanes], size, segment, active=[on for _, on in lanes])
    assert got.value == len(touched)


@given(st.integers(1, 64), st.integers(0, 1000))
def test_ways_of_a_stride_are_its_common_divisor_with_the_banks(stride: int, start: int) -> None:
    assert bank_degree(4 * (start + stride * np.arange(16)), banks=16).value == math.gcd(stride, 16)
    assert bank_degree(4 * (start + stride * np.arange(32))).value == math.gcd(stride, 32)


@given(st.one_of(addresses, close))
def test_partitions_request_by_request(lanes: list[tuple[int, bool]]) -> None:
    counted = Counter(address // 256 % 8 for address, on in lanes if on)
    got = partition_load([a for a, _ in lanes], active=[on for _, on in lanes])
    assert got.requests.tolist() == [counted[k] for k in range(8)]
    assert 1 <= got.load <= 8
    if counted:
        assert got.load == pytest.approx(8 * max(counted.values()) / sum(counted.values()))


def test_strict_rule() -> None:
    lane = np.arange(16)
    on = lane % 3 > 0
    assert transactions(64 + 4 * lane, 4, 64, "strict").value == 1
    assert transactions(64 + 4 * lane, 4, 64, "strict", on).value == 1
    assert transactions(60 + 4 * lane, 4, 64, "strict", on).value == on.sum()
    assert transactions(128 + 8 * lane, 8, 64, "strict").value == 1
    assert transactions(64 + 8 * lane, 8, 64, "strict").value == 16
    assert transactions(64 + 4 * np.roll(lane, 1), 4, 64, "strict").value == 16
    assert transactions(64 + 4 * lane, 4, 64, "strict", on & False).value == 0


@pytest.mark.parametrize("function", FUNCTIONS, ids=["bank_degree", "transactions", "partition_load"])
def test_many_warps_at_once_and_what_is_no_address(function: Any) -> None:
    rng = np.random.default_rng(3)
    warps = rng.integers(0, 4096, (3, 5, 32))
    headline = "load" if function is partition_load else "value"
    together = function(warps)
    for place in np.ndindex(3, 5):
        assert getattr(together, headline)[place] == getattr(function(warps[place]), headline)
    warps[1, 2, 7] = -4
    again = function(warps)
    assert np.isnan(getattr(again, headline)[1, 2])
    assert again.flags[1, 2] == Flag.INPUT_SUSPECT
    assert np.isnan(getattr(again, headline)).sum() == 1
    off = np.ones(32, dtype=np.bool_)
    off[7] = False
    assert not function(warps, active=off).flags.any()
    none = function(np.zeros((2, 0), dtype=np.int64))
    assert none.flags.tolist() == [Flag.NOT_APPLICABLE] * 2


@pytest.mark.parametrize("function", FUNCTIONS, ids=["bank_degree", "transactions", "partition_load"])
def test_wrong_dtype_and_shape(function: Any) -> None:
    with pytest.raises(TypeError, match="address has dtype float64; allowed: integers"):
        function([0.0, 4.0])
    with pytest.raises(ValueError, match="lanes along the last axis"):
        function(4)
    with pytest.raises(TypeError, match="active has dtype int64; allowed: booleans"):
        function([0, 4], active=[1, 1])
    with pytest.raises(ValueError, match=r"active has shape \(2, 2\); allowed: \(2,\)"):
        function([0, 4], active=[[True, True], [True, False]])


def test_size_and_rule() -> None:
    with pytest.raises(ValueError, match="size is 64 bytes; allowed: 1 to the 32 of the segment"):
        transactions([0], 64)
    with pytest.raises(ValueError, match="size is 0 bytes"):
        transactions([0], 0)
    with pytest.raises(ValueError, match="no form 'lax'; allowed: 'strict', 'relaxed'"):
        transactions([0], 4, rule="lax")


def test_a_chain_of_loads_goes_in_one_stride() -> None:
    steps = np.cumsum([chain_stride(128, 128, "multiply").value] * 5)
    assert np.diff(steps).tolist() == [16384.0] * 4
    with pytest.raises(ValueError, match="no form 'divide'; allowed: 'add', 'multiply'"):
        chain_stride(1, 2, "divide")
    holds(chain_stride, {"loaded": 8192.0, "operand": 2.0})
    holds(partial(chain_stride, operation="multiply"), {"loaded": 8192.0, "operand": 2.0})
