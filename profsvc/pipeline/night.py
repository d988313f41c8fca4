"""The nightly report: the runs of a night held against those before, what is found kept, and the document made of it.

A night is a local date in a time zone, and ends with it. What came in since the report of the night before is looked
at; the same night again replaces its report and, of the same uploads, says the same.
"""

from collections.abc import Collection, Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, Any

import pandas as pd

from profsvc import store
from profsvc.analysis.night import judged, newest_runs
from profsvc.analysis.night_points import arranged, points
from profsvc.errors import NotFoundError, UsageError
from profsvc.pipeline.night_document import Looked, document, history, severity
from profsvc.pipeline.night_span import Span, span_of

if TYPE_CHECKING:
    from sqlalchemy import Engine

MOST_RUNS = 400
"""Runs of a device that its history goes back."""
AHEAD = timedelta(hours=14)
"""How far the clocks of the first time zone are ahead of UTC."""
STAMP = "%Y-%m-%dT%H:%M:%SZ"
# What the series of a kind are made of.
FIGURES = {
    "duration": ("durations", "means"),
    "criterion": ("criteria", "whole"),
    "potential": ("potential",),
    "data_quality": ("lines", "missing", "power"),
    **dict.fromkeys(("power", "energy", "temperature", "clock"), ("power",)),
}
ENDLESS = "9999-12-31T00:00:00Z"


def report_of_night(
    engine: "Engine",
    project: str | None = None,
    night: date | str | None = None,
    zone: str = "UTC",
    *,
    dry_run: bool = False,
) -> dict[str, Any]:
    """Return the report of a night on a project, or on all of them, and store it unless it is only tried.

    Raise `UsageError` where a later night is reported already: its findings would be undone.
    """
    span, scope = span_of(night, zone), project or ""
    if project and project not in (known := store.projects(engine)):
        raise NotFoundError.near("project", project, known)
    # Whatever zone a report is of, its night has begun by this date.
    today = (datetime.now(UTC) + AHEAD).date().isoformat()
    if not dry_run and (later := store.later_report(engine, scope, span.night, today)):
        raise UsageError(
            f"the night {later['night']} is reported already (report {later['report_id']}), and {span.night} is before "
            f"it; look at it with --dry-run, or remove that report: profsvc report delete {later['report_id']}"
        )
    before = store.report_before(engine, scope, span.night)
    looked = _looked(engine, scope, span, before)
    verdict = judged(looked.points, looked.known)
    said = store.states_said(engine, {int(row["run_id"]) for row in verdict.found})
    found = [row | {"state": said.get((str(row["series"]), int(row["run_id"])), "new")} for row in verdict.found]
    verdict = verdict._replace(found=sorted(found, key=severity))
    compose = partial(document, span, project, before, looked, verdict)
    if dry_run:
        return dict(compose(None, [None] * len(verdict.found)))
    moves = [store.Move(*(move[name] for name in store.Move._fields)) for move in verdict.moves]
    kept = store.Night(scope, span.night, zone, verdict.found, moves, verdict.seen)
    return dict(store.keep_night(engine, kept, compose))


@store.one_state
def _looked(engine: "Engine", scope: str, span: Span, before: Mapping[str, Any] | None) -> Looked:
    """Read what came in, with the history of its series."""
    until = span.ends.astimezone(UTC).strftime(STAMP)
    since, last = (int(before[name]) if before else 0 for name in ("newest_upload_id", "newest_refusal_id"))
    uploads = store.uploads_between(engine, scope, since, until)
    runs = store.runs_of_nights(engine, scope, until, since, MOST_RUNS)
    tonight = runs[runs["newest_upload_id"] > since]
    known = store.known_findings(engine, scope, span.night)
    series = series_of_runs(engine, runs, known)
    fresh = newest_runs(series, tonight["run_id"].tolist()) if len(series) else series
    refused = store.refusals_between(engine, scope, last, until)
    predictions = store.predictions_of_runs(engine, tonight["run_id"].tolist())
    newest = {
        "newest_upload_id": max((row["upload_id"] for row in uploads), default=since),
        "newest_refusal_id": max((row["refusal_id"] for row in refused), default=last),
    }
    return Looked(tonight, fresh, uploads, refused, predictions, known, newest)


def series_of_runs(
    engine: "Engine", runs: pd.DataFrame, known: Sequence[Mapping[str, Any]], *names: Collection[str]
) -> pd.DataFrame:
    """Return the points of all series of these runs; a finding that is not fixed keeps the reference of its series.

    ``names``: which figures are read, by default all.
    """
    figures = store.figures_of_runs(engine, runs["run_id"].tolist(), *names)
    references = {
        str(one["series"]): float(one["reference_temperature_c"])
        for one in known
        if one["state"] != "fixed" and one["reference_temperature_c"] is not None
    }
    return arranged(points(runs, figures), runs, references)


def series_of(engine: "Engine", finding: Mapping[str, Any], series: str) -> list[dict[str, Any]]:
    """Return the points of the series of a finding, as it stands today."""
    runs = store.runs_of_nights(engine, finding["project"], ENDLESS, 0, MOST_RUNS)
    known = [dict(finding) | {"series": series}]
    return history(series_of_runs(engine, runs, known, FIGURES[finding["kind"]]), series, MOST_RUNS)
