"""Convert tidy tables to rows of the base tables, and write them in bulk."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from profsvc.errors import InputError
from profsvc.store.connection.sql import Connection, Engine
from profsvc.store.ingest.inserts.column_values import factorize, factorize_numbers, values
from profsvc.store.ingest.inserts.dictionaries import COMBINATION_COLUMNS, Combinations, Names, names_together
from profsvc.store.ingest.staging import Sink
from profsvc.store.ingest.writers.kernel_totals import KernelTotals
from profsvc.store.ingest.writers.launch_totals import LaunchTotals
from profsvc.store.ingest.writers.listed_launches import ListedLaunches
from profsvc.store.ingest.writers.samples import Sensors
from profsvc.store.ingest.writers.source_lines import SourceLines
from profsvc.store.ingest.writers.transfer_totals import TransferTotals
from profsvc.store.ingest.writers.wide_metrics import WideCells
from profsvc.store.schema.column_types import IDS_PER_UPLOAD
from profsvc.tables import ColumnTable, Table, frame_of, nulls
from profsvc.tables.column_tables import Integers, integers_of
from profsvc.tables.on_demand import pd

PLAIN_LAUNCH = (
    *("grid_x", "grid_y", "grid_z", "shared_mem_dynamic_bytes", "start_ns", "duration_ns"),
    *("source_id", "correlation_id", "line"),
)

# Tables of events: the index of their rows, their text columns, and the columns that are stored unchanged.
EVENTS: Mapping[str, tuple[str, tuple[str, ...], tuple[str, ...]]] = {
    "transfers": (
        "transfer_id",
        ("kind", "source_memory", "target_memory"),
        ("start_ns", "duration_ns", "bytes", "device_index", "process_id", "context", "stream", "line"),
    ),
    "api_calls": (
        "call_id",
        ("name",),
        ("start_ns", "duration_ns", "process_id", "thread_id", "correlation_id", "line"),
    ),
    "ranges": (
        "range_id",
        ("name", "domain"),
        ("start_ns", "duration_ns", "process_id", "thread_id", "active_sms", "launches", "line"),
    ),
    "kernel_summaries": (
        "summary_id",
        ("category", "report"),
        ("calls", "total_ns", "mean_ns", "min_ns", "max_ns", "total_bytes", "device_index", "line"),
    ),
}
# Columns of launches that are numbers of names: their name, that of the names, and the column with the texts.
OWN_NAMES = (
    ("host_id", "texts", "host"),
    ("process_name_id", "texts", "process_name"),
    ("kernel_id", "kernels", "kernel"),
)
# Other tables that are taken as columns, so that to store samples takes no frame.
OF_COLUMNS = ("launches", "samples", "sensors", "metrics", "rejects")
Columns = dict[str, Any]
Ints = npt.NDArray[np.int64]
Numbers = Integers


class Encoder:
    """Writes the tables of one upload, with names replaced by their numbers."""

    def __init__(self, store: Connection | Engine, sink: Sink, upload_id: int, device: str | None) -> None:
        """Begin an upload; ``device`` is the device of launches that do not name one."""
        self.store = store
        self.sink = sink
        self.upload_id = upload_id
        self.device = device
        self.first = upload_id * IDS_PER_UPLOAD
        self.first_device: int | None = None
        self.file_devices: set[int] = set()
        self.first_host: str | None = None
        self.measured_device: str | None = None
        self.copying_device: int | None = None
        self.items: defaultdict[str, int] = defaultdict(int)
        self.names = {
            table: Names(store, table) for table in ("texts", "kernels", "metric_names", "unit_names", "devices")
        }
        self.combined = {table: Combinations(store, table) for table in COMBINATION_COLUMNS}
        self.sensors = Sensors(sink, self.first)
        self.sources = SourceLines(sink, self.first, self._numbers)
        self.totals = KernelTotals()
        self.transfers = TransferTotals()
        self.listed = ListedLaunches()
        self.launches = LaunchTotals()
        self.wide = WideCells(store, sink, self.first, self.names, self._metrics_of_frame)

    def write(self, name: str, table: Table) -> None:
        """Write a tidy table of a batch."""
        if name in EVENTS:
            self._events(name, _as_columns(name, table))
        elif name in OF_COLUMNS:
            getattr(self, f"_{name}")(_as_columns(name, table))
        else:
            getattr(self, f"_{name}")(frame_of(table))

    def note_devices(self, names: Sequence[str]) -> None:
        """Note the devices of rows that have none of their own; they are devices of the file as those of launches."""
        for name in names:
            number = self.names["devices"][name, ""]
            self.first_device = self.first_device or number
            self.file_devices.add(number)

    def _next_items(self, name: str, count: int) -> range:
        begin = self.items[name]
        self.items[name] += count
        return range(begin, begin + count)

    def _numbers(self, names: str, column: Any, *rest: str) -> Numbers:
        """Return the number of each name in a column; ``rest`` are the other columns of the names."""
        codes, distinct = factorize(column)
        return _nullable(self.names[names].numbers([(name, *rest) for name in distinct]), codes)

    def _texts(self, column: Any) -> Numbers:
        return self._numbers("texts", column)

    def _tuples(self, names: str, *columns: Any) -> list[int]:
        """Return the numbers of names formed by several columns; an empty text means null."""
        rows = list(zip(*([text or "" for text in values(column)] for column in columns), strict=True))
        distinct = list(dict.fromkeys(rows))
        numbers = dict(zip(distinct, self.names[names].numbers(distinct), strict=True))
        return [numbers[row] for row in rows]

    def _refs(self, column: Any) -> list[int]:
        return [self.first if index is None else self.first + index + 1 for index in values(column)]

    def _events(self, name: str, table: ColumnTable) -> None:
        key, texts, plain = EVENTS[name]
        items = self._next_items(name, len(table))
        if items.stop >= IDS_PER_UPLOAD:
            raise InputError(f"a file may have {IDS_PER_UPLOAD - 1:,} {name.replace('_', ' ')}; split it")
        columns: Columns = {key: range(self.first + items.start + 1, self.first + items.stop + 1)}
        columns |= {f"{column}_id": self._texts(table[column]) for column in texts}
        columns |= {column: table[column] for column in plain}
        if name == "transfers":
            columns["device_id"] = devices = self._numbers("devices", self._device_names(table), "")
            self.copying_device = self.copying_device or _first(devices)
            self.transfers.add(columns["kind_id"], table["duration_ns"], table["bytes"])
        elif name == "kernel_summaries":
            is_kernel = np.asarray(table["category"]) == "kernel"
            kernels, others = np.array(table["kernel"], object), np.array(table["kernel"], object)
            kernels[~is_kernel] = others[is_kernel] = None
            columns["kernel_id"] = self._numbers("kernels", kernels)
            columns["name_id"] = self._texts(others)
        self.sink.write(name, columns)

    def _device_names(self, table: ColumnTable | Columns) -> Any:
        names = table["device"]
        return names if self.device is None else np.where(nulls(names), self.device, np.asarray(names))

    def _sensors(self, table: ColumnTable) -> None:
        self.sensors.write_sensors(table)

    def _samples(self, table: ColumnTable) -> None:
        self.sensors.write_samples(table, self._texts(table["reason"]))

    def _launches(self, table: ColumnTable) -> None:
        given: Columns = dict(table.columns)
        with names_together(self.store):
            self._number(given)
        known = integers_of(given["device_id"])
        self.first_device = self.first_device or _first(given["device_id"])
        self.file_devices.update(factorize_numbers(known.values[~known.missing])[1].tolist())
        self.first_host = self.first_host or next(iter(factorize(given["host"])[1]), None)
        launch_ids = integers_of(given["launch_index"]).values + (self.first + 1)
        kernel_ids, durations = integers_of(given["kernel_id"]).values, given["duration_ns"]
        self.totals.add(kernel_ids, durations)
        self.listed.add(launch_ids, kernel_ids, durations)
        self.launches.add(given["place_id"], given["shape_id"], given)
        columns: Columns = {
            "launch_id": launch_ids,
            **{name: given[name] for name in ("place_id", "shape_id", *PLAIN_LAUNCH)},
        }
        self.sink.write("launches", columns)

    def _number(self, given: Columns) -> None:
        """Add the numbers of the devices and names of launches, and of their places and shapes."""
        given["device_id"] = self._devices(given)
        for name, names, column in OWN_NAMES:
            given[name] = self._numbers(names, given[column])
        for table, name in (("places", "place_id"), ("shapes", "shape_id")):
            columns = [_whole(given[column]) for column in COMBINATION_COLUMNS[table]]
            given[name] = self.combined[table].numbers(columns)

    def _devices(self, given: Columns) -> Numbers:
        """Return the number of the device of each launch."""
        codes, names = factorize(self._device_names(given))
        versions, capabilities = factorize(given["compute_capability"])
        both, pairs = factorize_numbers((codes + 1) * (len(capabilities) + 1) + versions + 1)
        texts = ["", *names], ["", *capabilities]
        known = [
            [of[part] for of, part in zip(texts, divmod(pair, len(texts[1])), strict=True)] for pair in pairs.tolist()
        ]
        return _nullable([self._device(*name) for name in known], both)

    def _device(self, name: str, capability: str) -> int | None:
        return self.names["devices"][name, capability] if name or capability else None

    def _metrics_of_frame(self, table: pd.DataFrame) -> None:
        self._metrics(_as_columns("metrics", table))

    def _metrics(self, table: ColumnTable) -> None:
        columns: Columns = {
            "launch_ref": self._refs(table["launch_index"]),
            "item": self._next_items("metrics", len(table)),
            "kernel_id": self._numbers("kernels", table["kernel"]),
            "invocations": values(table["invocations"]),
            "metric_id": self._tuples("metric_names", table["metric"], table["section"], table["statistic"]),
            "unit_id": self._tuples("unit_names", table["unit"], table["si_unit"]),
            **{name: table[name] for name in ("raw_text", "value", "reason", "line")},
        }
        self.sink.write("metrics", columns)

    def _rules(self, table: pd.DataFrame) -> None:
        columns: Columns = {
            "launch_id": self._refs(table["launch_index"]),
            "item": self._next_items("rules", len(table)),
            **{f"{name}_id": self._texts(table[name]) for name in ("section", "rule", "rule_type", "kind")},
            **{
                name: table[name]
                for name in ("estimated_saving_fraction", "estimated_speedup", "message", "line", "focus_metrics")
            },
        }
        self.sink.write("rules", columns)

    def _source_kernels(self, table: pd.DataFrame) -> None:
        self.sources.write_kernels(table)

    def _source_lines(self, table: pd.DataFrame) -> None:
        self.sources.write_lines(table)

    def _source_stalls(self, table: pd.DataFrame) -> None:
        self.sources.write_stalls(table)

    def _rejects(self, table: ColumnTable) -> None:
        columns: Columns = {
            "upload_id": [self.upload_id] * len(table),
            "item": self._next_items("rejects", len(table)),
            **{name: table[name] for name in ("line", "lines", "reason", "text")},
        }
        self.sink.write("rejects", columns)

    def _characterizations(self, table: pd.DataFrame) -> None:
        self.measured_device = self.measured_device or str(table["device"].iloc[0])
        columns: Columns = {
            "upload_id": [self.upload_id] * len(table),
            "item": self._next_items("characterizations", len(table)),
            **{name: table[name] for name in ("device", "quantity", "x", "y", "unit", "method", "line")},
        }
        self.sink.write("characterizations", columns)


def _as_columns(name: str, table: Table) -> ColumnTable:
    return table if isinstance(table, ColumnTable) else ColumnTable.of_frame(name, table)


def _nullable(numbers: Sequence[int | None], codes: npt.NDArray[np.integer]) -> Numbers:
    """Return a column of the numbers at codes; the code of null is -1.

    >>> _nullable([5, None], np.array([1, 0, -1])).tolist()
    [None, 5, None]
    """
    missing = np.array([*(number is None for number in numbers), True])
    plain = np.array([*(number or 0 for number in numbers), 0], np.int64)
    return Integers(plain[codes], missing[codes])


def _first(column: Numbers) -> int | None:
    """Return the first number that is not null, None if there is none."""
    numbers = integers_of(column)
    known = np.flatnonzero(~numbers.missing)
    return int(numbers.values[known[0]]) if len(known) else None


def _whole(column: Any) -> Ints:
    """Return an integer column as an array, with `Combinations.NONE` for null."""
    numbers = integers_of(column)
    return np.where(numbers.missing, Combinations.NONE, numbers.values) if numbers.missing.any() else numbers.values
