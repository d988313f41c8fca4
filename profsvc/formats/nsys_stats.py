"""Reader of the CSV and TSV reports of ``nsys stats``: traces and summaries, several in one file."""

import re
from collections.abc import Iterator
from typing import BinaryIO

import numpy as np

from profsvc.errors import BrokenInputError
from profsvc.formats.blocks import BLOCK, SMALL_BLOCK, apart
from profsvc.formats.csv_tables import Scanner, header_in
from profsvc.formats.head import header_lines
from profsvc.formats.ncu_lines import SKIP, Record, split_cells
from profsvc.formats.nsys_blocks import Part, Plan, parse, plan_of
from profsvc.formats.nsys_layouts import Layout, begun, layout_of, left
from profsvc.formats.nsys_reports import Reports, show
from profsvc.formats.numbers import Evidence
from profsvc.formats.stream import Text
from profsvc.tables import Batch, Wide, frame_of_arrays

NAME = "nsys-stats"
PAGE = """\
CSV and TSV reports of Nsight Systems: traces of kernels, copies, calls and ranges, and their summaries.

Make it from a report; several reports may stand in one file, and each report may have its variant such as :base:
    nsys profile -o REPORT PROGRAM
    nsys stats --format csv -r cuda_gpu_trace,cuda_gpu_kern_sum,nvtx_sum REPORT.nsys-rep > FILE

Taken, under new and old names of the reports:
    cuda_gpu_trace (gputrace)           each kernel a launch, each copy and memset a transfer
    cuda_api_trace (cudaapitrace)       calls
    cuda_kern_exec_trace                each kernel a launch, with how long its call took and it waited as metrics;
                                        not beside cuda_gpu_trace, which tells of the same kernels
    nvtx_pushpop_trace, nvtx_startend_trace, mpi_event_trace    ranges
    cuda_gpu_kern_sum (gpukernsum), cuda_gpu_kern_gb_sum, cuda_gpu_mem_time_sum, cuda_gpu_mem_size_sum, cuda_gpu_sum,
    cuda_api_sum, osrt_sum, nvtx_sum, nvtx_pushpop_sum, nvtx_startend_sum, mpi_event_sum, openacc_sum, openmp_sum
                                        summaries; those of MPI, OpenACC and OpenMP are of ranges, osrt_sum is of
                                        calls of the system (os), no part of those of CUDA (api)
Other reports in the file are skipped, counted and named; a file of nothing else is refused. The unit of a time must
stand in its header, as in Duration (ns). A trace prints the bytes of a copy in MB with 3 decimals; they are made whole
with its throughput.

Example:
    Processing [report.sqlite] with [.../reports/cuda_gpu_kern_sum.py]...
    Time (%),Total Time (ns),Instances,Avg (ns),Med (ns),Min (ns),Max (ns),StdDev (ns),Name
    75.0,300000,3,100000.0,99000.0,98000,103000,2645.8,"saxpy(int, float, const float *, float *)"
    25.0,100000,1,100000.0,100000.0,100000,100000,0.0,fill
"""

FIRST_BLOCK = 1 << 16
# Few lines have one of these words, and most of those are headers.
_LEFT_BEGINS = re.compile(r"NVTX Range|Proj|QCount|Migration Size|CPU Page Faults")


def _begins(line: str) -> Layout | None:
    if "Total" not in line and "Start" not in line:
        return None
    return layout_of(split_cells(line, _separator(line)))


def _separator(header: str) -> str:
    return "\t" if "\t" in header else ","


def sniff(head: bytes) -> bool:
    """Tell whether a report that is taken begins in ``head``."""
    return header_in(head, _begins) is not None or any(_left(line) for line in header_lines(head))


def _left(line: str) -> str | None:
    """Return why the report that ``line`` is the header of is not taken."""
    return left(split_cells(line, _separator(line))) if _LEFT_BEGINS.search(line) else None


