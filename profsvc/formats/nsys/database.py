"""Reader of the SQLite databases that ``nsys export`` writes."""

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import BinaryIO

import numpy as np

from profsvc.errors import BrokenInputError
from profsvc.formats.nsys.database_blocks import METRIC_COLUMNS, ParsedRows, parse_rows
from profsvc.formats.nsys.database_rows import (
    GRAPHS_TABLE,
    OPTIONAL_COLUMNS,
    REQUIRED_COLUMNS,
    ROW_READERS,
    NameTables,
    RowReader,
)
from profsvc.formats.nsys.layouts import TOOL
from profsvc.formats.parsing.embedded_tables import Rows
from profsvc.formats.parsing.records import MAX_TEXT_CHARS, REJECT, ROW, SKIP, Record
from profsvc.formats.parsing.sqlite_file import Database, Row, open_database
from profsvc.formats.parsing.timestamps import MAX_NS
from profsvc.tables import Batch, ColumnTable, Wide

NAME = "nsys-sqlite"

_MAGIC = b"SQLite format 3\0"
_TABLE_MARKS = (b"META_DATA_EXPORT", b"EXPORT_META_DATA", b"CUPTI_ACTIVITY_KIND_", b"TARGET_INFO_SYSTEM_ENV")
_SCHEMA_VERSIONS = (1, 2, 3)
# The second name is of exports of 2022.1 to 2023.2.
_META_TABLES = ("META_DATA_EXPORT", "EXPORT_META_DATA")
_BEGIN = "TARGET_INFO_SESSION_START_TIME"
GRAPHS_WITHOUT_KERNELS = (
    "CUDA graphs were recorded as a whole, {} times: each is a range, and their kernels are not in the "
    "file; to record the kernels, profile with --cuda-graph-trace=node"
)
MAX_BLOCK_ROWS = 16_384
MIN_BLOCK_ROWS = 64


def _export_hint() -> str:
    return "export the report again with: nsys export --type sqlite REPORT.nsys-rep"


def sniff(head: bytes) -> bool:
    """Return whether ``head`` begins a database with tables of Nsight Systems."""
    # Databases of nvprof have some of the tables, and StringTable for names.
    return head.startswith(_MAGIC) and any(mark in head for mark in _TABLE_MARKS) and b"StringTable" not in head


def _facts(database: Database) -> dict[str, str]:
    """Return the versions in the database; raise `BrokenInputError` for an unsupported schema."""
    there = {str(key): str(value) for table in _META_TABLES for key, value in database.rows(table, ("name", "value"))}
    version = there.get("EXPORT_SCHEMA_VERSION", "")
    major = version.split(".")[0]
    known = f"{_SCHEMA_VERSIONS[0]}.x to {_SCHEMA_VERSIONS[-1]}.x"
    if not version:
        raise BrokenInputError(
            f"the database has no EXPORT_SCHEMA_VERSION in {' or '.join(_META_TABLES)}, so its columns could mean "
            f"anything; {known} can be read; with a newer Nsight Systems, {_export_hint()}"
        )
    if major not in map(str, _SCHEMA_VERSIONS):
        raise BrokenInputError(
            f"the database has the export schema {version[:40]}, but {known} can be read; with another version of "
            f"Nsight Systems, {_export_hint()}"
        )
    facts = {"tool": TOOL, "schema_version": version}
    if "EXPORT_PRODUCT_VERSION" in there:
        facts["tool_version"] = there["EXPORT_PRODUCT_VERSION"]
    begins = {ns for (ns,) in database.rows(_BEGIN, ("utcEpochNs",)) if isinstance(ns, int) and 0 < ns <= MAX_NS}
    if len(begins) == 1:
        facts["begin_utc_ns"] = str(begins.pop())  # where every time of the database counts from
    return facts


def _check_columns(database: Database, version: str) -> None:
    for table, needed in REQUIRED_COLUMNS.items():
        there = database.columns(table)
        if there and (missing := [name for name in needed if name not in there]):
            raise BrokenInputError(
                f"table {table} lacks the column {missing[0]}, which export schema {version} should have; "
                f"{_export_hint()}"
            )


def read(stream: BinaryIO) -> Iterator[Batch]:
    """Read the tables of a database."""
    with open_database(stream, _export_hint) as database:
        facts = _facts(database)
        _check_columns(database, facts["schema_version"])
        names, rows = NameTables(database), Rows()
        for table in ROW_READERS:
            columns, line = (*REQUIRED_COLUMNS[table], *OPTIONAL_COLUMNS[table]), 1
            found = iter(database.rows(table, columns))
            while some := list(islice(found, MAX_BLOCK_ROWS)):
                yield from _row_batches(table, columns, some, names, line, rows)
                line += len(some)
        rows.ledger.skipped += sum(database.count(table) for table in database.tables if table not in ROW_READERS)
        facts["tables"] = ", ".join(table for table in ROW_READERS if table in database.tables)
        message = "" if facts["tables"] else "the database holds no kernel, copy, call or range"
        if graphs := database.count(GRAPHS_TABLE):
            message = GRAPHS_WITHOUT_KERNELS.format(graphs)
        yield rows.batch(facts, message)


def _row_batches(
    table: str, columns: Sequence[str], some: list[tuple[object, ...]], names: NameTables, line: int, rows: Rows
) -> Iterator[Batch]:
    """Read rows starting at number ``line``: as a block, else in halves, else one by one."""
    if len(some) > MIN_BLOCK_ROWS and (part := parse_rows(table, columns, some, names)):
        yield from _block_batches(part, len(some), line, rows)
    elif len(some) > MIN_BLOCK_ROWS:
        middle = len(some) // 2
        yield from _row_batches(table, columns, some[:middle], names, line, rows)
        yield from _row_batches(table, columns, some[middle:], names, line + middle, rows)
    else:
        for number, values in enumerate(some, line):
            rows.ledger.add(_record(table, ROW_READERS[table], Row(columns, values), names, number, rows))
        if rows.full:
            yield rows.batch()


def _block_batches(part: ParsedRows, count: int, line: int, rows: Rows) -> Iterator[Batch]:
    if rows.count:
        yield rows.batch()
    length, wide = len(part.columns["line"]), None
    part.columns["line"] = part.columns["line"] + line
    if part.table == "launches":
        part.columns["launch_index"] = np.arange(length) + rows.launches
        if part.cells is not None and part.values is not None:
            wide = Wide(METRIC_COLUMNS, rows.launches, part.columns["line"], *part.cells, part.values)
        rows.launches += length
    rows.ledger.stored += length
    rows.ledger.skipped += count - length
    yield rows.ledger.batch({part.table: ColumnTable(part.table, length, part.columns)}, wide=wide)


def _record(table: str, take: RowReader, row: Row, names: NameTables, line: int, rows: Rows) -> Record:
    try:
        kind = ROW if take(row, names, line, rows) else SKIP
    except ValueError as error:
        return Record(REJECT, line, 1, str(row.values)[:MAX_TEXT_CHARS], [], f"{table}: {error}")
    return Record(kind, line, 1, "", [])
