"""The time that the useful part of each unit's work needs at the unit's peak rate, from counters.

`profsvc.formulas.performance.useful_work` holds the model; here its arguments are found among the counters. A unit of
which one of the counts is missing falls back to its measured utilization, all of it taken as useful: the cautious
reading.
"""

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from profsvc.analysis.counters.arrays import Counts, once
from profsvc.analysis.potential.access_patterns import (
    gathered_from_dram,
    has_listed_places,
    local_bytes,
    lookup_wavefronts,
    narrow_share,
    unrelated_places,
    unrelated_stores,
    unused_of_l2_loads,
)
from profsvc.analysis.potential.avoidable_work import (
    LANE_STEPS,
    OVERHEAD,
    avoidable_instructions,
    class_shares,
    divided_share,
    lone_share,
    overhead_per_instruction,
    proven_overhead_share,
    short_steps,
    values_of_integers,
)
from profsvc.analysis.potential.local_arrays import address_share, valued_share
from profsvc.analysis.potential.matrix_products import instructions_of_type, multiplies_doubles, multiplies_matrices
from profsvc.analysis.potential.repeated_loads import evicted_of_misses, read_again, word_by_word
from profsvc.analysis.potential.special_functions import (
    added_special_functions,
    double_by_accident,
    expanded_share,
    integer_divisions,
    needless_conversions,
    spared_checks,
)
from profsvc.analysis.potential.tensor_work import has_tensor_work, tensor_operations, tensor_time
from profsvc.formulas.performance.useful_work import operand_limited, payload_instructions, useful_bytes

Array = NDArray[np.float64]
UNITS = ("dram", "l2", "l1", "fp32", "fp64", "tensor", "xu", "integer", "issue")
WAVEFRONT_BYTES = 128
SECTOR_BYTES = 32
# A unit that is busy for more than this share of the time is at its limit.
SATURATED = 0.8
# Less arithmetic than one instruction for four elements loaded is no evidence that arithmetic is the payload.
OPERATIONS_PER_LOAD = 0.25
# Multiply-adds that each operand of a tile of 16 by 16 serves; one instruction of half precision has two of them.
PRODUCTS_PER_OPERAND = 16.0
# The same of doubles, whose instruction has a tile of 8 by 8.
PRODUCTS_PER_DOUBLE = 8.0
# Of a load that is spared the address goes as well; other overhead serves what stays.
OVERHEAD_OF_LOAD = 1.0
# The same that nine of ten kernels without a flaw stay below: the limit where instructions are counted by class.
MOST_OVERHEAD = 4.0


@np.errstate(all="ignore")
def has_copies_without_size(c: Counts) -> NDArray[np.bool_]:
    """Whether there are asynchronous copies to shared memory whose requested bytes were not counted."""
    copies = c.total("global_ldgsts_inst_warp", "global_ldgsts_sectors")
    # A load touches no more than a sector a lane: what is beyond was not loaded by plain loads.
    beyond = c["global_load_sectors"] > 32 * c["global_load_inst_warp"]
    return np.asarray(
        np.isnan(c["global_ldgsts_bytes_requested"]) & ((copies > 0) | np.isnan(copies) & beyond), dtype=np.bool_
    )


@np.errstate(all="ignore")
def requested_bytes(c: Counts) -> tuple[Array, Array]:
    """Bytes that threads asked to load and to store, NaN where other paths to memory were not counted.

    Textures, atomics and bulk copies have no count of requested bytes: what crossed between L1 and L2 beyond the global
    accesses is taken as requested, but not local memory: a thread keeps there what no register held. Asynchronous
    copies are among the global loads; where their bytes were not counted, all that they moved counts as requested.
    """
    local_loads, local_stores = np.nan_to_num(local_bytes(c))
    by_loads = SECTOR_BYTES * np.fmin(c["global_load_l1_miss_sectors"], c["global_load_sectors"])
    by_loads = np.where(np.isnan(by_loads), SECTOR_BYTES * c["global_load_sectors"], by_loads)
    copied = np.nan_to_num(c["global_ldgsts_bytes_requested"])
    uncounted = np.where(has_copies_without_size(c), by_loads, 0.0)
    other_loads = np.clip(c["l2_to_l1_read_bytes"] - (by_loads - uncounted) - local_loads, 0, None)
    by_stores = SECTOR_BYTES * c["global_store_sectors"]
    other_stores = np.clip(c["l1_to_l2_write_bytes"] - by_stores - local_stores, 0, None)
    return c["global_load_bytes_requested"] + copied + other_loads, c["global_store_bytes_requested"] + other_stores


