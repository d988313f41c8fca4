"""What an analysis of power found comes out of its views as it went in, and so does what it needs of a run."""

from typing import Any

import numpy as np
import pandas as pd
import pytest
from sqlalchemy import Engine, inspect, text

from profsvc import pipeline, store
from profsvc.errors import DomainError, NotFoundError
from profsvc.store.connection.transactions import reading, writing
from profsvc.store.schema.results.power import FRAMES
from profsvc.tables import Batch
from tests.store.conftest import KERNELS, batches
from tests.store.ingest.test_events import BIG, batch, put
from tests.store.ingest.writers.test_samples import HEAT, POWER, START, log, ordinary, sample
from tests.views import power_logs

FIRST = 10**9 + 1  # the sensor of power, and the one of temperature behind it
FULL: dict[str, dict[str, Any]] = {
    "power_windows": {
        **{column.name: 1.5 + place for place, column in enumerate(FRAMES["power_windows"]) if column.kind == "float"},
        "window": "mix, 132 SMs (2)", "kind": "load", "source": "marks", "load": "mix", "kernel": KERNELS[0],
        "active_sms": 132, "launches": 37729, "sensor_id": FIRST, "temperature_sensor_id": FIRST + 1,
        "begin_ns": BIG, "end_ns": BIG + 2, "readings": 1500, "quality": "averaged; gap", "reason": "it's 100 % idle",
    },
    "power_coefficients": {
        **{c.name: 2.5 + place for place, c in enumerate(FRAMES["power_coefficients"]) if c.kind == "float"},
        "sensor_id": FIRST, "temperature_sensor_id": FIRST + 1, "law": "linear", "form": "consistent", "segments": 3,
        "readings": 400, "used": 1, "reason": "range 2.1 C, at least 5 C is needed",
    },
    "power_models": {
        "model": "thermal", "quantity": "rc_rise", "value": 35.5, "low": 30.0, "high": 41.0, "unit": "s",
        "sensor_id": FIRST, "window": "mix", "form": "consistent", "flags": 16, "reason": "none",
    },
    "power_quality": {
        "sensor_id": FIRST, "upload_id": 1, "window": "mix", "flag": "slow_sensor", "value": 0.1, "unit": "s",
        "message": "it updates every 0.1 s",
    },
}  # fmt: skip
VIEWS = {name: "v1_power" if name == "power_windows" else f"v1_{name}" for name in FRAMES}


def few(name: str) -> dict[str, Any]:
    needed = {column.name for column in FRAMES[name] if not column.nullable}
    return {column: cell for column, cell in FULL[name].items() if column in needed}


def frames(*, again: float = 1.0) -> dict[str, pd.DataFrame]:
    made = {name: pd.DataFrame([FULL[name], few(name)]) for name in FRAMES}
    made["power_windows"]["mean_power_w"] = [again, np.nan]
    return made


@pytest.fixture
def analysed(engine: Engine) -> Engine:
    put(engine, "a", ordinary(6), run="r", device="NVIDIA H200")
    store.save_power(engine, 1, frames(), "7")
    return engine


@pytest.mark.parametrize("name", FRAMES)
def test_rows_come_back_as_they_went_in(analysed: Engine, name: str) -> None:
    rows = store.select(analysed, VIEWS[name], run_id=1)
    want = [{column.name: row.get(column.name) for column in FRAMES[name]} for row in (FULL[name], few(name))]
    if name == "power_windows":
        want[0]["mean_power_w"] = 1.0
    if name == "power_models":
        want[0]["flags"], want[1]["flags"] = "EXTRAPOLATED", ""
    assert [{column: row[column] for column in want[0]} for row in rows] == want
    about = {"run_id": 1, "project": "default", "run": "r", "analysis_version": "7"}
    assert [{column: row[column] for column in about} | {"item": row["item"]} for row in rows] == [
        about | {"item": 0}, about | {"item": 1},
    ]  # fmt: skip


