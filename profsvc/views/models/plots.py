"""Data of model plots, which `profsvc.reports.plots.models` draws.

Every plot is a dict: kind, title, run, columns and rows (its data as a table), notes, and values of its kind.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from profsvc import store
from profsvc.analysis.models import what_if as analysis
from profsvc.analysis.potential.tensor_work import TENSOR_TYPES
from profsvc.errors import NotFoundError, counted, first_of
from profsvc.reports.rows import plain
from profsvc.views.launches.listing import LIMIT, launches_of
from profsvc.views.models.launch_models import known_of
from profsvc.views.models.what_if import Base, base_of
from profsvc.views.power.plots import power_on_sms
from profsvc.views.traces import memory as memory_traces_view

if TYPE_CHECKING:
    from sqlalchemy import Engine

Row = Mapping[str, Any]
Plot = dict[str, Any]
LEVELS = {"dram": "DRAM", "l2": "L2", "l1": "L1"}
ROOFLINE = (
    "launch", "kernel", "duration_us", "intensity_dram", "intensity_l2", "intensity_l1", "flop_per_s", "attainable",
    "reached", "bound", "ceiling",
)  # fmt: skip
BENEFITS = {"B_itilp": "more warps or independent instructions", "B_memlp": "more requests in flight",
            "B_fp": "fewer non-arithmetic instructions", "B_serial": "fewer barriers and conflicts"}  # fmt: skip
BENEFIT = (
    "launch",
    "kernel",
    "duration_us",
    "memory",
    "memory_after_overlap",
    "computation",
    *BENEFITS,
    "best",
    "zone",
)
WARPS = ("warps", "MWP", "CWP", "mwp_cwp_speedup", "throughput_speedup", "fits")
SMS = ("sms", "mwp_cwp", "throughput", "power_w", "per_watt_mwp_cwp", "per_watt_throughput")
HITS = ("level", "mean", "sd", "p05", "p50", "p95", "from_ratio", "to_ratio", "orders")
BINS, MIN_BIN = 12, 0.001
MAX_WARPS = 64
SLACK = 1e-9  # relative tolerance between costs that the model computes in different orders


class Plots:
    """The plots of a run, of its longest ``limit`` launches or of those of one kernel; they share what they read."""

    def __init__(self, engine: "Engine", run: str | int, kernel: str | None = None, limit: int | None = LIMIT) -> None:
        """Find the run."""
        self.engine, self.kernel, self.limit = engine, kernel, limit
        info = store.select(engine, "v1_runs", run_id=store.find_run(engine, run))[0]
        self.run_id = info["run_id"]
        self._about = {name: info[name] for name in ("run_id", "project", "name")}

    @cached_property
    def base(self) -> Base:
        """The longest launch with its model inputs."""
        return base_of(self.engine, self.run_id, self.kernel)

    @cached_property
    def launches(self) -> tuple[list[dict[str, Any]], bool]:
        """The launches, and whether there are more."""
        return launches_of(self.engine, self.run_id, self.kernel, self.limit)

    def plot(self, kind: str) -> dict[str, Any]:
        """Return one of `KINDS`.

        Raise `NotFoundError` for another kind, and with the reason where there is nothing to draw.
        """
        if kind not in MAKERS:
            raise NotFoundError.near("plot", kind, MAKERS)
        found: Plot = plain({"kind": kind, "run": self._about, "truncated": False} | MAKERS[kind](self))
        return found


def plot(
    engine: "Engine", run: str | int, kind: str, kernel: str | None = None, limit: int | None = LIMIT
) -> dict[str, Any]:
    """Return one of `KINDS`; see `Plots`."""
    if kind not in MAKERS:
        raise NotFoundError.near("plot", kind, MAKERS)
    return Plots(engine, run, kernel, limit).plot(kind)


def _answers(of: Plots, model: str, needed: str) -> tuple[list[tuple[dict[str, Any], dict[str, Any]]], list[str], bool]:
    """Return launches with the results of a model, notes on excluded ones, and whether there are more launches."""
    (launches, truncated), engine, run_id = of.launches, of.engine, of.run_id
    ids = [launch["launch_id"] for launch in launches]
    said: dict[int, dict[str, Any]] = {}
    reasons: dict[int, str] = {}
    for row in store.launch_rows(engine, "v1_models", run_id, ids, model=model):
        if row["value"] is None:
            reasons[row["launch_id"]] = row["reason"]
        elif row["form"] == "consistent":
            said.setdefault(row["launch_id"], {})[row["quantity"]] = row["value"]
            if row["label"] is not None:
                said[row["launch_id"]][f"{row['quantity']}_label"] = row["label"]
    chosen = [(launch, said.get(launch["launch_id"], {})) for launch in launches]
    known = [(launch, found) for launch, found in chosen if needed in found]
    known.sort(key=lambda pair: -(pair[0]["duration_ns"] or 0.0))
    left = [launch for launch, found in chosen if needed not in found]
    notes = _left_out(left, reasons)
    if not known:
        raise NotFoundError(notes[0] if notes else f"run {run_id} has no launches to plot")
    return known, notes, truncated


def _left_out(launches: Sequence[Row], reasons: Mapping[int, str]) -> list[str]:
    groups: dict[str, list[str]] = {}
    for launch in launches:
        why = reasons.get(launch["launch_id"], "not analysed yet; run: profsvc analyze")
        groups.setdefault(why, []).append(f"#{launch['launch_index']} {launch['kernel_short']}")
    notes = []
    for why, names in groups.items():
        notes.append(f"excluded: {first_of(names, 3)}: {why}")
    return notes


def _head(launch: Row) -> dict[str, Any]:
    duration = launch["duration_ns"]
    return {"launch": launch["launch_index"], "kernel": launch["kernel_short"],
            "launch_id": launch["launch_id"], "duration_us": None if duration is None else duration / 1e3}  # fmt: skip


def _roofline(of: Plots) -> Plot:
    known, notes, truncated = _answers(of, "roofline", "attainable")
    device = known[0][0]["device"]
    if others := [launch for launch, _ in known if launch["device"] != device]:
        notes.append(f"excluded: {counted(len(others), 'launch')} on devices other than {device}")
    rows, none = [], []
    for launch, said in known:
        if launch["device"] != device:
            continue
        if not said.get("flop_per_s"):
            none.append(f"#{launch['launch_index']} {launch['kernel_short']}")
            continue
        own = {f"intensity_{level}": said.get(f"intensity_{level}") for level in LEVELS}
        own |= {"flop_per_s": said["flop_per_s"], "attainable": said["attainable"]}
        own |= {"reached": said["flop_per_s"] / said["attainable"], "bound": said.get("bound_label"),
                "ceiling": said.get("ceiling_label")}  # fmt: skip
        rows.append(_head(launch) | own)
    if none:
        notes.append(f"excluded, no floating-point operations: {first_of(none, 3)}")
    if not rows:
        raise NotFoundError("; ".join(notes))
    first = next(launch for launch, _ in known if launch["launch_id"] == rows[0]["launch_id"])
    inputs = (
        of.base.inputs if of.base.launch["launch_id"] == first["launch_id"] else known_of(of.engine, first).inputs()
    )
    lines, said_of = _ceilings(inputs.values)
    lines += _tensor_peaks([said for launch, said in known if launch["device"] == device])
    notes.append(f"{said_of}, those of #{first['launch_index']}; points are placed by their DRAM traffic")
    title = f"Roofline: {first['device'] or 'unknown device'}"
    return {"title": title, "columns": ROOFLINE, "rows": rows, "lines": lines, "notes": notes, "truncated": truncated}


def _tensor_peaks(every: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return the peak of each tensor data type of the launches; types with the same peak share a line."""
    peaks: dict[float, list[str]] = {}
    for kind in TENSOR_TYPES:
        if found := [said[name] for said in every if said.get(name := f"tensor_{kind}_peak_op_per_s")]:
            peaks.setdefault(max(found), []).append(kind.upper())
    return [{"type": "compute", "label": f"tensor {', '.join(kinds)}", "value": peak} for peak, kinds in peaks.items()]


