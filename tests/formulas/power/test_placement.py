from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from profsvc.formulas.numerics.flags import Flag
from profsvc.formulas.power.placement import rank_placements, tpc_effect, tpc_of_core, verify_one_block_per_sm

TPC = tpc_of_core(np.arange(14))
# Two rows of TPCs, as in a floor plan.
X, Y = [0.0, 4.0, 8.0, 12.0, 2.0, 6.0, 10.0], [0.0, 0.0, 0.0, 0.0, 8.0, 8.0, 8.0]


def test_all_choices_of_four_cores() -> None:
    options = np.array(list(combinations(range(14), 4)))
    ranked = rank_placements(options, TPC, X, Y)
    assert sorted(ranked.compact) == sorted(ranked.spread) == list(range(1001))
    for k in (0, 17, 500, 1000):
        tpcs = sorted({c % 7 for c in options[k].tolist()})
        assert ranked.active_tpcs[k] == len(tpcs)
        apart = [np.hypot(X[a] - X[b], Y[a] - Y[b]) for a, b in combinations(tpcs, 2)]
        assert ranked.distance_mm[k] == pytest.approx(min(apart))
    n, d = ranked.active_tpcs, ranked.distance_mm
    keys = list(zip(n[ranked.compact].tolist(), (-d[ranked.compact]).tolist(), strict=True))
    assert keys == sorted(keys)
    keys = list(zip((-n[ranked.spread]).tolist(), (-d[ranked.spread]).tolist(), strict=True))
    assert keys == sorted(keys)
    assert n[ranked.compact[0]] == 2
    assert n[ranked.spread[0]] == 4


def test_options_that_cannot_be() -> None:
    ranked = rank_placements([[0, 0], [0, 14], [-1, 2], [0, 1]], TPC, X, Y)
    assert ranked.active_tpcs.tolist() == [-1, -1, -1, 2]
    assert ranked.flags.tolist() == [Flag.INPUT_SUSPECT] * 3 + [0]
    assert ranked.compact[0] == ranked.spread[0] == 3
    assert np.isnan(ranked.distance_mm[:3]).all()
    for options in (np.empty((0, 2), dtype=int), np.empty((3, 0), dtype=int)):
        none = rank_placements(options, TPC)
        assert len(none.compact) == len(options)
        assert (none.active_tpcs == -1).all()
    assert rank_placements([[0, 1]], np.empty(0, dtype=int)).flags.tolist() == [Flag.INPUT_SUSPECT]


def test_wrong_arguments() -> None:
    with pytest.raises(TypeError, match="options has dtype float64; allowed: integers"):
        rank_placements([[0.0, 1.0]], TPC)
    with pytest.raises(ValueError, match=r"allowed: \(M, n\) and \(C,\)"):
        rank_placements([0, 1], TPC)
    with pytest.raises(ValueError, match="x_mm with y_mm"):
        rank_placements([[0, 1]], TPC, x_mm=X)
    with pytest.raises(ValueError, match="7, one a TPC"):
        rank_placements([[0, 1]], TPC, X[:3], Y[:3])
    with pytest.raises(ValueError, match="tpcs is 0"):
        tpc_of_core(3, 0)
    with pytest.raises(TypeError, match="core has dtype float64"):
        tpc_of_core(3.5)
    assert tpc_of_core([-1, 13]).tolist() == [-1, 6]


def test_one_more_block() -> None:
    found = verify_one_block_per_sm([1.0, 1.0, 0.0, 1.0, np.nan], [2.1, 2.11, 1.0, np.inf, 2.0])
    assert found.holds.tolist() == [True, False, False, False, False]
    assert found.flags.tolist() == [0, 0] + [Flag.INPUT_SUSPECT] * 3
    assert np.isnan(found.ratio[2:]).all()


@given(st.lists(st.tuples(st.integers(1, 7), st.floats(50, 300), st.floats(30, 95)), min_size=3, max_size=30))
def test_effect_is_that_of_numpy(runs: list) -> None:
    n, P, T = np.array(runs).T
    effect = tpc_effect(n.astype(int), P, T)
    if np.ptp(n):
        assert float(effect.power_per_tpc_w) == pytest.approx(np.polyfit(n, P, 1)[0], abs=1e-6)
    else:
        assert np.isnan(effect.power_per_tpc_w)
    if np.ptp(P) > 1e-3 and np.ptp(T) > 1e-3:
        assert float(effect.correlation) == pytest.approx(np.corrcoef(P, T)[0, 1], abs=1e-9)
    for count, mean in zip(effect.active_tpcs, effect.power_w, strict=True):
        assert mean == pytest.approx(P[n == count].mean())


def test_effect_leaves_out_what_is_no_run() -> None:
    whole = tpc_effect([2, 3, 4], [250.0, 255.0, 259.0], [76.0, 78.0, 79.0])
    more = tpc_effect([2, 3, 4, 4, -1], [250.0, 255.0, 259.0, np.nan, 1.0], [76.0, 78.0, 79.0, 70.0, 1.0])
    for a, b in zip(whole[:-1], more[:-1], strict=True):
        np.testing.assert_array_equal(a, b)
    assert (whole.flags, more.flags) == (0, Flag.INPUT_SUSPECT)
    empty = tpc_effect(np.empty(0, dtype=int), [], [])
    assert np.isnan(empty.power_per_tpc_w)
    assert np.isnan(empty.power_range_w)
