"""Staging of the rows of an upload until all of it is read, and of many results.

A short file is written row by row, in the transaction that stores it. A long file would hold the only write lock of the
store while it is read. So on SQLite its rows are first written to separate files, which are attached and copied into
the store in one short transaction. A server does not need this lock and receives the rows directly.
"""

from __future__ import annotations

import glob
import sqlite3
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from sqlalchemy import Double

from profsvc.store.connection import locks
from profsvc.store.connection.sql import Connection, Engine, text
from profsvc.store.connection.transactions import reading, writing
from profsvc.store.connection.urls import file_of
from profsvc.store.ingest.inserts import postgres_copy
from profsvc.store.ingest.inserts.column_values import object_ids, values
from profsvc.store.ingest.inserts.postgres_copy import Prepared
from profsvc.store.ingest.inserts.row_insert import MIN_ROWS_TO_COPY, insert_rows
from profsvc.store.ingest.inserts.sqlite_pages import MAX_ROW_ID, PAGE_BYTES, Column, PageFile
from profsvc.store.ingest.runs import reserve_sqlite_ids
from profsvc.store.ingest.store_copy import StagedFile
from profsvc.store.schema.tables import metadata
from profsvc.tables import CodedTexts
from profsvc.tables.column_tables import as_integers

# Long tables: an ascending key, numbers, and possibly texts that are nearly always null.
PAGED_TABLES = ("launches", "samples", "transfers", "api_calls", "ranges")
# Tables whose rows are collected for a COPY, since nothing looks at them before all are written.
COLLECTED_TABLES = {*PAGED_TABLES, "wide_blocks", "wide_cells", "wide_constants", "wide_lists"}
MIN_ROWS_FOR_PAGES = 500
ROWS_AT_ONCE = 10_000
MIN_BYTES_TO_SEND = 4 << 20
Columns = Mapping[str, Any]


class Sink(Protocol):
    """Receives rows of base tables; columns are arrays, series, lists or ranges of equal length."""

    def write(self, table: str, columns: Columns) -> None:
        """Write rows of a table."""

    def close(self) -> None:
        """Finish; no more rows follow."""


class PreparingSink(Sink, Protocol):
    """A sink whose rows another thread may write."""

    def prepare(self, table: str, columns: Columns) -> Callable[[], None] | None:
        """Return what writes rows of a table, which another thread may call; as much as possible is done before.

        None means that the rows are kept for a later call, or for `close`.
        """


class _Collected:
    """Blocks of rows that wait for one COPY."""

    def __init__(self, statement: str) -> None:
        self.statement, self.blocks, self.size = statement, list[memoryview](), 0

    def add(self, blocks: Iterable[memoryview]) -> None:
        for block in blocks:
            self.blocks.append(block)
            self.size += len(block)

    def prepared(self) -> Prepared:
        return Prepared(self.statement, self.blocks)


class DirectSink:
    """Writes rows in the open transaction."""

    def __init__(self, connection: Connection) -> None:
        """Begin an upload on a connection in a write transaction."""
        self.connection = connection
        self.collected: dict[str, _Collected] = {}

    def write(self, table: str, columns: Columns) -> None:
        """Write rows of a table."""
        if self._is_copied(columns):
            postgres_copy.copy_columns(self.connection, table, columns)
            return
        rows = zip(*map(values, columns.values()), strict=True)
        insert_rows(self.connection, table, list(columns), rows)

    def prepare(self, table: str, columns: Columns) -> Callable[[], None] | None:
        """Return what writes rows of a table, which for COPY are already in its format; None while more are collected.

        What a COPY costs beside its rows is then paid once for many batches.
        """
        if not self._is_copied(columns, 1 if table in COLLECTED_TABLES else MIN_ROWS_TO_COPY):
            return partial(self.write, table, columns)
        statement, blocks = postgres_copy.prepare(table, columns)
        if table not in COLLECTED_TABLES:
            return self._sending([Prepared(statement, blocks)])
        ended = []
        if (waiting := self.collected.get(table)) and waiting.statement != statement:
            ended.append(self.collected.pop(table).prepared())
        collected = self.collected.setdefault(table, _Collected(statement))
        collected.add(blocks)
        if collected.size >= MIN_BYTES_TO_SEND:
            ended.append(self.collected.pop(table).prepared())
        return self._sending(ended) if ended else None

    def _sending(self, ended: Sequence[Prepared]) -> Callable[[], None]:
        # The blocks are made here, not where they are sent.
        made = [(statement, list(blocks)) for statement, blocks in ended]

        def send() -> None:
            for statement, blocks in made:
                postgres_copy.send(self.connection, statement, blocks)

        return send

    def _is_copied(self, columns: Columns, least: int = MIN_ROWS_TO_COPY) -> bool:
        return self.connection.dialect.name == "postgresql" and len(next(iter(columns.values()))) >= least

    def close(self) -> None:
        """Finish; no more rows follow."""
        for collected in self.collected.values():
            postgres_copy.send(self.connection, *collected.prepared())
        self.collected.clear()


