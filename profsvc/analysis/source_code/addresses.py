"""What the addresses of global loads depend on, from the registers of SASS: the loads before, and the block.

A load whose address comes from the load of the turn before cannot start earlier: so lists are walked. A load whose
place depends on a part of the block index alone, as the quotient or the remainder of a division, loads what other
blocks load.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from profsvc.analysis.source_code.registers import Operands, jumps

Row = Mapping[str, Any]
LOADS = frozenset(("LD", "LDG"))
VALUES = LOADS | {"ATOM", "ATOMG", "ATOMS", "LDL", "LDS", "LDSM"}
"""Opcodes whose result is a value of memory, which no index determines."""
SOURCES_OF_ORIGINS = VALUES | {"S2R", "S2UR"}
BLOCK, QUOTIENT, REMAINDER, THREAD, VALUE = "x", "quotient", "remainder", "thread", "value"
SPECIAL = {"SR_CTAID.X": BLOCK, "SR_CTAID.Y": "y", "SR_CTAID.Z": "z"}
NUMBER = re.compile(r"0x[0-9a-f]+")
AND = "0xc0"
"""The table of LOP3 that is a logical and of its first two operands."""
DEFAULT_BITS = 32
SECTOR_BYTES = 32
Origins = frozenset[str]
NOTHING: Origins = frozenset()


class LoadCounts(NamedTuple):
    """Of the global loads of a launch, by warp and by byte."""

    chained_warps: float
    """Loads of warps whose address comes from the load of the turn of a loop before."""
    shared_bytes: float
    """Bytes requested from places that depend on a part of the block index alone."""


def load_counts(rows: Sequence[Row], code: Sequence[Operands], loops: Sequence[tuple[int, int]]) -> LoadCounts:
    """Return the counts of a launch; ``rows`` are its instructions in the order of their addresses.

    Each has ``sass, instructions, thread_instructions_on, access_size, ideal_l2_sectors``. ``code`` are their
    operands, and ``loops`` are those of `loops_of`.
    """
    if not any(one.opcode in LOADS for one in code):
        return LoadCounts(0.0, 0.0)
    places = chained_loads(code, loops)
    chained = sum(rows[place]["instructions"] or 0 for place in places)
    several = loads_of_several_blocks(code, [row["sass"] for row in rows])
    shared = sum(_bytes(rows[place], per_thread) for place, per_thread in several.items())
    return LoadCounts(float(chained), float(shared))


def _bytes(row: Row, per_thread: bool) -> float:
    """Return the bytes that the warps of a load ask for; one value for all lanes if its place is not ``per_thread``."""
    size = int(row["access_size"] or DEFAULT_BITS) / 8
    if not per_thread:
        return (row["instructions"] or 0) * size
    sectors = row["ideal_l2_sectors"]
    asked = (row["thread_instructions_on"] or 0) * size
    return asked if sectors is None else min(asked, SECTOR_BYTES * sectors)


def loops_of(rows: Sequence[Row]) -> list[tuple[int, int]]:
    """Return the first and last places of loops whose branch back was executed, the innermost first."""
    found = {
        (target, place)
        for name, place, target in jumps([row["sass"] for row in rows], [row["address"] for row in rows])
        if name == "BRA" and target <= place and rows[place]["instructions"]
    }
    return sorted(found, key=lambda loop: loop[1] - loop[0])


def chained_loads(code: Sequence[Operands], loops: Sequence[tuple[int, int]]) -> set[int]:
    """Return the places of loads in loops whose address comes from the value of a load of the turn before."""
    found: set[int] = set()
    loads = [place for place, one in enumerate(code) if one.opcode in LOADS]
    for first, last in loops:
        if not any(first <= place <= last for place in loads):
            continue
        loaded: set[str] = set()
        for turn in (0, 1):
            for place in range(first, last + 1):
                one = code[place]
                comes, is_load = not loaded.isdisjoint(one.read), one.opcode in LOADS
                if turn == 1 and comes and is_load:
                    found.add(place)
                # In the second turn only values of the first count.
                if turn == 0 if is_load else comes:
                    loaded.update(name for name in one.written if not _is_predicate(name))
                elif loaded:
                    loaded.difference_update(one.written)
    return found


def loads_of_several_blocks(code: Sequence[Operands], sass: Sequence[str]) -> dict[int, bool]:
    """Return the places of loads whose address depends on a part of the block index alone, or on none of it.

    Each with whether it depends on the index of the thread.
    A kernel that does not read one of the indices has no blocks along it. What a subroutine does with an index, as one
    that divides, is not followed: with subroutines nothing is known.
    """
    read = {SPECIAL[name] for text in sass if "SR_CTAID" in text for name in SPECIAL if name in text}
    if not read or any(one.opcode == "CALL" for one in code):
        return {}
    origins: dict[str, Origins] = {}
    known = origins.keys()
    addresses: dict[int, Origins] = {}
    for _ in range(2):  # what the end of a loop writes, its beginning reads
        for place, one in enumerate(code):
            own: Origins = NOTHING
            if not known.isdisjoint(one.read):
                for name in one.read:
                    if (more := origins.get(name)) and not _is_predicate(name):
                        own = own | more if own else more
            if one.opcode in LOADS:
                addresses[place] = own
            result = _origins(one, sass[place], own, origins)
            for name in one.written:
                before = origins.get(name, NOTHING)
                if result or before:
                    after = result | before if sass[place].lstrip().startswith("@") else result
                    if after:
                        origins[name] = after
                    else:
                        del origins[name]
    several = (place for place, own in addresses.items() if VALUE not in own and _is_partial(own, read))
    return {place: THREAD in addresses[place] for place in several}


def _is_partial(own: Origins, read: set[str]) -> bool:
    """Whether an address lacks one of the indices that the kernel reads, or a part of the first."""
    whole = own | {BLOCK} if {QUOTIENT, REMAINDER} <= own else own
    return not read <= whole


def _origins(one: Operands, text: str, own: Origins, origins: Mapping[str, Origins]) -> Origins:
    """Return what the result of an instruction depends on, of the block index and of memory."""
    if not own and one.opcode not in SOURCES_OF_ORIGINS:
        return own
    if one.opcode in ("S2R", "S2UR"):
        named = [SPECIAL[name] for name in SPECIAL if name in text]
        return frozenset(named or ([THREAD] if "TID" in text or "LANEID" in text else []))
    if one.opcode in VALUES:
        return frozenset((VALUE,))
    if BLOCK not in own:
        return own
    if one.opcode in ("IMAD", "UIMAD") and ".HI" in text:
        return own - {BLOCK} | {QUOTIENT}
    # What is left of the index after the quotient times the divisor is taken from it.
    quotients = [name for name in one.read if QUOTIENT in origins.get(name, ()) and BLOCK not in origins[name]]
    if one.opcode in ("IADD3", "IMAD", "UIADD3", "UIMAD") and quotients:
        return own - {BLOCK, QUOTIENT} | {REMAINDER}
    numbers = [int(number, 16) for number in NUMBER.findall(text)]
    # With the index of the thread, a shift or a mask may only part it from that of the block.
    if THREAD not in own and numbers:
        if one.opcode in ("SHF", "USHF") and ".R." in text and numbers[-1] < DEFAULT_BITS - 1:
            return own - {BLOCK} | {QUOTIENT}
        if one.opcode in ("LOP3", "ULOP3") and AND in text and numbers[0] & (numbers[0] + 1) == 0:
            return own - {BLOCK} | {REMAINDER}
    return own


def _is_predicate(name: str) -> bool:
    return name.startswith(("P", "UP"))
