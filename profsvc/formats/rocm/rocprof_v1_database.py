"""Reader of ``results.db``, the SQLite trace database of the first rocprof."""

from collections.abc import Iterator
from typing import BinaryIO

from profsvc.errors import BrokenInputError
from profsvc.formats.parsing.embedded_tables import Rows
from profsvc.formats.parsing.records import MAX_TEXT_CHARS, REJECT, ROW, SKIP, Record
from profsvc.formats.parsing.sqlite_file import Database, open_database
from profsvc.formats.rocm.rocprof_v1_tables import (
    DUPLICATE_KERNELS,
    KERNELS,
    OPS,
    REQUIRED_COLUMNS,
    TABLES,
    TOOL,
    is_kernel,
    read_row,
)
from profsvc.tables import Batch

NAME = "rocprof-results"

_MAGIC = b"SQLite format 3\0"
_CREATED = [b"CREATE TABLE " + table.encode() + b" (" for table in TABLES]


def _trace_hint() -> str:
    return "upload a complete copy of the file, or trace again with: rocprof --sys-trace PROGRAM"


def sniff(head: bytes) -> bool:
    """Return whether ``head`` begins a database with tables of rocprof."""
    return head.startswith(_MAGIC) and b'"BeginNs"' in head and any(created in head for created in _CREATED)


def _tables(database: Database) -> list[str]:
    there = [table for table in TABLES if table in database.tables]
    for table in there:
        columns = database.columns(table)
        if missing := [name for name in REQUIRED_COLUMNS[table] if name not in columns]:
            raise BrokenInputError(
                f"table {table} lacks the column {missing[0]}, which rocprof writes; {_trace_hint()}"
            )
    if not there:
        raise BrokenInputError(f"the database has none of the tables {', '.join(TABLES)}; {_trace_hint()}")
    return there


def read(stream: BinaryIO) -> Iterator[Batch]:
    """Read the tables of a database."""
    with open_database(stream, _trace_hint) as database:
        tables, rows, twice = _tables(database), Rows(), 0
        timed = KERNELS in tables and "BeginNs" in database.columns(KERNELS)
        for table in tables:
            columns = database.columns(table)
            for line, values in enumerate(database.rows(table, columns), 1):
                record = _record(table, dict(zip(columns, values, strict=True)), line, rows, timed)
                twice += record.kind == SKIP and record.reason == OPS
                rows.ledger.add(record)
                if rows.full:
                    yield rows.batch()
            timed = timed and rows.launches > 0
        rows.ledger.skipped += sum(database.count(table) for table in database.tables if table not in TABLES)
        said = DUPLICATE_KERNELS.format(twice) if twice else ""
        yield rows.batch({"tool": TOOL, "layout": "rocprof v1"}, said or ("" if rows.launches else "no dispatches"))


def _record(table: str, values: dict[str, object], line: int, rows: Rows, timed: bool) -> Record:
    if timed and table == OPS and is_kernel(table, values):
        return Record(SKIP, line, 1, "", [], OPS)
    try:
        stored = read_row(table, values, line, rows)
    except ValueError as error:
        return Record(REJECT, line, 1, str(values)[:MAX_TEXT_CHARS], [], f"{table}: {error}")
    return Record(ROW if stored else SKIP, line, 1, "", [])
