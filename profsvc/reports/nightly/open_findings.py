"""Open findings by the change that they began with: a commit, or a run of no known commit."""

import shlex
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from profsvc.analysis.changes.series.run_series import WHOLE_RUN
from profsvc.errors import counted
from profsvc.reports.nightly.content import amount, percent, short
from profsvc.reports.nightly.differences import cause_line, told_differences
from profsvc.reports.rows import visible

Row = Mapping[str, Any]
Group = dict[str, Any]
DIRECTIONS = ((1, "regression"), (0, "improvement"), (None, "other change"))
MAX_BUILD_CHARS = 12


def open_groups(rows: Sequence[Row]) -> list[Group]:
    """Return open findings by the change that they began with, those whose regressions cost most time first.

    A group has project, branch, commit (None if no run of it names one), runs (names), findings (their numbers, the
    costliest first), regressions, improvements, others (how many kernels, loads or quantities of whole runs have each),
    kernels (how many), cost_ns (time more per run, None if it is not known), costliest and oldest (numbers), since (the
    time of the oldest), cause (what else changed in all of them) and text.

    >>> row = {"finding_id": 3, "project": "lab", "branch": None, "build": "c0000021", "run": "r", "run_id": 8,
    ...        "kernel": "k", "subject": "k", "device": "H200", "quantity": "duration", "kind": "duration",
    ...        "unit": "ns", "worse": 1, "before": 100.0, "after": 105.0, "cost_ns": 5e3,
    ...        "changed_at": "2026-01-09T02:00:00Z"}
    >>> (group,) = open_groups([row, row | {"finding_id": 2, "kernel": "l", "subject": "l", "cost_ns": 9e3}])
    >>> group["findings"], group["cost_ns"], group["oldest"]
    ([2, 3], 14000.0, 2)
    >>> group["text"]
    'since c0000021: 2 regressions of 2 kernels (+14 us per run), the costliest #2 l duration +5.0 %'
    """
    groups: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        began = ("commit", str(row["build"])) if row.get("build") else ("run", row["run_id"])
        groups.setdefault((row["project"], row.get("branch"), *began), []).append(row)
    made = [_group(own) for own in groups.values()]
    return sorted(made, key=lambda one: (not one["regressions"], -(one["cost_ns"] or 0.0), one["since"]))


def _group(rows: Sequence[Row]) -> Group:
    rows = sorted(rows, key=_cost_order)
    first, oldest = rows[0], min(rows, key=lambda row: (row["changed_at"], row["finding_id"]))
    counts = [len({_matter(row) for row in rows if row["worse"] == worse}) for worse, _ in DIRECTIONS]
    made: Group = {
        "project": first["project"],
        "branch": first.get("branch"),
        "commit": first.get("build"),
        "runs": list(dict.fromkeys(row["run"] for row in rows if row["run"])),
        "findings": [row["finding_id"] for row in rows],
        **dict(zip(("regressions", "improvements", "others"), counts, strict=True)),
        "kernels": len({row["kernel"] for row in rows if row["kernel"]}),
        "cost_ns": _cost(rows),
        "costliest": first["finding_id"],
        "costliest_text": brief(first),
        "oldest": oldest["finding_id"],
        "since": oldest["changed_at"],
        "cause": cause_line(_in_all(rows)),
    }
    return made | {"text": _text(made)}


def _cost_order(row: Row) -> tuple[Any, ...]:
    return row["worse"] != 1, -(row.get("cost_ns") or 0.0), -_size(row), row["finding_id"]


def _matter(row: Row) -> tuple[Any, ...]:
    """Return what a finding is of: all quantities of one kernel or load, but each of a whole run."""
    named = row.get("label") or row["subject"]
    return row["device"], named, row["quantity"] if row["subject"] == WHOLE_RUN else None


def _size(row: Row) -> float:
    return abs(row["after"] - row["before"]) / abs(row["before"]) if row["before"] else 0.0


def _cost(rows: Iterable[Row]) -> float | None:
    """Return how much more time per run findings cost; of several tools that measured a kernel the largest counts."""
    most: dict[tuple[Any, ...], float] = {}
    for row in rows:
        if (cost := row.get("cost_ns")) is not None:
            key = row["device"], row["kernel"]
            most[key] = max(most.get(key, cost), cost, key=abs)
    return sum(most.values()) if most else None


