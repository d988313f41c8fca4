import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from profsvc.formulas.numerics.flags import Flag
from profsvc.formulas.thermocouples.rotation import repeatability_test, rotation_test

X, Y = (v.ravel().astype(float) * 5 for v in np.meshgrid(range(4), range(4)))
CENTRE = 7.5 + 7.5j


def place(angle_deg: float) -> np.ndarray:
    """Which place each sensor of the 4 x 4 grid has at this angle, found by whole quarter turns."""
    z = np.round((X + 1j * Y - CENTRE) * 1j ** round(angle_deg / 90) + CENTRE, 6)
    return np.array([int(np.abs(X + 1j * Y - one).argmin()) for one in z])


def runs(F: np.ndarray, b: np.ndarray | float = 0.0, angles: tuple[float, ...] = (0, 90)) -> np.ndarray:
    return np.array([F[place(angle)] + b for angle in angles])


def chip(height: float = 6.0) -> np.ndarray:
    """A chip that is warm all over and hot around (10, 5)."""
    return 55 + 0.05 * X + height * np.exp(-((X - 10) ** 2 + (Y - 5) ** 2) / 30)


def balanced(seed: int, sd: float) -> np.ndarray:
    """Biases whose sum over the places that a quarter turn connects is 0."""
    b = np.random.default_rng(seed).normal(0, sd, 16)
    turn = place(90)
    return b - (b + b[turn] + b[turn[turn]] + b[turn[turn[turn]]]) / 4


@given(st.integers(0, 10**6))
def test_field_and_bias_come_apart(seed: int) -> None:
    b = balanced(seed, 0.5)
    found = rotation_test(X, Y, runs(chip(), b))
    np.testing.assert_allclose(found.bias_c, b, atol=1e-9)
    np.testing.assert_allclose(found.field_c, chip(), atol=1e-9)
    assert (found.rank, found.unknowns, found.orbits) == (28, 32, 4)
    assert not found.flags


def test_a_hot_spot_of_the_chip_passes_and_one_of_a_sensor_fails() -> None:
    found = rotation_test(X, Y, runs(chip(), balanced(1, 0.1)))
    assert found.passed
    assert found.hot_move_mm == 0
    assert found.pitch_mm == 5
    assert found.correlation > 0.99
    sensor = 60 + 6.0 * (np.arange(16) == 6)
    broken = rotation_test(X, Y, [sensor, sensor])
    assert not broken.passed
    assert broken.hot_move_mm > 4.9
    assert broken.correlation < 0
    assert np.abs(broken.bias_c).argmax() == 6


def limits(found) -> tuple[bool, bool, bool]:
    largest = np.abs(found.bias_c).max()
    return (
        bool(found.hot_move_mm < found.pitch_mm), bool(found.correlation > 0.9), bool(largest < found.contrast_c / 2)
    )  # fmt: skip


def test_each_limit_fails_alone() -> None:
    # Two spots alike: which of them is hottest changes from run to run, all else agrees.
    twin = chip() + 6 * np.exp(-((X - 0) ** 2 + (Y - 15) ** 2) / 30)
    first, second = runs(twin)
    first[int(np.flatnonzero((X == 0) & (Y == 15))[0])] += 1.5
    moved = rotation_test(X, Y, [first, second])
    assert limits(moved) == (False, True, True)
    # One spot that stays, among others that do not repeat.
    first, second = runs(60 + 3.0 * (np.arange(16) == 6))
    jitter = np.random.default_rng(0).uniform(-0.9, 0.9, 16)
    uncorrelated = rotation_test(X, Y, [first, second + jitter * (place(90) != 6)])
    assert limits(uncorrelated) == (True, False, True)
    # Half of the chip is as hot as its hottest place: no contrast to show that a bias is small.
    half = np.where(X > 7, 60.0, 50.0) + 0.5 * (np.arange(16) == 6) + 10 * (np.arange(16) == 0)
    biased = rotation_test(X, Y, runs(half, 0.45 * (np.arange(16) == 12) - 0.45 * (np.arange(16) == 3)))
    assert limits(biased) == (True, True, False)
    assert not any(found.passed for found in (moved, uncorrelated, biased))


def test_a_dead_sensor_and_more_turns() -> None:
    b, angles = balanced(4, 0.3), (0, 90, 180, 270)
    T = runs(chip(), b, angles)
    four = rotation_test(X, Y, T, angles)
    np.testing.assert_allclose(four.bias_c, b, atol=1e-9)
    assert four.passed
    T[:, 3] = np.nan
    found = rotation_test(X, Y, T, angles)
    assert np.isnan(found.bias_c[3])
    others = np.arange(16) != 3
    group = others & np.isin(np.arange(16), [3, 15, 12, 0])
    np.testing.assert_allclose(found.bias_c[group], b[group] - b[group].mean(), atol=1e-9)
    np.testing.assert_allclose(found.bias_c[others & ~group], b[others & ~group], atol=1e-9)
    assert np.isfinite(found.field_c).all()
    assert found.flags == Flag.INPUT_SUSPECT
    assert found.correlation > 0.9


def test_layouts_that_do_not_close() -> None:
    x, y = (v.ravel() for v in np.meshgrid(np.arange(4.0), np.arange(3.0)))
    for found in (
        rotation_test(x, y, np.full((2, 12), 60.0)),
        rotation_test(X, Y, np.full((2, 16), 60.0), (0, 45)),
        rotation_test(X, Y, np.full((1, 16), 60.0), (0,)),
        rotation_test(X[:2], Y[:2], np.full((2, 2), 60.0)),
        rotation_test(X, Y, np.full((2, 16), np.nan)),
        repeatability_test(X, Y, np.full(16, np.nan), np.full(16, 60.0)),
    ):
        assert not found.passed
        assert found.flags == Flag.INPUT_SUSPECT
        assert np.isnan(found.bias_c).all()
    half_turn = 60 + x + y
    assert rotation_test(x, y, [half_turn, half_turn[::-1]], (0, 180)).passed
    assert not rotation_test(X, Y, runs(chip()), centre_mm=(0, 0)).passed
    with pytest.raises(ValueError, match="runs by sensors"):
        rotation_test(X, Y, np.zeros((16, 2)))


def test_a_flat_chip_has_no_contrast_to_pass_by() -> None:
    found = rotation_test(X, Y, np.full((2, 16), 60.0))
    assert not found.passed
    assert found.contrast_c == pytest.approx(0)


def test_repeatability() -> None:
    again = repeatability_test(X, Y, chip(), chip() + np.random.default_rng(5).normal(0, 0.1, 16))
    assert again.passed
    other = repeatability_test(X, Y, chip(), chip()[place(90)])
    assert not other.passed
    assert other.hot_move_mm == pytest.approx(5)
    dead = repeatability_test(X, Y, chip(), np.where(np.arange(16) == 2, np.nan, chip()))
    assert np.isnan(dead.bias_c[2])
    assert dead.flags == Flag.INPUT_SUSPECT
