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
from profsvc.formats.parsing.records import MAX_TEXT_CHARS, REJECT, ROW
from profsvc.formats.parsing.text import Text
from profsvc.formats.timeseries.labels import UNKNOWN, Channel, channel
from profsvc.formats.timeseries.multiplexed import RowKeys
from profsvc.formats.timeseries.readings import Rows, clock_metadata
from profsvc.formats.timeseries.table_blocks import BlockPlan, TableBlock
from profsvc.formats.timeseries.table_lines import Layout, TableFormat, layout_of, records
from profsvc.formats.timeseries.table_survey import Survey, survey_of
from profsvc.formats.timeseries.time_columns import RowTimes
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
            one = channel(one.name, token)
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


def read_table(stream: BinaryIO, style: TableFormat) -> Iterator[Batch]:
    """Read a file of one table in two passes, because its number format and date order are known only at its end."""
    with Text(stream) as text:
        survey = survey_of(text, style)
        number_format = survey.evidence.decide()
        layout, ledger = survey.layout, Ledger()
        split = survey.turns.decide()
        selected = _select_columns(survey, split)
        places, channels, left = selected.places, selected.channels, selected.left
        every = [] if split.roles else channels
        readings = Rows(every, Numbers(number_format), layout.line if layout else None, style.missing)
        order = survey.order()
        label = layout.header[layout.times.places[0]] if layout else ""
        time = (
            RowTimes(layout.times, survey.first, survey.first_line, order, label) if layout and survey.first else None
        )
        plan = _plan(layout, time, selected, split, number_format, style) if layout and time else None

        def take(_: bytes, part: TableBlock, line: int, __: Layout) -> int:
            stamps = time.block(part) if time else None
            if stamps is None or time is None:
                return 0
            values = selected.values(part)
            if values is None:
                return 0
            owners = split.owners_of(part.texts, channels, every) if split.roles else None
            if not readings.add_block(line, *stamps, values, owners):
                return 0
            time.passed(part, stamps[1])
            ledger.stored += part.rows
            return part.rows

        for record, _ in records(text, style, lambda _: plan, take):
            if not isinstance(record, int):
                if record.kind == ROW:
                    stamp = time.read(record.cells) if time else None
                    if stamp is None:
                        shown = layout.times.text(record.cells)[:40] if layout else ""
                        record = record._replace(kind=REJECT, reason=f"time {shown!r} cannot be read")
                    else:
                        owned = split.owners(record.cells, channels, every)
                        readings.add(record.line, stamp, selected.cells(survey.units.bare(places, record.cells)), owned)
                ledger.add(record)
            if readings.full or ledger.full:
                yield ledger.batch(readings.take())
        facts = {
            "tool": style.tool,
            "encoding": text.encoding,
            "number_format": str(number_format),
            **clock_metadata(readings.first),
            **({"date_order": order} if survey.dates.shown else {}),
            **({"told_apart_by": ", ".join(layout.header[n] for n in split.roles)} if layout and split.roles else {}),
            **({"columns_left_out": ", ".join(left)[:MAX_TEXT_CHARS]} if left else {}),
        }
        message = (
            "" if readings.count else "no samples: the file has no complete row with a time; record or export it again"
        )
        if readings.count and not channels:
            message = f"no samples: no column has only numbers; left out: {', '.join(left)[:MAX_TEXT_CHARS]}"
        elif readings.count and left:
            message = f"columns without readings are left out: {', '.join(left)[:MAX_TEXT_CHARS]}"
        yield ledger.batch(readings.last(), facts, message)
