"""Causes of waits for global memory: what stands in its queues, and what hides no latency."""

from typing import NamedTuple

import numpy as np

from profsvc.analysis.causes.memory_queues import (
    atomics_share,
    behind_conflicts_share,
    l1_share,
    queued_share,
    shared_atomics_share,
    utilization,
)
from profsvc.analysis.causes.staged_tiles import copyable_share
from profsvc.analysis.causes.time_budget import (
    GLOBAL_STALLS,
    Array,
    TimeBudget,
    empty_slots,
    lacking_warps,
    occupancy_limit,
    share_of,
)
from profsvc.analysis.counters.arrays import Counts
from profsvc.analysis.potential.access_patterns import (
    has_listed_places,
    looked_up,
    looks_up_tables,
    narrow_share,
    unrelated_places,
    unrelated_stores,
    unused_of_l2_loads,
)
from profsvc.analysis.potential.avoidable_work import POSSIBLE
from profsvc.analysis.potential.latency import LATENCIES, unloaded_latency
from profsvc.analysis.potential.matrix_products import repeated_share
from profsvc.analysis.potential.repeated_loads import evicted_share, read_again, reloaded_share, word_by_word
from profsvc.analysis.potential.useful_time import has_copies_without_size
from profsvc.formulas.performance.lost_time import wait_parts

SECTOR_BYTES = 32
WORD_BYTES = 4
WIDEST_BYTES = 16 * 32
# A load crosses the interconnect twice, with its request and its data, a store once.
CROSSINGS = {"load": 2.0, "store": 1.0}


class _UnusedSectors(NamedTuple):
    """Sectors of global memory that no lane asked for."""

    of_loads: Array
    """As a share of the sectors of loads."""
    share: Array
    """As a share of what crosses the interconnect."""
    loads_share: Array
    """Part of that which belongs to loads."""


class _Repeats(NamedTuple):
    """Loads of values that were loaded before, as shares of all loads."""

    in_l1: Array
    """Those that L1 has, whether they come again or not."""
    served: Array
    """Those that L1 serves again."""
    reloaded: Array
    """Those that the same SM loaded before."""
    by_words: Array
    """Those that bring a word to each lane: others are of tiles in registers."""
    evicted: Array
    """Those that the same thread loaded before, and L1 does not have any more."""
    of_misses: Array
    """The same of the loads that miss. A place that comes from the load before is not known ahead."""


@np.errstate(all="ignore")
def global_memory_causes(budget: TimeBudget, queued_on_chip: Array) -> dict[str, Array]:
    """Return the shares of the time that causes of waits for global memory take."""
    c, stall = budget.c, budget.stall
    wait = np.asarray(sum(stall[name] for name in GLOBAL_STALLS)) + queued_on_chip
    # What one thread asks again and again whether other blocks have come is of their meeting, with the fence before it.
    met = stall["long_scoreboard"] * np.nan_to_num(c["stall_meeting_fraction"])
    met = met + np.where(c["inst_meeting_warp"] > 0, stall["membar"], 0.0)
    wait = wait - met
    busy, of_dram = utilization(c)
    of_atomics = atomics_share(budget, busy)
    contended, wait = wait * of_atomics, wait * (1 - of_atomics)
    busy = np.fmax(busy, queued_share(budget))
    sectors = {kind: budget.count(f"{kind}_load_sectors", f"{kind}_store_sectors") for kind in ("local", "global")}
    of_local = share_of(sectors["local"], sectors["local"] + sectors["global"])
    spilled = budget.count("register_spill_inst_warp") > 0
    local, wait = wait * of_local, wait * (1 - of_local)
    unused, repeats = _unused_sectors(budget), _repeats(budget)
    parts = wait_parts(wait, busy, unused.share)
    found = {
        "contended_global_atomics": contended,
        "register_spills": np.where(spilled, local, 0.0),
        "local_memory": np.where(spilled, 0.0, local),
        "barriers": met,
    }
    again, latency = _repeated_latency(budget, parts.latency, repeats, unused.of_loads)
    for causes in (
        _unused_sector_causes(c, parts.waste, unused),
        _queue_causes(budget, parts.useful, of_dram, repeats),
        again,
        _latency_causes(budget, latency, busy),
    ):
        for name, share in causes.items():
            found[name] = found[name] + share if name in found else share
    return found


