"""A launch split into what its warps wait for alone, and what its units are busy with: its time with other numbers.

The latency of a warp without others follows from its stall reasons, the time of each unit from its busy share. What
the measured time is above both is waiting in queues (`profsvc.formulas.performance.loaded_latency`), of which the share
is kept.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from profsvc.analysis.counters.arrays import Counts
from profsvc.analysis.potential.launch_potential import ramp_ns
from profsvc.analysis.potential.useful_time import UNITS, busy_shares
from profsvc.formulas.performance.loaded_latency import (
    loaded_time,
    queueing_share,
    rounds_of,
    scheduler_imbalance,
    unloaded_wait,
)

Array = NDArray[np.float64]
Values = Mapping[str, Any]
LATENCY, LAUNCH = "latency", "launch"
ALL_UNITS = (*UNITS, LAUNCH)
# Units that all SMs share; of the others an SM has its own, and of these each scheduler its part.
SHARED_UNITS = ("dram", "l2", LAUNCH)
SCHEDULER_UNITS = ("fp32", "fp64", "tensor", "integer", "issue")
# What warps wait for in line, and the units behind it.
QUEUES = {
    "memory": ("dram", "l2", "l1"),
    "sm": ("fp32", "fp64", "tensor", "xu", "integer", "issue"),
    LAUNCH: (LAUNCH,),
}
# Unit of an SM -> the input that is its rate.
RATES = {"fp32": "SIMD_width", "integer": "SIMD_width", "fp64": "fp64_lanes", "xu": "SFU_width", "issue": "schedulers"}
NEEDED_INPUTS = (
    "duration_s", "freq", "sms", "blocks", "N", "insts_all", "inst_latency", "memory_wait", "periods", "Mem_L",
    "schedulers",
)  # fmt: skip


class LaunchParts(NamedTuple):
    """A measured launch split into times [s] of units and cycles of one undisturbed warp.

    ``fixed`` and ``memory`` are the cycles that no other warp causes; ``queued`` holds the waiting cycles of each of
    `QUEUES` that other warps cause. ``unit_s`` is the time of each unit of `ALL_UNITS` at its sustained rate and
    ``peak_s`` at its peak rate, as means over the SMs. ``turnover`` counts the cycles until the next block begins.
    """

    time_s: float
    ramp_s: float
    fixed: float
    memory: float
    queued: dict[str, float]
    turnover: float
    unit_s: dict[str, float]
    peak_s: dict[str, float]


class ScenarioTimes(NamedTuple):
    """Times [s] of scenarios: expected, with full overlap and no queue, with no overlap, at the peak of all units."""

    time_s: Array
    low_s: Array
    high_s: Array
    peak_s: Array
    bound: list[str]


def missing_inputs(now: Values) -> list[str]:
    """Name the inputs without which the parts of a launch are not known."""
    return [name for name in NEEDED_INPUTS if not np.isfinite(now[name]).all()]


def split_launch(counters: pd.DataFrame, now: Values) -> LaunchParts:
    """Split the one launch of ``counters``, whose inputs are ``now``."""
    v = {name: float(np.ravel(value)[0]) for name, value in now.items()}
    counts, T, n = Counts(counters), v["duration_s"], v["insts_all"]
    peak = {unit: float(np.nan_to_num(share[0])) for unit, share in busy_shares(counts).items()}
    peak[LAUNCH] = v["blocks"] / v["block_rate"] / T if v["block_rate"] > 0 else 0.0
    attained = peak | {"dram": peak["dram"] * v["bandwidth"] / v["dram_sustained"]}
    memory = float(
        unloaded_wait(
            v["memory_wait"] * n, v["periods"] * v["Mem_L"], max(attained[u] for u in ("dram", "l2", "l1"))
        ).value
    )
    local = float(
        unloaded_wait(v["shared_wait"] * n, v["local_insts"] * v["hit_lat"], max(peak["l1"], peak["xu"])).value
    )
    fixed = v["inst_latency"] * n + float(np.nan_to_num(local))
    # Warps wait at a barrier for what the others of their block wait for: less of that, less at the barrier.
    others = (v["inst_life"] - v["barrier_wait"]) * n
    at_barriers = v["barrier_wait"] * n * min(1.0, (fixed + memory) / others) if others > 0 else 0.0
    rounds = float(_rounds(now, now)[0])
    each = v["inst_life"] * n
    # A block that follows another fetches its first instructions and constants: within a trip to memory it begins.
    turnover = float(np.clip(T * v["freq"] / rounds - each, 0.0, v["Mem_LD"])) if rounds > 1 else 0.0
    # With few blocks on an SM that time counts as idle, as launch and drain do.
    ramp = min(float(ramp_ns(counts)[0]) * 1e-9, max(0.0, T - rounds * (each + turnover) / v["freq"]))
    unit_s, peak_s = ({unit: min(1.0, share) * T for unit, share in one.items()} for one in (attained, peak))
    fixed += float(np.nan_to_num(at_barriers))
    queued = {"memory": v["memory_wait"] * n - memory}
    queued["sm"] = max(0.0, v["inst_life"] * n - fixed - memory - queued["memory"])
    return LaunchParts(T, ramp, fixed, memory, queued, turnover, unit_s, peak_s)


@np.errstate(all="ignore")
def predict_times(parts: LaunchParts, base: Values, values: Values) -> ScenarioTimes:
    """Return the times of scenarios, out of the parts of the launch as it is.

    ``base`` are its inputs, ``values`` those of the scenarios, flat arrays. The work of the launch is held: other
    warps have more or less of it. What warps waited for memory beyond its latency they waited in the queue of memory,
    what they waited for other warps in that of the SM.
    """
    active = parts.time_s - parts.ramp_s
    (alone,), many = _latency_s(parts, base, base), _latency_s(parts, base, values)
    longer = {name: parts.queued[name] * alone / (parts.fixed + parts.memory + parts.turnover) for name in parts.queued}
    now, then = _busiest_sm_times(parts.unit_s, base, base), _busiest_sm_times(parts.unit_s, base, values)
    measured, each = [], []
    for name, units in QUEUES.items():
        least = max(now[unit][0] for unit in units)
        time = max(alone + longer.get(name, 0.0), least)
        k = queueing_share(time, alone, least).value
        measured.append(time)
        each.append(loaded_time(many, np.max([then[unit] for unit in units], axis=0), k).value)
    # What the launch took beyond, such as for uneven blocks, stays in proportion.
    beyond = active / max(measured)
    busiest = np.stack([then[unit] for unit in ALL_UNITS])
    units, place = busiest.max(axis=0), busiest.argmax(axis=0)
    bound = [LATENCY if wait > unit else ALL_UNITS[i] for wait, unit, i in zip(many, units, place, strict=True)]
    peak = peak_time(parts, base, values)
    time_s = np.maximum(parts.ramp_s + beyond * np.max(each, axis=0), peak)
    low = np.maximum(parts.ramp_s + min(1.0, beyond) * np.maximum(many, units), peak)
    high = np.maximum(parts.ramp_s + beyond * (many + units), time_s)
    return ScenarioTimes(time_s, np.minimum(low, time_s), high, peak, bound)


def peak_time(parts: LaunchParts, base: Values, values: Values) -> Array:
    """Time [s] of the busiest unit at its peak, its work spread evenly: no launch of this work is faster."""
    per_sm = _input_ratio(base, values, "sms") * _input_ratio(base, values, "freq")
    each = [
        parts.peak_s[unit]
        * (
            _shared_unit_ratio(unit, base, values)
            if unit in SHARED_UNITS
            else per_sm * _unit_rate_ratio(unit, base, values)
        )
        for unit in ALL_UNITS
    ]
    return np.asarray(np.max(np.broadcast_arrays(*each), axis=0))


def _input_ratio(base: Values, values: Values, name: str) -> Array:
    return np.atleast_1d(np.asarray(base[name] / values[name], dtype=np.float64))


def _unit_rate_ratio(unit: str, base: Values, values: Values) -> Array:
    ratio = _input_ratio(base, values, RATES[unit]) if unit in RATES else np.ones(1)
    return np.where(np.isfinite(ratio), ratio, 1.0)


def _shared_unit_ratio(unit: str, base: Values, values: Values) -> Array:
    """Time of a unit that all SMs share, over what it is now."""
    if unit == LAUNCH:
        return 1 / _input_ratio(base, values, "blocks")
    return _input_ratio(base, values, "bandwidth" if unit == "dram" else "freq")


def _busiest_sm_times(unit_s: Mapping[str, float], base: Values, values: Values) -> dict[str, Array]:
    """Time of each unit of `ALL_UNITS`, on the SM with most blocks and its scheduler with most warps."""
    blocks, sms = np.asarray(values["blocks"]), np.minimum(values["sms"], values["blocks"])
    of_busiest = np.ceil(blocks / sms) / blocks * base["sms"] * _input_ratio(base, values, "freq")
    uneven = scheduler_imbalance(values["N"], values["schedulers"]).value
    found = {}
    for unit in ALL_UNITS:
        own = (
            _shared_unit_ratio(unit, base, values)
            if unit in SHARED_UNITS
            else of_busiest * _unit_rate_ratio(unit, base, values)
        )
        found[unit] = np.atleast_1d(unit_s[unit] * (own * uneven if unit in SCHEDULER_UNITS else own))
    return dict(zip(found, np.broadcast_arrays(*found.values()), strict=True))


def _rounds(base: Values, values: Values) -> Array:
    """Rounds of blocks one after another; with other warps resident, as many as their number says."""
    blocks, sms = np.asarray(values["blocks"]), np.minimum(values["sms"], values["blocks"])
    fit = np.minimum(values["blocks_per_sm"], np.ceil(blocks / sms))
    placed = rounds_of(blocks, sms, fit)
    return np.atleast_1d(placed.rounds * fit * values["warps_per_block"] / values["N"])


def _latency_s(parts: LaunchParts, base: Values, values: Values) -> Array:
    """Time of all rounds of warps that wait for nothing but themselves."""
    total = base["blocks"] * base["warps_per_block"]
    each = total / (values["blocks"] * values["warps_per_block"])
    memory = parts.memory / _input_ratio(base, values, "Mem_L") if parts.memory > 0 else 0.0
    cycles = (parts.fixed + memory) * each + parts.turnover
    return np.atleast_1d(np.asarray(_rounds(base, values) * cycles / values["freq"]))
