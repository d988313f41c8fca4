"""Reader of tegrastats logs of NVIDIA Jetson boards: one line per poll, one word per sensor."""

import re
from collections.abc import Callable, Iterator
from typing import BinaryIO

from profsvc.formats.parsing.head import head_lines
from profsvc.formats.parsing.line_reader import read_lines
from profsvc.formats.parsing.timestamps import TimestampParser, parse_timestamp
from profsvc.formats.timeseries.columns import Column, si_scale, unknown_column
from profsvc.formats.timeseries.sensor_logs.log import LogReader
from profsvc.tables import Batch

NAME = "tegrastats"

TOOL = "tegrastats"
AVERAGE = "running average since tegrastats was started"
UNEXPLAINED = "additional figure that the tool does not explain"
# Temperature that the tool prints for a sensor in an unpowered part of the chip.
NO_POWER = "-256"
# The timestamp of the tool itself, or one that a shell put before each line.
_LINE = re.compile(r"(?:\[?[0-9][0-9T:,.+Z /-]{5,40}\]?:? +)?RAM [0-9]+/[0-9]+[kMG]?B\b")
_STAMP = re.compile(r"\[?([0-9][0-9T:,.+Z /-]{5,40}?)\]?:? +(?=RAM )")
# Names are bounded and nothing is nested, so the time to match grows linearly with the line.
_NAME = "[A-Z][A-Z0-9_]{0,63}"
_WORDS = re.compile(
    r"(?P<memory>RAM|SWAP|IRAM) (?P<used>[0-9]+)/(?P<total>[0-9]+)(?P<size>[kMG]?)B(?: ?\([^()]*\))?"
    r"|CPU \[(?P<cpus>[^\[\]]*)\]"
    r"|cpu \[(?P<loads>[0-9%,of]*)\]@(?P<shared>[0-9]+)"  # of Tegra K1 and X1, whose cores have one clock
    r"|EDP limit (?P<edp>[0-9]+)"
    rf"|(?P<engine>{_NAME}) (?:(?P<load>[0-9]+)%(?:@\[?(?P<clocks>[0-9][0-9,]*)\]?)?|@\[(?P<alone>[0-9][0-9,]*)\])"
    r"|(?P<place>[A-Za-z][\w.-]{0,63})@(?P<degrees>-?[0-9]+(?:\.[0-9]+)?)C(?:/(?P<degrees2>-?[0-9]+(?:\.[0-9]+)?)C)?"
    rf"|(?P<rail>{_NAME}) (?P<now>-?[0-9]+)(?:mW)?/(?P<average>-?[0-9]+)(?:mW)?(?:/(?P<third>-?[0-9]+)(?:mW)?)?"
    rf"|(?P<clocked>{_NAME}) (?P<only>[0-9]+)"
    rf"|MTS fg (?P<fg>[0-9]+)% bg (?P<bg>[0-9]+)%|(?P<off>{_NAME}) off"
)
_CPU = re.compile(r"(?:(?P<load>[0-9]+)%@(?P<clock>[0-9]+)|off)")
_SIZES = {"k": "KiB", "M": "MiB", "G": "GiB", "": "B"}
Sensors = Iterator[tuple[Column, str]]
"""Columns with their cells, of a word."""
_UNIT_OF = {"power": "mW", "temperature": "C", "utilization": "%", "clock": "MHz"}


def sniff(head: bytes) -> bool:
    """Tell whether one of the first lines in ``head`` is one of tegrastats."""
    return any(_LINE.match(line.lstrip("\ufeff")) for line in head_lines(head, 20))


def _column(name: str, quantity: str, token: str = "", note: str = "") -> Column:
    token = token or _UNIT_OF[quantity]
    found = si_scale(token)
    return Column(name, "value", quantity, found[1] if found else "1", token, note=note)


def _memory(match: re.Match[str]) -> Sensors:
    size = _SIZES[match["size"]]
    yield _column(match["memory"], "memory", size), match["used"]
    yield _column(f"{match['memory']} total", "memory", size), match["total"]


def _cpus(match: re.Match[str]) -> Sensors:
    for place, text in enumerate(match["cpus"].split(",")):
        cpu = _CPU.fullmatch(text.strip())
        if cpu is None:
            raise ValueError(f"CPU {text.strip()}")
        yield _column(f"CPU{place}", "utilization"), cpu["load"] or "[off]"
        yield _column(f"CPU{place} clock", "clock"), cpu["clock"] or "[off]"


def _cpus_of_one_clock(match: re.Match[str]) -> Sensors:
    for place, load in enumerate(match["loads"].split(",")):
        if not re.fullmatch("[0-9]+%|off", load):
            raise ValueError(f"cpu {load}")
        yield _column(f"CPU{place}", "utilization"), "[off]" if load == "off" else load.removesuffix("%")
    yield _column("CPU clock", "clock"), match["shared"]


