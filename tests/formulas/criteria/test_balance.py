import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from profsvc.formulas.criteria import (
    divergence,
    load_balance_sm,
    load_balance_sm_printed,
    load_balance_warp,
    load_balance_warp_printed,
)
from profsvc.formulas.numerics.flags import Flag

fraction = st.floats(0, 1)
count = st.integers(0, 10**6)
warps = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 32), st.integers(1, 50)), min_size=1, max_size=40)


@given(warps, fraction, st.floats(0.01, 1))
def test_divergence_range_and_groups(rows: list[tuple[int, int, int]], p: float, F: float) -> None:
    group, lanes, issued = (np.array(column) for column in zip(*rows, strict=True))
    executed, potential = lanes * issued, 32 * issued
    for form in ("as_published", "consistent"):
        whole = divergence(executed, potential, F, p, group, form)
        assert ((whole.value >= 0) & (whole.value <= 1)).all()
        assert (whole.speedup >= 1).all()
        for k, name in enumerate(whole.group):
            of = group == name
            alone = divergence(executed[of], potential[of], F, p, np.zeros(of.sum(), dtype=int), form)
            assert alone.value[0] == whole.value[k]
            total = divergence(executed[of].sum(), potential[of].sum(), F, p)
            if form == "consistent":
                assert total.value == whole.value[k]


def test_divergence_edges() -> None:
    result = divergence([0, 10, 40, 16], [0, 32, 32, 32], [1, 1.2, 1, 1])
    np.testing.assert_array_equal(result.value, [np.nan, 0.375, 1.0, 0.5])
    clipped = Flag.INPUT_SUSPECT | Flag.RAW_OUT_OF_RANGE | Flag.CLIPPED
    expected = [Flag.ZERO_DENOM, Flag.INPUT_SUSPECT, clipped, 0]
    assert result.flags.tolist() == [flag | Flag.UPPER_BOUND for flag in expected]
    np.testing.assert_allclose(result.speedup[1:], [1 / 0.375, 1, 2])


def test_divergence_leaves_out_warps_without_instructions() -> None:
    for form in ("as_published", "consistent"):
        assert divergence([16, 0], [32, 0], group=[1, 1], form=form).value.tolist() == [0.5]
    assert divergence([], [], group=[]).value.shape == (0,)


def test_divergence_of_a_partly_filled_warp() -> None:
    result = divergence([48, 64, 64], [64, 64, 64], block_size=[48, 64, np.nan])
    np.testing.assert_array_equal(result.fill, [0.75, 1.0, np.nan])
    np.testing.assert_array_equal(result.value_over_fill, [1.0, 1.0, np.nan])
    assert [bool(f & Flag.TAIL_EFFECT) for f in result.flags] == [True, False, False]


def test_divergence_arguments_of_kernels_go_by_group() -> None:
    result = divergence([16, 32, 8], 32, [0.5, 1.0], [1.0, np.nan], group=[1, 1, 2], block_size=[64, 48])
    assert result.value.tolist() == [0.375, 0.25]
    assert [bool(f & Flag.UPPER_BOUND) for f in result.flags] == [False, True]
    with pytest.raises(ValueError, match="do not broadcast"):
        divergence([16, 32, 8], 32, [0.5, 1.0, 1.0], group=[1, 1, 2])


@given(st.lists(st.tuples(count, st.integers(1, 10**6)), min_size=1, max_size=16), st.integers(1, 1024), fraction)
def test_load_balance_warp_range(sms: list[tuple[int, int]], block: int, p: float) -> None:
    warps, cycles = np.array(sms).T
    result = load_balance_warp(warps, cycles, block, 8, p)
    assert 0 <= result.value <= 1
    assert result.speedup >= 1
    printed = load_balance_warp_printed(warps.mean(), cycles.mean(), block, 8, p)
    np.testing.assert_allclose(result.value, printed.value)
    np.testing.assert_allclose(result.value, min(1, warps.sum() / cycles.sum() / (-(-block // 32) * 8)))


def test_load_balance_warp_edges() -> None:
    result = load_balance_warp_printed([64, 64, 64], [1, 0, 1], [256, 256, 0], [4, 4, 4], 1.0)
    np.testing.assert_array_equal(result.value, [1.0, np.nan, np.nan])
    assert result.flags.tolist() == [Flag.RAW_OUT_OF_RANGE | Flag.CLIPPED, Flag.ZERO_DENOM, Flag.ZERO_DENOM]
    unknown = load_balance_warp_printed(16, 1, 256, 4)
    assert (float(unknown.speedup), int(unknown.flags)) == (2.0, Flag.UPPER_BOUND)


def test_load_balance_warp_of_a_small_grid() -> None:
    few = load_balance_warp_printed(8, 1, 256, 4, grid_blocks=132, sms=132)
    assert float(few.value) == 1.0
    many = load_balance_warp_printed(8, 1, 256, 4, grid_blocks=13200, sms=132)
    assert float(many.value) == 0.25


def test_load_balance_warp_keeps_sms_and_kernels_apart() -> None:
    with pytest.raises(ValueError, match="without the last axis, the SM"):
        load_balance_warp([100, 200], [10, 20], [256, 128], 8)
    assert float(load_balance_warp(1600, 100, 256, 4).value) == 0.5


@given(st.lists(count, min_size=1, max_size=32), st.integers(1, 2 * 10**6))
def test_load_balance_sm_range_and_identity(cycles: list[int], clk: int) -> None:
    result = load_balance_sm(cycles, clk)
    published = load_balance_sm(cycles, clk, "as_published")
    np.testing.assert_allclose(result.value, published.value, atol=1e-12)
    if max(cycles) == 0:
        assert np.isnan(result.value)
        assert result.flags == Flag.ZERO_DENOM
    else:
        assert 1 / len(cycles) - 1e-12 <= result.value <= 1
        assert 1 <= result.speedup <= len(cycles) * (1 + 1e-12)
        assert bool(result.flags & Flag.INPUT_SUSPECT) == (max(cycles) > clk * (1 + 1e-9))
        permuted = load_balance_sm(sorted(cycles), clk)
        np.testing.assert_allclose(permuted.value, result.value)


def test_load_balance_sm_edges() -> None:
    assert float(load_balance_sm([123.0]).value) == 1.0
    assert float(load_balance_sm([0.1, 0.1, 0.1]).value) == 1.0
    unknown = load_balance_sm([4.0, 2.0])
    assert (float(unknown.share), int(unknown.flags)) == (1.0, Flag.UPPER_BOUND)
    result = load_balance_sm_printed([110.0, 90.0, 90.0], 100.0, [200.0, 0.0, -1.0])
    np.testing.assert_array_equal(result.value, [1.0, 0.9, 0.9])
    np.testing.assert_array_equal(result.speedup, [1.0, np.nan, np.nan])
    assert result.flags.tolist() == [
        Flag.INPUT_SUSPECT | Flag.RAW_OUT_OF_RANGE | Flag.CLIPPED,
        Flag.INPUT_SUSPECT | Flag.ZERO_DENOM,
        Flag.INPUT_SUSPECT,
    ]


@pytest.mark.parametrize("wrong", [np.nan, -1.0, np.inf])
def test_one_suspect_sm_makes_its_kernel_nan(wrong: float) -> None:
    cycles = [[wrong, 4.0], [2.0, 4.0]]
    for result in (load_balance_sm(cycles), load_balance_warp(np.array(cycles), [[1, 1]], 32, 4)):
        assert np.isnan(result.value).tolist() == [True, False]
        assert [bool(f & Flag.INPUT_SUSPECT) for f in result.flags] == [True, False]
