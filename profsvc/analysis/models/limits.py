"""What limits a launch whatever its time: peaks and bandwidths, the mix of instructions, resources, latency, waves."""

from typing import Any

import numpy as np
import pandas as pd

from profsvc.analysis.counters.arrays import Counts
from profsvc.analysis.models.answer import Answer, Array, decode
from profsvc.analysis.models.inputs import Values
from profsvc.analysis.models.timing import BOUNDS
from profsvc.analysis.potential.tensor_work import TENSOR_TYPES
from profsvc.formulas.numerics.flags import Flag
from profsvc.formulas.performance import peak_estimates
from profsvc.formulas.performance.latency import exposed, warps_for_hiding
from profsvc.formulas.performance.occupancy import RESOURCES, Limits, staircase
from profsvc.formulas.performance.occupancy import occupancy as fitting
from profsvc.formulas.performance.roofline import MEMORY, intensity
from profsvc.formulas.performance.roofline import roofline as below
from profsvc.formulas.performance.time_bound import time_bound as least_time

LEVELS = ("dram", "l2", "l1")
PEAKS = ("peak", "mix of instructions", "tensor pipe")
CEILINGS = dict(enumerate((*PEAKS, *LEVELS)))
LIMITERS = dict(enumerate(RESOURCES))
SHARED_MEMORY = RESOURCES.index("shared")
HALF_OF_LAST_DIGIT = 5.0  # bytes, of a number of Kbyte with two decimals
# Rates that differ by no more than rounding are one.
RELATIVE_TOLERANCE = 1e-9


def roofline(v: Values) -> list[Answer]:
    """Intensity at each level of memory; attainable rate, bound and ceiling at the lowest of them; the least time."""
    peak = np.minimum(v["fp_peak"], v["mix_peak"])
    rows = []
    for level in LEVELS:
        band = np.asarray(v[f"{level}_bandwidth"])[..., np.newaxis]
        ratio = intensity(v["flop"], v[f"{level}_bytes"]).value
        rows.append((ratio, below(ratio, peak[..., np.newaxis], band), v[f"{level}_bytes"] / v[f"{level}_bandwidth"]))
    rates = np.broadcast_arrays(*(np.where(np.isnan(r.attainable), np.inf, r.attainable) for _, r, _ in rows))
    known, attainable = ~np.isnan(rows[0][1].attainable), np.minimum.reduce(rates)
    place = np.where(attainable == rates[0], 0, np.where(attainable == rates[1], 1, 2))
    in_memory = np.choose(place, [r.bound == MEMORY for _, r, _ in rows])
    by_tensor = (v["tensor_s"] > 0) & (v["tensor_s"] >= v["flop"] / peak * (1 - RELATIVE_TOLERANCE))
    pipe = np.where(by_tensor, 2, np.where(v["mix_peak"] < v["fp_peak"], 1, 0))
    ceiling = np.where(in_memory, len(PEAKS) + place, pipe)
    moving = np.fmax.reduce(np.broadcast_arrays(*(seconds for _, _, seconds in rows)))
    time_s = np.maximum(v["flop"] / peak, moving)
    return [
        Answer("time_ns", np.where(known, time_s * 1e9, np.nan), "ns", rows[0][1].flags),
        Answer("flop_per_s", v["flop"] / v["duration_s"], "flop/s"),
        Answer("attainable", np.where(known, attainable, np.nan), "flop/s"),
        Answer("ridge", rows[0][1].ridge, "flop/byte"),
        *(Answer(f"intensity_{level}", _finite(row[0]), "flop/byte") for level, row in zip(LEVELS, rows, strict=True)),
        Answer("bound", np.where(known, in_memory, np.nan), names=BOUNDS),
        Answer("ceiling", np.where(known, ceiling, np.nan), names=CEILINGS),
    ]


def tensor_rooflines(c: Counts, figures: pd.DataFrame) -> list[Answer]:
    """Rate of the operations of each type of matrix product, and the peak below which it lies; where there are any."""
    seconds, answers = c["duration_ns"] * 1e-9, []
    for kind in TENSOR_TYPES:
        done = np.where(c[f"tensor_ops_{kind}"] > 0, c[f"tensor_ops_{kind}"], np.nan)
        peak = figures[f"tensor_{kind}_peak_op_per_s"].to_numpy(dtype="float64")
        answers.append(Answer(f"tensor_{kind}_op_per_s", done / seconds, "op/s"))
        answers.append(Answer(f"tensor_{kind}_peak_op_per_s", np.where(np.isnan(done), np.nan, peak), "op/s"))
    return answers


def _finite(x: Any) -> Any:
    return np.where(np.isinf(x), np.nan, x)