def test_a_row_says_what_its_sensor_is(analysed: Engine) -> None:
    row = store.select(analysed, "v1_power")[0]
    assert (row["sensor"], row["upload_id"], row["gpu_index"], row["device"]) == (POWER["name"], 1, 3, "GPU-1f2e")
    assert row["temperature_sensor"] == "t"
    of_run = store.select(analysed, "v1_power_models")[1]
    assert (of_run["sensor"], of_run["upload_id"], of_run["device"]) == (None, None, "NVIDIA H200")
    assert store.select(analysed, "v1_power", window=FULL["power_windows"]["window"])  # though SQL has a word for it


def test_an_analysis_replaces_the_one_before(analysed: Engine) -> None:
    put(analysed, "b", ordinary(4), run="other")
    store.save_power(analysed, 2, frames(), "7")
    store.save_power(analysed, 1, {"power_windows": frames(again=2.0)["power_windows"]}, "8")
    rows = store.table(analysed, "v1_power", run_id=1)
    assert (rows["mean_power_w"][0], rows["analysis_version"][0], len(rows)) == (2.0, "8", 2)
    for name in ("power_coefficients", "power_models", "power_quality"):
        assert store.table(analysed, VIEWS[name], run_id=1).empty
        assert len(store.table(analysed, VIEWS[name], run_id=2)) == 2
    store.save_power(analysed, 1, dict.fromkeys(FRAMES, pd.DataFrame()), "8")
    assert store.table(analysed, "v1_power", run_id=1).empty


@pytest.mark.parametrize("way", ["upload", "run"])
def test_rows_go_with_what_they_were_computed_of(analysed: Engine, way: str) -> None:
    put(analysed, "b", ordinary(4), run="r")
    if way == "upload":
        store.delete_upload(analysed, 2)
    else:
        store.delete_run(analysed, 1)
    with reading(analysed) as connection:
        assert [connection.execute(text(f"SELECT count(*) FROM {name}")).scalar_one() for name in FRAMES] == [0] * 4


def test_wrong_frames_are_refused_and_change_nothing(analysed: Engine) -> None:
    windows = frames()["power_windows"]
    wrong = {
        "no frame .* is named 'power'": {"power": windows},
        r"lacks the columns \['kind'\]": {"power_windows": windows.drop(columns="kind")},
        r"has no column \['colour'\]": {"power_windows": windows.assign(colour=1)},
        "power_windows.kind must not be null; row 1 is": {"power_windows": windows.assign(kind=["run", None])},
        "power_windows.readings must be a whole number but is 1.5": {"power_windows": windows.assign(readings=1.5)},
    }
    for message, given in wrong.items():
        with pytest.raises(DomainError, match=message):
            store.save_power(analysed, 1, given, "8")
    with pytest.raises(NotFoundError, match="no run has the number 9"):
        store.save_power(analysed, 9, frames(), "8")
    assert [len(store.table(analysed, view)) for view in VIEWS.values()] == [2] * 4


def test_whole_numbers_may_come_as_any_kind_of_number(engine: Engine) -> None:
    put(engine, "a", ordinary(2))
    made = frames()["power_windows"].assign(
        launches=pd.Series([5.0, np.nan]), active_sms=pd.array([BIG, None], "Int64")
    )
    store.save_power(engine, 1, {"power_windows": made}, "7")
    rows = store.select(engine, "v1_power")
    assert [(row["launches"], row["active_sms"]) for row in rows] == [(5, BIG), (None, None)]


def test_the_tables_have_the_columns_of_the_frames(engine: Engine) -> None:
    for name, columns in FRAMES.items():
        found = [column["name"] for column in inspect(engine).get_columns(name)]
        own = [f"{column.name}_id" if column.kind == "text" else column.name for column in columns]
        assert sorted(found) == sorted(["run_id", "item", *own, "version_id"])


def test_sensors_come_with_what_their_file_says(engine: Engine) -> None:
    put(engine, "a", ordinary(4), Batch(facts={"timezone": "UTC"}))
    put(engine, "b", *batches(), run="r")
    found = store.sensors_of_run(engine, 1)
    assert found[["sensor_id", "quantity", "unit", "format"]].to_numpy().tolist() == [
        [FIRST, "power", "W", "ncu_raw"], [FIRST + 1, "temperature", "degC", "ncu_raw"],
    ]  # fmt: skip
    assert found["facts"].tolist() == [{"timezone": "UTC"}] * 2
    put(engine, "c", *batches(), run="none")
    assert store.sensors_of_run(engine, 2).columns.tolist() == found.columns.tolist()
    assert [store.has_sensors(engine, run) for run in (1, 2)] == [True, False]
    assert [store.has_sensors(engine, 1, quantity) for quantity in ("power", "energy")] == [True, False]


