"""Contrast of one core, partners, and hot spots of sets: how often intervals and pairs are right."""

import numpy as np
import pytest

from profsvc.formulas.thermocouples.active_cores import core_contrast, pair_cores, predicted_hot_spots


def test_the_interval_of_a_contrast_holds_in_about_95_of_100_cases() -> None:
    rng = np.random.default_rng(2)
    truth = np.array([5.0, 2.0, 1.0, 0.6, 0.3, 0.2, 0.1, 0.0, 0.0])
    found = core_contrast(truth + rng.normal(0, 0.05, (3000, 9)), np.full((3000, 9), 0.05))
    held = (found.low_c < 4.7) & (found.high_c > 4.7)
    assert 0.92 < held.mean() < 0.98
    assert (found.hottest == 0).all()


def test_pairs_are_found_in_noise_and_none_where_all_cores_differ() -> None:
    rng = np.random.default_rng(3)
    clusters = rng.normal(0, 2, (7, 16))
    maps = np.vstack((clusters, clusters)) + rng.normal(0, 0.2, (14, 16))
    found = pair_cores(maps)
    assert found.partner.tolist() == [*range(7, 14), *range(7)]
    assert found.paired.all()
    wrong = [pair_cores(rng.normal(0, 1, (8, 16))).paired.mean() for _ in range(200)]
    assert np.mean(wrong) < 0.05


def test_too_few_cores_or_sensors_have_no_partner_and_no_contrast() -> None:
    for maps in (np.zeros((2, 9)), np.zeros((5, 2)), np.zeros((0, 9))):
        found = pair_cores(maps)
        assert (found.partner == -1).all()
        assert not found.paired.any()
    none = core_contrast([[1.0, np.nan, np.nan, 2.0]], [[0.1] * 4])
    assert np.isnan(none.contrast_c[0])
    assert none.hottest[0] == -1


def test_a_sensor_that_is_silent_in_one_map_is_left_out_of_all() -> None:
    rise = np.array([[9.0, 1.0, 2.0], [np.nan, 3.0, 1.0]])
    found = predicted_hot_spots([40.0, 40.0, 40.0], rise, [[0, 1]])
    assert (found.temperature_c[0], found.sensor[0]) == (44.0, 1)
    silent = predicted_hot_spots([np.nan] * 3, rise, [[0, 1]])
    assert np.isnan(silent.temperature_c[0])
    with pytest.raises(ValueError, match="integers of shape"):
        predicted_hot_spots([40.0] * 3, rise, [0.5])
    with pytest.raises(TypeError, match="allowed: numbers"):
        pair_cores([["a"]])
    with pytest.raises(ValueError, match="one row per core"):
        core_contrast([1.0], [1.0])
