import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.interpolate import RegularGridInterpolator

from profsvc.formulas.numerics.flags import Flag
from profsvc.formulas.thermocouples import heat_map as maps

axis = st.lists(st.integers(0, 200), min_size=2, max_size=5, unique=True).map(lambda a: np.sort(a) / 8)
seeds = st.integers(0, 10**6)
places = st.lists(st.tuples(st.integers(0, 60), st.integers(0, 60)), min_size=3, max_size=24, unique=True)


@given(axis, axis, seeds)
def test_a_regular_grid_is_bilinear_as_scipy_has_it(X: np.ndarray, Y: np.ndarray, seed: int) -> None:
    random = np.random.default_rng(seed)
    table = random.uniform(40, 90, (Y.size, X.size))
    order = random.permutation(table.size)
    x, y = (v.ravel()[order] for v in np.meshgrid(X, Y))
    at_x, at_y = random.uniform(X[0], X[-1], 30), random.uniform(Y[0], Y[-1], 30)
    found = maps.interpolated(x, y, table.ravel()[order], at_x, at_y)
    assert found.kind == maps.BILINEAR
    expected = RegularGridInterpolator((Y, X), table)(np.column_stack((at_y, at_x)))
    np.testing.assert_allclose(found.temperature_c, expected, rtol=1e-9)
    assert not found.flags.any()


def scattered(points: list[tuple[int, int]]) -> tuple[np.ndarray, np.ndarray]:
    x, y = np.array(points, dtype=float).T / 4
    assume(np.linalg.matrix_rank(np.column_stack((x - x[0], y - y[0]))) == 2)
    return x, y


@given(places, st.floats(-2, 2), st.floats(-2, 2), seeds)
def test_a_plane_stays_a_plane_inside_the_hull(points: list, a: float, b: float, seed: int) -> None:
    x, y = scattered(points)
    T = 60 + a * x + b * y
    weights = np.random.default_rng(seed).dirichlet(np.ones(x.size), 20)
    at_x, at_y = weights @ x, weights @ y
    found = maps.interpolated(x, y, T, at_x, at_y)
    inside = np.isfinite(found.temperature_c)
    np.testing.assert_allclose(found.temperature_c[inside], (60 + a * at_x + b * at_y)[inside], rtol=1e-9)
    assert inside.mean() > 0.7  # a sliver of a hull may lose places to rounding
    assert (found.flags[~inside] == Flag.EXTRAPOLATED).all()


@settings(max_examples=15)
@given(places, seeds)
def test_a_map_lies_within_its_readings_and_peaks_at_a_sensor(points: list, seed: int) -> None:
    x, y = scattered(points)
    T = np.random.default_rng(seed).uniform(40, 90, x.size)
    found = maps.heat_map(x, y, T)
    known = found.temperature_c[np.isfinite(found.temperature_c)]
    assert T.min() - 1e-9 <= known.min()
    assert known.max() <= T.max() + 1e-9
    k = int(T.argmax())
    assert float(found.hot_c) == pytest.approx(T[k])
    assert (found.hot_x_mm, found.hot_y_mm) == (x[k], y[k])
    assert not found.flags
    shuffled = np.random.default_rng(seed).permutation(x.size)
    again = maps.heat_map(x[shuffled], y[shuffled], T[shuffled])
    assert again.hot_c == found.hot_c
    assert (again.hot_x_mm, again.hot_y_mm) == (found.hot_x_mm, found.hot_y_mm)


def test_outside_of_the_hull_nothing_is_known() -> None:
    triangle = maps.heat_map([0, 4, 0], [0, 0, 4], [60.0, 61.0, 62.0], np.linspace(-1, 5, 7), np.linspace(-1, 5, 7))
    X, Y = np.meshgrid(triangle.grid_x_mm, triangle.grid_y_mm)
    np.testing.assert_array_equal(np.isfinite(triangle.temperature_c), (X >= 0) & (Y >= 0) & (X + Y <= 4))
    outside = maps.interpolated([0, 1, 0, 1], [0, 0, 1, 1], [60.0] * 4, [-0.1, 0.5, 1.1], [0.5, 1.1, 0.5])
    assert np.isnan(outside.temperature_c).all()
    assert (outside.flags == Flag.EXTRAPOLATED).all()


@pytest.mark.parametrize(
    ("x", "y"),
    [
        ([0, 1], [0, 1]),
        ([], []),
        ([0, 1, 2, 3], [0, 1, 2, 3]),
        ([5, 5, 5], [0, 1, 7]),
        ([0, 1, 1, 0], [0, 1, 1, 1]),
        ([0, 1, 2], [0.1, 0.2, 0.3]),
    ],
)
def test_places_that_span_no_map(x: list, y: list) -> None:
    found = maps.heat_map(x, y, np.full(len(x), 60.0))
    assert found.kind == maps.NONE
    assert found.flags == Flag.INPUT_SUSPECT
    assert np.isnan([found.hot_c, found.hot_x_mm, found.hot_y_mm]).all()
    assert np.isnan(found.temperature_c).all()


def test_a_sensor_without_value_leaves_a_hole() -> None:
    X, Y = (v.ravel() for v in np.meshgrid([0.0, 1, 2], [0.0, 1, 2]))
    T = 60 + X
    T[4] = np.nan
    found = maps.heat_map(X, Y, T)
    assert found.kind == maps.DELAUNAY
    assert found.flags == Flag.INPUT_SUSPECT
    np.testing.assert_allclose(found.temperature_c, np.broadcast_to(60 + found.grid_x_mm, found.temperature_c.shape))
    asked = maps.interpolated(X, Y, 60 + X, [np.nan, 1.0], [1.0, 1.0])
    assert asked.flags.tolist() == [Flag.INPUT_SUSPECT, 0]


def test_differences() -> None:
    X, Y = (v.ravel() for v in np.meshgrid([0.0, 4, 8], [0.0, 4, 8]))
    idle = maps.heat_map(X, Y, 50 + X)
    warm = maps.heat_map(X, Y, 50 + X + 5 * ((X == 4) & (Y == 8)))
    grid = warm.grid_x_mm, warm.grid_y_mm
    found = maps.difference_map(*grid, warm.temperature_c, idle.temperature_c)
    assert (found.hot_c, found.hot_x_mm, found.hot_y_mm) == (5, 4, 8)
    apart = maps.difference_map(*grid, warm.temperature_c, np.full_like(idle.temperature_c, np.nan))
    assert apart.kind == maps.NONE
    assert apart.flags == Flag.INPUT_SUSPECT
    assert np.isnan(apart.hot_c)
    with pytest.raises(ValueError, match="y by x of the grid"):
        maps.difference_map([0, 1], [0, 1, 2], np.zeros((2, 3)), np.zeros((2, 3)))


@given(st.lists(st.floats(-300, 1000), min_size=1, max_size=6), st.integers(2, 20))
def test_bands_cover_the_map(T: list[float], bands: int) -> None:
    edges = maps.band_edges(T, bands)
    assert (np.diff(edges) > 0).all()
    assert edges[0] <= min(T)
    assert edges[-1] >= max(T)
    assert 2 <= edges.size <= bands + 3


def test_bands_of_little() -> None:
    assert maps.band_edges([60.0, 60.0]).tolist()[0] <= 59.5
    assert maps.band_edges([np.nan]).size == 0
    with pytest.raises(ValueError, match="bands is 1"):
        maps.band_edges([60.0], 1)
