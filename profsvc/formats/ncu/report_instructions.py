"""Rows of the instructions of a report: those of a source page, for launches whose numbers are known."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from profsvc.formats.ncu.source import MAX_INSTRUCTIONS
from profsvc.formats.ncu.source_rows import SourceRows, opcode_of, stored_text
from profsvc.formats.parsing.json_stream import storable_text
from profsvc.specs.metrics.source_columns import COUNT, NOT_ISSUED, STALL, TEXT, SourceColumn, source_columns
from profsvc.tables import Table

MAX_INT = 1 << 63
MAX_BATCH_ROWS = 5000
LEADING = 3
"""Cells of an instruction before its metrics: address, SASS, and the place of its source line."""
# The count of samples of a kind, and the kind of stall reasons whose samples it sums up.
SAMPLES = {"samples": STALL, "samples_not_issued": NOT_ISSUED}
# Numbers of kinds of access in a report, and what the source page prints for them. A sum of them is several kinds; of
# other numbers nothing is known.
FLAGS = {
    "address_space": {4: "Global", 16: "Shared"},
    "access_operation": {2: "Load", 4: "Store", 8: "Atomic"},
}
# The tool names the target of a branch beside its address: BRA `(.L_x_0) 0x7f8f977a0130.
_LABEL = re.compile(r"`\([^()]*\) (?=0x)")


class LineError(ValueError):
    """A line is not one of a report."""


class Place(NamedTuple):
    """A source line."""

    file: str | None
    line: int
    text: str | None


@dataclass
class _Values:
    """What is counted of an instruction, or of a source line."""

    counts: Counter[str] = field(default_factory=Counter)
    stalls: Counter[tuple[str, str]] = field(default_factory=Counter)
    texts: dict[str, Counter[str]] = field(default_factory=dict)

    def add(self, other: _Values) -> None:
        self.counts.update(other.counts)
        self.stalls.update(other.stalls)
        for name, texts in other.texts.items():
            self.texts.setdefault(name, Counter()).update(texts)

    def complete(self, kinds: Container[str]) -> None:
        """Sum up samples that the report does not count: each sample has one stall reason.

        ``kinds`` are those of the metrics in the report. An instruction that they leave out has no samples.
        """
        for name, kind in SAMPLES.items():
            if name not in self.counts and kind in kinds:
                self.counts[name] = sum(number for (known, _), number in self.stalls.items() if known == kind)


def read_metrics() -> list[str]:
    """Return the names of the metrics that are read by instruction."""
    stored = (COUNT, TEXT, STALL, NOT_ISSUED)
    known = source_columns().items()
    return [name for name, column in known if column.kind in stored and "_" in name and not name.startswith("group:")]


def _whole(value: object, what: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < MAX_INT or value != int(value):
        raise LineError(f"{what} is {str(value)[:40]!r}, not a whole number")
    return int(value)


def _cell(value: object, what: str) -> str:
    if not isinstance(value, str):
        raise LineError(f"{what} is {str(value)[:40]!r}, not a text")
    return storable_text(value)


def _list(value: object, what: str) -> list[object]:
    if not isinstance(value, list):
        raise LineError(f"{what} is not a list")
    return value


def _place(said: object) -> Place:
    cells = _list(said, "a source line")
    if len(cells) != 3:
        raise LineError(f"a source line has {len(cells)} cells, not 3")
    source = None if cells[2] is None else stored_text(_cell(cells[2], "source text"))
    return Place(stored_text(_cell(cells[0], "a file")), _whole(cells[1], "a line number"), source)


def kinds_of(column: str, number: int) -> str | None:
    """Return what the source page prints for the number of a kind of access; None if a part of it is not known.

    >>> kinds_of("address_space", 20), kinds_of("address_space", 21), kinds_of("access_size", 32)
    ('Global,Shared', None, '32')
    """
    names = FLAGS.get(column)
    if names is None:
        return str(number) if number else None
    there = [flag for flag in names if number & flag]
    return ",".join(names[flag] for flag in there) if number and sum(there) == number else None


def summary_of(column: str, texts: Mapping[str, int]) -> str:
    """Return the kinds of access of a line as the source page does: those that several instructions have with a count.

    >>> summary_of("access_operation", {"Store": 1, "Load": 2}), summary_of("access_size", {"32": 1, "8": 1})
    ('Load(2),Store', '8,32')
    """
    order = {name: place for place, name in enumerate(FLAGS.get(column, {}).values())}
    ordered = sorted(texts, key=lambda name: (order.get(name, len(order)), len(name), name))
    return stored_text(",".join(name if texts[name] == 1 else f"{name}({texts[name]})" for name in ordered)) or ""


def _values(cells: Sequence[object], columns: Sequence[SourceColumn | None]) -> _Values:
    found = _Values()
    for column, cell in zip(columns, cells, strict=True):
        if column is None or cell is None:
            continue
        if column.kind == TEXT:
            said = cell if isinstance(cell, str) else kinds_of(column.name, _whole(cell, column.name))
            if said:
                found.texts.setdefault(column.name, Counter(storable_text(said).split(",")))
        elif column.kind == COUNT:
            found.counts.setdefault(column.name, _whole(cell, column.name))
        else:
            found.stalls[column.kind, column.name] += _whole(cell, column.name)
    found.complete({column.kind for column in columns if column})
    return found


class InstructionRows:
    """Gathers the instructions of each launch, and sums them up by source line."""

    def __init__(self) -> None:
        """Begin a file."""
        self.rows = SourceRows()
        self.launches = self.count = self.taken = 0
        self._clear(None)

    def _clear(self, launch: tuple[int, str] | None) -> None:
        self.launch, self.first_line = launch, 0
        self.addresses: set[int] = set()
        self.places: dict[Place, _Values] = {}

    def begin(self, launch_index: int, kernel: str) -> None:
        """Begin a launch, to which the instructions that follow belong."""
        self.finish()
        self._clear((launch_index, kernel))

    def skip(self) -> None:
        """Begin a launch that is not stored."""
        self.finish()
        self._clear(None)

    def add(self, line: int, said: Mapping[str, object]) -> None:
        """Add a line of instructions; raise `LineError` if it is wrong, and then add nothing."""
        if self.launch is None:
            raise LineError("the instructions belong to no stored launch")
        names = [_cell(name, "a metric") for name in _list(said.get("metrics"), "metrics")]
        known = source_columns()
        columns = [known.get(name) for name in names]
        places = [_place(one) for one in _list(said.get("lines"), "lines")]
        found = [self._instruction(_list(one, "an instruction"), columns, places) for one in _instructions(said)]
        addresses = [address for address, *_ in found]
        if len({*addresses, *self.addresses}) < len(addresses) + len(self.addresses):
            raise LineError("an instruction occurs twice")
        if len(addresses) + len(self.addresses) > MAX_INSTRUCTIONS:
            raise LineError(f"the launch has more than {MAX_INSTRUCTIONS:,} instructions")
        if not self.addresses and found:
            index, kernel = self.launch
            row = {"source_index": self.launches, "launch_index": index, "kernel": kernel, "line": line}
            self.rows.add("source_kernels", row)
            self.first_line = line
        self.addresses.update(addresses)
        for address, sass, place, values in found:
            if place is not None:
                self.places.setdefault(place, _Values()).add(values)
            row = {"kind": "instruction", "address": address, "sass": stored_text(sass), "opcode": opcode_of(sass)}
            self._write(row, place, values, line)

    @staticmethod
    def _instruction(
        cells: list[object], columns: Sequence[SourceColumn | None], places: Sequence[Place]
    ) -> tuple[int, str, Place | None, _Values]:
        if len(cells) != LEADING + len(columns):
            raise LineError(f"an instruction has {len(cells)} cells, not {LEADING + len(columns)}")
        number = None if cells[2] is None else _whole(cells[2], "the place of a source line")
        if number is not None and number >= len(places):
            raise LineError(f"an instruction refers to source line {number} of {len(places)}")
        place = None if number is None else places[number]
        address, sass = _whole(cells[0], "an address"), _LABEL.sub("", _cell(cells[1], "SASS")).strip()
        return address, sass, place, _values(cells[LEADING:], columns)

    def _write(self, row: dict[str, object], place: Place | None, values: _Values, line: int) -> None:
        where = {} if place is None else {"file": place.file, "source_line": place.line, "source_text": place.text}
        own = {"source_index": self.launches, "line_index": self.count, "repeated": 0, "line": line}
        texts = {name: summary_of(name, found) for name, found in values.texts.items()}
        self.rows.add("source_lines", {**row, **where, **own, **values.counts, **texts})
        by_reason: dict[str, dict[str, int]] = {}
        for (kind, reason), number in values.stalls.items():
            if number:
                by_reason.setdefault(reason, {})["samples" if kind == STALL else "samples_not_issued"] = number
        for reason, numbers in by_reason.items():
            self.rows.add("source_stalls", {"line_index": self.count, "reason": reason, "line": line, **numbers})
        self.count += 1

    def finish(self) -> None:
        """End a launch: add its source lines."""
        for place, values in self.places.items():
            self._write({"kind": "line"}, place, values, self.first_line)
        self.launches += bool(self.addresses)
        self.addresses, self.places = set(), {}

    @property
    def full(self) -> bool:
        """Whether the gathered rows fill a batch."""
        return self.count - self.taken >= MAX_BATCH_ROWS

    def take(self) -> dict[str, Table]:
        """Return the tables gathered so far."""
        self.taken = self.count
        return self.rows.take()


def _instructions(said: Mapping[str, object]) -> Iterator[object]:
    yield from _list(said.get("instructions"), "instructions")
