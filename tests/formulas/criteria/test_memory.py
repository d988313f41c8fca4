import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from profsvc.formulas.criteria import granularity, shared_efficiency, throughput_occupancy
from profsvc.formulas.numerics.flags import Flag

fraction = st.floats(0, 1)
count = st.integers(0, 10**12)
OUT = Flag.RAW_OUT_OF_RANGE | Flag.CLIPPED


@given(count, count, st.sampled_from([32, 128]), fraction, fraction, st.sampled_from(["consistent", "bottleneck"]))
def test_granularity_range(moved: int, asked: int, line: int, share: float, hit: float, form: str) -> None:
    result = granularity(
        moved, asked, line, share, form, l1_hit_ratio=hit, utilization=share, other_utilization=1 - share
    )
    assert 0 <= result.value <= 1
    assert result.speedup >= 1


@given(st.integers(1, 10**9), st.integers(1, 10**9))
def test_granularity_is_the_reciprocal_of_the_print(moved: int, asked: int) -> None:
    ours, printed = granularity(moved, asked, 128, 0.5), granularity(moved, asked, 128, 0.5, "as_published")
    np.testing.assert_allclose(ours.raw * printed.raw, 1)
    np.testing.assert_allclose(printed.speedup, 0.5 / printed.raw)


def test_granularity_edges() -> None:
    result = granularity([0, 0, 7, 2, 3], [0, 64, 0, 128, np.nan], 32, 0.5)
    np.testing.assert_array_equal(result.value, [1, 1, 1, 1, np.nan])
    np.testing.assert_array_equal(result.share, [0, 0.5, 0, 0.5, 0.5])
    np.testing.assert_array_equal(result.speedup, [1, 1, 1, 1, np.nan])
    suspect = Flag.NOT_APPLICABLE | Flag.INPUT_SUSPECT
    assert (result.flags & ~np.uint32(OUT)).tolist() == [
        Flag.NOT_APPLICABLE,
        Flag.ZERO_DENOM,
        suspect,
        0,
        Flag.INPUT_SUSPECT,
    ]
    assert result.flags[3] == OUT


def test_granularity_without_a_share_is_a_ceiling() -> None:
    for form, speedup in (("consistent", 4.0), ("as_published", 0.25)):
        result = granularity(4, 32, 32, form=form)
        assert float(result.speedup) == speedup
        assert result.flags & Flag.UPPER_BOUND


def test_granularity_of_l2_takes_off_what_l1_answers() -> None:
    result = granularity(2, 256, 32, 1.0, l1_hit_ratio=[0.75, np.nan, 1.0, 75.0])
    np.testing.assert_array_equal(result.value, [1.0, 1.0, 0.0, np.nan])
    assert result.flags.tolist() == [0, OUT, Flag.INPUT_SUSPECT, Flag.INPUT_SUSPECT]


def test_granularity_of_a_cache_that_is_off() -> None:
    result = granularity([0, 9], [64, 64], 128, cached=[False, True])
    assert result.value[0] == result.speedup[0] == 1
    assert result.flags.tolist() == [Flag.NOT_APPLICABLE, Flag.UPPER_BOUND]
    with pytest.raises(TypeError, match="cached has dtype"):
        granularity(1, 64, 128, cached="yes")


def test_granularity_counted_per_instruction() -> None:
    result = granularity(32, 4, 32, 1.0, lane_insts=[1, 32], warp_insts=1)
    assert [bool(f & Flag.INPUT_SUSPECT) for f in result.flags] == [False, False]
    assert granularity(32, 4, 32, 1.0, lane_insts=1, warp_insts=2).flags == Flag.INPUT_SUSPECT


def test_bottleneck_pays_only_for_the_busiest() -> None:
    result = granularity(
        4, 32, 32, form="bottleneck", utilization=[0.8, 0.5, np.nan], other_utilization=[0.4, 0.8, np.nan]
    )
    np.testing.assert_array_equal(result.speedup, [2.0, 1.0, 4.0])
    assert result.flags.tolist() == [0, 0, Flag.UPPER_BOUND]
    shared = shared_efficiency(1, 4, form="bottleneck", utilization=0.8, other_utilization=0.4)
    assert float(shared.speedup) == 2.0
    unused = shared_efficiency(0, 0, form="bottleneck")
    assert (float(unused.speedup), int(unused.flags)) == (1.0, Flag.NOT_APPLICABLE)


@given(count, count, fraction)
def test_shared_efficiency_range(ideal: int, actual: int, share: float) -> None:
    result = shared_efficiency(ideal, actual, share=share)
    if bool(ideal) != bool(actual):
        assert np.isnan(result.value)
        assert result.flags & Flag.ZERO_DENOM
    else:
        assert 0 <= result.value <= 1
        assert result.degree >= 1
        assert result.speedup >= 1
        swapped = shared_efficiency(actual, ideal, share=share)
        np.testing.assert_allclose(swapped.value, result.value)


def test_shared_efficiency_edges() -> None:
    result = shared_efficiency([0, 4, 1, 4], [0, 2, 64, 4], [1, 1, 1, 1.2], 0.5)
    np.testing.assert_array_equal(result.value, [1, 0.5, 1 / 64, 1])
    np.testing.assert_array_equal(result.degree, [1, 2, 64, 1])
    assert result.flags.tolist() == [Flag.NOT_APPLICABLE, Flag.INPUT_SUSPECT, Flag.INPUT_SUSPECT, OUT]
    assert result.share[0] == 0
    assert float(shared_efficiency(1, 4).speedup) == 1
    ceiling = shared_efficiency(1, 4, share=None)
    assert (float(ceiling.speedup), int(ceiling.flags)) == (4.0, Flag.UPPER_BOUND)


@given(fraction, fraction, fraction)
def test_throughput_occupancy_grows_with_both(occ: float, memthr: float, other: float) -> None:
    result = throughput_occupancy(occ, memthr)
    if occ == 0:
        assert np.isnan(result.value)
        return
    assert 0 <= result.value <= 1
    assert result.speedup >= 1
    assert result.inverse >= 1
    low, high = sorted((memthr, other))
    assert throughput_occupancy(occ, low).value <= throughput_occupancy(occ, high).value + 1e-15
    low, high = sorted((occ, other or occ))
    assert throughput_occupancy(low, memthr).value <= throughput_occupancy(high, memthr).value + 1e-15


def test_throughput_occupancy_edges() -> None:
    result = throughput_occupancy([1.0, 0.5, 0.5, 0.0], [0.3, 1.2, 0.0, 0.5])
    np.testing.assert_array_equal(result.value, [1.0, 1.0, 0.5, np.nan])
    np.testing.assert_array_equal(result.speedup, [1.0, 1.0, 2.0, np.nan])
    assert result.flags.tolist() == [0, OUT, 0, Flag.ZERO_DENOM]
    capped = throughput_occupancy(0.25, 0.1, ceiling=[3.0, np.nan, 9.0])
    assert capped.speedup.tolist() == [3.0, 4.0, 4.0]


def test_throughput_occupancy_tolerance_is_of_the_print() -> None:
    memthr = [0.94, 0.96, 1.04]
    assert throughput_occupancy(0.5, memthr, form="as_published").value.tolist() == [0.53, 1.0, 1.0]
    assert throughput_occupancy(0.5, memthr, 0.1, "as_published").value.tolist() == [1.0, 1.0, 1.0]
