"""Sensors and their samples: what goes in comes out, to the nanosecond, whichever clocks a file has."""

from typing import Any

import pytest
from sqlalchemy import Engine, text

from profsvc import store
from profsvc.errors import DomainError, InputError
from profsvc.store.connection.transactions import reading
from profsvc.store.schema.tables import metadata
from profsvc.tables import TABLES, Batch
from tests.store.conftest import info
from tests.store.ingest.test_events import batch, put

START = 1_700_000_000_123_456_789  # no double holds it
POWER: dict[str, Any] = {
    "sensor_index": 0, "quantity": "power", "name": "power.draw.instant", "unit": "W", "gpu_index": 3,
    "device": "GPU-1f2e", "x_mm": 1.5, "y_mm": -2.0, "quality": "stuck for 3 s", "line": 1,
}  # fmt: skip
HEAT: dict[str, Any] = {"sensor_index": 1, "quantity": "temperature", "name": "t", "unit": "degC"}
CLOCKS = ("time_ns", "local_ns", "elapsed_ns")


def sample(sensor: int, index: int, time: int | None, local: int | None, elapsed: int | None, **more: Any) -> Any:
    return {
        "sensor_index": sensor, "sample_index": index, "time_ns": time, "local_ns": local, "elapsed_ns": elapsed,
        "value": 71.25 + index, "line": index + 2, **more,
    }  # fmt: skip


def log(sensors: tuple[Any, ...], *samples: Any) -> Batch:
    tables = {**batch("sensors", *sensors).tables, **batch("samples", *samples).tables}
    return Batch(tables, lines_stored=len(samples))


