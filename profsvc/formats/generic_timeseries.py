"""Reader of any log with a time column: power meters, thermocouples and loggers without a reader of their own."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import BinaryIO

from profsvc.formats.daq import picolog
from profsvc.formats.meters import hioki, joulescope, monsoon, otii, ppk2, yokogawa
from profsvc.formats.native import phase_marks
from profsvc.formats.parsing.head import head_lines
from profsvc.formats.telemetry import dcgm, hardware_monitor, jtop, nvidia_smi_dmon, prometheus, rocm_smi, zeus
from profsvc.formats.timeseries.clock_names import (
    COUNT_NAMES,
    DATE_NAMES,
    FRACTION_DIGITS,
    LAST_NAMES,
    NUMBERED_FRACTION_DIGITS,
    ORDINAL_NAMES,
    TIME_OF_DAY_NAMES,
    TIMESTAMP_NAMES,
    clock_words,
    date_order,
    letters_of,
    zone_name,
    zone_s,
)
from profsvc.formats.timeseries.column_mapping import SKIP, TIME, NamedColumn, column_places, missing_columns_message
from profsvc.formats.timeseries.columns import si_scale
from profsvc.formats.timeseries.dates import DATE_ORDERS, AmbiguousDateParser
from profsvc.formats.timeseries.labels import Channel, channel, channel_from_label, split_label, unit_of
from profsvc.formats.timeseries.tables.lines import (
    MAX_PREAMBLE_LINES,
    Layout,
    TableFormat,
    is_serial_number,
    layout_of,
    split_row,
)
from profsvc.formats.timeseries.tables.multiplexed import key_column_candidates
from profsvc.formats.timeseries.tables.table import read_table
from profsvc.formats.timeseries.tables.time_columns import TimeColumns, is_numeric
from profsvc.specs.files.formats import TIMESERIES
from profsvc.tables import Batch

NAME = TIMESERIES

TOOL = "log"
UNNAMED = "the first, which has no name"
# A count of time behind one of these is how long it took, and not a clock.
_TIMED_NAMES = frozenset({"kernel", "kernelname", "function", "operator", "op", "benchmark", "layer"})
# The columns among which a clock may be that is not one of the first two.
MAX_LATE = 4
_TABLES = (hioki, joulescope, jtop, phase_marks, monsoon, otii, picolog, ppk2, yokogawa)
# Columns of logs with a reader of their own, or of logs that are not guessed.
_OTHER_FORMATS = re.compile(
    r"(?:power|temperature|clocks?|utilization|memory|fan|pcie|enforced|encoder|ecc|clocks_[a-z_]+|gpu|driver_version"
    r"|display_[a-z]+|vbios_version|accounting|persistence_mode|mig)\.[\w.]+(?: \[.*\])?"
    r"|GPUId|TimeStampUs|gpuIndex|Entity|Field(?:Id)?|pstate|gpu_?uuid|uuid|X_Value|Laptime.*|Kernel ?Name"
    r"|correlation_?id|(?:gpu|cpu)[0-9]+_energy|Start \(ns\)|Duration.*|Calls|Instances|Time ?\(%\)"
    r"|quantity|Store No\.?|process_name|used_(?:gpu_)?memory.*",
    re.IGNORECASE,
)
_TIME_SYMBOL = re.compile(r"t_(s|ms|us|ns)")
# A series of Prometheus, as Grafana names its columns.
_SERIES = re.compile(r"([A-Za-z_:][\w:]{0,200})\{([^{}]{0,600})\}")
# The output of a program under a profiler is not a log.
_BANNER = re.compile(r"=+[0-9A-Z]+=+ |={8} .*profiling result")


def _time_unit(label: str) -> str | None:
    """Return the unit of a label that names a count of time."""
    name, token = split_label(label)
    unit = unit_of(token) if token else None
    if unit and unit.dimension == "time":
        # The total, mean or duration of something is a time, but not a clock.
        stem = letters_of(name.rpartition("_")[0]) if name == label.strip() and "_" in name else letters_of(name)
        known = stem in {*COUNT_NAMES, *TIMESTAMP_NAMES, *TIME_OF_DAY_NAMES, "temps"} or stem.startswith(
            ("elapsed", "timestamp", "epoch", "unix")
        )
        return token if known else None
    if symbol := _TIME_SYMBOL.fullmatch(label.strip()):
        return symbol[1]
    if letters_of(label) in COUNT_NAMES and letters_of(label) != "t":
        return "ms" if letters_of(label) == "ms" or "milli" in label.lower() else "s"
    return None


def _times(cells: list[str]) -> tuple[TimeColumns, set[int]] | None:
    """Return the clock of a header, and the places of all columns that are clocks."""
    words = clock_words(cells)
    units = [_time_unit(cell) for cell in cells]
    dates = [place for place, word in enumerate(words) if word in DATE_NAMES]
    clocks = [place for place, word in enumerate(words) if word in TIME_OF_DAY_NAMES and not units[place]]
    stamps = [place for place, word in enumerate(words) if word in TIMESTAMP_NAMES and not units[place]]
    late = [place for place, word in enumerate(words) if word in LAST_NAMES]
    counts = [place for place, unit in enumerate(units) if unit]
    every = {*dates, *clocks, *stamps, *counts, *late}
    if dates and clocks:
        fraction = _fraction(words, clocks[0])
        labels = cells[dates[0]], cells[clocks[0]]
        zone = zone_s(*labels), date_order(*labels), zone_name(*labels)
        times = TimeColumns((dates[0], clocks[0]), None, fraction, *zone)
        return times, every | {*(fraction or ())[:1]}
    # After other columns, a column of times is a result, not a clock.
    for place in [*(place for found in (stamps, counts, clocks, dates) for place in found if place < 2), *late]:
        fraction = None if units[place] else _fraction(words, place)
        zone = zone_s(cells[place]), date_order(cells[place]), zone_name(cells[place])
        times = TimeColumns((place,), units[place], fraction, *zone)
        return times, every | {*(fraction or ())[:1]}
    return None


def _fraction(words: list[str], clock: int) -> tuple[int, int] | None:
    """Return the column with the fraction of the second and its digits; ``clock`` is the column of the time.

    >>> _fraction(["number", "datetime", "ms", "ch"], 1), _fraction(["date", "ms", "power"], 0)
    ((2, 3), None)
    """
    named = next((place for place, word in enumerate(words) if word in FRACTION_DIGITS), None)
    if named is not None:
        return named, FRACTION_DIGITS[words[named]]
    beside = words[clock + 1] if clock + 1 < len(words) else ""
    numbered = words[0] in ORDINAL_NAMES and beside in NUMBERED_FRACTION_DIGITS
    return (clock + 1, NUMBERED_FRACTION_DIGITS[beside]) if numbered else None


def _layout(sign: str, cells: list[str]) -> Layout | None:
    while cells and not cells[-1]:
        cells = cells[:-1]
    # Pandas prints the numbers of the rows below a cell without a name.
    numbered = len(cells) > 2 and not cells[0]
    named = ["index" if numbered else cells[0].lstrip("# ") or cells[0], *cells[1:]] if cells else []
    # Most tables of other tools have hundreds of columns and no clock among the first two, which is required below.
    if len(cells) < 2 or (_times(named[:2]) is None and LAST_NAMES.isdisjoint(map(letters_of, named[:MAX_LATE]))):
        return None
    if any(_OTHER_FORMATS.fullmatch(cell) for cell in cells):
        return None
    if not all(named) or any(is_numeric(cell) for cell in cells) or (found := _times(named)) is None:
        return None
    times, clocks = found
    if min(times.places) >= MAX_LATE:
        return None
    if times.unit and not _TIMED_NAMES.isdisjoint(map(letters_of, named[: min(times.places)])):
        return None
    places = _values(named, clocks)
    if not places or rocm_smi.is_header(cells) or any(other.layout(sign, cells) for other in _TABLES):
        return None
    return Layout(
        *(sign, tuple(cells), times, tuple(places), _channels(named, places)),
        turns=key_column_candidates(named, clocks),
        left=(UNNAMED,) if numbered else (),
    )


def is_clock_name(cell: str) -> bool:
    """Tell whether the name of a column is that of a date, a time or a count of time.

    >>> is_clock_name("Timestamp"), is_clock_name("TimeInSeconds"), is_clock_name("duration")
    (True, True, False)
    """
    (word,) = clock_words([cell])
    return names_time_unit(cell) or word in DATE_NAMES | TIME_OF_DAY_NAMES | TIMESTAMP_NAMES


def names_time_unit(cell: str) -> bool:
    """Tell whether the name of a column has the unit of a time."""
    return _time_unit(cell) is not None


def is_ordinal_name(cell: str) -> bool:
    """Tell whether the name of a column is that of a number that counts the rows."""
    return cell == "#" or letters_of(cell) in ORDINAL_NAMES


def _values(named: list[str], clocks: set[int]) -> list[int]:
    """Return the places of the columns that are neither clocks, ordinals nor serial numbers.

    >>> _values(["EasyLog USB", "Time", "Celsius(\u00b0C)", "Serial Number"], {1})
    [2]
    """
    # EasyLog prints the name of the logger over the numbers of the rows, and its serial number at the end.
    is_numbered = is_serial_number(named[-1]) and 1 in clocks
    return [
        place
        for place, cell in enumerate(named)
        if place not in clocks
        and not (is_ordinal_name(cell) or is_serial_number(cell) or (is_numbered and place == 0 and 0 not in clocks))
    ]


def _channel(label: str) -> Channel:
    """Return the channel of a label, which may be a series of Prometheus.

    >>> _channel('DCGM_FI_DEV_POWER_USAGE{gpu="1", Hostname="n"}').gpu, _channel('smi_power_watts{uuid="7"}').unit
    (1, 'W')
    """
    match = _SERIES.fullmatch(label)
    labels = prometheus.labels_of(match[2]) if match else None
    if match is None or labels is None:
        return channel_from_label(label)
    gpu = labels.get("gpu", "")
    one, column = channel_from_label(match[1]), dcgm.field_column(match[1])
    scale = si_scale(column.token) if match[1].startswith(prometheus.PREFIX) else None
    if scale is not None and column.unit == scale[1]:
        one = Channel(label, column.quantity, column.unit, scale[0])
    return replace(one, name=label, gpu=int(gpu) if gpu.isascii() and gpu.isdigit() and len(gpu) < 5 else None)


def _channels(named: list[str], places: list[int]) -> tuple[Channel, ...]:
    volts = any(cell in ("V", "W") for cell in named)
    found = [channel("A", "A") if named[n] == "A" and volts else _channel(named[n]) for n in places]
    first = {(one.name, one.quantity): place for place, one in reversed(list(zip(places, found, strict=True)))}
    return tuple(
        one if first[one.name, one.quantity] == place else replace(one, name=f"{one.name} (column {place + 1})")
        for place, one in zip(places, found, strict=True)
    )


def is_time(text: str) -> bool:
    """Tell whether a text is a date, a time or a count."""
    return is_numeric(text) or any(AmbiguousDateParser(order).read(text) for order in DATE_ORDERS)


class _MappedColumns:
    """Makes the layout of a log whose columns the user maps, and remembers the line that has most of them."""

    def __init__(self, columns: Sequence[NamedColumn]) -> None:
        self.columns = columns
        self.nearest: list[str] = []
        self._most = 0
        # Columns given by number need no header; the lines before the first row are skipped.
        self._headless = all(one.place is not None for one in columns)

    def layout(self, sign: str, cells: list[str]) -> Layout | None:
        """Return the layout of a line that has all the columns."""
        found = column_places(self.columns, cells)
        known = sum(place is not None for place in found)
        if known > self._most:
            self.nearest, self._most = cells, known
        meant = {place: one for place, one in zip(found, self.columns, strict=True) if place is not None}
        if known < len(self.columns) or not known:
            return None
        labels = [f"#{n}" for n in range(1, len(cells) + 1)] if self._headless else cells
        times, clocks = self._times(meant, labels)
        if times is None or (self._headless and not is_time(times.text(cells))):
            return None
        others = set() if self._headless else set(_values(labels, clocks))
        places = [n for n in sorted({*meant, *others} - set(times.places)) if n not in meant or meant[n].is_value]
        plain = dict(zip(places, _channels(labels, places), strict=True))
        channels = tuple(meant[n].channel(labels[n]) if n in meant else plain[n] for n in places)
        fixed = frozenset(meant)
        skipped = frozenset(place for place, one in meant.items() if one.quantity == SKIP)
        told = {place: one.quantity for place, one in meant.items() if one.tells}
        turns = key_column_candidates(["" if n in meant else label for n, label in enumerate(labels)], clocks)
        return Layout(
            *(sign, tuple(labels), times, tuple(places), channels),
            headless=self._headless,
            fixed=fixed,
            turns=turns,
            told=told,
            skipped=skipped,
        )

    @staticmethod
    def _times(meant: Mapping[int, NamedColumn], labels: list[str]) -> tuple[TimeColumns | None, set[int]]:
        own = _times([label if n not in meant else "" for n, label in enumerate(labels)])
        asked = sorted(place for place, one in meant.items() if one.quantity == TIME)
        clocks = own[1] if own else set()
        if not asked:
            return (own[0] if own else None), clocks
        first, unit = labels[asked[0]], meant[asked[0]].unit
        order = unit if unit in DATE_ORDERS else None
        whole = _times(labels) if order else None
        if whole and {*asked} <= {*whole[0].places}:
            return replace(whole[0], order=order), clocks
        return TimeColumns(
            tuple(asked), None if order else unit or _time_unit(first), zone_s=zone_s(first), order=order
        ), clocks

    def refusal(self) -> str:
        """Return the reason why no line is the header."""
        if self.nearest and None not in column_places(self.columns, self.nearest):
            return "no column is a time; give it with --column NAME=time, or NAME=time:UNIT for a count such as time:ms"
        return missing_columns_message(self.columns, self.nearest)


_STYLE = TableFormat(TOOL, _layout)


def _is_row(layout: Layout, line: str) -> bool:
    cells = split_row(line, layout.sign)
    if len(cells) < 2 or max(layout.times.places) >= len(cells):
        return False
    return is_time(layout.times.text([*cells, *[""] * (len(layout.header) - len(cells))]))


def sniff(head: bytes) -> bool:
    """Tell whether a line in ``head`` is a header with a clock, and one of the next two lines is a row."""
    lines = [line for line in head_lines(head, MAX_PREAMBLE_LINES) if line.strip()]
    if any(_BANNER.match(line) for line in lines) or any(
        other.sniff(head) for other in (zeus, hardware_monitor, nvidia_smi_dmon)
    ):
        return False
    for place, line in enumerate(lines):
        layout = layout_of(line, _STYLE)
        if layout is not None:
            return any(_is_row(layout, row) for row in lines[place + 1 : place + 3])
    return False


def read(stream: BinaryIO, columns: Sequence[NamedColumn] = ()) -> Iterator[Batch]:
    """Read a log; ``columns`` are those that the user maps."""
    if not columns:
        return read_table(stream, _STYLE)
    mapped = _MappedColumns(columns)
    return read_table(stream, TableFormat(TOOL, mapped.layout, refusal=mapped.refusal, any_header=True))
