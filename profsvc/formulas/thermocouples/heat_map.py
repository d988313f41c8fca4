"""Temperature over the die from sensors at known places: piecewise linear between them, unknown outside."""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from profsvc.formulas.numerics.arrays import Array, Mask, arrays, flat_floats, floats, mask
from profsvc.formulas.numerics.flags import Flag

NONE, BILINEAR, DELAUNAY = 0, 1, 2
KINDS = ("none", "bilinear", "delaunay")
MIN_SENSORS = 3
SAME_PLACE_MM = 1e-6
FLAT = 1e-6  # sensors whose extent across a line is less than this share of that along it stand in line
POINTS = 121
BANDS = 10
STEPS = (1.0, 2.0, 2.5, 5.0, 10.0)


class Interpolated(NamedTuple):
    """Temperatures at the requested places [degC], and the method of each: a number of ``KINDS``."""

    temperature_c: Array
    kind: NDArray[np.int8]
    flags: Mask


class HeatMap(NamedTuple):
    """Temperatures on a grid, y by x [degC], and its hottest place; ``kind`` is a number of ``KINDS``."""

    grid_x_mm: Array
    grid_y_mm: Array
    temperature_c: Array
    hot_c: Array
    hot_x_mm: Array
    hot_y_mm: Array
    kind: NDArray[np.int8]
    flags: Mask


def interpolated(
    x_mm: ArrayLike, y_mm: ArrayLike, temperature_c: ArrayLike, at_x_mm: ArrayLike, at_y_mm: ArrayLike
) -> Interpolated:
    r"""Temperature at any place between sensors.

    .. math:: T = (1-u)(1-v) T_{00} + u (1-v) T_{10} + (1-u) v T_{01} + u v T_{11}

    in the cell of a regular grid, u and v the place in it; elsewhere linear in the triangles of Delaunay, which are
    those without a sensor in their circumcircle.

    Source: [Hong2012] section 4.3.3, which draws contours between the sensors; the triangles are [Barber1996]'s.

    Args:
        x_mm: Places of the sensors, flat [mm].
        y_mm: Likewise [mm].
        temperature_c: What they read [degC]; a sensor without value is left out.
        at_x_mm: Places asked for, any shape [mm].
        at_y_mm: Likewise [mm].

    Returns: Interpolated, in the common shape of the places asked for.

    Range: within the readings of the sensors; NaN outside their hull, with EXTRAPOLATED. INPUT_SUSPECT where a sensor
    was left out; with kind 0 and NaN where fewer than three are left, they stand in line, or two stand in one place.

    Errors: TypeError for a wrong dtype, ValueError for shapes that do not fit.

    >>> square = interpolated([0, 1, 0, 1], [0, 0, 1, 1], [60.0, 70.0, 60.0, 80.0], [0.5, 2.0], [0.5, 0.5])
    >>> square.temperature_c.tolist(), KINDS[square.kind], square.flags.tolist()
    ([67.5, nan], 'bilinear', [0, 16])
    """
    x, y, T = flat_floats(x_mm=x_mm, y_mm=y_mm, temperature_c=temperature_c)
    at_x, at_y = floats(at_x_mm=at_x_mm, at_y_mm=at_y_mm)
    good = np.isfinite(x) & np.isfinite(y) & np.isfinite(T)
    x, y, T = x[good], y[good], T[good]
    asked = np.isfinite(at_x) & np.isfinite(at_y)
    if not _spans(x, y):
        kind, value = NONE, np.full(at_x.shape, np.nan)
    elif (table := _regular(x, y, T)) is not None:
        kind, value = BILINEAR, _bilinear(*table, at_x, at_y)
    else:
        kind, value = DELAUNAY, _triangles(x, y, T, at_x, at_y)
    suspicious = (not good.all()) | (kind == NONE) | ~asked
    outside = np.isnan(value) & asked & (kind != NONE)
    flags = mask((Flag.INPUT_SUSPECT, suspicious), (Flag.EXTRAPOLATED, outside))
    return Interpolated(np.asarray(value), np.asarray(kind, dtype=np.int8), np.broadcast_to(flags, at_x.shape))


def _spans(x: Array, y: Array) -> bool:
    """Return whether the sensors are enough, at different places and not in line."""
    if x.size < MIN_SENSORS:
        return False
    places = np.column_stack((x, y))
    if len(np.unique(np.round(places / SAME_PLACE_MM), axis=0)) < x.size:
        return False
    along, across = np.linalg.svd(places - places.mean(axis=0), compute_uv=False)
    return bool(across > FLAT * along)