@np.errstate(all="ignore")
def arithmetic_per_cycle(c: Counts, kind: str) -> Array:
    """Floating-point instructions of all threads a cycle of ``kind`` fp32 or fp64, NaN where not all were counted."""
    letter = {"fp32": "sp", "fp64": "dp"}[kind]
    rate, counted = (
        c[form.format("add")] + c[form.format("mul")] + c[form.format("fma")]
        for form in (f"{kind}_{{}}_inst_per_cycle", f"flop_count_{letter}_{{}}")
    )
    return np.where(np.isnan(rate), counted / c["elapsed_cycles"], rate)


@once
@np.errstate(all="ignore")
def half_arithmetic(c: Counts) -> Array:
    """Instructions of all threads on pairs of half precision that are no conversions; 0 where not counted.

    Compilers move constants with such instructions too, most of all for integers: where these are more, no pair counts.
    Those of matrices that are multiplied in pairs count as work of tensor cores.
    """
    pairs = np.nan_to_num(instructions_of_type(c, "fp16") - np.nan_to_num(c["inst_unpack_half_thread"]))
    return np.where((pairs > c["inst_integer_thread"]) & ~multiplies_matrices(c), pairs, 0.0)


@np.errstate(all="ignore")
def arithmetic_operations(c: Counts) -> tuple[Array, Array]:
    """Floating-point warp instructions with all lanes active, and the same in 4-byte operands.

    Zero if the arithmetic is too little compared with the loads to be the purpose of the kernel; NaN for uncounted
    tensor work. A matrix instruction occupies its pipe longer than its issue slot: its time is that of the tensor pipe,
    and here it only shows that there is arithmetic.
    """
    cycles = c["elapsed_cycles"] / 32
    fp32 = np.fmax(arithmetic_per_cycle(c, "fp32") * cycles, c["inst_fp32_thread"] / 32) * (1 - expanded_share(c))
    # The reciprocal that a division of integers starts from is no arithmetic.
    fp32 = np.clip(fp32 - integer_divisions(c) / 32, 0, None)
    fp64 = np.fmax(arithmetic_per_cycle(c, "fp64") * cycles, c["inst_fp64_thread"] / 32)
    unpacked = multiplies_matrices(c)
    matrices = has_tensor_work(c) | unpacked
    packed = half_arithmetic(c) / 32
    count = np.nansum([np.where(unpacked, 0.0, fp32), np.where(multiplies_doubles(c), 0.0, fp64), packed], axis=0)
    enough = ~(count < OPERATIONS_PER_LOAD * np.nan_to_num(c["global_load_inst_warp"]))
    # Loads of all kinds, where they are counted with the stores.
    enough &= ~(count < OPERATIONS_PER_LOAD / 2 * np.nan_to_num(c["inst_ldst_thread"]) / 32)
    uncounted = ~unpacked & np.isnan(tensor_operations(c)) & np.isnan(c["inst_tensor_warp"])
    count = np.where(matrices, np.where(uncounted, np.nan, np.fmax(count, 1.0)), np.where(enough, count, 0.0))
    # A tensor instruction eats whole fragments: its operands set no limit that these counters could show.
    operands = np.where(has_tensor_work(c), np.inf, np.nansum([fp32, 2 * fp64, packed], axis=0))
    # On tensor cores, a fragment of matrices serves several products with each operand.
    pairs = instructions_of_type(c, "fp16") - np.nan_to_num(c["inst_unpack_half_thread"])
    doubles = np.where(multiplies_doubles(c), 2 * fp64, 0.0)
    half = np.nansum([fp32, 2 * pairs / 32, c["inst_dot_product_thread"] / 32], axis=0)
    half = half / PRODUCTS_PER_OPERAND + np.nan_to_num(doubles) / PRODUCTS_PER_DOUBLE
    operands = np.where(unpacked & ~has_tensor_work(c), half, operands)
    return count, np.where(count > 0, operands, 0.0)


