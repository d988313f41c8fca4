"""Blocks of rows of a details page at once: numpy finds the cells, Arrow tells the names apart and reads the numbers.

Most of a details page is plain: every cell stands in quotes, none holds a quote or a line end, and the rows of a launch
follow each other under the same names as those of the launch before. For a block that holds anything else `parse`
returns None, and the lines go one by one. Blocks end where a launch does.
"""

import re
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute

from profsvc.formats.blocks import Block, Letters, NotPlainError, must

Ints = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]
Floats = npt.NDArray[np.float64]

QUOTE, COMMA, RETURN, LINE_FEED = b'",\r\n'
WORD = 8
# The ID and the process of a launch, with their quotes, are told apart by so many words of eight letters.
KEY_WORDS = 4
_KEY = re.compile(rb'"[0-9]+","[0-9]*",')
_LOW_LETTERS = np.array([(1 << WORD * count) - 1 for count in range(WORD + 1)], np.uint64)
# What may stand in a cell that Arrow reads as `Numbers` does.
_PLAIN = np.zeros(256, np.bool_)
_PLAIN[[*b"0123456789.-"]] = True


class Plan(NamedTuple):
    """Where the cells of a row stand that say whose it is and what it is.

    ``named`` is the first of those that name the row, up to ``unit``; the value follows them. A row of a metric may end
    behind its value, that of a rule has the whole ``width``.
    """

    width: int
    identity: tuple[int, ...]
    named: int
    metric: int
    unit: int


class Part(NamedTuple):
    """What a block holds: its launches, and the name and the value of each row.

    ``firsts`` are the first rows of the launches, ``identity`` what these say, by column. ``names`` holds the cells
    that name a row, and how often the launch had them before. ``values`` is NaN where a cell is no plain number.
    """

    rows: int
    firsts: Ints
    identity: list[list[str]]
    launch: Ints
    names: list[tuple[tuple[str, ...], int]]
    name: Ints
    texts: pa.StringArray
    values: Floats
    rules: dict[int, list[str]]


class _Cells(NamedTuple):
    """The cells of all rows behind each other: where each begins and ends, and the first one of each row."""

    block: Block
    letters: Letters
    begins: Ints
    ends: Ints
    firsts: Ints
    counts: Ints

    def texts(self, first: Ints, last: Ints) -> pa.StringArray:
        """Return what stands from one cell of each row to another."""
        offsets = np.empty(2 * len(first) + 1, np.int32)
        offsets[:-1:2], offsets[1::2], offsets[-1] = self.begins[first], self.ends[last], len(self.letters)
        # Texts of Arrow follow each other without gaps: every other one is what lies between two rows.
        buffers = pa.py_buffer(offsets), pa.py_buffer(self.letters)
        both = pa.StringArray.from_buffers(2 * len(first), *buffers)
        return taken(both, np.arange(0, 2 * len(first), 2, dtype=np.int32))

    def strings(self, cells: Ints) -> list[str]:
        """Return some cells."""
        bounds = zip(self.begins[cells].tolist(), self.ends[cells].tolist(), strict=True)
        return [str(self.block[begin:end], "utf-8") for begin, end in bounds]


def taken(texts: pa.StringArray, places: npt.NDArray[np.integer]) -> pa.StringArray:
    """Return some texts, in memory that goes back to the system."""
    return pyarrow.compute.take(texts, pa.array(places), memory_pool=pa.system_memory_pool())


def whole_launches(blocks: Iterator[Block], most: int) -> Iterator[Block]:
    """Move the rows of a launch that goes on into the block behind; a launch of more than ``most`` bytes is cut."""
    rest = b""
    for piece in blocks:
        block = b"".join((rest, piece))
        end = _last_launch(block)
        if len(block) - end > most:
            end = len(block)
        if end:
            yield memoryview(block)[:end]
        rest = block[end:]
    if rest:
        yield rest


def _last_launch(block: bytes) -> int:
    """Return where the rows of the last launch begin; the end of a block that does not end with a row."""
    begin = block.rfind(b"\n", 0, len(block) - 1) + 1
    key = _KEY.match(block, begin)
    if not key:
        return len(block)
    while begin and block.startswith(key[0], before := block.rfind(b"\n", 0, begin - 1) + 1):
        begin = before
    return begin


def next_launch(block: bytes, place: int) -> int:
    """Return where behind ``place``, the begin of a line, the rows of another launch begin; its end if nowhere."""
    last = block.rfind(b"\n", 0, max(place - 1, 0)) + 1
    while 0 < place < len(block):
        key = _KEY.match(block, last)
        if not key or not block.startswith(key[0], place):
            return place
        last, place = place, block.find(b"\n", place) + 1 or len(block)
    return len(block)


def parse(block: Block, plan: Plan) -> Part | None:
    """Read a block of whole lines; None if any of them is not a plain row."""
    try:
        return _part(_cells(block, plan), plan)
    except NotPlainError:
        return None


