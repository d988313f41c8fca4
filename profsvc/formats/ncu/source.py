"""The source page of Nsight Compute: recognized, so that a message can name the page to upload instead."""

from collections.abc import Iterator
from typing import BinaryIO

from profsvc.errors import BrokenInputError
from profsvc.formats.ncu import launches as ncu_launches
from profsvc.formats.ncu.csv_lines import first_page_kind
from profsvc.formats.parsing.ledger import numbered_lines
from profsvc.formats.parsing.stream import Text
from profsvc.tables import Batch

NAME = "ncu-source"
PAGE = """\
The source page of Nsight Compute: not read, because it lists instructions and not counters of launches.

Upload another page of the same report:
    LC_ALL=C ncu -i REPORT.ncu-rep --csv --page raw --print-units base > FILE

Notes:
    This page is for samples per instruction; view them beside the source in the window of the tool.

Example of a refused file:
    "Kernel Name","saxpy(const float *, float *)",
    "Address","Source","Warp Stall Sampling (All Samples)","Warp Stall Sampling (Not-issued Samples)","# Samples",...
    "0x7f24937a0000","      LDC R1, c[0x0][0x28]","12","10","12",...
"""


def sniff(head: bytes) -> bool:
    """Return whether the first table in ``head`` is of the source page."""
    return first_page_kind(head) == "source"


def read(stream: BinaryIO) -> Iterator[Batch]:
    """Raise `BrokenInputError`, which names the page to export."""
    yield from ()  # makes this function a generator, like every reader
    with Text(stream) as text:
        number = next(
            (number for number, line in numbered_lines(text) if first_page_kind(line.encode()) == "source"), None
        )
    what = "no header of a source page is in the file" if number is None else (
        f"line {number}: this is a source page, a table of instructions or source lines without counters of launches"
    )  # fmt: skip
    raise BrokenInputError(f"{what}; {ncu_launches.EXPORT_HINT}")
