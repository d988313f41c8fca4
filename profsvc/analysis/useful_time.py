"""The time that the useful part of each unit's work needs at the unit's peak rate, from counters.

`profsvc.formulas.useful_work` holds the model; here its arguments are found among the counters. A unit of which one of
the counts is missing falls back to its measured utilization, all of it taken as useful: the cautious reading.
"""

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from profsvc.formulas.useful_work import operand_limited, payload_instructions, useful_bytes

Array = NDArray[np.float64]
UNITS = ("dram", "l2", "l1", "fp32", "fp64", "tensor", "xu", "integer", "issue")
WAVEFRONT_BYTES = 128
SECTOR_BYTES = 32
# Less arithmetic than one instruction for four elements loaded is no evidence that arithmetic is the payload.
OPERATIONS_PER_LOAD = 0.25
# Where no counter tells, the tensor pipe must be this busy to be taken for work.
TENSOR_NOISE = 0.05


class Counts:
    """The counters of launches as float64 arrays; what is absent, negative or infinite reads as NaN."""

    def __init__(self, counters: pd.DataFrame) -> None:
        """Take a table with a row a launch and a column a counter."""
        self._counters = counters
        self.index = counters.index

    def __getitem__(self, name: str) -> Array:
        """Return one counter over the launches."""
        if name not in self._counters:
            return np.full(len(self._counters), np.nan)
        values = self._counters[name].to_numpy(dtype="float64", na_value=np.nan)
        return np.where((values >= 0) & np.isfinite(values), values, np.nan)

    def has(self, name: str) -> bool:
        """Tell whether there is a column for a counter."""
        return name in self._counters

    def total(self, *names: str) -> Array:
        """Sum of counters, NaN only where all are."""
        parts = np.array([self[n] for n in names])
        return np.where(np.isnan(parts).all(axis=0), np.nan, np.nansum(parts, axis=0))

    def lacks(self, *names: str) -> NDArray[np.bool_]:
        """Tell of which launches one of the counters is not known."""
        absent: NDArray[np.bool_] = np.isnan(np.array([self[name] for name in names])).any(axis=0)
        return absent


@np.errstate(all="ignore")
def requested_bytes(c: Counts) -> tuple[Array, Array]:
    """Bytes that threads asked to load and to store, NaN where other paths to memory were not counted.

    Asynchronous copies, textures, atomics and spills have no count of requested bytes: what crossed between L1 and
    L2 beyond the plain global accesses is taken as requested.
    """
    by_loads = SECTOR_BYTES * np.fmin(c["global_load_l1_miss_sectors"], c["global_load_sectors"])
    by_loads = np.where(np.isnan(by_loads), SECTOR_BYTES * c["global_load_sectors"], by_loads)
    other_loads = np.clip(c["l2_to_l1_read_bytes"] - by_loads, 0, None)
    other_stores = np.clip(c["l1_to_l2_write_bytes"] - SECTOR_BYTES * c["global_store_sectors"], 0, None)
    return c["global_load_bytes_requested"] + other_loads, c["global_store_bytes_requested"] + other_stores


@np.errstate(all="ignore")
def arithmetic_per_cycle(c: Counts, kind: str) -> Array:
    """Floating-point instructions of all threads a cycle of ``kind`` fp32 or fp64, NaN where not all were counted."""
    letter = {"fp32": "sp", "fp64": "dp"}[kind]
    rate, counted = (
        c[form.format("add")] + c[form.format("mul")] + c[form.format("fma")]
        for form in (f"{kind}_{{}}_inst_per_cycle", f"flop_count_{letter}_{{}}")
    )
    return np.where(np.isnan(rate), counted / c["elapsed_cycles"], rate)


@np.errstate(all="ignore")
def has_tensor_work(c: Counts) -> NDArray[np.bool_]:
    """Whether matrices were multiplied. Constant moves of other kernels also keep that pipe busy, a little."""
    counted = c.total(
        "inst_tensor_warp", *(f"tensor_ops_{kind}" for kind in ("fp16", "bf16", "tf32", "fp64", "fp8", "int8"))
    )
    pipe = np.fmax(c["pipe_tensor_elapsed_fraction"], c["fu_tensor_utilization_fraction"])
    return np.where(np.isnan(counted), np.nan_to_num(pipe) > TENSOR_NOISE, np.nan_to_num(counted) > 0)


@np.errstate(all="ignore")
def operations(c: Counts) -> tuple[Array, Array]:
    """Arithmetic warp instructions with all lanes on: floating point plus tensor, and the same in 4-byte operands.

    Zero where the arithmetic is too little beside the loads to be what the kernel is for; NaN where there is tensor
    work but nobody counted its instructions.
    """
    cycles = c["elapsed_cycles"] / 32
    fp32 = np.fmax(arithmetic_per_cycle(c, "fp32") * cycles, c["inst_fp32_thread"] / 32)
    fp64 = np.fmax(arithmetic_per_cycle(c, "fp64") * cycles, c["inst_fp64_thread"] / 32)
    matrices = has_tensor_work(c)
    tensor = np.where(matrices, c["inst_tensor_warp"], 0.0)
    count = np.nansum([fp32, fp64], axis=0) + tensor
    enough = ~(count < OPERATIONS_PER_LOAD * np.nan_to_num(c["global_load_inst_warp"]))
    count = np.where(enough, count, 0.0)
    # A tensor instruction eats whole fragments: its operands set no limit that these counters could show.
    operands = np.where(matrices, np.inf, np.nansum([fp32, 2 * fp64], axis=0))
    return count, np.where(count > 0, operands, 0.0)


