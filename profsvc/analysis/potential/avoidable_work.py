"""What of the counted work a better version of the same algorithm does not do, although its results are used.

Conversions, expanded functions, double precision that no value needs, overhead and needless barriers. What accesses
of memory waste is in `profsvc.analysis.potential.access_patterns`.
"""

import numpy as np
from numpy.typing import NDArray

from profsvc.analysis.counters.arrays import Counts, counted_share, once
from profsvc.analysis.potential.access_patterns import narrow_share
from profsvc.analysis.potential.local_arrays import PLACE_LENGTH, unrolled_instructions, valued_share
from profsvc.analysis.potential.special_functions import (
    FUNCTION_LENGTH,
    conversions,
    double_by_accident,
    expanded_share,
    integer_divisions,
    needless_conversions,
    special_functions,
    special_unit_warps,
    unpacked_halves,
)

Array = NDArray[np.float64]
# A division of integers is 18 instructions or more for three on the special function unit.
DIVISION_LENGTH = 6.0
# One of 64 bits is a subroutine of about 70 instructions, of which nine multiply for an upper half; a product with a
# prepared reciprocal takes a third of them. Where the divisor stays the compiler prepares the reciprocal: a product, a
# remainder and two corrections are left, of which a comparison with the divisor and a difference spare three.
LONG_DIVISION_LENGTH, HIGH_PRODUCTS_PER_LONG_DIVISION = 46.0, 9.0
PREPARED_DIVISION_LENGTH, HIGH_PRODUCTS_PER_DIVISION, COMPARISONS_PER_DIVISION = 3.0, 2.0, 2.0
# An accurate division or root of single precision: a special function, a check, and steps of Newton's method, with
# three instructions of control around its slow path.
ROOT_LENGTH, ROOT_CONTROL = 9.0, 3.0
FAST_DIVISION_LENGTH = 2.0
# Moves, selects and branches of an accurate sine for each instruction of its arithmetic.
FUNCTION_OTHERS = 0.5
# Steps between barriers that are shorter than this are too short: what passes from one to the next, at most so many
# accesses of shared memory for each barrier, could stay in registers or pass by shuffles. The barriers after a tile was
# filled and before it is filled again are needed.
SHORT_STEP, MOST_EXCHANGED, NEEDED_BARRIERS = 16.0, 4.0, 2.0
# An address has at most eight indices, each with a bound and a product of 64 bits; a turn of a loop is a branch with a
# counter, a comparison and a copy.
ADDRESS_LENGTH, TURN_LENGTH = 64.0, 4.0
# Addresses, loops and branches of a well-tuned kernel for each useful instruction: the median of the fastest versions
# of fixtures/held_out, fixtures/mended and of kernels that do nothing but arithmetic.
OVERHEAD = 0.2
# A sum or a prefix of the values of 32 lanes takes five steps.
LANE_STEPS = 5.0
POSSIBLE = 0.5
"""Part that counts of work of which no counter tells whether a better version of the kernel needs it."""


@once
@np.errstate(all="ignore")
def divided_share(c: Counts) -> Array:
    """Share of the instructions that belong to divisions of integers.

    Where instructions are not counted by class, the unit of special functions counts those of kernels without
    arithmetic.
    """
    operations = [c[f"{kind}_{what}_inst_per_cycle"] for kind in ("fp32", "fp64") for what in ("add", "mul", "fma")]
    arithmetic = np.fmax(np.nansum(operations, axis=0) * c["elapsed_cycles"], c["inst_fp32_thread"]) / 32
    divisions = np.clip(np.nan_to_num(special_unit_warps(c)) - np.nan_to_num(arithmetic), 0, None)
    share: Array = np.clip(np.nan_to_num(DIVISION_LENGTH * divisions / c["inst_executed_warp"]), 0, 1)
    every = all_instructions(c)
    whole, long, prepared = integer_divisions(c), *_long_and_prepared_divisions(c)
    spared = 3 * DIVISION_LENGTH * (whole - long) + LONG_DIVISION_LENGTH * long + PREPARED_DIVISION_LENGTH * prepared
    return np.where(every > 0, counted_share(spared, every), share)


@np.errstate(all="ignore")
def _long_and_prepared_divisions(c: Counts) -> tuple[Array, Array]:
    """Divisions of 64 bits of all threads, and those with a prepared reciprocal; 0 where opcodes were not counted."""
    whole = integer_divisions(c)
    long = np.fmin(whole, np.nan_to_num(c["inst_f2i_long_thread"]))
    high = c["inst_multiply_high_thread"] - HIGH_PRODUCTS_PER_DIVISION * (whole - long)
    high = high - HIGH_PRODUCTS_PER_LONG_DIVISION * long
    compared = c["inst_compare_unsigned_thread"] / COMPARISONS_PER_DIVISION - whole
    return long, np.clip(np.nan_to_num(np.fmin(high, compared)), 0, None)


