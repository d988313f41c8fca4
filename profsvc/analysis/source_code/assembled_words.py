"""Words that are put together bit by bit in straight code, from SASS.

How much information a register can hold follows from the code: a word of memory has 32 bits, a mask leaves as many as
it has itself, a comparison has one. Where a word is the logical sum of parts of one or two bits of other words, each
instruction moves a bit or two of the 32 that it could: masks and shifts of whole words move all of them at once.
"""

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from profsvc.analysis.source_code.registers import Operands

Row = Mapping[str, Any]
WORD_BITS = 32
ALL = (1 << WORD_BITS) - 1
# A part of a word that has no more bits is moved by itself.
FEW_BITS = 2
# Three steps of a shift and a masked sum spread or gather eight bits at once; more bits take fewer for each.
LEAST_BITS = 8
NEEDED_PER_BIT = 6 / LEAST_BITS
WORDS = frozenset(("ATOMG", "LD", "LDG", "LDL", "LDS", "SHFL"))
"""Opcodes whose result is a word of data."""
LOGIC, SHIFT, TEST = "logic", "shift", "test"
LITERAL = re.compile(r"-?0x[0-9a-f]+$")
NAME = re.compile(r"[-~!]?(U?R\d+|U?P\d)(?:\.\w+)*$")
GUARD = re.compile(r"@!?U?P\w+\s+")
COMMA = re.compile(r",\s*(?![^\[]*\])")
ZEROS = frozenset(("RZ", "URZ"))


class _Step(NamedTuple):
    """What an instruction does with bits; ``kind`` is empty for what is not followed."""

    kind: str
    taken: tuple[tuple[str, int], ...] = ()
    """Registers that it reads, and how many bits of each reach the result at most."""


class _Part(NamedTuple):
    """What a register holds: bits of information, at most."""

    bits: int
    of_word: bool
    """Whether they come from a word of memory."""
    is_assembled: bool = False


UNKNOWN = _Part(WORD_BITS, False)


def assembled_threads(rows: Sequence[Row], code: Sequence[Operands]) -> float:
    """Return the thread instructions of a launch that put words together bit by bit, beyond those that words take.

    ``rows`` are its instructions in the order of their addresses, each with ``sass, thread_instructions_on``; ``code``
    are their operands.
    """
    steps = [_step(row["sass"]) if row["thread_instructions_on"] else None for row in rows]
    few = sum(one is not None and one.kind == LOGIC and any(bits <= FEW_BITS for _, bits in one.taken) for one in steps)
    if few < LEAST_BITS / FEW_BITS:
        return 0.0
    parts: dict[str, _Part] = {}
    writers: dict[str, tuple[int, ...]] = {}
    users: list[list[tuple[int, int]]] = [[] for _ in rows]
    fresh: dict[int, int] = {}
    wide: set[int] = set()
    for place, (step, one) in enumerate(zip(steps, code, strict=True)):
        if step is None:
            continue
        for name, most in (dict.fromkeys(one.read, WORD_BITS) | dict(step.taken)).items():
            bits = min(most, parts.get(name, UNKNOWN).bits)
            for writer in writers.get(name, ()):
                users[writer].append((place, bits))
        result, added = _result(step, one, parts)
        if result.is_assembled:
            fresh[place] = added
            if result.bits >= LEAST_BITS:
                wide.add(place)
        is_guarded = GUARD.match(rows[place]["sass"].strip()) is not None
        for name in one.written:
            writers[name] = (*writers.get(name, ()), place) if is_guarded else (place,)
            parts[name] = result
    moving = _moving([one.kind if one else "" for one in steps], users, fresh, wide)
    # What moves a part that is together already does not move bit by bit.
    executed = {place: float(rows[place]["thread_instructions_on"]) for place in moving if fresh.get(place, 1)}
    needed = NEEDED_PER_BIT * sum(bits * executed.get(place, 0.0) for place, bits in fresh.items())
    return max(sum(executed.values()) - needed, 0.0)


def _result(step: _Step, one: Operands, parts: Mapping[str, _Part]) -> tuple[_Part, int]:
    """Return what an instruction leaves, and how many bits it adds to a word that is put together."""
    if one.opcode in WORDS:
        return _Part(WORD_BITS, True), 0
    if not step.kind:
        return _Part(WORD_BITS, any(parts.get(name, UNKNOWN).of_word for name in one.read)), 0
    own = [(parts.get(name, UNKNOWN), most) for name, most in step.taken if most]
    bits = min(sum(min(part.bits, most) for part, most in own), WORD_BITS)
    if step.kind == TEST:
        return _Part(1, bool(own) and all(part.of_word and part.bits <= FEW_BITS for part, _ in own)), 0
    if len(own) < 2:
        return _Part(bits, any(part.of_word for part, _ in own), any(part.is_assembled for part, _ in own)), 0
    added = [min(part.bits, most) for part, most in own if not part.is_assembled]
    is_assembled = all(part.of_word for part, _ in own) and all(count <= FEW_BITS for count in added)
    is_assembled = is_assembled and step.kind == LOGIC
    return _Part(bits, any(part.of_word for part, _ in own), is_assembled), sum(added)


