"""Integer instructions that compute places of memory and nothing else, from SASS.

What the index of a thread, of a block and of a loop, and numbers alone determine, and what only addresses of accesses
depend on, serves the accesses. Places that values of memory or a hash function determine are the work itself, as is
what is stored, converted or exchanged.
"""

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from profsvc.analysis.source_code.places import is_of_a_hash
from profsvc.analysis.source_code.registers import COMMA, GUARD, WITHOUT_RESULT, Operands, jumps, operands

Row = Mapping[str, Any]
INTEGERS = frozenset((
    "BMSK", "IABS", "IADD", "IADD3", "IMAD", "IMNMX", "IMUL", "ISETP", "LEA", "LOP3", "MOV", "PLOP3", "PRMT", "SEL",
    "SGXT", "SHF", "VIADD", "VIADDMNMX", "VIMNMX", "VIMNMX3",
))  # fmt: skip
UNIFORM = frozenset((
    "R2UR", "UIADD3", "UIMAD", "UISETP", "ULEA", "ULOP3", "UMOV", "UPLOP3", "UPRMT", "USEL", "USHF",
))  # fmt: skip
"""They compute places as well, once for a warp: what they read is followed, and they are not counted."""
ACCESSES = frozenset((
    "ATOM", "ATOMG", "ATOMS", "LD", "LDC", "LDG", "LDGSTS", "LDL", "LDS", "LDSM", "RED", "REDG", "ST", "STG", "STL",
    "STS", "STSM",
))  # fmt: skip
WITHOUT_VALUE = WITHOUT_RESULT - ACCESSES
VALUES = frozenset((
    "ATOM", "ATOMG", "ATOMS", "F2I", "FLO", "I2F", "I2FP", "LD", "LDG", "LDL", "LDS", "LDSM", "MATCH", "MUFU", "POPC",
    "REDUX", "SHFL", "VOTE", "VOTEU",
))  # fmt: skip
"""Opcodes whose result no index determines, or that divide: divisions have a counter of their own."""
PRODUCTS = frozenset(("IMAD", "IMUL"))
ADDRESS = re.compile(r"\[([^\[\]]*)\]")
PLACE, CONTROL, VALUE = 1, 2, 4
"""What a result is used for, as bits."""
Writers = dict[str, tuple[int, ...]]
MOST_WRITERS = 64
"""Instructions that may have written a register, at most: branches without end would take memory without end."""


class _Step(NamedTuple):
    """An instruction: the registers of its address, that of its guard, and what it does with the others."""

    address: frozenset[str]
    guard: str
    passes_on: bool
    is_value: bool


def index_threads(rows: Sequence[Row], code: Sequence[Operands], loops: Sequence[tuple[int, int]]) -> float:
    """Return the thread instructions of a launch that compute places of memory from indices, and nothing else.

    ``rows`` are its instructions in the order of their addresses, each with ``sass, address,
    thread_instructions_on``; ``code`` are their operands, ``loops`` the first and last places of their loops.
    """
    steps = [_step(row["sass"]) for row in rows]
    users, of_values, unknown = _users(rows, code, loops, steps)
    uses = _uses(steps, code, users, unknown)
    return float(
        sum(
            row["thread_instructions_on"] or 0
            for place, row in enumerate(rows)
            if code[place].opcode in INTEGERS and not of_values[place] and uses[place] in (PLACE, PLACE | CONTROL)
        )
    )


def _users(
    rows: Sequence[Row], code: Sequence[Operands], loops: Sequence[tuple[int, int]], steps: Sequence[_Step]
) -> tuple[list[list[tuple[int, str]]], list[bool], set[int]]:
    """Return who reads each result, and in which register, which depend on values, and whose readers are not known."""
    first: dict[int, list[int]] = {}
    last: dict[int, list[int]] = {}
    for loop, (begin, end) in enumerate(loops):
        first.setdefault(begin, []).append(loop)
        last.setdefault(end, []).append(loop)
    ahead: dict[int, list[int]] = {}
    for name, place, target in jumps([row["sass"] for row in rows], [row["address"] for row in rows]):
        if name == "BRA" and target > place:
            ahead.setdefault(place, []).append(target)
    left: dict[int, Writers] = {}
    of_values = [step.is_value for step in steps]
    users: list[list[tuple[int, str]]] = []
    unknown = set[int]()
    for _ in range(2):  # what the end of a turn leaves, the next one begins with
        writers: Writers = {}
        arriving: dict[int, list[Writers]] = {}
        users = [[] for _ in rows]
        for place, (one, step) in enumerate(zip(code, steps, strict=True)):
            for other in arriving.pop(place, ()):
                _join(writers, other, unknown)
            for loop in first.get(place, ()):
                _join(writers, left.get(loop, {}), unknown)
            # What a guard leaves out keeps the value of before.
            for name in (*one.read, *one.written) if step.guard else one.read:
                for writer in writers.get(name, ()):
                    users[writer].append((place, name))
                    of_values[place] |= step.passes_on and of_values[writer]
            for target in ahead.get(place, ()):
                arriving.setdefault(target, []).append(writers.copy())
            for name in one.written:
                writers[name] = (place,)
            for loop in last.get(place, ()):
                begin = loops[loop][0]
                left[loop] = {name: own for name, own in writers.items() if own[-1] >= begin}
    return users, of_values, unknown


def _join(writers: Writers, other: Writers, unknown: set[int]) -> None:
    """Add who else may have written each register: the latest, where they are many; the others become ``unknown``."""
    for name, more in other.items():
        own = writers.get(name)
        if own is None:
            writers[name] = more
        elif own is not more and own != more:
            every = sorted({*own, *more})
            unknown.update(every[:-MOST_WRITERS])
            writers[name] = tuple(every[-MOST_WRITERS:])


def _uses(
    steps: Sequence[_Step], code: Sequence[Operands], users: Sequence[Sequence[tuple[int, str]]], unknown: set[int]
) -> list[int]:
    """Return what each result is used for in the end; one of ``unknown`` readers is a value."""
    uses = [VALUE if place in unknown else 0 for place in range(len(steps))]
    is_changed = True
    while is_changed:
        is_changed = False
        for place in range(len(steps) - 1, -1, -1):
            own = uses[place]
            for user, name in users[place]:
                step = steps[user]
                if step.passes_on:
                    own |= uses[user]
                elif name in step.address:
                    own |= PLACE
                else:
                    is_control = name == step.guard or code[user].opcode in WITHOUT_VALUE
                    own |= CONTROL if is_control else VALUE
            is_changed |= own != uses[place]
            uses[place] = own
    return uses


@lru_cache(maxsize=1 << 14)
def _step(sass: str) -> _Step:
    own, text = operands(sass), sass.strip()
    found = GUARD.match(text)
    guard = found[1] if found else ""
    address: frozenset[str] = frozenset()
    if own.opcode in ACCESSES:
        places = ", ".join(f"[{one}]" for one in ADDRESS.findall(text))
        address = frozenset(operands(f"LDG RZ, {places}").read) if places else address
    # The upper half of a product divides by a number.
    name = text[found.end() if found else 0 :].split(" ")[0]
    is_hash = own.opcode in PRODUCTS and any(is_of_a_hash(one.strip()) for one in COMMA.split(text))
    is_value = own.opcode in VALUES or is_hash or (own.opcode in PRODUCTS and ".HI" in name)
    return _Step(address, guard, own.opcode in INTEGERS | UNIFORM, is_value)
