"""Converts rows of ``nsys stats`` reports, in any output form, to rows of tidy tables."""

import re
from collections.abc import Callable, Iterable, Mapping
from decimal import Decimal

from profsvc.errors import BrokenInputError
from profsvc.formats.nsys.layouts import (
    API_TRACE,
    EXEC_TRACE,
    GPU_TRACE,
    KERNEL_GRID_SUM,
    KERNEL_TIME_COLUMNS,
    MPI_TRACE,
    NVTX_TRACE,
    TIME_COLUMNS,
    TOOL,
    Layout,
    unit_factor,
)
from profsvc.formats.nsys.total_rows import TotalRows
from profsvc.formats.parsing.copy_kinds import copy_kind
from profsvc.formats.parsing.embedded_tables import (
    MAX_INTEGER,
    Rows,
    collect_number_evidence,
    parse_integer,
    parse_scaled,
)
from profsvc.formats.parsing.numbers import Evidence, NumberFormat, Numbers
from profsvc.formats.parsing.records import HEADER, MAX_TEXT_CHARS, REJECT, ROW, Record
from profsvc.tables import Batch

_DEVICE = re.compile(r"(.*\S) \(([0-9]{1,9})\)")
_NANO = Decimal(10**9)


def parse_device(cell: str | None) -> tuple[str | None, int | None]:
    """Return the name of a device, and its number if it has one.

    >>> parse_device("NVIDIA H200 (0)"), parse_device("CPU"), parse_device("")
    (('NVIDIA H200', 0), ('CPU', None), (None, None))
    """
    match = _DEVICE.fullmatch(cell or "")
    return (match[1], int(match[2])) if match else (cell or None, None)


class _Row:
    """One row of a report, with cells by column name; ``above`` are the rows above it."""

    def __init__(self, layout: Layout, record: Record, numbers: Numbers, above: TotalRows) -> None:
        self.layout, self.cells, self.line, self.numbers = layout, record.cells, record.line, numbers
        self.above = above

    def text(self, name: str) -> str | None:
        place = self.layout.places.get(name)
        return (self.cells[place] if place is not None else "") or None

    def whole(self, name: str) -> int | None:
        return parse_integer(self.text(name) or "", self.numbers, name, self.line)

    def must(self, name: str) -> int:
        value = self.whole(name)
        if value is None:
            raise ValueError(f"{name} is empty")
        return value

    def time(self, name: str) -> Decimal | None:
        """Return a time in ns."""
        factor = unit_factor(self.layout.units.get(name), "s")
        if factor is None:
            return None
        cell = self.text(name) or ""
        if self.layout.units[name] == "ns" and name in (*TIME_COLUMNS, *KERNEL_TIME_COLUMNS):
            value = parse_integer(cell, self.numbers, name, self.line)
            return None if value is None else Decimal(value)
        return parse_scaled(cell, factor * _NANO, self.numbers, name)

    def start(self, name: str = "Start") -> int:
        value = self.time(name)
        if value is None:
            raise ValueError(f"{name} is empty")
        return round(value)

    def length(self, name: str = "Duration") -> float | None:
        value = self.time(name)
        if value is not None and value < 0:
            raise ValueError(f"{name} is negative")
        return None if value is None else float(value)

    def size(self, name: str) -> Decimal | None:
        factor = unit_factor(self.layout.units.get(name), "byte")
        return None if factor is None else parse_scaled(self.text(name) or "", factor, self.numbers, name)


