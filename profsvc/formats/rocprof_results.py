"""Reader of ``results.db``, the SQLite database in which the first rocprof leaves a trace."""

from collections.abc import Iterator
from typing import BinaryIO

from profsvc.errors import BrokenInputError
from profsvc.formats.csv_tables import Rows
from profsvc.formats.ncu_lines import REJECT, ROW, SKIP, TEXT_LIMIT, Record
from profsvc.formats.rocprof_v1 import KERNELS, NEEDED, OPS, TABLES, TOOL, TWICE, is_kernel, take
from profsvc.formats.sqlite_file import Database, opened
from profsvc.tables import Batch

NAME = "rocprof-results"
PAGE = """\
The SQLite database of rocprof before rocprofv2, which stands beside its CSV and JSON files.

Make it with
    rocprof --sys-trace -o results.csv PROGRAM                          (results.db, results.json)

Taken: dispatches as launches, with their times, and their counters and sizes as metrics, under the names of their
columns; copies as transfers, without their bytes, which are not in it; calls of HIP and HSA; markers as ranges; from
the tables KERN, OPS, COPY, HIP, HSA and rocTX. Where both KERN and OPS hold the kernels, those of KERN are taken. Grids
are kept in work items; stored in work groups, rounded up, as one number in x. Barriers are skipped.
The lines of such a file are the rows of all its tables; where a line is asked for, it is the number of the row in its
table. results.json, which holds the same, is read as well (format kineto).

Example (what sqlite3 prints):
    sqlite> select BeginNs, EndNs, KernelName, "grd", "wgr" from KERN limit 1;
    172352210005122|172352210008687|"saxpy(int, float)"|1024|256
"""

_MAGIC = b"SQLite format 3\0"
_CREATED = [b"CREATE TABLE " + table.encode() + b" (" for table in TABLES]


def _again() -> str:
    return "take a whole copy of the file that rocprof wrote, or trace again with: rocprof --sys-trace PROGRAM"


def sniff(head: bytes) -> bool:
    """Tell whether ``head`` begins a database with tables of rocprof."""
    return head.startswith(_MAGIC) and b'"BeginNs"' in head and any(created in head for created in _CREATED)


def _tables(database: Database) -> list[str]:
    there = [table for table in TABLES if table in database.tables]
    for table in there:
        columns = database.columns(table)
        if missing := [name for name in NEEDED[table] if name not in columns]:
            raise BrokenInputError(f"table {table} lacks the column {missing[0]}, which rocprof writes; {_again()}")
    if not there:
        raise BrokenInputError(f"the database has none of the tables {', '.join(TABLES)}; {_again()}")
    return there


def read(stream: BinaryIO) -> Iterator[Batch]:
    """Read the tables of a database one after the other."""
    with opened(stream, _again) as database:
        tables, rows, twice = _tables(database), Rows(), 0
        timed = KERNELS in tables and "BeginNs" in database.columns(KERNELS)
        for table in tables:
            columns = database.columns(table)
            for line, values in enumerate(database.rows(table, columns), 1):
                record = _record(table, dict(zip(columns, values, strict=True)), line, rows, timed)
                twice += record.kind == SKIP and record.reason == OPS
                rows.ledger.take(record)
                if rows.full:
                    yield rows.batch()
            timed = timed and rows.launches > 0
        rows.ledger.skipped += sum(database.count(table) for table in database.tables if table not in TABLES)
        said = TWICE.format(twice) if twice else ""
        yield rows.batch({"tool": TOOL, "layout": "rocprof v1"}, said or ("" if rows.launches else "no dispatches"))


def _record(table: str, values: dict[str, object], line: int, rows: Rows, timed: bool) -> Record:
    if timed and table == OPS and is_kernel(table, values):
        return Record(SKIP, line, 1, "", [], OPS)
    try:
        stored = take(table, values, line, rows)
    except ValueError as error:
        return Record(REJECT, line, 1, str(values)[:TEXT_LIMIT], [], f"{table}: {error}")
    return Record(ROW if stored else SKIP, line, 1, "", [])
