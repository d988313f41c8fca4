"""Causes of waits for global memory, and for the queue of shared memory, special functions and indexed constants."""

import numpy as np

from profsvc.analysis.causes.staged_tiles import copyable_share
from profsvc.analysis.causes.time_budget import (
    GLOBAL_STALLS,
    STALLS,
    Array,
    TimeBudget,
    empty_slots,
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
from profsvc.analysis.potential.latency import HITS, LATENCIES, unloaded_latency
from profsvc.analysis.potential.matrix_products import instructions_of_type, multiplies_matrices, repeated_share
from profsvc.analysis.potential.repeated_loads import evicted_share, read_again, reloaded_share, word_by_word
from profsvc.analysis.potential.special_functions import conversions, special_unit_warps
from profsvc.analysis.potential.useful_time import has_copies_without_size
from profsvc.formulas.performance.lost_time import wait_parts

SECTOR_BYTES = 32
WORD_BYTES = 4
WIDEST_BYTES = 16 * 32
# Share of their peaks that DRAM and the sector port of L2 sustain under a copy.
DRAM_SUSTAINED, L2_SUSTAINED = 0.92, 0.6
# A load crosses the interconnect twice, with its request and its data, a store once.
CROSSINGS = {"load": 2.0, "store": 1.0}


@np.errstate(all="ignore")
def on_chip_causes(budget: TimeBudget) -> tuple[dict[str, Array], Array, Array]:
    """Return the shares of the time that causes of waits for the on-chip queue take, and what global memory has.

    The last is the part of the waits at barriers in which warps wait for others that stand in line for conflicting
    banks.
    """
    c, stall = budget.c, budget.stall
    cycles = c["sm_elapsed_cycles_sum"]
    wait = stall["mio_throttle"] + stall["short_scoreboard"]
    wavefronts = np.nan_to_num(budget.count("shared_wavefronts_sass") / cycles)
    special = np.nan_to_num(c["pipe_xu_elapsed_fraction"])
    # A request beyond the instruction itself is for another address of the same warp.
    diverged = budget.count("constant_idc_requests") - budget.count("constant_ldc_inst_warp")
    constants = np.nan_to_num(np.clip(diverged, 0, None) / cycles)
    tags = np.where(np.isnan(c["l1_tag_requests_global"]), c["global_load_inst_warp"], c["l1_tag_requests_global"])
    tags = np.nan_to_num(tags / cycles)
    busy = wavefronts + special + constants + tags
    of_shared, of_special, of_constants = (share_of(part, busy) for part in (wavefronts, special, constants))
    conflicts, contended = _conflicts(c), _of_shared_atomics(budget)
    pipe = np.fmax(np.nan_to_num(c["sol_l1_fraction"]), wavefronts)
    shared = wait_parts(wait * of_shared, pipe, conflicts)
    converted = share_of(conversions(c) / 32 / budget.on, special_unit_warps(c))
    doubles = instructions_of_type(c, "fp64") > 0
    function = wait_parts(wait * of_special, special, converted)
    conflicting = (shared.waste + shared.latency * conflicts) * (1 - contended)
    # Without them other units are the limit: the launch takes as long as its busiest other unit: no less is saved.
    least = wavefronts - np.fmax(wavefronts * (1 - conflicts), np.fmax(budget.issued, np.fmax(*shared_units(c))))
    at_barriers = np.fmin(np.clip(pipe * least * (1 - contended) - conflicting, 0, None), stall["barrier"])
    shares = {
        "contended_shared_atomics": wait * of_shared * contended,
        "bank_conflicts": conflicting + at_barriers,
        # A fragment of a matrix serves many products with each operand that it loads.
        "tensor_cores_unused": np.where(multiplies_matrices(c), shared.useful * (1 - contended), 0.0),
        "shared_memory_limit": np.where(multiplies_matrices(c), 0.0, shared.useful * (1 - contended)),
        "type_conversions": np.where(doubles, 0.0, function.waste),
        "accidental_double": np.where(doubles, function.waste, 0.0),
        "divergent_constants": wait * of_constants + stall["imc_miss"],
        "arithmetic_limit": function.useful,
        "dependent_instructions": shared.latency * (1 - conflicts) * (1 - contended) + function.latency,
    }
    return shares, wait * (1 - of_shared - of_special - of_constants), at_barriers


def _conflicts(c: Counts) -> Array:
    """Share of the wavefronts of shared memory that its instructions would not need without conflicts."""
    wavefronts = c["shared_wavefronts_sass"]
    # A table that is read at random places has the conflicts of its data.
    of_lookups = share_of(np.nan_to_num(c["shared_lookup_wavefronts"]), wavefronts)
    return np.clip(share_of(wavefronts - c["shared_wavefronts_ideal"], wavefronts) - of_lookups, 0, 1)


def _of_shared_atomics(budget: TimeBudget) -> Array:
    """Share of the instructions on shared memory that are atomics."""
    atomics = budget.count("shared_atomic_inst_warp")
    return share_of(atomics, atomics + budget.count("shared_load_inst_warp", "shared_store_inst_warp"))


@np.errstate(all="ignore")
def _behind_conflicts(c: Counts) -> Array:
    """Share of the queue to global memory that stands behind conflicts of shared memory.

    Both go through the pipe of L1: where wavefronts that only conflicts need keep it busy, loads of global memory wait
    for them.
    """
    l1 = np.nan_to_num(c["sol_l1_fraction"])
    wavefronts = np.nan_to_num(c["shared_wavefronts_sass"] / c["sm_elapsed_cycles_sum"])
    return _of_l1(c) * share_of(np.fmin(wavefronts, l1), l1) * _conflicts(c)


def _of_l1(c: Counts) -> Array:
    """Share of L1 in what keeps the units on the way to global memory busy."""
    l1 = np.nan_to_num(c["sol_l1_fraction"])
    return share_of(l1, np.asarray(sum(shared_units(c))) + l1)


@np.errstate(all="ignore")
def utilization(c: Counts) -> tuple[Array, Array]:
    """Share of the time in which the busiest counted unit on the way to global memory was busy, and DRAM's part in it.

    The pipe of L1 serves shared memory as well: where a load takes no longer than a single one, it does not queue
    before that pipe.
    """
    dram, l2 = shared_units(c)
    l1 = np.nan_to_num(c["sol_l1_fraction"])
    queue = 1 - unloaded_latency(c) / c["lsu_latency_global_cycles"]
    queued = np.fmin(l1, np.where(np.isnan(queue), 1.0, np.clip(queue, 0, 1)))
    return np.clip(np.fmax(np.fmax(dram, l2), queued), 0, 1), share_of(dram, dram + l2 + l1)


@np.errstate(all="ignore")
def shared_units(c: Counts) -> tuple[Array, Array]:
    """Share of the time in which DRAM and L2 were busy, of what they sustain."""
    l2 = np.fmax(np.nan_to_num(c["l2_utilization_fraction"]) / L2_SUSTAINED, np.nan_to_num(c["sol_l2_fraction"]))
    return np.nan_to_num(c["dram_throughput_fraction"]) / DRAM_SUSTAINED, l2


@np.errstate(all="ignore")
def _atomics(budget: TimeBudget) -> Array:
    """Warp instructions that are global atomics and reductions; where not counted, their requests."""
    c = budget.c
    kinds = (np.fmax(c[f"global_{kind}_inst_warp"], c[f"global_{kind}_requests"]) for kind in ("atomic", "reduction"))
    return np.asarray(sum(np.nan_to_num(kind) for kind in kinds), dtype=np.float64)


@np.errstate(all="ignore")
def _latency(budget: TimeBudget) -> Array:
    """Cycles from an access to global memory to its result, at least: what its warp waited; NaN where not known.

    A warp with several accesses under way waits for all of them at once. Bulk copies and textures wait in the same
    state, and are not counted among the accesses.
    """
    c = budget.c
    plain = [f"{space}_{side}_inst_warp" for space in ("global", "local") for side in ("load", "store")]
    waited = np.nansum(budget.waits[:, [STALLS.index(name) for name in GLOBAL_STALLS]], axis=1)
    waited = waited / (_atomics(budget) + budget.count(*plain))
    copies = budget.count("tma_load_inst_warp", "global_ldgsts_inst_warp", "texture_inst_warp") > 0
    return np.where(copies | ~np.isfinite(waited), np.nan, np.fmax(c["lsu_latency_global_cycles"], waited))


@np.errstate(all="ignore")
def _queued(budget: TimeBudget) -> Array:
    """Share of the latency of accesses to global memory that they stood in a queue, at least.

    By Little's law, accesses that are too few to keep memory busy find no queue: each takes as long as a single one.
    One that takes longer waits for others, whether the unit that they wait for is counted or not. A warp waits for the
    farthest of its sectors, so that a few of them that miss may determine how long a single access takes.
    """
    c = budget.c
    sectors = np.fmax(np.nan_to_num(c["global_load_sectors_per_request"]), 1.0)
    l1, l2 = (np.clip(sectors * (1 - np.nan_to_num(c[name])), 0, 1) for name in HITS)
    longest = (1 - l1) * LATENCIES[0] + l1 * ((1 - l2) * LATENCIES[1] + l2 * LATENCIES[2])
    return np.clip(np.nan_to_num(1 - longest / _latency(budget)), 0, 1)


@np.errstate(all="ignore")
def _of_atomics(budget: TimeBudget, busy: Array) -> Array:
    """Share of the waits for global memory beyond what its utilization explains, where there are atomics."""
    atomics = _atomics(budget)
    every = ("global_load_inst_warp", "global_store_inst_warp", "local_load_inst_warp", "local_store_inst_warp")
    instructions = share_of(atomics, atomics + budget.count(*every))
    expected = LATENCIES[2] / (1 - np.clip(busy, 0, 0.95))
    unexplained = np.clip(1 - np.nan_to_num(expected / _latency(budget), nan=1.0), 0, 1)
    return np.where(atomics > 0, np.fmax(unexplained, instructions), 0.0)


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
    of_atomics = _of_atomics(budget, busy)
    contended, wait = wait * of_atomics, wait * (1 - of_atomics)
    busy = np.fmax(busy, _queued(budget))
    sectors = {kind: budget.count(f"{kind}_load_sectors", f"{kind}_store_sectors") for kind in ("local", "global")}
    of_local = share_of(sectors["local"], sectors["local"] + sectors["global"])
    spilled = budget.count("register_spill_inst_warp") > 0
    local, wait = wait * of_local, wait * (1 - of_local)
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
    parts = wait_parts(wait, busy, waste)
    behind_conflicts = parts.useful * _behind_conflicts(c)
    useful, of_shared_atomics = parts.useful - behind_conflicts, _of_shared_atomics(budget)
    uncoalesced = parts.waste * share_of(wasted["load"], waste)
    # What L1 keeps of a sector until another lane wants it lies together: only what L1 and its lanes left counts.
    scattered_stores = (parts.waste - uncoalesced) * unrelated_stores(c)
    scattered = uncoalesced * share_of(np.fmin(unrelated_places(c), unused_of_l2_loads(c)), unused["load"])
    # A load whose place comes from the load before can be neither copied ahead nor put in order, nor bring more.
    chained = share_of(c["global_load_chained_inst_warp"], c["global_load_inst_warp"])
    # Whether values at unrelated places could be closer together, no counter tells, unless the places are of a list.
    missed = (1 - share_of(c["global_load_l1_hit_fraction"], 1.0)) * (1 - share_of(c["l2_read_hit_fraction"], 1.0))
    thrashing = (POSSIBLE + (1 - POSSIBLE) * has_listed_places(c) * (1 - chained)) * missed * scattered
    # What values look up in a table, and L1 asks L2 for again and again, a part of the table that fits L1 would spare.
    lost = (1 - share_of(c["global_load_l1_hit_fraction"], 1.0)) * (uncoalesced - scattered) * looks_up_tables(c)
    lost = lost * share_of(np.fmin(looked_up(c), unused_of_l2_loads(c)), unused["load"])
    in_l1 = share_of(c["global_load_l1_hit_fraction"], 1.0)
    by_words = word_by_word(c)
    repeats, reloads = in_l1 * repeated_share(c) * by_words, reloaded_share(c, budget.sms)
    # What a thread loads again and L1 does not have any more, fewer warps or smaller parts would find there. It has its
    # share of the loads that miss of the time beyond L1: those that hit wait for neither L2 nor DRAM.
    evicted = evicted_share(c)
    of_misses = share_of(evicted, 1 - in_l1) * (1 - chained)
    of_l2 = np.clip(1 - of_dram - _of_l1(c), 0, 1)
    repeated = useful * np.clip(np.fmax(repeats, reloads * by_words) - evicted, 0, 1) * (1 - of_dram)
    # What DRAM brings again for other blocks, another order of the blocks would find in L2.
    reordered = useful * (of_dram * read_again(c) + of_l2 * of_misses)
    queued = share_of(stall["lg_throttle"], np.asarray(sum(stall[name] for name in GLOBAL_STALLS)))
    moved = budget.count("global_load_bytes_requested", "global_store_bytes_requested")
    narrow = 1 - share_of(moved, WIDEST_BYTES * budget.count("global_load_inst_warp", "global_store_inst_warp"))
    latency = parts.latency
    again, thin = latency * queued * repeats, latency * queued * (1 - repeats) * narrow
    missed_l1 = 1 - share_of(in_l1 * LATENCIES[0], unloaded_latency(c))
    lost_again = latency * missed_l1 * of_misses
    latency = latency - again - thin - lost_again
    # What the same SM loaded before, and warps ask for by rows, a tile on chip serves without the latency of L2.
    # Lanes that load the same word share it; whether warps load the same at one time, no counter tells.
    words = WORD_BYTES * 32 * budget.lanes * (1 - narrow_share(c)) * c["global_load_inst_warp"]
    shared = 1 - share_of(c["global_load_bytes_requested"], words)
    kept = latency * missed_l1 * reloads * (1 - unused["load"]) * (shared + POSSIBLE * (1 - shared))
    again, latency = again + kept, latency - kept
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
    short = np.log(1 / (1 - narrow_share(c) * (1 - chained)))
    warps = np.log(1 / np.clip(np.nan_to_num(c["theoretical_occupancy_fraction"], nan=1.0), 1e-3, 1))
    gaps, shorter = np.log(1 / (1 - between)), np.log(1 / (1 - ended_blocks))
    needed = np.fmax(lacking, short + warps + gaps + shorter)
    words, few_warps, gaps, shorter = (latency * share_of(part, needed) for part in (short, warps, gaps, shorter))
    # A copy runs ahead of the next step; a block that loads a tile once has none.
    staged = np.where(np.isnan(c["stall_tile_fraction"]), copyable, 0.0)
    # More warps would hide the wait for a tile as well as a copy would; no counter tells which of both is at hand.
    few_warps = few_warps * np.where(staged > 0, POSSIBLE, 1.0)
    return {
        "contended_global_atomics": contended,
        "contended_shared_atomics": behind_conflicts * of_shared_atomics,
        "bank_conflicts": behind_conflicts * (1 - of_shared_atomics),
        "register_spills": np.where(spilled, local, 0.0),
        "local_memory": np.where(spilled, 0.0, local),
        "uncoalesced_loads": uncoalesced - scattered - lost,
        "cache_thrashing": thrashing + lost + reordered + lost_again,
        "unrelated_accesses": scattered - thrashing + scattered_stores,
        "uncoalesced_stores": parts.waste - uncoalesced - scattered_stores,
        "memory_limit": useful - repeated - reordered,
        "redundant_loads": again + repeated,
        "narrow_accesses": thin + words,
        "barriers": met,
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
