"""Arrays of a thread in registers whose place only running code knows, from SASS.

No instruction names a register by a number. So the place is compared with each one that the array has, and what is
stored or loaded is moved under the guard of its comparison, or selected by it. An array whose places are known when
the code is compiled takes none of these instructions.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from profsvc.analysis.source_code.registers import GUARD, Operands

Row = Mapping[str, Any]
WORD_BYTES = 4
COMPARISON = re.compile(r"ISETP\.(?:EQ|NE)(?:\.U32)?\.AND P\d, PT, (R\d+), (RZ|0x[0-9a-f]+), PT$")
MOVES, SELECTIONS = ("MOV", "IMAD.MOV"), frozenset(("FSEL", "SEL"))
FEWEST_PLACES = 4
"""Comparisons with fewer numbers are of the cases of a program."""
LARGEST_ARRAY_BYTES = 1024
"""A thread has 255 registers of four bytes."""


class _Array:
    """Comparisons of one place with the places of an array, and what moves under them."""

    def __init__(self) -> None:
        self.places: set[int] = set()
        self.instructions: list[int] = []


def register_array_threads(rows: Sequence[Row], code: Sequence[Operands]) -> float:
    """Return the thread instructions of a launch that find the place of an array among its registers.

    ``rows`` are its instructions in the order of their addresses, each with ``sass, thread_instructions_on``; ``code``
    are their operands.
    """
    arrays: list[_Array] = []
    of_place: dict[str, _Array] = {}
    of_predicate: dict[str, _Array] = {}
    for number, (row, one) in enumerate(zip(rows, code, strict=True)):
        text = row["sass"].strip()
        guard = GUARD.match(text)
        found = None if guard else COMPARISON.match(text)
        number_of_bytes = -1 if found is None else 0 if found[2] == "RZ" else int(found[2], 16)
        own: _Array | None = None
        if found and 0 <= number_of_bytes < LARGEST_ARRAY_BYTES and number_of_bytes % WORD_BYTES == 0:
            own = of_place.get(found[1])
            if own is None:
                own = of_place[found[1]] = _Array()
                arrays.append(own)
            own.places.add(number_of_bytes)
        elif (guard and text[guard.end() :].startswith(MOVES)) or one.opcode in SELECTIONS:
            own = next((of_predicate[name] for name in one.read if name in of_predicate), None)
        if own is not None:
            own.instructions.append(number)
        for name in one.written:
            of_place.pop(name, None)
            of_predicate.pop(name, None)
            if found and own is not None:
                of_predicate[name] = own
    taken = {number for array in arrays if len(array.places) >= FEWEST_PLACES for number in array.instructions}
    return float(sum(rows[number]["thread_instructions_on"] or 0 for number in taken))
