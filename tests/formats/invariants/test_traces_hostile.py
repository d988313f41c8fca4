"""Traces and databases made to break a reader: each is refused or its bad rows are rejected, in bounded time."""

import io
import sqlite3
import subprocess
import sys
import time

import pytest

from profsvc.errors import BrokenInputError, InputError
from profsvc.formats.nsys import database as nsys_database
from profsvc.formats.parsing import sqlite_file
from profsvc.formats.pytorch import trace as pytorch_trace
from profsvc.formats.rocm import rocpd
from profsvc.workers import process

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
        list(pytorch_trace.read(io.BytesIO(data)))


def test_hostile_events_are_rejected():
    events = (EVENT % ("1e99999999999999999999", 1), EVENT % ("true", 1), EVENT % (1, "1e17"), EVENT % (1, "null"))
    batches = list(pytorch_trace.read(io.BytesIO(trace(*events))))
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
    batch = list(pytorch_trace.read(io.BytesIO(trace(*events))))[-1]
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
    batches = list(nsys_database.read(io.BytesIO(data)))
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


SLOW = "instr(hex(zeroblob(8000000)), hex(zeroblob(4000000)) || 'x' || {})"
GENERATED = f"create table slow(a, b generated always as ({SLOW.format('a')}) {{}} not null)"
ROWS = "insert into slow(a) select value from json_each('[1,2,3,4,5,6,7,8]')"


def crafted(path, table: str) -> bytes:
    """A database of a few pages, whose table was made plain and then got another statement."""
    data = database(path, "create table slow(a)", ROWS)
    connection = sqlite3.connect(path)
    connection.execute("pragma writable_schema = on")
    connection.execute("update sqlite_master set sql = ? where name = 'slow'", (table,))
    connection.commit()
    connection.close()
    assert len(data) < 40_000
    return path.read_bytes()


@pytest.mark.parametrize("kind", ["virtual", "stored"])
@pytest.mark.parametrize("reader", [nsys_database, rocpd])
def test_a_column_that_is_computed_without_end_is_refused_at_once(tmp_path, kind, reader):
    data = crafted(tmp_path / "a", GENERATED.format(kind))
    began = time.monotonic()
    with pytest.raises(BrokenInputError, match="a generated column, 'b' of 'slow', which is not part of any export"):
        list(reader.read(io.BytesIO(data)))
    assert time.monotonic() - began < 10


@pytest.mark.parametrize(
    ("statement", "words"),
    [
        ("create trigger t after insert on StringIds begin select 1; end", "a trigger, 't'"),
        ("create virtual table v using fts5(x)", "a virtual table, 'v'"),
    ],
)
def test_what_no_export_has_and_could_run_is_refused(tmp_path, statement, words):
    with pytest.raises(BrokenInputError, match=words):
        counts(database(tmp_path / "a", statement))


def test_a_file_that_takes_too_long_is_given_up(tmp_path, monkeypatch):
    """Whatever is found that SQLite does not come back from: who asks does not wait for it."""
    endless = tmp_path / "endless.py"
    endless.write_text("import time; time.sleep(600)", encoding="utf-8")
    monkeypatch.setattr(process, "WORKER", endless)
    monkeypatch.setattr(process, "WAIT_FACTOR", 0.05)
    began = time.monotonic()
    with pytest.raises(BrokenInputError, match="more memory or time than a valid one of its size"):
        counts(database(tmp_path / "a"))
    assert 0.9 < time.monotonic() - began < 20


@pytest.mark.parametrize("work", ["while True: pass", "x = bytearray(300 << 20)"])
def test_the_system_ends_a_reader_at_its_limits(work):
    """Also one that nobody waits for any more, as who asked was killed."""
    worker = process.WORKER
    code = f"import runpy; names = runpy.run_path({str(worker)!r}); names['cap'](200 << 20, 1, 8)\n{work}"
    done = subprocess.run([sys.executable, "-I", "-S", "-c", code], capture_output=True, timeout=60)
    assert done.returncode != 0
    assert done.returncode < 0 or b"MemoryError" in done.stderr


def test_rows_are_found_by_their_numbers_near_and_far(tmp_path):
    numbers = "with recursive c(x) as (select 1 union all select x + 1 from c where x < 30000)"
    rows = f"insert into StringIds {numbers} select x * 100, 's' || x from c"
    data = database(tmp_path / "a", rows, "insert into StringIds values (-7, 'before')")
    with sqlite_file.open_database(io.BytesIO(data), str) as found:
        for number in (100, 200, 3_000_000, -7, *range(100, 3_000_001, 29_900)):
            want = "before" if number == -7 else f"s{number // 100}"
            assert found.row_by_id("StringIds", ("value", "missing"), number) == (want, None)
        assert found.row_by_id("StringIds", ("value",), 101) is None
        assert found.row_by_id("StringIds", ("value",), 2**62) is None
        assert found.row_by_id("META_DATA_EXPORT", ("value",), 1) is None
        assert found.count("StringIds") == 30_001
        some = found.rows("StringIds", ("id",))
        assert [next(some)[0], next(some)[0]] == [100, 200]
        assert len(list(found.rows("StringIds", ("id",)))) == 30_001


def test_texts_of_many_megabytes_are_read_a_few_at_a_time(tmp_path):
    rows = "insert into StringIds select value, hex(zeroblob(3000000)) from json_each('[1,2,3,4,5,6,7,8,9,10,11,12]')"
    data = database(tmp_path / "a", rows)
    with sqlite_file.open_database(io.BytesIO(data), str) as found:
        assert [len(text) for (text,) in found.rows("StringIds", ("value",))] == [6_000_000] * 12
