"""Where the rows of an upload wait until all of it is read.

A short file is written row by row, in the transaction that stores it. A long one would hold the store's only write lock
for as long as it is read. On SQLite its rows therefore go to files of their own first, which are attached and copied
into the store in one short transaction. A server has no such lock, and takes the rows as they come.
"""

import glob
import sqlite3
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import pandas as pd
from sqlalchemy import Connection, Engine, text

from profsvc.store import locks
from profsvc.store.bulk import FEWEST_TO_COPY, insert_rows, integers, pointers, values
from profsvc.store.copy_blocks import copy_columns
from profsvc.store.engine import file_of, reading, writing
from profsvc.store.pages import MOST_ROW_ID, Column, PageFile

# Long tables: a key that counts up, numbers, and perhaps texts that are nearly always null.
PAGED = ("launches", "samples", "transfers", "api_calls", "ranges")
WORTH_PAGES = 500
ROWS_AT_ONCE = 20_000
Columns = Mapping[str, Any]


class Sink(Protocol):
    """Takes the rows of base tables; a column is an array, a series, a list or a range, and all are of one length."""

    def write(self, table: str, columns: Columns) -> None:
        """Take rows of a table."""

    def close(self) -> None:
        """Know that no more rows come."""


class Direct:
    """Writes rows in the transaction that is open."""

    def __init__(self, connection: Connection) -> None:
        """Begin an upload on a connection in a transaction that writes."""
        self.connection = connection

    def write(self, table: str, columns: Columns) -> None:
        """Take rows of a table."""
        if self.connection.dialect.name == "postgresql" and len(next(iter(columns.values()))) >= FEWEST_TO_COPY:
            copy_columns(self.connection, table, columns)
            return
        rows = zip(*map(values, columns.values()), strict=True)
        insert_rows(self.connection, table, list(columns), rows)

    def close(self) -> None:
        """Know that no more rows come."""


class Staged:
    """Writes rows to two files: long tables of numbers as pages, all others through SQLite."""

    def __init__(self, folder: Path, statements: Mapping[str, str]) -> None:
        """Begin an upload; ``statements`` are those that create the tables of the store."""
        self.files = {"staged_pages": folder / "pages.sqlite", "staged_rows": folder / "rows.sqlite"}
        self.statements = statements
        self.pages = PageFile(self.files["staged_pages"], {name: statements[name] for name in PAGED})
        self.last = dict.fromkeys(PAGED, 0)
        self.waiting: dict[str, list[list[Column]]] = {table: [] for table in PAGED}
        # Rows are written by one thread, and copied and closed by another when that is done.
        self.rows = sqlite3.connect(self.files["staged_rows"], isolation_level=None, check_same_thread=False)
        self.in_rows: list[str] = []
        for setting in ("journal_mode = OFF", "synchronous = OFF", "foreign_keys = OFF"):
            self.rows.execute(f"PRAGMA {setting}")

    def write(self, table: str, columns: Columns) -> None:
        """Take rows of a table."""
        if table in PAGED and self._as_pages(table, columns):
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

    def _as_pages(self, table: str, columns: Columns) -> bool:
        """Write rows as pages if they are all numbers and their keys count up."""
        own = self.pages.columns[table]
        keys = np.asarray(columns[own[0]])
        if (
            len(keys) < WORTH_PAGES
            or not self.last[table] < keys[0] <= keys[-1] <= MOST_ROW_ID
            or (np.diff(keys) != 1).any()
        ):
            return False
        arrays = [_numbers(columns[name]) if name in columns else _none(len(keys)) for name in own[1:]]
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
        """Write the rows that wait to be enough for numpy to be worth its while."""
        if parts := self.waiting[table]:
            self.waiting[table] = []
            columns = [_joined(column) for column in zip(*parts, strict=True)]
            self.pages.add(table, self.last[table] + 1 - len(columns[0][0]), columns)

    def close(self) -> None:
        """Make the files whole, so that they can be attached."""
        for table in PAGED:
            self._flush(table)
        self.pages.close()
        self.rows.close()

    def copy(self, connection: Connection) -> None:
        """Copy all rows into the store, to which the files are attached."""
        paged = [("staged_pages", table) for table in PAGED if self.last[table]]
        for file, table in [*paged, *(("staged_rows", table) for table in self.in_rows)]:
            connection.exec_driver_sql(f"INSERT INTO main.{table} SELECT * FROM {file}.{table}")


def _joined(parts: Sequence[Column]) -> Column:
    """Put the parts of a column behind each other."""
    if len(parts) == 1:
        return parts[0]
    values, missing = zip(*parts, strict=True)
    nulls = [np.zeros(len(own), np.bool_) if null is None else null for own, null in parts]
    return np.concatenate(values), None if all(null is None for null in missing) else np.concatenate(nulls)


def _none(length: int) -> Column:
    return np.zeros(length, np.int64), np.ones(length, np.bool_)


def _numbers(column: Any) -> Column | None:
    """Return a column as an array of 64 bits and what is null in it; None if it has texts."""
    if isinstance(column, pd.Series):
        column = column.array
    if isinstance(column, pd.arrays.IntegerArray):
        return integers(column)
    array = np.asarray(column)
    if array.dtype == object:
        return _none(len(array)) if (pointers(array) == id(None)).all() else None
    return (array, None) if array.dtype == np.float64 else (array.astype(np.int64, copy=False), None)


@contextmanager
def staging(engine: Engine) -> Iterator[Staged]:
    """Give a place for the rows of an upload; it is gone afterwards, whatever happens."""
    file = file_of(engine)
    assert file is not None, "a server takes rows as they come"
    with reading(engine) as connection:
        found = connection.execute(text("SELECT name, sql FROM sqlite_schema WHERE type = 'table'")).all()
    beside = tempfile.TemporaryDirectory(prefix=f".{file.name}.loading-", dir=file.absolute().parent)
    # The lock says that the place is in use, as long as the process lives.
    with beside as folder, locks.held(Path(folder) / "lock", "it loads"):
        staged = Staged(Path(folder), {row.name: row.sql for row in found})
        try:
            yield staged
        finally:
            staged.rows.close()
            staged.pages.file.close()


def left_over(file: Path) -> list[Path]:
    """Return the places beside a store that uploads left which were killed."""
    found = []
    for folder in sorted(file.absolute().parent.glob(f".{glob.escape(file.name)}.loading-*")):
        with suppress(FileNotFoundError), (folder / "lock").open("rb") as lock:
            if locks.free(lock):
                found.append(folder)
    return found


def reserve(engine: Engine) -> int:
    """Return a number for an upload that no other will get."""
    with writing(engine) as connection:
        connection.execute(
            text(
                "INSERT INTO sqlite_sequence (name, seq)"
                " SELECT 'uploads', 0 WHERE NOT EXISTS (SELECT 1 FROM sqlite_sequence WHERE name = 'uploads')"
            )
        )
        query = text("UPDATE sqlite_sequence SET seq = seq + 1 WHERE name = 'uploads' RETURNING seq")
        return int(connection.execute(query).scalar_one())
