"""Blocks of the rows of a log at once: Arrow splits them, and whole columns of stamps and plain numbers are read.

A block is read so only if each of its rows has its cells and a stamp of one layout; any other block is left to the
lines. Cells that are no plain numbers keep their texts, and are read as the lines would read them.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute
import pyarrow.csv

from profsvc.formats.blocks import NotPlainError, letters_of, must
from profsvc.formats.clock import civil
from profsvc.formats.coded import Coded
from profsvc.formats.sensors import Column, scale

Floats = npt.NDArray[np.float64]
Int64s = npt.NDArray[np.int64]

# So many rows are looked at to tell whether the texts of a column repeat; then reading each distinct one is cheaper.
LOOKED_AT = 256
OFTEN_DISTINCT = 96
MOST_DIGITS = 15
# Which letters a plain number is made of, by letter.
_IN_WHOLE = np.isin(np.arange(256), range(ord("0"), ord("9") + 1))
_IN_NUMBER = _IN_WHOLE | (np.arange(256) == ord("."))
_EVERY_OTHER = b"\x55"


@dataclass
class Part:
    """The rows of a block: their number, stamps, and cells column by column."""

    rows: int
    ns: Int64s
    columns: list[Coded]


def parse(block: bytes, columns: Sequence[Column]) -> Part | None:
    """Read a block of whole lines under ``columns``, cells apart by commas; None if a row is not plain."""
    try:
        return _part(block, columns)
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
        looked_at = texts.slice(0, LOOKED_AT).to_pylist()
        if len(set(looked_at)) > min(OFTEN_DISTINCT, len(looked_at) // 2):
            try:
                return Coded(texts, _plain(texts, column))
            except (pa.ArrowInvalid, NotPlainError):
                pass
    coded = Coded(texts)
    must(len(coded.texts) > 0)
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
    lengths = ends - starts
    must(bool(lengths.min() > 0 and lengths.max() <= MOST_DIGITS))
    in_number = _IN_WHOLE if column.whole else _IN_NUMBER
    must(int(np.count_nonzero(in_number[letters])) == int(lengths.sum()))
    must(not bool(((letters[starts] == ord(".")) | (letters[ends - 1] == ord("."))).any()))
    values = _numbers(letters, starts, ends)
    return values / round(1 / found[0]) if found[0] < 1 else values * found[0]


def _numbers(letters: npt.NDArray[np.uint8], starts: Int64s, ends: Int64s) -> Floats:
    """Read the number in each stretch of ``letters``.

    >>> _numbers(np.frombuffer(b" 1.5 W 20 W", np.uint8), np.array([1, 7]), np.array([4, 9]))
    array([ 1.5, 20. ])
    """
    count = len(starts)
    # Texts of Arrow follow each other without gaps, so every other one is a gap, marked as missing.
    offsets = np.empty(2 * count + 1, np.int32)
    offsets[0:-1:2], offsets[1::2], offsets[-1] = starts, ends, ends[-1]
    known = pa.py_buffer(_EVERY_OTHER * (count // 4 + 1))
    texts = pa.StringArray.from_buffers(2 * count, pa.py_buffer(offsets), pa.py_buffer(letters), known)
    read = pyarrow.compute.cast(texts, pa.float64())
    return np.frombuffer(read.buffers()[1], np.float64)[: 2 * count : 2]
