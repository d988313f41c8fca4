"""Products of matrices of half precision, doubles or bytes that other pipes multiply in place of the tensor pipe."""

import numpy as np
from numpy.typing import NDArray

from profsvc.analysis.counters.arrays import Counts, once
from profsvc.analysis.potential.tensor_work import has_tensor_work

Array = NDArray[np.float64]
# A kernel that multiplies half precision in single precision unpacks operands, and does little else but multiply-adds.
MIN_UNPACKED_SHARE, MIN_FMA_SHARE = 0.1, 0.5
# Rows that are normalized have three multiply-adds for each value that is loaded; products of matrices have many.
MOST_PRODUCTS_OF_ROWS = 4.0
# One that unpacks into tiles multiplies most of the time, and each value often.
HALF_BYTES = 2.0
# A load brings at most so many words. A vector has one product for each of them, matrices have more.
WORD_BYTES, WORDS_PER_LOAD = 4.0, 4.0
MIN_TILE_FMA_SHARE, MIN_TILE_FMA_OF_ALL, MIN_PRODUCTS_PER_VALUE = 0.9, 0.4, 8.0
DOUBLES_PER_LOAD = 2.0


@np.errstate(all="ignore")
def instructions_of_type(c: Counts, kind: str) -> Array:
    """Thread instructions of ``kind`` fp16, fp32 or fp64; where not counted by class, its adds, products and FMAs."""
    letter = {"fp16": "hp", "fp32": "sp", "fp64": "dp"}[kind]
    parts = c.total(*(f"flop_count_{letter}_{operation}" for operation in ("add", "mul", "fma")))
    return np.where(np.isnan(c[f"inst_{kind}_thread"]), parts, c[f"inst_{kind}_thread"])


@once
@np.errstate(all="ignore")
def repeated_share(c: Counts) -> Array:
    """Share of the loaded bytes that were loaded before: what DRAM did not have to bring."""
    return np.clip(np.nan_to_num(1 - c["dram_read_bytes"] / c["global_load_bytes_requested"]), 0, 1)


@once
@np.errstate(all="ignore")
def multiplies_matrices(c: Counts) -> NDArray[np.bool_]:
    """Whether operands of half precision are unpacked for multiply-adds of single precision, or multiplied in pairs.

    Bytes are multiplied four at a time. Operands are of matrices if they come from shared memory, or were loaded
    before; few loads are of values that stay in registers.
    """
    fma = _multiply_adds(c)
    executed = np.fmax(c["thread_inst_executed_pred_on"], c["thread_inst_executed"])
    # Values of bfloat16 are unpacked by integer instructions.
    half = np.nansum([instructions_of_type(c, "fp16"), c["inst_unpack_bfloat16_thread"]], axis=0)
    staged, loaded = (
        32 * np.nan_to_num(c[f"{space}_load_inst_warp"]) > MIN_UNPACKED_SHARE * half for space in ("shared", "global")
    )
    reused = staged | loaded & (repeated_share(c) > MIN_FMA_SHARE)
    pairs = c["flop_count_hp_fma"] > MIN_FMA_SHARE * half
    unpacked = fma > MIN_FMA_SHARE * instructions_of_type(c, "fp32")
    packed = (half > MIN_UNPACKED_SHARE * executed) & (pairs | unpacked) & reused & ~_uses_values_a_few_times(c, fma)
    tiles = _multiplies_tiles_of_half(c, fma, executed) | _multiplies_tiles_of_bytes(c, executed)
    return np.asarray((packed | tiles) & ~has_tensor_work(c) | multiplies_doubles(c), dtype=np.bool_)


@once
@np.errstate(all="ignore")
def multiplies_single_precision(c: Counts) -> NDArray[np.bool_]:
    """Whether tiles of single precision are multiplied and added, each value often, as in products of matrices.

    Sums over all pairs of bodies and filters of pictures have the same counts.
    """
    fma = _multiply_adds(c)
    executed = np.fmax(c["thread_inst_executed_pred_on"], c["thread_inst_executed"])
    most = (fma > MIN_TILE_FMA_SHARE * instructions_of_type(c, "fp32")) & (fma > MIN_TILE_FMA_OF_ALL * executed)
    often = fma > MIN_PRODUCTS_PER_VALUE * c["global_load_bytes_requested"] / WORD_BYTES
    of_tiles = most & often & _are_of_tiles(c, fma)
    return np.asarray(of_tiles & ~has_tensor_work(c) & ~multiplies_matrices(c), dtype=np.bool_)


