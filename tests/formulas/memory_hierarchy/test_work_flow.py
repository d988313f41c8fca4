"""The work-flow graph: visits against walks, the timing model it must agree with, and each kind of stall."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from profsvc.formulas.memory_hierarchy import (
    BANDWIDTH,
    BARRIER,
    COMPUTE,
    ENTRY,
    EXIT,
    GLOBAL,
    ISSUE,
    LATENCY,
    SHARED,
    Graph,
    wfg_costs,
    wfg_evaluate,
    wfg_visits,
)
from profsvc.formulas.mwp_cwp import case_cycles
from profsvc.formulas.numerics.flags import Flag


def chain(kinds: list[int], n: list[float], **other: object) -> Graph:
    """Nodes one after another, between an entry and an exit."""
    last = len(kinds) + 1
    arcs = np.arange(last)
    return Graph([ENTRY, *kinds, EXIT], [0, *n, 0], arcs, arcs + 1, np.ones(last), **other)


@given(st.integers(1, 50), st.integers(1, 20))
def test_nested_loops_multiply(outer: int, inner: int) -> None:
    back, again = (outer - 1) / outer, (inner - 1) / inner
    got = wfg_visits([0, 1, 2, 2, 3, 3], [1, 2, 2, 3, 1, 4], [1, 1, again, 1 - again, back, 1 - back], 5).value
    np.testing.assert_allclose(got, [1, outer, outer * inner, outer, 1])


def test_visits_are_those_of_walks() -> None:
    rng = np.random.default_rng(4)
    src, dst, prob = [0, 0, 1, 2, 2, 3], [1, 2, 3, 0, 3, 4], [0.3, 0.7, 1, 0.5, 0.5, 1]
    counts = np.zeros(5)
    for _ in range(4000):
        node = 0
        while True:
            counts[node] += 1
            if node == 4:
                break
            arcs = [k for k in range(6) if src[k] == node]
            node = dst[rng.choice(arcs, p=[prob[k] for k in arcs])]
    np.testing.assert_allclose(wfg_visits(src, dst, prob, 5).value, counts / 4000, rtol=0.06)


@given(st.floats(1, 500), st.floats(1, 2000), st.integers(1, 64))
def test_one_load_and_its_use_agree_with_the_timing_model(C: float, M: float, W: int) -> None:
    """Memory period M and computation C: max(W C, C + M) against M + W C of case 3, within one period."""
    got = wfg_evaluate(chain([GLOBAL, COMPUTE], [0, C], load=[1], use=[2]), W, M, 1e9)
    np.testing.assert_allclose(got.T_W, max(W * C, C + M))
    model = case_cycles(M, C, 1, M, W, W, 1).cycles
    assert abs(model - got.T_W) <= max(M, C) * (1 + 1e-9)
    assert got.bound == (ISSUE if W * C >= C + M else LATENCY)


@given(st.floats(1, 100), st.floats(0, 100), st.floats(1, 300))
def test_work_between_a_load_and_its_use_hides_it(before: float, between: float, M: float) -> None:
    kinds = [COMPUTE, GLOBAL, COMPUTE, COMPUTE]
    got = wfg_evaluate(chain(kinds, [before, 0, between, 1], load=[2], use=[4]), 1, M, 1e9)
    np.testing.assert_allclose(got.T_1, before + between + 1 + max(0, M - between))
    np.testing.assert_allclose(got.stalls, [max(0, M - between), 0, 0], atol=1e-9)


def test_the_longest_of_several_loads_counts_and_the_shortest_way() -> None:
    together = chain([GLOBAL, GLOBAL, COMPUTE], [1, 1, 5], load=[1, 2], use=[3, 3])
    assert wfg_evaluate(together, 1, 100.0, 1e9).T_1 == 7 + 100
    # A branch: one instruction on one side, ten on the other, then the use.
    kinds = [ENTRY, GLOBAL, COMPUTE, COMPUTE, COMPUTE, EXIT]
    branch = Graph(kinds, [0, 1, 1, 10, 1, 0], [0, 1, 1, 2, 3, 4], [1, 2, 3, 4, 4, 5], [1, 0.5, 0.5, 1, 1, 1], [1], [4])
    assert wfg_evaluate(branch, 1, 100.0, 1e9).T_1 == 1 + 0.5 + 5 + 1 + 99


def test_each_kind_of_stall() -> None:
    conflicts = wfg_evaluate(chain([SHARED, COMPUTE], [4, 10], bank_degree=8), 1, 0.0, 1e9)
    assert conflicts.stalls.tolist() == [0, 28, 0]
    assert conflicts.T_1 == 42
    gaps = wfg_evaluate(chain([COMPUTE], [10]), [1, 4, 8, 32], 0.0, 1e9, pipe_latency=8, ilp=1)
    np.testing.assert_array_equal(gaps.T_W, [80, 80, 80, 320])
    np.testing.assert_array_equal(gaps.stalls[:, 0], [70, 40, 0, 0])
    arcs = ([0, 1, 1, 2, 3], [1, 2, 3, 4, 4])
    parted = Graph([ENTRY, COMPUTE, COMPUTE, COMPUTE, EXIT], [0, 1, 10, 20, 0], *arcs, [1, 1, 1, 1, 1])
    got = wfg_evaluate(parted, 1, 0.0, 1e9)
    assert got.T_1 == 31
    assert got.stalls[2] == 15
    barrier = wfg_costs(chain([BARRIER], [1], cycles=30.0), 1)
    assert barrier.issue.tolist() == [0, 31, 0]


def test_bandwidth_bounds_and_balances() -> None:
    graph = chain([GLOBAL, COMPUTE], [1, 9], load=[1], use=[2], transactions=4)
    got = wfg_evaluate(graph, [1, 64], 50.0, 16.0)
    np.testing.assert_array_equal(got.T_W, [63, 64 * 512 / 16])
    assert got.bound.tolist() == [LATENCY, BANDWIDTH]
    np.testing.assert_allclose(got.balance, 13 * 16 / 512)
    slower = wfg_evaluate(graph, [1, 64], 50.0, 8.0)
    assert (slower.T_W >= got.T_W).all()


@given(st.integers(1, 63), st.floats(0, 40), st.floats(0, 800), st.floats(1, 256))
def test_more_warps_take_longer_but_no_more_than_in_proportion(W: int, pipe: float, M: float, B: float) -> None:
    graph = chain([COMPUTE, GLOBAL, COMPUTE], [7, 2, 5], load=[2], use=[3])
    few, more = wfg_evaluate(graph, [W, W + 1], M, B, pipe_latency=pipe).T_W
    assert few * (1 - 1e-9) <= more <= few * (W + 1) / W * (1 + 1e-9)


def test_edges() -> None:
    endless = Graph([ENTRY, COMPUTE, EXIT], [0, 1, 0], [0, 1], [1, 1], [1, 1])
    got = wfg_evaluate(endless, 1, 0.0, 1.0)
    assert (int(got.bound), int(got.flags)) == (-1, Flag.ZERO_DENOM)
    assert np.isnan(got.T_W)
    apart = wfg_visits([0, 1, 2, 3], [3, 2, 1, 4], [1, 1, 1, 1], 5)
    assert apart.value.tolist() == [1, 0, 0, 1, 1]
    assert wfg_visits([0], [1], [np.nan], 2).flags.tolist() == [Flag.INPUT_SUSPECT] * 2
    assert wfg_visits([0], [1], [1.5], 2).flags.tolist() == [Flag.INPUT_SUSPECT] * 2
    straight = chain([COMPUTE], [3])
    assert np.isinf(wfg_evaluate(straight, 1, 0.0, 1.0).balance)
    wrong = wfg_evaluate(straight, [1, np.nan, -1, 0], 0.0, 1.0)
    S = Flag.INPUT_SUSPECT
    assert wrong.flags.tolist() == [0, S, S, Flag.ZERO_DENOM]
    assert wrong.bound.tolist() == [ISSUE, -1, -1, -1]
    assert wfg_evaluate(straight._replace(n_insts=[0, np.nan, 0]), 1, 0.0, 1.0).flags & S
    with pytest.raises(ValueError, match="kind holds 0 of ENTRY; allowed: 1"):
        wfg_evaluate(straight._replace(kind=[COMPUTE, COMPUTE, EXIT]), 1, 0.0, 1.0)
    with pytest.raises(ValueError, match="dst holds 1 to 9; allowed: 0 to 2"):
        wfg_visits([0, 1], [1, 9], [1, 1], 3)
    with pytest.raises(ValueError, match="allowed: one length, a node"):
        wfg_visits([0, 1], [1], [1, 1], 3)
    with pytest.raises(TypeError, match="src has dtype float64"):
        wfg_visits([0.0], [1], [1], 3)
    with pytest.raises(ValueError, match=r"load has shape \(1,\), use \(2,\)"):
        wfg_evaluate(straight._replace(load=[1], use=[1, 1]), 1, 0.0, 1.0)
