"""Models of the run time of a launch: memory and computation warps, benefits, throughput.

No predicted time is shorter than that of the work at the peaks of the device; the published forms are left as printed.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from profsvc import specs
from profsvc.analysis.models.answer import Answer, Array, decode
from profsvc.analysis.models.inputs import Values, formula_arguments, input_names
from profsvc.analysis.potential.launch_potential import MIN_TIME_SHARE
from profsvc.formulas import benefit as of_benefit
from profsvc.formulas import throughput as of_throughput
from profsvc.formulas.mwp_cwp import exec_cycles
from profsvc.formulas.numerics.flags import AS_PUBLISHED, CONSISTENT, Flag

BOUNDS = {0: "compute", 1: "memory"}
CASES = {1: "too few warps", 2: "memory", 3: "compute"}
BENEFITS = dict(enumerate(of_benefit.BENEFITS))


def _ns(cycles: Any, v: Values) -> Array:
    return np.asarray(cycles / v["freq"] * 1e9)


def peak_time_ns(v: Values) -> Array:
    """Time of the work at the peak of each unit that has to do it: the longest of those that are known."""
    issued = v["insts_all"] * v["total_warps"] / (v["schedulers"] * v["sms"] * v["freq"])
    units = (v[name] for name in input_names("peak_time"))
    each = (v["dram_bytes"] / v["bandwidth"], v["flop"] / v["fp_peak"], issued, *units)
    return np.asarray(np.fmax.reduce(np.broadcast_arrays(*each)) * 1e9)


def at_least_peak_time(time_ns: Array, v: Values) -> tuple[Array, Array]:
    """Return a predicted time, at least that of the work at the peaks of the device, and CLIPPED where that is more."""
    least = np.nan_to_num(peak_time_ns(v))
    return np.where(time_ns < least, least, time_ns), np.where(time_ns < least, int(Flag.CLIPPED), 0)


def _time_answer(time_ns: Array, v: Values, flags: Any) -> Answer:
    time_ns, clipped = at_least_peak_time(time_ns, v)
    return Answer("time_ns", time_ns, "ns", flags | clipped)


def mwp_cwp(v: Values) -> list[Answer]:
    """Cycles with barriers as a time, in both forms; the parallelism behind them and the case."""
    ours, printed = (exec_cycles(**formula_arguments("mwp_cwp", v), form=form) for form in (CONSISTENT, AS_PUBLISHED))
    return [
        _time_answer(_ns(ours.cycles_with_sync, v), v, ours.flags),
        Answer("time_ns", _ns(printed.cycles_with_sync, v), "ns", printed.flags, AS_PUBLISHED),
        Answer("MWP", ours.MWP, "warp"),
        Answer("CWP", ours.CWP, "warp"),
        Answer("MWP_peak_bw", np.where(np.isinf(ours.MWP_peak_bw), np.nan, ours.MWP_peak_bw), "warp"),
        Answer("CPI", ours.CPI, "cycle"),
        Answer("case", np.where(ours.case == 0, np.nan, ours.case), names=CASES),
    ]


def benefit(v: Values) -> list[Answer]:
    """Time in both forms and its parts; the share of it that each benefit would save, and what the best would give."""
    machine = of_benefit.Machine(**formula_arguments("machine", v))
    given = formula_arguments("benefit", v)
    ours, printed = (of_benefit.benefit(**given, machine=machine, form=form) for form in (CONSISTENT, AS_PUBLISHED))
    chart = of_benefit.benefit_chart(ours)
    parts = ("T_comp", "T_mem", "T_overlap")
    shares = [Answer(f"B_{name}", chart.share[..., k]) for k, name in BENEFITS.items()]
    most = np.clip(np.fmax.reduce([chart.share[..., k] for k in BENEFITS]), 0.0, 1.0)
    return [
        _time_answer(_ns(ours.T_exec, v), v, ours.flags),
        Answer("time_ns", _ns(printed.T_exec, v), "ns", printed.flags, AS_PUBLISHED),
        *(Answer(name, getattr(ours, name), "cycle") for name in parts),
        *shares,
        Answer("speedup", np.where((chart.best < 0) | (most > 1 - MIN_TIME_SHARE), np.nan, 1 / (1 - most))),
        Answer("bound", decode(ours.bound), names=BOUNDS),
        Answer("best", decode(chart.best), names=BENEFITS),
    ]


def throughput_time(r: of_throughput.Throughput, v: Values) -> Array:
    """Time of all rounds of warps, each of computation and of what no computation hides, a memory period a time."""
    periods = np.where(v["mem_insts"] == 0, 1.0, v["mem_insts"] / v["mstr"])
    rounds = v["total_warps"] / (v["N"] * v["active_sms"])
    idle = np.where(v["mem_insts"] == 0, 0.0, r.Idle)
    return _ns((r.EffComp * v["N"] + idle) * periods * rounds, v)


def throughput(v: Values) -> list[Answer]:
    """Time in both forms, performance with and without memory, the category, and how many SMs, warps and Hz it uses."""
    given = formula_arguments("throughput", v)
    ours, printed = (of_throughput.throughput(**given, form=form) for form in (CONSISTENT, AS_PUBLISHED))
    finite = np.where(np.isinf(ours.BW), np.nan, ours.BW)
    sms = of_throughput.suggest_cores(ours.App, ours.BW, v["active_sms"], v["sms"])
    warps = of_throughput.suggest_warps(finite, v["mstr"], v["N"], np.maximum(ours.InfiN - 1, 1.0))
    clock = of_throughput.suggest_frequency(np.where(np.isinf(ours.InfiN), np.nan, ours.InfiN), v["N"], v["freq"])
    kinds: Mapping[int, str] = {number: one.verdict for number, one in specs.categories().items()}
    return [
        _time_answer(throughput_time(ours, v), v, ours.flags),
        Answer("time_ns", throughput_time(printed, v), "ns", printed.flags, AS_PUBLISHED),
        Answer("flop_per_s", ours.Perf, "flop/s"),
        Answer("flop_per_s_without_memory", ours.Perf_comp, "flop/s"),
        Answer("hidden_ratio", ours.hidden_ratio),
        Answer("saturation", ours.saturation),
        Answer("category", np.where(ours.category == 0, np.nan, ours.category), names=kinds),
        Answer("suggested_sms", sms.value, "SM"),
        Answer("suggested_warps", warps.value, "warp"),
        Answer("suggested_clock_hz", clock.value, "Hz"),
    ]
