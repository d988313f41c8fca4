"""What the base tables are made of: the types of columns, how rows are kept, and the names of constraints."""

from typing import Any

from sqlalchemy import REAL, BigInteger, Column, Double, ForeignKey, Integer, MetaData, Table, Text
from sqlalchemy.types import TypeEngine

# The one place where column types differ: SQLite's strict tables know only these names.
Int: TypeEngine[int] = BigInteger().with_variant(Integer(), "sqlite")
# Texts compare byte by byte on both: the same order everywhere, and no index that a new C library would break.
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
    """Make a table; ``clustered`` keeps its rows in the order of the primary key (SQLite: no row ids)."""
    return Table(name, metadata, *items, sqlite_strict=True, sqlite_with_rowid=not clustered, **options)


def row_id(name: str) -> Column[int]:
    """Make the number of a row, given by the database."""
    return Column(name, Int, primary_key=True)


def key(name: str) -> Column[int]:
    """Make a column of the primary key whose numbers are given by the program."""
    return Column(name, Int, primary_key=True, autoincrement=False)


def ref(name: str, target: str, cascade: bool = False, **options: Any) -> Column[int]:
    """Make a column that refers to a row of another table; with ``cascade`` a row goes when that one goes."""
    target_key = ForeignKey(target, ondelete="CASCADE" if cascade else None)
    return Column(name, Int, target_key, autoincrement=False, **options)


def integer(name: str, **options: Any) -> Column[int]:
    """Make a column of whole numbers of 64 bits."""
    return Column(name, Int, **options)


def real(name: str, **options: Any) -> Column[float]:
    """Make a column of doubles."""
    return Column(name, Real, **options)


def text(name: str, **options: Any) -> Column[str]:
    """Make a column of text."""
    return Column(name, String, **options)
