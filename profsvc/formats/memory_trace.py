"""Reader of memory traces: what each warp of a kernel asked the memory for, as CSV or as Parquet."""

import re
from collections.abc import Iterator
from typing import Any, BinaryIO, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv

from profsvc.errors import BrokenInputError, unfit
from profsvc.formats import trace_parquet
from profsvc.formats.blocks import Block, NotPlainError, cut, letters_of, lines_of, must
from profsvc.formats.head import head_lines
from profsvc.formats.ncu import Ledger
from profsvc.formats.ncu_lines import REJECT, TEXT_LIMIT, Record, split_cells
from profsvc.formats.references import (
    AT_ONCE,
    COLUMNS,
    KINDS,
    MUST,
    Order,
    Sites,
    check_columns,
    out_of_range,
    range_of,
    sorted_by_warp,
    trace_of,
    whole_warps,
)
from profsvc.formats.stream import Text, ends_inside, peek
from profsvc.formulas.memory_hierarchy import Trace
from profsvc.tables import Batch

NAME = "memory-trace"
PAGE = """\
A memory trace: what each warp of a kernel asked the memory for, so that hit ratios of the caches can be simulated.

Have the kernel, or a tool that instruments it (NVBit, a compiler pass, an emulator), write a reference a line, under
the header
    block,warp,seq,site,address,kind,size,epoch,sm
whose columns may stand in any order. size, epoch and sm may be left out, and thread may stand in place of warp. Lines
of threads that share block, warp, seq, site and kind are one request of the warp. Empty lines and lines that begin with
# are skipped and counted; # device: NAME and # kernel: NAME say what it ran on, and which kernel it was.

block    number of the block in the grid, from 0
warp     number of the warp in the block; or thread, that of the thread, 32 to a warp
seq      number of the instruction in the warp, or thread, in the order they ran
site     the instruction in the source: a number, or a text such as spmv.cu:42
address  byte address in global memory, decimal or 0x...; leave out shared and local memory
kind     load, store or atomic (or 0, 1, 2)
size     bytes a thread asks for, 1 to 128; 4 where it is left out
epoch    barriers of the block that the warp has passed
sm       SM that the block ran on; where it is left out, block modulo the number of SMs

A trace best comes by block and warp; any other order takes more memory. 10 million references are 400 MB so; the same
columns in a Parquet file are a tenth of it and read several times as fast. With pandas or polars:
    frame.to_parquet("trace.parquet")        # columns as above; key-value metadata device and kernel where you like
The lines of such a file are its rows.

Taken: no reference is stored. The bytes are kept, and read again to simulate the caches of the device, L1 and L2 by
the catalogue (profsvc devices --catalogue), in random orders that keep the order of each warp. Lines have 128 bytes;
since Maxwell they are filled by sectors of 32, and the set of a line is the result of a hash, which no maker prints. So
the hash is drawn with the order: the spread of a hit ratio holds an even hash and random ones, and, where L1 shares its
memory, an L1 of 7/8 of its size. Sets of 16 lines are assumed. Shared memory of the kernel is not known here: what it
takes of L1 is not taken off. An H200 merges what several SMs ask of one line at a time before L2 counts it: there, the
ratio of L2 is lower than the simulated one. Hit ratios with their spread stand in v1_models (memory_hierarchy), what
was simulated in v1_traces, each order drawn in v1_trace_draws, each site in v1_trace_sites.
Name the device with # device, or with --device. Of a trace above 20 million lines the blocks up to there are simulated,
and the results say so.

Example:
    # device: NVIDIA H200
    # kernel: spmv
    block,warp,seq,site,address,kind,size
    0,0,0,spmv.cu:12,0x7f2a00000000,load,4
    0,0,1,spmv.cu:14,0x7f2a10000080,load,8
"""

TOOL = "memory trace"
BLOCK = 4 << 20
FEW_BYTES = 4096
_NOTE = re.compile(r"#\s*(device|kernel)\s*[:=]\s*(.+)", re.IGNORECASE)
_WHOLE = re.compile(r"-?[0-9]{1,19}")
_HEX = re.compile(r"0[xX][0-9a-fA-F]{1,16}")


class Account(NamedTuple):
    """References of a part of the file, and what became of its lines."""

    trace: Trace | None
    batch: Batch


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in split_cells(line)]


