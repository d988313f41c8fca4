"""Columns of a CSV block split by Arrow: numbers, exact decimals and categories.

An irregular block raises `IrregularBlockError` or `pa.ArrowInvalid`; it is then read line by line.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from profsvc.formats.columnar.line_blocks import Block, Letters, letters_of, require_plain
from profsvc.formats.parsing.timestamps import Flags, Int64s
from profsvc.tables.column_tables import Integers
from profsvc.tables.on_demand import pa, pd

Codes = npt.NDArray[np.signedinteger]
Objects = npt.NDArray[np.object_]
INTEGER, REAL, TEXT, CATEGORY = "int64", "double", "string", "category"
"""Types of columns: Arrow's names of them, and texts that repeat."""

MAX_CATEGORIES = 1 << 24
_ZERO, _LETTER_X, _LINE_FEED, _RETURN, _SPACE, _TAB = b"0x\n\r \t"
_LOWER = 0x20
_DIGITS = np.zeros(256, np.bool_)
_DIGITS[[*b"0123456789"]] = True
_BEFORE_CELL = np.frombuffer(b',;\t\n" -', np.uint8)


def _rows_of(letters: Letters) -> int:
    """Return the number of lines; raise if Arrow would accept a cell as a number that is not one."""
    ends = np.flatnonzero(letters == _LINE_FEED)
    require_plain(len(ends) > 0 and ends[-1] == len(letters) - 1)
    ends -= letters[ends - 1] == _RETURN
    last = letters[ends - 1]
    require_plain(not bool(((last == _SPACE) | (last == _TAB)).any()))
    # Arrow reads 0x1F as a number. Comparing bytes is cheap, locating them is not.
    hexadecimal = (letters[1:] | _LOWER) == _LETTER_X
    hexadecimal &= letters[:-1] == _ZERO
    if hexadecimal.any():
        require_plain(not bool(np.isin(letters[np.flatnonzero(hexadecimal) - 1], _BEFORE_CELL).any()))
    return len(ends)


def split_columns(
    block: Block, names: Sequence[str], types: Mapping[str, str], decimal: str = ".", separator: str = ","
) -> pa.RecordBatch:
    """Return the columns in ``types`` of a block of complete rows with the columns ``names``."""
    rows = _rows_of(np.frombuffer(block, np.uint8))
    table = pa.csv.read_csv(
        pa.py_buffer(block),
        pa.csv.ReadOptions(use_threads=False, block_size=len(block) + 1, column_names=names),
        pa.csv.ParseOptions(delimiter=separator, ignore_empty_lines=False),
        pa.csv.ConvertOptions(
            column_types={name: _type_named(kind) for name, kind in types.items()},
            include_columns=list(types),
            null_values=[""],
            decimal_point=decimal,
            check_utf8=False,
        ),
        pa.system_memory_pool(),
    )
    # A quoted cell may hold a line end.
    require_plain(table.num_rows == rows)
    return table.to_batches()[0]


def _type_named(name: str) -> pa.DataType:
    return pa.dictionary(pa.int32(), pa.string()) if name == CATEGORY else pa.type_for_alias(name)


class CellTexts(NamedTuple):
    """Texts of several columns, in the form of `profsvc.tables.Wide`."""

    letters: Letters
    bounds: npt.NDArray[np.int32]


class NumberColumn(NamedTuple):
    """A column of numbers, and which are known; unknown numbers are 0."""

    values: Any
    known: Flags

    def at(self, where: Int64s | None) -> NumberColumn:
        """Return the values of some rows."""
        return self if where is None else NumberColumn(self.values.take(where), self.known.take(where))


def number_column(column: pa.Array) -> NumberColumn:
    """Return a column of integers or real numbers."""
    valid, data = column.buffers()
    known = np.ones(len(column), np.bool_)
    if valid is not None:
        bits = np.unpackbits(np.frombuffer(valid, np.uint8), count=len(column), bitorder="little")
        known = bits.view(np.bool_)
    dtype = np.int64 if pa.types.is_integer(column.type) else np.float64
    return NumberColumn(np.frombuffer(data, dtype)[: len(column)], known)


class DecimalColumn(NamedTuple):
    """Nonnegative decimal numbers: ``digits`` as an integer, and the number of ``decimals`` among them."""

    digits: Int64s
    decimals: Int64s
    known: Flags

    def at(self, where: Int64s | None) -> DecimalColumn:
        """Return the values of some rows."""
        if where is None:
            return self
        return DecimalColumn(self.digits.take(where), self.decimals.take(where), self.known.take(where))


