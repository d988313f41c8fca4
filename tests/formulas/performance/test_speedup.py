import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from profsvc.formulas.numerics.flags import Flag
from profsvc.formulas.performance.speedup import (
    Bound,
    amdahl,
    application_speedup,
    attained_ratio,
    bottleneck_speedup,
    disjoint_amdahl,
    potential_speedup,
    remaining_potential,
)

fraction = st.floats(0, 1)
kernels = st.lists(
    st.tuples(st.integers(0, 3), st.floats(1e-6, 1e3), fraction, st.floats(1, 100)), min_size=1, max_size=30
)


@given(fraction, fraction)
def test_amdahl_limits(p: float, c: float) -> None:
    assert amdahl(p, c) >= 1
    assert amdahl(p, 1) == amdahl(0, c) == 1
    if c > 1e-300:
        assert amdahl(1, c) == 1 / c
    assert amdahl(p, 0) == pytest.approx(1 / (1 - p) if p < 1 else np.inf)


@given(fraction, fraction, fraction)
def test_amdahl_is_monotone(p: float, c: float, d: float) -> None:
    low, high = sorted((c, d))
    assert amdahl(p, low) >= amdahl(p, high)
    assert amdahl(high, p) >= amdahl(low, p) * (1 - 1e-15)


@given(st.lists(st.tuples(fraction, fraction), min_size=1, max_size=8))
def test_disjoint_saving_is_at_most_the_whole(pairs: list[tuple[float, float]]) -> None:
    p, c = np.array(pairs).T
    p = p / max(1.0, p.sum())
    speedup = disjoint_amdahl(p, c)
    assert speedup >= 1
    assert 0 <= 1 - 1 / speedup <= 1
    if len(pairs) == 1:
        np.testing.assert_allclose(1 / speedup, 1 / amdahl(p[0], c[0]), atol=1e-12)


def test_disjoint_shares_add_up_to_one_at_most() -> None:
    speedup = disjoint_amdahl([[0.5, 0.5], [0.6, 0.6], [-0.1, 0.5]], 0.5)
    np.testing.assert_array_equal(speedup, [2.0, np.nan, np.nan])
    with pytest.raises(ValueError, match="no axis"):
        disjoint_amdahl(0.5, 0.5)


@given(*[st.floats(1e-9, 1)] * 3)
def test_bottleneck_is_between_one_and_the_quality(u: float, other: float, c: float) -> None:
    speedup = bottleneck_speedup(u, other, c)
    assert speedup >= 1
    assert speedup <= 1 / c * (1 + 1e-12)
    if u <= other:
        assert speedup == 1


def test_attained_ratio_guards() -> None:
    result = attained_ratio([1.0, 2.0, 1.0, np.nan], [1.0, 1.0, 0.0, 1.0], [1.0, 0.9, 1.0, 1.0])
    np.testing.assert_array_equal(result.value, [1.0, 1.0, np.nan, np.nan])
    assert result.flags.tolist() == [0, Flag.RAW_OUT_OF_RANGE | Flag.CLIPPED, Flag.ZERO_DENOM, Flag.INPUT_SUSPECT]
    assert attained_ratio(1.0, 1.0, 1.2).flags == Flag.INPUT_SUSPECT
    assert attained_ratio(1.0, 0.0, form="as_published").value == np.inf


@given(kernels)
def test_application_as_one_group_at_a_time(rows: list[tuple[int, float, float, float]]) -> None:
    group, time, criterion, speedup = map(np.array, zip(*rows, strict=True))
    whole = application_speedup(time, criterion, speedup, group)
    assert whole.group.tolist() == sorted(set(group.tolist()))
    for k, name in enumerate(whole.group):
        of = group == name
        alone = application_speedup(time[of], criterion[of], speedup[of])
        assert alone.speedup == whole.speedup[k]
        assert alone.criterion == whole.criterion[k]
        assert 1 <= whole.speedup[k] <= speedup[of].max() * (1 + 1e-12)
        assert 0 <= whole.criterion[k] <= 1


