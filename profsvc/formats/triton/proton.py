"""Reader of the profiles of Triton's Proton: a tree of scopes and calls with the kernels at its ends, as JSON."""

import json
import re
from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import BinaryIO

from profsvc.errors import BrokenInputError
from profsvc.formats.parsing.embedded_tables import LineAccount, Rows
from profsvc.formats.parsing.head import head_text
from profsvc.formats.parsing.json_stream import CountedLines, Json, TruncatedJsonError, storable_text
from profsvc.formats.parsing.records import MAX_TEXT_CHARS, REJECT, ROW, Record
from profsvc.formats.parsing.text import Text
from profsvc.tables import Batch

NAME = "proton"

TOOL = "proton"
TIME, COUNT, DEVICE, PLATFORM = "time (ns)", "count", "device_id", "device_type"
# What the backend instrumentation records in a kernel, instead of a time; metrics of scopes have other names.
CYCLES = ("cycles", "normalized_cycles")
MAX_DEPTH = 200
MAX_INTEGER = 2**63 - 1
MAX_FLOAT = Decimal("1e300")
# The first nodes of a tree: its children come before its own name.
_BEGIN = re.compile(r'\s*\[\s*\{\s*"(?:children|frame|metrics)"\s*:')
_FRAME = re.compile(r'"frame"\s*:\s*\{')


def sniff(head: bytes) -> bool:
    """Return whether ``head`` begins a list of trees with frames."""
    text = head_text(head)
    return bool(_BEGIN.match(text) and _FRAME.search(text))


def _number(metrics: Mapping[str, object], name: str) -> Decimal | None:
    """Return a number of a node; None if it lacks the number; raise `ValueError` for what is not a number from 0."""
    value = metrics.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | Decimal) or not 0 <= value <= MAX_INTEGER:
        raise ValueError(f"{name} is {str(value)[:40]!r}, not a number from 0 to 2^63")
    return Decimal(value)


def _said(value: object) -> float | None:
    """Return what the program says as a number; None if it is not one."""
    if isinstance(value, bool) or not isinstance(value, int | Decimal) or not -MAX_FLOAT < value < MAX_FLOAT:
        return None
    return float(value)


