"""Energy: identities, the best split against a grid, the sixteen series of the source, clock and linearity."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from profsvc.formulas.numerics.flags import Flag
from profsvc.formulas.power import energy as f
from profsvc.formulas.power.energy_split import OBJECTIVES, best_split, share_errors, split

SHARES = np.linspace(0, 1, 11)
positive = st.floats(0.01, 100)
# Table 16 of [Hong2012] as its figure 156 corrects it: performance of CPU and GPU, power of CPU and GPU.
SERIES = [(c, g, pc, pg) for c, g in ("ss", "sf", "fs", "ff") for pc in "lh" for pg in "lh"]
RATE = {"s": 1.0, "f": 8.0}
POWER = {"l": 40.0, "h": 120.0}


@given(positive, positive, positive, positive)
def test_efficiency_is_energy_over_energy(To: float, Po: float, T: float, P: float) -> None:
    got = f.efficiency(To, Po, T, P)
    energies = f.energy([Po, P], [To, T]).value
    assert got.efficiency == pytest.approx(energies[0] / energies[1])
    assert got.efficiency == pytest.approx(1 / (float(got.time_ratio) * float(got.power_ratio)))
    assert got.speedup == pytest.approx(f.efficiency(T, P, To, Po).time_ratio)


def test_no_time_or_power_has_no_ratio() -> None:
    got = f.efficiency([1, 0, 1], 100, [0, 1, 1], [100, 100, np.nan])
    assert np.isnan([got.speedup, got.efficiency]).all()
    assert got.flags.tolist() == [Flag.ZERO_DENOM, Flag.ZERO_DENOM, Flag.INPUT_SUSPECT]
    assert got.quadrant.tolist() == [-1, -1, -1]
    assert f.rate(1, 1, 1, 0).flags == Flag.ZERO_DENOM


@given(
    positive, positive, positive, positive, st.floats(0, 100), st.floats(0, 2), st.floats(0, 1),
    st.sampled_from(sorted(OBJECTIVES)), st.sampled_from(["consistent", "as_published"]),
)  # fmt: skip
def test_three_points_are_as_good_as_a_grid(
    r_c: float, r_g: float, p_c: float, p_g: float, idle: float, tau: float, g: float, objective: str, form: str
) -> None:
    box = (r_c, r_g, p_c, p_g, idle, tau, g)
    best = best_split(100.0, *box, objective=objective, form=form)
    grid = split(100.0, np.linspace(0, 1, 201), *box, form=form)
    a, b = OBJECTIVES[objective]
    assert best.energy_j**a * best.time_s**b <= (grid.energy_j**a * grid.time_s**b).min() * (1 + 1e-9)
    again = split(100.0, best.share, *box, form=form)
    assert again.energy_j == pytest.approx(best.energy_j)
    assert again.efficiency == pytest.approx(best.efficiency)


def test_devices_that_never_rest_are_the_print() -> None:
    box = (100.0, SHARES, 1.0, 3.0, 50.0, 100.0, 50.0)
    print_ = split(*box, 0.5, 0.3, form="as_published")
    np.testing.assert_allclose(print_.energy_j, split(*box, 0.0, 1.0).energy_j)
    assert (split(*box).energy_j <= print_.energy_j).all()


def test_the_repair_moves_points_to_higher_efficiency() -> None:
    box = (100.0, SHARES, 1.0, 3.0, 50.0, 100.0, 50.0)
    published, repaired = split(*box, form="as_published"), split(*box)
    np.testing.assert_array_equal(published.speedup, repaired.speedup)
    assert (repaired.efficiency[SHARES != 0.75] > published.efficiency[SHARES != 0.75]).all()
    assert (repaired.speedup[0], repaired.efficiency[0]) == (1, 1)


def test_devices_without_data_need_no_rate() -> None:
    got = split(100.0, [0.0, 1.0, 0.5, 0.5], [1.0, 1.0, 1.0, 0.0], [0.0, 3.0, 0.0, 3.0], 50, 100, 50)
    assert got.time_s[:2].tolist() == pytest.approx([100, 100 / 3])
    assert np.isnan(got.time_s[2:]).all()
    assert got.flags.tolist() == [0, 0, Flag.ZERO_DENOM, Flag.ZERO_DENOM]
    lame = split(100.0, 1.0, 0.0, 3.0, 50, 100, 50)
    assert (float(lame.energy_j), int(lame.flags)) == (pytest.approx(5000), Flag.ZERO_DENOM)
    assert np.isnan(lame.speedup)


def test_best_split_of_what_is_not_known() -> None:
    got = best_split([100, 100, 0], [1.0, np.nan, 1.0], [0.0, 3.0, 3.0], 50, 100, 50)
    assert got.share[0] == 0
    assert np.isnan(got.share[1])
    assert got.flags.tolist() == [0, Flag.INPUT_SUSPECT, Flag.ZERO_DENOM]
    with pytest.raises(ValueError, match="no form 'power'; allowed: 'time', 'energy', 'edp', 'ed2p'"):
        best_split(1, 1, 1, 1, 1, 1, objective="power")
    with pytest.raises(ValueError, match="no form 'printed'"):
        best_split(1, 1, 1, 1, 1, 1, form="printed")


@pytest.mark.parametrize(("objective", "form"), [(o, v) for o in OBJECTIVES for v in ("consistent", "as_published")])
def test_ties_leave_the_gpu_alone(objective: str, form: str) -> None:
    if objective == "energy" and form == "consistent":
        assert best_split(1, 1, 1, 50, 50, 0, objective=objective, form=form).share == 0
    assert best_split(1, 1, 0, 50, 50, 0, objective=objective, form=form).share == 0


@pytest.mark.parametrize("series", range(1, 17))
def test_the_sixteen_series(series: int) -> None:
    cpu, gpu, power_cpu, power_gpu = SERIES[series - 1]
    box = (RATE[cpu], RATE[gpu], POWER[power_cpu], POWER[power_gpu], 60.0)
    best = best_split(1.0, *box, objective="energy")
    points = split(1.0, SHARES[1:], *box)
    assert points.time_s.size == 10
    if 5 <= series <= 8:
        assert (points.speedup > 1).all()
        assert (points.efficiency > 1).all()
        assert best.share > 0.8
    elif 9 <= series <= 12:
        assert (points.speedup[2:] < 1).all()
        assert (points.efficiency[2:] < 1).all()
        assert best.share <= 0.2


@given(st.integers(1, 64), positive, positive, st.floats(1.5, 4))
def test_no_clock_beats_the_best_clock(cores: int, weight: float, idle: float, exponent: float) -> None:
    best = float(f.frequency_optimum(cores, weight, idle, exponent).value)
    clocks = best * np.geomspace(0.2, 5, 41)
    gain = f.frequency_efficiency(clocks, best, cores, weight, idle, exponent)
    assert (gain.efficiency <= 1 + 1e-12).all()
    assert gain.efficiency[20] == pytest.approx(1)


def test_clocks_without_an_optimum() -> None:
    got = f.frequency_optimum([1, 1, 0, 1], 1, [5, 0, 5, 5], [1, 3, 3, np.nan])
    assert got.flags.tolist() == [Flag.NOT_APPLICABLE, 0, Flag.ZERO_DENOM, Flag.INPUT_SUSPECT]
    assert got.value[1] == 0
    assert f.frequency_efficiency(1, 0, 1, 1, 1).flags == Flag.ZERO_DENOM


def test_linearity_is_doubted_only_by_more_than_chance() -> None:
    rng = np.random.default_rng(6)
    S = np.linspace(0.5, 4, 11)
    straight = [f.linearity(S, 0.8 * S + rng.normal(0, 0.05, 11)) for _ in range(200)]
    bent = [f.linearity(S, 0.8 * S - 0.1 * S**2 + rng.normal(0, 0.02, 11)) for _ in range(50)]
    assert 180 <= sum(bool(fit.linear) for fit in straight) <= 199  # 190 expected
    assert not any(fit.linear for fit in bent)
    assert np.mean([fit.curvature for fit in bent]) == pytest.approx(-0.2, abs=0.01)
    constant = split(1.0, SHARES, 1.0, 4.0, 0.0, 0.0, 60.0)
    at_constant_power = f.linearity(constant.speedup, constant.efficiency)
    assert (float(at_constant_power.slope), float(at_constant_power.curvature)) == pytest.approx((1, 0), abs=1e-12)


def test_too_few_points_for_a_curvature() -> None:
    assert f.linearity([1, 1, 2], [1, 1, 2]).flags == Flag.INPUT_SUSPECT
    three = f.linearity([1, 2, 3], [1, 2, 3])
    assert np.isnan(three.curvature_se)
    assert not three.linear
    assert f.linearity([1, 2, 3, 4, np.nan], [1, 2, 3, 4, 1]).flags == Flag.INPUT_SUSPECT
    with pytest.raises(ValueError, match="flat arrays"):
        f.linearity(np.ones((2, 2)), np.ones((2, 2)))


shares = arrays(np.float64, 5, elements=st.floats(0.01, 100))


@given(shares, shares)
def test_errors_of_shares_do_not_change_with_their_unit(model: np.ndarray, best: np.ndarray) -> None:
    points, parts = share_errors(model, best), share_errors(model / 100, best / 100)
    np.testing.assert_allclose(parts.relative_mean, points.relative_mean)
    np.testing.assert_allclose(100 * parts.points_max, points.points_max)
    assert points.relative_mean <= points.relative_max * (1 + 1e-12)
    assert share_errors(best, best).points_max == 0


def test_errors_of_shares_without_a_best_one() -> None:
    got = share_errors([[1.0, 2.0], [1.0, 2.0], [np.nan, 1.0]], [[0.0, 2.0], [1.0, 1.0], [1.0, 1.0]])
    assert np.isnan(got.relative_mean).tolist() == [True, False, True]
    assert np.isnan(got.points_mean).tolist() == [False, False, True]
    assert got.flags.tolist() == [Flag.ZERO_DENOM, 0, Flag.INPUT_SUSPECT]
    assert share_errors([], []).flags == Flag.INPUT_SUSPECT
