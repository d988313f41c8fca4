"""A launch split into what its warps wait for alone, and what its units are busy with: its time with other numbers.

The latency of a warp without others follows from its stall reasons, the time of each unit from its busy share. What
the measured time is above both is waiting in queues (`profsvc.formulas.loaded_latency`), of which the share is kept.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from profsvc.analysis.counts import Counts
from profsvc.analysis.potential import ramp_ns
from profsvc.analysis.useful_time import UNITS, busy
from profsvc.formulas.loaded_latency import loaded_time, queueing_share, rounds_of, scheduler_imbalance, unloaded_wait

Array = NDArray[np.float64]
Values = Mapping[str, Any]
LATENCY, LAUNCH = "latency", "launch"
ALL = (*UNITS, LAUNCH)
# Units that all SMs share; of the others an SM has its own, and of these each scheduler its part.
OF_DEVICE = ("dram", "l2", LAUNCH)
OF_SCHEDULERS = ("fp32", "fp64", "tensor", "integer", "issue")
# What warps wait for in line, and the units behind it.
QUEUES = {
    "memory": ("dram", "l2", "l1"),
    "sm": ("fp32", "fp64", "tensor", "xu", "integer", "issue"),
    LAUNCH: (LAUNCH,),
}
# Unit of an SM -> the input that is its rate.
RATES = {"fp32": "SIMD_width", "integer": "SIMD_width", "fp64": "fp64_lanes", "xu": "SFU_width", "issue": "schedulers"}
NEEDED = ("duration_s", "freq", "sms", "blocks", "N", "insts_all", "inst_latency", "memory_wait", "periods", "Mem_L",
          "schedulers")  # fmt: skip


class Parts(NamedTuple):
    """A launch as it was measured: times [s] and, of one warp that no other disturbs, cycles.

    ``fixed`` and ``memory`` are the cycles that no other warp causes, ``queued`` those of each of `QUEUES` that others
    do. ``unit_s`` is the time of each unit of `ALL` at the rate that it sustains, ``peak_s`` at its peak, as a mean
    over the SMs. ``turnover`` are the cycles until the next block begins.
    """

    time_s: float
    ramp_s: float
    fixed: float
    memory: float
    queued: dict[str, float]
    turnover: float
    unit_s: dict[str, float]
    peak_s: dict[str, float]


class Predicted(NamedTuple):
    """Times [s] of scenarios: expected, with full overlap and no queue, with no overlap, at the peak of all units."""

    time_s: Array
    low_s: Array
    high_s: Array
    peak_s: Array
    bound: list[str]


def lacking(now: Values) -> list[str]:
    """Name the inputs without which the parts of a launch are not known."""
    return [name for name in NEEDED if not np.isfinite(now[name]).all()]


def parts_of(counters: pd.DataFrame, now: Values) -> Parts:
    """Split the one launch of ``counters``, whose inputs are ``now``."""
    v = {name: float(np.ravel(value)[0]) for name, value in now.items()}
    counts, T, n = Counts(counters), v["duration_s"], v["insts_all"]
    peak = {unit: float(np.nan_to_num(share[0])) for unit, share in busy(counts).items()}
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
    return Parts(T, ramp, fixed, memory, queued, turnover, unit_s, peak_s)


@np.errstate(all="ignore")
def predicted(parts: Parts, base: Values, values: Values) -> Predicted:
    """Return the times of scenarios, out of the parts of the launch as it is.

    ``base`` are its inputs, ``values`` those of the scenarios, flat arrays. The work of the launch is held: other
    warps have more or less of it. What warps waited for memory beyond its latency they waited in the queue of memory,
    what they waited for other warps in that of the SM.
    """
    active = parts.time_s - parts.ramp_s
    (alone,), many = _latency_s(parts, base, base), _latency_s(parts, base, values)
    longer = {name: parts.queued[name] * alone / (parts.fixed + parts.memory + parts.turnover) for name in parts.queued}
    now, then = _busiest(parts.unit_s, base, base), _busiest(parts.unit_s, base, values)
    measured, each = [], []
    for name, units in QUEUES.items():
        least = max(now[unit][0] for unit in units)
        time = max(alone + longer.get(name, 0.0), least)
        k = queueing_share(time, alone, least).value
        measured.append(time)
        each.append(loaded_time(many, np.max([then[unit] for unit in units], axis=0), k).value)
    # What the launch took beyond, such as for uneven blocks, stays in proportion.
    beyond = active / max(measured)
    busiest = np.stack([then[unit] for unit in ALL])
    units, place = busiest.max(axis=0), busiest.argmax(axis=0)
    bound = [LATENCY if wait > unit else ALL[i] for wait, unit, i in zip(many, units, place, strict=True)]
    peak = peak_time(parts, base, values)
    time_s = np.maximum(parts.ramp_s + beyond * np.max(each, axis=0), peak)
    low = np.maximum(parts.ramp_s + min(1.0, beyond) * np.maximum(many, units), peak)
    high = np.maximum(parts.ramp_s + beyond * (many + units), time_s)
    return Predicted(time_s, np.minimum(low, time_s), high, peak, bound)


def peak_time(parts: Parts, base: Values, values: Values) -> Array:
    """Time [s] of the busiest unit at its peak, its work spread evenly: no launch of this work is faster."""
    per_sm = _ratio(base, values, "sms") * _ratio(base, values, "freq")
    each = [
        parts.peak_s[unit] * (_shared(unit, base, values) if unit in OF_DEVICE else per_sm * _rate(unit, base, values))
        for unit in ALL
    ]
    return np.asarray(np.max(np.broadcast_arrays(*each), axis=0))


def _ratio(base: Values, values: Values, name: str) -> Array:
    return np.atleast_1d(np.asarray(base[name] / values[name], dtype=np.float64))


def _rate(unit: str, base: Values, values: Values) -> Array:
    ratio = _ratio(base, values, RATES[unit]) if unit in RATES else np.ones(1)
    return np.where(np.isfinite(ratio), ratio, 1.0)


def _shared(unit: str, base: Values, values: Values) -> Array:
    """Time of a unit that all SMs share, over what it is now."""
    if unit == LAUNCH:
        return 1 / _ratio(base, values, "blocks")
    return _ratio(base, values, "bandwidth" if unit == "dram" else "freq")


def _busiest(unit_s: Mapping[str, float], base: Values, values: Values) -> dict[str, Array]:
    """Time of each unit of `ALL`, on the SM with most blocks and its scheduler with most warps."""
    blocks, sms = np.asarray(values["blocks"]), np.minimum(values["sms"], values["blocks"])
    of_busiest = np.ceil(blocks / sms) / blocks * base["sms"] * _ratio(base, values, "freq")
    uneven = scheduler_imbalance(values["N"], values["schedulers"]).value
    found = {}
    for unit in ALL:
        own = _shared(unit, base, values) if unit in OF_DEVICE else of_busiest * _rate(unit, base, values)
        found[unit] = np.atleast_1d(unit_s[unit] * (own * uneven if unit in OF_SCHEDULERS else own))
    return dict(zip(found, np.broadcast_arrays(*found.values()), strict=True))


def _rounds(base: Values, values: Values) -> Array:
    """Rounds of blocks one after another; with other warps resident, as many as their number says."""
    blocks, sms = np.asarray(values["blocks"]), np.minimum(values["sms"], values["blocks"])
    fit = np.minimum(values["blocks_per_sm"], np.ceil(blocks / sms))
    placed = rounds_of(blocks, sms, fit)
    return np.atleast_1d(placed.rounds * fit * values["warps_per_block"] / values["N"])


def _latency_s(parts: Parts, base: Values, values: Values) -> Array:
    """Time of all rounds of warps that wait for nothing but themselves."""
    total = base["blocks"] * base["warps_per_block"]
    each = total / (values["blocks"] * values["warps_per_block"])
    memory = parts.memory / _ratio(base, values, "Mem_L") if parts.memory > 0 else 0.0
    cycles = (parts.fixed + memory) * each + parts.turnover
    return np.atleast_1d(np.asarray(_rounds(base, values) * cycles / values["freq"]))
