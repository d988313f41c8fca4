"""Reader of the logs of nvidia-smi --query-gpu: a row a poll and GPU, a column a property."""

import re
from collections.abc import Iterator, Sequence
from typing import BinaryIO

import numpy as np

from profsvc.formats.blocks import SMALL_BLOCK, ahead, cut, lines_of
from profsvc.formats.clock import LOCAL, Clock, stamp
from profsvc.formats.head import head_lines
from profsvc.formats.sensor_blocks import Part, parse
from profsvc.formats.sensor_log import Log, unknown
from profsvc.formats.sensors import Column
from profsvc.formats.smi_bursts import Bursts, bursts_of
from profsvc.formats.smi_properties import column_of, is_property
from profsvc.formats.stream import Text
from profsvc.tables import Batch

NAME = "nvidia-smi"
PAGE = """\
A log of nvidia-smi --query-gpu: any properties in any order, of one GPU or several.

Make it with
    LC_ALL=C nvidia-smi --query-gpu=timestamp,index,power.draw.instant,temperature.gpu,clocks.sm --format=csv -lms 100
Take the time and, with several GPUs, index: without them nobody knows when, or of which GPU, a reading is.
--format=csv,nounits and ,noheader are read as well; without units and header only power can be told, by its two
decimals, and the other columns are kept as unknown.

Taken: every number as a sample of the sensor that its column is, one sensor a GPU, in W, degC, Hz, byte, or as a share.
power.draw, .average, .instant and the limits are different sensors. Active and Enabled are 1, their opposites 0, masks
such as 0x4 whole numbers, P2 is 2. [N/A] gives a sample without value and with the reason. Words (driver, VBIOS, ...)
become metrics where they change. The time has no zone: it goes to local_ns. A row written twice counts once. Without an
index, rows that come in bursts of one size are told apart by their place in the burst.

Example:
    timestamp, index, power.draw [W], temperature.gpu, clocks.current.sm [MHz], utilization.gpu [%]
    2026/11/20 13:16:16.215, 0, 79.46 W, 31, 345 MHz, 0 %
    2026/11/20 13:16:16.325, 0, 79.47 W, 31, 345 MHz, 0 %
    2026/11/20 13:16:16.425, 0, 79.45 W, 31, 345 MHz, [N/A]
"""

# A row becomes a sample a column: more of them would take much memory at once.
BLOCK_BYTES = 3 << 19
TOOL = "nvidia-smi"
NO_HEADER = "the log has no header: what the column is cannot be known"
POWER_BY_DECIMALS = "the log has no header: power by its two decimals, whether draw, average or instant is not known"
# Properties that any log may have a column of.
ANYBODYS = {"timestamp", "time", "index", "name", "count", "serial", "uuid"}
_POWER = re.compile(r"[0-9]+\.[0-9]{2}")
_UNIT_CELL = re.compile(r"[0-9]+(?:\.[0-9]+)? (W|MHz|MiB|%)")
_STAMP = re.compile(r"[0-9]{4}/[0-9]{2}/[0-9]{2} [0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{3}")
_BY_UNIT = {"W": "power", "MHz": "clock", "MiB": "memory", "%": "utilization"}
_SI = {"W": "W", "MHz": "Hz", "MiB": "byte", "%": "1"}


def _split(line: str) -> list[str]:
    return line.rstrip("\r\n").split(",")


def header_of(line: str) -> list[str] | None:
    """Return the names in a header, with their units; None if the line is none."""
    if not line[:1].islower():
        return None
    cells = [cell.strip() for cell in _split(line)]
    names = [cell.split(" [")[0] for cell in cells]
    known = sum(map(is_property, names)) if any(map(is_property, {*names} - ANYBODYS)) else 0
    # A property of a newer driver may be unknown to us, but not most of them.
    return cells if known and known * 2 >= len(cells) and names != ["timestamp"] else None


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
        if found := stamp(cell):
            columns.append(Column(name, "time" if found[0] == LOCAL else "open"))
        elif match := _UNIT_CELL.fullmatch(cell):
            columns.append(Column(name, "value", _BY_UNIT[match[1]], _SI[match[1]], note=NO_HEADER))
        elif _POWER.fullmatch(cell):
            columns.append(Column(name, "value", "power", "W", note=POWER_BY_DECIMALS))
        else:
            columns.append(unknown(name, NO_HEADER) if cell.isdigit() else Column(name, "open"))
    return columns


class _File:
    """Sorts the lines of a log into headers, rows and the rest."""

    def __init__(self, bursts: Bursts | None) -> None:
        self.log = Log(TOOL)
        self.bursts = bursts
        self.header: list[str] = []
        self.number = 1
        self.layout = "no header"

    def plain(self) -> list[Column] | None:
        """Return the columns of rows that may be read in blocks: each tells its GPU, or there is only one."""
        return self.log.columns if self.log.columns and self.bursts is None else None

    def block(self, block: bytes, part: Part | None, tried: bool = False) -> Iterator[Batch]:
        """Read a block at once, if it was parsed; else what is plain of it so, and the rest line by line.

        ``tried`` says that without a part the whole block is not plain.
        """
        while block:
            columns = self.plain()
            if part is None and columns is not None and not tried:
                part = parse(block, columns)
            if part is not None and self.log.take(part, self.number):
                self.number += part.rows
                yield self.log.batch()
                return
            part, tried = None, False
            end = cut(block, halve=columns is not None, small=SMALL_BLOCK)
            if columns is not None and end < len(block):
                yield from self.block(block[:end], None)
            else:
                for line in lines_of(block[:end]):
                    self.add(self.number, line)
                    self.number += 1
                    if self.log.full:
                        self.flush()
                        yield self.log.batch(flush=self.bursts is None)
            block = block[end:]

    def add(self, number: int, line: str) -> None:
        """Sort a line."""
        if line[:1].islower() and (header := header_of(line)):
            self._begin(header, number)
        elif not line.strip():
            self.log.skip()
        elif not self.log.columns and not is_bare_row(line):
            # Words of the shell or the program before the log.
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
        self.flush(final=True)
        self.header, self.layout = header, f"{len(header)} columns"
        self.log.begin([column_of(name) for name in header], number)

    def flush(self, final: bool = False) -> None:
        if self.bursts is not None:
            self.bursts.flush(self.log, final)

    def last(self, encoding: str) -> Iterator[Batch]:
        self.flush(final=True)
        yield from self.log.last(encoding, {"layout": self.layout})


def read(stream: BinaryIO) -> Iterator[Batch]:
    """Read a log; a look at its first rows tells whether GPUs without an index take turns."""
    with Text(stream) as text:
        file = _File(bursts_of(_stamps(text)))
        for block, columns, part in ahead(text.blocks(BLOCK_BYTES), file.plain, parse):
            tried = columns is not None and columns is file.plain()
            yield from file.block(bytes(block), part if tried else None, tried)
        yield from file.last(text.encoding)


def _stamps(text: Text, rows: int = 20_000) -> np.ndarray | None:
    """Return the stamps of the first rows of a log in which nothing else tells the GPUs apart."""
    cells: list[str] = []
    place: int | None = None
    for line in text.lines():
        if header := header_of(line):
            columns = [column_of(name) for name in header]
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
    ns, good = Clock().read(cells)
    return ns[good]