def _moving(
    kinds: Sequence[str], users: Sequence[Sequence[tuple[int, int]]], fresh: Mapping[int, int], wide: set[int]
) -> set[int]:
    """Return the places of instructions whose results end in words that are put together, and nowhere else.

    ``users`` are the places that read each result, and how many of its bits reach theirs; ``fresh`` the bits that
    are added at places of such words, and ``wide`` the places after which a word has many.
    """
    found: set[int] = set()
    wanted = [WORD_BITS] * len(kinds)
    for place in range(len(kinds) - 1, -1, -1):
        if not kinds[place]:
            continue
        # A shift wants no more of a word than is wanted of its result.
        of_users = [min(bits, wanted[user]) if kinds[user] == SHIFT else bits for user, bits in users[place]]
        wanted[place] = max(of_users, default=WORD_BITS)
        goes_on = [user in found for user, _ in users[place]]
        if place in fresh:
            is_moving = place in wide or any(goes_on)
        else:
            is_moving = bool(goes_on) and all(goes_on) and wanted[place] <= FEW_BITS
        if is_moving:
            found.add(place)
    return found


@lru_cache(maxsize=1 << 14)
def _step(sass: str) -> _Step:
    """Return what an instruction takes of the registers that it reads.

    >>> _step("LOP3.LUT R25, R23, 0x10, R14, 0xf8, !PT")
    _Step(kind='logic', taken=(('R23', 32), ('R14', 1)))
    >>> _step("SHF.R.U32.HI R3, RZ, 0x1e, R4")
    _Step(kind='shift', taken=(('R4', 2),))
    """
    text = GUARD.sub("", sass.strip())
    name, _, rest = text.partition(" ")
    opcode, *modifiers = name.removeprefix("U").split(".")
    listed = [one.strip() for one in COMMA.split(rest)] if rest else []
    if opcode == "LOP3":
        return _logic(listed)
    if opcode == "SHF" and len(listed) == 4:
        words = [one for one in (listed[1], listed[3]) if one not in ZEROS]
        return _Step(SHIFT, _shifted(words[0], listed[2])) if len(words) == 1 else _Step("")
    # A product with a constant, to which nothing is added.
    if opcode == "IMAD" and len(listed) == 4 and listed[3] == "RZ" and LITERAL.match(listed[2]):
        by = f"{int(listed[2], 16).bit_length() - 1:#x}" if "SHL" in modifiers else "0x0"
        return _Step(SHIFT, _shifted(listed[1], by))
    if opcode == "SEL" and all(LITERAL.match(one) or one in ZEROS for one in listed[1:3]):
        return _Step(TEST, _all(listed[3:]))
    return _Step(TEST, _all(listed[2:4])) if opcode == "ISETP" else _Step("")


def _all(listed: Sequence[str]) -> tuple[tuple[str, int], ...]:
    return tuple((found[1], WORD_BITS) for one in listed if (found := NAME.match(one)))


def _shifted(word: str, by: str) -> tuple[tuple[str, int], ...]:
    if not LITERAL.match(by):
        return _all([word, by])
    return tuple((name, max(WORD_BITS - int(by, 16), 0)) for name, _ in _all([word]))


def _logic(listed: Sequence[str]) -> _Step:
    """Take of each operand those bits at which the table of the operation depends on it."""
    is_test = NAME.match(listed[0]) is not None and listed[0].startswith(("P", "UP"))
    start = 2 if is_test else 1
    operands, table = listed[start : start + 3], listed[start + 3 : start + 4]
    if len(operands) < 3 or not table or not LITERAL.match(table[0]):
        return _Step("")
    values = [0 if one in ZEROS else int(one, 16) & ALL if LITERAL.match(one) else None for one in operands]
    # Bits at which an operand can be 0, and 1: a register can be both.
    can = [(ALL, ALL) if value is None else (~value & ALL, value) for value in values]
    taken = [(found[1], _depends(int(table[0], 16), place, can)) for place, one in enumerate(operands)
             if (found := NAME.match(one))]  # fmt: skip
    return _Step(TEST if is_test else LOGIC, tuple(taken))


def _depends(table: int, place: int, can: Sequence[tuple[int, int]]) -> int:
    """Count the bits at which a table of three operands depends on the one at a place."""
    found = 0
    first, second = (one for one in range(3) if one != place)
    for others in range(4):
        low = (others >> 1) << (2 - first) | (others & 1) << (2 - second)
        if (table >> low & 1) != (table >> (low | 4 >> place) & 1):
            found |= can[first][others >> 1] & can[second][others & 1]
    return found.bit_count()
