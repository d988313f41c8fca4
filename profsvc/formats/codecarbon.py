"""Reader of the emissions.csv of CodeCarbon: the energy of each tracked run, a row a run."""

from collections.abc import Iterator
from typing import BinaryIO

from profsvc.errors import unfit
from profsvc.formats.channels import beside
from profsvc.formats.clock import stamp
from profsvc.formats.head import head_lines
from profsvc.formats.ncu import numbered
from profsvc.formats.ncu_lines import split_cells
from profsvc.formats.sensor_log import Log
from profsvc.formats.sensors import Column
from profsvc.formats.stream import Text
from profsvc.formats.zeus import nanoseconds
from profsvc.tables import Batch

NAME = "codecarbon"
PAGE = """\
The emissions.csv of CodeCarbon: the energy of each tracked run, a row a run.

Make it with EmissionsTracker() around the work; each stop() or flush() adds a row.

Taken: every row as a range that ends at its timestamp and has its duration, under the name of the project; the energies
of CPU, GPU, RAM and all of them in J (CodeCarbon writes kWh), and the mean powers in W. Both are of a run, not of a
moment, so they are quantities of their own: run energy and mean power. Rows of one run_id that flush() wrote hold the
energy since its beginning. Emissions depend on the country and are not taken. Times are local, unless they name a zone.

Example:
    timestamp,project_name,run_id,duration,emissions,cpu_power,gpu_power,cpu_energy,gpu_energy,energy_consumed
    2025-10-09T11:25:18,train,bc722d50,116.1,0.00218,45.0,226.9,0.00149,0.00739,0.00951
"""

TOOL = "CodeCarbon"
NEEDED = {"timestamp", "project_name", "duration", "emissions"}
OF_RUN = "energy of a whole run, not a counter"
MEAN = "mean power of a whole run"
ENERGIES = ("cpu_energy", "gpu_energy", "ram_energy", "energy_consumed")
POWERS = ("cpu_power", "gpu_power", "ram_power")


def _header(line: str) -> list[str] | None:
    cells = [cell.strip() for cell in line.lstrip("\ufeff").strip().split(",")]
    return cells if set(cells) >= NEEDED and {*ENERGIES} & set(cells) else None


def sniff(head: bytes) -> bool:
    """Tell whether ``head`` begins with the columns of CodeCarbon."""
    return _header(head_lines(head, 1)[0]) is not None


class _File:
    """Sorts the lines of a log."""

    def __init__(self) -> None:
        self.log = Log(TOOL)
        self.header: list[str] = []
        self.taken: list[int] = []
        self.runs: list[dict[str, object]] = []
        self.clock: str | None = None

    def add(self, number: int, line: str) -> None:
        """Account for a line."""
        if header := _header(line):
            if header != self.header:
                self._begin(header, number)
            self.log.skip()
        elif not line.strip() or not self.header:
            self.log.skip()
        elif line.count('"') % 2:
            self.log.reject(number, line, "a quote is not closed on its line")
        else:
            self._run(number, line, split_cells(line))

    def _begin(self, header: list[str], number: int) -> None:
        self.header = header
        energies = [name for name in ENERGIES if name in header]
        powers = [name for name in POWERS if name in header]
        self.taken = [header.index(name) for name in (*energies, *powers)]
        columns = [Column("timestamp", "time")]
        columns += [Column(name, "value", "run energy", "J", "kWh", note=OF_RUN) for name in energies]
        columns += [Column(name, "value", "mean power", "W", "W", note=MEAN) for name in powers]
        self.log.begin(columns, number)

    def _run(self, number: int, line: str, cells: list[str]) -> None:
        if len(cells) != len(self.header):
            self.log.reject(number, line, unfit(len(cells), len(self.header)))
            return
        cell = dict(zip(self.header, cells, strict=True))
        end, duration = stamp(cell["timestamp"]), nanoseconds(cell["duration"])
        if end is None or duration is None or end[0] != (self.clock or end[0]):
            shown = f"{cell['timestamp']!r} or {cell['duration']!r}"
            self.log.reject(number, line, f"timestamp or duration, {shown}, is no time, or one of another clock")
            return
        before, self.clock = self.log.rejected, end[0]
        self.log.row(number, [cell["timestamp"], *(cells[place] for place in self.taken)], line)
        if self.log.rejected == before:
            start = end[1] - duration
            self.runs.append(
                {"name": cell["project_name"], "start_ns": start, "duration_ns": float(duration), "line": number}
            )

    def batch(self) -> Batch:
        """Hand on what was gathered."""
        rows, self.runs = self.runs, []
        return beside(self.log.batch(), "ranges", rows)


def read(stream: BinaryIO) -> Iterator[Batch]:
    """Read the runs in one walk over the file."""
    with Text(stream) as text:
        file = _File()
        for number, line in numbered(text):
            file.add(number, line)
            if file.log.full:
                yield file.batch()
        yield file.batch()
        yield from file.log.last(text.encoding, {})
