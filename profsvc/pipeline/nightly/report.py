"""The nightly report: the runs of a night held against those before, what is found kept, and the document made of it.

A night is a local date in a time zone, and ends with it. What came in since the report of the night before is looked
at; the same night again replaces its report and, of the same uploads, says the same.
"""

import json
from collections.abc import Collection, Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, Any

import pandas as pd

from profsvc import store
from profsvc.analysis.changes.cause_changes import cause_changes
from profsvc.analysis.changes.kernels.renames import (
    KernelNames,
    KnownRenames,
    Rename,
    RenameDecision,
    kernel_names,
    under_newest_names,
)
from profsvc.analysis.changes.nightly import find_changes, series_of_tonight
from profsvc.analysis.changes.series.run_series import of_older_analysis, run_points, series_of_finding, to_series
from profsvc.errors import NotFoundError, UsageError
from profsvc.pipeline.nightly.document import NightScope, document, history, severity
from profsvc.pipeline.nightly.evidence import finding_differences, suspicion_differences
from profsvc.pipeline.nightly.kernels import kernel_changes
from profsvc.pipeline.nightly.origins import with_costs, with_origins
from profsvc.pipeline.nightly.out_of_order import out_of_order
from profsvc.pipeline.nightly.period import ReportPeriod, report_period
from profsvc.pipeline.nightly.renames import find_renames
from profsvc.reports.nightly.content import MAX_DETAILS
from profsvc.tables.labels import python_labels

if TYPE_CHECKING:
    from sqlalchemy import Engine

MAX_RUNS = 400
"""Runs that the history of a branch on a device goes back."""
MAX_UTC_OFFSET = timedelta(hours=14)
"""How far the clocks of the first time zone are ahead of UTC."""
TIME_FORMAT = "%Y-%m-%dT%H:%M:%SZ"
# What the series of a kind are made of.
FRAMES_OF_KIND = {
    "duration": ("durations", "means"),
    "criterion": ("criteria", "whole"),
    "potential": ("potential",),
    "data_quality": ("lines", "missing", "power"),
    **dict.fromkeys(("power", "energy", "temperature", "clock"), ("power",)),
}
NO_NAMES = KernelNames({})
END_OF_TIME = "9999-12-31T00:00:00Z"
LAST_NIGHT = "9999-12-31"


@store.keep_connections
@python_labels()
def report_of_night(
    engine: "Engine",
    project: str | None = None,
    night: date | str | None = None,
    zone: str = "UTC",
    *,
    dry_run: bool = False,
) -> dict[str, Any]:
    """Return the report of a night on a project, or on all of them, and store it unless it is only tried.

    Raise `UsageError` where a later night is reported already: its findings would be undone. Where another report is
    stored meanwhile, it is made again, for that one may have looked at more.
    """
    while True:
        try:
            return _report_of_night(engine, project, night, zone, dry_run)
        except store.OutdatedReportError:
            continue