def _ceilings(inputs: Mapping[str, Any]) -> tuple[list[dict[str, Any]], str]:
    """Return the ceilings of a launch: bandwidth of each level, peaks of the pipes with and without FMA."""
    v = {name: float(np.asarray(value).reshape(-1)[0]) for name, value in inputs.items()}
    rate = v["sms"] * v["freq"]
    bands = [("memory", title, v[f"{level}_bandwidth"]) for level, title in LEVELS.items()]
    single, double = v["SIMD_width"] * rate, v["fp64_lanes"] * rate
    peaks = [("compute", "FP32", 2 * single), ("compute", "FP32 without FMA", single),
             ("compute", "FP64", 2 * double)]  # fmt: skip
    lines = [
        {"type": kind, "label": label, "value": value}
        for kind, label, value in (*bands, *peaks)
        if np.isfinite(value) and value > 0
    ]
    if np.isclose(double, single):
        lines = [line for line in lines if line["label"] != "FP64"]
    elif np.isclose(2 * double, single):  # both lines would coincide
        lines = [line | {"label": "FP64, or FP32 without FMA"} if line["label"] == "FP64" else line
                 for line in lines if line["label"] != "FP32 without FMA"]  # fmt: skip
    return lines, f"ceilings at {v['freq'] / 1e6:.0f} MHz and a DRAM bandwidth of {v['dram_bandwidth'] / 1e9:.0f} GB/s"


