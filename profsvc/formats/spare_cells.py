"""Empty cells behind the last column: signs at the ends of lines make them, in the header, in the rows or in both.

They are harmless where all rows have as many. Where they differ, a comma inside a number may have taken the place of
one: ``1,234,`` under two names is 1234 and nothing, or 1 and 234.
"""

import re
from collections.abc import Sequence
from itertools import pairwise

from profsvc.errors import BrokenInputError

_LEFT = re.compile(r"\s*[-+]?[0-9]+")
# Three digits behind a sign of thousands, or the decimals.
_RIGHT = re.compile(r"[0-9]{3}(?![0-9])|[0-9]+(?![0-9.])")
UNNAMED = "a value stands behind the last column that has a name, so its values may have moved"


def width_of(header: Sequence[str]) -> int:
    """Return how many cells of a header there are up to the last one with a name.

    >>> width_of(["A", "", "B", "", ""])
    3
    """
    return next((place for place in range(len(header), 0, -1) if header[place - 1].strip()), 0)


def may_be_torn(cells: Sequence[str]) -> bool:
    """Tell whether two cells beside each other may be one number with a comma in it.

    >>> may_be_torn(["k", "1", "234 W"]), may_be_torn(["1", "234.5"]), may_be_torn(["7", "10.5", "2"])
    (True, True, False)
    """
    return any(_LEFT.fullmatch(left) and _RIGHT.match(right) for left, right in pairwise(cells))


class Spare:
    """Holds the rows of a table to one number of spare cells, ``count``: that of the first row with a number."""

    def __init__(self, columns: int, separator: str = ",") -> None:
        """Begin a table of so many columns that have names."""
        self.columns, self.separator = columns, separator
        self.count: int | None = None
        self._doubted = 0

    def settle(self, count: int) -> None:
        """Take note of two rows or more that have ``count`` spare cells each."""
        self.count, self._doubted = count, 0

    def reason(self, cells: Sequence[str], line: int) -> str:
        """Return why a row is none, as its values may have moved; "" if they have not.

        Raise `BrokenInputError` if they may have in the first row, of which that was not known.
        """
        count = max(0, len(cells) - self.columns)
        if any(cell.strip() for cell in cells[self.columns :]):
            return UNNAMED
        if self.count is None and any(cell[:1].isdigit() for cell in cells):
            self.count = count
            self._doubted = line if count and self._torn(cells) else 0
        elif self.count is None:
            return ""
        elif count < self.count and self._doubted:
            raise BrokenInputError(
                f"line {self._doubted} ends in an empty cell more than line {line}: whether a comma stands inside one "
                f"of its numbers cannot be told; export again with a decimal point and no thousands"
            )
        elif count > self.count and self._torn(cells):
            return "it ends in an empty cell more than the rows before: a comma may stand inside a number of it"
        self._doubted = self._doubted if self._doubted == line else 0
        return ""

    def _torn(self, cells: Sequence[str]) -> bool:
        return self.separator == "," and may_be_torn(cells[: self.columns])
