"""Component power: the printed numbers, the parts add up, and what a wrong input does."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from profsvc.formulas.numerics.flags import Flag
from profsvc.formulas.power import component_power
from profsvc.formulas.power.leakage import delta_temperature, leakage_current, power_at_temperature
from tests.formulas.answers.thesis_power import GTX280, UNITS, special

rates = arrays(np.float64, len(GTX280), elements=st.floats(0, 1))


@given(rates, st.integers(0, 30), st.sampled_from(component_power.LAWS))
def test_parts_add_up_and_more_sms_draw_more(access: np.ndarray, n: int, law: str) -> None:
    got = component_power.runtime_power(access, **UNITS, active_sms=[n, n + 1], num_sms=31, law=law)
    np.testing.assert_allclose(got.breakdown_w.sum(axis=-1), got.total_w)
    assert (got.breakdown_w >= 0).all()
    assert 0 <= got.total_w[0] <= got.total_w[1]


def test_forms_agree_where_the_print_is_sound() -> None:
    given = {**UNITS, "active_sms": [1, 20, 30], "num_sms": 30}
    access = np.full(len(GTX280), 0.5)
    np.testing.assert_allclose(
        component_power.runtime_power(access, **given).total_w,
        component_power.runtime_power(access, **given, form="as_published").total_w,
    )


def test_a_unit_that_is_not_known_spares_the_others() -> None:
    access = np.full((2, 12), 0.5)
    access[0, 0] = np.nan
    got = component_power.runtime_power(access, **UNITS, active_sms=30, num_sms=30)
    assert np.isnan(got.breakdown_w[0]).tolist() == [True, *[False] * 11]
    assert np.isnan(got.total_w).tolist() == [True, False]
    assert [bool(f & Flag.INPUT_SUSPECT) for f in got.flags] == [True, False]


def test_a_rate_above_one_keeps_its_value_with_a_flag() -> None:
    fast = component_power.access_rate(100, 32, 6400)
    assert (float(fast.value), int(fast.flags)) == (2.0, Flag.INPUT_SUSPECT | Flag.RAW_OUT_OF_RANGE)
    assert component_power.access_rate(50, 32, 12800, ceiling=0.25).flags == Flag.INPUT_SUSPECT | Flag.RAW_OUT_OF_RANGE
    assert component_power.component_power([1.2, 0.5], 1, 10, 0, 5).flags == Flag.INPUT_SUSPECT
    two = component_power.runtime_power([1.2, 0.5], [1, 1], [False, True], [True, False], 4, 4)
    assert (float(two.max_sm_w), int(two.flags)) == (4.8, Flag.INPUT_SUSPECT)


def test_flags_of_the_special_function() -> None:
    got = component_power.special_linear([0.0, 1e-4, 0.5, 1.0, 1.5, -1.0, np.nan])
    out = Flag.RAW_OUT_OF_RANGE | Flag.CLIPPED
    assert got.flags.tolist() == [out, out, 0, out, out | Flag.INPUT_SUSPECT, *[Flag.INPUT_SUSPECT] * 2]
    assert got.value[[0, 1, 3, 4]].tolist() == [0, 0, 1, 1]
    assert np.isnan(got.value[5:]).all()
    assert np.isneginf(special(0.0))
    with pytest.raises(ValueError, match="no form 'printed'"):
        component_power.special_linear(0.5, "printed")
    with pytest.raises(TypeError, match="access has dtype"):
        component_power.special_linear(["1"])


def test_edges_of_the_factors() -> None:
    got = component_power.active_factors([31, -1, np.nan, 5], [30, 30, 30, 0])
    assert got.sm[0] > 1
    assert np.isnan(got.sm[1:]).all()
    assert np.isnan(got.board[1:]).all()
    assert got.flags.tolist() == [*[Flag.INPUT_SUSPECT] * 3, Flag.ZERO_DENOM | Flag.INPUT_SUSPECT]
    with pytest.raises(ValueError, match="no form 'square'; allowed: 'log', 'linear'"):
        component_power.active_factors(1, 30, "square")


def test_warps_flag_what_does_not_divide() -> None:
    got = component_power.warps_per_sm([64, 48, 64, 64], [60, 60, 61, 60], [30, 30, 30, 0])
    assert got.flags.tolist() == [0, Flag.TAIL_EFFECT, Flag.TAIL_EFFECT, Flag.ZERO_DENOM]
    assert component_power.warps_per_sm(64, 60, 0, form="as_published").value == np.inf


def test_a_bad_count_spoils_only_the_units_it_touches() -> None:
    got = component_power.accesses([np.nan, 2], [[True, False], [True, True]])
    assert np.isnan(got.value).tolist() == [True, False]
    assert got.flags.tolist() == [Flag.INPUT_SUSPECT, 0]
    with pytest.raises(ValueError, match=r"counts has shape \(3,\) and touches \(2, 2\)"):
        component_power.accesses([1, 2, 3], [[True, False], [True, True]])


def test_units_stand_on_an_axis() -> None:
    with pytest.raises(ValueError, match="one unit a place on the last axis"):
        component_power.component_power(1.0, 1, 1, 0, 5)
    with pytest.raises(ValueError, match="one unit a place on the last axis"):
        component_power.runtime_power(1.0, 1.0, True, True, 1, 30)
    assert component_power.component_power([[1.0], [np.nan]], 1, 2, 0, 5).value.tolist()[0] == 7
    assert component_power.component_power([1.0], 1, 2, 0, [5, np.nan]).flags.tolist() == [0, Flag.INPUT_SUSPECT]


def test_leakage_rises_with_the_square_of_the_temperature_and_more() -> None:
    T = np.array([40.0, 60.0, 80.0])
    flat = leakage_current(T, 5.0, 5.0, 0.0, 0.0, 1.5).value
    np.testing.assert_allclose(flat / flat[0], ((T + 273.15) / 313.15) ** 2)
    assert (np.diff(np.log(leakage_current(T, 1.0, 1.0, 0.3, 0.0, 1.5).value / flat)) > 0).all()


def test_edges_of_leakage() -> None:
    got = leakage_current([-300.0, 50.0, 50.0, np.nan], [1.0, 1.0, -1.0, 1.0], 1.0, 0.3, 0.1, [1.5, 0.0, 1.5, 1.5])
    assert np.isnan(got.value).all()
    assert got.flags.tolist() == [Flag.INPUT_SUSPECT, Flag.ZERO_DENOM, Flag.INPUT_SUSPECT, Flag.INPUT_SUSPECT]


def test_a_cooler_chip_consumes_less() -> None:
    got = power_at_temperature([60.0, -1.0, 60.0], [0.5, 0.5, np.inf], [-4.0, 1.0, 1.0])
    assert got.value[0] == 58
    assert got.flags.tolist() == [0, Flag.INPUT_SUSPECT, Flag.INPUT_SUSPECT]
    assert delta_temperature([20.0, np.nan], 25.0).flags.tolist() == [0, Flag.INPUT_SUSPECT]
    assert delta_temperature(-5.0, 25.0).value == -30
