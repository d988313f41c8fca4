"""Blocks of rows of a raw page at once: numpy finds the cells, Arrow reads their numbers.

Most of a raw page is plain: every cell stands in quotes, none holds a quote or a line end, and nearly all are numbers.
Such a block is read here ten times faster than line by line, and to the same values. Cells that are no plain numbers
are left to the caller. For a block that holds anything else `parse` returns None, and the lines go one by one.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute

from profsvc.formats.blocks import Block, Letters, NotPlainError, must
from profsvc.formats.numbers import NumberFormat

PIECE = 1 << 18
Floats = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]
Bounds = npt.NDArray[np.int32]

QUOTE, COMMA, POINT, RETURN, LINE_FEED = b'",.\r\n'
NINE, LETTER = ord("9"), ord("A")
_DIGITS = np.zeros(256, np.bool_)
_DIGITS[ord("0") : NINE + 1] = True
# What may stand in a cell that Arrow reads as `Numbers` does; it takes more exponents, so none may.
_NUMBERS = _DIGITS.copy()
_NUMBERS[[POINT, *b"+-"]] = True
# Eight bits with zeros between them.
_SPREAD = np.array([sum((byte >> bit & 1) << 2 * bit for bit in range(8)) for byte in range(256)], "<u2")
_BETWEEN = np.zeros(256, np.bool_)
_BETWEEN[[QUOTE, COMMA, RETURN, LINE_FEED]] = True


@dataclass(frozen=True)
class Plan:
    """How to read blocks of rows: the cells of a row, which of them are metrics, and the signs of numbers."""

    width: int
    identity: Sequence[int]
    places: Sequence[int]
    number_format: NumberFormat


class Part(NamedTuple):
    """What a block holds: by column the identities of its launches, and its cells of metrics.

    ``values`` is NaN where a cell is empty or in ``odd``, which are those that hold something else than a plain number.
    """

    rows: int
    identity: list[list[str]]
    letters: Letters
    bounds: Bounds
    values: Floats
    odd: Flags


def parse(block: Block, plan: Plan) -> Part | None:
    """Read a block of whole lines; None if any of them is not a plain row."""
    try:
        return _part(np.frombuffer(block, np.uint8), block, plan)
    except NotPlainError:
        return None


def _part(letters: Letters, block: Block, plan: Plan) -> Part:
    must(len(letters) > 0 and letters[-1] == LINE_FEED)
    seen = _seen(letters)
    offsets = seen.offsets
    _check_signs(letters, seen, plan.width)
    bounds = offsets[:-1].reshape(-1, plan.width, 2)
    identity = _identity(block, bounds, plan.identity)
    must(all(text.isascii() and text.isdigit() for text in identity[0]))
    known = bounds[:, :, 1] > bounds[:, :, 0]
    known[:, plan.identity] = False
    names = np.frombuffer("".join(chain.from_iterable(identity)).encode(), np.uint8)
    commas = seen.commas - seen.commas_between > int(np.count_nonzero(names == COMMA))
    words = seen.words > int(np.count_nonzero(names >= LETTER))
    # The places of metrics follow each other nearly always: then this is no copy.
    first, last = plan.places[0], plan.places[-1]
    chosen = slice(first, last + 1) if last - first + 1 == len(plan.places) else plan.places
    values, odd = _values(letters, offsets, known, plan.number_format, commas, words)
    return Part(len(bounds), identity, letters, bounds[:, chosen], values[:, chosen], odd[:, chosen])


class _Seen(NamedTuple):
    """Where the cells of a block begin and end, and last the end of the block; and how many signs of each kind it has.

    ``commas_between`` are those behind a quote that ends a cell, ``words`` the letters that plain numbers do not have.
    """

    offsets: Bounds
    commas_between: int
    commas: int
    line_feeds: int
    words: int


def _seen(letters: Letters) -> _Seen:
    """Look at the letters piece by piece, as a piece and what is made of it stay in the caches of the processor."""
    found: list[Bounds] = []
    between = commas = line_feeds = words = count = 0
    for begin in range(0, len(letters), PIECE):
        piece = letters[begin : begin + PIECE]
        places = np.flatnonzero(piece == QUOTE)
        # Every other quote begins a cell.
        ends = places[1 - count % 2 :: 2]
        between += int(np.count_nonzero(letters[begin + 1 :][ends] == COMMA))
        count += len(places)
        found.append(places.astype(np.int32) + np.int32(begin))
        commas += int(np.count_nonzero(piece == COMMA))
        line_feeds += int(np.count_nonzero(piece == LINE_FEED))
        words += int(np.count_nonzero(piece >= LETTER))
    offsets = np.concatenate((*found, [len(letters)]), dtype=np.int32)
    offsets[:-1:2] += 1
    return _Seen(offsets, between, commas, line_feeds, words)


def _check_signs(letters: Letters, seen: _Seen, width: int) -> None:
    """Make sure that every cell stands in quotes, and that nothing but the right sign is between two cells."""
    offsets = seen.offsets
    must(len(offsets) > 1 and len(offsets) % (2 * width) == 1)
    line_end = 2 if letters[-2:-1] == RETURN else 1
    ends = offsets[1:-1:2]
    must(offsets[0] == 1 and int(ends[-1]) + 1 + line_end == len(letters))
    # Two quotes and a comma from cell to cell; two quotes and the end of the line from row to row.
    gaps, lasts = offsets[2:-1:2] - ends[:-1], ends[width - 1 :: width]
    must(np.count_nonzero(gaps == 3) == len(gaps) - (line_end == 2) * (len(lasts) - 1))
    must(line_end == 1 or bool((gaps[width - 1 :: width] == 4).all() and (letters[lasts + 1] == RETURN).all()))
    must(seen.commas_between == len(ends) - len(lasts) and seen.line_feeds == len(lasts))
    must(bool((letters[lasts + line_end] == LINE_FEED).all()))


def _identity(block: Block, bounds: Bounds, places: Sequence[int]) -> list[list[str]]:
    """Return the texts of the columns at ``places``, which stand near each other nearly always."""
    first, last = min(places), max(places)
    spans = zip(bounds[:, first, 0].tolist(), bounds[:, last, 1].tolist(), strict=True)
    columns = list(zip(*(str(block[begin:end], "utf-8").split('","') for begin, end in spans), strict=True))
    return [list(columns[place - first]) for place in places]


def _values(
    letters: Letters, offsets: Bounds, known: Flags, number_format: NumberFormat, commas: bool, words: bool
) -> tuple[Floats, Flags]:
    """Return the numbers of the known cells, and which are odd; whether commas, and whether letters, stand in any."""
    odd = np.zeros(known.shape, np.bool_)
    if commas:
        inside = letters == COMMA
        inside[offsets[1:-1:2] + 1] = False
        if number_format == NumberFormat(".", ","):
            _mark(odd, offsets, _misplaced(letters, np.flatnonzero(inside)))
            letters, offsets = _without(letters, offsets, inside)
        else:
            _mark(odd, offsets, np.flatnonzero(inside))
    try:
        # Arrow takes more exponents than `Numbers` does.
        must(not words)
        return _floats(letters, offsets, known & ~odd), odd & known
    except (pa.ArrowInvalid, NotPlainError):
        _mark(odd, offsets, np.flatnonzero(~(_NUMBERS | _BETWEEN)[letters]))
    try:
        return _floats(letters, offsets, known & ~odd), odd & known
    except pa.ArrowInvalid:
        raise NotPlainError from None


def _mark(cells: Flags, offsets: Bounds, places: npt.NDArray[np.int64]) -> None:
    """Mark the cells that hold the letters at ``places``."""
    if len(places):
        # One letter of a word will do.
        firsts = places[np.flatnonzero(np.diff(places, prepend=-2) > 1)]
        found = np.searchsorted(offsets, firsts, "right") - 1
        cells.reshape(-1)[found[found % 2 == 0] // 2] = True


def _misplaced(letters: Letters, commas: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Return those of the commas in cells that do not part thousands: one to three digits before, three behind."""
    digit, stop = _DIGITS[letters], _BETWEEN[letters]
    # A cell lies between quotes, so there are letters on both sides, but perhaps not four.
    before = [np.maximum(commas - back, 0) for back in (1, 2, 3, 4)]
    behind = [np.minimum(commas + on, len(letters) - 1) for on in (1, 2, 3, 4)]
    one, two, three = (digit[place] for place in before[:3])
    well = one & (stop[before[1]] | (two & (stop[before[2]] | (three & stop[before[3]]))))
    well &= digit[behind[0]] & digit[behind[1]] & digit[behind[2]] & ~digit[behind[3]]
    return commas[~well]


def _without(letters: Letters, offsets: Bounds, removed: Flags) -> tuple[Letters, Bounds]:
    """Return the letters that are not removed, and where the cells are then."""
    gone = np.cumsum(removed, dtype=np.int32)
    return letters[~removed], offsets - gone[offsets - 1]


def _floats(letters: Letters, offsets: Bounds, wanted: Flags) -> Floats:
    """Read numbers; NaN where a cell is not wanted."""
    # Texts of Arrow follow each other without gaps: every other one is what lies between two cells, marked as missing.
    bits = pa.py_buffer(_SPREAD[np.packbits(wanted, bitorder="little")])
    texts = pa.StringArray.from_buffers(2 * wanted.size, pa.py_buffer(offsets), pa.py_buffer(letters), bits)
    read = pyarrow.compute.cast(texts, pa.float64(), memory_pool=pa.system_memory_pool())
    values = np.frombuffer(read.buffers()[1], np.float64)[: 2 * wanted.size : 2].reshape(wanted.shape)
    found = np.where(wanted, values, np.nan)
    must(np.count_nonzero(np.isfinite(found)) == np.count_nonzero(wanted))
    return found