@np.errstate(all="ignore")
def _uses_values_a_few_times(c: Counts, fma: Array) -> NDArray[np.bool_]:
    """Whether there are no more products than rows have for each value of half precision that global loads bring.

    Values of a row that L2 still holds come without DRAM, too. Copies whose size was not counted bring more.
    """
    products = np.nansum([fma, 2 * c["flop_count_hp_fma"]], axis=0)
    values = np.nansum([c["global_load_bytes_requested"], c["global_ldgsts_bytes_requested"]], axis=0) / HALF_BYTES
    uncounted = np.isnan(c["global_ldgsts_bytes_requested"]) & (c["global_ldgsts_inst_warp"] > 0)
    return np.asarray((products < MOST_PRODUCTS_OF_ROWS * values) & ~uncounted, dtype=np.bool_)


@once
@np.errstate(all="ignore")
def multiplies_doubles(c: Counts) -> NDArray[np.bool_]:
    """Whether tiles of doubles are multiplied on the pipe of double precision of a chip whose tensor pipe takes them.

    It takes them where the operations are counted, and are none. A load of shared memory brings two doubles: more
    multiply-adds than that for each are of matrices.
    """
    doubles, executed = (
        instructions_of_type(c, "fp64"),
        np.fmax(c["thread_inst_executed_pred_on"], c["thread_inst_executed"]),
    )
    fma = np.fmax(c["flop_count_dp_fma"], c["fp64_fma_inst_per_cycle"] * c["elapsed_cycles"])
    products = (fma > MIN_TILE_FMA_SHARE * doubles) & (fma > MIN_TILE_FMA_OF_ALL * executed)
    loads = 32 * np.nan_to_num(c["shared_load_inst_warp"])
    tiles = (loads > 0) & (fma > DOUBLES_PER_LOAD * loads)
    return np.asarray(products & tiles & (c["tensor_ops_fp64"] == 0) & ~has_tensor_work(c), dtype=np.bool_)


@np.errstate(all="ignore")
def _multiply_adds(c: Counts) -> Array:
    """Instructions of single precision that multiply and add; of tiles also where a product and its sum are two."""
    fma, add, multiply = (
        np.fmax(c[f"flop_count_sp_{name}"], c[f"fp32_{name}_inst_per_cycle"] * c["elapsed_cycles"])
        for name in ("fma", "add", "mul")
    )
    apart = np.nan_to_num(np.fmin(add, multiply))
    return np.asarray(fma + np.where(_are_of_tiles(c, fma + apart), 2 * apart, 0.0), dtype=np.float64)


@np.errstate(all="ignore")
def _are_of_tiles(c: Counts, products: Array) -> NDArray[np.bool_]:
    """Whether products of all threads are of tiles in shared memory, more of them for each load than it has words."""
    loads = 32 * np.nan_to_num(c["shared_load_inst_warp"])
    words = np.where(np.isnan(c["shared_load_words_thread"]), WORDS_PER_LOAD * loads, c["shared_load_words_thread"])
    return np.asarray((loads > 0) & (products > words), dtype=np.bool_)


@np.errstate(all="ignore")
def _multiplies_tiles_of_bytes(c: Counts, executed: Array) -> NDArray[np.bool_]:
    """Whether many instructions are products of four bytes (IDP) of tiles that serve again and again."""
    products = c["inst_dot_product_thread"]
    words = c["global_load_bytes_requested"] / WORD_BYTES
    most = (products > MIN_TILE_FMA_OF_ALL * executed) & (products > MIN_PRODUCTS_PER_VALUE * words)
    return np.asarray(most & _are_of_tiles(c, products), dtype=np.bool_)


def _multiplies_tiles_of_half(c: Counts, fma: Array, executed: Array) -> NDArray[np.bool_]:
    """Whether what was loaded in half precision is unpacked once, for multiply-adds that use it again and again.

    Unpacking is rare then, as each value stays in a tile; there is little else but multiply-adds. Of the values of 16
    bits those that are converted from integers are none of half precision, and tensor cores have no such type.
    """
    values = c["global_load_bytes_requested"] / HALF_BYTES
    halves = np.nansum([c["inst_unpack_half_thread"], c["inst_unpack_bfloat16_thread"]], axis=0)
    integers = np.nansum([c["inst_i2f_thread"], c["inst_i2fp_thread"]], axis=0)
    halves = np.fmax(halves, np.nan_to_num(32 * c["memory_inst_16bit_warp"])) - integers
    products = (fma > MIN_TILE_FMA_SHARE * instructions_of_type(c, "fp32")) & (fma > MIN_TILE_FMA_OF_ALL * executed)
    staged = np.nan_to_num(c["shared_load_inst_warp"]) > 0
    return np.asarray(
        products & staged & (halves > MIN_FMA_SHARE * values) & (fma > MIN_PRODUCTS_PER_VALUE * halves), dtype=np.bool_
    )