def _report_of_night(
    engine: "Engine", project: str | None, night: date | str | None, zone: str, dry_run: bool
) -> dict[str, Any]:
    span, scope = report_period(night, zone), project or ""
    # The first files of a project may all be refused, which its report has to say.
    is_known = not project or project in (known := store.projects(engine))
    if not is_known and not store.refusals_between(engine, scope, 0, END_OF_TIME):
        raise NotFoundError.near("project", scope, known)
    # Whatever zone a report is of, its night has begun by this date.
    today = (datetime.now(UTC) + MAX_UTC_OFFSET).date().isoformat()
    adjacent = store.adjacent_reports(engine, scope, span.night, today)
    if not dry_run and (later := adjacent.later):
        raise UsageError(
            f"the night {later['night']} was already reported (report {later['report_id']}) and {span.night} is before "
            f"it; preview it with --dry-run, or delete that report: profsvc report delete {later['report_id']}"
        )
    before = adjacent.before
    if not dry_run:
        store.follow_repeated_uploads(engine)
    looked = _night_scope(engine, scope, span, before)
    tonight = looked.runs["run_id"].tolist()
    verdict = find_changes(looked.points, looked.known, tonight, zone)
    if lost := _without_their_history(engine, scope, span.night, looked, verdict.found):
        looked = looked._replace(known=[*looked.known, *lost])
        verdict = find_changes(looked.points, looked.known, tonight, zone)
    said = store.stored_states(engine, {int(row["run_id"]) for row in verdict.found})
    found = [row | {"state": said.get((str(row["series"]), int(row["run_id"])), "new")} for row in verdict.found]
    found = with_costs(engine, found, looked.names)
    verdict = verdict._replace(found=sorted(found, key=severity))
    looked = looked._replace(causes=changed_causes(engine, verdict.found[:MAX_DETAILS], looked.names))
    found, events = finding_differences(
        engine, verdict.found, looked.points, looked.causes, looked.names, verdict.siblings
    )
    suspected = suspicion_differences(engine, verdict.reruns, looked.points, looked.names)
    verdict, looked = verdict._replace(found=found, reruns=suspected), looked._replace(events=events)
    compose = partial(document, span, project, before, looked, verdict)
    if dry_run:
        return dict(compose(None, [None] * len(verdict.found)))
    moves = [store.StateChange(*(move[name] for name in store.StateChange._fields)) for move in verdict.moves]
    kept = store.NightlyRecord(scope, span.night, zone, verdict.found, moves, verdict.seen, looked.renames, adjacent)
    return dict(store.save_report(engine, kept, compose))


@store.snapshot
def _night_scope(engine: "Engine", scope: str, span: ReportPeriod, before: Mapping[str, Any] | None) -> NightScope:
    """Read what came in, with the history of its series."""
    until = span.ends.astimezone(UTC).strftime(TIME_FORMAT)
    since, last = (int(before[name]) if before else 0 for name in ("newest_upload_id", "newest_refusal_id"))
    waited = json.loads(before["document"]).get("uploads", {}).get("awaited", []) if before else []
    late, awaited = store.uploads_of_spans(engine, scope, waited, until)
    uploads = store.uploads_between(engine, scope, since, until, late)
    newest = max([since, *(int(row["upload_id"]) for row in uploads)])
    awaited += store.uploads_of_spans(engine, scope, [[since + 1, newest]] if newest > since else [], until)[1]
    runs = store.nightly_runs(engine, scope, until, since, MAX_RUNS, late=late)
    tonight = runs[runs["is_new"] == 1]
    builds = dict(zip(runs["run_id"].astype(int), runs["build"], strict=True))
    known = with_origins(engine, store.known_findings(engine, scope, span.night), builds)
    points = run_points(runs, store.series_of_runs(engine, runs["run_id"].tolist()))
    renames = known_renames(engine, scope, span.night)
    earlier = ~points["run_id"].isin(tonight["run_id"])
    so_far = kernel_names(renames, points[earlier], runs)
    shown = under_newest_names(points, so_far, earlier)
    renamed = find_renames(engine, shown, runs, tonight["run_id"].tolist(), so_far, renames, span.zone)
    names = kernel_names(renames._replace(found=[*renames.found, *renamed.renames]), points, runs)
    # Names that a person linked or separated since may have moved a finding to another series.
    known = [row | {"series": series_of_finding(row, names)} if renames.concerns(row) else row for row in known]
    points = under_newest_names(points, names)
    del shown  # a year of many kernels is large
    series = to_series(points, runs, _references(known), names)
    del points
    fresh = series_of_tonight(series, tonight["run_id"].tolist()) if len(series) else series
    kernels = kernel_changes(engine, series, tonight["run_id"].tolist(), renamed, span.zone)
    known = [names.under_newest(row) for row in known]
    refused = store.refusals_between(engine, scope, last, until)
    predictions = store.predictions_of_runs(engine, tonight["run_id"].tolist())
    covered = {
        "newest_upload_id": newest,
        "newest_refusal_id": max((row["refusal_id"] for row in refused), default=last),
    }
    older = int(of_older_analysis(runs).sum())
    return NightScope(
        tonight, fresh, uploads, refused, predictions, known, covered, {}, [], kernels, older, names, renamed.renames,
        out_of_order(runs, span.zone),
        [span for span in awaited if span[1] > newest - store.MAX_UPLOADS_BACK],
    )  # fmt: skip


