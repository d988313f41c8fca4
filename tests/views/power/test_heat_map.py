"""Heat maps of runs in a store: of one run, of the difference of two, calibrated, and of a spacer that was turned."""

import io
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from sqlalchemy import Engine

from profsvc import pipeline, store
from profsvc.errors import InputError, NotFoundError
from profsvc.pipeline import thermocouples
from profsvc.store.schema.catalog import KINDS
from profsvc.views.power.heat_map import ROWS, heat_map, rotated
from profsvc.views.power.run_power import power
from tests.views import power_logs
from tests.views import thermocouple_logs as logs


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    engine = store.open_store(str(tmp_path_factory.mktemp("heat") / "store.sqlite"), pooled=True)
    logs.fill_all(engine)
    idle = "\n".join(power_logs.log().split("\n")[:80]) + "\n"
    pipeline.ingest(engine, io.BytesIO(idle.encode()), "smi.csv", store.RunInfo(name="both"))
    yield engine
    engine.dispose()


def figures(rows: list[dict[str, Any]], quantity: str) -> dict[str | None, float]:
    return {row["sensor"]: row["value"] for row in rows if row["quantity"] == quantity}


def test_the_map_of_a_run_shows_what_each_place_reads(engine: Engine) -> None:
    found = heat_map(engine, "spacer")
    rows = found.view["models"]
    assert figures(rows, "steady_temperature") == pytest.approx(logs.field(), abs=0.02)
    assert figures(rows, "hot_spot")[None] == pytest.approx(58, abs=0.02)
    assert (figures(rows, "hot_spot_x"), figures(rows, "hot_spot_y")) == ({None: 21}, {None: 12})
    assert found.title == "Heat map of run spacer"
    assert {one["name"]: (one["x_mm"], one["y_mm"]) for one in found.view["heat_map"]["sensors"]} == logs.PLACES
    assert set(rows[0]) == set(KINDS["v1_power_models"])
    assert set(ROWS) <= set(rows[0])


def test_an_upload_stores_the_same_rows(engine: Engine) -> None:
    run_id = store.find_run(engine, "spacer")
    stored = store.select(engine, "v1_power_models", run_id=run_id)
    assert stored == heat_map(engine, "spacer").view["models"]
    assert pipeline.analyze(engine, run_id) == 0
    assert store.select(engine, "v1_power_models", run_id=run_id) == stored
    # A map that cannot be made is a row as well, with the reason.
    lost = store.select(engine, "v1_power_models", run_id=store.find_run(engine, "drifting"), quantity="hot_spot")
    assert [(row["value"], row["flags"]) for row in lost] == [(None, "INPUT_SUSPECT")]
    assert lost[0]["reason"].startswith("9 of 9 sensors are not steady; the worst is T")
    assert store.table(engine, "v1_power_models", run_id=store.find_run(engine, "nowhere")).empty


def test_rows_of_heat_stand_beside_those_of_power(engine: Engine) -> None:
    own = power(engine, "both")
    run_id = logs.fill(engine, "both", logs.log(logs.field(), seed=9))
    view = power(engine, "both")
    assert view["windows"] == own["windows"]
    assert [row for row in view["models"] if row["model"] not in ("thermocouple", "heat_map")] == own["models"]
    assert figures(view["models"], "hot_spot")[None] == pytest.approx(58, abs=0.02)
    store.save_power(engine, run_id, {}, "1")
    again = power(engine, "both")
    assert (again["stored"], again["models"]) == (False, view["models"])
    store.delete_upload(engine, store.select(engine, "v1_uploads", run_id=run_id)[-1]["upload_id"])
    pipeline.analyze(engine, run_id)
    assert power(engine, "both")["models"] == own["models"]


def test_a_difference_of_two_calibrated_runs(engine: Engine) -> None:
    found = heat_map(engine, "spacer", "idle", "plates")
    assert found.title == "Heat map of run spacer minus run idle"
    assert (found.view["minus"]["name"], found.view["calibration"]["name"]) == ("idle", "plates")
    shown = {one["name"]: one["temperature"] for one in found.view["heat_map"]["sensors"]}
    assert shown == pytest.approx({name: value - 40 for name, value in logs.field().items()}, abs=0.03)
    off = figures(found.view["models"], "calibration_offset")
    assert off == pytest.approx({f"T{k}": 0.1 * (k - 4) for k in range(9)}, abs=0.02)


