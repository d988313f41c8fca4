"""Delimited tables of meters, read in two passes: the first finds the number format and the order of dates."""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import BinaryIO, NamedTuple

import numpy as np
from numpy.typing import NDArray

from profsvc.formats.parsing.head import head_lines
from profsvc.formats.parsing.ledger import Ledger
from profsvc.formats.parsing.numbers import NumberFormat, Numbers
from profsvc.formats.parsing.records import MAX_TEXT_CHARS, REJECT, ROW, Record
from profsvc.formats.parsing.text import Text
from profsvc.formats.parsing.timestamps import LOCAL
from profsvc.formats.timeseries.clock_names import ZONE_NAME
from profsvc.formats.timeseries.dates import zone_named_in
from profsvc.formats.timeseries.labels import UNKNOWN, Channel, channel
from profsvc.formats.timeseries.readings import Rows, clock_metadata
from profsvc.formats.timeseries.tables.blocks import BlockPlan, TableBlock
from profsvc.formats.timeseries.tables.lines import Layout, TableFormat, layout_of, records
from profsvc.formats.timeseries.tables.multiplexed import RowKeys
from profsvc.formats.timeseries.tables.survey import Survey, survey_of
from profsvc.formats.timeseries.tables.time_columns import RowTimes
from profsvc.tables import Batch

STATE = "state"
_NAMED_STATE = re.compile(r"\s*[\[(][^\])]*[\])]\s*$")


def delimited_reader(
    tool: str,
    layout: Callable[[str, list[str]], Layout | None],
    max_head_lines: int = 1,
    is_note: Callable[[list[str]], bool] | None = None,
    missing: Mapping[str, str] | None = None,
) -> tuple[Callable[[bytes], bool], Callable[[BinaryIO], Iterator[Batch]]]:
    """Return ``sniff`` and ``read`` of a format whose files are one table, as `TableFormat` describes it."""
    style = TableFormat(tool, layout, is_note, missing or {})

    def sniff(head: bytes) -> bool:
        return any(layout_of(line, style) for line in head_lines(head, max_head_lines))

    return sniff, partial(read_table, style=style)


class _Selected(NamedTuple):
    """The places and channels with numbers, states or a unit, and the names of the columns that are left out.

    ``states`` has the numbers for the texts of each place with states.
    """

    places: list[int]
    channels: list[Channel]
    states: dict[int, dict[str, str]]
    left: list[str]

    def cells(self, bare: list[str]) -> list[str]:
        """Return the cells of a row with numbers for states."""
        for n, place in enumerate(self.places) if self.states else ():
            if place in self.states:
                bare[n] = self.states[place].get(bare[n].lower(), bare[n])
        return bare

    def values(self, part: TableBlock) -> NDArray[np.float64] | None:
        """Return the numbers of a block by row and column; None if a column of states has another text."""
        numbers = iter(part.numbers)
        columns = []
        for place in self.places:
            if place not in self.states:
                columns.append(next(numbers))
                continue
            known = [self.states[place].get(text.strip().lower(), "") for text in part.texts[place].distinct]
            if not all(known):
                return None
            columns.append(np.array(known, np.float64)[part.texts[place].codes])
        return np.array(columns).T  # columns are contiguous


def _select_columns(survey: Survey, split: RowKeys) -> _Selected:
    layout = survey.layout
    places, channels, left = [], [], [*layout.left] if layout else []
    all_states = dict[int, dict[str, str]]()
    for place, one in zip(layout.places, layout.channels, strict=True) if layout else ():
        if place in split.roles:
            continue
        token = survey.units.tokens.get(place)
        if token and layout and place not in layout.fixed:
            one = replace(channel(one.name, token), gpu=one.gpu)
        states = survey.states(place) if one.unit == UNKNOWN else {}
        if states:
            all_states[place] = states
            one = replace(one, name=_NAMED_STATE.sub("", one.name), quantity=STATE, unit="1", note="")
        if states or place in survey.numeric or one.unit != UNKNOWN:
            places.append(place)
            channels.append(one)
        else:
            left.append(one.name)
    return _Selected(places, channels, all_states, left)


def _plan(
    layout: Layout,
    time: RowTimes,
    selected: _Selected,
    split: RowKeys,
    number_format: NumberFormat,
    style: TableFormat,
) -> BlockPlan | None:
    """Return how blocks of rows are parsed; None if rows must be parsed one by one."""
    every = {*layout.times.places, *selected.places}
    if not selected.places or layout.times.fraction is not None or (style.is_note and len(every) < len(layout.header)):
        return None
    numbers = tuple(place for place in selected.places if place not in selected.states)
    texts = tuple(sorted({*split.roles, *selected.states}))
    return BlockPlan(
        *(layout.sign, layout.width, layout.times.places, time.counts, numbers, texts),
        number_format.decimal,
        spare=layout.spare,
        least=layout.least,
    )


