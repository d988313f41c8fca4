"""What else changed where a series changed: the runs before the change held against those since, fact by fact."""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd

from profsvc import specs, store
from profsvc.analysis.changes.differences import cause_differences, differences
from profsvc.analysis.changes.events import WINDOW_KINDS, Siblings, find_events
from profsvc.analysis.changes.kernels.renames import KernelNames
from profsvc.analysis.changes.open_findings import OPEN_STATES
from profsvc.analysis.kernel_means import counters_of_means
from profsvc.kernel_names import with_template_arguments
from profsvc.pipeline.kernel_means import means_of_run
from profsvc.reports.nightly.events import event_text

if TYPE_CHECKING:
    from sqlalchemy import Engine

Row = dict[str, Any]
MAX_EXPLAINED = 50
"""Findings of a report, the worst first, of which is read what else changed in their kernels; of others in their runs.
"""
MAX_SIDE_RUNS = 5
"""Runs before a change, and since, that are held against each other."""
MAX_EARLIER_RUNS = 40
"""Runs before these, in which what the whole run had is no cause if the series had not moved."""
SHAPES = ("grid", "block")
"""Facts of kernels of which launches are listed."""
MAX_KERNELS = 20
WHOLE_RUN_PARTS = ("context", "build")
APPEARED, VANISHED = "appeared", "vanished"
KERNEL_TITLES = {APPEARED: "new kernel", VANISHED: "vanished kernel"}


class _Evidence(NamedTuple):
    """Findings that are explained, and what the runs of their changes had."""

    told: list[Row]
    sides: list[tuple[list[int], list[int]]]  # the runs before each change, and since
    unmoved: list[list[int]]  # earlier runs of each, in which the series had not moved
    facts: pd.DataFrame
    times: pd.DataFrame  # of each kernel in each run


@store.snapshot
def finding_differences(
    engine: "Engine",
    found: Sequence[Mapping[str, Any]],
    points: pd.DataFrame,
    causes: Mapping[str, Sequence[Mapping[str, Any]]],
    names: KernelNames,
    siblings: Sequence[Siblings] = (),
) -> tuple[list[Row], list[Row]]:
    """Return the findings with their ``differences``, and the events that they make up.

    Differences are what else differs between the runs before a finding and those since. ``points`` are those of all
    series; ``causes`` the parts of changes of time, by series; ``siblings`` what the others did, as `find_events`
    takes them.
    """
    if not found:
        return [], []
    evidence = _read_evidence(engine, [dict(row) for row in found[:MAX_EXPLAINED]], points, names)
    made = _differences_of_each(evidence, causes, names)
    explained = [row | {"differences": own} for row, own in zip(evidence.told, made, strict=True)]
    explained += _of_the_same_runs(explained, found[MAX_EXPLAINED:])
    events = find_events(
        [row if row.get("state", "new") in OPEN_STATES else row | {"kind": ""} for row in explained],
        _kernels_measured(points, found),
        _totals(evidence, names),
        siblings,
    )
    for event in events:
        for place in event["members"]:
            explained[place]["differences"] = [*_membership(event, explained), *explained[place]["differences"]]
    return explained, events


def _read_evidence(engine: "Engine", told: list[Row], points: pd.DataFrame, names: KernelNames) -> _Evidence:
    """Read what the runs of changes had: the kernels of the findings, and the whole runs."""
    points = points[points["series"].isin([row["series"] for row in told])]
    sides = [_sides(points, row) for row in told]
    unmoved = [_unmoved(points, row, before) for row, (before, _) in zip(told, sides, strict=True)]
    run_ids = sorted({run_id for pair in sides for side in pair for run_id in side})
    earlier = sorted({run_id for runs in unmoved for run_id in runs} - set(run_ids))
    kernels, wanted = (
        sorted({name for row in told if row["kernel"] for name in names.of(row).all}),
        list(specs.change_facts()),
    )
    facts = store.facts_of_runs(engine, run_ids, kernels, wanted)
    parts = [facts, _facts_of_means(engine, run_ids, set(kernels), facts)]
    whole = store.facts_of_runs(engine, earlier, [], wanted)
    if len(whole):
        parts.append(whole)
    return _Evidence(told, sides, unmoved, pd.concat(parts, ignore_index=True), store.time_by_kernel(engine, run_ids))


