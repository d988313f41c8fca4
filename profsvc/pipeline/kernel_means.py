"""Kernels with averages only, no launches: their results and counters."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pandas as pd

from profsvc import specs, store
from profsvc.analysis import OtherLaunches
from profsvc.analysis import kernel_means as analysis

if TYPE_CHECKING:
    from sqlalchemy import Engine


def means_of_run(engine: "Engine", run_id: int) -> analysis.KernelMeans | None:
    """Return the kernels of a run that an export gives means of, with what its traces know of them; None without."""
    metrics = store.kernel_metrics(engine, run_id)
    if metrics.empty:
        return None
    return analysis.combine_means(metrics, store.kernel_times(engine, run_id), store.kernel_shapes(engine, run_id))


def results_of_kernels(
    engine: "Engine", run_id: int, means: analysis.KernelMeans, rest: OtherLaunches, *, whole: bool
) -> Iterator[dict[str, pd.DataFrame]]:
    """Yield the results of the kernels, and those of the whole run too if it has nothing better: ``whole``."""
    times = store.kernel_times(engine, run_id)
    others = times[~times["kernel"].isin(means.kernels["kernel"])]
    beside = rest._replace(launches=int(others["launches"].sum()), duration_ns=float(others["total_ns"].sum()))
    yield from analysis.analyze_kernel_means(
        means, store.characterizations(engine), specs.criteria(), beside if whole else None
    )
