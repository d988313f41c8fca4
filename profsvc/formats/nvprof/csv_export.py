"""Reader of the CSV of nvprof: traces, summaries, metrics and events, several tables per file."""

from collections.abc import Iterator
from typing import BinaryIO

from profsvc.formats.nvprof.lines import CsvScanner, first_table_form
from profsvc.formats.nvprof.two_pass import read as read_tables
from profsvc.tables import Batch

NAME = "nvprof"


def sniff(head: bytes) -> bool:
    """Return whether the first table of nvprof in ``head`` is in CSV."""
    return first_table_form(head) == "csv"


def read(stream: BinaryIO) -> Iterator[Batch]:
    """Read every table of the file."""
    return read_tables(stream, CsvScanner, "csv")
