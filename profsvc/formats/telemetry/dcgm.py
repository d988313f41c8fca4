"""Reader of DCGM logs: the output of dcgmi dmon, and CSV logs of the DCGM API."""

from collections.abc import Iterator
from typing import BinaryIO

from profsvc.errors import BrokenInputError
from profsvc.formats.parsing.head import head_lines
from profsvc.formats.parsing.line_reader import read_lines
from profsvc.formats.parsing.text import Text
from profsvc.formats.parsing.timestamps import TimestampParser
from profsvc.formats.timeseries.columns import UNKNOWN, Column, si_scale, unknown_column
from profsvc.formats.timeseries.sensor_logs.log import LogReader
from profsvc.tables import Batch

NAME = "dcgm"

TOOL = "DCGM"
UNKNOWN_FIELD = "unknown field, so its unit is unknown too"
TIME_UNITS = {"timestamps": "s", "timestampms": "ms", "timestampus": "us", "timestampns": "ns"}
COLUMNS = {"watts": ("power", "W"), "joules": ("energy", "J"), "celsius": ("temperature", "C")}
# Fields of the API and columns of dcgmi dmon: parts of their names, those with $ only at the end; quantity, unit.
FIELDS: tuple[tuple[tuple[str, ...], str, str], ...] = (
    (("_ns$",), "time", "ns"),
    (("pcie_tx_bytes", "pcie_rx_bytes", "nvlink_tx_bytes", "nvlink_rx_bytes"), "throughput", "B/s"),
    (("used_percent",), "utilization", ""),
    (("reason", "throttle", "xid", "dvccte", "pstate"), "state", ""),
    (("power_limit", "power_management_limit", "power_mgmt_limit", "pwlmt", "pmlmt"), "limit", "W"),
    (("power", "pwr"), "power", "W"),
    (("energy", "totec"), "energy", "mJ"),
    (("max_op_temp", "temp_limit", "slowdown_temp", "shutdown_temp", "temp_warning", "temp_critical"), "limit", "C"),
    (("temp", "tmptr"), "temperature", "C"),
    (tuple(f"{kind}_{part}clock" for kind in ("max", "app") for part in ("", "sm_", "mem_", "video_")), "limit", "MHz"),
    (("clock", "smclk", "mmclk"), "clock", "MHz"),
    (("fan_speed",), "fan", "%"),
    (("util", "gputl", "mcutl", "enutl", "deutl"), "utilization", "%"),
    (("fb_", "fbusd", "fbttl", "fbfre"), "memory", "MiB"),
    (("_active$", "_occupancy$"), "utilization", ""),
    (("smact", "smocc", "tenso", "drama", "fp64a", "fp32a", "fp16a", "gract"), "utilization", ""),
    (("pcitx", "pcirx", "nvltx", "nvlrx"), "throughput", "B/s"),
)
MAX_STAMP_WORDS = 2
"""Words of a time that a script prints before each line."""
# Unit as printed -> quantity.
UNITS = {"W": "power", "C": "temperature", "MHz": "clock", "%": "utilization", "mJ": "energy", "MB": "memory"}


def field_column(name: str, unit: str = "") -> Column:
    """Return the column of a field, by its name and by the unit below it in a header.

    >>> field_column("power_usage_instant").quantity, field_column("TOTEC", "mJ").unit, field_column("VLTGE").unit
    ('power', 'J', 'unknown')
    >>> [field_column(f"DCGM_FI_DEV_{name}").quantity for name in ("GPU_TEMP", "GPU_TEMP_LIMIT", "APP_SM_CLOCK")]
    ['temperature', 'limit', 'limit']
    >>> [field_column(f"DCGM_FI_PROF_{name}").unit for name in ("SM_ACTIVE", "NVLINK_L0_TX_BYTES", "SM_CYCLES")]
    ['1', 'byte/s', 'unknown']
    """
    key = name.lower().removeprefix("dcgm_fi_dev_")
    if key.startswith("dcgm_fi_prof_") and key.endswith("_bytes"):
        return Column(name, "value", "throughput", "byte/s", "B/s")
    # The time at a limit has a unit that depends on the version; a mask is not a power.
    if "violation" in key or "profile_mask" in key:
        return unknown_column(name, UNKNOWN_FIELD)
    for parts, quantity, token in FIELDS:
        if any(key.endswith(part[:-1]) if part.endswith("$") else part in key for part in parts):
            if unit and si_scale(unit) and quantity != "memory":
                token = unit
            found = si_scale(token)
            return Column(name, "value", quantity, found[1] if found else UNKNOWN, token)
    if unit in UNITS and (found := si_scale(unit)):
        return Column(name, "value", UNITS[unit], found[1], unit)
    return unknown_column(name, UNKNOWN_FIELD)


