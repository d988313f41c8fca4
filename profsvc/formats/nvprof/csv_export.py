"""Reader of the CSV of nvprof: traces, summaries, metrics and events, several tables per file."""

from collections.abc import Iterator
from typing import BinaryIO

from profsvc.formats.nvprof.lines import CsvScanner, first_table_form
from profsvc.formats.nvprof.two_pass import read as read_tables
from profsvc.tables import Batch

NAME = "nvprof"
PAGE = """\
The CSV of nvprof: traces, summaries, metrics and events; several tables and processes in one file.

Create it while profiling; several options at once give several tables, or one that mixes GPU and API rows:
    LC_ALL=C nvprof --csv --log-file FILE --print-gpu-trace PROGRAM
    LC_ALL=C nvprof --csv --log-file FILE --print-api-trace PROGRAM
    LC_ALL=C nvprof --csv --log-file FILE --metrics all --events all PROGRAM
    LC_ALL=C nvprof --csv --log-file FILE --system-profiling on PROGRAM

Stored: every launch, copy, memset, API call and unified memory operation of a trace; every row of a summary; every
metric and event of a kernel with minimum, maximum, average and sum over the invocations, in SI units. An event is the
metric event:NAME. The registers and the shared memory of a launch are columns of it. Board readings (SM Clock (MHz),
Power (mW), ...) are metrics with minimum, maximum and average; the column section holds the device.

Notes:
    KB means 1024 bytes, or 1000 in old versions; the copies of a trace show which (fact "prefixes").
    The number [123] at the end of a kernel name is the number of the call that launched it (correlation_id).
    A level such as Low (2) is stored as 0.2, known to 0.05.
    A cell that is not a number (<OVERFLOW>) has a reason and no value.
    Not stored: percentages of a summary; mean sizes and page addresses of unified memory.
    Dependency analysis, CPU profiles, topologies and other sections are skipped and named in a message.
References:
    https://docs.nvidia.com/cuda/profiler-users-guide

Example:
    ==4711== Profiling result:
    "Start","Duration","Grid X","Grid Y",...,"Size","Throughput","Device","Context","Stream","Name"
    s,ms,,,...,MB,GB/s,,,,
    1.250000,0.512000,,,...,4.000000,7.629395,"GPU A (0)","1","7","[CUDA memcpy HtoD]"
    1.260000,0.131072,1056,1,...,,,"GPU A (0)","1","7","saxpy(float const *, float *) [123]"
"""


def sniff(head: bytes) -> bool:
    """Return whether the first table of nvprof in ``head`` is in CSV."""
    return first_table_form(head) == "csv"


def read(stream: BinaryIO) -> Iterator[Batch]:
    """Read every table of the file."""
    return read_tables(stream, CsvScanner, "csv")
