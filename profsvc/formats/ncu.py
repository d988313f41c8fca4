"""What the readers of Nsight Compute exports share: launches, values with units, notes, and the account of lines."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from profsvc.formats.ncu_lines import HEADER, REJECT, SKIP, UNITS, Record
from profsvc.formats.numbers import NOT_NUMBERS, NumberFormat, Numbers
from profsvc.formats.stream import Text
from profsvc.specs import units
from profsvc.tables import Batch, Wide, frame

T = TypeVar("T")
TOOL = "Nsight Compute"
EXPORT_AGAIN = "export again with: ncu -i REPORT --csv --page raw --print-units base"
BATCH_LAUNCHES = 64
BATCH_REJECTS = 1000
ERRORS_SHOWN = 5

DURATIONS = ("gpu__time_duration.sum", "Duration")
DEVICE_NAMES = ("device__attribute_display_name", "Display Name")
# Their cells are lists, such as 0,1 or 1 (0-15): a comma in them says nothing about numbers.
LISTS = {
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
}
# The columns of NVTX ranges are named after the fields in their cells.
RANGES = ":Msg_Type:Msg"
INTEGERS = {
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
UNSCALED = {"", "ns", "nsecond", "block", "thread", "cycle", "inst", "register/thread"}

_DIMENSIONS = re.compile(r"\(?\s*([0-9]{1,10})\s*,\s*([0-9]{1,10})\s*,\s*([0-9]{1,10})\s*\)?")
_VERSION = re.compile(r"Version ([0-9]{4}\.[0-9]+\.[0-9.]*[0-9])")
_NANOSECONDS = {"ns", "nsecond"}
_LABELLED = re.compile(r".+ \(([\w.:]{3,400})\)")


def holds_integers(metric: str, unit: str) -> bool:
    """Tell whether every value of ``metric`` in ``unit`` is a whole number."""
    if metric in DURATIONS:
        return unit in _NANOSECONDS
    return unit in UNSCALED and (metric in INTEGERS or metric.startswith("device__attribute_"))


def is_text(metric: str) -> bool:
    """Tell whether the values of ``metric`` are lists or names, which may look like numbers and are none."""
    return metric in LISTS or metric.endswith(RANGES)


def metric_name(cell: str) -> str:
    """Return the metric of a cell that may hold its label too, as ``--print-metric-name label-name`` prints it.

    >>> metric_name("Duration (gpu__time_duration.sum)"), metric_name("Max Bandwidth")
    ('gpu__time_duration.sum', 'Max Bandwidth')
    """
    match = _LABELLED.fullmatch(cell)
    return match[1] if match and "__" in match[1] else cell


def whole_number(text: str) -> int | None:
    """Return ``text`` as an integer; None if it is not one.

    >>> whole_number("7"), whole_number("n/a")
    (7, None)
    """
    return int(text) if text.isascii() and text.isdigit() and len(text) < 19 else None


def dimensions(text: str) -> tuple[int | None, int | None, int | None]:
    """Return the three sizes of a grid or a block.

    >>> dimensions("(256, 1, 1)")
    (256, 1, 1)
    """
    match = _DIMENSIONS.fullmatch(text.strip())
    return (int(match[1]), int(match[2]), int(match[3])) if match else (None, None, None)


class Scales(dict[str, tuple[float, str]]):
    """Unit as printed to (factor, unit of the product); an unknown unit is left as it is."""

    def __init__(self) -> None:
        """Begin with the units of ``units.csv``."""
        known = units("ncu")
        super().__init__({token: (unit.factor, unit.si_unit) for token, unit in known.items()})

    def __missing__(self, unit: str) -> tuple[float, str]:
        """Keep a unit that we do not know."""
        return 1.0, unit


def duration_ns(value: float, unit: str, scales: Scales) -> float | None:
    """Return a duration in ns; None if ``value`` is not a number or ``unit`` is not a time."""
    factor, si_unit = scales[unit]
    # The factors of times are powers of ten from 1 ns up: rounding makes 6.75 us exactly 6750 ns.
    return round(value * round(factor * 1e9), 6) if si_unit == "s" and value == value else None


# Column of `launches` -> column of the export, and what its cell means.
_IDENTITY: Mapping[str, tuple[str, Callable[[str], object]]] = {
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


def _each(meaning: Callable[[str], T], cells: Sequence[str]) -> list[T]:
    known = {cell: meaning(cell) for cell in set(cells)}
    return [known[cell] for cell in cells]


@dataclass
class Launches:
    """The launches of a batch, column by column; rows may still be completed until the batch is yielded."""

    columns: dict[str, list[object]] = field(default_factory=dict)

    def __len__(self) -> int:
        """Count the launches of the batch."""
        return len(self.columns.get("launch_index", ()))

    def add(self, index: int, line: int, cells: Mapping[str, str]) -> None:
        """Add the launch whose identity cells are ``cells``, by column name of the export."""
        self.extend(index, [line], {name: [cell] for name, cell in cells.items()})

    def extend(self, first: int, lines: Sequence[int], cells: Mapping[str, Sequence[str]]) -> None:
        """Add launches that follow each other, whose identities are the columns ``cells``."""
        nothing = [""] * len(lines)
        columns: dict[str, Sequence[object]] = {
            "launch_index": range(first, first + len(lines)),
            "line": lines,
            "device": [None] * len(lines),
            "duration_ns": [None] * len(lines),
        }
        for column, (name, meaning) in _IDENTITY.items():
            columns[column] = _each(meaning, cells.get(name, nothing))
        for name in ("grid", "block"):
            sizes = _each(dimensions, cells.get(f"{name.title()} Size", nothing))
            for axis, along in zip("xyz", zip(*sizes, strict=True), strict=True):
                columns[f"{name}_{axis}"] = along
        for column, values in columns.items():
            self.columns.setdefault(column, []).extend(values)

    def complete(self, index: int, column: str, value: object) -> None:
        """Set a column of launch ``index`` that has no value yet, if the launch is still in this batch."""
        place = index - int(str(self.columns["launch_index"][0])) if len(self) else -1
        if 0 <= place < len(self) and self.columns[column][place] is None:
            self.columns[column][place] = value

    def take(self) -> pd.DataFrame:
        """Return the table and begin a new one."""
        columns, self.columns = self.columns, {}
        return frame("launches", columns)


def metric_table(
    rows: Mapping[str, Sequence[object]],
    raw: Sequence[str],
    unit: Sequence[str],
    numbers: Numbers,
    scales: Scales,
    read: NDArray[np.float64] | None = None,
) -> pd.DataFrame:
    """Build a table of metrics: ``rows`` are its other columns, ``raw`` and ``unit`` the cells as they came.

    ``read`` are the numbers of ``raw``, where the caller has them already.
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
    return frame("metrics", {**rows, **cells})


