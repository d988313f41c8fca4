"""Reader of nvidia-smi --query-gpu logs: one row per poll and GPU, one column per property."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import BinaryIO

import numpy as np

from profsvc.errors import BrokenInputError
from profsvc.formats.columnar.line_blocks import SMALL_BLOCK_BYTES, Block, lines_of, parse_ahead, split_point
from profsvc.formats.parsing.head import head_lines
from profsvc.formats.parsing.text import Text
from profsvc.formats.parsing.timestamps import LOCAL, TimestampParser, parse_timestamp
from profsvc.formats.telemetry.nvidia_smi_properties import column_of, is_property
from profsvc.formats.telemetry.poll_bursts import Bursts, bursts_of
from profsvc.formats.timeseries.columns import Column, unknown_column
from profsvc.formats.timeseries.sensor_logs.blocks import LogBlock, parse
from profsvc.formats.timeseries.sensor_logs.log import LogReader
from profsvc.tables import Batch

NAME = "nvidia-smi"

# A row becomes one sample per column, so larger blocks would take much memory.
BLOCK_BYTES = 3 << 19
TOOL = "nvidia-smi"
NO_HEADER = "the log has no header, so the quantity of the column is unknown"
BY_UNIT = "the log has no header: taken for {quantity} by its unit; which figure of that unit it is, is unknown"
POWER_BY_DECIMALS = "the log has no header: power recognized by its two decimals; draw, average or instant is unknown"
# Of --query-compute-apps and --query-accounted-apps.
_PROCESS = {"pid", "process_name", "used_gpu_memory", "used_memory", "max_memory_usage"}
SETTINGS = {
    "driver_version": "driver_version",
    "vbios_version": "vbios_version",
    "ecc.mode.current": "ecc",
    "mig.mode.current": "mig",
}
"""Properties of the first row -> facts of the file."""
NOT_TOLD = {"N/A", "Not Supported", "Unknown Error"}
# Columns in which scripts write the number of the GPU themselves.
OWN_INDEX = ("gpu", "gpu_id", "gpu_index", "gpu_idx")
# Properties that columns of any log may be named after.
COMMON_NAMES = {"timestamp", "time", "index", "name", "count", "serial", "uuid"}
_POWER = re.compile(r"[0-9]+\.[0-9]{2}")
_UNIT_CELL = re.compile(r"[0-9]+(?:\.[0-9]+)? (W|MHz|MiB|%)")
_STAMP = re.compile(r"[0-9]{4}/[0-9]{2}/[0-9]{2} [0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{3}")
# What date --iso-8601=ns prints, which scripts write before each row: its comma marks decimals.
_ISO_STAMP = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2},[0-9]{9}[-+][0-9]{2}:[0-9]{2},")
# Unit as printed -> quantity, SI unit.
UNITS = {"W": ("power", "W"), "MHz": ("clock", "Hz"), "MiB": ("memory", "byte"), "%": ("utilization", "1")}


def _parse(block: Block, columns: Sequence[Column]) -> LogBlock | None:
    """Parse a block of rows; None if a row is not plain, as where the comma of its time is none between cells."""
    first = bytes(block[:40]).decode("latin-1")
    return None if first[19:20] == "," and _ISO_STAMP.match(first) else parse(block, columns)


def _split(line: str) -> list[str]:
    if line[19:20] == "," and _ISO_STAMP.match(line):
        line = f"{line[:19]}.{line[20:]}"
    return line.rstrip("\r\n").split(",")


def header_of(line: str) -> list[str] | None:
    """Return the names in a header, with their units; None if the line is not a header."""
    if not line[:1].islower() or "=" in line:  # the command line names the properties too
        return None
    cells = [cell.strip() for cell in _split(line)]
    names = [cell.split(" [")[0] for cell in cells]
    if is_of_processes(names):
        return cells
    known = sum(map(is_property, names)) if any(map(is_property, {*names} - COMMON_NAMES)) else 0
    # A newer driver may have properties that are not listed here, but most are listed.
    return cells if known and known * 2 >= len(cells) and names != ["timestamp"] else None


def is_of_processes(names: Sequence[str]) -> bool:
    """Tell whether columns with these names are of processes, not of GPUs."""
    return "pid" in names and len(_PROCESS.intersection(names)) > 1


def is_bare_row(line: str) -> bool:
    """Tell whether a line can be the first row of a log without header."""
    cells = line.rstrip("\r\n").split(", ")
    if len(cells) < 2 or "," in "".join(cells):
        return False
    return bool(_STAMP.fullmatch(cells[0])) or any(map(_UNIT_CELL.fullmatch, cells))


def sniff(head: bytes) -> bool:
    """Tell whether the first lines in ``head`` are a log of nvidia-smi --query-gpu."""
    lines = [line + "\n" for line in head_lines(head, 50) if line.strip()]
    return any(header_of(line.lstrip("\ufeff")) for line in lines) or any(is_bare_row(line) for line in lines[:1])


def bare_columns(cells: Sequence[str]) -> list[Column]:
    """Return the columns of a log without header, by the cells of its first row."""
    columns = []
    for place, cell in enumerate(map(str.strip, cells), 1):
        name = f"column {place}"
        if found := parse_timestamp(cell):
            columns.append(Column(name, "time" if found[0] == LOCAL else "open"))
        elif match := _UNIT_CELL.fullmatch(cell):
            meaning = UNITS[match[1]]
            columns.append(Column(name, "value", *meaning, note=BY_UNIT.format(quantity=meaning[0])))
        elif _POWER.fullmatch(cell):
            columns.append(Column(name, "value", "power", "W", note=POWER_BY_DECIMALS))
        else:
            columns.append(unknown_column(name, NO_HEADER) if cell.isdigit() else Column(name, "open"))
    return columns


def columns_of(header: Sequence[str], own_index: str) -> list[Column]:
    """Return the columns of a header; if a column of a script numbers the GPUs, the property ``index`` does not."""
    columns = [column_of(name) for name in header]
    if own_index not in [column.name for column in columns]:
        return columns
    roles = {own_index: "gpu", "index": "open"}
    return [replace(column, role=roles.get(column.name, column.role)) for column in columns]


class _Reader(LogReader):
    """Sorts the lines of a log into headers, rows and the rest."""

    def __init__(self, bursts: Bursts | None, own_index: str) -> None:
        super().__init__(TOOL)
        self.own_index = own_index
        self.log.facts["layout"] = "no header"
        self.bursts = bursts
        self.header: list[str] = []
        self.number = 1

    def plain_columns(self) -> list[Column] | None:
        """Return the columns if rows may be read in blocks: each names its GPU, or there is only one GPU."""
        return self.log.columns if self.log.columns and self.bursts is None else None

    def read_block(self, block: bytes, part: LogBlock | None, tried: bool = False) -> Iterator[Batch]:
        """Yield the batches of a block: of its parsed ``part``, or of its plain parts and its other lines one by one.

        ``tried`` means that parsing the whole block has failed if ``part`` is None.
        """
        while block:
            columns = self.plain_columns()
            if part is None and columns is not None and not tried:
                part = _parse(block, columns)
            if part is not None and self.log.add_block(part, self.number):
                self.number += part.rows
                yield self.log.batch()
                return
            part, tried = None, False
            end = split_point(block, halve=columns is not None, small=SMALL_BLOCK_BYTES)
            if columns is not None and end < len(block):
                yield from self.read_block(block[:end], None)
            else:
                for line in lines_of(block[:end]):
                    self.add(self.number, line)
                    self.number += 1
                    if self.log.full:
                        self.flush()
                        yield self.log.batch(flush=self.bursts is None)
            block = block[end:]

    def add(self, number: int, line: str) -> None:
        """Account for a line."""
        if line[:1].islower() and (header := header_of(line)):
            self._begin(header, number)
        elif not line.strip():
            self.log.skip()
        elif not self.log.columns and not is_bare_row(line):
            # Output of the shell or the program before the log.
            self.log.skip()
        else:
            cells = _split(line)
            if not self.log.columns:
                self.log.begin(bare_columns(cells), number)
            self.log.row(number, cells, line)

    def _begin(self, header: list[str], number: int) -> None:
        self.log.skip()
        if header == self.header:
            return
        if is_of_processes([name.split(" [")[0] for name in header]):
            raise BrokenInputError(
                f"line {number} is the header of nvidia-smi --query-compute-apps, whose rows are single processes, not "
                "readings of a GPU; record with: nvidia-smi --query-gpu=timestamp,index,power.draw.instant,"
                "temperature.gpu,clocks.sm --format=csv -lms 100"
            )
        self.flush(final=True)
        self.header, self.log.facts["layout"] = header, f"{len(header)} columns"
        self.log.begin(columns_of(header, self.own_index), number)

    def flush(self, final: bool = False) -> None:
        """Pass on whole bursts; ``final`` means that no row can follow."""
        if self.bursts is not None:
            self.bursts.flush(self.log, final)

    def last(self, encoding: str) -> Iterator[Batch]:
        """Yield the rest; the last burst may be short."""
        self.flush(final=True)
        yield from super().last(encoding)


def read(stream: BinaryIO) -> Iterator[Batch]:
    """Read a log; its first rows show whether GPUs without an index take turns."""
    with Text(stream) as text:
        own_index = _own_index(text)
        reader = _Reader(bursts_of(_first_stamps(text, own_index)), own_index)
        reader.log.facts |= _settings(text)
        for block, columns, part in parse_ahead(text.blocks(BLOCK_BYTES), reader.plain_columns, _parse):
            tried = columns is not None and columns is reader.plain_columns()
            yield from reader.read_block(bytes(block), part if tried else None, tried)
        yield from reader.last(text.encoding)


def _settings(text: Text, lines: int = 1000) -> dict[str, str]:
    """Return the driver and the settings of the board in the first row below a header."""
    names: list[str] = []
    for _, line in zip(range(lines), text.lines(), strict=False):
        if header := header_of(line):
            names = [name.split(" [")[0] for name in header]
        elif names and len(cells := _split(line)) == len(names):
            told = {SETTINGS[name]: cell.strip() for name, cell in zip(names, cells, strict=True) if name in SETTINGS}
            return {fact: cell for fact, cell in told.items() if cell and cell.strip("[]") not in NOT_TOLD}
    return {}


def _own_index(text: Text, lines: int = 1000) -> str:
    """Return the column in which a script numbered the GPUs, if several rows of one moment share one ``index``.

    So it is where each GPU was asked by a command that sees that one alone. Empty if the property distinguishes them.
    """
    places: dict[str, int] = {}
    seen: dict[str, set[tuple[str, ...]]] = {}
    rows = width = 0
    for _, line in zip(range(lines), text.lines(), strict=False):
        if header := header_of(line):
            names = [name.split(" [")[0] for name in header]
            wanted = ("timestamp", "index", *OWN_INDEX)
            places = {name: names.index(name) for name in wanted if names.count(name) == 1}
            seen, rows, width = {name: set() for name in places}, 0, len(header)
            if not {"timestamp", "index"} < places.keys():
                return ""
        elif places and len(cells := _split(line)) == width:
            rows += 1
            for name, keys in seen.items():
                keys.add((cells[places["timestamp"]].strip(), cells[places[name]].strip()))
    own = [name for name in OWN_INDEX if name in seen and len(seen[name]) == rows]
    told = own and len(seen["index"]) < rows and all(number.isdigit() for _, number in seen[own[0]])
    return own[0] if told else ""


def _first_stamps(text: Text, own_index: str, rows: int = 20_000) -> np.ndarray | None:
    """Return the timestamps of the first rows; None if a column says of which GPU each row is."""
    cells: list[str] = []
    place: int | None = None
    for line in text.lines():
        if header := header_of(line):
            columns = columns_of(header, own_index)
        elif place is None and is_bare_row(line):
            columns = bare_columns(_split(line))
        else:
            columns = []
        if columns:
            if any(column.role in ("gpu", "device") for column in columns):
                return None
            place = next((at for at, column in enumerate(columns) if column.role == "time"), None)
        if not header and place is not None and len(row := _split(line)) > place:
            cells.append(row[place].strip())
        if len(cells) >= rows:
            break
    ns, good = TimestampParser().read(cells)
    return ns[good]