def ordinary(length: int = 4) -> Batch:
    rows = [sample(i % 2, i // 2, START + i // 2 * 10**7, None, i // 2 * 10**7) for i in range(length)]
    return log((POWER, HEAT), *rows)


def clocks(engine: Engine) -> list[tuple[Any, ...]]:
    return [tuple(row[clock] for clock in CLOCKS) for row in store.select(engine, "v1_samples", run_id=1)]


def test_sensors_come_back_as_they_went_in(engine: Engine) -> None:
    put(engine, "a", ordinary(6))
    power, heat = store.select(engine, "v1_sensors", run_id=1)
    assert {column: power[column] for column in POWER} == POWER
    assert {column.name: heat[column.name] for column in TABLES["sensors"]} == {
        column.name: HEAT.get(column.name) for column in TABLES["sensors"]
    }
    assert (power["sensor_id"], heat["sensor_id"], power["samples"], heat["samples"]) == (10**9 + 1, 10**9 + 2, 3, 3)
    assert store.upload(engine, 1)["samples"] == 6
    put(engine, "b", ordinary(4))
    put(engine, "c", Batch(), run="empty")
    assert [run["samples"] for run in store.select(engine, "v1_runs")] == [10, 0]


def test_samples_come_back_sensor_by_sensor(engine: Engine) -> None:
    put(engine, "a", ordinary(6))
    rows = store.select(engine, "v1_samples", run_id=1)
    assert [(row["sensor_id"] % 10, row["sample_index"]) for row in rows] == [
        (1, 0), (1, 1), (1, 2), (2, 0), (2, 1), (2, 2),
    ]  # fmt: skip
    assert rows[1] == {
        "sensor_id": 10**9 + 1, "run_id": 1, "upload_id": 1, "block_id": 10**9 + 1, "sample_id": 10**9 + 2,
        "quantity": "power", "name": "power.draw.instant",
        "unit": "W", "gpu_index": 3, "sample_index": 1, "time_ns": START + 10**7, "local_ns": None,
        "elapsed_ns": 10**7, "value": 72.25, "reason": None, "as_read": 72.25, "line": 3,
        "block_last_id": 10**9 + 3, "block_least_ns": 1 - 2**63, "block_most_ns": 2**63 - 1,
        "block_least_time_ns": 1 - 2**63, "block_most_time_ns": 2**63 - 1,
    }  # fmt: skip


@pytest.mark.parametrize(
    "times",
    [
        [(START + i, None, i) for i in range(4)],
        [(None, START + i, i) for i in range(4)],
        [(None, None, i) for i in range(4)],
        [(None, None, None)] * 4,
        [(START + i, None, None) for i in range(4)],
        [(None, START + i, None) for i in range(4)],
        [(None, None, 0), (None, None, 5), (START + 9, None, 9), (None, None, 11)],
        [(START, None, 0), (None, None, 5), (START - 7, None, 9), (START + 11, START + 3600 * 10**9, None)],
        [(START - 7200 * 10**9 + i, START + i, i) for i in range(4)],
        [(2**62, None, 2**61), (0, None, 0), (-5, None, 2**62), (2**62 + 1, -(2**61), None)],
        [(2**63 - 1025, None, 0), (2**63 - 1025, None, 0), (2**62, None, None), (None, 2**62, None)],
    ],
)
def test_clocks_come_back_exactly(engine: Engine, times: list[tuple[int | None, ...]]) -> None:
    rows = [sample(0, index, *time) for index, time in enumerate(times)]
    put(engine, "a", log((POWER,), *rows[:1]), *(batch("samples", *part) for part in (rows[1:3], rows[3:])))
    assert clocks(engine) == times
    frame = store.table(engine, "v1_samples")
    assert [[None if cell is frame.dtypes.iloc[0].na_value else cell for cell in row] for row in
            frame[list(CLOCKS)].astype(object).to_numpy().tolist()] == [list(time) for time in times]  # fmt: skip


def test_clocks_that_agree_take_no_space(engine: Engine) -> None:
    put(engine, "a", ordinary())
    zoned = [sample(0, i, START - 7200 * 10**9 + i, START + i, i) for i in range(3)]
    put(engine, "b", log((POWER,), *zoned))
    with reading(engine) as connection:
        kept = connection.execute(
            text("SELECT DISTINCT time_shift_ns, local_shift_ns FROM samples ORDER BY 2 NULLS FIRST")
        ).all()
    assert [tuple(row) for row in kept] == [(0, None), (0, 0)]


@pytest.mark.parametrize(
    "later",
    [sample(0, 1, START, None, 2**63 - 1), sample(0, 1, -(2**62) * 2, None, 2**62), sample(0, 1, -(2**63), None, 0)],
)
def test_clocks_that_64_bits_cannot_bridge_are_refused(engine: Engine, later: Any) -> None:
    with pytest.raises(InputError, match="line 3: its time lies more than 292 years"):
        put(engine, "a", log((POWER,), sample(0, 0, START, None, 0), later))
    assert store.select(engine, "v1_uploads") == []


def test_clocks_that_agree_may_lie_far_apart(engine: Engine) -> None:
    elapsed = (0, -4 * 10**18, 6 * 10**18)  # more than 64 bits from the first to the last
    put(engine, "a", log((POWER,), *(sample(0, i, START + at, None, at) for i, at in enumerate(elapsed))))
    assert clocks(engine) == [(START + at, None, at) for at in elapsed]


def test_a_value_that_is_missing_has_a_reason(engine: Engine) -> None:
    rows = [sample(0, 0, START, None, 0, value=None, reason="[N/A]"), sample(0, 1, START, None, 0, value=float("inf"))]
    put(engine, "a", log((POWER,), *rows))
    found = store.select(engine, "v1_samples")
    outside = "implausible: outside plausible_low to plausible_high of v1_sensors"
    assert [(row["value"], row["as_read"], row["reason"]) for row in found] == [
        (None, None, "[N/A]"),
        (None, float("inf"), outside),
    ]


def test_sensors_may_come_after_their_samples(engine: Engine) -> None:
    put(engine, "a", batch("samples", sample(1, 0, START, None, 0)), batch("sensors", POWER, HEAT))
    assert [row["samples"] for row in store.select(engine, "v1_sensors")] == [0, 1]
    assert clocks(engine) == [(START, None, 0)]


def test_samples_of_no_sensor_are_refused(engine: Engine) -> None:
    with pytest.raises(DomainError, match="samples of sensor 7, but no such sensor"):
        put(engine, "a", ordinary(), batch("samples", sample(7, 0, START, None, 0)))
    assert store.select(engine, "v1_samples") == []


def test_a_reading_comes_once(engine: Engine) -> None:
    again = sample(0, 1, START, None, 0)
    with pytest.raises(DomainError, match="sample 1 of sensor 0 after a later one"):
        put(engine, "a", ordinary(), batch("samples", again))
    with pytest.raises(DomainError, match="sample 1 of sensor 0 after a later one"):
        put(engine, "a", log((POWER,), again, again))


def test_too_many_sensors_are_refused(engine: Engine) -> None:
    with pytest.raises(InputError, match="split"):
        put(engine, "a", batch("sensors", {**HEAT, "sensor_index": 10**9 - 1}))


def test_the_same_log_is_stored_once_and_deleted_whole(engine: Engine) -> None:
    put(engine, "a", ordinary())
    put(engine, "b", ordinary(6))
    assert put(engine, "a", ordinary()).known
    assert len(store.select(engine, "v1_samples")) == 10
    store.delete_upload(engine, 1)
    assert {row["upload_id"] for row in store.select(engine, "v1_samples")} == {2}
    assert len(store.select(engine, "v1_sensors")) == 2
    store.delete_run(engine, 1)
    with reading(engine) as connection:
        left = {t for t in metadata.tables if connection.execute(text(f"SELECT count(*) FROM {t}")).scalar_one()}
    assert left <= {"facts", "texts", "deleted_uploads"}
    assert not store.write_upload(engine, info("a"), store.RunInfo(), iter([ordinary()])).known
