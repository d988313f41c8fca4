"""The columns of a block of delimited rows, by the compiled splitter where it is there, else by Arrow.

Both give the same numbers and texts. An irregular block raises `IrregularBlockError` or `pa.ArrowInvalid`.
"""

from collections.abc import Sequence

import numpy as np

from profsvc.formats.columnar import csv_columns
from profsvc.formats.columnar.csv_columns import Codes, DecimalColumn, NumberColumn, require_closed_quotes
from profsvc.formats.columnar.line_blocks import Block, require_plain
from profsvc.formats.splitter import rows as splitter
from profsvc.formats.splitter.rows import Kind

INTEGER, REAL, TEXT, DECIMAL, CHECKED, EMPTY = "integer", "real", "text", "decimal", "checked", "empty"
"""Types of columns: integers, numbers, repeated texts, exact decimals, unused texts, and cells without anything."""
_ARROW = {INTEGER: csv_columns.INTEGER, REAL: csv_columns.REAL, TEXT: csv_columns.CATEGORY}
_KINDS = {
    INTEGER: Kind(splitter.INTEGER),
    REAL: Kind(splitter.REAL),
    TEXT: Kind(splitter.TEXT),
    DECIMAL: Kind(splitter.DECIMAL, least=0.0),
    CHECKED: Kind(splitter.SKIP),
    EMPTY: Kind(splitter.TEXT),
}


class ArrowTable:
    """A block split by Arrow; ``decimal`` marks the decimals of exact numbers, which have none if it is empty."""

    def __init__(self, block: Block, types: Sequence[str], separator: str, decimal: str) -> None:
        """Split the block into columns of these types."""
        names = [str(place) for place in range(len(types))]
        arrow = {name: _ARROW.get(kind, csv_columns.TEXT) for name, kind in zip(names, types, strict=True)}
        self.decimal, self.batch = decimal, csv_columns.split_columns(block, names, arrow, separator=separator)
        self.rows = self.batch.num_rows
        for kind, column in zip(types, self.batch.columns, strict=True):
            if kind == CHECKED:
                require_closed_quotes(column)
            require_plain(kind != EMPTY or csv_columns.is_empty(column))

    def numbers(self, place: int) -> NumberColumn:
        """Return a column of integers or numbers."""
        return csv_columns.number_column(self.batch.column(place))

    def texts(self, place: int) -> tuple[list[str], Codes]:
        """Return the distinct texts of a column, and the code of each row."""
        column = self.batch.column(place)
        return csv_columns.category_texts(column.dictionary), column.indices.to_numpy()

    def decimals(self, place: int) -> DecimalColumn:
        """Return a column of exact numbers, which are not negative."""
        return csv_columns.decimal_column(self.batch.column(place), self.decimal or "0")


class SplitTable:
    """A block split by the compiled splitter."""

    def __init__(self, block: Block, types: Sequence[str], separator: str, decimal: str) -> None:
        """Split the block into columns of these types."""
        kinds = [_KINDS[kind] if decimal or kind != DECIMAL else Kind(splitter.INTEGER, least=0.0) for kind in types]
        lines, self.rows, self.cells, _ = splitter.split(block, kinds, separator, decimal or ".")
        require_plain(0 < self.rows == lines)
        require_plain(all(self.cells[n].texts == [""] for n, kind in enumerate(types) if kind == EMPTY))

    def numbers(self, place: int) -> NumberColumn:
        """Return a column of integers or numbers."""
        cells = self.cells[place]
        return NumberColumn(cells.values, ~cells.missing)

    def texts(self, place: int) -> tuple[list[str], Codes]:
        """Return the distinct texts of a column, and the code of each row."""
        return self.cells[place].texts, self.cells[place].values

    def decimals(self, place: int) -> DecimalColumn:
        """Return a column of exact numbers, which are not negative."""
        cells = self.cells[place]
        places = np.zeros(self.rows, np.int64) if cells.extra is None else cells.extra.astype(np.int64)
        return DecimalColumn(cells.values, places, ~cells.missing)


Table = ArrowTable | SplitTable


def ways() -> list[type[Table]]:
    """Return how to split a block, the fastest way first; the next is for what one finds irregular."""
    return [SplitTable, ArrowTable] if splitter.is_available() else [ArrowTable]