def test_a_spacer_that_was_turned(engine: Engine) -> None:
    assert rotated(engine, "spacer", "turned", 90)["passed"] is True
    back = rotated(engine, "spacer", "turned", 0)
    assert (back["passed"], back["rotated"]["name"], back["angle_deg"]) == (False, "turned", 0)
    assert back["reason"].startswith("the hot spot moves by 12.7 mm; the limit is 9 mm")
    assert figures(back["models"], "passed") == {None: 0}


def test_what_makes_no_map_is_refused_with_the_figure(engine: Engine) -> None:
    with pytest.raises(InputError, match=r"run 'drifting' has no heat map: 9 of 9 sensors are not steady; .* \+1\.2"):
        heat_map(engine, "drifting")
    with pytest.raises(NotFoundError, match="run 'nowhere' has no heat map: none of the 9 temperature channels"):
        heat_map(engine, "nowhere")
    with pytest.raises(InputError, match=r"the subtracted run: none of the 9 temperature channels has a position"):
        heat_map(engine, "spacer", "nowhere")
    with pytest.raises(InputError, match=r"calibration run cannot be used: it has no channel 'T0', 'T1'"):
        heat_map(engine, "spacer", calibration="both")
    said = "rotation test of runs {} not possible: {}"
    with pytest.raises(InputError, match=said.format("'spacer' and 'drifting'", "the second run: 9 of 9")):
        rotated(engine, "spacer", "drifting", 90)
    with pytest.raises(NotFoundError, match=said.format("'nowhere' and 'spacer'", "none of the 9")):
        rotated(engine, "nowhere", "spacer", 90)
    with pytest.raises(NotFoundError, match="did you mean 'idle'"):
        heat_map(engine, "spacer", "idel")
    with pytest.raises(NotFoundError, match=r"has no log of power.*profsvc power id:1 --heat-map FILE\.svg"):
        power(engine, "spacer")


def test_a_time_constant_settles_a_short_run(engine: Engine) -> None:
    logs.fill(engine, "rising", logs.log(logs.field(), seconds=100, drift_c_per_s=0.01, seed=11))
    with pytest.raises(InputError, match="still drifts"):
        heat_map(engine, "rising")
    assert heat_map(engine, "rising", rc_s=15).view["models"]


@pytest.mark.parametrize(("least_s", "first_s", "each_s"), [(100.0, 140, 1), (150.0, 40, 2), (1e9, 0, 3)])
def test_only_the_end_of_a_long_log_is_looked_at(
    engine: Engine, monkeypatch: pytest.MonkeyPatch, least_s: float, first_s: int, each_s: int
) -> None:
    monkeypatch.setattr(thermocouples, "MAX_READINGS", 100)
    monkeypatch.setattr(thermocouples, "MIN_SPAN_S", least_s)
    elapsed = thermocouples.log_of_run(engine, 1).samples.groupby("sensor_id")["elapsed_ns"].agg(list)
    assert [sorted(times) for times in elapsed] == [[s * 10**9 for s in range(first_s, 240, each_s)]] * 9
    found = heat_map(engine, "spacer").view["models"]
    told = [row for row in found if row["quantity"] == "readings_looked_at"]
    assert [row["value"] for row in told] == [100]
    assert told[0]["reason"].startswith(
        "9 sensors have more than 100 readings (up to 240); only the last 100 of each were used"
    )
    assert figures(found, "steady_temperature") == pytest.approx(logs.field(), abs=0.02)


def test_an_hour_of_24_thermocouples_costs_little(engine: Engine) -> None:
    names = [f"C{k}" for k in range(24)]
    values = 50 + np.arange(24) + np.random.default_rng(3).normal(0, 0.02, (3600, 24))
    lines = [",".join(["t", *names]), *(f"{t}," + ",".join(f"{v:.2f}" for v in row) for t, row in enumerate(values))]
    columns = ("t=time:s", *(f"{name}=temperature:degC" for name in names))
    how = pipeline.ReadOptions(columns=columns, positions=tuple(f"{n}={k % 6},{k // 6}" for k, n in enumerate(names)))
    run = store.RunInfo(name="hour")
    verdict = pipeline.ingest(engine, io.BytesIO("\n".join(lines).encode()), "hour.csv", run, how)
    begin = time.process_time()
    rows = thermocouples.models_of_run(engine, verdict.run_id or 0)
    took = time.process_time() - begin
    assert (rows["quantity"] == "steady_temperature").sum() == 24
    assert took < 3  # it takes a fraction of a second
