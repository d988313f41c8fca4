"""Parses blocks of an ``nsys stats`` trace: the rows are split and whole columns converted.

Repeated texts, such as names and devices, are converted once each by the row-by-row reader. `parse` returns None for a
block with irregular rows, which is then read line by line.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from profsvc.formats.columnar import split_table
from profsvc.formats.columnar.csv_columns import Codes, DecimalColumn, cell_texts, cells_at, coded_ints, used_codes
from profsvc.formats.columnar.line_blocks import Block, Columns, Floats, IrregularBlockError, Letters, require_plain
from profsvc.formats.columnar.split_table import Table
from profsvc.formats.nsys.layouts import (
    API_TRACE,
    GPU_TRACE,
    INTEGER_COLUMNS,
    NVTX_TRACE,
    REPORTS,
    TIME_COLUMNS,
    Layout,
    parse_column,
    unit_factor,
)
from profsvc.formats.nsys.report_rows import METRICS, is_copy, metric_factor, metric_value, parse_device, parse_metric
from profsvc.formats.parsing.copy_kinds import copy_kind
from profsvc.formats.parsing.embedded_tables import MAX_INTEGER
from profsvc.formats.parsing.numbers import MAX_EXACT_INT, NumberFormat, Numbers
from profsvc.formats.parsing.timestamps import SECOND, Flags, Int64s
from profsvc.formats.parsing.trailing_cells import named_width
from profsvc.tables import CodedTexts, WideColumns, nulls
from profsvc.tables.column_tables import Integers
from profsvc.tables.on_demand import pa

TEXT_COLUMNS = ("Device", "SrcMemKd", "DstMemKd", "Name")
SIZE_COLUMNS = ("Bytes", "Throughput")
# Unused number columns; reading them as numbers leaves few columns that may hold any text.
_UNUSED_COLUMNS = {"GreenCtx", "Result", "RangeId", "ParentId", "NumChild", "Lvl", "StartTID", "EndTID", "T-Pri"}
_UNUSED_COLUMNS |= {"DurChild", "DurNonChild"}
_REPORT_COLUMNS = frozenset().union(*(needs for _, needs in REPORTS))
MIN_REPORT_COLUMNS = min(len(needs) for _, needs in REPORTS)
_NS_EXPONENTS = {"s": 9, "ms": 6, "us": 3, "ns": 0}
_POWERS_OF_TEN = 10 ** np.arange(19)
_USED_COLUMNS = {*INTEGER_COLUMNS, *TIME_COLUMNS, *METRICS, *SIZE_COLUMNS}
MAX_DECIMALS = 6
MAX_SCALED_INT = 2**62
# Below this limit, quotients that are not halves differ from halves in the 28 digits of a Decimal.
MAX_COPIED_BYTES = 10**12


@dataclass(frozen=True, eq=False)
class ColumnPlan:
    """How to split the rows of a layout; ``decimal`` is empty if the decimal mark is unknown.

    ``types`` are by column place. In one of ``telling`` a header would have a column name. ``wide`` describes the
    metrics of launches.
    """

    layout: Layout
    separator: str
    decimal: str
    types: Sequence[str]
    telling: Sequence[int]
    wide: WideColumns

    @cached_property
    def numbers(self) -> Numbers:
        """Numbers without thousands separators."""
        return Numbers(NumberFormat(self.decimal or "."))

    @cached_property
    def is_plain(self) -> Callable[[str], object]:
        """Return whether a cell is empty or a number that is no evidence of the number format."""
        behind = rf"(?:{re.escape(self.decimal)}[0-9]{{1,9}})?" if self.decimal else ""
        return re.compile(rf"(?:[0-9]{{1,9}}{behind})?").fullmatch


class Metrics(NamedTuple):
    """The metric cells of launches, in the form of `profsvc.tables.Wide`."""

    letters: Letters
    bounds: npt.NDArray[np.int32]
    values: Floats


class ParsedRows(NamedTuple):
    """The rows of a block: the columns by tidy table, and the metrics of its launches.

    ``line`` counts from the start of the block.
    """

    rows: int
    tables: dict[str, Columns]
    metrics: Metrics | None


@lru_cache(16)
def column_plan(layout: Layout, separator: str, decimal: str) -> ColumnPlan | None:
    """Return how to read blocks of rows of ``layout``; None if only line by line is possible."""
    name_of = {place: name for name, place in layout.places.items()}
    if layout.report not in _ROWS or not {name_of[place] for place in layout.numeric} <= _USED_COLUMNS:
        return None
    shown = [name for name in METRICS if name in layout.places]
    factors = [metric_factor(layout, name) for name in shown]
    if None in factors:
        return None
    # Columns behind the named ones are empty.
    columns = named_width(layout.header)
    types = [_type(layout, name_of.get(place, "")) for place in range(columns)]
    types += [split_table.EMPTY] * (len(layout.header) - columns)
    # A header line would hold column names in columns that may hold any text.
    taken = [layout.places[name] for name in TEXT_COLUMNS if name in layout.places]
    telling = max(0, 1 + len(taken) + types.count(split_table.CHECKED) - MIN_REPORT_COLUMNS)
    if telling > len(taken):
        return None
    wide = WideColumns(
        tuple(f"trace:'{layout.header[layout.places[name]]}'" for name in shown),
        tuple(layout.units.get(name, "") for name in shown),
        tuple(METRICS[name][0] for name in shown),
        np.array([float(factor or 0) for factor in factors]),
    )
    return ColumnPlan(layout, separator, decimal, types, taken[:telling], wide)


def _type(layout: Layout, name: str) -> str:
    if name in TEXT_COLUMNS or name in METRICS:
        return split_table.TEXT
    if name in _UNUSED_COLUMNS:
        return split_table.REAL
    if name in INTEGER_COLUMNS or (name in TIME_COLUMNS and layout.units.get(name) == "ns"):
        return split_table.INTEGER
    return split_table.DECIMAL if name in _USED_COLUMNS else split_table.CHECKED


def parse(block: Block, plan: ColumnPlan) -> ParsedRows | None:
    """Return the rows of a block of complete lines; None if a row is irregular."""
    for split in split_table.ways():
        try:
            return _parse_columns(split(block, plan.types, plan.separator, plan.decimal), plan)
        except (pa.ArrowInvalid, IrregularBlockError):
            continue
    return None


class _Cells:
    """The columns of a block by name; None for a missing column."""

    def __init__(self, table: Table, plan: ColumnPlan, where: Int64s | None = None) -> None:
        self.table, self.plan, self.where = table, plan, where
        self.places = plan.layout.places

    def whole(self, name: str) -> Integers | None:
        """Return a column of integers."""
        if name not in self.places:
            return None
        values, known = self.table.numbers(self.places[name]).at(self.where)
        require_plain(bool(values.min() >= -MAX_INTEGER))
        return Integers(values, ~known)

    def coded(self, name: str) -> tuple[list[str], Codes] | None:
        """Return the distinct texts of a column, and the code of each row."""
        if name not in self.places:
            return None
        texts, codes = self.table.texts(self.places[name])
        return texts, cells_at(codes, self.where)

    def texts(self, name: str, meaning: Callable[[str], str | None]) -> CodedTexts | None:
        """Return a column with ``meaning`` applied to its texts."""
        coded = self.coded(name)
        return None if coded is None else CodedTexts.from_meanings(coded[1], [meaning(text) for text in coded[0]])

    def decimals(self, name: str) -> DecimalColumn:
        """Return the numbers of a column; the table must have it."""
        found = self.table.decimals(self.places[name]).at(self.where)
        require_plain(bool(found.decimals.max() <= MAX_DECIMALS))
        return found

    def time(self, name: str) -> tuple[Int64s, Int64s, Flags]:
        """Return times in ns as fractions (numerators, powers of ten), and which are known."""
        unit = self.plan.layout.units[name]
        if unit == "ns":
            values, known = self.table.numbers(self.places[name]).at(self.where)
            return values, np.ones(1, np.int64), known
        digits, places, known = self.decimals(name)
        scale = _NS_EXPONENTS[unit] - places
        require_plain(bool(digits.max() < MAX_EXACT_INT // 10 ** int(max(scale.max(), 0))))
        return digits * _POWERS_OF_TEN[np.maximum(scale, 0)], _POWERS_OF_TEN[np.maximum(-scale, 0)], known

    def span(self) -> Columns:
        """Return the columns of times, which all rows have."""
        starts, parts, begun = self.time("Start")
        require_plain(bool(begun.all() and (starts >= 0).all()))
        durations, of, lasted = self.time("Duration")
        require_plain(bool((durations >= 0).all()))
        return {
            "start_ns": _rounded(starts, parts),
            "duration_ns": np.where(lasted, durations / of, np.nan),
            "line": np.arange(self.table.rows) if self.where is None else self.where,
        }

    def place(self) -> Columns:
        """Return the device, context and stream of rows."""
        found: Columns = {"context": self.whole("Ctx"), "stream": self.whole("Strm")}
        if coded := self.coded("Device"):
            both = [parse_device(text) for text in coded[0]]
            found["device"] = CodedTexts.from_meanings(coded[1], [name for name, _ in both])
            found["device_index"] = coded_ints([index for _, index in both], coded[1])
        return found


def _rounded(values: Int64s, parts: Int64s) -> Int64s:
    """Return rounded quotients of nonnegative integers, halves to even."""
    quotients, rest = np.divmod(values, parts)
    found: Int64s = quotients + ((rest > parts - rest) | ((rest == parts - rest) & (quotients % 2 == 1)))
    return found


def _parse_columns(table: Table, plan: ColumnPlan) -> ParsedRows:
    every = _Cells(table, plan)
    for place in plan.telling:
        require_plain(not any(parse_column(text)[0] in _REPORT_COLUMNS for text in table.texts(place)[0]))
    # Unused numbers may be evidence of the number format.
    for name in (*SIZE_COLUMNS, *TIME_COLUMNS):
        if name in every.places and plan.types[every.places[name]] == split_table.DECIMAL:
            every.decimals(name)
    for name in METRICS:
        require_plain(all(plan.is_plain(text) for text in (every.coded(name) or ([], None))[0]))
    tables, metrics = _ROWS[plan.layout.report](every)
    return ParsedRows(table.rows, tables, metrics)


def _gpu_trace(every: _Cells) -> tuple[dict[str, Columns], Metrics | None]:
    table, plan = every.table, every.plan
    grids = every.whole("GrdX")
    require_plain(grids is not None)
    is_launch = ~nulls(grids)
    tables, metrics = {}, None
    if is_launch.any():
        cells = every if is_launch.all() else _Cells(table, plan, np.flatnonzero(is_launch))
        tables["launches"], metrics = _launches(cells)
    if not is_launch.all():
        cells = _Cells(table, plan, None if not is_launch.any() else np.flatnonzero(~is_launch))
        tables["transfers"] = _transfers(cells)
    return tables, metrics


def _named(cells: _Cells) -> tuple[list[str], Codes]:
    """Return the names of some rows; none may be empty."""
    coded = cells.coded("Name")
    assert coded is not None
    require_plain(all(coded[0][code] for code in used_codes(coded[1])))
    return coded


def _launches(cells: _Cells) -> tuple[Columns, Metrics | None]:
    shape = {f"grid_{axis.lower()}": cells.whole(f"Grd{axis}") for axis in "XYZ"}
    shape |= {f"block_{axis.lower()}": cells.whole(f"Blk{axis}") for axis in "XYZ"}
    own, metrics = _metrics(cells)
    kernels, codes = _named(cells)
    names = {"kernel": CodedTexts(codes, kernels), "correlation_id": cells.whole("CorrId")}
    return {**cells.span(), **cells.place(), **shape, **own, **names}, metrics


def _metrics(cells: _Cells) -> tuple[Columns, Metrics | None]:
    """Return the columns of launches that hold metrics, and the metrics."""
    layout, columns = cells.plan.layout, {name: coded for name in METRICS if (coded := cells.coded(name))}
    own, values = {}, {}
    for name, (texts, codes) in columns.items():
        of = [parse_metric(layout, name, text, cells.plan.numbers)["value"] if text else None for text in texts]
        own[METRICS[name][1]] = coded_ints([metric_value(value) for value in of], codes)
        values[name] = np.array([np.nan if value is None else value for value in of], np.float64)[codes]
    cells_shown = cell_texts(list(columns.values()))
    return own, Metrics(*cells_shown, np.stack(list(values.values()), axis=1)) if cells_shown else None


def _transfers(cells: _Cells) -> Columns:
    names, codes = _named(cells)
    require_plain(all(is_copy(names[code]) for code in used_codes(codes)))
    kinds = [copy_kind(name) for name in names]
    source, target = (cells.texts(name, lambda text: text or None) for name in ("SrcMemKd", "DstMemKd"))
    memory: Columns = {"source_memory": source, "target_memory": target}
    is_set = np.array([kind == "memset" for kind in kinds])[codes]
    if is_set.any() and source is not None:
        # For a memset the first of the two columns holds the memory.
        moved = is_set if target is None else is_set & nulls(target)
        sources = np.asarray(source)
        targets = np.full(len(codes), None, object) if target is None else np.asarray(target).copy()
        targets[moved] = sources[moved]
        sources[is_set] = None
        memory = {"source_memory": sources, "target_memory": targets}
    span = cells.span()
    named = {**memory, "kind": CodedTexts(codes, kinds)}
    return {**span, **cells.place(), **named, "bytes": _copied_bytes(cells, span["duration_ns"])}


def _factor(layout: Layout, name: str, si_unit: str) -> int | None:
    factor = unit_factor(layout.units.get(name), si_unit)
    require_plain(factor is None or factor == int(factor))
    return None if factor is None else int(factor)


def _copied_bytes(cells: _Cells, durations: Floats) -> Integers | None:
    """Return the bytes of copies as `profsvc.formats.nsys.report_rows` does, in whole numbers."""
    layout = cells.plan.layout
    unit = _factor(layout, "Bytes", "byte")
    if unit is None:
        return None
    digits, places, known = cells.decimals("Bytes")
    require_plain(int(digits.max()) * unit < MAX_SCALED_INT)
    printed = _rounded(digits * unit, _POWERS_OF_TEN[places])
    if layout.units["Bytes"] == "B":
        return Integers(printed, ~known)
    found, fits = printed, np.zeros(len(printed), np.bool_)
    if rate := _factor(layout, "Throughput", "byte/s"):
        passed, decimal_places, _ = cells.decimals("Throughput")
        require_plain(int(passed.max()) * rate < MAX_SCALED_INT)
        fits = (passed > 0) & (durations >= 1) & (durations <= SECOND)
        per_second = SECOND // np.where(fits, durations, 1).astype(np.int64)
        found = _rounded(passed * rate, _POWERS_OF_TEN[decimal_places] * per_second)
        require_plain(bool(found.max() < MAX_COPIED_BYTES))
        fits &= np.abs(found * _POWERS_OF_TEN[places] - digits * unit) <= unit // 2
    return Integers(np.where(fits, found, printed), ~(known & (fits | (printed > 0))))


def _calls(every: _Cells) -> tuple[dict[str, Columns], None]:
    call = {"process_id": every.whole("PID"), "thread_id": every.whole("TID"), "correlation_id": every.whole("CorrId")}
    return {"api_calls": {**every.span(), "name": every.texts("Name", str), **call}}, None


def _ranges(every: _Cells) -> tuple[dict[str, Columns], None]:
    thread = {"process_id": every.whole("PID"), "thread_id": every.whole("TID")}
    return {"ranges": {**every.span(), "name": every.texts("Name", str), **thread}}, None


_ROWS: Mapping[str, Callable[[_Cells], tuple[dict[str, Columns], Metrics | None]]] = {
    GPU_TRACE: _gpu_trace,
    API_TRACE: _calls,
    NVTX_TRACE: _ranges,
}
