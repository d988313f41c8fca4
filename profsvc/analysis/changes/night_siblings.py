"""What the siblings of changed kernels did since the same run, though none of them for sure."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from profsvc.analysis.changes.night_series import NightSeries

MIN_FOUND = 3  # durations that changed since one run, from which the others are asked
BEFORE, SINCE = 20, 5  # values of each series before the run, and since
MIN_VALUES = 3
RunOfBoard = tuple[Any, Any, int]
"""Project, device and number of a run."""


def changes_of_others(night: NightSeries, found: Sequence[Mapping[str, Any]]) -> dict[RunOfBoard, list[float]]:
    """Return by how much the other durations changed since each run that three findings or more begin with.

    The changes are relative, of the medians of up to 20 values before and five since. A new driver that makes all
    kernels 1 % slower is sure in some of them before the others.
    """
    begun = dict[RunOfBoard, list[Mapping[str, Any]]]()
    for row in found:
        if row["kind"] == "duration":
            begun.setdefault((row["project"], row["device"], row["run_id"]), []).append(row)
    out = dict[RunOfBoard, list[float]]()
    for (project, device, run_id), rows in begun.items():
        if len(rows) < MIN_FOUND:
            continue
        heads = night.heads
        own = (heads["kind"] == "duration") & (heads["project"] == project) & (heads["device"] == device)
        others = heads.index[own & ~heads["series"].isin([row["series"] for row in rows])].to_numpy()
        out[project, device, run_id] = _changes_since(night, others, str(rows[0]["changed_at"]))
    return out


def _changes_since(night: NightSeries, series: np.ndarray[Any, Any], at: str) -> list[float]:
    group = night.points["group"].to_numpy(np.int64)
    since, known = night.points["at"].to_numpy(object) >= at, ~np.isnan(night.value)
    edges, changes = np.searchsorted(group, np.arange(len(night.heads) + 1)), list[float]()
    for one in series.tolist():
        own = slice(edges[one], edges[one + 1])
        x, later = night.value[own][known[own]], since[own][known[own]]
        before, after = x[~later][-BEFORE:], x[later][:SINCE]
        if min(before.size, after.size) >= MIN_VALUES and np.median(before) > 0:
            changes.append(float(np.median(after) / np.median(before) - 1.0))
    return changes