def decimal_column(texts: pa.StringArray, sign: str) -> DecimalColumn:
    """Return exact decimal numbers with the decimal mark ``sign``; an empty text is unknown.

    >>> decimal_column(pa.array(["12.50", "", "3"]), ".")
    DecimalColumn(digits=array([1250,    0,    3]), decimals=array([2, 0, 0]), known=array([ True, False,  True]))
    """
    rows = len(texts)
    sizes = pa.compute.binary_length(texts).to_numpy()
    some = np.flatnonzero(sizes)
    digits, places = np.zeros(rows, np.int64), np.zeros(rows, np.int64)
    if len(some):
        some_texts = texts if len(some) == rows else texts.take(pa.array(some))
        letters, starts, ends = letters_of(some_texts)
        other = np.flatnonzero(~_DIGITS[letters[starts[0] : ends[-1]]]) + starts[0]
        require_plain(bool((letters[other] == ord(sign)).all()))
        bare = some_texts
        if len(other):
            found = pa.compute.find_substring(some_texts, sign).to_numpy()
            places[some] = np.where(found < 0, 0, sizes[some] - 1 - found)
            # A second decimal mark stays, so the cast fails.
            bare = pa.compute.replace_substring(some_texts, sign, "", max_replacements=1)
        digits[some] = pa.compute.cast(bare, INTEGER).to_numpy()
    return DecimalColumn(digits, places, sizes > 0)


def category_texts(dictionary: pa.StringArray) -> list[str]:
    """Return the distinct texts of a column; raise `IrregularBlockError` if one shows an unclosed quote."""
    texts: list[str] = dictionary.to_pylist()
    require_plain(not any(sign in text for text in texts for sign in '\n\r"'))
    return texts


def require_closed_quotes(texts: pa.StringArray) -> None:
    """Raise `IrregularBlockError` if a cell of an unused column has an unclosed quote."""
    data = texts.buffers()[2]
    if data is not None:
        letters = np.frombuffer(data, np.uint8)
        require_plain(not any(bool((letters == sign).any()) for sign in b'\n\r"'))


def is_empty(texts: pa.StringArray) -> bool:
    """Return whether all texts of a column are empty."""
    offsets = np.frombuffer(texts.buffers()[1], np.int32)[texts.offset : texts.offset + len(texts) + 1]
    return bool(offsets[-1] == offsets[0])


def cells_at(column: Any, where: Int64s | None) -> Any:
    """Return some rows of a column; all rows if ``where`` is None."""
    return column if where is None else column.take(where)


def object_column(distinct: Sequence[object], codes: Codes) -> Objects:
    """Return a column of objects from distinct objects and codes."""
    array = np.empty(len(distinct), object)
    array[:] = distinct
    return array[codes]


def coded_ints(distinct: Sequence[int | None], codes: Codes) -> Integers:
    """Return a column of integers or null from distinct ones and codes.

    >>> coded_ints([7, None], np.array([1, 0])).tolist()
    [None, 7]
    """
    values = np.array([number or 0 for number in distinct], np.int64)
    missing = np.array([number is None for number in distinct], np.bool_)
    return Integers(values.take(codes), missing.take(codes))


def used_codes(codes: Codes) -> list[int]:
    """Return the codes that occur, in ascending order.

    >>> used_codes(np.array([3, 0, 3]))
    [0, 3]
    """
    return list(np.flatnonzero(np.bincount(codes)).tolist())


def code_combinations(columns: Sequence[tuple[int, Codes]]) -> tuple[Codes, Int64s]:
    """Return the combination of codes of each row, and the first row of each; columns are (count, codes).

    >>> which, first = code_combinations([(2, np.array([0, 1, 0])), (3, np.array([2, 2, 2]))])
    >>> which.tolist(), first.tolist()
    ([0, 1, 0], [0, 1])
    """
    joint = np.zeros(1, np.int64)
    for count, codes in columns:
        joint, distinct = pd.factorize(joint * count + codes)
        require_plain(len(distinct) * MAX_CATEGORIES < 2**62)
    which, distinct = pd.factorize(joint)
    first = np.empty(len(distinct), np.int64)
    first[which[::-1]] = np.arange(len(which))[::-1]
    return which.astype(np.int32), first


def cell_texts(columns: Sequence[tuple[Sequence[str], Codes]]) -> CellTexts | None:
    """Return the ASCII texts of columns from distinct texts and codes; None if all are empty.

    >>> cells = cell_texts([(["32"], np.array([0, 0])), (["", "4.5"], np.array([1, 0]))])
    >>> cells.letters.tobytes(), cells.bounds.tolist()
    (b'324.532', [[[0, 2], [2, 5]], [[5, 7], [7, 7]]])
    """
    which, first = code_combinations([(len(texts), codes) for texts, codes in columns])
    rows = [[texts[code] for code in codes[first].tolist()] for texts, codes in columns]
    joined = ["".join(cells) for cells in zip(*rows, strict=True)]
    if not any(joined):
        return None
    letters, starts, _ = letters_of(pa.array(joined).take(pa.array(which)))
    within = np.cumsum([[0] * len(joined), *([len(text) for text in column] for column in rows)], axis=0).T
    ends = within[which] + starts[:, None]
    return CellTexts(letters, np.stack([ends[:, :-1], ends[:, 1:]], axis=2).astype(np.int32))
