"""Counters of instruction classes from a source page, which counts every instruction of a launch."""

import numpy as np
import pandas as pd

from profsvc.analysis.counters.merged import SourcedCounters, merge_counters
from profsvc.specs.metrics.instruction_classes import SIZED, SPECIAL_UNIT, instruction_classes

THREADS, WARPS = "thread_instructions_on", "instructions"
SPECIAL_UNIT_WARPS = "inst_pipe_xu_warp"
LONE, LONE_COUNTER = "lone_instructions", "inst_lone_warp"
EXTRA, LOOKUP, LOOKUP_COUNTER = "extra_wavefronts", "lookup_wavefronts", "shared_lookup_wavefronts"
# Opcodes with their first modifiers: half precision becomes single by an addition of 0, a division by a value that
# stays multiplies with its reciprocal and compares the remainder, one of 64 bits converts the reciprocal back. A
# function rounds its argument to the nearest integer.
FORMS = {
    "inst_unpack_half_thread": ("HADD2.F32", THREADS),
    "inst_round_double_thread": ("F2F.F32.F64", THREADS),
    "inst_multiply_high_thread": ("IMAD.HI.U32", THREADS),
    "inst_compare_unsigned_thread": ("ISETP.GE.U32", THREADS),
    "inst_f2i_long_thread": ("F2I.U64", THREADS),
    "inst_f2i_nearest_thread": ("F2I.NTZ, F2I.FTZ.NTZ", THREADS),
    "barrier_inst_warp": ("BAR", WARPS),
    "constant_ldc_inst_warp": ("LDC", WARPS),
}
WARPS_OF_SIZE = {str(bits): f"memory_inst_{bits}bit_warp" for bits in (8, 16, 32, 64, 128)}
# Counts are whole numbers, but the counter to compare them with may be a product.
ROUNDING = 1e-9


def counters_by_opcode(executed: pd.DataFrame, counted: "pd.Series[float]") -> SourcedCounters:
    """Return the counters of instruction classes of launches, and how each was summed.

    ``executed`` has ``launch_id, opcode, access_size, instructions, thread_instructions_on``, one row or more for each
    opcode, and the other columns that the store has of them, where known. ``counted`` are the thread instructions with
    a true predicate that the launch has by its own counter. A launch gets no counters if its page has another number
    of them, as it is cut or of another run of the kernel. If it executes an opcode of no known class, it gets those of
    single opcodes, and NaN for those of classes.

    >>> rows = [(1, "I2F.S32", None, 2, 60), (1, "LDG.E.64", "64", 1, 32), (2, "NEW", None, 1, 32)]
    >>> names = ["launch_id", "opcode", "access_size", "instructions", "thread_instructions_on"]
    >>> table, said = counters_by_opcode(pd.DataFrame(rows, columns=names), pd.Series({1: 92.0, 2: 32.0}))
    >>> table.loc[1, ["inst_bit_convert_thread", "inst_ldst_thread", "memory_inst_64bit_warp"]].tolist()
    [60.0, 32.0, 1.0]
    >>> table.loc[2, ["inst_bit_convert_thread", "inst_mufu_thread"]].tolist()
    [nan, 0.0]
    >>> str(said["inst_bit_convert_thread"][0])
    'source page: sum(thread_instructions_on) of F2F, F2FP, F2I, FRND, I2F, I2FP'
    """
    classes = instruction_classes()
    rows = executed[executed[[THREADS, WARPS]].isna().any(axis=1) | (executed[[THREADS, WARPS]] > 0).any(axis=1)]
    rows = rows.assign(full=rows["opcode"], opcode=rows["opcode"].str.split(".").str[0])
    named = rows["opcode"].notna() & rows[[THREADS, WARPS]].notna().all(axis=1)
    total = rows.groupby("launch_id")[THREADS].sum().astype("float64")
    expected = counted.reindex(total.index).to_numpy(dtype="float64")
    whole = named.groupby(rows["launch_id"]).all() & (np.abs(total - expected) <= ROUNDING * expected)
    launches = pd.Index(whole.index[whole.to_numpy(dtype=bool)], name="launch_id")
    rows = rows[rows["launch_id"].isin(launches)]
    unsure = launches.isin(rows.loc[~rows["opcode"].isin(list(classes)), "launch_id"])
    found: dict[str, pd.Series[float]] = {}
    said: dict[str, np.ndarray] = {}

    def add(name: str, of: "pd.Series[bool]", column: str, text: str) -> None:
        sums = rows[of].groupby("launch_id")[column].sum()
        found[name] = sums.reindex(launches, fill_value=0).astype("float64")
        said[name] = np.full(len(launches), f"source page: sum({column}) of {text}", dtype=object)

    for counter in dict.fromkeys(each.counter for each in classes.values() if each.counter):
        opcodes = [opcode for opcode, each in classes.items() if each.counter == counter]
        add(counter, rows["opcode"].isin(opcodes), THREADS, ", ".join(opcodes))
        found[counter] = found[counter].mask(unsure)
    for opcode, each in classes.items():
        if each.own:
            add(each.own, rows["opcode"] == opcode, THREADS, opcode)
    for counter, (form, column) in FORMS.items():
        starts = tuple(f"{one}." for one in form.split(", "))
        add(counter, (rows["full"] + ".").str.startswith(starts), column, form)
    if LONE in rows and rows[LONE].notna().all():
        add(LONE_COUNTER, rows[LONE] > 0, LONE, "instructions that one thread of a warp executed")
    if LOOKUP in rows and rows.loc[rows["opcode"].isin(["LDS", "STS"]), EXTRA].notna().all():
        add(LOOKUP_COUNTER, rows["opcode"] == "LDS", LOOKUP, "LDS at random places, less the extra ones of STS")
        # Places that are written as they are read are of the threads' own, and their layout can be another.
        written = rows[rows["opcode"] == "STS"].groupby("launch_id")[EXTRA].sum().reindex(launches, fill_value=0)
        found[LOOKUP_COUNTER] = (found[LOOKUP_COUNTER] - written).clip(lower=0.0)
    special = [opcode for opcode, each in classes.items() if each.also == SPECIAL_UNIT]
    add(SPECIAL_UNIT_WARPS, rows["opcode"].isin(special), WARPS, ", ".join(special))
    found[SPECIAL_UNIT_WARPS] = found[SPECIAL_UNIT_WARPS].mask(unsure)
    sized = [opcode for opcode, each in classes.items() if each.also == SIZED]
    accesses = rows["opcode"].isin(sized)
    unknown = launches.isin(rows.loc[accesses & ~rows["access_size"].isin(list(WARPS_OF_SIZE)), "launch_id"])
    for size, counter in WARPS_OF_SIZE.items():
        add(counter, accesses & (rows["access_size"] == size), WARPS, f"{', '.join(sized)} with access_size {size}")
        found[counter] = found[counter].mask(unknown | unsure)
    return pd.DataFrame(found, index=launches), said


def with_source_page(own: SourcedCounters, executed: pd.DataFrame) -> SourcedCounters:
    """Return the counters of launches with those of instruction classes that they lack, as their source page has them.

    ``executed`` is as `counters_by_opcode` takes it.
    """
    if executed.empty or (counter := "thread_inst_executed_pred_on") not in own[0]:
        return own
    by_opcode = counters_by_opcode(executed, own[0][counter])
    if by_opcode[0].empty:
        return own
    first = own[0].index.to_series()
    return merge_counters(own, [(by_opcode, by_opcode[0].index.to_series())], first)
