"""Write rows of numbers as pages of a SQLite file, a block of rows at a time.

Binding millions of rows value by value through the driver takes longer than reading their file. So numpy builds the
pages of the long tables of an upload in a separate file, which SQLite attaches and copies from. Locks, journal and
checks of the store remain those of SQLite. The format is described at https://www.sqlite.org/fileformat2.html:
a leaf contains cells (size of the record, row id, record); a record contains one type per column and then the values.
"""

import sqlite3
import struct
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from profsvc.store.ingest.pages import compiled

PAGE_BYTES = 4096
MAX_ROW_ID = (1 << 56) - 1  # longer records have another format
LEAF, INTERIOR = 13, 5
LEAF_HEAD, INTERIOR_HEAD, POINTER, CHILD = 8, 12, 2, 4
WORD_BYTES = 8
NULL, REAL, ZERO = 0, 7, 8
# Size of a value in bytes by record type: null, integers of 1 to 8 bytes, a double, and the values 0 and 1.
TYPE_SIZES = np.array([0, 1, 2, 3, 4, 6, 8, 8, 0, 0], np.int64)
# The smallest absolute value of an integer that does not fit into the types 1 to 5.
TYPE_BOUNDS = np.array([1 << 7, 1 << 15, 1 << 23, 1 << 31, 1 << 47], np.int64)
# Whole numbers below it are stored as integers in columns of doubles; SQLite returns them as doubles.
MAX_INTEGER_IN_DOUBLE = float(1 << 47)

Bytes = npt.NDArray[np.uint8]
Ints = npt.NDArray[np.int64]
Words = npt.NDArray[np.uint64]
Column = tuple[npt.NDArray[Any], npt.NDArray[np.bool_] | None]
"""64-bit integers or doubles, and which of them are null (None: no nulls)."""


def _varint(number: int) -> bytes:
    """Return a number as a SQLite varint: 7 bits per byte, the highest first.

    >>> _varint(5), _varint(300)
    (b'\\x05', b'\\x82,')
    """
    found = bytearray([number & 0x7F])
    while number := number >> 7:
        found.insert(0, 0x80 | number & 0x7F)
    return bytes(found)


class _Cells(NamedTuple):
    """An encoded column: the type of each value, its size, and its bytes in big-endian order."""

    types: Any
    sizes: Any
    words: Words


def _whole(values: Ints) -> tuple[Any, Words]:
    """Return the types of integers, a single one if they are all equal, and their bytes."""
    least, most = int(values.min()), int(values.max())
    if least == most in (0, 1):
        return ZERO + most, values.view(np.uint64)
    magnitude = values if least >= 0 else values ^ (values >> 63)
    low, high = magnitude.min(), magnitude.max()
    types: Any = 1 + int(np.searchsorted(TYPE_BOUNDS, low, "right"))
    for bound in TYPE_BOUNDS[types - 1 :]:
        if bound <= high:
            types = types + (magnitude >= bound).view(np.uint8)
    if least <= 1 and most >= 0:
        small = (values == 0) | (values == 1)
        types = np.where(small, (ZERO + values).astype(np.uint8), np.uint8(types))
    return types, values.view(np.uint64)


def _cells(values: npt.NDArray[Any], missing: npt.NDArray[np.bool_] | None) -> _Cells:
    """Return an encoded column."""
    if missing is not None and missing.all():
        return _Cells(NULL, 0, values.view(np.uint64))
    if values.dtype == np.float64:
        absent = np.isnan(values)
        missing = absent if missing is None else missing | absent
        whole = np.where(np.abs(values) < MAX_INTEGER_IN_DOUBLE, values, 0.0).astype(np.int64)
        is_whole = (whole == values) & ((whole != 0) | ~np.signbit(values))
        types, words = _whole(whole)
        if not is_whole.all():
            types = np.where(is_whole, np.uint8(types), np.uint8(REAL))
            words = np.where(is_whole, words, values.view(np.uint64))
    else:
        types, words = _whole(values.astype(np.int64, copy=False))
    if missing is not None and missing.any():
        types = np.where(missing, np.uint8(NULL), np.uint8(types))
    return _Cells(types, TYPE_SIZES[types], words)


