"""The causes of each launch as rows: what each costs, between which limits, its evidence and the first step."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from profsvc.analysis.causes.attribution import lost_time, ranked
from profsvc.analysis.counters.arrays import Counts
from profsvc.formulas.performance.lost_time import saving_interval
from profsvc.specs.causes import Cause, causes
from profsvc.specs.metrics.vocabulary import counters as vocabulary

COLUMNS = (
    "launch_id", "rank", "cause", "title", "kind", "saving_ns", "saving_fraction", "low", "high", "evidence",
    "first_step",
)  # fmt: skip
IDEAL_TIME_ERROR = 1.2
"""Factor within which two of three versions of a kernel came to the speedup that their potential predicts.

Of the 63 pairs that `tests.benchmarks.potential` scores, none of which served to find this attribution."""
UNEXPLAINED = "unexplained"
LIMITS_OF_UNITS = {
    "dram": ("memory_limit",),
    "l2": ("memory_limit", "unrelated_accesses"),
    "l1": ("memory_limit", "shared_memory_limit", "unrelated_accesses"),
}
"""Limits that a launch may have by the unit that its ideal time depends on; of the other units: arithmetic."""


class _Saving(NamedTuple):
    cause: str
    share: float
    low: float
    high: float


def launch_causes(counters: pd.DataFrame, figures: pd.DataFrame, bounds: pd.DataFrame) -> pd.DataFrame:
    """Return one row per launch and cause, with the columns `COLUMNS`.

    ``counters`` has one row per launch and one column per counter, and the launches as index; ``figures`` are the peak
    rates of `profsvc.analysis.potential.peaks`, ``bounds`` the potential with ``ideal_ns``, ``ideal_bound`` and
    ``duration_ns``, both in the same order.

    Rank 1 is the answer: the cause that costs most, or the limit of a launch that has nothing to gain: none of its
    causes saves more than the ideal time is uncertain by. ``low`` and ``high`` are the limits of ``saving_fraction``.
    ``evidence`` is a list of ``counter``, ``value`` and ``unit``. The savings of a launch add up to what it loses over
    its ideal time; what no cause explains is a row of its own. A launch without counts of stalls has no row; where the
    ideal time is not known, savings are shares of the time, without limits.
    """
    c = Counts(counters)
    values = {name: c[name] for name in {name for cause in causes().values() for name in cause.evidence}}
    shares = lost_time(counters, figures)
    duration, ideal = (bounds[name].to_numpy(dtype="float64") for name in ("duration_ns", "ideal_ns"))
    with np.errstate(all="ignore"):
        loss = np.clip(1 - ideal / duration, 0, 1)
    rows: list[dict[str, Any]] = []
    for place, launch in enumerate(counters.index):
        own = {str(name): float(share) for name, share in shares.iloc[place].dropna().items()}
        unit = bounds["ideal_bound"].iloc[place]
        for rank, saving in enumerate(_savings(own, loss[place], unit) if own else (), 1):
            cause = causes()[saving.cause]
            evidence = _evidence(cause, values, place)
            rows.append(_row(launch, rank, cause, saving, duration[place], evidence))
    return pd.DataFrame(rows, columns=list(COLUMNS))


def _savings(shares: Mapping[str, float], loss: float, unit: str | None) -> list[_Saving]:
    """Return the causes of one launch in the order of their rank; ``unit`` is what its ideal time depends on."""
    kinds = {name: causes()[name].kind for name in shares}
    found = ranked(shares, loss, kinds)
    limits_of_unit = LIMITS_OF_UNITS.get(unit, ("arithmetic_limit",)) if unit else shares
    limit = max((name for name in limits_of_unit if kinds[name] == "limit"), key=lambda name: shares[name])
    rest = loss - sum(share for _, share in found)
    if rest > 1e-9:
        found.append((UNEXPLAINED, rest))
    nothing = _Saving(limit, 0.0, 0.0, 0.0)
    if not found:
        return [nothing]
    proven = [float(causes()[name].avoidable == "proven") for name, _ in found]
    limits = saving_interval([share for _, share in found], loss, proven, IDEAL_TIME_ERROR)
    flaws = [
        _Saving(name, share, low, high)
        for (name, share), low, high in zip(found, limits.low.tolist(), limits.high.tolist(), strict=True)
    ]
    has_gain = np.isnan(loss) or any(flaw.low > 0 for flaw in flaws)
    return [*flaws, nothing] if has_gain else [nothing, *flaws]


def _evidence(cause: Cause, values: Mapping[str, np.ndarray], place: int) -> list[dict[str, Any]]:
    return [
        {"counter": name, "value": float(values[name][place]), "unit": vocabulary()[name].unit}
        for name in cause.evidence
        if not np.isnan(values[name][place])
    ]


def _row(
    launch: Any, rank: int, cause: Cause, saving: _Saving, duration: float, evidence: list[dict[str, Any]]
) -> dict[str, Any]:
    values = (
        launch, rank, cause.name, cause.title, cause.kind, saving.share * duration, saving.share, saving.low,
        saving.high, evidence, cause.first_step,
    )  # fmt: skip
    return dict(zip(COLUMNS, values, strict=True))
