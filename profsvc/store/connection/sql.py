"""Statements, and connections that read a SQLite file by the standard library.

`text` and `bindparam` stand for those of SQLAlchemy, whose connections take their statements too. A `FileReader` stands
for the engine of a store that is only asked, and its connections give the same rows: importing SQLAlchemy takes longer
than most questions. What else an engine is wanted for, such as writing, it leaves to the engine of SQLAlchemy.
"""

import re
import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property, lru_cache
from pathlib import Path
from types import GenericAlias, SimpleNamespace
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from sqlalchemy import Connection as Connection
    from sqlalchemy import Engine as Engine
    from sqlalchemy import Result as Result
    from sqlalchemy import bindparam as bindparam
    from sqlalchemy import text as text
else:
    # Annotations of functions name these at runtime too.
    Connection = Engine = Any

    class Result:
        """The name of a result in annotations."""

        __class_getitem__ = classmethod(GenericAlias)

    @lru_cache(maxsize=256)
    def text(sql: str) -> "Statement":
        """Return a statement with parameters written as ``:name``; those asked last are looked through once."""
        return Statement(sql)

    def bindparam(name: str, *values: Any, expanding: bool) -> tuple[Any, ...]:
        """Return a parameter that is a list of values, which may be given later."""
        assert expanding
        return (name, *values)


_EMPTY_LIST = "(SELECT 1 WHERE 0)"


def dicts_of(found: "Result[Any]") -> list[dict[str, Any]]:
    """Return all rows as dicts; this takes two thirds of the time of the mappings of SQLAlchemy."""
    names = tuple(found.keys())
    return [dict(zip(names, row, strict=True)) for row in found.all()]