class StagedSink:
    """Writes rows to two files: long tables of numbers as pages, all others through SQLite."""

    def __init__(self, folder: Path, statements: Mapping[str, str]) -> None:
        """Begin an upload; ``statements`` are those that create the tables of the store."""
        self.folder = folder
        self.statements = statements
        self.ended = 0
        self.pages = self._new_pages()
        self.last = dict.fromkeys(PAGED_TABLES, 0)
        self.waiting: dict[str, list[list[Column]]] = {table: [] for table in PAGED_TABLES}
        # One thread writes the rows, and another copies and closes the files afterwards.
        self.rows = sqlite3.connect(folder / "rows.sqlite", isolation_level=None, check_same_thread=False)
        self.in_rows: list[str] = []
        self.files: list[StagedFile] = []
        for setting in ("journal_mode = OFF", "synchronous = OFF", "foreign_keys = OFF"):
            self.rows.execute(f"PRAGMA {setting}")

    def _new_pages(self) -> PageFile:
        return PageFile(
            self.folder / f"pages_{self.ended}.sqlite", {name: self.statements[name] for name in PAGED_TABLES}
        )

    def write(self, table: str, columns: Columns) -> None:
        """Write rows of a table."""
        if table in PAGED_TABLES and self._as_pages(table, columns):
            return
        if table not in self.in_rows:
            self.rows.execute(self.statements[table])
            self.in_rows.append(table)
        places = ", ".join("?" * len(columns))
        self.rows.execute("BEGIN")
        self.rows.executemany(
            f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({places})",
            zip(*map(values, columns.values()), strict=True),
        )
        self.rows.execute("COMMIT")

    def prepare(self, table: str, columns: Columns) -> Callable[[], None]:
        """Return what writes rows of a table."""
        return partial(self.write, table, columns)

    def _as_pages(self, table: str, columns: Columns) -> bool:
        """Write rows as pages if they are all numbers and their keys count up."""
        own = self.pages.columns[table]
        keys = np.asarray(columns[own[0]])
        if (
            len(keys) < MIN_ROWS_FOR_PAGES
            or not self.last[table] < keys[0] <= keys[-1] <= MAX_ROW_ID
            or (np.diff(keys) != 1).any()
        ):
            return False
        arrays = [_numbers(columns[name]) if name in columns else _nulls(len(keys)) for name in own[1:]]
        if any(array is None for array in arrays):
            return False
        if keys[0] != self.last[table] + 1:
            self._flush(table)
        self.waiting[table].append([array for array in arrays if array is not None])
        self.last[table] = int(keys[-1])
        if sum(len(part[0][0]) for part in self.waiting[table]) >= ROWS_AT_ONCE:
            self._flush(table)
        return True

    def _flush(self, table: str) -> None:
        """Write the buffered rows, which are collected so that numpy is efficient."""
        if parts := self.waiting[table]:
            self.waiting[table] = []
            columns = [_concatenated(column) for column in zip(*parts, strict=True)]
            self.pages.add(table, self.last[table] + 1 - len(columns[0][0]), columns)

    def paged_bytes(self) -> int:
        """Return the size of the pages that are not complete yet."""
        return self.pages.pages * PAGE_BYTES

    def end_pages(self, settle: Callable[[], None]) -> StagedFile:
        """Complete the pages so far, and begin a file for those of later rows; ``settle`` waits for its writer."""
        settle()
        ended = self._complete_pages()
        self.ended += 1
        self.pages = self._new_pages()
        return ended

    def _complete_pages(self) -> StagedFile:
        for table in PAGED_TABLES:
            self._flush(table)
        self.pages.close()
        tables = [table for table in PAGED_TABLES if self.pages.trees[table].leaves]
        return StagedFile(f"staged_pages_{self.ended}", self.pages.path, tables)

    def close(self) -> None:
        """Complete the files, so that they can be attached."""
        self.files = [self._complete_pages(), StagedFile("staged_rows", self.folder / "rows.sqlite", self.in_rows)]
        self.rows.close()


