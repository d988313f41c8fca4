"""Lines of delimited tables of meters: which column is the clock, which are channels, and what stands around the table.

A format gives `Style.layout`, which makes a `Layout` of the cells of its header, or None for any other line. The lines
before the header are a preamble, repeats of the header and lines that `Style.is_note` knows are skipped; every other
line is a row with a time, or rejected with the reason.
"""

import csv
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache

from profsvc.errors import BrokenInputError, wrong_cell_count
from profsvc.formats.columnar.line_blocks import read_numbered
from profsvc.formats.parsing.head import may_be_header
from profsvc.formats.parsing.numbers import NOT_NUMBERS
from profsvc.formats.parsing.records import HEADER, MAX_TEXT_CHARS, REJECT, ROW, SKIP, UNITS, Record
from profsvc.formats.parsing.text import Text, ends_inside
from profsvc.formats.parsing.trailing_cells import TrailingCells, named_width
from profsvc.formats.timeseries.clock_names import titled_zone
from profsvc.formats.timeseries.labels import Channel, channel, unit_of
from profsvc.formats.timeseries.tables.blocks import BlockPlan, TableBlock, parse
from profsvc.formats.timeseries.tables.time_columns import TimeColumns, is_numeric

SEPARATORS = "\t;,"
MAX_CELLS = 5000
MAX_PREAMBLE_LINES = 200
MAX_CACHED_HEADERS = 32
CUT_AMONG_REJECTED = "the file ends inside this row, and no row above has the cells of the table"
BLOCK_BYTES, SMALL_BLOCK_BYTES = 2 << 20, 1 << 12
# Columns of remarks, whose empty cells LabVIEW and other programs omit.
REMARKS = {"comment", "comments", "note", "notes", "remark", "remarks", "bemerkung", "bemerkungen", "kommentar"}
# The last column of loggers such as EasyLog USB; it has a value in the first row alone, and the cell is absent below.
SERIAL_NUMBERS = {"serial number", "serial no", "serial no.", "serial", "s/n"}
# Graphtec prints a sign, and then the number in a field of fixed width.
_SPACED_SIGN = re.compile(r'(^|[\t;,"]) *([-+]) +(?=[.0-9])')
_DECIMAL_COMMA = re.compile(r"(?<=[0-9]),(?=[0-9])")


def is_serial_number(name: str) -> bool:
    """Tell whether a column names the logger of a table, and is no reading."""
    return name.strip().lower() in SERIAL_NUMBERS


def split_row(line: str, sign: str) -> list[str]:
    """Split a line at ``sign`` into cells without quotes and outer spaces; an unclosed quote gives no cells.

    >>> split_row('"00:00:01";"0,5"', ";")
    ['00:00:01', '0,5']
    >>> split_row("1,+   24.9,-    0.5", ",")
    ['1', '+24.9', '-0.5']
    """
    line = line.rstrip("\r\n")
    if "+ " in line or "- " in line:
        line = _SPACED_SIGN.sub(r"\1\2", line)
    if line.count(sign) >= MAX_CELLS:
        return []
    if '"' not in line:
        return [cell.strip() for cell in line.split(sign)]
    if line.count('"') % 2:
        return []
    try:
        return [cell.strip() for cell in next(csv.reader([line], delimiter=sign, skipinitialspace=True), [])]
    except csv.Error:
        return []


def separator_of(line: str) -> str:
    """Return the separator of a header or of a row, in which a comma may mark decimals.

    >>> [separator_of(line) for line in ("Time;Power, total (W)", "0,1\\t21,5\\t22,25", "1,2;3,4", "1,2,3;4,5")]
    [';', '\\t', ';', ',']
    """
    bare = re.sub(r'"[^"]*"', "", line)
    others = [sign for sign in SEPARATORS[:-1] if sign in bare]
    decimals = any(all(len(_DECIMAL_COMMA.findall(cell)) < 2 for cell in bare.split(sign)) for sign in others)
    counted = _DECIMAL_COMMA.sub("", bare) if decimals else bare
    return max(SEPARATORS, key=lambda sign: (counted.count(sign), -SEPARATORS.index(sign)))