class _TableRows:
    """The readings and the ledger of a table, whose columns, number format and clock the first pass found."""

    def __init__(self, survey: Survey, style: TableFormat) -> None:
        self.ledger = Ledger()
        self.plan: BlockPlan | None = None
        self._survey, self._style, self._layout = survey, style, survey.layout
        self._number_format = survey.evidence.decide()
        self._split = survey.turns.decide()
        self._selected = _select_columns(survey, self._split)
        self._every = [] if self._split.roles else self._selected.channels
        self._order = survey.order()
        self._time: RowTimes | None = None
        layout, numbers = survey.layout, Numbers(self._number_format)
        self.readings = Rows(self._every, numbers, layout.line if layout else None, style.missing)
        if layout and survey.first:
            label = layout.header[layout.times.places[0]]
            self._time = RowTimes(layout.times, survey.first, survey.first_line, self._order, label)
            self.plan = _plan(layout, self._time, self._selected, self._split, self._number_format, style)

    def add_block(self, _: bytes, part: TableBlock, line: int, __: Layout) -> int:
        """Add the rows of a block; return how many, 0 if they must be added one by one."""
        if self._time is None or (stamps := self._time.block(part)) is None:
            return 0
        values = self._selected.values(part)
        if values is None:
            return 0
        channels, split = self._selected.channels, self._split
        owners = split.owners_of(part.texts, channels, self._every) if split.roles else None
        if not self.readings.add_block(line, *stamps, values, owners):
            return 0
        self._time.passed(part, stamps[1])
        self.ledger.stored += part.rows
        return part.rows

    def add(self, record: Record) -> None:
        """Add a record; a row whose time cannot be read is rejected."""
        if record.kind == ROW:
            stamp = self._time.read(record.cells) if self._time else None
            if stamp is None:
                shown = self._layout.times.text(record.cells)[:40] if self._layout else ""
                record = record._replace(kind=REJECT, reason=f"time {shown!r} cannot be read")
            else:
                selected = self._selected
                owners = self._split.owners(record.cells, selected.channels, self._every)
                bare = self._survey.units.bare(selected.places, record.cells)
                self.readings.add(record.line, stamp, selected.cells(bare), owners)
        self.ledger.add(record)

    def facts(self, encoding: str) -> dict[str, str]:
        """Return what the whole file says of itself, in an encoding."""
        layout, roles = self._layout, self._split.roles
        return {
            "tool": self._style.tool,
            "encoding": encoding,
            "number_format": str(self._number_format),
            **clock_metadata(self.readings.first),
            **({"date_order": self._order} if self._survey.dates.shown else {}),
            **({"told_apart_by": ", ".join(layout.header[n] for n in roles)} if layout and roles else {}),
            **({"columns_left_out": self._left_out()} if self._selected.left else {}),
        }

    def message(self) -> str:
        """Return why there are no samples, or which columns gave none; empty if all did."""
        if not self.readings.count:
            return "no samples: the file has no complete row with a time; record or export it again"
        if not self._selected.channels:
            return f"no samples: no column has only numbers; left out: {self._left_out()}"
        left = f"columns without readings are left out: {self._left_out()}" if self._selected.left else ""
        return "; ".join(filter(None, (left, self._zone())))

    def _zone(self) -> str:
        """Return how to apply the time zone that the file only names; empty if there is none to apply."""
        first, name = self.readings.first, self._layout.times.zone_name if self._layout else ""
        name = name or zone_named_in(self._survey.first or "")
        if not name or first is None or first.kind != LOCAL:
            return ""
        known = ZONE_NAME.search(name)
        zone = known[0] if known else "with its name, such as Europe/Berlin"
        return f"the file says that its time zone is {name}, which is not applied; add --timezone {zone}"

    def _left_out(self) -> str:
        return ", ".join(self._selected.left)[:MAX_TEXT_CHARS]


def read_table(stream: BinaryIO, style: TableFormat) -> Iterator[Batch]:
    """Read a file of one table in two passes, because its number format and date order are known only at its end."""
    with Text(stream) as text:
        rows = _TableRows(survey_of(text, style), style)
        for record, _ in records(text, style, lambda _: rows.plan, rows.add_block):
            if not isinstance(record, int):
                rows.add(record)
            if rows.readings.full or rows.ledger.full:
                yield rows.ledger.batch(rows.readings.take())
        yield rows.ledger.batch(rows.readings.last(), rows.facts(text.encoding), rows.message())
