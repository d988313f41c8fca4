"""What of the counted work a better version of the same algorithm does not do, although its results are used.

Conversions, expanded functions, double precision that no value needs, overhead and needless barriers. What accesses
of memory waste is in `profsvc.analysis.potential.access_patterns`.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from profsvc.analysis.counters.arrays import Counts, counted_share, once
from profsvc.analysis.potential.access_patterns import narrow_share
from profsvc.analysis.potential.local_arrays import unrolled_instructions, valued_share
from profsvc.analysis.potential.matrix_products import instructions_of_type, multiplies_matrices
from profsvc.formulas.performance.avoidable_work import excess_conversions, expanded_arithmetic

Array = NDArray[np.float64]
# A division of integers is 18 instructions or more, of which three, two conversions and a reciprocal, are on the
# special function unit, which takes a warp in two cycles; twelve or more are integer instructions.
DIVISION_LENGTH = 6.0
CONVERSIONS_PER_DIVISION, INTEGERS_PER_DIVISION = 2.0, 12.0
# One of 64 bits is a subroutine of about 70 instructions, of which nine multiply for an upper half; a product with a
# prepared reciprocal takes a third of them. Where the divisor stays the compiler prepares the reciprocal: a product, a
# remainder and two corrections are left, of which a comparison with the divisor and a difference spare three.
LONG_DIVISION_LENGTH, HIGH_PRODUCTS_PER_LONG_DIVISION = 46.0, 9.0
PREPARED_DIVISION_LENGTH, HIGH_PRODUCTS_PER_DIVISION, COMPARISONS_PER_DIVISION = 3.0, 2.0, 2.0
# Reductions of arguments take at most this many conversions for each instruction on the special function unit.
CONVERSIONS_PER_SPECIAL = 4.0
# An accurate power rounds its exponent to a float and to an integer, and converts the exponent of its base.
CONVERSIONS_PER_POWER = 3.0
# Special functions of arithmetic come with this many other instructions of it.
ARITHMETIC_PER_SPECIAL = 4.0
# An accurate division or root of single precision: a special function, a check, and steps of Newton's method, with
# three instructions of control around its slow path.
ROOT_LENGTH, ROOT_CONTROL = 9.0, 3.0
FAST_DIVISION_LENGTH = 2.0
# Arithmetic of an accurate function for each reduction of its argument, and the moves, selects and branches of an
# accurate sine for each of them.
FUNCTION_LENGTH, FUNCTION_OTHERS = 18.0, 0.5
# Arithmetic of the shortest polynomial, that of a logarithm, at least.
SHORTEST_POLYNOMIAL = 8.0
# A power of doubles, the longest of their functions, has fewer instructions of double precision than this.
LONGEST_DOUBLE_FUNCTION = 100.0
XU_WARPS_PER_CYCLE = 0.5
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


class Reduction(NamedTuple):
    """Accurate functions by what they do to their argument: what each has beyond its fast form, and what that needs."""

    arithmetic: float
    conversions: float
    special: float
    """Instructions of the fast form on the special function unit."""


# A sine or cosine; an exponential; a power, whose fast form is a logarithm and an exponential. The machine code of 30
# pairs of kernels for an H200 has 12 to 20 instructions of arithmetic less with the first, 20 to 21 less with the
# second and 44 to 50 less with the third.
REDUCTIONS = (Reduction(FUNCTION_LENGTH, 1.0, 1.0), Reduction(20.0, 2.0, 1.0), Reduction(46.0, 2.0, 2.0))
# A sum or a prefix of the values of 32 lanes takes five steps.
LANE_STEPS = 5.0
POSSIBLE = 0.5
"""Part that counts of work of which no counter tells whether a better version of the kernel needs it."""


@np.errstate(all="ignore")
def special_unit_warps(c: Counts) -> Array:
    """Warp instructions on the special function unit; where not counted, by the time that it was busy."""
    busy = c["pipe_xu_elapsed_fraction"] * XU_WARPS_PER_CYCLE * c["sm_elapsed_cycles_sum"]
    return np.where(np.isnan(c["inst_pipe_xu_warp"]), busy, c["inst_pipe_xu_warp"])


@once
@np.errstate(all="ignore")
def conversions(c: Counts) -> Array:
    """Conversions of all threads; where not counted by class, those of double precision, at least.

    They share their unit with special functions. Double precision needs many instructions for each of these; each of
    single precision may come with one.
    """
    double = instructions_of_type(c, "fp64")
    lanes = np.nan_to_num(c["warp_nonpred_execution_efficiency_fraction"], nan=1.0)
    functions = np.nan_to_num(instructions_of_type(c, "fp32")) + double / ARITHMETIC_PER_SPECIAL
    least = np.where(double > 0, np.clip(32 * lanes * special_unit_warps(c) - functions, 0, None), np.nan)
    counted = np.where(np.isnan(c["inst_bit_convert_thread"]), least, c["inst_bit_convert_thread"])
    return np.asarray(counted + _unpacked(c), dtype=np.float64)


@once
def _unpacked(c: Counts) -> Array:
    """Conversions of half precision by its adder, where opcodes are counted; not those of operands of matrices."""
    return np.where(multiplies_matrices(c), 0.0, np.nan_to_num(c["inst_unpack_half_thread"]))


@once
def needless_conversions(c: Counts) -> Array:
    """Conversions of all threads that no value in memory asks for; 0 where not known."""
    moved = c.total("global_load_bytes_requested", "global_store_bytes_requested", "global_ldgsts_bytes_requested")
    return excess_conversions(conversions(c), moved)


@np.errstate(all="ignore")
def double_by_accident(c: Counts) -> Array:
    """Share of the FP64 instructions whose operands and results are single precision.

    They are converted at each use; or each result, of no more instructions than the longest function has, is rounded.
    """
    doubles = instructions_of_type(c, "fp64")
    rounded = LONGEST_DOUBLE_FUNCTION * c["inst_round_double_thread"]
    by_accident = np.fmax(needless_conversions(c), np.where(rounded > doubles, doubles, 0.0))
    return np.clip(np.nan_to_num(by_accident / doubles, posinf=0.0), 0, 1)


@once
@np.errstate(all="ignore")
def _special_functions(c: Counts) -> Array:
    """Instructions of all threads on the special function unit that are no conversions; 0 where not counted."""
    lanes = np.nan_to_num(c["warp_execution_efficiency_fraction"], nan=1.0)
    special = 32 * lanes * c["inst_pipe_xu_warp"] - np.nan_to_num(c["inst_bit_convert_thread"])
    special = np.where(np.isnan(c["inst_mufu_thread"]), special, c["inst_mufu_thread"])
    return np.clip(np.nan_to_num(special), 0, None)


@once
@np.errstate(all="ignore")
def integer_divisions(c: Counts) -> Array:
    """Divisions of integers of all threads, at least: two conversions, a reciprocal and integer steps each.

    Where opcodes are counted, the conversions are those of the special function unit, there and back.
    """
    special = _special_functions(c)
    arithmetic = np.clip(np.nan_to_num(c["inst_fp32_thread"]) - special, 0, None)
    reciprocals = np.clip(special - arithmetic / ARITHMETIC_PER_SPECIAL, 0, None)
    parts = (
        np.nan_to_num(c["inst_bit_convert_thread"]) / CONVERSIONS_PER_DIVISION,
        reciprocals,
        np.nan_to_num(c["inst_integer_thread"]) / INTEGERS_PER_DIVISION,
    )
    opcodes = np.stack([*(c[f"inst_{name}_thread"] for name in ("i2f", "f2i", "mufu")), parts[-1]])
    by_opcode = ~np.isnan(opcodes).any(axis=0)
    return np.asarray(np.where(by_opcode, opcodes.min(axis=0), np.fmin.reduce(parts)), dtype=np.float64)


@np.errstate(all="ignore")
def _rounded_to_nearest(c: Counts) -> Array:
    """Conversions of floats to the nearest integers of all threads; where not told, all but those of divisions.

    Functions round their arguments so. Rounding down or to zero is of the data, as in a lattice or a table.
    """
    nearest = c["inst_f2i_nearest_thread"]
    return np.where(np.isnan(nearest), c["inst_f2i_thread"] - integer_divisions(c), nearest)


@np.errstate(all="ignore")
def _reductions(c: Counts) -> tuple[list[Array], Array]:
    """Accurate functions of all threads by each of `REDUCTIONS`, and reductions to an exponent.

    NaN where opcodes were not counted. Sines round their argument to an integer. Exponentials round it to a float as
    well, and powers also take the exponent of their base; a rounding that stays a float is of the data, as of a
    lattice. Logarithms take the exponent of their argument, an integer that becomes a value: so do counters of loops,
    but the fast form of a function brings an instruction of the special function unit with each. Where there is less
    arithmetic than a polynomial for each of them, they are integers of the data.
    """
    rounded = np.clip(_rounded_to_nearest(c), 0, None)
    exponents = np.clip(c["inst_i2fp_thread"] - rounded - c["inst_mufu_thread"], 0, None)
    exponents = np.where(SHORTEST_POLYNOMIAL * exponents > c["inst_fp32_thread"], 0.0, exponents)
    # Logarithms are among the functions that machine code is searched for.
    exponents = np.where(np.isnan(c["inst_function_excess_thread"]), exponents, 0.0)
    rounded = np.where(SHORTEST_POLYNOMIAL * rounded > c["inst_fp32_thread"], 0.0, rounded)
    to_floats = np.minimum(c["inst_frnd_thread"], rounded)
    powers = np.minimum(to_floats, c["inst_i2fp_thread"])
    return [rounded - to_floats, to_floats - powers, powers], exponents


def _sum_of(name: str, functions: Sequence[Array]) -> Array:
    """Sum of a field of `REDUCTIONS` over the functions."""
    return np.asarray(sum(getattr(kind, name) * count for kind, count in zip(REDUCTIONS, functions, strict=True)))


@once
@np.errstate(all="ignore")
def expanded_share(c: Counts) -> Array:
    """Share of the FP32 instructions that are expansions of accurate library functions.

    Where opcodes are counted, by the reductions of arguments; else all conversions beyond those of data may be of them.
    """
    arithmetic, converted = c["inst_fp32_thread"], needless_conversions(c)
    converted = converted - CONVERSIONS_PER_DIVISION * integer_divisions(c)
    # Functions work on the special function unit, too; the counter of a loop is converted without it.
    lanes = np.nan_to_num(c["warp_execution_efficiency_fraction"], nan=1.0)
    special = 32 * lanes * c["inst_pipe_xu_warp"]
    converted = np.where(CONVERSIONS_PER_SPECIAL * special < converted, CONVERSIONS_PER_SPECIAL * special, converted)
    # What rounds its argument and needs it as an integer is a power, also of a loaded value. Of a constant base the
    # compiler knows the logarithm; of others the exponent is taken apart.
    exponentials, powers = np.fmin(c["inst_frnd_thread"], _rounded_to_nearest(c)), _powers(c)
    converted = np.fmax(converted, np.nan_to_num(2 * exponentials + (CONVERSIONS_PER_POWER - 2) * powers))
    functions, exponents = _reductions(c)
    rounded, exponents = _sum_of("conversions", functions), np.minimum(exponents, converted)
    # Of functions there are no more than the conversions of their arguments.
    length = _sum_of("arithmetic", functions) * np.where(rounded > converted, converted / rounded, 1.0)
    length = np.where(np.isnan(length), FUNCTION_LENGTH * converted, length)
    expanded = expanded_arithmetic(arithmetic, np.clip(length, 0, None), 1.0)
    expanded = expanded + expanded_arithmetic(np.clip(arithmetic - expanded, 0, None), exponents, FUNCTION_LENGTH)
    # Functions whose coefficients the machine code has are known one by one.
    expanded = np.fmax(expanded, np.nan_to_num(c["inst_function_excess_thread"]))
    return np.where(instructions_of_type(c, "fp64") > 0, 0.0, np.clip(np.nan_to_num(expanded / arithmetic), 0, 1))


@np.errstate(all="ignore")
def _powers(c: Counts) -> Array:
    """Accurate powers of all threads: a rounding to a float, one to an integer and an exponent each; NaN if unknown."""
    return np.fmin(np.fmin(c["inst_frnd_thread"], _rounded_to_nearest(c)), c["inst_i2fp_thread"])


@np.errstate(all="ignore")
def added_special_functions(c: Counts) -> Array:
    """Instructions on the special function unit of all threads that fast forms add to those there are; 0 if unknown.

    An accurate sine has none, and a power one for each two of its fast form. There are no more functions than
    polynomials.
    """
    functions, _ = _reductions(c)
    lacking = _sum_of("special", functions) - c["inst_mufu_thread"]
    polynomials = expanded_share(c) * c["inst_fp32_thread"] / FUNCTION_LENGTH
    return np.asarray(np.clip(np.nan_to_num(np.minimum(lacking, polynomials)), 0, None), dtype=np.float64)


@np.errstate(all="ignore")
def spared_checks(c: Counts) -> Array:
    """Checks of accurate divisions of all threads that fast divisions spare on the special function unit, at least.

    A fast power is a logarithm and an exponential, one instruction there more than the accurate one has.
    """
    spared = np.nan_to_num(c["inst_divide_check_thread"]) - np.nan_to_num(_powers(c))
    return np.asarray(np.clip(spared, 0, None), dtype=np.float64)


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
    every = np.asarray(sum(np.nan_to_num(c[f"inst_{name}_thread"]) for name in THREAD_CLASSES))
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

    Those that move one bit at a time, beyond those that words take, and those for upper halves of indices.
    """
    every = np.asarray(sum(np.nan_to_num(c[f"inst_{name}_thread"]) for name in THREAD_CLASSES))
    return counted_share(c.total("inst_bit_by_bit_thread", "inst_index_upper_thread"), every)


