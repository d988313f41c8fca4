"""Tables of the AMD profilers: their columns, and the conversion of their rows."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from decimal import Decimal

from profsvc.errors import BrokenInputError
from profsvc.formats.parsing.copy_kinds import copy_kind, parse_transfer
from profsvc.formats.parsing.embedded_tables import Rows, parse_integer, parse_scaled, quote_cell
from profsvc.formats.parsing.numbers import MAX_EXACT_INT, Numbers
from profsvc.formats.parsing.records import Record, split_cells
from profsvc.specs import units

# Column names in all versions of the tools, compared without case and punctuation.
_COLUMNS = {
    "kernel": ("kernelname",),
    "start": ("starttimestamp", "beginns"),
    "end": ("endtimestamp", "endns", "stoptimestamp"),
    "id": ("dispatchid", "index"),
    "correlation": ("correlationid",),
    "device": ("gpuid", "agentid"),
    "process": ("pid", "processid"),
    "thread": ("tid", "threadid"),
    "stream": ("queueid",),
    "grid": ("grd", "gridsize"),
    "block": ("wgr", "workgroupsize"),
    "kind": ("kind",),
    "direction": ("direction",),
    "source": ("sourceagentid",),
    "target": ("destinationagentid",),
    "domain": ("domain",),
    "function": ("function",),
    "operation": ("operation",),
    "counter": ("countername",),
    "value": ("countervalue",),
    "name": ("name",),
    "calls": ("calls", "count"),
    "total": ("totaldurationns", "sumns"),
    "mean": ("averagens", "meanns"),
    "min": ("minns",),
    "max": ("maxns",),
    "agent": ("logicalnodeid",),
    "agent type": ("agenttype",),
    "product": ("productname",),
    "metric": ("metric",),
    "unit": ("unit",),
    "avg of a panel": ("avg",),
    **{f"grid_{axis}": (f"gridsize{axis}",) for axis in "xyz"},
    **{f"block_{axis}": (f"workgroupsize{axis}",) for axis in "xyz"},
}
_MEANINGS = {spelled: name for name, spellings in _COLUMNS.items() for spelled in spellings}
# Identities and addresses, which are not metrics.
_NON_METRIC_COLUMNS = frozenset(
    ("queueindex", "sig", "obj", "kernelid", "streamid", "guid", "dispatchns", "completens")
)
_TIME_COLUMNS = ("start", "end")
_INTEGER_COLUMNS = [*_TIME_COLUMNS, "id", "correlation", "process", "thread", "grid", "block", "calls"]
_INTEGER_COLUMNS += [f"grid_{axis}" for axis in "xyz"]
_REAL_COLUMNS = ("value", "total", "mean", "min", "max", "avg of a panel")
_AGENT = re.compile(r"(?:Agent |GPU )?([0-9]{1,9})", re.IGNORECASE)
_API = re.compile(r"(?:__)?hip[A-Z]\w*|hsa_\w+|nccl[A-Z]\w*")
_MEMORY = re.compile(r"(?:MEMORY_COPY_)?(?:HOST|DEVICE)_TO_(?:HOST|DEVICE)|Copy(?:Host|Device|Peer)To\w+")
_DOMAIN = re.compile(r"KERNEL_DISPATCH|MEMORY_COPY|MEMORY_ALLOCATION|SCRATCH_MEMORY|[A-Z]+(?:_[A-Z]+)*_API")
# Operations of a queue that execute a kernel.
_DISPATCHES = ("kernelexecution", "kernel_dispatch", "dispatch")
_SURELY_KERNEL = re.compile(r".*(?:[(<]|\.kd\b).*|_Z.*", re.DOTALL)
_NOT_PLAIN = re.compile(r"[^a-z0-9]+").sub


def _plain(name: str) -> str:
    return _NOT_PLAIN("", name.lower())


def summary_category(name: str) -> str:
    """Return the category of a summary row, from its name.

    >>> [summary_category(name) for name in ("hipMalloc", "HOST_TO_DEVICE", "HIP_API", "axpy(float *)", "axpy")]
    ['api', 'memory', 'domain', 'kernel', 'kernel or range']
    """
    for category, pattern in (("api", _API), ("memory", _MEMORY), ("domain", _DOMAIN), ("kernel", _SURELY_KERNEL)):
        if pattern.fullmatch(name):
            return category
    return "kernel or range"


@dataclass
class Layout:
    """The columns of one table and its kind; '' for an unsupported table."""

    header: list[str]
    kind: str = ""
    places: dict[str, int] = field(default_factory=dict)
    metrics: dict[str, int] = field(default_factory=dict)
    known: dict[tuple[int | None, str], tuple[int, str]] = field(default_factory=dict)
    category: str = ""
    scattered: bool = False

    def __post_init__(self) -> None:
        """Find the columns."""
        for place, cell in enumerate(self.header):
            plain = _plain(cell)
            if plain in _MEANINGS:
                self.places.setdefault(_MEANINGS[plain], place)
            elif plain and plain not in _NON_METRIC_COLUMNS:
                self.metrics.setdefault(cell.strip(), place)
        found = set(self.places)
        self.kind = next((kind for kind, needs, _ in TABLES if needs <= found), "")
        self.integers = [self.places[name] for name in _INTEGER_COLUMNS if name in self.places]
        amounts = [self.places[name] for name in _REAL_COLUMNS if name in self.places]
        self.numeric = [*self.integers, *amounts, *self.metrics.values()]
        self.times = [self.places[name] for name in _TIME_COLUMNS if name in self.places]


class Row:
    """One row, with cells by meaning."""

    def __init__(self, layout: Layout, record: Record, numbers: Numbers) -> None:
        """Keep the cells of ``record``."""
        self.layout, self.cells, self.line, self.numbers = layout, record.cells, record.line, numbers

    def text(self, name: str) -> str:
        """Return a cell; '' for a missing column."""
        place = self.layout.places.get(name)
        return "" if place is None else self.cells[place].strip()

    def whole(self, name: str) -> int | None:
        """Return a whole number; None if the cell is empty."""
        place = self.layout.places.get(name)
        return (
            None
            if place is None
            else parse_integer(self.cells[place], self.numbers, self.layout.header[place], self.line)
        )

    def must(self, name: str) -> int | None:
        """Return an integer; raise `ValueError` if the column exists and the cell is empty."""
        value = self.whole(name)
        if value is None and name in self.layout.places:
            raise ValueError(f"{self.layout.header[self.layout.places[name]]} is empty")
        return value

    def moment(self, name: str) -> int | None:
        """Return a timestamp in ns; raise `BrokenInputError` if it was stored as a float and lost digits.

        The tools write 0 for a time that they did not record: their clocks count since the machine started.
        """
        value, exact = self.must(name), self.numbers.exact(self.text(name))
        exponent = exact.as_tuple().exponent if exact is not None else 0
        if value is not None and value > MAX_EXACT_INT and isinstance(exponent, int) and exponent < 0:
            raise BrokenInputError(
                f"line {self.line}: {self.layout.header[self.layout.places[name]]} is {self.text(name)}: it was "
                "stored as a float, so its last digits are lost; upload the file as the profiler wrote it"
            )
        return value or None

    def number(self, name: str) -> float | None:
        """Return a number that is at least 0; None if the cell is empty."""
        value = parse_scaled(self.text(name), Decimal(1), self.numbers, name)
        if value is not None and value < 0:
            raise ValueError(f"{name} is negative")
        return None if value is None else float(value)

    def agent(self, name: str) -> int | None:
        """Return the ordinal of an agent."""
        match = _AGENT.fullmatch(self.text(name))
        return int(match[1]) if match else None

    def span(self) -> dict[str, object]:
        """Return start and duration, to the nanosecond."""
        start, end = self.moment("start"), self.moment("end")
        if start is None or end is None:
            return {"start_ns": start, "duration_ns": None, "line": self.line}
        if end < start:
            raise ValueError(f"it ends at {end}, before it starts at {start}")
        return {"start_ns": start, "duration_ns": float(end - start), "line": self.line}

    def shape(self) -> dict[str, object]:
        """Return the grid in work groups, and the work group."""
        sizes: dict[str, object] = {}
        for axis in "xyz":
            single = axis == "x" and "grid" in self.layout.places
            items, group = self.whole("grid" if single else f"grid_{axis}"), self.whole(f"block_{axis}")
            group = self.whole("block") if single and group is None else group
            sizes[f"block_{axis}"] = group
            sizes[f"grid_{axis}"] = None if items is None or not group else -(-items // group)
        return sizes

    def value(self, metric: str, cell: str) -> dict[str, object]:
        """Return a metric without a unit."""
        number = self.numbers[cell]
        known = number == number
        reason = None if known else self.numbers.reason(cell)
        return {"metric": metric, "raw_text": cell, "value": number if known else None, "reason": reason}

    def columns(self) -> Iterator[dict[str, object]]:
        """Yield the metrics of a dispatch from its columns."""
        for name, place in self.layout.metrics.items():
            if self.cells[place].strip():
                yield self.value(name, self.cells[place])


def _launch(row: Row) -> dict[str, object]:
    if (kind := row.text("kind")) and kind.upper() != "KERNEL_DISPATCH":
        raise ValueError(f"Kind is {quote_cell(kind)}, not KERNEL_DISPATCH")
    if not row.text("kernel"):
        raise ValueError("the kernel has no name")
    return {
        **row.span(),
        **row.shape(),
        "process_id": row.whole("process"),
        "stream": row.whole("stream"),
        "kernel": row.text("kernel"),
        "source_id": row.text("id") or None,
        "correlation_id": row.whole("correlation"),
        "device_index": row.agent("device"),
    }


def _dispatch(row: Row, rows: Rows) -> None:
    rows.add_launch(_launch(row), list(row.columns()))


def _counter(row: Row, rows: Rows) -> None:
    """Store a counter of a dispatch; the first row of a dispatch also stores the launch."""
    name, cell, known = row.text("counter"), row.text("value"), row.layout.known
    if not name or not row.text("id") or not cell:
        raise ValueError("the row has no dispatch, no counter name or no value")
    launch, metric = _launch(row), row.value(name, cell)
    key = (row.whole("process"), row.text("id"))
    if key not in known and not row.layout.scattered:
        known.clear()  # The rows of a dispatch follow each other.
    index, kernel = known.setdefault(key, (rows.launches, row.text("kernel")))
    if kernel != row.text("kernel"):
        raise ValueError(f"dispatch {key[1]} has the kernel {quote_cell(kernel)} in an earlier row")
    if index == rows.launches:
        rows.add_launch(launch, [*row.columns(), metric])
    else:
        rows.add("metrics", {**metric, "launch_index": index, "line": row.line})


def _copy(row: Row, rows: Rows) -> None:
    memory = {"source_memory": row.text("source") or None, "target_memory": row.text("target") or None}
    words = row.text("direction").upper().removeprefix("MEMORY_COPY_").replace("_TO_", "-to-").lower()
    common = {**row.span(), "process_id": row.whole("process"), "stream": row.whole("stream")}
    rows.add("transfers", {**common, **memory, "kind": copy_kind(words)})


def _call(row: Row, rows: Rows) -> None:
    name, domain = row.text("function"), row.text("domain")
    if not name:
        raise ValueError("the call has no name")
    common = {**row.span(), "name": name, "process_id": row.whole("process"), "thread_id": row.whole("thread")}
    if domain.upper().startswith(("MARKER", "ROCTX")):
        rows.add("ranges", {**common, "domain": domain})
    else:
        rows.add("api_calls", {**common, "correlation_id": row.whole("correlation")})


def _operation(row: Row, rows: Rows) -> None:
    """Store what a queue executed: a kernel, a copy or a fill; what has no other place, as a barrier, is a range."""
    name, kernel = row.text("operation"), row.text("kernel")
    if not name:
        raise ValueError("the operation has no name")
    if kernel:
        rows.add_launch({**row.span(), "kernel": kernel, "correlation_id": row.whole("correlation")})
    elif name.lower() in _DISPATCHES:
        raise ValueError("the kernel has no name")
    elif name.lower().startswith(("copy", "fill")):
        rows.add("transfers", {**row.span(), **parse_transfer(name, is_set=name.lower().startswith("fill"))})
    else:
        rows.add("ranges", {**row.span(), "name": name, "domain": row.text("domain") or None})


def _summary(row: Row, rows: Rows) -> None:
    # rocprof-compute wraps long kernel names.
    name, calls = (row.text("kernel") or row.text("name")).replace("\n", ""), row.must("calls")
    if not name or calls is None:
        raise ValueError("the row has no name or no call count")
    category = "kernel" if "kernel" in row.layout.places else row.layout.category
    times = {f"{what}_ns": row.number(what) for what in ("total", "mean", "min", "max")}
    rows.add("kernel_summaries", {"category": category, "kernel": name, "calls": calls, **times, "line": row.line})


def _agent(row: Row, rows: Rows) -> None:
    section = f"Agent {row.text('agent')}"
    for place, name in enumerate(row.layout.header):
        if row.cells[place].strip():
            rows.add("metrics", {**row.value(name, row.cells[place]), "section": section, "line": row.line})


def _panel(row: Row, rows: Rows) -> None:
    """Store the values of a metric over all kernels; shares of the peak are in percent."""
    name, printed, known = row.text("metric"), row.text("unit") or None, units("rocprof")
    if not name:
        raise ValueError("the metric has no name")
    for place, column in enumerate(row.layout.header):
        if column in ("Metric", "Unit") or not row.cells[place].strip():
            continue
        statistic = column.lower() if column in ("Avg", "Min", "Max") else None
        token = "Pct" if column.startswith("Pct") else printed
        unit = known.get(token or "")
        found = row.value(name if statistic else f"{name}: {column}", row.cells[place])
        if isinstance(found["value"], float):
            found["value"] *= unit.factor if unit else 1
            found["si_unit"] = unit.si_unit if unit else token
        rows.add("metrics", {**found, "unit": token, "statistic": statistic, "line": row.line})


RowReader = Callable[[Row, Rows], None]
TABLES: tuple[tuple[str, set[str], RowReader], ...] = (
    ("counters", {"kernel", "id", "counter", "value"}, _counter),
    ("operations", {"domain", "operation", "start", "end"}, _operation),
    ("dispatches", {"kernel", "id", "grid", "block"}, _dispatch),
    ("dispatches", {"kernel", "id", "start", "end"}, _dispatch),
    ("dispatches", {"kernel", "kind", "start", "end"}, _dispatch),
    ("", {"kernel", "counter", "value"}, _counter),  # rows of which nothing tells the dispatch
    ("dispatches", {"kernel", "start", "end"}, _dispatch),  # without the column Index
    ("dispatches", {"kernel", "grid", "block"}, _dispatch),
    ("copies", {"kind", "direction", "start", "end", "correlation"}, _copy),
    ("calls", {"domain", "function", "start", "end"}, _call),
    ("sums", {"name", "calls", "total"}, _summary),
    ("sums", {"kernel", "calls", "total", "mean"}, _summary),
    ("agents", {"agent", "agent type"}, _agent),
    ("panel", {"metric", "avg of a panel", "unit"}, _panel),
)
ROW_READERS = {kind: take for kind, _, take in TABLES}
HEADER_WORDS = ("Kernel", "Direction", "Function", "Operation", "TotalDurationNs", "Agent_Type", "Metric")
"""Each header of a table has one of them."""


def parse_header(line: str) -> Layout | None:
    """Return the layout of the table with the header ``line``; None for other lines."""
    if not any(word in line for word in HEADER_WORDS):
        return None
    layout = Layout(split_cells(line))
    if layout.kind == "panel" and not ({"Min", "Max"} <= set(layout.header) or "Peak" in layout.header):
        return None
    return layout if layout.kind else None
