"""Counters that the machine code of a launch tells: what its loads depend on, and what waits for them."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from profsvc.analysis.counters.merged import SourcedCounters, merge_counters
from profsvc.analysis.source_code.addresses import load_counts
from profsvc.analysis.source_code.registers import operands

CHAINED, SHARED, TILE = "global_load_chained_inst_warp", "global_load_shared_place_bytes", "stall_tile_fraction"
SOURCES = {
    CHAINED: "source page: sum(instructions) of LDG whose address comes from the load of the turn of a loop before",
    SHARED: "source page: bytes of LDG whose address depends on a part of the block index alone",
    TILE: "source page: samples of Long Scoreboard of STS over those of all instructions",
}


def counters_by_code(code: Mapping[int, Sequence[Mapping[str, Any]]]) -> SourcedCounters:
    """Return the counters of launches by their instructions in the order of their addresses.

    Each instruction has ``address, sass, access_size, instructions, thread_instructions_on, ideal_l2_sectors,
    long_scoreboard``. The share of the stores is NaN without samples.
    """
    found: dict[str, list[float]] = {name: [] for name in SOURCES}
    for rows in code.values():
        counts = load_counts(rows)
        samples = [row["long_scoreboard"] or 0 for row in rows]
        of_stores = sum(one for one, row in zip(samples, rows, strict=True) if operands(row["sass"]).opcode == "STS")
        found[CHAINED].append(counts.chained_warps)
        found[SHARED].append(counts.shared_bytes)
        found[TILE].append(of_stores / sum(samples) if any(samples) else np.nan)
    table = pd.DataFrame(found, index=pd.Index(list(code), name="launch_id", dtype="int64"), dtype="float64")
    return table, {name: np.full(len(table), text, dtype=object) for name, text in SOURCES.items()}


def with_machine_code(own: SourcedCounters, code: Mapping[int, Sequence[Mapping[str, Any]]]) -> SourcedCounters:
    """Return the counters of launches with those that their machine code tells."""
    if not code:
        return own
    told = counters_by_code(code)
    return merge_counters(own, [(told, told[0].index.to_series())], own[0].index.to_series())
