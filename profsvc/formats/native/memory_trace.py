"""Reader of memory traces: the memory references of each warp of a kernel, as CSV or Parquet."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, BinaryIO, NamedTuple

import numpy as np
import numpy.typing as npt

from profsvc.errors import BrokenInputError, wrong_cell_count
from profsvc.formats.columnar.line_blocks import (
    Block,
    IrregularBlockError,
    letters_of,
    lines_of,
    require_plain,
    split_point,
)
from profsvc.formats.native import memory_trace_parquet
from profsvc.formats.native.annotated_csv import cells_of, first_cells, is_comment
from profsvc.formats.native.memory_references import (
    COLUMNS,
    KINDS,
    PART_REFERENCES,
    REQUIRED_COLUMNS,
    ReferenceOrder,
    Sites,
    check_columns,
    out_of_range,
    range_of,
    sorted_by_warp,
    trace_of,
    whole_warps,
)
from profsvc.formats.parsing.ledger import Ledger
from profsvc.formats.parsing.records import MAX_TEXT_CHARS
from profsvc.formats.parsing.stream import peek
from profsvc.formats.parsing.text import Text, ends_inside
from profsvc.formulas.memory_hierarchy import Trace
from profsvc.specs.files.formats import MEMORY_TRACE
from profsvc.tables import Batch
from profsvc.tables.on_demand import pa

NAME = MEMORY_TRACE

TOOL = "memory trace"
BLOCK_BYTES = 4 << 20
SMALL_BLOCK_BYTES = 4096
_FACT = re.compile(r"#\s*(device|kernel)\s*[:=]\s*(.+)", re.IGNORECASE)
_WHOLE = re.compile(r"-?[0-9]{1,19}")
_HEX = re.compile(r"0[xX][0-9a-fA-F]{1,16}")


class CountedTrace(NamedTuple):
    """References of a part of the file, and the counts of its lines."""

    trace: Trace | None
    batch: Batch


def sniff(head: bytes) -> bool:
    """Tell whether ``head`` begins a Parquet file, or its first line that is not a comment is a header of a trace."""
    if memory_trace_parquet.sniff(head):
        return True
    return set(REQUIRED_COLUMNS) <= set(first_cells(head))


class _Parser:
    """Parses blocks of lines, and single lines where that fails."""

    def __init__(self, sites: Sites) -> None:
        self.header: list[str] = []
        self.line = 0
        self.ledger = Ledger()
        self.sites = sites
        self.facts: dict[str, str] = {}

    def parse(self, block: Block) -> Iterator[Trace]:
        """Yield the references of a block of whole lines."""
        waiting = [bytes(block)]
        while waiting:
            piece = waiting.pop()
            try:
                require_plain(bool(self.header))
                yield self._parse_block(piece)
            except (IrregularBlockError, pa.ArrowException):
                if len(piece) > SMALL_BLOCK_BYTES and (end := split_point(piece, True, SMALL_BLOCK_BYTES)) < len(piece):
                    waiting += [piece[end:], piece[:end]]
                    continue
                yield self._parse_lines(piece)

    def _parse_block(self, piece: bytes) -> Trace:
        """Return the references of a block if all its lines are valid."""
        require_plain(piece.endswith(b"\n") and b"#" not in piece and b'"' not in piece)
        # Arrow accepts 0x1F in every column of numbers, but only addresses may be hexadecimal.
        text = set(self.header) if b"0x" in piece or b"0X" in piece else {"site", "address", "kind"}
        types = {name: pa.string() if name in text else pa.int64() for name in self.header}
        table = pa.csv.read_csv(
            pa.BufferReader(piece),
            pa.csv.ReadOptions(column_names=self.header, use_threads=False, block_size=len(piece) + 1),
            pa.csv.ParseOptions(quote_char=False, newlines_in_values=False, ignore_empty_lines=False),
            pa.csv.ConvertOptions(column_types=types, null_values=[], strings_can_be_null=False),
        )
        lines = piece.count(b"\n")
        require_plain(table.num_rows == lines)
        columns: dict[str, npt.NDArray[Any]] = {}
        for name in self.header:
            column = table.column(name).combine_chunks()
            if name == "kind":
                columns[name] = _codes(column, lambda kind: KINDS.get(kind.lower(), -1))
                require_plain(bool((columns[name] >= 0).all()))
            elif name == "site":
                require_plain(not pa.compute.any(pa.compute.equal(pa.compute.utf8_trim_whitespace(column), "")).as_py())
                columns[name] = _codes(column, lambda site: self.sites[site.strip()])
            else:
                columns[name] = _addresses(column) if name == "address" else _decimal_numbers(column)
                require_plain(not out_of_range(name, columns[name]).any())
        self.line += lines
        self.ledger.stored += lines
        return trace_of(columns)

    def _parse_lines(self, piece: bytes) -> Trace:
        """Return the references of lines one by one, and reject invalid lines."""
        found: dict[str, list[int]] = {name: [] for name in (self.header or COLUMNS)}
        for text in lines_of(piece):
            self.line += 1
            cells = cells_of(text)
            if is_comment(text):
                self.ledger.skipped += 1
                if note := _FACT.match(text.strip()):
                    self.facts.setdefault(note[1].lower(), note[2].strip()[:MAX_TEXT_CHARS])
            elif not self.header:
                check_columns(cells, f"line {self.line}: the header")
                self.header, found = cells, {name: [] for name in cells}
                self.ledger.skipped += 1
            elif cells == self.header:
                self.ledger.skipped += 1
            else:
                try:
                    row = self._parse_row(text, cells)
                except ValueError as error:
                    self.ledger.reject(self.line, text, str(error))
                    continue
                self.ledger.stored += 1
                for name, value in row.items():
                    found[name].append(value)
        return trace_of({name: np.array(values, dtype=np.int64) for name, values in found.items()})

    def _parse_row(self, text: str, cells: list[str]) -> dict[str, int]:
        if len(cells) != len(self.header):
            raise ValueError(wrong_cell_count(len(cells), len(self.header)))
        if ends_inside(text, cells[-1]):
            raise ValueError("the file ends inside this line")
        row: dict[str, int] = {}
        for name, cell in zip(self.header, cells, strict=True):
            if name == "kind" and cell.lower() in KINDS:
                row[name] = KINDS[cell.lower()]
            elif name == "kind":
                raise ValueError(f"kind is {cell!r}, not load, store or atomic")
            elif name == "site" and cell:
                row[name] = self.sites[cell]
            elif name == "site":
                raise ValueError("site is empty; write the instruction of the source")
            else:
                row[name] = _number(name, cell)
        return row


def _number(name: str, cell: str) -> int:
    is_hex = name == "address" and _HEX.fullmatch(cell)
    if not is_hex and not _WHOLE.fullmatch(cell):
        raise ValueError(f"{name} is {cell!r}, not a whole number")
    value = int(cell, 16 if is_hex else 10)
    if out_of_range(name, np.array(value, dtype=object)):
        raise ValueError(f"{name} is {cell}; allowed: {range_of(name)}")
    return value


def _codes(column: pa.StringArray, meaning: Any) -> npt.NDArray[np.int64]:
    """Return a number for each text; ``meaning`` gives that of a distinct text."""
    coded = column.dictionary_encode()
    known = np.array([meaning(text) for text in coded.dictionary.to_pylist()], dtype=np.int64)
    codes: npt.NDArray[np.int64] = known[coded.indices.to_numpy(zero_copy_only=False)]
    return codes


def _decimal_numbers(column: pa.Array) -> npt.NDArray[np.int64]:
    """Return decimal numbers, which Arrow has parsed unless the column has texts."""
    if pa.types.is_string(column.type):
        letters = letters_of(column)[0]
        require_plain(not bool(((letters | 0x20) == ord("x")).any()))
        column = pa.compute.cast(column, pa.int64())
    numbers: npt.NDArray[np.int64] = column.to_numpy(zero_copy_only=False)
    return numbers


def _addresses(column: pa.StringArray) -> npt.NDArray[np.int64]:
    """Return addresses, either all decimal or all hexadecimal with 0x."""
    if not len(column) or not str(column[0]).lower().startswith("0x"):
        decimal: npt.NDArray[np.int64] = pa.compute.cast(column, pa.int64()).to_numpy(zero_copy_only=False)
        return decimal
    letters, starts, ends = letters_of(column)
    digits = ends - starts - 2
    require_plain(bool(((digits > 0) & (digits < 16)).all()))
    require_plain(bool((letters[starts] == ord("0")).all() and ((letters[starts + 1] | 32) == ord("x")).all()))
    values = np.zeros(len(column), dtype=np.int64)
    for place in range(int(digits.max())):
        there = np.flatnonzero(place < digits)
        letter = letters[ends[there] - 1 - place] | 32  # digits have that bit, and letters become lower case
        digit = np.where(letter < 58, letter - 48, letter - 87).astype(np.int64)
        require_plain(bool((((letter >= 48) & (letter < 58)) | ((letter >= 97) & (letter < 103))).all()))
        values[there] |= digit << (4 * place)
    return values


def counted_traces(stream: BinaryIO, sites: Sites | None = None) -> Iterator[CountedTrace]:
    """Yield the references of a trace in parts, with the counts of their lines; new sites are added to ``sites``."""
    known = Sites() if sites is None else sites
    head, stream = peek(stream, len(memory_trace_parquet.MAGIC))
    if memory_trace_parquet.sniff(head):
        yield from (CountedTrace(*pair) for pair in memory_trace_parquet.read(stream, known))
        return
    with Text(stream) as text:
        parser = _Parser(known)
        for block in text.blocks(BLOCK_BYTES):
            for trace in parser.parse(block):
                yield CountedTrace(trace, parser.ledger.batch({}))
        if not parser.header:
            raise BrokenInputError("the file has no header of a memory trace; see: profsvc formats memory-trace")
        yield CountedTrace(None, Batch(facts={**parser.facts, "encoding": text.encoding}))


def read(stream: BinaryIO) -> Iterator[Batch]:
    """Read a trace in one pass: count its lines and its references."""
    sites, order, first = Sites(), ReferenceOrder(), ""
    for trace, batch in counted_traces(stream, sites):
        if trace is not None:
            order.add(trace)
        if not first and "rejects" in batch.tables:
            row = batch.tables["rejects"].iloc[0]
            first = f"line {row['line']}: {row['reason']}"
        yield batch
    if not order.references:
        raise BrokenInputError(
            f"the file has no reference; {first or 'there is no line below its header'}; see: profsvc formats {NAME}"
        )
    order_of = "by warp" if order.by_warp else "mixed"
    facts = {"tool": TOOL, "references": str(order.references), "sites": str(len(sites)), "order": order_of}
    yield Batch(facts=facts, message=f"{order.references:,} references of {len(sites):,} sites")


def parts(stream: BinaryIO, sites: Sites, by_warp: bool) -> Iterator[Trace]:
    """Yield the references of a trace sorted by block and warp, in parts of whole warps; add new sites to ``sites``."""
    found = (trace for trace, _ in counted_traces(stream, sites) if trace is not None)
    return whole_warps(found if by_warp else sorted_by_warp(found), PART_REFERENCES)
