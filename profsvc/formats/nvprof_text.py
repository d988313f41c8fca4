"""Reader of what nvprof prints for people, and of the output of runs in which it profiled nothing."""

from collections.abc import Iterator
from typing import BinaryIO

from profsvc.formats.head import head_text
from profsvc.formats.nvprof_lines import IS_NVPROF, TextScanner, first_table
from profsvc.formats.nvprof_walks import read as read_tables
from profsvc.tables import Batch

NAME = "nvprof-text"
WHOLE_FILE = True
PAGE = """\
The text that nvprof prints for people, and the output of a run that profiled nothing.

Taken: what the CSV form gives (see profsvc formats nvprof) of traces, summaries, metrics, events, unified memory and
boards, to the 3 to 7 digits printed. A name of a device that is cut to 15 characters is not taken. Metrics by launch
(--print-gpu-trace --metrics) are read from CSV only. Prefer CSV, which has all digits:
    LC_ALL=C nvprof --csv --log-file FILE ...
A file with banners alone gives nothing but its warnings, a CPU profile alone nothing but a message.

Example:
    ==4711== Profiling result:
                Type  Time(%)      Time     Calls       Avg       Min       Max  Name
     GPU activities:   75.00%  1.5000ms         3  500.00us  480.00us  520.00us  saxpy(float const *, float *)
                       25.00%  500.00us         1  500.00us  500.00us  500.00us  [CUDA memcpy HtoD]
          API calls:  100.00%  250.00ms         3  83.333ms  1.0000us  249.99ms  cudaMalloc
"""


def sniff(head: bytes) -> bool:
    """Tell whether the first table of nvprof in ``head`` is in text, or there are its banners and no table."""
    if found := first_table(head):
        return found == "text"
    text = head_text(head)
    return "rofiling " in text and bool(IS_NVPROF.search(text))


def read(stream: BinaryIO) -> Iterator[Batch]:
    """Read every table of the file."""
    return read_tables(stream, TextScanner, "text")
