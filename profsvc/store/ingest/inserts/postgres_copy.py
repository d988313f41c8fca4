"""Write whole columns into a table of Postgres by binary COPY, a block of rows at a time.

A row starts with its number of fields. Each field consists of its length in bytes and its bytes; null has the length -1
and no bytes. Numbers are big-endian. The compiled module lays out the rows; without it numpy does, without a loop over
rows: if no column of a block mixes values and nulls, all rows have equal length and the block is one array of records,
otherwise the fields are copied to computed positions.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
from sqlalchemy import BigInteger, Double, Integer, SmallInteger, Text

from profsvc.errors import DomainError
from profsvc.store.connection.sql import Connection
from profsvc.store.ingest.pages import copies
from profsvc.store.schema.tables import metadata
from profsvc.tables import CodedTexts
from profsvc.tables.column_tables import as_integers

HEADER = b"PGCOPY\n\xff\r\n\0" + bytes(8)
TRAILER = b"\xff\xff"
ROWS_PER_BLOCK = 65_536
# The bytes of a number. Narrow types come first, because they are subclasses of the wider ones.
WIDTHS = {SmallInteger: 2, BigInteger: 8, Integer: 4, Double: 8}

Column = Any
"""Values of a column: an array, a pandas series or nullable array, or a list with None for null."""


def is_null(value: object) -> bool:
    """Tell whether a value of a column of objects is null.

    >>> is_null(None), is_null(float("nan")), is_null("")
    (True, True, False)
    """
    return value is None or value != value


class Plain(NamedTuple):
    """A column as numbers of 64 bits, or as places in ``texts``, and which of them have a value (None: all)."""

    values: np.ndarray[Any, Any]
    there: np.ndarray[Any, np.dtype[np.bool_]] | None
    width: int = 8
    texts: Sequence[bytes] | None = None


class Field(NamedTuple):
    """An encoded column: ``cells`` in wire format, and which of them have a value (None: all)."""

    cells: np.ndarray[Any, Any]
    there: np.ndarray[Any, np.dtype[np.bool_]] | None


class Prepared(NamedTuple):
    """A COPY: its statement and its blocks, of which there is none without rows."""

    statement: str
    blocks: Iterable[memoryview]


def copy_columns(connection: Connection, table: str, columns: Mapping[str, Column]) -> None:
    """Write columns of equal length into a base table of Postgres; NaN means null, as in all tables.

    Raise `DomainError` for an unknown column, columns of different lengths, or a number out of range.
    """
    send(connection, *prepare(table, columns))


def prepare(table: str, columns: Mapping[str, Column]) -> Prepared:
    """Return the COPY that writes columns as `copy_columns` does; this needs no connection."""
    given = {name: _column(table, name, column) for name, column in columns.items()}
    lengths = [len(column.values) for column in given.values()]
    if len(set(lengths)) > 1:
        raise DomainError(f"columns of {table!r} differ in length: {lengths}")
    # Omitted columns are null.
    named = {name: column for name, column in given.items() if column.there is None or column.there.any()}
    named = named or given
    chosen, rows = list(named.values()), max(lengths, default=0)
    blocks = (block([_part(column, begin) for column in chosen]) for begin in range(0, rows, ROWS_PER_BLOCK))
    return Prepared(f"COPY {table} ({', '.join(named)}) FROM STDIN (FORMAT BINARY)", blocks)


def send(connection: Connection, statement: str, blocks: Iterable[memoryview]) -> None:
    """Run a prepared COPY."""
    waiting = iter(blocks)
    if (first := next(waiting, None)) is None:
        return
    driver: Any = connection.connection.driver_connection
    with driver.cursor() as cursor, cursor.copy(statement) as copy:
        copy.write(HEADER)
        for rows in chain([first], waiting):
            copy.write(rows)
        copy.write(TRAILER)


def _part(column: Plain, begin: int) -> Plain:
    rows = slice(begin, begin + ROWS_PER_BLOCK)
    return column._replace(values=column.values[rows], there=None if column.there is None else column.there[rows])


def _column(table: str, name: str, column: Column) -> Plain:
    if name not in metadata.tables[table].c:
        raise DomainError(f"table {table!r} has no column {name!r}")
    kind = metadata.tables[table].c[name].type
    if isinstance(kind, Text):
        return _texts(column)
    width = next((width for of, width in WIDTHS.items() if isinstance(kind, of)), None)
    if width is None:
        raise DomainError(f"{table}.{name} is {kind!r}, which is not written in blocks")
    values, there = _plain(column, "float64" if isinstance(kind, Double) else "int64")
    if width < 8 and not np.array_equal(values.astype(f"i{width}"), values):
        raise DomainError(f"{table}.{name}: a number does not fit into {width} bytes")
    return Plain(values, there, width)


def _plain(column: Column, dtype: str) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, np.dtype[np.bool_]] | None]:
    """Return numbers with a placeholder for null, and which of them have a value."""
    if isinstance(column, np.ndarray) and column.dtype.kind in "iuf":
        values, there = column, None
    elif isinstance(column, range):
        return np.arange(len(column), dtype=np.int64) * column.step + column.start, None
    elif isinstance(column, list) and (dtype == "float64" or None not in column):
        values, there = np.array(column, dtype), None  # None among floats becomes NaN
    elif isinstance(column, list):
        there = np.array([not is_null(value) for value in column], np.bool_)
        values = np.array([value if known else 0 for value, known in zip(column, there, strict=True)], np.int64)
    elif (integers := as_integers(column)) is not None:
        missing = integers.missing
        values, there = np.where(missing, 0, integers.values) if missing.any() else integers.values, ~missing
    else:
        array: Any = getattr(column, "array", column)
        there = ~np.asarray(array.isna())
        values = array.to_numpy(dtype, na_value=0)
    if values.dtype.kind == "f" and np.isnan(values).any():
        there = ~np.isnan(values) if there is None else there & ~np.isnan(values)
        values = np.where(there, values, 0)
    return values.astype(dtype, copy=False), None if there is None or there.all() else there


def _texts(column: Sequence[str | None] | CodedTexts) -> Plain:
    codes: Any
    distinct: Sequence[str]
    if isinstance(column, CodedTexts):
        codes, distinct = column.codes, column.texts
    else:
        numbers: dict[Any, int] = {}
        codes = np.array([-1 if is_null(text) else numbers.setdefault(text, len(numbers)) for text in column], np.int64)
        distinct = list(numbers)
    there = codes >= 0
    return Plain(
        codes.astype(np.int64, copy=False), None if there.all() else there, texts=[text.encode() for text in distinct]
    )


def block(columns: Sequence[Plain]) -> memoryview:
    """Return rows in the format of COPY."""
    if copies.is_available() and len(columns) <= copies.MAX_COLUMNS:
        return copies.rows(columns)
    return laid_out([encoded(column) for column in columns])


def encoded(column: Plain) -> Field:
    """Return a column in wire format; equal texts share one object."""
    if column.texts is None:
        return Field(column.values.astype(f">{column.values.dtype.kind}{column.width}"), column.there)
    coded = np.empty(len(column.texts) + 1, object)  # the code -1 refers to the last entry, which is null
    coded[:-1] = column.texts
    coded[-1] = b""
    return Field(coded[column.values], column.there)


def laid_out(fields: Sequence[Field]) -> memoryview:
    """Return rows in the format of COPY.

    >>> laid_out([Field(np.array([1, 2], ">i2"), np.array([True, False]))]).hex(" ", 2)
    '0001 0000 0002 0001 0001 ffff ffff'
    """
    fields = [Field(f.cells, None) if f.there is not None and f.there.all() else f for f in fields]
    if any(f.cells.dtype == object or (f.there is not None and f.there.any()) for f in fields):
        return _scattered(fields)
    kinds: list[Any] = [("fields", ">i2")]
    for n, field in enumerate(fields):
        kinds += [(f"l{n}", ">i4"), (f"v{n}", field.cells.dtype)] if field.there is None else [(f"l{n}", ">i4")]
    # What all rows have in common is copied as bytes, in half the time of setting it column by column.
    row = np.zeros(1, kinds)
    row["fields"] = len(fields)
    for n, field in enumerate(fields):
        row[f"l{n}"] = field.cells.dtype.itemsize if field.there is None else -1
    rows = np.frombuffer(bytearray(row.tobytes()) * len(fields[0].cells), row.dtype)
    for n, field in enumerate(fields):
        if field.there is None:
            rows[f"v{n}"] = field.cells
    return rows.view(np.uint8).data


def _scattered(fields: Sequence[Field]) -> memoryview:
    """Return rows of different lengths: each field is copied to its computed position."""
    lengths = [_lengths(field) for field in fields]
    ends = np.cumsum(2 + sum(4 + np.maximum(length, 0) for length in lengths))
    out = np.empty(int(ends[-1]), np.uint8)
    at = np.empty_like(ends)
    at[0], at[1:] = 0, ends[:-1]
    _put(out, at, np.full(len(at), len(fields), ">i2"))
    at += 2
    for field, length in zip(fields, lengths, strict=True):
        _put(out, at, length.astype(">i4"))
        at += 4
        places, cells = (at, field.cells) if field.there is None else (at[field.there], field.cells[field.there])
        if field.cells.dtype == object:
            _put_texts(out, places, cells)
        else:
            _put(out, places, cells)
        at += np.maximum(length, 0)
    return out.data


def _lengths(field: Field) -> np.ndarray[Any, np.dtype[np.int64]]:
    if field.cells.dtype == object:
        length = np.fromiter(map(len, field.cells), np.int64, len(field.cells))
    else:
        length = np.full(len(field.cells), field.cells.dtype.itemsize, np.int64)
    return length if field.there is None else np.where(field.there, length, -1)


def _put(out: np.ndarray[Any, Any], places: np.ndarray[Any, Any], cells: np.ndarray[Any, Any]) -> None:
    """Write cells of one width to positions that may be unaligned."""
    if len(cells):
        every = np.ndarray((len(out) - cells.dtype.itemsize + 1,), cells.dtype, out.data, strides=(1,))
        every[places] = cells


def _put_texts(out: np.ndarray[Any, Any], places: np.ndarray[Any, Any], cells: np.ndarray[Any, Any]) -> None:
    joined = np.frombuffer(b"".join(cells), np.uint8)
    lengths = np.fromiter(map(len, cells), np.int64, len(cells))
    begins = np.cumsum(lengths) - lengths
    out[np.repeat(places - begins, lengths) + np.arange(len(joined))] = joined
