"""The document of a nightly report: everything that its text, page and mail say, as plain data."""

import shlex
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import pandas as pd

from profsvc import specs
from profsvc.analysis.changes.events import KERNEL, SHIFT
from profsvc.analysis.changes.nightly import NightlyFindings
from profsvc.analysis.changes.open_findings import OPEN_STATES
from profsvc.analysis.changes.renames import KernelNames, Rename
from profsvc.analysis.changes.series import with_texts
from profsvc.formulas.change.nightly_test import MAX_FALSE_DISCOVERY_RATE
from profsvc.pipeline.nightly.kernels import LAUNCHED
from profsvc.pipeline.nightly.period import ReportPeriod
from profsvc.pipeline.nightly.verdict import context_changed, one_line
from profsvc.reports.kernel_names import labels, subject_label
from profsvc.reports.nightly.content import amount
from profsvc.reports.nightly.differences import cause_line, difference_lines, power_line
from profsvc.reports.nightly.events import event_text, kernel_change_text
from profsvc.reports.nightly.open_findings import open_groups
from profsvc.reports.rows import plain, visible
from profsvc.reports.text.comparison.two_runs import changed_parts

Row = dict[str, Any]
MAX_PLOTTED_FINDINGS = 6
"""Findings whose history goes with the report."""
MAX_POINTS = 120
MAX_NAME_CHARS = 500
POINT_COLUMNS = ("run_id", "run", "at", "value", "low", "high", "raw")
RUN_COLUMNS = ("run_id", "run", "project", "device", "branch", "at", "build")
REPEATED_COLUMNS = ("run", "project", "repeats", "build")
POWER_KINDS = ("power", "energy")


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
    """Kernels that are new, vanished or launched differently."""
    older_analysis: int
    """Runs of the histories that an older version of the analysis computed."""
    names: KernelNames
    """Kernels that have several names."""
    renames: Sequence[Rename]
    """Those that got another one."""
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
    runs = with_texts(looked.points.drop_duplicates("run_id")) if len(looked.points) else looked.points
    columns = (runs[name] if len(runs) else () for name in ("build", "run"))
    builds, names = (dict(zip(runs["run_id"] if len(runs) else (), column, strict=True)) for column in columns)
    found = [
        _finding_details(row | {"finding_id": number}, builds, names, looked)
        for row, number in zip(verdict.found, numbers, strict=True)
    ]
    plotted = found[:MAX_PLOTTED_FINDINGS]
    shown = (
        looked.points[looked.points["series"].isin([row["series"] for row in plotted])] if plotted else looked.points
    )
    for row in plotted:
        row["history"] = history(shown, str(row["series"]))
    moved = {move["finding_id"]: move for move in verdict.moves}
    known = {int(row["finding_id"]): _known_finding(dict(row), verdict.seen) for row in looked.known}
    still = [row for key, row in known.items() if row["state"] in OPEN_STATES and key not in moved]
    reruns = sorted((_suspicion_details(row, builds) for row in verdict.reruns), key=_rerun_severity)
    partial = [row for row in looked.uploads if row["status"] == "partial"]
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
        "reruns": reruns,
        "explained": verdict.explained,
        "told": verdict.told,
        "uncorrected": _uncorrected(looked),
        "older_analysis": looked.older_analysis,
        "repeated": looked.runs.loc[looked.runs["repeats"].notna(), list(REPEATED_COLUMNS)].to_dict("records"),
        "uploads": {"received": len(looked.uploads), "partial": partial, "refused": list(looked.refused),
                    "rejected_lines": sum(int(row["lines_rejected"]) for row in looked.uploads),
                    "awaited": list(looked.awaited)},
        "predictions": list(looked.predictions),
    }  # fmt: skip
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
    for event in made["events"]:
        event["text"] = event_text(event, made["findings"]) + _place(event, made)
    made["open_groups"] = open_groups(made["open"])
    made["one_line"] = one_line(made)
    made["counts"] = {
        **looked.newest,
        "runs": len(made["runs"]),
        "series": made["series"]["looked_at"],
        "findings_new": sum(row["state"] in OPEN_STATES for row in found),
        "findings_open": len(still),
        "reruns_wanted": len(reruns),
        "uploads_failed": len(partial) + len(looked.refused),
        "one_line": made["one_line"],
    }
    document: Row = plain(made)
    return document


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


