"""Job of a worker process (`profsvc.workers.worker`) that turns a Nsight Compute report into lines of JSON.

It uses NVIDIA's package ``ncu_report`` and the standard library. The package reads a file that ends early as one with
fewer or empty results, so the frames of the file are checked first: a file header, then blocks, each with the size of
its results in its header (``extras/FileFormat/ProfilerReport.proto`` of Nsight Compute).

The first request has the path, the folder of the package, its version, and the metrics to read by instruction. Its
response and those to ``("more",)`` are ``("lines", bytes, are_all)``. `profsvc.formats.ncu.report_lines` says what the
lines are.
"""

import json
import marshal
import os
import sys
from collections.abc import Callable, Iterator
from typing import Any, BinaryIO, NamedTuple

MAGIC = b"NVR\0"
MAX_HEADER_BYTES = 256 << 20
RESPONSE_BYTES = 1 << 20
PART_INSTRUCTIONS = 2048
INSTRUCTION_BYTES = 16
NO_DATA = "no data"
"""What the raw page prints for a metric that was collected without a result."""
NO_METRICS = ("group:", "breakdown:")
"""Names that stand for lists of metrics in the sections of the report."""
MAX_LINE_CHARS = 2000
# Names of `ncu_report.MsgType` and `SpeedupType`, and what the details page prints for them.
RULE_TYPES = {"OK": "INF", "OPTIMIZATION": "OPT", "WARNING": "WRN", "ERROR": "ERR"}
ESTIMATES = {"GLOBAL": "global", "LOCAL": "local"}
# The metrics that are columns before the metrics of a raw page.
IDENTITY = {"Context": "launch__context_id", "Stream": "launch__stream_id", "Device": "launch__device_id"}
CAPABILITY = ("device__attribute_compute_capability_major", "device__attribute_compute_capability_minor")
DURATION = "gpu__time_duration.sum"


class DamagedError(Exception):
    """The file is not a whole report."""


class UnitsError(Exception):
    """The package has no units for the metrics of the report."""


class Process(NamedTuple):
    """The process that a block of results is of."""

    number: str = ""
    name: str = ""
    host: str = ""


def varint(data: bytes, place: int) -> tuple[int, int]:
    """Return a number of a protocol buffer, and the place after it."""
    value = shift = 0
    while True:
        byte = data[place]
        value |= (byte & 127) << shift
        place, shift = place + 1, shift + 7
        if byte < 128:
            return value, place
        if shift > 63:
            raise IndexError


def fields(data: bytes) -> dict[int, Any]:
    """Return the last value of each field of a message: a number, or bytes."""
    found: dict[int, Any] = {}
    place = 0
    while place < len(data):
        key, place = varint(data, place)
        kind = key & 7
        if kind == 0:
            found[key >> 3], place = varint(data, place)
            continue
        size, place = varint(data, place) if kind == 2 else ({1: 8, 5: 4}[kind], place)
        if place + size > len(data):
            raise IndexError
        found[key >> 3], place = data[place : place + size], place + size
    return found


def sized(file: BinaryIO, left: int, what: str) -> bytes:
    """Read a message that follows its size."""
    size = int.from_bytes(file.read(4), "little")
    if left < 4 or size > left - 4:
        raise DamagedError(f"it ends inside {what}: the file is cut")
    if size > MAX_HEADER_BYTES:
        raise DamagedError(f"{what} has {size} bytes")
    return file.read(size)


def text(value: Any) -> str:
    """Return a text that can be written."""
    value = value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)
    return str(value.encode("utf-8", "replace").decode())


def frames(path: str) -> list[tuple[int, Process]]:
    """Return how many results each block has, and the process they are of; raise `DamagedError`."""
    end = os.path.getsize(path)  # noqa: PTH202  # the worker imports as little as it can
    found: list[tuple[int, Process]] = []
    with open(path, "rb") as file:  # noqa: PTH123
        if file.read(4) != MAGIC:
            raise DamagedError("it does not begin as a report")
        sized(file, end - 4, "the file header")
        while (place := file.tell()) < end:
            what = f"block {len(found) + 1}"
            try:
                if not (data := sized(file, end - place, f"the header of {what}")):
                    raise DamagedError(f"the header of {what} is empty, as where a file was not written to its end")
                header = fields(data)
                about = fields(header.get(6, b""))
                payload, results = header.get(5, 0), header.get(2, 0)
                found.append((results, Process(*(text(about.get(n, "")) for n in (1, 3, 2)))))
                place = file.tell() + payload
            except (IndexError, KeyError, TypeError, AttributeError):
                raise DamagedError(f"the header of {what} is none") from None
            if place > end:
                raise DamagedError(f"it ends inside {what}: the file is cut")
            file.seek(place)
    return found


