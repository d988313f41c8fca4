"""Loops of unequal length in a warp, from the instructions of a source page."""

import re
from collections.abc import Iterable, Mapping
from typing import Any

from profsvc.formulas.performance.latency import simt_usage

BRANCH = re.compile(r"\bBRA\S*\s+(?:`?\()?(0x[0-9a-f]+)", re.ASCII)
WARP = 32.0


def trip_count_balance(instructions: Iterable[Mapping[str, Any]]) -> float | None:
    """Return the mean over the largest number of iterations in a warp, of all loops of a kernel; None without loops.

    ``instructions`` have an address, the text ``sass``, and the counts ``instructions`` and ``thread_instructions``. A
    branch back executes once per iteration of the longest loop of the warp, for the threads that go on or leave then.
    The threads that enter a loop are those of the instruction in front of it.

    >>> loop = {"address": "0x10", "sass": "@P0 BRA 0x10", "instructions": 5, "thread_instructions": 64}
    >>> before = {"address": "0x0", "sass": "MOV R1, R2", "instructions": 1, "thread_instructions": 32}
    >>> trip_count_balance([before, loop])
    0.4
    """
    known = {int(row["address"], 16): row for row in instructions if row["address"] and row["instructions"]}
    needed = used = 0.0
    for address, row in known.items():
        found = BRANCH.search(row["sass"] or "")
        if found is None or (start := int(found[1], 16)) > address:
            continue
        before = max((at for at in known if at < start), default=None)
        entering = WARP if before is None else _threads(known[before])
        used += row["thread_instructions"] or 0
        needed += row["instructions"] * max(entering, _threads(row))
    return float(simt_usage([used], needed).value) if needed else None


def _threads(row: Mapping[str, Any]) -> float:
    return float(row["thread_instructions"] or 0) / float(row["instructions"])
