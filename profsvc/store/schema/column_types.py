"""Columns, row storage and constraint names of the base tables, declared as data.

`make_metadata` makes the tables of SQLAlchemy from them. Questions about views do not need those, and do not wait for
SQLAlchemy.
"""

from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from sqlalchemy import MetaData

NAMING = {
    "ix": "ix_%(table_name)s_%(column_0_N_name)s",
    "uq": "uq_%(table_name)s_%(column_0_N_name)s",
    "ck": "ck_%(table_name)s_%(constraint_name)s",
    "fk": "fk_%(table_name)s_%(column_0_N_name)s",
    "pk": "pk_%(table_name)s",
}


class Declared(NamedTuple):
    """An object of SQLAlchemy as it is declared: the name of its class and its arguments."""

    kind: str
    arguments: tuple[Any, ...]
    options: dict[str, Any]

    @property
    def name(self) -> str:
        """The name of a table or a column."""
        return str(self.arguments[0])


DECLARED: dict[str, Declared] = {}
"""The tables that are declared, by name."""


def _declared(kind: str, *arguments: Any, **options: Any) -> Declared:
    return Declared(kind, arguments, options)


def table(name: str, *items: Declared, clustered: bool = False, **options: Any) -> Declared:
    """Return a table; ``clustered`` stores its rows in the order of the primary key (SQLite: without row ids)."""
    made = _declared("Table", name, *items, sqlite_strict=True, sqlite_with_rowid=not clustered, **options)
    return DECLARED.setdefault(name, made)


def row_id(name: str) -> Declared:
    """Return a primary key whose numbers are assigned by the database."""
    return integer(name, primary_key=True)


def key(name: str) -> Declared:
    """Return a primary key column whose numbers are assigned by the program."""
    return integer(name, primary_key=True, autoincrement=False)


def ref(name: str, target: str, cascade: bool = False, **options: Any) -> Declared:
    """Return a foreign key column; with ``cascade``, rows are deleted with the row that they refer to."""
    target_key = _declared("ForeignKey", target, ondelete="CASCADE" if cascade else None)
    return _declared("Column", name, "int", target_key, autoincrement=False, **options)


def integer(name: str, **options: Any) -> Declared:
    """Return a column of 64-bit integers."""
    return _declared("Column", name, "int", **options)


def real(name: str, **options: Any) -> Declared:
    """Return a column of doubles."""
    return _declared("Column", name, "float", **options)


def text(name: str, **options: Any) -> Declared:
    """Return a column of texts."""
    return _declared("Column", name, "text", **options)


def unique(*columns: str) -> Declared:
    """Return the constraint that no two rows have the same values in these columns."""
    return _declared("UniqueConstraint", *columns)


def check(condition: str, name: str) -> Declared:
    """Return the constraint that each row satisfies a condition."""
    return _declared("CheckConstraint", condition, name=name)


def index(*columns: str) -> Declared:
    """Return an index over these columns."""
    return _declared("Index", None, *columns)


def fields(*declarations: str) -> list[Declared]:
    """Return columns, declared as ``name kind`` between commas; a kind with a question mark may be null.

    >>> [(column.name, column.options) for column in fields("line int, unit text?", "value float?")]
    [('line', {'nullable': False}), ('unit', {'nullable': True}), ('value', {'nullable': True})]
    """
    pairs = (field.split() for field in ", ".join(declarations).split(", "))
    return [_declared("Column", name, kind.rstrip("?"), nullable=kind.endswith("?")) for name, kind in pairs]


def make_metadata() -> "MetaData":
    """Return the tables of SQLAlchemy for all that are declared."""
    import sqlalchemy as sa

    # Column types only differ here: strict tables of SQLite accept only these names.
    types: dict[str, Any] = {
        "int": sa.BigInteger().with_variant(sa.Integer(), "sqlite"),
        # Both databases compare texts by bytes, so the order is the same and no index breaks with a new C library.
        "text": sa.Text().with_variant(sa.Text(collation="C"), "postgresql"),
        "float": sa.Double().with_variant(sa.REAL(), "sqlite"),
    }
    metadata = sa.MetaData(naming_convention=NAMING)

    def made(one: Any) -> Any:
        if not isinstance(one, Declared):
            return one
        first, *others = map(made, one.arguments)
        if one.kind == "Table":
            others = [metadata, *others]
        if one.kind == "Column":
            others[0] = types[others[0]]
        return getattr(sa, one.kind)(first, *others, **one.options)

    for one in DECLARED.values():
        made(one)
    return metadata


IDS_PER_UPLOAD = 1_000_000_000
"""Distance between the row ids of two uploads; a file may have one less launches, transfers, and so on."""

REPEATED_BITS = {
    name: 1 << bit
    for bit, name in enumerate(("transfers", "api_calls", "ranges", "kernel_summaries", "rules", "metrics"))
}
"""Bits of ``uploads.repeats``: data that another file of the same execution contains and that is counted there."""

WHOLE_RUN_ID = 0
"""Means the whole run in ``launch_id`` and every kernel in ``kernel_id`` of results, as keys cannot contain null."""
