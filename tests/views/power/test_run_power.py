"""Power of a run as it is shown: what is stored, what is computed for one call, and its pictures."""

import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sqlalchemy import Engine

from profsvc import pipeline, store
from profsvc.analysis.power.options import Options
from profsvc.errors import NotFoundError, UsageError
from profsvc.store.schema.catalog import KINDS
from profsvc.views.power.plots import _over_time, pictures
from profsvc.views.power.run_power import NAMES, VIEWS, WINDOWS, power
from tests.views import power_logs


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    folder = tmp_path_factory.mktemp("power")
    engine = store.open_store(str(folder / "store.sqlite"), pooled=True)
    power_logs.fill(engine)
    fixture = Path(__file__).parents[3] / "fixtures" / "ncu_raw" / "plain.csv"
    with fixture.open("rb") as stream:
        pipeline.ingest(engine, stream, "plain.csv", store.RunInfo(name="profile"))
    yield engine
    engine.dispose()


def test_an_upload_has_its_power_analysed(engine: Engine) -> None:
    view = power(engine, "sweep")
    rows = {row["window"]: row for row in view["windows"]}
    assert view["stored"]
    assert list(rows) == ["run", "idle", *(f"mem, {n} SM{'s' * (n > 1)}" for n in power_logs.SMS)]
    assert rows["idle"]["mean_power_w"] == pytest.approx(80.01, abs=0.01)
    load = rows["mem, 66 SMs"]
    assert load["settled_power_w"] == pytest.approx(80.01 + 60 + 2 * 66, abs=0.01)
    assert load["mean_power_w"] == pytest.approx(load["energy_j"] / load["duration_s"], rel=1e-12)
    assert rows["mem, 66 SMs"]["energy_j"] == pytest.approx(2720, rel=0.03)
    assert (rows["mem, 66 SMs"]["launches"], rows["mem, 66 SMs"]["load"]) == (6600, "mem")
    assert set(WINDOWS) <= set(view["windows"][0])


def test_a_run_without_a_log_of_power_says_how_to_get_one(engine: Engine) -> None:
    said = r"run 'profile' has no log of power; upload one .*: profsvc upload --run profile FILE"
    with pytest.raises(NotFoundError, match=said):
        power(engine, "profile")
    assert store.table(engine, "v1_power", run_id=store.find_run(engine, "profile")).empty


def test_one_sensor_is_shown_by_name_or_number(engine: Engine) -> None:
    every = power(engine, "sweep")
    number = every["windows"][0]["sensor_id"]
    for name in ("power.draw.instant", str(number)):
        assert power(engine, "sweep", Options(sensor=name)) == every
    with pytest.raises(NotFoundError, match=r"did you mean 'power\.draw\.instant'"):
        power(engine, "sweep", Options(sensor="power.draw.instan"))


def test_what_options_change_is_computed_and_not_stored(engine: Engine) -> None:
    before = power(engine, "sweep")
    asked = power(engine, "sweep", Options(host_power_w=30.0))
    assert not asked["stored"]
    assert power(engine, "sweep") == before
    for key, view in VIEWS.items():
        for row in asked[NAMES[key]]:
            assert set(row) == set(KINDS[view])
            assert not [name for name, value in row.items() if value is not None and pd.isna(value)]
    for stored, own in zip(before["windows"], asked["windows"], strict=True):
        same = ("window", "sensor", "gpu_index", "device", "upload_id", "temperature_sensor", "begin_ns", "item", "run")
        assert [stored[name] for name in same] == [own[name] for name in same]
        assert own["mean_power_w"] == pytest.approx(stored["mean_power_w"] - 30)


def test_a_run_that_was_never_analysed_is_computed(engine: Engine) -> None:
    run_id = store.find_run(engine, "sweep")
    kept = power(engine, "sweep")
    store.save_power(engine, run_id, {}, "1")
    again = power(engine, "sweep")
    pipeline.analyze(engine, run_id)
    assert not again["stored"]
    assert [row["energy_j"] for row in again["windows"]] == [row["energy_j"] for row in kept["windows"]]
    assert power(engine, "sweep") == kept


def test_the_pictures_of_a_sweep(engine: Engine) -> None:
    made = pictures(engine, power(engine, "sweep"))
    assert [one.name for one in made] == ["time", "sms", "per-watt"]
    assert made[0].title == "Power over time: power.draw.instant of run sweep"
    for one in made:
        assert one.draw().startswith(b"<?xml")
    with pytest.raises(NotFoundError, match="no power sensor of run 'sweep' has enough readings for a plot"):
        pictures(engine, power(engine, "sweep") | {"windows": []})


def test_the_sensor_that_is_drawn_has_the_least_to_beware_of_in_its_windows(engine: Engine) -> None:
    view = power(engine, "sweep")
    own, other = (view["windows"][0][name] for name in ("sensor_id", "temperature_sensor_id"))
    late = [row | {"sensor_id": other, "sensor": "power.draw"} for row in view["windows"]]
    doubt = {"window": "mem, 1 SM", "flag": "counter_disagrees"}
    told = [{"sensor_id": own, "window": None, "flag": "segments_left_out"}] * 3
    for doubted, drawn in ((other, "power.draw.instant"), (own, "power.draw")):
        quality = [*told, doubt | {"sensor_id": doubted}]
        made = pictures(engine, view | {"windows": late + view["windows"], "quality": quality})
        assert made[0].title == f"Power over time: {drawn} of run sweep"


def test_the_corrected_power_is_drawn_where_there_is_one(engine: Engine) -> None:
    rows: list[dict[str, Any]] = [
        row | {"corrected_power_w": None, "coefficient_w_per_c": 2.0, "reference_temperature_c": 40.0}
        for row in power(engine, "sweep")["windows"]
    ]
    tracks, heat, bands, since = _over_time(engine, rows)
    assert (len(tracks), len(heat), since) == (1, 1, "2026-11-20 13:16:16 UTC")
    assert [(band.label, band.idle) for band in bands[:2]] == [("idle", True), ("mem, 1 SM", False)]
    assert (bands[1].begin_s, bands[1].end_s) == (22.0, 32.0)
    rows[-1]["corrected_power_w"] = 1.0  # the last load alone
    tracks, *_ = _over_time(engine, rows)
    label, time, value = tracks[1]
    assert label == "corrected to 40 \u00b0C"
    inside = (time >= bands[-1].begin_s) & (time < bands[-1].end_s)
    assert value[inside] == pytest.approx(tracks[0].value[inside] - 2.0 * (heat[0].value[inside] - 40))
    assert np.isnan(value[time < bands[-1].begin_s]).all()


def test_the_host_is_taken_off_one_sensor_only(tmp_path: Path) -> None:
    engine = store.open_store(str(tmp_path / "store.sqlite"), pooled=True)
    power_logs.fill(engine)
    wall = power_logs.log().replace("power.draw.instant", "power.draw").encode()
    pipeline.ingest(engine, io.BytesIO(wall), "wall.csv", store.RunInfo(name="sweep"), pipeline.ReadOptions(zone="UTC"))
    said = r"has 2 power sensors: power\.draw\.instant, power\.draw; select the wall meter with --sensor NAME"
    with pytest.raises(UsageError, match=said):
        power(engine, "sweep", Options(host_power_w=20.0))
    assert power(engine, "sweep", Options(host_power_w=20.0, sensor="power.draw"))["windows"]
    engine.dispose()