@dataclass(frozen=True)
class Layout:
    """Where the columns of a table stand; ``headless`` where its first line is a row already.

    ``fixed`` are the places whose units a row of units does not change; ``turns`` are those of columns that may tell of
    which GPU or sensor a row is, ``told`` those of which the user says it. Rows have ``spare`` empty cells behind them;
    those of the last columns, if these are ``skipped`` or of remarks, may be absent. The columns that the reader knows
    to hold no readings are ``left`` out. ``units`` is the row of units below the header.
    """

    sign: str
    header: tuple[str, ...]
    times: TimeColumns
    places: tuple[int, ...]
    channels: tuple[Channel, ...]
    line: int = 0
    headless: bool = False
    fixed: frozenset[int] = frozenset()
    turns: Mapping[int, str] = field(default_factory=dict)
    told: Mapping[int, str] = field(default_factory=dict)
    spare: int = 0
    skipped: frozenset[int] = frozenset()
    left: tuple[str, ...] = ()
    units: tuple[str, ...] = ()

    @property
    def least(self) -> int:
        """The minimum of cells in a row; with commas as separators all are required, because a comma may mark decimals.

        A serial number is never required.

        >>> Layout("\\t", ("t", "P", "Comment"), TimeColumns((0,), None), (1,), ()).least
        2
        >>> Layout(",", ("Logger", "Time", "Celsius", "Serial Number"), TimeColumns((1,), None), (2,), ()).least
        3
        """
        width = self.width
        if is_serial_number(self.header[width - 1]) and width - 1 not in {*self.places, *self.times.places}:
            width -= 1
        while width > 1 and self.sign != "," and width - 1 not in self.times.places:
            is_remark = self.header[width - 1].lower() in REMARKS
            if not is_remark and width - 1 not in self.skipped:
                break
            width -= 1
        return width

    @property
    def width(self) -> int:
        """The number of columns that have a name, or that the user gives by number."""
        return max(named_width(self.header), *(place + 1 for place in self.fixed), 0)


@dataclass(frozen=True)
class TableFormat:
    """What a format says about its tables.

    ``refusal`` gives the words where no line is a header, if it must be one. ``any_header`` where also a line that
    begins as a row may be the header, because the user says so.
    """

    tool: str
    layout: Callable[[str, list[str]], Layout | None]
    is_note: Callable[[list[str]], bool] | None = None
    missing: Mapping[str, str] = field(default_factory=dict)
    refusal: Callable[[], str] | None = None
    any_header: bool = False


def layout_of(line: str, style: TableFormat) -> Layout | None:
    """Return the layout of ``line``; None if it is not a header."""
    if not (any(sign in line for sign in SEPARATORS) and (style.any_header or may_be_header(line))):
        return None
    sign, cells = _split_header(line)
    return style.layout(sign, list(cells))


# All readers of meters examine the same first lines.
@lru_cache(MAX_CACHED_HEADERS)
def _split_header(line: str) -> tuple[str, tuple[str, ...]]:
    sign = separator_of(line)
    return sign, tuple(split_row(line, sign))


def _units_row(layout: Layout, cells: Sequence[str]) -> Layout | None:
    """Return the layout with the units of a row of units; None if ``cells`` are not such a row."""
    bare = [cell.strip("()[] ") for cell in cells]
    if len(cells) != len(layout.header) or any(is_numeric(cell) for cell in cells):
        return None
    if not any(unit_of(bare[place]) for place in layout.places):
        return None
    named = [
        channel(one.name, bare[place]) if unit_of(bare[place]) and place not in layout.fixed else one
        for place, one in zip(layout.places, layout.channels, strict=True)
    ]
    times = layout.times
    unit = unit_of(bare[times.places[0]])
    if times.unit is None and unit and unit.dimension == "time" and times.places[0] not in layout.fixed:
        times = replace(times, unit=bare[times.places[0]])
    return replace(layout, channels=tuple(named), times=times, units=tuple(cells))


def _is_remark(layout: Layout, cells: Sequence[str]) -> bool:
    """Tell whether a line has texts under the columns, and neither a time nor a number.

    The last line of HWiNFO names the device of each column.
    """
    if any(cell for place, cell in enumerate(cells) if place in layout.times.places):
        return False
    said = [cell for cell in cells if cell]
    return bool(said) and not any(cell.lower() in NOT_NUMBERS or cell[0] in "+-.,0123456789" for cell in said)


def _names_columns(layout: Layout, cells: Sequence[str]) -> bool:
    """Tell whether a line has a different name in each column, as the header of a table of results below a log has.

    The numbers below it are rows by their form, with a result where the log counts time.
    """
    if not cells or cells[0][:1] in "+-.0123456789":
        return False
    texts = [cell.lower() for cell in cells if not is_numeric(cell) and cell[:1] not in ("+", "-", ".")]
    whole = len(texts) == len(cells) == layout.width > 1 and all(texts)
    return whole and len(set(texts)) == len(texts) and NOT_NUMBERS.keys().isdisjoint(texts)


def _row(layout: Layout, spare: TrailingCells, number: int, line: str, cells: list[str]) -> Record:
    width, own = named_width(cells), cells[: layout.width]
    if ends_inside(line, own[-1] if own and len(cells) >= layout.least else ""):
        reason = "the file ends inside this row"
    elif len(cells) < layout.least or width > len(layout.header):
        shown = max(width, min(len(cells), layout.width))
        reason = f"{wrong_cell_count(shown, layout.width)}, so its values may be in wrong columns"
    else:
        reason = spare.reason(cells, number)
    filled = own + [""] * (len(layout.header) - len(own))
    return Record(REJECT if reason else ROW, number, 1, line[:MAX_TEXT_CHARS], [] if reason else filled, reason)


