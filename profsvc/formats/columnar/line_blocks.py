"""Blocks of complete lines, for readers of long regular tables.

A reader tries to read a block column by column. If that fails, it halves the block, down to a few lines that it reads
one by one, so an irregular line costs no more than the lines around it.
"""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from functools import partial
from typing import Any, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from profsvc.formats.parsing.timestamps import Int64s
from profsvc.tables.on_demand import pa

BLOCK_BYTES = 3 << 20
SMALL_BLOCK_BYTES = 1 << 16
THREADS = 2
# The growth of a block after each success, and how often in a row the lines read one by one may double.
GROWTH_FACTOR, MAX_DOUBLINGS = 4, 6
WORD_BYTES = 8
_HIGH_BITS = 0x8080808080808080
Letters = npt.NDArray[np.uint8]
Floats = npt.NDArray[np.float64]
Columns = dict[str, Any]
"""The columns of a tidy table by name."""
T = TypeVar("T")
P = TypeVar("P")
Block = bytes | memoryview
B = TypeVar("B", bytes, Block)


class IrregularBlockError(ValueError):
    """A block is irregular and must be read line by line."""


def require_plain(plain: bool) -> None:
    """Raise `IrregularBlockError` unless ``plain``."""
    if not plain:
        raise IrregularBlockError


def lines_of(block: Block) -> list[str]:
    """Return the lines of a block with their ends; only a line feed ends a line.

    >>> lines_of(b"a\\x0c\\nb")
    ['a\\x0c\\n', 'b']
    """
    pieces = bytes(block).decode("utf-8", "replace").split("\n")
    last = pieces.pop()
    return [piece + "\n" for piece in pieces] + ([last] if last else [])


class ParsedBlock(NamedTuple):
    """A block, the plan to read it, and the parsed part; None if it was not parsed."""

    block: Any
    plan: Any
    part: Any


def parse_ahead(
    blocks: Iterator[B], plan_of: Callable[[], Any], parse: Callable[[B, Any], T | None]
) -> Generator[ParsedBlock, None, None]:
    """Yield the blocks in order, while threads read and parse the following blocks as if the table continued.

    The plan of a block is computed before the previous blocks are stored, so it may be outdated. A block without a plan
    is yielded at once, because its lines may give the next block a plan.
    """

    def result(block: B, plan: Any, future: Future[T | None] | None) -> ParsedBlock:
        return ParsedBlock(block, plan, None if future is None else future.result())

    with ThreadPoolExecutor(1) as reader, ThreadPoolExecutor(THREADS) as pool:
        waiting: deque[tuple[B, Any, Future[T | None] | None]] = deque()
        fetch = partial(next, blocks, None)
        coming = reader.submit(fetch)
        while (block := coming.result()) is not None:
            coming = reader.submit(fetch)
            plan = plan_of()
            waiting.append((block, plan, None if plan is None else pool.submit(parse, block, plan)))
            while len(waiting) > (THREADS if plan is not None else 0):
                yield result(*waiting.popleft())
        while waiting:
            yield result(*waiting.popleft())


