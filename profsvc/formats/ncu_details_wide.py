"""Rows of a details page that were read at once, as a table with a column a metric.

A column is a section, a metric and a unit: where the tool scales the unit to the value, launches have the one column or
the other. Columns are numbered as they come up, so that block after block has the same.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from profsvc.formats import ncu
from profsvc.formats.blocks import Letters
from profsvc.formats.ncu_details_blocks import Flags, Floats, Ints, Part, taken
from profsvc.formats.numbers import NOT_NUMBERS, Numbers
from profsvc.tables import Wide, WideColumns

Named = Callable[[tuple[str, ...]], tuple[str | None, str, str]]
"""Section, metric and unit of the cells that name a row; the metric of a rule is empty."""

# So many columns may be without a cell for each that a launch has, before they are numbered anew.
MOST_EMPTY = 8


class Rows(NamedTuple):
    """The rows of metrics of a part: which they are, and of each the launch in the part, the column and the value.

    ``values`` are in the units of ``columns``, NaN where a cell is no number.
    """

    columns: WideColumns
    row: Ints
    launch: Ints
    place: Ints
    values: Floats


class Columns:
    """The columns of a page."""

    def __init__(self, scales: ncu.Scales) -> None:
        """Begin without any."""
        self.scales = scales
        self._clear()

    def _clear(self) -> None:
        self._places: dict[tuple[tuple[str, ...], int], int] = {}
        self._columns: list[tuple[str, str, str]] = []
        self._made: WideColumns | None = None

    def of(self, part: Part, named: Named) -> tuple[WideColumns, Ints] | None:
        """Return the columns so far, and that of each row, -1 for rules; None if launches have hardly one in common."""
        most = MOST_EMPTY * part.rows
        if len(self._columns) * len(part.firsts) > most:
            self._clear()
        places = [self._place(name, named) for name in part.names]
        columns = self._wide_columns()
        if len(columns.metrics) * len(part.firsts) > most:
            return None
        return columns, np.array(places, np.int64)[part.name]

    def _place(self, name: tuple[tuple[str, ...], int], named: Named) -> int:
        if name not in self._places:
            section, metric, unit = named(name[0])
            self._places[name] = len(self._columns) if metric else -1
            if metric:
                self._columns.append((section or "", metric, unit))
                self._made = None
        return self._places[name]

    def _wide_columns(self) -> WideColumns:
        if self._made is None:
            sections, metrics, units = zip(*self._columns, strict=True) if self._columns else ((), (), ())
            scaled = [self.scales[unit] for unit in units]
            factors = np.array([factor for factor, _ in scaled], np.float64)
            self._made = WideColumns(metrics, units, tuple(unit for _, unit in scaled), factors, sections)
        return self._made


def texts_of(columns: WideColumns) -> Flags:
    """Tell which columns hold lists or names, which may look like numbers and are none."""
    return np.array([ncu.is_text(metric) for metric in columns.metrics], np.bool_)


def rows_of(part: Part, columns: WideColumns, place: Ints, printed: Floats) -> Rows:
    """Return the rows of metrics with their values, out of the numbers as they were printed."""
    row = np.flatnonzero(place >= 0)
    place = place[row]
    with np.errstate(over="ignore"):
        values = printed[row] * columns.factors[place]
    values[~np.isfinite(values) | texts_of(columns)[place]] = np.nan
    return Rows(columns, row, part.launch[row], place, values)


def reason(metric: str, text: str, numbers: Numbers) -> str:
    """Say why a cell of a metric has no value."""
    found = numbers.reason(text)
    return found if not ncu.is_text(metric) or found in NOT_NUMBERS.values() else "text"


def wide_of(part: Part, rows: Rows, numbers: Numbers, first_launch: int, first_line: int) -> Wide:
    """Return the cells that are not empty; ``first_line`` is the line of the first row."""
    shape = len(part.firsts), len(rows.columns.metrics)
    cell = rows.launch * shape[1] + rows.place
    order = slice(None) if (np.diff(cell) > 0).all() else np.argsort(cell, kind="stable")
    letters, ends = _in_order(part.texts, rows.row[order])
    sizes = np.zeros(shape[0] * shape[1], np.int32)
    sizes[cell[order]] = np.diff(ends)
    behind = np.cumsum(sizes, dtype=np.int32) + ends[0]
    bounds = np.stack([behind - sizes, behind], axis=1).reshape(*shape, 2)
    values = np.full(shape, np.nan)
    values.reshape(-1)[cell] = rows.values
    offsets = np.zeros(shape, np.int32)
    offsets.reshape(-1)[cell] = rows.row - part.firsts[rows.launch]
    reasons = {}
    for at in np.flatnonzero(np.isnan(rows.values)).tolist():
        if text := part.texts[int(rows.row[at])].as_py():
            launch, place = int(rows.launch[at]), int(rows.place[at])
            reasons[launch, place] = reason(rows.columns.metrics[place], text, numbers)
    lines = first_line + part.firsts
    return Wide(rows.columns, first_launch, lines, letters, bounds, values, reasons, offsets)


def _in_order(texts: pa.StringArray, rows: Ints) -> tuple[Letters, npt.NDArray[np.int32]]:
    """Return the letters of some texts behind each other, and where each ends, before them where the first begins."""
    same = len(rows) == len(texts) and bool((np.diff(rows) > 0).all())
    _, offsets, data = (texts if same else taken(texts, rows)).buffers()
    ends = np.frombuffer(offsets, np.int32)[: len(rows) + 1]
    letters = np.frombuffer(data, np.uint8)[: ends[-1]] if data is not None else np.zeros(0, np.uint8)
    return letters, ends


def empty(part: Part, rows: Rows) -> Sequence[tuple[int, int]]:
    """Return row and column of the metrics whose cell is empty."""
    sizes = np.diff(np.frombuffer(part.texts.buffers()[1], np.int32)[: len(part.texts) + 1])
    found = np.flatnonzero(sizes[rows.row] == 0)
    return list(zip(rows.row[found].tolist(), rows.place[found].tolist(), strict=True))
