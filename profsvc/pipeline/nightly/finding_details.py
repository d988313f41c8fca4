"""What a report says of one finding: its evidence, and the commands to continue with."""

import shlex
from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from profsvc import specs
from profsvc.analysis.changes.open_findings import OPEN_STATES
from profsvc.formulas.change.nightly_test import MAX_FALSE_DISCOVERY_RATE
from profsvc.pipeline.nightly.verdict import context_changed
from profsvc.reports.nightly.content import amount
from profsvc.reports.nightly.differences import cause_line, difference_lines, power_line
from profsvc.reports.rows import visible
from profsvc.reports.text.comparison.two_runs import changed_parts

Row = dict[str, Any]
POWER_KINDS = ("power", "energy")


def finding_details(
    row: Row,
    builds: Mapping[int, Any],
    names: Mapping[int, Any],
    points: pd.DataFrame,
    causes: Mapping[str, Sequence[Row]],
) -> Row:
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
        own = points[(points["series"] == row["series"]) & points["reason"].notna()]
        reason = str(own["reason"].iloc[-1]) if len(own) else "unknown reason"
        row["why"].append(f"not temperature-corrected, so the temperature may be the cause: {reason}")
    row["causes"] = list(causes.get(str(row["series"]), ()))
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


def suspicion_details(row: Row, builds: Mapping[int, Any]) -> Row:
    """Return a suspected change with what its run has that those before do not, and the command to continue with."""
    told = list(row.get("differences", ()))
    commits = {"build_before": builds.get(row.get("run_before_id", -1)), "build": builds.get(row["run_id"])}
    return row | commits | {"differences": told, "cause": cause_line(told), "command": _rerun_command(row)}


def _rerun_command(row: Mapping[str, Any]) -> str:
    project = shlex.quote(visible(str(row["project"])))
    return f"measure {visible(str(row['run']))} two or three times more: profsvc upload FILE --project {project}"


def known_finding(row: Row, seen: Mapping[int, str]) -> Row:
    """Return a finding of an earlier night as this report shows it; ``seen``: when each was seen last."""
    row["seen_at"] = seen.get(row["finding_id"], row["seen_at"])
    row["change"] = (row["after"] - row["before"]) / abs(row["before"]) if row["before"] else None
    return row | {"compare": _compare(row), "run": row.get("run")}
