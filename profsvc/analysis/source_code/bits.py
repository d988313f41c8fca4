"""Bits that are moved one at a time, which masks and shifts of words move all at once: SASS.

A bit is taken out of a word by a shift to the right and a mask of one bit, shifted to its new place, and added to the
others. Loops that do only this, with the counters of their shifts, take six to eight instructions for each bit. Words
whose halves, quarters and so on are spread by a shift, a sum and a mask each take one for each bit at most: four such
steps spread ten bits, or five steps sixteen.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from profsvc.analysis.source_code.addresses import VALUES
from profsvc.analysis.source_code.registers import STORES, Operands

Row = Mapping[str, Any]
ONE_BIT = re.compile(r"LOP3\.LUT R\d+, R\d+\S*, 0x1, RZ, 0xc0")
SHIFTS = frozenset(("SHF", "IMAD", "LEA"))
# Longer loops do something else beside.
MOST_PER_BIT = 10.0
NEEDED_PER_BIT = 1.0


def bit_by_bit_threads(rows: Sequence[Row], code: Sequence[Operands], loops: Sequence[tuple[int, int]]) -> float:
    """Return the thread instructions of a launch that move bits one at a time, beyond those that words take.

    ``rows`` are its instructions in the order of their addresses, each with ``sass, thread_instructions_on``; ``code``
    are their operands, ``loops`` the first and last places of their loops, the innermost first.
    """
    wasted, seen = 0.0, set[int]()
    for first, last in loops:
        body = range(first, last + 1)
        if not seen.isdisjoint(body):
            continue
        seen.update(body)
        bits = sum(_moves_a_bit(rows, code, place, last) for place in body)
        others = any(code[place].opcode in VALUES | STORES | {"LD"} for place in body)
        if not bits or others or len(body) > MOST_PER_BIT * bits:
            continue
        executed = sum(rows[place]["thread_instructions_on"] or 0 for place in body)
        wasted += executed * (1 - NEEDED_PER_BIT * bits / len(body))
    return wasted


def _moves_a_bit(rows: Sequence[Row], code: Sequence[Operands], place: int, last: int) -> bool:
    """Whether an instruction masks one bit of a word that was shifted, and the next to read it shifts it back."""
    if not ONE_BIT.search(rows[place]["sass"]):
        return False
    word, bit = code[place].read[0], code[place].written[0]
    before = next((one for one in range(place - 1, -1, -1) if word in code[one].written), None)
    after = next((one for one in range(place + 1, last + 1) if bit in code[one].read), None)
    if before is None or after is None or code[before].opcode != "SHF" or ".R." not in rows[before]["sass"]:
        return False
    return code[after].opcode in SHIFTS