def _regular(x: Array, y: Array, T: Array) -> tuple[Array, Array, Array] | None:
    """Return axes and table of sensors on a complete grid; None for others."""
    (X, i), (Y, j) = (np.unique(np.round(v / SAME_PLACE_MM), return_inverse=True) for v in (x, y))
    if X.size * Y.size != T.size:
        return None
    table = np.full((Y.size, X.size), np.nan)
    table[j, i] = T
    return X * SAME_PLACE_MM, Y * SAME_PLACE_MM, table


def _bilinear(X: Array, Y: Array, table: Array, x: Array, y: Array) -> Array:
    inside = (
        (x >= X[0] - SAME_PLACE_MM) & (x <= X[-1] + SAME_PLACE_MM)
        & (y >= Y[0] - SAME_PLACE_MM) & (y <= Y[-1] + SAME_PLACE_MM)
    )  # fmt: skip
    x, y = np.clip(np.where(inside, x, X[0]), X[0], X[-1]), np.clip(np.where(inside, y, Y[0]), Y[0], Y[-1])
    i = np.clip(np.searchsorted(X, x, side="right") - 1, 0, X.size - 2)
    j = np.clip(np.searchsorted(Y, y, side="right") - 1, 0, Y.size - 2)
    u, v = (x - X[i]) / (X[i + 1] - X[i]), (y - Y[j]) / (Y[j + 1] - Y[j])
    low = (1 - u) * table[j, i] + u * table[j, i + 1]
    high = (1 - u) * table[j + 1, i] + u * table[j + 1, i + 1]
    return np.where(inside, (1 - v) * low + v * high, np.nan)


def _triangles(x: Array, y: Array, T: Array, at_x: Array, at_y: Array) -> Array:
    from scipy.interpolate import LinearNDInterpolator

    origin = np.array([x.mean(), y.mean()])
    surface = LinearNDInterpolator(np.column_stack((x, y)) - origin, T)
    return np.asarray(surface(at_x - origin[0], at_y - origin[1]), dtype=np.float64)


def heat_map(
    x_mm: ArrayLike,
    y_mm: ArrayLike,
    temperature_c: ArrayLike,
    grid_x_mm: ArrayLike | None = None,
    grid_y_mm: ArrayLike | None = None,
) -> HeatMap:
    r"""Temperature over the die on a grid, and its hot spot.

    .. math:: (x, y)_{hot} = \arg\max T(x, y)

    A surface that is linear between sensors is hottest at a sensor: the hot spot of the chip lies within a pitch of
    the one found. The grid chosen here has a line through every sensor.

    Source: [Hong2012] sections 4.3.3 and 4.5.2.

    Args:
        x_mm: Places of the sensors, flat [mm].
        y_mm: Likewise [mm].
        temperature_c: What they read [degC]; a sensor without value is left out.
        grid_x_mm: Columns of the grid, flat, ascending [mm]; None chooses them.
        grid_y_mm: Rows of the grid, likewise [mm].

    Returns: HeatMap.

    Range: as `interpolated`; ``flags`` is one mask. Without a map the hot spot is NaN.

    Errors: TypeError for a wrong dtype, ValueError for shapes that do not fit.

    >>> corner = heat_map([0, 10, 0, 10], [0, 0, 10, 10], [60.0, 61.0, 62.0, 71.0])
    >>> float(corner.hot_c), float(corner.hot_x_mm), float(corner.hot_y_mm), corner.temperature_c.shape
    (71.0, 10.0, 10.0, (121, 121))
    """
    x, y, T = flat_floats(x_mm=x_mm, y_mm=y_mm, temperature_c=temperature_c)
    X = _axis(x) if grid_x_mm is None else flat_floats(grid_x_mm=grid_x_mm)[0]
    Y = _axis(y) if grid_y_mm is None else flat_floats(grid_y_mm=grid_y_mm)[0]
    found = interpolated(x, y, T, X, Y[:, np.newaxis])
    flags = mask((Flag.INPUT_SUSPECT, (found.flags & Flag.INPUT_SUSPECT).any() or found.kind == NONE))
    return HeatMap(X, Y, found.temperature_c, *_hottest(X, Y, found.temperature_c), found.kind, flags)


def _axis(places: Array) -> Array:
    places = places[np.isfinite(places)]
    if not places.size:
        return np.empty(0)
    # Rounding parts a line of the even grid from that of the sensor it goes through.
    even = np.linspace(places.min(), places.max(), POINTS)
    near = np.abs(even[:, np.newaxis] - places).min(axis=1) < SAME_PLACE_MM
    return np.unique(np.concatenate((even[~near], places)))


