"""The cells of a column as distinct texts and codes, computed on first use."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import TypeGuard, cast

import numpy as np
import numpy.typing as npt

from profsvc.formats.parsing.timestamps import Int64s
from profsvc.tables.on_demand import pa


class BlockLines:
    """The lines of a block, of which few are asked for, nearly always the first and the last."""

    def __init__(self, block: bytes) -> None:
        """Keep the block, which ends with a line end."""
        self._block = block

    @cached_property
    def _ends(self) -> Int64s:
        return np.flatnonzero(np.frombuffer(self._block, np.uint8) == ord("\n"))

    def line(self, row: int, rows: int) -> str:
        """Return a line of a block of so many without its line end."""
        if row == 0:
            begin, end = 0, self._block.index(b"\n")
        elif row == rows - 1:
            begin, end = self._block.rindex(b"\n", 0, -1) + 1, len(self._block) - 1
        else:
            begin, end = int(self._ends[row - 1]) + 1, int(self._ends[row])
        return self._block[begin:end].decode().rstrip("\r")


class RawCells:
    """The cells of a column as they stand in the lines of a block, between separators."""

    def __init__(self, lines: BlockLines, place: int, separator: str, rows: int, where: Int64s | None = None) -> None:
        """Keep the column at ``place``; ``where`` are the rows that are asked for, if not all."""
        self._lines, self._place, self._separator, self._rows, self._where = lines, place, separator, rows, where

    def __getitem__(self, row: int) -> str:
        """Return the cell of a row."""
        at = row if self._where is None else int(self._where[row])
        return self._lines.line(at, self._rows).split(self._separator)[self._place]

    def part(self, rows: Int64s) -> RawCells:
        """Return the cells of some rows."""
        where = rows if self._where is None else self._where[rows]
        return RawCells(self._lines, self._place, self._separator, self._rows, where)


def _is_of_arrow(cells: Sequence[str] | pa.StringArray | RawCells) -> TypeGuard[pa.StringArray]:
    """Tell whether cells are an array of Arrow, without importing it."""
    return type(cells).__module__.partition(".")[0] == "pyarrow"


class CategoryColumn:
    """The cells of a column, from split rows or a block; ``numbers`` if they are known to be plain.

    ``coded`` are the code of each row and the distinct texts, if they are known.
    """

    def __init__(
        self,
        cells: Sequence[str] | pa.StringArray | RawCells,
        numbers: npt.NDArray[np.float64] | None = None,
        coded: tuple[Int64s, list[str]] | None = None,
    ) -> None:
        """Keep the raw cells."""
        self.cells = cells
        self.numbers = numbers
        self._known = coded

    def __getitem__(self, row: int) -> str:
        """Return the text of a row."""
        return str(self.cells[row])

    @cached_property
    def _coded(self) -> tuple[Int64s, list[str]]:
        if self._known is not None:
            return self._known
        if _is_of_arrow(self.cells):
            if self._is_constant(self.cells):
                return np.zeros(len(self.cells), np.int64), [self[0]]
            encoded = self.cells.dictionary_encode()
            return encoded.indices.to_numpy().astype(np.int64), encoded.dictionary.to_pylist()
        cells = cast("Sequence[str]", self.cells)  # raw ones are of columns with numbers, and not asked for
        texts = list(dict.fromkeys(cells))
        code_of = {text: code for code, text in enumerate(texts)}
        return np.fromiter(map(code_of.__getitem__, cells), np.int64, len(cells)), texts

    @staticmethod
    def _is_constant(texts: pa.StringArray) -> bool:
        """Return whether all texts are equal, as the index of the only GPU."""
        _, offsets, data = texts.buffers()
        places = np.frombuffer(offsets, np.int32)[texts.offset : texts.offset + len(texts) + 1]
        if data is None or len(texts) < 2 or not (np.diff(places) == places[1] - places[0]).all():
            return False
        letters = np.frombuffer(data, np.uint8)[places[0] : places[-1]].reshape(len(texts), -1)
        return bool((letters == letters[0]).all())

    @property
    def codes(self) -> Int64s:
        """The code of each row."""
        return self._coded[0]

    @property
    def texts(self) -> list[str]:
        """The distinct texts, in order of first occurrence."""
        return self._coded[1]

    def part(self, rows: Int64s) -> CategoryColumn:
        """Return the cells of some rows."""
        numbers = None if self.numbers is None else self.numbers[rows]
        coded = None if self._known is None else (self._known[0][rows], self._known[1])
        if isinstance(self.cells, RawCells):
            return CategoryColumn(self.cells.part(rows), numbers, coded)
        if _is_of_arrow(self.cells):
            return CategoryColumn(self.cells.take(pa.array(rows)), numbers)
        return CategoryColumn([self.cells[row] for row in rows.tolist()], numbers)