def _without_their_history(
    engine: "Engine", scope: str, night: str, looked: NightScope, found: Sequence[Mapping[str, Any]]
) -> list[dict[str, Any]]:
    """Return what an earlier report of this night found in series that have fewer values since, as runs were deleted.

    Such a series can no longer show its change, which took place all the same.
    """
    points = looked.points
    if points.empty:
        return []
    builds = dict(zip(looked.runs["run_id"].astype(int), looked.runs["build"], strict=True))
    again = {(str(row["series"]), int(row["run_id"])) for row in found}
    lost = []
    for row in with_origins(engine, store.findings_of_night(engine, scope, night), builds):
        if (str(row["series"]), int(row["run_id"])) in again:
            continue
        runs = points.loc[points["series"] == str(row["series"]), "run_id"].tolist()
        if row["run_id"] in runs and len(runs) < row["points_before"] + row["points_after"]:
            lost.append(looked.names.under_newest(row))
    return lost


def known_renames(engine: "Engine", scope: str, night: str = LAST_NIGHT) -> KnownRenames:
    """Return the renames that reports before a night of a project, or of all, found, and what people decided."""
    return KnownRenames(
        [Rename(**row) for row in store.known_renames(engine, scope, night)],
        [RenameDecision(**row) for row in store.rename_decisions(engine, scope)],
    )


@store.snapshot
def changed_causes(
    engine: "Engine", found: Sequence[Mapping[str, Any]], names: KernelNames = NO_NAMES
) -> dict[str, list[dict[str, Any]]]:
    """Return by series what the changes of durations come from, as `cause_changes` divides those of the mean time.

    Findings whose kernel has no causes in one of its two runs are left out.
    """
    parts: dict[str, list[dict[str, Any]]] = {}
    kernels: dict[int, dict[str, dict[str, Any]]] = {}
    for row in found:
        if row["kind"] != "duration":
            continue
        sides = []
        for run_id in (row["run_before_id"], row["run_id"]):
            if run_id not in kernels:
                kernels[run_id] = store.kernels_of_run(engine, run_id)
            sides.append(next((kernels[run_id][name] for name in names.of(row).all if name in kernels[run_id]), None))
        old, new = sides
        if old and new and old["mean_ns"] and new["mean_ns"]:
            changes = cause_changes(old["causes"], new["causes"], old["mean_ns"], new["mean_ns"])
            if changes:
                parts[str(row["series"])] = changes
    return parts


def series_of_runs(
    engine: "Engine", runs: pd.DataFrame, known: Sequence[Mapping[str, Any]], renames: KnownRenames,
    figures: Collection[str],
) -> tuple[pd.DataFrame, KernelNames]:  # fmt: skip
    """Return the points of the series that are made of these ``figures``, and the kernels with several names.

    A finding that is not fixed keeps the reference of its series.
    """
    points = run_points(runs, store.series_of_runs(engine, runs["run_id"].tolist(), figures))
    names = kernel_names(renames, points, runs)
    return to_series(under_newest_names(points, names), runs, _references(known), names), names


def _references(known: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    """Return the reference temperatures of series by their findings."""
    return {
        str(one["series"]): float(one["reference_temperature_c"])
        for one in known
        if one["state"] != "fixed" and one["reference_temperature_c"] is not None
    }


def series_of(engine: "Engine", finding: Mapping[str, Any], series: str) -> list[dict[str, Any]]:
    """Return the points of the series of a finding, as it stands today."""
    runs = store.nightly_runs(engine, finding["project"], END_OF_TIME, 0, MAX_RUNS, finding["branch"])
    known, renames = [dict(finding) | {"series": series}], known_renames(engine, finding["project"])
    points, names = series_of_runs(engine, runs, known, renames, FRAMES_OF_KIND[finding["kind"]])
    own = series_of_finding(finding, names) if renames.concerns(finding) else series
    return history(points, own, MAX_RUNS)
