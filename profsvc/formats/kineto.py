"""Reader of the traces that PyTorch's profiler writes (Kineto): JSON in the format of Chrome's trace viewer."""

import re
from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import BinaryIO, cast

from profsvc.errors import BrokenInputError
from profsvc.formats.clock import FIRST, LAST, SECOND, UTC
from profsvc.formats.csv_tables import Account, Rows
from profsvc.formats.head import head_text
from profsvc.formats.json_stream import CutError, Json, clean
from profsvc.formats.ncu_lines import REJECT, ROW, SKIP, TEXT_LIMIT, Record
from profsvc.formats.nsys import copy_kind
from profsvc.formats.stream import Text
from profsvc.tables import Batch

NAME = "kineto"
PAGE = """\
A trace of PyTorch's profiler (Kineto), of NVIDIA or AMD devices or of the CPU alone.

Make it in the program:
    with torch.profiler.profile(record_shapes=True) as profile: ...
    profile.export_chrome_trace("FILE.json.gz")

Taken: kernels as launches, with registers, shared memory and occupancy; copies and memsets as transfers; calls of the
runtime and the driver; operators and annotations as ranges, with their category as the domain. Everything else (flows,
names of threads, Python functions, synchronisations, annotations repeated for the device) is skipped and counted.
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

TOOL = "PyTorch profiler"
LARGEST = 2**63 - 1
# Microseconds since 1970 reach this in the year 5138; nanoseconds passed it in 1973.
MOST_MICROSECONDS = 10**17
_BASE = re.compile(r'(?<!\\)"baseTimeNanoseconds"\s*:\s*(-?[0-9]{1,19})(?![0-9.eE])')
_OVERLAP = 200
_GPU = {"kernel": "kernel", "gpu_memcpy": "copy", "memcpy": "copy", "gpu_memset": "set", "memset": "set"}
_HOST = {
    **dict.fromkeys(("cuda_runtime", "cuda_driver", "hip_runtime", "hip_driver", "runtime"), "call"),
    **dict.fromkeys(("cpu_op", "operator", "user_annotation"), "range"),
}
_KINDS: Mapping[str, str] = {**_GPU, **_HOST}
_METRICS = {
    "registers per thread": ("register/thread", 1),
    "shared memory": ("byte/block", 1),
    "blocks per SM": ("block", 1),
    "warps per SM": ("warp", 1),
    "est. achieved occupancy %": ("1", 100),
}
_COPY = re.compile(r"(?:Memcpy|Memset)(?: (?P<kind>\w+))? ?\((?P<source>[^()]*?)(?: -> (?P<target>[^()]*))?\)")
_COPY_ROCM = re.compile(r"Copy(Host|Device|Peer)To(Host|Device|Peer)")


def sniff(head: bytes) -> bool:
    """Tell whether ``head`` begins an object with a list of trace events, or with what Kineto writes before it."""
    text = head_text(head).lstrip(" \t\r\n\ufeff")
    kineto = '"schemaVersion"' in text and '"deviceProperties"' in text
    return text.startswith("{") and ('"traceEvents"' in text or kineto)


def _whole(value: object) -> int | None:
    """Return a whole number that a database can hold; None for anything else."""
    return value if isinstance(value, int) and not isinstance(value, bool) and abs(value) <= LARGEST else None


class _Event:
    """One event; a value of a wrong kind raises `ValueError`."""

    def __init__(self, values: Mapping[str, object], base: int) -> None:
        args = values.get("args")
        self.values, self.base = values, base
        self.args: Mapping[str, object] = args if isinstance(args, dict) else {}

    def number(self, name: str) -> Decimal:
        value = self.values.get(name)
        if not isinstance(value, int | Decimal) or isinstance(value, bool):
            raise ValueError(f"{name} is {str(value)[:40]!r}, not a number" if name in self.values else f"no {name}")
        if not -MOST_MICROSECONDS < value < MOST_MICROSECONDS:
            if name == "ts":
                raise BrokenInputError(
                    f"ts is {str(value)[:40]}, too much for microseconds since 1970, which this format counts in; "
                    "write the trace again without changing its times"
                )
            raise ValueError(f"{name} is {str(value)[:40]}, out of range")
        return Decimal(value)

    def span(self) -> dict[str, object]:
        start, duration = self.number("ts"), self.number("dur")
        if duration < 0:
            raise ValueError("dur is negative")
        begin = round(start * 1000) + self.base
        if abs(begin) > LARGEST:
            raise ValueError("it begins out of range")
        return {"start_ns": begin, "duration_ns": float(duration * 1000)}

    def name(self) -> str:
        name = self.values.get("name")
        if not isinstance(name, str) or not name:
            raise ValueError("the event has no name")
        return clean(name)

    def whole(self, *names: str) -> int | None:
        """Return the first of the arguments that is a whole number in range."""
        for name in names:
            if (value := _whole(self.args.get(name))) is not None:
                return value
        return None

    def own(self, name: str) -> int | None:
        return _whole(self.values.get(name))

    def shape(self) -> dict[str, object]:
        found: dict[str, object] = {}
        for part in ("grid", "block"):
            sizes = self.args.get(part)
            for place, axis in enumerate("xyz"):
                number = _whole(sizes[place]) if isinstance(sizes, list) and len(sizes) == 3 else None
                found[f"{part}_{axis}"] = number if number is not None and number >= 0 else None
        return found


def _metrics(event: _Event) -> Iterator[dict[str, object]]:
    for name, (unit, divisor) in _METRICS.items():
        value = event.args.get(name)
        if isinstance(value, int | Decimal) and not isinstance(value, bool) and -LARGEST <= value <= LARGEST:
            number = float(value) / divisor
            yield {"metric": f"args:'{name}'", "raw_text": str(value), "value": number, "si_unit": unit}


def _transfer(name: str, is_set: bool) -> dict[str, object]:
    """Return kind and memories of a copy or memset from its name."""
    match = _COPY.match(name)
    if is_set:
        return {"kind": "memset", "target_memory": match["source"] if match else None}
    if rocm := _COPY_ROCM.match(name):
        return {"kind": f"{rocm[1][0]}to{rocm[2][0]}", "source_memory": rocm[1], "target_memory": rocm[2]}
    if match is None:
        return {"kind": copy_kind(name)}
    return {
        "kind": copy_kind(match["kind"] or name),
        "source_memory": match["source"] or None,
        "target_memory": match["target"] or None,
    }


class _File:
    """What is known of the whole trace, and the rows gathered from it."""

    def __init__(self, base: int) -> None:
        self.base, self.rows = base, Rows()
        self.devices: dict[int, tuple[str | None, str | None]] = {}
        self.taken = 0
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
        if not isinstance(values, dict):
            raise ValueError("the event is no object")
        kind = _KINDS.get(str(values.get("cat")).lower()) if values.get("ph") == "X" else None
        if kind is None:
            return SKIP
        event = _Event(values, self.base)
        common: dict[str, object] = {**event.span(), "line": line}
        if kind in ("call", "range"):
            self._host(kind, event, common)
        else:
            self._device(kind, event, common)
        self.taken += 1
        self.since_1970 = self.since_1970 and FIRST * SECOND <= cast("int", common["start_ns"]) < LAST * SECOND
        return ROW

    def _host(self, kind: str, event: _Event, common: Mapping[str, object]) -> None:
        row = {**common, "name": event.name(), "process_id": event.own("pid"), "thread_id": event.own("tid")}
        if kind == "call":
            self.rows.add("api_calls", {**row, "correlation_id": event.whole("correlation")})
        else:
            self.rows.add("ranges", {**row, "domain": str(event.values["cat"])})

    def _device(self, kind: str, event: _Event, common: Mapping[str, object]) -> None:
        index = event.whole("device")
        index = event.own("pid") if index is None else index
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
            launch["source_id"] = None if outside is None else str(outside)
            self.rows.add_launch({**launch, "compute_capability": capability}, list(_metrics(event)))
        else:
            moved = _transfer(event.name(), kind == "set")
            self.rows.add("transfers", {**row, **moved, "bytes": event.whole("bytes", "Bytes")})


def _survey(text: Text) -> tuple[int, int]:
    """Return the base of the clock, which stands behind the events, and the number of lines."""
    base, lines, tail, last = 0, 0, "", "\n"
    for piece in text.pieces():
        if match := _BASE.search(tail + piece):
            base = int(match[1])
        lines += piece.count("\n")
        tail, last = piece[-_OVERLAP:], piece[-1:] or last
    return base, lines + (last != "\n")


def _events(json: Json, file: _File) -> Iterator[tuple[int, object]]:
    """Yield the events and their first lines; hand the other members to ``file``."""
    for key in json.members():
        if key == "traceEvents" and json.peek() == "[":
            for _ in json.items():
                line = json.line if json.peek() else 0
                yield line, json.value()
        else:
            file.learn(key, json.value())
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
        facts = {"tool": TOOL, "encoding": text.encoding, **({"base_time_ns": str(base)} if base else {})}
        if file.taken and file.since_1970:
            facts["clock"] = UTC
        if not file.taken:
            message = "; ".join(filter(None, ("the trace holds no kernel, copy, call or range", message)))
        yield file.rows.batch(facts, message)