class _Tree:
    """Reads the nodes of a file, the children of each before itself."""

    def __init__(self, lines: CountedLines) -> None:
        self.lines, self.text, self.rows = lines, Json(iter(lines)), Rows()
        self.account = LineAccount(self.rows)
        self.timed = self.counted = False
        self.platforms: dict[str, None] = {}

    def batches(self) -> Iterator[Batch]:
        if self.text.peek():
            for _ in self.text.items():
                yield from self._node(1)
        if after := self.text.peek():
            raise self.text.broken(f"{after!r} found after the list")

    def _node(self, depth: int) -> Iterator[Batch]:
        text = self.text
        if depth > MAX_DEPTH:
            raise BrokenInputError(f"line {text.line}: calls are nested in more than {MAX_DEPTH} others")
        if not text.peek():
            raise TruncatedJsonError
        if text.peek() != "{":
            raise text.broken(f"{text.peek()!r} found where a node begins")
        first, line, found = text.line, text.line, dict[str, object]()
        try:
            for key in text.members():
                if key == "children":
                    for _ in text.items():
                        yield from self._node(depth + 1)
                        first = text.line
                else:
                    line = text.line if text.peek() and key == "metrics" else line
                    found[key] = text.value()
        except TruncatedJsonError:  # a node is complete with its metrics
            self._take(first, line, found)
            raise
        self._take(first, line, found)
        if self.rows.full:
            yield self.rows.batch()

    def _take(self, first: int, line: int, found: Mapping[str, object]) -> None:
        """Store a node that has a name and metrics, whose lines begin at ``first`` and ``line``."""
        last, frame, metrics = min(self.text.line, self.lines.count), found.get("frame"), found.get("metrics")
        if not isinstance(frame, dict) or not isinstance(metrics, dict):
            return
        name, timed = str(frame.get("name") or ""), TIME in metrics
        if not timed and CYCLES[0] not in metrics:
            return
        try:
            self.timed = self.timed or bool(metrics.get(TIME))
            stored = self._kernel(line, name, metrics) if timed else self._cycles(line, name, metrics)
        except ValueError as error:
            text = storable_text(json.dumps(metrics, default=str)[:MAX_TEXT_CHARS])
            self.account.span(REJECT, first, last, Record(REJECT, first, 0, text, [], str(error)))
        else:
            if stored:
                self.account.span(ROW, first, last)

    def _kernel(self, line: int, name: str, metrics: Mapping[str, object]) -> bool:
        """Store the calls of a kernel in one place of the tree; return whether it had any."""
        calls, time = _number(metrics, COUNT), _number(metrics, TIME)
        if not calls and not time:  # the root, and scopes without a kernel of their own
            return False
        if not name or calls is None or calls != int(calls) or time is None:
            raise ValueError("it has no name, no whole number of calls or no time")
        device = str(metrics.get(DEVICE, ""))
        kernel, index = storable_text(name), int(device) if re.fullmatch("[0-9]{1,4}", device) else None
        self.rows.add("kernel_summaries", {
            "category": "kernel", "kernel": kernel, "calls": int(calls), "total_ns": float(time),
            "device_index": index, "line": line,
        })  # fmt: skip
        self._metrics(line, kernel, int(calls), metrics)
        self.platforms[str(metrics.get(PLATFORM, "unknown"))] = None
        return True

    def _cycles(self, line: int, name: str, metrics: Mapping[str, object]) -> bool:
        """Store the cycles of a kernel, or of a scope in one, under its name; return whether it had any."""
        calls, cycles = _number(metrics, COUNT), _number(metrics, CYCLES[0])
        if not cycles:
            return False
        if not name or (calls is not None and calls != int(calls)):
            raise ValueError("it has no name or no whole number of calls")
        self.counted = True
        self._metrics(line, storable_text(name), None if calls is None else int(calls), metrics)
        return True

    def _metrics(self, line: int, kernel: str, calls: int | None, metrics: Mapping[str, object]) -> None:
        """Store what else a node says of its kernel."""
        for key in sorted(metrics.keys() - {TIME, COUNT, DEVICE, PLATFORM}):
            value = _said(metrics[key])
            self.rows.add(
                "metrics",
                {
                    "kernel": kernel,
                    "invocations": calls,
                    "statistic": "sum",
                    "metric": storable_text(key),
                    "raw_text": storable_text(str(metrics[key])[:MAX_TEXT_CHARS]),
                    "value": value,
                    "unit": "cycle" if key in CYCLES else None,
                    "si_unit": "cycle" if key in CYCLES and value is not None else None,
                    "reason": "not a number" if value is None else None,
                    "line": line,
                },
            )


def read(stream: BinaryIO) -> Iterator[Batch]:
    """Read the trees of a file in one pass."""
    with Text(stream) as text:
        tree, said = _Tree(lines := CountedLines(text.lines())), ""
        try:
            yield from tree.batches()
        except TruncatedJsonError:
            first = min(tree.text.line, lines.count)
            said = f"the file ends inside a node on line {lines.count}; the rest is missing"
            record = Record(REJECT, first, 0, "", [], "the file ends inside a node")
            tree.account.span(REJECT, first, lines.count, record)
        for _ in lines:
            pass
        tree.account.finish(lines.count)
        if not tree.timed and not tree.counted and not said:
            raise BrokenInputError(
                f"no node has a {TIME!r} or {CYCLES[0]!r}: the profile has no times of kernels; record again without "
                "PC sampling: proton --name profile PROGRAM"
            )
        untimed = "the profile has cycles and no times; for those record again without --backend instrumentation"
        said = "; ".join(filter(None, (said, "" if tree.timed or not tree.counted else untimed)))
        facts = {"tool": TOOL, "platforms": ", ".join(tree.platforms), "encoding": text.encoding}
        yield tree.rows.batch(facts, "; ".join(filter(None, (tree.account.message(), said))))
