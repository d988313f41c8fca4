"""What the power plots draw, as numbers: all of few readings, extremes of many, and a part in more detail."""

import numpy as np
import pytest

from profsvc import store
from profsvc.errors import NotFoundError
from profsvc.views.power.plots import series
from tests.views import power_logs


@pytest.fixture(scope="module")
def logged(empty, tmp_path_factory):
    file = tmp_path_factory.mktemp("logged") / "store.sqlite"
    file.write_bytes(empty.read_bytes())
    engine = store.open_store(str(file), pooled=True)
    power_logs.fill(engine, "board")
    yield engine
    engine.dispose()


def test_series_are_the_readings(logged):
    found = series(logged, "board")
    power = found["power"][0]
    sensor = store.select(logged, "v1_sensors", name=found["sensor"])[0]["sensor_id"]
    read = store.sensor_readings(logged, sensor)
    assert max(v for v in power["value"] if v is not None) == np.nanmax(read.value)
    assert (power["time_s"][0], found["begin_s"]) == (0.0, 0.0)
    assert found["end_s"] >= power["time_s"][-1]
    assert found["temperature"]
    assert {"label", "begin_s", "end_s", "idle"} == set(found["windows"][0])


def test_a_part_is_what_lies_in_it_and_one_reading_beside_it(logged):
    whole = series(logged, "board")
    begin, end = whole["end_s"] / 3 + 0.1, whole["end_s"] / 2 + 0.1  # between readings
    part = series(logged, "board", None, (begin, end))
    time = part["power"][0]["time_s"]
    assert (part["begin_s"], part["end_s"]) == (begin, end)
    assert time[0] <= begin < time[1]
    assert time[-2] <= end < time[-1]
    assert all(w["end_s"] >= begin and w["begin_s"] <= end for w in part["windows"])
    assert 0 < len(part["windows"]) <= len(whole["windows"])


def test_a_part_without_readings_is_empty(logged):
    part = series(logged, "board", None, (1e6, 2e6))
    assert len(part["power"][0]["time_s"]) <= 1
    assert part["windows"] == []


def test_many_readings_are_thinned_to_their_extremes(logged, monkeypatch):
    monkeypatch.setattr("profsvc.views.power.plots.STRETCHES", 5)
    assert series(logged, "board")["thinned"]
    assert not series(logged, "board", None, (0.0, 0.1))["thinned"]


def test_readings_out_of_order_are_put_in_order_and_none_are_none(logged, monkeypatch):
    read = store.sensor_readings
    monkeypatch.setattr(store, "sensor_readings", lambda *a: _turned(read(*a)))
    time = series(logged, "board")["power"][0]["time_s"]
    assert time == sorted(time)
    monkeypatch.setattr(store, "sensor_readings", lambda *a: _turned(read(*a), 0))
    empty_series = series(logged, "board")
    assert (empty_series["power"][0]["time_s"], empty_series["begin_s"]) == ([], 0.0)


def _turned(read, count=None):
    return read._replace(time_ns=read.time_ns[::-1][:count], value=read.value[::-1][:count])


def test_a_run_without_power_has_no_series(demo):
    with pytest.raises(NotFoundError, match="power"):
        series(demo, "h200")
