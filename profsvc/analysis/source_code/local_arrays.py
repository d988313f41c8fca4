"""Arrays of a thread in local memory, from SASS: whether registers could hold them.

An array stays in registers if each place of it is known to the compiler. Turns of a loop make it known once the loop is
unrolled; then its counter, its branch and the addresses go as well. A place that a value of memory determines, as that
of a counter of events, is not known by any unrolling: the array stays in memory, and at best in that of the block. Nor
is one known that more turns go through than the array has places.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from profsvc.analysis.source_code.places import LOCAL, VALUE, access_places, turns_of
from profsvc.analysis.source_code.registers import Operands
from profsvc.specs.metrics.instruction_classes import instruction_classes

Row = Mapping[str, Any]
FRAME = re.compile(r"(?:VIADD|IADD3) R1, R1, (-?0x[0-9a-f]+)")
WORD_BYTES = 4
WORDS = 1 << 32
OVERHEAD = frozenset(f"inst_{name}_thread" for name in ("integer", "control", "bit", "uniform"))


class LocalCounts(NamedTuple):
    """Of the accesses of local memory of a launch, and of the loops that go through its arrays."""

    warps: float
    """Accesses of warps."""
    valued_warps: float
    """Those at places that a value determines."""
    indexed_threads: float
    """Accesses of threads in loops whose turns determine the place."""
    overhead_threads: float
    """Integer, bit and branch instructions of threads in these loops."""
    others_threads: float
    """The other instructions of threads in these loops."""


NONE = LocalCounts(0.0, 0.0, 0.0, 0.0, 0.0)


def local_counts(rows: Sequence[Row], code: Sequence[Operands], loops: Sequence[tuple[int, int]]) -> LocalCounts:
    """Return the counts of a launch; ``rows``, ``code`` and ``loops`` are its instructions, parsed, and their loops.

    Each row has ``sass, instructions, thread_instructions_on``.
    """
    if not any(one.opcode in LOCAL for one in code):
        return NONE
    places = {place: turns for place, (_, turns) in access_places(rows, code, loops).items()}
    own = {place: turns for place, turns in places.items() if code[place].opcode in LOCAL}
    executed = {place: float(rows[place]["instructions"] or 0) for place in own}
    valued = sum(executed[place] for place, turns in own.items() if VALUE in turns)
    words = _frame_words(rows)
    through = {loop for turns in own.values() if VALUE not in turns for loop in turns}
    through = {loop for loop in through if turns_of(rows, loops[loop]) <= words}
    inside = {place for loop in through for place in range(loops[loop][0], loops[loop][1] + 1)}
    counts = {"indexed": 0.0, "overhead": 0.0, "others": 0.0}
    classes = instruction_classes()
    for place in inside:
        name = code[place].opcode
        is_overhead = name in classes and classes[name].counter in OVERHEAD
        kind = "indexed" if name in LOCAL else "overhead" if is_overhead else "others"
        counts[kind] += float(rows[place]["thread_instructions_on"] or 0)
    return LocalCounts(sum(executed.values()), valued, counts["indexed"], counts["overhead"], counts["others"])


def _frame_words(rows: Sequence[Row]) -> float:
    """Return the words of local memory that a thread sets aside where the code begins; 0 if it does not."""
    for row in rows:
        if found := FRAME.match(row["sass"].strip()):
            number = int(found[1], 16)
            return (-number if number < 0 else WORDS - number) / WORD_BYTES
    return 0.0
