"""Which global loads of a thread are of the same place, and which places follow from indices alone, from SASS.

The code is executed once, line by line, with a number for each special register and constant that no other has. Low
words of sums, products and shifts are computed as the device does, whatever their order, and the result of any other
instruction is a number that its operands determine. So two loads at the same number are loads of the same place. A
place that does not change from turn to turn of a loop is loaded again in each of them.
"""

import re
import zlib
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from profsvc.analysis.source_code.registers import Operands, operands

Row = Mapping[str, Any]
Turns = frozenset[int]
WORD = 0xFFFFFFFF
NO_TURN: Turns = frozenset()
VALUE = -1
"""Stands among the loops for a value of memory, or of a hash function, which no index determines."""
OF_MEMORY: Turns = frozenset((VALUE,))
SECTOR_BYTES = 32
DEFAULT_BITS = 32
# Products with larger numbers than this are of hash functions, and of no index.
LARGEST_PITCH = 1 << 24
LOADS, STORES, LOCAL = frozenset(("LD", "LDG")), frozenset(("ST", "STG")), frozenset(("LDL", "STL"))
VALUES = frozenset(("ATOM", "ATOMG", "ATOMS", "LDS", "LDSM"))
SUMS = frozenset(("IADD3", "UIADD3", "VIADD"))
PRODUCTS = frozenset(("IMAD", "UIMAD"))
SCALED = frozenset(("LEA", "ULEA"))
SHIFTS = frozenset(("SHF", "USHF"))
COPIES = frozenset(("MOV", "UMOV", "R2UR", "LDC", "ULDC", "CS2R"))
ZERO = "-RZ, RZ, 0, 0"
"""Operands of a product of half precision that compilers clear registers with."""
ADDRESS = re.compile(r"\[([^\[\]]*)\]\s*(?:,.*)?$")
TERM = re.compile(r"([+-]?)\s*(-?0x[0-9a-f]+|UR\d+|R\d+)")
CONSTANT = re.compile(r"(-?)\|?(c\[0x[0-9a-f]+\]\[)(0x[0-9a-f]+)\]")
NAME = re.compile(r"(-?)(UR\d+|R\d+|URZ|RZ|SRZ)(?:\.\w+)*$")
LITERAL = re.compile(r"-?0x[0-9a-f]+$")
COMMA = re.compile(r",\s*(?![^\[]*\])")
GUARD = re.compile(r"@!?(U?P\w+)\s+")
PREDICATE = re.compile(r"!?U?P(?:\d|T)$")
REGISTER = re.compile(r"(?<![\w.])(UR|R|UP|P)(\d+)")


class PlaceCounts(NamedTuple):
    """Of the global loads of a launch, and of its stores."""

    requested_bytes: float
    again_bytes: float
    """Bytes requested from places that the same thread loaded before."""
    distinct_sector_bytes: float
    """Bytes of the sectors that threads touch, each place of a thread once."""
    regular_excess_sectors: float
    """Sectors beyond the ideal of loads whose place no value of memory determines."""
    excess_sectors: float
    """Sectors beyond the ideal of all loads."""
    regular_excess_of_stores: float
    """Sectors beyond the ideal of stores whose place no value of memory determines."""
    excess_of_stores: float
    """Sectors beyond the ideal of all stores."""


class _Step(NamedTuple):
    """What an instruction does: its result, of what, and the registers that it writes and that determine it."""

    kind: str
    number: int
    terms: tuple[tuple[int, str | int], ...]
    written: tuple[str, ...]
    read: tuple[str, ...]
    is_guarded: bool


class _Loops:
    """What is known of the loops of a launch after the code was executed: one of each kind for a loop."""

    def __init__(self, code: Sequence[Operands], loops: Sequence[tuple[int, int]]) -> None:
        self.loops = loops
        self.first: dict[int, list[int]] = {}
        self.last: dict[int, list[int]] = {}
        for loop in sorted(range(len(loops)), key=lambda one: -loops[one][1]):
            self.first.setdefault(loops[loop][0], []).append(loop)
            self.last.setdefault(loops[loop][1], []).append(loop)
        self.written = [{name for one in code[first : last + 1] for name in one.written} for first, last in loops]
        self.changed = list(self.written)
        """Registers that have another value at the end of a turn than at its beginning."""
        self.carried: list[set[str]] = [set() for _ in loops]
        """Those of them that come from a value of memory."""
        self.bounds: list[Turns] = [NO_TURN for _ in loops]
        """Other loops in whose turns the number of turns of a loop changes."""