@np.errstate(all="ignore")
def _unused_sectors(budget: TimeBudget) -> _UnusedSectors:
    c = budget.c
    crossings = {side: CROSSINGS[side] * budget.count(f"global_{side}_sectors") for side in CROSSINGS}
    unused, wasted = {}, {}
    for side, crossed in crossings.items():
        copied = np.nan_to_num(c["global_ldgsts_bytes_requested"]) if side == "load" else 0.0
        asked = (c[f"global_{side}_bytes_requested"] + copied) / SECTOR_BYTES
        needed = np.fmax(asked, c[f"global_{side}_requests"])
        if side == "load":  # copies whose size was not counted are among the sectors, but not among the bytes
            needed = np.where(has_copies_without_size(c), np.nan, needed)
        unused[side] = np.clip(np.nan_to_num(1 - needed / c[f"global_{side}_sectors"]), 0, 1)
        # One word that all lanes load is a whole sector, and no lane could ask for the rest.
        excess = (c["global_theoretical_sectors"] - c["global_theoretical_sectors_ideal"]) / c[f"global_{side}_sectors"]
        unused[side] = np.where(np.isnan(excess), unused[side], np.clip(excess, 0, unused[side]))
        wasted[side] = share_of(crossed, np.asarray(sum(crossings.values()))) * unused[side]
    waste = wasted["load"] + wasted["store"]
    return _UnusedSectors(unused["load"], waste, share_of(wasted["load"], waste))


def _chained_share(c: Counts) -> Array:
    """Share of the loads whose place comes from the load before: not copied ahead, nor put in order, nor wider."""
    return share_of(c["global_load_chained_inst_warp"], c["global_load_inst_warp"])


@np.errstate(all="ignore")
def _repeats(budget: TimeBudget) -> _Repeats:
    c = budget.c
    in_l1, by_words, evicted = share_of(c["global_load_l1_hit_fraction"], 1.0), word_by_word(c), evicted_share(c)
    # What a thread loads again and L1 does not have any more, fewer warps or smaller parts would find there. It has its
    # share of the loads that miss of the time beyond L1: those that hit wait for neither L2 nor DRAM.
    of_misses = share_of(evicted, 1 - in_l1) * (1 - _chained_share(c))
    served = in_l1 * repeated_share(c) * by_words
    return _Repeats(in_l1, served, reloaded_share(c, budget.sms), by_words, evicted, of_misses)


@np.errstate(all="ignore")
def _unused_sector_causes(c: Counts, wait: Array, unused: _UnusedSectors) -> dict[str, Array]:
    """Causes of the queue behind sectors that no lane asked for."""
    uncoalesced = wait * unused.loads_share
    # What L1 keeps of a sector until another lane wants it lies together: only what L1 and its lanes left counts.
    scattered_stores = (wait - uncoalesced) * unrelated_stores(c)
    scattered = uncoalesced * share_of(np.fmin(unrelated_places(c), unused_of_l2_loads(c)), unused.of_loads)
    # Whether values at unrelated places could be closer together, no counter tells, unless the places are of a list.
    missed = (1 - share_of(c["global_load_l1_hit_fraction"], 1.0)) * (1 - share_of(c["l2_read_hit_fraction"], 1.0))
    thrashing = (POSSIBLE + (1 - POSSIBLE) * has_listed_places(c) * (1 - _chained_share(c))) * missed * scattered
    # What values look up in a table, and L1 asks L2 for again and again, a part of the table that fits L1 would spare.
    lost = (1 - share_of(c["global_load_l1_hit_fraction"], 1.0)) * (uncoalesced - scattered) * looks_up_tables(c)
    lost = lost * share_of(np.fmin(looked_up(c), unused_of_l2_loads(c)), unused.of_loads)
    return {
        "uncoalesced_loads": uncoalesced - scattered - lost,
        "cache_thrashing": thrashing + lost,
        "unrelated_accesses": scattered - thrashing + scattered_stores,
        "uncoalesced_stores": wait - uncoalesced - scattered_stores,
    }


@np.errstate(all="ignore")
def _queue_causes(budget: TimeBudget, wait: Array, of_dram: Array, repeats: _Repeats) -> dict[str, Array]:
    """Causes of the queue behind sectors that lanes asked for."""
    c = budget.c
    behind_conflicts = wait * behind_conflicts_share(c)
    useful, of_shared_atomics = wait - behind_conflicts, shared_atomics_share(budget)
    of_l2 = np.clip(1 - of_dram - l1_share(c), 0, 1)
    again = np.clip(np.fmax(repeats.served, repeats.reloaded * repeats.by_words) - repeats.evicted, 0, 1)
    repeated = useful * again * (1 - of_dram)
    # What DRAM brings again for other blocks, another order of the blocks would find in L2.
    reordered = useful * (of_dram * read_again(c) + of_l2 * repeats.of_misses)
    return {
        "contended_shared_atomics": behind_conflicts * of_shared_atomics,
        "bank_conflicts": behind_conflicts * (1 - of_shared_atomics),
        "cache_thrashing": reordered,
        "memory_limit": useful - repeated - reordered,
        "redundant_loads": repeated,
    }