@pytest.mark.parametrize(
    ("times", "clock", "want", "untimed"),
    [
        ([(START + i, None, i) for i in range(3)], "utc", [START, START + 1, START + 2], 0),
        ([(None, START + i, i) for i in range(3)], "local", [START, START + 1, START + 2], 0),
        ([(None, None, 5 * i) for i in range(3)], "elapsed", [0, 5, 10], 0),
        ([(None, START, 0), (START + 7, START + 7, 7), (None, START + 9, 9)], "utc", [START + 7], 2),
        ([(None, None, None)] * 3, "elapsed", [], 3),
    ],
)
def test_readings_come_on_the_best_clock(
    engine: Engine, times: list[Any], clock: str, want: list[int], untimed: int
) -> None:
    samples = [
        sample(0, i, *time, **({"value": None, "reason": "N/A"} if i == 1 else {})) for i, time in enumerate(times)
    ]
    put(engine, "a", log((POWER,), *samples))
    found = store.sensor_readings(engine, FIRST)
    assert (found.time_ns.tolist(), found.clock, found.untimed) == (want, clock, untimed)
    assert (found.time_ns.dtype, found.value.dtype) == (np.int64, np.float64)
    there = [i for i, time in enumerate(times) if want and time[("utc", "local", "elapsed").index(clock)] is not None]
    assert np.isnan(found.value).tolist() == [i == 1 for i in there]
    assert found.value[~np.isnan(found.value)].tolist() == [71.25 + i for i in there if i != 1]


