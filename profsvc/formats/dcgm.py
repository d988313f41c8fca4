"""Reader of the logs of DCGM: what dcgmi dmon prints, and CSV logs of its API."""

from collections.abc import Iterator
from typing import BinaryIO

from profsvc.errors import BrokenInputError
from profsvc.formats.clock import Clock
from profsvc.formats.head import head_lines
from profsvc.formats.ncu import numbered
from profsvc.formats.sensor_log import Log, unknown
from profsvc.formats.sensors import UNKNOWN, Column, scale
from profsvc.formats.stream import Text
from profsvc.tables import Batch

NAME = "dcgm"
PAGE = """\
A log of DCGM: the text of dcgmi dmon, or a CSV of readings of its API.

Make it with, for example (155 is the power, 150 the temperature, 100 the SM clock; --list names the others),
    dcgmi dmon -e 155,150,100,1002 -d 100 > FILE
or with a program that writes GPUId,TimeStampUs,Field,Values or GPUId,TimeStampUs,Watts. The unit of the time stands in
the header (TimeStampUs, Ms, Ns or S), counted since 1970, UTC.

Taken: every field as a sensor of its GPU, in W, degC, Hz, J, byte, or as a share. A field that is not known is kept as
it came, with quantity and unit unknown. dcgmi dmon prints no time, so its samples have their order alone. N/A gives a
sample without value and with the reason. Rows need not be in the order of time.

Example:
    #Entity   POWER        TMPTR        SMCLK
    ID        W            C            MHz
    GPU 0     71.120       31           345
    GPU 1     70.490       N/A          345
or
    GPUId,TimeStampUs,Field,Values
    0,1718783836956328,power_usage_instant,71.20
    1,1718783836936011,gpu_temp,31
"""

TOOL = "DCGM"
UNKNOWN_FIELD = "a field that is not known: its unit is not known either"
_STAMPS = {"timestamps": "s", "timestampms": "ms", "timestampus": "us", "timestampns": "ns"}
_COLUMNS = {"watts": ("power", "W"), "joules": ("energy", "J"), "celsius": ("temperature", "C")}
# Fields of the API and columns of dcgmi dmon by what their names hold: quantity, unit as DCGM counts.
_FIELDS: tuple[tuple[tuple[str, ...], str, str], ...] = (
    (("reason", "throttle", "xid", "dvccte", "pstate"), "state", ""),
    (("power_limit", "power_management_limit", "pwlmt", "pmlmt"), "limit", "W"),
    (("power", "pwr"), "power", "W"),
    (("energy", "totec"), "energy", "mJ"),
    (("temp", "tmptr"), "temperature", "C"),
    (("max_clock", "app_clock"), "limit", "MHz"),
    (("clock", "smclk", "mmclk"), "clock", "MHz"),
    (("util", "gputl", "mcutl", "enutl", "deutl"), "utilization", "%"),
    (("fb_", "fbusd", "fbttl", "fbfre"), "memory", "MiB"),
    (("smact", "smocc", "tenso", "drama", "fp64a", "fp32a", "fp16a", "gract", "prof_"), "utilization", ""),
    (("pcitx", "pcirx", "nvltx", "nvlrx"), "throughput", "B/s"),
)
_UNITS = {"W": "power", "C": "temperature", "MHz": "clock", "%": "utilization", "mJ": "energy", "MB": "memory"}


def field_column(name: str, unit: str = "") -> Column:
    """Return what a field holds, by its name, and by the unit that stands under it in a header.

    >>> field_column("power_usage_instant").quantity, field_column("TOTEC", "mJ").unit, field_column("VLTGE").unit
    ('power', 'J', 'unknown')
    """
    key = name.lower().removeprefix("dcgm_fi_dev_")
    for parts, quantity, token in _FIELDS:
        if any(part in key for part in parts):
            if unit and scale(unit) and quantity != "memory":
                token = unit
            found = scale(token)
            return Column(name, "value", quantity, found[1] if found else UNKNOWN, token)
    if unit in _UNITS and (found := scale(unit)):
        return Column(name, "value", _UNITS[unit], found[1], unit)
    return unknown(name, UNKNOWN_FIELD)


