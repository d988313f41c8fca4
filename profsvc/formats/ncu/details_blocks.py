"""Parses blocks of a details page with NumPy and Arrow.

Most of a details page is regular: every cell is quoted, no cell holds a quote or a line end, and every launch has the
metrics of the previous one. `parse` returns None for any other block, which is then read line by line. Blocks end where
a launch ends.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from profsvc.errors import counted
from profsvc.formats.columnar.line_blocks import Block, Floats, IrregularBlockError, Letters, require_plain
from profsvc.formats.ncu import launches as ncu_launches
from profsvc.formats.ncu.csv_lines import IDENTITY_COLUMNS
from profsvc.formats.parsing.timestamps import Int64s
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


class ColumnPlan(NamedTuple):
    """The places of the cells that identify a row.

    The cells from ``named`` to ``unit`` name the metric; the value follows. A metric row may end after its value,
    the row of a rule has the full ``width``.
    """

    width: int
    identity: tuple[int, ...]
    named: int
    metric: int
    unit: int


class Layout:
    """The places of the columns of one table; -1 for a missing column."""

    def __init__(self, header: list[str]) -> None:
        """Find the columns of ``header``."""
        self.width = len(header)
        place = {name: n for n, name in reversed(list(enumerate(header)))}
        self.identity = {name: place[name] for name in IDENTITY_COLUMNS if name in place}
        self.ranges = {name: place[name] for name in header if name.endswith(ncu_launches.RANGE_SUFFIX)}
        self.process = place.get("Process ID", 0)
        self.metric, self.unit, self.value = (place[f"Metric {word}"] for word in ("Name", "Unit", "Value"))
        self.section, self.body = place.get("Section Name", -1), place.get("Body Item Label", -1)
        self.rule, self.rule_type = place.get("Rule Name", -1), place.get("Rule Type", -1)
        self.message = place.get("Rule Description", -1)
        self.kind, self.estimate = place.get("Estimated Speedup Type", -1), place.get("Estimated Speedup", -1)

    @cached_property
    def plan(self) -> ColumnPlan | None:
        """How to read blocks of rows; None if the columns are in an unusual order."""
        named = [place for place in (self.section, self.body, self.metric) if place >= 0]
        before = (*self.identity.values(), *self.ranges.values())
        usual = [*named, self.unit, self.value] == list(range(named[0], named[0] + len(named) + 2))
        if not usual or self.process != 1 or max(before) >= named[0]:
            return None
        return ColumnPlan(self.width, before, named[0], self.metric, self.unit)

    def named(self, cells: Sequence[str]) -> tuple[str | None, str, str]:
        """Return section, metric and unit from the cells that name a row in ``plan``."""
        every = [""] * (self.unit + 1 - len(cells)) + list(cells)
        return self.section_of(every), ncu_launches.metric_name(every[self.metric]), every[self.unit]

    def section_of(self, cells: list[str]) -> str | None:
        """Return the section of a row with its body item; None if it has no section."""
        section = cells[self.section] if self.section >= 0 else ""
        body = cells[self.body] if self.body >= 0 else ""
        return (f"{section} > {body}" if body else section) or None

    def wrong(self, cells: list[str]) -> str:
        """Return the reason to reject a row; empty for a metric or a complete rule."""
        if cells[self.metric]:
            return ""
        if self.rule < 0 or len(cells) <= self.rule or not cells[self.rule]:
            return "the row names neither a metric nor a rule"
        if len(cells) < self.width:
            return f"the row of a rule has {counted(len(cells), 'cell')} but needs {self.width}"
        return ""


class ParsedRows(NamedTuple):
    """The launches of a block, and the name and the value of each row.

    ``firsts`` are the first rows of the launches, ``identity`` their cells by column. ``names`` holds the cells that
    name a row, and their earlier occurrences in the launch. ``values`` is NaN for a cell that is not a plain number.
    """

    rows: int
    firsts: Int64s
    identity: list[list[str]]
    launch: Int64s
    names: list[tuple[tuple[str, ...], int]]
    name: Int64s
    texts: pa.StringArray
    values: Floats
    rules: dict[int, list[str]]


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
        return take_texts(both, np.arange(0, 2 * len(first), 2, dtype=np.int32))

    def strings(self, cells: Int64s) -> list[str]:
        """Return the texts of ``cells``."""
        bounds = zip(self.begins[cells].tolist(), self.ends[cells].tolist(), strict=True)
        return [str(self.block[begin:end], "utf-8") for begin, end in bounds]


def take_texts(texts: pa.StringArray, places: npt.NDArray[np.integer]) -> pa.StringArray:
    """Return some texts, in memory of the system pool, which is freed at once."""
    return pa.compute.take(texts, pa.array(places), memory_pool=pa.system_memory_pool())


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
    try:
        return _parse_cells(_cells(block, plan), plan)
    except IrregularBlockError:
        return None


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


def _parse_cells(cells: _Cells, plan: ColumnPlan) -> ParsedRows:
    rows = len(cells.firsts)
    firsts = _first_rows(cells)
    identity = [cells.strings(cells.firsts[firsts] + place) for place in plan.identity]
    require_plain(all(text.isascii() and text.isdigit() for text in identity[0]))
    launch = np.repeat(np.arange(len(firsts)), np.diff(firsts, append=rows))
    pool = pa.system_memory_pool()
    texts = cells.texts(cells.firsts + plan.named, cells.firsts + plan.unit)
    coded = pa.compute.dictionary_encode(texts, memory_pool=pool)
    named = [tuple(text.split('","')) for text in coded.dictionary.to_pylist()]
    code = coded.indices.to_numpy().astype(np.int64)
    names, name = _with_occurrence(named, code, launch)
    texts = cells.texts(cells.firsts + plan.unit + 1, cells.firsts + plan.unit + 1)
    return ParsedRows(
        rows, firsts, identity, launch, names, name, texts, _plain_numbers(texts), _rule_cells(cells, plan, named, code)
    )


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


def _with_occurrence(
    named: list[tuple[str, ...]], code: Int64s, launch: Int64s
) -> tuple[list[tuple[tuple[str, ...], int]], Int64s]:
    """Number the rows of a launch that have the same name."""
    key = launch * len(named) + code
    if (np.diff(key) > 0).all():
        return [(name, 0) for name in named], code
    order = np.argsort(key, kind="stable")
    begins = np.flatnonzero(np.diff(key[order], prepend=-1))
    if len(begins) == len(key):
        return [(name, 0) for name in named], code
    occurrence = np.empty(len(key), np.int64)
    occurrence[order] = np.arange(len(key)) - np.repeat(begins, np.diff(begins, append=len(key)))
    most = int(occurrence.max()) + 1
    found, back = np.unique(code * most + occurrence, return_inverse=True)
    return [(named[both // most], both % most) for both in found.tolist()], back.astype(np.int64)


def _plain_numbers(texts: pa.StringArray) -> Floats:
    """Return the plain numbers of a column; NaN for all other cells."""
    _, offset_buffer, data = texts.buffers()
    offsets = np.frombuffer(offset_buffer, np.int32)[: len(texts) + 1]
    letters = np.frombuffer(data, np.uint8)[: offsets[-1]] if data is not None else np.zeros(0, np.uint8)
    odd = np.diff(offsets) == 0
    odd[np.searchsorted(offsets, np.flatnonzero(~_PLAIN_NUMBER_CHARS[letters]), "right") - 1] = True
    pool = pa.system_memory_pool()
    plain = pa.compute.if_else(pa.array(~odd), texts, "0", memory_pool=pool) if odd.any() else texts
    try:
        values = pa.compute.cast(plain, pa.float64(), memory_pool=pool).to_numpy()
    except pa.ArrowInvalid:
        return np.full(len(texts), np.nan)
    return np.where(odd | ~np.isfinite(values), np.nan, values)


def _rule_cells(cells: _Cells, plan: ColumnPlan, named: list[tuple[str, ...]], code: Int64s) -> dict[int, list[str]]:
    """Return the cells of the rows without a metric, which must be rules."""
    without = np.array([not name[plan.metric - plan.named] for name in named], np.bool_)
    rows = np.flatnonzero(without[code])
    require_plain(bool((cells.counts[rows] == plan.width).all()))
    every = np.arange(plan.width)
    return {row: cells.strings(cells.firsts[row] + every) for row in rows.tolist()}
