"""What the tests of readers share: one call that reads a whole file and sums up its batches."""

import io
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import pandas as pd
import pytest

from profsvc import formats
from profsvc.formats.parsing.stream import open_stream
from profsvc.tables import TABLES, Batch, frame, unpivot
from profsvc.tables.column_tables import ColumnTable, Table, as_frames

Row = dict[str, object]
# Cells that one reader of numbers takes and another does not, or to another value.
ODD_NUMBERS = (
    "0x1F", "0X1f", "-0x1F", "0x", "0b1", "007", "-0", "+5", " 5", "5 ", "5.", ".5", "1e3", "1E+3", "1e-400", "1e400",
    "Inf", "-inf", "nan", "-NaN", "null", "1_000", "1 000", "--5", "5-", "1.5.0", "1d3", "\u0663", "5\u00a0",
    "9223372036854775808", "-9223372036854775808", "9" * 25, "123456789012345678901234567890.5", "4.9e-324",
)  # fmt: skip


def long(batch: Batch) -> Batch:
    """A batch whose metrics all stand in its table of metrics."""
    if batch.wide is None:
        return batch
    parts = [table for name, table in batch.tables.items() if name == "metrics"] + [unpivot(batch.wide)]
    metrics = pd.concat(parts, ignore_index=True).sort_values("line", kind="stable", ignore_index=True)
    return replace(batch, tables=as_frames({**batch.given, "metrics": metrics}), wide=None)


def rows_of(table: Table) -> list[Row]:
    """The rows of a table with None for what is NA, None, or not equal to itself; to_dict takes ten times as long.

    Of columns as a reader gave them no frame is made, which takes longer than to read a short file.
    """
    columns = table.columns.items() if isinstance(table, ColumnTable) else table.items()
    lists = {
        str(key): [None if v is pd.NA or v is None or v != v else v for v in column.tolist()] for key, column in columns
    }
    return [dict(zip(lists, cells, strict=True)) for cells in zip(*lists.values(), strict=True)]


@dataclass
class Content:
    """The batches of a file, put together."""

    reader: str
    batches: Sequence[Batch]

    def __post_init__(self) -> None:
        self.batches = [long(batch) for batch in self.batches]

    @cached_property
    def tables(self) -> dict[str, pd.DataFrame]:
        return {name: self._table(name) for name in TABLES}

    def _table(self, name: str) -> pd.DataFrame:
        """One table alone, for to make all of them takes longer than to read a short file."""
        parts = [b.tables[name] for b in self.batches if name in b.tables]
        return pd.concat(parts, ignore_index=True) if parts else frame(name, {})

    def rows(self, name: str) -> Iterator[Row]:
        """The rows of a table with None for what is missing; many times faster than through ``tables``."""
        for batch in self.batches:
            if name in batch.given:
                yield from rows_of(batch.given[name])

    @property
    def stored(self) -> int:
        return sum(b.lines_stored for b in self.batches)

    @property
    def skipped(self) -> int:
        return sum(b.lines_skipped for b in self.batches)

    @property
    def rejected(self) -> int:
        return sum(b.lines_rejected for b in self.batches)

    @property
    def facts(self) -> dict[str, str]:
        return {key: value for b in self.batches for key, value in b.facts.items()}

    @property
    def message(self) -> str:
        return "; ".join(b.message for b in self.batches if b.message)

    def __getattr__(self, name: str) -> pd.DataFrame:
        if name not in TABLES:
            raise AttributeError(name)
        return self.__dict__.setdefault(name, self._table(name))


def read_all(source: bytes | Path, reader_name: str | None = None) -> Content:
    data = source.read_bytes() if isinstance(source, Path) else source
    reader, batches = formats.read(io.BytesIO(data), reader_name)
    return Content(reader.NAME, list(batches))


# What tells the values of one line apart, in any form of its file.
IDENTITY = ("line", "launch", "sensor", "metric", "statistic", "kernel", "name", "rule", "start_ns", "source_id")
# The cell as it came, and what follows from the place of a row among others.
NO_VALUES = ("raw_text", "reason", "method", "launch_index", "sensor_index", "sample_index", "elapsed_ns")


def values_of(content: Content) -> set[tuple[object, ...]]:
    """Every value of a file as (table, line, ..., column, value), to be compared with another form of the file."""
    launches = {row["launch_index"]: row["line"] for row in content.rows("launches")}
    sensors = {
        row["sensor_index"]: tuple(row[key] for key in ("name", "gpu_index", "device", "unit", "quantity"))
        for row in content.rows("sensors")
    }
    found = set()
    for name in sorted(TABLES.keys() - {"sensors", "rejects"}):
        for row in content.rows(name):
            row["sensor"], row["launch"] = sensors.get(row.get("sensor_index")), launches.get(row.get("launch_index"))
            key = (name, *(row.get(part) for part in IDENTITY))
            found |= {
                (*key, column, value) for column, value in row.items() if value is not None and column not in NO_VALUES
            }
    return found


def count_lines(source: bytes | Path) -> int:
    """Count physical lines without the code under test."""
    data = open_stream(source).read() if isinstance(source, Path) else source
    if data[:2] in (b"\xff\xfe", b"\xfe\xff"):
        data = data.decode("utf-16", errors="replace").encode()
    elif len(data) > 15 and all(data[:64:2]) and not any(data[1:64:2]):
        data = data.decode("utf-16-le", errors="replace").encode()
    elif len(data) > 15 and all(data[1:64:2]) and not any(data[:64:2]):
        data = data.decode("utf-16-be", errors="replace").encode()
    else:
        data = data.removeprefix(b"\xef\xbb\xbf")
    return data.count(b"\n") + (not data.endswith(b"\n") and data != b"")


@pytest.fixture(scope="session", name="read_all")
def _read_all() -> Callable[..., Content]:
    return read_all


@pytest.fixture(scope="session", name="values_of")
def _values_of() -> Callable[[Content], set[tuple[object, ...]]]:
    return values_of


@pytest.fixture(scope="session", name="count_lines")
def _count_lines() -> Callable[[bytes | Path], int]:
    return count_lines
