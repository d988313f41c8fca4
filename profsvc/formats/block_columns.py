"""The columns of a block of CSV that Arrow has split: numbers, decimals with all their digits, and texts by number.

What is not as plain as it looks raises `NotPlainError` or `pa.ArrowInvalid`: the block then goes line by line.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa
import pyarrow.compute
import pyarrow.csv

from profsvc.formats.blocks import Block, Letters, letters_of, must
from profsvc.formats.clock import Flags, Int64s

Codes = npt.NDArray[np.signedinteger]
Objects = npt.NDArray[np.object_]
WHOLE, REAL, TEXT = pa.int64(), pa.float64(), pa.string()
CODED = pa.dictionary(pa.int32(), TEXT)

MOST_CODES = 1 << 24
_ZERO, _LETTER_X, _LINE_FEED, _RETURN, _SPACE, _TAB = b"0x\n\r \t"
_LOWER = 0x20
_DIGITS = np.zeros(256, np.bool_)
_DIGITS[[*b"0123456789"]] = True
_BEFORE_CELL = np.frombuffer(b',;\t\n" -', np.uint8)


def _rows_of(letters: Letters) -> int:
    """Return how many lines there are, if nothing in them would pass Arrow as a number that is none."""
    ends = np.flatnonzero(letters == _LINE_FEED)
    must(len(ends) > 0 and ends[-1] == len(letters) - 1)
    ends -= letters[ends - 1] == _RETURN
    last = letters[ends - 1]
    must(not bool(((last == _SPACE) | (last == _TAB)).any()))
    # Arrow reads 0x1F as a number. Comparing bytes is cheap, finding where they are is not.
    hexadecimal = (letters[1:] | _LOWER) == _LETTER_X
    hexadecimal &= letters[:-1] == _ZERO
    if hexadecimal.any():
        must(not bool(np.isin(letters[np.flatnonzero(hexadecimal) - 1], _BEFORE_CELL).any()))
    return len(ends)


def split(
    block: Block, names: Sequence[str], types: Mapping[str, pa.DataType], decimal: str = ".", separator: str = ","
) -> pa.RecordBatch:
    """Return the columns of ``types`` of a block of whole rows that have the columns ``names``."""
    rows = _rows_of(np.frombuffer(block, np.uint8))
    table = pyarrow.csv.read_csv(
        pa.py_buffer(block),
        pyarrow.csv.ReadOptions(use_threads=False, block_size=len(block) + 1, column_names=names),
        pyarrow.csv.ParseOptions(delimiter=separator, ignore_empty_lines=False),
        pyarrow.csv.ConvertOptions(
            column_types=types,
            include_columns=list(types),
            null_values=[""],
            decimal_point=decimal,
            check_utf8=False,
        ),
        pa.system_memory_pool(),
    )
    # A cell in quotes may hold the end of a line.
    must(table.num_rows == rows)
    return table.to_batches()[0]


class Cells(NamedTuple):
    """Texts of several columns, as `profsvc.tables.Wide` has them."""

    letters: Letters
    bounds: npt.NDArray[np.int32]


class Numbers(NamedTuple):
    """A column of numbers, and which of them there are; those that are not stand as 0."""

    values: Any
    known: Flags

    def at(self, where: Int64s | None) -> "Numbers":
        """Return those at some rows."""
        return self if where is None else Numbers(self.values[where], self.known[where])


def numbers(column: pa.Array) -> Numbers:
    """Return a column of whole or of real numbers, as they were read."""
    valid, data = column.buffers()
    known = np.ones(len(column), np.bool_)
    if valid is not None:
        bits = np.unpackbits(np.frombuffer(valid, np.uint8), count=len(column), bitorder="little")
        known = bits.view(np.bool_)
    dtype = np.int64 if pa.types.is_integer(column.type) else np.float64
    return Numbers(np.frombuffer(data, dtype)[: len(column)], known)


class Decimals(NamedTuple):
    """Decimal numbers that are not negative: ``digits`` as a whole number, how many of them are ``decimals``."""

    digits: Int64s
    decimals: Int64s
    known: Flags

    def at(self, where: Int64s | None) -> "Decimals":
        """Return those at some rows."""
        return self if where is None else Decimals(self.digits[where], self.decimals[where], self.known[where])


def decimals(texts: pa.StringArray, sign: str) -> Decimals:
    """Return a column of numbers whose decimals ``sign`` marks, with all their digits; an empty text is none.

    >>> decimals(pa.array(["12.50", "", "3"]), ".")
    Decimals(digits=array([1250,    0,    3]), decimals=array([2, 0, 0]), known=array([ True, False,  True]))
    """
    rows = len(texts)
    sizes = pyarrow.compute.binary_length(texts).to_numpy()
    some = np.flatnonzero(sizes)
    digits, places = np.zeros(rows, np.int64), np.zeros(rows, np.int64)
    if len(some):
        some_texts = texts if len(some) == rows else texts.take(pa.array(some))
        letters, starts, ends = letters_of(some_texts)
        other = np.flatnonzero(~_DIGITS[letters[starts[0] : ends[-1]]]) + starts[0]
        must(bool((letters[other] == ord(sign)).all()))
        bare = some_texts
        if len(other):
            found = pyarrow.compute.find_substring(some_texts, sign).to_numpy()
            places[some] = np.where(found < 0, 0, sizes[some] - 1 - found)
            # A second sign stays, and is no digit.
            bare = pyarrow.compute.replace_substring(some_texts, sign, "", max_replacements=1)
        digits[some] = pyarrow.compute.cast(bare, WHOLE).to_numpy()
    return Decimals(digits, places, sizes > 0)


def plain_texts(dictionary: pa.StringArray) -> list[str]:
    """Return the distinct texts of a column; a line end or a quote in one may come of quotes that are not closed."""
    texts: list[str] = dictionary.to_pylist()
    must(not any(sign in text for text in texts for sign in '\n\r"'))
    return texts


def closed(texts: pa.StringArray) -> None:
    """Make sure of a column that is not looked at further that no quotes in it are left open, as `plain_texts` does."""
    data = texts.buffers()[2]
    if data is not None:
        letters = np.frombuffer(data, np.uint8)
        must(not any(bool((letters == sign).any()) for sign in b'\n\r"'))


def is_empty(texts: pa.StringArray) -> bool:
    """Tell whether all texts of a column are empty: their offsets then do not rise."""
    offsets = np.frombuffer(texts.buffers()[1], np.int32)[texts.offset : texts.offset + len(texts) + 1]
    return bool(offsets[-1] == offsets[0])


def at(column: Any, where: Int64s | None) -> Any:
    """Return a column at some rows."""
    return column if where is None else column[where]


def objects(distinct: Sequence[object], codes: Codes) -> Objects:
    """Return a column of objects from its distinct ones."""
    array = np.empty(len(distinct), object)
    array[:] = distinct
    return array[codes]


def combinations(columns: Sequence[tuple[int, Codes]]) -> tuple[Codes, Int64s]:
    """Return which combination of codes each row has, and the first row of each; a column has so many codes.

    >>> which, first = combinations([(2, np.array([0, 1, 0])), (3, np.array([2, 2, 2]))])
    >>> which.tolist(), first.tolist()
    ([0, 1, 0], [0, 1])
    """
    joint = np.zeros(1, np.int64)
    for count, codes in columns:
        joint, distinct = pd.factorize(joint * count + codes)
        must(len(distinct) * MOST_CODES < 2**62)
    which, distinct = pd.factorize(joint)
    first = np.empty(len(distinct), np.int64)
    first[which[::-1]] = np.arange(len(which))[::-1]
    return which.astype(np.int32), first


def cells_of(columns: Sequence[tuple[Sequence[str], Codes]]) -> Cells | None:
    """Return the texts of columns, which are in ASCII, by their distinct ones; None if all are empty.

    >>> cells = cells_of([(["32"], np.array([0, 0])), (["", "4.5"], np.array([1, 0]))])
    >>> cells.letters.tobytes(), cells.bounds.tolist()
    (b'324.532', [[[0, 2], [2, 5]], [[5, 7], [7, 7]]])
    """
    which, first = combinations([(len(texts), codes) for texts, codes in columns])
    rows = [[texts[code] for code in codes[first].tolist()] for texts, codes in columns]
    joined = ["".join(cells) for cells in zip(*rows, strict=True)]
    if not any(joined):
        return None
    letters, starts, _ = letters_of(pa.array(joined).take(pa.array(which)))
    within = np.cumsum([[0] * len(joined), *([len(text) for text in column] for column in rows)], axis=0).T
    ends = within[which] + starts[:, None]
    return Cells(letters, np.stack([ends[:, :-1], ends[:, 1:]], axis=2).astype(np.int32))
