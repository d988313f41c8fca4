"""Parses blocks of a details page with the compiled splitter where it is there, else with NumPy and Arrow.

Most of a details page is regular: every cell is quoted, no cell holds a quote or a line end, and every launch has the
metrics of the previous one. `parse` returns None for any other block, which is then read line by line. Blocks end where
a launch ends.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from math import prod
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from profsvc.formats.columnar.line_blocks import Block, Floats, IrregularBlockError, Letters, require_plain
from profsvc.formats.ncu.details_rows import ColumnPlan, ParsedRows, Spans, with_occurrence
from profsvc.formats.parsing.numbers import MAX_EXACT_INT
from profsvc.formats.parsing.timestamps import Int64s
from profsvc.formats.splitter import rows as splitter
from profsvc.formats.splitter.rows import SKIP, TEXT, VALUE, Cells, Kind
from profsvc.tables.on_demand import pa

QUOTE, COMMA, RETURN, LINE_FEED = b'",\r\n'
WORD = 8
# The quoted ID and process of a launch are compared in at most this many words of eight bytes.
MAX_KEY_WORDS = 4
_KEY = re.compile(rb'"[0-9]+","[0-9]*",')
_LOW_LETTERS = np.array([(1 << WORD * count) - 1 for count in range(WORD + 1)], np.uint64)
# Cells of these characters are read alike by Arrow and `Numbers`.
_PLAIN_NUMBER_CHARS = np.zeros(256, np.bool_)
_PLAIN_NUMBER_CHARS[[*b"0123456789.-"]] = True


class _Cells(NamedTuple):
    """The cells of all rows: the begin and the end of each, and the first cell of each row."""

    block: Block
    letters: Letters
    begins: Int64s
    ends: Int64s
    firsts: Int64s
    counts: Int64s

    def texts(self, first: Int64s, last: Int64s) -> pa.StringArray:
        """Return the text of each row from one cell to another."""
        offsets = np.empty(2 * len(first) + 1, np.int32)
        offsets[:-1:2], offsets[1::2], offsets[-1] = self.begins[first], self.ends[last], len(self.letters)
        # Arrow texts have no gaps between them, so every second text is what lies between two rows.
        buffers = pa.py_buffer(offsets), pa.py_buffer(self.letters)
        both = pa.StringArray.from_buffers(2 * len(first), *buffers)
        every = _arrow(np.arange(0, 2 * len(first), 2, dtype=np.int32), pa.int32())
        return pa.compute.take(both, every, memory_pool=pa.system_memory_pool())  # whose memory is freed at once

    def strings(self, cells: Int64s) -> list[str]:
        """Return the texts of ``cells``."""
        bounds = zip(self.begins[cells].tolist(), self.ends[cells].tolist(), strict=True)
        return [str(self.block[begin:end], "utf-8") for begin, end in bounds]


def whole_launches(blocks: Iterator[Block], most: int) -> Iterator[Block]:
    """Move an unfinished launch into the next block; a launch of more than ``most`` bytes is cut."""
    rest = b""
    for piece in blocks:
        block = b"".join((rest, piece))
        end = _last_launch_start(block)
        if len(block) - end > most:
            end = len(block)
        if end:
            yield memoryview(block)[:end]
        rest = block[end:]
    if rest:
        yield rest


def _last_launch_start(block: bytes) -> int:
    """Return where the last launch begins; the end if the block does not end with a row."""
    begin = block.rfind(b"\n", 0, len(block) - 1) + 1
    key = _KEY.match(block, begin)
    if not key:
        return len(block)
    while begin and block.startswith(key[0], before := block.rfind(b"\n", 0, begin - 1) + 1):
        begin = before
    return begin


def next_launch(block: bytes, place: int) -> int:
    """Return where the next launch after ``place``, the begin of a line, begins; else the end of the block."""
    last = block.rfind(b"\n", 0, max(place - 1, 0)) + 1
    while 0 < place < len(block):
        key = _KEY.match(block, last)
        if not key or not block.startswith(key[0], place):
            return place
        last, place = place, block.find(b"\n", place) + 1 or len(block)
    return len(block)


def parse(block: Block, plan: ColumnPlan) -> ParsedRows | None:
    """Return the rows of a block of complete lines; None if a row is irregular."""
    for way in (_split_rows, _numpy_rows) if splitter.is_available() else (_numpy_rows,):
        try:
            return way(block, plan)
        except IrregularBlockError:
            continue
    return None


def _split_rows(block: Block, plan: ColumnPlan) -> ParsedRows:
    """Return the rows of a block by the compiled splitter."""
    value = plan.unit + 1
    texts = {0, 1, *plan.identity, *range(plan.named, value)}
    kinds = [Kind(TEXT if place in texts else VALUE if place == value else SKIP) for place in range(plan.width)]
    lines, rows, cells, _ = splitter.split(block, kinds, quoted=True, least=value + 1)
    require_plain(0 < rows == lines)
    require_plain(all(text.isascii() and text.isdigit() for text in cells[0].texts))
    new = np.diff(cells[0].values, prepend=-1) | np.diff(cells[1].values, prepend=-1)
    firsts = np.flatnonzero(new)
    identity = [[cells[place].texts[code] for code in cells[place].values[firsts].tolist()] for place in plan.identity]
    launch = np.repeat(np.arange(len(firsts)), np.diff(firsts, append=rows))
    named, code = _names(cells[plan.named : value])
    names, name = with_occurrence(named, code, launch)
    begins, ends = cells[value].extra.T
    spans = Spans(np.frombuffer(block, np.uint8), begins, ends)
    without = np.array([not cells_of[plan.metric - plan.named] for cells_of in named], np.bool_)
    rules = _cells_of_lines(spans, np.flatnonzero(without[code]), plan.width)
    return ParsedRows(rows, firsts, identity, launch, names, name, spans, cells[value].values, rules)


def _names(columns: list[Cells]) -> tuple[list[tuple[str, ...]], Int64s]:
    """Return the distinct names in the order in which they occur, and the code of each row."""
    require_plain(prod(len(column.texts) for column in columns) < MAX_EXACT_INT)
    together = np.zeros(len(columns[0].values), np.int64)
    for column in columns:
        together = together * len(column.texts) + column.values
    _, first, code = np.unique(together, return_index=True, return_inverse=True)
    order = np.argsort(first)
    rank = np.empty(len(order), np.int64)
    rank[order] = np.arange(len(order))
    texts = [[column.texts[at] for at in column.values[first[order]].tolist()] for column in columns]
    return list(zip(*texts, strict=True)), rank[code]


def _cells_of_lines(spans: Spans, rows: Int64s, width: int) -> dict[int, list[str]]:
    """Return all cells of some rows, which must have ``width``; each row is a line."""
    if not len(rows):
        return {}
    ends = np.flatnonzero(spans.letters == ord("\n"))
    begins = np.concatenate(([0], ends[:-1] + 1))
    found = {}
    for row in rows.tolist():
        text = spans.letters[begins[row] : ends[row]].tobytes().decode().removesuffix("\r")
        found[row] = text[1:-1].split('","')
        require_plain(len(found[row]) == width)
    return found


def _cells(block: Block, plan: ColumnPlan) -> _Cells:
    """Return the cells of all rows; each must be quoted and hold no quote or line end."""
    letters = np.frombuffer(block, np.uint8)
    require_plain(len(letters) > 0 and letters[-1] == LINE_FEED)
    places, line_ends = np.flatnonzero(letters == QUOTE), np.flatnonzero(letters == LINE_FEED)
    begins, ends = places[::2] + 1, places[1::2]
    require_plain(0 < len(begins) == len(ends))
    before = np.searchsorted(places, line_ends)
    counts = np.diff(before, prepend=0)
    require_plain(not (counts & 1).any())
    counts, lasts = counts >> 1, (before >> 1) - 1
    require_plain(int(counts.min()) >= plan.unit + 2 and int(counts.max()) <= plan.width)
    firsts = lasts - counts + 1
    # Two quotes and a comma separate the cells of a row, but not rows.
    signs = letters[ends + 1]
    gaps = np.count_nonzero((begins[1:] - ends[:-1] == 3) & (signs[:-1] == COMMA))
    require_plain(gaps == len(ends) - len(lasts) and int(begins[0]) == 1)
    require_plain(bool((begins[firsts[1:]] == line_ends[:-1] + 2).all()))
    tails, sign = line_ends - ends[lasts] - 1, signs[lasts]
    before_end = letters[line_ends - 1]
    require_plain(
        bool(
            (
                (tails == 0)
                | ((tails == 1) & ((sign == COMMA) | (sign == RETURN)))
                | ((tails == 2) & (sign == COMMA) & (before_end == RETURN))
            ).all()
        )
    )
    return _Cells(block, letters, begins, ends, firsts, counts)


def _numpy_rows(block: Block, plan: ColumnPlan) -> ParsedRows:
    cells = _cells(block, plan)
    rows = len(cells.firsts)
    firsts = _first_rows(cells)
    identity = [cells.strings(cells.firsts[firsts] + place) for place in plan.identity]
    require_plain(all(text.isascii() and text.isdigit() for text in identity[0]))
    launch = np.repeat(np.arange(len(firsts)), np.diff(firsts, append=rows))
    pool = pa.system_memory_pool()
    texts = cells.texts(cells.firsts + plan.named, cells.firsts + plan.unit)
    coded = pa.compute.dictionary_encode(texts, memory_pool=pool)
    named = [tuple(text.split('","')) for text in coded.dictionary.to_pylist()]
    code = np.frombuffer(coded.indices.buffers()[1], np.int32)[:rows].astype(np.int64)
    names, name = with_occurrence(named, code, launch)
    place = cells.firsts + plan.unit + 1
    values = _plain_numbers(cells.texts(place, place))
    spans = Spans(cells.letters, cells.begins[place].astype(np.int32), cells.ends[place].astype(np.int32))
    rules = _rule_cells(cells, plan, named, code)
    return ParsedRows(rows, firsts, identity, launch, names, name, spans, values, rules)


def _first_rows(cells: _Cells) -> Int64s:
    """Return the first row of each launch, where the ID or the process (first two cells) changes."""
    starts = cells.begins[cells.firsts] - 1
    sizes = cells.ends[cells.firsts + 1] + 1 - starts
    require_plain(
        int(sizes.max()) <= MAX_KEY_WORDS * WORD and int(starts[-1]) + MAX_KEY_WORDS * WORD <= len(cells.letters)
    )
    words: npt.NDArray[np.uint64] = np.ndarray(len(cells.letters) - WORD + 1, "<u8", cells.letters, 0, (1,))
    new = sizes[1:] != sizes[:-1]
    for begin in range(0, int(sizes.max()), WORD):
        word = words[starts + begin] & _LOW_LETTERS[np.clip(sizes - begin, 0, WORD)]
        new |= word[1:] != word[:-1]
    return np.flatnonzero(np.concatenate(([True], new)))


def _plain_numbers(texts: pa.StringArray) -> Floats:
    """Return the plain numbers of a column; NaN for all other cells."""
    _, offset_buffer, data = texts.buffers()
    offsets = np.frombuffer(offset_buffer, np.int32)[: len(texts) + 1]
    letters = np.frombuffer(data, np.uint8)[: offsets[-1]] if data is not None else np.zeros(0, np.uint8)
    odd = np.diff(offsets) == 0
    odd[np.searchsorted(offsets, np.flatnonzero(~_PLAIN_NUMBER_CHARS[letters]), "right") - 1] = True
    pool = pa.system_memory_pool()
    known = _arrow(np.packbits(~odd, bitorder="little"), pa.bool_(), len(odd))
    plain = pa.compute.if_else(known, texts, "0", memory_pool=pool) if odd.any() else texts
    try:
        cast = pa.compute.cast(plain, pa.float64(), memory_pool=pool)
    except pa.ArrowInvalid:
        return np.full(len(texts), np.nan)
    values = np.frombuffer(cast.buffers()[1], np.float64)[: len(odd)]
    return np.where(odd | ~np.isfinite(values), np.nan, values)


def _arrow(values: npt.NDArray[Any], kind: pa.DataType, length: int | None = None) -> pa.Array:
    """Return an array of Arrow in the memory of one of NumPy; Arrow's own conversions import pandas."""
    return pa.Array.from_buffers(kind, len(values) if length is None else length, [None, pa.py_buffer(values)])


def _rule_cells(cells: _Cells, plan: ColumnPlan, named: list[tuple[str, ...]], code: Int64s) -> dict[int, list[str]]:
    """Return the cells of the rows without a metric, which must be rules."""
    without = np.array([not name[plan.metric - plan.named] for name in named], np.bool_)
    rows = np.flatnonzero(without[code])
    require_plain(bool((cells.counts[rows] == plan.width).all()))
    every = np.arange(plan.width)
    return {row: cells.strings(cells.firsts[row] + every) for row in rows.tolist()}
