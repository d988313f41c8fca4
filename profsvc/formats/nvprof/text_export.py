"""Reader of the text output of nvprof, and of the output of runs that profiled nothing."""

from collections.abc import Iterator
from typing import BinaryIO

from profsvc.formats.nvprof.lines import IS_NVPROF, TextScanner, first_table_form
from profsvc.formats.nvprof.two_pass import read as read_tables
from profsvc.formats.parsing.head import head_text
from profsvc.tables import Batch

NAME = "nvprof-text"
WHOLE_FILE = True
PAGE = """\
The text output of nvprof, and the output of a run that profiled nothing.

Create it with
    LC_ALL=C nvprof --log-file FILE PROGRAM
Prefer CSV, which has all digits:
    LC_ALL=C nvprof --csv --log-file FILE PROGRAM

Stored: the same as from the CSV form (see profsvc formats nvprof) of traces, summaries, metrics, events, unified memory
and boards, with the 3 to 7 printed digits.

Notes:
    nvprof cuts the device name to 15 characters; a cut name is not stored.
    Metrics per launch (--print-gpu-trace --metrics) are read from CSV only.
    A file with banners only gives their warnings; a CPU profile only gives a message.

Example:
    ==4711== Profiling result:
                Type  Time(%)      Time     Calls       Avg       Min       Max  Name
     GPU activities:   75.00%  1.5000ms         3  500.00us  480.00us  520.00us  saxpy(float const *, float *)
                       25.00%  500.00us         1  500.00us  500.00us  500.00us  [CUDA memcpy HtoD]
          API calls:  100.00%  250.00ms         3  83.333ms  1.0000us  249.99ms  cudaMalloc
"""


def sniff(head: bytes) -> bool:
    """Return whether the first table of nvprof in ``head`` is text, or there are banners and no table."""
    if found := first_table_form(head):
        return found == "text"
    text = head_text(head)
    return "rofiling " in text and bool(IS_NVPROF.search(text))


def read(stream: BinaryIO) -> Iterator[Batch]:
    """Read every table of the file."""
    return read_tables(stream, TextScanner, "text")
