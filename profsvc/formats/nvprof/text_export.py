"""Reader of the text output of nvprof, and of the output of runs that profiled nothing."""

from collections.abc import Iterator
from typing import BinaryIO

from profsvc.formats.nvprof.lines import IS_NVPROF, TextScanner, first_table_form
from profsvc.formats.nvprof.two_pass import read as read_tables
from profsvc.formats.parsing.head import head_text
from profsvc.tables import Batch

NAME = "nvprof-text"
WHOLE_FILE = True


def sniff(head: bytes) -> bool:
    """Return whether the first table of nvprof in ``head`` is text, or there are banners and no table."""
    if found := first_table_form(head):
        return found == "text"
    text = head_text(head)
    return "rofiling " in text and bool(IS_NVPROF.search(text))


def read(stream: BinaryIO) -> Iterator[Batch]:
    """Read every table of the file."""
    return read_tables(stream, TextScanner, "text")
