"""The tables of AMD's profilers: the columns of each, and what is taken from a row."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from decimal import Decimal

from profsvc.errors import BrokenInputError
from profsvc.formats.csv_tables import Rows, scaled, shown, whole
from profsvc.formats.ncu_lines import Record, split_cells
from profsvc.formats.nsys import copy_kind
from profsvc.formats.numbers import Numbers
from profsvc.specs import units

EXACT_AS_FLOAT = 2**53
# Names of a column in the versions of the tools, compared without case and signs.
_COLUMNS = {
    "kernel": ("kernelname",),
    "start": ("starttimestamp", "beginns"),
    "end": ("endtimestamp", "endns"),
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
# Identities and places in memory, which are no metrics.
_NO_METRICS = frozenset(("queueindex", "sig", "obj", "kernelid", "streamid", "guid", "dispatchns", "completens"))
_TIMES = ("start", "end")
_EXACT = [*_TIMES, "id", "correlation", "process", "thread", "grid", "block", "calls"]
_EXACT += [f"grid_{axis}" for axis in "xyz"]
_AMOUNTS = ("value", "total", "mean", "min", "max", "avg of a panel")
_AGENT = re.compile(r"(?:Agent |GPU )?([0-9]{1,9})", re.IGNORECASE)
_API = re.compile(r"(?:__)?hip[A-Z]\w*|hsa_\w+|nccl[A-Z]\w*")
_MEMORY = re.compile(r"(?:MEMORY_COPY_)?(?:HOST|DEVICE)_TO_(?:HOST|DEVICE)|Copy(?:Host|Device|Peer)To\w+")
_DOMAIN = re.compile(r"KERNEL_DISPATCH|MEMORY_COPY|MEMORY_ALLOCATION|SCRATCH_MEMORY|[A-Z]+(?:_[A-Z]+)*_API")
_SURELY_KERNEL = re.compile(r".*(?:[(<]|\.kd\b).*|_Z.*", re.DOTALL)
_NOT_PLAIN = re.compile(r"[^a-z0-9]+").sub


def _plain(name: str) -> str:
    return _NOT_PLAIN("", name.lower())


def category_of(name: str) -> str:
    """Return what a row of sums is about, as its name tells.

    >>> [category_of(name) for name in ("hipMalloc", "HOST_TO_DEVICE", "HIP_API", "axpy(float *)", "axpy")]
    ['api', 'memory', 'domain', 'kernel', 'kernel or range']
    """
    for category, pattern in (("api", _API), ("memory", _MEMORY), ("domain", _DOMAIN), ("kernel", _SURELY_KERNEL)):
        if pattern.fullmatch(name):
            return category
    return "kernel or range"


@dataclass
class Layout:
    """The columns of one table, and of which kind it is; '' where it is none that is taken."""

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
            elif plain and plain not in _NO_METRICS:
                self.metrics.setdefault(cell.strip(), place)
        found = set(self.places)
        self.kind = next((kind for kind, needs, _ in TABLES if needs <= found), "")
        self.integers = [self.places[name] for name in _EXACT if name in self.places]
        amounts = [self.places[name] for name in _AMOUNTS if name in self.places]
        self.numeric = [*self.integers, *amounts, *self.metrics.values()]
        self.times = [self.places[name] for name in _TIMES if name in self.places]


class Row:
    """One row; its cells by what they mean."""

    def __init__(self, layout: Layout, record: Record, numbers: Numbers) -> None:
        """Take the cells of ``record``."""
        self.layout, self.cells, self.line, self.numbers = layout, record.cells, record.line, numbers

    def text(self, name: str) -> str:
        """Return a cell; '' if there is no such column."""
        place = self.layout.places.get(name)
        return "" if place is None else self.cells[place].strip()

    def whole(self, name: str) -> int | None:
        """Return a whole number; None if the cell is empty."""
        place = self.layout.places.get(name)
        return None if place is None else whole(self.cells[place], self.numbers, self.layout.header[place], self.line)

    def must(self, name: str) -> int | None:
        """Return a whole number, which must be there if its column is."""
        value = self.whole(name)
        if value is None and name in self.layout.places:
            raise ValueError(f"{self.layout.header[self.layout.places[name]]} is empty")
        return value

    def moment(self, name: str) -> int | None:
        """Return a timestamp in ns; refuse the file if a float cannot have held it and did."""
        value, exact = self.must(name), self.numbers.exact(self.text(name))
        exponent = exact.as_tuple().exponent if exact is not None else 0
        if value is not None and value > EXACT_AS_FLOAT and isinstance(exponent, int) and exponent < 0:
            raise BrokenInputError(
                f"line {self.line}: {self.layout.header[self.layout.places[name]]} is {self.text(name)}: a float has "
                "held it, which is too short for so large a number, so its last digits are lost; take the file as the "
                "profiler wrote it"
            )
        return value

    def number(self, name: str) -> float | None:
        """Return a number that is at least 0; None if the cell is empty."""
        value = scaled(self.text(name), Decimal(1), self.numbers, name)
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
        """Yield the metrics of a dispatch that have columns."""
        for name, place in self.layout.metrics.items():
            if self.cells[place].strip():
                yield self.value(name, self.cells[place])


def _launch(row: Row) -> dict[str, object]:
    if (kind := row.text("kind")) and kind.upper() != "KERNEL_DISPATCH":
        raise ValueError(f"Kind is {shown(kind)}, not KERNEL_DISPATCH")
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
    """Take a counter of a dispatch; its first row makes the launch."""
    name, cell, known = row.text("counter"), row.text("value"), row.layout.known
    if not name or not row.text("id") or not cell:
        raise ValueError("the row has no dispatch, no name of a counter or no value")
    launch, metric = _launch(row), row.value(name, cell)
    key = (row.whole("process"), row.text("id"))
    if key not in known and not row.layout.scattered:
        known.clear()  # The rows of a dispatch follow each other.
    index, kernel = known.setdefault(key, (rows.launches, row.text("kernel")))
    if kernel != row.text("kernel"):
        raise ValueError(f"dispatch {key[1]} is of the kernel {shown(kernel)} before")
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


def _sum(row: Row, rows: Rows) -> None:
    # rocprof-compute breaks the lines of long names of kernels.
    name, calls = (row.text("kernel") or row.text("name")).replace("\n", ""), row.must("calls")
    if not name or calls is None:
        raise ValueError("the row has no name or no number of calls")
    category = "kernel" if "kernel" in row.layout.places else row.layout.category
    times = {f"{what}_ns": row.number(what) for what in ("total", "mean", "min", "max")}
    rows.add("kernel_summaries", {"category": category, "kernel": name, "calls": calls, **times, "line": row.line})


def _agent(row: Row, rows: Rows) -> None:
    section = f"Agent {row.text('agent')}"
    for place, name in enumerate(row.layout.header):
        if row.cells[place].strip():
            rows.add("metrics", {**row.value(name, row.cells[place]), "section": section, "line": row.line})


def _panel(row: Row, rows: Rows) -> None:
    """Take the figures of a metric over all kernels; a share of the peak is printed in percent."""
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


Take = Callable[[Row, Rows], None]
TABLES: tuple[tuple[str, set[str], Take], ...] = (
    ("counters", {"kernel", "id", "counter", "value"}, _counter),
    ("dispatches", {"kernel", "id", "grid", "block"}, _dispatch),
    ("dispatches", {"kernel", "id", "start", "end"}, _dispatch),
    ("dispatches", {"kernel", "kind", "start", "end"}, _dispatch),
    ("copies", {"kind", "direction", "start", "end", "correlation"}, _copy),
    ("calls", {"domain", "function", "start", "end"}, _call),
    ("sums", {"name", "calls", "total"}, _sum),
    ("sums", {"kernel", "calls", "total", "mean"}, _sum),
    ("agents", {"agent", "agent type"}, _agent),
    ("panel", {"metric", "avg of a panel", "unit"}, _panel),
)
TAKE = {kind: take for kind, _, take in TABLES}
_WORDS = ("Kernel", "Direction", "Function", "TotalDurationNs", "Agent_Type", "Metric")


def begins(line: str) -> Layout | None:
    """Return the layout of the table whose header ``line`` is; None if it is none."""
    if not any(word in line for word in _WORDS):
        return None
    layout = Layout(split_cells(line))
    if layout.kind == "panel" and not ({"Min", "Max"} <= set(layout.header) or "Peak" in layout.header):
        return None
    return layout if layout.kind else None
