"""Which lanes of a warp are off for the whole of a piece of code, from the counts of its instructions: SASS.

Paths and loops of data leave another number of lanes in each warp. Where the same number of them is on in all warps,
the index of the lane decides: the first of a warp work, and the others wait for them. One alone is a section that the
warp could share, if it is long enough. One that asks again and again whether a place of memory has changed, and stores
nothing, does not work: it waits for other blocks, as at a meeting of the grid.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from profsvc.analysis.source_code.registers import STORES, Operands

Row = Mapping[str, Any]
LANES = 32
# A warp of which each lane does one of so many instructions shares the section of one thread.
LONG_SECTION = 32
ORDERED = ("GE", "GT", "LE", "LT")
LEAVES = frozenset(("BRA", "EXIT"))
# What other blocks write is asked for past the caches of the SM.
FRESH = ".STRONG."
WRITES = STORES | {"ATOM", "ATOMG", "ATOMS", "RED", "REDG"}
# Warps at the border of the data have fewer lanes, or none: by so much the mean of all warps is off.
BORDER_LANES = 0.01
STEP_LENGTH = 60
"""Instructions between two barriers, at most, that are a step of all threads of a block. With 30 or 100 the same
launches have such steps."""


class LaneCounts(NamedTuple):
    """Of the instructions of a launch."""

    first_lanes_off: float
    """Instructions of threads that were off, as only the first lanes of each warp worked."""
    alone_warps: float
    """Instructions of warps of which one thread was on, in sections of `LONG_SECTION` or more."""
    meeting_warps: float = 0.0
    """Instructions of warps of which one thread waited for other blocks."""
    meeting_samples: float = 0.0
    """Samples of Long Scoreboard in them."""


def lane_counts(rows: Sequence[Row], code: Sequence[Operands], loops: Sequence[tuple[int, int]] = ()) -> LaneCounts:
    """Return the counts of a launch; ``rows`` are its instructions in the order of their addresses.

    Each has ``sass, instructions, thread_instructions, long_scoreboard``; ``loops`` are their first and last places.
    """
    asking = [loop for loop in loops if _asks_again(rows, code, loop)]
    off = alone = meeting = samples = 0.0
    for lanes, is_same, places in _sections(rows):
        warps = float(sum(rows[place]["instructions"] for place in places))
        if lanes == 1 and any(places[0] <= first and last <= places[-1] for first, last in asking):
            meeting += warps
            samples += sum(rows[place]["long_scoreboard"] or 0 for place in places)
        elif lanes > 1:
            off += (LANES - lanes) * warps if _is_ordered(rows, code, places[0], is_same) else 0.0
        elif is_same and warps >= LONG_SECTION * rows[places[0]]["instructions"]:
            alone += warps
    return LaneCounts(off, alone, meeting, samples)


def first_lanes_off(rows: Sequence[Row], code: Sequence[Operands]) -> list[float]:
    """Return how many threads of each instruction were off as only the first lanes of each warp work."""
    off = [0.0] * len(rows)
    for lanes, is_same, places in _sections(rows):
        if lanes > 1 and _is_ordered(rows, code, places[0], is_same):
            for place in places:
                off[place] = float((LANES - lanes) * rows[place]["instructions"])
    return off


def predicated_off_between_barriers(rows: Sequence[Row], code: Sequence[Operands]) -> float:
    """Return the thread instructions whose predicate was false in short steps between two barriers.

    As in a tree of sums: with each step fewer threads have work, and all wait for each other. Shuffles in a warp need
    neither. ``rows`` have ``thread_instructions, thread_instructions_on``.
    """
    barriers = [place for place, one in enumerate(code) if one.opcode == "BAR"]
    steps = [(a, b) for a, b in pairwise(barriers) if b - a <= STEP_LENGTH]
    inside = [row for a, b in steps for row in rows[a:b]]
    return float(sum((row["thread_instructions"] or 0) - (row["thread_instructions_on"] or 0) for row in inside))


def _asks_again(rows: Sequence[Row], code: Sequence[Operands], loop: tuple[int, int]) -> bool:
    """Whether a loop does nothing but load what other blocks write, until it has changed."""
    body = range(loop[0], loop[1] + 1)
    asks = any(code[place].opcode in ("LD", "LDG") and FRESH in rows[place]["sass"] for place in body)
    return asks and WRITES.isdisjoint(code[place].opcode for place in body)


def _sections(rows: Sequence[Row]) -> Iterator[tuple[int, bool, list[int]]]:
    """Yield pieces of code of which each instruction has the same whole number of active lanes, fewer than all.

    Each with whether that is so in all warps, or but for those at the border of the data.
    """
    lanes, is_same, places = 0, True, list[int]()
    for place, row in enumerate(rows):
        warps, threads = row["instructions"], row["thread_instructions"]
        if not warps or threads is None:
            continue
        own = round(threads / warps)
        off = abs(threads / warps - own)
        own, same = (own if off <= BORDER_LANES and own < LANES else 0), off == 0
        if (own, same) != (lanes, is_same):
            if lanes:
                yield lanes, is_same, places
            lanes, is_same, places = own, same, []
        places.append(place)
    if lanes:
        yield lanes, is_same, places


def _is_ordered(rows: Sequence[Row], code: Sequence[Operands], first: int, is_same: bool) -> bool:
    """Whether the branch before a section compares an order, as of the index of the lane, and no equality.

    If not all warps have the same number of lanes, only those that ended are known to have no other path.
    """
    for branch in range(first - 1, -1, -1):
        guards = [name for name in code[branch].read if name.startswith(("P", "UP"))]
        if code[branch].opcode in LEAVES and guards and rows[branch]["instructions"]:
            if not is_same and code[branch].opcode != "EXIT":
                return False
            written = (one for one in range(branch - 1, -1, -1) if guards[0] in code[one].written)
            found = next(written, None)
            return found is not None and any(f".{one}." in rows[found]["sass"] for one in ORDERED)
    return False
