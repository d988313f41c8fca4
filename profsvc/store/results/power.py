"""Readings for the analysis of power and temperature, and its results."""

import json
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd

from profsvc.errors import DomainError
from profsvc.store.connection.sql import Connection, Engine, text
from profsvc.store.connection.transactions import lock_existing_row, reading, writing
from profsvc.store.ingest.inserts.column_values import values
from profsvc.store.ingest.inserts.dictionaries import Names
from profsvc.store.ingest.inserts.row_insert import insert_rows
from profsvc.store.queries.frames import table
from profsvc.store.queries.id_ranges import id_range
from profsvc.store.queries.readings.sensor_blocks import Readings as SensorReadings
from profsvc.store.queries.readings.sensor_blocks import SensorBlocks, blocks_of, readings_on, timed_readings
from profsvc.store.queries.rows import select
from profsvc.store.queries.traces.recordings import UTC, clocks
from profsvc.store.queries.traces.timelines import timed_files, typed_rows
from profsvc.store.results.finished_parts import POWER_PART, counted_changes, mark_finished
from profsvc.store.schema.results.power import FRAMES
from profsvc.tables import Column

LOCAL, ELAPSED = "local", "elapsed"
# Which column of a sample each clock is, the best first.
CLOCKS = {UTC: "time_ns", LOCAL: "local_ns", ELAPSED: "elapsed_ns"}
MAX_READINGS = 500_000
# The columns of a launch; the device ordinal is -1, and the number of the host 0, where the file has none.
LAUNCH = (
    ("kernel_id", np.int64),
    ("start_ns", np.int64),
    ("duration_ns", np.float64),
    ("device_index", np.int64),
    ("host_id", np.int64),
)
_LAUNCHES = """
    SELECT h.kernel_id, l.start_ns, l.duration_ns, coalesce(p.device_index, -1), coalesce(p.host_id, 0)
    FROM launches l JOIN shapes h ON h.shape_id = l.shape_id LEFT JOIN places p ON p.place_id = l.place_id
    WHERE l.launch_id BETWEEN {} AND {} AND l.start_ns IS NOT NULL AND l.duration_ns IS NOT NULL ORDER BY l.launch_id
"""
_NO_READINGS = (np.empty(0, np.int64), np.empty(0, np.bool_), np.empty(0))


class Readings(NamedTuple):
    """The readings of a sensor in the order of its file.

    ``time_ns``: on the ``clock`` utc, local (the file's own, its zone unknown) or elapsed (since the file's first
    reading); ``value``: in the sensor's unit, NaN where there is none; ``untimed``: readings left out, as they have no
    time on this clock; ``together``: so many readings that follow each other stand as their mean, 1 for none.
    """

    time_ns: npt.NDArray[np.int64]
    value: npt.NDArray[np.float64]
    clock: str
    untimed: int
    together: int = 1


def has_sensors(engine: Engine, run_id: int, quantity: str | None = None) -> bool:
    """Return whether a run has a sensor, of a quantity or of any."""
    query = "SELECT 1 FROM v1_sensors WHERE run_id = :run_id" + (" AND quantity = :quantity" if quantity else "")
    given = {"run_id": run_id} | ({"quantity": quantity} if quantity else {})
    with reading(engine) as connection:
        return connection.execute(text(f"{query} LIMIT 1"), given).first() is not None


def sensors_of_run(engine: Engine, run_id: int) -> pd.DataFrame:
    """Return the sensors of a run as ``v1_sensors`` has them, with ``file_name``, ``format`` and ``facts`` (a dict)."""
    sensors = table(engine, "v1_sensors", run_id=run_id)
    found = select(engine, "v1_uploads", run_id=run_id) if len(sensors) else []
    uploads = {row["upload_id"]: row for row in found}
    of_file = [uploads[upload_id] for upload_id in sensors["upload_id"]]
    for name in ("file_name", "format"):
        sensors[name] = pd.Series([row[name] for row in of_file], dtype=object)
    sensors["facts"] = pd.Series([json.loads(row["facts"]) for row in of_file], dtype=object)
    return sensors


def sensor_readings(engine: Engine, sensor_id: int) -> Readings:
    """Return the readings of a sensor on the best clock that it has: utc, else local, else elapsed.

    More than `MAX_READINGS` readings are averaged in groups, so that memory does not grow with the log.
    """
    with reading(engine) as connection:
        found = blocks_of(connection, sensor_id)
        counts = timed_readings(connection, found)
    timed = {clock: counts[column] for clock, column in CLOCKS.items()}
    clock = next((clock for clock in CLOCKS if timed[clock]), ELAPSED)
    together = -(-timed[clock] // MAX_READINGS) or 1
    is_state = found.sensor["quantity"] == "state"
    time_ns, value = _averaged_readings(readings_on(engine, found, CLOCKS[clock]), together, is_state=is_state)
    return Readings(time_ns, value, clock, counts["every"] - timed[clock], together)


def _averaged_readings(
    parts: Iterable[SensorReadings], together: int, *, is_state: bool
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]]:
    """Times and values of readings with a time, so many together; what is left over at the end stands alone."""
    times, found = [np.empty(0, np.int64)], [np.empty(0)]
    rest = times[0], found[0]
    for part in parts:
        time_ns, value = part.time_ns[part.timed], part.value[part.timed]
        rest = np.concatenate((rest[0], time_ns)), np.concatenate((rest[1], value))
        whole = len(rest[0]) // together * together
        means = _block_means(rest[0][:whole], rest[1][:whole], together, is_state=is_state)
        times.append(means[0])
        found.append(means[1])
        rest = rest[0][whole:], rest[1][whole:]
    return np.concatenate([*times, rest[0]]), np.concatenate([*found, rest[1]])


