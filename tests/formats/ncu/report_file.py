"""Reports of Nsight Compute, built from pages: messages of ``extras/FileFormat/*.proto`` in their frames.

What a page prints rounded, a report built of it holds rounded. A report has no SASS, as that comes with a binary.
"""

import csv
import gzip
import struct
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

MAGIC = b"NVR\0"
RULE_TYPES = {"INF": 1, "WRN": 2, "OPT": 4}
ESTIMATES = {"local": 1, "global": 2}
IDENTITY = (
    "ID", "Process ID", "Process Name", "Host Name", "Kernel Name", "Context", "Stream", "Block Size", "Grid Size",
    "Device", "CC",
)  # fmt: skip
Value = str | int | float


class Rule(NamedTuple):
    """A rule; ``apart`` puts its message, its estimate and each of its metrics into items of their own."""

    section: str
    rule: str
    rule_type: str
    message: str
    kind: str = ""
    percent: float = 0.0
    focus: Sequence[tuple[str, float, int, str]] = ()
    apart: bool = False


class Result(NamedTuple):
    """A launch; ``instances`` are the values of metrics by instruction: pairs of address and value."""

    kernel: str
    metrics: dict[str, Value | None]
    rules: Sequence[Rule] = ()
    push_pop: Sequence[str] = ()
    start_end: Sequence[str] = ()
    instances: dict[str, Sequence[tuple[Value, Value]]] = {}  # noqa: RUF012  # never changed


def varint(number: int) -> bytes:
    low = bytes([number & 127 | (128 if number > 127 else 0)])
    return low + varint(number >> 7) if number > 127 else low


def field(number: int, value: Value | bytes) -> bytes:
    """A field of a message: a number, a double, or bytes after their length."""
    if isinstance(value, float):
        return varint(number << 3 | 1) + struct.pack("<d", value)
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    data = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(data)) + data


def message(*fields: tuple[int, Value | bytes]) -> bytes:
    return b"".join(field(*one) for one in fields)


def sized(data: bytes) -> bytes:
    return struct.pack("<I", len(data)) + data


def _metric_value(value: Value) -> bytes:
    return field(1 if isinstance(value, str) else 3 if isinstance(value, float) else 5, value)


def _metric(name: int, value: Value | None, instances: Sequence[tuple[Value, Value]]) -> bytes:
    own = [] if value is None else [(2, _metric_value(value))]
    parts = [(3, message((1, _metric_value(place)), (2, _metric_value(one)))) for place, one in instances]
    return message((1, name), *own, *parts)


def _rule(rule: Rule) -> bytes:
    focus = [
        (8, message((2, name), (3, value), (4, severity), (5, info))) for name, value, severity, info in rule.focus
    ]
    estimate = [(10, message((1, ESTIMATES[rule.kind]), (2, rule.percent)))] if rule.kind else []
    words = (1, message((1, rule.message), (2, RULE_TYPES[rule.rule_type])))
    parts = [message(words, *estimate, *focus)]
    if rule.apart:
        parts = [message(words), message(*estimate), *(message(one) for one in focus)]
    return message((1, rule.rule), (2, rule.rule), (3, message(*((1, part) for part in parts))), (4, rule.section))


def _nvtx(push_pop: Iterable[str], start_end: Iterable[str]) -> bytes:
    domain = message((1, 0), (2, "<default domain>"))
    stack = message((1, 0), *((3, field(1, name)) for name in push_pop))
    spans = message((1, 0), *((3, message((1, n), (2, name))) for n, name in enumerate(start_end, 1)))
    return message((1, domain), (2, message((1, 1), (2, stack))), (3, spans), (4, 0))


def _result(number: int, result: Result, names: dict[str, int]) -> bytes:
    zero = message((1, 0), (2, 0), (3, 0))
    metrics = [
        (13, _metric(names[name], value, result.instances.get(name, ()))) for name, value in result.metrics.items()
    ]
    nvtx = [(21, _nvtx(result.push_pop, result.start_end))] if result.push_pop or result.start_end else []
    short = result.kernel.partition("(")[0]
    return message(
        *((1, 1), (2, number), (3, 0), (4, number), (5, short), (6, short), (7, result.kernel), (8, 3)),
        *((9, zero), (10, zero), (11, zero), *metrics, (15, message((6, 90))), (16, 0)),
        *((19, _rule(rule)) for rule in result.rules),
        *nvtx,
    )


def block(
    results: Sequence[Result], process: tuple[int, str, str], names: dict[str, int], first: int, *, table: bool = True
) -> bytes:
    """A block of results, with the table of strings that they and later blocks refer to."""
    payload = b"".join(sized(_result(first + n, one, names)) for n, one in enumerate(results))
    strings = [(4, message(*((1, name) for name in names)))] if table else []
    about = message((1, process[0]), (2, process[2]), (3, process[1]))
    return sized(message((1, 0), (2, len(results)), *strings, (5, len(payload)), (6, about))) + payload


def report(*blocks: tuple[tuple[int, str, str], Sequence[Result]]) -> bytes:
    """A report of blocks, each with its process (number, name, host) and its results."""
    names = {name: n for n, name in enumerate(dict.fromkeys(m for _, rs in blocks for r in rs for m in r.metrics))}
    data, count = MAGIC + sized(message((1, 9))), 0
    for process, results in blocks:
        data += block(results, process, names, count, table=not count)
        count += len(results)
    return data


def _value(cell: str) -> Value:
    plain = cell.replace(",", "")
    for kind in (int, float):
        try:
            return kind(plain)
        except ValueError:
            pass
    return cell


def _rows(path: Path) -> list[list[str]]:
    with gzip.open(path, "rt", encoding="utf-8", newline="") as file:
        return list(csv.reader(file))


def of_pages(raw: Path, details: Path | None = None, launches: int | None = None) -> bytes:
    """A report with the launches of a raw page, and the rules of a details page."""
    rows = _rows(raw)
    begin = next(n for n, row in enumerate(rows) if row[:2] == ["ID", "Process ID"])
    header, rules = rows[begin], _rules(details) if details else {}
    results = []
    for row in rows[begin + 2 :][:launches]:
        cells = dict(zip(header, row, strict=True))
        metrics = {name: _value(cell) for name, cell in cells.items() if name not in IDENTITY and cell}
        results.append(Result(cells["Kernel Name"], metrics, rules.get(cells["ID"], ())))
    return report(((int(cells["Process ID"]), cells["Process Name"], cells["Host Name"]), results))


def _rules(path: Path) -> dict[str, list[Rule]]:
    rows = _rows(path)
    begin = next(n for n, row in enumerate(rows) if row[:2] == ["ID", "Process ID"])
    found: dict[str, list[Rule]] = {}
    for row in rows[begin + 1 :]:
        if len(row) == len(rows[begin]):
            cells = dict(zip(rows[begin], row, strict=True))
            if cells["Rule Name"]:
                found.setdefault(cells["ID"], []).append(
                    Rule(
                        cells["Section Name"], cells["Rule Name"], cells["Rule Type"], cells["Rule Description"],
                        cells["Estimated Speedup Type"], float(cells["Estimated Speedup"] or 0),
                    )
                )  # fmt: skip
    return found
