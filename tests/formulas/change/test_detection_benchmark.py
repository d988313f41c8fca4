"""What the benchmark of detection says of other tools."""

import sys

import numpy as np
import pytest

from tests.benchmarks import detection, peers


def test_a_change_is_counted_once_and_where_it_is_first_said() -> None:
    row = np.r_[np.ones(8), np.full(6, 1.2)]
    assert peers.findings(peers.threshold(), row[np.newaxis], 6) == [[0, 8, 8], [0, 11, 11]]
    last = peers.findings(lambda x: [x.size - 2], row[np.newaxis], 6)
    assert [place for _, _, place in last] == [5, 8, 11]


def test_missing_nights_are_no_looks() -> None:
    row = np.r_[np.ones(6), np.nan, 1.5]
    assert peers.findings(peers.threshold(), row[np.newaxis], 5) == [[0, 7, 7]]


def test_what_is_missing_is_named(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(detection, "MISSING", set())
    told = detection.of_peers(sys.executable, np.zeros((1, 10)), 8)
    missing = {"otava", "asv", "ruptures"} - set(told)
    assert told["threshold"] == []
    said = capsys.readouterr().err
    assert all(f"{name} is missing: No module named" in said for name in missing)
    assert said.count("missing") == len(missing)


def test_the_bound_is_the_power_of_a_normal_test() -> None:
    assert detection.bound(50, 0.0) == pytest.approx(0.01, rel=1e-6)  # 2 in 1000 nights, five nights
    assert detection.bound(10, 2.0) == pytest.approx(0.859, abs=0.001)
    assert detection.bound(10, 2.0, rho=0.3) == pytest.approx(0.665, abs=0.001)
    assert detection.bound(10, 2.0, missing=1 / 3) == pytest.approx(0.63, abs=0.03)


def test_the_limit_is_below_the_bound_and_rises_with_the_history() -> None:
    rng = np.random.default_rng(1)
    found = [detection.limit(rng, history, 2.0, series=4000) for history in (12, 50)]
    assert found[0] < found[1]
    assert [one < detection.bound(history, 2.0) for one, history in zip(found, (12, 50), strict=True)] == [True, True]
    assert detection.limit(rng, 12, 0.0, series=4000) == pytest.approx(0.014, abs=0.006)
    assert 0.0 < detection.limit(rng, 4, 2.0, series=1000) < 1.0  # in the first night nothing is before five values