def _block_means(
    time_ns: npt.NDArray[np.int64], value: npt.NDArray[np.float64], count: int, *, is_state: bool = False
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]]:
    """Means of so many readings that follow each other, of those with a value; of states the first.

    >>> _block_means(np.array([0, 10, 20, 30]), np.array([1.0, 3.0, 5.0, np.nan]), 2)
    (array([ 5, 25]), array([2., 5.]))
    """
    if count == 1:
        return time_ns, value
    times, values = time_ns.reshape(-1, count), value.reshape(-1, count)
    first = times[:, :1]
    known = np.isfinite(values)
    if is_state:
        return time_ns[::count], value[::count]
    with np.errstate(all="ignore"):
        mean = np.where(known, values, 0.0).sum(axis=1) / known.sum(axis=1)
    return first[:, 0] + (times - first).mean(axis=1).astype(np.int64), mean


def last_samples(engine: Engine, sensor_ids: Iterable[int], most: int, least_s: float) -> pd.DataFrame:
    """Return at most about ``most`` samples of each of these sensors, the last ones, on every clock that they have.

    Where the last ``most`` cover less than ``least_s``, they are every so many-th of those that do. Columns:
    ``sensor_id``, ``time_ns``, ``local_ns``, ``elapsed_ns`` and ``value``, as ``v1_samples`` has them.
    """
    times = list(CLOCKS.values())
    blank = {name: pd.array([], dtype="Int64") for name in ("sensor_id", *times)}
    parts = [pd.DataFrame({**blank, "value": np.empty(0)})]
    for sensor_id in sensor_ids:
        with reading(engine) as connection:
            found = blocks_of(connection, sensor_id)
        first, step = _end_of_log(engine, found, most, least_s)
        columns: dict[str, Any] = {}
        for clock in times:
            every = [
                (part.time_ns[wanted], part.timed[wanted], part.value[wanted])
                for part in readings_on(engine, found, clock, first)
                if (wanted := (part.sample_index >= first) & (part.sample_index % step == 0)).any()
            ]
            time, timed, value = map(np.concatenate, zip(*every, strict=True)) if every else _NO_READINGS
            columns[clock] = pd.arrays.IntegerArray(np.where(timed, time, 0), ~timed)
        owner = {"sensor_id": pd.array([sensor_id] * len(value), dtype="Int64")}
        parts.append(pd.DataFrame({**owner, **columns, "value": value}))
    return pd.concat(parts, ignore_index=True)


