"""The schemas of the tidy tables that readers yield, and the one check that a table is tidy.

A reader turns bytes into `Batch` objects. A batch holds tidy tables (pandas frames with exactly the columns
below) and the account of the lines it consumed: every line of a file is stored, skipped or rejected.
Units stand in the names. Missing is null, and where a value is null a ``reason`` column says why.

A page with one column per metric has millions of cells; a row of ``metrics`` for each would take ten times the memory.
Such cells stay together in `Wide`; `unpivot` returns the equivalent rows. So do those of a page with one row per
metric, where many launches have the same metrics.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from types import NoneType
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from profsvc.errors import DomainError

DTYPES = {"int": "Int64", "float": "float64", "text": "object"}


@dataclass(frozen=True)
class Column:
    """One column: name, kind (int, float, text), whether it may be null, and what it means."""

    name: str
    kind: str
    nullable: bool
    meaning: str


def columns(*rows: str) -> tuple[Column, ...]:
    """Return columns, each written as ``name | kind | meaning``; a kind with a question mark may be null."""
    parsed = []
    for row in rows:
        name, kind, meaning = (part.strip() for part in row.split("|"))
        parsed.append(Column(name, kind.rstrip("?"), kind.endswith("?"), meaning))
    return tuple(parsed)


TABLES: Mapping[str, tuple[Column, ...]] = {
    "launches": columns(
        "launch_index | int | ordinal of the launch in the file, from 0; with the file it is the launch's identity",
        "source_id    | text? | the ID the tool printed for it",
        "correlation_id | int? | joins it to the call that launched it",
        "process_id   | int? | process that launched it",
        "process_name | text? | name of that process",
        "host         | text? | host name as printed",
        "kernel       | text | full name as printed",
        "device_index | int? | device ordinal as printed",
        "device       | text? | product name of the device",
        "compute_capability | text? | such as 9.0",
        "context      | int? | CUDA context",
        "stream       | int? | CUDA stream",
        "start_ns     | int? | start on the device clock",
        "duration_ns  | float? | execution time; null if the export does not hold it",
        "grid_x       | int? | blocks",
        "grid_y       | int? | blocks",
        "grid_z       | int? | blocks",
        "block_x      | int? | threads",
        "block_y      | int? | threads",
        "block_z      | int? | threads",
        "registers_per_thread | int? | registers; null where a raw page has them as a metric, or not at all",
        "shared_mem_static_bytes | int? | shared memory of a block, as compiled; null in the same way",
        "shared_mem_dynamic_bytes | int? | shared memory of a block, as asked for at launch; null in the same way",
        "line         | int | first line of the launch in the file, from 1",
    ),
    "metrics": columns(
        "launch_index | int? | the launch it belongs to; null for a value of the whole file or of a kernel",
        "kernel       | text? | the kernel of a value over all its launches; null where a launch or the file is meant",
        "invocations  | int? | how many launches, or readings of a board, that value is over",
        "statistic    | text? | which of them it is: avg, min, max or sum; null for the only one",
        "section      | text? | section of the page, where the tool prints one",
        "metric       | text | the tool's own name of the metric, or its label on a details page",
        "raw_text     | text | the cell as it came",
        "unit         | text? | the unit as it came",
        "value        | float? | the number in si_unit; null if the cell is not a number",
        "si_unit      | text? | unit of value",
        "reason       | text? | why value is null",
        "line         | int | line of the cell in the file, from 1",
    ),
    "transfers": columns(
        "kind         | text | HtoD, DtoH, DtoD, PtoP, HtoH, memset, array copies, unified memory traffic",
        "start_ns     | int? | start on the device clock",
        "duration_ns  | float? | null where the tool prints none",
        "bytes        | int? | bytes moved or set",
        "source_memory | text? | kind of memory it came from, as printed",
        "target_memory | text? | kind of memory it went to, as printed",
        "device_index | int? | device ordinal as printed",
        "device       | text? | product name of the device",
        "process_id   | int? | process that asked for it",
        "context      | int? | CUDA context",
        "stream       | int? | CUDA stream",
        "line         | int | line in the file, from 1; row number in a database",
    ),
    "api_calls": columns(
        "name         | text | the call, as printed",
        "start_ns     | int? | start on the host clock of the tool",
        "duration_ns  | float? | null where the tool prints none",
        "process_id   | int? | calling process",
        "thread_id    | int? | calling thread",
        "correlation_id | int? | joins it to what it launched",
        "line         | int | line in the file, from 1; row number in a database",
    ),
    "ranges": columns(
        "name         | text | name of the range or mark",
        "start_ns     | int? | start on the host clock of the tool, UTC where the fact clock says so",
        "duration_ns  | float? | null for a mark or an open range",
        "domain       | text? | domain or category",
        "process_id   | int? | process",
        "thread_id    | int? | thread",
        "active_sms   | int? | SMs that it kept busy, as a log of marks says",
        "launches     | int? | launches in it, as a log of marks says",
        "line         | int | line in the file, from 1; row number in a database",
    ),
    "kernel_summaries": columns(
        "category     | text | kernel, memory, api, os (calls of the system), range, domain: what the row sums up",
        "kernel       | text | name of the kernel, copy, call or range, as printed",
        "calls        | int | how many",
        "total_ns     | float? | sum of their durations; null for a row of sizes",
        "mean_ns      | float? | mean",
        "min_ns       | float? | shortest",
        "max_ns       | float? | longest",
        "total_bytes  | float? | sum of their sizes, for a row of sizes",
        "device_index | int? | device ordinal, where the row is about one",
        "report       | text? | report of nsys stats that has the row; several of them may sum up the same events",
        "line         | int | line in the file, from 1",
    ),
    "sensors": columns(
        "sensor_index | int | ordinal of the sensor in the file, from 0",
        "quantity     | text | power, energy, temperature, clock, utilization, memory, voltage, current, limit, state",
        "name         | text | the channel's own name as printed, such as power.draw.instant",
        "unit         | text | unit of the values, in its name's sense: W, J, degC, Hz, 1, byte, V, A, ...",
        "gpu_index    | int? | GPU the channel is of",
        "device       | text? | product name or UUID of it",
        "x_mm         | float? | place on the die",
        "y_mm         | float? | place on the die",
        "quality      | text? | data-quality warning with its value: stuck, polled faster than it updates, ...",
        "line         | int? | line that names the channel, from 1",
    ),
    "samples": columns(
        "sensor_index | int | the sensor",
        "sample_index | int | ordinal of the reading in the file",
        "time_ns      | int? | UTC since 1970; null where the file's clock has no known zone",
        "local_ns     | int? | the file's own clock as if it were UTC, where its zone is unknown",
        "elapsed_ns   | int? | since the first reading of the file",
        "value        | float? | in the sensor's unit; null if there is none",
        "reason       | text? | why value is null",
        "line         | int | line in the file, from 1",
    ),
    "rules": columns(
        "launch_index | int | the launch it belongs to",
        "section      | text? | section of the page",
        "rule         | text | the tool's name of the rule",
        "rule_type    | text? | OPT, WRN or INF as printed",
        "kind         | text? | global: share of the run time saved; local: share of a unit's inefficiency, not a time",
        "estimated_saving_fraction | float? | the estimate as printed, divided by 100",
        "estimated_speedup | float? | 1 / (1 - saving) for kind global, else null",
        "message      | text | the rule's words",
        "focus_metrics | text? | metrics that it names, as JSON: name, value, severity, info",
        "line         | int | line in the file, from 1",
    ),
    "source_kernels": columns(
        "source_index | int | ordinal of the profiled launch in the file, from 0",
        "launch_index | int? | that launch, where the same file has launches; null on a page that does not number them",
        "kernel       | text | name as printed",
        "line         | int | first line of the launch in the file, from 1",
    ),
    "source_lines": columns(
        "source_index | int | the profiled launch",
        "line_index   | int | ordinal of the row in the file, from 0",
        "kind         | text | line (a source line with the sum of its instructions), instruction (SASS) or ptx",
        "file         | text? | path of the source file; null for an instruction without a source line",
        "source_line  | int? | line in that file, or in the PTX, from 1",
        "source_text  | text? | text of that line; null if the report does not hold it",
        "address      | int? | address of the instruction",
        "sass         | text? | the instruction, with its predicate and operands",
        "opcode       | text? | its opcode with modifiers, such as LDG.E.64",
        "repeated     | int | 1 for an instruction that an earlier row of the launch shows too, else 0",
        "samples      | int? | samples of warps at this place",
        "samples_not_issued | int? | those while the scheduler issued nothing",
        "instructions | int? | warp instructions executed",
        "thread_instructions | int? | the same summed over active threads",
        "thread_instructions_on | int? | the same summed over threads that the predicate leaves on",
        "divergent_branches | int? | branches that split a warp",
        "l2_sectors   | int? | sectors of L2 that its global accesses need",
        "ideal_l2_sectors | int? | the same if the threads of a warp accessed adjacent data",
        "local_l2_sectors | int? | sectors of L2 that its accesses to local memory need",
        "shared_wavefronts | int? | passes through shared memory",
        "ideal_shared_wavefronts | int? | the same without bank conflicts",
        "address_space | text? | memory that it accesses, such as Global",
        "access_operation | text? | such as Load or Atomic",
        "access_size  | text? | bits of a thread",
        "line         | int | line in the file, from 1",
    ),
    "source_stalls": columns(
        "line_index   | int | the row of source_lines",
        "reason       | text | stall reason, by its name in Nsight Compute, such as Long Scoreboard",
        "samples      | int? | samples of warps with it",
        "samples_not_issued | int? | those while the scheduler issued nothing",
        "line         | int | line in the file, from 1",
    ),
    "characterizations": columns(
        "device       | text | product name of the device that was measured",
        "quantity     | text | a function such as F_DRAMThr, or F_ArithThr:fp32 of one unit; a cost such as k_l2_load",
        "x            | float? | place in the sweep of a function; null for a cost measured without one",
        "y            | float | share of the peak for a function; cycles an operation for a cost",
        "unit         | text? | unit of y as it came",
        "method       | text? | how it was measured",
        "line         | int | line in the file, from 1",
    ),
    "rejects": columns(
        "line         | int | first line of the rejected record, from 1",
        "lines        | int | how many lines it spans; 0 where another record has its line",
        "reason       | text | why it was rejected",
        "text         | text | its first 2000 characters",
    ),
}


@dataclass(frozen=True, eq=False)
class WideColumns:
    """What the columns of a wide page are: the tool's name of each metric, its unit as it came, and that of its values.

    ``factors`` bring a number as it came to ``si_units``; ``sections`` are empty where the tool prints none. A page
    makes this once: the same object, the same columns.
    """

    metrics: tuple[str, ...]
    units: tuple[str, ...]
    si_units: tuple[str, ...]
    factors: npt.NDArray[np.float64]
    sections: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class Wide:
    """Cells of launches that follow each other, one row per launch and one column per metric.

    The text of the cells, in UTF-8, lies in ``letters``: that of launch i and column k from ``bounds[i, k, 0]`` to
    ``bounds[i, k, 1]``. An empty cell was not collected and is no metric. ``values`` are the numbers in the columns'
    ``si_units``, NaN where there is none; ``reasons`` say why for every cell (i, k) that is not empty. ``offsets`` is
    how many lines below the first line of its launch a cell stands; None where a launch is one line.
    """

    columns: WideColumns
    first_launch: int
    lines: npt.NDArray[np.int64]
    letters: npt.NDArray[np.uint8]
    bounds: npt.NDArray[np.int32]
    values: npt.NDArray[np.float64]
    reasons: Mapping[tuple[int, int], str] = field(default_factory=dict)
    offsets: npt.NDArray[np.int32] | None = None

    def text(self, launch: int, column: int) -> str:
        """Return a cell as it came."""
        begin, end = self.bounds[launch, column].tolist()
        return self.letters[begin:end].tobytes().decode()

    @cached_property
    def collected(self) -> npt.NDArray[np.bool_]:
        """Which cells are metrics."""
        return self.bounds[:, :, 1] > self.bounds[:, :, 0]


@dataclass(frozen=True)
class Batch:
    """What a reader yields: tidy tables, the account of the lines consumed, and facts about the file.

    ``lines_stored + lines_skipped + lines_rejected`` summed over the batches equals the lines of the file.
    ``facts`` (tool, tool_version, number_format, ...) of later batches override those of earlier ones.
    ``message`` is a sentence for the user about the whole file, such as the error lines of a failed run.
    ``wide`` holds more metrics of launches beside those in ``tables``.
    """

    tables: Mapping[str, pd.DataFrame] = field(default_factory=dict)
    lines_stored: int = 0
    lines_skipped: int = 0
    lines_rejected: int = 0
    facts: Mapping[str, str] = field(default_factory=dict)
    message: str = ""
    wide: Wide | None = None


def frame(name: str, rows: Mapping[str, Sequence[object]]) -> pd.DataFrame:
    """Make a tidy table of ``rows`` (column name to values); columns not given are null.

    >>> frame("rejects", {"line": [3], "lines": [1], "reason": ["cut"], "text": ["1,2"]}).shape
    (1, 4)
    """
    index = pd.RangeIndex(max((len(values) for values in rows.values()), default=0))
    cells = {column.name: _given(column.kind, index, list(rows.get(column.name, []))) for column in TABLES[name]}
    table = pd.DataFrame(cells, index, copy=False)
    if unknown := set(rows) - set(table.columns):
        raise DomainError(f"table {name!r} has no column {sorted(unknown)}; it has {list(table.columns)}")
    return check(name, table)


def frame_of_arrays(name: str, length: int, columns: Mapping[str, Any]) -> pd.DataFrame:
    """Make a tidy table of whole columns without touching single values; columns not given are null.

    A column is an array of ``length`` values, or one value for all rows.

    >>> table = frame_of_arrays("samples", 2, {"sensor_index": 0, "sample_index": 7, "line": np.arange(1, 3)})
    >>> table["line"].tolist(), bool(table["time_ns"].isna().all())
    ([1, 2], True)
    """
    index = pd.RangeIndex(length)
    cells = {column.name: _array(column.kind, index, columns.get(column.name)) for column in TABLES[name]}
    return pd.DataFrame(cells, index, copy=False)


def _given(kind: str, index: pd.RangeIndex, values: list[object]) -> Any:
    length, kinds = len(index), set(map(type, values))
    if len(values) in (0, length) and kinds <= {NoneType}:
        return _array(kind, index, None)
    if kind == "float" and len(values) == length and kinds <= {float, NoneType}:
        return np.array(values, np.float64)
    if kind == "int" and len(values) == length and kinds == {int}:
        return pd.arrays.IntegerArray(np.array(values, np.int64), np.zeros(length, np.bool_))
    if kind == "text" and len(values) == length:
        return _array(kind, index, np.array([*values, None], object)[:-1])
    return pd.Series(values, dtype=DTYPES[kind], index=index)


def _array(kind: str, index: pd.RangeIndex, given: Any) -> Any:
    if kind == "int":
        if isinstance(given, np.ndarray):
            return pd.arrays.IntegerArray(given, np.zeros(len(index), np.bool_))
        if isinstance(given, pd.arrays.IntegerArray):
            return given
        return pd.arrays.IntegerArray(np.full(len(index), given or 0, np.int64), np.full(len(index), given is None))
    if kind == "text":
        # One cell stands for all rows where they are alike: no row of it can be written.
        texts = given if isinstance(given, np.ndarray) else np.broadcast_to(np.array([given], object), len(index))
        return pd.Series(texts, index, dtype=object, copy=False)
    return given if isinstance(given, np.ndarray) else np.full(len(index), np.nan if given is None else given)


def check(name: str, table: pd.DataFrame) -> pd.DataFrame:
    """Return ``table`` unchanged if it is a tidy table ``name``; raise `DomainError` otherwise."""
    if name not in TABLES:
        raise DomainError(f"no tidy table is named {name!r}; there are {sorted(TABLES)}")
    columns = TABLES[name]
    if list(table.columns) != [c.name for c in columns]:
        raise DomainError(f"table {name!r} needs the columns {[c.name for c in columns]} but has {list(table.columns)}")
    for column, dtype in zip(columns, table.dtypes.tolist(), strict=True):
        if dtype != DTYPES[column.kind]:
            raise DomainError(f"{name}.{column.name} must be {DTYPES[column.kind]} but is {dtype}")
        if not column.nullable and (null := pd.isna(table[column.name].array)).any():
            raise DomainError(f"{name}.{column.name} must not be null; row {int(null.argmax())} is")
    return table


def check_wide(wide: Wide) -> Wide:
    """Return ``wide`` unchanged if its parts fit each other; raise `DomainError` otherwise."""
    columns = wide.columns
    shape = (len(wide.lines), len(columns.metrics))
    found = {
        "bounds": wide.bounds.shape == (*shape, 2),
        "values": wide.values.shape == shape,
        "units": len(columns.units) == len(columns.si_units) == len(columns.factors) == shape[1],
        "sections": len(columns.sections) in {0, shape[1]},
        "offsets": wide.offsets is None or wide.offsets.shape == shape,
    }
    if wrong := [name for name, fits in found.items() if not fits]:
        raise DomainError(f"wide metrics of {shape[0]} launches and {shape[1]} columns have others in {wrong}")
    lacking = np.isfinite(wide.values) != wide.collected
    if np.count_nonzero(lacking) != len(wide.reasons) or not all(lacking[cell] for cell in wide.reasons):
        raise DomainError("the cells of wide metrics without a value are not the empty ones and those with a reason")
    if not all(wide.collected[cell] for cell in wide.reasons):
        raise DomainError("an empty cell of wide metrics has a value or a reason")
    return wide


def unpivot(wide: Wide, cells: npt.NDArray[np.bool_] | None = None) -> pd.DataFrame:
    """Return the tidy table ``metrics`` that says what wide metrics do; where ``cells`` are given, only those.

    >>> columns = WideColumns(("cycles", "hit_rate"), ("cycle", "%"), ("cycle", "1"), np.array([1, 0.01]))
    >>> letters, bounds = np.frombuffer(b"750", np.uint8), np.array([[[0, 1], [1, 3]]], np.int32)
    >>> wide = Wide(columns, 0, np.array([3]), letters, bounds, np.array([[7, 0.5]]))
    >>> unpivot(wide)[["launch_index", "metric", "raw_text", "value", "si_unit"]].to_dict("tight")["data"]
    [[0, 'cycles', '7', 7.0, 'cycle'], [0, 'hit_rate', '50', 0.5, '1']]
    """
    shown = wide.collected if cells is None else wide.collected & cells
    rows, places = np.nonzero(shown)
    text, bounds = wide.letters.tobytes(), wide.bounds[rows, places].tolist()
    names = {
        name: np.array([*given, None], object)[:-1]
        for name, given in (
            ("metric", wide.columns.metrics), ("unit", wide.columns.units), ("si_unit", wide.columns.si_units),
            ("section", [section or None for section in wide.columns.sections] or [None] * len(wide.columns.metrics)),
        )
    }  # fmt: skip
    reasons = np.array([wide.reasons.get(cell) for cell in zip(rows.tolist(), places.tolist(), strict=True)], object)
    si_units = names["si_unit"][places]
    si_units[pd.notna(reasons)] = None
    raw = np.empty(len(rows), object)
    raw[:] = [text[begin:end].decode() for begin, end in bounds]
    columns = {
        "launch_index": rows + wide.first_launch,
        "section": names["section"][places],
        "metric": names["metric"][places],
        "raw_text": raw,
        "unit": names["unit"][places],
        "value": wide.values[rows, places],
        "si_unit": si_units,
        "reason": reasons,
        "line": wide.lines[rows] + (0 if wide.offsets is None else wide.offsets[rows, places]),
    }
    return frame_of_arrays("metrics", len(rows), columns)