def _csv_header(line: str) -> list[str] | None:
    if line[:1].isdigit():
        return None
    cells = [cell.strip() for cell in line.strip().split(",")]
    return cells if cells[0].lower() == "gpuid" and any(cell.lower() in _STAMPS for cell in cells) else None


def _is_dmon_header(line: str) -> bool:
    return line.startswith("#") and line.removeprefix("#").split()[:1] == ["Entity"]


def sniff(head: bytes) -> bool:
    """Tell whether ``head`` holds the header of dcgmi dmon or of a CSV of the API near its beginning."""
    lines = head_lines(head, 50)
    return any(_is_dmon_header(line) for line in lines) or _csv_header(lines[0].lstrip("\ufeff")) is not None


class _Dmon:
    """Sorts the lines of dcgmi dmon."""

    def __init__(self) -> None:
        self.log = Log(TOOL)
        self.names: list[str] = []
        self.names_line = 0
        self.expects_units = False
        self.layout = "dcgmi dmon"

    def add(self, number: int, line: str) -> None:
        cells = line.split()
        if _is_dmon_header(line):
            self.names, self.names_line, self.expects_units = line.removeprefix("#").split()[1:], number, True
            self.log.skip()
        elif self.expects_units and cells[:1] in (["ID"], ["Id"]):
            self.log.skip()
            self._begin(cells[1:])
        elif not cells or not self.names:
            self.log.skip()
        else:
            if self.expects_units:
                self._begin([])
            if cells[0] != "GPU":
                self.log.reject(number, line, f"it is of {cells[0]!r}: only readings of whole GPUs are taken")
            else:
                self.log.row(number, cells[1:], line)

    def _begin(self, units: list[str]) -> None:
        self.expects_units = False
        under = units if len(units) == len(self.names) else [""] * len(self.names)
        columns = [Column("ID", "gpu"), *map(field_column, self.names, under)]
        if columns != self.log.columns:
            self.log.begin(columns, self.names_line)


class _Table:
    """Sorts the lines of a CSV of the API, a column a quantity or a row a field."""

    def __init__(self, header: list[str], line: int) -> None:
        lower = [cell.lower() for cell in header]
        self.header = header
        stamp = next(cell for cell in lower if cell in _STAMPS)
        self.log = Log(TOOL, Clock(unit=_STAMPS[stamp]))
        self.line = line
        self.long = {"field", "values"} <= set(lower) or {"field", "value"} <= set(lower)
        self.layout = "a row a field" if self.long else "a column a quantity"
        self.log.field_of = field_column
        self.log.begin([self._column(cell) for cell in header], line)

    def _column(self, cell: str) -> Column:
        lower = cell.lower()
        if lower == "gpuid":
            return Column(cell, "gpu")
        if lower in _STAMPS:
            return Column(cell, "time")
        if self.long and lower in ("field", "value", "values"):
            return Column(cell, "field" if lower == "field" else "long")
        quantity, token = _COLUMNS.get(lower, ("", ""))
        if quantity and (found := scale(token)):
            return Column(cell, "value", quantity, found[1], token)
        return field_column(cell)

    def add(self, number: int, line: str) -> None:
        cells = line.rstrip("\r\n").split(",")
        if not line.strip() or (header := _csv_header(line)) == self.header:
            self.log.skip()
        elif header:
            raise BrokenInputError(
                f"line {number}: another header, {line.strip()[:100]!r}, follows {','.join(self.header)!r}; "
                "split the file before it"
            )
        else:
            self.log.row(number, cells, line)


def read(stream: BinaryIO) -> Iterator[Batch]:
    """Read a log in one walk over the file."""
    with Text(stream) as text:
        file: _Dmon | _Table | None = None
        for number, line in numbered(text):
            if file is None:
                header = _csv_header(line.lstrip("\ufeff"))
                file = _Table(header, number) if header else _Dmon()
                if header:
                    file.log.skip()
                    continue
            file.add(number, line)
            if file.log.full:
                yield file.log.batch()
        file = file or _Dmon()
        yield from file.log.last(text.encoding, {"layout": file.layout})
