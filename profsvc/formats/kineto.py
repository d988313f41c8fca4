"""Reader of the traces that PyTorch's profiler writes (Kineto): JSON in the format of Chrome's trace viewer."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import BinaryIO, cast

import pandas as pd

from profsvc.errors import BrokenInputError
from profsvc.formats import kineto_repairs, kineto_xla, rocprof_v1
from profsvc.formats.clock import FIRST, LAST, SECOND, UTC
from profsvc.formats.csv_tables import Account, Rows
from profsvc.formats.head import head_text
from profsvc.formats.json_stream import CutError, Json, clean
from profsvc.formats.kineto_blocks import Part, parse
from profsvc.formats.kineto_events import COUNTERS, KINDS, Event, counters_of, is_passed, metrics_of, transfer
from profsvc.formats.kineto_repairs import Unreadable
from profsvc.formats.ncu_lines import REJECT, ROW, SKIP, TEXT_LIMIT, Record
from profsvc.formats.stream import Text
from profsvc.tables import Batch, frame_of_arrays

NAME = "kineto"
PAGE = """\
A trace of PyTorch's profiler (Kineto), of NVIDIA, AMD, Intel or MTIA devices or of the CPU alone; or of XLA's (JAX); or
the first rocprof's results.json.

Make it in the program:
    with torch.profiler.profile(record_shapes=True) as profile: ...
    profile.export_chrome_trace("FILE.json.gz")
