"""What of the counted work a better version of the same algorithm does not do, although its results are used.

Conversions, expanded functions, double precision that no value needs, products of matrices on the wrong pipe, and
operands that are loaded again. What only another algorithm could avoid stays: sectors of accesses to unrelated places.
"""

import numpy as np
from numpy.typing import NDArray

from profsvc.analysis.counters.arrays import Counts
from profsvc.analysis.potential.tensor_work import has_tensor_work
from profsvc.formulas.performance.avoidable_work import excess_conversions, expanded_arithmetic, single_sector_share

Array = NDArray[np.float64]
SECTOR_BYTES = 32
SECTORS_PER_LINE = 4
# A division of integers is 18 instructions or more, of which three, two conversions and a reciprocal, are on the
# special function unit, which takes a warp in two cycles.
DIVISION_LENGTH = 6.0
XU_WARPS_PER_CYCLE = 0.5
# A kernel that multiplies half precision in single precision unpacks operands, and does little else but multiply-adds.
MIN_UNPACKED_SHARE, MIN_FMA_SHARE = 0.1, 0.5


def needless_conversions(c: Counts) -> Array:
    """Conversions of all threads that no value in memory asks for; 0 where not counted."""
    moved = c.total("global_load_bytes_requested", "global_store_bytes_requested", "global_ldgsts_bytes_requested")
    return excess_conversions(c["inst_bit_convert_thread"], moved)


@np.errstate(all="ignore")
def double_by_accident(c: Counts) -> Array:
    """Share of the FP64 instructions whose operands and results are single precision, converted at each use."""
    return np.clip(np.nan_to_num(needless_conversions(c) / c["inst_fp64_thread"], posinf=0.0), 0, 1)


@np.errstate(all="ignore")
def expanded_share(c: Counts) -> Array:
    """Share of the FP32 instructions that are expansions of accurate library functions."""
    functions = np.where(c["inst_fp64_thread"] > 0, 0.0, needless_conversions(c))
    return np.nan_to_num(expanded_arithmetic(c["inst_fp32_thread"], functions) / c["inst_fp32_thread"])


@np.errstate(all="ignore")
def divided_share(c: Counts) -> Array:
    """Share of the instructions of kernels without arithmetic that belong to divisions of integers."""
    special = np.where(
        np.isnan(c["inst_pipe_xu_warp"]),
        c["pipe_xu_elapsed_fraction"] * XU_WARPS_PER_CYCLE * c["sm_elapsed_cycles_sum"],
        c["inst_pipe_xu_warp"],
    )
    operations = [c[f"{kind}_{what}_inst_per_cycle"] for kind in ("fp32", "fp64") for what in ("add", "mul", "fma")]
    arithmetic = np.fmax(np.nansum(operations, axis=0) * c["elapsed_cycles"], c["inst_fp32_thread"]) / 32
    divisions = np.clip(np.nan_to_num(special) - np.nan_to_num(arithmetic), 0, None)
    share: Array = np.clip(np.nan_to_num(DIVISION_LENGTH * divisions / c["inst_executed_warp"]), 0, 1)
    return share


@np.errstate(all="ignore")
def repeated_share(c: Counts) -> Array:
    """Share of the loaded bytes that were loaded before: what DRAM did not have to bring."""
    return np.clip(np.nan_to_num(1 - c["dram_read_bytes"] / c["global_load_bytes_requested"]), 0, 1)


@np.errstate(all="ignore")
def multiplies_half_matrices(c: Counts) -> NDArray[np.bool_]:
    """Whether operands of half precision are unpacked for multiply-adds of single precision."""
    fma = np.fmax(c["flop_count_sp_fma"], c["fp32_fma_inst_per_cycle"] * c["elapsed_cycles"])
    executed = np.fmax(c["thread_inst_executed_pred_on"], c["thread_inst_executed"])
    unpacked = c["inst_fp16_thread"] > MIN_UNPACKED_SHARE * executed
    return np.asarray(unpacked & (fma > MIN_FMA_SHARE * c["inst_fp32_thread"]) & ~has_tensor_work(c), dtype=np.bool_)


@np.errstate(all="ignore")
def unrelated_places(c: Counts) -> Array:
    """Share of the sectors of loads that hold one value that is wanted, and none that other lanes want.

    L1 asks L2 for them one at a time. If DRAM brought just the bytes that were requested, each once, then the sectors
    that L2 sent again hold values that belong together, as the columns of a matrix do.
    """
    stored = np.nan_to_num(c["global_store_sectors"])
    rows = np.fmin(stored, np.nan_to_num(c["global_store_bytes_requested"]) / SECTOR_BYTES)
    # Stores of whole rows fill their lines; what others scatter looks like what the loads gather.
    requests = np.clip(c["l2_tex_requests"] - rows / SECTORS_PER_LINE, 0, None)
    sectors = c["l2_tex_read_sectors"] + stored - rows
    # Whole rows among the loads, four sectors for each request, are read once; the rest of the bytes is of the others.
    whole = SECTOR_BYTES * c["l2_tex_read_sectors"] * np.clip(4 / 3 * (1 - requests / sectors), 0, 1)
    asked, brought = (np.clip(c[name] - whole, 0, None) for name in ("global_load_bytes_requested", "dram_read_bytes"))
    used_once = np.nan_to_num(np.fmin(asked, brought) / np.fmax(asked, brought))
    return single_sector_share(sectors, requests) * (1 - used_once)


@np.errstate(all="ignore")
def unused_of_l2_loads(c: Counts) -> Array:
    """Share of the bytes that L2 sent to L1 which neither a load requested nor local memory holds."""
    sent = SECTOR_BYTES * c["l2_tex_read_sectors"] - np.nan_to_num(local_bytes(c)[0])
    return np.clip(np.nan_to_num(1 - c["global_load_bytes_requested"] / sent), 0, 1)


@np.errstate(all="ignore")
def local_bytes(c: Counts) -> tuple[Array, Array]:
    """Bytes of local memory that loads brought from L2 and that stores may have sent there; NaN where not counted."""
    missed = 1 - np.clip(np.nan_to_num(c["local_load_l1_hit_fraction"]), 0, 1)
    return SECTOR_BYTES * c["local_load_sectors"] * missed, SECTOR_BYTES * c["local_store_sectors"]
