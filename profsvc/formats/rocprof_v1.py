"""The tables in which the first rocprof keeps a trace: in a database, and as arguments of the events of its JSON."""

import re
from collections.abc import Iterator, Mapping
from functools import cache

from profsvc.formats.csv_tables import Rows
from profsvc.formats.kineto_events import LARGEST, transfer
from profsvc.formats.nsys_sqlite_rows import Row

TOOL = "rocprof"
KERNELS, OPS, COPIES, HIP, HSA, MARKERS = "KERN", "OPS", "COPY", "HIP", "HSA", "rocTX"
TABLES = (KERNELS, OPS, COPIES, HIP, HSA, MARKERS)
NEEDED: Mapping[str, tuple[str, ...]] = {
    KERNELS: ("Index", "KernelName"),
    **dict.fromkeys((OPS, COPIES, HIP, HSA, MARKERS), ("BeginNs", "EndNs", "Name")),
}
SECTIONS = {"CPU HIP API": HIP, "CPU HSA API": HSA, "Markers and Ranges": MARKERS, "COPY": COPIES}
"""How the names of the processes end under which events of its JSON stand -> the table that they are rows of."""
TWICE = "the file holds its kernels twice, as HSA and as HIP saw them; those of HIP (table OPS) were skipped: {}"
_WAITS = "<barrier packet>"
# Copies stand among the kernels in older versions.
_COPY = re.compile(r"(?:hc)?Memcpy\w*|Copy(?:Host|Device|Peer)To\w+|CopyImage\w*|Copy(?:Buffer)?\w*Rect\w*")
_SET = re.compile(r"FillBuffer|FillImage|Memset\w*")
_NO_METRICS = frozenset(
    {
        *("index", "kernelname", "gpu-id", "queue-id", "queue-index", "pid", "tid", "grd", "wgr", "sig", "obj"),
        *("dispatchns", "beginns", "endns", "completens", "durationns"),
    }
)
_WHOLE = re.compile(r"-?[0-9]{1,19}")
_DECIMAL = re.compile(r"-?[0-9]{1,300}(?:\.[0-9]{1,300})?(?:[eE][-+]?[0-9]{1,3})?")


@cache
def is_metric(column: str) -> bool:
    """Tell whether a column of the table of kernels is a counter or a size, neither a name nor a time.

    >>> is_metric("SQ_WAVES"), is_metric("BeginNs"), is_metric("__lane")
    (True, False, False)
    """
    return not column.startswith("__") and column.lower() not in _NO_METRICS


def as_told(values: Mapping[str, object]) -> dict[str, object]:
    """Return arguments of an event, all texts, as the cells of a row are: whole numbers where they can be."""
    texts = ("Name", "KernelName", "args", "Data")
    return {
        name: int(value)
        if name not in texts and isinstance(value, str) and _WHOLE.fullmatch(value) and abs(int(value)) <= LARGEST
        else value
        for name, value in values.items()
    }


def table_of(values: Mapping[str, object], section: str) -> str:
    """Return the table that the arguments of an event are a row of; '' if of none. ``section`` names its process.

    >>> table_of({"KernelName": "saxpy"}, "GPU0"), table_of({"Name": "hipMalloc", "BeginNs": 1}, "0 CPU HIP API")
    ('KERN', 'HIP')
    """
    if "KernelName" in values:
        return KERNELS
    if "BeginNs" not in values:
        return ""
    if "dev-id" in values:
        return OPS
    found = next((table for words, table in SECTIONS.items() if section.endswith(words)), "")
    return found or (HIP if "args" in values else "")


class _Cells(Row):
    """A row whose columns have the names of this tool."""

    def name(self, column: str) -> str:
        text = (self.text(column) or "").strip('"')
        if not text:
            raise ValueError(f"it has no {column}")
        return text

    def times(self) -> dict[str, object]:
        begin, end = self.whole("BeginNs"), self.whole("EndNs")
        if begin is not None and end is not None and end < begin:
            raise ValueError(f"it ends at {end}, before it starts at {begin}")
        return {
            "start_ns": begin,
            "duration_ns": None if begin is None or end is None else float(end - begin),
            "process_id": self.whole("pid"),
        }


def _metrics(row: Row) -> Iterator[dict[str, object]]:
    for name, value in row.values.items():
        if value is None or not is_metric(name):
            continue
        raw = str(value)
        known = _DECIMAL.fullmatch(raw) is not None
        reason = None if known else "text"
        yield {"metric": name, "raw_text": raw, "value": float(raw) if known else None, "reason": reason}


def _kernel(row: _Cells, line: int, rows: Rows) -> None:
    items, group = row.whole("grd"), row.whole("wgr")
    launch = {
        **row.times(),
        "kernel": row.name("KernelName"),
        "source_id": str(row.must("Index")) if "Index" in row.values else None,
        "device_index": row.whole("gpu-id"),
        "stream": row.whole("queue-id"),
        "block_x": group,
        "grid_x": None if items is None or not group else -(-items // group),
        "line": line,
    }
    rows.add_launch(launch, list(_metrics(row)))


def _moved(row: _Cells, name: str, line: int, rows: Rows) -> None:
    what: Mapping[str, object] = transfer(name, is_set=_SET.fullmatch(name) is not None)
    place = {"device_index": row.whole("dev-id"), "stream": row.whole("queue-id")}
    rows.add("transfers", {**row.times(), **what, **place, "line": line})


def is_kernel(table: str, values: Mapping[str, object]) -> bool:
    """Tell whether a row is an execution of a kernel.

    >>> is_kernel("OPS", {"Name": "saxpy(int)"}), is_kernel("OPS", {"Name": "CopyHostToDevice"})
    (True, False)
    """
    name = str(values.get("Name")).strip('"')
    return table == KERNELS or (
        table == OPS and name != _WAITS and not _COPY.fullmatch(name) and not _SET.fullmatch(name)
    )


def take(table: str, values: Mapping[str, object], line: int, rows: Rows) -> bool:
    """Take a row of a table; False if it is skipped. Raise `ValueError` with the reason to reject it."""
    row = _Cells(list(values), list(values.values()))
    if table == KERNELS:
        _kernel(row, line, rows)
        return True
    name = row.name("Name")
    if name == _WAITS:
        return False
    if is_kernel(table, values):
        place = {"device_index": row.whole("dev-id"), "stream": row.whole("queue-id")}
        rows.add_launch({**row.times(), **place, "kernel": name, "correlation_id": row.whole("Index"), "line": line})
    elif table in (OPS, COPIES):
        _moved(row, name, line, rows)
    elif table == MARKERS:
        rows.add(
            "ranges", {**row.times(), "name": name, "thread_id": row.whole("tid"), "domain": MARKERS, "line": line}
        )
    else:
        place = {"thread_id": row.whole("tid"), "correlation_id": row.whole("Index")}
        rows.add("api_calls", {**row.times(), **place, "name": name, "line": line})
    return True
