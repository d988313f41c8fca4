"""The baseline of each series: the values since its last change, and those of before in parts."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from profsvc.analysis.changes.open_findings import series_ranges
from profsvc.formulas.change.findings import FIXED

Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]


def in_baseline(points: pd.DataFrame, value: Floats, known: Sequence[Mapping[str, Any]]) -> Bools:
    """Which points the history of their series begins with and holds, as findings so far leave it."""
    kept = np.ones(len(points), dtype=np.bool_)
    span = series_ranges(points)
    at = points["at"].to_numpy(object)
    for finding in known:
        if (inside := span.get(str(finding["series"]))) is None:
            continue
        own = np.arange(inside.start, inside.stop)
        since = own[_not_before(at[own], points["run_id"].to_numpy()[own], finding)]
        if finding["state"] != FIXED:
            kept[inside.start : since[0] if len(since) else inside.stop] = False
            continue
        until = since[at[since] <= (finding["said_at"] or "")]
        near = np.abs(value[until] - finding["after"]) < np.abs(value[until] - finding["before"])
        if near.any():
            kept[until[0] : until[np.flatnonzero(near)[-1]] + 1] = False
    return kept


def earlier_parts(points: pd.DataFrame, value: Floats, known: Sequence[Mapping[str, Any]]) -> dict[int, list[Floats]]:
    """Return the values of each series between its changes, but for those since the last one, by group.

    ``value``: NaN where a value does not count; ``known``: the findings, of which fixed ones do not count.
    """
    span, at, run_id = series_ranges(points), points["at"].to_numpy(object), points["run_id"].to_numpy()
    begins = dict[str, set[int]]()
    for finding in known:
        name = str(finding["series"])
        if finding["state"] == FIXED or name not in span:
            continue
        own = np.arange(span[name].start, span[name].stop)
        since = own[_not_before(at[own], run_id[own], finding)]
        begins.setdefault(name, set()).update(since[:1].tolist())
    out = dict[int, list[Floats]]()
    for name, places in begins.items():
        edges = [span[name].start, *sorted(places)]
        parts = np.split(value[edges[0] : edges[-1]], np.array(edges[1:-1], dtype=np.intp) - edges[0])
        out[int(points["group"].iloc[edges[0]])] = [part[~np.isnan(part)] for part in parts]
    return out


def _not_before(at: npt.NDArray[Any], run_id: npt.NDArray[Any], finding: Mapping[str, Any]) -> Bools:
    begin = finding["changed_at"], finding["run_id"]
    return np.array([pair >= begin for pair in zip(at, run_id, strict=True)], dtype=np.bool_)
