"""Columns of a frame as Python values, and rows into a base table in bulk."""

from collections.abc import Iterable, Sequence
from itertools import islice
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd
from sqlalchemy import Connection

from profsvc.store.copy_blocks import copy_columns
from profsvc.store.schema import metadata

# How each driver wants a value's place in a statement.
PLACE = {"qmark": "?", "format": "%s", "pyformat": "%s"}
ROWS_AT_ONCE = 50_000
FEWEST_TO_COPY = 100  # below, beginning a COPY costs more than it saves


class Integers(NamedTuple):
    """A column of whole numbers as arrays: the values, and which of them are null."""

    values: npt.NDArray[np.int64]
    missing: npt.NDArray[np.bool_]


def integers(column: Any) -> Integers:
    """Return a nullable column of whole numbers as arrays, which are its own."""
    array: Any = column.array if isinstance(column, pd.Series) else column
    return Integers(array._data, array._mask)


def pointers(texts: npt.NDArray[Any]) -> npt.NDArray[np.intp]:
    """Return which object each cell of a column of objects is; the column must outlive the answer."""
    return np.frombuffer(texts.tobytes(), np.intp)


def factorized(column: "pd.Series[Any]") -> tuple[npt.NDArray[np.intp], list[Any]]:
    """Return which of the distinct texts each cell is, -1 for null, and these texts.

    Readers give the same object for the same text, so that hardly any text needs to be looked at.

    >>> factorized(pd.Series(["b", None, "a", "b"]).astype(object))
    (array([ 0, -1,  1,  0]), ['b', 'a'])
    """
    texts = column.to_numpy(dtype=object)
    if not any(texts.strides) and len(texts):  # one cell that stands for all
        missing = texts[0] is None
        return np.full(len(texts), -1 if missing else 0), [] if missing else [texts[0]]
    codes, found = pd.factorize(pointers(texts))
    if len(found) == 1 and texts[0] is None:
        return np.full(len(texts), -1), []
    first = np.empty(len(found), np.intp)
    first[codes[::-1]] = np.arange(len(texts))[::-1]
    numbers, distinct = pd.factorize(texts[first])
    return numbers[codes], list(distinct)


def values(column: Any) -> list[Any]:
    """Return a column as Python values, None for null: a series, an array of numbers, or anything with a length.

    >>> values(pd.Series([1, None], dtype="Int64")), values(pd.Series([1.5, float("nan")])), values(range(2))
    ([1, None], [1.5, None], [0, 1])
    """
    if isinstance(column, list | range):
        return list(column)
    if not isinstance(column, pd.Series):
        column = pd.Series(column)
    if not column.hasnans:
        return list(column.to_numpy().tolist())
    if column.isna().all():
        return [None] * len(column)
    plain = column.to_numpy(dtype=object, copy=True)
    plain[column.isna().to_numpy()] = None
    return list(plain.tolist())


def insert_rows(
    connection: Connection, table: str, columns: Sequence[str], rows: Iterable[tuple[Any, ...]], known: bool = False
) -> None:
    """Write rows of a base table with one prepared statement; if ``known``, rows that are there already are passed.

    On Postgres many rows go as columns by COPY, which knows no row that is there already.
    """
    assert all(column in metadata.tables[table].c for column in columns)
    server = connection.dialect.name == "postgresql" and not known
    places = ", ".join([PLACE[connection.dialect.paramstyle]] * len(columns))
    statement = f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({places}){' ON CONFLICT DO NOTHING' * known}"
    waiting = iter(rows)
    while prepared := list(islice(waiting, ROWS_AT_ONCE)):
        if server and len(prepared) >= FEWEST_TO_COPY:
            copy_columns(connection, table, dict(zip(columns, map(list, zip(*prepared, strict=True)), strict=True)))
        else:
            connection.exec_driver_sql(statement, prepared)
