"""The readings of one sensor as arrays, some blocks at a time: what is packed is unpacked without a row per reading."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from profsvc.errors import NotFoundError
from profsvc.store.connection.sql import Connection, Engine, text
from profsvc.store.connection.transactions import reading
from profsvc.store.ingest.writers.packed_samples import unpack
from profsvc.store.queries.traces.timelines import typed_rows

BLOCKS_AT_ONCE = 16
_BLOCKS = """
    SELECT first_id, last_id, first_index, first_ns, time_shift_ns, local_shift_ns,
           CASE WHEN readings IS NULL THEN 0 ELSE 1 END AS packed
    FROM sample_blocks WHERE sensor_id = :sensor_id ORDER BY first_id
"""
_READINGS = """
    SELECT first_id, first_ns, rise, unit_ns, radix, least, divisor, readings FROM sample_blocks
    WHERE sensor_id = :sensor_id AND first_id BETWEEN :first AND :last AND readings IS NOT NULL
"""
_TIMED = """
    SELECT count(*), count(time_shift_ns), count(local_shift_ns), count(elapsed_ns) FROM samples
    WHERE sample_id BETWEEN :first AND :last
"""
# How the time of a row on each clock differs from its origin; null where it has none.
_TIMES = {
    "time_ns": "coalesce(elapsed_ns, 0) + time_shift_ns",
    "local_ns": "coalesce(elapsed_ns, 0) + local_shift_ns",
    "elapsed_ns": "elapsed_ns",
}
_ROW = (("index", np.int64), ("time", np.int64), ("timed", np.bool_), ("value", np.float64), ("known", np.bool_))
Row = Mapping[str, Any]


class Readings(NamedTuple):
    """Readings that follow each other: ordinals in the file, times and which of them are known, values or NaN."""

    sample_index: npt.NDArray[np.int64]
    time_ns: npt.NDArray[np.int64]
    timed: npt.NDArray[np.bool_]
    value: npt.NDArray[np.float64]


class SensorBlocks(NamedTuple):
    """A sensor and the blocks of its readings, without the readings."""

    sensor: Row
    blocks: Sequence[Row]


def blocks_of(connection: Connection, sensor_id: int) -> SensorBlocks:
    """Return the blocks of a sensor; raise `NotFoundError` if there is no such sensor."""
    query = text("SELECT * FROM sensors WHERE sensor_id = :sensor_id")
    sensor = connection.execute(query, {"sensor_id": sensor_id}).mappings().first()
    if sensor is None:
        raise NotFoundError(f"no sensor has the number {sensor_id}")
    blocks = connection.execute(text(_BLOCKS), {"sensor_id": sensor_id}).mappings().all()
    return SensorBlocks(dict(sensor), [dict(block) for block in blocks])


def timed_readings(connection: Connection, found: SensorBlocks) -> dict[str, int]:
    """Return how many readings have a time on each clock, and how many there are (``every``)."""
    counts = dict.fromkeys(("every", *_TIMES), 0)
    for block in found.blocks:
        if block["packed"]:
            size = block["last_id"] - block["first_id"] + 1
            known = [size * (block[name] is not None) for name in ("time_shift_ns", "local_shift_ns", "first_ns")]
            own = [size, *known]
        else:
            bounds = {"first": block["first_id"], "last": block["last_id"]}
            own = list(connection.execute(text(_TIMED), bounds).one())
        for name, count in zip(counts, own, strict=True):
            counts[name] += count
    return counts


def readings_on(engine: Engine, found: SensorBlocks, clock: str, first_index: int = 0) -> Iterator[Readings]:
    """Yield the readings of a sensor in the order of the file, with their time in a column of ``v1_samples``.

    Blocks before the ordinal ``first_index`` may be left out.
    """
    sensor, origin = found.sensor, 0 if clock == "elapsed_ns" else found.sensor[clock.replace("_", "_origin_", 1)]
    wanted = [
        block
        for block in found.blocks
        if not block["packed"] or block["first_index"] + block["last_id"] - block["first_id"] >= first_index
    ]
    for begin in range(0, len(wanted), BLOCKS_AT_ONCE):
        some = wanted[begin : begin + BLOCKS_AT_ONCE]
        packed = _packed(engine, sensor["sensor_id"], some)
        for block in some:
            alone = packed.get(block["first_id"])
            for part in _rows(engine, block, clock) if alone is None else [_unpacked(block, alone, clock)]:
                value = part.value
                if sensor["implausible"]:
                    with np.errstate(invalid="ignore"):
                        outside = (value < sensor["plausible_low"]) | (value > sensor["plausible_high"])
                    value = np.where(outside, np.nan, value)
                timed = part.timed if origin is not None else np.zeros(len(value), np.bool_)
                yield part._replace(time_ns=part.time_ns + (origin or 0), timed=timed, value=value)


def _packed(engine: Engine, sensor_id: int, blocks: Sequence[Row]) -> dict[int, Row]:
    if not any(block["packed"] for block in blocks):
        return {}
    bounds = {"sensor_id": sensor_id, "first": blocks[0]["first_id"], "last": blocks[-1]["first_id"]}
    with reading(engine) as connection:
        return {row["first_id"]: dict(row) for row in connection.execute(text(_READINGS), bounds).mappings()}


def _unpacked(block: Row, packed: Row, clock: str) -> Readings:
    elapsed, value = unpack(packed)
    index = block["first_index"] + np.arange(len(value))
    time = np.zeros(len(value), np.int64) if elapsed is None else elapsed
    shift = 0 if clock == "elapsed_ns" else block[clock.replace("_", "_shift_", 1)]
    known = elapsed is not None if clock == "elapsed_ns" else shift is not None
    return Readings(index, time + (shift or 0), np.full(len(value), known), value)


def _rows(engine: Engine, block: Row, clock: str) -> Iterator[Readings]:
    before = block["first_index"] - block["first_id"]
    time = _TIMES[clock]
    query = (
        f"SELECT sample_id + index_shift, coalesce({time}, 0), CASE WHEN {time} IS NULL THEN 0 ELSE 1 END,"
        " coalesce(value, 0.0), CASE WHEN value IS NULL THEN 0 ELSE 1 END FROM samples"
        f" WHERE sample_id BETWEEN {block['first_id']} AND {block['last_id']} ORDER BY sample_id"
    )
    for rows in typed_rows(engine, query, _ROW):
        value = np.where(rows["known"], rows["value"], np.nan)
        yield Readings(rows["index"] + before, rows["time"].copy(), rows["timed"], value)
