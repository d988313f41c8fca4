"""Registers of SASS instructions: what each writes and reads, and which one a waiting instruction waits for."""

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

GUARD = re.compile(r"@!?(U?P\d+|U?PT)\s+")
REGISTER = re.compile(r"(?<![\w.])(UR|R|UP|P)(\d+)(?:\.(\w+))?")
PREDICATE = re.compile(r"!?U?P(?:\d|T)")
# Commas between operands, but not those inside of an address.
COMMA = re.compile(r",(?![^\[]*\])")
TARGET = re.compile(r"\b(BRA|CALL)\b\S*\s+(?:!?U?P\d,\s*)?(0x[0-9a-f]+)")
STORES = frozenset(("ST", "STG", "STL", "STS"))
WITHOUT_RESULT = STORES | {
    "BAR", "BRA", "BREAK", "BRX", "BSSY", "BSYNC", "CALL", "CCTL", "DEPBAR", "ERRBAR", "EXIT", "LDGDEPBAR", "MEMBAR",
    "NANOSLEEP", "NOP", "RED", "REDG", "RET", "STSM", "UTMALDG", "WARPSYNC", "YIELD",
}  # fmt: skip
COMPARISONS = {
    "DSETP": 2, "FCHK": 1, "FSETP": 2, "HSETP2": 2, "ISETP": 2, "PLOP3": 2, "UISETP": 2, "VOTE": 2, "VOTEU": 2,
}  # fmt: skip
"""Opcodes that write predicates alone, and how many."""
WIDTHS = {"64": 2, "U64": 2, "S64": 2, "WIDE": 2, "128": 4}
SHIFTS = frozenset(("SHF", "USHF"))
DOUBLE = frozenset(("DADD", "DFMA", "DMUL", "DSETP"))
# Instructions between a value and its use; farther ones have arrived.
MAX_DISTANCE = 400


class Operands(NamedTuple):
    """The opcode of an instruction without modifiers, and the registers that it writes and reads."""

    opcode: str
    written: tuple[str, ...]
    read: tuple[str, ...]


@lru_cache(maxsize=1 << 14)
def operands(sass: str) -> Operands:
    """Return the operands of an instruction; registers of wide ones are listed one by one.

    >>> operands("@P0   LDG.E.64 R4, desc[UR6][R2.64+0x8]")
    Operands(opcode='LDG', written=('R4', 'R5'), read=('UR6', 'R2', 'R3', 'P0'))
    >>> operands("STS [R5], R4")
    Operands(opcode='STS', written=(), read=('R5', 'R4'))
    """
    text = sass.strip()
    guard = GUARD.match(text)
    name, _, rest = text[guard.end() if guard else 0 :].partition(" ")
    opcode, *modifiers = name.split(".")
    listed = [one.strip() for one in COMMA.split(rest)] if rest else []
    width = max([2 if opcode in DOUBLE else 1, *(WIDTHS.get(one, 1) for one in modifiers)])
    if opcode in SHIFTS:  # one of two words yields one of them
        width = 1
    if opcode in WITHOUT_RESULT:
        results, values = 0, [_registers(one) for one in listed[:-1]]
        values += [_registers(one, width if opcode in STORES else 1) for one in listed[-1:]]
    else:
        results = COMPARISONS.get(opcode) or _results(listed)
        values = [_registers(one, 2 if opcode in DOUBLE else 1) for one in listed[results:]]
    written = [register for one in listed[:results] for register in _registers(one, width)]
    read = [register for one in values for register in one] + ([guard[1]] if guard else [])
    return Operands(opcode, tuple(written), tuple(read))


def _results(listed: Sequence[str]) -> int:
    """Return how many operands are results: a register, with predicates before and after it."""
    place = 0
    while place < len(listed) - 1 and PREDICATE.fullmatch(listed[place]) and "!" not in listed[place]:
        place += 1
    place += 1
    while place < len(listed) and re.fullmatch(r"U?P\d", listed[place]):
        place += 1
    return place


@lru_cache(maxsize=1 << 12)
def _registers(text: str, width: int = 1) -> tuple[str, ...]:
    found: list[str] = []
    for kind, number, suffix in REGISTER.findall(text):
        size = 1 if kind in ("P", "UP") else 2 if suffix == "64" else width
        found += [f"{kind}{int(number) + one}" for one in range(size)]
    return tuple(found)


def jumps(sass: Sequence[str], addresses: Sequence[str]) -> Iterator[tuple[str, int, int]]:
    """Yield each branch and call whose target is among the instructions: its opcode, its place and the target's."""
    places = {address: place for place, address in enumerate(addresses)}
    for place, text in enumerate(sass):
        if (found := TARGET.search(text)) and found[2] in places:
            yield found[1], place, places[found[2]]


def producers(
    code: Sequence[Operands], loops: Sequence[tuple[int, int]], place: int, opcodes: frozenset[str]
) -> list[int]:
    """Return which instructions with one of the opcodes the one at ``place`` waits for, by its registers.

    First those that wrote what it reads; else what it overwrites: a result that has not arrived, or a register that is
    still to be read. ``loops`` are the first and last places of loops: what none before wrote, their end did.
    """
    own = code[place]
    for registers in (own.read, own.written):
        found = {one for name in registers if (one := last_write(code, loops, place, name)) is not None}
        if known := sorted(one for one in found if code[one].opcode in opcodes):
            return known
    for one in range(place - 1, max(-1, place - MAX_DISTANCE), -1):
        is_late = code[one].opcode in opcodes or code[one].opcode in STORES
        if is_late and not set(code[one].read).isdisjoint(own.written):
            return [one]
    return []


def last_write(code: Sequence[Operands], loops: Sequence[tuple[int, int]], place: int, name: str) -> int | None:
    """Return the place of the instruction that wrote what the one at ``place`` finds in a register."""
    for one in range(place - 1, max(-1, place - MAX_DISTANCE), -1):
        if name in code[one].written:
            return one
    around = sorted((last - first, last) for first, last in loops if first <= place <= last)
    for _, last in around:
        for one in range(last, place, -1):
            if name in code[one].written:
                return one
    return None
