"""Insert rows of Python values into base tables, and refuse texts that no database stores.

Modules of questions write a few rows too. So what only servers need is imported when it is used.
"""

from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from typing import Any

from profsvc.errors import InputError
from profsvc.store.connection.sql import Connection, text

# The placeholder for a value in a statement, per driver.
PLACEHOLDERS = {"qmark": "?", "format": "%s", "pyformat": "%s"}
ROWS_PER_STATEMENT = 10_000
MIN_ROWS_TO_COPY = 20  # below this number a COPY costs more than it saves


def reject_nul(texts: Iterable[str]) -> None:
    """Raise `InputError` for a text with a NUL: Postgres cannot store it, and functions of SQLite stop there."""
    if wrong := next((text for text in texts if "\0" in text), None):
        raise InputError(f"the name {wrong[:200]!r} in the file contains a NUL character; correct the file")


def insert_rows(
    connection: Connection, table: str, columns: Sequence[str], rows: Iterable[tuple[Any, ...]], known: bool = False
) -> None:
    """Insert rows into a base table with one prepared statement; with ``known``, existing rows are skipped.

    On Postgres many rows are written as columns: by COPY, or as arrays, since COPY cannot skip existing rows.
    """
    server = connection.dialect.name == "postgresql"
    places = ", ".join([PLACEHOLDERS[connection.dialect.paramstyle]] * len(columns))
    skipping = " ON CONFLICT DO NOTHING" * known
    statement = f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({places}){skipping}"
    waiting = iter(rows)
    while prepared := list(islice(waiting, ROWS_PER_STATEMENT)):
        if not server or len(prepared) < MIN_ROWS_TO_COPY:
            connection.exec_driver_sql(statement, prepared)
            continue
        given = dict(zip(columns, map(list, zip(*prepared, strict=True)), strict=True))
        if known:
            insert_new(connection, table, given, (columns[0],))
        else:
            from profsvc.store.ingest.inserts.postgres_copy import copy_columns

            copy_columns(connection, table, given)


def insert_new(
    connection: Connection, table: str, given: Mapping[str, list[Any]], returned: Sequence[str]
) -> list[tuple[Any, ...]]:
    """Insert columns into a base table of Postgres as arrays; return some columns of the rows that it had not yet."""
    arrays = ", ".join(f"%s::{_sql_type(connection, table, column)}[]" for column in given)
    words = (
        f"INSERT INTO {table} ({', '.join(given)}) SELECT * FROM unnest({arrays})"
        f" ON CONFLICT DO NOTHING RETURNING {', '.join(returned)}"
    )
    return [tuple(row) for row in connection.exec_driver_sql(words, tuple(given.values()))]


def _sql_type(connection: Connection, table: str, column: str) -> str:
    from sqlalchemy import Text

    from profsvc.store.schema.tables import metadata

    kind = metadata.tables[table].c[column].type
    return "text" if isinstance(kind, Text) else kind.compile(dialect=connection.dialect)


def insert_row(connection: Connection, table: str, key: str, row: Mapping[str, Any]) -> int:
    """Insert one row and return its number, which the database assigns to the column ``key``."""
    columns = ", ".join(row)
    places = ", ".join(f":{name}" for name in row)
    query = text(f"INSERT INTO {table} ({columns}) VALUES ({places}) RETURNING {key}")
    return int(connection.execute(query, dict(row)).scalar_one())