or with JAX, which writes FOLDER/plugins/profile/*/*.trace.json.gz:
    with jax.profiler.trace("FOLDER"): ...
or with rocprof before rocprofv2:
    rocprof --sys-trace -o results.csv PROGRAM                          (results.json)

Taken: kernels as launches, with registers, shared memory and occupancy; copies and memsets as transfers; calls of the
runtime and the driver; operators and annotations as ranges, with their category as the domain. Everything else (flows,
names of threads, Python functions, synchronisations, annotations repeated for the device) is skipped and counted; the
message names categories that are not known. What CUPTI counted (cuda_profiler_range) are metrics of launches without a
time, or of the file where a range of the profile was counted: the times of these events are no times of kernels. Where
versions of the profiler wrote no JSON (quotes and backslashes in a name, inf, nan, N/A), the event is read as meant, or
rejected by itself. The events may stand in a bare list, and their times in quotes.
Of XLA's traces kernels, copies and memsets are taken, with what their details hold; their clock begins with the trace.
Of rocprof's what its tables hold is taken, in nanoseconds of its own clock.
Times are microseconds, with or without digits below, since 1970 or since the file's baseTimeNanoseconds, which is
added; so starts are nanoseconds since 1970, exactly: the fact clock says UTC. A line that holds a stored event is a
stored line.

Example:
    {"schemaVersion": 1, "deviceProperties": [{"id": 0, "name": "NVIDIA H200", "computeMajor": 9, "computeMinor": 0}],
     "traceEvents": [
       {"ph": "X", "cat": "kernel", "name": "saxpy", "pid": 0, "tid": 7, "ts": 1712195495505583.123, "dur": 4.928,
        "args": {"device": 0, "context": 1, "stream": 7, "correlation": 9, "grid": [8, 1, 1], "block": [256, 1, 1]}}
     ]}
"""

TOOL, XLA = "PyTorch profiler", "XLA profiler"
BLOCK, SMALL_BLOCK = 2 << 20, 1 << 15
# So many events are read one by one where a small block cannot be read at once.
SINGLES = 100
MOST_SECTIONS = 10_000
_BASE_KEY = '"baseTimeNanoseconds"'
_BASE = re.compile(rf"(?<!\\){_BASE_KEY}\s*:\s*(-?[0-9]{{1,19}})(?![0-9.eE])")
_OVERLAP = 200
_LIST = re.compile(r"\[\s*\{")
_PHASE = re.compile(r'"ph"\s*:\s*"[A-Za-z]"')
_RANGE = re.compile(r"__\w+__|[0-9]+|")
NOT_TAKEN = "events of these categories are not known and were skipped: {}"
COUNTED_ONLY = (
    "kernels that CUPTI counted have no times: profile once more without counters for those, into the same run"
)


def sniff(head: bytes) -> bool:
    """Tell whether ``head`` begins a list of trace events, bare or in an object, or what Kineto writes before it."""
    text = head_text(head).lstrip(" \t\r\n\ufeff")
    if _LIST.match(text):
        return '"ts"' in text and bool(_PHASE.search(text))
    kineto = '"schemaVersion"' in text and '"deviceProperties"' in text
    return text.startswith("{") and ('"traceEvents"' in text or kineto)


class _File:
    """What is known of the whole trace, and the rows gathered from it."""

    def __init__(self, base: int) -> None:
        self.base, self.rows = base, Rows()
        self.devices: dict[int, tuple[str | None, str | None]] = {}
        self.gpus: dict[object, int] = {}
        self.sections: dict[str, str] = {}
        self.passed = Counter[str]()
        self.taken = self.unreadable = self.counted = self.twice = 0
        self.kernels_seen = False
        self.tool = TOOL
        self.since_1970 = True

    def learn(self, key: str, value: object) -> None:
        """Take in a member of the file beside its events."""
        if key == "deviceProperties" and isinstance(value, list):
            for row in value:
                if isinstance(row, dict) and isinstance(row.get("id"), int):
                    major, minor, name = row.get("computeMajor"), row.get("computeMinor"), row.get("name")
                    capability = f"{major}.{minor}" if isinstance(major, int) and isinstance(minor, int) else None
                    self.devices[row["id"]] = (clean(name) if isinstance(name, str) else None, capability)
        elif key == "baseTimeNanoseconds" and value != self.base:
            raise BrokenInputError(
                f"baseTimeNanoseconds is {str(value)[:40]}, but the file names {self.base} as well, so its clock is "
                "not clear; write the trace again"
            )

    def add(self, values: object, line: int) -> str:
        """Take in an event; return what becomes of it. Raise `ValueError` with the reason to reject it."""
        if isinstance(values, Unreadable):
            self.unreadable += 1
            raise ValueError(values.reason)
        if not isinstance(values, dict):
            raise ValueError("the event is no object")
        if values.get("ph") == "M":
            self._section(values)
        elif (cells := values.get("args")) and values.get("ph") == "X" and "cat" not in values and "BeginNs" in cells:
            return self._rocprof(cells, str(values.get("pid")), line)
        elif (theirs := kineto_xla.event_of(values, self.gpus)) is not None:
            values, self.tool = theirs, XLA
        category = str(values.get("cat")).lower() if values.get("ph") == "X" else None
        event, kind = Event(values, self.base), KINDS.get(category or "")
        if category == COUNTERS:
            return self._counters(event, line)
        if kind is None:
            self.passed.update([] if category is None or is_passed(values.get("cat")) else [str(values.get("cat"))])
            return SKIP
        common: dict[str, object] = {**event.span(), "line": line}
        if kind in ("call", "range"):
            self._host(kind, event, common)
        else:
            self._device(kind, event, common)
        self.taken += 1
        start = cast("int", common["start_ns"])
        self._date(start, start)
        return ROW

    def _section(self, values: Mapping[str, object]) -> None:
        """Take in what an event says of the process that others stand under."""
        args, number = values.get("args"), kineto_xla.gpu_of(values)
        if number is not None:
            self.gpus[values.get("pid")] = number
        elif values.get("name") == "process_name" and isinstance(args, dict) and len(self.sections) < MOST_SECTIONS:
            self.sections[str(values.get("pid"))] = str(args.get("name"))

    def _rocprof(self, cells: Mapping[str, object], process: str, line: int) -> str:
        """Take in an event of the first rocprof, whose arguments are a row of a table."""
        table, self.tool, told = rocprof_v1.table_of(cells, self.sections.get(process, "")), rocprof_v1.TOOL, {**cells}
        told = rocprof_v1.as_told(told)
        self.kernels_seen = self.kernels_seen or table == rocprof_v1.KERNELS
        if self.kernels_seen and table == rocprof_v1.OPS and rocprof_v1.is_kernel(table, told):
            self.twice += 1
            return SKIP
        if not table or not rocprof_v1.take(table, told, line, self.rows):
            return SKIP
        self.taken, self.since_1970 = self.taken + 1, False
        return ROW

    def _counters(self, event: Event, line: int) -> str:
        """Take in what CUPTI counted over a kernel, or over a range of the profile."""
        name, metrics = event.name(), counters_of(event)
        if not metrics:
            raise ValueError("it holds no counter")
        if _RANGE.fullmatch(name):
            for metric in metrics:
                self.rows.add("metrics", {**metric, "section": name, "line": line})
        else:
            process = event.own("pid")
            device, capability = self.devices.get(-1 if process is None else process, (None, None))
            place = {"device_index": process, "device": device, "compute_capability": capability}
            self.rows.add_launch({**place, "kernel": name, "line": line}, metrics)
            self.counted += 1
        self.taken += 1
        return ROW

    def said(self) -> list[str]:
        """Return what to tell of the whole file."""
        most = ", ".join(f"{name} ({count})" for name, count in self.passed.most_common(5))
        return [
            "" if self.taken else "the trace holds no kernel, copy, call or range",
            f"events that are no JSON, and were rejected: {self.unreadable}" if self.unreadable else "",
            NOT_TAKEN.format(most) if most else "",
            COUNTED_ONLY if self.counted else "",
            rocprof_v1.TWICE.format(self.twice) if self.twice else "",
        ]

    def _date(self, first: int, last: int) -> None:
        self.since_1970 = self.since_1970 and first >= FIRST * SECOND and last < LAST * SECOND

    def add_block(self, part: Part, line: int) -> dict[str, pd.DataFrame]:
        """Take in a block of events that begins on ``line``; return its tables."""
        tables = {}
        self.passed.update(part.passed)
        for name, columns in part.tables.items():
            columns["line"] = columns["line"] + line
            if "launch_index" in columns:
                columns["launch_index"] = columns["launch_index"] + self.rows.launches
            tables[name] = frame_of_arrays(name, len(columns["line"]), columns)
            if "start_ns" in columns:
                starts = columns["start_ns"]
                self.taken += len(starts)
                self._date(int(starts.min()), int(starts.max()))
        self.rows.launches += len(tables.get("launches", ()))
        return tables

    def _host(self, kind: str, event: Event, common: Mapping[str, object]) -> None:
        row = {**common, "name": event.name(), "process_id": event.own("pid"), "thread_id": event.own("tid")}
        if kind == "call":
            self.rows.add("api_calls", {**row, "correlation_id": event.whole("correlation")})
        else:
            self.rows.add("ranges", {**row, "domain": str(event.values["cat"])})

    def _device(self, kind: str, event: Event, common: Mapping[str, object]) -> None:
        index, process = event.whole("device"), event.own("pid")
        # Events of a device stand under its number, if the file knows it; else that is of a process.
        index = process if index is None and process in self.devices else index
        name, capability = self.devices.get(index, (None, None)) if index is not None else (None, None)
        stream = event.whole("stream")
        row = {
            **common,
            "device_index": index,
            "device": name,
            "context": event.whole("context"),
            "stream": event.own("tid") if stream is None else stream,
        }
        if kind == "kernel":
            launch = {**row, **event.shape(), "kernel": event.name(), "correlation_id": event.whole("correlation")}
            outside = event.whole("external id", "External id")
            launch["registers_per_thread"] = event.whole("registers per thread")
            for kept in ("static", "dynamic"):
                launch[f"shared_mem_{kept}_bytes"] = event.whole(f"{kept}_shared")
            launch["source_id"] = None if outside is None else str(outside)
            self.rows.add_launch({**launch, "compute_capability": capability}, list(metrics_of(event)))
        else:
            moved = transfer(event.name(), kind == "set")
            self.rows.add("transfers", {**row, **moved, "bytes": event.whole("bytes", "Bytes")})


def _base_in(text: str) -> re.Match[str] | None:
    # To look for the word first is much faster, and most texts do not hold it.
    return _BASE.search(text) if _BASE_KEY in text else None


def _survey(text: Text) -> tuple[int, int]:
    """Return the base of the clock, which stands behind the events, and the number of lines."""
    base, lines, tail, last = 0, 0, "", "\n"
    for piece in text.pieces():
        between = _base_in(tail + piece[:_OVERLAP])
        match = between if between and between.start() < len(tail) else _base_in(piece)
        if match:
            base = int(match[1])
        lines += piece.count("\n")
        tail, last = piece[-_OVERLAP:], piece[-1:] or last
    return base, lines + (last != "\n")


class _Blocks:
    """Reads ahead of the events, block by block; where that fails, smaller ones, then some events one by one."""

    def __init__(self, json: Json, file: _File) -> None:
        self.json, self.file = json, file
        self.size, self.singles = BLOCK, 0

    def next(self) -> Part | None:
        """Read the block that begins here and step over it; None if the next event is to be read by itself."""
        if self.singles:
            self.singles -= 1
            return None
        while self.size >= SMALL_BLOCK:
            if part := parse(self.json.ahead(self.size), self.file.base, self.file.devices):
                self.json.skip(part.size)
                self.size = min(2 * self.size, BLOCK)
                return part
            self.size //= 2
        self.size, self.singles = SMALL_BLOCK, SINGLES
        return None


def _listed(json: Json, file: _File) -> Iterator[tuple[int, object]]:
    blocks = _Blocks(json, file)
    for _ in json.items():
        line = json.line if json.peek() else 0
        yield line, blocks.next() or kineto_repairs.event(json)


def _events(json: Json, file: _File) -> Iterator[tuple[int, object]]:
    """Yield the events, or blocks of them, and their first lines; hand the other members to ``file``."""
    if json.peek() == "[":
        yield from _listed(json, file)
    else:
        for key in json.members():
            if key == "traceEvents" and json.peek() == "[":
                yield from _listed(json, file)
            else:
                file.learn(key, kineto_repairs.member(json, key))
    if sign := json.peek():
        raise json.broken(f"{sign!r} stands after the end of the trace")


def read(stream: BinaryIO) -> Iterator[Batch]:
    """Read a trace; a first look over it finds the base of its clock, which stands at the end."""
    with Text(stream) as text:
        base, lines = _survey(text)
        json, file = Json(text.pieces()), _File(base)
        account, message = Account(file.rows), ""
        try:
            for first, values in _events(json, file):
                if isinstance(values, Part):
                    if file.rows.count:
                        yield file.rows.batch()
                    account.spans(first + values.first_lines, first + values.last_lines, values.taken)
                    yield file.rows.ledger.batch(file.add_block(values, first))
                    continue
                try:
                    account.span(file.add(values, first), first, json.line)
                except ValueError as error:
                    record = Record(REJECT, first, 0, str(values)[:TEXT_LIMIT], [], str(error))
                    account.span(REJECT, first, json.line, record)
                if file.rows.full:
                    yield file.rows.batch()
        except CutError:
            message = f"the file ends inside the trace, on line {lines}: what follows is lost"
            if lines:
                first = min(json.line, lines)
                account.span(REJECT, first, lines, Record(REJECT, first, 0, "", [], "the file ends inside the trace"))
        account.finish(lines)
        facts = {"tool": file.tool, "encoding": text.encoding, **({"base_time_ns": str(base)} if base else {})}
        if file.taken and file.since_1970:
            facts["clock"] = UTC
        yield file.rows.batch(facts, "; ".join(filter(None, (*file.said(), message))))
