"""Work and depth: against a scheduler of random graphs, limits, and the greedy search on all subsets."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from profsvc.formulas.numerics.flags import Flag
from profsvc.formulas.performance.work_depth import (
    accept,
    available_parallelism,
    brent_time,
    max_speedup,
    next_candidates,
    reduction_tree,
)
from tests.formulas.contract import holds


def scheduled(parents: list[set[int]], p: int) -> tuple[int, int]:
    """Steps a greedy scheduler takes on p processors, and the longest chain."""
    done: set[int] = set()
    steps = 0
    while len(done) < len(parents):
        ready = [k for k, needs in enumerate(parents) if k not in done and needs <= done]
        done |= set(ready[:p])
        steps += 1
    depth: list[int] = []
    for needs in parents:
        depth.append(1 + max((depth[k] for k in needs), default=0))
    return steps, max(depth)


@given(st.data(), st.integers(1, 14), st.integers(1, 5))
def test_a_scheduler_keeps_the_time_of_brent(data: st.DataObject, n: int, p: int) -> None:
    parents = [data.draw(st.sets(st.integers(0, k - 1), max_size=3)) if k else set() for k in range(n)]
    steps, depth = scheduled(parents, p)
    assert max(n / p, depth) <= steps <= brent_time(n, depth, p).value + 1e-9
    assert n / steps <= max_speedup(p, n, depth).value + 1e-9


@given(st.integers(1, 10**6), st.integers(1, 10**6), st.integers(1, 1000))
def test_limits_of_brent(work: int, depth: int, p: int) -> None:
    W, D = max(work, depth), min(work, depth)
    assert brent_time(W, D, 1).value == W
    np.testing.assert_allclose(brent_time(W, D, 1e15).value, D, rtol=1e-6)
    assert brent_time(W, D, p + 1).value <= brent_time(W, D, p).value * (1 + 1e-12)
    assert brent_time(W, D, p).value <= 2 * max(W / p, D)
    assert W / brent_time(W, D, p).value <= max_speedup(p, W, D).value * (1 + 1e-12)
    assert max_speedup(p, W, D).value == min(p, available_parallelism(W, D).value)


@pytest.mark.parametrize("levels", range(6))
def test_a_tree_counted_node_by_node(levels: int) -> None:
    n = 2**levels
    nodes, width = 0, n
    while width >= 1:
        nodes, width = nodes + width, width // 2
    got = reduction_tree(n)
    assert (got.work, got.depth, got.flags) == (nodes, levels + 1, 0)


def test_edges() -> None:
    assert reduction_tree(5).flags == Flag.TAIL_EFFECT
    assert reduction_tree(5).depth == 4
    assert reduction_tree(0.5).flags == Flag.INPUT_SUSPECT
    assert brent_time(5, 10, 2).flags == Flag.INPUT_SUSPECT
    assert brent_time(5, 1, 0).flags == available_parallelism(5, 0).flags == Flag.ZERO_DENOM
    assert max_speedup(4, 10, 1, 0.5).flags == Flag.INPUT_SUSPECT
    assert max_speedup(4, 10, 1, 0).flags == Flag.ZERO_DENOM


def test_contract() -> None:
    holds(brent_time, {"W": 32, "D": 5, "p": 6})
    holds(available_parallelism, {"W": 32, "D": 5})
    holds(max_speedup, {"p": 6, "W": 32, "D": 5, "excess": 2})
    holds(reduction_tree, {"n": 16})


@given(st.lists(st.floats(-5, 20), min_size=1, max_size=6))
def test_greedy_finds_the_best_of_all_subsets_where_gains_add(gains: list[float]) -> None:
    chosen = np.zeros(len(gains), dtype=np.bool_)
    tried, more = 0, True
    while more:
        sets = next_candidates(chosen)
        tried += len(sets)
        stage = accept(chosen, [np.dot(s, gains) for s in [chosen, *sets]])
        chosen, more = stage.chosen, bool(stage.open)
    best = max(np.dot(s, gains) for s in product([False, True], repeat=len(gains)))
    np.testing.assert_allclose(np.dot(chosen, gains), best)
    assert tried <= len(gains) * (len(gains) + 1) / 2


def test_greedy_stops_and_says_what_it_cannot_take() -> None:
    stage = accept([True, False], [3.0, np.nan])
    assert (int(stage.added), stage.chosen.tolist(), bool(stage.open)) == (-1, [True, False], False)
    assert next_candidates([True, True]).shape == (0, 2)
    assert accept([True, True], [3.0]).added == -1
    with pytest.raises(ValueError, match=r"scores have shape \(1,\); allowed: \(2,\)"):
        accept([True, False], [3.0])
    with pytest.raises(TypeError, match="chosen has dtype int64; allowed: booleans"):
        next_candidates([1, 0])
    with pytest.raises(ValueError, match="allowed: one axis"):
        next_candidates([[True]])