class _Walk:
    """The second walk over a file, which takes its rows; the first has found its number format, as far as it goes."""

    def __init__(self, text: Text, separator: str, evidence: Evidence) -> None:
        self.text, self.separator, self.evidence = text, separator, evidence
        self.scanner = _scanner(separator)
        self.reports = Reports(evidence.decide())
        self.seen = _size(evidence)
        self.line = 1
        self.banner = ""

    def batches(self) -> Iterator[Batch]:
        for found in apart(self.text.blocks(BLOCK), self._plan, parse, SMALL_BLOCK):
            if isinstance(found, Part):
                yield from self._take(found)
                continue
            for line in found:
                for record in self.scanner.feed(self.line, line):
                    self._record(record)
                self.line += 1
                if self.reports.rows.full:
                    yield self.reports.rows.batch()
        for record in self.scanner.finish():
            self._record(record)
        yield self.reports.last(self.text.encoding)

    def _plan(self) -> Plan | None:
        return _plan(self.scanner, self.separator, self.evidence)

    def _record(self, record: Record) -> None:
        layout = self.scanner.layout
        show(self.evidence, record, layout)
        if _size(self.evidence) != self.seen:
            self.seen = _size(self.evidence)
            self.reports.read_as(self.evidence.decide())
        if record.kind == SKIP and (name := begun(record.text)):
            self.banner = name
        elif record.kind == SKIP and layout is None and self.banner and len(self.scanner.split(record.text)) > 2:
            self.reports.others[self.banner] = None
        self.reports.add(record, layout)

    def _take(self, part: Part) -> Iterator[Batch]:
        """Take a part as the rows that its lines are."""
        rows, plan = self.reports.rows, self._plan()
        assert plan is not None
        if rows.count:
            yield rows.batch()
        tables, wide = {}, None
        for name, columns in part.tables.items():
            columns["line"] = columns["line"] + self.line
            if name == "launches":
                columns["launch_index"] = np.arange(len(columns["line"])) + rows.launches
                if part.metrics:
                    letters, bounds, values = part.metrics
                    wide = Wide(plan.wide, rows.launches, columns["line"], letters, bounds, values)
                rows.launches += len(columns["line"])
            tables[name] = frame_of_arrays(name, len(columns["line"]), columns)
        self.scanner.passed()
        self.line += part.rows
        self.reports.stored += part.rows
        rows.ledger.stored += part.rows
        yield rows.ledger.batch(tables, wide=wide)


def _scanner(separator: str) -> Scanner[Layout]:
    return Scanner(_begins, begun, separator)


def _plan(scanner: Scanner[Layout], separator: str, evidence: Evidence) -> Plan | None:
    if scanner.layout is None or scanner.in_cell or not scanner.spare_as_header:
        return None
    return plan_of(scanner.layout, separator, evidence.decide().decimal if evidence.settled else "")


def _size(evidence: Evidence) -> tuple[int, int]:
    """Return what changes whenever the number format may."""
    return len(evidence.found), len(evidence.integers)


def _evidence_of(text: Text, separator: str) -> Evidence:
    """Walk a file until it is known which sign marks decimals; rows with digits only say nothing of it."""
    evidence, scanner, number = Evidence(), _scanner(separator), 1
    for found in apart(
        text.blocks(BLOCK, FIRST_BLOCK), lambda: _plan(scanner, separator, evidence), parse, SMALL_BLOCK
    ):
        if isinstance(found, Part):
            scanner.passed()
            number += found.rows
            continue
        for line in found:
            for record in scanner.feed(number, line):
                show(evidence, record, scanner.layout)
            number += 1
        if evidence.settled:
            break
    return evidence


def read(stream: BinaryIO) -> Iterator[Batch]:
    """Read the reports of a file; two walks over it, because its number format may be known only at its end."""
    with Text(stream) as text:
        header = next((line for line in text.lines() if _begins(line)), "")
        if not header and (why := next(filter(None, map(_left, text.lines())), None)):
            raise BrokenInputError(why)
        separator = _separator(header)
        yield from _Walk(text, separator, _evidence_of(text, separator)).batches()
