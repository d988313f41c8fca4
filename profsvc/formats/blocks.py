"""Blocks of whole lines at once: what readers of long regular tables share.

A reader tries to read a block column by column. Where that fails it halves the block, down to a few lines that it
reads one by one, so that an odd line costs no more than its surroundings.
"""

import sys
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute

from profsvc.formats.clock import Int64s

BLOCK = 3 << 20
SMALL_BLOCK = 1 << 16
THREADS = 2
# How much more is tried after each success, and how often in a row the lines that are left to be read double.
FASTER, MOST_LEFT = 4, 6
WORD = 8
_HIGH_BITS = 0x8080808080808080
Letters = npt.NDArray[np.uint8]
T = TypeVar("T")
Block = bytes | memoryview


class NotPlainError(ValueError):
    """Something in the block needs a closer look."""


def must(plain: bool) -> None:
    """Raise `NotPlainError` unless the block is as it has to be to be read at once."""
    if not plain:
        raise NotPlainError


def lines_of(block: Block) -> list[str]:
    """Return the lines of a block with their ends; only a line feed ends a line.

    >>> lines_of(b"a\\x0c\\nb")
    ['a\\x0c\\n', 'b']
    """
    pieces = bytes(block).decode("utf-8", "replace").split("\n")
    last = pieces.pop()
    return [piece + "\n" for piece in pieces] + ([last] if last else [])


class Ahead(NamedTuple):
    """A block, how it was to be read, and what came of that; nothing if it was not tried."""

    block: Block
    plan: Any
    part: Any


def ahead(
    blocks: Iterator[Block], plan_of: Callable[[], Any], parse: Callable[[Block, Any], T | None]
) -> Iterator[Ahead]:
    """Yield the blocks in their order; those that follow are parsed meanwhile, as if the table went on.

    The plan of a block is made before the blocks ahead of it are taken, so it may not hold any more. A block without a
    plan is not held back: what stands in it may give the next block one.
    """

    def result(block: Block, plan: Any, future: Future[T | None] | None) -> Ahead:
        return Ahead(block, plan, None if future is None else future.result())

    with ThreadPoolExecutor(THREADS) as pool:
        waiting: deque[tuple[Block, Any, Future[T | None] | None]] = deque()
        for block in blocks:
            plan = plan_of()
            waiting.append((block, plan, None if plan is None else pool.submit(parse, block, plan)))
            while len(waiting) > (THREADS if plan is not None else 0):
                yield result(*waiting.popleft())
        while waiting:
            yield result(*waiting.popleft())


