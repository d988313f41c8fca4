"""Which commits may have caused a finding, by the runs of its kernel, and which commit to measure next."""

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from profsvc import store
from profsvc.analysis.changes.kernels.renames import renamed_subject
from profsvc.analysis.changes.open_findings import MIN_NOISE_SHARE
from profsvc.errors import NotFoundError, UsageError
from profsvc.formulas.change.bisection import bisection
from profsvc.pipeline.commits import Commit, commits_between, named_commit
from profsvc.pipeline.nightly.report import END_OF_TIME, FRAMES_OF_KIND, MAX_RUNS, known_renames, series_of_runs

if TYPE_CHECKING:
    from sqlalchemy import Engine

Row = dict[str, Any]
PROJECT_SUFFIX = " bisect"
"""Runs of a search are kept in a project of their own, so that no night takes old commits for new ones."""
SAME = ("sensor", "quantity")
CONTEXT = "context"
OUTSIDE_SHARES = {True: 0.5, False: 0.01}
"""Probability, before the search, that no commit caused the change: where the context changed too, and elsewhere."""
RANGE_TAIL = 0.025
"""Probability that the range of suspects leaves out on each side."""


def search_project(finding: Mapping[str, Any]) -> str:
    """Return the project that the runs of a search are kept in."""
    return f"{finding['project']}{PROJECT_SUFFIX}"


@store.keep_connections
def blame(
    engine: "Engine",
    finding: Mapping[str, Any],
    repository: Path,
    good: str | None = None,
    bad: str | None = None,
    blocked: Collection[str] = (),
) -> Row:
    """Return the state of the search for the commit of a finding.

    ``good`` and ``bad`` are by default the commits of the last run before the change and of the first one since.
    ``candidates`` are the commits between, oldest first, each with its probability and the values of its runs.
    ``suspects`` is how many of them hold 95 % of the probability. ``measure`` is the commit to measure next, None if
    the commit is found or no other can be measured. ``blocked`` are commits that cannot be measured.

    ``outside`` is the commit before all candidates: where it is measured again at the level after the change, no commit
    caused it. ``context`` is what else than the code differs between the runs before and since; it makes that as
    probable as all commits together, so that ``outside`` is measured first.
    """
    values = _values(engine, finding)
    ends = [good or _commit_of(engine, finding["run_before_id"], "before", "--good"),
            bad or _commit_of(engine, finding["run_id"], "after", "--bad")]  # fmt: skip
    between = commits_between(repository, *ends)
    commits = [named_commit(repository, ends[0]), *between]
    first, last = commits[0].sha, commits[-1].sha
    told = store.differences_of_findings(engine, [finding["finding_id"]]).get(finding["finding_id"], [])
    context = [row for row in told if row["part"] == CONTEXT]
    share = OUTSIDE_SHARES[bool(context)]
    place = {commit.sha: number for number, commit in enumerate(commits)}
    own = [(number, row) for row in values if (number := _place(place, row["commit_id"])) is not None]
    # Runs of the nights before were not in the context of now, in which the commits are measured.
    own = [(number, row) for number, row in own if number or row["searched"]]
    before, after = float(finding["value_before"]), float(finding["value_after"])
    noise = max(float(finding["noise"] or 0.0), MIN_NOISE_SHARE * abs(after - before))
    state = bisection(
        np.r_[share / (1 - share) * len(between), np.ones(len(between))],
        [number for number, _ in own],
        [row["value"] for _, row in own],
        before,
        after,
        noise,
        [place[sha] for sha in blocked if sha in place],
    )
    candidates = [
        _candidate(commit, float(state.probability[number]), [row["value"] for at, row in own if at == number])
        for number, commit in enumerate(commits)
    ]
    reached = np.cumsum(state.probability)
    kept = np.flatnonzero((reached > RANGE_TAIL) & (reached - state.probability < 1 - RANGE_TAIL))
    suspects = kept[kept > 0] if kept[-1] > 0 else np.array([1])
    return {
        "finding_id": finding["finding_id"],
        "good": first,
        "bad": last,
        "candidates": candidates[1:],
        "outside": candidates[0],
        "context": context,
        "suspects": len(suspects),
        "first_suspect": commits[int(suspects[0])].sha,
        "last_suspect": commits[int(suspects[-1])].sha,
        "best": candidates[state.best],
        "found": state.found,
        "measure": commits[state.measure].sha if state.measure >= 0 else None,
        "value_before": before,
        "value_after": after,
        "noise": noise,
        "unit": finding["unit"],
        "project": search_project(finding),
    }


def _candidate(commit: Commit, probability: float, values: Sequence[float]) -> Row:
    known = {"runs": len(values), "value": float(np.median(values)) if values else None}
    return {"commit": commit.sha, "author": commit.author, "at": commit.at, "subject": commit.subject,
            "probability": probability} | known  # fmt: skip


def _place(place: Mapping[str, int], commit: str | None) -> int | None:
    """Return the candidate that a run is of; runs may name a commit by the beginning of its hash."""
    if not commit:
        return None
    if commit in place:
        return place[commit]
    found = [number for sha, number in place.items() if len(commit) >= 7 and sha.startswith(commit)]
    return found[0] if len(found) == 1 else None


def _commit_of(engine: "Engine", run_id: int | None, side: str, option: str) -> str:
    rows = store.select(engine, "v1_runs", run_id=run_id) if run_id else []
    if not rows:
        raise NotFoundError(f"the run {side} the change was deleted; give its commit with {option}")
    if not rows[0]["commit_id"]:
        raise UsageError(f"run {rows[0]['name']!r}, {side} the change, names no commit; give one with {option}, and "
                         "upload later runs with --commit")  # fmt: skip
    return str(rows[0]["commit_id"])


def _values(engine: "Engine", finding: Mapping[str, Any]) -> list[Row]:
    """Return the values of the finding's kernel and quantity in the runs that name a commit."""
    parts, kernels, renames = [], set[str](), known_renames(engine, str(finding["project"]))
    for project, branch in (
        (str(finding["project"]), finding["branch"]),
        (search_project(finding), store.ALL_BRANCHES),
    ):
        runs = store.nightly_runs(engine, project, END_OF_TIME, 0, MAX_RUNS, branch)
        if len(runs):
            points, names = series_of_runs(engine, runs, [], renames, FRAMES_OF_KIND[str(finding["kind"])])
            kernels = kernels | (names.of(finding).all if finding["kernel"] else set())
            subjects = {renamed_subject(finding["subject"], finding["kernel"], kernel) for kernel in kernels}
            same = points["kernel"].isin(kernels) if kernels else points["kernel"].isna()
            same &= points["subject"].isin(subjects or {finding["subject"]})
            for name in SAME:
                same &= points[name].isna() if finding[name] is None else points[name] == finding[name]
            searched = project == search_project(finding)
            of_device = points["device"].isna() if finding["device"] is None else points["device"] == finding["device"]
            # What the search itself measured is of the board that it runs on, whether its files name it or not.
            same &= of_device | (searched & (points["device"].isna() | (finding["device"] is None)))
            parts.append(points[same & points["value"].notna()].assign(searched=searched))
    found = pd.concat(parts, ignore_index=True) if parts else pd.DataFrame(columns=["run_id", "value"])
    commits = store.commits_of_runs(engine, [int(run) for run in found["run_id"]])
    return [
        {"commit_id": commits.get(int(row["run_id"])), "value": float(row["value"]), "searched": bool(row["searched"])}
        for _, row in found.iterrows()
    ]
