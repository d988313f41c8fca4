"""Column types, row storage and constraint names of the base tables."""

from collections.abc import Callable, Mapping
from typing import Any

from sqlalchemy import REAL, BigInteger, Column, Double, ForeignKey, Integer, MetaData, Table, Text
from sqlalchemy.types import TypeEngine

# Column types only differ here: strict tables of SQLite accept only these names.
Int: TypeEngine[int] = BigInteger().with_variant(Integer(), "sqlite")
# Both databases compare texts by bytes, so the order is the same and no index breaks with a new C library.
String: TypeEngine[str] = Text().with_variant(Text(collation="C"), "postgresql")
Real: TypeEngine[float] = Double().with_variant(REAL(), "sqlite")

metadata = MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "ck": "ck_%(table_name)s_%(constraint_name)s",
        "fk": "fk_%(table_name)s_%(column_0_N_name)s",
        "pk": "pk_%(table_name)s",
    }
)


def table(name: str, *items: Any, clustered: bool = False, **options: Any) -> Table:
    """Return a table; ``clustered`` stores its rows in the order of the primary key (SQLite: without row ids)."""
    return Table(name, metadata, *items, sqlite_strict=True, sqlite_with_rowid=not clustered, **options)


def row_id(name: str) -> Column[int]:
    """Return a primary key whose numbers are assigned by the database."""
    return Column(name, Int, primary_key=True)


def key(name: str) -> Column[int]:
    """Return a primary key column whose numbers are assigned by the program."""
    return Column(name, Int, primary_key=True, autoincrement=False)


def ref(name: str, target: str, cascade: bool = False, **options: Any) -> Column[int]:
    """Return a foreign key column; with ``cascade``, rows are deleted with the row that they refer to."""
    target_key = ForeignKey(target, ondelete="CASCADE" if cascade else None)
    return Column(name, Int, target_key, autoincrement=False, **options)


def integer(name: str, **options: Any) -> Column[int]:
    """Return a column of 64-bit integers."""
    return Column(name, Int, **options)


def real(name: str, **options: Any) -> Column[float]:
    """Return a column of doubles."""
    return Column(name, Real, **options)


def text(name: str, **options: Any) -> Column[str]:
    """Return a column of texts."""
    return Column(name, String, **options)


_COLUMNS: Mapping[str, Callable[..., Column[Any]]] = {"int": integer, "float": real, "text": text}


def fields(*declarations: str) -> list[Column[Any]]:
    """Return columns, declared as ``name kind`` between commas; a kind with a question mark may be null.

    >>> [(column.name, column.nullable) for column in fields("line int, unit text?", "value float?")]
    [('line', False), ('unit', True), ('value', True)]
    """
    pairs = (field.split() for field in ", ".join(declarations).split(", "))
    return [_COLUMNS[kind.rstrip("?")](name, nullable=kind.endswith("?")) for name, kind in pairs]


IDS_PER_UPLOAD = 1_000_000_000
"""Distance between the row ids of two uploads; a file may have one less launches, transfers, and so on."""

REPEATED_BITS = {
    name: 1 << bit
    for bit, name in enumerate(("transfers", "api_calls", "ranges", "kernel_summaries", "rules", "metrics"))
}
"""Bits of ``uploads.repeats``: data that another file of the same execution contains and that is counted there."""

WHOLE_RUN_ID = 0
"""Means the whole run in ``launch_id`` and every kernel in ``kernel_id`` of results, as keys cannot contain null."""
