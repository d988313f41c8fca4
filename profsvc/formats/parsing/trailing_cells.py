"""Trailing empty cells: separators at the end of header lines, rows, or both.

They are harmless if all rows have the same number of them. If not, a comma may be inside a number: ``1,234,`` under two
names is 1234 and an empty cell, or 1 and 234.
"""

import re
from collections.abc import Sequence
from itertools import pairwise

from profsvc.errors import BrokenInputError

_LEFT = re.compile(r"\s*[-+]?[0-9]+")
# Three digits after a thousands separator, or decimals.
_RIGHT = re.compile(r"[0-9]{3}(?![0-9])|[0-9]+(?![0-9.])")
UNNAMED_VALUE = "a value follows the last named column, so values may be in wrong columns"


def named_width(header: Sequence[str]) -> int:
    """Return the number of cells of a header up to the last one with a name.

    >>> named_width(["A", "", "B", "", ""])
    3
    """
    return next((place for place in range(len(header), 0, -1) if header[place - 1].strip()), 0)


def may_be_split_number(cells: Sequence[str]) -> bool:
    """Tell whether two adjacent cells may be one number with a comma in it.

    >>> [may_be_split_number(cells) for cells in (["k", "1", "234 W"], ["1", "234.5"], ["7", "10.5", "2"])]
    [True, True, False]
    """
    return any(_LEFT.fullmatch(left) and _RIGHT.match(right) for left, right in pairwise(cells))


class TrailingCells:
    """Checks that all rows have the number of trailing cells of the first row with a number, ``count``."""

    def __init__(self, columns: int, separator: str = ",") -> None:
        """Start a table with ``columns`` named columns."""
        self.columns, self.separator = columns, separator
        self.count: int | None = None
        self._doubted = 0

    def settle(self, count: int) -> None:
        """Note two or more rows that have ``count`` trailing cells each."""
        self.count, self._doubted = count, 0

    def reason(self, cells: Sequence[str], line: int) -> str:
        """Return why a row is none, as its values may have moved; "" if they have not.

        Raise `BrokenInputError` if they may have in the first row, of which that was not known.
        """
        count = max(0, len(cells) - self.columns)
        if any(cell.strip() for cell in cells[self.columns :]):
            return UNNAMED_VALUE
        if self.count is None and any(cell[:1].isdigit() for cell in cells):
            self.count = count
            self._doubted = line if count and self._torn(cells) else 0
        elif self.count is None:
            return ""
        elif count < self.count and self._doubted:
            raise BrokenInputError(
                f"line {self._doubted} has one more empty cell at its end than line {line}, so a comma may be inside a "
                "number; export again with a decimal point and no thousands separators"
            )
        elif count > self.count and self._torn(cells):
            return "it has one more empty cell at its end than the rows above, so a comma may be inside a number"
        self._doubted = self._doubted if self._doubted == line else 0
        return ""

    def _torn(self, cells: Sequence[str]) -> bool:
        return self.separator == "," and may_be_split_number(cells[: self.columns])
