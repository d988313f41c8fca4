"""Lines of a LabVIEW measurement file: header keys, column names, rows, special blocks."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, TypeVar

from profsvc.errors import wrong_cell_count
from profsvc.formats.columnar.line_blocks import read_numbered
from profsvc.formats.parsing.records import HEADER, MAX_TEXT_CHARS, REJECT, ROW, SKIP, Record
from profsvc.formats.parsing.text import Text, ends_inside
from profsvc.formats.timeseries.tables.lines import split_row

COLUMNS = "X_Value"
COMMENT = "Comment"
HEADER_END = "***End_of_Header***"
SPECIAL_BEGINS, SPECIAL_ENDS = "***Start_Special***", "***End_Special***"
SEPARATORS = {"tab": "\t", "comma": ",", "semicolon": ";"}
DECIMALS = (",", ".")
BLOCK_BYTES, SMALL_BLOCK_BYTES = 1 << 20, 1 << 14


@dataclass(frozen=True)
class Segment:
    """A header and the rows below it: its keys, its columns and the places of X and Y."""

    line: int
    columns: tuple[str, ...]
    keys: Mapping[str, Sequence[str]]
    x_places: tuple[int, ...]
    y_places: tuple[int, ...]
    decimal: str

    def values(self, key: str) -> list[str]:
        """Return the values of a key, one per channel, without the empty cells of X columns."""
        return [cell for cell in self.keys.get(key, ()) if cell]

    def comment(self, cells: Sequence[str]) -> str:
        """Return the comment of a row."""
        place = len(self.columns) - 1
        return cells[place][:80] if self.columns[place] == COMMENT and len(cells) > place else ""


@dataclass
class _Scanner:
    """Sorts lines into records."""

    keys: dict[str, list[str]] = field(default_factory=dict)
    file_keys: dict[str, list[str]] = field(default_factory=dict)
    sign: str = "\t"
    segment: Segment | None = None
    special: bool = False
    in_header: bool = True

    def feed(self, number: int, line: str) -> Record:
        if self.special or line.startswith(SPECIAL_BEGINS):
            self.special = not line.startswith(SPECIAL_ENDS)
            return Record(SKIP, number, 1, line[:MAX_TEXT_CHARS], [])
        cells = split_row(line, self.sign)
        if not any(cells):
            # A blank line ends the rows; another header may follow.
            return Record(SKIP, number, 1, line[:MAX_TEXT_CHARS], [])
        first = cells[0]
        if first == COLUMNS:
            self.segment = self._segment(number, cells)
            self.in_header = False
            return Record(HEADER, number, 1, line[:MAX_TEXT_CHARS], [])
        if self._is_key(cells) or first.startswith(HEADER_END) or line.startswith("LabVIEW Measurement"):
            self._key(cells, first)
            return Record(SKIP, number, 1, line[:MAX_TEXT_CHARS], [])
        if self.segment is None or self.in_header:
            return Record(REJECT, number, 1, line[:MAX_TEXT_CHARS], [], "the line precedes the line of columns")
        return self._row(number, line, cells)

    def _is_key(self, cells: Sequence[str]) -> bool:
        return self.in_header or cells[0] == "Channels"

    def _key(self, cells: list[str], first: str) -> None:
        if not self.in_header:
            self.in_header, self.keys = True, {}
        if first.startswith(HEADER_END):
            # The first header is that of the file; headers of segments follow.
            if not self.file_keys:
                self.file_keys, self.keys = self.keys, {}
            return
        self.keys[first] = cells[1:]
        if first == "Separator" and cells[1:2]:
            self.sign = SEPARATORS.get(cells[1].lower(), self.sign)
        elif first == "Separator,Comma":
            self.sign = ","

    def _segment(self, line: int, cells: list[str]) -> Segment:
        while len(cells) > 2 and not cells[-1]:
            cells.pop()
        keys = {**self.file_keys, **self.keys}
        x_places = [place for place, cell in enumerate(cells) if cell == COLUMNS]
        last = len(cells) - (cells[-1] == COMMENT)
        y_places = tuple(place for place in range(last) if place not in x_places)
        mode = "".join(keys.get("X_Columns", [""])[:1]).lower()
        if mode == "no":
            x_places = []
        elif len(x_places) != len(y_places):
            x_places = x_places[:1]
        decimal = "".join(keys.get("Decimal_Separator", [""])[:1])
        return Segment(line, tuple(cells), keys, tuple(x_places), y_places, decimal if decimal in DECIMALS else "")

    @property
    def in_rows(self) -> bool:
        """Whether the next line may be a row."""
        return self.segment is not None and not self.in_header and not self.special

    def _row(self, number: int, line: str, cells: list[str]) -> Record:
        segment = self.segment
        assert segment is not None
        needed = max((*segment.y_places, *segment.x_places), default=0) + 1
        most = len(segment.columns)
        while len(cells) > most and not cells[-1]:
            cells.pop()
        reason = ""
        if not needed <= len(cells) <= most:
            cut = "" if line.endswith("\n") else "the file ends inside this row: "
            reason = f"{cut}{wrong_cell_count(len(cells), needed if needed == most else f'{needed} to {most}')}"
        elif ends_inside(line, cells[needed - 1]):
            reason = "the file ends inside this row"
        return Record(REJECT if reason else ROW, number, 1, line[:MAX_TEXT_CHARS], [] if reason else cells, reason)


P = TypeVar("P")


class BlockPlan(NamedTuple):
    """How a block of rows is parsed: its segment, the separator of cells, and the decimal separator."""

    segment: Segment
    sign: str
    decimal: str


def records(
    text: Text, decimal: Callable[[], str], parse: Callable[[bytes, BlockPlan], P | None], take: Callable[[P, int], int]
) -> Iterator[tuple[Record | int, Segment | None]]:
    """Sort the lines of a file into records, each with the segment it belongs to, or into numbers of rows.

    Blocks of lines below a line of columns are parsed with the separator ``decimal``, where it is known, and shown to
    ``take``, with the number of their first line: it returns how many rows it has taken at once, or 0 to leave them.
    """
    scanner = _Scanner()

    def plan() -> BlockPlan | None:
        known = decimal()
        return (
            BlockPlan(scanner.segment, scanner.sign, known) if known and scanner.segment and scanner.in_rows else None
        )

    def taken(_: bytes, part: P, number: int) -> int:
        return take(part, number)

    blocks = text.blocks(BLOCK_BYTES, SMALL_BLOCK_BYTES)
    for found in read_numbered(blocks, plan, parse, taken, scanner.feed, SMALL_BLOCK_BYTES):
        yield found, scanner.segment
