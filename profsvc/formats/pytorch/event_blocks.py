"""Blocks of the events of a PyTorch trace at once: msgspec parses them, and whole columns are made of what it finds.

A block is read so only if each value that is asked for is of a kind that it may have; any other is left to the events.
Events are parsed and asked for their values in pieces that the caches of a processor hold.
"""

from __future__ import annotations

from collections import Counter
from itertools import compress
from typing import Any, NamedTuple

import numpy as np

from profsvc.formats.columnar.json_objects import parse_pieces
from profsvc.formats.columnar.line_blocks import Columns, IrregularBlockError, require_plain
from profsvc.formats.parsing.timestamps import MAX_NS, Flags, Int64s
from profsvc.formats.pytorch.event_columns import TABLE_READERS, Devices, Rows
from profsvc.formats.pytorch.event_times import NUMERIC, PRINTED, Times
from profsvc.formats.pytorch.event_values import NO_ARGUMENTS, Event, Values, new_values
from profsvc.formats.pytorch.events import BEGIN, COUNTERS, KINDS, is_ignored
from profsvc.formats.pytorch.other_tools import PTI_CATEGORY
from profsvc.formats.pytorch.xla import gpu_index
from profsvc.formats.rocm.rocprof_v1_tables import SECTIONS
from profsvc.tables.on_demand import pa

_TABLES = {"kernel": "launches", "copy": "transfers", "set": "transfers", "call": "api_calls", "range": "ranges"}
# The number of the table of a skipped event.
_NO_TABLE = len(TABLE_READERS)
# By the number of a table, what turns numbers of tables to whether they are this.
_IS_NUMBER = [bytes(other == number for other in range(256)) for number in range(_NO_TABLE)]
_LINE_END = ord("\n")


class ParsedEvents(NamedTuple):
    """The events of a block: their first and last lines, which are stored, and the columns by tidy table.

    ``size`` is in characters, with ``line_ends`` among them. Lines, also the column ``line``, count from the first
    event; launches from the first launch of the block. ``passed`` counts the skipped events by category.
    """

    size: int
    line_ends: int
    first_lines: Int64s
    last_lines: Int64s
    taken: Flags
    tables: dict[str, Columns]
    passed: Counter[str]


def parse(text: str, base: int, devices: Devices) -> ParsedEvents | None:
    """Return the complete events at the beginning of ``text``; None if an event is irregular.

    ``base`` is added to the starts, in ns; ``devices`` are the names and compute capabilities by index.
    """
    if abs(base) >= MAX_NS:
        return None
    encoded = text.encode()
    for times in (NUMERIC, PRINTED):
        try:
            return _parse(encoded, text.isascii(), times, base, devices)
        except (pa.ArrowInvalid, IrregularBlockError, RecursionError):
            continue
    return None


def _parse(text: bytes, is_ascii: bool, times: Times, base: int, devices: Devices) -> ParsedEvents:
    readers, numbers, passed, size = list(TABLE_READERS.values()), _TableNumbers(), Counter[str](), 0
    values = [new_values(reader.values([], [])) for reader in readers]
    starts, stops, found = [], [], bytearray()
    for piece in parse_pieces(text, times.decoder):
        try:
            table_of = _collect(piece.values, numbers, values, passed)
        except IrregularBlockError:
            if not size:
                raise
            break
        if not size:
            # Times that these are not for are found before the rest is parsed.
            for collected in values:
                if collected["ts"]:
                    times.starts(collected["ts"])
        size = piece.size
        starts.append(piece.starts)
        stops.append(piece.stops)
        found += table_of
    line_ends = np.flatnonzero(np.frombuffer(text, np.uint8, size) == _LINE_END)
    first_lines, last_lines = (np.searchsorted(line_ends, np.concatenate(places)) for places in (starts, stops))
    table_of_event, tables = np.frombuffer(found, np.uint8), dict[str, Columns]()
    for number, reader in enumerate(readers):
        lines = first_lines[table_of_event == number]
        if len(lines):
            tables |= reader.columns(Rows(values[number], lines, times, base), devices)
    chars = size if is_ascii else len(text[:size].decode())
    return ParsedEvents(chars, len(line_ends), first_lines, last_lines, table_of_event < _NO_TABLE, tables, passed)


def _collect(events: list[Any], numbers: _TableNumbers, values: list[Values], passed: Counter[str]) -> bytes:
    """Add the values of events to those of their tables; return the number of the table of each event as a byte."""
    categories = [event.cat if event.ph == "X" else None for event in events]
    phases = [event.ph for event in events] if None in categories else []
    require_plain(BEGIN not in phases)
    if "M" in phases:
        metadata = compress(events, [phase == "M" for phase in phases])
        require_plain(not any(map(_names_process_of_others, metadata)))
    tables = bytes(map(numbers.__getitem__, categories))
    for number, reader in enumerate(TABLE_READERS.values()):
        if number in tables:
            some = list(compress(events, tables.translate(_IS_NUMBER[number])))
            arguments = [event.args or NO_ARGUMENTS for event in some]
            for name, column in reader.values(some, arguments).items():
                values[number][name].extend(column)
    if _NO_TABLE in tables:
        passed.update(
            {
                name: n
                for name, n in Counter(categories).items()
                if name is not None and numbers[name] == _NO_TABLE and not is_ignored(name)
            }
        )
    return tables


class _TableNumbers(dict[str | None, int]):
    """The number of the table of the events of each category; `_NO_TABLE` if they are skipped."""

    def __missing__(self, category: str | None) -> int:
        name = (category or "").lower()
        require_plain(name not in (COUNTERS, PTI_CATEGORY))
        number = list(TABLE_READERS).index(_TABLES[KINDS[name]]) if name in KINDS else _NO_TABLE
        self[category] = number
        return number


def _names_process_of_others(event: Event) -> bool:
    """Return whether an event names a process of XLA or the first rocprof, whose events are read one by one."""
    name = event.args.name if event.args is not None else None
    return (
        event.name == "process_name"
        and isinstance(name, str)
        and (name.endswith(tuple(SECTIONS)) or gpu_index({"name": event.name, "args": {"name": name}}) is not None)
    )
