"""Columns that go in as binary blocks are the rows that go in one by one."""

from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import Column, Engine, Integer, SmallInteger, Table, text

from profsvc import store
from profsvc.errors import DomainError, ServiceError
from profsvc.store.connection.transactions import reading, writing
from profsvc.store.ingest.inserts import postgres_copy
from profsvc.store.ingest.inserts.column_values import values
from profsvc.store.ingest.inserts.postgres_copy import copy_columns
from profsvc.store.ingest.inserts.row_insert import MIN_ROWS_TO_COPY, insert_rows
from profsvc.store.ingest.staging import DirectSink
from profsvc.store.schema.tables import metadata
from tests.store.conftest import only_on

pytestmark = only_on("postgresql", "COPY is its own")
INT64 = st.integers(-(2**63), 2**63 - 1)
ROWS = st.lists(
    st.tuples(
        st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=9),
        st.none() | st.text("aé€😀", max_size=3),
        st.none() | INT64,
        st.none() | st.floats(allow_nan=False),
        INT64,
    ),
    max_size=9,
)
NAMES = ("quantity", "device", "gpu_index", "x_mm", "samples")


def sensors(engine: Engine) -> list[tuple[Any, ...]]:
    with reading(engine) as connection:
        query = f"SELECT sensor_id, {', '.join(NAMES)}, name, unit, line FROM sensors ORDER BY sensor_id"
        return [tuple(row) for row in connection.execute(text(query))]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(ROWS, st.integers(1, 4))
def test_blocks_are_the_same_rows_as_inserts(engine: Engine, rows: list[tuple[Any, ...]], rows_at_once: int) -> None:
    columns: dict[str, Any] = {"sensor_id": range(1, len(rows) + 1)}
    columns |= {name: [row[n] for row in rows] for n, name in enumerate(NAMES)}
    columns |= {"name": ["n"] * len(rows), "unit": ["W"] * len(rows), "line": [None] * len(rows)}
    with writing(engine) as connection:
        connection.execute(text("DELETE FROM sensors"))
        insert_rows(connection, "sensors", list(columns), zip(*columns.values(), strict=True))
    inserted = sensors(engine)
    kinds = {"gpu_index": "Int64", "x_mm": "Float64", "samples": "Int64"}
    columns |= {name: pd.array(columns[name], dtype=kind) for name, kind in kinds.items()}
    with pytest.MonkeyPatch.context() as patch, writing(engine) as connection:
        patch.setattr(postgres_copy, "ROWS_PER_BLOCK", rows_at_once)
        connection.execute(text("DELETE FROM sensors"))
        copy_columns(connection, "sensors", columns)
    assert sensors(engine) == inserted
    assert len(inserted) == len(rows)


FLOATS = [1.5, float("nan"), -float("inf"), 5e-324]


@pytest.mark.parametrize(
    "given",
    [
        np.array(FLOATS),
        pd.Series(FLOATS),
        pd.array([1.5, None, -float("inf"), 5e-324], dtype="Float64"),
        [1.5, None, -float("inf"), 5e-324],
    ],
    ids=["array", "series", "nullable", "list"],
)
def test_every_kind_of_column_is_taken(engine: Engine, given: Any) -> None:
    with writing(engine) as connection:
        ids = {"sample_id": np.arange(4, dtype=np.uint8), "index_shift": np.full(4, 7)}
        rest = {
            "line_shift": pd.Series([1, 2, 3, 2**63 - 1], dtype="Int64"),
            "reason_id": pd.array([None] * 4, "Int64"),
        }
        copy_columns(connection, "samples", {**ids, "value": given, **rest})
        rows = connection.execute(text("SELECT value, reason_id, line_shift FROM samples ORDER BY sample_id")).all()
    assert [tuple(row) for row in rows] == [
        *((1.5, None, 1), (None, None, 2)), *((-float("inf"), None, 3), (5e-324, None, 2**63 - 1)),
    ]  # fmt: skip


