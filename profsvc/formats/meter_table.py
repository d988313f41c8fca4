"""Delimited tables of meters, read in two walks: the first finds out what the second needs to know."""

from collections.abc import Iterator, Sequence
from typing import BinaryIO

import numpy as np

from profsvc.formats.meter_blocks import Plan, parse
from profsvc.formats.meter_lines import Layout, Style, records
from profsvc.formats.meter_survey import Survey, survey_of
from profsvc.formats.meter_time import Time
from profsvc.formats.ncu import Ledger
from profsvc.formats.ncu_lines import REJECT, ROW, TEXT_LIMIT
from profsvc.formats.numbers import NumberFormat, Numbers
from profsvc.formats.readings import Channel, Rows, channel, clock_fact
from profsvc.formats.stream import Text
from profsvc.formats.turns import Split
from profsvc.tables import Batch


def _chosen(survey: Survey, split: Split) -> tuple[list[int], list[Channel], list[str]]:
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


def _plan(
    layout: Layout, time: Time, places: Sequence[int], split: Split, number_format: NumberFormat, style: Style
) -> Plan | None:
    """Return how blocks of rows may be read at once; None if they may not."""
    every = {*layout.times.places, *places}
    if not places or layout.times.millisecond is not None or (style.is_note and len(every) < len(layout.header)):
        return None
    return Plan(
        *(layout.sign, layout.width, layout.times.places, time.counts, tuple(places), tuple(split.roles)),
        number_format.decimal,
        spare=layout.spare,
        least=layout.least,
    )


def read_table(stream: BinaryIO, style: Style) -> Iterator[Batch]:
    """Read a file of one table in two walks: its number format and the order of its dates are known only at its end."""
    with Text(stream) as text:
        survey = survey_of(text, style)
        number_format = survey.evidence.decide()
        layout, ledger = survey.layout, Ledger()
        split = survey.turns.decide()
        places, channels, left = _chosen(survey, split)
        every = [] if split.roles else channels
        readings = Rows(every, Numbers(number_format), layout.line if layout else None, style.missing)
        order = survey.order()
        label = layout.header[layout.times.places[0]] if layout else ""
        time = Time(layout.times, survey.first, survey.first_line, order, label) if layout and survey.first else None
        plan = _plan(layout, time, places, split, number_format, style) if layout and time else None

        def take(block: bytes, line: int, _: Layout) -> int:
            part = parse(block, plan) if plan else None
            stamps = time.block(part) if part and time else None
            if part is None or stamps is None or time is None:
                return 0
            values = np.column_stack(part.numbers)
            owners = split.owners_of(part.texts, channels, every) if split.roles else None
            if not readings.add_block(line, *stamps, values, owners):
                return 0
            time.passed(part, stamps[1])
            ledger.stored += part.rows
            return part.rows

        for record, _ in records(text, style, take):
            if not isinstance(record, int):
                if record.kind == ROW:
                    stamp = time.read(record.cells) if time else None
                    if stamp is None:
                        shown = layout.times.text(record.cells)[:40] if layout else ""
                        record = record._replace(kind=REJECT, reason=f"its time {shown!r} cannot be read")
                    else:
                        owned = split.owners(record.cells, channels, every)
                        readings.add(record.line, stamp, survey.units.bare(places, record.cells), owned)
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
        if readings.count and not channels:
            message = f"no samples: no column holds numbers alone; left out: {', '.join(left)[:TEXT_LIMIT]}"
        yield ledger.batch(readings.last(), facts, message)
