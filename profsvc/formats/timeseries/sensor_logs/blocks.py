"""Blocks of rows of a sensor log, parsed column-wise by the compiled splitter where it is there, else by Arrow.

A block is parsed only if each row has all cells and a timestamp of one layout; other blocks are parsed line by line.
Cells that are not plain numbers keep their texts, and are parsed as in lines.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from profsvc.formats.columnar.categorical import BlockLines, CategoryColumn, RawCells
from profsvc.formats.columnar.line_blocks import (
    WORD_BYTES,
    Block,
    IrregularBlockError,
    letters_of,
    require_plain,
    trailing_numbers,
    words_before,
)
from profsvc.formats.parsing.timestamps import LOCAL, Int64s, parse_timestamp, parse_timestamp_matrix
from profsvc.formats.splitter import rows as splitter
from profsvc.formats.splitter.rows import Kind
from profsvc.formats.timeseries.columns import TRAILING, Column, si_scale
from profsvc.tables.on_demand import pa

Floats = npt.NDArray[np.float64]

MAX_DIGITS = 15
_NUMBERS = (splitter.PLAIN, splitter.INTEGER)
POWERS = 10 ** np.arange(WORD_BYTES + 1)


@dataclass
class LogBlock:
    """The rows of a block: their number, timestamps, and cells column by column."""

    rows: int
    ns: Int64s
    columns: list[CategoryColumn]


def parse(block: Block, columns: Sequence[Column]) -> LogBlock | None:
    """Parse a block of whole lines with cells separated by commas; None if a row is not plain."""
    ways = [_split_part, _arrow_part] if splitter.is_available() else [_arrow_part]
    data = bytes(block)
    for way in ways:
        try:
            return way(data, columns)
        except (pa.ArrowInvalid, IrregularBlockError):
            continue
    return None


def _split_part(block: bytes, columns: Sequence[Column]) -> LogBlock:
    """Parse a block with the compiled splitter; a column with a cell that is not a plain number is read as texts."""
    times = [place for place, column in enumerate(columns) if column.role == "time"]
    require_plain(len(times) == 1 and b'"' not in block)
    first = block[: block.find(b"\n")].decode("utf-8", "replace").rstrip("\r").split(",")
    require_plain(len(first) == len(columns))
    kinds = [_kind(column, cell) for column, cell in zip(columns, first, strict=True)]
    while True:
        found = splitter.split(block, kinds, blanks=True)
        odd = [place for place, kind in enumerate(kinds) if kind.kind in _NUMBERS
               and (found.stopped == place or found.cells[place].missing.any())]  # fmt: skip
        if not odd:
            break
        for place in odd:
            kinds[place] = Kind(splitter.TEXT)
    require_plain(0 < found.rows == found.lines)
    clock, lines = found.cells[times[0]], BlockLines(block)
    dates = [parse_timestamp(f"{date} 00:00:00") if date else None for date in clock.texts]
    days = np.array([stamp[1] for stamp in dates if stamp is not None and stamp[0] == LOCAL], np.int64)
    require_plain(len(days) == len(dates))
    cells = []
    for place, (column, kind, own) in enumerate(zip(columns, kinds, found.cells, strict=True)):
        raw = RawCells(lines, place, ",", found.rows)
        if kind.kind in _NUMBERS:
            cells.append(CategoryColumn(raw, _scaled(own.values.astype(np.float64, copy=False), column)))
        else:
            require_plain(column.role != TRAILING or own.texts == [""])
            cells.append(CategoryColumn(raw, None, (own.extra if place == times[0] else own.values, own.texts)))
    return LogBlock(found.rows, days[clock.extra] + clock.values, cells)


def _kind(column: Column, first: str) -> Kind:
    """Return how a column is read whose first cell is given."""
    if column.role == "time":
        return Kind(splitter.CLOCK)
    known = si_scale(column.token) if column.token else (1.0, column.unit)
    if column.role not in ("value", "open") or known is None or known[1] != column.unit:
        return Kind(splitter.TEXT)
    suffix = unit if column.token and first.endswith(unit := f" {column.token}") else ""
    return Kind(splitter.INTEGER, least=0.0, suffix=suffix) if column.whole else Kind(splitter.PLAIN, suffix=suffix)


def _scaled(values: Floats, column: Column) -> Floats:
    """Return numbers as printed in the unit of their column."""
    factor = (si_scale(column.token) or (1.0, ""))[0] if column.token else 1.0
    return values / round(1 / factor) if factor < 1 else values * factor if factor > 1 else values


def _arrow_part(block: bytes, columns: Sequence[Column]) -> LogBlock:
    times = [place for place, column in enumerate(columns) if column.role == "time"]
    require_plain(len(times) == 1 and block.endswith(b"\n"))
    require_plain(b"\r" not in block or block.count(b"\r") == block.count(b"\r\n"))
    names = [str(place) for place in range(len(columns))]
    table = pa.csv.read_csv(
        pa.py_buffer(block),
        pa.csv.ReadOptions(use_threads=False, block_size=len(block) + 1, column_names=names),
        pa.csv.ParseOptions(quote_char=False, ignore_empty_lines=False),
        pa.csv.ConvertOptions(column_types=dict.fromkeys(names, pa.string()), null_values=[], check_utf8=False),
        pa.system_memory_pool(),
    )
    batch = table.to_batches()[0]
    ns = _stamps(batch.column(times[0]))
    cells = [_coded(batch.column(place), column) for place, column in enumerate(columns)]
    return LogBlock(batch.num_rows, ns, cells)


def _stamps(texts: pa.StringArray) -> Int64s:
    letters, starts, ends = letters_of(texts)
    width = int(ends[0] - starts[0])
    require_plain(bool((ends - starts == width).all()) and width > 0)
    matrix = letters[: width * len(texts)].reshape(len(texts), width)
    while matrix.shape[1] and (matrix[:, 0] == ord(" ")).all():
        matrix = matrix[:, 1:]
    read = parse_timestamp_matrix(matrix)
    require_plain(read is not None and bool(read[1].all()))
    assert read is not None
    return read[0]


def _coded(texts: pa.StringArray, column: Column) -> CategoryColumn:
    if column.role in ("value", "open"):
        try:
            return CategoryColumn(texts, _plain(texts, column))
        except IrregularBlockError:
            pass
    coded = CategoryColumn(texts)
    require_plain(column.role != TRAILING or not any(text.strip() for text in coded.texts))
    # The texts are encoded here, in the worker thread, and not where they are used.
    require_plain(column.role == "time" or len(coded.texts) > 0)
    return coded


def _plain(texts: pa.StringArray, column: Column) -> Floats:
    """Return the numbers of a column of plain numbers, all with the unit of the column or all without."""
    found = si_scale(column.token) if column.token else (1.0, column.unit)
    require_plain(found is not None and found[1] == column.unit)
    assert found is not None
    letters, starts, ends = letters_of(texts)
    require_plain(bool((ends > starts).all()))
    led = letters[starts] == ord(" ")
    require_plain(bool(led.all() or not led.any()))
    starts = starts + led
    unit = f" {column.token}".encode()
    if column.token and texts[0].as_py().encode().endswith(unit):
        require_plain(bool((ends - starts > len(unit)).all()))
        for back, letter in enumerate(reversed(unit), 1):
            require_plain(bool((letters[ends - back] == letter).all()))
        ends = ends - len(unit)
    return _scaled(_numbers(letters, starts, ends, column.whole), column)


def _numbers(letters: npt.NDArray[np.uint8], starts: Int64s, ends: Int64s, whole: bool = False) -> Floats:
    """Parse the number in each range of ``letters``; all must have as many decimals as the first.

    >>> _numbers(np.frombuffer(b" 1.5 W 20.1 W", np.uint8), np.array([1, 7]), np.array([4, 11]))
    array([ 1.5, 20.1])
    """
    first, point, decimals = letters[starts[0] : ends[0]].tobytes().partition(b".")
    require_plain(
        0 < len(first) <= WORD_BYTES
        and len(decimals) <= WORD_BYTES
        and bool(point) == bool(decimals)
        and not (point and whole)
    )
    fractions = None
    if decimals:
        require_plain(bool((ends - starts > len(decimals) + 1).all()))
        fractions = _digits(letters, ends, np.full(len(ends), len(decimals)))
        ends = ends - len(decimals) - 1
        require_plain(bool((letters[ends] == ord(".")).all()))
    values = _digits(letters, ends, ends - starts)
    if fractions is None:
        return values.astype(np.float64)
    # A quotient of two exact doubles is rounded once, like the parsed text of the number.
    require_plain(bool((ends - starts).max() + len(decimals) <= MAX_DIGITS))
    power = 10 ** len(decimals)
    read: Floats = (values * power + fractions) / power
    return read


def _digits(letters: npt.NDArray[np.uint8], ends: Int64s, lengths: Int64s) -> Int64s:
    """Return the whole numbers of ``lengths`` digits that end at ``ends``."""
    require_plain(bool(((lengths > 0) & (lengths <= WORD_BYTES)).all()))
    values, digits = trailing_numbers(words_before(letters, ends))
    longer = digits > lengths
    if longer.any():
        values = np.where(longer, values % POWERS[lengths], values)
    require_plain(bool((digits >= lengths).all()))
    return values