@np.errstate(all="ignore")
def _repeated_latency(
    budget: TimeBudget, latency: Array, repeats: _Repeats, unused: Array
) -> tuple[dict[str, Array], Array]:
    """Causes of latency that values need not wait for, loaded before or with others, and the latency that is left.

    ``unused`` is the share of the sectors of loads that no lane asked for.
    """
    c, stall = budget.c, budget.stall
    queued = share_of(stall["lg_throttle"], np.asarray(sum(stall[name] for name in GLOBAL_STALLS)))
    moved = budget.count("global_load_bytes_requested", "global_store_bytes_requested")
    narrow = 1 - share_of(moved, WIDEST_BYTES * budget.count("global_load_inst_warp", "global_store_inst_warp"))
    again, thin = latency * queued * repeats.served, latency * queued * (1 - repeats.served) * narrow
    missed_l1 = 1 - share_of(repeats.in_l1 * LATENCIES[0], unloaded_latency(c))
    lost_again = latency * missed_l1 * repeats.of_misses
    latency = latency - again - thin - lost_again
    # What the same SM loaded before, and warps ask for by rows, a tile on chip serves without the latency of L2.
    # Lanes that load the same word share it; whether warps load the same at one time, no counter tells.
    words = WORD_BYTES * 32 * budget.lanes * (1 - narrow_share(c)) * c["global_load_inst_warp"]
    shared = 1 - share_of(c["global_load_bytes_requested"], words)
    kept = latency * missed_l1 * repeats.reloaded * (1 - unused) * (shared + POSSIBLE * (1 - shared))
    causes = {"cache_thrashing": lost_again, "redundant_loads": again + kept, "narrow_accesses": thin}
    return causes, latency - kept


@np.errstate(all="ignore")
def _latency_causes(budget: TimeBudget, latency: Array, busy: Array) -> dict[str, Array]:
    """Causes of latency that too few bytes under way do not hide; ``busy`` is the share of the busiest unit."""
    c, stall = budget.c, budget.stall
    # A fuller warp waits once for what these waited for several times.
    absent, latency = latency * budget.absent, latency * (1 - budget.absent)
    # A block keeps the slots of warps that are done until its last warp is.
    early, between, ended_blocks = empty_slots(c)
    ended, latency = latency * early, latency * (1 - early)
    copyable = copyable_share(budget)
    # What a store to shared memory waits for could be under way while the step before is computed, and no longer.
    tile = latency * np.nan_to_num(c["stall_tile_fraction"])
    computed = np.clip(budget.active - np.asarray(sum(stall[name] for name in GLOBAL_STALLS)), 0, 1)
    ahead = copyable * np.fmin(tile, computed)
    latency = latency - ahead
    # By Little's law the bytes under way are too few by the factor that the busiest unit idles. Words instead of bytes
    # make up for some of it, more warps for some, more loads of each warp for the rest.
    lacking = np.log(1 / np.clip(busy, 1e-3, 0.999))
    short = np.log(1 / (1 - narrow_share(c) * (1 - _chained_share(c))))
    warps = lacking_warps(c)
    gaps, shorter = np.log(1 / (1 - between)), np.log(1 / (1 - ended_blocks))
    needed = np.fmax(lacking, short + warps + gaps + shorter)
    words, few_warps, gaps, shorter = (latency * share_of(part, needed) for part in (short, warps, gaps, shorter))
    # A copy runs ahead of the next step; a block that loads a tile once has none.
    staged = np.where(np.isnan(c["stall_tile_fraction"]), copyable, 0.0)
    # More warps would hide the wait for a tile as well as a copy would; no counter tells which of both is at hand.
    few_warps = few_warps * np.where(staged > 0, POSSIBLE, 1.0)
    return {
        "narrow_accesses": words,
        "partly_filled_warps": absent,
        "warp_imbalance": ended,
        "sm_imbalance": shorter * (1 - staged),
        "no_asynchronous_copies": ahead + staged * (latency - words - few_warps),
        **{
            f"occupancy_{name}": few * few_warps + (name == "block_size") * gaps * (1 - staged)
            for name, few in occupancy_limit(c).items()
        },
        "few_loads_in_flight": (latency - words - few_warps - gaps - shorter) * (1 - staged),
    }