def _hottest(X: Array, Y: Array, T: Array) -> tuple[Array, Array, Array]:
    if not np.isfinite(T).any():
        return arrays(np.nan, np.nan, np.nan)
    j, i = np.unravel_index(int(np.nanargmax(T)), T.shape)
    return arrays(T[j, i], X[i], Y[j])


def difference_map(
    grid_x_mm: ArrayLike, grid_y_mm: ArrayLike, active_c: ArrayLike, idle_c: ArrayLike, kind: int = BILINEAR
) -> HeatMap:
    r"""Difference of two maps on one grid, and where the first is warmest against the second.

    .. math:: \Delta T(x, y) = T_{active}(x, y) - T_{idle}(x, y)

    Source: [Hong2012] section 4.5.2: an active core is about 5 degC above its surroundings.

    Args:
        grid_x_mm: Columns of both maps, flat [mm].
        grid_y_mm: Rows of both maps, flat [mm].
        active_c: Temperatures, y by x [degC].
        idle_c: Likewise [degC].
        kind: How the maps were made, a number of ``KINDS``.

    Returns: HeatMap of differences [K].

    Range: any; NaN where either map is. INPUT_SUSPECT and NaN as hot spot where they nowhere overlap.

    Errors: TypeError for a wrong dtype, ValueError for maps that are not on the grid.

    >>> spot = difference_map([0, 1], [0, 1], [[60.0, 65.0], [60.0, 60.0]], [[59.0, 59.0], [58.0, 60.0]])
    >>> float(spot.hot_c), float(spot.hot_x_mm), float(spot.hot_y_mm)
    (6.0, 1.0, 0.0)
    """
    (X,), (Y,) = flat_floats(grid_x_mm=grid_x_mm), flat_floats(grid_y_mm=grid_y_mm)
    (active,), (idle,) = floats(active_c=active_c), floats(idle_c=idle_c)
    if not active.shape == idle.shape == (Y.size, X.size):
        raise ValueError(
            f"active_c has shape {active.shape}, idle_c {idle.shape}; allowed: {(Y.size, X.size)}, y by x of the grid"
        )
    difference = np.asarray(active - idle)
    known = np.isfinite(difference).any()
    found = kind if known else NONE
    flags = mask((Flag.INPUT_SUSPECT, not known))
    return HeatMap(X, Y, difference, *_hottest(X, Y, difference), np.asarray(found, dtype=np.int8), flags)


def band_edges(temperature_c: ArrayLike, bands: int = BANDS) -> Array:
    r"""Edges of the colour bands of a map: round numbers that cover it.

    .. math:: e_k = s k, \quad s \in \{1, 2, 2.5, 5\} \cdot 10^n \text{ the least with at most the bands asked for}

    Source: this project, for the colour bands of [Hong2012] section 4.3.3.

    Args:
        temperature_c: Temperatures or differences [degC]; NaN is left out.
        bands: Most bands, 2 or more.

    Returns: the edges, ascending; none where no temperature is known.

    Range: the least edge is at most the least temperature, the last at least the greatest; half a degree
    on both sides of a map that is the same everywhere.

    Errors: TypeError for a wrong dtype, ValueError for fewer than two bands.

    >>> band_edges([61.3, 70.2]).tolist()
    [61.0, 62.0, 63.0, 64.0, 65.0, 66.0, 67.0, 68.0, 69.0, 70.0, 71.0]
    >>> band_edges([-1.0, 4.2], 6).tolist()
    [-1.0, 0.0, 1.0, 2.0, 3.0, 4.0, 5.0]
    """
    if bands < 2:
        raise ValueError(f"bands is {bands}; allowed: 2 or more")
    (T,) = floats(temperature_c=temperature_c)
    T = T[np.isfinite(T)]
    if not T.size:
        return np.empty(0)
    low, high = float(T.min()), float(T.max())
    if high - low < SAME_PLACE_MM:
        low, high = low - 0.5, high + 0.5
    exponent = np.floor(np.log10((high - low) / bands))
    for step in STEPS:
        s = step * 10.0**exponent
        first, last = np.floor(low / s + SAME_PLACE_MM), np.ceil(high / s - SAME_PLACE_MM)
        if last - first <= bands:
            break
    edges = np.arange(first, last + 1) * s
    edges[0], edges[-1] = min(edges[0], low), max(edges[-1], high)  # 3 * 0.1 is more than 0.3
    return np.asarray(edges)