def proven_overhead_share(c: Counts) -> Array:
    """Share of the instructions that machine code proves to be overhead; 0 where not counted.

    Those that move one bit at a time, beyond those that words take, and those for indices: upper halves of them, or
    what is beyond the address of each access.
    """
    indices = np.clip(np.nan_to_num(c["inst_index_thread"] - PLACE_LENGTH * c["inst_ldst_thread"]), 0, None)
    indices = np.fmax(indices, np.nan_to_num(c["inst_index_upper_thread"]))
    return counted_share(np.nan_to_num(c["inst_bit_by_bit_thread"]) + indices, all_instructions(c))


def register_array_share(c: Counts) -> Array:
    """Share of the instructions that look for the place of an array among registers; 0 where not counted.

    The reduction of an angle has such an array of its own.
    """
    found = np.nan_to_num(c["inst_register_array_thread"]) - np.nan_to_num(c["inst_angle_reduction_thread"])
    return counted_share(np.clip(found, 0, None), all_instructions(c))


THREAD_CLASSES = (
    "fp32", "fp64", "fp16", "integer", "bit_convert", "bit", "control", "ldst", "misc", "interthread", "uniform",
)  # fmt: skip


OVERHEAD_CLASSES = ("integer", "control", "bit", "uniform")


@once
def instructions_by_class(c: Counts) -> Array:
    """Instructions of all threads, a row for each of `THREAD_CLASSES`; 0 where not counted."""
    counts: Array = np.fmax(np.array([c[f"inst_{name}_thread"] for name in THREAD_CLASSES]), 0.0)
    return counts


@once
def all_instructions(c: Counts) -> Array:
    """Instructions of all threads of all classes; 0 where none was counted."""
    # Row after row: `np.sum` adds up in another order where there is one launch, and a launch has one result.
    return np.asarray(sum(instructions_by_class(c)))


@once
def _shares_by_class(c: Counts) -> Array:
    return counted_share(instructions_by_class(c), all_instructions(c))


def class_shares(c: Counts) -> dict[str, Array]:
    """Share of the instructions of all threads that each class of `THREAD_CLASSES` has; 0 where none was counted."""
    return dict(zip(THREAD_CLASSES, _shares_by_class(c), strict=True))


def overhead_per_instruction(c: Counts) -> Array:
    """Addresses, loops and moves that serve each other instruction; 0 where not counted by class."""
    of = class_shares(c)
    overhead = np.asarray(sum(of[name] for name in OVERHEAD_CLASSES))
    with np.errstate(all="ignore"):
        return np.asarray(np.nan_to_num(overhead / (1 - overhead), posinf=0.0), dtype=np.float64)


@np.errstate(all="ignore")
def values_of_integers(c: Counts) -> Array:
    """Integer, bit and branch instructions of full warps beyond those that addresses and loops can be, at least.

    Each access has one address, and each turn of a loop a branch. What is beyond their instructions computes values,
    as a counter of events or a generator of random numbers does: little arithmetic beside it is not the only payload.
    """
    computed = c.total(*(f"inst_{name}_thread" for name in OVERHEAD_CLASSES))
    most = ADDRESS_LENGTH * c["inst_ldst_thread"] + TURN_LENGTH * c["inst_control_thread"]
    return np.clip(np.nan_to_num(computed - most), 0, None) / 32


@np.errstate(all="ignore")
def _accurate_roots(c: Counts, of: dict[str, Array]) -> Array:
    """Accurate divisions and roots of single precision, as a share of the instructions, at most.

    Each has a slow path, and an instruction before it sets where the lanes of a warp meet again (BSSY).
    """
    every = all_instructions(c)
    special = counted_share(special_functions(c) - integer_divisions(c), every)
    # The arithmetic of other functions is not theirs.
    arithmetic = np.clip(of["fp32"] * (1 - expanded_share(c)) - special, 0, None)
    met = np.where(
        np.isnan(c["inst_bssy_thread"]), of["control"] / ROOT_CONTROL, counted_share(c["inst_bssy_thread"], every)
    )
    parts = (special, met, arithmetic / (ROOT_LENGTH - 1))
    return np.asarray(np.fmin.reduce(parts), dtype=np.float64)


