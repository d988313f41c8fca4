"""Findings of nightly checks: the list, and one finding with its status history and series."""

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from profsvc import specs, store
from profsvc.errors import NotFoundError, UsageError
from profsvc.reports.kernel_names import labels, subject_label

if TYPE_CHECKING:
    from sqlalchemy import Engine

COLUMNS = (
    "finding_id", "state", "project", "subject", "label", "device", "branch", "quantity", "worse", "value_before",
    "value_after", "unit", "change", "run_before", "run", "changed_at", "night", "because",
)  # fmt: skip
ORDER = ("-changed_at", "-finding_id")
LIMIT, MAX_FINDINGS = 200, 10_000
WORSE = {"": None, "1": True, "0": False}
"""Filter: both, regressions, improvements."""


def findings(
    engine: "Engine",
    *,
    project: str | None = None,
    states: Collection[str] = (),
    quantity: str | None = None,
    kernel: str | None = None,
    device: str | None = None,
    worse: bool | None = None,
    limit: int = LIMIT,
) -> dict[str, Any]:
    """Return the findings, newest change first, of a project, states, quantity, kernel or device.

    ``kernel`` is a case-insensitive part of the subject; ``worse`` selects regressions (True) or improvements (False).
    """
    others = _other_states(states) if states else []
    equal = {"project": project, "quantity": quantity, "device": device}
    equal["worse"] = None if worse is None else str(int(worse))
    only = [store.Condition(name, "", value) for name, value in equal.items() if value is not None]
    only += [store.Condition("subject", "contains", kernel)] if kernel else []
    only += [store.Condition("state", "ne", state) for state in others]
    page = store.list_view(engine, "v1_findings", only, order=ORDER, limit=limit)
    return {"findings": _labelled(engine, page.rows), "truncated": page.truncated}


def _other_states(states: Collection[str]) -> list[str]:
    """Return the states that are not among these."""
    from profsvc.formulas.change.findings import STATES  # with numpy, which the list does not need

    for state in states:
        if state not in STATES:
            raise UsageError(f"{state!r} is not a state of a finding; choose one of {', '.join(STATES)}")
    return [state for state in STATES if state not in states]


def _labelled(engine: "Engine", rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Add to each finding the ``label`` that distinguishes its kernel from others with the same short name."""
    kernels = {row["kernel"] for row in rows if row["kernel"]}
    known = labels([*store.kernels_with_same_short_name(engine, kernels), *sorted(kernels)])
    return [row | {"label": subject_label(row, known)} for row in rows]


@store.snapshot
def finding(engine: "Engine", number: int, project: str | None = None) -> dict[str, Any]:
    """Return one finding, its status history, the reporting threshold and the points of its series.

    ``others`` are the findings of the same series, oldest change first. With ``project``, only its findings are
    visible. ``differences`` is what else differs between the runs before it and those since.
    """
    from profsvc.pipeline.nightly import series_of

    row = found(engine, number, project)
    series = store.series_of_finding(engine, number)
    least = specs.smallest_change(row["kind"])
    return {
        "finding": row,
        "states": store.state_history(engine, number),
        "differences": store.differences_of_findings(engine, [number]).get(number, []),
        "smallest": {name: getattr(least, name) for name in ("relative", "absolute", "unit", "reason")},
        "points": series_of(engine, row, series),
        "others": _labelled(
            engine, [one for one in store.findings_of_series(engine, series) if one["finding_id"] != number]
        ),
    }


def found(engine: "Engine", number: int, project: str | None = None) -> dict[str, Any]:
    """Return the row of one finding."""
    rows: Sequence[dict[str, Any]] = store.select(engine, "v1_findings", finding_id=number)
    if not rows or project not in (None, rows[0]["project"]):
        raise NotFoundError(f"no finding has number {number}; list them with: profsvc findings list")
    return _labelled(engine, rows)[0]


def blame_of(
    engine: "Engine",
    row: Mapping[str, Any],
    repository: Path,
    good: str | None = None,
    bad: str | None = None,
    blocked: Collection[str] = (),
) -> dict[str, Any]:
    """Return how probable each commit between the runs of a finding is; see `profsvc.pipeline.nightly.blame`."""
    from profsvc.pipeline.nightly.blame import blame

    return blame(engine, row, repository, good, bad, blocked)


def set_state(
    engine: "Engine", number: int, state: str, because: str, by: str, project: str | None = None
) -> dict[str, Any]:
    """Set the state of a finding and return its row; see `profsvc.store.set_finding`."""
    found(engine, number, project)
    return _labelled(engine, [store.set_finding(engine, number, state, because, by)])[0]
