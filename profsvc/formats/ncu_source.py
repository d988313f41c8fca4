"""The source page of Nsight Compute: recognised, so that the message can say which page to upload instead."""

from collections.abc import Iterator
from typing import BinaryIO

from profsvc.errors import BrokenInputError
from profsvc.formats import ncu
from profsvc.formats.ncu_lines import page_in
from profsvc.formats.stream import Text
from profsvc.tables import Batch

NAME = "ncu-source"
PAGE = """\
The source page of Nsight Compute: not read, because it lists instructions and not counters of launches.

Upload another page of the same report:
    LC_ALL=C ncu -i REPORT.ncu-rep --csv --page raw --print-units base > FILE
Samples of an instruction, which this page is for, belong beside the source: look at them in the window of the tool.

Example of what is refused:
    "Kernel Name","saxpy(const float *, float *)",
    "Address","Source","Warp Stall Sampling (All Samples)","Warp Stall Sampling (Not-issued Samples)","# Samples",...
    "0x7f24937a0000","      LDC R1, c[0x0][0x28]","12","10","12",...
"""


def sniff(head: bytes) -> bool:
    """Tell whether ``head`` holds the header of a source page, and no page of launches."""
    return page_in(head) == "source"


def read(stream: BinaryIO) -> Iterator[Batch]:
    """Refuse the file with `BrokenInputError`, which says what to export."""
    yield from ()  # a reader is a generator, also one that never yields
    with Text(stream) as text:
        number = next((number for number, line in ncu.numbered(text) if page_in(line.encode()) == "source"), None)
    what = "no header of a source page is in the file" if number is None else (
        f"line {number}: this is a source page, a table of instructions or source lines without counters of launches"
    )  # fmt: skip
    raise BrokenInputError(f"{what}; {ncu.EXPORT_AGAIN}")