@np.errstate(all="ignore")
def avoidable_instructions(c: Counts) -> dict[str, Array]:
    """Share of the instructions of active lanes that a cheaper form of the same computation spares, by cause."""
    of, expanded = class_shares(c), expanded_share(c)
    divided = divided_share(c)
    every = all_instructions(c)
    serving = 1 + overhead_per_instruction(c)
    doubled = np.where(of["fp64"] > 0, of["bit_convert"], 0.0) * serving
    # The same function of single precision is shorter.
    longer = np.clip(of["fp64"] - FUNCTION_LENGTH * counted_share(c["inst_round_double_thread"], every), 0, None)
    longer = np.where(np.isnan(c["inst_round_double_thread"]), 0.0, longer)
    # Reduction of the argument, selects and branches of a function belong to it as its polynomial does.
    functions = expanded * np.where(of["fp32"] > 0, of["fp32"] + of["bit_convert"] + of["bit"], 0.0)
    others = counted_share(of["integer"] + of["control"], of["fp32"])
    by_opcode = ~np.isnan(c["inst_mufu_thread"])
    functions = functions * (1 + np.where(by_opcode, np.fmin(others, FUNCTION_OTHERS), others))
    # Whether the accuracy of a single reciprocal or root is needed, no counter tells. A division that checks its
    # operands differs in the last bits from the fast one, which is a reciprocal and a product.
    exact, length = _accurate_roots(c, of), ROOT_LENGTH + ROOT_CONTROL
    divisions = np.fmin(exact, counted_share(c["inst_divide_check_thread"], every))
    roots = (length - FAST_DIVISION_LENGTH) * divisions + POSSIBLE * length * (exact - divisions)
    functions = np.fmin(np.where(by_opcode, functions + roots, np.fmax(functions, roots)), 1 - divided)
    # Conversions beyond one for each value in memory, in kernels where no function nor double precision needs them.
    again = counted_share(needless_conversions(c), conversions(c))
    # The loop and the addresses around a conversion stay when it goes.
    converted = (
        (of["bit_convert"] + counted_share(unpacked_halves(c), every)) * again * (1 - expanded) * (of["fp64"] == 0)
    )
    # Values that no register held; an index that is not known takes as many addresses as others do.
    kept = c.total("local_load_inst_warp", "local_store_inst_warp") / c["inst_executed_warp"]
    spilled = np.nan_to_num(c["register_spill_inst_warp"]) > 0
    # In place of an array at places that values determine, shared memory takes as many accesses.
    arrays = counted_share(kept * serving, np.ones(len(kept))) * (1 - valued_share(c))
    arrays = np.fmax(arrays, counted_share(unrolled_instructions(c, OVERHEAD), every))
    arrays = np.fmax(arrays, register_array_share(c))
    barriers, exchanged = short_steps(c)
    shares = {
        "register_spills": np.where(spilled, counted_share(kept, np.ones(len(kept))), 0.0),
        "local_memory": np.where(spilled, 0.0, arrays),
        "integer_division": divided,
        "overhead_instructions": proven_overhead_share(c),
        "expensive_functions": functions + counted_share(np.nan_to_num(c["inst_angle_reduction_thread"]), every),
        "accidental_double": (doubled + longer) * double_by_accident(c),
        "type_conversions": converted,
        "narrow_accesses": of["ldst"] * narrow_share(c) * serving,
        "barriers": (barriers + exchanged * c["shared_load_inst_warp"]) / c["inst_executed_warp"] * serving,
    }
    return {name: np.clip(np.nan_to_num(share), 0, 1) for name, share in shares.items()}


@np.errstate(all="ignore")
def repeated_steps(c: Counts) -> Array:
    """Share of the barriers beyond those that a tile needs which is loaded once; 1 where none was counted."""
    once = NEEDED_BARRIERS * c["warps_launched"] / c["barrier_inst_warp"]
    return np.clip(np.nan_to_num(1 - once, nan=1.0, neginf=1.0), 0, 1)


@np.errstate(all="ignore")
def short_steps(c: Counts) -> tuple[Array, Array]:
    """Barriers of all warps that divide the work into short steps, and the share of the shared accesses between them.

    Both are 0 where barriers were not counted.
    """
    barriers = np.nan_to_num(c["barrier_inst_warp"])
    short = repeated_steps(c) * np.fmin(np.nan_to_num(SHORT_STEP * barriers / c["inst_executed_warp"]), 1.0)
    accesses = c.total("shared_load_inst_warp", "shared_store_inst_warp")
    return short * barriers, short * counted_share(MOST_EXCHANGED * barriers, accesses)


@np.errstate(all="ignore")
def lone_share(c: Counts) -> Array:
    """Share of the warp instructions that a single lane executes; 0 where not counted."""
    return np.clip(np.nan_to_num(c["inst_lone_warp"] / c["inst_executed_warp"]), 0, 1)