def test_readings_follow_each_other_as_in_the_file(engine: Engine) -> None:
    rows = [sample(i % 2, i // 2, START + i // 2, None, i // 2) for i in range(40)]
    put(engine, "a", log((POWER, HEAT), *rows[:20]), log((), *rows[20:]))
    assert store.sensor_readings(engine, FIRST + 1).time_ns.tolist() == list(range(START, START + 20))
    with pytest.raises(NotFoundError, match="no sensor has the number 7"):
        store.sensor_readings(engine, 7)


def test_the_end_of_a_log_is_its_last_samples(engine: Engine) -> None:
    samples = [sample(i % 2, i // 2, START + i // 2 * 10**9, None, i // 2 * 10**9) for i in range(80)]
    put(engine, "a", log((POWER, HEAT), *samples))
    every = store.last_samples(engine, [FIRST, FIRST + 1], 40, 1.0)
    view = store.table(engine, "v1_samples", run_id=1)
    pd.testing.assert_frame_equal(every, view[every.columns.tolist()])
    # The last ten; every third where ten are to cover 25 s; never fewer than there are.
    for seconds, want in ((5.0, range(30, 40)), (25.0, range(12, 40, 3)), (1e6, range(0, 40, 4))):
        found = store.last_samples(engine, [FIRST + 1], 10, seconds)
        assert ((found["time_ns"] - START) // 10**9).tolist() == list(want)
        assert set(found["sensor_id"]) == {FIRST + 1}
    none = store.last_samples(engine, [], 10, 1.0)
    assert (none.columns.tolist(), len(none)) == (every.columns.tolist(), 0)


MARK: dict[str, Any] = {
    "name": "mix",
    "start_ns": START,
    "duration_ns": 5e9,
    "active_sms": 132,
    "launches": 9,
    "line": 2,
}


def test_marks_come_in_the_order_of_their_start_with_their_clock(engine: Engine) -> None:
    late = MARK | {"name": "late", "start_ns": START + 10}
    put(
        engine,
        "a",
        batch("ranges", late, MARK, {"name": "open", "start_ns": 1, "line": 3}),
        Batch(facts={"clock": "utc"}),
    )
    put(engine, "b", batch("ranges", MARK | {"name": "nvtx", "start_ns": 7}))
    found = store.marks_of_run(engine, 1)
    assert found[["name", "start_ns", "clock"]].to_numpy().tolist() == [
        ["nvtx", 7, "tool"], ["mix", START, "utc"], ["late", START + 10, "utc"],
    ]  # fmt: skip
    assert (found["active_sms"].tolist(), found["launches"].tolist()) == ([132] * 3, [9] * 3)
    put(engine, "c", *batches(), run="none")
    assert store.marks_of_run(engine, 2).columns.tolist() == found.columns.tolist()


def test_launches_come_in_the_order_of_their_start(engine: Engine) -> None:
    put(engine, "a", *batches(4), Batch(facts={"clock": "utc"}))
    put(engine, "b", *batches(2, start_ns=[5, None]))
    found = store.launch_times(engine, 1)
    assert found["start_ns"].tolist() == [5, *(2**60 + i for i in range(4))]
    assert found["kernel"].tolist() == [KERNELS[0], *KERNELS, *KERNELS]
    assert found["kernel_short"].tolist() == ["gemm", "gemm", "saxpy", "gemm", "saxpy"]
    assert found["duration_ns"].tolist() == [1250.0, 1250.0, 1250.5, 1251.0, 1251.5]
    assert found["clock"].tolist() == ["tool", *["utc"] * 4]
    assert found["host"].tolist() == ["node1"] * 5
    put(engine, "d", *batches(2, host=[None, "node2"]), run="hosts")
    assert store.launch_times(engine, 2)["host"].tolist() == ["", "node2"]
    assert found["start_ns"].dtype == np.int64
    put(engine, "c", ordinary(2), run="none")
    assert store.launch_times(engine, 3).columns.tolist() == found.columns.tolist()


def test_times_of_a_session_count_from_its_start(engine: Engine) -> None:
    ranges = batch("ranges", MARK | {"start_ns": 3}, {"name": "open", "start_ns": 1, "line": 3})
    put(engine, "a", *batches(2, start_ns=[5, 9]), ranges, Batch(facts={"begin_utc_ns": str(START)}))
    launches, marks = store.launch_times(engine, 1), store.marks_of_run(engine, 1)
    assert launches[["start_ns", "clock"]].to_numpy().tolist() == [[START + 5, "utc"], [START + 9, "utc"]]
    assert marks[["start_ns", "clock"]].to_numpy().tolist() == [[START + 3, "utc"]]


def test_launches_of_two_pages_of_one_report_come_once(engine: Engine) -> None:
    put(engine, "a", *batches(4))
    put(engine, "b", *batches(4, begin_ns=7))
    with writing(engine) as connection:
        connection.execute(text("UPDATE uploads SET same_as = 1 WHERE upload_id = 2"))
    assert store.launch_times(engine, 1)["upload_id"].tolist() == [1] * 4


def test_a_long_log_comes_as_means_of_neighbours(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    power_logs.fill(engine)
    sensors = store.table(engine, "v1_sensors")
    number = int(sensors.loc[sensors["quantity"] == "power", "sensor_id"].iloc[0])
    whole = store.sensor_readings(engine, number)
    monkeypatch.setattr(store.results.power, "MAX_READINGS", len(whole.value) // 3)
    some = store.sensor_readings(engine, number)
    assert (whole.together, some.together) == (1, 4)
    assert len(some.value) == -(-len(whole.value) // 4) + (0 if len(whole.value) % 4 == 0 else len(whole.value) % 4 - 1)
    assert some.value[0] == pytest.approx(whole.value[:4].mean())
    full = len(whole.value) // 4 * 4
    assert some.value[: full // 4].mean() == pytest.approx(whole.value[:full].mean())
    assert (np.diff(some.time_ns) > 0).all()


def test_a_very_long_log_waits_until_somebody_asks(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pipeline.power, "MAX_READINGS_AT_UPLOAD", 10)
    run_id = power_logs.fill(engine)
    assert store.select(engine, "v1_power", run_id=run_id) == []
    (row,) = store.select(engine, "v1_power_quality", run_id=run_id)
    assert row["flag"] == "not_analysed"
    assert row["message"].endswith(f"run: profsvc analyze id:{run_id}")
    pipeline.analyze(engine, run_id, asked=True)
    assert store.select(engine, "v1_power", run_id=run_id)
