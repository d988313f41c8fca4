"""Kernels of which a tool gives only means over their launches: a mean launch each, analysed as a launch is.

A mean of counts is the count of a mean launch. A mean of ratios is taken for the ratio of that launch, which holds
where the launches of a kernel are alike.
"""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from profsvc import specs
from profsvc.analysis.analyze import OtherLaunches, launch_results, model_results, run_results
from profsvc.analysis.counters.from_metrics import LAUNCH_COLUMNS, launch_counters
from profsvc.analysis.launches import criteria
from profsvc.errors import NotFoundError

MEANS_TOOL = "nvprof"
TRACED_SOURCE = "mean over the traces of the run"
SEVERAL_DEVICES = "its averages cover several device models: {}; upload each device into its own run"


class KernelMeans(NamedTuple):
    """Kernels with means: ``kernels``, a mean launch each, and ``metrics`` of them.

    ``kernels`` has the columns of launches that counters are computed from, beside kernel_id, kernel, kernel_short,
    device, compute_capability, launches and ``why_not`` (None where it can be analysed); its ``launch_id`` is the
    kernel's number. ``metrics`` has launch_id, section (None), metric and value, one row a metric.
    """

    kernels: pd.DataFrame
    metrics: pd.DataFrame


def combine_means(metrics: pd.DataFrame, times: pd.DataFrame, shapes: pd.DataFrame) -> KernelMeans:
    """Bring the means of all files of a run together; each argument is as the store returns it.

    Of boards of one kind the means are weighted by their launches. Where several files have a metric, the first counts.
    """
    rows = metrics.assign(device=metrics["section"].str.replace(r"\s*\(\d+\)$", "", regex=True))
    rows["weight"] = rows["invocations"].astype("float64").fillna(1.0)
    rows["weighted"] = rows["weight"] * rows["value"].astype("float64")
    rows = rows[rows["upload_id"] == rows.groupby(["kernel_id", "metric"])["upload_id"].transform("min")]
    sums = rows.groupby(["kernel_id", "metric"], sort=False)[["weighted", "weight"]].sum().reset_index()
    values = pd.DataFrame({"launch_id": sums["kernel_id"], "section": None, "metric": sums["metric"]})
    values["value"] = sums["weighted"] / sums["weight"]
    of_kernel = rows.groupby("kernel_id", sort=False)
    kernels = of_kernel[["kernel", "kernel_short"]].first()
    devices = of_kernel["device"].agg(lambda names: sorted(set(names)))
    kernels["device"] = [names[0] if len(names) == 1 else None for names in devices]
    kernels["why_not"] = [None if len(names) == 1 else SEVERAL_DEVICES.format(", ".join(names)) for names in devices]
    kernels["compute_capability"] = [_capability(name) for name in kernels["device"]]
    known = times.set_index("kernel").reindex(kernels["kernel"])
    kernels["launches"] = known["launches"].fillna(pd.Series(_measured_launches(rows), kernels["kernel"])).to_numpy()
    kernels["duration_ns"] = known["mean_ns"].to_numpy(dtype="float64")
    for column in LAUNCH_COLUMNS[1:]:
        kernels[column] = shapes[column].reindex(kernels.index) if column in shapes else np.nan
    return KernelMeans(
        kernels.rename_axis("kernel_id").reset_index().assign(launch_id=lambda t: t["kernel_id"]), values
    )


def _measured_launches(rows: pd.DataFrame) -> np.ndarray:
    """Return how many launches of each kernel were measured: those of its boards together."""
    each = rows.groupby(["kernel_id", "section"], sort=False)["weight"].max()
    return each.groupby("kernel_id", sort=False).sum().to_numpy()


def _capability(device: str | None) -> str | None:
    try:
        return None if device is None else specs.device(device).compute_capability
    except NotFoundError:
        return None


def counters_of_means(means: KernelMeans) -> Iterator[tuple[pd.DataFrame, pd.DataFrame, Mapping[str, np.ndarray]]]:
    """Yield the kernels of each device, their counters, and the expression behind each value."""
    fit = means.kernels[means.kernels["why_not"].isna()]
    for (name, capability), group in fit.groupby(["device", "compute_capability"], dropna=False):
        metrics = means.metrics[means.metrics["launch_id"].isin(group["launch_id"])]
        known = capability if isinstance(capability, str) else None
        device = specs.figures(str(name), known)
        table, sources = launch_counters(group, metrics, MEANS_TOOL, known, device=device)
        traced = group["duration_ns"].notna().to_numpy()
        # Metrics are collected while a kernel is replayed; the time of a trace is that of the program.
        if traced.any():
            table["duration_ns"] = np.where(traced, group["duration_ns"], table["duration_ns"])
            sources = {**sources, "duration_ns": np.where(traced, TRACED_SOURCE, sources["duration_ns"])}
        yield group, table, sources


def analyze_kernel_means(
    means: KernelMeans, measured: pd.DataFrame, domain: Mapping[str, Any], rest: OtherLaunches | None
) -> Iterator[dict[str, pd.DataFrame]]:
    """Yield the results of kernels with means: criteria, potential, models; a row has a kernel and no launch.

    With ``rest``, what the run has beside these kernels, the rows of the whole run come last.
    """
    bounds, values = [], []
    for group, table, _ in counters_of_means(means):
        device, capability = group.iloc[0][["device", "compute_capability"]]
        rows = launch_results(table, device, capability, domain, measured, MEANS_TOOL)
        bounds.append(rows["potential"])
        values.append(rows["criteria"][list(criteria.RUN_INPUT_COLUMNS)])
        yield {name: _rows_by_kernel(part) for name, part in rows.items()}
        of_each = model_results(table, rows["potential"], device, capability, domain, measured, MEANS_TOOL)
        yield from ({name: _rows_by_kernel(part) for name, part in answers.items()} for answers in of_each)
    odd = means.kernels[means.kernels["why_not"].notna()]
    yield {"potential": pd.DataFrame({"launch_id": None, "kernel_id": odd["kernel_id"], "speedup": None,
                                      "reason": odd["why_not"]})}  # fmt: skip
    if bounds and rest is not None:
        each = pd.concat(bounds, ignore_index=True)
        number = each["launch_id"].map(means.kernels.set_index("launch_id")["launches"]).astype("float64")
        total = {column: each[column] * number for column in ("duration_ns", "ideal_ns")}
        whole = pd.concat(values, ignore_index=True)
        yield run_results(means.kernels, each.assign(**total), whole, rest)


def _rows_by_kernel(rows: pd.DataFrame) -> pd.DataFrame:
    return rows.rename(columns={"launch_id": "kernel_id"}).assign(launch_id=None)
