"""A parsed block of a details page as a table with one column per metric.

A column is a section, a metric and a unit: if the tool scales units to values, a metric has one column per unit.
Columns are numbered in the order of their first occurrence, so consecutive blocks share them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from profsvc.formats.columnar.line_blocks import Floats
from profsvc.formats.ncu import launches as ncu_launches
from profsvc.formats.ncu.details_rows import ParsedRows
from profsvc.formats.parsing.numbers import NOT_NUMBERS, Numbers
from profsvc.formats.parsing.timestamps import Flags, Int64s
from profsvc.tables import Wide, WideColumns

RowNames = Callable[[tuple[str, ...]], tuple[str | None, str, str]]
"""Returns section, metric and unit of the cells that name a row; the metric of a rule is empty."""

# Empty cells per filled cell, above which the columns are numbered again.
MAX_EMPTY_RATIO = 8


class MetricRows(NamedTuple):
    """The metrics of a block: row, launch in the block, column and value of each.

    ``values`` are in the SI units of ``columns``, NaN for a cell that is not a number.
    """

    columns: WideColumns
    row: Int64s
    launch: Int64s
    place: Int64s
    values: Floats


class PageColumns:
    """The columns of a page, numbered as they occur."""

    def __init__(self, scales: ncu_launches.UnitScales) -> None:
        """Start without columns."""
        self.scales = scales
        self._clear()

    def _clear(self) -> None:
        self._places: dict[tuple[tuple[str, ...], int], int] = {}
        self._columns: list[tuple[str, str, str]] = []
        self._made: WideColumns | None = None

    def of(self, part: ParsedRows, named: RowNames) -> tuple[WideColumns, Int64s] | None:
        """Return the columns, and the column of each row (-1: rule); None if launches share hardly any column."""
        most = MAX_EMPTY_RATIO * part.rows
        if len(self._columns) * len(part.firsts) > most:
            self._clear()
        places = [self._place(name, named) for name in part.names]
        columns = self._wide_columns()
        if len(columns.metrics) * len(part.firsts) > most:
            return None
        return columns, np.array(places, np.int64)[part.name]

    def _place(self, name: tuple[tuple[str, ...], int], named: RowNames) -> int:
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


def text_columns(columns: WideColumns) -> Flags:
    """Return which columns hold lists or names, which may look like numbers."""
    return np.array([ncu_launches.is_text(metric) for metric in columns.metrics], np.bool_)


def metric_rows(part: ParsedRows, columns: WideColumns, place: Int64s, printed: Floats) -> MetricRows:
    """Return the metrics with their values in SI units, from the printed numbers."""
    row = np.flatnonzero(place >= 0)
    place = place[row]
    with np.errstate(over="ignore"):
        values = printed[row] * columns.factors[place]
    values[~np.isfinite(values) | text_columns(columns)[place]] = np.nan
    return MetricRows(columns, row, part.launch[row], place, values)


def missing_reason(metric: str, text: str, numbers: Numbers) -> str:
    """Return the reason why a cell of a metric has no value."""
    found = numbers.reason(text)
    return found if not ncu_launches.is_text(metric) or found in NOT_NUMBERS.values() else "text"


def wide_metrics(part: ParsedRows, rows: MetricRows, numbers: Numbers, first_launch: int, first_line: int) -> Wide:
    """Return the nonempty cells; ``first_line`` is the line of the first row."""
    shape = len(part.firsts), len(rows.columns.metrics)
    cell = rows.launch * shape[1] + rows.place
    # Where a launch lacks a metric, nothing lies at its first cell.
    bounds = np.repeat(part.cells.begins[part.firsts], 2 * shape[1]).reshape(-1, 2)
    bounds[cell] = np.stack([part.cells.begins[rows.row], part.cells.ends[rows.row]], axis=1)
    values = np.full(shape, np.nan)
    values.reshape(-1)[cell] = rows.values
    offsets = np.zeros(shape, np.int32)
    offsets.reshape(-1)[cell] = rows.row - part.firsts[rows.launch]
    reasons = {}
    for at in np.flatnonzero(np.isnan(rows.values)).tolist():
        if text := part.cells.text(int(rows.row[at])):
            launch, place = int(rows.launch[at]), int(rows.place[at])
            reasons[launch, place] = missing_reason(rows.columns.metrics[place], text, numbers)
    lines = first_line + part.firsts
    return Wide(
        rows.columns, first_launch, lines, part.cells.letters, bounds.reshape(*shape, 2), values, reasons, offsets
    )


def empty_cells(part: ParsedRows, rows: MetricRows) -> Sequence[tuple[int, int]]:
    """Return (row, column) of the metrics with an empty cell."""
    found = np.flatnonzero(part.cells.begins[rows.row] == part.cells.ends[rows.row])
    return list(zip(rows.row[found].tolist(), rows.place[found].tolist(), strict=True))