def place_counts(rows: Sequence[Row], code: Sequence[Operands], loops: Sequence[tuple[int, int]]) -> PlaceCounts:
    """Return the counts of a launch; ``rows``, ``code`` and ``loops`` are its instructions, parsed, and their loops.

    Each row has ``sass, instructions, thread_instructions_on, access_size, l2_sectors, ideal_l2_sectors``.
    """
    repeats = [turns_of(rows, loop) for loop in loops]
    asked = excess = regular = stored = stored_regular = 0.0
    distinct: dict[tuple[int, Any], tuple[float, float]] = {}
    for place, (number, turns) in access_places(rows, code, loops).items():
        if code[place].opcode in LOCAL:
            continue
        row, again = rows[place], 1.0
        sectors, ideal = float(row["l2_sectors"] or 0), float(row["ideal_l2_sectors"] or 0)
        if code[place].opcode in STORES:
            stored += max(sectors - ideal, 0.0)
            stored_regular += 0.0 if VALUE in turns else max(sectors - ideal, 0.0)
            continue
        for loop, (first, last) in enumerate(loops):
            if first <= place <= last and loop not in turns and VALUE not in turns:
                again *= repeats[loop]
        size = int(row["access_size"] or DEFAULT_BITS) / 8 * (row["thread_instructions_on"] or 0)
        size = min(size, SECTOR_BYTES * ideal)
        asked += size
        excess += max(sectors - ideal, 0.0)
        regular += 0.0 if VALUE in turns else max(sectors - ideal, 0.0)
        known = distinct.get((number, row["access_size"]), (0.0, 0.0))
        once = size / again, SECTOR_BYTES * sectors / again
        distinct[number, row["access_size"]] = max(known[0], once[0]), max(known[1], once[1])
    bytes_once, sectors_once = (sum(one[part] for one in distinct.values()) for part in (0, 1))
    return PlaceCounts(asked, max(asked - bytes_once, 0.0), sectors_once, regular, excess, stored_regular, stored)


def turns_of(rows: Sequence[Row], loop: tuple[int, int]) -> float:
    """Return how often a loop is repeated for each time that it is entered."""
    turns = float(rows[loop[1]]["instructions"] or 1)
    entered = float(rows[loop[0] - 1]["instructions"] or 0) if loop[0] else 0.0
    if not 0 < entered <= turns:
        entered = float(rows[0]["instructions"] or turns)
    return max(turns / entered, 1.0)


def access_places(
    rows: Sequence[Row], code: Sequence[Operands], loops: Sequence[tuple[int, int]]
) -> dict[int, tuple[int, Turns]]:
    """Return for each executed access of global or local memory its place, and the loops in whose turns that changes.

    The place is a number that no other place has.
    """
    known = _Loops(code, loops)
    steps = [_step(row["sass"]) if row["instructions"] else None for row in rows]
    found = _executed(steps, code, known)
    # What the end of a turn leaves, the next one begins with.
    return _executed(steps, code, known) if loops else found


def _executed(steps: Sequence[_Step | None], code: Sequence[Operands], known: _Loops) -> dict[int, tuple[int, Turns]]:
    registers = _Registers(known)
    found: dict[int, tuple[int, Turns]] = {}
    for place, step in enumerate(steps):
        for loop in known.first.get(place, ()):
            registers.begin(loop)
        if step is not None:
            result, changes = registers.take(step)
            if step.kind in ("load", "store"):
                found[place] = result, changes
        for loop in known.last.get(place, ()):
            registers.end(loop, code[place].read)
    return {place: (number, changes | _bounds(known, place)) for place, (number, changes) in found.items()}


class _Registers:
    """The registers while the code is executed: the value of each, and the loops in whose turns it changes."""

    def __init__(self, known: _Loops) -> None:
        self.known = known
        self.value: dict[str, int] = {}
        self.turns: dict[str, Turns] = {}
        self.before: dict[int, dict[str, int]] = {}
        """The values with which a turn of a loop began."""

    def begin(self, loop: int) -> None:
        """Begin a turn of a loop."""
        self.before[loop] = {name: self.value.get(name, 0) for name in self.known.written[loop]}
        for name in self.known.changed[loop]:
            self.turns[name] = self.turns.get(name, NO_TURN) | {loop}
        for name in self.known.carried[loop]:
            self.turns[name] = self.turns.get(name, NO_TURN) | OF_MEMORY

    def take(self, step: _Step) -> tuple[int, Turns]:
        """Execute an instruction; return its result, of an access the place, and the loops in whose turns it changes.

        What a load writes is another number than its place, and changes as memory does.
        """
        found = _result(step, self.value)
        read = NO_TURN
        for name in step.read:
            if own := self.turns.get(name):
                read = read | own if read else own
        result, changes = found, read
        if step.kind in ("load", "store"):
            result = hash((result, 1)) & WORD
        if step.kind in ("load", "value"):
            changes = changes | OF_MEMORY
        if step.is_guarded and step.written and (old := self.value.get(step.written[0], 0)) != result:
            result = hash((result, old)) & WORD
            changes = changes | self.turns.get(step.written[0], NO_TURN)
        for offset, name in enumerate(step.written):
            self.value[name] = hash((result, offset)) & WORD if offset else result
            self.turns[name] = changes
        return found, read

    def end(self, loop: int, read: Sequence[str]) -> None:
        """End a turn of a loop at a jump that reads these registers: learn what the next turn begins with."""
        known, value, turns = self.known, self.value, self.turns
        known.changed[loop] = {name for name in known.written[loop] if value.get(name, 0) != self.before[loop][name]}
        known.carried[loop] = {name for name in known.changed[loop] if VALUE in turns.get(name, NO_TURN)}
        ends = NO_TURN.union(*(turns.get(name, NO_TURN) for name in read))
        known.bounds[loop] = ends - {VALUE, loop}


