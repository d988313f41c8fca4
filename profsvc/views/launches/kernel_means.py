"""Kernels with averages over their launches: one row each, and their details."""

from typing import TYPE_CHECKING, Any

import pandas as pd

from profsvc import store
from profsvc.analysis.kernel_means import KernelMeans, counters_of_means
from profsvc.analysis.potential.advice import advice
from profsvc.kernel_names import matching_kernels
from profsvc.pipeline.kernel_means import means_of_run
from profsvc.views.launches import causes
from profsvc.views.models.launch_models import side_by_side
from profsvc.views.models.past_errors import Record

if TYPE_CHECKING:
    from sqlalchemy import Engine

Row = dict[str, Any]


def results(engine: "Engine", run_id: int) -> dict[str, dict[str, list[Row]]]:
    """Return the results of kernels without launches, by view and kernel."""
    found: dict[str, dict[str, list[Row]]] = {}
    for view in ("v1_potential", "v1_criteria", "v1_models", "v1_causes"):
        by_kernel = found.setdefault(view, {})
        for row in store.results_without_launch(engine, view, run_id):
            if row["kernel"] is not None:
                by_kernel.setdefault(row["kernel"], []).append(row)
    return found


def summaries(engine: "Engine", run_id: int, words: dict[str, Row]) -> list[Row]:
    """Return one row per kernel with its launches, bottleneck, potential speedup and first step."""
    means = means_of_run(engine, run_id)
    if means is None:
        return []
    found, known, rows = results(engine, run_id), counters(means), []
    for kernel in _plain(means.kernels):
        bound, own = _of(found, kernel["kernel"])
        caused = causes.causes_of_kernel(found["v1_causes"].get(kernel["kernel"], []), known.get(kernel["kernel"], {}))
        rows.append(
            {
                "kernel": kernel["kernel_short"],
                "kernel_full": kernel["kernel"],
                "launches": kernel["launches"],
                "device": kernel["device"],
                "duration_us": None if bound.get("duration_ns") is None else bound["duration_ns"] / 1e3,
                "bound": words[bound["bound"]]["title"] if bound.get("bound") else None,
                "potential": bound.get("speedup"),
                "ceiling": bound.get("speedup_ceiling"),
                "flags": bound.get("flags"),
                "ceiling_flags": bound.get("ceiling_flags"),
                "reason": bound.get("reason"),
                "causes": caused,
                "first": causes.first(caused, bound.get("duration_ns")),
                "advice": causes.hints(caused) or advice(own, bound, words),
                "criteria": {row["criterion"]: row["value"] for row in own},
            }
        )
    return sorted(rows, key=lambda row: -(row["duration_us"] or 0.0) * (row["launches"] or 1))


def opened(engine: "Engine", run_id: int, kernel: str, words: dict[str, Row]) -> list[Row]:
    """Return the details of the kernels of a run with averages that match a name."""
    means = means_of_run(engine, run_id)
    if means is None:
        return []
    found, known, rows = results(engine, run_id), counters(means), []
    record = Record(engine)
    for one in chosen(means, kernel):
        bound, own = _of(found, one["kernel"])
        caused = causes.causes_of_kernel(found["v1_causes"].get(one["kernel"], []), known.get(one["kernel"], {}))
        said = found["v1_models"].get(one["kernel"], [])
        useful = [row for row in said if row["model"] == "useful_work"]
        bound["duration_ns"] = one["duration_ns"] = bound.get("duration_ns") or one["duration_ns"]
        rows.append({"launch": one, "criteria": own, "potential": bound or None, "units": useful, "rules": [],
                     "models": side_by_side(said, one["duration_ns"], bound if "speedup" in bound else None,
                                            one["device"], record.of(one["device"], one["kernel"], bound.get("bound"))),
                     "reason": one["why_not"], "causes": caused, "first": causes.first(caused, one["duration_ns"]),
                     "advice": causes.hints(caused) or advice(own, bound, words)})  # fmt: skip
    return rows


def chosen(means: KernelMeans, kernel: str | None) -> list[Row]:
    """Return the kernels with averages that match a name or a part of it; all without a name."""
    rows = _plain(means.kernels)
    meant = set(() if kernel is None else matching_kernels(kernel, [row["kernel"] for row in rows]))
    exact = [row for row in rows if row["kernel"] in meant]
    return exact or [row for row in rows if kernel is None or kernel in row["kernel"]]


def counters(means: KernelMeans) -> dict[str, dict[str, Row]]:
    """Return the counters of each kernel by its name, with values and expressions."""
    found: dict[str, dict[str, Row]] = {}
    for group, table, sources in counters_of_means(means):
        for place, name in enumerate(group["kernel"]):
            known = table.iloc[place].dropna()
            found[name] = {str(c): {"value": v, "expression": sources[str(c)][place]} for c, v in known.items()}
    return found


def _of(found: dict[str, dict[str, list[Row]]], kernel: str) -> tuple[Row, list[Row]]:
    """Return the potential and the criteria of a kernel."""
    bound = dict(next(iter(found["v1_potential"].get(kernel, [])), {}))
    return bound, found["v1_criteria"].get(kernel, [])


def _plain(kernels: pd.DataFrame) -> list[Row]:
    """Return rows of plain values; an average has no launch number."""
    plain = kernels.astype(object).where(kernels.notna(), None).assign(launch_id=None, launch_index=None)
    whole = ("grid_x", "grid_y", "grid_z", "block_x", "block_y", "block_z", "launches")
    rows = [{str(name): value for name, value in row.items()} for row in plain.to_dict("records")]
    return [row | {name: None if row[name] is None else int(row[name]) for name in whole} for row in rows]
