"""Parses blocks of a raw page: NumPy finds the cells, Arrow reads their numbers.

Most of a raw page is regular: every cell is quoted, no cell holds a quote or a line end, and nearly all are numbers.
Blocks are ten times faster than lines and give the same values. Cells that are not plain numbers are left to the
caller. `parse` returns None for any other block, which is then read line by line.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from profsvc.formats.columnar.line_blocks import Block, Floats, IrregularBlockError, Letters, require_plain
from profsvc.formats.parsing.numbers import NumberFormat
from profsvc.formats.parsing.timestamps import Flags
from profsvc.tables.on_demand import pa

PIECE_BYTES = 1 << 18
Bounds = npt.NDArray[np.int32]

QUOTE, COMMA, POINT, RETURN, LINE_FEED = b'",.\r\n'
NINE, LETTER = ord("9"), ord("A")
_DIGITS = np.zeros(256, np.bool_)
_DIGITS[ord("0") : NINE + 1] = True
# Cells of these characters are read alike by Arrow and `Numbers`; Arrow accepts more exponents, so they are excluded.
_PLAIN_NUMBER_CHARS = _DIGITS.copy()
_PLAIN_NUMBER_CHARS[[POINT, *b"+-"]] = True
# Eight bits with zeros between them.
_SPREAD = np.array([sum((byte >> bit & 1) << 2 * bit for bit in range(8)) for byte in range(256)], "<u2")
_SEPARATORS = np.zeros(256, np.bool_)
_SEPARATORS[[QUOTE, COMMA, RETURN, LINE_FEED]] = True


@dataclass(frozen=True)
class ColumnPlan:
    """How to read blocks of rows: the width, the identity and metric columns, and the number format."""

    width: int
    identity: Sequence[int]
    places: Sequence[int]
    number_format: NumberFormat


class ParsedRows(NamedTuple):
    """The identities of the launches of a block by column, and their metric cells.

    ``odd`` marks cells that are not plain numbers. ``values`` is NaN for odd and for empty cells.
    """

    rows: int
    identity: list[list[str]]
    letters: Letters
    bounds: Bounds
    values: Floats
    odd: Flags


def parse(block: Block, plan: ColumnPlan) -> ParsedRows | None:
    """Return the rows of a block of complete lines; None if a row is irregular."""
    try:
        return _parse_cells(np.frombuffer(block, np.uint8), block, plan)
    except IrregularBlockError:
        return None


def _parse_cells(letters: Letters, block: Block, plan: ColumnPlan) -> ParsedRows:
    require_plain(len(letters) > 0 and letters[-1] == LINE_FEED)
    seen = _find_cells(letters)
    offsets = seen.offsets
    _check_signs(letters, seen, plan.width)
    bounds = offsets[:-1].reshape(-1, plan.width, 2)
    identity = _identity(block, bounds, plan.identity)
    require_plain(all(text.isascii() and text.isdigit() for text in identity[0]))
    known = bounds[:, :, 1] > bounds[:, :, 0]
    known[:, plan.identity] = False
    names = np.frombuffer("".join(chain.from_iterable(identity)).encode(), np.uint8)
    commas = seen.commas - seen.commas_between > int(np.count_nonzero(names == COMMA))
    words = seen.words > int(np.count_nonzero(names >= LETTER))
    # Metric columns are nearly always adjacent; a slice avoids a copy.
    first, last = plan.places[0], plan.places[-1]
    chosen = slice(first, last + 1) if last - first + 1 == len(plan.places) else plan.places
    values, odd = _values(letters, offsets, known, plan.number_format, commas, words)
    return ParsedRows(len(bounds), identity, letters, bounds[:, chosen], values[:, chosen], odd[:, chosen])


class _CellBounds(NamedTuple):
    """The bounds of the cells of a block, then its end, and the counts of its characters.

    ``commas_between`` counts commas after a closing quote, ``words`` the letters, which plain numbers do not contain.
    """

    offsets: Bounds
    commas_between: int
    commas: int
    line_feeds: int
    words: int


def _find_cells(letters: Letters) -> _CellBounds:
    """Return the bounds and counts, computed in pieces that fit the processor cache."""
    found: list[Bounds] = []
    between = commas = line_feeds = words = count = 0
    for begin in range(0, len(letters), PIECE_BYTES):
        piece = letters[begin : begin + PIECE_BYTES]
        places = np.flatnonzero(piece == QUOTE)
        # Every second quote opens a cell.
        ends = places[1 - count % 2 :: 2]
        between += int(np.count_nonzero(letters[begin + 1 :][ends] == COMMA))
        count += len(places)
        found.append(places.astype(np.int32) + np.int32(begin))
        commas += int(np.count_nonzero(piece == COMMA))
        line_feeds += int(np.count_nonzero(piece == LINE_FEED))
        words += int(np.count_nonzero(piece >= LETTER))
    offsets = np.concatenate((*found, [len(letters)]), dtype=np.int32)
    offsets[:-1:2] += 1
    return _CellBounds(offsets, between, commas, line_feeds, words)


def _check_signs(letters: Letters, seen: _CellBounds, width: int) -> None:
    """Require that every cell is quoted and only the right separator lies between two cells."""
    offsets = seen.offsets
    require_plain(len(offsets) > 1 and len(offsets) % (2 * width) == 1)
    line_end = 2 if letters[-2:-1] == RETURN else 1
    ends = offsets[1:-1:2]
    require_plain(offsets[0] == 1 and int(ends[-1]) + 1 + line_end == len(letters))
    # Two quotes and a comma from cell to cell; two quotes and the end of the line from row to row.
    gaps, lasts = offsets[2:-1:2] - ends[:-1], ends[width - 1 :: width]
    require_plain(np.count_nonzero(gaps == 3) == len(gaps) - (line_end == 2) * (len(lasts) - 1))
    require_plain(line_end == 1 or bool((gaps[width - 1 :: width] == 4).all() and (letters[lasts + 1] == RETURN).all()))
    require_plain(seen.commas_between == len(ends) - len(lasts) and seen.line_feeds == len(lasts))
    require_plain(bool((letters[lasts + line_end] == LINE_FEED).all()))


def _identity(block: Block, bounds: Bounds, places: Sequence[int]) -> list[list[str]]:
    """Return the texts of the columns at ``places``, which are nearly always close together."""
    first, last = min(places), max(places)
    spans = zip(bounds[:, first, 0].tolist(), bounds[:, last, 1].tolist(), strict=True)
    columns = list(zip(*(str(block[begin:end], "utf-8").split('","') for begin, end in spans), strict=True))
    return [list(columns[place - first]) for place in places]


def _values(
    letters: Letters, offsets: Bounds, known: Flags, number_format: NumberFormat, commas: bool, words: bool
) -> tuple[Floats, Flags]:
    """Return the numbers of the known cells, and which are odd; ``commas`` and ``words`` say what cells contain."""
    odd = np.zeros(known.shape, np.bool_)
    if commas:
        inside = letters == COMMA
        inside[offsets[1:-1:2] + 1] = False
        if number_format == NumberFormat(".", ","):
            _mark_cells(odd, offsets, _misplaced_commas(letters, np.flatnonzero(inside)))
            letters, offsets = _without_letters(letters, offsets, inside)
        else:
            _mark_cells(odd, offsets, np.flatnonzero(inside))
    try:
        # Arrow accepts more exponents than `Numbers`.
        require_plain(not words)
        return _floats(letters, offsets, known & ~odd), odd & known
    except (pa.ArrowInvalid, IrregularBlockError):
        _mark_cells(odd, offsets, np.flatnonzero(~(_PLAIN_NUMBER_CHARS | _SEPARATORS)[letters]))
    try:
        return _floats(letters, offsets, known & ~odd), odd & known
    except pa.ArrowInvalid:
        raise IrregularBlockError from None


def _mark_cells(cells: Flags, offsets: Bounds, places: npt.NDArray[np.int64]) -> None:
    """Mark the cells that contain the bytes at ``places``."""
    if len(places):
        # The first letter of a word is enough.
        firsts = places[np.flatnonzero(np.diff(places, prepend=-2) > 1)]
        found = np.searchsorted(offsets, firsts, "right") - 1
        cells.reshape(-1)[found[found % 2 == 0] // 2] = True


def _misplaced_commas(letters: Letters, commas: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Return the commas that are not thousands separators (one to three digits before, three after)."""
    digit, stop = _DIGITS[letters], _SEPARATORS[letters]
    # Quotes surround a cell, so both sides have bytes, but perhaps fewer than four.
    before = [np.maximum(commas - back, 0) for back in (1, 2, 3, 4)]
    behind = [np.minimum(commas + on, len(letters) - 1) for on in (1, 2, 3, 4)]
    one, two, three = (digit[place] for place in before[:3])
    well = one & (stop[before[1]] | (two & (stop[before[2]] | (three & stop[before[3]]))))
    well &= digit[behind[0]] & digit[behind[1]] & digit[behind[2]] & ~digit[behind[3]]
    return commas[~well]


def _without_letters(letters: Letters, offsets: Bounds, removed: Flags) -> tuple[Letters, Bounds]:
    """Return the bytes that are not removed, and the new bounds of the cells."""
    gone = np.cumsum(removed, dtype=np.int32)
    return letters[~removed], offsets - gone[offsets - 1]


def _floats(letters: Letters, offsets: Bounds, wanted: Flags) -> Floats:
    """Return the numbers of the wanted cells, else NaN."""
    # Arrow texts have no gaps: every second text is what lies between two cells, marked as null.
    bits = pa.py_buffer(_SPREAD[np.packbits(wanted, bitorder="little")])
    texts = pa.StringArray.from_buffers(2 * wanted.size, pa.py_buffer(offsets), pa.py_buffer(letters), bits)
    read = pa.compute.cast(texts, pa.float64(), memory_pool=pa.system_memory_pool())
    values = np.frombuffer(read.buffers()[1], np.float64)[: 2 * wanted.size : 2].reshape(wanted.shape)
    found = np.where(wanted, values, np.nan)
    require_plain(np.count_nonzero(np.isfinite(found)) == np.count_nonzero(wanted))
    return found
