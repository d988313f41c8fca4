"""Turn tidy tables into the rows of the base tables, and write them in bulk."""

from collections.abc import Iterable, Sequence
from typing import Any

import pandas as pd
from sqlalchemy import Connection

from profsvc.store.names import Names
from profsvc.store.schema import LAUNCHES, metadata

# How each driver wants a value's place in a statement.
PLACE = {"qmark": "?", "format": "%s", "pyformat": "%s"}
PLAIN_LAUNCH = (
    *("source_id", "process_id", "device_index", "context", "stream", "start_ns", "duration_ns"),
    *("grid_x", "grid_y", "grid_z", "block_x", "block_y", "block_z", "line"),
)


def values(column: "pd.Series[Any]") -> list[Any]:
    """Return a column as Python values, None for null.

    >>> values(pd.Series([1, None], dtype="Int64")), values(pd.Series([1.5, float("nan")]))
    ([1, None], [1.5, None])
    """
    plain = column.astype(object)
    return list(plain.where(column.notna(), None) if column.hasnans else plain)


def insert_rows(connection: Connection, table: str, columns: Sequence[str], rows: Iterable[tuple[Any, ...]]) -> None:
    """Write rows of a base table with one prepared statement."""
    known = metadata.tables[table].c
    assert all(column in known for column in columns)
    places = ", ".join([PLACE[connection.dialect.paramstyle]] * len(columns))
    prepared = list(rows)
    if prepared:
        connection.exec_driver_sql(f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({places})", prepared)


class Encoder:
    """Writes the tables of one upload, with every name as its number."""

    def __init__(self, connection: Connection, upload_id: int, run_id: int, device: str | None) -> None:
        """Begin an upload; ``device`` stands for the device of launches that do not name theirs."""
        self.connection = connection
        self.upload_id = upload_id
        self.run_id = run_id
        self.device = device
        self.first = upload_id * LAUNCHES
        self.first_device: int | None = None
        self.first_host: str | None = None
        self.measured_device: str | None = None
        self.items = {"metrics": 0, "rules": 0, "rejects": 0, "characterizations": 0}
        self.names = {
            table: Names(connection, table) for table in ("texts", "kernels", "metric_names", "unit_names", "devices")
        }

    def write(self, name: str, table: pd.DataFrame) -> None:
        """Write a tidy table: launches, metrics, rules, characterizations or rejects."""
        getattr(self, f"_{name}")(table)

    def _next_items(self, name: str, count: int) -> range:
        begin = self.items[name]
        self.items[name] += count
        return range(begin, begin + count)

    def _texts(self, column: "pd.Series[Any]") -> list[int | None]:
        texts = self.names["texts"]
        return [None if text is None else texts[text,] for text in values(column)]

    def _refs(self, column: "pd.Series[Any]") -> list[int]:
        return [self.first if index is None else self.first + index + 1 for index in values(column)]

    def _launches(self, table: pd.DataFrame) -> None:
        indexes, kernels = values(table["launch_index"]), self.names["kernels"]
        devices = [
            self._device(name or self.device, capability)
            for name, capability in zip(values(table["device"]), values(table["compute_capability"]), strict=True)
        ]
        hosts = values(table["host"])
        self.first_device = self.first_device or next(filter(None, devices), None)
        self.first_host = self.first_host or next(filter(None, hosts), None)
        columns: dict[str, Iterable[Any]] = {
            "launch_id": [self.first + index + 1 for index in indexes],
            "upload_id": [self.upload_id] * len(table),
            "run_id": [self.run_id] * len(table),
            "launch_index": indexes,
            "kernel_id": [kernels[kernel,] for kernel in values(table["kernel"])],
            "device_id": devices,
            "host_id": self._texts(table["host"]),
            "process_name_id": self._texts(table["process_name"]),
            **{name: values(table[name]) for name in PLAIN_LAUNCH},
        }
        self._insert("launches", columns)

    def _device(self, name: str | None, capability: str | None) -> int | None:
        return self.names["devices"][name or "", capability or ""] if name or capability else None

    def _metrics(self, table: pd.DataFrame) -> None:
        metrics, units = self.names["metric_names"], self.names["unit_names"]
        names = zip(values(table["metric"]), values(table["section"]), strict=True)
        pairs = zip(values(table["unit"]), values(table["si_unit"]), strict=True)
        columns: dict[str, Iterable[Any]] = {
            "launch_ref": self._refs(table["launch_index"]),
            "item": self._next_items("metrics", len(table)),
            "metric_id": [metrics[metric, section or ""] for metric, section in names],
            "unit_id": [units[unit or "", si_unit or ""] for unit, si_unit in pairs],
            **{name: values(table[name]) for name in ("raw_text", "value", "reason", "line")},
        }
        self._insert("metrics", columns)

    def _rules(self, table: pd.DataFrame) -> None:
        columns: dict[str, Iterable[Any]] = {
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
        columns: dict[str, Iterable[Any]] = {
            "upload_id": [self.upload_id] * len(table),
            "item": self._next_items("rejects", len(table)),
            **{name: values(table[name]) for name in ("line", "lines", "reason", "text")},
        }
        self._insert("rejects", columns)

    def _characterizations(self, table: pd.DataFrame) -> None:
        self.measured_device = self.measured_device or str(table["device"].iloc[0])
        columns: dict[str, Iterable[Any]] = {
            "upload_id": [self.upload_id] * len(table),
            "item": self._next_items("characterizations", len(table)),
            **{name: values(table[name]) for name in ("device", "quantity", "x", "y", "unit", "method", "line")},
        }
        self._insert("characterizations", columns)

    def _insert(self, name: str, columns: dict[str, Iterable[Any]]) -> None:
        insert_rows(self.connection, name, list(columns), zip(*columns.values(), strict=True))
