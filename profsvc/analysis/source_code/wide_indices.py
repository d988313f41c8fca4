"""Indices that are computed in 64 bits, from SASS: what the upper halves of them cost.

A place of memory has an address of 64 bits, whose upper half one instruction completes. The indices that it is computed
from rarely need so many: each sum, comparison and product of them has further instructions for the upper halves.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from profsvc.analysis.source_code.registers import Operands, last_write, operands

Row = Mapping[str, Any]
ACCESSES = frozenset(("ATOM", "ATOMG", "LD", "LDG", "RED", "REDG", "ST", "STG"))
VALUES = ACCESSES | {"ATOMS", "LDL", "LDS", "LDSM", "SHFL"}
"""Opcodes whose result does not follow from indices alone."""
# Sums and comparisons with a carry, and the upper word of a scaled or widened index.
UPPER = ("X", "EX")
# A product of two numbers of 64 bits is one of their lower halves, two across and the sum of these.
OF_PRODUCT = 3
ADDRESS = re.compile(r"\[([^\[\]]*)\]")
# An index of 32 bits tells so many places apart.
MOST_PLACES = float(1 << 32)


def upper_half_threads(rows: Sequence[Row], code: Sequence[Operands], loops: Sequence[tuple[int, int]]) -> float:
    """Return the thread instructions of a launch for upper halves of indices, beyond one for each access.

    ``rows`` are its instructions in the order of their addresses, each with ``sass, thread_instructions_on``; ``code``
    are their operands, ``loops`` the first and last places of their loops. A launch that accesses more places than 32
    bits tell apart may need them: 0.
    """
    executed = [float(row["thread_instructions_on"] or 0) for row in rows]
    accesses = [place for place, one in enumerate(code) if one.opcode in ACCESSES and executed[place]]
    accessed = sum(executed[place] for place in accesses)
    if not accessed or accessed > MOST_PLACES:
        return 0.0
    upper = 0.0
    for place in _of_addresses(rows, code, loops, accesses):
        if _is_upper(rows[place]["sass"]):
            upper += executed[place]
        elif _completes_product(code, place):
            upper += OF_PRODUCT * executed[place]
    return max(upper - accessed, 0.0)


def _is_upper(sass: str) -> bool:
    text = sass.strip()
    name = text.split()[1] if text.startswith("@") else text.split()[0]
    return any(modifier in UPPER for modifier in name.split(".")[1:])


def _completes_product(code: Sequence[Operands], place: int) -> bool:
    """Whether an instruction adds to the upper half of a product what stands in the register of that half."""
    one = code[place]
    if one.opcode not in ("IADD3", "IMAD", "VIADD") or len(one.written) != 1:
        return False
    for before in range(place - 1, max(place - 16, -1), -1):
        written = code[before].written
        if one.written[0] in written or any(name in written for name in one.read):
            wide = code[before].opcode == "IMAD" and len(written) >= 2
            if wide and written[1] in one.read:
                return True
    return False


def _of_addresses(
    rows: Sequence[Row], code: Sequence[Operands], loops: Sequence[tuple[int, int]], accesses: Sequence[int]
) -> set[int]:
    """Return the places of instructions that addresses of accesses are computed by."""
    asked = [(place, name) for place in accesses for name in _address(rows[place]["sass"])]
    found: set[int] = set()
    while asked:
        place = last_write(code, loops, *asked.pop())
        if place is not None and place not in found and code[place].opcode not in VALUES:
            found.add(place)
            asked += [(place, name) for name in code[place].read]
    return found


def _address(sass: str) -> tuple[str, ...]:
    """Return the registers of the address of an access.

    >>> _address("STG.E desc[UR6][R2.64+0x8], R9"), _address("LDG.E R0, desc[UR4][R2.64+UR8]")
    (('R2', 'R3'), ('R2', 'R3', 'UR8'))
    """
    found = ADDRESS.findall(sass)
    return operands(f"LDG RZ, [{found[-1]}]").read if found else ()
