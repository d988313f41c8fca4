"""The cells of a column as distinct texts and codes, computed on first use."""

from collections.abc import Sequence
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa

from profsvc.formats.parsing.timestamps import Int64s


class CategoryColumn:
    """The cells of a column, from split rows or a block; ``numbers`` if they are known to be plain."""

    def __init__(self, cells: Sequence[str] | pa.StringArray, numbers: npt.NDArray[np.float64] | None = None) -> None:
        """Keep the raw cells."""
        self.cells = cells
        self.numbers = numbers

    def __getitem__(self, row: int) -> str:
        """Return the text of a row."""
        return str(self.cells[row])

    @cached_property
    def _coded(self) -> tuple[Int64s, list[str]]:
        if isinstance(self.cells, pa.StringArray):
            if self._is_constant(self.cells):
                return np.zeros(len(self.cells), np.int64), [self[0]]
            encoded = self.cells.dictionary_encode()
            return encoded.indices.to_numpy().astype(np.int64), encoded.dictionary.to_pylist()
        codes, texts = pd.factorize(np.array(self.cells, dtype=object))
        return codes, texts.tolist()

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

    def part(self, rows: Int64s) -> "CategoryColumn":
        """Return the cells of some rows."""
        numbers = None if self.numbers is None else self.numbers[rows]
        if isinstance(self.cells, pa.StringArray):
            return CategoryColumn(self.cells.take(pa.array(rows)), numbers)
        return CategoryColumn([self.cells[row] for row in rows.tolist()], numbers)
