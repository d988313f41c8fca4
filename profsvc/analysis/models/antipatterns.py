"""The anti-parallel patterns of launches: the measured ratio of each, and the share of a resource that it loses."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from profsvc import specs
from profsvc.analysis.counters.arrays import Counts
from profsvc.analysis.counters.missing import collection_hint, list_counters
from profsvc.analysis.launches.memory_traffic import l1_traffic
from profsvc.analysis.models.answer import Answer, Array
from profsvc.analysis.models.inputs import Inputs, MissingCounters, Values, formula_arguments, input_names
from profsvc.analysis.models.rows import missing_part, stacked
from profsvc.formulas.mwp_cwp import exec_cycles
from profsvc.formulas.performance.latency import simt_usage
from profsvc.formulas.performance.loaded_latency import unloaded_wait
from profsvc.formulas.performance.occupancy import staircase
from profsvc.formulas.performance.time_bound import antiparallel_report, time_bound

MODEL = "antiparallel"
SECTOR_BYTES = 32.0
Ratio = Callable[[Counts, Values], Any]


def _overlap(c: Counts, v: Values) -> Any:
    """Time above the longer of computation and memory that no more than missing overlap explains."""
    issue_s = v["insts_all"] * v["total_warps"] / (v["schedulers"] * v["sms"] * v["freq"])
    computing = np.fmax(issue_s, v["flop"] / v["fp_peak"])
    bound = time_bound(computing, 1.0, v["dram_bytes"], v["dram_bandwidth"], v["duration_s"])
    return np.clip(bound.t_delta, 0.0, bound.overlap_gap) / v["duration_s"]


def _parallelism(c: Counts, v: Values) -> Any:
    return staircase(v["blocks"], v["sms"] * v["blocks_per_sm"]).utilization


def _concurrency(c: Counts, v: Values) -> Any:
    timed = exec_cycles(**formula_arguments("mwp_cwp", v))
    return np.where(v["mem_insts"] == 0, 1.0, timed.MWP / v["N"])


def _divergence(c: Counts, v: Values) -> Any:
    active = c["warp_nonpred_execution_efficiency_fraction"]
    return simt_usage(active[:, np.newaxis] * v["warp"], v["warp"]).value


def _coalescing(c: Counts, v: Values) -> Any:
    bulk = np.nan_to_num(c.total("tma_load_bytes", "tma_store_bytes"))  # whole sectors, which pass no tags
    return _times_as_much(SECTOR_BYTES * v["sectors"] + bulk, l1_traffic(c).asked)


def _banks(c: Counts, v: Values) -> Any:
    return _times_as_much(c["shared_wavefronts_sass"], c["shared_wavefronts_ideal"])


def _times_as_much(moved: Any, needed: Any) -> Any:
    """How many times as much as needed; 1 where nothing was, and where lanes share what is moved."""
    return np.where(moved == 0, 1.0, np.maximum(1.0, moved / needed))


def _dependent_accesses(c: Counts, v: Values) -> Any:
    """Latencies that a warp waits for one after another, over the batches that its branches leave."""
    n, alone = v["insts_all"], v["periods"] * v["Mem_L"]
    busy = np.minimum(1.0, np.nan_to_num(v["dram_bytes"] / (v["duration_s"] * v["dram_bandwidth"])))
    serial = unloaded_wait(v["memory_wait"] * n, alone, busy).value / alone
    return np.where(v["loads"] == 0, 1.0, np.clip(serial, 1.0, np.maximum(1.0, v["loads"] / v["periods"])))


RATIOS: Mapping[str, Ratio] = {
    "overlap": _overlap,
    "parallelism": _parallelism,
    "occupancy": lambda c, v: c["achieved_occupancy_fraction"],
    "concurrency": _concurrency,
    "divergence": _divergence,
    "coalescing": _coalescing,
    "partitions": lambda c, v: _times_as_much(c["l2_sectors_max"], c["l2_sectors_avg"]),
    "banks": _banks,
    "barriers": lambda c, v: c["stall_sync_fraction"],
    "dependent_instructions": lambda c, v: 1.0 + c["stall_wait_cycles_per_issue"],
    "dependent_accesses": _dependent_accesses,
}
"""Ratio of each pattern that the counters of launches have, as `profsvc.specs.advice.antipatterns` reads it."""


def measured_ratios(counts: Counts, values: Values) -> dict[str, Array]:
    """Return the ratio of each pattern in `RATIOS`, one number per launch, NaN where it is not known."""
    shape = counts.index.shape
    with np.errstate(all="ignore"):
        return {
            key: np.broadcast_to(np.asarray(ratio(counts, values), dtype=np.float64), shape)
            for key, ratio in RATIOS.items()
        }


def lost_shares(ratios: Mapping[str, Any]) -> dict[str, Any]:
    """Return the share that each pattern of the catalogue loses, from the ratios that are known.

    >>> lost_shares({"divergence": 0.75})["divergence"].value.item()
    0.25
    """
    readings = {key: pattern.reading for key, pattern in specs.patterns().items()}
    return antiparallel_report(ratios, readings)


def antiparallel(counts: Counts, values: Values) -> list[Answer]:
    """Share that each pattern loses, of those that counters of a launch tell."""
    lost = lost_shares(measured_ratios(counts, values))
    return [Answer(key, lost[key].value, flags=lost[key].flags) for key in RATIOS]


def missing_rows(
    counters: pd.DataFrame, inputs: Inputs, answers: Sequence[Answer], tool: str, capability: str | None
) -> pd.DataFrame:
    """Return one row per launch and pattern without a share, whose value is null, with the reason."""
    parts = []
    counts = Counts(counters)
    known: dict[bytes, MissingCounters] = {}
    for one in answers:
        none = np.isnan(one.value)
        if none.any():
            missing = known.setdefault(none.tobytes(), MissingCounters(inputs, none, counts))
            why = missing_reason(one.quantity, missing, tool, capability)
            parts.append(missing_part(counters.index.to_numpy()[none], MODEL, one, why))
    return stacked(parts)


def missing_reason(key: str, missing: MissingCounters, tool: str, capability: str | None) -> str:
    """Say why the ratio of a pattern is not known for launches."""
    wanted = lacking_counters(key, missing)
    if wanted:
        return f"the export has no {list_counters(wanted)}{collection_hint(tool, tuple(wanted), capability)}"
    return "undefined: the inputs contradict each other, or the device table lacks a figure"


def lacking_counters(key: str, missing: MissingCounters) -> list[str]:
    """Return the counters without which the ratio of a pattern is not known for launches."""
    found: list[str] = []
    for name in _needed(specs.patterns()[key].needs):
        if missing.is_unknown(name):
            found += [name[1:]] if name.startswith("@") else missing.of_input(name)
    return list(dict.fromkeys(found))


def _needed(names: Sequence[str]) -> list[str]:
    """Return what a ratio needs; that of a model stands for its inputs."""
    return [one for name in names for one in (input_names("mwp_cwp") if name == "MWP" else (name,))]