def _benefit(of: Plots) -> Plot:
    known, notes, truncated = _answers(of, "benefit", "T_comp")
    rows = []
    for launch, said in known:
        whole = said["T_comp"] + said["T_mem"] - said["T_overlap"]
        if not whole > 0:
            continue
        own = {
            "memory": said["T_mem"] / whole,
            "memory_after_overlap": (said["T_mem"] - said["T_overlap"]) / whole,
            "computation": said["T_comp"] / whole,
            **{name: said.get(name) for name in BENEFITS},
        }
        best = said.get("best_label")
        zone = "memory" if said["T_mem"] > said["T_comp"] * (1 + SLACK) else "compute"
        rows.append(_head(launch) | own | {"best": BENEFITS.get(f"B_{best}"), "zone": zone})
    if not rows:
        raise NotFoundError("; ".join(notes) or "the benefit model has no time for these launches")
    notes.append("costs are shares of the predicted time; rings: before overlap; colours: dominant cost before overlap")
    return {"title": "Benefit chart", "columns": BENEFIT, "rows": rows, "benefits": BENEFITS, "notes": notes,
            "truncated": truncated}  # fmt: skip


def _scanned(
    of: Plots, axis: str, most: Callable[[Any], int]
) -> tuple[Any, np.ndarray[Any, Any], dict[str, analysis.Answer], list[str]]:
    """Return a launch, the values of an axis from 1, and the model results; the first result is the present one."""
    base = of.base
    count = most(base)
    values = np.arange(1.0, count + 1)
    inputs = analysis.scenario_inputs(base.counters, base.now, base.machine, [{axis: x} for x in values])
    said = analysis.scenario_answers(inputs)
    if not any(np.isfinite(answer.time_ns[0]) for answer in said.values()):
        stored = store.select(
            of.engine, "v1_models", launch_id=base.launch["launch_id"], model="throughput", value=None
        )
        raise NotFoundError(stored[0]["reason"] if stored else "the models lack counters for this launch")
    notes = [f"of launch #{base.launch['launch_index']} {base.launch['kernel_short']}", analysis.WORK_HELD_NOTE]
    return base, values, said, notes


def _speedups(answer: analysis.Answer) -> np.ndarray[Any, Any]:
    return np.asarray(answer.time_ns[0] / answer.time_ns[1:])


def _warps(of: Plots) -> Plot:
    base, values, said, notes = _scanned(of, "warps", _most_warps)
    timed = said["mwp_cwp"].result
    fits = float(base.now["blocks_per_sm"][0] * base.now["warps_per_block"][0])
    speedups = {model: _speedups(answer) for model, answer in said.items()}
    rows = [
        {"warps": n, "MWP": timed.MWP[k + 1], "CWP": timed.CWP[k + 1], "fits": bool(n <= fits),
         **{f"{model}_speedup": speedups[model][k] for model in speedups}}
        for k, n in enumerate(values.tolist())
    ]  # fmt: skip
    peak = float(timed.MWP_peak_bw[0])
    return {
        "title": f"Warps: {base.launch['kernel_short']}", "columns": WARPS, "rows": rows, "notes": notes,
        "now": float(base.now["N"][0]), "fits": fits if np.isfinite(fits) else None,
        "peak": peak if np.isfinite(peak) else None,
    }  # fmt: skip


def _most_warps(base: Any) -> int:
    most = base.machine.figures.get("max_warps_per_sm")
    own = base.now["N"][0]
    return max(int(most) if isinstance(most, int | float) else MAX_WARPS, int(own) if own > 0 else 1)


