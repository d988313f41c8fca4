"""Parses many rows of a Nsight Systems database at once, column by column.

A value that depends on few columns, such as a device name, is computed once per combination of their values by the
row-by-row reader. `parse_rows` returns None if a row is irregular; the rows are then read one by one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from profsvc.formats.columnar.csv_columns import (
    CellTexts,
    Codes,
    Objects,
    cell_texts,
    code_combinations,
    number_column,
    object_column,
)
from profsvc.formats.columnar.line_blocks import Columns, IrregularBlockError, require_plain
from profsvc.formats.nsys.database_rows import (
    CALLS,
    COPIES,
    GRAPH_DOMAIN,
    GRAPHS_TABLE,
    KERNELS,
    MEMSETS,
    METRIC_OF_LAUNCH_COLUMN,
    METRICS,
    NVTX,
    RANGE_EVENT_TYPES,
    NameTables,
    graph_name,
)
from profsvc.formats.parsing.copy_kinds import copy_kind
from profsvc.formats.parsing.sqlite_file import Row
from profsvc.formats.parsing.timestamps import MAX_NS, Flags, Int64s
from profsvc.tables import WideColumns
from profsvc.tables.column_tables import Integers
from profsvc.tables.on_demand import pa, pd

METRIC_COLUMNS = WideColumns(
    tuple(f"sql:{KERNELS}.{name}" for name in METRICS),
    ("",) * len(METRICS),
    tuple(METRICS.values()),
    np.ones(len(METRICS)),
)


class ParsedRows(NamedTuple):
    """A tidy table with its columns, and the metrics of its launches.

    ``line`` counts the rows from 0; rows missing from it are skipped.
    """

    table: str
    columns: Columns
    cells: CellTexts | None = None
    values: npt.NDArray[np.float64] | None = None


class _Rows:
    """Rows of a table by column; ``where`` are the stored rows."""

    def __init__(self, columns: Sequence[str], rows: Sequence[tuple[object, ...]], names: NameTables) -> None:
        self.columns, self.rows, self.names = columns, rows, names
        self.arrays = dict(zip(columns, map(pa.array, zip(*rows, strict=True)), strict=True))
        self.where: Int64s | None = None

    @property
    def lines(self) -> Int64s:
        """The stored rows."""
        return np.arange(len(self.rows)) if self.where is None else self.where

    def _taken(self, name: str) -> pa.Array:
        return self.arrays[name] if self.where is None else self.arrays[name].take(pa.array(self.where))

    def _numbers(self, name: str) -> tuple[Int64s, Flags]:
        column = self._taken(name) if name in self.arrays else pa.nulls(len(self.lines))
        if pa.types.is_null(column.type):
            return np.zeros(len(column), np.int64), np.zeros(len(column), np.bool_)
        require_plain(pa.types.is_int64(column.type))
        return number_column(column)

    def whole(self, name: str) -> Integers:
        """Return a column of integers."""
        values, known = self._numbers(name)
        return Integers(values, ~known)

    def must(self, name: str) -> Int64s:
        """Return a column of integers without a null."""
        values, known = self._numbers(name)
        require_plain(bool(known.all()))
        return values

    def coded(self, name: str) -> tuple[list[int | None], Codes]:
        """Return the distinct integers of a column, None first, and the code of each row."""
        values, known = self._numbers(name)
        codes, distinct = pd.factorize(values)
        return [None, *distinct.tolist()], np.where(known, codes + 1, 0).astype(np.int32)

    def of(self, meaning: Callable[[Row], object], *names: str) -> Objects:
        """Return a column that depends only on the columns ``names``."""
        coded = (self.coded(name) for name in names)
        which, first = code_combinations([(len(distinct), codes) for distinct, codes in coded])
        return object_column([meaning(Row(self.columns, self.rows[at])) for at in self.lines[first].tolist()], which)

    def span(self) -> Columns:
        """Return the columns of times and lines."""
        starts, (ends, ended) = self.must("start"), self._numbers("end")
        require_plain(all(bool((times > -MAX_NS).all() and (times < MAX_NS).all()) for times in (starts, ends)))
        require_plain(bool((ends >= starts)[ended].all()))
        lasted = (ends - starts).astype(np.float64)
        return {"start_ns": starts, "duration_ns": np.where(ended, lasted, np.nan), "line": self.lines}

    def process(self) -> Integers:
        """Return the processes, as `Row.process` does."""
        values, known = self._numbers("globalPid")
        others, there = self._numbers("globalTid")
        return Integers((np.where(known, values, others) >> 24) & 0xFFFFFF, ~(known | there))

    def thread(self) -> Integers:
        """Return the threads."""
        values, known = self._numbers("globalTid")
        return Integers(values & 0xFFFFFF, ~known)

    def place(self) -> Columns:
        """Return the device, process, context and stream of rows."""
        return {
            "device_index": self.whole("deviceId"),
            "device": self.of(lambda row: self.names.device(row)["device"], "globalPid", "deviceId"),
            "process_id": self.process(),
            "context": self.whole("contextId"),
            "stream": self.whole("streamId"),
        }

    def memory(self, name: str) -> Objects:
        """Return the memory kinds of a column."""
        numbered, codes = self.coded(name)
        return object_column(
            [None if number is None else self.names.memories.get(number) for number in numbered], codes
        )


def _kernels(rows: _Rows) -> ParsedRows:
    shape = {f"{part}_{axis}": rows.whole(f"{part}{axis.upper()}") for part in ("grid", "block") for axis in "xyz"}
    process, place = ("globalPid",), ("globalPid", "deviceId")
    launches = {
        **rows.span(),
        **rows.place(),
        **shape,
        "kernel": rows.of(lambda row: rows.names.string(row.must("demangledName")), "demangledName"),
        "correlation_id": rows.whole("correlationId"),
        "process_name": rows.of(rows.names.process, *process),
        "host": rows.of(rows.names.host, *process),
        "compute_capability": rows.of(rows.names.capability, *place),
        **{column: rows.whole(name) for column, name in METRIC_OF_LAUNCH_COLUMN.items()},
    }
    coded = [rows.coded(name) for name in METRICS]
    cells = cell_texts(
        [(["" if value is None else str(value) for value in distinct], codes) for distinct, codes in coded]
    )
    values = np.stack([np.array(some, np.float64)[codes] for some, codes in coded], axis=1)
    return ParsedRows("launches", launches, cells, values)


def _copies(rows: _Rows) -> ParsedRows:
    def kind(row: Row) -> str:
        found = row.must("copyKind")
        return copy_kind(rows.names.copies.get(found, f"kind {found}"))

    found = {"kind": rows.of(kind, "copyKind"), "bytes": rows.whole("bytes")}
    found |= {"source_memory": rows.memory("srcKind"), "target_memory": rows.memory("dstKind")}
    return ParsedRows("transfers", {**rows.span(), **rows.place(), **found})


def _memsets(rows: _Rows) -> ParsedRows:
    found = {"kind": "memset", "bytes": rows.whole("bytes"), "target_memory": rows.memory("memKind")}
    return ParsedRows("transfers", {**rows.span(), **rows.place(), **found})


def _calls(rows: _Rows) -> ParsedRows:
    found = {
        "name": rows.of(lambda row: rows.names.string(row.must("nameId")), "nameId"),
        "process_id": rows.process(),
        "thread_id": rows.thread(),
        "correlation_id": rows.whole("correlationId"),
    }
    return ParsedRows("api_calls", {**rows.span(), **found})


def _ranges(rows: _Rows) -> ParsedRows:
    rows.process()
    kinds = np.isin(rows.must("eventType"), RANGE_EVENT_TYPES)
    if not kinds.all():
        rows.where = np.flatnonzero(kinds)
    kind = rows.arrays["text"].type
    require_plain(pa.types.is_null(kind) or pa.types.is_string(kind))
    texts = np.array(rows.arrays["text"].to_pylist(), object)[rows.lines]
    numbered, codes = rows.coded("textId")
    by_number = np.flatnonzero(pd.isna(texts))
    needed = np.unique(codes[by_number]).tolist()
    strings = {code: "" if (number := numbered[code]) is None else rows.names.string(number) for code in needed}
    texts[by_number] = [strings[code] for code in codes[by_number].tolist()]

    def domain(row: Row) -> str | None:
        return rows.names.nvtx_domains.get((row.process(), row.whole("domainId") or 0))

    found = {"name": texts, "domain": rows.of(domain, "globalTid", "domainId")}
    return ParsedRows("ranges", {**rows.span(), **found, "process_id": rows.process(), "thread_id": rows.thread()})


def _graphs(rows: _Rows) -> ParsedRows:
    found = {
        "name": rows.of(graph_name, "graphId"),
        "domain": object_column([GRAPH_DOMAIN], np.zeros(len(rows.lines), np.int32)),
    }
    return ParsedRows("ranges", {**rows.span(), **found, "process_id": rows.process()})


_ROW_READERS: Mapping[str, Callable[[_Rows], ParsedRows]] = {
    KERNELS: _kernels,
    COPIES: _copies,
    MEMSETS: _memsets,
    CALLS: _calls,
    NVTX: _ranges,
    GRAPHS_TABLE: _graphs,
}


def parse_rows(
    table: str, columns: Sequence[str], rows: Sequence[tuple[object, ...]], names: NameTables
) -> ParsedRows | None:
    """Return the parsed rows of a table; None if a row is irregular."""
    try:
        part = _ROW_READERS[table](_Rows(columns, rows, names))
    except (pa.ArrowInvalid, pa.ArrowTypeError, IrregularBlockError, ValueError):
        return None
    return part if len(part.columns["line"]) else None
