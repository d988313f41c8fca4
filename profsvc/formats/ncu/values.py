"""Metric rows of Nsight Compute pages: of a launch, of a kernel over its launches, or of a device.

A summary (``--print-summary``) prints three statistics per metric. A metric that is not a number, or is constant over
launches, has one value without a statistic.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from profsvc.formats.ncu import launches as ncu_launches
from profsvc.formats.parsing.numbers import Numbers
from profsvc.tables import ColumnTable, Table

STATISTICS = ("min", "max", "avg")
_ROW_COLUMNS = ("launch_index", "kernel", "invocations", "statistic", "section", "metric", "line")


@dataclass(frozen=True)
class Subject:
    """The subject of a value: a launch, a kernel over its invocations, or a device or file if both are None."""

    launch_index: int | None = None
    kernel: str | None = None
    invocations: int | None = None
    device_index: int | None = None


def statistics(cells: Sequence[str]) -> list[tuple[str | None, str]]:
    """Return (statistic, cell) of minimum, maximum and average, or of a single value; empty cells are left out.

    >>> statistics(["1", "3", "2"]), statistics(["", "", "132"]), statistics(["n/a"])
    ([('min', '1'), ('max', '3'), ('avg', '2')], [(None, '132')], [(None, 'n/a')])
    """
    if len(cells) == 1 or not any(cells[:-1]):
        return [(None, cells[-1])] if cells[-1] or len(cells) == 1 else []
    return [(name, cell) for name, cell in zip(STATISTICS, cells, strict=True) if cell]


@dataclass
class MetricRows:
    """Gathers metrics and kernel durations until they fill a batch."""

    numbers: Numbers
    scales: ncu_launches.UnitScales = field(default_factory=ncu_launches.UnitScales)
    columns: dict[str, list[object]] = field(default_factory=lambda: {name: [] for name in _ROW_COLUMNS})
    raw: list[str] = field(default_factory=list)
    units: list[str] = field(default_factory=list)
    summaries: list[Mapping[str, object]] = field(default_factory=list)
    newest: int = 0

    def __len__(self) -> int:
        """Return the number of gathered rows."""
        return len(self.raw)

    def add(
        self, subject: Subject, section: str | None, metric: str, line: int, unit: str, cells: Sequence[str]
    ) -> None:
        """Add the value of a metric, or its minimum, maximum and average."""
        self.newest = len(self.raw)
        for statistic, cell in statistics(cells):
            known = (subject.launch_index, subject.kernel, subject.invocations, statistic, section, metric, line)
            for column, value in zip(self.columns.values(), known, strict=True):
                column.append(value)
            self.raw.append(cell)
            self.units.append(unit)

    def extend(self, pieces: Sequence[str]) -> bool:
        """Append a continuation line to the values of the last metric; return whether it has as many."""
        if len(self.raw) - self.newest != len(pieces):
            return False
        for place, piece in enumerate(pieces, self.newest):
            self.raw[place] += piece
        return True

    def add_duration(self, subject: Subject, line: int, unit: str, cells: Sequence[str]) -> None:
        """Add the durations of a kernel; the tool does not print their sum."""
        times = [ncu_launches.duration_ns(self.numbers[cell], unit, self.scales) for cell in cells]
        self.summaries.append({
            "category": "kernel", "kernel": subject.kernel, "calls": subject.invocations,
            **dict(zip(("min_ns", "max_ns", "mean_ns"), times, strict=True)),
            "device_index": subject.device_index, "line": line,
        })  # fmt: skip

    def take(self) -> dict[str, Table]:
        """Return the tables of the gathered rows and clear them."""
        tables: dict[str, Table] = {}
        if self.raw:
            tables["metrics"] = ncu_launches.metric_table(self.columns, self.raw, self.units, self.numbers, self.scales)
        if self.summaries:
            names = self.summaries[0]
            tables["kernel_summaries"] = ColumnTable.of_values(
                "kernel_summaries", {name: [row[name] for row in self.summaries] for name in names}
            )
        self.columns = {name: [] for name in _ROW_COLUMNS}
        self.raw, self.units, self.summaries, self.newest = [], [], [], 0
        return tables
