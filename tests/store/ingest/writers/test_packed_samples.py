"""Packed blocks of samples: every column comes back as it does from rows, bit for bit, on both databases."""

import struct
from collections.abc import Callable, Sequence
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given, settings
from sqlalchemy import Engine, text

from profsvc import store
from profsvc.store.connection.transactions import reading
from profsvc.store.ingest.writers import packed_samples, samples
from profsvc.store.ingest.writers.packed_samples import MAX_READINGS, MIN_READINGS, pack, unpack
from profsvc.tables import Batch, ColumnTable
from tests.store.ingest.test_events import batch, put
from tests.store.ingest.writers.test_samples import HEAT, POWER, START

MS = 10**6
LONG = 3 * MIN_READINGS
OF_BLOCK = ("block_id", "block_last_id", "block_least_ns", "block_most_ns", "block_least_time_ns", "block_most_time_ns")


def series(value: Any, elapsed: Any = None, length: int = LONG, **more: Any) -> dict[str, Any]:
    """Readings of one sensor: one value or many, at these times (every 20 ms if none are given)."""
    value = np.array(np.broadcast_to(np.asarray(value, np.float64), length))
    elapsed = np.arange(length, dtype=np.int64) * 20 * MS if elapsed is None else np.asarray(elapsed, np.int64)
    return {
        "sensor_index": 0, "sample_index": np.arange(length), "time_ns": START + elapsed, "local_ns": None,
        "elapsed_ns": elapsed, "value": value, "line": np.arange(length) + 2, **more,
    }  # fmt: skip


def unpacked(columns: dict[str, Any], length: int) -> dict[str, Any]:
    """The readings as a reader that works cell by cell gives them."""
    frame = ColumnTable("samples", length, columns).frame
    return {"samples": frame, **batch("sensors", POWER, HEAT).tables}


def rows_of(engine: Engine, run_id: int) -> list[dict[str, Any]]:
    return [
        {name: bits(cell) for name, cell in row.items() if name not in {*OF_BLOCK, "run_id", "upload_id"}}
        | {"sensor_id": row["sensor_id"] % 10**9, "sample_id": row["sample_id"] % 10**9}
        for row in store.select(engine, "v1_samples", run_id=run_id)
    ]


def bits(cell: Any) -> Any:
    return struct.pack(">d", cell) if isinstance(cell, float) else cell


def packed_readings(engine: Engine, upload_id: int) -> int:
    query = "SELECT coalesce(sum(last_id - first_id + 1), 0) FROM sample_blocks WHERE sensor_id / 1000000000 = :upload"
    with reading(engine) as connection:
        found = connection.execute(text(f"{query} AND readings IS NOT NULL"), {"upload": upload_id})
        return int(found.scalar_one())


def both_ways(engine: Engine, monkeypatch: pytest.MonkeyPatch, *tables: dict[str, Any]) -> int:
    """Store readings as rows and packed; tell how many were packed."""
    length = len(tables[0]["value"])
    batches = [Batch(unpacked(columns, len(columns["value"])), lines_stored=length) for columns in tables]
    batches = [batches[0], *(Batch({"samples": one.tables["samples"]}) for one in batches[1:])]
    with monkeypatch.context() as patched:
        patched.setattr(samples, "MIN_READINGS", 10**9)
        put(engine, "a", *batches, run="rows")
    put(engine, "b", *batches, run="packed")
    assert packed_readings(engine, 1) == 0
    found = rows_of(engine, 2)
    assert found == rows_of(engine, 1)
    assert len(found) == sum(len(columns["value"]) for columns in tables)
    # What was given comes back, too: both ways could be wrong alike.
    every = np.concatenate([columns["value"] for columns in tables])
    if len(tables) == 1 and np.ndim(tables[0]["sensor_index"]) == 0:
        # SQLite keeps minus zero as zero in rows that are not written as pages.
        as_read = [np.nan if row["as_read"] is None else struct.unpack(">d", row["as_read"])[0] for row in found]
        np.testing.assert_array_equal(as_read, every)
        given_ns = tables[0]["elapsed_ns"]
        assert [row["elapsed_ns"] for row in found] == ([None] * len(every) if given_ns is None else list(given_ns))
    return packed_readings(engine, 2)


