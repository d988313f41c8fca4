"""Blocks of a trace of ``nsys stats`` at once: Arrow splits plain rows, numpy turns whole columns into tidy ones.

Texts that come again and again, such as names, devices and sizes of shared memory, are read once each, by what reads
them row by row. For a block that holds anything but plain rows `parse` returns None, and its lines go one by one.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa

from profsvc.formats import block_columns
from profsvc.formats.block_columns import (
    CODED,
    TEXT,
    Codes,
    Decimals,
    Objects,
    at,
    cells_of,
    closed,
    decimals,
    is_empty,
    numbers,
    objects,
    plain_texts,
)
from profsvc.formats.blocks import Block, Letters, NotPlainError, must
from profsvc.formats.clock import Flags, Int64s
from profsvc.formats.csv_tables import LARGEST
from profsvc.formats.nsys import copy_kind, factor_of
from profsvc.formats.nsys_layouts import API_TRACE, GPU_TRACE, NVTX_TRACE, REPORTS, TIMES, WHOLE, Layout, column_of
from profsvc.formats.nsys_reports import METRICS, device_of, held, is_copy, metric_factor, metric_of
from profsvc.formats.numbers import NumberFormat, Numbers
from profsvc.formats.spare_cells import width_of
from profsvc.tables import WideColumns

Floats = npt.NDArray[np.float64]
Columns = dict[str, Any]

TEXTS = ("Device", "SrcMemKd", "DstMemKd", "Name")
SIZES = ("Bytes", "Throughput")
# Numbers that are not taken; read as such, few columns are left in which anything may stand.
_UNTAKEN = {"GreenCtx", "Result", "RangeId", "ParentId", "NumChild", "Lvl", "StartTID", "EndTID", "T-Pri"}
_UNTAKEN |= {"DurChild", "DurNonChild"}
_NEEDED = frozenset().union(*(needs for _, needs in REPORTS))
FEWEST_NEEDED = min(len(needs) for _, needs in REPORTS)
_SCALES = {"s": 9, "ms": 6, "us": 3, "ns": 0}
_POWERS = 10 ** np.arange(19)
_READ = {*WHOLE, *TIMES, *METRICS, *SIZES}
MOST_DECIMALS = 6
EXACT = 2**53
MOST = 2**62
# Quotients of whole numbers that are not halves stay apart from them in the 28 digits of a decimal number.
MOST_COPIED = 10**12
LONGEST_NS = 1e9


@dataclass(frozen=True, eq=False)
class Plan:
    """How the rows of a layout are split; ``decimal`` is empty where the sign is not known, so that none may stand.

    ``types`` are by the place of a column. In one of ``telling`` a header would have the name of a column; ``others``
    hold texts that are not taken; those from ``columns`` on have no name, and hold nothing. ``wide`` says what the
    metrics of launches are.
    """

    layout: Layout
    separator: str
    decimal: str
    types: Mapping[str, pa.DataType]
    telling: Sequence[str]
    others: Sequence[str]
    columns: int
    wide: WideColumns

    @cached_property
    def numbers(self) -> Numbers:
        """The numbers of cells without signs of thousands."""
        return Numbers(NumberFormat(self.decimal or "."))

    @cached_property
    def is_plain(self) -> Callable[[str], object]:
        """Tell whether a cell is a number that says nothing of the signs of numbers, or is empty."""
        behind = rf"(?:{re.escape(self.decimal)}[0-9]{{1,9}})?" if self.decimal else ""
        return re.compile(rf"(?:[0-9]{{1,9}}{behind})?").fullmatch


class Metrics(NamedTuple):
    """The cells of the metrics of launches, as `profsvc.tables.Wide` has them."""

    letters: Letters
    bounds: npt.NDArray[np.int32]
    values: Floats


class Part(NamedTuple):
    """What a block holds: its rows, by tidy table the columns, and the metrics of its launches.

    ``line`` counts from the start of the block.
    """

    rows: int
    tables: dict[str, Columns]
    metrics: Metrics | None


@lru_cache(16)
def plan_of(layout: Layout, separator: str, decimal: str) -> Plan | None:
    """Return how to read blocks of rows under ``layout``; None if its rows go one by one."""
    name_of = {place: name for name, place in layout.places.items()}
    if layout.report not in _ROWS or not {name_of[place] for place in layout.numeric} <= _READ:
        return None
    shown = [name for name in METRICS if name in layout.places]
    factors = [metric_factor(layout, name) for name in shown]
    if None in factors:
        return None
    types = {str(place): _type(layout, name_of.get(place, "")) for place in range(len(layout.header))}
    # A header would have the names of its columns in cells that may hold any text.
    taken = [str(layout.places[name]) for name in TEXTS if name in layout.places]
    columns = width_of(layout.header)
    others = [str(n) for n in range(columns) if types[str(n)] == TEXT and name_of.get(n) not in _READ]
    telling = max(0, 1 + len(taken) + len(others) - FEWEST_NEEDED)
    if telling > len(taken):
        return None
    wide = WideColumns(
        tuple(f"trace:'{layout.header[layout.places[name]]}'" for name in shown),
        tuple(layout.units.get(name, "") for name in shown),
        tuple(METRICS[name][0] for name in shown),
        np.array([float(factor or 0) for factor in factors]),
    )
    return Plan(layout, separator, decimal, types, taken[:telling], others, columns, wide)


def _type(layout: Layout, name: str) -> pa.DataType:
    if name in TEXTS or name in METRICS:
        return CODED
    if name in _UNTAKEN:
        return block_columns.REAL
    is_whole = name in WHOLE or (name in TIMES and layout.units.get(name) == "ns")
    return block_columns.WHOLE if is_whole else TEXT


def _split(block: Block, plan: Plan) -> pa.RecordBatch:
    return block_columns.split(block, list(plan.types), plan.types, separator=plan.separator)


def parse(block: Block, plan: Plan) -> Part | None:
    """Read a block of whole lines; None if any of them is not a plain row."""
    try:
        return _part(_split(block, plan), plan)
    except (pa.ArrowInvalid, NotPlainError):
        return None


class _Cells:
    """The columns of a block by their names; each is None if the table does not have it."""

    def __init__(self, batch: pa.RecordBatch, plan: Plan, where: Int64s | None = None) -> None:
        self.batch, self.plan, self.where = batch, plan, where

    def _column(self, name: str) -> pa.Array | None:
        place = self.plan.layout.places.get(name)
        return None if place is None else self.batch.column(place)

    def whole(self, name: str) -> pd.arrays.IntegerArray | None:
        """Return a column of whole numbers."""
        column = self._column(name)
        if column is None:
            return None
        values, known = numbers(column).at(self.where)
        must(bool(values.min() >= -LARGEST))
        return pd.arrays.IntegerArray(values, ~known)

    def coded(self, name: str) -> tuple[list[str], Codes] | None:
        """Return the distinct texts of a column, and which of them each row has."""
        column = self._column(name)
        if column is None:
            return None
        return plain_texts(column.dictionary), at(column.indices.to_numpy(), self.where)

    def texts(self, name: str, meaning: Callable[[str], object]) -> Objects | None:
        """Return what each text of a column means."""
        coded = self.coded(name)
        return None if coded is None else objects([meaning(text) for text in coded[0]], coded[1])

    def decimals(self, name: str) -> Decimals:
        """Return the numbers of a column; the table must have it."""
        found = decimals(self._column(name), self.plan.decimal or "0").at(self.where)
        must(bool(found.decimals.max() <= MOST_DECIMALS))
        return found

    def time(self, name: str) -> tuple[Int64s, Int64s, Flags]:
        """Return times as fractions, numerators below powers of ten, in ns, and which are known."""
        unit = self.plan.layout.units[name]
        if unit == "ns":
            values, known = numbers(self._column(name)).at(self.where)
            return values, np.ones(1, np.int64), known
        digits, places, known = self.decimals(name)
        scale = _SCALES[unit] - places
        must(bool(digits.max() < EXACT // 10 ** int(max(scale.max(), 0))))
        return digits * _POWERS[np.maximum(scale, 0)], _POWERS[np.maximum(-scale, 0)], known

    def span(self) -> Columns:
        """Return the columns of times, which all rows have."""
        starts, parts, begun = self.time("Start")
        must(bool(begun.all() and (starts >= 0).all()))
        durations, of, lasted = self.time("Duration")
        must(bool((durations >= 0).all()))
        return {
            "start_ns": _rounded(starts, parts),
            "duration_ns": np.where(lasted, durations / of, np.nan),
            "line": np.arange(self.batch.num_rows) if self.where is None else self.where,
        }

    def place(self) -> Columns:
        """Return the columns that say where a row ran."""
        found: Columns = {"context": self.whole("Ctx"), "stream": self.whole("Strm")}
        if coded := self.coded("Device"):
            both = [device_of(text) for text in coded[0]]
            found["device"] = objects([name for name, _ in both], coded[1])
            found["device_index"] = pd.array([index for _, index in both], dtype="Int64").take(coded[1])
        return found


def _rounded(values: Int64s, parts: Int64s) -> Int64s:
    """Return quotients of numbers that are not negative as whole numbers, halves as even ones."""
    quotients, rest = np.divmod(values, parts)
    found: Int64s = quotients + ((rest > parts - rest) | ((rest == parts - rest) & (quotients % 2 == 1)))
    return found


def _part(batch: pa.RecordBatch, plan: Plan) -> Part:
    every = _Cells(batch, plan)
    for place in plan.others:
        closed(batch.column(int(place)))
    must(all(is_empty(column) for column in batch.columns[plan.columns :]))
    for place in plan.telling:
        must(not any(column_of(text)[0] in _NEEDED for text in batch.column(int(place)).dictionary.to_pylist()))
    # Numbers that are not taken may tell of the signs of numbers.
    for name in (*SIZES, *TIMES):
        if plan.types.get(str(plan.layout.places.get(name))) == TEXT:
            every.decimals(name)
    for name in METRICS:
        must(all(plan.is_plain(text) for text in (every.coded(name) or ([], None))[0]))
    tables, metrics = _ROWS[plan.layout.report](every)
    return Part(batch.num_rows, tables, metrics)


def _gpu_trace(every: _Cells) -> tuple[dict[str, Columns], Metrics | None]:
    batch, plan = every.batch, every.plan
    grids = every.whole("GrdX")
    must(grids is not None)
    is_launch = ~np.asarray(pd.isna(grids))
    tables, metrics = {}, None
    if is_launch.any():
        cells = every if is_launch.all() else _Cells(batch, plan, np.flatnonzero(is_launch))
        tables["launches"], metrics = _launches(cells)
    if not is_launch.all():
        cells = _Cells(batch, plan, None if not is_launch.any() else np.flatnonzero(~is_launch))
        tables["transfers"] = _transfers(cells)
    return tables, metrics


def _named(cells: _Cells) -> tuple[list[str], Codes]:
    """Return the names of some rows of a trace of a device, without which none may be."""
    coded = cells.coded("Name")
    assert coded is not None
    used = np.unique(coded[1]).tolist()
    must(all(coded[0][code] for code in used))
    return coded


def _launches(cells: _Cells) -> tuple[Columns, Metrics | None]:
    shape = {f"grid_{axis.lower()}": cells.whole(f"Grd{axis}") for axis in "XYZ"}
    shape |= {f"block_{axis.lower()}": cells.whole(f"Blk{axis}") for axis in "XYZ"}
    own, metrics = _metrics(cells)
    names = {"kernel": objects(*_named(cells)), "correlation_id": cells.whole("CorrId")}
    return {**cells.span(), **cells.place(), **shape, **own, **names}, metrics


def _metrics(cells: _Cells) -> tuple[Columns, Metrics | None]:
    """Return what the columns of launches hold of their metrics, and the metrics."""
    layout, columns = cells.plan.layout, {name: coded for name in METRICS if (coded := cells.coded(name))}
    own, values = {}, {}
    for name, (texts, codes) in columns.items():
        of = [metric_of(layout, name, text, cells.plan.numbers)["value"] if text else None for text in texts]
        own[METRICS[name][1]] = pd.array([held(value) for value in of], dtype="Int64").take(codes)
        values[name] = np.array([np.nan if value is None else value for value in of], np.float64)[codes]
    cells_shown = cells_of(list(columns.values()))
    return own, Metrics(*cells_shown, np.stack(list(values.values()), axis=1)) if cells_shown else None


def _transfers(cells: _Cells) -> Columns:
    names, codes = _named(cells)
    must(all(is_copy(names[code]) for code in np.unique(codes).tolist()))
    kinds = objects([copy_kind(name) for name in names], codes)
    source, target = (_memory(cells, name, len(codes)) for name in ("SrcMemKd", "DstMemKd"))
    # The memory that was set is printed in the first of the two columns.
    is_set = kinds == "memset"
    target = np.where(is_set & pd.isna(target), source, target)
    memory = {
        "source_memory": np.where(is_set, objects([None], np.zeros(1, np.int32)), source),
        "target_memory": target,
    }
    span = cells.span()
    return {**span, **cells.place(), **memory, "kind": kinds, "bytes": _copied_bytes(cells, span["duration_ns"])}


def _memory(cells: _Cells, name: str, rows: int) -> Objects:
    found = cells.texts(name, lambda text: text or None)
    return objects([None], np.zeros(rows, np.int32)) if found is None else found


def _factor(layout: Layout, name: str, si_unit: str) -> int | None:
    factor = factor_of(layout.units.get(name), si_unit)
    must(factor is None or factor == int(factor))
    return None if factor is None else int(factor)


def _copied_bytes(cells: _Cells, durations: Floats) -> pd.arrays.IntegerArray | None:
    """Return the bytes of copies as `profsvc.formats.nsys_reports` does, in whole numbers."""
    layout = cells.plan.layout
    unit = _factor(layout, "Bytes", "byte")
    if unit is None:
        return None
    digits, places, known = cells.decimals("Bytes")
    must(int(digits.max()) * unit < MOST)
    printed = _rounded(digits * unit, _POWERS[places])
    if layout.units["Bytes"] == "B":
        return pd.arrays.IntegerArray(printed, ~known)
    found, fits = printed, np.zeros(len(printed), np.bool_)
    if rate := _factor(layout, "Throughput", "byte/s"):
        passed, decimal_places, _ = cells.decimals("Throughput")
        must(int(passed.max()) * rate < MOST)
        fits = (passed > 0) & (durations >= 1) & (durations <= LONGEST_NS)
        per_second = 10**9 // np.where(fits, durations, 1).astype(np.int64)
        found = _rounded(passed * rate, _POWERS[decimal_places] * per_second)
        must(bool(found.max() < MOST_COPIED))
        fits &= np.abs(found * _POWERS[places] - digits * unit) <= unit // 2
    return pd.arrays.IntegerArray(np.where(fits, found, printed), ~(known & (fits | (printed > 0))))


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
