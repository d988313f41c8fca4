"""Reader of the CSV of nvprof: traces, summaries, metrics and events, in any number in one file."""

from collections.abc import Iterator
from typing import BinaryIO

from profsvc.formats.nvprof_lines import CsvScanner, first_table
from profsvc.formats.nvprof_walks import read as read_tables
from profsvc.tables import Batch

NAME = "nvprof"
PAGE = """\
The CSV of nvprof: traces, summaries, metrics and events; several tables and processes in one file.

Make it while profiling (several of the options at once give several tables, or one that mixes GPU and API rows):
    LC_ALL=C nvprof --csv --log-file FILE --print-gpu-trace PROGRAM
    LC_ALL=C nvprof --csv --log-file FILE --print-api-trace PROGRAM
    LC_ALL=C nvprof --csv --log-file FILE --metrics all --events all PROGRAM
    LC_ALL=C nvprof --csv --log-file FILE --system-profiling on PROGRAM

Taken: every launch, copy, memset, API call and unified memory operation of a trace; every row of a summary; every
metric and event of a kernel (as metric event:NAME, of the device in column section) with its min, max, avg and sum
over the invocations, in SI units. The registers and the shared memory of a launch are columns of it. A level such as
Low (2) is 0.2, known to 0.05. A cell that is not a number (<OVERFLOW>) has the reason and no value. The number [123]
that ends the name of a kernel is that of the call that launched it (correlation_id). The clocks, temperature, power
and fan of a board are metrics SM Clock (MHz), Power (mW), ... with min, max and avg over its readings (invocations),
the board in column section. Not taken: percentages of a summary, mean sizes and page addresses of unified memory;
dependency analysis, CPU profiles, topologies and any other section, which the message names. KB means 1024 bytes, or
1000 in old versions: the copies of a trace tell (fact prefixes). Banners, program output and footnotes are skipped
and counted.

Example:
    ==4711== Profiling result:
    "Start","Duration","Grid X","Grid Y",...,"Size","Throughput","Device","Context","Stream","Name"
    s,ms,,,...,MB,GB/s,,,,
    1.250000,0.512000,,,...,4.000000,7.629395,"GPU A (0)","1","7","[CUDA memcpy HtoD]"
    1.260000,0.131072,1056,1,...,,,"GPU A (0)","1","7","saxpy(float const *, float *) [123]"
"""


def sniff(head: bytes) -> bool:
    """Tell whether the first table of nvprof in ``head`` is in CSV."""
    return first_table(head) == "csv"


def read(stream: BinaryIO) -> Iterator[Batch]:
    """Read every table of the file."""
    return read_tables(stream, CsvScanner, "csv")
