"""Blocks of rows of a sensor log, parsed column-wise with Arrow.

A block is parsed only if each row has all cells and a timestamp of one layout; other blocks are parsed line by line.
Cells that are not plain numbers keep their texts, and are parsed as in lines.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.csv

from profsvc.formats.columnar.categorical import CategoryColumn
from profsvc.formats.columnar.line_blocks import (
    WORD_BYTES,
    Block,
    IrregularBlockError,
    letters_of,
    require_plain,
    trailing_numbers,
    words_before,
)
from profsvc.formats.parsing.timestamps import Int64s, parse_timestamp_matrix
from profsvc.formats.timeseries.columns import TRAILING, Column, si_scale

Floats = npt.NDArray[np.float64]

MAX_DIGITS = 15
POWERS = 10 ** np.arange(WORD_BYTES + 1)


@dataclass
class LogBlock:
    """The rows of a block: their number, timestamps, and cells column by column."""

    rows: int
    ns: Int64s
    columns: list[CategoryColumn]


def parse(block: Block, columns: Sequence[Column]) -> LogBlock | None:
    """Parse a block of whole lines with cells separated by commas; None if a row is not plain."""
    try:
        return _part(bytes(block), columns)
    except (pa.ArrowInvalid, IrregularBlockError):
        return None


def _part(block: bytes, columns: Sequence[Column]) -> LogBlock:
    times = [place for place, column in enumerate(columns) if column.role == "time"]
    require_plain(len(times) == 1 and block.endswith(b"\n"))
    require_plain(b"\r" not in block or block.count(b"\r") == block.count(b"\r\n"))
    names = [str(place) for place in range(len(columns))]
    table = pyarrow.csv.read_csv(
        pa.py_buffer(block),
        pyarrow.csv.ReadOptions(use_threads=False, block_size=len(block) + 1, column_names=names),
        pyarrow.csv.ParseOptions(quote_char=False, ignore_empty_lines=False),
        pyarrow.csv.ConvertOptions(column_types=dict.fromkeys(names, pa.string()), null_values=[], check_utf8=False),
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
    values = _numbers(letters, starts, ends, column.whole)
    return values / round(1 / found[0]) if found[0] < 1 else values * found[0]


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
