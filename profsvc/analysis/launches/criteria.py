"""The nine criteria of every launch, and of the run, from counters; their forms, and the reason where one is unknown.

The conditional form takes out of a criterion what other criteria measure: `CONDITIONAL`.
"""

from collections.abc import Callable, Mapping, Sequence
from itertools import compress
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from profsvc.analysis.counters.arrays import Counts
from profsvc.analysis.counters.missing import group_identical_rows
from profsvc.analysis.launches.characterization import Characterization
from profsvc.analysis.launches.memory_traffic import (
    L1_LINE_BYTES,
    L2_SECTOR_BYTES,
    Traffic,
    l1_traffic,
    l2_traffic,
)
from profsvc.analysis.launches.timeline import Timeline
from profsvc.formulas import criteria as formula
from profsvc.formulas.performance.occupancy import launch_occupancy
from profsvc.formulas.performance.operations import OPERATIONS, UNITS
from profsvc.formulas.performance.speedup import application_speedup
from profsvc.formulas.performance.time_shares import time_shares

# First operation of each unit, and the counters whose proportions part a unit's work among its operations.
FIRST_OPERATIONS = (0, 2, 4, 6, 8)
OPERATION_COUNTERS = (
    *("dram_read_bytes", "dram_write_bytes", "l2_to_l1_read_bytes", "l1_to_l2_write_bytes"),
    *("global_load_sectors", "global_store_sectors", "shared_load_inst_warp", "shared_store_inst_warp"),
    *(f"fu_{kind}_utilization_fraction" for kind in ("alu", "fp32", "special", "fp64")),
)
# What the criteria of a run are computed from.
RUN_INPUT_COLUMNS = ("launch_id", "criterion", "value", "share", "speedup", "value_conditional")
Array = NDArray[np.float64]
COLUMNS = ("value", "share", "speedup", "value_as_published", "speedup_as_published", "value_conditional", "flags")


class Inputs(NamedTuple):
    """What the criteria of launches are computed from."""

    counts: Counts
    figures: Mapping[str, np.ndarray]
    shares: Mapping[str, np.ndarray]
    measured: Characterization


def utilizations(c: Counts) -> dict[str, np.ndarray]:
    """Busy share of the elapsed cycles of each unit of `profsvc.formulas.performance.time_shares`."""
    active = np.where(np.isnan(c["sm_efficiency_fraction"]), 1.0, c["sm_efficiency_fraction"])
    with np.errstate(all="ignore"):
        wavefronts = np.fmax(
            c["shared_wavefronts_sass"], c.total("shared_load_transactions", "shared_store_transactions")
        )
        shared = np.clip(wavefronts / c["sm_elapsed_cycles_sum"], 0, 1)
        pipe = c["sol_l1_fraction"] * active
        pipes = [c[f"fu_{kind}_utilization_fraction"] for kind in ("fp32", "fp64", "alu", "special", "tensor")]
        arithmetic = np.fmax.reduce([c["issue_slot_utilization_fraction"], *pipes]) * active
    return {
        "dram": c["dram_throughput_fraction"],
        "l2": c["sol_l2_fraction"],
        "l1": np.clip(pipe - np.nan_to_num(shared), 0, None),
        "shared": shared,
        "arithmetic": np.where(np.isnan(arithmetic), c["sol_sm_fraction"], arithmetic),
    }


def _operation_mix(c: Counts) -> np.ndarray:
    """Share of each operation in the work of its unit, one row per launch; even where no counter tells."""
    parts = np.nan_to_num(np.column_stack([c[name] for name in OPERATION_COUNTERS]))
    width = np.diff((*FIRST_OPERATIONS, len(OPERATION_COUNTERS)))
    total = np.repeat(np.add.reduceat(parts, FIRST_OPERATIONS, axis=1), width, axis=1)
    with np.errstate(all="ignore"):
        return np.asarray(np.where(total > 0, parts / total, 1.0 / np.repeat(width, width)))


def unit_time_shares(c: Counts, costs: Mapping[str, ArrayLike]) -> dict[str, np.ndarray]:
    """Shares of the time of each unit, and ``idle``; they add up to 1. NaN where no utilization is known.

    ``costs`` holds what an operation costs over its cost at the peak rate of its unit, as measured; 1 where it is not
    there. Utilizations stand for counts times costs at peak rate.
    """
    used = utilizations(c)
    u = np.column_stack([used[unit] for unit in UNITS])
    unknown = np.isnan(u).all(axis=1)
    width = np.diff((*FIRST_OPERATIONS, len(OPERATIONS)))
    cost = np.column_stack([np.broadcast_to(costs.get(operation, 1.0), len(u)) for operation in OPERATIONS])
    counts = np.repeat(np.nan_to_num(u), width, axis=1) * _operation_mix(c)
    busy = np.add.reduceat(counts * cost, FIRST_OPERATIONS, axis=1)
    counts = counts / np.repeat(np.fmax(busy, 1.0), width, axis=1)
    result = time_shares(counts, cost, np.ones(len(u)), 1.0 - np.fmin(busy, 1.0).max(axis=1), 1)
    found = {unit: np.where(unknown, np.nan, result.share[..., k]) for k, unit in enumerate(UNITS)}
    return found | {"idle": np.where(unknown, np.nan, result.idle)}