def _edp_limit(match: re.Match[str]) -> Sensors:
    yield unknown_column("EDP limit", UNEXPLAINED), match["edp"]


def _engine(match: re.Match[str]) -> Sensors:
    if match["load"]:
        yield _column(match["engine"], "utilization"), match["load"]
    for place, clock in enumerate((match["clocks"] or match["alone"] or "").split(",")):
        if clock:
            yield _column(f"{match['engine']} clock{f' {place}' if place else ''}", "clock"), clock


def _temperature(match: re.Match[str]) -> Sensors:
    yield _column(match["place"], "temperature"), _degrees(match["degrees"])
    if match["degrees2"]:
        yield _column(f"{match['place']} second", "temperature", note=UNEXPLAINED), _degrees(match["degrees2"])


def _rail(match: re.Match[str]) -> Sensors:
    yield _column(match["rail"], "power"), match["now"]
    yield _column(f"{match['rail']} average", "power", note=AVERAGE), match["average"]
    if match["third"]:
        yield _column(f"{match['rail']} third", "power", note=UNEXPLAINED), match["third"]


def _clock(match: re.Match[str]) -> Sensors:
    yield _column(match["clocked"], "clock"), match["only"]


def _mts(match: re.Match[str]) -> Sensors:
    yield _column("MTS fg", "utilization"), match["fg"]
    yield _column("MTS bg", "utilization"), match["bg"]


def _engine_off(match: re.Match[str]) -> Sensors:
    yield _column(match["off"], "utilization"), "[off]"


_SENSORS: dict[str, Callable[[re.Match[str]], Sensors]] = {
    "memory": _memory,
    "cpus": _cpus,
    "loads": _cpus_of_one_clock,
    "edp": _edp_limit,
    "engine": _engine,
    "place": _temperature,
    "rail": _rail,
    "clocked": _clock,
    "fg": _mts,
    "off": _engine_off,
}
"""Group of `_WORDS` that only one kind of word has -> its sensors."""


def _sensors(match: re.Match[str]) -> Sensors:
    return next(sensors(match) for group, sensors in _SENSORS.items() if match[group] is not None)


def _degrees(printed: str) -> str:
    return "[off]" if printed == NO_POWER else printed


def parse_line(line: str) -> tuple[list[tuple[Column, str]], str]:
    """Return the column and the cell of each sensor in a line, and the text that was not understood.

    >>> parse_line("GR3D_FREQ 2%@1300 GPU@31C what")
    ([(Column(name='GR3D_FREQ', role='value', quantity='utilization', unit='1', token='%', whole=False, note=''), '2'),
      (Column(name='GR3D_FREQ clock', role='value', quantity='clock', unit='Hz', token='MHz', whole=False, note=''),
       '1300'),
      (Column(name='GPU', role='value', quantity='temperature', unit='degC', token='C', whole=False, note=''), '31')],
     'what')
    """
    found: list[tuple[Column, str]] = []
    rest = []
    end = 0
    for match in _WORDS.finditer(line):
        rest.append(line[end : match.start()].strip())
        end = match.end()
        try:
            found += _sensors(match)
        except ValueError as error:
            rest.append(str(error))
    rest.append(line[end:].strip())
    return found, " ".join(part for part in rest if part)


class _Reader(LogReader):
    """Sorts the lines of a log; lines with the same sensors are rows of one table."""

    def __init__(self) -> None:
        super().__init__(TOOL, TimestampParser(month_first=True))

    def add(self, number: int, line: str) -> None:
        """Account for a line."""
        text = line.strip().lstrip("\ufeff")
        if not _LINE.match(text):
            if (found := parse_timestamp(text)) and "date_line" not in self.log.facts:
                self.log.facts["date_line"] = text
            if text and not found and self.log.columns:
                self.log.reject(number, line, "not a complete line of tegrastats")
            else:
                self.log.skip()
            return
        dated = _STAMP.match(text)
        words, rest = parse_line(text[dated.end() :] if dated else text)
        if rest:
            self.log.reject(number, line, f"unknown word {rest[:80]!r}")
            return
        columns = [column for column, _ in words]
        cells = [cell for _, cell in words]
        if dated:
            columns, cells = [Column("time", "time"), *columns], [dated[1], *cells]
        if columns != self.log.columns:
            if not line.endswith("\n"):
                self.log.reject(number, line, "the file ends inside this line, which lacks words of the lines above")
                return
            self.log.begin(columns, number)
            self.log.facts["layout"] = f"{len(columns)} values per line"
        self.log.row(number, cells, line)


def read(stream: BinaryIO) -> Iterator[Batch]:
    """Read a log in one pass over the file."""
    return read_lines(stream, lambda _: _Reader())