def cut(block: bytes, halve: bool, small: int) -> int:
    """Return where to cut a block behind a line: in its middle, or behind a few lines; its end if it is small."""
    return block.find(b"\n", max(len(block) // 2 if halve else 0, small)) + 1 or len(block)


def apart(
    blocks: Iterator[Block], plan_of: Callable[[], Any], parse: Callable[[Block, Any], T | None], small: int
) -> Iterator[T | list[str]]:
    """Yield what blocks hold, in order: parts that were read at once, and the lines between them, a few at a time.

    The lines must be taken before the next of them are asked for, as what stands in them may change the plan. ``small``
    is about how many bytes of lines are read one by one where a row is not plain.
    """
    for block, plan, part in ahead(blocks, plan_of, parse):
        tried = plan is not None and plan == plan_of()
        if part is not None and tried:
            yield part
        else:
            yield from _closer(bytes(block), plan_of, parse, small, tried)
        del block, part  # they would stay until the next are there


def _closer(
    block: bytes, plan_of: Callable[[], Any], parse: Callable[[Block, Any], T | None], small: int, tried: bool
) -> Iterator[T | list[str]]:
    """Read what is plain of a block at once, and the rest of it line by line; ``tried`` if all of it is not."""
    while block:
        plan = plan_of()
        if plan is not None and not tried and (part := parse(block, plan)) is not None:
            yield part
            return
        tried = False
        end = cut(block, halve=plan is not None, small=small)
        if plan is not None and end < len(block):
            yield from _closer(block[:end], plan_of, parse, small, tried=False)
        else:
            yield lines_of(block[:end])
        block = block[end:]


def at_once(blocks: Iterator[Block], take: Callable[[bytes], int], small: int) -> Iterator[int | list[str]]:
    """Yield what blocks hold, in order: how many rows ``take`` has taken at once, and the lines between them.

    ``take`` is shown lines when all that stands before them is read, and returns 0 to leave them. ``small`` is about
    how many bytes of lines are left to be read one by one; more where it has left those before, too.
    """
    size, left = sys.maxsize, 0
    for whole in blocks:
        block, place = bytes(whole), 0
        while place < len(block):
            piece = block[place : block.find(b"\n", place + size) + 1 or len(block)]
            if rows := take(piece):
                yield rows
                size, left = min(size * FASTER, sys.maxsize), 0
            elif size > small and len(piece) > small:
                size = small
                continue
            else:
                piece = block[place : block.find(b"\n", place + (small << left)) + 1 or len(block)]
                yield lines_of(piece)
                size, left = small, min(left + 1, MOST_LEFT)
            place += len(piece)


def letters_of(texts: pa.StringArray) -> tuple[Letters, Int64s, Int64s]:
    """Return the bytes of all texts, and where each begins and ends; there must be a byte at all."""
    _, offsets, data = texts.buffers()
    must(data is not None and texts.offset == 0)
    places = np.frombuffer(offsets, np.int32)[: len(texts) + 1].astype(np.int64)
    return np.frombuffer(data, np.uint8), places[:-1], places[1:]


def words_before(letters: Letters, ends: Int64s) -> npt.NDArray[np.uint64]:
    """Return the eight letters before each end as one word; what would lie before the first letter is NUL."""
    padded = np.concatenate((np.zeros(WORD, np.uint8), letters))
    found: npt.NDArray[np.uint64] = np.ndarray(len(padded) - WORD + 1, "<u8", padded, 0, (1,))[ends]
    return found


def trailing_numbers(words: npt.NDArray[np.uint64]) -> tuple[Int64s, Int64s]:
    """Return the number that the last digits of each word of eight letters are, and how many digits it has.

    >>> words = np.frombuffer(b"saxpy [7f [12345", "<u8")
    >>> trailing_numbers(words)
    (array([    7, 12345]), array([1, 5]))
    """
    values = words ^ np.uint64(0x3030303030303030)
    odd = (((values & np.uint64(0x7F7F7F7F7F7F7F7F)) + np.uint64(0x7676767676767676)) | values) & np.uint64(_HIGH_BITS)
    # The highest byte that is no digit: its bit is the exponent, and words of such bits do not round up to the next.
    digits = WORD - np.frexp(odd.astype(np.float64))[1].astype(np.int64) // 8
    values &= ~np.uint64(0) << (8 * np.minimum(WORD - digits, 7)).astype(np.uint64)
    # Eight digits at once: pairs, then fours, then all (the lowest byte is the most significant digit).
    values = values * np.uint64(10) + (values >> np.uint64(8))
    low, high = values & np.uint64(0xFF000000FF), (values >> np.uint64(16)) & np.uint64(0xFF000000FF)
    values = (low * np.uint64(0x000F424000000064) + high * np.uint64(0x0000271000000001)) >> np.uint64(32)
    return np.where(digits > 0, values, 0).astype(np.int64), digits


def blank(letters: Letters, starts: Int64s, ends: Int64s, digits: Int64s) -> None:
    """Write NUL over the last digits before each end, of texts that begin at ``starts``; up to eight each.

    >>> letters = np.frombuffer(b"saxpy [12]", np.uint8).copy()
    >>> blank(letters, np.array([0]), np.array([9]), np.array([2]))
    >>> letters.tobytes()
    b'saxpy [\\x00\\x00]'
    """
    if ((ends - starts) >= WORD).all():
        words = np.ndarray(len(letters) - WORD + 1, "<u8", letters, 0, (1,))
        kept = (np.uint64(1) << (8 * np.minimum(WORD - digits, WORD - 1)).astype(np.uint64)) - np.uint64(1)
        words[ends - WORD] &= np.where(digits < WORD, kept, np.uint64(0))
        return
    # The words of short texts would overlap.
    for back in range(1, int(digits.max()) + 1):
        letters[(ends - back)[back <= digits]] = 0
