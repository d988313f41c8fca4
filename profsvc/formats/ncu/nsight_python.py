"""Reader of the frames of nsight-python, saved as CSV: a value of a metric per row, of each run or of all runs."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import BinaryIO, cast

from profsvc.errors import BrokenInputError, wrong_cell_count
from profsvc.formats.native.annotated_csv import AnnotatedCsvReader, first_cells
from profsvc.formats.ncu import launches as ncu_launches
from profsvc.formats.ncu.values import MetricRows, Subject
from profsvc.formats.parsing.ledger import whole_number, with_table
from profsvc.formats.parsing.line_reader import read_lines
from profsvc.formats.parsing.numbers import NOT_NUMBERS, NumberFormat, Numbers
from profsvc.tables import Batch

NAME = "ncu-python"

TOOL = "nsight-python"
SHARED = ("Annotation", "Metric", "Kernel", "GPU", "Host", "ComputeClock", "MemoryClock", "Unit")
RUNS = {*SHARED, "Value"}
STATISTICS = ("MinValue", "MaxValue", "AvgValue")  # in the order of `MetricRows`
FRAME = {*SHARED, *STATISTICS, "NumRuns", "StdDev"}
# Columns of the frame that nsight-python computes from the others.
COMPUTED = {
    "CI95_Lower",
    "CI95_Upper",
    "RelativeStdDevPct",
    "StableMeasurement",
    "Normalized",
    "NormalizationValue",
    "Geomean",
}
NOT_PARAMETERS = {*RUNS, *FRAME, *COMPUTED}
CLOCKS = {"ComputeClock": "device__attribute_clock_rate", "MemoryClock": "device__attribute_memory_clock_rate"}
NUMBERS = ("Value", *STATISTICS, *CLOCKS)
NOT_NORMALIZED = {"", "False"}
DURATION = "gpu__time_duration.sum"
BATCH_ROWS = 5_000


def sniff(head: bytes) -> bool:
    """Return whether the first line has the columns of one of the two files."""
    return _is_header(first_cells(head))


def _is_header(cells: list[str]) -> bool:
    return set(cells) >= RUNS or set(cells) >= FRAME


class _Reader(AnnotatedCsvReader):
    """Sorts the values of a file into launches and metrics."""

    def __init__(self) -> None:
        super().__init__(NAME, "value of a metric")
        self.values = MetricRows(Numbers(NumberFormat()))
        # The launch of each run of a configuration, and how many values each metric of a configuration has so far.
        self.launches: dict[tuple[str, ...], dict[str, object]] = {}
        self.runs: dict[tuple[str, ...], int] = {}
        self.stored = 0

    def columns_of(self, cells: list[str], line: int | None = None) -> list[str] | None:
        """Return the columns of a header; refuse one with missing or repeated columns on a given ``line``."""
        known = _is_header(cells)
        twice = [name for name in dict.fromkeys(cells) if cells.count(name) > 1]
        if line is not None and (twice or not known):
            lacks = ", ".join(name for name in (*SHARED, "Value") if name not in cells)
            wrong = f"has {twice[0]!r} twice" if twice else f"lacks {lacks}"
            raise BrokenInputError(f"line {line}: the header {wrong}; see: profsvc formats {NAME}")
        return cells if known else None

    def add_row(self, number: int, cells: list[str]) -> None:
        """Add a value; raise `ValueError` to reject it."""
        if len(cells) != len(self.header):
            raise ValueError(wrong_cell_count(len(cells), len(self.header)))
        row = dict(zip(self.header, cells, strict=True))
        if not row["Metric"] or not row["Kernel"]:
            raise ValueError("it has no metric or no kernel")
        for column in NUMBERS:
            cell = row.get(column, "")
            if cell.lower() not in NOT_NUMBERS and self.values.numbers[cell] != self.values.numbers[cell]:
                raise ValueError(f"{column} is {cell!r}, not a number")
        given = [f"{name}={row[name]}" for name in self.header if name not in NOT_PARAMETERS]
        section = " ".join([row["Annotation"], *given])
        if "Value" in row:
            self._add_run(number, row, section)
        else:
            self._add_frame(number, row, section)
        self.stored += 1

    def _add_run(self, number: int, row: Mapping[str, str], section: str) -> None:
        """Add a value of a single run: the n-th of a metric in its configuration is of the n-th run."""
        configuration = (section, row["Kernel"], row["GPU"], row["Host"])
        run = self.runs[*configuration, row["Metric"]] = self.runs.get((*configuration, row["Metric"]), 0) + 1
        key = (*configuration, str(run))
        new = key not in self.launches
        launch = self.launches.setdefault(key, {
            "launch_index": len(self.launches), "kernel": row["Kernel"], "device": row["GPU"] or None,
            "host": row["Host"] or None, "duration_ns": None, "line": number,
        })  # fmt: skip
        subject = Subject(cast("int", launch["launch_index"]))
        self.values.add(subject, section, row["Metric"], number, row["Unit"], [row["Value"]])
        if row["Metric"] == DURATION:
            value = self.values.numbers[row["Value"]]
            launch["duration_ns"] = ncu_launches.duration_ns(value, row["Unit"], self.values.scales)
        for column, metric in CLOCKS.items() if new else ():
            if row[column]:
                self.values.add(subject, None, metric, number, "", [row[column]])

    def _add_frame(self, number: int, row: Mapping[str, str], section: str) -> None:
        """Add the statistics of a metric over the runs of a configuration."""
        runs = whole_number(row["NumRuns"])
        if runs is None:
            raise ValueError(f"NumRuns is {row['NumRuns']!r}, not a whole number")
        is_ratio = row.get("Normalized", "") not in NOT_NORMALIZED
        cells = [row[name] for name in STATISTICS[:2]] + ["" if is_ratio else row["AvgValue"]]
        subject = Subject(kernel=row["Kernel"], invocations=runs)
        self.values.add(subject, section, row["Metric"], number, row["Unit"], cells)
        if row["Metric"] == DURATION and all(cells):
            self.values.add_duration(subject, number, row["Unit"], cells)

    @property
    def full(self) -> bool:
        """Whether there are enough values for a batch."""
        return len(self.values) >= BATCH_ROWS or self.ledger.full

    def batch(self) -> Batch:
        """Return the values since the last batch."""
        return self.ledger.batch(self.values.take())

    def last(self, encoding: str) -> Iterator[Batch]:
        """Yield the rest, the launches and the facts of the file; refuse a file without a value."""
        if not self.stored:
            self.refuse_empty()
        kind = "runs" if "Value" in self.header else "frame"
        batch = self.batch()
        facts = {"tool": TOOL, "encoding": encoding, "content": kind}
        yield with_table(replace(batch, facts=facts), "launches", list(self.launches.values()))


def read(stream: BinaryIO) -> Iterator[Batch]:
    """Read a file in one pass."""
    return read_lines(stream, lambda _: _Reader())