def _kind(
    layout: Layout, number: int, line: str, cells: list[str], style: TableFormat, begun: bool
) -> tuple[str, Layout]:
    if style.is_note is not None and style.is_note(cells):
        return SKIP, layout
    first = cells[0] if cells else ""
    cells = cells[: max(len(layout.header), named_width(cells))]
    if begun and _is_remark(layout, cells):
        return SKIP, layout
    if tuple(cells) == layout.header or not any(character.isdigit() for character in first):
        if tuple(cells) in (layout.header, layout.units):
            return HEADER, layout
        if not begun and (named := _units_row(layout, cells)):
            return UNITS, named
        if (other := layout_of(line, style)) is not None and not other.headless and other.header != layout.header:
            raise BrokenInputError(
                f"line {number} is the header of another table, but the file already has one on line {layout.line}; "
                "put each table into its own file"
            )
    return ROW, layout


def records(
    text: Text,
    style: TableFormat,
    plan_of: Callable[[Layout], BlockPlan | None],
    take: Callable[[bytes, TableBlock, int, Layout], int],
) -> Iterator[tuple[Record | int, Layout | None]]:
    """Sort the lines of a file into records, or into numbers of rows, each with the layout of its table.

    Blocks of lines below the first row are parsed as ``plan_of`` says and shown to ``take``, with the number of their
    first line and the layout: it returns how many rows it has taken at once, or 0 to leave them to the lines.
    """
    scanner = _Scanner(style)

    def plan() -> BlockPlan | None:
        return plan_of(scanner.layout) if scanner.begun and scanner.layout and not scanner.other else None

    def taken(block: bytes, part: TableBlock, number: int) -> int:
        rows = take(block, part, number, scanner.layout) if scanner.layout else 0
        if rows and scanner.layout:
            scanner.stored = True
            scanner.spare.settle(scanner.layout.spare)
        return rows

    blocks = text.blocks(BLOCK_BYTES, SMALL_BLOCK_BYTES)
    for found in read_numbered(blocks, plan, parse, taken, scanner.feed, SMALL_BLOCK_BYTES):
        yield found, scanner.layout


@dataclass
class _Scanner:
    """Sorts lines into records; ``other`` is the line that names the columns of another table below rows that count."""

    style: TableFormat
    layout: Layout | None = None
    begun: bool = False
    stored: bool = False
    rejected: bool = False
    spare: TrailingCells = field(default_factory=lambda: TrailingCells(0))
    zone: tuple[int | None, str] = (None, "")
    counts: bool = False
    other: int = 0

    def _note_zone(self, line: str) -> None:
        """Keep the time zone that a line above the table gives."""
        if (zone := titled_zone(line)) != (None, ""):
            self.zone = zone

    def feed(self, number: int, line: str) -> Record:
        layout, line = self.layout, line.removeprefix("\ufeff")  # of a file that was appended
        if not line.strip() or (layout is not None and line.lstrip().startswith("#")):
            return Record(SKIP, number, 1, line[:MAX_TEXT_CHARS], [])
        if layout is None:
            found = layout_of(line, self.style)
            self.layout = layout = replace(found, line=number) if found else None
            if layout is None:
                self._note_zone(line)
            elif layout.times.zone_s is None and self.zone != (None, ""):
                times = replace(layout.times, zone_s=self.zone[0], zone_name=layout.times.zone_name or self.zone[1])
                self.layout = layout = replace(layout, times=times)
            if layout is not None:
                self.spare = TrailingCells(layout.width, layout.sign)
            if layout is not None and layout.headless:
                return self._row(layout, number, line, split_row(line, layout.sign))
            return Record(HEADER if found else SKIP, number, 1, line[:MAX_TEXT_CHARS], [])
        cells = split_row(line, layout.sign)
        kind, self.layout = _kind(layout, number, line, cells, self.style, self.begun)
        if kind != ROW:
            self.other = 0 if kind == HEADER else self.other
            return Record(kind, number, 1, line[:MAX_TEXT_CHARS], [])
        if self.other:
            reason = f"it stands below line {self.other}, whose texts name other columns than the header"
            return Record(REJECT, number, 1, line[:MAX_TEXT_CHARS], [], reason)
        self.other = number if self.counts and _names_columns(layout, cells) else 0
        return self._row(layout, number, line, cells)

    def _row(self, layout: Layout, number: int, line: str, cells: list[str]) -> Record:
        self.begun = True
        record = _row(layout, self.spare, number, line, cells)
        self.counts = self.counts or (record.kind == ROW and is_numeric(layout.times.text(record.cells)))
        if record.kind == ROW and self.rejected and not self.stored and not line.endswith(("\n", "\r")):
            # A cut row with too many cells may have the right number of cells by chance.
            record = record._replace(kind=REJECT, cells=[], reason=CUT_AMONG_REJECTED)
        self.stored, self.rejected = self.stored or record.kind == ROW, self.rejected or record.kind == REJECT
        if layout.spare != (self.spare.count or 0):
            self.layout = replace(layout, spare=self.spare.count or 0)
        return record