def _concatenated(parts: Sequence[Column]) -> Column:
    """Return the concatenated parts of a column."""
    if len(parts) == 1:
        return parts[0]
    values, missing = zip(*parts, strict=True)
    nulls = [np.zeros(len(own), np.bool_) if null is None else null for own, null in parts]
    return np.concatenate(values), None if all(null is None for null in missing) else np.concatenate(nulls)


def _nulls(length: int) -> Column:
    return np.zeros(length, np.int64), np.ones(length, np.bool_)


def _numbers(column: Any) -> Column | None:
    """Return a column as 64-bit array and null mask; None if it contains texts."""
    if (integers := as_integers(column)) is not None:
        return integers.values, integers.missing
    if isinstance(column, CodedTexts):
        return None if (column.codes >= 0).any() else _nulls(len(column))
    array = np.asarray(column)
    if array.dtype == object:
        return _nulls(len(array)) if (object_ids(array) == id(None)).all() else None
    return (array, None) if array.dtype == np.float64 else (array.astype(np.int64, copy=False), None)


class StagedResults:
    """Writes results, tables of numbers only, as pages of a file, in the order of their keys."""

    def __init__(self, folder: Path, tables: Sequence[str]) -> None:
        """Begin with empty tables."""
        self.files = {"staged_results": folder / "results.sqlite"}
        self.columns = {name: {column.name: column.type for column in metadata.tables[name].columns} for name in tables}
        statements = {
            name: f"CREATE TABLE {name} (row_id INTEGER PRIMARY KEY, "
            + ", ".join(f"{column} {'REAL' if isinstance(of, Double) else 'INTEGER'}" for column, of in own.items())
            + ")"
            for name, own in self.columns.items()
        }
        self.pages = PageFile(self.files["staged_results"], statements)
        self.rows = dict.fromkeys(tables, 0)

    def write(self, table: str, columns: Columns) -> None:
        """Write rows of a table."""
        rows = len(next(iter(columns.values())))
        arrays = [_numbers(columns[name]) if name in columns else _nulls(rows) for name in self.columns[table]]
        for begin in range(0, rows, ROWS_AT_ONCE):
            some = slice(begin, begin + ROWS_AT_ONCE)
            part = [(own[0][some], None if own[1] is None else own[1][some]) for own in arrays if own is not None]
            self.pages.add(table, self.rows[table] + 1, part)
            self.rows[table] += len(part[0][0])

    def close(self) -> None:
        """Complete the file, so that it can be attached."""
        self.pages.close()

    def copy(self, connection: Connection) -> None:
        """Copy all rows into the store, to which the file is attached."""
        for table in (name for name, rows in self.rows.items() if rows):
            columns = ", ".join(self.columns[table])
            connection.exec_driver_sql(
                f"INSERT INTO main.{table} ({columns}) SELECT {columns} FROM staged_results.{table} ORDER BY row_id"
            )


@contextmanager
def staging_results(engine: Engine, tables: Sequence[str]) -> Iterator[StagedResults]:
    """Yield a staging area for results; it is always removed afterwards."""
    with _folder_beside(engine) as folder:
        staged = StagedResults(folder, tables)
        try:
            yield staged
        finally:
            staged.pages.file.close()


@contextmanager
def staging(engine: Engine) -> Iterator[StagedSink]:
    """Yield a staging area for the rows of an upload; it is always removed afterwards."""
    with reading(engine) as connection:
        found = connection.execute(text("SELECT name, sql FROM sqlite_schema WHERE type = 'table'")).all()
    with _folder_beside(engine) as folder:
        staged = StagedSink(folder, {row.name: row.sql for row in found})
        try:
            yield staged
        finally:
            staged.rows.close()
            staged.pages.file.close()


@contextmanager
def _folder_beside(engine: Engine) -> Iterator[Path]:
    """Yield a folder next to a store, which is removed afterwards."""
    file = file_of(engine)
    assert file is not None, "a server takes rows as they come"
    beside = tempfile.TemporaryDirectory(prefix=f".{file.name}.loading-", dir=file.absolute().parent)
    # The lock marks the staging area as used while the process lives.
    with beside as folder, locks.hold_lock(Path(folder) / "lock", "it loads"):
        yield Path(folder)


def orphaned_folders(file: Path) -> list[Path]:
    """Return the staging areas left next to a store by killed uploads."""
    found = []
    for folder in sorted(file.absolute().parent.glob(f".{glob.escape(file.name)}.loading-*")):
        with suppress(FileNotFoundError), (folder / "lock").open("rb") as lock:
            if locks.try_lock(lock):
                found.append(folder)
    return found


def reserve_upload_id(engine: Engine) -> int:
    """Return a unique number for an upload."""
    with writing(engine) as connection:
        return reserve_sqlite_ids(connection, "uploads")
