"""Hit ratios of the hierarchy: against two levels simulated line by line, limits, samples, and what is refused."""

from typing import Any

import numpy as np
import pytest

from profsvc.formulas.memory_hierarchy import (
    ALLOCATE,
    ATOMIC,
    LEVELS,
    LOAD,
    STORE,
    UNIFORM,
    Cache,
    Hierarchy,
    Trace,
    coalesce,
    hierarchy_mc,
)
from profsvc.formulas.numerics.flags import Flag
from tests.benchmarks.memory_hierarchy import H200_LIKE, trace
from tests.formulas.memory_hierarchy.test_cache import one_by_one

SMALL = Hierarchy(sms=4, slots=2, l1=Cache(8, 2), l2=Cache(16, 4))


def shared(blocks: int = 24, warps: int = 4, length: int = 20, lines: int = 400, seed: int = 0) -> Trace:
    """Warps that read lines of their own and lines of all, and write some."""
    rng = np.random.default_rng(seed)
    n = blocks * warps * length
    seq = np.tile(np.arange(length), blocks * warps)
    address = 128 * np.where(seq % 2, rng.integers(0, lines, n), rng.zipf(1.5, n) % lines)
    block, warp = np.repeat(np.arange(blocks), warps * length), np.repeat(np.arange(blocks * warps) % warps, length)
    return Trace(block, warp, seq, seq % 4, address, np.where(seq % 5 == 4, STORE, LOAD))


def test_one_warp_is_two_caches_line_by_line() -> None:
    rng = np.random.default_rng(2)
    lines, kind = rng.integers(0, 60, 300), rng.choice([LOAD, STORE, ATOMIC], 300)
    trace = Trace(0, 0, np.arange(300), 0, lines * 128, kind)
    got = hierarchy_mc(trace, Hierarchy(1, 1, Cache(4, 2), Cache(8, 4)), runs=2)
    loads = kind == LOAD
    l1 = np.array(one_by_one(lines[loads].tolist(), 4, 2))
    onward = np.ones(300, dtype=bool)
    onward[np.flatnonzero(loads)[l1]] = False
    l2 = np.array(one_by_one(lines[onward].tolist(), 8, 4))
    want = [l1.mean(), np.nan, l2[loads[onward]].mean(), l2[~loads[onward]].mean()]
    np.testing.assert_allclose(got.ratios, np.array([want] * 2).T)
    np.testing.assert_array_equal(got.dram_lines, (~l2).sum())
    assert (got.distribution.sd[[0, 2, 3]] == 0).all()


def test_stores_that_l1_keeps_make_later_loads_hit() -> None:
    trace = Trace(0, 0, [0, 1, 2], [1, 0, 0], [0, 0, 128], [STORE, LOAD, LOAD])
    around, kept = (hierarchy_mc(trace, SMALL._replace(l1_stores=way), runs=1) for way in ("around", ALLOCATE))
    np.testing.assert_array_equal(around.ratios[:, 0], [0, np.nan, 0.5, 0])
    np.testing.assert_array_equal(kept.ratios[:, 0], [0.5, 0, 0, 0])


@pytest.mark.parametrize("order", ["rate", "uniform"])
def test_spread_percentiles_and_sites(order: str) -> None:
    trace = shared()
    got = hierarchy_mc(trace, SMALL, order=order)
    assert got.ratios.shape == (len(LEVELS), 30)
    seen = ~np.isnan(got.distribution.mean)
    assert seen.tolist() == [True, False, True, True, True]
    q = got.distribution.quantiles[seen]
    assert (np.diff(q, axis=1) >= 0).all()
    assert (got.distribution.sd[seen] > 0).all()
    assert (got.lines, got.runs, got.flags) == (24 * 4 * 20, 30, 0)
    sites = got.sites
    assert sites.site.tolist() == [0, 1, 2, 3]
    assert sites.requests.sum() == 24 * 4 * 20
    np.testing.assert_array_equal(sites.lines_per_request, 1)
    again = hierarchy_mc(trace, SMALL, order=order)
    np.testing.assert_array_equal(got.ratios, again.ratios)
    tight = hierarchy_mc(trace, SMALL, order=order, tolerance=1e-9)
    assert not tight.distribution.reliable.any()
    wide = hierarchy_mc(trace, SMALL, order=order, tolerance=1.0)
    assert wide.distribution.reliable[seen].all()
    assert wide.distribution.converged[seen].all()


