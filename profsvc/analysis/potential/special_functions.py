"""What a kernel does on the special function unit: conversions, and functions and divisions that it expands.

An accurate function or a division of integers is a few instructions there, and many of arithmetic beside them.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from profsvc.analysis.counters.arrays import Counts, once
from profsvc.analysis.potential.matrix_products import instructions_of_type, multiplies_matrices
from profsvc.analysis.potential.tensor_work import tensor_operations
from profsvc.formulas.performance.avoidable_work import excess_conversions, expanded_arithmetic

Array = NDArray[np.float64]
XU_WARPS_PER_CYCLE = 0.5
# A division of integers is 18 instructions or more, of which three, two conversions and a reciprocal, are on the
# special function unit, which takes a warp in two cycles; twelve or more are integer instructions.
CONVERSIONS_PER_DIVISION, INTEGERS_PER_DIVISION = 2.0, 12.0
# Reductions of arguments take at most this many conversions for each instruction on the special function unit.
CONVERSIONS_PER_SPECIAL = 4.0
# An accurate power rounds its exponent to a float and to an integer, and converts the exponent of its base.
CONVERSIONS_PER_POWER = 3.0
# Special functions of arithmetic come with this many other instructions of it.
ARITHMETIC_PER_SPECIAL = 4.0
# Arithmetic of an accurate function for each reduction of its argument.
FUNCTION_LENGTH = 18.0
# Arithmetic of the shortest polynomial, that of a logarithm, at least.
SHORTEST_POLYNOMIAL = 8.0
# An instruction of tensor cores adds this many products of half precision to each of its results.
PRODUCTS_PER_RESULT = 16
# A power of doubles, the longest of their functions, has fewer instructions of double precision than this.
LONGEST_DOUBLE_FUNCTION = 100.0


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
    return np.asarray(counted + unpacked_halves(c), dtype=np.float64)


@once
def unpacked_halves(c: Counts) -> Array:
    """Conversions of half precision by its adder, where opcodes are counted; not those of operands of matrices."""
    return np.where(multiplies_matrices(c), 0.0, np.nan_to_num(c["inst_unpack_half_thread"]))


@once
def needless_conversions(c: Counts) -> Array:
    """Conversions of all threads that neither a value in memory nor a result of tensor cores asks for; 0: not known.

    A result of single precision becomes an operand of the next product, as in attention.
    """
    moved = c.total("global_load_bytes_requested", "global_store_bytes_requested", "global_ldgsts_bytes_requested")
    results = np.nan_to_num(tensor_operations(c)) / (2 * PRODUCTS_PER_RESULT)
    return excess_conversions(conversions(c), np.nan_to_num(moved) + results)


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
def special_functions(c: Counts) -> Array:
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
    special = special_functions(c)
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
