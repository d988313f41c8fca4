"""Rotation test: hot spots of the chip stay in place when the spacer is turned, sensor errors turn with it."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from profsvc.formulas.numerics.arrays import Array, Bools, Mask, arrays, flat_floats, floats, mask
from profsvc.formulas.numerics.flags import Flag

SAME_PLACE = 0.01  # of a pitch: nearer, two places are one
MIN_CORRELATION = 0.9


class RotationTest(NamedTuple):
    """Result of `rotation_test` and `repeatability_test`.

    ``field_c`` has one value per place, ``bias_c`` one per sensor; the rest are single values. ``rank`` of the
    ``unknowns`` are determined; ``orbits`` is the number of groups of places that rotation connects.
    """

    field_c: Array
    bias_c: Array
    hot_move_mm: Array
    pitch_mm: Array
    correlation: Array
    contrast_c: Array
    rank: NDArray[np.int64]
    unknowns: NDArray[np.int64]
    orbits: NDArray[np.int64]
    passed: Bools
    flags: Mask


def rotation_test(
    x_mm: ArrayLike,
    y_mm: ArrayLike,
    temperature_c: ArrayLike,
    angle_deg: ArrayLike = (0.0, 90.0),
    centre_mm: tuple[float, float] | None = None,
) -> RotationTest:
    r"""Temperature field of the chip and bias of each sensor from runs with the spacer turned.

    .. math:: T_{r,k} = F(R_r x_k) + b_k

    by least squares. A constant can move from F to b in every orbit of places that the rotation connects, so that one
    constant an orbit is free; it is fixed by a sum of b of 0 over the orbit, which is also the solution with the
    smallest b. Subtract the offsets of `calibrate` first.

    Passed where the hottest place of each run, in coordinates of the chip, is less than a pitch from that of the
    first; the readings of each run at the same places correlate with those of the first by more than 0.9; and the
    largest bias is less than half the contrast, which is the hottest place of F above its median.

    Source: [Hong2012] section 4.5.3, which compares pictures; the model and the limits are this project's.

    Args:
        x_mm: Places of the sensors at 0 degrees, flat, of length K [mm].
        y_mm: Likewise [mm].
        temperature_c: Settled means, of shape (R, K): one row per run [degC]; NaN is a sensor without value.
        angle_deg: Angle of the spacer in each run, counter-clockwise, of length R [deg].
        centre_mm: What the spacer turns about; the middle of the sensors if not given.

    Returns: Turned.

    Range: fields within the readings up to the biases; correlation in [-1, 1], the smallest of the runs. All NaN, not
    passed, with INPUT_SUSPECT for fewer than three sensors or two runs, or where a turned sensor stands where none
    stood before.

    Errors: TypeError for a wrong dtype, ValueError for shapes that do not fit.

    Four sensors on a square, of which the first reads 1 degC too much; a core is hot at (1, 0):

    >>> first, turned = [61.0, 70.0, 60.0, 62.0], [71.0, 62.0, 60.0, 60.0]
    >>> test = rotation_test([0, 1, 0, 1], [0, 0, 1, 1], [first, turned])
    >>> test.field_c.round(2).tolist(), test.bias_c.round(2).tolist(), int(test.rank), bool(test.passed)
    ([60.25, 70.25, 60.25, 62.25], [0.75, -0.25, -0.25, -0.25], 7, True)
    """
    x, y = flat_floats(x_mm=x_mm, y_mm=y_mm)
    (T,), (angle,) = floats(temperature_c=temperature_c), flat_floats(angle_deg=angle_deg)
    if T.shape != (angle.size, x.size):
        raise ValueError(f"temperature_c has shape {T.shape}; allowed: {(angle.size, x.size)}, runs by sensors")
    places = x + 1j * y
    pitch = _pitch(places)
    place = _places(places, angle, centre_mm, pitch)
    if place is None or angle.size < 2 or not np.isfinite(T).any():
        return _nothing(x.size, pitch)
    F, b, rank, orbits = _separated(T, place)
    return _verdict(places, T, place, F, b, pitch, rank, orbits)


def _pitch(places: NDArray[np.complex128]) -> float:
    """Distance of nearest neighbours, the median."""
    if places.size < 3 or not np.isfinite(places).all():
        return float("nan")
    apart = np.abs(places[:, np.newaxis] - places)
    np.fill_diagonal(apart, np.inf)
    return float(np.median(apart.min(axis=1)))


def _places(
    places: NDArray[np.complex128], angle: Array, centre_mm: tuple[float, float] | None, pitch: float
) -> NDArray[np.int64] | None:
    """The place at which each sensor sits in each run; None where one sits at none."""
    if not pitch > 0 or not np.isfinite(angle).all():
        return None
    low, high = (f(places.real) + 1j * f(places.imag) for f in (np.min, np.max))
    centre = (low + high) / 2 if centre_mm is None else complex(*centre_mm)
    turned = centre + (places - centre) * np.exp(1j * np.deg2rad(angle))[:, np.newaxis]
    apart = np.abs(turned[..., np.newaxis] - places)
    if not (apart.min(axis=-1) < SAME_PLACE * pitch).all():
        return None
    return np.asarray(apart.argmin(axis=-1), dtype=np.int64)


def _separated(T: Array, place: NDArray[np.int64]) -> tuple[Array, Array, int, int]:
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    R, K = T.shape
    sensor = np.broadcast_to(np.arange(K), (R, K))
    read = np.isfinite(T)
    n, p, k = int(read.sum()), place[read], sensor[read]
    A = np.zeros((n, 2 * K))
    A[np.arange(n), p] = 1
    A[np.arange(n), K + k] = 1
    solution, _, rank, _ = np.linalg.lstsq(A, T[read], rcond=None)
    _, group = connected_components(coo_array((np.ones(n), (p, K + k)), shape=(2 * K, 2 * K)), directed=False)
    known = np.zeros(2 * K, dtype=np.bool_)
    known[p] = known[K + k] = True
    size = np.bincount(group[K:], weights=known[K:], minlength=2 * K)
    moved = np.bincount(group[K:], weights=np.where(known[K:], solution[K:], 0.0), minlength=2 * K)
    shift = moved / np.maximum(size, 1)
    F, b = solution[:K] + shift[group[:K]], solution[K:] - shift[group[K:]]
    orbits = len(np.unique(group[known]))
    return np.where(known[:K], F, np.nan), np.where(known[K:], b, np.nan), int(rank), orbits


def _verdict(
    places: NDArray[np.complex128],
    T: Array,
    place: NDArray[np.int64],
    F: Array,
    b: Array,
    pitch: float,
    rank: int,
    orbits: int,
) -> RotationTest:
    on_chip = np.full(T.shape, np.nan)
    np.put_along_axis(on_chip, place, T, axis=1)
    with np.errstate(all="ignore"):
        move, correlation = _against_first(places, on_chip)
        contrast = float(np.nanmax(F) - np.nanmedian(F)) if np.isfinite(F).any() else np.nan
        passed = move < pitch and correlation > MIN_CORRELATION and bool(np.nanmax(np.abs(b)) < contrast / 2)
    flags = mask((Flag.INPUT_SUSPECT, not np.isfinite(T).all() or not np.isfinite([move, correlation]).all()))
    return RotationTest(*arrays(F, b, move, pitch, correlation, contrast, rank, 2 * b.size, orbits, passed, flags))


def _against_first(places: NDArray[np.complex128], T: Array) -> tuple[float, float]:
    """Largest move of the hottest place and least correlation of the runs against the first."""
    known = np.isfinite(T).all(axis=0)
    if known.sum() < 3:
        return float("nan"), float("nan")
    places, T = places[known], T[:, known]
    hot = places[T.argmax(axis=1)]
    D = T - T.mean(axis=1, keepdims=True)
    correlation = D[1:] @ D[0] / np.sqrt((D[1:] ** 2).sum(axis=1) * (D[0] @ D[0]))
    return float(np.abs(hot - hot[0]).max()), float(correlation.min())


def _nothing(K: int, pitch: float) -> RotationTest:
    unknown: Any = np.full(K, np.nan)
    flags = np.uint32(Flag.INPUT_SUSPECT)
    return RotationTest(*arrays(unknown, unknown, np.nan, pitch, np.nan, np.nan, 0, 2 * K, 0, False, flags))


def repeatability_test(x_mm: ArrayLike, y_mm: ArrayLike, first_c: ArrayLike, again_c: ArrayLike) -> RotationTest:
    r"""Repeatability of a second run with the spacer back in place.

    .. math:: F = \tfrac{1}{2} (T_1 + T_2), \qquad b = \tfrac{1}{2} (T_2 - T_1)

    Passed by the limits of `rotation_test`, with half the change of each sensor for its bias.

    Source: [Hong2012] section 4.5.3, which reports very similar results; the limits are this project's.

    Args:
        x_mm: Places of the sensors, flat, of length K [mm].
        y_mm: Likewise [mm].
        first_c: Settled means of the first run, of length K [degC]; NaN is a sensor without value.
        again_c: Those of the second [degC].

    Returns: Turned; every place is its own orbit.

    Range: as `rotation_test`; NaN, with INPUT_SUSPECT, for a sensor that lacks a value.

    Errors: TypeError for a wrong dtype, ValueError for shapes that do not fit.

    >>> test = repeatability_test([0, 1, 0, 1], [0, 0, 1, 1], [61.0, 70.0, 60.0, 62.0], [61.2, 70.2, 60.0, 62.0])
    >>> float(test.hot_move_mm), float(test.correlation.round(4)), bool(test.passed)
    (0.0, 0.9998, True)
    """
    x, y, first, again = flat_floats(x_mm=x_mm, y_mm=y_mm, first_c=first_c, again_c=again_c)
    places = x + 1j * y
    pitch = _pitch(places)
    if not pitch > 0:
        return _nothing(x.size, pitch)
    place = np.broadcast_to(np.arange(x.size), (2, x.size))
    both = int((np.isfinite(first) & np.isfinite(again)).sum())
    if not both:
        return _nothing(x.size, pitch)
    return _verdict(
        places, np.array([first, again]), place, (first + again) / 2, (again - first) / 2, pitch, both, both
    )