class Statement:
    """A statement, the names of its parameters that are lists of values, and values that it always has."""

    def __init__(
        self,
        sql: str,
        lists: tuple[str, ...] = (),
        values: Mapping[str, Any] | None = None,
        options: Mapping[str, Any] | None = None,
    ) -> None:
        """Keep the parts."""
        self.text, self.lists, self.values, self.options = sql, lists, values or {}, options or {}

    def bindparams(self, *lists: tuple[Any, ...], **values: Any) -> "Statement":
        """Return the statement with these parameters as lists, and with these values."""
        given = {name: value for name, *found in lists for value in found}
        names = (*self.lists, *(name for name, *_ in lists))
        return Statement(self.text, names, {**self.values, **given, **values}, self.options)

    def execution_options(self, **options: Any) -> "Statement":
        """Return the statement with options for servers."""
        return Statement(self.text, self.lists, self.values, {**self.options, **options})

    @cached_property
    def _of_sqlalchemy(self) -> Any:
        import sqlalchemy as sa

        made = sa.text(self.text).bindparams(*(sa.bindparam(name, expanding=True) for name in self.lists))
        made = made.bindparams(**self.values)
        return made.execution_options(**self.options) if self.options else made

    def _execute_on_connection(self, *arguments: Any) -> Any:  # a connection of SQLAlchemy asks this of a statement
        return self._of_sqlalchemy._execute_on_connection(*arguments)

    def for_sqlite(self, values: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
        """Return the SQL for SQLite, where each value of a list is a parameter of its own, and the values.

        >>> Statement("SELECT :a IN :b").bindparams(("b",)).for_sqlite({"a": 1, "b": [2, 3]})
        ('SELECT :a IN (:b_1, :b_2)', {'a': 1, 'b_1': 2, 'b_2': 3})
        """
        sql, given = self.text.replace("\\:", ":"), {**self.values, **values}
        for name in self.lists:
            numbered = {f"{name}_{number}": value for number, value in enumerate(given.pop(name), 1)}
            listed = f"({', '.join(f':{one}' for one in numbered)})" if numbered else _EMPTY_LIST
            sql = re.sub(rf"(?<![:\w]):{name}\b", lambda _, listed=listed: listed, sql)  # type: ignore[misc]
            given |= numbered
        return sql, given


class _Row(tuple[Any, ...]):
    """A row, whose values also have the names of their columns."""

    __slots__ = ()
    _places: Mapping[str, int] = {}

    def __getattr__(self, name: str) -> Any:
        try:
            return self[self._places[name]]
        except KeyError:
            raise AttributeError(name) from None


class _Rows:
    """The rows that a query gives, in the shapes that results of SQLAlchemy have."""

    def __init__(self, cursor: sqlite3.Cursor, shape: Callable[[tuple[Any, ...]], Any] | None = None) -> None:
        self.cursor = cursor
        self._names = [column[0] for column in cursor.description or ()]
        places = {name: place for place, name in enumerate(self._names)}
        self._shape = shape or type("_NamedRow", (_Row,), {"__slots__": (), "_places": places})

    def __iter__(self) -> Iterator[Any]:
        return map(self._shape, self.cursor)

    def close(self) -> None:
        """End the query."""
        self.cursor.close()

    def keys(self) -> list[str]:
        """Return the names of the columns."""
        return self._names

    def mappings(self) -> "_Rows":
        """Return the rows as dicts."""
        return _Rows(self.cursor, lambda row: dict(zip(self._names, row, strict=True)))

    def scalars(self) -> "_Rows":
        """Return the first value of each row."""
        return _Rows(self.cursor, lambda row: row[0])

    def all(self) -> list[Any]:
        """Return every row that is left."""
        return list(self)

    def partitions(self, size: int) -> Iterator[Sequence[Any]]:
        """Yield the rows in parts."""
        while part := self.cursor.fetchmany(size):
            yield [self._shape(row) for row in part]

    def first(self) -> Any:
        """Return the first row, None where there is none."""
        row = self.cursor.fetchone()
        self.cursor.close()
        return None if row is None else self._shape(row)

    def one(self) -> Any:
        """Return the only row."""
        (row,) = self.all()
        return row

    def scalar(self) -> Any:
        """Return the first value of the first row, None where there is none."""
        row = self.first()
        return row[0] if row else None

    def scalar_one(self) -> Any:
        """Return the only value."""
        return self.one()[0]


class FileConnection:
    """A connection that reads a SQLite file."""

    def __init__(self, engine: "FileReader", driver: sqlite3.Connection) -> None:
        """Use an open connection of the driver."""
        self.engine, self.dialect = engine, engine.dialect
        self.connection = SimpleNamespace(driver_connection=driver)
        self._driver = driver

    def __enter__(self) -> Self:
        """Give the connection."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close it."""
        self.close()

    def close(self) -> None:
        """Leave the file open for the next connection of the reader."""
        self.engine.keep(self._driver)

    @contextmanager
    def begin(self) -> Iterator[None]:
        """Read one state of the file for as long as the block lasts."""
        self.engine.begin(self._driver)
        try:
            yield
        finally:
            self._driver.rollback()

    def execute(self, statement: Statement, values: Mapping[str, Any] | None = None) -> _Rows:
        """Return the rows of a query."""
        return _Rows(self._driver.execute(*statement.for_sqlite(values or {})))

    def exec_driver_sql(self, sql: str, values: Any = ()) -> _Rows:
        """Return the rows of a query in the words of the driver."""
        return _Rows(self._driver.execute(sql, values))


class FileReader:
    """What stands for the engine of a store in a SQLite file that is only asked."""

    dialect = SimpleNamespace(name="sqlite", loaded_dbapi=sqlite3)

    def __init__(
        self,
        file: Path,
        opened: Callable[[Path], sqlite3.Connection],
        begin: Callable[[sqlite3.Connection], None],
        full: Callable[[], Any],
    ) -> None:
        """Keep how the file is opened and read, and what makes the engine of SQLAlchemy."""
        self.url = SimpleNamespace(database=str(file))
        self.pool = object()
        self._idle: sqlite3.Connection | None = None
        self.begin, self._opened, self._make_full, self._file = begin, opened, full, file

    def connect(self) -> FileConnection:
        """Open the file, or go on with it: to open it is to learn every view again."""
        driver, self._idle = self._idle, None
        return FileConnection(self, driver or self._opened(self._file))

    def keep(self, driver: sqlite3.Connection) -> None:
        """Keep a connection that is not used any more, or close it if there is one already."""
        before, self._idle = self._idle, driver
        if before:
            before.close()

    def dispose(self) -> None:
        """Close the file, and let go of the engine of SQLAlchemy, if it was made."""
        if self._idle:
            self._idle.close()
            self._idle = None
        if "_full" in self.__dict__:
            self._full.dispose()

    @cached_property
    def _full(self) -> Any:
        return self._make_full()

    def __getattr__(self, name: str) -> Any:
        """Return what only the engine of SQLAlchemy has, such as connections that write."""
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self._full, name)
