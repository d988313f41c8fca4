"""Reader of nvidia-smi -q: everything that the driver says about each GPU, as indented names and values."""

import re
from collections.abc import Iterator
from typing import BinaryIO

from profsvc.formats.clock import stamp
from profsvc.formats.head import head_lines
from profsvc.formats.ncu import Ledger, numbered
from profsvc.formats.ncu_lines import REJECT, TEXT_LIMIT, Record
from profsvc.formats.sensors import NO_VALUES, STATES, scale, scaled
from profsvc.formats.stream import Text
from profsvc.tables import Batch, frame

NAME = "nvidia-smi-q"
PAGE = """\
The page of nvidia-smi -q: what the driver says about each GPU at one moment.

Make it with (-l 10 repeats it; -d POWER,CLOCK,TEMPERATURE takes parts of it)
    LC_ALL=C nvidia-smi -q > FILE

Taken: every name with a value as a metric, under the path of the sections above it, beginning with the GPU's bus
address; the cell as it came, and as a number in SI units: W, degC, Hz, byte, or a share. Active, Enabled and Yes are 1,
their opposites 0. N/A is kept without value and with the reason, other words with the reason text. Product, driver,
CUDA version and the limits of power and clocks of the first GPU become facts of the file.

Example:
    ==============NVSMI LOG==============
    Timestamp                                 : Fri Nov 20 13:10:08 2026
    Driver Version                            : 580.159.04
    GPU 00000000:00:06.0
        Product Name                          : NVIDIA H200
        GPU Power Readings
            Average Power Draw                : 78.54 W
"""

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
# Printed without decimals: a dot in them groups thousands.
_WHOLE = {"MHz", "MiB", "KB/s", "us"}
_GPU = re.compile(r"GPU [0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-9A-Fa-f]")


def sniff(head: bytes) -> bool:
    """Tell whether one of the first lines in ``head`` is the title of the page."""
    return any(_is_title(line) for line in head_lines(head, 50))


def _is_title(line: str) -> bool:
    return line.strip("=\r\n \ufeff") == TITLE and "====" in line


def value_of(text: str) -> tuple[str | None, float | None, str | None, str | None]:
    """Return the unit as printed, the value, its SI unit, and why there is no value.

    >>> value_of("143771 MiB")
    ('MiB', 150754820096.0, 'byte', None)
    >>> value_of("Not Active"), value_of("N/A")
    ((None, 0.0, '1', None), (None, None, None, 'n/a'))
    """
    lower = text.lower().strip("[]")
    if lower in STATES:
        return None, STATES[lower], "1", None
    match = _NUMBER.fullmatch(text)
    found = scale(match[2] or "") if match else None
    if match and match[2] in _WHOLE and "." in match[1]:
        return None, None, None, "odd separators"
    if match and found and len(match[1]) < 40:
        return match[2], scaled(float(match[1]), found[0]), found[1], None
    return None, None, None, NO_VALUES.get(lower, "text")


def _is_whole(text: str) -> bool:
    """Tell whether a line without an end ends in a unit, or in a word that stands for a value.

    >>> [_is_whole(f"  Power Draw : {cell}") for cell in ("45.12 W", "45.1", "N/A", "N")]
    [True, False, True, False]
    """
    match = _PAIR.fullmatch(text)
    unit, _, _, reason = value_of(match[3].strip()) if match else (None, None, None, "text")
    return unit is not None or reason not in (None, "text", "odd separators")


class _Page:
    """Walks down the indented lines and keeps the sections above."""

    def __init__(self) -> None:
        self.ledger = Ledger()
        self.facts: dict[str, str] = {}
        self.path: list[tuple[int, str]] = []
        self.rows: list[tuple[str | None, str, str, str | None, float | None, str | None, str | None, int]] = []
        self.begun = False
        self.count = 0

    def add(self, number: int, line: str) -> None:
        """Account for a line."""
        text = line.rstrip("\r\n").expandtabs(4)
        if _is_title(text):
            self.begun, self.path = True, []
            self.ledger.skipped += 1
        elif not self.begun or not text.strip():
            self.ledger.skipped += 1
        elif not line.endswith("\n") and not _is_whole(text):
            self._reject(number, line, "the file ends inside this line: its value may be cut")
        elif match := _PAIR.fullmatch(text):
            self._pair(number, len(match[1]), match[2], match[3].strip())
        elif match := _SECTION.fullmatch(text):
            self._leave(len(match[1]))
            self.path.append((len(match[1]), match[2]))
            self.ledger.skipped += 1
        else:
            self._reject(number, line, "it is neither a section nor a name with a value")

    def _reject(self, number: int, line: str, reason: str) -> None:
        self.ledger.take(Record(REJECT, number, 1, line[:TEXT_LIMIT].rstrip("\r\n"), [], reason))

    def _leave(self, indent: int) -> None:
        while self.path and self.path[-1][0] >= indent:
            self.path.pop()

    def _pair(self, number: int, indent: int, name: str, text: str) -> None:
        self._leave(indent)
        unit, value, si_unit, reason = value_of(text)
        section = " > ".join(part for _, part in self.path) or None
        self.rows.append((section, name, text, unit, value, si_unit, reason, number))
        inner = [part for _, part in self.path if not _GPU.fullmatch(part)]
        fact = FACTS.get(" > ".join([*inner, name]))
        if fact and reason != "n/a":
            self.facts.setdefault(fact, text)
        # Some names have sections below them, deeper than themselves.
        self.path.append((indent, name))
        self.ledger.stored += 1
        self.count += 1

    def batch(self, facts: dict[str, str] | None = None, message: str = "") -> Batch:
        """Hand on what was gathered."""
        rows, self.rows = self.rows, []
        names = ("section", "metric", "raw_text", "unit", "value", "si_unit", "reason", "line")
        columns = dict(zip(names, zip(*rows, strict=True), strict=True)) if rows else {}
        return self.ledger.batch({"metrics": frame("metrics", columns)} if rows else {}, facts, message)


def read(stream: BinaryIO) -> Iterator[Batch]:
    """Read a page, or several after each other, in one walk over the file."""
    with Text(stream) as text:
        page = _Page()
        for number, line in numbered(text):
            page.add(number, line)
            if len(page.rows) >= BATCH_ROWS or page.ledger.full:
                yield page.batch()
        facts = {"tool": "nvidia-smi", "encoding": text.encoding, **page.facts}
        if found := stamp(facts.get("timestamp", "")):
            facts["clock"] = found[0]
        yield page.batch(facts, "" if page.count else "no values: the page ends after its title; record it again")