def _device_sync(i: Inputs, form: str) -> Any:
    c, f = i.counts, i.figures
    warps = f["sms"] * f["max_warps_per_sm"]
    active = c["active_warps_sum"]
    resident = c["achieved_occupancy_fraction"] * c["sm_efficiency_fraction"] * warps * c["elapsed_cycles"]
    active = np.where(np.isnan(active), resident, active)
    barriers = c["barrier_inst_warp"]
    none = np.where(np.isnan(barriers), np.where(c["stall_sync_fraction"] == 0, 0.0, np.nan), barriers)
    return formula.device_sync(c["stall_sync_fraction"], active, warps, c["elapsed_cycles"], form, barriers=none)


def _divergence(i: Inputs, form: str) -> Any:
    c = i.counts
    efficiency = c["warp_nonpred_execution_efficiency_fraction"]
    efficiency = np.where(np.isnan(efficiency), c["warp_execution_efficiency_fraction"], efficiency)
    with np.errstate(all="ignore"):
        control = c["inst_control_thread"] / c["thread_inst_executed_pred_on"]
        control = np.where(np.isnan(control), c["branch_inst_warp"] / c["inst_executed_warp"], control)
    F = i.measured.at("F_Divergence", control)
    result = formula.divergence(efficiency, np.ones_like(efficiency), F.y, p=i.shares["arithmetic"], form=form,
                                block_size=c["block_threads"])  # fmt: skip
    return result._replace(flags=result.flags | F.flags)


def _load_balance_warp(i: Inputs, form: str) -> Any:
    c = i.counts
    issued = c["issue_active_elapsed_fraction"]
    of_active = c["issue_slot_utilization_fraction"] * c["sm_efficiency_fraction"]
    idle = 1.0 - np.where(np.isnan(issued), of_active, issued)
    blocks = c["blocks_per_sm_theoretical"]
    warps = c["warps_per_block"]
    blocks = np.where(np.isnan(blocks), c["theoretical_warps_per_sm"] / warps, blocks)
    return formula.load_balance_warp_printed(
        c["active_warps_per_sm_avg"], 1.0, 32.0 * warps, blocks, idle, form, grid_blocks=c["grid_blocks"],
        sms=i.figures["sms"],
    )  # fmt: skip


def _load_balance_sm(i: Inputs, form: str) -> Any:
    c = i.counts
    elapsed = np.where(np.isnan(c["sm_elapsed_cycles_avg"]), c["elapsed_cycles"], c["sm_elapsed_cycles_avg"])
    return formula.load_balance_sm_printed(c["sm_active_cycles_avg"], c["sm_active_cycles_max"], elapsed, form)


def _l1_granularity(i: Inputs, form: str) -> Any:
    c = i.counts
    requests = c.total("global_load_inst_warp", "global_store_inst_warp", "global_ldgsts_inst_warp")
    traffic = l1_traffic(c)
    return formula.granularity(traffic.moved / L1_LINE_BYTES, traffic.asked, L1_LINE_BYTES, i.shares["l1"], form,
                               warp_insts=requests)  # fmt: skip


def _l2_granularity(i: Inputs, form: str) -> Any:
    traffic = l2_traffic(i.counts)
    share = i.shares["l2"] * traffic.part
    return formula.granularity(traffic.moved / L2_SECTOR_BYTES, traffic.asked, L2_SECTOR_BYTES, share, form)


def _shared_efficiency(i: Inputs, form: str) -> Any:
    c = i.counts
    with np.errstate(all="ignore"):
        degree = c["shared_wavefronts_sass"] / c["shared_wavefronts_ideal"]
        F = i.measured.at("F_SHMEM", np.fmax(degree, 1.0 / degree))
    result = formula.shared_efficiency(c["shared_wavefronts_ideal"], c["shared_wavefronts_sass"], F.y,
                                       share=i.shares["shared"], form=form)  # fmt: skip
    return result._replace(flags=result.flags | F.flags)