def split_point(block: bytes, halve: bool, small: int) -> int:
    """Return where to cut a block after a line: in its middle or after a few lines; its end if it is small."""
    return block.find(b"\n", max(len(block) // 2 if halve else 0, small)) + 1 or len(block)


def read_blocks(
    blocks: Iterator[Block],
    plan_of: Callable[[], Any],
    parse: Callable[[Block, Any], P | None],
    take_part: Callable[[P], Generator[T, None, bool]],
    take_lines: Callable[[list[str]], Iterator[T]],
    row_boundary: Callable[[bytes, int], int] | None = None,
    check_each_line: bool = False,
) -> Iterator[T]:
    """Read blocks column by column where they are regular, and line by line elsewhere; yield what both yield.

    ``plan_of`` returns how to read the next rows as a block, None where only line by line is possible. ``take_part``
    returns whether it took the part; a refused part is read in smaller pieces. ``row_boundary`` moves a place at which
    a block is cut to where the next group of rows begins. With ``check_each_line``, blocks are read again from the
    first line that gives a plan, which costs a call of ``plan_of`` for each line before it.
    """

    def pieces(block: bytes, tried: bool) -> Iterator[T]:
        while block:
            plan = plan_of()
            if plan is not None and not tried and (part := parse(block, plan)) is not None:
                if (yield from take_part(part)):
                    return
                del part
            tried = False
            end = split_point(block, halve=plan is not None, small=SMALL_BLOCK_BYTES)
            if row_boundary is not None and plan is not None:
                end = row_boundary(block, end)
            if plan is not None and end < len(block):
                yield from pieces(block[:end], tried=False)
            elif plan is None and check_each_line:
                end = yield from lines_before_plan(block[:end])
            else:
                yield from take_lines(lines_of(block[:end]))
            block = block[end:]

    def lines_before_plan(block: bytes) -> Generator[T, None, int]:
        end = 0
        for line in lines_of(block):
            yield from take_lines([line])
            end = block.find(b"\n", end) + 1 or len(block)
            if plan_of() is not None:
                break
        return end

    # Its threads end here where a line is refused: in the collection of garbage they might wait for each other.
    with closing(parse_ahead(blocks, plan_of, parse)) as ahead:
        for block, plan, part in ahead:
            tried = plan is not None and plan == plan_of()
            taken = tried and part is not None and (yield from take_part(part))
            del part  # otherwise its memory is held until the next block is parsed
            if not taken:
                yield from pieces(bytes(block), tried)
            del block


def read_adaptive_blocks(
    blocks: Iterator[Block], take: Callable[[bytes], int], small: int
) -> Iterator[int | list[str]]:
    """Yield, in order, the number of rows that ``take`` stored as a block, and the lines that it left.

    ``take`` gets lines after everything before them was read, and returns 0 to leave them. About ``small`` bytes are
    then left to be read line by line, and more after repeated failures.
    """
    size, left = sys.maxsize, 0
    for whole in blocks:
        block, place = bytes(whole), 0
        while place < len(block):
            piece = block[place : block.find(b"\n", place + size) + 1 or len(block)]
            if rows := take(piece):
                yield rows
                size, left = min(size * GROWTH_FACTOR, sys.maxsize), 0
            elif size > small and len(piece) > small:
                size = small
                continue
            else:
                piece = block[place : block.find(b"\n", place + (small << left)) + 1 or len(block)]
                yield lines_of(piece)
                size, left = small, min(left + 1, MAX_DOUBLINGS)
            place += len(piece)


class _ParsedOnce:
    """Blocks that threads parse ahead, each part of which is used where its plan is still the same."""

    def __init__(
        self, blocks: Iterator[Block], plan_of: Callable[[], Any], parse: Callable[[bytes, Any], Any | None]
    ) -> None:
        self._parse, self._blocks = parse, parse_ahead(map(bytes, blocks), plan_of, parse)
        self._last = ParsedBlock(b"", None, None)

    def __iter__(self) -> Iterator[bytes]:
        with closing(self._blocks):
            for last in self._blocks:
                self._last = last
                yield last.block
                del last

    def part(self, block: bytes, plan: Any) -> Any | None:
        """Return the parsed part of a block or of a piece of it."""
        last, self._last = self._last, ParsedBlock(b"", None, None)  # a part is in memory only while it is used
        return last.part if block is last.block and plan == last.plan else self._parse(block, plan)


def read_numbered(
    blocks: Iterator[Block],
    plan_of: Callable[[], Any],
    parse: Callable[[bytes, Any], P | None],
    take: Callable[[bytes, P, int], int],
    feed: Callable[[int, str], T],
    small: int,
) -> Iterator[int | T]:
    """Yield the number of rows that ``take`` stored of a block, or what ``feed`` makes of each line that it left.

    Both get the number of their first line, and ``take`` gets what ``parse`` made of the block. ``plan_of`` returns how
    the next block is parsed, None if only line by line.
    """
    number, ahead = 1, _ParsedOnce(blocks, plan_of, parse)

    def taken(block: bytes) -> int:
        plan = plan_of()
        part = None if plan is None else ahead.part(block, plan)
        return 0 if part is None else take(block, part, number)

    for found in read_adaptive_blocks(iter(ahead), taken, small):
        if isinstance(found, int):
            yield found
            number += found
            continue
        for line in found:
            yield feed(number, line)
            number += 1


def letters_of(texts: pa.StringArray) -> tuple[Letters, Int64s, Int64s]:
    """Return the bytes of all texts, and the begin and the end of each; there must be at least one byte."""
    _, offsets, data = texts.buffers()
    require_plain(data is not None and texts.offset == 0)
    places = np.frombuffer(offsets, np.int32)[: len(texts) + 1].astype(np.int64)
    return np.frombuffer(data, np.uint8), places[:-1], places[1:]


def words_before(letters: Letters, ends: Int64s) -> npt.NDArray[np.uint64]:
    """Return the eight bytes before each end as one word, padded with NUL before the first byte."""
    padded = np.concatenate((np.zeros(WORD_BYTES, np.uint8), letters))
    found: npt.NDArray[np.uint64] = np.ndarray(len(padded) - WORD_BYTES + 1, "<u8", padded, 0, (1,))[ends]
    return found


def trailing_numbers(words: npt.NDArray[np.uint64]) -> tuple[Int64s, Int64s]:
    """Return the number at the end of each word of eight bytes, and its digit count.

    >>> words = np.frombuffer(b"saxpy [7f [12345", "<u8")
    >>> trailing_numbers(words)
    (array([    7, 12345]), array([1, 5]))
    """
    values = words ^ np.uint64(0x3030303030303030)
    odd = (((values & np.uint64(0x7F7F7F7F7F7F7F7F)) + np.uint64(0x7676767676767676)) | values) & np.uint64(_HIGH_BITS)
    # The highest non-digit byte: its bit is the float exponent, and such words do not round up.
    digits = WORD_BYTES - np.frexp(odd.astype(np.float64))[1].astype(np.int64) // 8
    values &= ~np.uint64(0) << (8 * np.minimum(WORD_BYTES - digits, 7)).astype(np.uint64)
    # Eight digits at once: pairs, then fours, then all (the lowest byte is the most significant digit).
    values = values * np.uint64(10) + (values >> np.uint64(8))
    low, high = values & np.uint64(0xFF000000FF), (values >> np.uint64(16)) & np.uint64(0xFF000000FF)
    values = (low * np.uint64(0x000F424000000064) + high * np.uint64(0x0000271000000001)) >> np.uint64(32)
    return np.where(digits > 0, values, 0).astype(np.int64), digits


def erase_digits(letters: Letters, starts: Int64s, ends: Int64s, digits: Int64s) -> None:
    """Overwrite the last ``digits`` bytes before each end with NUL, up to eight per text.

    >>> letters = np.frombuffer(b"saxpy [12]", np.uint8).copy()
    >>> erase_digits(letters, np.array([0]), np.array([9]), np.array([2]))
    >>> letters.tobytes()
    b'saxpy [\\x00\\x00]'
    """
    if ((ends - starts) >= WORD_BYTES).all():
        words = np.ndarray(len(letters) - WORD_BYTES + 1, "<u8", letters, 0, (1,))
        kept = (np.uint64(1) << (8 * np.minimum(WORD_BYTES - digits, WORD_BYTES - 1)).astype(np.uint64)) - np.uint64(1)
        words[ends - WORD_BYTES] &= np.where(digits < WORD_BYTES, kept, np.uint64(0))
        return
    # The words of short texts would overlap.
    for back in range(1, int(digits.max()) + 1):
        letters[(ends - back)[back <= digits]] = 0