def _in_all(rows: Sequence[Row]) -> list[Row]:
    """Return what else changed in all findings, to the same value."""
    told = [told_differences(row.get("differences", ())) for row in rows]
    kept = {(one["fact"], one["after"], one["after_text"]) for one in told[0]}
    for own in told[1:]:
        kept &= {(one["fact"], one["after"], one["after_text"]) for one in own}
    return [one for one in told[0] if (one["fact"], one["after"], one["after_text"]) in kept]


def brief(row: Row) -> str:
    """Return a finding in a few words, with its number.

    >>> brief({"finding_id": 3, "subject": "saxpy", "quantity": "duration", "kind": "duration", "unit": "ns",
    ...        "before": 100.0, "after": 112.0})
    '#3 saxpy duration +12.0 %'
    """
    return f"#{row['finding_id']} {short(row.get('label') or row['subject'])} " + (
        f"{str(row['quantity']).replace('_', ' ')} {percent(row)}"
    )


def began(group: Row) -> str:
    """Return the change that a group began with.

    >>> began({"commit": "c" * 40, "runs": ["night 7"]}), began({"commit": None, "runs": ["night 7"]})
    ('cccccccccccc', 'run night 7')
    """
    if group["commit"]:
        return visible(str(group["commit"]))[:MAX_BUILD_CHARS]
    return f"run {short(group['runs'][0], 40)}" if group["runs"] else "a run that was deleted"


def directions(group: Row) -> str:
    """Return how many regressions and others a group has, and of how many kernels."""
    names = ("regressions", "improvements", "others")
    said = ", ".join(counted(group[name], one) for name, (_, one) in zip(names, DIRECTIONS, strict=True) if group[name])
    return said + (f" of {group['kernels']} kernels" if group["kernels"] > 1 else "")


def cost(group: Row) -> str:
    """Return the time that a group costs per run; empty if it is not known.

    >>> cost({"cost_ns": 1.25e6}), cost({"cost_ns": -3e3}), cost({"cost_ns": None})
    ('+1.25 ms', '-3 us', '')
    """
    value = group["cost_ns"]
    return "" if value is None else f"{'+' * (value > 0)}{amount(value, 'ns')}"


def _text(group: Row) -> str:
    several = len(group["findings"]) > 1
    more = f" ({cost(group)} per run)" if cost(group) else ""
    named = f", the costliest {group['costliest_text']}" if several else f", {group['costliest_text']}"
    cause = f"; changed with it: {group['cause']}" if group["cause"] else ""
    return f"since {began(group)}: {directions(group)}{more}{named}{cause}"


def open_words(groups: Sequence[Row]) -> list[str]:
    """Return how many findings are open, of how many changes, and the regression that costs most, for the verdict.

    >>> group = {"regressions": 2, "improvements": 0, "others": 1, "commit": "c0000021", "runs": [],
    ...          "costliest_text": "#2 l duration +5.0 %"}
    >>> open_words([group, group])
    ['4 regressions of 2 changes still open (the costliest #2 l duration +5.0 % since c0000021)',
     '2 other changes still open']
    """
    said = []
    for name, (_, one) in zip(("regressions", "improvements", "others"), DIRECTIONS, strict=True):
        own = [group for group in groups if group[name]]
        count = sum(group[name] for group in own)
        if not count:
            continue
        of = f" of {len(own)} changes" if name == "regressions" and len(own) > 1 else ""
        lead = "the costliest " if count > 1 else ""
        worst = f" ({lead}{own[0]['costliest_text']} since {began(own[0])})" if name == "regressions" else ""
        said.append(f"{counted(count, one)}{of} still open{worst}")
    return said


def list_command(rows: Sequence[Row]) -> str:
    """Return the command that lists open findings.

    >>> list_command([{"project": "lab"}, {"project": "lab"}])
    'profsvc findings list --state new --state confirmed --project lab'
    """
    projects = {str(row["project"]) for row in rows}
    only = f" --project {shlex.quote(visible(projects.pop()))}" if len(projects) == 1 else ""
    return f"profsvc findings list --state new --state confirmed{only}"