@dataclass
class Ledger:
    """Counts the lines of every record, keeps the rejects of the batch and what the banners say."""

    stored: int = 0
    skipped: int = 0
    rejected: int = 0
    rejects: list[Record] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    facts: dict[str, str] = field(default_factory=dict)
    first_reason: str = ""

    def take(self, record: Record) -> None:
        """Account for ``record``."""
        if record.kind == REJECT:
            self.first_reason = self.first_reason or f"line {record.line}: {record.reason}"
            self.rejected += record.lines
            self.rejects.append(record)
        elif record.kind == SKIP:
            self.skipped += record.lines
            self._note(record.text)
        elif record.kind in (HEADER, UNITS):
            self.skipped += record.lines
        else:
            self.stored += record.lines

    def _note(self, text: str) -> None:
        if (text.startswith("==ERROR==") or "No kernels were profiled" in text) and len(self.errors) < ERRORS_SHOWN:
            self.errors.append(text.strip()[:500])
        if match := _VERSION.search(text):
            self.facts.setdefault("tool_version", match[1])

    @property
    def full(self) -> bool:
        """Whether the rejects should be handed on."""
        return len(self.rejects) >= BATCH_REJECTS

    def batch(
        self,
        tables: dict[str, pd.DataFrame],
        facts: Mapping[str, str] | None = None,
        message: str = "",
        wide: Wide | None = None,
    ) -> Batch:
        """Hand on the counts, and the rejects as a table, beside ``tables`` and ``wide`` metrics."""
        if self.rejects:
            rows = sorted(self.rejects, key=lambda record: record.line)
            columns: dict[str, Sequence[object]] = {
                "line": [row.line for row in rows],
                "lines": [row.lines for row in rows],
                "reason": [row.reason for row in rows],
                "text": [row.text for row in rows],
            }
            tables = {**tables, "rejects": frame("rejects", columns)}
        batch = Batch(tables, self.stored, self.skipped, self.rejected, facts or {}, message, wide)
        self.stored = self.skipped = self.rejected = 0
        self.rejects = []
        return batch

    def last(
        self, text: Text, page: str, layout: str, number_format: NumberFormat, launches: int, message: str = ""
    ) -> Batch:
        """Hand on the end of the file: its facts, and a message if it holds no launch or the tool reported errors."""
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
            found = "banners and program output only" if page == "text" else "a header but no whole row"
            if page == "text" and self.first_reason:
                found = f"no metric that can be taken; {self.first_reason}"
            message = f"no launches: {errors or f'the file holds {found}'}; profile or export again"
        elif errors:
            message = f"{errors}; {message}" if message else errors
        return self.batch({}, facts, message)


def numbered(text: Text) -> Iterator[tuple[int, str]]:
    """Yield the physical lines of ``text`` with their numbers, from 1."""
    return enumerate(text.lines(), 1)
