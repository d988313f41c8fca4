"""Reader of the CSV and TSV reports of ``nsys stats``: traces and summaries, several in one file."""

from collections.abc import Iterator
from functools import partial
from typing import BinaryIO

from profsvc.formats.csv_tables import header_in, records
from profsvc.formats.ncu_lines import SKIP, split_cells
from profsvc.formats.nsys_layouts import Layout, begun, layout_of
from profsvc.formats.nsys_reports import Records, Reports, number_format_of
from profsvc.formats.stream import Text
from profsvc.tables import Batch

NAME = "nsys-stats"
PAGE = """\
CSV and TSV reports of Nsight Systems: traces of kernels, copies, calls and ranges, and their summaries.

Make it from a report; several reports may stand in one file, and each report may have its variant such as :base:
    nsys profile -o REPORT PROGRAM
    nsys stats --format csv -r cuda_gpu_trace,cuda_gpu_kern_sum,nvtx_sum REPORT.nsys-rep > FILE

Taken, under new and old names of the reports:
    cuda_gpu_trace (gputrace)           each kernel a launch, each copy and memset a transfer
    cuda_api_trace (cudaapitrace)       calls
    nvtx_pushpop_trace, nvtx_startend_trace    ranges
    cuda_gpu_kern_sum (gpukernsum), cuda_gpu_kern_gb_sum, cuda_gpu_mem_time_sum, cuda_gpu_mem_size_sum, cuda_gpu_sum,
    cuda_api_sum, osrt_sum, nvtx_sum, nvtx_pushpop_sum, nvtx_startend_sum     summaries
Other reports in the file are skipped, counted and named. The unit of a time must stand in its header, as in
Duration (ns). A trace prints the bytes of a copy in MB with 3 decimals; they are made whole with its throughput.

Example:
    Processing [report.sqlite] with [.../reports/cuda_gpu_kern_sum.py]...
    Time (%),Total Time (ns),Instances,Avg (ns),Med (ns),Min (ns),Max (ns),StdDev (ns),Name
    75.0,300000,3,100000.0,99000.0,98000,103000,2645.8,"saxpy(int, float, const float *, float *)"
    25.0,100000,1,100000.0,100000.0,100000,100000,0.0,fill
"""


def _begins(line: str) -> Layout | None:
    if "Total" not in line and "Start" not in line:
        return None
    return layout_of(split_cells(line, _separator(line)))


def _separator(header: str) -> str:
    return "\t" if "\t" in header else ","


def sniff(head: bytes) -> bool:
    """Tell whether a report that is taken begins in ``head``."""
    return header_in(head, _begins) is not None


def read(stream: BinaryIO) -> Iterator[Batch]:
    """Read the reports of a file; two walks over it, because its number format is known only at its end."""
    with Text(stream) as text:
        header = next((line for line in text.lines() if _begins(line)), "")
        split = partial(split_cells, separator=_separator(header))

        def walk() -> Records:
            return records(text.lines(), _begins, begun, split)

        reports, banner = Reports(number_format_of(walk())), ""
        for record, layout in walk():
            if record.kind == SKIP and (name := begun(record.text)):
                banner = name
            elif record.kind == SKIP and layout is None and banner and len(split(record.text)) > 2:
                reports.others[banner] = None
            reports.add(record, layout)
            if reports.rows.full:
                yield reports.rows.batch()
        yield reports.last(text.encoding)
