"""Reader of nvidia-smi -q: all properties of each GPU, as indented names and values."""

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import BinaryIO

from profsvc.formats.parsing.head import head_lines
from profsvc.formats.parsing.ledger import Ledger
from profsvc.formats.parsing.line_reader import LineReader, read_lines
from profsvc.formats.parsing.timestamps import parse_timestamp
from profsvc.formats.timeseries.columns import NO_VALUES, STATES, scale_exactly, si_scale
from profsvc.tables import Batch, ColumnTable

NAME = "nvidia-smi-q"

TITLE = "NVSMI LOG"
BATCH_ROWS = 20_000
FACTS = {
    "Timestamp": "timestamp",
    "Driver Version": "tool_version",
    "CUDA Version": "cuda_version",
    "Attached GPUs": "gpus",
    "Product Name": "device",
    "GPU UUID": "uuid",
    "VBIOS Version": "vbios_version",
    "GPU Power Readings > Current Power Limit": "power_limit",
    "Max Clocks > SM": "max_sm_clock",
    "Max Clocks > Memory": "max_memory_clock",
    "FB Memory Usage > Total": "memory_total",
    "ECC Mode > Current": "ecc",
}
_PAIR = re.compile(r"( *)(\S(?:.*?\S)?)\s+: ?(.*)")
_SECTION = re.compile(r"( *)(\S(?:.*\S)?)\s*")
_NUMBER = re.compile(r"(-?[0-9]+(?:\.[0-9]+)?)(?: ([A-Za-z%/]+(?:\(s\))?))?")
# Units of numbers that are printed without decimals: a dot in them groups thousands.
_WHOLE = {"MHz", "MiB", "KB/s", "us"}
_GPU = re.compile(r"GPU [0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-9A-Fa-f]")


def sniff(head: bytes) -> bool:
    """Tell whether one of the first lines in ``head`` is the title of the output."""
    return any(_is_title(line) for line in head_lines(head, 50))


def _is_title(line: str) -> bool:
    return line.strip("=\r\n \ufeff") == TITLE and "====" in line


def value_of(text: str) -> tuple[str | None, float | None, str | None, str | None]:
    """Return the unit as printed, the value, its SI unit, and the reason if there is no value.

    >>> value_of("143771 MiB")
    ('MiB', 150754820096.0, 'byte', None)
    >>> value_of("Not Active"), value_of("N/A")
    ((None, 0.0, '1', None), (None, None, None, 'n/a'))
    """
    lower = text.lower().strip("[]")
    if lower in STATES:
        return None, STATES[lower], "1", None
    match = _NUMBER.fullmatch(text)
    found = si_scale(match[2] or "") if match else None
    if match and match[2] in _WHOLE and "." in match[1]:
        return None, None, None, "odd separators"
    if match and found and len(match[1]) < 40:
        return match[2], scale_exactly(float(match[1]), found[0]), found[1], None
    return None, None, None, NO_VALUES.get(lower, "text")


def _is_complete(text: str) -> bool:
    """Tell whether an unterminated line ends with a unit, or with a word that is a state.

    >>> [_is_complete(f"  Power Draw : {cell}") for cell in ("45.12 W", "45.1", "N/A", "N")]
    [True, False, True, False]
    """
    match = _PAIR.fullmatch(text)
    unit, _, _, reason = value_of(match[3].strip()) if match else (None, None, None, "text")
    return unit is not None or reason not in (None, "text", "odd separators")


class _Reader(LineReader):
    """Follows the indented lines, and keeps the path of sections above them."""

    def __init__(self) -> None:
        self.ledger = Ledger()
        self.facts: dict[str, str] = {}
        self.path: list[tuple[int, str]] = []
        self.rows: list[tuple[str | None, str, str, str | None, float | None, str | None, str | None, int]] = []
        self.begun = False
        self.count = 0

    @property
    def full(self) -> bool:
        """Whether enough properties wait for a batch."""
        return len(self.rows) >= BATCH_ROWS or self.ledger.full

    def add(self, number: int, line: str) -> None:
        """Account for a line."""
        text = line.rstrip("\r\n").expandtabs(4)
        if _is_title(text):
            self.begun, self.path = True, []
            self.ledger.skipped += 1
        elif not self.begun or not text.strip():
            self.ledger.skipped += 1
        elif not line.endswith("\n") and not _is_complete(text):
            self.ledger.reject(number, line, "the file ends inside this line, so its value may be cut")
        elif match := _PAIR.fullmatch(text):
            self._add_property(number, len(match[1]), match[2], match[3].strip())
        elif match := _SECTION.fullmatch(text):
            self._leave_sections(len(match[1]))
            self.path.append((len(match[1]), match[2]))
            self.ledger.skipped += 1
        else:
            self.ledger.reject(number, line, "neither a section nor a property with a value")

    def _leave_sections(self, indent: int) -> None:
        while self.path and self.path[-1][0] >= indent:
            self.path.pop()

    def _add_property(self, number: int, indent: int, name: str, text: str) -> None:
        self._leave_sections(indent)
        unit, value, si_unit, reason = value_of(text)
        section = " > ".join(part for _, part in self.path) or None
        self.rows.append((section, name, text, unit, value, si_unit, reason, number))
        inner = [part for _, part in self.path if not _GPU.fullmatch(part)]
        fact = FACTS.get(" > ".join([*inner, name]))
        if fact and reason != "n/a":
            self.facts.setdefault(fact, text)
        # Some properties have deeper sections below them.
        self.path.append((indent, name))
        self.ledger.stored += 1
        self.count += 1

    def batch(self) -> Batch:
        """Return the properties gathered since the last batch."""
        rows, self.rows = self.rows, []
        names = ("section", "metric", "raw_text", "unit", "value", "si_unit", "reason", "line")
        columns = dict(zip(names, zip(*rows, strict=True), strict=True)) if rows else {}
        return self.ledger.batch({"metrics": ColumnTable.of_values("metrics", columns)} if rows else {})

    def last(self, encoding: str) -> Iterator[Batch]:
        """Yield the rest, and the facts of the file."""
        facts = {"tool": "nvidia-smi", "encoding": encoding, **self.facts}
        if found := parse_timestamp(facts.get("timestamp", "")):
            facts["clock"] = found[0]
        message = "" if self.count else "no values: the file ends after its title; record it again"
        yield replace(self.batch(), facts=facts, message=message)


def read(stream: BinaryIO) -> Iterator[Batch]:
    """Read one or several outputs in one pass over the file."""
    return read_lines(stream, lambda _: _Reader())