def _finding_details(row: Row, builds: Mapping[int, Any], names: Mapping[int, Any], looked: NightScope) -> Row:
    """Return a finding with its evidence and the commands to continue with."""
    least = specs.smallest_change(row["kind"])
    commits = [builds.get(row[name]) for name in ("run_before_id", "run_id")]
    said = {
        "change": (row["after"] - row["before"]) / abs(row["before"]) if row["before"] else None,
        "run": names.get(row["run_id"]),
        "run_before": names.get(row["run_before_id"]),
        "build_before": commits[0],
        "build": commits[1],
        "least": {"relative": least.relative, "absolute": least.absolute},
    }
    row["differences"] = list(row.get("differences", ()))
    row["cause"] = cause_line(row["differences"])
    lines = power_line(row), *difference_lines(row["differences"]), _cost_line(row)
    why = [*filter(None, lines), *_evidence_lines(row, least, commits)]
    row = row | said | {"why": why, "compare": _compare(row)}
    if row["quantity"].startswith("raw_"):
        own = looked.points[(looked.points["series"] == row["series"]) & looked.points["reason"].notna()]
        reason = str(own["reason"].iloc[-1]) if len(own) else "unknown reason"
        row["why"].append(f"not temperature-corrected, so the temperature may be the cause: {reason}")
    row["causes"] = list(looked.causes.get(str(row["series"]), ()))
    if parts := changed_parts(row["causes"]):
        row["why"].append(f"mean time of the kernel in these two runs: {parts}")
    number = row["finding_id"]
    moved = None not in commits and commits[0] != commits[1]
    row["bisect"] = f"profsvc bisect {number} --repo FOLDER" if moved and number is not None else None
    row["accept"] = (
        None
        if number is None or row["state"] not in OPEN_STATES
        else f"profsvc findings set {number} accepted --because WHY"
    )
    return row


def _cost_line(row: Mapping[str, Any]) -> str:
    """Return the time per run that a finding costs or saves; empty if it is not known."""
    if not row.get("cost_ns"):
        return ""
    what = "costs" if row["cost_ns"] > 0 else "saves"
    return f"{what} {amount(abs(row['cost_ns']), 'ns')} per run"


def _evidence_lines(row: Row, least: specs.SmallestChange, commits: Sequence[Any]) -> list[str]:
    unit = row["unit"]
    sizes = {f"{100 * least.relative:g} %": least.relative, amount(least.absolute, unit): least.absolute}
    said = [
        f"p = {row['p']:.2g}; false-discovery rate {100 * row['adjusted_p']:.2g} % "
        f"(limit {100 * MAX_FALSE_DISCOVERY_RATE:g} %), given the noise of the history",
        f"{row['points_before']} runs before, {row['points_after']} since; run-to-run noise "
        f"{amount(row['noise'], unit)}",
        f"reporting threshold: {' and '.join(size for size, value in sizes.items() if value > 0)}",
    ]
    if row["reference_temperature_c"] is not None:
        raw = " to ".join(amount(row[name], unit) for name in ("raw_before", "raw_after"))
        said.append(f"at {row['reference_temperature_c']:g} \u00b0C; as measured {raw}")
    if None not in commits:
        same = commits[0] == commits[1]
        more = "; bisect measures the old one first, since the code may not be the cause" * context_changed(row)
        said.append(
            f"the build is the same, {visible(str(commits[0]))}: look at driver, clocks and cooling"
            if same
            else f"the build changed from {visible(str(commits[0]))} to {visible(str(commits[1]))}{more}"
        )
    return said


def _compare(row: Mapping[str, Any]) -> str:
    power = " --power" if row["kind"] in POWER_KINDS else ""
    return f"profsvc compare id:{row['run_before_id']} id:{row['run_id']}{power}"


def _suspicion_details(row: Row, builds: Mapping[int, Any]) -> Row:
    """Return a suspected change with what its run has that those before do not, and the command to continue with."""
    told = list(row.get("differences", ()))
    commits = {"build_before": builds.get(row.get("run_before_id", -1)), "build": builds.get(row["run_id"])}
    return row | commits | {"differences": told, "cause": cause_line(told), "command": _rerun_command(row)}


def _rerun_command(row: Mapping[str, Any]) -> str:
    project = shlex.quote(visible(str(row["project"])))
    return f"measure {visible(str(row['run']))} two or three times more: profsvc upload FILE --project {project}"


def _known_finding(row: Row, seen: Mapping[int, str]) -> Row:
    row["seen_at"] = seen.get(row["finding_id"], row["seen_at"])
    row["change"] = (row["after"] - row["before"]) / abs(row["before"]) if row["before"] else None
    return row | {"compare": _compare(row), "run": row.get("run")}


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
