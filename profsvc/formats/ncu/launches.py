"""Launches, values with units, and line counts, for all readers of Nsight Compute exports."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from profsvc.formats.ncu.csv_lines import Scanner
from profsvc.formats.parsing.ledger import Ledger, whole_number
from profsvc.formats.parsing.numbers import NOT_NUMBERS, NumberFormat, Numbers
from profsvc.formats.parsing.records import Record
from profsvc.formats.parsing.repeated_tables import RepeatedTables
from profsvc.formats.parsing.text import Text
from profsvc.specs import units
from profsvc.tables import Batch, ColumnTable

T = TypeVar("T")
TOOL = "Nsight Compute"
EXPORT_HINT = "export again with: ncu -i REPORT --csv --page raw --print-units base"
MAX_BATCH_LAUNCHES = 64
MAX_REPORTED_ERRORS = 5

DURATION_METRICS = ("gpu__time_duration.sum", "Duration")
DEVICE_NAME_METRICS = ("device__attribute_display_name", "Display Name")
# Metrics of the NVTX ranges around a launch, in a report that the package ncu_report reads.
RANGE_METRICS = {"push_pop": "NVTX Push/Pop Ranges", "start_end": "NVTX Start/End Ranges"}
# Their cells are lists, such as 0,1 or 1 (0-15); their commas are no evidence of the number format.
LIST_METRICS = {
    "launch__tpc_enabled",
    "Enabled TPC IDs",
    "numa__cpu_affinity",
    "numa__id_cpu",
    "numa__id_memory",
    "numa__dev_display_name_all",
    "nvlink__dev_display_name_all",
    "NUMA ID by CPU Affinity",
    "NUMA ID by Memory Affinity",
    "CPU Affinity",
    "Device Names",
    *RANGE_METRICS.values(),
}
# The names of NVTX range columns end with the fields in their cells.
RANGE_SUFFIX = ":Msg_Type:Msg"
INTEGER_METRICS = {
    "Block Size",
    "Elapsed Cycles",
    "Grid Size",
    "Registers Per Thread",
    "Threads",
    "gpc__cycles_elapsed.max",
    "launch__block_size",
    "launch__grid_size",
    "launch__registers_per_thread",
    "launch__thread_count",
    "sm__cycles_elapsed.max",
    "smsp__inst_executed.sum",
}
UNSCALED_UNITS = {"", "ns", "nsecond", "block", "thread", "cycle", "inst", "register/thread"}

_DIMENSIONS = re.compile(r"\(?\s*([0-9]{1,10})\s*,\s*([0-9]{1,10})\s*,\s*([0-9]{1,10})\s*\)?")
_VERSION = re.compile(r"Version ([0-9]{4}\.[0-9]+\.[0-9.]*[0-9])")
_NANOSECONDS = {"ns", "nsecond"}
_LABELLED = re.compile(r".+ \(([\w.:]{3,400})\)")


def holds_integers(metric: str, unit: str) -> bool:
    """Return whether every value of ``metric`` in ``unit`` is an integer."""
    if metric in DURATION_METRICS:
        return unit in _NANOSECONDS
    return unit in UNSCALED_UNITS and (metric in INTEGER_METRICS or metric.startswith("device__attribute_"))


def is_text(metric: str) -> bool:
    """Return whether the values of ``metric`` are lists or names, which may look like numbers."""
    return metric in LIST_METRICS or metric.endswith(RANGE_SUFFIX)


def metric_name(cell: str) -> str:
    """Return the metric name from a cell that may also hold its label (``--print-metric-name label-name``).

    >>> metric_name("Duration (gpu__time_duration.sum)"), metric_name("Max Bandwidth")
    ('gpu__time_duration.sum', 'Max Bandwidth')
    """
    match = _LABELLED.fullmatch(cell)
    return match[1] if match and "__" in match[1] else cell


def parse_dimensions(text: str) -> tuple[int | None, int | None, int | None]:
    """Return the three sizes of a grid or a block; of a range, whose sizes are zeros, none.

    >>> parse_dimensions("(256, 1, 1)"), parse_dimensions("(0, 0, 0)")
    ((256, 1, 1), (None, None, None))
    """
    match = _DIMENSIONS.fullmatch(text.strip())
    sizes = (int(match[1]), int(match[2]), int(match[3])) if match else (0, 0, 0)
    return sizes if any(sizes) else (None, None, None)


class UnitScales(dict[str, tuple[float, str]]):
    """Maps a printed unit to (factor, SI unit); an unknown unit maps to itself."""

    def __init__(self) -> None:
        """Load the units of ``units.csv``."""
        known = units("ncu")
        super().__init__({token: (unit.factor, unit.si_unit) for token, unit in known.items()})

    def __missing__(self, unit: str) -> tuple[float, str]:
        """Return an unknown unit unchanged."""
        return 1.0, unit


def duration_ns(value: float, unit: str, scales: UnitScales) -> float | None:
    """Return a duration in ns; None if ``value`` is NaN or ``unit`` is not a time unit."""
    factor, si_unit = scales[unit]
    # Time factors are powers of ten, at least 1 ns; rounding makes 6.75 us exactly 6750 ns.
    return round(value * round(factor * 1e9), 6) if si_unit == "s" and value == value else None


def estimate_columns(kind: str, percent: float | None) -> dict[str, object]:
    """Return the columns of `rules` for the estimate of a rule, whose kind is global or local.

    >>> list(estimate_columns("global", 75.0).values()), list(estimate_columns("local", 75.0).values())
    (['global', 0.75, 4.0], ['local', 0.75, None])
    """
    saving = None if percent is None else percent / 100
    known = saving is not None and kind == "global" and saving < 1
    return {
        "kind": kind or None,
        "estimated_saving_fraction": saving,
        "estimated_speedup": 1 / (1 - saving) if known and saving is not None else None,
    }


# Column of `launches` -> column of the export, and the conversion of its cells.
_LAUNCH_COLUMNS: Mapping[str, tuple[str, Callable[[str], object]]] = {
    "source_id": ("ID", lambda cell: cell or None),
    "process_id": ("Process ID", whole_number),
    "process_name": ("Process Name", lambda cell: cell or None),
    "host": ("Host Name", lambda cell: cell or None),
    "kernel": ("Kernel Name", str),
    "device_index": ("Device", whole_number),
    "compute_capability": ("CC", lambda cell: cell or None),
    "context": ("Context", whole_number),
    "stream": ("Stream", whole_number),
}


def _convert_distinct(meaning: Callable[[str], T], cells: Sequence[str]) -> list[T]:
    known = {cell: meaning(cell) for cell in set(cells)}
    return [known[cell] for cell in cells]


COMPLETED = ("device", "duration_ns")
"""Columns of `launches` that rows of metrics give."""


@dataclass
class LaunchTable:
    """The launches of a batch by column; values can be filled in until the batch is yielded."""

    columns: dict[str, list[object]] = field(default_factory=dict)
    lacking: dict[str, bytearray] = field(default_factory=lambda: {name: bytearray() for name in COMPLETED})
    """Of each launch that was yielded whether it lacks the column."""

    def __len__(self) -> int:
        """Return the number of launches in the batch."""
        return len(self.columns.get("launch_index", ()))

    def add(self, index: int, line: int, cells: Mapping[str, str]) -> None:
        """Add the launch with the identity ``cells``, by column name of the export."""
        self.extend(index, [line], {name: [cell] for name, cell in cells.items()})

    def extend(self, first: int, lines: Sequence[int], cells: Mapping[str, Sequence[str]]) -> None:
        """Add consecutive launches; ``cells`` are their identity columns."""
        nothing = [""] * len(lines)
        columns: dict[str, Sequence[object]] = {
            "launch_index": range(first, first + len(lines)),
            "line": lines,
            "device": [None] * len(lines),
            "duration_ns": [None] * len(lines),
        }
        for column, (name, meaning) in _LAUNCH_COLUMNS.items():
            columns[column] = _convert_distinct(meaning, cells.get(name, nothing))
        for name in ("grid", "block"):
            sizes = _convert_distinct(parse_dimensions, cells.get(f"{name.title()} Size", nothing))
            for axis, along in zip("xyz", zip(*sizes, strict=True), strict=True):
                columns[f"{name}_{axis}"] = along
        for column, values in columns.items():
            self.columns.setdefault(column, []).extend(values)

    def complete(self, index: int, column: str, value: object) -> bool:
        """Set an empty column of launch ``index``; return False if the launch was yielded without it."""
        first = len(self.lacking[column])
        if index < first:
            return value is None or not self.lacking[column][index]
        if self.columns[column][index - first] is None:
            self.columns[column][index - first] = value
        return True

    def take(self) -> ColumnTable:
        """Return the table and start a new one."""
        columns, self.columns = self.columns, {}
        for name in COMPLETED:
            self.lacking[name] += bytes(value is None for value in columns[name])
        return ColumnTable.of_values("launches", columns)


def metric_table(
    rows: Mapping[str, Sequence[object]],
    raw: Sequence[str],
    unit: Sequence[str],
    numbers: Numbers,
    scales: UnitScales,
    read: NDArray[np.float64] | None = None,
) -> ColumnTable:
    """Return a table of metrics: ``rows`` are its other columns, ``raw`` and ``unit`` the raw cells.

    ``read`` are the numbers of ``raw``, if the caller already has them.
    """
    scaled = [scales[token] for token in unit]
    with np.errstate(over="ignore"):
        values = np.fromiter(map(numbers.__getitem__, raw), np.float64, len(raw)) if read is None else read
        values = values * np.fromiter((factor for factor, _ in scaled), np.float64, len(raw))
    values[~np.isfinite(values)] = np.nan
    reasons: list[str | None] = [None] * len(raw)
    for place in np.flatnonzero(np.isnan(values)).tolist():
        reasons[place] = numbers.reason(raw[place])
    for place in [place for place, metric in enumerate(rows["metric"]) if is_text(str(metric))]:
        values[place] = np.nan
        reasons[place] = reasons[place] if reasons[place] in NOT_NUMBERS.values() else "text"
    si_units = [None if reason else si_unit for reason, (_, si_unit) in zip(reasons, scaled, strict=True)]
    cells = {"raw_text": raw, "unit": unit, "value": values.tolist(), "si_unit": si_units, "reason": reasons}
    return ColumnTable.of_values("metrics", {**rows, **cells})


@dataclass
class NcuLedger(Ledger):
    """The line counts of a file, and what the banners of Nsight Compute report."""

    errors: list[str] = field(default_factory=list)
    facts: dict[str, str] = field(default_factory=dict)

    def note_skipped(self, text: str) -> None:
        """Keep the errors and the version that a banner reports."""
        if (text.startswith("==ERROR==") or "No kernels were profiled" in text) and len(
            self.errors
        ) < MAX_REPORTED_ERRORS:
            self.errors.append(text.strip()[:500])
        if match := _VERSION.search(text):
            self.facts.setdefault("tool_version", match[1])

    def last(
        self, text: Text, page: str, layout: str, number_format: NumberFormat, launches: int, message: str = ""
    ) -> Batch:
        """Return the last batch: facts, and a message without a launch, or if the tool reported errors."""
        facts = {
            "tool": TOOL,
            "page": page,
            "layout": layout,
            "number_format": str(number_format),
            "encoding": text.encoding,
            **self.facts,
        }
        errors = "; ".join(self.errors)
        if not launches:
            found = "banners and program output only" if page == "text" else "a header but no complete row"
            if self.first_reason:
                found = f"no readable {'metric' if page == 'text' else 'row'}; {self.first_reason}"
            found = f"{found}; {message}" if message else found
            message = f"no launches: {errors or f'the file holds {found}'}; profile or export again"
        elif errors:
            message = f"{errors}; {message}" if message else errors
        return self.batch({}, facts, message)


class PageReader(ABC):
    """Reads a page in blocks where it is regular, else line by line; every line is counted once."""

    def __init__(self, text: Text, page: str) -> None:
        """Start at the first line of ``text``, with ``page`` as the scanner of lines names it."""
        self.text, self.ledger = text, NcuLedger()
        self.scanner, self.repeated = Scanner(page), RepeatedTables(text)
        self.widths: list[str] = []
        self.line = 1

    @abstractmethod
    def take_record(self, record: Record) -> Iterator[Batch]:
        """Take a record that was read line by line."""

    def pass_block(self, rows: int) -> None:
        """Count the lines of a block that was taken as a whole."""
        for record in self.scanner.rows_follow():
            self.ledger.add(record)
        self.ledger.stored += rows
        self.repeated.passed(self.line, self.line + rows - 1)
        self.line += rows

    def take_lines(self, lines: list[str]) -> Iterator[Batch]:
        """Take lines one by one, without those of a table that the file has twice."""
        for line in lines:
            covered = self.repeated.covers(self.line)
            self.ledger.skipped += covered
            for record in () if covered else self.scanner.feed(self.line, line):
                yield from self.take_record(record)
            self.line += 1