def _differences_of_each(
    evidence: _Evidence, causes: Mapping[str, Sequence[Mapping[str, Any]]], names: KernelNames
) -> list[list[Row]]:
    """Return what else differs for each finding: facts, causes of lost time, new and vanished kernels."""
    made = list[list[Row]]()
    for row, (before, since), still in zip(evidence.told, evidence.sides, evidence.unmoved, strict=True):
        own = names.with_newest_name(evidence.facts, row)
        own = own[own["kernel"].isna() | (own["kernel"] == row["kernel"])]
        if row["kind"] in WINDOW_KINDS and not str(row["quantity"]).startswith("raw_"):
            own = own[own["fact"] != "temperature_c"]  # the powers are at one temperature
        made.append(
            [
                *differences(pd.concat([own, _names_then(evidence.facts, row, names)]), before, since, still),
                *cause_differences(causes.get(str(row["series"]), ()), row["kernel"]),
                *kernel_differences(names.with_newest_name(evidence.times, row), before, since),
            ]
        )
    return made


def _kernels_measured(points: pd.DataFrame, found: Sequence[Mapping[str, Any]]) -> Callable[[Mapping[str, Any]], int]:
    """Return how to say of how many kernels the first run of a finding has durations."""
    inside = (points["kind"] == "duration") & points["run_id"].isin([row["run_id"] for row in found])
    by_run = points[inside].groupby("run_id")["kernel"].nunique()
    return lambda row: int(by_run.get(row["run_id"], 0))


def _totals(evidence: _Evidence, names: KernelNames) -> dict[tuple[str, str], tuple[float, float]]:
    """Return the times per run of the kernels of findings, before and since, by series and kernel."""
    return {
        (str(row["series"]), str(row["kernel"])): pair
        for row, side in zip(evidence.told, evidence.sides, strict=True)
        if row["kernel"] and (pair := _times_per_run(evidence.times, row, side, names)) is not None
    }


def _of_the_same_runs(explained: Sequence[Row], others: Sequence[Mapping[str, Any]]) -> list[Row]:
    """Return further findings, with what differs between whole runs as a finding of the same runs has it."""
    whole: dict[tuple[Any, ...], list[Row]] = {}
    for row in explained:
        of_runs = [one for one in row["differences"] if one["part"] in WHOLE_RUN_PARTS and one["kernel"] is None]
        whole.setdefault((row["run_before_id"], row["run_id"]), of_runs)
    return [dict(row) | {"differences": whole.get((row["run_before_id"], row["run_id"]), [])} for row in others]


def _facts_of_means(engine: "Engine", run_ids: Sequence[int], kernels: set[str], facts: pd.DataFrame) -> pd.DataFrame:
    """Return the counters of kernels of which an export has means alone, and no launches, as facts of these runs."""
    counters, rows = specs.change_facts(), []
    listed = set(facts.loc[facts["fact"].isin(SHAPES), ["run_id", "kernel"]].itertuples(index=False, name=None))
    for run_id in run_ids if kernels else ():
        means = means_of_run(engine, run_id) if store.has_kernel_metrics(engine, run_id) else None
        for own, table, _ in counters_of_means(means) if means else ():
            for name in [name for name in table.columns if name in counters]:
                for kernel, value in zip(own["kernel"], table[name], strict=True):
                    if kernel in kernels and (run_id, kernel) not in listed and not pd.isna(value):
                        rows.append((run_id, kernel, name, "mean launch", float(value), None))
    return pd.DataFrame(rows, columns=list(facts.columns)).astype({"value": "float64"})


def _names_then(facts: pd.DataFrame, row: Mapping[str, Any], names: KernelNames) -> pd.DataFrame:
    """Return the name of a kernel in each run as a fact, where it has several."""
    several = names.of(row).all if row["kernel"] else frozenset()
    own = facts[facts["kernel"].isin(several if len(several) > 1 else ())].drop_duplicates(["run_id", "kernel"])
    then = own["kernel"].map(with_template_arguments)
    return own.assign(fact="name", basis="", value=np.nan, text=then, kernel=row["kernel"])


