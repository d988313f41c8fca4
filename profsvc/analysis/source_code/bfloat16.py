"""Values of bfloat16 that become single precision, which has no instruction of its own: SASS.

A bfloat16 is the upper half of a float, so a shift, a mask or a permutation of bytes unpacks it. The same instructions
work on integers: those are values whose result arithmetic of single precision reads, or that go to a tile in shared
memory for it.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from profsvc.analysis.source_code.registers import Operands

UNPACKING = re.compile(
    r"SHF\.L\.U32 R\d+, R\d+\S*, 0x10, RZ"
    r"|IMAD(?:\.SHL)?\.U32 R\d+, R\d+\S*, 0x10000, RZ"
    r"|LOP3\.LUT R\d+, R\d+\S*, 0xffff0000, RZ, 0xc0"
    r"|PRMT R\d+, RZ, 0x(?:5410|7610), R\d+"
)
OPCODES = frozenset(("IMAD", "LOP3", "PRMT", "SHF"))
READERS = frozenset(("FADD", "FFMA", "FMUL", "STS"))


def unpacked_threads(rows: Sequence[Mapping[str, Any]], code: Sequence[Operands]) -> float:
    """Return the thread instructions of a launch that unpack a bfloat16, at least.

    ``rows`` are its instructions in the order of their addresses, each with ``sass, thread_instructions_on``; ``code``
    their operands. A value that is read in the next turn of a loop alone is not found.
    """
    unpacked: dict[str, int] = {}
    read: set[int] = set()
    for place, own in enumerate(code):
        if unpacked:
            if own.opcode in READERS:
                read.update(unpacked[name] for name in own.read if name in unpacked)
            for name in own.written:
                unpacked.pop(name, None)
        if own.opcode in OPCODES and UNPACKING.search(rows[place]["sass"]):
            unpacked[own.written[0]] = place
    return float(sum(rows[place]["thread_instructions_on"] or 0 for place in read))
