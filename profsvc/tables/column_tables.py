"""Tidy tables as whole columns, for long files: no frame is made unless somebody asks for one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from types import NoneType
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from profsvc.errors import DomainError
from profsvc.tables.on_demand import pd
from profsvc.tables.schemas import DTYPES, TABLES

Objects = npt.NDArray[np.object_]
Codes = npt.NDArray[np.signedinteger]


class CodedTexts:
    """A column of texts: the code of each row, -1 for null, and the text of each code; texts may repeat."""

    def __init__(self, codes: Codes, texts: Sequence[str]) -> None:
        """Take the codes and texts as they are."""
        self.codes, self.texts = codes, texts

    @classmethod
    def from_meanings(cls, codes: Codes, meanings: Sequence[str | None]) -> CodedTexts:
        """Return a column whose codes stand for texts or for null.

        >>> column = CodedTexts.from_meanings(np.array([0, 1, 2]), ["a", None, "b"])
        >>> column.codes.tolist(), column.texts, column.tolist()
        ([0, -1, 1], ['a', 'b'], ['a', None, 'b'])
        """
        texts = [text for text in meanings if text is not None]
        if len(texts) < len(meanings):
            known = np.array([text is not None for text in meanings])
            codes = np.where(known, np.cumsum(known) - 1, -1)[codes]
        return cls(codes, texts)

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self.codes)

    def __getitem__(self, row: int) -> str | None:
        """Return the text of a row, None for null."""
        code = int(self.codes[row])
        return None if code < 0 else self.texts[code]

    def tolist(self) -> list[str | None]:
        """Return the texts of all rows, None for null."""
        return list(np.asarray(self).tolist())

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Objects:
        """Return the texts of all rows, None for null."""
        distinct = np.empty(len(self.texts) + 1, object)  # the code -1 is the last
        distinct[:-1] = self.texts
        if len(self.codes) and not any(self.codes.strides):  # one cell represents all
            return np.broadcast_to(distinct[self.codes[:1]], len(self.codes))
        return distinct[self.codes]


class Integers:
    """A column of 64-bit integers: the values, and which rows are null; the value of a null is any."""

    def __init__(self, values: npt.NDArray[np.int64], missing: npt.NDArray[np.bool_]) -> None:
        """Take the values and the mask as they are."""
        self.values, self.missing = values, missing

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self.values)

    def __getitem__(self, rows: Any) -> Integers:
        """Return some rows: a slice, their places, or a mask."""
        return Integers(self.values[rows], self.missing[rows])

    def tolist(self) -> list[int | None]:
        """Return the integers of all rows, None for null.

        >>> Integers(np.array([3, 0]), np.array([False, True])).tolist()
        [3, None]
        """
        found: list[int | None] = self.values.tolist()
        for row in np.flatnonzero(self.missing).tolist():
            found[row] = None
        return found


ColumnData = Any
"""Whole numbers as `Integers`, numbers as array with NaN for null, and texts as `CodedTexts` or array."""


class ColumnTable:
    """A tidy table of whole columns, by name in the order of its schema."""

    def __init__(self, name: str, length: int, columns: Mapping[str, Any]) -> None:
        """Take columns of ``length`` values, or one value for all rows; columns not given are null.

        >>> table = ColumnTable("samples", 2, {"sensor_index": 0, "sample_index": 7, "line": np.arange(1, 3)})
        >>> len(table), table["line"].tolist(), bool(table.frame["time_ns"].isna().all())
        (2, [1, 2], True)
        """
        self.name, self.length = name, length
        self.columns = {
            column.name: full_column(column.kind, length, columns.get(column.name)) for column in TABLES[name]
        }
        self.is_checked = False

    @classmethod
    def of_frame(cls, name: str, table: pd.DataFrame) -> ColumnTable:
        """Return the columns of a tidy table, without copying them."""
        return cls(name, len(table), {str(column): table[column].array for column in table.columns})

    @classmethod
    def of_values(cls, name: str, rows: Mapping[str, Sequence[object]]) -> ColumnTable:
        """Return a table of ``rows`` (column name to values, None for null); columns not given are null.

        >>> ColumnTable.of_values("rejects", {"line": [3, 4], "lines": [1, 1], "text": ["1,2", None]})["text"].tolist()
        ['1,2', None]
        """
        kinds = {column.name: column.kind for column in TABLES[name]}
        if unknown := set(rows) - set(kinds):
            raise DomainError(f"table {name!r} has no column {sorted(unknown)}; it has {list(kinds)}")
        length = max((len(values) for values in rows.values()), default=0)
        return cls(name, length, {column: _column_of(kinds[column], values) for column, values in rows.items()})

    def __len__(self) -> int:
        """Return the number of rows."""
        return self.length

    def __contains__(self, column: str) -> bool:
        """Tell whether the table has a column."""
        return column in self.columns

    def __getitem__(self, column: str) -> ColumnData:
        """Return a column."""
        return self.columns[column]

    @cached_property
    def frame(self) -> pd.DataFrame:
        """The same table as a frame."""
        index = pd.RangeIndex(self.length)
        cells = {
            name: pd.Series(np.asarray(column), index, dtype=object, copy=False)
            if is_text(column)
            else as_extension_array(column)
            for name, column in self.columns.items()
        }
        return pd.DataFrame(cells, index, copy=False)

    def check(self) -> None:
        """Raise `DomainError` if a column has another length or kind than its schema says, or a null it must not."""
        if self.is_checked:
            return
        for column in TABLES[self.name]:
            found = self.columns[column.name]
            if len(found) != self.length or not _KINDS[column.kind](found):
                raise DomainError(f"{self.name}.{column.name} must be {self.length} values of the kind {column.kind}")
            if not column.nullable and (null := nulls(found)).any():
                raise DomainError(f"{self.name}.{column.name} must not be null; row {int(null.argmax())} is")
        self.is_checked = True


Table: TypeAlias = "pd.DataFrame | ColumnTable"


class _Frames(Mapping[str, "pd.DataFrame"]):
    """Tables by name, as frames that are made when they are asked for."""

    def __init__(self, given: Mapping[str, Table]) -> None:
        self.given = given

    def __getitem__(self, name: str) -> pd.DataFrame:
        return frame_of(self.given[name])

    def __iter__(self) -> Iterator[str]:
        return iter(self.given)

    def __len__(self) -> int:
        return len(self.given)


def frame_of(table: Table) -> pd.DataFrame:
    """Return a table as a frame."""
    return table.frame if isinstance(table, ColumnTable) else table


def as_frames(tables: Mapping[str, Table]) -> Mapping[str, pd.DataFrame]:
    """Return tables as frames, which are made when they are asked for."""
    return _Frames(tables)


def as_given(tables: Mapping[str, pd.DataFrame]) -> Mapping[str, Table]:
    """Return tables as they were given to `as_frames`."""
    return tables.given if isinstance(tables, _Frames) else tables


def is_text(column: ColumnData) -> bool:
    """Tell whether a column is one of texts."""
    return isinstance(column, CodedTexts) or (isinstance(column, np.ndarray) and column.dtype.kind == "O")


def integers_of(column: Any) -> Integers:
    """Return a nullable integer column, of a frame or not, without copying it."""
    found = as_integers(column)
    assert found is not None, f"{type(column)} is not a column of integers"
    return found


def as_integers(column: Any) -> Integers | None:
    """Return a nullable integer column, of a frame or not, without copying it; None for any other."""
    if isinstance(column, Integers):
        return column
    if not is_of_frame(column):
        return None
    array: Any = column.array if isinstance(column, pd.Series) else column
    is_whole = isinstance(array, pd.arrays.IntegerArray)
    return Integers(array._data, array._mask) if is_whole else None


def _column_of(kind: str, values: Sequence[Any]) -> ColumnData:
    """Return a column of a kind from single values."""
    kinds = set(map(type, values))
    if kind == "text":
        return np.array([*values, None], object)[:-1]  # so that numpy looks into none of them
    if kind == "float" and kinds <= {float, int, NoneType}:
        return np.array(values, np.float64)
    if kind == "int" and kinds <= {int, NoneType}:
        return Integers(
            np.array([0 if value is None else value for value in values], np.int64),
            np.array([value is None for value in values], np.bool_),
        )
    return full_column(kind, len(values), pd.Series(values, dtype=DTYPES[kind]).array)


def as_extension_array(column: ColumnData) -> Any:
    """Return a column as a frame has it."""
    return pd.arrays.IntegerArray(column.values, column.missing) if isinstance(column, Integers) else column


def is_of_frame(column: Any) -> bool:
    """Tell whether a column is one of pandas, which is imported then."""
    return type(column).__module__.partition(".")[0] == "pandas"


def nulls(column: ColumnData) -> npt.NDArray[np.bool_]:
    """Return which rows of a column are null."""
    if isinstance(column, CodedTexts):
        return np.asarray(column.codes < 0)
    if (integers := as_integers(column)) is not None:
        return integers.missing
    if isinstance(column, np.ndarray) and column.dtype.kind == "O":
        nothing: Any = None
        return np.asarray((column == nothing) | (column != column), np.bool_)
    return np.asarray(np.isnan(column) if isinstance(column, np.ndarray) else pd.isna(column))


def numbers_of(column: ColumnData | pd.Series[Any]) -> npt.NDArray[np.float64]:
    """Return a column of numbers with NaN for null."""
    if (integers := as_integers(column)) is not None:
        found = integers.values.astype(np.float64)
        return np.where(integers.missing, np.nan, found) if integers.missing.any() else found
    return np.asarray(column, np.float64)


_KINDS = {
    "int": lambda column: isinstance(column, Integers) and column.values.dtype == np.int64,
    "float": lambda column: isinstance(column, np.ndarray) and column.dtype == np.float64,
    "text": is_text,
}


def full_column(kind: str, length: int, given: Any) -> ColumnData:
    """Return a column of a kind: a given array of ``length`` values, or one value or null for all rows."""
    if is_of_frame(given):
        integers = as_integers(given)
        given = np.asarray(given) if integers is None else integers
    if kind == "int":
        if isinstance(given, Integers):
            return given
        if isinstance(given, np.ndarray):
            return Integers(given, np.zeros(length, np.bool_))
        return Integers(np.full(length, given or 0, np.int64), np.full(length, given is None))
    if isinstance(given, np.ndarray | CodedTexts):
        return given
    if kind == "text":
        code, texts = (-1, []) if given is None else (0, [given])
        return CodedTexts(np.broadcast_to(np.int64(code), length), texts)
    return np.full(length, np.nan if given is None else given)
