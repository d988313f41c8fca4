"""Overall potential of each launch and of the run: published form, joint bound and roofline ceiling."""

from collections.abc import Mapping

import numpy as np
import pandas as pd

from profsvc.analysis.counters.arrays import Counts
from profsvc.analysis.potential.advice import LATENCY, MEMORY_UNITS
from profsvc.analysis.potential.latency import fill_ns, with_chains
from profsvc.analysis.potential.tensor_work import by_warp_groups, tensor_time
from profsvc.analysis.potential.useful_time import (
    UNITS,
    busy_shares,
    may_need_less,
    useful_times,
)
from profsvc.formulas.numerics.flags import Flag
from profsvc.formulas.performance.speedup import potential_speedup
from profsvc.formulas.performance.useful_work import JointBound, joint_bound

# What no rearrangement of the same arithmetic can avoid: data from DRAM, and the arithmetic itself.
ROOFLINE_UNITS = ("dram", "fp32", "fp64", "tensor")

SHARED_UNITS = ("dram", "l2")
"""Units that all SMs share."""

# Nsight Compute calls a launch latency bound when no throughput passes 60 % of its peak.
LATENCY_BOUND_BELOW = 0.6
# Below this share of the time, data and arithmetic are too little for a roofline to mean anything.
MIN_TIME_SHARE = 1e-3


def ramp_ns(c: Counts) -> np.ndarray:
    """Time in which no SM worked: launch and drain."""
    with np.errstate(all="ignore"):
        idle = 1.0 - c["sm_active_cycles_max"] / c["sm_elapsed_cycles_avg"]
    return np.clip(np.nan_to_num(idle), 0.0, 1.0) * c["duration_ns"]


def start_ns(c: Counts) -> np.ndarray:
    """Time that a launch takes whatever its units do: launch and drain, and until the first data arrive."""
    return np.asarray(ramp_ns(c) + fill_ns(c))


@np.errstate(all="ignore")
def needed_ns(c: Counts, figures: pd.DataFrame, times: pd.DataFrame, share: np.ndarray) -> np.ndarray:
    """Time that the useful work of each unit needs, in ns, of shape (launches, units).

    It is the time at the rate that the unit sustains, or that of loads that wait for each other. Units of the SMs need
    no more than the mean SM worked: what they did in that time, they sustained, and time of idle SMs is not needed.
    Memory behind the SMs works for all of them. Where warp groups would multiply, what their matrices need counts.
    """
    active = c["sm_active_cycles_avg"] / c["sm_elapsed_cycles_avg"]
    worked = c["duration_ns"] * np.where((active > 0) & (active < 1), active, np.nan)
    of_sm = np.array([unit not in SHARED_UNITS for unit in times])
    at_rate = by_warp_groups(c, figures, times, times.to_numpy(dtype="float64") / share)
    needed = np.where(of_sm & (at_rate > worked[:, None]), worked[:, None], at_rate)
    return with_chains(c, needed, times["issue"].to_numpy(dtype="float64"), UNITS.index("l2"))


@np.errstate(all="ignore")
def _throughput_ratios(
    c: Counts, figures: pd.DataFrame, measured: Mapping[str, float]
) -> tuple[np.ndarray, np.ndarray]:
    """Achieved over attainable rate of DRAM, and of the busiest floating-point class, as the source defines them.

    What was not ``measured`` of the device is taken to attain its peak.
    """
    seconds = c["duration_ns"] * 1e-9
    rates = {}
    for kind, prefix in (("fp32", "sp"), ("fp64", "dp")):
        parts = [c[f"flop_count_{prefix}_{op}"] for op in ("add", "mul", "fma", "fma")]
        flop = np.where(np.isnan(parts).all(axis=0), np.nan, np.nansum(parts, axis=0))
        peak = figures[f"{kind}_peak_flop_per_s"].to_numpy(dtype="float64")
        rates[kind] = flop / seconds / (peak * measured.get(kind, 1.0))
    rates["tensor"] = tensor_time(c, figures)[0] / seconds / measured.get("tensor", 1.0)
    memory = c["dram_bytes"] / seconds / figures["dram_peak_bytes_per_s"].to_numpy(dtype="float64")
    memory = np.where(np.isnan(memory), c["dram_throughput_fraction"], memory)
    return memory / measured.get("dram", 1.0), np.fmax.reduce(list(rates.values()))