@np.errstate(all="ignore")
def memory_wavefronts(c: Counts, operands: Array) -> tuple[Array, Array, Array]:
    """Useful wavefronts of loads and of stores at the L1 and shared memory pipe, without conflicts.

    Also returned are the loads that L1 served again, and of which the values could stay in registers.
    """
    shared = c.total("shared_load_inst_warp", "shared_store_inst_warp")
    # Wide accesses need several wavefronts each; loads and stores share them in proportion to their number.
    width = np.where(shared > 0, c["shared_wavefronts_ideal"] / shared, 1.0)
    width = np.where(np.isnan(width), 1.0, width)
    # Lanes that are predicated off need no part of a wavefront.
    width = width * np.nan_to_num(c["shared_predicated_on_fraction"], nan=1.0)
    sides, again = [], np.zeros(len(c.index))
    # Threads that load word by word have no tile in registers yet: of eight by eight values it leaves a quarter of the
    # operands. With one of four by four, half are left.
    in_registers = 0.5 + word_by_word(c) / 4
    # Each value that passes a barrier is stored and loaded; a shuffle is a single access.
    kept = {"load": 1 - short_steps(c)[1], "store": 1.0}
    for side, crossing in (("load", "l2_to_l1_read_bytes"), ("store", "l1_to_l2_write_bytes")):
        wide = c[f"global_{side}_bytes_requested"] / WAVEFRONT_BYTES
        plain = np.fmax(c[f"global_{side}_inst_warp"], wide)
        if side == "load":
            copied = c["global_ldgsts_bytes_requested"] / WAVEFRONT_BYTES
            plain += np.nan_to_num(np.fmax(c["global_ldgsts_inst_warp"], copied))
        shared_accesses = kept[side] * width * c[f"shared_{side}_inst_warp"]
        accesses = np.nansum([plain, shared_accesses], axis=0) * (1 - narrow_share(c))
        unknown = np.isnan(plain) & np.isnan(c[f"shared_{side}_inst_warp"])
        arrived = np.minimum(c[crossing] / WAVEFRONT_BYTES, accesses)
        repeated = np.nan_to_num(c["global_load_l1_hit_fraction"] * plain) if side == "load" else 0.0
        needed = operand_limited(accesses, operands, arrived, repeated, in_registers)
        if side == "load":
            again = np.nan_to_num(np.fmin(accesses - needed, repeated))
        # An array whose places values determine is at best in shared memory, with a column for each thread.
        needed = needed + np.nan_to_num(c[f"local_{side}_inst_warp"] * valued_share(c))
        sides.append(np.where(unknown, np.nan, needed))
    return sides[0] + lookup_wavefronts(c), sides[1], again


@np.errstate(all="ignore")
def needed_instructions(c: Counts, arithmetic: Array, accesses: Array, again: Array) -> Array:
    """Warp instructions that a version without proven waste executes, counted with all lanes active.

    Where instructions are counted by class, those that no counter proves to be avoidable are needed, but no more
    overhead than kernels without a flaw execute. ``again`` are loads of values that could stay in registers. What one
    lane does alone, all lanes of a warp can do in some steps.
    """
    executed, lanes = c["inst_executed_warp"], np.clip(c["warp_nonpred_execution_efficiency_fraction"], 0, 1)
    on = executed * np.where(np.isnan(lanes), 1.0, lanes)
    waste = np.asarray(sum(avoidable_instructions(c).values()))
    serving = 1 + np.fmin(overhead_per_instruction(c), OVERHEAD_OF_LOAD)
    waste = np.clip(waste + serving * again / on, 0, 1)
    counted = (np.asarray(sum(class_shares(c).values())) > 0) & ~multiplies_matrices(c)
    strict, loose = (payload_instructions(executed, lanes, arithmetic, accesses, k) for k in (OVERHEAD, MOST_OVERHEAD))
    loose = np.fmin(loose + values_of_integers(c), on)
    needed = np.where(counted, np.fmin(loose, on * (1 - waste)), np.where(arithmetic > 0, strict, on * (1 - waste)))
    return np.asarray(needed + (LANE_STEPS - 1) / 32 * lone_share(c) * executed, dtype=np.float64)