def _most_sms(base: Any) -> int:
    """Return the SMs of the device; raise `NotFoundError` if neither the export nor the catalogue has them."""
    sms = float(base.now["sms"][0])
    if not sms >= 1:
        device = base.launch["device"] or "the device"
        raise NotFoundError(f"the number of SMs of {device} is neither in the export nor in the catalogue")
    return int(sms)


def _sms(of: Plots) -> Plot:
    base, values, said, notes = _scanned(of, "sms", _most_sms)
    speedups = {model: _speedups(answer) for model, answer in said.items()}
    swept = power_on_sms(of.engine, of.run_id, base.launch["kernel_short"], values)
    power = swept.power_w
    rows = []
    for k, n in enumerate(values.tolist()):
        row: dict[str, Any] = {"sms": n, "power_w": None if power is None else power[k]}
        for model, speedup in speedups.items():
            row |= {
                model: speedup[k],
                f"per_watt_{model}": None if power is None else speedup[k] / power[k] * power[-1],
            }
        rows.append(row)
    notes.append(swept.note)
    best = [one for one in analysis.suggestions(base.now, analysis.scenario_answers(base.now)) if one["what"] == "sms"]
    return {
        "title": f"SMs: {base.launch['kernel_short']}", "columns": SMS, "rows": rows, "notes": notes,
        "suggested": {one["model"]: one["value"] for one in best},
        "now": float(base.now["active_sms"][0]), "idle_w": swept.idle_w, "measured_sms": swept.measured_sms,
    }  # fmt: skip


def _hits(of: Plots) -> Plot:
    run_id, kernel = of.run_id, of.kernel
    traces = memory_traces_view.traces_of_run(of.engine, run_id)
    if kernel is not None:
        traces = [one for one in traces if kernel in str(one["kernel"])]
    if not traces:
        of_kernel = "" if kernel is None else f" of a kernel {kernel!r}"
        raise NotFoundError(
            f"run {run_id} has no memory trace{of_kernel} to simulate hit ratios from; "
            "to record one, see: profsvc formats memory-trace"
        )
    notes = [f"{one['kernel'] or 'a trace'}: {one['reason']}" for one in traces if one["reason"]]
    drawn = [one for one in traces if any(level["draws"] for level in one["levels"])]
    if not drawn:
        raise NotFoundError("; ".join(notes) or f"the memory traces of run {run_id} do not reach any cache")
    first = drawn[0]
    if len(drawn) > 1:
        notes.append(
            f"the run has {len(drawn)} traces; showing {first['kernel'] or 'the first'}; select one with --kernel"
        )
    rows = [
        {"level": level["what"], **{name: level[name] for name in ("mean", "sd", "p05", "p50", "p95")}, **counted}
        for level in first["levels"]
        if level["draws"]
        for counted in _counted(level["draws"])
    ]
    count = max(len(level["draws"]) for level in first["levels"])
    notes.append(f"{count} random orders of the warps; caches of {first['device'] or 'an unknown device'}")
    return {"title": f"Hit ratios: {first['kernel'] or 'memory trace'}", "columns": HITS, "rows": rows, "notes": notes}


def _counted(draws: Sequence[float]) -> list[dict[str, Any]]:
    """Return the nonempty bins of a histogram of the draws."""
    low, high = min(draws), max(draws)
    width = max((high - low) / BINS, MIN_BIN)
    begin = min(low, max(0.0, 1.0 - width)) if high == low else low
    edges = begin + width * np.arange(BINS + 1)
    counts, _ = np.histogram(np.minimum(draws, edges[-1]), edges)
    return [{"from_ratio": float(edges[k]), "to_ratio": float(edges[k + 1]), "orders": int(n)}
            for k, n in enumerate(counts) if n]  # fmt: skip


KINDS = {
    "roofline": "FLOP rate of each launch against its arithmetic intensity, with memory and compute ceilings",
    "benefit": "memory and computation cost of each launch, before and after overlap",
    "warps": "memory and computation parallelism and speed of a launch against warps per SM",
    "sms": "speed, and speed per watt if the power is known, of a launch against active SMs",
    "hits": "cache hit ratios over many warp orders of a memory trace",
}
MAKERS: Mapping[str, Callable[[Plots], Plot]] = {
    "roofline": _roofline, "benefit": _benefit, "warps": _warps, "sms": _sms, "hits": _hits,
}  # fmt: skip