THREAD_CLASSES = (
    "fp32", "fp64", "fp16", "integer", "bit_convert", "bit", "control", "ldst", "misc", "interthread", "uniform",
)  # fmt: skip


OVERHEAD_CLASSES = ("integer", "control", "bit", "uniform")


def class_shares(c: Counts) -> dict[str, Array]:
    """Share of the instructions of all threads that each class of `THREAD_CLASSES` has; 0 where none was counted."""
    counts = {name: np.nan_to_num(c[f"inst_{name}_thread"]) for name in THREAD_CLASSES}
    every = np.asarray(sum(counts.values()))
    return {name: counted_share(count, every) for name, count in counts.items()}


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
    every = np.asarray(sum(np.nan_to_num(c[f"inst_{name}_thread"]) for name in THREAD_CLASSES))
    special = counted_share(_special_functions(c) - integer_divisions(c), every)
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
    every = np.asarray(sum(np.nan_to_num(c[f"inst_{name}_thread"]) for name in THREAD_CLASSES))
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
    converted = (of["bit_convert"] + counted_share(_unpacked(c), every)) * again * (1 - expanded) * (of["fp64"] == 0)
    # Values that no register held; an index that is not known takes as many addresses as others do.
    kept = c.total("local_load_inst_warp", "local_store_inst_warp") / c["inst_executed_warp"]
    spilled = np.nan_to_num(c["register_spill_inst_warp"]) > 0
    # In place of an array at places that values determine, shared memory takes as many accesses.
    arrays = counted_share(kept * serving, np.ones(len(kept))) * (1 - valued_share(c))
    arrays = np.fmax(arrays, counted_share(unrolled_instructions(c, OVERHEAD), every))
    barriers, exchanged = short_steps(c)
    shares = {
        "register_spills": np.where(spilled, counted_share(kept, np.ones(len(kept))), 0.0),
        "local_memory": np.where(spilled, 0.0, arrays),
        "integer_division": divided,
        "overhead_instructions": proven_overhead_share(c),
        "expensive_functions": functions,
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
