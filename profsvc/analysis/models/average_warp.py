"""The work-flow graph of an average warp of a launch, from the inputs of the performance models."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from profsvc.formulas.memory_hierarchy.work_flow import (
    BARRIER,
    COMPUTE,
    ENTRY,
    EXIT,
    GLOBAL,
    SHARED,
    Graph,
    wfg_evaluate,
)

NEEDED = ("insts_all", "mem_insts", "avg_trans_warp", "request_bytes", "Mem_L", "dram_sustained", "freq", "active_sms",
          "N", "total_warps", "issue_cycles", "avg_inst_lat")  # fmt: skip
BOUNDS = ("issue", "latency", "bandwidth")


class AverageWarp(NamedTuple):
    """Cycles of one warp and of the resident warps of an SM, the time of the launch by them, and what sets it.

    ``stalls`` are the cycles of a warp by data, bank conflicts and divergence; ``balance`` is computation over memory
    time. ``missing`` names the inputs that lack a value.
    """

    cycles_of_a_warp: float
    cycles: float
    time_s: float
    bound: str | None
    stalls: tuple[float, ...]
    balance: float
    missing: tuple[str, ...] = ()


def average_warp(values: Mapping[str, Any], launch: int = 0) -> AverageWarp:
    """Return the answer for a launch: a loop of loads and the instructions that wait for them, as often as it waits."""
    v = {name: _of(values, name, launch) for name in (*NEEDED, "periods", "n_sync", "O_bank")}
    unknown = np.nan, np.nan, np.nan, None, (), np.nan
    if missing := tuple(name for name in NEEDED if not np.isfinite(v[name])):
        return AverageWarp(*unknown, missing)
    waits = v["periods"] if np.isfinite(v["periods"]) else v["mem_insts"]
    waits = max(waits, 1.0)
    loads, barriers = v["mem_insts"] / waits, np.nan_to_num(v["n_sync"])
    work = max(v["insts_all"] - v["mem_insts"] - barriers, 0.0) / waits
    conflicts = np.nan_to_num(v["O_bank"]) * v["active_sms"] / v["total_warps"]
    back = (waits - 1) / waits
    graph = Graph(
        kind=[ENTRY, GLOBAL, COMPUTE, SHARED, BARRIER, EXIT],
        n_insts=[0, loads, work, 1 if conflicts else 0, barriers, 0],
        src=[0, 1, 2, 2, 3, 4], dst=[1, 2, 1, 3, 4, 5], prob=[1, 1, back, 1 - back, 1, 1],
        load=[1], use=[2],
        transactions=[1, v["avg_trans_warp"], 1, 1, 1, 1],
        bank_degree=[1, 1, 1, 1 + conflicts / v["issue_cycles"], 1, 1],
    )  # fmt: skip
    bytes_per_cycle = v["dram_sustained"] / (v["active_sms"] * v["freq"])
    flow = wfg_evaluate(graph, v["N"], v["Mem_L"], bytes_per_cycle, v["request_bytes"] / v["avg_trans_warp"],
                        v["issue_cycles"], v["avg_inst_lat"])  # fmt: skip
    rounds = max(1.0, v["total_warps"] / (v["N"] * v["active_sms"]))
    return AverageWarp(
        float(flow.T_1), float(flow.T_W), float(flow.T_W) * rounds / v["freq"],
        BOUNDS[flow.bound] if flow.bound >= 0 else None, tuple(float(x) for x in flow.stalls), float(flow.balance),
    )  # fmt: skip


def _of(values: Mapping[str, Any], name: str, launch: int) -> float:
    value = np.ravel(np.asarray(values[name], dtype=np.float64))
    return float(value[launch if value.size > 1 else 0])