@np.errstate(all="ignore")
def busy_shares(c: Counts) -> dict[str, Array]:
    """Share of the elapsed time in which each unit of `UNITS` was busy, with useful work or not."""
    active = np.where(np.isnan(c["sm_efficiency_fraction"]), 1.0, c["sm_efficiency_fraction"])

    def pipe(elapsed: str, of_active: str) -> Array:
        return np.where(np.isnan(c[elapsed]), c[of_active] * active, c[elapsed])

    fma = pipe("pipe_fma_elapsed_fraction", "fu_fp32_utilization_fraction")
    alu = pipe("pipe_alu_elapsed_fraction", "fu_alu_utilization_fraction")
    return {
        "dram": c["dram_throughput_fraction"],
        # L2's own throughput counts inner activity, such as fills, that the tool's memory throughput leaves out.
        "l2": np.fmax(np.fmin(c["sol_l2_fraction"], c["sol_memory_fraction"]), c["l2_utilization_fraction"]),
        "l1": c["sol_l1_fraction"] * active,
        "fp32": fma,
        "fp64": pipe("pipe_fp64_elapsed_fraction", "fu_fp64_utilization_fraction"),
        "tensor": pipe("pipe_tensor_elapsed_fraction", "fu_tensor_utilization_fraction"),
        "xu": pipe("pipe_xu_elapsed_fraction", "fu_special_utilization_fraction"),
        "integer": np.fmax.reduce([alu, fma, c["pipe_fmaheavy_elapsed_fraction"]]),
        "issue": pipe("issue_active_elapsed_fraction", "issue_slot_utilization_fraction"),
    }


@np.errstate(all="ignore")
def _useful_memory_shares(c: Counts, used: dict[str, Array], loads: Array, stores: Array) -> dict[str, Array]:
    """Useful share of the time of the memory units: what was asked for over what was moved, times the busy share."""
    wanted_loads, wanted_stores = requested_bytes(c)
    read, written = c["dram_read_bytes"], c["dram_write_bytes"]
    moved = read + written
    asked_loads = useful_bytes(read, wanted_loads)
    # Only another order of the data would bring values closer together that a gather finds at unrelated places.
    asked_loads = asked_loads + gathered_from_dram(c) * (read - asked_loads)
    asked_loads = np.minimum(asked_loads, read * (1 - read_again(c)))
    asked_stores = useful_bytes(written, wanted_stores)
    asked = asked_loads + asked_stores + unrelated_stores(c) * (written - asked_stores)
    excess = c["global_theoretical_sectors_ideal"] / c["global_theoretical_sectors"]
    local = np.clip(np.nan_to_num(sum(local_bytes(c)) / SECTOR_BYTES / c["l2_tex_sectors"]), 0, 1)
    wavefronts = (loads + stores) / c["sm_elapsed_cycles_sum"]
    wanted = c["l2_utilization_fraction"] * np.where(np.isnan(excess), 1.0, np.clip(excess, 0, 1)) * (1 - local)
    # Values at unrelated places of L2 take a sector each, unless the order of a list is free; each is a request.
    reads = np.clip(np.nan_to_num(c["l2_tex_read_sectors"] / c["l2_tex_sectors"]), 0, 1)
    hits = np.clip(np.nan_to_num(c["l2_read_hit_fraction"]), 0, 1)
    unrelated = reads * hits * np.fmin(unrelated_places(c), unused_of_l2_loads(c)) * ~has_listed_places(c)
    # What a thread loads again could have stayed on chip.
    kept = 1 - reads * evicted_of_misses(c)
    unused = np.nan_to_num(1 - c["global_store_bytes_requested"] / (SECTOR_BYTES * c["global_store_sectors"]))
    unrelated = unrelated + (1 - reads) * unrelated_stores(c) * np.clip(unused, 0, 1)
    return {
        "dram": used["dram"] * np.where(moved > 0, asked / moved, 1.0),
        # Sectors are what threads ask L2 for; its other parts, busy with tags, fills or replies, follow from them.
        "l2": kept
        * np.fmax(wanted + used["l2"] * unrelated, used["l2"] * _atomic_requests(c) * (used["l2"] > SATURATED)),
        "l1": wavefronts * (1 - lone_share(c) * (1 - LANE_STEPS / 32)),
    }


@np.errstate(all="ignore")
def _atomic_requests(c: Counts) -> Array:
    """Share of the requests to L2 that are atomics, at least. Those to one address wait, and leave L2 idle."""
    plain = c["global_load_sectors"] * (1 - np.nan_to_num(c["global_load_l1_hit_fraction"])) + c["global_store_sectors"]
    atomics = np.nan_to_num(c["global_atomic_requests"]) + np.nan_to_num(c["global_reduction_requests"])
    return np.where(atomics > 0, np.clip(np.nan_to_num(1 - plain / c["l2_tex_requests"]), 0, 1), 0.0)


