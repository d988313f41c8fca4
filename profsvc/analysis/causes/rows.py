"""The causes of each launch as rows: what each costs, between which limits, its evidence and the first step."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from profsvc.analysis.causes.attribution import lost_time, ranked
from profsvc.analysis.counters.arrays import Counts
from profsvc.specs.causes import Cause, causes
from profsvc.specs.metrics.vocabulary import counters as vocabulary

COLUMNS = (
    "launch_id", "rank", "cause", "title", "kind", "saving_ns", "saving_fraction", "low", "high", "evidence",
    "first_step",
)  # fmt: skip


def launch_causes(counters: pd.DataFrame, figures: pd.DataFrame, bounds: pd.DataFrame) -> pd.DataFrame:
    """Return one row per launch and cause, with the columns `COLUMNS`.

    ``counters`` has one row per launch and one column per counter, and the launches as index; ``figures`` are the peak
    rates of `profsvc.analysis.potential.peaks`, ``bounds`` the potential with ``ideal_ns`` and ``duration_ns``, both in
    the same order.

    Rank 1 is the answer: the cause that costs most, or what limits a launch that has nothing to gain. ``low`` and
    ``high`` are the limits of ``saving_fraction``. ``evidence`` is a list of ``counter``, ``value`` and ``unit``. The
    savings of a launch add up to what it loses over its ideal time. A launch without counts of stalls has no row.
    """
    c = Counts(counters)
    values = {name: c[name] for name in {name for cause in causes().values() for name in cause.evidence}}
    shares = lost_time(counters, figures)
    kinds = {name: cause.kind for name, cause in causes().items()}
    duration, ideal = (bounds[name].to_numpy(dtype="float64") for name in ("duration_ns", "ideal_ns"))
    with np.errstate(all="ignore"):
        loss = np.where(np.isnan(ideal), 1.0, 1 - ideal / duration)
    rows: list[dict[str, Any]] = []
    for place, launch in enumerate(counters.index):
        own = {str(name): float(share) for name, share in shares.iloc[place].dropna().items()}
        if not own:
            continue
        found = [(name, share) for name, share in ranked(own, loss[place], kinds) if share > 0]
        limits = sorted((name for name in own if kinds[name] == "limit"), key=lambda name: -own[name])[:1]
        for rank, (name, share) in enumerate([*found, *((name, 0.0) for name in limits)], 1):
            evidence = _evidence(causes()[name], values, place)
            rows.append(_row(launch, rank, causes()[name], share, duration[place], evidence))
    return pd.DataFrame(rows, columns=list(COLUMNS))


def _evidence(cause: Cause, values: Mapping[str, np.ndarray], place: int) -> list[dict[str, Any]]:
    return [
        {"counter": name, "value": float(values[name][place]), "unit": vocabulary()[name].unit}
        for name in cause.evidence
        if not np.isnan(values[name][place])
    ]


def _row(
    launch: Any, rank: int, cause: Cause, share: float, duration: float, evidence: list[dict[str, Any]]
) -> dict[str, Any]:
    values = (
        launch, rank, cause.name, cause.title, cause.kind, share * duration, share, 0.0, share, evidence,
        cause.first_step,
    )  # fmt: skip
    return dict(zip(COLUMNS, values, strict=True))