@np.errstate(all="ignore")
def memory_wavefronts(c: Counts, operands: Array) -> tuple[Array, Array]:
    """Useful wavefronts of loads and of stores at the L1 and shared memory pipe, without conflicts."""
    shared = c.total("shared_load_inst_warp", "shared_store_inst_warp")
    # Wide accesses need several wavefronts each; loads and stores share them in proportion to their number.
    width = np.where(shared > 0, c["shared_wavefronts_ideal"] / shared, 1.0)
    width = np.where(np.isnan(width), 1.0, width)
    sides = []
    for side, crossing in (("load", "l2_to_l1_read_bytes"), ("store", "l1_to_l2_write_bytes")):
        wide = c[f"global_{side}_bytes_requested"] / WAVEFRONT_BYTES
        plain = np.fmax(c[f"global_{side}_inst_warp"], wide)
        accesses = np.nansum([plain, width * c[f"shared_{side}_inst_warp"]], axis=0)
        unknown = np.isnan(plain) & np.isnan(c[f"shared_{side}_inst_warp"])
        arrived = np.minimum(c[crossing] / WAVEFRONT_BYTES, accesses)
        sides.append(np.where(unknown, np.nan, operand_limited(accesses, operands, arrived)))
    return sides[0], sides[1]


@np.errstate(all="ignore")
def busy(c: Counts) -> dict[str, Array]:
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
def _memory(c: Counts, used: dict[str, Array], loads: Array, stores: Array) -> dict[str, Array]:
    """Useful share of the time of the memory units: what was asked for over what was moved, times the busy share."""
    wanted_loads, wanted_stores = requested_bytes(c)
    read, written = c["dram_read_bytes"], c["dram_write_bytes"]
    moved = read + written
    asked = useful_bytes(read, wanted_loads) + useful_bytes(written, wanted_stores)
    excess = c["global_theoretical_sectors_ideal"] / c["global_theoretical_sectors"]
    wavefronts = (loads + stores) / c["sm_elapsed_cycles_sum"]
    return {
        "dram": used["dram"] * np.where(moved > 0, asked / moved, 1.0),
        # Sectors are what threads ask L2 for; its other parts, busy with tags, fills or replies, follow from them.
        "l2": c["l2_utilization_fraction"] * np.where(np.isnan(excess), 1.0, np.clip(excess, 0, 1)),
        "l1": wavefronts,
    }


@np.errstate(all="ignore")
def is_uncounted(c: Counts) -> NDArray[np.bool_]:
    """Whether not all the arithmetic of a launch was counted, or not its loads: it cannot be told from book-keeping."""
    cycles = c["elapsed_cycles"]
    threads = [np.fmax(arithmetic_per_cycle(c, kind) * cycles, c[f"inst_{kind}_thread"]) for kind in ("fp32", "fp64")]
    return c.lacks("global_load_inst_warp") | np.isnan(threads[0] + threads[1] + operations(c)[0])


def taken_whole(counters: pd.DataFrame, figures: pd.DataFrame) -> pd.DataFrame:
    """Tell of which units of `UNITS` the useful work is not known, and all that kept them busy is taken as useful.

    A row a launch, a column a unit; true means that the unit's useful time may be shorter than `useful_times` says,
    and is not longer. False means that all counts and figures which the model takes for the unit are there.
    """
    c, unknown = Counts(counters), figures.isna()
    uncounted = is_uncounted(c)
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
            "l2": c.lacks("l2_utilization_fraction", "global_theoretical_sectors_ideal", "global_theoretical_sectors"),
            "l1": payload | c.lacks("sm_elapsed_cycles_sum"),
            **{
                kind: np.isnan(arithmetic_per_cycle(c, kind)) | unknown[f"{kind}_lanes_per_sm"] | unknown["sms"]
                for kind in ("fp32", "fp64")
            },
            "tensor": False,
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


@np.errstate(all="ignore")
def useful_times(counters: pd.DataFrame, figures: pd.DataFrame) -> pd.DataFrame:
    """Return a row a launch and a column a unit of `UNITS`: ns of useful work at peak rate, NaN where unknown.

    ``counters`` has a column a counter, ``figures`` the peak rates of `profsvc.analysis.peaks`.
    """
    c = Counts(counters)
    f = {name: figures[name].to_numpy(dtype="float64") for name in figures}
    T, used = c["duration_ns"], busy(c)
    lanes = np.clip(c["warp_nonpred_execution_efficiency_fraction"], 0, 1)
    on = np.where(np.isnan(lanes), 1.0, lanes)
    count, operands = operations(c)
    loads, stores = memory_wavefronts(c, operands)
    cycles = f["sms"] * c["elapsed_cycles"]
    share = _memory(c, used, loads, stores)
    for kind in ("fp32", "fp64"):
        share[kind] = arithmetic_per_cycle(c, kind) / (f[f"{kind}_lanes_per_sm"] * f["sms"])
    share["tensor"] = np.where(has_tensor_work(c), used["tensor"], 0.0 * used["tensor"])
    # A special result that no arithmetic consumes is book-keeping, such as a division of indices.
    executed = used["xu"] * f["sfu_per_sm"] / 32 * cycles
    consumed = np.where(executed > 0, np.minimum(1.0, count / executed), 1.0)
    share["xu"] = used["xu"] * np.where(count > 0, consumed, on)
    share["integer"] = np.where(count > 0, 0.0, used["integer"] * on)
    payload = payload_instructions(c["inst_executed_warp"], lanes, count, loads + stores)
    share["issue"] = payload / (f["schedulers_per_sm"] * cycles)
    # Lanes that were off carry no payload, whatever else is known of the instructions.
    whole, lit = taken_whole(counters, figures), {"integer": on, "issue": on}
    for u in UNITS:
        share[u] = np.where(whole[u], used[u] * lit.get(u, 1.0), share[u])
    return pd.DataFrame({u: np.minimum(share[u] * T, T) for u in UNITS}, counters.index)