def printed(metric: Any) -> str | None:
    """Return the value of a metric as text; None if it has only instances."""
    value = metric.value() if metric.has_value() else None
    if value is None:
        return None if metric.num_instances() else NO_DATA
    return text(value) if isinstance(value, str) else repr(value)


def rules(action: Any, package: Any) -> list[list[Any]]:
    """Return the rules of a launch: section, rule, type, kind and percent of the estimate, message, focus metrics.

    A rule may have several messages. What has none belongs to the message before it.
    """
    found: list[list[Any]] = []
    for rule in action.rule_results_as_dicts():
        message, estimate = rule["rule_message"], rule.get("speedup_estimation")
        kind = None if estimate is None else ESTIMATES.get(package.SpeedupType(estimate["type"]).name)
        percent = estimate["speedup"] if estimate and kind else None
        focus = [
            [text(one["name"]), one["value"], package.FocusSeverity(one["severity"]).name.lower(), text(one["info"])]
            for one in rule.get("focus_metrics", ())
        ]
        names = [text(rule["section_identifier"]), text(rule["rule_identifier"])]
        if message["message"]:
            rule_type = RULE_TYPES.get(package.MsgType(message["type"]).name)
            found.append([*names, rule_type, kind, percent, text(message["message"]), focus])
        elif found and found[-1][:2] == names:
            found[-1][3:5] = [kind, percent] if percent is not None else found[-1][3:5]
            found[-1][6] += focus
    return found


def ranges(action: Any) -> dict[str, list[str]]:
    """Return the NVTX ranges around a launch, outermost first, with the domain before each name."""
    found: dict[str, list[str]] = {"push_pop": [], "start_end": []}
    state = action.nvtx_state()
    for number in state.domains() if state is not None else ():
        domain = state.domain_by_id(number)
        for kind, names in (("push_pop", domain.push_pop_ranges()), ("start_end", domain.start_end_ranges())):
            found[kind] += [f"{text(domain.name())}:{text(name)}" for name in names]
    return {kind: names for kind, names in found.items() if names}


def dimensions(values: dict[str, str | None], of: str) -> str:
    """Return the size of a grid or a block as the raw page prints it."""
    sizes = [values.get(f"launch__{of}_dim_{axis}") for axis in "xyz"]
    return f"({', '.join(map(str, sizes))})" if all(sizes) else ""


def identity(number: int, action: Any, process: Process, values: dict[str, str | None]) -> dict[str, str]:
    """Return the columns of a raw page that are before its metrics."""
    capability = [values.get(name) for name in CAPABILITY]
    return {
        "ID": str(number), "Process ID": process.number, "Host Name": process.host,
        "Process Name": process.name.replace("\\", "/").rpartition("/")[2],
        "Kernel Name": text(action.name(action.NameBase_DEMANGLED) or action.name()),
        "Block Size": dimensions(values, "block"), "Grid Size": dimensions(values, "grid"),
        "CC": ".".join(map(str, capability)) if all(capability) else "",
        **{column: values.get(name) or "" for column, name in IDENTITY.items()},
    }  # fmt: skip


def typed(metric: Any) -> Callable[[int], Any]:
    """Return the function that gives an instance of a metric by its place, as its first one is: many times faster."""
    first = metric.value(0)
    if isinstance(first, str):
        return lambda place: text(metric.as_string(place) or "")
    read: Callable[[int], Any] = metric.as_uint64 if isinstance(first, int) else metric.as_double
    return read


def code(action: Any, addresses: list[int]) -> dict[int, str]:
    """Return the SASS at the addresses and around them: a page lists the instructions that never executed as well."""
    found: dict[int, str] = {}
    for first in addresses:
        for step in (INSTRUCTION_BYTES, -INSTRUCTION_BYTES) if first not in found else ():
            place = first
            while place >= 0 and (place not in found or place == first):
                sass = text(action.sass_by_pc(place) or "")
                if not sass and place != first:
                    break
                found[place] = sass
                place += step
    return found


