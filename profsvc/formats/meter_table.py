"""Delimited tables of meters: which column is the clock, which are channels, and the lines around the table.

A format gives `Style.layout`, which makes a `Layout` of the cells of its header, or None for any other line. The lines
before the header are a preamble, repeats of the header and lines that `Style.is_note` knows are skipped; every other
line is a row with a time, or rejected with the reason.
"""

import csv
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import BinaryIO

from profsvc.errors import BrokenInputError
from profsvc.formats.cell_units import CellUnits
from profsvc.formats.clock import EPOCH_UNITS, LOCAL, SECOND, UTC
from profsvc.formats.head import may_be_header
from profsvc.formats.meter_clock import ELAPSED, Clock, DateEvidence, Stamp, count_ns, epoch_unit, numeric_date
from profsvc.formats.ncu import Ledger, numbered
from profsvc.formats.ncu_lines import HEADER, REJECT, ROW, SKIP, TEXT_LIMIT, UNITS, Record
from profsvc.formats.numbers import Evidence, Numbers
from profsvc.formats.readings import ADVICE, Channel, Rows, channel, clock_fact, unit_of
from profsvc.formats.stream import Text
from profsvc.formats.turns import Split, Turns
from profsvc.tables import Batch

SIGNS = "\t;,"
MOST_CELLS = 5000
PREAMBLE_LINES = 200
HEADERS_KEPT = 32
DATES = ", or say which it is with --column: 'NAME=time:dmy' or 'NAME=time:mdy', NAME being the column of the date"
_NUMERIC = re.compile(r"\s*[-+]?[0-9][0-9.,'\u2019\u00a0\u202f\u2009]*(?:[eE][-+]?[0-9]+)?\s*|\s*[-+]?[.,][0-9]+\s*")
_INTEGER = re.compile(r"[-+]?[0-9]+")


def split_row(line: str, sign: str) -> list[str]:
    """Split a line at ``sign``, quotes undone and outer spaces gone; an odd quote gives no cells.

    >>> split_row('"00:00:01";"0,5"', ";")
    ['00:00:01', '0,5']
    """
    line = line.rstrip("\r\n")
    if line.count(sign) >= MOST_CELLS:
        return []
    if '"' not in line:
        return [cell.strip() for cell in line.split(sign)]
    if line.count('"') % 2:
        return []
    try:
        return [cell.strip() for cell in next(csv.reader([line], delimiter=sign, skipinitialspace=True), [])]
    except csv.Error:
        return []


def sign_of(line: str) -> str:
    """Return the sign that separates the cells of a header.

    >>> sign_of("Time;Power, total (W)")
    ';'
    """
    bare = re.sub(r'"[^"]*"', "", line)
    return max(SIGNS, key=lambda sign: (bare.count(sign), -SIGNS.index(sign)))


@dataclass(frozen=True)
class Times:
    """The columns of the clock: their places, and the unit where they count; None where dates may stand.

    ``zone_s`` is how far the dates are ahead of UTC, where the header says it, ``order`` that of their fields, where
    the user says it.
    """

    places: tuple[int, ...]
    unit: str | None = None
    millisecond: int | None = None
    zone_s: int | None = None
    order: str | None = None

    def text(self, cells: Sequence[str]) -> str:
        """Return the time of a row as one text."""
        text = " ".join(cells[place] for place in self.places)
        if self.millisecond is not None and (ms := cells[self.millisecond]).isdigit() and len(ms) < 4:
            text += f".{ms.zfill(3)}"
        return numeric_date(text)