def _csv_header(line: str) -> list[str] | None:
    if line[:1].isdigit():
        return None
    cells = [cell.strip() for cell in line.strip().split(",")]
    return cells if cells[0].lower() == "gpuid" and any(cell.lower() in TIME_UNITS for cell in cells) else None


def _is_dmon_header(line: str) -> bool:
    return "#" in line and _names_of(line)[:1] == ["Entity"] and _stamp_words(line) <= MAX_STAMP_WORDS


def _names_of(header: str) -> list[str]:
    """Return the names in a header of dcgmi dmon, which a script may have indented or stamped with a time."""
    return header.partition("#")[2].split()


def _stamp_words(header: str) -> int:
    return len(header.partition("#")[0].split())


def sniff(head: bytes) -> bool:
    """Tell whether ``head`` contains the header of dcgmi dmon, or begins with that of a CSV log of the API."""
    lines = head_lines(head, 50)
    return any(_is_dmon_header(line) for line in lines) or _csv_header(lines[0].lstrip("\ufeff")) is not None


class _DmonReader(LogReader):
    """Sorts the lines of dcgmi dmon."""

    def __init__(self, header: str) -> None:
        counts = header.partition("#")[0].strip().replace(".", "", 1).isdecimal()
        super().__init__(TOOL, TimestampParser(unit="s") if counts else None)
        self.log.facts["layout"] = "dcgmi dmon"
        self.names: list[str] = []
        self.names_line = self.stamp = 0
        self.expects_units = False

    def add(self, number: int, line: str) -> None:
        """Account for a line."""
        words = line.split()
        if _is_dmon_header(line):
            self.names, self.names_line, self.expects_units = _names_of(line)[1:], number, True
            self.stamp = _stamp_words(line)
            self.log.skip()
            return
        # dcgmi dmon prints no time, so scripts print one before each line.
        stamp, cells = words[: self.stamp], words[self.stamp :]
        if self.expects_units and cells[:1] in (["ID"], ["Id"]):
            self.log.skip()
            self._begin(cells[1:])
        elif not cells or not self.names:
            self.log.skip()
        else:
            if self.expects_units:
                self._begin([])
            if cells[0] != "GPU":
                self.log.reject(number, line, f"a reading of {cells[0]!r}: only readings of whole GPUs are stored")
            else:
                self.log.row(number, [*([" ".join(stamp)] if stamp else []), *cells[1:]], line)

    def _begin(self, units: list[str]) -> None:
        self.expects_units = False
        under = units if len(units) == len(self.names) else [""] * len(self.names)
        columns = [Column("ID", "gpu"), *map(field_column, self.names, under)]
        columns = [Column("time", "time"), *columns] if self.stamp else columns
        if columns != self.log.columns:
            self.log.begin(columns, self.names_line)


class _CsvReader(LogReader):
    """Sorts the lines of a CSV log of the API: one column per quantity, or one row per field."""

    def __init__(self, header: list[str]) -> None:
        lower = [cell.lower() for cell in header]
        super().__init__(TOOL, TimestampParser(unit=next(TIME_UNITS[cell] for cell in lower if cell in TIME_UNITS)))
        self.header = header
        self.is_long = {"field", "values"} <= set(lower) or {"field", "value"} <= set(lower)
        self.log.facts["layout"] = "one row per field" if self.is_long else "one column per quantity"
        self.log.field_of = field_column
        self.log.begin([self._column(cell) for cell in header], 1)

    def _column(self, cell: str) -> Column:
        lower = cell.lower()
        if lower == "gpuid":
            return Column(cell, "gpu")
        if lower in TIME_UNITS:
            return Column(cell, "time")
        if self.is_long and lower in ("field", "value", "values"):
            return Column(cell, "field" if lower == "field" else "long")
        quantity, token = COLUMNS.get(lower, ("", ""))
        if quantity and (found := si_scale(token)):
            return Column(cell, "value", quantity, found[1], token)
        return field_column(cell)

    def add(self, number: int, line: str) -> None:
        """Account for a line."""
        cells = line.rstrip("\r\n").split(",")
        if not line.strip() or (header := _csv_header(line.lstrip("\ufeff"))) == self.header:
            self.log.skip()
        elif header:
            raise BrokenInputError(
                f"line {number}: another header, {line.strip()[:100]!r}, follows {','.join(self.header)!r}; "
                "split the file before it"
            )
        else:
            self.log.row(number, cells, line)


def _reader_of(text: Text) -> LogReader:
    if header := _csv_header(next(text.lines(), "").lstrip("\ufeff")):
        return _CsvReader(header)
    return _DmonReader(next(filter(_is_dmon_header, text.lines()), ""))


def read(stream: BinaryIO) -> Iterator[Batch]:
    """Read a log in one pass over the file."""
    return read_lines(stream, _reader_of)