def _bounds(known: _Loops, place: int) -> Turns:
    around = (loop for loop, (first, last) in enumerate(known.loops) if first <= place <= last)
    return NO_TURN.union(*(known.bounds[loop] for loop in around))


def _result(step: _Step, value: Mapping[str, int]) -> int:
    if not step.terms:
        return hash((step.number, *[value.get(name, 0) for name in step.read])) & WORD
    numbers = [sign * (one if isinstance(one, int) else value.get(one, 0)) for sign, one in step.terms]
    if step.kind == "product":
        return (numbers[0] * numbers[1] + numbers[2]) & WORD
    if step.kind == "scaled":
        return ((numbers[0] << (numbers[2] & 31)) + numbers[1]) & WORD
    return sum(numbers) & WORD


@lru_cache(maxsize=1 << 14)
def _step(sass: str) -> _Step:
    """Return what an instruction does.

    >>> _step("LEA R22, P0, R4, UR4, 0x4").kind, _step("LDG.E R3, desc[UR6][R2.64+-0x10]").terms
    ('scaled', ((1, 'R2'), (1, -16)))
    """
    guard = GUARD.match(text := sass.strip())
    text = text[guard.end() if guard else 0 :]
    name, _, rest = text.partition(" ")
    opcode, *modifiers = name.split(".")
    listed = [one.strip() for one in COMMA.split(rest)] if rest else []
    plain = [one for one in listed if not PREDICATE.match(one)]
    own = operands(sass)
    is_guarded = guard is not None

    def opaque(kind: str = "other") -> _Step:
        number = zlib.crc32(REGISTER.sub("_", text).encode())
        read = tuple(one for one in own.read if f"desc[{one}]" not in text) if "desc[" in text else own.read
        return _Step(kind, number, (), own.written, read, is_guarded)

    if opcode in LOADS or opcode in STORES or opcode in LOCAL:
        found = ADDRESS.search(text)
        terms = tuple(_of_address(*one) for one in TERM.findall(found[1] if found else ""))
        names = tuple(one for _, one in terms if isinstance(one, str))
        kind = "load" if opcode in LOADS or opcode == "LDL" else "store"
        return opaque(kind)._replace(terms=terms, read=names)
    if opcode in VALUES:
        return opaque("value")
    if opcode in ("S2R", "S2UR"):
        return opaque()._replace(number=zlib.crc32(listed[-1].encode()), read=())
    kind, parts = _computed(opcode, modifiers, plain, rest)
    terms = tuple(one for part in parts if (one := _term(part)) is not None)
    if not parts or len(terms) < len(parts):
        return opaque()
    if kind == "product" and any(is_of_a_hash(part) for part in parts[:2]):
        return opaque("value")
    names = tuple(one for _, one in terms if isinstance(one, str)) + ((guard[1],) if guard else ())
    return _Step(kind, 0, terms, own.written, names, is_guarded)


def _computed(opcode: str, modifiers: Sequence[str], plain: Sequence[str], rest: str) -> tuple[str, Sequence[str]]:
    """Return how the low word of a result is computed, and of what; nothing for what is not followed."""
    if opcode in SUMS and len(plain) in (3, 4):
        return "sum", plain[1:]
    if opcode in COPIES and len(plain) >= 2:
        return "sum", plain[1:2]
    if opcode == "HFMA2" and rest.endswith(ZERO):
        return "sum", ["RZ"]
    if "HI" in modifiers or len(plain) != 4:
        return "other", []
    if opcode in PRODUCTS:
        return "product", plain[1:]
    if opcode in SCALED:
        return "scaled", plain[1:]
    if opcode in SHIFTS and "L" in modifiers and LITERAL.match(plain[2]):
        return "scaled", [plain[1], "RZ", plain[2]]
    return "other", []


@lru_cache(maxsize=1 << 12)
def _term(text: str) -> tuple[int, str | int] | None:
    if found := NAME.match(text):
        return (-1 if found[1] else 1), found[2]
    if LITERAL.match(text):
        return 1, int(text, 16)
    if found := CONSTANT.match(text):
        return (-1 if found[1] else 1), hash((zlib.crc32(found[2].encode()), int(found[3], 16))) & WORD
    return None


def _of_address(sign: str, one: str) -> tuple[int, str | int]:
    factor = -1 if sign == "-" else 1
    return (factor, one) if one.startswith(("R", "U")) else (1, factor * int(one, 16))


def is_of_a_hash(text: str) -> bool:
    """Whether an operand is a number that hash functions multiply by, and no pitch of an array.

    >>> is_of_a_hash("0x41c64e6d"), is_of_a_hash("0x1000"), is_of_a_hash("R4")
    (True, False, False)
    """
    if not LITERAL.match(text):
        return False
    number = abs(int(text, 16))
    number = min(number, WORD + 1 - number)
    return number > LARGEST_PITCH and number & (number - 1) != 0