def _is_empty(line: str) -> bool:
    return not line.strip() or line.lstrip().startswith("#")


def sniff(head: bytes) -> bool:
    """Tell whether ``head`` begins a Parquet file, or its first line that is no comment is a header of a trace."""
    if trace_parquet.sniff(head):
        return True
    first = next((line for line in head_lines(head) if not _is_empty(line)), "")
    return set(MUST) <= set(_cells(first))


class _File:
    """Parses blocks of lines at once, and lines one by one where that fails."""

    def __init__(self, sites: Sites) -> None:
        self.header: list[str] = []
        self.line = 0
        self.ledger = Ledger()
        self.sites = sites
        self.facts: dict[str, str] = {}

    def parse(self, block: Block) -> Iterator[Trace]:
        """Yield the references of a block, which holds whole lines."""
        waiting = [bytes(block)]
        while waiting:
            piece = waiting.pop()
            try:
                must(bool(self.header))
                yield self._plain(piece)
            except (NotPlainError, pa.ArrowException):
                if len(piece) > FEW_BYTES and (end := cut(piece, True, FEW_BYTES)) < len(piece):
                    waiting += [piece[end:], piece[:end]]
                    continue
                yield self._slow(piece)

    def _plain(self, piece: bytes) -> Trace:
        """Return the references of lines that are all good."""
        must(piece.endswith(b"\n") and b"#" not in piece and b'"' not in piece)
        # Arrow reads 0x1F as a number, also where none but an address may be written so.
        text = set(self.header) if b"0x" in piece or b"0X" in piece else {"site", "address", "kind"}
        types = {name: pa.string() if name in text else pa.int64() for name in self.header}
        table = csv.read_csv(
            pa.BufferReader(piece),
            csv.ReadOptions(column_names=self.header, use_threads=False, block_size=len(piece) + 1),
            csv.ParseOptions(quote_char=False, newlines_in_values=False, ignore_empty_lines=False),
            csv.ConvertOptions(column_types=types, null_values=[], strings_can_be_null=False),
        )
        lines = piece.count(b"\n")
        must(table.num_rows == lines)
        columns: dict[str, npt.NDArray[Any]] = {}
        for name in self.header:
            column = table.column(name).combine_chunks()
            if name == "kind":
                columns[name] = _codes(column, lambda kind: KINDS.get(kind.lower(), -1))
                must(bool((columns[name] >= 0).all()))
            elif name == "site":
                must(not pc.any(pc.equal(pc.utf8_trim_whitespace(column), "")).as_py())
                columns[name] = _codes(column, lambda site: self.sites[site.strip()])
            else:
                columns[name] = _addresses(column) if name == "address" else _wholes(column)
                must(not out_of_range(name, columns[name]).any())
        self.line += lines
        self.ledger.stored += lines
        return trace_of(columns)

    def _slow(self, piece: bytes) -> Trace:
        """Return the references of lines, one by one, and reject those that are none."""
        found: dict[str, list[int]] = {name: [] for name in (self.header or COLUMNS)}
        for text in lines_of(piece):
            self.line += 1
            cells = _cells(text)
            if _is_empty(text):
                self.ledger.skipped += 1
                if note := _NOTE.match(text.strip()):
                    self.facts.setdefault(note[1].lower(), note[2].strip()[:TEXT_LIMIT])
            elif not self.header:
                check_columns(cells, f"line {self.line}: the header")
                self.header, found = cells, {name: [] for name in cells}
                self.ledger.skipped += 1
            elif cells == self.header:
                self.ledger.skipped += 1
            else:
                try:
                    row = self._row(text, cells)
                except ValueError as error:
                    shown = text[:TEXT_LIMIT].rstrip("\r\n")
                    self.ledger.take(Record(REJECT, self.line, 1, shown, [], str(error)))
                    continue
                self.ledger.stored += 1
                for name, value in row.items():
                    found[name].append(value)
        return trace_of({name: np.array(values, dtype=np.int64) for name, values in found.items()})

    def _row(self, text: str, cells: list[str]) -> dict[str, int]:
        if len(cells) != len(self.header):
            raise ValueError(unfit(len(cells), len(self.header)))
        if ends_inside(text, cells[-1]):
            raise ValueError("the file ends inside this line")
        row: dict[str, int] = {}
        for name, cell in zip(self.header, cells, strict=True):
            if name == "kind" and cell.lower() in KINDS:
                row[name] = KINDS[cell.lower()]
            elif name == "kind":
                raise ValueError(f"kind is {cell!r}, which is neither load nor store nor atomic")
            elif name == "site" and cell:
                row[name] = self.sites[cell]
            elif name == "site":
                raise ValueError("site is empty: name the instruction of the source")
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
    """Return a number for each text, of each distinct text by what it means."""
    coded = column.dictionary_encode()
    known = np.array([meaning(text) for text in coded.dictionary.to_pylist()], dtype=np.int64)
    codes: npt.NDArray[np.int64] = known[coded.indices.to_numpy(zero_copy_only=False)]
    return codes


