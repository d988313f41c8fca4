"""Blocks of the rows of a log at once: Arrow splits them, and whole columns of stamps and plain numbers are read.

A block is read so only if each of its rows has its cells and a stamp of one layout; any other block is left to the
lines. Cells that are no plain numbers keep their texts, and are read as the lines would read them.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.csv

from profsvc.formats.blocks import WORD, Block, NotPlainError, letters_of, must, trailing_numbers, words_before
from profsvc.formats.clock import Int64s, civil
from profsvc.formats.coded import Coded
from profsvc.formats.sensors import SPARE, Column, scale

Floats = npt.NDArray[np.float64]

MOST_DIGITS = 15
POWERS = 10 ** np.arange(WORD + 1)


@dataclass
class Part:
    """The rows of a block: their number, stamps, and cells column by column."""

    rows: int
    ns: Int64s
    columns: list[Coded]


def parse(block: Block, columns: Sequence[Column]) -> Part | None:
    """Read a block of whole lines under ``columns``, cells apart by commas; None if a row is not plain."""
    try:
        return _part(bytes(block), columns)
    except (pa.ArrowInvalid, NotPlainError):
        return None


def _part(block: bytes, columns: Sequence[Column]) -> Part:
    times = [place for place, column in enumerate(columns) if column.role == "time"]
    must(len(times) == 1 and block.endswith(b"\n"))
    must(b"\r" not in block or block.count(b"\r") == block.count(b"\r\n"))
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
    return Part(batch.num_rows, ns, cells)


def _stamps(texts: pa.StringArray) -> Int64s:
    letters, starts, ends = letters_of(texts)
    width = int(ends[0] - starts[0])
    must(bool((ends - starts == width).all()) and width > 0)
    matrix = letters[: width * len(texts)].reshape(len(texts), width)
    while matrix.shape[1] and (matrix[:, 0] == ord(" ")).all():
        matrix = matrix[:, 1:]
    read = civil(matrix)
    must(read is not None and bool(read[1].all()))
    assert read is not None
    return read[0]


def _coded(texts: pa.StringArray, column: Column) -> Coded:
    if column.role in ("value", "open"):
        try:
            return Coded(texts, _plain(texts, column))
        except NotPlainError:
            pass
    coded = Coded(texts)
    must(column.role != SPARE or not any(text.strip() for text in coded.texts))
    # Here, not where they are asked for, the texts are told apart beside other work.
    must(column.role == "time" or len(coded.texts) > 0)
    return coded


def _plain(texts: pa.StringArray, column: Column) -> Floats:
    """Return the numbers of a column that holds nothing but plain numbers, all with the unit of the column or none."""
    found = scale(column.token) if column.token else (1.0, column.unit)
    must(found is not None and found[1] == column.unit)
    assert found is not None
    letters, starts, ends = letters_of(texts)
    must(bool((ends > starts).all()))
    led = letters[starts] == ord(" ")
    must(bool(led.all() or not led.any()))
    starts = starts + led
    unit = f" {column.token}".encode()
    if column.token and texts[0].as_py().encode().endswith(unit):
        must(bool((ends - starts > len(unit)).all()))
        for back, letter in enumerate(reversed(unit), 1):
            must(bool((letters[ends - back] == letter).all()))
        ends = ends - len(unit)
    values = _numbers(letters, starts, ends, column.whole)
    return values / round(1 / found[0]) if found[0] < 1 else values * found[0]


def _numbers(letters: npt.NDArray[np.uint8], starts: Int64s, ends: Int64s, whole: bool = False) -> Floats:
    """Read the number in each stretch of ``letters``; all have as many decimals as the first.

    >>> _numbers(np.frombuffer(b" 1.5 W 20.1 W", np.uint8), np.array([1, 7]), np.array([4, 11]))
    array([ 1.5, 20.1])
    """
    first, point, decimals = letters[starts[0] : ends[0]].tobytes().partition(b".")
    must(0 < len(first) <= WORD and len(decimals) <= WORD and bool(point) == bool(decimals) and not (point and whole))
    fractions = None
    if decimals:
        must(bool((ends - starts > len(decimals) + 1).all()))
        fractions = _digits(letters, ends, np.full(len(ends), len(decimals)))
        ends = ends - len(decimals) - 1
        must(bool((letters[ends] == ord(".")).all()))
    values = _digits(letters, ends, ends - starts)
    if fractions is None:
        return values.astype(np.float64)
    # A quotient of whole numbers that doubles hold is rounded once, as the text of the number would be.
    must(bool((ends - starts).max() + len(decimals) <= MOST_DIGITS))
    power = 10 ** len(decimals)
    read: Floats = (values * power + fractions) / power
    return read


def _digits(letters: npt.NDArray[np.uint8], ends: Int64s, lengths: Int64s) -> Int64s:
    """Return the whole numbers of so many digits that end there; nothing but digits may stand in them."""
    must(bool(((lengths > 0) & (lengths <= WORD)).all()))
    values, digits = trailing_numbers(words_before(letters, ends))
    longer = digits > lengths
    if longer.any():
        values = np.where(longer, values % POWERS[lengths], values)
    must(bool((digits >= lengths).all()))
    return values
