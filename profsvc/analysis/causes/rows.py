"""The causes of each launch as rows: what each costs, between which limits, its evidence and the first step."""

from typing import Any

import numpy as np
import pandas as pd

from profsvc.analysis.causes.attribution import UNEXPLAINED, lost_time, savings
from profsvc.analysis.counters.arrays import Counts
from profsvc.formulas.performance.lost_time import IDEAL_TIME_ERROR, saving_interval
from profsvc.specs.causes import Cause, causes
from profsvc.specs.metrics.vocabulary import counters as vocabulary

COLUMNS = (
    "launch_id", "rank", "cause", "title", "kind", "saving_ns", "saving_fraction", "low", "high", "evidence",
    "first_step",
)  # fmt: skip
LIMITS_OF_UNITS = {
    "dram": ("memory_limit",),
    "l2": ("memory_limit", "unrelated_accesses"),
    "l1": ("shared_memory_limit",),
}
"""Limits that a launch may have by the unit that its ideal time depends on; of the other units: arithmetic."""


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
    shares = lost_time(counters, figures)
    duration, ideal = (bounds[name].to_numpy(dtype="float64") for name in ("duration_ns", "ideal_ns"))
    with np.errstate(all="ignore"):
        loss = np.clip(1 - ideal / duration, 0, 1)
    flaws = savings(shares, loss)
    names, amounts = [str(name) for name in flaws], flaws.to_numpy()
    proven = [float(causes()[name].avoidable == "proven") for name in names]
    interval = saving_interval(amounts, loss[:, None], proven, IDEAL_TIME_ERROR)
    has_gain = np.isnan(loss) | (interval.low > 0).any(axis=1)
    limits = _limits(shares, bounds["ideal_bound"].tolist())
    # What is unexplained names no cause: it stands behind those that are.
    order = np.argsort(np.where(np.array(names) == UNEXPLAINED, 0.0, -amounts), axis=1, kind="stable")
    values = {name: Counts(counters)[name] for name in {name for cause in causes().values() for name in cause.evidence}}
    rows: list[tuple[Any, ...]] = []
    for place, (launch, is_known) in enumerate(zip(counters.index, shares.notna().any(axis=1), strict=True)):
        if not is_known:
            continue
        found = [
            (names[i], *(float(table[place, i]) for table in (amounts, *interval)))
            for i in order[place]
            if amounts[place, i] > 0
        ]
        # All that is lost, while no cause stands out, is the most that the launch could gain.
        nothing = (limits[place], 0.0, 0.0, 0.0 if has_gain[place] else float(loss[place]))
        for rank, (name, share, low, high) in enumerate([*found, nothing] if has_gain[place] else [nothing, *found], 1):
            cause = causes()[name]
            saving = (share * duration[place], share, low, high, _evidence(cause, values, place), cause.first_step)
            rows.append((launch, rank, name, cause.title, cause.kind, *saving))
    return pd.DataFrame(rows, columns=list(COLUMNS))


def _limits(shares: pd.DataFrame, units: list[str | None]) -> list[str]:
    """Return which limit each launch is at: of those of its unit the one that takes most of the time."""
    every = tuple(str(name) for name in shares if causes()[str(name)].kind == "limit")
    taken = [dict(zip(every, row, strict=True)) for row in shares[list(every)].fillna(0.0).to_numpy().tolist()]
    found = []
    for unit, own in zip(units, taken, strict=True):
        names = LIMITS_OF_UNITS.get(unit, ("arithmetic_limit",)) if isinstance(unit, str) else every
        found.append(max(names, key=own.__getitem__))
    return found


def _evidence(cause: Cause, values: dict[str, np.ndarray], place: int) -> list[dict[str, Any]]:
    known = [(name, float(values[name][place])) for name in cause.evidence]
    return [
        {"counter": name, "value": value, "unit": vocabulary()[name].unit} for name, value in known if value == value
    ]