def _published_speedup(c: Counts, figures: pd.DataFrame, measured: Mapping[str, float]) -> np.ndarray:
    memory, arithmetic = _throughput_ratios(c, figures, measured)
    with np.errstate(all="ignore"):
        bound = np.where(c["sol_memory_fraction"] >= c["sol_sm_fraction"], "memory", "compute")
    result = potential_speedup(memory, arithmetic, bound, form="as_published")
    return np.asarray(result.speedup, dtype="float64")


@np.errstate(all="ignore")
def _max_unknown_time(c: Counts, times: pd.DataFrame, share: np.ndarray, T: np.ndarray) -> np.ndarray:
    """Return the longest useful time that a unit may have whose own is not known, in ns; 0 where it is.

    No unit is busier than the tool says of the busiest on its side, memory or SM.
    """
    sides = {True: c["sol_memory_fraction"], False: c["sol_sm_fraction"]}
    busiest = np.column_stack([np.nan_to_num(sides[unit in MEMORY_UNITS], nan=1.0) for unit in UNITS])
    return np.where(times.isna(), busiest * T[:, None] / share, 0.0)


def _bound_flags(bound: JointBound, most: np.ndarray, whole: pd.DataFrame) -> np.ndarray:
    """Return the flags of a bound on the side, or the sides, that it lies on.

    ``most``: time that its ideal time may be if units whose useful time is not known need the most they can, in ns;
    ``whole``: of which units less may be needed. Only the unit that sets the ideal time matters: what the
    others need at most is less than what it needs.
    """
    is_floor = whole.to_numpy(dtype=bool)[np.arange(len(most)), bound.unit]
    flags = np.where(most > bound.ideal, int(Flag.UPPER_BOUND), 0) + np.where(is_floor, int(Flag.LOWER_BOUND), 0)
    return np.asarray(flags * (bound.unit >= 0), dtype="int64")


