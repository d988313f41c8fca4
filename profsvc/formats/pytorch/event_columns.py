"""The columns of tidy tables from the values of events of a PyTorch trace."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Mapping
from decimal import Decimal
from functools import reduce
from itertools import chain
from typing import Any, NamedTuple, cast

import numpy as np

from profsvc.formats.columnar import csv_columns
from profsvc.formats.columnar.arrow_columns import NullableInts, first_present
from profsvc.formats.columnar.line_blocks import Columns, require_plain
from profsvc.formats.parsing.copy_kinds import parse_transfer
from profsvc.formats.parsing.json_stream import loads, storable_text
from profsvc.formats.parsing.numbers import MAX_INT64
from profsvc.formats.parsing.timestamps import Int64s
from profsvc.formats.pytorch import event_values
from profsvc.formats.pytorch.event_times import Times, plain_array
from profsvc.formats.pytorch.event_values import NO_SIZES, Arguments, Metric, Values
from profsvc.formats.pytorch.events import KINDS, METRICS, integer, metric_number
from profsvc.tables import CodedTexts
from profsvc.tables.on_demand import pa

Devices = Mapping[int, tuple[str | None, str | None]]


def _integers(values: list[Any]) -> NullableInts:
    """Return a column of integers; those of more than 64 bits and texts are unknown.

    >>> _integers([7, None, 2**63, "0"])
    NullableInts(values=array([7, 0, 0, 0]), known=array([ True, False, False, False]))
    """
    try:
        column = np.frombuffer(array("q", values), np.int64)
        return NullableInts(column, column >= -MAX_INT64)
    except (TypeError, OverflowError):
        if values.count(None) == len(values):
            return NullableInts(np.zeros(len(values), np.int64), np.zeros(len(values), np.bool_))
    numbers = [integer(value) for value in values]
    known = np.array([number is not None for number in numbers], np.bool_)
    return NullableInts(np.array([number or 0 for number in numbers], np.int64), known)


def _metric(value: Metric) -> int | Decimal | None:
    """Return the number of a metric."""
    return metric_number(loads(value.decode()) if isinstance(value, bytes) else value)


class Rows(NamedTuple):
    """The values of events for one tidy table by member or argument, and their first lines."""

    values: Values
    lines: Int64s
    times: Times
    base: int

    def own(self, name: str) -> NullableInts:
        """Return an integer member of each event."""
        return _integers(self.values[name])

    def whole(self, *names: str) -> NullableInts:
        """Return the first known of some integer arguments of each event."""
        return reduce(_first_present, map(self.own, names))

    def common(self) -> Columns:
        """Return the columns that rows of all tables have."""
        return {
            "start_ns": self.times.starts(self.values["ts"]) + self.base,
            "duration_ns": self.times.durations(self.values["dur"]),
            "line": self.lines,
        }

    def names(self) -> CodedTexts:
        """Return the names; every event must have one."""
        return cast("CodedTexts", self.values["name"].texts(_name))

    def place(self, devices: Devices) -> tuple[Columns, CodedTexts]:
        """Return the columns that rows of a device have, and its compute capability."""
        index = self.whole("device")
        if not index.known.all():
            process = self.own("pid")
            on_device = process.known & np.isin(process.values, np.array(list(devices), np.int64))
            index = first_present(index, NullableInts(process.values, on_device))
        found, codes = np.unique(index.values, return_inverse=True)
        codes = np.where(index.known, codes, len(found))
        known = [*(devices.get(number, (None, None)) for number in found.tolist()), (None, None)]
        name, capability = (CodedTexts.from_meanings(codes, each) for each in zip(*known, strict=True))
        columns = {
            "device_index": index.array(),
            "device": name,
            "context": self.whole("context").array(),
            "stream": self.whole("stream", "tid").array(),
        }
        return columns, capability

    def outside(self) -> csv_columns.Objects:
        """Return the external id of each event as text."""
        values, known = self.whole("external id", "External id")
        if not known.any():
            return np.full(len(known), None, object)
        found: csv_columns.Objects = pa.array(values, mask=~known).cast(pa.string()).to_numpy(zero_copy_only=False)
        return found

    def shape(self) -> Columns:
        """Return the sizes of grid and block in x, y and z; a negative one is unknown."""
        columns = {}
        for part in ("grid", "block"):
            sizes = [each if isinstance(each, tuple) else NO_SIZES for each in self.values[part].distinct]
            numbers = plain_array("q", chain.from_iterable(sizes)).reshape(-1, 3)[self.values[part].rows()]
            for axis, values in zip("xyz", numbers.T, strict=True):
                columns[f"{part}_{axis}"] = NullableInts(np.maximum(values, 0), values >= 0).array()
        return columns

    def metrics(self) -> Columns:
        """Return the table of the metric arguments, grouped by launch."""
        found = {name: measured for name in METRICS if (measured := self._measured(name)) is not None}
        if not found:
            return {}
        codes, texts, values = [], list[str](), []
        for name, (numbers, code) in found.items():
            codes.append(
                np.where([number is not None for number in numbers], np.arange(len(numbers)) + len(texts), -1)[code]
            )
            texts += map(str, numbers)
            divisor = METRICS[name][1]
            values.append((np.array([0.0 if number is None else float(number) for number in numbers]) / divisor)[code])
        all_codes = np.column_stack(codes)
        launches, places = np.nonzero(all_codes >= 0)
        return {
            "launch_index": launches,
            "metric": CodedTexts(places, [f"args:'{name}'" for name in found]),
            "raw_text": CodedTexts(all_codes[launches, places], texts),
            "value": np.column_stack(values)[launches, places],
            "si_unit": CodedTexts(places, [METRICS[name][0] for name in found]),
            "line": self.lines[launches],
        }

    def _measured(self, name: str) -> tuple[list[int | Decimal | None], csv_columns.Codes] | None:
        """Return the distinct numbers of a metric, and the code of each event; None if all are unknown."""
        numbers = list(map(_metric, self.values[name].distinct))
        return None if numbers.count(None) == len(numbers) else (numbers, self.values[name].rows())


def _name(name: str | None) -> str:
    require_plain(bool(name))
    return storable_text(name or "")


def _first_present(first: NullableInts, second: NullableInts) -> NullableInts:
    return first if first.known.all() else first_present(first, second)


def _launches(rows: Rows, devices: Devices) -> dict[str, Columns]:
    place, capability = rows.place(devices)
    registers = rows.values["registers per thread"]
    launches = (
        rows.common()
        | place
        | rows.shape()
        | {
            "launch_index": np.arange(len(rows.lines)),
            "kernel": rows.names(),
            "compute_capability": capability,
            "correlation_id": rows.whole("correlation").array(),
            "registers_per_thread": csv_columns.coded_ints(list(map(integer, registers.distinct)), registers.rows()),
            "source_id": rows.outside(),
        }
    )
    metrics = rows.metrics()
    return {"launches": launches} | ({"metrics": metrics} if metrics else {})


def _transfers(rows: Rows, devices: Devices) -> dict[str, Columns]:
    names, categories = rows.values["name"], rows.values["cat"]
    # A code for each name in each category.
    moved = [
        parse_transfer(_name(name), KINDS[category.lower()] == "set")
        for name in names.distinct
        for category in categories.distinct
    ]
    codes = names.rows() * len(categories.distinct) + categories.rows()
    columns = {
        name: CodedTexts.from_meanings(codes, [cast("str | None", one.get(name)) for one in moved])
        for name in ("kind", "source_memory", "target_memory")
    }
    place, _ = rows.place(devices)
    return {"transfers": rows.common() | place | columns | {"bytes": rows.whole("bytes", "Bytes").array()}}


def _host(rows: Rows) -> Columns:
    return rows.common() | {
        "name": rows.names(),
        "process_id": rows.own("pid").array(),
        "thread_id": rows.own("tid").array(),
    }


def _api_calls(rows: Rows, _: Devices) -> dict[str, Columns]:
    return {"api_calls": _host(rows) | {"correlation_id": rows.whole("correlation").array()}}


def _ranges(rows: Rows, _: Devices) -> dict[str, Columns]:
    return {"ranges": _host(rows) | {"domain": rows.values["cat"].texts(str)}}


class _TableReader(NamedTuple):
    """What makes the columns of a tidy table, of the values that it asks of events and their arguments."""

    columns: Callable[[Rows, Devices], dict[str, Columns]]
    values: Callable[[list[Any], list[Arguments]], Values]


TABLE_READERS = {
    "launches": _TableReader(_launches, event_values.launch_values),
    "transfers": _TableReader(_transfers, event_values.transfer_values),
    "api_calls": _TableReader(_api_calls, event_values.call_values),
    "ranges": _TableReader(_ranges, event_values.range_values),
}