def time_bound(v: Values) -> list[Answer]:
    """Least time, the measured time above it, and the part of that which missing overlap cannot explain."""
    r = least_time(v["flop"], v["fp_peak"], v["dram_bytes"], v["dram_bandwidth"], v["duration_s"])
    return [
        Answer("t_min_ns", r.t_min * 1e9, "ns", r.flags),
        Answer("t_delta_ns", r.t_delta * 1e9, "ns"),
        Answer("unexplained_ns", r.unexplained * 1e9, "ns"),
        Answer("bound", decode(r.bound), names=BOUNDS),
    ]


def ryoo(v: Values) -> list[Answer]:
    """Arithmetic rate and bandwidth of a launch whose instructions issue without a pause, and the time at both."""
    lanes = v["SIMD_width"] * v["sms"]
    # Matrix instructions stand in the slots that no plain one has; what they do there is the rest of the operations.
    plain, wide = v["plain"] / v["slots"], v["wide"] / v["slots"]
    rest = np.maximum(0.0, 1.0 - plain - wide)
    done = np.where(v["tensor_ops"] > 0, v["tensor_ops"] / (v["warp"] * v["total_warps"] * v["slots"] * rest), 0.0)
    shares, flops = (np.stack(np.broadcast_arrays(*x), axis=-1) for x in ((plain, wide, rest), (1.0, 2.0, done)))
    potential = peak_estimates.potential_throughput(shares, flops, lanes * v["freq"])
    share = v["mem_insts"] / v["slots"]
    demand = peak_estimates.bandwidth_demand(lanes, share, v["access_bytes"], v["freq"])
    limited = peak_estimates.bandwidth_limited(potential.value, demand.value, v["bandwidth"])
    return [
        Answer("potential_flop_per_s", potential.value, "flop/s", potential.flags),
        Answer("demand_bytes_per_s", demand.value, "byte/s", demand.flags),
        Answer("limited_flop_per_s", limited.value, "flop/s", limited.flags),
    ]


def occupancy(v: Values, limits: Limits) -> list[Answer]:
    """Share of the warp slots that can be taken, the blocks that fit, and the resource that keeps out the next one.

    Where the export has limits of its own and they differ: INPUT_SUSPECT, and both numbers of the resource.
    """
    exported = np.stack(np.broadcast_arrays(*(v[f"exported_limit_{name}"] for name in RESOURCES)), axis=-1)
    shape = (v["threads_per_block"], v["registers_per_thread"])
    r = fitting(*shape, _unrounded(shape, v["shared_bytes_per_block"], limits, exported[..., SHARED_MEMORY]), limits)
    # A tool gives a resource that is not used the blocks that the SM has slots for.
    unused = np.isinf(r.allowed) & (exported >= limits.max_blocks_per_sm)
    differs = ~np.isnan(exported) & ~np.isnan(r.allowed) & (r.allowed != exported) & ~unused
    suspicious = np.where(differs.any(axis=-1), int(Flag.INPUT_SUSPECT), 0)
    both = [
        Answer(f"limit_{name}{suffix}", np.where(differs, side, np.nan)[..., place], "block/SM", suspicious)
        for place, name in enumerate(RESOURCES)
        for suffix, side in (("", r.allowed), ("_exported", exported))
    ]
    return [
        Answer("occupancy", r.occupancy, "1", r.flags | suspicious),
        Answer("blocks", r.blocks, "block/SM", suspicious),
        Answer("limiter", decode(r.limiter), "1", suspicious, names=LIMITERS),
        *both,
    ]


def _unrounded(shape: tuple[Array, Array], printed: Array, limits: Limits, exported: Array) -> Array:
    """Shared memory of a block, within the rounding of a page, with which the limit is the exported one; else as is.

    A details page prints two decimals of a Kbyte: 2.05 is 2045 to 2055 bytes, on either side of an allocation step.
    """
    rounded = (printed >= 1000) & (np.abs(printed - 10 * np.rint(printed / 10)) < 1e-6)
    tries = [printed + np.where(rounded, side * HALF_OF_LAST_DIGIT, 0.0) for side in (0, -1, 1)]
    fits = [fitting(*shape, one, limits).allowed[..., SHARED_MEMORY] == exported for one in tries]
    return np.select(fits, tries, default=printed)


def latency_hiding(v: Values) -> list[Answer]:
    """Warps that hide a memory period, and the share of it that stays exposed with those there are."""
    computing = v["issue_cycles"] * v["insts_all"] / v["mem_insts"]
    period = v["Mem_L"]
    return [
        Answer("warps_needed", _finite(warps_for_hiding(period, computing)), "warp"),
        Answer("exposed_share", exposed(period, computing, v["N"]) / period),
    ]


def waves(v: Values) -> list[Answer]:
    """Waves in which the blocks run, and the share of the slots that are taken over all of them."""
    r = staircase(v["blocks"], v["sms"] * v["blocks_per_sm"])
    return [Answer("waves", r.waves, "wave", r.flags), Answer("utilization", r.utilization)]
