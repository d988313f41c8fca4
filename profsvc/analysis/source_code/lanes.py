"""Which lanes of a warp are off for the whole of a piece of code, from the counts of its instructions: SASS.

Paths and loops of data leave another number of lanes in each warp. Where the same number of them is on in all warps,
the index of the lane decides: the first of a warp work, and the others wait for them. One alone is a section that the
warp could share, if it is long enough.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from profsvc.analysis.source_code.registers import Operands

Row = Mapping[str, Any]
LANES = 32
# A warp of which each lane does one of so many instructions shares the section of one thread.
LONG_SECTION = 32
ORDERED = ("GE", "GT", "LE", "LT")
LEAVES = frozenset(("BRA", "EXIT"))


class LaneCounts(NamedTuple):
    """Of the instructions of a launch."""

    first_lanes_off: float
    """Instructions of threads that were off, as only the first lanes of each warp worked."""
    alone_warps: float
    """Instructions of warps of which one thread was on, in sections of `LONG_SECTION` or more."""


def lane_counts(rows: Sequence[Row], code: Sequence[Operands]) -> LaneCounts:
    """Return the counts of a launch; ``rows`` are its instructions in the order of their addresses.

    Each has ``sass, instructions, thread_instructions``.
    """
    off = alone = 0.0
    for lanes, places in _sections(rows):
        warps = float(sum(rows[place]["instructions"] for place in places))
        if lanes > 1:
            off += (LANES - lanes) * warps if _is_ordered(rows, code, places[0]) else 0.0
        elif warps >= LONG_SECTION * rows[places[0]]["instructions"]:
            alone += warps
    return LaneCounts(off, alone)


def _sections(rows: Sequence[Row]) -> Iterator[tuple[int, list[int]]]:
    """Yield pieces of code of which each instruction has the same whole number of active lanes, fewer than all."""
    lanes, places = 0, list[int]()
    for place, row in enumerate(rows):
        warps, threads = row["instructions"], row["thread_instructions"]
        if not warps or threads is None:
            continue
        own = threads // warps if threads % warps == 0 and threads < LANES * warps else 0
        if own != lanes:
            if lanes:
                yield lanes, places
            lanes, places = own, []
        places.append(place)
    if lanes:
        yield lanes, places


def _is_ordered(rows: Sequence[Row], code: Sequence[Operands], first: int) -> bool:
    """Whether the branch before a section compares an order, as of the index of the lane, and no equality."""
    for branch in range(first - 1, -1, -1):
        guards = [name for name in code[branch].read if name.startswith(("P", "UP"))]
        if code[branch].opcode in LEAVES and guards and rows[branch]["instructions"]:
            written = (one for one in range(branch - 1, -1, -1) if guards[0] in code[one].written)
            found = next(written, None)
            return found is not None and any(f".{one}." in rows[found]["sass"] for one in ORDERED)
    return False