@once
@np.errstate(all="ignore")
def has_uncounted_arithmetic(c: Counts) -> NDArray[np.bool_]:
    """Return which launches lack counters of arithmetic or loads, so that overhead cannot be separated."""
    cycles = c["elapsed_cycles"]
    threads = [np.fmax(arithmetic_per_cycle(c, kind) * cycles, c[f"inst_{kind}_thread"]) for kind in ("fp32", "fp64")]
    return c.lacks("global_load_inst_warp") | np.isnan(threads[0] + threads[1] + arithmetic_operations(c)[0])


@np.errstate(all="ignore")
def _may_be_local(c: Counts) -> NDArray[np.bool_]:
    """Whether bytes that are taken as requested may belong to local memory, which was not counted."""
    loads, stores = requested_bytes(c)
    plain = c["global_load_bytes_requested"], c["global_store_bytes_requested"]
    more = useful_bytes(c["dram_read_bytes"], loads) > useful_bytes(c["dram_read_bytes"], plain[0])
    more |= useful_bytes(c["dram_write_bytes"], stores) > useful_bytes(c["dram_write_bytes"], plain[1])
    return np.asarray(more & c.lacks("local_load_sectors", "local_store_sectors"), dtype=np.bool_)


def all_counted_useful(counters: pd.DataFrame | Counts, figures: pd.DataFrame) -> pd.DataFrame:
    """Tell of which units of `UNITS` the useful work is not known, and all that kept them busy is taken as useful.

    One row per launch, one column per unit.
    """
    c, unknown = Counts.of(counters), figures.isna()
    uncounted = has_uncounted_arithmetic(c)
    shared = c.lacks("shared_load_inst_warp", "shared_store_inst_warp")
    has_shared = ~(c.total("shared_load_inst_warp", "shared_store_inst_warp") == 0)
    payload = (
        uncounted
        | c.lacks("global_load_inst_warp", "global_load_bytes_requested", "l2_to_l1_read_bytes")
        | c.lacks("global_store_inst_warp", "global_store_bytes_requested", "l1_to_l2_write_bytes")
        | (shared | has_shared & c.lacks("shared_wavefronts_ideal"))
    )
    unread = c.lacks("warp_nonpred_execution_efficiency_fraction")
    return pd.DataFrame(
        {
            "dram": np.isnan(sum(requested_bytes(c))) | c.lacks("dram_read_bytes", "dram_write_bytes"),
            "l2": c.lacks("l2_utilization_fraction", "global_theoretical_sectors_ideal", "global_theoretical_sectors")
            | c.lacks("l2_tex_requests", "l2_tex_read_sectors", "l2_tex_sectors", "l2_read_hit_fraction"),
            "l1": payload | c.lacks("sm_elapsed_cycles_sum"),
            **{
                kind: np.isnan(arithmetic_per_cycle(c, kind)) | unknown[f"{kind}_lanes_per_sm"] | unknown["sms"]
                for kind in ("fp32", "fp64")
            },
            "tensor": has_tensor_work(c) & np.isnan(tensor_time(c, figures)[0]),
            "xu": uncounted | unread | c.lacks("elapsed_cycles") | unknown["sms"],
            "integer": uncounted | unread,
            "issue": payload
            | unread
            | c.lacks("inst_executed_warp", "elapsed_cycles")
            | unknown["schedulers_per_sm"]
            | unknown["sms"],
        },
        c.index,
    )


def may_need_less(counters: pd.DataFrame | Counts, figures: pd.DataFrame) -> pd.DataFrame:
    """Return for which units of `UNITS` the result of `useful_times` is only an upper limit.

    One row per launch, one column per unit. False: all counts and figures of the unit are known. True: all its work
    counts as useful, its operations as dense, or bytes of local memory as requested.
    """
    c = Counts.of(counters)
    whole = all_counted_useful(c, figures)
    return whole.assign(
        dram=whole["dram"] | _may_be_local(c),
        l1=whole["l1"] | c.lacks("global_load_l1_hit_fraction"),
        tensor=whole["tensor"] | has_tensor_work(c) & tensor_time(c, figures)[1],
    )