def _cells(block: Block, plan: Plan) -> _Cells:
    """Find the cells of all rows; each must stand in quotes and hold none, nor a line end."""
    letters = np.frombuffer(block, np.uint8)
    must(len(letters) > 0 and letters[-1] == LINE_FEED)
    places, line_ends = np.flatnonzero(letters == QUOTE), np.flatnonzero(letters == LINE_FEED)
    begins, ends = places[::2] + 1, places[1::2]
    must(0 < len(begins) == len(ends))
    before = np.searchsorted(places, line_ends)
    counts = np.diff(before, prepend=0)
    must(not (counts & 1).any())
    counts, lasts = counts >> 1, (before >> 1) - 1
    must(int(counts.min()) >= plan.unit + 2 and int(counts.max()) <= plan.width)
    firsts = lasts - counts + 1
    # Two quotes and a comma lie between the cells of a row; between rows stands something else.
    signs = letters[ends + 1]
    gaps = np.count_nonzero((begins[1:] - ends[:-1] == 3) & (signs[:-1] == COMMA))
    must(gaps == len(ends) - len(lasts) and int(begins[0]) == 1)
    must(bool((begins[firsts[1:]] == line_ends[:-1] + 2).all()))
    tails, sign = line_ends - ends[lasts] - 1, signs[lasts]
    before_end = letters[line_ends - 1]
    must(
        bool(
            (
                (tails == 0)
                | ((tails == 1) & ((sign == COMMA) | (sign == RETURN)))
                | ((tails == 2) & (sign == COMMA) & (before_end == RETURN))
            ).all()
        )
    )
    return _Cells(block, letters, begins, ends, firsts, counts)


def _part(cells: _Cells, plan: Plan) -> Part:
    rows = len(cells.firsts)
    firsts = _first_rows(cells)
    identity = [cells.strings(cells.firsts[firsts] + place) for place in plan.identity]
    must(all(text.isascii() and text.isdigit() for text in identity[0]))
    launch = np.repeat(np.arange(len(firsts)), np.diff(firsts, append=rows))
    pool = pa.system_memory_pool()
    texts = cells.texts(cells.firsts + plan.named, cells.firsts + plan.unit)
    coded = pyarrow.compute.dictionary_encode(texts, memory_pool=pool)
    named = [tuple(text.split('","')) for text in coded.dictionary.to_pylist()]
    code = coded.indices.to_numpy().astype(np.int64)
    names, name = _with_occurrence(named, code, launch)
    texts = cells.texts(cells.firsts + plan.unit + 1, cells.firsts + plan.unit + 1)
    return Part(rows, firsts, identity, launch, names, name, texts, _numbers(texts), _rules(cells, plan, named, code))


def _first_rows(cells: _Cells) -> Ints:
    """Return the first row of each launch: its ID and process, the first two cells, are not those of the row before."""
    starts = cells.begins[cells.firsts] - 1
    sizes = cells.ends[cells.firsts + 1] + 1 - starts
    must(int(sizes.max()) <= KEY_WORDS * WORD and int(starts[-1]) + KEY_WORDS * WORD <= len(cells.letters))
    words: npt.NDArray[np.uint64] = np.ndarray(len(cells.letters) - WORD + 1, "<u8", cells.letters, 0, (1,))
    new = sizes[1:] != sizes[:-1]
    for begin in range(0, int(sizes.max()), WORD):
        word = words[starts + begin] & _LOW_LETTERS[np.clip(sizes - begin, 0, WORD)]
        new |= word[1:] != word[:-1]
    return np.flatnonzero(np.concatenate(([True], new)))


def _with_occurrence(
    named: list[tuple[str, ...]], code: Ints, launch: Ints
) -> tuple[list[tuple[tuple[str, ...], int]], Ints]:
    """Tell rows of a launch that have the same name apart by their order."""
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


def _numbers(texts: pa.StringArray) -> Floats:
    """Read the plain numbers of a column; NaN for all other cells."""
    _, offset_buffer, data = texts.buffers()
    offsets = np.frombuffer(offset_buffer, np.int32)[: len(texts) + 1]
    letters = np.frombuffer(data, np.uint8)[: offsets[-1]] if data is not None else np.zeros(0, np.uint8)
    odd = np.diff(offsets) == 0
    odd[np.searchsorted(offsets, np.flatnonzero(~_PLAIN[letters]), "right") - 1] = True
    pool = pa.system_memory_pool()
    plain = pyarrow.compute.if_else(pa.array(~odd), texts, "0", memory_pool=pool) if odd.any() else texts
    try:
        values = pyarrow.compute.cast(plain, pa.float64(), memory_pool=pool).to_numpy()
    except pa.ArrowInvalid:
        return np.full(len(texts), np.nan)
    return np.where(odd | ~np.isfinite(values), np.nan, values)


def _rules(cells: _Cells, plan: Plan, named: list[tuple[str, ...]], code: Ints) -> dict[int, list[str]]:
    """Return the cells of the rows that name no metric, which have to be rules."""
    without = np.array([not name[plan.metric - plan.named] for name in named], np.bool_)
    rows = np.flatnonzero(without[code])
    must(bool((cells.counts[rows] == plan.width).all()))
    every = np.arange(plan.width)
    return {row: cells.strings(cells.firsts[row] + every) for row in rows.tolist()}