def _occupancy(i: Inputs) -> Array:
    c, f = i.counts, i.figures
    return launch_occupancy(c["theoretical_occupancy_fraction"], c["grid_blocks"], f["sms"], c["warps_per_block"],
                            f["max_warps_per_sm"])  # fmt: skip


def _throughput_occupancy(i: Inputs, form: str) -> Any:
    memory = i.counts["dram_throughput_fraction"] / i.measured.sustained.get("dram", 1.0)
    return formula.throughput_occupancy(_occupancy(i), memory, form=form)


FORMULAS: Mapping[str, Callable[[Inputs, str], Any]] = {
    "device_sync": _device_sync,
    "divergence": _divergence,
    "load_balance_warp": _load_balance_warp,
    "load_balance_sm": _load_balance_sm,
    "l1_granularity": _l1_granularity,
    "l2_granularity": _l2_granularity,
    "shared_efficiency": _shared_efficiency,
    "throughput_occupancy": _throughput_occupancy,
}


def _sectors_needed(i: Inputs) -> Any:
    """Granularity of the lanes that are on: sectors that they would need side by side, over those that they need.

    A lane that is off asks for no bytes. Its part of a sector is divergence and not granularity.
    """
    c = i.counts
    needed = L2_SECTOR_BYTES * c["global_theoretical_sectors_ideal"]
    return formula.granularity(c["global_theoretical_sectors"], needed, L2_SECTOR_BYTES)


def _throughput_of_working_sms(i: Inputs) -> Any:
    """Throughput and occupancy while SMs work, with the throughput of the busiest memory.

    SMs that are idle are balance. Where L1 or L2 is full, of wasted sectors or of bank conflicts too, another warp
    gains as little as where DRAM is.
    """
    c, full = i.counts, i.measured.sustained
    active = c["sm_efficiency_fraction"]
    dram, l2, l1 = (c[name] / full.get(unit, 1.0) for unit, name in MEMORIES.items())
    with np.errstate(all="ignore"):
        memory = np.fmax.reduce([dram / active, l2 / active, l1])
        # Bursts while few SMs work exceed the mean of the launch only up to the peak.
        memory = np.where(np.isnan(dram) | np.isnan(active), np.nan, np.fmin(memory, 1.0))
    return formula.throughput_occupancy(_occupancy(i), memory)


MEMORIES = {"dram": "dram_throughput_fraction", "l2": "sol_l2_fraction", "l1": "sol_l1_fraction"}
# Criteria of which the conditional form differs from the consistent one.
CONDITIONAL: Mapping[str, Callable[[Inputs], Any]] = {
    "l1_granularity": _sectors_needed,
    "l2_granularity": _sectors_needed,
    "throughput_occupancy": _throughput_of_working_sms,
}

# Criteria that may not be known though all their counters are there.
TRAFFIC_OF_CRITERION: Mapping[str, Callable[[Counts], Traffic]] = {
    "l1_granularity": l1_traffic,
    "l2_granularity": l2_traffic,
}


def launch_criteria(
    counters: pd.DataFrame,
    figures: pd.DataFrame,
    measured: Characterization,
    domain: Sequence[Mapping[str, Any]],
) -> pd.DataFrame:
    """Return one row per launch and launch-level criterion: value, share, speedup, both forms, flags, reason."""
    c = Counts(counters)
    arrays = {str(name): figures[name].to_numpy(dtype="float64") for name in figures}
    inputs = Inputs(c, arrays, unit_time_shares(c, measured.costs(figures)), measured)
    entries = [entry for entry in domain if entry["level"] == "launch"]
    found: dict[str, list[NDArray[Any]]] = {name: [] for name in (*COLUMNS, "reason")}
    for entry in entries:
        with np.errstate(all="ignore"):
            ours = FORMULAS[entry["name"]](inputs, "consistent")
            printed = FORMULAS[entry["name"]](inputs, "as_published")
            conditional = CONDITIONAL[entry["name"]](inputs) if entry["name"] in CONDITIONAL else ours
            speedup = np.fmax(1.0, ours.speedup)
        share = getattr(ours, "share", np.full(len(counters), np.nan))
        known = ~np.isnan(np.asarray(ours.value, dtype="float64"))
        told = (ours.value, share, speedup, printed.raw, printed.speedup, conditional.value)
        for name, values in zip(COLUMNS, told, strict=False):
            found[name].append(np.where(known, np.asarray(values, dtype="float64"), np.nan))
        found["flags"].append(np.where(known, np.asarray(ours.flags, dtype="int64"), 0))
        reasons = _reasons(c, entry)
        reasons[known] = None
        found["reason"].append(reasons)
    names = np.array([entry["name"] for entry in entries], dtype=object)
    columns = {name: pd.Series(np.concatenate(parts)) for name, parts in found.items() if name != "reason"}
    columns["reason"] = pd.Series(np.concatenate(found["reason"]), dtype=object)
    launches = {"launch_id": np.tile(counters.index, len(entries)), "criterion": names.repeat(len(counters))}
    return pd.DataFrame(launches | columns)