DRAW = np.random.default_rng(7)
STEPS = np.arange(LONG, dtype=np.int64)
VALUES: dict[str, Any] = {
    "constant": 61.25,
    "whole": STEPS % 7,
    "two decimals": DRAW.integers(6000, 66000, LONG) / 100,
    "negative": -DRAW.integers(0, 66000, LONG) / 1000,
    "tiny": 1e-300,
    "huge": 1e300,
    "tiny and huge": np.where(STEPS % 2, 1e-300, 1e300),
    "minus zero": -0.0,
    "one minus zero": np.where(STEPS == 9, -0.0, 1.5),
    "smallest": 5e-324,
    "beyond 2^53": 2.0**53 + 2 * STEPS,
    "beyond 2^63": 2.0**63 + 2.0**40 * STEPS,
    "all digits": DRAW.random(LONG) * 600 + 60,
    "singles": DRAW.random(LONG).astype(np.float32).astype(np.float64),
    "growing counter": 2.0**40 * STEPS,
    "difference 255": np.where(STEPS % 2, 255, 0),
    "difference 256": np.where(STEPS % 2, 256, 0),
    "difference 65535": np.where(STEPS % 2, 65535, 0) / 10,
    "difference 65536": np.where(STEPS % 2, 65536, 0) / 10,
    "missing": np.nan,
    "missing in the middle": np.where(STEPS == LONG // 2, np.nan, 71.5),
    "missing now and then": np.where(STEPS % 5 == 0, np.nan, 71.5),
    "infinite": np.where(STEPS == 100, np.inf, 71.5),
    "all infinite": -np.inf,
    "implausible": np.where(STEPS % 50 == 0, 1e6, 71.5),
    "all implausible": -1e8,
}
ALWAYS_ROWS = {"tiny", "tiny and huge", "minus zero", "smallest", "all infinite", "missing now and then"}


@pytest.mark.parametrize("name", VALUES)
def test_values_come_back(engine: Engine, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    value = np.broadcast_to(np.asarray(VALUES[name], np.float64), LONG)
    reasons = np.where(np.isnan(value), "[N/A]", None)
    packed = both_ways(engine, monkeypatch, series(value, reason=reasons.astype(object)))
    assert (packed == 0) == (name in ALWAYS_ROWS)


TIMES: dict[str, Any] = {
    "equal": np.zeros(LONG),
    "backwards": -STEPS * 20 * MS,
    "once backwards": np.where(STEPS > 100, STEPS - 30, STEPS) * 20 * MS,
    "uneven and backwards": -STEPS * 20 * MS + DRAW.integers(0, 9, LONG) * MS,
    "jitter of 1 ns": STEPS * 20 * MS + DRAW.integers(0, 2, LONG),
    "jitter of ms": STEPS * 20 * MS + DRAW.integers(0, 9, LONG) * MS,
    "drift": STEPS * 20_400_000 // MS * MS,
    "an hour left out": STEPS * 20 * MS + np.where(STEPS > 90, 3600 * 10**9, 0),
    "centuries": STEPS * 10**16,
    "random": DRAW.integers(-(2**60), 2**60, LONG),
}


@pytest.mark.parametrize("name", TIMES)
def test_times_come_back(engine: Engine, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    packed = both_ways(engine, monkeypatch, series(VALUES["two decimals"], TIMES[name]))
    assert (packed == 0) == (name == "random")


CLOCKS: dict[str, dict[str, Any]] = {
    "none": {"time_ns": None, "elapsed_ns": None},
    "elapsed": {"time_ns": None},
    "local": {"time_ns": None, "local_ns": START + STEPS * 20 * MS},
    "local with an hour left out": {
        "time_ns": START + STEPS * 20 * MS,
        "local_ns": START + STEPS * 20 * MS + np.where(STEPS > 70, 3600 * 10**9, 0),
    },
    "of another speed": {"local_ns": START + STEPS * 21 * MS},
    "only UTC": {"elapsed_ns": None},
    "some untimed": {
        "time_ns": pd.arrays.IntegerArray(START + STEPS * 20 * MS, STEPS % 90 == 0),
        "elapsed_ns": pd.arrays.IntegerArray(STEPS * 20 * MS, STEPS % 90 == 0),
    },
}


@pytest.mark.parametrize("name", CLOCKS)
def test_clocks_come_back(engine: Engine, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    columns = series(VALUES["two decimals"]) | CLOCKS[name]
    if name == "some untimed":
        rows = both_ways(engine, monkeypatch, columns | {"sensor_index": np.zeros(LONG, np.int64)})
    else:
        rows = both_ways(engine, monkeypatch, columns)
    assert (rows == 0) == (name in {"of another speed", "only UTC"})


@pytest.mark.parametrize(
    "length", [1, 2, MIN_READINGS - 1, MIN_READINGS, MIN_READINGS + 1, *(MAX_READINGS + more for more in (-1, 0, 1))]
)
def test_logs_of_every_length_come_back(engine: Engine, monkeypatch: pytest.MonkeyPatch, length: int) -> None:
    value = np.arange(length) % 100 / 10
    assert both_ways(engine, monkeypatch, series(value, length=length)) == length * (length >= MIN_READINGS)


def test_sensors_that_take_turns_come_back(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    columns = series(
        VALUES["two decimals"], STEPS // 2 * 20 * MS, sensor_index=STEPS % 2, sample_index=STEPS // 2, line=STEPS + 5
    )
    later = columns | {
        name: columns[name] + more
        for name, more in {"time_ns": 10**10, "elapsed_ns": 10**10, "sample_index": LONG, "line": LONG}.items()
    }
    assert both_ways(engine, monkeypatch, columns, later) == 2 * LONG


def test_lines_and_ordinals_that_are_left_out_come_back(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    left_out = series(7.5, line=3 * STEPS + np.where(STEPS > 80, 1, 0), sample_index=STEPS + np.where(STEPS > 99, 4, 0))
    packed = both_ways(engine, monkeypatch, left_out)
    assert packed == LONG - 19  # between the line and the ordinal there are too few


@given(
    st.lists(
        st.tuples(
            st.one_of(st.integers(-(2**60), 2**60), st.integers(-99, 99)),
            st.one_of(
                st.floats(allow_nan=False, allow_infinity=False),
                st.integers(-(10**6), 10**6).map(lambda whole: whole / 100),
            ),
        ),
        min_size=2,
        max_size=12,
    )
)
@example([(0, 0.0), (0, -0.0)])
@settings(max_examples=150, deadline=None)
def test_what_is_packed_comes_back_bit_for_bit(readings: Sequence[tuple[int, float]]) -> None:
    elapsed, value = np.array([at for at, _ in readings]), np.array([read for _, read in readings])
    packed = pack(elapsed, value)
    if packed is None:
        return
    numbers = [int(one) for one in packed["readings"].strip("[]").split(",")]
    least, divisor, radix, last = (packed["least"], packed["divisor"], packed["radix"], len(numbers) - 1)
    assert [struct.pack(">d", float(least + one % radix) / divisor) for one in numbers] == [
        struct.pack(">d", read) for read in value.tolist()
    ]
    straight: list[Callable[[int], int]] = [lambda rise: rise // last, lambda rise: -(-rise // last)]
    assert [
        packed["first_ns"] + (straight[packed["rise"] < 0](place * packed["rise"]) + one // radix) * packed["unit_ns"]
        for place, one in enumerate(numbers)
    ] == elapsed.tolist()
    again, same = unpack(packed)
    assert (None if again is None else again.tolist(), same.tobytes()) == (elapsed.tolist(), value.tobytes())
    assert max(numbers) < packed_samples.MAX_NUMBER
    assert (packed["least_elapsed_ns"], packed["most_elapsed_ns"]) == (min(elapsed), max(elapsed))