@np.errstate(all="ignore")
def useful_times(counters: pd.DataFrame | Counts, figures: pd.DataFrame) -> pd.DataFrame:
    """Return one row per launch and one column per unit of `UNITS`: ns of useful work at peak rate, NaN where unknown.

    ``counters`` has one column per counter, ``figures`` the peak rates of `profsvc.analysis.potential.peaks`.
    """
    c = Counts.of(counters)
    f = {name: figures[name].to_numpy(dtype="float64") for name in figures}
    T, used = c["duration_ns"], busy_shares(c)
    lanes = np.clip(c["warp_nonpred_execution_efficiency_fraction"], 0, 1)
    on = np.where(np.isnan(lanes), 1.0, lanes)
    count, operands = arithmetic_operations(c)
    loads, stores, again = memory_wavefronts(c, operands)
    cycles = f["sms"] * c["elapsed_cycles"]
    share = _useful_memory_shares(c, used, loads, stores)
    wanted = {"fp32": (1 - expanded_share(c)) * ~multiplies_matrices(c), "fp64": 1 - double_by_accident(c)}
    for kind in ("fp32", "fp64"):
        share[kind] = arithmetic_per_cycle(c, kind) * wanted[kind] / (f[f"{kind}_lanes_per_sm"] * f["sms"])
    # Doubles of matrices need the time of the tensor pipe.
    faster = f["fp64_lanes_per_sm"] * f["sms"] * 2 * f["sm_clock_hz"] / f["tensor_fp64_peak_op_per_s"]
    share["fp64"] = share["fp64"] * np.where(multiplies_doubles(c), np.fmin(faster, 1.0), 1.0)
    # Pairs of half precision occupy the same pipe, for as long as it was busy with them.
    packed, others = half_arithmetic(c), c.total("inst_fp32_thread", "inst_integer_thread")
    share["fp32"] = np.fmax(share["fp32"], used["fp32"] * np.nan_to_num(packed / (packed + np.nan_to_num(others))))
    multiplied = tensor_time(c, figures)[0] / (T * 1e-9)
    idle = 0.0 * np.where(np.isnan(multiplied), used["tensor"], 0.0)
    share["tensor"] = np.where(has_tensor_work(c), multiplied, idle)
    # A special result that no arithmetic consumes is overhead, such as a division of indices.
    executed = used["xu"] * f["sfu_per_sm"] / 32 * cycles
    consumed = np.where(executed > 0, np.minimum(1.0, count / executed), 1.0)
    # The fast form of a function is one such instruction: what rounded the argument of the accurate one stands for it.
    on_unit = c["inst_bit_convert_thread"] - c["inst_i2fp_thread"]
    spared = np.fmin(needless_conversions(c), on_unit) - added_special_functions(c)
    # A fast division does without the check of its operands, which takes as long as the reciprocal.
    converted = np.nan_to_num((np.clip(spared, 0, None) + spared_checks(c)) / 32 / executed)
    # Predicates may have been off in other instructions alone, lanes without a thread were off in all.
    active = np.clip(np.nan_to_num(c["warp_execution_efficiency_fraction"], nan=1.0), 0, 1)
    wanted_results = np.fmin(consumed, np.clip(1 - converted, 0, 1)) * active
    share["xu"] = used["xu"] * np.where(count > 0, wanted_results, on)
    # Without arithmetic addresses may be the payload, but not the divisions that they are computed with.
    divided = divided_share(c)
    share["xu"] = np.where((count == 0) & (divided > 0), 0.0, share["xu"])
    wanted_integers = (1 - divided) * (1 - proven_overhead_share(c)) * (1 - address_share(c))
    share["integer"] = np.where(count > 0, 0.0, used["integer"] * on * wanted_integers)
    needed = needed_instructions(c, count, loads + stores, again)
    share["issue"] = needed / (f["schedulers_per_sm"] * cycles)
    # Lanes that were off carry no payload, whatever else is known of the instructions.
    whole, lit = all_counted_useful(c, figures), {"integer": on, "issue": on}
    for u in UNITS:
        share[u] = np.where(whole[u], used[u] * lit.get(u, 1.0), share[u])
    return pd.DataFrame({u: np.minimum(share[u] * T, T) for u in UNITS}, c.index)
