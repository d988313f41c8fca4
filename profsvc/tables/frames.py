"""Tidy tables as frames, the batches that hold them, and the check that a table is tidy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from types import NoneType
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from profsvc.errors import DomainError
from profsvc.tables.column_tables import ColumnTable, Table, as_extension_array, as_given, full_column
from profsvc.tables.on_demand import pd
from profsvc.tables.schemas import DTYPES, TABLES

T = TypeVar("T", "pd.DataFrame", "ColumnTable", "Table")
_CHECKED_AS = "_checked_as"
"""The attribute of a frame that was found to be a tidy table, with its name."""


@dataclass(frozen=True, eq=False)
class WideColumns:
    """What the columns of a wide page are: the tool's name of each metric, its unit as it came, and that of its values.

    ``factors`` bring a number as it came to ``si_units``; ``sections`` are empty where the tool prints none. A page
    makes this once: the same object, the same columns.
    """

    metrics: tuple[str, ...]
    units: tuple[str, ...]
    si_units: tuple[str, ...]
    factors: npt.NDArray[np.float64]
    sections: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class Wide:
    """Cells of launches that follow each other, one row per launch and one column per metric.

    The text of the cells, in UTF-8, lies in ``letters``: that of launch i and column k from ``bounds[i, k, 0]`` to
    ``bounds[i, k, 1]``. An empty cell was not collected and is no metric. ``values`` are the numbers in the columns'
    ``si_units``, NaN where there is none; ``reasons`` say why for every cell (i, k) that is not empty. ``offsets`` is
    how many lines below the first line of its launch a cell stands; None where a launch is one line.
    """

    columns: WideColumns
    first_launch: int
    lines: npt.NDArray[np.int64]
    letters: npt.NDArray[np.uint8]
    bounds: npt.NDArray[np.int32]
    values: npt.NDArray[np.float64]
    reasons: Mapping[tuple[int, int], str] = field(default_factory=dict)
    offsets: npt.NDArray[np.int32] | None = None

    def text(self, launch: int, column: int) -> str:
        """Return a cell as it came."""
        begin, end = self.bounds[launch, column].tolist()
        return self.letters[begin:end].tobytes().decode()

    @cached_property
    def collected(self) -> npt.NDArray[np.bool_]:
        """Which cells are metrics."""
        return self.bounds[:, :, 1] > self.bounds[:, :, 0]


@dataclass(frozen=True)
class Batch:
    """What a reader yields: tidy tables, the account of the lines consumed, and facts about the file.

    ``lines_stored + lines_skipped + lines_rejected`` summed over the batches equals the lines of the file.
    ``facts`` (tool, tool_version, number_format, ...) of later batches override those of earlier ones.
    ``message`` is a sentence for the user about the whole file, such as the error lines of a failed run.
    ``wide`` holds more metrics of launches beside those in ``tables``.
    ``devices`` are the product names of the devices that rows without a device, such as averages, were measured on.
    """

    tables: Mapping[str, pd.DataFrame] = field(default_factory=dict)
    lines_stored: int = 0
    lines_skipped: int = 0
    lines_rejected: int = 0
    facts: Mapping[str, str] = field(default_factory=dict)
    message: str = ""
    wide: Wide | None = None
    devices: Sequence[str] = ()

    @property
    def given(self) -> Mapping[str, Table]:
        """The tables as the reader gave them: long ones as whole columns, of which no frame was made."""
        return as_given(self.tables)


def frame(name: str, rows: Mapping[str, Sequence[object]]) -> pd.DataFrame:
    """Make a tidy table of ``rows`` (column name to values); columns not given are null.

    >>> frame("rejects", {"line": [3], "lines": [1], "reason": ["cut"], "text": ["1,2"]}).shape
    (1, 4)
    """
    index = pd.RangeIndex(max((len(values) for values in rows.values()), default=0))
    cells = {column.name: _given(column.kind, index, list(rows.get(column.name, []))) for column in TABLES[name]}
    table = pd.DataFrame(cells, index, copy=False)
    if unknown := set(rows) - set(table.columns):
        raise DomainError(f"table {name!r} has no column {sorted(unknown)}; it has {list(table.columns)}")
    return check(name, table)


def frame_of_arrays(name: str, length: int, columns: Mapping[str, Any]) -> pd.DataFrame:
    """Make a tidy table of whole columns without touching single values; columns not given are null.

    A column is an array of ``length`` values, or one value for all rows.

    >>> table = frame_of_arrays("samples", 2, {"sensor_index": 0, "sample_index": 7, "line": np.arange(1, 3)})
    >>> table["line"].tolist(), bool(table["time_ns"].isna().all())
    ([1, 2], True)
    """
    return ColumnTable(name, length, columns).frame


def _given(kind: str, index: pd.RangeIndex, values: list[object]) -> Any:
    length, kinds = len(index), set(map(type, values))
    if len(values) in (0, length) and kinds <= {NoneType}:
        if kind == "text":
            return pd.Series(np.full(length, None, object), index, dtype=object, copy=False)
        return as_extension_array(full_column(kind, length, None))
    if kind == "float" and len(values) == length and kinds <= {float, NoneType}:
        return np.array(values, np.float64)
    if kind == "int" and len(values) == length and kinds == {int}:
        return pd.arrays.IntegerArray(np.array(values, np.int64), np.zeros(length, np.bool_))
    if kind == "text" and len(values) == length:
        return pd.Series(np.array([*values, None], object)[:-1], index, dtype=object, copy=False)
    return pd.Series(values, dtype=DTYPES[kind], index=index)


def check(name: str, table: T) -> T:
    """Return ``table`` unchanged if it is a tidy table ``name``; raise `DomainError` otherwise."""
    if isinstance(table, ColumnTable):
        if table.name != name:
            raise DomainError(f"a table {table.name!r} is given as {name!r}")
        table.check()
        return table
    # A frame that was checked is not changed in place: what does change it makes another.
    if table.__dict__.get(_CHECKED_AS) == name:
        return table
    if name not in TABLES:
        raise DomainError(f"no tidy table is named {name!r}; there are {sorted(TABLES)}")
    columns = TABLES[name]
    if list(table.columns) != [c.name for c in columns]:
        raise DomainError(f"table {name!r} needs the columns {[c.name for c in columns]} but has {list(table.columns)}")
    for column, dtype in zip(columns, table.dtypes.tolist(), strict=True):
        if dtype != DTYPES[column.kind]:
            raise DomainError(f"{name}.{column.name} must be {DTYPES[column.kind]} but is {dtype}")
        if not column.nullable and (null := pd.isna(table[column.name].array)).any():
            raise DomainError(f"{name}.{column.name} must not be null; row {int(null.argmax())} is")
    object.__setattr__(table, _CHECKED_AS, name)
    return table


def check_wide(wide: Wide) -> Wide:
    """Return ``wide`` unchanged if its parts fit each other; raise `DomainError` otherwise."""
    columns = wide.columns
    shape = (len(wide.lines), len(columns.metrics))
    found = {
        "bounds": wide.bounds.shape == (*shape, 2),
        "values": wide.values.shape == shape,
        "units": len(columns.units) == len(columns.si_units) == len(columns.factors) == shape[1],
        "sections": len(columns.sections) in {0, shape[1]},
        "offsets": wide.offsets is None or wide.offsets.shape == shape,
    }
    if wrong := [name for name, fits in found.items() if not fits]:
        raise DomainError(f"wide metrics of {shape[0]} launches and {shape[1]} columns have others in {wrong}")
    lacking = np.isfinite(wide.values) != wide.collected
    if np.count_nonzero(lacking) != len(wide.reasons) or not all(lacking[cell] for cell in wide.reasons):
        raise DomainError("the cells of wide metrics without a value are not the empty ones and those with a reason")
    if not all(wide.collected[cell] for cell in wide.reasons):
        raise DomainError("an empty cell of wide metrics has a value or a reason")
    return wide


def unpivot(wide: Wide, cells: npt.NDArray[np.bool_] | None = None) -> pd.DataFrame:
    """Return the tidy table ``metrics`` that says what wide metrics do; where ``cells`` are given, only those.

    >>> columns = WideColumns(("cycles", "hit_rate"), ("cycle", "%"), ("cycle", "1"), np.array([1, 0.01]))
    >>> letters, bounds = np.frombuffer(b"750", np.uint8), np.array([[[0, 1], [1, 3]]], np.int32)
    >>> wide = Wide(columns, 0, np.array([3]), letters, bounds, np.array([[7, 0.5]]))
    >>> unpivot(wide)[["launch_index", "metric", "raw_text", "value", "si_unit"]].to_dict("tight")["data"]
    [[0, 'cycles', '7', 7.0, 'cycle'], [0, 'hit_rate', '50', 0.5, '1']]
    """
    shown = wide.collected if cells is None else wide.collected & cells
    rows, places = np.nonzero(shown)
    text, bounds = wide.letters.tobytes(), wide.bounds[rows, places].tolist()
    names = {
        name: np.array([*given, None], object)[:-1]
        for name, given in (
            ("metric", wide.columns.metrics), ("unit", wide.columns.units), ("si_unit", wide.columns.si_units),
            ("section", [section or None for section in wide.columns.sections] or [None] * len(wide.columns.metrics)),
        )
    }  # fmt: skip
    reasons = np.array([wide.reasons.get(cell) for cell in zip(rows.tolist(), places.tolist(), strict=True)], object)
    si_units = names["si_unit"][places]
    si_units[pd.notna(reasons)] = None
    raw = np.empty(len(rows), object)
    raw[:] = [text[begin:end].decode() for begin, end in bounds]
    columns = {
        "launch_index": rows + wide.first_launch,
        "section": names["section"][places],
        "metric": names["metric"][places],
        "raw_text": raw,
        "unit": names["unit"][places],
        "value": wide.values[rows, places],
        "si_unit": si_units,
        "reason": reasons,
        "line": wide.lines[rows] + (0 if wide.offsets is None else wide.offsets[rows, places]),
    }
    return frame_of_arrays("metrics", len(rows), columns)
