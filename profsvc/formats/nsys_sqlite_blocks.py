"""Rows of a database of Nsight Systems, many at once: whole columns of numbers to tidy ones.

What depends on few columns, such as a device or a name, is asked once for each combination of their values, of what
reads row by row. For rows of which any is not plain `taken` returns None, and they go one by one.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa

from profsvc.formats.block_columns import Cells, Codes, Objects, cells_of, combinations, numbers, objects
from profsvc.formats.blocks import NotPlainError, must
from profsvc.formats.clock import Flags, Int64s
from profsvc.formats.nsys import copy_kind
from profsvc.formats.nsys_sqlite_rows import (
    CALL,
    COPY,
    GRAPH,
    GRAPHS,
    KERNEL,
    METRICS,
    NVTX,
    OWN,
    RANGES,
    SET,
    Names,
    Row,
    graph_name,
)
from profsvc.tables import WideColumns

Columns = dict[str, Any]
MOST = 2**62
WIDE = WideColumns(
    tuple(f"sql:{KERNEL}.{name}" for name in METRICS),
    ("",) * len(METRICS),
    tuple(METRICS.values()),
    np.ones(len(METRICS)),
)


class Part(NamedTuple):
    """What rows give: a tidy table, its columns, and the cells and the values of the metrics of launches.

    ``line`` counts the rows from 0; those that are missing in it are skipped.
    """

    table: str
    columns: Columns
    cells: Cells | None = None
    values: npt.NDArray[np.float64] | None = None


class _Rows:
    """Rows of a table, column by column; ``where`` are those that are taken."""

    def __init__(self, columns: Sequence[str], rows: Sequence[tuple[object, ...]], names: Names) -> None:
        self.columns, self.rows, self.names = columns, rows, names
        self.arrays = dict(zip(columns, map(pa.array, zip(*rows, strict=True)), strict=True))
        self.where: Int64s | None = None

    @property
    def lines(self) -> Int64s:
        """The rows that are taken."""
        return np.arange(len(self.rows)) if self.where is None else self.where

    def _taken(self, name: str) -> pa.Array:
        return self.arrays[name] if self.where is None else self.arrays[name].take(pa.array(self.where))

    def _numbers(self, name: str) -> tuple[Int64s, Flags]:
        column = self._taken(name) if name in self.arrays else pa.nulls(len(self.lines))
        if pa.types.is_null(column.type):
            return np.zeros(len(column), np.int64), np.zeros(len(column), np.bool_)
        must(pa.types.is_int64(column.type))
        return numbers(column)

    def whole(self, name: str) -> pd.arrays.IntegerArray:
        """Return a column of whole numbers."""
        values, known = self._numbers(name)
        return pd.arrays.IntegerArray(values, ~known)

    def must(self, name: str) -> Int64s:
        """Return a column of whole numbers without a null."""
        values, known = self._numbers(name)
        must(bool(known.all()))
        return values

    def coded(self, name: str) -> tuple[list[int | None], Codes]:
        """Return the distinct whole numbers of a column, the first of them None, and which of them each row has."""
        values, known = self._numbers(name)
        codes, distinct = pd.factorize(values)
        return [None, *distinct.tolist()], np.where(known, codes + 1, 0).astype(np.int32)

    def of(self, meaning: Callable[[Row], object], *names: str) -> Objects:
        """Return what depends on the columns ``names`` alone."""
        coded = (self.coded(name) for name in names)
        which, first = combinations([(len(distinct), codes) for distinct, codes in coded])
        return objects([meaning(Row(self.columns, self.rows[at])) for at in self.lines[first].tolist()], which)

    def span(self) -> Columns:
        """Return the columns of times and lines."""
        starts, (ends, ended) = self.must("start"), self._numbers("end")
        must(all(bool((times > -MOST).all() and (times < MOST).all()) for times in (starts, ends)))
        must(bool((ends >= starts)[ended].all()))
        lasted = (ends - starts).astype(np.float64)
        return {"start_ns": starts, "duration_ns": np.where(ended, lasted, np.nan), "line": self.lines}

    def process(self) -> pd.arrays.IntegerArray:
        """Return the processes, as `Row.process` does."""
        values, known = self._numbers("globalPid")
        others, there = self._numbers("globalTid")
        return pd.arrays.IntegerArray((np.where(known, values, others) >> 24) & 0xFFFFFF, ~(known | there))

    def thread(self) -> pd.arrays.IntegerArray:
        """Return the threads."""
        values, known = self._numbers("globalTid")
        return pd.arrays.IntegerArray(values & 0xFFFFFF, ~known)

    def place(self) -> Columns:
        """Return the columns that say where a row ran."""
        return {
            "device_index": self.whole("deviceId"),
            "device": self.of(lambda row: self.names.device(row)["device"], "globalPid", "deviceId"),
            "process_id": self.process(),
            "context": self.whole("contextId"),
            "stream": self.whole("streamId"),
        }

    def memory(self, name: str) -> Objects:
        """Return the kinds of memory that a column names."""
        numbered, codes = self.coded(name)
        return objects([None if number is None else self.names.memories.get(number) for number in numbered], codes)


def _kernels(rows: _Rows) -> Part:
    shape = {f"{part}_{axis}": rows.whole(f"{part}{axis.upper()}") for part in ("grid", "block") for axis in "xyz"}
    process, place = ("globalPid",), ("globalPid", "deviceId")
    launches = {
        **rows.span(),
        **rows.place(),
        **shape,
        "kernel": rows.of(lambda row: rows.names.string(row.must("demangledName")), "demangledName"),
        "correlation_id": rows.whole("correlationId"),
        "process_name": rows.of(rows.names.process, *process),
        "compute_capability": rows.of(rows.names.capability, *place),
        **{column: rows.whole(name) for column, name in OWN.items()},
    }
    coded = [rows.coded(name) for name in METRICS]
    cells = cells_of(
        [(["" if value is None else str(value) for value in distinct], codes) for distinct, codes in coded]
    )
    values = np.stack([np.array(some, np.float64)[codes] for some, codes in coded], axis=1)
    return Part("launches", launches, cells, values)


def _copies(rows: _Rows) -> Part:
    def kind(row: Row) -> str:
        found = row.must("copyKind")
        return copy_kind(rows.names.copies.get(found, f"kind {found}"))

    found = {"kind": rows.of(kind, "copyKind"), "bytes": rows.whole("bytes")}
    found |= {"source_memory": rows.memory("srcKind"), "target_memory": rows.memory("dstKind")}
    return Part("transfers", {**rows.span(), **rows.place(), **found})


def _sets(rows: _Rows) -> Part:
    found = {"kind": "memset", "bytes": rows.whole("bytes"), "target_memory": rows.memory("memKind")}
    return Part("transfers", {**rows.span(), **rows.place(), **found})


def _calls(rows: _Rows) -> Part:
    found = {
        "name": rows.of(lambda row: rows.names.string(row.must("nameId")), "nameId"),
        "process_id": rows.process(),
        "thread_id": rows.thread(),
        "correlation_id": rows.whole("correlationId"),
    }
    return Part("api_calls", {**rows.span(), **found})


def _ranges(rows: _Rows) -> Part:
    rows.process()
    kinds = np.isin(rows.must("eventType"), RANGES)
    if not kinds.all():
        rows.where = np.flatnonzero(kinds)
    kind = rows.arrays["text"].type
    must(pa.types.is_null(kind) or pa.types.is_string(kind))
    texts = np.array(rows.arrays["text"].to_pylist(), object)[rows.lines]
    numbered, codes = rows.coded("textId")
    by_number = np.flatnonzero(pd.isna(texts))
    needed = np.unique(codes[by_number]).tolist()
    strings = {code: "" if (number := numbered[code]) is None else rows.names.string(number) for code in needed}
    texts[by_number] = [strings[code] for code in codes[by_number].tolist()]

    def domain(row: Row) -> str | None:
        return rows.names.nvtx_domains.get((row.process(), row.whole("domainId") or 0))

    found = {"name": texts, "domain": rows.of(domain, "globalTid", "domainId")}
    return Part("ranges", {**rows.span(), **found, "process_id": rows.process(), "thread_id": rows.thread()})


def _graphs(rows: _Rows) -> Part:
    found = {"name": rows.of(graph_name, "graphId"), "domain": objects([GRAPHS], np.zeros(len(rows.lines), np.int32))}
    return Part("ranges", {**rows.span(), **found, "process_id": rows.process()})


_TAKE: Mapping[str, Callable[[_Rows], Part]] = {
    KERNEL: _kernels,
    COPY: _copies,
    SET: _sets,
    CALL: _calls,
    NVTX: _ranges,
    GRAPH: _graphs,
}


def taken(table: str, columns: Sequence[str], rows: Sequence[tuple[object, ...]], names: Names) -> Part | None:
    """Take rows of a table; None if any of them needs a closer look."""
    try:
        part = _TAKE[table](_Rows(columns, rows, names))
    except (pa.ArrowInvalid, pa.ArrowTypeError, NotPlainError, ValueError):
        return None
    return part if len(part.columns["line"]) else None
