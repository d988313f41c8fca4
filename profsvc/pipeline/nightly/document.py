"""The document of a nightly report: everything that its text, page and mail say, as plain data."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import pandas as pd

from profsvc import specs
from profsvc.analysis.changes.events import KERNEL, SHIFT
from profsvc.analysis.changes.kernels.renames import KernelNames, Rename
from profsvc.analysis.changes.nightly import NightlyFindings
from profsvc.analysis.changes.open_findings import OPEN_STATES
from profsvc.analysis.changes.series.run_series import with_texts
from profsvc.pipeline.nightly.finding_details import finding_details, known_finding, suspicion_details
from profsvc.pipeline.nightly.kernels import LAUNCHED
from profsvc.pipeline.nightly.period import ReportPeriod
from profsvc.pipeline.nightly.verdict import one_line
from profsvc.reports.kernel_names import labels, subject_label
from profsvc.reports.nightly.events import event_text, kernel_change_text
from profsvc.reports.nightly.open_findings import open_groups
from profsvc.reports.rows import plain, visible

Row = dict[str, Any]
MAX_PLOTTED_FINDINGS = 6
"""Findings whose history goes with the report."""
MAX_POINTS = 120
MAX_NAME_CHARS = 500
POINT_COLUMNS = ("run_id", "run", "at", "value", "low", "high", "raw")
RUN_COLUMNS = ("run_id", "run", "project", "device", "branch", "at", "build")
REPEATED_COLUMNS = ("run", "project", "repeats", "build")


class NightScope(NamedTuple):
    """What a night looked at."""

    runs: pd.DataFrame
    points: pd.DataFrame
    uploads: Sequence[Row]
    refused: Sequence[Row]
    predictions: Sequence[Row]
    known: Sequence[Row]
    newest: Mapping[str, int]
    causes: Mapping[str, Sequence[Row]]
    """What changes of durations come from, by series."""
    events: Sequence[Row]
    """Findings that belong together."""
    kernels: Sequence[Row]
    """Kernels that are new, vanished, back or launched differently."""
    older_analysis: int
    """Runs of the histories that an older version of the analysis computed."""
    names: KernelNames
    """Kernels that have several names."""
    renames: Sequence[Rename]
    """Those that got another one."""
    out_of_order: Sequence[Row]
    """New runs that say they were measured before runs that reports looked at."""
    awaited: Sequence[Sequence[int]]
    """Numbers of uploads, as first and last ones, that were given but not seen: a later report looks at them."""


def document(
    span: ReportPeriod,
    project: str | None,
    before: Mapping[str, Any] | None,
    looked: NightScope,
    verdict: NightlyFindings,
    report_id: int | None,
    numbers: Sequence[int | None],
) -> Row:
    """Return the document of a report; ``numbers`` are those of its findings, which come the worst first."""
    builds, names = _builds_and_runs(looked.points)
    found = [
        finding_details(row | {"finding_id": number}, builds, names, looked.points, looked.causes)
        for row, number in zip(verdict.found, numbers, strict=True)
    ]
    _add_histories(found[:MAX_PLOTTED_FINDINGS], looked.points)
    moved = {move["finding_id"]: move for move in verdict.moves}
    known = {int(row["finding_id"]): known_finding(dict(row), verdict.seen) for row in looked.known}
    still = [row for key, row in known.items() if row["state"] in OPEN_STATES and key not in moved]
    made: Row = {
        "report_id": report_id,
        "project": project,
        "night": span.night,
        "zone": span.zone,
        "begins": span.begins.isoformat(),
        "ends": span.ends.isoformat(),
        "since": None if before is None else {"report_id": before["report_id"], "night": before["night"]},
        "changed": bool(found or moved),
        "runs": [{"name" if k == "run" else k: row[k] for k in RUN_COLUMNS} for row in looked.runs.to_dict("records")],
        "series": _series_counts(looked.points, verdict),
        "findings": found,
        "events": [
            event | {"findings": [found[place]["finding_id"] for place in event["members"]]} for event in looked.events
        ],
        "kernels": _kernel_changes(looked.kernels, verdict.found),
        "moved": sorted((known[key] | dict(move) for key, move in moved.items()), key=severity),
        "open": sorted(still, key=severity),
        "reruns": sorted((suspicion_details(row, builds) for row in verdict.reruns), key=_rerun_severity),
        "explained": verdict.explained,
        "told": verdict.told,
        "uncorrected": _uncorrected(looked),
        "older_analysis": looked.older_analysis,
        "repeated": looked.runs.loc[looked.runs["repeats"].notna(), list(REPEATED_COLUMNS)].to_dict("records"),
        "out_of_order": list(looked.out_of_order),
        "uploads": _upload_counts(looked),
        "predictions": list(looked.predictions),
    }
    _label_subjects(made, project, looked)
    for event in made["events"]:
        event["text"] = event_text(event, made["findings"]) + _place(event, made)
    made["open_groups"] = open_groups(made["open"])
    made["one_line"] = one_line(made)
    made["counts"] = _counts(made, looked.newest)
    document: Row = plain(made)
    return document


def _builds_and_runs(points: pd.DataFrame) -> tuple[dict[int, Any], dict[int, Any]]:
    """Return the builds and the names of runs by their numbers."""
    if points.empty:
        return {}, {}
    runs = with_texts(points.drop_duplicates("run_id"))
    builds, names = (dict(zip(runs["run_id"], runs[name], strict=True)) for name in ("build", "run"))
    return builds, names


def _add_histories(found: Sequence[Row], points: pd.DataFrame) -> None:
    shown = points[points["series"].isin([row["series"] for row in found])] if found else points
    for row in found:
        row["history"] = history(shown, str(row["series"]))


def _upload_counts(looked: NightScope) -> Row:
    return {
        "received": len(looked.uploads),
        "partial": [row for row in looked.uploads if row["status"] == "partial"],
        "refused": list(looked.refused),
        "rejected_lines": sum(int(row["lines_rejected"]) for row in looked.uploads),
        "awaited": list(looked.awaited),
    }


def _label_subjects(made: Row, project: str | None, looked: NightScope) -> None:
    """Name what each row is of: by a short name that no other kernel has, and by the project if there are several."""
    kernels = [
        *looked.points["kernel"].dropna().unique(),
        *(row["kernel"] for row in looked.kernels),
        *(row["kernel"] for row in looked.known if row["kernel"]),
    ]
    known_as = labels(kernels)
    several = project is None and len({row["project"] for row in [*made["runs"], *looked.known]}) > 1
    for part in ("findings", "kernels", "moved", "open", "reruns", "explained", "told"):
        made[part] = [
            row
            | {name: _shorten_name(row[name]) for name in ("kernel", "subject")}
            | {"label": subject_label(row, known_as) + (f" of {row['project']}" if several else "")}
            for row in made[part]
        ]


def _counts(made: Row, newest: Mapping[str, int]) -> Row:
    return {
        **newest,
        "runs": len(made["runs"]),
        "series": made["series"]["looked_at"],
        "findings_new": sum(row["state"] in OPEN_STATES for row in made["findings"]),
        "findings_open": len(made["open"]),
        "reruns_wanted": len(made["reruns"]),
        "uploads_failed": len(made["uploads"]["partial"]) + len(made["uploads"]["refused"]),
        "one_line": made["one_line"],
    }


def _place(event: Mapping[str, Any], made: Mapping[str, Any]) -> str:
    """Return the branch of an event of all kernels, and its project and device where the report has several of them."""
    first, places = made["findings"][event["members"][0]], list[str]()
    for name in ("project", "device"):
        several = len({row[name] for row in made["runs"]}) > 1
        if several and first[name] and not (name == "project" and event["kind"] in (KERNEL, SHIFT)):
            places.append(f"{name} {visible(str(first[name]))}")
    if first["branch"] and event["kind"] not in (KERNEL, SHIFT):
        places.append(f"branch {visible(str(first['branch']))}")
    return f" ({', '.join(places)})" if places else ""


def _kernel_changes(rows: Sequence[Row], found: Sequence[Row]) -> list[Row]:
    """Return what changed about kernels; a launch that changed with a found time is part of that finding."""
    of = ("project", "device", "branch", "kernel")
    slower = {tuple(row[name] for name in of) for row in found if row["kind"] == "duration"}
    return [
        dict(row) | {"text": kernel_change_text(row)}
        for row in rows
        if row["change"] != LAUNCHED or tuple(row[name] for name in of) not in slower
    ]


def _shorten_name(name: str | None) -> str | None:
    """Return a name as a report holds it: its beginning, where it is very long; v1_findings has it whole."""
    return name if name is None or len(name) <= MAX_NAME_CHARS else f"{name[:MAX_NAME_CHARS]}\u2026"


def severity(row: Mapping[str, Any]) -> tuple[Any, ...]:
    """Return the sort key of findings: those that cost most time per run first, and of others the largest change
    relative to the reporting threshold.

    Findings that users accepted or fixed before the night was reported again come last.
    """
    least = specs.smallest_change(row["kind"])
    size = max(least.relative * abs(row["before"]), least.absolute)
    times = abs(row["after"] - row["before"]) / size if size else 0.0
    rank = {1: 0, None: 1, 0: 2}[row["worse"]]
    settled = row.get("state", "new") not in OPEN_STATES
    cost = abs(row.get("cost_ns") or 0.0)
    return (
        settled,
        rank,
        -cost,
        -times,
        str(row["subject"]),
        str(row["quantity"]),
        str(row["sensor"]),
        str(row["series"]),
    )


def _rerun_severity(row: Mapping[str, Any]) -> tuple[Any, ...]:
    return severity({**row, "before": row["expected"], "after": row["value"]})


def _series_counts(points: pd.DataFrame, verdict: NightlyFindings) -> Row:
    corrected = 0 if points.empty else int(points.groupby("group")["reference_c"].first().notna().sum())
    return {"looked_at": verdict.tested + verdict.short, "tested": verdict.tested, "short": verdict.short,
            "needed": verdict.needed, "corrected": corrected, "left_out": verdict.left_out}  # fmt: skip


def history(points: pd.DataFrame, series: str, most: int = MAX_POINTS) -> list[Row]:
    """Return the newest points of a series, in order."""
    own = with_texts(points[points["series"] == series].tail(most))
    return [{name: row[name] for name in POINT_COLUMNS} for row in own.to_dict("records")]


def _uncorrected(looked: NightScope) -> list[Row]:
    """The windows of power of tonight that stand as measured, by reason."""
    if looked.points.empty:
        return []
    own = looked.points[looked.points["run_id"].isin(looked.runs["run_id"]) & (looked.points["kind"] == "power")]
    bare = own[own["reason"].notna()]
    return [
        {"reason": str(reason), "windows": len(group), "runs": int(group["run_id"].nunique())}
        for reason, group in bare.groupby("reason")
    ]
