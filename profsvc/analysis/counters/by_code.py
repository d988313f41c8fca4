"""Counters that the machine code of a launch tells: what its loads depend on, and what waits for them."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from profsvc.analysis.counters.merged import SourcedCounters, merge_counters
from profsvc.analysis.source_code.addresses import load_counts, loops_of
from profsvc.analysis.source_code.assembled_words import assembled_threads
from profsvc.analysis.source_code.bfloat16 import unpacked_threads
from profsvc.analysis.source_code.bits import bit_by_bit_threads
from profsvc.analysis.source_code.functions import reduction_threads, spared_threads
from profsvc.analysis.source_code.index_arithmetic import index_threads
from profsvc.analysis.source_code.lanes import lane_counts, predicated_off_between_barriers
from profsvc.analysis.source_code.local_arrays import local_counts
from profsvc.analysis.source_code.places import place_counts
from profsvc.analysis.source_code.register_arrays import register_array_threads
from profsvc.analysis.source_code.registers import Operands, operands
from profsvc.analysis.source_code.wide_indices import upper_half_threads

CHAINED, SHARED, TILE = "global_load_chained_inst_warp", "global_load_shared_place_bytes", "stall_tile_fraction"
AGAIN, DISTINCT = "global_load_again_fraction", "global_load_distinct_bytes"
FIRST_LANES, ALONE = "inst_first_lanes_off_thread", "inst_alone_section_warp"
REGULAR = "global_load_regular_excess_fraction"
REGULAR_STORES = "global_store_regular_excess_fraction"
BFLOAT16 = "inst_unpack_bfloat16_thread"
FUNCTIONS, BITS = "inst_function_excess_thread", "inst_bit_by_bit_thread"
UPPER, INDEX = "inst_index_upper_thread", "inst_index_thread"
SHARED_WORDS, SHARED_LANES = "shared_load_words_thread", "shared_predicated_on_fraction"
LOCAL_VALUED, LOCAL_INDEXED = "local_valued_place_fraction", "inst_local_indexed_thread"
LOCAL_OVERHEAD, LOCAL_OTHERS = "inst_local_loop_overhead_thread", "inst_local_loop_others_thread"
REGISTER_ARRAYS, REDUCTIONS = "inst_register_array_thread", "inst_angle_reduction_thread"
BETWEEN_BARRIERS = "inst_predicated_off_between_barriers_thread"
MEETING, MEETING_WAITS = "inst_meeting_warp", "stall_meeting_fraction"
WORD_BITS, WAVEFRONT_BITS = 32, 1024
SOURCES = {
    CHAINED: "source page: sum(instructions) of LDG whose address comes from the load of the turn of a loop before",
    SHARED: "source page: bytes of LDG whose address depends on a part of the block index alone",
    AGAIN: "source page: share of the bytes of LDG at a place that the same thread loaded before",
    DISTINCT: "source page: 32 * l2_sectors of LDG, each place of a thread once",
    REGULAR: "source page: share of l2_sectors - ideal_l2_sectors of LDG whose address no value of memory determines",
    REGULAR_STORES: "source page: the same share of STG",
    FIRST_LANES: "source page: threads that are off while the first lanes of all warps work",
    ALONE: "source page: sum(instructions) of sections that one thread of a warp executes, from 32 instructions on",
    BFLOAT16: "source page: sum(thread_instructions_on) of shifts, masks and permutations that unpack a bfloat16",
    FUNCTIONS: "source page: calls of functions of the math library times the arithmetic that cheaper forms spare",
    BITS: "source page: sum(thread_instructions_on) of code that moves a bit at a time, beyond what words take",
    UPPER: "source page: sum(thread_instructions_on) of upper halves of indices, beyond one for each access",
    INDEX: "source page: sum(thread_instructions_on) of integer instructions from indices to addresses alone",
    SHARED_WORDS: "source page: sum(thread_instructions_on * access_size / 32) of LDS",
    SHARED_LANES: "source page: what lanes that are on fill of ideal_shared_wavefronts, over what active lanes do",
    LOCAL_VALUED: "source page: share of LDL and STL at a place that a value determines",
    LOCAL_INDEXED: "source page: sum(thread_instructions_on) of LDL and STL in loops through an array",
    LOCAL_OVERHEAD: "source page: the same of integer, bit and branch instructions",
    LOCAL_OTHERS: "source page: the same of the other instructions",
    REGISTER_ARRAYS: "source page: sum(thread_instructions_on) of comparisons of a place, and moves that they guard",
    REDUCTIONS: "source page: calls that reduce an angle from 105615 on, times the instructions of one",
    BETWEEN_BARRIERS: "source page: thread_instructions - thread_instructions_on in short steps between two barriers",
    MEETING: "source page: sum(instructions) of sections in which one thread waits for other blocks",
    MEETING_WAITS: "source page: samples of Long Scoreboard of these sections over those of all instructions",
    TILE: "source page: samples of Long Scoreboard of STS over those of all instructions",
}


def counters_by_code(code: Mapping[int, Sequence[Mapping[str, Any]]]) -> SourcedCounters:
    """Return the counters of launches by their instructions in the order of their addresses.

    Each instruction has ``address, sass, access_size, instructions, thread_instructions, thread_instructions_on,
    l2_sectors, ideal_l2_sectors, ideal_shared_wavefronts, long_scoreboard``. A share of nothing is NaN, as that of the
    stores without samples.
    """
    found: dict[str, list[float]] = {name: [] for name in SOURCES}
    for rows in code.values():
        own = [operands(row["sass"]) for row in rows]
        loops = loops_of(rows)
        loads, places = load_counts(rows, own, loops), place_counts(rows, own, loops)
        has_lanes = any(row["thread_instructions"] is not None for row in rows)
        lanes = lane_counts(rows, own, loops) if has_lanes else (np.nan,) * 4
        local = local_counts(rows, own, loops)
        samples = [row["long_scoreboard"] or 0 for row in rows]
        of_stores = sum(waits for waits, one in zip(samples, own, strict=True) if one.opcode == "STS")
        values = {
            CHAINED: loads.chained_warps,
            SHARED: loads.shared_bytes,
            AGAIN: _share(places.again_bytes, places.requested_bytes),
            DISTINCT: places.distinct_sector_bytes if places.requested_bytes else np.nan,
            REGULAR: _share(places.regular_excess_sectors, places.excess_sectors),
            REGULAR_STORES: _share(places.regular_excess_of_stores, places.excess_of_stores),
            FIRST_LANES: lanes[0],
            ALONE: lanes[1],
            BFLOAT16: unpacked_threads(rows, own),
            FUNCTIONS: spared_threads(rows),
            BITS: max(bit_by_bit_threads(rows, own, loops), assembled_threads(rows, own)),
            UPPER: upper_half_threads(rows, own, loops),
            INDEX: index_threads(rows, own, loops),
            SHARED_WORDS: _words(rows, own),
            SHARED_LANES: _share(
                *(_lane_wavefronts(rows, of) for of in ("thread_instructions_on", "thread_instructions"))
            ),
            LOCAL_VALUED: _share(local.valued_warps, local.warps),
            LOCAL_INDEXED: local.indexed_threads,
            LOCAL_OVERHEAD: local.overhead_threads,
            LOCAL_OTHERS: local.others_threads,
            REGISTER_ARRAYS: register_array_threads(rows, own),
            REDUCTIONS: reduction_threads(rows),
            BETWEEN_BARRIERS: predicated_off_between_barriers(rows, own) if has_lanes else np.nan,
            MEETING: lanes[2],
            MEETING_WAITS: _share(lanes[3], sum(samples)),
            TILE: _share(of_stores, sum(samples)),
        }
        for name, value in values.items():
            found[name].append(value)
    table = pd.DataFrame(found, index=pd.Index(list(code), name="launch_id", dtype="int64"), dtype="float64")
    return table, {name: np.full(len(table), text, dtype=object) for name, text in SOURCES.items()}


def _words(rows: Sequence[Mapping[str, Any]], code: Sequence[Operands]) -> float:
    """Return the words that all threads load from shared memory."""
    loads = [row for row, one in zip(rows, code, strict=True) if one.opcode == "LDS"]
    bits = sum((row["thread_instructions_on"] or 0) * int(row["access_size"] or WORD_BITS) for row in loads)
    return bits / WORD_BITS


def _lane_wavefronts(rows: Sequence[Mapping[str, Any]], lanes: str) -> float:
    """Return the wavefronts that lanes fill which the column ``lanes`` counts, no more than those without conflicts.

    Where all lanes read one word there are fewer, and an access that no lane does has none.
    """
    total = 0.0
    for row in rows:
        ideal = row["ideal_shared_wavefronts"]
        bits = max(int(row["access_size"] or WORD_BITS), WORD_BITS)
        total += min(ideal or 0, (row[lanes] or 0) * bits / WAVEFRONT_BITS)
    return total


def _share(part: float, whole: float) -> float:
    return part / whole if whole else np.nan


def with_machine_code(own: SourcedCounters, code: Mapping[int, Sequence[Mapping[str, Any]]]) -> SourcedCounters:
    """Return the counters of launches with those that their machine code tells."""
    if not code:
        return own
    told = counters_by_code(code)
    return merge_counters(own, [(told, told[0].index.to_series())], own[0].index.to_series())
