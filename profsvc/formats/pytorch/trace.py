"""Reader of traces of the PyTorch profiler (Kineto): JSON in the Chrome trace format."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import BinaryIO, cast

from profsvc.errors import BrokenInputError
from profsvc.formats.parsing.copy_kinds import parse_transfer
from profsvc.formats.parsing.embedded_tables import LineAccount, Rows
from profsvc.formats.parsing.head import head_text
from profsvc.formats.parsing.json_stream import Json, TruncatedJsonError, storable_text
from profsvc.formats.parsing.records import MAX_TEXT_CHARS, REJECT, ROW, SKIP, Record
from profsvc.formats.parsing.text import Text
from profsvc.formats.parsing.timestamps import MAX_EPOCH_S, MIN_EPOCH_S, SECOND, UTC
from profsvc.formats.pytorch import malformed_events, other_tools
from profsvc.formats.pytorch import xla as kineto_xla
from profsvc.formats.pytorch.event_blocks import ParsedEvents, parse
from profsvc.formats.pytorch.events import BEGIN, COUNTERS, KINDS, Event, counters_of, is_ignored, metrics_of
from profsvc.formats.pytorch.malformed_events import UnreadableEvent
from profsvc.formats.rocm import rocprof_v1_tables
from profsvc.tables import Batch, ColumnTable, Table

NAME = "kineto"

TOOL, XLA = "PyTorch profiler", "XLA profiler"
BLOCK_CHARS, SMALL_BLOCK_CHARS = 2 << 20, 1 << 15
# Events that are read one by one after a small block fails.
MAX_SINGLE_EVENTS = 100
MAX_SECTIONS = 10_000
_BASE_KEY = '"baseTimeNanoseconds"'
_BASE = re.compile(rf"(?<!\\){_BASE_KEY}\s*:\s*(-?[0-9]{{1,19}})(?![0-9.eE])")
_OVERLAP_CHARS = 200
# Members of a file of Kineto beside its events, one of which tells it from those of other tools.
_KINETO_MEMBERS = frozenset(("schemaVersion", "deviceProperties", "baseTimeNanoseconds", "traceName"))
_EVENTS_KEY = '"traceEvents"'
_TAIL_BYTES = 1 << 16
_LIST = re.compile(r"\[\s*\{")
_PHASE = re.compile(r'"ph"\s*:\s*"[A-Za-z]"')
_RANGE = re.compile(r"__\w+__|[0-9]+|")
UNKNOWN_CATEGORIES = "events of unknown categories were skipped: {}"
COUNTERS_WITHOUT_TIMES = (
    "kernels with CUPTI counters have no times; profile again without counters and upload into the same run"
)


def sniff(head: bytes) -> bool:
    """Return whether ``head`` begins a list of trace events, bare or in an object of Kineto."""
    text = head_text(head).lstrip(" \t\r\n\ufeff")
    if _LIST.match(text):
        return '"ts"' in text and bool(_PHASE.search(text))
    kineto = '"schemaVersion"' in text and '"deviceProperties"' in text
    return text.startswith("{") and ('"traceEvents"' in text or kineto)


class _TraceReader:
    """Converts the events of a trace to rows; keeps the facts of the whole file."""

    def __init__(self, base: int, head: str) -> None:
        self.base, self.rows = base, Rows()
        self.other = other_tools.tool_of(head)
        self.kinds = {**KINDS, **self.other.kinds} if self.other else KINDS
        self.devices: dict[int, tuple[str | None, str | None]] = {}
        self.gpus: dict[object, int] = {}
        self.sections: dict[str, str] = {}
        self.passed = Counter[str]()
        self.taken = self.unreadable = self.counted = self.twice = 0
        self.kernels_seen = False
        self.tool = self.other.name if self.other else TOOL
        self.is_known = self.other is not None
        self.since_1970 = True

    def learn(self, key: str, value: object) -> None:
        """Add a member of the file other than its events."""
        if key == "deviceProperties" and isinstance(value, list):
            for row in value:
                if isinstance(row, dict) and isinstance(row.get("id"), int):
                    major, minor, name = row.get("computeMajor"), row.get("computeMinor"), row.get("name")
                    capability = f"{major}.{minor}" if isinstance(major, int) and isinstance(minor, int) else None
                    self.devices[row["id"]] = (storable_text(name) if isinstance(name, str) else None, capability)
        self.is_known = self.is_known or key in _KINETO_MEMBERS
        if key == "baseTimeNanoseconds" and value != self.base:
            raise BrokenInputError(
                f"baseTimeNanoseconds is both {str(value)[:40]} and {self.base}, so the clock is ambiguous; "
                "export the trace again"
            )

    def add(self, values: object, line: int) -> str:
        """Add an event; return its kind of record. Raise `ValueError` with the reason to reject it."""
        if isinstance(values, UnreadableEvent):
            self.unreadable += 1
            raise ValueError(values.reason)
        if not isinstance(values, dict):
            raise ValueError("the event is not a JSON object")
        if values.get("ph") == "M":
            self._section(values)
        elif (cells := values.get("args")) and values.get("ph") == "X" and "cat" not in values and "BeginNs" in cells:
            return self._rocprof(cells, str(values.get("pid")), line)
        converted = self._converted(values)
        if converted is None:
            return SKIP
        values = converted
        category = str(values.get("cat")).lower() if values.get("ph") == "X" else None
        event, kind = Event(values, self.base), self.kinds.get(category or "")
        if category == COUNTERS:
            return self._counters(event, line)
        if kind is None:
            self.passed.update([] if category is None or is_ignored(values.get("cat")) else [str(values.get("cat"))])
            if values.get("ph") == BEGIN and str(values.get("cat")).lower() in KINDS:
                self.passed[f"{values['cat']} as begin and end"] += 1
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

    def _converted(self, values: Mapping[str, object]) -> Mapping[str, object] | None:
        """Return an event as Kineto would write it; None for one without stored information."""
        if self.other:
            return self.other.convert(values)
        if values.get("ph") == "X" and str(values.get("cat")).lower() == other_tools.PTI_CATEGORY:
            self.tool = other_tools.PTI
            return other_tools.pti_event(values)
        if (theirs := kineto_xla.to_kineto_event(values, self.gpus)) is not None:
            self.tool = XLA
            return theirs
        return values

    def _section(self, values: Mapping[str, object]) -> None:
        """Note the process or device name that a metadata event gives."""
        args, number = values.get("args"), kineto_xla.gpu_index(values)
        if number is not None:
            self.gpus[values.get("pid")] = number
        elif values.get("name") == "process_name" and isinstance(args, dict) and len(self.sections) < MAX_SECTIONS:
            self.sections[str(values.get("pid"))] = str(args.get("name"))

    def _rocprof(self, cells: Mapping[str, object], process: str, line: int) -> str:
        """Add an event of the first rocprof; its arguments are a row of a table."""
        table, self.tool, told = (
            rocprof_v1_tables.table_of(cells, self.sections.get(process, "")),
            rocprof_v1_tables.TOOL,
            {**cells},
        )
        told = rocprof_v1_tables.to_cells(told)
        self.kernels_seen = self.kernels_seen or table == rocprof_v1_tables.KERNELS
        if self.kernels_seen and table == rocprof_v1_tables.OPS and rocprof_v1_tables.is_kernel(table, told):
            self.twice += 1
            return SKIP
        if not table or not rocprof_v1_tables.read_row(table, told, line, self.rows):
            return SKIP
        self.taken, self.since_1970 = self.taken + 1, False
        return ROW

    def _counters(self, event: Event, line: int) -> str:
        """Add the CUPTI counters of a kernel or of a range of the profile."""
        name, metrics = event.name(), counters_of(event)
        if not metrics:
            raise ValueError("the event has no counter")
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
        """Return the messages about the whole file."""
        most = ", ".join(f"{name} ({count})" for name, count in self.passed.most_common(5))
        return [
            "" if self.taken else "the trace holds no kernel, copy, call or range",
            f"rejected events with invalid JSON: {self.unreadable}" if self.unreadable else "",
            UNKNOWN_CATEGORIES.format(most) if most else "",
            COUNTERS_WITHOUT_TIMES if self.counted else "",
            rocprof_v1_tables.DUPLICATE_KERNELS.format(self.twice) if self.twice else "",
        ]

    def _date(self, first: int, last: int) -> None:
        self.since_1970 = self.since_1970 and first >= MIN_EPOCH_S * SECOND and last < MAX_EPOCH_S * SECOND

    def add_block(self, part: ParsedEvents, line: int) -> dict[str, Table]:
        """Add a block of events that begins on ``line``; return its tables."""
        tables: dict[str, Table] = {}
        self.passed.update(part.passed)
        for name, columns in part.tables.items():
            columns["line"] = columns["line"] + line
            if "launch_index" in columns:
                columns["launch_index"] = columns["launch_index"] + self.rows.launches
            tables[name] = ColumnTable(name, len(columns["line"]), columns)
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
        # The pid of a device event is the device number if the file lists it, else a process.
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
            moved = parse_transfer(event.name(), kind == "set")
            self.rows.add("transfers", {**row, **moved, "bytes": event.whole("bytes", "Bytes")})


def _find_base(text: str) -> re.Match[str] | None:
    # Searching the word first is much faster, and most texts do not contain it.
    return _BASE.search(text) if _BASE_KEY in text else None


def _base_of(text: Text) -> int:
    """Return the clock base, which stands before or after the events: whatever stands between them, only if needed."""
    head = next(text.pieces(), "").partition(_EVENTS_KEY)[0]
    if head.lstrip(" \t\r\n\ufeff").startswith("["):
        return 0  # a bare list of events
    match = _find_base(text.tail(_TAIL_BYTES)) or _find_base(head)
    if match:
        return int(match[1])
    base, tail = 0, ""
    for piece in text.pieces():
        between = _find_base(tail + piece[:_OVERLAP_CHARS])
        match = between if between and between.start() < len(tail) else _find_base(piece)
        if match:
            base = int(match[1])
        tail = piece[-_OVERLAP_CHARS:]
    return base


class _BlockReader:
    """Reads events in blocks; after a failure in smaller blocks, then some events one by one."""

    def __init__(self, json: Json, file: _TraceReader) -> None:
        self.json, self.file = json, file
        self.size, self.singles = BLOCK_CHARS, 0

    def next(self) -> ParsedEvents | None:
        """Read the next block of events; None if the next event must be read alone."""
        if self.file.other:
            return None
        if self.singles:
            self.singles -= 1
            return None
        while self.size >= SMALL_BLOCK_CHARS:
            if part := parse(self.json.ahead(self.size), self.file.base, self.file.devices):
                self.json.skip(part.size, part.line_ends)
                self.size = min(2 * self.size, BLOCK_CHARS)
                return part
            self.size //= 2
        self.size, self.singles = SMALL_BLOCK_CHARS, MAX_SINGLE_EVENTS
        return None


def _list_events(json: Json, file: _TraceReader) -> Iterator[tuple[int, object]]:
    blocks = _BlockReader(json, file)
    for _ in json.items():
        line = json.line if json.peek() else 0
        yield line, blocks.next() or malformed_events.read_event(json)


def _events(json: Json, file: _TraceReader) -> Iterator[tuple[int, object]]:
    """Yield the events, or blocks of them, and their first lines; hand the other members to ``file``."""
    if json.peek() == "[":
        yield from _list_events(json, file)
    else:
        for key in json.members():
            if key == "traceEvents" and json.peek() == "[":
                yield from _list_events(json, file)
            else:
                file.learn(key, malformed_events.read_member(json, key))
    if sign := json.peek():
        raise json.broken(f"{sign!r} stands after the end of the trace")


def read(stream: BinaryIO) -> Iterator[Batch]:
    """Read a trace; a first look at its ends finds the base of its clock, which may stand behind the events."""
    with Text(stream) as text:
        base = _base_of(text)
        json, file = Json(text.pieces()), _TraceReader(base, next(text.pieces(), ""))
        account, message, lines = LineAccount(file.rows), "", 0
        try:
            for first, values in _events(json, file):
                if isinstance(values, ParsedEvents):
                    if file.rows.count:
                        yield file.rows.batch()
                    account.spans(first + values.first_lines, first + values.last_lines, values.taken)
                    yield file.rows.ledger.batch(file.add_block(values, first))
                    continue
                try:
                    account.span(file.add(values, first), first, json.line)
                except ValueError as error:
                    record = Record(REJECT, first, 0, json.text(MAX_TEXT_CHARS), [], str(error))
                    account.span(REJECT, first, json.line, record)
                if file.rows.full:
                    yield file.rows.batch()
        except TruncatedJsonError:
            lines = json.lines()
            message = f"the file ends inside the trace, on line {lines}: what follows is lost"
            if lines:
                first = min(json.line, lines)
                account.span(REJECT, first, lines, Record(REJECT, first, 0, "", [], "the file ends inside the trace"))
        account.finish(lines or json.lines())
        tool = {"tool": file.tool} if file.taken or file.is_known else {}
        facts = {**tool, "encoding": text.encoding, **({"base_time_ns": str(base)} if base else {})}
        if file.taken and file.since_1970:
            facts["clock"] = UTC
        yield file.rows.batch(facts, "; ".join(filter(None, (*file.said(), account.message(), message))))
