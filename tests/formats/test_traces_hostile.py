"""Traces and databases made to break a reader: each is refused or its bad rows are rejected, in bounded time."""

import io
import sqlite3

import pytest

from profsvc.errors import InputError
from profsvc.formats import kineto, nsys_sqlite

EVENT = '{"ph":"X","cat":"kernel","name":"a","ts":%s,"dur":%s}'
CALLS = "create table CUPTI_ACTIVITY_KIND_RUNTIME(start,end,nameId)"
VIEW = """create view CUPTI_ACTIVITY_KIND_RUNTIME as
with recursive c(x) as (select 1 union all select x+1 from c) select x as start, x as end, x as nameId from c"""


def trace(*events: str) -> bytes:
    return f'{{"traceEvents":[{",".join(events)}]}}'.encode()


@pytest.mark.parametrize(
    "data",
    [
        b'{"traceEvents":[' + b"[" * 100_000,
        b'{"a":' * 100_000,
        trace(EVENT % ("9" * 10_000, 1)),
        trace(EVENT % ("1e999999999", 1)),
        b"12",
        b'{"traceEvents":[],"x":{"baseTimeNanoseconds": 5},"baseTimeNanoseconds": 7}',
        b'{"traceEvents":[],"baseTimeNanoseconds": 7.5}',
        b'{"traceEvents":[]} {}',
    ],
    ids=["lists", "objects", "integer", "exponent", "no object", "two bases", "base", "rest"],
)
def test_hostile_trace_is_refused(data):
    with pytest.raises(InputError):
        list(kineto.read(io.BytesIO(data)))


def test_hostile_events_are_rejected():
    events = (EVENT % ("1e99999999999999999999", 1), EVENT % ("true", 1), EVENT % (1, "1e17"), EVENT % (1, "null"))
    batches = list(kineto.read(io.BytesIO(trace(*events))))
    assert sum(len(batch.tables["rejects"]) for batch in batches) == len(events)
    assert not any("launches" in batch.tables for batch in batches)


GOOD = EVENT % (1, 1)
BAD = EVENT % ("true", 1)


@pytest.mark.parametrize(
    ("events", "spans"),
    [
        ((BAD, BAD), [0, 1]),
        ((BAD, GOOD, BAD), [0, 0]),
        ((BAD, BAD.replace(",", "\n,"), BAD), [1, 3, 1]),
        ((GOOD, BAD.replace(",", "\n,"), GOOD), [3]),
    ],
    ids=["two bad", "one good", "over lines", "good at both ends"],
)
def test_rejected_events_that_share_a_line(events, spans):
    batch = list(kineto.read(io.BytesIO(trace(*events))))[-1]
    assert batch.tables["rejects"]["lines"].tolist() == spans
    assert batch.lines_rejected == sum(spans)


def database(path, *statements: str) -> bytes:
    connection = sqlite3.connect(path)
    for statement in (
        "create table META_DATA_EXPORT(name, value)",
        "insert into META_DATA_EXPORT values('EXPORT_SCHEMA_VERSION', '3.1')",
        "create table StringIds(id, value)",
        *statements,
    ):
        connection.execute(statement)
    connection.commit()
    connection.close()
    return path.read_bytes()


def counts(data: bytes):
    batches = list(nsys_sqlite.read(io.BytesIO(data)))
    return tuple(
        sum(getattr(batch, f"lines_{kind}") for batch in batches) for kind in ("stored", "skipped", "rejected")
    )


def test_a_view_is_never_read(tmp_path):
    assert counts(database(tmp_path / "a", VIEW)) == (0, 1, 0)


def test_values_of_wrong_kinds_are_rejected(tmp_path):
    rows = "insert into CUPTI_ACTIVITY_KIND_RUNTIME values ('a', x'00', 1.5), (1, 2, 1), (null, 2, 1)"
    assert counts(database(tmp_path / "a", CALLS, rows, "insert into StringIds values (1, 'call')")) == (1, 2, 2)


def test_a_table_without_row_numbers_is_read(tmp_path):
    table = CALLS[:-1] + ", primary key (start)) without rowid"
    rows = "insert into CUPTI_ACTIVITY_KIND_RUNTIME values (1, 2, 1)"
    assert counts(database(tmp_path / "a", table, rows, "insert into StringIds values (1, 'call')")) == (1, 2, 0)


def test_pages_that_point_at_each_other_are_refused(tmp_path):
    numbers = "with recursive c(x) as (select 1 union all select x + 1 from c where x < 9999)"
    rows = f"insert into StringIds {numbers} select x, 's' from c"
    data = bytearray(database(tmp_path / "a", rows))
    size = int.from_bytes(data[16:18], "big")
    inner = [page for page in range(size, len(data), size) if data[page] == 5]
    assert inner
    first = int.from_bytes(data[inner[0] + 12 : inner[0] + 14], "big")
    data[inner[0] + first : inner[0] + first + 4] = (inner[0] // size + 1).to_bytes(4, "big")
    with pytest.raises(InputError, match="damaged"):
        counts(bytes(data))