def suspicion_differences(
    engine: "Engine", reruns: Sequence[Mapping[str, Any]], points: pd.DataFrame, names: KernelNames
) -> list[Row]:
    """Return suspected changes with the last run at the expected value, and what else differs from the runs before."""
    rows = []
    for row in reruns[:MAX_EXPLAINED]:
        own = points[points["series"] == row["series"]]
        before = own[: list(own["run_id"]).index(row["run_id"])]
        near = before[(before["value"] - row["expected"]).abs() < (before["value"] - row["value"]).abs()]
        last = int(near["run_id"].iloc[-1]) if len(near) else None
        rows.append({**row, "before": row["expected"], "after": row["value"], "run_before_id": last})
    told, _ = finding_differences(engine, rows, points, {}, names)
    kept_columns = "run_before_id", "differences"
    kept = [{name: row[name] for name in kept_columns} for row in told]
    for row in kept:
        row["differences"] = [one for one in row["differences"] if one["part"] != "event"]
    kept += [{"run_before_id": None, "differences": []} for _ in reruns[MAX_EXPLAINED:]]
    return [dict(row) | own for row, own in zip(reruns, kept, strict=True)]


def _membership(event: Row, found: Sequence[Row]) -> list[Row]:
    """Return the row of `finding_differences` that says which event a finding is part of."""
    row = dict.fromkeys(("kernel", "before", "after", "before_text", "change"))
    said = event_text(event, found)
    return [{**row, "fact": "event", "part": "event", "title": "one event", "unit": "", "after_text": said}]


def _times_per_run(
    times: pd.DataFrame, row: Mapping[str, Any], sides: tuple[Sequence[int], Sequence[int]], names: KernelNames
) -> tuple[float, float] | None:
    """Return the median time per run of the kernel of a finding before its change and since."""
    own = times[times["kernel"].isin(list(names.of(row).all))]
    old, new = (own.loc[own["run_id"].isin(list(side)), "total_ns"].median() for side in sides)
    return None if pd.isna(old) or pd.isna(new) else (float(old), float(new))


def _sides(points: pd.DataFrame, row: Mapping[str, Any]) -> tuple[list[int], list[int]]:
    """Return the runs of a series that are nearest to its change, before it and since."""
    own = [int(run) for run in points.loc[points["series"] == row["series"], "run_id"]]
    first = own.index(row["run_id"]) if row["run_id"] in own else len(own)
    before = [run for run in own[:first] if run != row["run_id"]]
    last = before.index(row["run_before_id"]) + 1 if row["run_before_id"] in before else len(before)
    return before[max(0, last - MAX_SIDE_RUNS) : last], own[first : first + MAX_SIDE_RUNS]


def _unmoved(points: pd.DataFrame, row: Mapping[str, Any], before: Sequence[int]) -> list[int]:
    """Return the earlier runs in which a series was nearer to the level before its change than to the one after."""
    own = points[points["series"] == row["series"]]
    if not before or before[0] not in set(own["run_id"]):
        return []
    first = list(own["run_id"]).index(before[0])
    own = own.iloc[max(0, first - MAX_EARLIER_RUNS) : first + len(before)]
    near = (own["value"] - row["before"]).abs() < (own["value"] - row["after"]).abs()
    return [int(run) for run in own.loc[near, "run_id"]]


def kernel_differences(times: pd.DataFrame, before: Collection[int], since: Collection[int]) -> list[Row]:
    """Return the kernels that all runs of one side have and none of the other, those with most time first."""
    sides = [times[times["run_id"].isin(list(runs))] for runs in (before, since)]
    if any(side.empty for side in sides):
        return []
    means = [side.groupby("kernel")["total_ns"].agg(["mean", "size"]) for side in sides]
    runs = [side["run_id"].nunique() for side in sides]
    rows: list[Row] = []
    for fact, own, other, place in ((APPEARED, 1, 0, "after"), (VANISHED, 0, 1, "before")):
        alone = means[own][means[own]["size"] == runs[own]].drop(means[other].index, errors="ignore")
        for kernel, mean in alone["mean"].items():
            row = dict.fromkeys(("before", "after", "before_text", "after_text", "change"))
            time = None if pd.isna(mean) else float(mean)
            rows.append({**row, "fact": fact, "part": "kernels", "title": KERNEL_TITLES[fact], "unit": "ns",
                         "kernel": str(kernel), place: time})  # fmt: skip
    rows.sort(key=lambda row: (-(row["after"] or row["before"] or 0.0), row["kernel"]))
    return rows[:MAX_KERNELS]