def launch_potentials(
    counters: pd.DataFrame,
    figures: pd.DataFrame,
    attainable: Mapping[str, float],
    measured: Mapping[str, float] | None = None,
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return the potential of each launch (one row per launch) and the useful times behind it (one column per unit).

    ``attainable``: share of its peak that a unit sustains; ``measured``: those the published form knows of.
    """
    c = Counts(counters)
    T, ramp, times = c["duration_ns"], ramp_ns(c), useful_times(c, figures)
    share = np.array([attainable[u] for u in UNITS])
    needed = needed_ns(c, figures, times, share)
    start = start_ns(c)
    joint = joint_bound(T, start, needed, np.ones(len(UNITS)))
    ratio = {}
    for name, members in (("mem", MEMORY_UNITS), ("arith", [u for u in UNITS if u not in MEMORY_UNITS])):
        places = [UNITS.index(unit) for unit in members]
        part = joint_bound(T, start, needed[:, places], np.ones(len(places)))
        ratio[name] = part.ideal / T
    # At the peak itself: what a unit usually sustains has been passed by code that experts tuned.
    roof = joint_bound(T, ramp, times[list(ROOFLINE_UNITS)].to_numpy(), np.ones(len(ROOFLINE_UNITS)))
    arithmetic = times[["fp32", "fp64", "tensor"]].fillna(0.0).max(axis=1).to_numpy()
    most = _max_unknown_time(c, times, share, T)
    most_roof = (most * share)[:, [UNITS.index(unit) for unit in ROOFLINE_UNITS]].max(axis=1)
    has_roof = (arithmetic > MIN_TIME_SHARE * T) | (times["dram"].fillna(0.0).to_numpy() > MIN_TIME_SHARE * T)
    is_drain_known = (c["sm_active_cycles_max"] >= 0) & (c["sm_elapsed_cycles_avg"] > 0)
    drain = np.where(is_drain_known, start, T)
    whole = may_need_less(c, figures)
    flags = _bound_flags(joint, np.fmin(T, drain + most.max(axis=1)), whole)
    is_roof_sure = ((times > MIN_TIME_SHARE * T[:, None]) & ~whole)[list(ROOFLINE_UNITS)].any(axis=1).to_numpy()
    roof_flags = _bound_flags(roof, np.fmin(T, drain + most_roof), whole[list(ROOFLINE_UNITS)])
    roof_flags |= np.where(is_roof_sure, 0, int(Flag.UPPER_BOUND))
    # Of next to no data and arithmetic nothing follows: what else the launch does, another version need not do.
    ceiling = np.where((most_roof > roof.ideal) | ~has_roof, np.nan, roof.speedup)
    rows = pd.DataFrame(
        {
            "bound": busiest_units(c),
            "ideal_bound": [UNITS[i] if i >= 0 else None for i in joint.unit],
            "mem_throughput_ratio": ratio["mem"],
            "arith_throughput_ratio": ratio["arith"],
            "speedup": joint.speedup,
            "speedup_as_published": _published_speedup(c, figures, measured or {}),
            "speedup_ceiling": ceiling,
            "ideal_ns": joint.ideal,
            "duration_ns": T,
            "ceiling_flags": roof_flags * ~np.isnan(ceiling),
            "flags": flags,
            "reason": [_reason(t, i) for t, i in zip(T, joint.unit, strict=True)],
        },
        index=counters.index,
    )
    return rows, times


def busiest_units(c: Counts) -> list[str | None]:
    """Name the busiest unit of each launch, or latency if no unit is near its peak; None if all are unknown."""
    used = busy_shares(c)
    table = np.column_stack([np.where(np.isnan(used[u]), -1.0, used[u]) for u in UNITS])
    most, place = table.max(axis=1), table.argmax(axis=1)
    return [
        None if m < 0 else UNITS[i] if m >= LATENCY_BOUND_BELOW else LATENCY for m, i in zip(most, place, strict=True)
    ]


def _reason(duration: float, unit: int) -> str | None:
    if unit >= 0:
        return None
    if not duration > 0:
        return "the export has no duration; collect gpu__time_duration.sum"
    return "the export has no utilization and no work counters; collect at least the section SpeedOfLight"


def run_potential(launches: pd.DataFrame, others: int = 0, others_ns: float = 0.0) -> dict[str, object]:
    """Potential of all launches together: the sum of times over the sum of ideal times.

    Launches without a bound keep their time, as do ``others``, which are not among ``launches`` and took
    ``others_ns``; the flag LOWER_BOUND says that there were some, or that the ideal time of some is a bound.
    """
    T = launches["duration_ns"].to_numpy(dtype="float64")
    ideal = launches["ideal_ns"].to_numpy(dtype="float64")
    known = ~np.isnan(ideal)
    if not known.any():
        why = launches["reason"].dropna().mode() if "reason" in launches else ()
        said = f"no launch of the run has a potential{': ' if len(why) else ''}{''.join(why[:1])}"
        total = float(np.nansum(T)) + others_ns
        return {"bound": None, "speedup": None, "duration_ns": total or None, "reason": said}
    # A launch without a ceiling may take no time at all: that of the run holds, and is higher than it might be.
    own = T / launches["speedup_ceiling"].to_numpy(dtype="float64")
    least = np.where(known, np.nan_to_num(own), np.nan_to_num(T))
    loose = int(Flag.UPPER_BOUND) if (known & np.isnan(own)).any() else 0
    has_ceiling = bool((known & ~np.isnan(own)).any())
    rests = int(Flag.LOWER_BOUND) if others or (~known).any() else 0
    total, rest = float(np.nansum(T)) + others_ns, float(np.nansum(np.where(known, ideal, T))) + others_ns

    def heaviest(column: str, weight: np.ndarray) -> str | None:
        sums = pd.Series(weight).groupby(launches[column].to_numpy()).sum()
        return None if sums.empty else str(sums.idxmax())

    def weighted(column: str) -> float:
        return float(np.nansum(launches[column].to_numpy(dtype="float64")[known] * T[known]) / np.nansum(T[known]))

    def any_of(column: str) -> int:
        return int(np.bitwise_or.reduce(launches[column].to_numpy(dtype="int64")[known])) | rests

    return {
        "bound": heaviest("bound", np.nan_to_num(T)),
        "ideal_bound": heaviest("ideal_bound", np.where(known, ideal, 0.0)),
        "mem_throughput_ratio": weighted("mem_throughput_ratio"),
        "arith_throughput_ratio": weighted("arith_throughput_ratio"),
        "speedup": total / rest,
        "speedup_as_published": None,
        "speedup_ceiling": total / (float(least.sum()) + others_ns) if has_ceiling else np.nan,
        "ideal_ns": rest,
        "duration_ns": total,
        "ceiling_flags": any_of("ceiling_flags") | loose if has_ceiling else 0,
        "flags": any_of("flags"),
        "reason": None,
    }