@dataclass(frozen=True)
class Layout:
    """Where the columns of a table stand; ``headless`` where its first line is a row already.

    ``fixed`` are the places whose units a row of units does not change; ``turns`` are those of columns that may tell of
    which GPU or sensor a row is, ``told`` those of which the user says it.
    """

    sign: str
    header: tuple[str, ...]
    times: Times
    places: tuple[int, ...]
    channels: tuple[Channel, ...]
    line: int = 0
    headless: bool = False
    fixed: frozenset[int] = frozenset()
    turns: Mapping[int, str] = field(default_factory=dict)
    told: Mapping[int, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Style:
    """What a format says about its tables.

    ``refusal`` gives the words where no line is a header, if it must be one. ``any_header`` where also a line that
    begins as a row may be the header, because the user says so.
    """

    tool: str
    layout: Callable[[str, list[str]], Layout | None]
    is_note: Callable[[list[str]], bool] = lambda cells: False
    missing: Mapping[str, str] = field(default_factory=dict)
    refusal: Callable[[], str] | None = None
    any_header: bool = False


def layout_of(line: str, style: Style) -> Layout | None:
    """Return the layout of ``line`` if it is a header."""
    if not (any(sign in line for sign in SIGNS) and (style.any_header or may_be_header(line))):
        return None
    sign, cells = _split_header(line)
    return style.layout(sign, list(cells))


# Every reader of a meter looks at the same first lines.
@lru_cache(HEADERS_KEPT)
def _split_header(line: str) -> tuple[str, tuple[str, ...]]:
    sign = sign_of(line)
    return sign, tuple(split_row(line, sign))


def is_numeric(cell: str) -> bool:
    """Tell whether a cell may be a number in some locale."""
    return _NUMERIC.fullmatch(cell) is not None


def _units_row(layout: Layout, cells: Sequence[str]) -> Layout | None:
    """Return the layout with the units of a row of units; None if ``cells`` are none."""
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
    return replace(layout, channels=tuple(named), times=times)


def _row(layout: Layout, number: int, line: str, cells: list[str]) -> Record:
    needed = len(layout.header)
    while len(cells) > needed and not cells[-1]:
        cells.pop()
    reason = ""
    if not line.endswith("\n"):
        reason = "the file ends inside this row"
    elif len(cells) != needed:
        reason = f"it has {len(cells)} cells but needs {needed}, so its values cannot be told apart"
    return Record(REJECT if reason else ROW, number, 1, line[:TEXT_LIMIT], [] if reason else cells, reason)


def records(text: Text, style: Style) -> Iterator[tuple[Record, Layout | None]]:
    """Sort the lines of a file into records, each with the layout of its table."""
    layout: Layout | None = None
    begun = False
    for number, line in numbered(text):
        if not line.strip() or (layout is not None and line.lstrip().startswith("#")):
            yield Record(SKIP, number, 1, line[:TEXT_LIMIT], []), layout
        elif layout is None:
            found = layout_of(line, style)
            layout = replace(found, line=number) if found else None
            if layout is not None and layout.headless:
                begun = True
                yield _row(layout, number, line, split_row(line, layout.sign)), layout
            else:
                yield Record(HEADER if found else SKIP, number, 1, line[:TEXT_LIMIT], []), layout
        else:
            cells = split_row(line, layout.sign)
            kind, layout = _kind(layout, number, line, cells, style, begun)
            begun |= kind == ROW
            record = (
                Record(kind, number, 1, line[:TEXT_LIMIT], []) if kind != ROW else _row(layout, number, line, cells)
            )
            yield record, layout


def _kind(layout: Layout, number: int, line: str, cells: list[str], style: Style, begun: bool) -> tuple[str, Layout]:
    if style.is_note(cells):
        return SKIP, layout
    first = cells[0] if cells else ""
    while len(cells) > len(layout.header) and not cells[-1]:
        cells.pop()
    if tuple(cells) == layout.header or not any(character.isdigit() for character in first):
        if tuple(cells) == layout.header:
            return HEADER, layout
        if not begun and (named := _units_row(layout, cells)):
            return UNITS, named
        if (other := layout_of(line, style)) is not None and not other.headless and other.header != layout.header:
            raise BrokenInputError(
                f"line {number} is the header of another table, but the file already has one on line {layout.line}; "
                "put each table into its own file"
            )
    return ROW, layout


@dataclass
class _Survey:
    """What the first walk over a file finds out."""

    evidence: Evidence = field(default_factory=lambda: Evidence(advice=ADVICE))
    dates: DateEvidence = field(default_factory=lambda: DateEvidence(advice=DATES))
    layout: Layout | None = None
    first: str | None = None
    first_line: int = 0
    numeric: set[int] = field(default_factory=set)
    turns: Turns = field(default_factory=Turns)
    units: CellUnits = field(default_factory=CellUnits)
    has_header: bool = False
    has_point: bool = False
    wide: int = 0

    def reject(self, record: Record, layout: Layout) -> None:
        """Keep where a row of numbers has more cells than the header: commas may mark decimals in it."""
        cells = split_row(record.text, layout.sign)
        readings = [cell for place, cell in enumerate(cells) if cell and place not in layout.times.places]
        if layout.sign == "," and len(cells) > len(layout.header) and readings and all(map(is_numeric, readings)):
            self.wide = self.wide or record.line

    def add(self, record: Record, layout: Layout) -> None:
        if self.layout is None:
            self.turns.begin(layout.turns, layout.told)
        self.layout = layout
        cells = record.cells
        self.turns.add(cells)
        self.has_point = self.has_point or any("." in cell for cell in cells)
        readings = []
        for place in layout.places:
            is_number = is_numeric(cells[place])
            if is_number and place not in self.numeric:
                self.numeric.add(place)
            readings.append(cells[place] if is_number else self.units.see(place, cells[place]))
        self.evidence.add([cell for cell in readings if not cell.isdigit()], record.line)
        text = layout.times.text(cells)
        self.dates.add(text, record.line)
        if self.first is None and text:
            self.first, self.first_line = text, record.line

    def order(self) -> str:
        """Return the order of the fields of the dates, which the user or the dates tell."""
        said = self.layout.times.order if self.layout else None
        return self.dates.agree(said) if said else self.dates.decide()


class Time:
    """Reads the time of each row: dates and times, or a count whose unit the header or its size tells."""

    def __init__(self, times: Times, first: str, line: int, order: str) -> None:
        """Decide by the first time of the file how all are read."""
        self._times, self._clock, self.kind, self._unit_ns = times, Clock(order), ELAPSED, 0
        if not is_numeric(first):
            return
        epoch = epoch_unit(first)
        unit = unit_of(times.unit) if times.unit else None
        if unit is None and epoch is None:
            raise BrokenInputError(
                f"line {line}: the time {first!r} is a number without a unit, and no epoch; "
                "name the unit in the header, such as Time (s), or with --column 'NAME=time:s'"
            )
        self._unit_ns = round(unit.factor * 1e9) if unit else EPOCH_UNITS[epoch or "s"]
        is_epoch = epoch is not None and self._unit_ns == EPOCH_UNITS[epoch]
        self.kind = UTC if is_epoch else ELAPSED

    def read(self, cells: Sequence[str]) -> Stamp | None:
        """Return the time of a row; None if it cannot be read."""
        text = self._times.text(cells)
        if not self._unit_ns:
            stamp = self._clock.read(text)
            if stamp is None or stamp.kind != LOCAL or self._times.zone_s is None:
                return stamp
            return Stamp(UTC, stamp.ns - self._times.zone_s * SECOND)
        ns = count_ns(text.strip(), self._unit_ns)
        return Stamp(self.kind, ns) if ns is not None else None


def _survey(text: Text, style: Style) -> _Survey:
    survey = _Survey()
    for record, layout in records(text, style):
        survey.has_header |= layout is not None
        if record.kind == ROW and layout is not None:
            survey.add(record, layout)
        elif record.kind == REJECT and layout is not None:
            survey.reject(record, layout)
    if survey.wide and not survey.has_point:
        raise BrokenInputError(
            f"line {survey.wide} has more numbers than the header has columns, and no number of the file has a decimal "
            f"point, as if commas marked decimals; {ADVICE}"
        )
    if style.refusal is not None and not survey.has_header:
        raise BrokenInputError(style.refusal())
    return survey


def _chosen(survey: _Survey, split: Split) -> tuple[list[int], list[Channel], list[str]]:
    """Return the places and channels that hold numbers or have a unit, and the names of the other columns."""
    places, channels, left = [], [], []
    layout = survey.layout
    for place, one in zip(layout.places, layout.channels, strict=True) if layout else ():
        if place in split.roles:
            continue
        token = survey.units.tokens.get(place)
        if token and layout and place not in layout.fixed:
            one = channel(one.name, token)
        if place in survey.numeric or one.unit != "unknown":
            places.append(place)
            channels.append(one)
        else:
            left.append(one.name)
    return places, channels, left


def read_table(stream: BinaryIO, style: Style) -> Iterator[Batch]:
    """Read a file of one table in two walks: its number format and the order of its dates are known only at its end."""
    with Text(stream) as text:
        survey = _survey(text, style)
        number_format = survey.evidence.decide()
        layout, ledger = survey.layout, Ledger()
        split = survey.turns.decide()
        places, channels, left = _chosen(survey, split)
        every = [] if split.roles else channels
        readings = Rows(every, Numbers(number_format), layout.line if layout else None, style.missing)
        order = survey.order()
        time = Time(layout.times, survey.first, survey.first_line, order) if layout and survey.first else None
        for record, _ in records(text, style):
            if record.kind == ROW:
                stamp = time.read(record.cells) if time else None
                if stamp is None:
                    shown = layout.times.text(record.cells)[:40] if layout else ""
                    record = record._replace(kind=REJECT, reason=f"its time {shown!r} cannot be read")
                else:
                    owners = split.owners(record.cells, channels, every)
                    readings.add(record.line, stamp, survey.units.bare(places, record.cells), owners)
            ledger.take(record)
            if readings.full or ledger.full:
                yield ledger.batch(readings.take())
        facts = {
            "tool": style.tool,
            "encoding": text.encoding,
            "number_format": str(number_format),
            **clock_fact(readings.first),
            **({"date_order": order} if survey.dates.shown else {}),
            **({"told_apart_by": ", ".join(layout.header[n] for n in split.roles)} if layout and split.roles else {}),
            **({"columns_left_out": ", ".join(left)[:TEXT_LIMIT]} if left else {}),
        }
        message = (
            "" if readings.count else "no samples: the file holds no whole row with a time; record or export again"
        )
        yield ledger.batch(readings.last(), facts, message)