def test_narrow_numbers_fit_or_are_refused(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    narrow = Table("narrow", metadata, Column("a", SmallInteger), Column("b", Integer))
    try:
        with writing(engine) as connection:
            connection.execute(text("CREATE TABLE narrow (a smallint, b integer)"))
            copy_columns(connection, "narrow", {"a": [-(2**15), None], "b": np.array([2**31 - 1, -5])})
            assert connection.execute(text("SELECT a, b FROM narrow")).all() == [(-(2**15), 2**31 - 1), (None, -5)]
            masked: Any = pd.arrays.IntegerArray(np.array([2**40, 7]), np.array([True, False]))  # what a mask hides
            for column in (masked, pd.Series(masked)):
                connection.execute(text("DELETE FROM narrow"))
                copy_columns(connection, "narrow", {"a": column})
                assert connection.execute(text("SELECT a, b FROM narrow")).all() == [(None, None), (7, None)]
            with pytest.raises(DomainError, match=r"narrow\.a: a number does not fit into 2 bytes"):
                copy_columns(connection, "narrow", {"a": [2**15]})
    finally:
        metadata.remove(narrow)


def test_columns_must_be_of_the_table_and_equally_long(engine: Engine) -> None:
    with writing(engine) as connection:
        with pytest.raises(DomainError, match="'texts' has no column 'colour'"):
            copy_columns(connection, "texts", {"colour": [1]})
        with pytest.raises(DomainError, match=r"differ in length: \[1, 2\]"):
            copy_columns(connection, "texts", {"text_id": [1], "text": ["a", "b"]})
        copy_columns(connection, "texts", {"text_id": [], "text": []})


def test_what_a_table_of_the_program_holds_goes_through(engine: Engine) -> None:
    frame = pd.DataFrame({"a": [1.0, None]}), pd.DataFrame({"a": pd.Series([1, None], dtype="Int64")})
    for table in frame:
        cells, there = postgres_copy._plain(table["a"], "float64" if table["a"].dtype == float else "int64")
        assert there is not None
        assert [v if t else None for v, t in zip(cells.tolist(), there.tolist(), strict=True)] == values(table["a"])
    assert store.schema_revision(engine) == store.latest_revision()


def test_a_column_of_nulls_is_not_sent(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    sent, block = [], postgres_copy.block
    monkeypatch.setattr(postgres_copy, "block", lambda columns: sent.append(len(columns)) or block(columns))
    columns = {"sensor_id": range(1, 3), "samples": [0, 0], "device": [None, None], "gpu_index": [None, None]}
    columns |= {name: ["a", "b"] for name in ("quantity", "name", "unit")}
    with writing(engine) as connection:
        copy_columns(connection, "sensors", columns)
    assert sent == [5]
    assert [row[:4] for row in sensors(engine)] == [(1, "a", None, None), (2, "b", None, None)]
    with pytest.raises(ServiceError), writing(engine) as connection:
        copy_columns(connection, "sensors", {"sensor_id": [None]})


@pytest.mark.parametrize("rows", [MIN_ROWS_TO_COPY - 1, MIN_ROWS_TO_COPY])
def test_prepared_rows_are_written_when_asked(engine: Engine, rows: int) -> None:
    columns = {"sensor_id": range(1, rows + 1), "samples": [0] * rows, "gpu_index": pd.array([None] * rows, "Int64")}
    columns |= {name: ["a"] * rows for name in ("quantity", "name", "unit")}
    with writing(engine) as connection:
        write = DirectSink(connection).prepare("sensors", columns)
        count = text("SELECT count(*) FROM sensors")
        assert connection.execute(count).scalar_one() == 0
        write()
        assert connection.execute(count).scalar_one() == rows
        with pytest.raises(DomainError, match="'texts' has no column 'colour'"):
            DirectSink(connection).prepare("texts", {"colour": range(MIN_ROWS_TO_COPY)})


def stored(engine: Engine, table: str) -> list[tuple[Any, ...]]:
    with reading(engine) as connection:
        return sorted(tuple(row) for row in connection.execute(text(f"SELECT * FROM {table}")))


@pytest.mark.parametrize("least_bytes", [1, 3000, 1 << 30])
def test_rows_of_long_tables_are_collected(engine: Engine, monkeypatch: pytest.MonkeyPatch, least_bytes: int) -> None:
    monkeypatch.setattr("profsvc.store.ingest.staging.MIN_BYTES_TO_SEND", least_bytes)
    draw, first, waiting, expected = np.random.default_rng(3), 3_000_000_000_001, 0, []
    with writing(engine) as connection:
        sink = DirectSink(connection)
        for batch, rows in enumerate((MIN_ROWS_TO_COPY, 5, 400, MIN_ROWS_TO_COPY, 300)):
            ids = range(first, first + rows)
            # Some batches have no starts, so that their COPY has other columns.
            starts: Any = pd.array(draw.integers(0, 2**62, rows) if batch % 2 else [None] * rows, "Int64")
            starts[0] = pd.NA
            columns: dict[str, Any] = {"launch_id": ids, "place_id": [1] * rows, "shape_id": [2] * rows}
            columns |= {"start_ns": starts, "duration_ns": [None, *range(rows - 1)], "line": range(7, 7 + rows)}
            if (write := sink.prepare("launches", columns)) is None:
                waiting += 1
            else:
                write()
            expected += list(zip(ids, *(values(columns[n]) for n in ("start_ns", "duration_ns", "line")), strict=True))
            first += rows
        sink.close()
        assert not sink.collected
    found = [(row[0], *(row[n] for n in (7, 8, 11))) for row in stored(engine, "launches")]
    assert found == expected
    assert (waiting > 0) == (least_bytes > 1)
