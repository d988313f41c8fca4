"""A trace in parts: as the whole one, left out by whole blocks, through caches some lines at a time, and refusals."""

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from profsvc.formulas.memory_hierarchy import (
    ALLOCATE,
    LOAD,
    STORE,
    Cache,
    Hierarchy,
    Trace,
    hierarchy_mc,
    hierarchy_of,
    pack,
    simulation,
    warp_streams,
)
from profsvc.formulas.memory_hierarchy.lru import Cached, hits
from profsvc.formulas.numerics.flags import Flag
from tests.benchmarks.memory_hierarchy import parts

SMALL = Hierarchy(sms=3, slots=2, l1=Cache(4, 2), l2=Cache(8, 4), l1_stores=ALLOCATE)


def made(blocks: int = 9, warps: int = 3, length: int = 12, seed: int = 0) -> Trace:
    rng = np.random.default_rng(seed)
    n = blocks * warps * length
    seq = np.tile(np.arange(length), blocks * warps)
    block, warp = np.repeat(np.arange(blocks), warps * length), np.repeat(np.arange(blocks * warps) % warps, length)
    site = 100 - seq % 5
    kind = np.where(seq % 4 == 3, STORE, LOAD)
    return Trace(block, warp, seq, site, rng.integers(0, 9000, n), kind, 8, seq // 5, block * 7 % 5)


def cut(trace: Trace, warps: list[int]) -> list[Trace]:
    """Parts that end behind so many warps each."""
    size = np.asarray(trace.block).size
    of = np.cumsum(np.r_[True, np.diff(np.asarray(trace.block) * 1000 + np.asarray(trace.warp)) != 0]) - 1
    ends = [0, *(int(np.searchsorted(of, n)) for n in sorted(warps)), size]
    whole = [np.broadcast_to(np.asarray(x), size) for x in trace]
    return [Trace(*(x[a:b] for x in whole)) for a, b in pairwise(ends)]


@given(st.lists(st.integers(1, 26), max_size=6))
def test_parts_are_the_whole(warps: list[int]) -> None:
    for got, want in zip(pack(cut(made(), warps)), pack([made()]), strict=True):
        np.testing.assert_array_equal(got, want)


def test_lanes_in_any_order_are_one_request() -> None:
    trace = made()
    shuffled = np.random.default_rng(1).permutation(np.asarray(trace.block).size)
    mixed = Trace(*(np.broadcast_to(np.asarray(x), shuffled.size)[shuffled] for x in trace))
    for got, want in zip(pack([mixed]), pack([trace]), strict=True):
        np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("order", ["rate", "uniform"])
def test_some_lines_at_a_time_are_all_at_once(order: str, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = hierarchy_mc(made(), SMALL, runs=4, order=order)
    for at_once in (1, 7, 100):
        monkeypatch.setattr(simulation, "MAX_STREAMS_AT_ONCE", at_once)
        monkeypatch.setattr(warp_streams, "MAX_STREAMS_AT_ONCE", at_once)
        monkeypatch.setattr(warp_streams, "MAX_PIECES_AT_ONCE", at_once)
        got = hierarchy_mc(made(), SMALL, runs=4, order=order)
        np.testing.assert_array_equal(got.ratios, whole.ratios)
        np.testing.assert_array_equal(got.dram_lines, whole.dram_lines)
        for a, b in zip(got.sites, whole.sites, strict=True):
            np.testing.assert_array_equal(a, b)


def one_by_one(used: list[tuple[int, int, int]], ways: int) -> list[int]:
    """Sectors that each reference finds in caches of three sets, each a list of lines with their sectors."""
    caches: dict[tuple[int, int], dict[int, int]] = {}
    found = []
    for line, cache, sectors in used:
        lines = caches.setdefault((cache, line % 3), {})
        found.append(lines.get(line, 0))
        lines[line] = lines.pop(line, 0) | sectors
        if len(lines) > ways:
            del lines[next(iter(lines))]
    return found


@given(
    st.lists(st.tuples(st.integers(0, 12), st.integers(0, 1), st.integers(1, 15)), max_size=60),
    st.lists(st.integers(0, 60), max_size=5),
    st.integers(1, 4),
)
def test_a_cache_goes_on_where_the_part_before_ended(
    used: list[tuple[int, int, int]], ends: list[int], ways: int
) -> None:
    line, cache = (np.array([row[k] for row in used], dtype=np.int64) for k in (0, 1))
    sectors = np.array([row[2] for row in used], dtype=np.uint8)
    place = cache * 3 + line % 3
    cached, at = Cached(ways), [0, *sorted(ends), 60]
    found = [cached.present(line[a:b], place[a:b], sectors[a:b]) for a, b in pairwise(at)]
    np.testing.assert_array_equal(np.concatenate(found), one_by_one(used, ways))
    np.testing.assert_array_equal(np.concatenate(found) > 0, hits(line, place, ways))
    assert np.bincount(cached.place, minlength=1).max() <= ways


@pytest.mark.parametrize("warps", [[], [3], [1, 2, 4, 5, 7, 20]])
def test_blocks_that_do_not_fit_are_left_out_whole(warps: list[int]) -> None:
    some = pack(cut(made(), warps), most=40)
    kept = np.unique(some.block)
    assert kept.size + some.left_out == 9
    np.testing.assert_array_equal(kept, np.arange(kept.size))
    want = pack([Trace(*(x[np.asarray(made().block) < kept.size] for x in np.broadcast_arrays(*made())))])
    for got, expected in zip(some[:-1], want[:-1], strict=True):
        np.testing.assert_array_equal(got, expected)
    result = hierarchy_of(some, SMALL)
    assert result.flags == (Flag.EXTRAPOLATED if some.left_out else 0)


def test_a_block_larger_than_what_is_kept_is_kept_as_far_as_it_goes() -> None:
    some = pack(cut(made(blocks=1), [1, 2]), most=1)
    assert (some.left_out, np.unique(some.warp).tolist()) == (0, [0])


def test_nothing() -> None:
    none = pack([])
    assert (none.line.size, none.left_out) == (0, 0)
    assert hierarchy_of(none, SMALL).flags == Flag.NOT_APPLICABLE


def test_the_parts_of_the_benchmark() -> None:
    packed = pack(parts(20_000))
    assert packed.line.size == 20_000
    assert hierarchy_of(packed, SMALL, runs=1).runs == 1


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ([{"block": 1}, {"block": 0}], r"block 0, warp 0 follow \(1, 0\); allowed: parts of warps that ascend"),
        ([{}, {}], r"block 0, warp 0 follow \(0, 0\)"),
        ([{"sm": 0}, {"warp": 1, "sm": 1}], "a block has several sm"),
        ([{"sm": [0, 1]}], "a block has several sm"),
        ([{"epoch": [1, 0]}], "epoch falls within a warp"),
        ([{"address": [-1, 0]}], "address holds -1"),
    ],
)
def test_what_is_refused(given: list[dict[str, Any]], message: str) -> None:
    good: dict[str, Any] = {"block": 0, "warp": 0, "seq": [0, 1], "site": 0, "address": [0, 128], "kind": LOAD}
    with pytest.raises(ValueError, match=message):
        pack([Trace(**{**good, **one}) for one in given])
