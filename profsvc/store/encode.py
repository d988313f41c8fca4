"""Turn tidy tables into the rows of the base tables, and write them in bulk."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

import pandas as pd
from sqlalchemy import Connection

from profsvc.errors import InputError
from profsvc.store.bulk import insert_rows, values
from profsvc.store.names import Names
from profsvc.store.schema import STEP
from profsvc.store.sensors import Sensors
from profsvc.store.wide import WideCells

PLAIN_LAUNCH = (
    *("source_id", "process_id", "device_index", "context", "stream", "start_ns", "duration_ns"),
    *("grid_x", "grid_y", "grid_z", "block_x", "block_y", "block_z", "line", "correlation_id"),
    *("registers_per_thread", "shared_mem_static_bytes", "shared_mem_dynamic_bytes"),
)

# Tables of events: what numbers their rows, their columns of texts, and those that go in as they are.
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
    "ranges": ("range_id", ("name", "domain"), ("start_ns", "duration_ns", "process_id", "thread_id", "line")),
    "kernel_summaries": (
        "summary_id",
        ("category",),
        ("calls", "total_ns", "mean_ns", "min_ns", "max_ns", "total_bytes", "device_index", "line"),
    ),
}
Columns = dict[str, Iterable[Any]]


class Encoder:
    """Writes the tables of one upload, with every name as its number."""

    def __init__(self, connection: Connection, upload_id: int, run_id: int, device: str | None) -> None:
        """Begin an upload; ``device`` stands for the device of launches that do not name theirs."""
        self.connection = connection
        self.upload_id = upload_id
        self.run_id = run_id
        self.device = device
        self.first = upload_id * STEP
        self.first_device: int | None = None
        self.first_host: str | None = None
        self.measured_device: str | None = None
        self.copying_device: int | None = None
        self.items: defaultdict[str, int] = defaultdict(int)
        self.names = {
            table: Names(connection, table) for table in ("texts", "kernels", "metric_names", "unit_names", "devices")
        }
        self.sensors = Sensors(connection, self.first)
        self.wide = WideCells(connection, self.first, self.names, self._metrics)

    def write(self, name: str, table: pd.DataFrame) -> None:
        """Write a tidy table of a batch."""
        if name in EVENTS:
            self._events(name, table)
        else:
            getattr(self, f"_{name}")(table)

    def _next_items(self, name: str, count: int) -> range:
        begin = self.items[name]
        self.items[name] += count
        return range(begin, begin + count)

    def _numbers(self, names: str, column: "pd.Series[Any]", *rest: str) -> list[int | None]:
        """Return the number of each name in a column, None for null; ``rest`` completes the names."""
        codes, distinct = pd.factorize(column)
        numbers = [*self.names[names].numbers([(name, *rest) for name in distinct]), None]  # null has the code -1
        return [numbers[code] for code in codes.tolist()]

    def _texts(self, column: "pd.Series[Any]") -> list[int | None]:
        return self._numbers("texts", column)

    def _tuples(self, names: str, *columns: "pd.Series[Any]") -> list[int]:
        """Return the number of each name that several columns make; an empty text stands for null."""
        rows = list(zip(*(column.fillna("") for column in columns), strict=True))
        distinct = list(dict.fromkeys(rows))
        numbers = dict(zip(distinct, self.names[names].numbers(distinct), strict=True))
        return [numbers[row] for row in rows]

    def _refs(self, column: "pd.Series[Any]") -> list[int]:
        return [self.first if index is None else self.first + index + 1 for index in values(column)]

    def _events(self, name: str, table: pd.DataFrame) -> None:
        key, texts, plain = EVENTS[name]
        items = self._next_items(name, len(table))
        if items.stop >= STEP:
            raise InputError(f"a file may have {STEP - 1:,} {name.replace('_', ' ')}; split it")
        columns: Columns = {key: range(self.first + items.start + 1, self.first + items.stop + 1)}
        columns |= {f"{column}_id": self._texts(table[column]) for column in texts}
        columns |= {column: values(table[column]) for column in plain}
        if name == "transfers":
            columns["device_id"] = devices = self._numbers("devices", self._device_names(table), "")
            self.copying_device = self.copying_device or next(filter(None, devices), None)
        elif name == "kernel_summaries":
            is_kernel = table["category"] == "kernel"
            columns["kernel_id"] = self._numbers("kernels", table["kernel"].where(is_kernel, None))
            columns["name_id"] = self._texts(table["kernel"].mask(is_kernel, None))
        self._insert(name, columns)

    def _device_names(self, table: pd.DataFrame) -> "pd.Series[Any]":
        return table["device"] if self.device is None else table["device"].fillna(self.device)

    def _sensors(self, table: pd.DataFrame) -> None:
        self.sensors.write_sensors(table)

    def _samples(self, table: pd.DataFrame) -> None:
        self.sensors.write_samples(table, self._texts(table["reason"]))

    def _launches(self, table: pd.DataFrame) -> None:
        indexes = values(table["launch_index"])
        devices = [
            self._device(name, capability)
            for name, capability in zip(
                values(self._device_names(table)), values(table["compute_capability"]), strict=True
            )
        ]
        hosts = values(table["host"])
        self.first_device = self.first_device or next(filter(None, devices), None)
        self.first_host = self.first_host or next(filter(None, hosts), None)
        columns: Columns = {
            "launch_id": [self.first + index + 1 for index in indexes],
            "upload_id": [self.upload_id] * len(table),
            "run_id": [self.run_id] * len(table),
            "launch_index": indexes,
            "kernel_id": self._numbers("kernels", table["kernel"]),
            "device_id": devices,
            "host_id": self._texts(table["host"]),
            "process_name_id": self._texts(table["process_name"]),
            **{name: values(table[name]) for name in PLAIN_LAUNCH},
        }
        self._insert("launches", columns)

    def _device(self, name: str | None, capability: str | None) -> int | None:
        return self.names["devices"][name or "", capability or ""] if name or capability else None

    def _metrics(self, table: pd.DataFrame) -> None:
        columns: Columns = {
            "launch_ref": self._refs(table["launch_index"]),
            "item": self._next_items("metrics", len(table)),
            "kernel_id": self._numbers("kernels", table["kernel"]),
            "invocations": values(table["invocations"]),
            "metric_id": self._tuples("metric_names", table["metric"], table["section"], table["statistic"]),
            "unit_id": self._tuples("unit_names", table["unit"], table["si_unit"]),
            **{name: values(table[name]) for name in ("raw_text", "value", "reason", "line")},
        }
        self._insert("metrics", columns)

    def _rules(self, table: pd.DataFrame) -> None:
        columns: Columns = {
            "launch_id": self._refs(table["launch_index"]),
            "item": self._next_items("rules", len(table)),
            **{f"{name}_id": self._texts(table[name]) for name in ("section", "rule", "rule_type", "kind")},
            **{
                name: values(table[name])
                for name in ("estimated_saving_fraction", "estimated_speedup", "message", "line")
            },
        }
        self._insert("rules", columns)

    def _rejects(self, table: pd.DataFrame) -> None:
        columns: Columns = {
            "upload_id": [self.upload_id] * len(table),
            "item": self._next_items("rejects", len(table)),
            **{name: values(table[name]) for name in ("line", "lines", "reason", "text")},
        }
        self._insert("rejects", columns)

    def _characterizations(self, table: pd.DataFrame) -> None:
        self.measured_device = self.measured_device or str(table["device"].iloc[0])
        columns: Columns = {
            "upload_id": [self.upload_id] * len(table),
            "item": self._next_items("characterizations", len(table)),
            **{name: values(table[name]) for name in ("device", "quantity", "x", "y", "unit", "method", "line")},
        }
        self._insert("characterizations", columns)

    def _insert(self, name: str, columns: Columns) -> None:
        insert_rows(self.connection, name, list(columns), zip(*columns.values(), strict=True))