def _reasons(c: Counts, entry: Mapping[str, Any]) -> NDArray[np.object_]:
    """For each launch, which of the needed counters the export lacks."""
    names = entry["counters"]
    unseen = (
        TRAFFIC_OF_CRITERION[entry["name"]](c).unseen
        if entry["name"] in TRAFFIC_OF_CRITERION
        else np.full(len(c.index), None, dtype=object)
    )
    kinds, place = group_identical_rows(np.column_stack([np.isnan(c[name]) for name in names]))
    lacking = [", ".join(compress(names, kind)) for kind in kinds.tolist()]
    words = [f"the export has no {few}" if few else "undefined: 0/0" for few in lacking]
    return np.where(pd.isna(unseen), np.array(words, dtype=object)[place], unseen)


def run_criteria(rows: pd.DataFrame, durations: pd.Series) -> pd.DataFrame:
    """Return the criteria of the whole run: time-weighted values, and the time saved over all launches.

    ``rows`` are those of `launch_criteria`; ``durations`` maps launch_id to ns.
    """
    parts = []
    codes, names = pd.factorize(rows["criterion"])
    columns = {column: rows[column].to_numpy(dtype="float64") for column in ("value", "share", "speedup")}
    conditional = rows["value_conditional"].to_numpy(dtype="float64")
    times = rows["launch_id"].map(durations).to_numpy(dtype="float64")
    for code, name in enumerate(names):
        own = np.flatnonzero(codes == code)
        time, value, share, speedup = times[own], *(column[own] for column in columns.values())
        ok = ~np.isnan(value) & (time > 0) & ~np.isnan(speedup)
        row: dict[str, Any] = {"launch_id": None, "criterion": name, "flags": 0}
        if ok.any():
            whole = application_speedup(time[ok], value[ok], speedup[ok])
            row |= {
                "value": float(np.ravel(whole.criterion)[0]),
                "speedup": float(np.ravel(whole.speedup)[0]),
                "reason": None,
            }
            row["value_conditional"] = _weighted_mean(conditional[own][ok], time[ok])
            row["share"] = float(np.nansum(share[ok] * time[ok]) / time[ok].sum())
        else:
            row["reason"] = "no launch of the run has this criterion"
        parts.append(row)
    return pd.DataFrame(parts, columns=["launch_id", "criterion", *COLUMNS, "reason"])


def _weighted_mean(values: Array, weights: Array) -> float | None:
    """The mean over those that are known, weighted; None without such a value."""
    known = ~np.isnan(values)
    return float(np.average(values[known], weights=weights[known])) if known.any() else None


def null_criteria(domain: Sequence[Mapping[str, Any]], reason: str) -> pd.DataFrame:
    """Return the criteria of a run of which no launch can have one: one row per criterion of level launch, all null."""
    rows = [{"criterion": entry["name"], "flags": 0} for entry in domain if entry["level"] == "launch"]
    return pd.DataFrame(rows, columns=["launch_id", "criterion", *COLUMNS]).assign(reason=reason)


def host_sync(line: Timeline | None, graphs: int = 0) -> dict[str, Any]:
    """Criterion A of the run, from the timeline of its launches; None where none has a start and a duration.

    ``graphs`` is the number of CUDA graphs whose kernels the trace lacks: then it is unknown when the device worked.
    """
    row: dict[str, Any] = {"launch_id": None, "criterion": "host_sync", "flags": 0}
    if line is None:
        return row | {"reason": "the export has no start times; upload a trace of the run (nsys or nvprof)"}
    if graphs:
        lacking = f"the trace lacks the kernels of {graphs} launches of CUDA graphs"
        return row | {"reason": f"{lacking}; profile with --cuda-graph-trace=node"}
    bad = line.suspected
    ours = formula.host_sync_of_sums(line.busy_ns, line.span_ns, overlaps=line.overlapped, suspected=bad)
    printed = formula.host_sync_of_sums(line.total_ns, line.last_end_ns, "as_published", suspected=bad)
    return row | {
        "value": float(ours.value),
        "share": float(ours.share),
        "speedup": float(ours.speedup),
        "value_as_published": float(printed.raw),
        "speedup_as_published": float(printed.speedup),
        "value_conditional": float(ours.value),
        "flags": int(ours.flags),
        "reason": None,
    }
