"""CSV files that profsvc defines itself: a header, rows, and comments, which are lines that begin with #."""

from abc import abstractmethod
from typing import NoReturn

from profsvc.errors import BrokenInputError
from profsvc.formats.parsing.head import head_lines
from profsvc.formats.parsing.ledger import Ledger
from profsvc.formats.parsing.line_reader import LineReader
from profsvc.formats.parsing.records import HEADER, MAX_TEXT_CHARS, REJECT, ROW, SKIP, Record, split_cells
from profsvc.formats.parsing.text import ends_inside


def cells_of(line: str) -> list[str]:
    """Return the cells of a line without surrounding spaces.

    >>> cells_of("a, b ,\\n")
    ['a', 'b', '']
    """
    return [cell.strip() for cell in split_cells(line)]


def is_comment(line: str) -> bool:
    """Tell whether a line is empty or a comment."""
    return not line.strip() or line.lstrip().startswith("#")


def first_cells(head: bytes) -> list[str]:
    """Return the cells of the first line in ``head`` that is neither empty nor a comment."""
    return cells_of(next((line for line in head_lines(head) if not is_comment(line)), ""))


class AnnotatedCsvReader(LineReader):
    """Sorts the lines of one file; a format adds `columns_of` and `add_row`."""

    def __init__(self, name: str, content: str) -> None:
        """Begin a file of the format ``name``, which contains ``content``."""
        self.name, self.content = name, content
        self.ledger = Ledger()
        self.header: list[str] = []

    @abstractmethod
    def columns_of(self, cells: list[str], line: int | None = None) -> list[str] | None:
        """Return the columns of a header, None if the cells are not one; on a given ``line`` they must be one."""

    @abstractmethod
    def add_row(self, number: int, cells: list[str]) -> None:
        """Add a row; raise `ValueError` to reject it."""

    def add(self, number: int, line: str) -> None:
        """Account for a line, and add its row."""
        cells, kind, reason = cells_of(line), ROW, ""
        if is_comment(line):
            kind = SKIP
        elif not self.header:
            self.header, kind = self.columns_of(cells, number) or [], HEADER
        elif self.columns_of(cells) == self.header:
            kind = HEADER
        else:
            try:
                if line.count('"') % 2:
                    raise ValueError("a quote is not closed on its line")
                if ends_inside(line, cells[-1] if cells else ""):
                    raise ValueError("the file ends inside this line")
                self.add_row(number, cells)
            except ValueError as error:
                kind, reason = REJECT, str(error)
        self.ledger.add(Record(kind, number, 1, line[:MAX_TEXT_CHARS].rstrip("\r\n"), [], reason))

    def refuse_empty(self) -> NoReturn:
        """Refuse a file without a single valid row."""
        reason = self.ledger.first_reason or "there is no line below its header"
        raise BrokenInputError(f"the file has no {self.content}; {reason}; see: profsvc formats {self.name}")
