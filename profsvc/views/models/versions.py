"""Speedups along a series of versions: runs in order, or the launches of one run."""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from profsvc import store
from profsvc.errors import NotFoundError, UsageError
from profsvc.formulas.performance.roofline import speedup_chain
from profsvc.formulas.performance.speedup import disjoint_amdahl, remaining_potential
from profsvc.kernel_names import matching_kernels
from profsvc.views.launches.listing import launches_of

if TYPE_CHECKING:
    from sqlalchemy import Engine

Row = dict[str, Any]
MAX_VERSIONS = 200
COLUMNS = (
    "version", "time_us", "step", "total", "potential", "left_of_first", "ideal_us", "part", "part_share",
    "part_speedup", "part_alone",
)  # fmt: skip
NOTES = (
    "step: over the version before; total: over the first; potential: of the version itself",
    "left_of_first: potential of the first version / total, so what its prediction leaves; below 1: more was reached",
)
PART_NOTE = "part: the kernel that gained most in the step; part_alone: the step if nothing else had changed"
KERNELS_NOTE = "launches of {} kernels are compared as versions of the same work; --kernel NAME compares those of one"
MEAN_NOTE = "times are means per launch, as the runs have different numbers of launches"


@store.snapshot
def versions(engine: "Engine", runs: Sequence[str | int], kernel: str | None = None) -> Row:
    """Return one row per version: of several runs, or of the launches of one run in their order.

    ``kernel`` is a name or a part of it. Without it several runs are compared by the time of all their kernels, and
    one run by all of its launches.
    """
    if not 1 <= len(runs) <= MAX_VERSIONS:
        raise UsageError(f"{len(runs)} runs are given; allowed: 1 to {MAX_VERSIONS}")
    found, notes = _launches(engine, runs[0], kernel) if len(runs) == 1 else _runs(engine, runs, kernel)
    if len(found) < 2:
        raise UsageError(f"there is only {len(found)} version; give several runs, or a part of several kernels' names")
    times = np.array([np.nan if row["time_us"] is None else row["time_us"] for row in found])
    chain = speedup_chain(times)
    first = found[0]["potential"]
    left = remaining_potential(np.nan if first is None else first, chain.total)
    for row, step, total, rest in zip(found, chain.step, chain.total, left, strict=True):
        row |= {"step": _known(step), "total": _known(total), "left_of_first": _known(rest)}
        time, potential = row["time_us"], row["potential"]
        row["ideal_us"] = time / potential if time and potential else None
    if len(runs) > 1:
        _add_parts(found)
        notes = [PART_NOTE, *notes]
    return {"kernel": kernel, "rows": [{name: row.get(name) for name in COLUMNS} for row in found],
            "notes": [*NOTES, *notes]}  # fmt: skip


def _known(value: Any) -> float | None:
    return float(value) if np.isfinite(value) else None


def _launches(engine: "Engine", run: str | int, kernel: str | None) -> tuple[list[Row], list[str]]:
    """Return the launches of a run in their order."""
    chosen, truncated = launches_of(engine, run, kernel, MAX_VERSIONS)
    if truncated:
        raise UsageError(f"run {run!r} has more than {MAX_VERSIONS} such launches; give a kernel")
    chosen.sort(key=lambda row: row["launch_id"])
    ids = [row["launch_id"] for row in chosen]
    run_id = store.find_run(engine, run)
    bounds = {row["launch_id"]: row["speedup"] for row in store.launch_rows(engine, "v1_potential", run_id, ids)}
    rows = [
        {"version": f"#{row['launch_index']} {row['kernel_short']}", "potential": bounds.get(row["launch_id"]),
         "time_us": None if row["duration_ns"] is None else row["duration_ns"] / 1e3}
        for row in chosen
    ]  # fmt: skip
    kernels = len({row["kernel"] for row in chosen})
    return rows, [KERNELS_NOTE.format(kernels)] if kernels > 1 and kernel is None else []


def _runs(engine: "Engine", runs: Sequence[str | int], kernel: str | None) -> tuple[list[Row], list[str]]:
    """Return the runs in the order given, each with the times of its kernels."""
    rows: list[Row] = []
    for run in runs:
        run_id = store.find_run(engine, run)
        kernels = _kernels(store.kernels_of_run(engine, run_id), run_id, run, kernel)
        total = sum(one["total_ns"] or 0.0 for one in kernels)
        known = [one for one in kernels if one["predicted"] and one["total_ns"]]
        ideal = sum(one["total_ns"] / one["predicted"] for one in known)
        covered = sum(one["total_ns"] for one in known)
        rows.append(
            {"version": str(run), "launches": sum(one["launches"] for one in kernels),
             "potential": total / (ideal + total - covered) if known else None,
             "time_us": total / 1e3 if total else None,
             "kernels": {one["kernel_short"]: (one["total_ns"] or 0.0) / 1e3 for one in kernels}}
        )  # fmt: skip
    if kernel is None or len({row["launches"] for row in rows}) == 1:
        return rows, []
    for row in rows:
        row["time_us"] = row["time_us"] and row["time_us"] / row["launches"]
        row["kernels"] = {name: time / row["launches"] for name, time in row["kernels"].items()}
    return rows, [MEAN_NOTE]


def _kernels(known: Mapping[str, Row], run_id: int, run: str | int, kernel: str | None) -> list[Row]:
    """Return the kernels of a run that a name means."""
    if kernel is not None:
        exact = set(matching_kernels(kernel, list(known)))
        known = {name: one for name, one in known.items() if name in exact or (not exact and kernel in name)}
    if not known:
        which = "" if kernel is None else f" named {kernel!r}"
        raise NotFoundError(f"run {run!r} has no kernel{which}; see: profsvc show id:{run_id}")
    return list(known.values())


def _add_parts(rows: Sequence[Row]) -> None:
    """Add to each step the kernel that gained most, and what the step would be by it alone."""
    for before, after in pairwise(rows):
        whole = before["time_us"]
        gains = {name: time - after["kernels"].get(name, 0.0) for name, time in before["kernels"].items()}
        name = max(gains, key=lambda one: gains[one], default=None)
        if not whole or name is None or gains[name] <= 0:
            continue
        old, new = before["kernels"][name], after["kernels"].get(name, 0.0)
        alone = disjoint_amdahl([min(1.0, old / whole)], [new / old])
        after |= {"part": name, "part_share": old / whole, "part_speedup": old / new if new else None,
                  "part_alone": _known(alone)}  # fmt: skip
