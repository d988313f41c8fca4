"""Trace tables of the first rocprof, in a database or as arguments of JSON events."""

import re
from collections.abc import Iterator, Mapping
from functools import cache

from profsvc.formats.parsing.copy_kinds import parse_transfer
from profsvc.formats.parsing.embedded_tables import Rows
from profsvc.formats.parsing.numbers import MAX_INT64
from profsvc.formats.parsing.sqlite_file import Row

TOOL = "rocprof"
KERNELS, OPS, COPIES, HIP, HSA, MARKERS = "KERN", "OPS", "COPY", "HIP", "HSA", "rocTX"
TABLES = (KERNELS, OPS, COPIES, HIP, HSA, MARKERS)
REQUIRED_COLUMNS: Mapping[str, tuple[str, ...]] = {
    KERNELS: ("Index", "KernelName"),
    **dict.fromkeys((OPS, COPIES, HIP, HSA, MARKERS), ("BeginNs", "EndNs", "Name")),
}
SECTIONS = {"CPU HIP API": HIP, "CPU HSA API": HSA, "Markers and Ranges": MARKERS, "COPY": COPIES}
"""How the names of the processes end under which events of its JSON stand -> the table that they are rows of."""
DUPLICATE_KERNELS = "the file holds its kernels twice (HSA and HIP); those of HIP (table OPS) were skipped: {}"
_BARRIER = "<barrier packet>"
# Older versions list copies among the kernels.
_COPY = re.compile(r"(?:hc)?Memcpy\w*|Copy(?:Host|Device|Peer)To\w+|CopyImage\w*|Copy(?:Buffer)?\w*Rect\w*")
_SET = re.compile(r"FillBuffer|FillImage|Memset\w*")
_NON_METRIC_COLUMNS = frozenset(
    {
        *("index", "kernelname", "gpu-id", "queue-id", "queue-index", "pid", "tid", "grd", "wgr", "sig", "obj"),
        *("dispatchns", "beginns", "endns", "completens", "durationns"),
    }
)
_WHOLE = re.compile(r"-?[0-9]{1,19}")
_DECIMAL = re.compile(r"-?[0-9]{1,300}(?:\.[0-9]{1,300})?(?:[eE][-+]?[0-9]{1,3})?")


@cache
def is_metric(column: str) -> bool:
    """Return whether a column of the kernel table is a counter or a size, not a name or a time.

    >>> is_metric("SQ_WAVES"), is_metric("BeginNs"), is_metric("__lane")
    (True, False, False)
    """
    return not column.startswith("__") and column.lower() not in _NON_METRIC_COLUMNS


def to_cells(values: Mapping[str, object]) -> dict[str, object]:
    """Return string arguments of an event as cells of a row, converted to integers if possible."""
    texts = ("Name", "KernelName", "args", "Data")
    return {
        name: int(value)
        if name not in texts and isinstance(value, str) and _WHOLE.fullmatch(value) and abs(int(value)) <= MAX_INT64
        else value
        for name, value in values.items()
    }


def table_of(values: Mapping[str, object], section: str) -> str:
    """Return the table of the arguments of an event, '' if unknown; ``section`` is its process name.

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
    """A row with the column names of this tool."""

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


def _transfer(row: _Cells, name: str, line: int, rows: Rows) -> None:
    what: Mapping[str, object] = parse_transfer(name, is_set=_SET.fullmatch(name) is not None)
    place = {"device_index": row.whole("dev-id"), "stream": row.whole("queue-id")}
    rows.add("transfers", {**row.times(), **what, **place, "line": line})


def is_kernel(table: str, values: Mapping[str, object]) -> bool:
    """Return whether a row is a kernel execution.

    >>> is_kernel("OPS", {"Name": "saxpy(int)"}), is_kernel("OPS", {"Name": "CopyHostToDevice"})
    (True, False)
    """
    name = str(values.get("Name")).strip('"')
    return table == KERNELS or (
        table == OPS and name != _BARRIER and not _COPY.fullmatch(name) and not _SET.fullmatch(name)
    )


def read_row(table: str, values: Mapping[str, object], line: int, rows: Rows) -> bool:
    """Store a row; return False if it is skipped. Raise `ValueError` with the reason to reject it."""
    row = _Cells(list(values), list(values.values()))
    if table == KERNELS:
        _kernel(row, line, rows)
        return True
    name = row.name("Name")
    if name == _BARRIER:
        return False
    if is_kernel(table, values):
        place = {"device_index": row.whole("dev-id"), "stream": row.whole("queue-id")}
        rows.add_launch({**row.times(), **place, "kernel": name, "correlation_id": row.whole("Index"), "line": line})
    elif table in (OPS, COPIES):
        _transfer(row, name, line, rows)
    elif table == MARKERS:
        rows.add(
            "ranges", {**row.times(), "name": name, "thread_id": row.whole("tid"), "domain": MARKERS, "line": line}
        )
    else:
        place = {"thread_id": row.whole("tid"), "correlation_id": row.whole("Index")}
        rows.add("api_calls", {**row.times(), **place, "name": name, "line": line})
    return True