def test_a_larger_cache_and_limits() -> None:
    trace = shared()
    small, large = (hierarchy_mc(trace, SMALL._replace(l2=Cache(16, ways)), runs=5) for ways in (4, 1000))
    assert (large.ratios[2] >= small.ratios[2]).all()
    different = np.unique(np.asarray(trace.address)).size
    np.testing.assert_array_equal(large.dram_lines, different)
    cold = hierarchy_mc(trace._replace(address=np.arange(24 * 4 * 20) * 128), SMALL, runs=3)
    np.testing.assert_array_equal(cold.ratios[[0, 2, 3]], 0)


def test_blocks_in_one_slot_are_one_after_another_and_share_what_the_one_before_left() -> None:
    trace = Trace(np.repeat(np.arange(6), 8), 0, np.tile(np.arange(8), 6), 0, np.tile(np.arange(8), 6) * 128, LOAD)
    got = hierarchy_mc(trace, Hierarchy(1, 1, Cache(8, 1), Cache(8, 4)), runs=2)
    np.testing.assert_allclose(got.ratios[0], 5 / 6)
    elsewhere = hierarchy_mc(
        trace._replace(sm=np.repeat(np.arange(6), 8)), Hierarchy(6, 1, Cache(8, 1), Cache(8, 4)), 2
    )
    np.testing.assert_array_equal(elsewhere.ratios[0], 0)
    np.testing.assert_allclose(elsewhere.ratios[2], 5 / 6)


def test_threads_of_a_warp_are_one_request() -> None:
    lanes = np.arange(32)
    got = coalesce(
        Trace(0, 0, np.repeat([0, 1, 2], 32), 0, np.concatenate([4 * lanes, 128 * lanes, 4 * lanes + 64]), LOAD)
    )
    assert np.bincount(got.request).tolist() == [1, 32, 2]
    across = coalesce(Trace(0, 0, 0, 0, [126], LOAD, size=4))
    assert across.line.tolist() == [0, 1]
    run = hierarchy_mc(
        Trace(0, 0, np.repeat([0, 1], 32), np.repeat([0, 2], 32), np.tile(128 * lanes, 2), LOAD), SMALL, 1
    )
    assert run.sites.lines_per_request.tolist() == [32, 32]
    assert run.sites.requests.tolist() == [1, 1]


def test_above_the_budget_fewer_runs_are_made_and_it_is_said() -> None:
    trace = shared()
    whole = hierarchy_mc(trace, SMALL)
    fewer, fewest = (hierarchy_mc(trace, SMALL, budget=k * whole.lines) for k in (10, 1))
    assert (fewer.runs, fewest.runs) == (10, 3)
    assert fewer.flags == fewest.flags == Flag.EXTRAPOLATED
    assert not fewer.distribution.converged.any()
    np.testing.assert_array_equal(fewer.ratios, whole.ratios[:, :10])


def test_more_references_spread_less() -> None:
    short, long = (hierarchy_mc(shared(length=length), SMALL).distribution.sd for length in (5, 80))
    assert (long[[0, 2, 3]] < short[[0, 2, 3]]).all()


def test_nothing_and_what_is_refused() -> None:
    none = hierarchy_mc(Trace([], [], [], [], [], []), SMALL)
    assert none.flags == Flag.NOT_APPLICABLE
    assert np.isnan(none.ratios).all()
    assert (none.dram_lines == 0).all()
    good: dict[str, Any] = {"block": 0, "warp": 0, "seq": [0, 1], "site": 0, "address": [0, 128], "kind": LOAD}
    for wrong, message in (
        ({"address": [-1, 0]}, "address holds -1; allowed: 0 or more"),
        ({"size": 0}, "size holds 0; allowed: 1 or more"),
        ({"kind": 3}, "kind holds 3"),
        ({"site": [0, 0, 0]}, r"the lengths differ: .*site \(3,\)"),
        ({"epoch": [1, 0]}, "epoch falls within a warp"),
    ):
        with pytest.raises(ValueError, match=message):
            hierarchy_mc(Trace(**{**good, **wrong}), SMALL)
    with pytest.raises(TypeError, match="address has dtype float64"):
        coalesce(Trace(**{**good, "address": [0.5, 1.0]}))
    with pytest.raises(ValueError, match="sms 0, l2 ways 0; allowed: 1 or more"):
        hierarchy_mc(Trace(**good), SMALL._replace(sms=0, l2=Cache(1, 0)))
    with pytest.raises(ValueError, match="no form 'back'"):
        hierarchy_mc(Trace(**good), SMALL._replace(l1_stores="back"))
    with pytest.raises(ValueError, match="no form 'time'"):
        hierarchy_mc(Trace(**good), SMALL, order=UNIFORM.replace("uniform", "time"))


def test_the_trace_of_the_benchmark() -> None:
    got = hierarchy_mc(trace(20_000), H200_LIKE, runs=3)
    assert (got.lines, got.runs) == (20_000, 3)
    assert got.distribution.reliable[[0, 2, 3]].all()