def _wholes(column: pa.Array) -> npt.NDArray[np.int64]:
    """Return numbers that are not hexadecimal; Arrow has read those that are no texts."""
    if pa.types.is_string(column.type):
        letters = letters_of(column)[0]
        must(not bool(((letters | 0x20) == ord("x")).any()))
        column = pc.cast(column, pa.int64())
    wholes: npt.NDArray[np.int64] = column.to_numpy(zero_copy_only=False)
    return wholes


def _addresses(column: pa.StringArray) -> npt.NDArray[np.int64]:
    """Return addresses, all of them decimal or all 0x..."""
    if not len(column) or not str(column[0]).lower().startswith("0x"):
        decimal: npt.NDArray[np.int64] = pc.cast(column, pa.int64()).to_numpy(zero_copy_only=False)
        return decimal
    letters, starts, ends = letters_of(column)
    digits = ends - starts - 2
    must(bool(((digits > 0) & (digits < 16)).all()))
    must(bool((letters[starts] == ord("0")).all() and ((letters[starts + 1] | 32) == ord("x")).all()))
    values = np.zeros(len(column), dtype=np.int64)
    for place in range(int(digits.max())):
        there = np.flatnonzero(place < digits)
        letter = letters[ends[there] - 1 - place] | 32  # digits have that bit, and letters become small
        digit = np.where(letter < 58, letter - 48, letter - 87).astype(np.int64)
        must(bool((((letter >= 48) & (letter < 58)) | ((letter >= 97) & (letter < 103))).all()))
        values[there] |= digit << (4 * place)
    return values


def accounts(stream: BinaryIO, sites: Sites | None = None) -> Iterator[Account]:
    """Yield the references of a trace and the account of its lines, some at a time; ``sites`` gets those it has."""
    known = Sites() if sites is None else sites
    head, stream = peek(stream, len(trace_parquet.MAGIC))
    if trace_parquet.sniff(head):
        yield from (Account(*pair) for pair in trace_parquet.read(stream, known))
        return
    with Text(stream) as text:
        file = _File(known)
        for block in text.blocks(BLOCK):
            for trace in file.parse(block):
                yield Account(trace, file.ledger.batch({}))
        if not file.header:
            raise BrokenInputError("the file has no header of a memory trace; see: profsvc formats memory-trace")
        yield Account(None, Batch(facts={**file.facts, "encoding": text.encoding}))


def read(stream: BinaryIO) -> Iterator[Batch]:
    """Read a trace in one walk over the file: account for its lines, and say how many references it has."""
    sites, order, first = Sites(), Order(), ""
    for trace, batch in accounts(stream, sites):
        if trace is not None:
            order.see(trace)
        if not first and "rejects" in batch.tables:
            row = batch.tables["rejects"].iloc[0]
            first = f"line {row['line']}: {row['reason']}"
        yield batch
    if not order.references:
        raise BrokenInputError(
            f"the file holds no reference; {first or 'it has no line below its header'}; see: profsvc formats {NAME}"
        )
    order_of = "by warp" if order.by_warp else "mixed"
    facts = {"tool": TOOL, "references": str(order.references), "sites": str(len(sites)), "order": order_of}
    yield Batch(facts=facts, message=f"{order.references:,} references of {len(sites):,} sites")


def parts(stream: BinaryIO, sites: Sites, by_warp: bool) -> Iterator[Trace]:
    """Yield the references of a trace by block and warp, in parts of whole warps; ``sites`` gets their places."""
    found = (trace for trace, _ in accounts(stream, sites) if trace is not None)
    return whole_warps(found if by_warp else sorted_by_warp(found), AT_ONCE)
