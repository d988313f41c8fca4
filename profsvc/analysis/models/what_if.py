"""What a launch would take on other SMs, with other grids, warps, clocks or bandwidths.

What a launch does (instructions, requests, hit ratios) is held; what follows from the machine is computed again, by the
table of inputs. The time is expected from the latency of its warps and the load of its units
(`profsvc.analysis.models.loaded_launch`); the changes of two published models stand beside it.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from profsvc.analysis.counters.arrays import Counts
from profsvc.analysis.models.inputs import Values, formula_arguments, input_names, model_inputs
from profsvc.analysis.models.resources import fitting_blocks
from profsvc.analysis.models.timing import CASES, at_least_peak_time, throughput_time
from profsvc.analysis.potential.tensor_work import has_tensor_work
from profsvc.formulas.mwp_cwp import exec_cycles
from profsvc.formulas.power.core_count import optimal_cores_closed
from profsvc.formulas.throughput import suggest_cores, suggest_frequency, suggest_warps, throughput

Array = NDArray[np.float64]
# What can be asked for -> the input that it is.
AXES = {
    "sms": "sms", "blocks": "blocks", "block_threads": "threads_per_block", "registers": "registers_per_thread",
    "shared_bytes": "shared_bytes_per_block", "warps": "N", "frequency_hz": "freq",
    "bandwidth_bytes_per_s": "bandwidth",
}  # fmt: skip
# Counts of a warp: of more warps, each has fewer.
WARP_COUNTS = (
    "insts_all", "sfu_insts", "fp_single", "fp_double", "n_sync", "mem_insts", "n_uncoal", "n_coal", "n_comp",
    "insts", "fp_insts", "plain", "wide", "loads", "periods", "local_insts",
)  # fmt: skip
# Inputs that are the machine's, and counters of the machine that another one does not have.
MACHINE_INPUTS = (
    "sms", "freq", "bandwidth", "SIMD_width", "fp64_lanes", "SFU_width", "blocks_per_sm", "Mem_LD", "dep_coal",
    "dep_uncoal", "hit_lat", "l2_lat", "avg_inst_lat", "shared_mem_config_bytes", "schedulers", "block_rate",
    "tensor_s", "Gamma", "constant_word", "same_address_rate", "store_departure", "l2_sustained",
)  # fmt: skip
MACHINE_COUNTERS = (
    "sm_count", "sms_used", "sm_clock_hz", "dram_peak_bytes_per_s", "fp32_peak_flop_per_s", "fp64_peak_flop_per_s",
    "blocks_per_sm_theoretical", "shared_mem_config_bytes", "schedulers_per_sm",
)  # fmt: skip
# What follows from the machine and the launch.
DERIVED = (
    "warps_per_block", "issue_cycles", "active_sms", "active_blocks_per_sm", "N", "M_Factor", "departure_delay",
    "Delta", "fp_lanes", "dram_lat", "Mem_L", "peak_plain", "peak_wide", "fp_peak", "mix_peak", "dram_bandwidth",
    "l1_bandwidth", "l2_bandwidth", "dram_sustained", "tensor_slots", "wide_slots", "slots",
    "vector_peak", "round_trip", "N_pw", *input_names("peak_time"),
)  # fmt: skip
# Times of DRAM that are counted in cycles of the SMs: at a lower clock they are fewer.
DRAM_TIMES = ("Mem_LD", "dep_coal", "dep_uncoal")
# Latency of a unit -> the figure of a device that it is.
LATENCIES = {"hit_lat": "l1_latency_cycles", "l2_lat": "l2_latency_cycles", "avg_inst_lat": "arithmetic_latency_cycles"}
# What limits a launch in a category of the throughput model.
CATEGORIES = {
    1: "departure and bandwidth", 2: "departure of requests", 3: "bandwidth", 4: "too few warps, bandwidth just enough",
    5: "too few warps", 6: "departure and bandwidth", 7: "departure of requests", 8: "bandwidth",
    9: "compute, bandwidth just enough", 10: "compute",
}  # fmt: skip
LIMITERS = {0: "departure of requests", 1: "bandwidth", 2: "warps"}
MODELS = ("mwp_cwp", "throughput")
WORK_HELD_NOTE = "instructions, requests and hit ratios are assumed unchanged on every machine"
SPILL_NOTE = "fewer registers can make the compiler spill to local memory, which is not predicted"
CLOCK_NOTE = "a clock change affects SMs and caches; the DRAM clock stays"


class Machine(NamedTuple):
    """What is known of a device: figures of the catalogue, memory of timing.toml, measured shares of peaks."""

    figures: Mapping[str, object]
    memory: Mapping[str, float] | None = None
    measured: Mapping[str, float] | None = None


class Answer(NamedTuple):
    """What a model says of scenarios: the time, what limits it, and all that the formula gave."""

    time_ns: Array
    limiter: list[str | None]
    result: Any


def current_inputs(counters: pd.DataFrame, inputs: Values) -> dict[str, Array]:
    """Return the inputs of one launch as they are, NaN where missing, from those of `model_inputs`."""
    if has_tensor_work(Counts(counters)).any():
        inputs = {**inputs} | {name: np.asarray(np.nan) for name in ("plain", "wide", "flop")}
    return {name: np.asarray(value).reshape(-1)[:1] for name, value in inputs.items()}


def inputs_on_machine(counters: pd.DataFrame, now: Mapping[str, Array], other: Machine) -> dict[str, Array]:
    """Return the inputs of a launch as they would be on another machine.

    Of a memory that is not known it keeps the times that it has now, of units their cycles.
    """
    own = {name: value for name, value in now.items() if name not in MACHINE_INPUTS and name not in DERIVED}
    ratio = np.asarray(other.figures["boost_clock_hz"], dtype=np.float64) / now["freq"]
    own |= {name: now[name] * ratio for name in DRAM_TIMES if name not in (other.memory or {})}
    own |= {name: now[name] for name, figure in LATENCIES.items() if other.figures.get(figure) is None}
    kept = counters.drop(columns=[name for name in MACHINE_COUNTERS if name in counters])
    found = model_inputs(kept, other.figures, other.memory, other.measured, own).values
    return {name: np.asarray(value).reshape(-1)[:1] for name, value in found.items()}


def scenario_inputs(
    counters: pd.DataFrame, now: Mapping[str, Array], machine: Machine, scenarios: Sequence[Mapping[str, float]]
) -> dict[str, Array]:
    """Return the inputs of a launch as it is, then in each scenario: a value for some of `AXES`; flat arrays.

    The work of the launch is held, whatever its warps. Blocks of other threads are as many as make the threads there
    are, unless the scenario says how many.
    """
    given: dict[str, Any] = {name: value for name, value in now.items() if name not in DERIVED}
    asked = {axis: np.array([False, *(axis in one for one in scenarios)]) for axis in AXES}
    own = {axis: float(now[name][0]) for axis, name in AXES.items()}
    v = {axis: np.array([own[axis], *(one.get(axis, own[axis]) for one in scenarios)]) for axis in AXES}
    threads = v["block_threads"]
    follow = asked["block_threads"] & ~asked["blocks"]
    blocks = np.where(follow, np.ceil(own["blocks"] * own["block_threads"] / threads), v["blocks"])
    warps_per_block = np.ceil(threads / now["warp"])
    each = now["blocks"] * now["warps_per_block"] / (blocks * warps_per_block)
    given |= {AXES[axis]: values for axis, values in v.items()} | {"blocks": blocks}
    given |= {name: now[name] * each for name in WARP_COUNTS} | {"total_warps": now["total_warps"] / each}
    of_block = asked["block_threads"] | asked["registers"] | asked["shared_bytes"]
    found = fitting_blocks(machine.figures, threads, v["registers"], v["shared_bytes"])
    fit = np.where(of_block, np.nan if found is None else found.blocks, now["blocks_per_sm"])
    resident = np.minimum(fit, np.ceil(blocks / np.minimum(v["sms"], blocks))) * warps_per_block
    N = np.where(asked["warps"], v["warps"], resident)
    given |= {"blocks_per_sm": fit, "N": N, "active_blocks_per_sm": N / warps_per_block}
    given |= {name: now[name] * (given["freq"] / now["freq"]) for name in DRAM_TIMES}
    given["tensor_s"] = now["tensor_s"] * (now["sms"] * now["freq"]) / (given["sms"] * given["freq"])
    inputs = model_inputs(counters, machine.figures, machine.memory, machine.measured, given).values
    return {
        name: np.broadcast_to(np.asarray(value).reshape(-1), (1 + len(scenarios),)) for name, value in inputs.items()
    }


def scenario_answers(values: Values) -> dict[str, Answer]:
    """Return what each model says of scenarios; NaN where an input of it is missing."""
    with np.errstate(all="ignore"):
        timed = exec_cycles(**formula_arguments("mwp_cwp", values))
        perf = throughput(**formula_arguments("throughput", values))
        cycles = timed.cycles_with_sync
        return {
            "mwp_cwp": Answer(
                at_least_peak_time(cycles / values["freq"] * 1e9, values)[0], _limiters(timed.limiter), timed
            ),
            "throughput": Answer(
                at_least_peak_time(throughput_time(perf, values), values)[0], _limiters(perf.limiter), perf
            ),
        }


def bound_names(said: Mapping[str, Answer]) -> dict[str, list[str | None]]:
    """Return in words what bounds each scenario: the case of the timing model, the category of the other."""
    timed, perf = (said[model].result for model in MODELS)
    return {
        "mwp_cwp": [CASES.get(int(case)) for case in timed.case],
        "throughput": [CATEGORIES.get(int(number)) for number in perf.category],
    }


def _limiters(codes: NDArray[np.int8]) -> list[str | None]:
    return [LIMITERS.get(int(code)) for code in codes]


def suggestions(values: Values, said: Mapping[str, Answer]) -> list[dict[str, Any]]:
    """Return the SMs, warps and clock that a launch can use as it is, by each model; none where unknown."""
    v = {name: value[0] for name, value in values.items()}
    timed, perf = ({name: x[0] for name, x in said[model].result._asdict().items()} for model in MODELS)
    finite, hiding = (np.where(np.isinf(x), np.nan, x) for x in (perf["BW"], perf["InfiN"]))
    cores = suggest_cores(perf["App"], perf["BW"], v["active_sms"], v["sms"])
    warps = suggest_warps(finite, v["mstr"], v["N"], np.maximum(hiding - 1, 1.0))
    clock = suggest_frequency(hiding, v["N"], v["freq"])
    closed = optimal_cores_closed(
        timed["MWP"], timed["CWP"], v["N"], timed["MWP_peak_bw"], v["active_sms"], float(timed["case"])
    )
    rows = [
        ("sms", "throughput", cores.value, v["sms"], "SMs that just saturate the bandwidth"),
        ("sms", "mwp_cwp", closed.cores, v["active_sms"], "SMs that just saturate the bandwidth"),
        ("warps", "throughput", warps.value, v["N"], "warps per SM that just saturate the bandwidth"),
        (
            "frequency_hz",
            "throughput",
            clock.value,
            v["freq"],
            "clock at which the resident warps just hide memory latency",
        ),
    ]
    return [
        {"what": what, "model": model, "value": float(value), "now": float(own), "meaning": words}
        for what, model, value, own, words in rows
        if np.isfinite(value)
    ]