def test_application_edges() -> None:
    none = application_speedup([], [], [])
    assert np.isnan(none.speedup)
    assert none.flags == Flag.NOT_APPLICABLE
    assert application_speedup([], [], [], []).speedup.shape == (0,)
    result = application_speedup([1.0, np.nan, 2.0, 0.0], 0.5, [2.0, 2.0, np.inf, 2.0], [1, 1, 2, 3])
    np.testing.assert_array_equal(result.speedup, [np.nan, np.inf, np.nan])
    assert result.flags.tolist() == [Flag.INPUT_SUSPECT, 0, Flag.ZERO_DENOM]
    with pytest.raises(TypeError, match="group has dtype float64"):
        application_speedup([1.0], [1.0], [1.0], [0.5])
    with pytest.raises(ValueError, match="group has shape"):
        application_speedup([1.0, 2.0, 3.0], 1.0, 1.0, [0, 1])
    with pytest.raises(ValueError, match="flat arrays"):
        application_speedup(np.ones((2, 2)), 1.0, 1.0)


@given(st.lists(st.tuples(fraction, fraction, st.sampled_from(["memory", "compute"])), min_size=1, max_size=20))
def test_potential_of_the_busier_resource(rows: list[tuple[float, float, str]]) -> None:
    m, a, bound = map(np.array, zip(*rows, strict=True))
    ours = potential_speedup(m, a, bound)
    published = potential_speedup(m, a, bound, form="as_published")
    assert (ours.speedup >= 1).all()
    assert (ours.speedup <= published.speedup).all()
    same = ours.case == published.case
    np.testing.assert_array_equal(ours.speedup[same], published.speedup[same])
    assert ((ours.flags & Flag.CASE_AMBIGUOUS > 0) == (~same & (m != a))).all()


def test_potential_names_of_bounds() -> None:
    m, a = [0.5] * 4, [0.25] * 4
    text = potential_speedup(m, a, np.array(["memory", "compute", None, "latency"], dtype=object), form="as_published")
    number = potential_speedup(m, a, [Bound.MEMORY, Bound.COMPUTE, Bound.UNKNOWN, 7], form="as_published")
    np.testing.assert_array_equal(text.speedup, [2.0, 4.0, np.nan, np.nan])
    np.testing.assert_array_equal(text.speedup, number.speedup)
    assert text.case.dtype == np.int8
    assert text.case.tolist() == [0, 1, -1, -1]
    assert [int(f) for f in text.flags & Flag.INPUT_SUSPECT] == [0, 0, Flag.INPUT_SUSPECT, Flag.INPUT_SUSPECT]
    with pytest.raises(TypeError, match="bound has dtype float64"):
        potential_speedup(0.5, 0.5, [0.5])


def test_potential_edges() -> None:
    result = potential_speedup([1.25, 0.0], [0.5, 0.0])
    assert result.speedup.tolist() == [1.0, np.inf]
    assert result.raw.tolist() == [0.8, np.inf]
    assert result.flags.tolist() == [Flag.RAW_OUT_OF_RANGE | Flag.CLIPPED, Flag.ZERO_DENOM]
    assert result.application.size == result.application_with_host.size == 0


def test_potential_of_applications_with_and_without_host_gaps() -> None:
    result = potential_speedup([0.5, 0.25, np.nan], 0.1, time=[1.0, 2.0, 1.0], group=[5, 5, 6], hostsync=[0.5, 0.5])
    np.testing.assert_allclose(result.application, [3.0, np.nan])
    np.testing.assert_allclose(result.application_with_host, [6.0, np.nan])
    assert result.group.tolist() == [5, 6]
    assert result.application_flags[1] & Flag.INPUT_SUSPECT
    one = potential_speedup([0.5, 0.25], 0.1, time=[1.0, 2.0], hostsync=0.5)
    assert (float(one.application), float(one.application_with_host)) == (3.0, 6.0)


def test_remaining_guards() -> None:
    np.testing.assert_array_equal(remaining_potential([5.8, 0.0, 1.0], [1.0, 1.0, np.nan]), [5.8, np.nan, np.nan])