def _copied_bytes(row: _Row, duration: float | None) -> int | None:
    """Return the bytes of a copy; the printed megabytes have only 3 decimals.

    The tool prints bytes * (1e9 // duration) as the throughput, which gives the exact bytes. A result that does not
    match the printed megabytes is not used.
    """
    printed, cell = row.size("Bytes"), row.text("Bytes") or ""
    if printed is None or row.layout.units["Bytes"] == "B":
        return None if printed is None else round(printed)
    rate = unit_factor(row.layout.units.get("Throughput"), "byte/s")
    passed = parse_scaled(row.text("Throughput") or "", rate, row.numbers, "Throughput") if rate else None
    number = row.numbers.exact(cell)
    exponent = number.as_tuple().exponent if number is not None else None
    if passed and duration and 1 <= duration <= 1e9 and isinstance(exponent, int):
        found = round(passed / (10**9 // int(duration)))
        half = (unit_factor(row.layout.units["Bytes"], "byte") or 0) * Decimal(5).scaleb(exponent - 1)
        if abs(found - printed) <= half:
            return found
    return round(printed) or None


# Columns that are metrics: the unit of each, and the column of the launch that also holds it.
METRICS = {
    "Reg/Trd": ("register/thread", "registers_per_thread"),
    "StcSMem": ("byte/block", "shared_mem_static_bytes"),
    "DymSMem": ("byte/block", "shared_mem_dynamic_bytes"),
}


def metric_factor(layout: Layout, name: str) -> Decimal | None:
    """Return the factor to SI units of a column of `METRICS`; None if its unit is unknown."""
    return Decimal(1) if name == "Reg/Trd" else unit_factor(layout.units.get(name), "byte")


def parse_metric(layout: Layout, name: str, cell: str, numbers: Numbers) -> dict[str, object]:
    """Return a cell of a column of `METRICS` as a metric; raise `ValueError` if it is not a number."""
    factor = metric_factor(layout, name)
    value = parse_scaled(cell, factor, numbers, name) if factor is not None else None
    known = value is not None
    return {
        "metric": f"trace:'{layout.header[layout.places[name]]}'",
        "raw_text": cell,
        "unit": layout.units.get(name),
        "value": float(value) if value is not None else None,
        "si_unit": METRICS[name][0] if known else None,
        "reason": None if known else "no unit",
    }


def metric_value(value: object) -> int | None:
    """Return a metric as an integer for the column of the launch; None if it is not an integer."""
    return int(value) if isinstance(value, float) and value.is_integer() and abs(value) < MAX_INTEGER else None


def is_copy(name: str) -> bool:
    """Return whether the name of a row without a grid is a copy or a memset."""
    return name.startswith("[CUDA ") and "mem" in name.lower()


def _gpu_trace(row: _Row, rows: Rows) -> None:
    name, duration = row.text("Name"), row.length()
    device, index = parse_device(row.text("Device"))
    common: dict[str, object] = {
        "start_ns": row.start(),
        "duration_ns": duration,
        "device_index": index,
        "device": device,
        "context": row.whole("Ctx"),
        "stream": row.whole("Strm"),
        "line": row.line,
    }
    if name is None:
        raise ValueError("Name is empty")
    if row.text("GrdX") is not None:
        shape = {f"grid_{axis.lower()}": row.whole(f"Grd{axis}") for axis in "XYZ"}
        shape |= {f"block_{axis.lower()}": row.whole(f"Blk{axis}") for axis in "XYZ"}
        cells = {name: cell for name in METRICS if (cell := row.text(name)) is not None}
        metrics = {name: parse_metric(row.layout, name, cell, row.numbers) for name, cell in cells.items()}
        own = {METRICS[name][1]: metric_value(metric["value"]) for name, metric in metrics.items()}
        launch = {**common, **shape, **own, "kernel": name, "correlation_id": row.whole("CorrId")}
        rows.add_launch(launch, metrics.values())
    elif is_copy(name):
        kind, copied = copy_kind(name), _copied_bytes(row, duration)
        source, target = row.text("SrcMemKd"), row.text("DstMemKd")
        if kind == "memset":  # For a memset the first of the two columns holds the memory.
            source, target = None, target or source
        memory = {"source_memory": source, "target_memory": target}
        rows.add("transfers", {**common, **memory, "kind": kind, "bytes": copied})
    else:
        raise ValueError("neither a kernel (it has no grid) nor a copy or memset")


def _call(row: _Row, rows: Rows) -> None:
    found = {
        "name": row.text("Name") or "",
        "start_ns": row.start(),
        "duration_ns": row.length(),
        "process_id": row.whole("PID"),
        "thread_id": row.whole("TID"),
        "correlation_id": row.whole("CorrId"),
        "line": row.line,
    }
    rows.add("api_calls", found)


def _sizes(row: _Row, part: str) -> dict[str, int]:
    """Return the three sizes of a grid or a block from one cell."""
    cells = (row.text(f"{part.title()}XYZ") or "").split()
    if len(cells) != 3 or not all(cell.isascii() and cell.isdigit() for cell in cells):
        raise ValueError(f"{part.title()}XYZ holds {len(cells)} sizes, not three whole numbers")
    return {f"{part}_{axis}": int(cell) for axis, cell in zip("xyz", cells, strict=True)}


def _execution(row: _Row, rows: Rows) -> None:
    """Store a kernel as a launch; the call and queue times are its metrics."""
    name = row.text("Kernel Name")
    if name is None:
        raise ValueError("Kernel Name is empty")
    launch = {
        "kernel": name,
        "start_ns": row.start("Kernel Start"),
        "duration_ns": row.length("Kernel Dur"),
        "process_id": row.whole("PID"),
        "device_index": row.whole("DevId"),
        **_sizes(row, "grid"),
        **_sizes(row, "block"),
        "line": row.line,
    }
    waits = [name for name in ("API Dur", "Queue Dur", "Total Dur") if row.text(name)]
    metrics: list[dict[str, object]] = []
    for name in waits:
        value = row.time(name)
        known = None if value is None else float(value / _NANO)
        found = {"metric": f"trace:'{row.layout.header[row.layout.places[name]]}'", "raw_text": row.text(name)}
        reason = "no unit" if known is None else None
        unit = {"unit": row.layout.units.get(name), "si_unit": None if reason else "s"}
        metrics.append({**found, **unit, "value": known, "reason": reason})
    rows.add_launch(launch, metrics)


def _range(row: _Row, rows: Rows, name: str = "Name", domain: str | None = None) -> None:
    found = {
        "name": row.text(name) or "",
        "domain": domain,
        "start_ns": row.start(),
        "duration_ns": row.length(),
        "process_id": row.whole("PID"),
        "thread_id": row.whole("TID"),
        "line": row.line,
    }
    rows.add("ranges", found)


def _summary(row: _Row, rows: Rows, category: str, name: str, calls: str) -> None:
    units = row.layout.units
    inherited = {"Avg", "Min", "Max"} & set(row.layout.places) - set(units)
    found: dict[str, object] = {
        "category": category,
        "kernel": row.text(name) or "",
        "calls": row.must(calls),
        "total_ns": row.length("Total Time"),
        "mean_ns": row.length("Avg"),
        "min_ns": row.length("Min"),
        "max_ns": row.length("Max"),
        "report": row.layout.report,
        "line": row.line,
    }
    if "Total" in row.layout.places and "Total Time" not in row.layout.places:
        size = row.size("Total")
        found |= {"total_bytes": None if size is None else float(size), "mean_ns": None, "min_ns": None, "max_ns": None}
    elif inherited and "Avg" in row.layout.places:
        # Old versions print the unit in the first header only; the values must then agree with it.
        factor = unit_factor(units["Total Time"], "s")
        for column, key in (("Avg", "mean_ns"), ("Min", "min_ns"), ("Max", "max_ns")):
            value = parse_scaled(row.text(column) or "", (factor or 0) * _NANO, row.numbers, column)
            found[key] = None if value is None else float(value)
        total, mean = found["total_ns"], found["mean_ns"]
        agree = isinstance(total, float) and isinstance(mean, float)
        if not agree or abs(float(str(total)) - float(str(mean)) * row.must(calls)) > 0.01 * float(str(total)) + 1:
            raise ValueError("Average has no unit, and does not match Total Time in its unit")
    row.above.check(str(found["kernel"]), row.time("Total Time") if "Total Time" in units else row.size("Total"))
    rows.add("kernel_summaries", found)


_CATEGORIES = {"CUDA_KERNEL": "kernel", "MEMORY_OPER": "memory", "CUDA_API": "api"}


def _mixed_summary(row: _Row, rows: Rows) -> None:
    category = _CATEGORIES.get(row.text("Category") or "")
    if category is None:
        raise ValueError(f"Category is {row.text('Category')!r}, not one of {', '.join(_CATEGORIES)}")
    _summary(row, rows, category, "Operation", "Instances")


# All reports of calls have the same columns; only names of API calls have these prefixes.
_API_CALL = re.compile(r"_*(?:cu|cuda|vk|gl|glX|wgl|egl|xr)[A-Z]")


def _call_summary(row: _Row, rows: Rows) -> None:
    category = "api" if _API_CALL.match(row.text("Name") or "") else "os"
    _summary(row, rows, category, "Name", "Calls")


RowReader = Callable[[_Row, Rows], None]


def _summary_reader(category: str, name: str, calls: str) -> RowReader:
    return lambda row, rows: _summary(row, rows, category, name, calls)


_ROW_READERS: Mapping[str, RowReader] = {
    GPU_TRACE: _gpu_trace,
    API_TRACE: _call,
    NVTX_TRACE: _range,
    EXEC_TRACE: _execution,
    MPI_TRACE: lambda row, rows: _range(row, rows, "Event", "MPI"),
    "cuda_gpu_sum": _mixed_summary,
    "nvtx_sum": _summary_reader("range", "Range", "Instances"),
    KERNEL_GRID_SUM: _summary_reader("kernel", "Name", "Instances"),
    "cuda_gpu_kern_sum": _summary_reader("kernel", "Name", "Instances"),
    "cuda_api_sum": _call_summary,
    "cuda_gpu_mem_time_sum": _summary_reader("memory", "Operation", "Count"),
    "cuda_gpu_mem_size_sum": _summary_reader("memory", "Operation", "Count"),
    "gpumemtimesum": _summary_reader("memory", "Name", "Count"),
    "gpumemsizesum": _summary_reader("memory", "Name", "Count"),
    "mpi_event_sum": _summary_reader("range", "Name", "Instances"),
    "openacc_sum or openmp_sum": _summary_reader("range", "Name", "Count"),
}


Records = Iterable[tuple[Record, Layout | None]]


def add_evidence(evidence: Evidence, record: Record, layout: Layout | None) -> None:
    """Add the numbers of a record to ``evidence``."""
    if record.kind == ROW and layout is not None:
        cells = record.cells
        collect_number_evidence(
            evidence, [cells[n] for n in layout.numeric], [cells[n] for n in layout.integers], record.line
        )


def number_format_of(found: Records) -> NumberFormat:
    """Return the number format of a file of reports."""
    evidence = Evidence()
    for record, layout in found:
        add_evidence(evidence, record, layout)
    return evidence.decide()


class ReportReader:
    """Converts the records of a file of reports."""

    def __init__(self, number_format: NumberFormat) -> None:
        """Start without rows."""
        self.rows = Rows()
        self.read_as(number_format)
        self.reports: dict[str, None] = {}
        self.others: dict[str, None] = {}
        self.stored, self._above = 0, TotalRows()

    def read_as(self, number_format: NumberFormat) -> None:
        """Set the number format of the following rows."""
        self.format, self.numbers = number_format, Numbers(number_format)

    def begin(self, layout: Layout, line: int) -> None:
        """Start a report at its header."""
        layout.check(line)
        self.reports[layout.report], self._above = None, TotalRows()
        if {GPU_TRACE, EXEC_TRACE} <= set(self.reports):
            raise BrokenInputError(
                f"line {line}: {layout.report} repeats kernels of an earlier report, so each would count twice; "
                f"export {GPU_TRACE} without {EXEC_TRACE}, or upload them into separate runs"
            )

    def take(self, record: Record, layout: Layout) -> None:
        """Store a row; raise `ValueError` with the reason to reject it."""
        _ROW_READERS[layout.report](_Row(layout, record, self.numbers, self._above), self.rows)
        self.stored += 1

    def add(self, record: Record, layout: Layout | None) -> None:
        """Add a record and count its lines."""
        if record.kind == HEADER and layout is not None:
            self.begin(layout, record.line)
        elif record.kind == ROW and layout is not None:
            try:
                self.take(record, layout)
            except ValueError as error:
                record = record._replace(kind=REJECT, reason=str(error), text=record.text[:MAX_TEXT_CHARS])
        self.rows.ledger.add(record)

    def last(self, encoding: str, *messages: str) -> Batch:
        """Return the last batch, with facts and messages."""
        facts = {
            "tool": TOOL,
            "reports": ", ".join(self.reports),
            "number_format": str(self.format),
            "encoding": encoding,
        }
        none = "" if self.stored else "no rows: the file holds headers without a complete row"
        others = f"these reports are not supported and were skipped: {', '.join(self.others)}" if self.others else ""
        return self.rows.batch(facts, "; ".join(filter(None, (none, others, *messages))))
