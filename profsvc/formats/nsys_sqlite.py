"""Reader of the SQLite databases that ``nsys export`` writes."""

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import BinaryIO

import numpy as np

from profsvc.errors import BrokenInputError
from profsvc.formats.csv_tables import Rows
from profsvc.formats.ncu_lines import REJECT, ROW, SKIP, TEXT_LIMIT, Record
from profsvc.formats.nsys import TOOL
from profsvc.formats.nsys_sqlite_blocks import WIDE, Part, taken
from profsvc.formats.nsys_sqlite_rows import GRAPH, NEEDED, TAKE, USED, Names, Row, Take
from profsvc.formats.sqlite_file import Database, opened
from profsvc.tables import Batch, Wide, frame_of_arrays

NAME = "nsys-sqlite"
PAGE = """\
The SQLite database of a Nsight Systems report.

Make it from a report:
    nsys profile -o REPORT PROGRAM
    nsys export --type sqlite -o FILE.sqlite REPORT.nsys-rep

Taken: kernels as launches, copies and memsets as transfers, calls of the CUDA runtime and driver, and NVTX ranges and
marks; from the tables CUPTI_ACTIVITY_KIND_KERNEL, _MEMCPY, _MEMSET, _RUNTIME and NVTX_EVENTS. A CUDA graph that was
recorded as a whole (_GRAPH_TRACE, the default of the tool) is a range, and the message says that its kernels are not in
the file. A table that is not there holds nothing: the tool writes a table only where it has rows.
The version of the export schema must be 1, 2 or 3 (Nsight Systems since 2022.1).

The lines of such a file are the rows of all its tables: rows of the tables above are stored; NVTX rows that are no
range or mark, and the rows of all other tables, are skipped. Where a line is asked for, it is the number of the row in
its table.

Example (what sqlite3 prints):
    sqlite> select name, value from META_DATA_EXPORT where name = 'EXPORT_SCHEMA_VERSION';
    EXPORT_SCHEMA_VERSION|3.16.1
    sqlite> select start, end, gridX, blockX from CUPTI_ACTIVITY_KIND_KERNEL limit 1;
    1959533099|1959604428|336|256
"""

_MAGIC = b"SQLite format 3\0"
_MARKS = (b"META_DATA_EXPORT", b"EXPORT_META_DATA", b"CUPTI_ACTIVITY_KIND_", b"TARGET_INFO_SYSTEM_ENV")
_SCHEMAS = (1, 2, 3)
# The second is its name in the exports of 2022.1 to 2023.2.
_META = ("META_DATA_EXPORT", "EXPORT_META_DATA")
WHOLE_GRAPHS = (
    "CUDA graphs were executed {} times and recorded as a whole, each a range: the kernels in them are not in the "
    "file; profile with --cuda-graph-trace=node for them"
)
AT_ONCE = 16_384
FEW = 64


def _again() -> str:
    return "export the report again with: nsys export --type sqlite REPORT.nsys-rep"


def sniff(head: bytes) -> bool:
    """Tell whether ``head`` begins a database with tables of Nsight Systems."""
    # nvprof's databases have some of the tables, and their own one of names.
    return head.startswith(_MAGIC) and any(mark in head for mark in _MARKS) and b"StringTable" not in head


def _facts(database: Database) -> dict[str, str]:
    """Return the versions in the database; refuse a schema that this reader was not made for."""
    there = {str(key): str(value) for table in _META for key, value in database.rows(table, ("name", "value"))}
    version = there.get("EXPORT_SCHEMA_VERSION", "")
    major = version.split(".")[0]
    known = f"{_SCHEMAS[0]}.x to {_SCHEMAS[-1]}.x"
    if not version:
        raise BrokenInputError(
            f"the database has no EXPORT_SCHEMA_VERSION in {' or '.join(_META)}, so its columns could mean "
            f"anything; {known} can be read; with a newer Nsight Systems, {_again()}"
        )
    if major not in map(str, _SCHEMAS):
        raise BrokenInputError(
            f"the database has the export schema {version[:40]}, but {known} can be read; with another version of "
            f"Nsight Systems, {_again()}"
        )
    facts = {"tool": TOOL, "schema_version": version}
    if "EXPORT_PRODUCT_VERSION" in there:
        facts["tool_version"] = there["EXPORT_PRODUCT_VERSION"]
    return facts


def _check_columns(database: Database, version: str) -> None:
    for table, needed in NEEDED.items():
        there = database.columns(table)
        if there and (missing := [name for name in needed if name not in there]):
            raise BrokenInputError(
                f"table {table} lacks the column {missing[0]}, which export schema {version} should have; {_again()}"
            )


def read(stream: BinaryIO) -> Iterator[Batch]:
    """Read the tables of a database one after the other."""
    with opened(stream, _again) as database:
        facts = _facts(database)
        _check_columns(database, facts["schema_version"])
        names, rows = Names(database), Rows()
        for table in TAKE:
            columns, line = (*NEEDED[table], *USED[table]), 1
            found = iter(database.rows(table, columns))
            while some := list(islice(found, AT_ONCE)):
                yield from _batches(table, columns, some, names, line, rows)
                line += len(some)
        rows.ledger.skipped += sum(database.count(table) for table in database.tables if table not in TAKE)
        facts["tables"] = ", ".join(table for table in TAKE if table in database.tables)
        message = "" if facts["tables"] else "the database holds no kernel, copy, call or range"
        if graphs := database.count(GRAPH):
            message = WHOLE_GRAPHS.format(graphs)
        yield rows.batch(facts, message)


def _batches(
    table: str, columns: Sequence[str], some: list[tuple[object, ...]], names: Names, line: int, rows: Rows
) -> Iterator[Batch]:
    """Take rows of a table, the first of which has the number ``line``: all at once, else by halves, few one by one."""
    if len(some) > FEW and (part := taken(table, columns, some, names)):
        yield from _at_once(part, len(some), line, rows)
    elif len(some) > FEW:
        middle = len(some) // 2
        yield from _batches(table, columns, some[:middle], names, line, rows)
        yield from _batches(table, columns, some[middle:], names, line + middle, rows)
    else:
        for number, values in enumerate(some, line):
            rows.ledger.take(_record(table, TAKE[table], Row(columns, values), names, number, rows))
        if rows.full:
            yield rows.batch()


def _at_once(part: Part, count: int, line: int, rows: Rows) -> Iterator[Batch]:
    if rows.count:
        yield rows.batch()
    length, wide = len(part.columns["line"]), None
    part.columns["line"] = part.columns["line"] + line
    if part.table == "launches":
        part.columns["launch_index"] = np.arange(length) + rows.launches
        if part.cells is not None and part.values is not None:
            wide = Wide(WIDE, rows.launches, part.columns["line"], *part.cells, part.values)
        rows.launches += length
    rows.ledger.stored += length
    rows.ledger.skipped += count - length
    yield rows.ledger.batch({part.table: frame_of_arrays(part.table, length, part.columns)}, wide=wide)


def _record(table: str, take: Take, row: Row, names: Names, line: int, rows: Rows) -> Record:
    try:
        kind = ROW if take(row, names, line, rows) else SKIP
    except ValueError as error:
        return Record(REJECT, line, 1, str(row.values)[:TEXT_LIMIT], [], f"{table}: {error}")
    return Record(kind, line, 1, "", [])