class Tree:
    """The pages of one table: leaves while rows arrive, interior pages at the end."""

    def __init__(self, root: int) -> None:
        """Begin a table whose first page in the file is ``root``."""
        self.root = root
        self.leaves: list[Ints] = []  # one row per page: its number, its last row id
        self.only = b""

    def add(self, first_page: int, first_row: int, columns: Sequence[Column]) -> Bytes:
        """Lay out rows whose ids count up from ``first_row`` as leaves to be put at ``first_page``."""
        make = compiled.leaves if compiled.is_available() else leaves
        pages, last_rows = make(first_row, columns)
        self.only = pages.tobytes() if len(last_rows) == 1 and not self.leaves else b""
        self.leaves.append(np.stack((first_page + np.arange(len(last_rows)), last_rows), axis=1))
        return pages

    def above(self, first_page: int) -> tuple[bytes, bytes]:
        """Return the root, and the pages between it and the leaves, to be put at ``first_page``."""
        if self.only:  # it goes where the root is, and its own place stays free
            return self.only, b""
        level, between = np.concatenate(self.leaves), bytearray()
        while True:
            pages, level = _interior(level, first_page + len(between) // PAGE_BYTES)
            if len(level) == 1:
                return pages, bytes(between)
            between += pages


def leaves(first_row: int, columns: Sequence[Column]) -> tuple[Bytes, Ints]:
    """Return rows as pages, one after another, and the last row of each page; their ids take the same bytes."""
    count = len(columns[0][0])
    cells = [_cells(*column) for column in columns]
    ids = _row_ids(first_row, count)
    # The key stands in the record as null: it is the row's id.
    head = 1 + ids.shape[1] + 1 + 1 + len(cells)
    lengths = np.full(count, head) + sum(cell.sizes for cell in cells)
    outside = 1 + ids.shape[1]
    assert head >= WORD_BYTES, "what a value spills over stays within its row"
    assert lengths.max() - outside < 0x80, "the size of a record takes one byte"
    ends = np.cumsum(lengths)
    firsts = _page_starts(ends)
    pages = len(firsts) - 1
    page_of = np.repeat(np.arange(pages), np.diff(firsts))
    # Cells fill a page up to its end, in the order of the rows.
    behind = ends + ((np.arange(1, pages + 1) * PAGE_BYTES) - ends[firsts[1:] - 1])[page_of]
    places = behind - lengths
    space = np.zeros(pages * PAGE_BYTES + WORD_BYTES, np.uint8)
    _bodies(space, behind, cells)
    heads = np.empty((count, head), np.uint8)
    heads[:, 0] = lengths - outside
    heads[:, 1:outside] = ids
    heads[:, outside] = 2 + len(cells)
    heads[:, outside + 1] = NULL
    for number, cell in enumerate(cells, outside + 2):
        heads[:, number] = cell.types
    _scatter(space, places, heads)
    _pointers(space, places, page_of, firsts)
    return space[: pages * PAGE_BYTES], first_row + firsts[1:] - 1


def _pointers(space: Bytes, places: Ints, page_of: Ints, firsts: Ints) -> None:
    """Write the heads of pages, and where their cells are."""
    shorts = space[: len(space) // 2 * 2].view(">u2")
    in_page = np.arange(len(places)) - firsts[page_of]
    shorts[(page_of * PAGE_BYTES + LEAF_HEAD) // 2 + in_page] = places - page_of * PAGE_BYTES
    heads = np.arange(len(firsts) - 1) * PAGE_BYTES
    space[heads] = LEAF
    space[heads + 3], space[heads + 4] = np.divmod(np.diff(firsts), 256)
    content = places[firsts[:-1]] - heads
    space[heads + 5], space[heads + 6] = np.divmod(content, 256)


def _bodies(space: Bytes, behind: Ints, cells: Sequence[_Cells]) -> None:
    """Write the values: whole words from the last column to the first, each over what the one behind it spilled."""
    words = np.ndarray(len(space) - WORD_BYTES + 1, ">u8", space, 0, (1,))
    for cell in reversed(cells):
        if isinstance(cell.sizes, np.ndarray):
            has = np.flatnonzero(cell.sizes)
            if 2 * len(has) < len(behind):
                words[behind[has] - WORD_BYTES] = cell.words[has]
            else:  # what a value of no size spills is written over as well
                words[behind - WORD_BYTES] = cell.words
        elif cell.sizes:
            words[behind - WORD_BYTES] = cell.words
        behind = behind - cell.sizes


def _row_ids(first: int, count: int) -> Bytes:
    """Return row ids as SQLite writes them; all of them take as many bytes as the last."""
    width = len(_varint(first + count - 1))
    assert width == len(_varint(first)), "ids of one block are of one length"
    ids = np.arange(first, first + count, dtype=np.int64)
    written = np.empty((count, width), np.uint8)
    for place in range(width):
        more = 0x80 if place < width - 1 else 0
        written[:, place] = (ids >> (7 * (width - 1 - place))) & 0x7F | more
    return written


def _page_starts(ends: Ints) -> Ints:
    """Return which row begins each page, and how many rows there are, when a page holds as many as fit."""
    with_pointers = (ends + POINTER * np.arange(1, len(ends) + 1)).tolist()
    firsts, used = [0], 0
    while firsts[-1] < len(with_pointers):
        firsts.append(bisect_right(with_pointers, used + PAGE_BYTES - LEAF_HEAD, firsts[-1]))
        used = with_pointers[firsts[-1] - 1]
    return np.array(firsts)


def _scatter(space: Bytes, places: Ints, rows: Bytes) -> None:
    """Write rows of bytes at their places, a word at a time."""
    width = rows.shape[1]
    words = np.ndarray(len(space) - WORD_BYTES + 1, "<u8", space, 0, (1,))
    for begin in [*range(0, width - WORD_BYTES, WORD_BYTES), width - WORD_BYTES]:
        words[places + begin] = np.ascontiguousarray(rows[:, begin : begin + WORD_BYTES]).view("<u8")[:, 0]


def _interior(children: Ints, first_page: int) -> tuple[bytes, Ints]:
    """Return the pages above ``children`` (a row each: page, last row id), and the same of these pages."""
    pages, level = bytearray(), []
    fitting = (PAGE_BYTES - INTERIOR_HEAD) // (POINTER + CHILD + len(_varint(int(children[-1, 1])))) + 1
    parts = -(-len(children) // fitting)  # of nearly the same size: no page has less than two children
    bounds = [len(children) * part // parts for part in range(parts + 1)]
    for number, (begin, end) in enumerate(pairwise(bounds)):
        left, last = children[begin : end - 1], children[end - 1]
        cells, lengths = _child_cells(left)
        places = PAGE_BYTES - np.cumsum(lengths)
        head = struct.pack(">BHHHBI", INTERIOR, 0, len(left), places[-1], 0, last[0])
        pointers = places.astype(">u2").tobytes()
        pages += head + pointers + bytes(PAGE_BYTES - len(head) - len(pointers) - len(cells)) + cells
        level.append((first_page + number, last[1]))
    return bytes(pages), np.array(level, np.int64)


def _child_cells(children: Ints) -> tuple[bytes, Ints]:
    """Return cells of a page and a row id, the last first, and how long each is, the first first.

    >>> _child_cells(np.array([[2, 5], [3, 300]]))
    (b'\\x00\\x00\\x00\\x03\\x82,\\x00\\x00\\x00\\x02\\x05', array([5, 6]))
    """
    shifts = 7 * np.arange(MAX_ROW_ID.bit_length() // 7 - 1, -1, -1)
    digits = children[:, 1:] >> shifts
    written = np.ones((len(children), CHILD + len(shifts)), np.bool_)
    written[:, CHILD:-1] = digits[:, :-1] > 0
    cells = np.empty(written.shape, np.uint8)
    cells[:, :CHILD] = children[:, :1].astype(">u4").view(np.uint8)
    cells[:, CHILD:] = digits & 0x7F | np.where(shifts, 0x80, 0)
    return cells[::-1][written[::-1]].tobytes(), written.sum(axis=1)


class PageFile:
    """A SQLite file whose tables are filled with pages; ``close`` makes it whole."""

    def __init__(self, path: Path, tables: Mapping[str, str]) -> None:
        """Make the file with ``tables``, by name the statement that creates each."""
        with sqlite3.connect(path) as connection:
            connection.execute(f"PRAGMA page_size = {PAGE_BYTES}")
            for statement in tables.values():
                connection.execute(statement)
            roots = dict(connection.execute("SELECT name, rootpage FROM sqlite_schema WHERE type = 'table'"))
            self.columns = {
                name: [row[1] for row in connection.execute(f"PRAGMA table_info({name})")] for name in tables
            }
        connection.close()
        self.trees = {name: Tree(roots[name]) for name in tables}
        self.path = path
        self.file = path.open("r+b")
        self.pages = self.file.seek(0, 2) // PAGE_BYTES

    def add(self, table: str, first_row: int, columns: Sequence[Column]) -> None:
        """Write rows; ``columns`` are those of the table but its key, which counts up from ``first_row``."""
        count, begin = len(columns[0][0]), 0
        while begin < count:
            # The ids of a block take the same number of bytes.
            end = min(count, (1 << 7 * len(_varint(first_row + begin))) - first_row)
            part = [(v[begin:end], None if missing is None else missing[begin:end]) for v, missing in columns]
            self._append(self.trees[table].add(self.pages + 1, first_row + begin, part).data)
            begin = end

    def _append(self, pages: bytes | memoryview) -> None:
        self.file.write(pages)
        self.pages += len(pages) // PAGE_BYTES

    def close(self) -> None:
        """Write the pages above the leaves and how many pages there are."""
        for tree in self.trees.values():
            if tree.leaves:
                root, between = tree.above(self.pages + 1)
                self._append(between)
                here = self.file.tell()
                self.file.seek((tree.root - 1) * PAGE_BYTES)
                self.file.write(root)
                self.file.seek(here)
        # What wrote the count of pages last must be what changed the file last (offsets 24 and 92), else it is ignored.
        self.file.seek(28)
        self.file.write(struct.pack(">I", self.pages))
        self.file.close()