def instructions(action: Any, wanted: list[str]) -> Iterator[dict[str, Any]]:
    """Yield the instructions of a launch with their metrics, a part at a time, and the source lines they refer to.

    A count that has no instance at an instruction is 0 there, as on a page.
    """
    there = set(action.metric_names()).intersection(wanted)
    metrics = {name: action.metric_by_name(name) for name in wanted if name in there}
    metrics = {name: metric for name, metric in metrics.items() if metric.has_correlation_ids()}
    values: dict[int, list[Any]] = {}
    zeros: list[Any] = [None] * len(metrics)
    for column, metric in enumerate(metrics.values()):
        count, addresses = metric.num_instances(), metric.correlation_ids()
        if not count or not isinstance(addresses.value(0), int):
            continue
        address_of, value_of = addresses.as_uint64, typed(metric)
        zeros[column] = None if isinstance(metric.value(0), str) else 0
        for place in range(count):
            values.setdefault(address_of(place), [None] * len(metrics))[column] = value_of(place)
    files = {name: content.split("\n") for name, content in action.source_files().items() if content} if values else {}
    sass = code(action, sorted(values))
    ordered = sorted(sass)
    for first in range(0, len(ordered), PART_INSTRUCTIONS):
        lines: dict[tuple[str, int], int] = {}
        rows = []
        for address in ordered[first : first + PART_INSTRUCTIONS]:
            place = action.source_info(address)
            known = place is not None and place.line()
            line = lines.setdefault((place.file_name(), place.line()), len(lines)) if known else None
            counted = values.get(address, zeros)
            cells = [zero if cell is None else cell for cell, zero in zip(counted, zeros, strict=True)]
            rows.append([address, sass[address], line, *cells])
        shown = [[text(name), line, source_text(files.get(name, []), line)] for name, line in lines]
        yield {"metrics": list(metrics), "lines": shown, "instructions": rows}


def source_text(lines: list[str], number: int) -> str | None:
    """Return a line of a source file, without its line end; None if the report does not hold it."""
    return text(lines[number - 1].rstrip("\r")[:MAX_LINE_CHARS]) if 0 < number <= len(lines) else None


def launches(package: Any, path: str, blocks: list[tuple[int, Process]], wanted: list[str]) -> Iterator[dict[str, Any]]:
    """Yield the columns, the launches with their instructions, and the number of launches."""
    actions = [action for part in package.load_report(path) for action in part]
    processes = [process for results, process in blocks for _ in range(min(results, len(actions)))]
    if len(actions) < sum(results for results, _ in blocks):
        raise DamagedError(f"{len(actions)} of {sum(results for results, _ in blocks)} results can be read")
    if len(processes) != len(actions) and len(set(processes)) > 1:
        processes = []
    process = processes[0] if processes else Process()
    units: dict[str, str] = {}
    for number, action in enumerate(actions):
        if action.name() is None:  # as of a result that does not parse
            raise DamagedError(f"result {number + 1} of {len(actions)} cannot be read")
        there = (name for name in action.metric_names() if name not in units and not name.startswith(NO_METRICS))
        units.update((name, action[name].unit() or "") for name in there)
    if DURATION in units and not units[DURATION]:
        raise UnitsError
    yield {"columns": [[text(name), text(unit)] for name, unit in sorted(units.items())]}
    for number, action in enumerate(actions):
        values = {name: printed(action.metric_by_name(name)) for name in action.metric_names()}
        yield {
            "launch": identity(number, action, processes[number] if processes else process, values),
            "values": [values.get(name) for name in sorted(units)],
            "ranges": ranges(action),
            "rules": rules(action, package),
        }
        yield from instructions(action, wanted)
    yield {"end": len(actions)}


def responses(lines: Iterator[dict[str, Any]], version: str) -> Iterator[tuple[str, bytes, bool]]:
    """Yield the lines in responses of limited size."""
    written = bytearray(json.dumps({"profsvc": "ncu-report", "version": 1, "package": version}).encode() + b"\n")
    for line in lines:
        written += json.dumps(line, separators=(",", ":")).encode() + b"\n"
        if len(written) >= RESPONSE_BYTES:
            yield "lines", bytes(written), False
            written.clear()
    yield "lines", bytes(written), True


def run(asked: dict[str, Any], received: Callable[[], Any], send: Callable[[bytes], None]) -> None:
    """Respond with the lines, one response per request."""
    sys.path.append(asked["packages"])
    try:
        import ncu_report

        lines = launches(ncu_report, asked["path"], frames(asked["path"]), asked["source_metrics"])
        for response in responses(lines, asked["version"]):
            send(marshal.dumps(response))
            received()
    except DamagedError as error:
        send(marshal.dumps(("damaged", str(error))))
    except UnitsError:
        words = f"ncu_report {asked['version']} gives no units for its metrics, as for a GPU that it does not know"
        send(marshal.dumps(("error", f"{words}; install a newer one: pip install --upgrade ncu-report")))
    except ImportError as error:
        send(marshal.dumps(("error", f"the package ncu_report does not load: {text(error)[:200]}")))
    except Exception as error:  # the package raises what it likes for a damaged report
        send(marshal.dumps(("damaged", f"{type(error).__name__}: {text(error)[:150]}" if str(error) else "no memory")))