def _end_of_log(engine: Engine, found: SensorBlocks, most: int, least_s: float) -> tuple[int, int]:
    """From which sample on the end of a log is taken, and each how many-th of them."""
    samples = found.sensor["samples"]
    if not samples or samples <= most:
        return 0, 1
    last, ends = 0, list[int]()
    for part in readings_on(engine, found, "elapsed_ns"):
        last = int(part.sample_index[-1])
        if part.timed.any():
            ends += [int(part.time_ns[part.timed].min()), int(part.time_ns[part.timed].max())]
    each_s = (max(ends, default=0) - min(ends, default=0)) / 1e9 / (samples - 1)
    step = int(np.ceil(least_s / (most * each_s))) if each_s > 0 else 1
    step = min(max(step, 1), -(-(last + 1) // most))  # no more than the whole log
    return max(last + 1 - most * step, 0), step


def marks_of_run(engine: Engine, run_id: int) -> pd.DataFrame:
    """Return the ranges of a run that have a start and an end, in the order of their start, with their ``clock``.

    It is utc, local (a log of marks without a zone) or tool (the profiler's own, which may begin anywhere).
    """
    ranges = table(engine, "v1_ranges", run_id=run_id)
    known, begins = clocks(engine, run_id)
    timed = ranges["start_ns"].notna() & ranges["duration_ns"].notna() & ranges["upload_id"].isin(known)
    found = ranges[timed]
    found = found.assign(
        start_ns=found["start_ns"] + found["upload_id"].map(begins).fillna(0).astype("int64"),
        clock=found["upload_id"].map(known).astype(object),
    )
    return found.sort_values(["start_ns", "range_id"], kind="stable").reset_index(drop=True)


def launch_times(engine: Engine, run_id: int) -> pd.DataFrame:
    """Return the launches of a run that have a start and a duration, in the order of their start.

    Columns: ``upload_id``, ``kernel``, ``kernel_short`` (both categories), ``start_ns``, ``duration_ns``,
    ``device_index`` (-1 where the file names no device), ``host`` (a category, empty where the file names none) and the
    ``clock`` of the file, utc or tool. Launches that several files tell of come once.
    """
    known, begins = clocks(engine, run_id)
    parts = [
        _launches(engine, number, begins.get(number, 0)).assign(clock=known[number])
        for number in timed_files(engine, run_id)
    ]
    found = pd.concat([part for part in parts if len(part)] or [_launches(engine, -1).assign(clock="")])
    names = _kernel_names(engine, found["kernel_id"].unique().tolist())
    for place, name in enumerate(("kernel", "kernel_short")):
        found[name] = found["kernel_id"].map({number: both[place] for number, both in names.items()}).astype("category")
    found["host"] = found["host_id"].map(_host_names(engine, found["host_id"].unique().tolist())).astype("category")
    found = found[["upload_id", "kernel", "kernel_short", "start_ns", "duration_ns", "device_index", "host", "clock"]]
    return found.sort_values("start_ns", kind="stable").reset_index(drop=True)


def _launches(engine: Engine, upload_id: int, begin_ns: int = 0) -> pd.DataFrame:
    query = _LAUNCHES.format(*id_range(upload_id))
    parts = [np.empty(0, np.dtype(list(LAUNCH))), *typed_rows(engine, query, LAUNCH)]
    columns = {name: np.concatenate([part[name] for part in parts]) for name, _ in LAUNCH}
    columns["start_ns"] = columns["start_ns"] + begin_ns
    return pd.DataFrame({"upload_id": upload_id, **columns})


def _kernel_names(engine: Engine, kernel_ids: Iterable[int]) -> dict[int, tuple[str, str]]:
    query = text("SELECT kernel, kernel_short FROM v1_kernels WHERE kernel_id = :kernel_id")
    with reading(engine) as connection:
        return {number: tuple(connection.execute(query, {"kernel_id": number}).one()) for number in kernel_ids}


def _host_names(engine: Engine, host_ids: Iterable[int]) -> dict[int, str]:
    query = text("SELECT text FROM texts WHERE text_id = :host_id")
    with reading(engine) as connection:
        return {number: connection.execute(query, {"host_id": number}).scalar() or "" for number in host_ids}


def save_power(
    engine: Engine, run_id: int, frames: Mapping[str, pd.DataFrame], version: str, seen: int | None = None
) -> bool:
    """Write what an analysis of power found in a run, in place of what was there.

    The frames are those of `FRAMES`; one that is not given, or has no rows, leaves none. Columns that may be null may
    be left out. Return whether they were written, as `profsvc.store.results.writer.save_results` does.
    """
    for name, frame in frames.items():
        _check(name, frame)
    with writing(engine) as connection:
        lock_existing_row(connection, "runs", "run_id", run_id)
        if seen is not None and counted_changes(connection, run_id) != seen:
            return False
        texts = Names(connection, "texts")
        for name in FRAMES:
            connection.execute(text(f"DELETE FROM {name} WHERE run_id = :run_id"), {"run_id": run_id})
            if name in frames and len(frames[name]):
                _save(connection, name, run_id, frames[name], texts, version)
        mark_finished(connection, run_id, POWER_PART, texts[version,])
    return True


def _check(name: str, frame: pd.DataFrame) -> None:
    if name not in FRAMES:
        raise DomainError(f"no frame of the analysis of power is named {name!r}; there are {list(FRAMES)}")
    if frame.empty:
        return
    known = {column.name: column for column in FRAMES[name]}
    if unknown := set(map(str, frame)) - known.keys():
        raise DomainError(f"the frame {name!r} has no column {sorted(unknown)}; it has {list(known)}")
    needed = [column.name for column in known.values() if not column.nullable]
    if missing := [column for column in needed if column not in frame]:
        raise DomainError(f"the frame {name!r} lacks the columns {missing}")
    for column in needed:
        if (null := frame[column].isna()).any():
            raise DomainError(f"{name}.{column} must not be null; row {int(null.argmax())} is")


def _save(connection: Connection, name: str, run_id: int, frame: pd.DataFrame, texts: Names, version: str) -> None:
    rows: dict[str, Iterable[Any]] = {"run_id": [run_id] * len(frame), "item": range(len(frame))}
    rows["version_id"] = [texts[version,]] * len(frame)
    for column in FRAMES[name]:
        if column.name not in frame:
            continue
        cells = values(frame[column.name])
        if column.kind == "text":
            rows[f"{column.name}_id"] = texts.column([None if cell is None else (str(cell),) for cell in cells])
        else:
            rows[column.name] = [None if cell is None else _number(name, column, cell) for cell in cells]
    insert_rows(connection, name, list(rows), zip(*rows.values(), strict=True))


def _number(name: str, column: Column, cell: Any) -> int | float:
    if column.kind == "float":
        return float(cell)
    if cell != int(cell):
        raise DomainError(f"{name}.{column.name} must be a whole number but is {cell!r}")
    return int(cell)
