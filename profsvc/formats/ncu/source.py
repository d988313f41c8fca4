"""Reader of source pages of Nsight Compute: source lines and instructions of each launch, with samples and counts."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import BinaryIO, NamedTuple

from profsvc.errors import BrokenInputError, InputError, counted, first_of, wrong_cell_count
from profsvc.formats.ncu import launches as ncu_launches
from profsvc.formats.ncu.csv_lines import NO_LINES, first_page_kind, parse_header
from profsvc.formats.ncu.source_rows import (
    NO_CELL,
    Header,
    SourceRows,
    opcode_of,
    parse_count,
    parse_source_header,
    split_row,
    stored_text,
)
from profsvc.formats.parsing.ledger import numbered_lines
from profsvc.formats.parsing.records import HEADER, MAX_TEXT_CHARS, REJECT, ROW, SKIP, Record
from profsvc.formats.parsing.text import Text
from profsvc.specs.metrics.source_columns import STALL
from profsvc.tables import Batch

NAME = "ncu-source"
EXPORT_HINT = "export again with: ncu -i REPORT --csv --page source --print-source cuda,sass"
NO_LINES_HINT = "their machine code: ncu -i REPORT --csv --page source --print-source sass"
ROWS_PER_BATCH = 5_000
MAX_INSTRUCTIONS = 1 << 18
"""Instructions and source lines of a launch; the code of the largest kernels has a tenth of it."""

_NAMED = re.compile(r'"(File Path|Kernel Name|Function Name)"(?:,|$)')
_NAME = re.compile(r'"[\w ]+","(.*)",?')
_TEXT_PAGE = re.compile(r"(?:Address|Line No) +Source\b")
_GAP = "..."
_ADDRESS = re.compile(r"(?:0x)?([0-9a-fA-F]{1,16})")


def sniff(head: bytes) -> bool:
    """Return whether the first table in ``head`` is of the source page, or warnings stand where one should be."""
    return first_page_kind(head) == "source"


@dataclass
class _Launch:
    """The launch whose tables are read: its files, and what was shown of it."""

    kernel: str
    files: set[str] = field(default_factory=set)
    lines: set[tuple[str | None, int]] = field(default_factory=set)
    values: dict[int, int] = field(default_factory=dict)
    """Of each instruction the hash of its cells."""


class _Table(NamedTuple):
    """A table of a page: its kernel, a hash of its lines, and whether it has samples."""

    kernel: str
    lines: int
    has_samples: bool


def copied_tables(lines: Iterable[str]) -> frozenset[int]:
    """Return which tables of a page without source files are copies of the one before, by their numbers from 0 on.

    Nsight Compute prints all launches of some kernels twice, each followed by its copy, and those of others once.
    Launches without samples tell nothing, as two may agree by themselves; they count where another kernel has copies.
    The copy of the last launch may be cut.
    """
    tables: list[_Table] = []
    table: list[int] = []
    before: list[int] = []
    kernel, header, has_samples = "", None, False
    for line in lines:
        text = line.strip()
        if match := _NAMED.match(text):
            if match[1] == "File Path":
                return frozenset()
            if kernel:
                tables.append(_Table(kernel, hash(tuple(table)), has_samples))
            kernel, header, has_samples, before, table = text, None, False, table, []
        if len(table) > 2 * MAX_INSTRUCTIONS:
            return frozenset()
        table.append(hash(text))
        if not has_samples:
            header = header or parse_source_header(line)
            has_samples = header is not None and _samples(text, header) > 0
    if len(table) <= len(before) and table[:-1] == before[: len(table) - 1] and _copies(tables):
        table = before
    return _copies([*tables, _Table(kernel, hash(tuple(table)), has_samples)])


def _copies(tables: Sequence[_Table]) -> frozenset[int]:
    pairs: dict[str, list[int]] = {}
    once = set()
    for kernel, run in groupby(range(len(tables)), key=lambda number: tables[number].kernel):
        numbers = list(run)
        seconds = numbers[1::2]
        pairs.setdefault(kernel, []).extend(seconds)
        is_cut = numbers[-1] == len(tables) - 1
        if len(numbers) % 2 > is_cut or any(tables[place].lines != tables[place - 1].lines for place in seconds):
            once.add(kernel)
    twice = [places for kernel, places in pairs.items() if kernel not in once]
    is_sure = any(tables[place - 1].has_samples for places in twice for place in places)
    return frozenset(place for places in twice for place in places) if is_sure else frozenset()


def _samples(text: str, header: Header) -> int:
    cells = split_row(text, header)
    places = [place + len(header.leading) for place, name in header.counts if name == "samples"]
    return sum(parse_count(cells[place]) or 0 for place in places) if len(cells) == header.cells else 0


class _Page:
    """Sorts lines into records, and rows into tables."""

    def __init__(self, copies: frozenset[int]) -> None:
        self.rows = SourceRows()
        self.copies, self.is_copy = copies, False
        self.tables = 0
        self.launches = self.count = 0
        self.without_lines = 0
        self.unknown: dict[str, None] = {}
        self.forms: set[str] = set()
        self.header: Header | None = None
        self.launch: _Launch | None = None
        self.file: str | None = None
        self.line: tuple[int, str | None] | None = None
        self.shown: set[int] = set()
        self.said: set[int] = set()
        """Hashes of rows that say nothing new under this source line."""

    def sort(self, number: int, line: str) -> Record:
        """Return the record of a line, after adding what it says to the tables."""
        text = line.strip()
        self.without_lines += text.startswith(NO_LINES)
        if not text or text.startswith("==") or hash(text) in self.said:
            return Record(SKIP, number, 1, line, [])
        if match := _NAMED.match(text):
            self.is_copy = self.tables in self.copies
            self.tables += 1
            if not self.is_copy:
                return self._name(number, line, match[1], _NAME.fullmatch(text))
        if self.is_copy:
            return Record(SKIP, number, 1, line, [])
        if header := parse_source_header(line):
            return self._begin(number, line, header)
        if _TEXT_PAGE.match(text):
            raise BrokenInputError(f"line {number}: this source page is a text page; {EXPORT_HINT}")
        if parse_header(line):
            raise BrokenInputError(
                f"line {number} is the header of another page, but the file begins with a source page; "
                "put each page into its own file"
            )
        if self.header is None:
            return Record(SKIP, number, 1, line, [])
        reason = self._row(number, text, self.header)
        if reason is None:
            return Record(ROW, number, 1, line, [])
        if not reason:
            return Record(SKIP, number, 1, line, [])
        cut = "" if line.endswith("\n") else "the file ends inside this row: "
        return Record(REJECT, number, 1, line[:MAX_TEXT_CHARS], [], f"{cut}{reason}")

    def _begin_line(self, line: tuple[int, str | None] | None) -> None:
        self.line, self.shown, self.said = line, set(), set()

    def _name(self, number: int, line: str, what: str, match: re.Match[str] | None) -> Record:
        self.header, self.said, name = None, set(), match[1] if match else ""
        if not name:
            cut = "" if line.endswith("\n") else "the file ends inside this line: "
            return Record(REJECT, number, 1, line[:MAX_TEXT_CHARS], [], f"{cut}it has no name")
        if what == "File Path":
            self.file = name
            return Record(HEADER, number, 1, line, [])
        # A launch shows each file once. Without files every name begins a launch.
        if self.launch is None or self.launch.kernel != name or self.file is None or self.file in self.launch.files:
            self.launch = _Launch(name)
            row = {"source_index": self.launches, "kernel": name, "line": number}
            self.rows.add("source_kernels", row)
            self.launches += 1
        if self.file is not None:
            self.launch.files.add(self.file)
        return Record(ROW, number, 1, line, [])

    def _begin(self, number: int, line: str, header: Header) -> Record:
        if self.launch is None:
            return Record(REJECT, number, 1, line[:MAX_TEXT_CHARS], [], "no kernel name precedes the table")
        self.header = header
        self._begin_line(None)
        self.unknown.update(dict.fromkeys(header.unknown))
        lines, instructions = "line" in header.leading, "address" in header.leading
        self.forms.add(
            "cuda,sass"
            if lines and instructions
            else "sass"
            if instructions
            else "cuda"
            if self._has_source()
            else "ptx"
        )
        return Record(HEADER, number, 1, line, [])

    def _has_source(self) -> bool:
        return self.file is not None and not self.file.endswith(".ptx")

    def _row(self, number: int, text: str, header: Header) -> str | None:
        """Add a row; return why it is rejected, an empty text if it says nothing new, None if it is stored."""
        cells = split_row(text, header)
        if len(cells) != header.cells:
            return wrong_cell_count(len(cells), header.cells) if text.startswith('"') else "not a row of the table"
        numbers, sources = header.numbers, header.sources
        metrics = cells[len(header.leading) :]
        address = cells[numbers["address"]].strip() if "address" in numbers else ""
        line = cells[numbers["line"]].strip() if "line" in numbers else ""
        if address == _GAP:
            self.said.add(hash(text))
            return ""
        parsed = None if line in NO_CELL else parse_count(line)
        if parsed is None and line not in NO_CELL:
            return f"the line number {line[:50]!r} is not a number"
        if address in NO_CELL:
            return self._line(number, parsed, cells[sources["line"]] if "line" in sources else "", metrics, header)
        if parsed is not None:
            self._begin_line((parsed, stored_text(cells[sources["line"]])) if "line" in sources else None)
        reason = self._instruction(number, address, cells[sources["address"]], metrics, header)
        if parsed is None and not reason:
            self.said.add(hash(text))
        return reason

    def _line(self, number: int, line: int | None, source: str, metrics: Sequence[str], header: Header) -> str | None:
        """Add a source line or a PTX line."""
        assert self.launch is not None
        if line is None:
            return "it has neither a line number nor an address"
        self._begin_line((line, stored_text(source)))
        if (self.file, line) in self.launch.lines:
            return f"line {line} of this launch was shown before"
        kind = "ptx" if "address" not in header.leading and not self._has_source() else "line"
        row = {"kind": kind, "source_line": line, "source_text": stored_text(source), "repeated": 0}
        if reason := self._add(number, row, metrics, header):
            return reason
        self.launch.lines.add((self.file, line))
        return None

    def _instruction(self, number: int, address: str, sass: str, metrics: Sequence[str], header: Header) -> str | None:
        assert self.launch is not None
        match = _ADDRESS.fullmatch(address)
        if not match or (place := int(match[1], 16)) >= 1 << 63:
            return f"the address {address[:50]!r} is not a hexadecimal number"
        values = hash((sass, *metrics))
        if self.launch.values.get(place, values) != values:
            return f"the instruction at {address} was shown before with other values"
        if place in self.shown:
            return ""
        repeated = int(place in self.launch.values)
        line, source = self.line or (None, None)
        row = {
            "kind": "instruction", "source_line": line, "source_text": source, "address": place,
            "sass": stored_text(sass.strip()), "opcode": opcode_of(sass), "repeated": repeated,
        }  # fmt: skip
        if reason := self._add(number, row, metrics, header):
            return reason
        self.launch.values[place] = values
        self.shown.add(place)
        return None

    def _add(self, number: int, row: Mapping[str, object], metrics: Sequence[str], header: Header) -> str:
        """Add a row with its metrics; return why it cannot be."""
        assert self.launch is not None
        if len(self.launch.values) + len(self.launch.lines) >= MAX_INSTRUCTIONS:
            raise InputError(
                f"line {number}: {self.launch.kernel[:200]} has more than {MAX_INSTRUCTIONS:,} instructions and lines"
            )
        counts: dict[str, int] = {}
        for place, name in header.counts:
            if name in counts or (cell := metrics[place]) in NO_CELL:
                continue
            if (value := parse_count(cell)) is None:
                return f"{name} must be a whole number but is {cell[:50]!r}"
            counts[name] = value
        stalls: dict[str, dict[str, int]] = {}
        for place, kind, name in header.stalls:
            if (cell := metrics[place]) == "0" or cell in NO_CELL:
                continue
            if (value := parse_count(cell)) is None:
                return f"the stall reason {name} must be a whole number but is {cell[:50]!r}"
            if value:
                stalls.setdefault(name, {}).setdefault("samples" if kind == STALL else "samples_not_issued", value)
        texts = {name: stored_text(metrics[place]) for place, name in header.texts}
        own = {"source_index": self.launches - 1, "line_index": self.count, "line": number}
        file = self.file if row["source_line"] is not None and row["kind"] != "ptx" else None
        self.rows.add("source_lines", {**row, **own, **counts, **texts, "file": file})
        for name, found in stalls.items():
            self.rows.add("source_stalls", {"line_index": self.count, "reason": name, "line": number, **found})
        self.count += 1
        return ""

    def message(self) -> str:
        """Say what the page shows twice or not at all, and which columns are not known."""
        launches = "each launch" if len(self.copies) >= self.launches else counted(len(self.copies), "launch")
        twice = f"the page shows {launches} twice; its copies are skipped" if self.copies else ""
        return "; ".join(filter(None, [twice, self.absent(), self._unknown_columns()]))

    def absent(self) -> str:
        """Say that kernels are not on the page as they have no line information."""
        if not self.without_lines:
            return ""
        launches = counted(self.without_lines, "launch")
        return f"{launches} without line information, of which the page shows nothing; {NO_LINES_HINT}"

    def _unknown_columns(self) -> str:
        if not self.unknown:
            return ""
        named = first_of(name[:100] for name in self.unknown)
        return f"{counted(len(self.unknown), 'unknown column')} not stored: {named}"


def read(stream: BinaryIO) -> Iterator[Batch]:
    """Read a source page in bounded memory."""
    with Text(stream) as text:
        page, ledger = _Page(copied_tables(text.lines())), ncu_launches.NcuLedger()
        for number, line in numbered_lines(text):
            ledger.add(page.sort(number, line))
            if ledger.full or ledger.stored >= ROWS_PER_BATCH:
                yield ledger.batch(page.rows.take())
        if not page.count:
            why = "; ".join(filter(None, [*ledger.errors, ledger.first_reason]))
            said = f"no table of a source page has a complete row{f' ({why})' if why else ''}"
            raise BrokenInputError(f"{said}; {page.absent() or EXPORT_HINT}")
        facts = {
            "tool": ncu_launches.TOOL, "page": "source", "layout": " ".join(sorted(page.forms)),
            "encoding": text.encoding, **ledger.facts,
        }  # fmt: skip
        errors = "; ".join(ledger.errors)
        yield ledger.batch(page.rows.take(), facts, "; ".join(filter(None, (errors, page.message()))))
