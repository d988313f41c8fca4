"""Names of kernels that are one series: those that nightly reports found, and those that people linked or refused."""

from typing import TYPE_CHECKING, Any

from profsvc import store
from profsvc.errors import NotFoundError, UsageError, first_of
from profsvc.views.history import kernels

if TYPE_CHECKING:
    from sqlalchemy import Engine

COLUMNS = ("project", "kernel_before", "kernel", "state", "said_by", "said_at", "because")
DECISIONS = {"link": "linked", "refuse": "refused", "undo": "automatic"}
"""What can be done with two names -> the decision that is stored."""
FOUND, AUTOMATIC = "found", "automatic"


@store.snapshot
def renames(engine: "Engine", project: str | None = None) -> dict[str, Any]:
    """Return each two names that are or would be one series, of `COLUMNS`, the newest first.

    ``state``: found (a report links them), linked or refused (a person decided). A link has no effect while one run has
    both kernels; ``not_applied`` is the name of that run then, and None otherwise.
    """
    rows: dict[tuple[str, str, str], dict[str, Any]] = {}
    for one in store.select(engine, "v1_kernel_renames", **({} if project is None else {"project": project})):
        rows[one["project"], one["kernel_before"], one["kernel"]] = {
            "state": FOUND, "said_by": f"report {one['report_id']}", "said_at": one["renamed_at"],
            "because": one["because"],
        }  # fmt: skip
    for one in store.rename_decisions(engine, project or ""):
        key = (one["project"], one["kernel_before"], one["kernel"])
        if one["decision"] != AUTOMATIC:
            rows[key] = {name: one[name] for name in ("said_by", "said_at", "because")} | {"state": one["decision"]}
    made = [
        dict(zip(COLUMNS, key, strict=False)) | row | {"not_applied": _run_with_both(engine, key, row["state"])}
        for key, row in rows.items()
    ]
    return {"renames": sorted(made, key=lambda row: (row["said_at"], row["kernel"]), reverse=True)}


def _run_with_both(engine: "Engine", key: tuple[str, str, str], state: str) -> str | None:
    if state == "refused":
        return None
    found = [store.kernels_named(engine, name, key[0]) for name in key[1:]]
    if any([one["kernel"] for one in kernels] != [name] for name, kernels in zip(key[1:], found, strict=True)):
        return None  # the runs of one were deleted, and its name may be the short one of others
    return store.run_with_both_kernels(engine, key[0], found[0][0]["kernel_id"], found[1][0]["kernel_id"])


def decide(
    engine: "Engine", act: str, before: str, since: str, because: str, by: str, project: str | None = None
) -> dict[str, Any]:
    """Link two names of kernels as one series, refuse it, or undo either; return the decision.

    Later reports and histories respect it; findings that are stored keep their numbers and states. Raise `UsageError`
    if the names are one kernel, if a run has both, if other decisions contradict, if a project must be given, or if
    there is nothing to undo.
    """
    if act not in DECISIONS:
        raise UsageError(f"{act!r} is not possible; choose one of {', '.join(DECISIONS)}")
    known_in = {one["project"] for one in renames(engine, project)["renames"]
                if {before, since} == {one["kernel_before"], one["kernel"]}}  # fmt: skip
    if act != "link" and len(known_in) == 1:  # the runs of either name may be deleted
        (project,), pair = known_in, (before, since)
    else:
        project = project or _project_of(engine, before, since)
        pair = _kernels_to_join(engine, act, project, before, since)
    rows = {(one["kernel_before"], one["kernel"]): one for one in renames(engine, project)["renames"]}
    known = {names: one["state"] for names, one in rows.items()}
    pair = pair[::-1] if pair not in known and pair[::-1] in known else pair
    if act == "undo" and known.get(pair) not in ("linked", "refused"):
        raise UsageError("no person linked or refused these names; list what was decided with: profsvc renames list")
    _require_no_contradiction(act, pair, [one for names, one in rows.items() if names != pair])
    return store.decide_rename(engine, project, pair, DECISIONS[act], because, by)


def _kernels_to_join(engine: "Engine", act: str, project: str, before: str, since: str) -> tuple[str, str]:
    """Return the full names of two kernels; raise `UsageError` if they are one, or a link has a run with both."""
    old, new = (_kernel(engine, name, project) for name in (before, since))
    if old["kernel_id"] == new["kernel_id"]:
        raise UsageError(f"both names are the kernel {old['kernel']!r}; give the name before and the name since")
    if act == "link" and (run := store.run_with_both_kernels(engine, project, old["kernel_id"], new["kernel_id"])):
        raise UsageError(f"run {run!r} has both kernels, so they are two; only names that no run has together can be "
                         "one series")  # fmt: skip
    return str(old["kernel"]), str(new["kernel"])


def _require_no_contradiction(act: str, pair: tuple[str, str], rows: list[dict[str, Any]]) -> None:
    """Raise `UsageError` if other links make one series of names that are to be two, or the other way round."""
    from profsvc.analysis.changes.kernels.renames import connected_names

    applied = [one for one in rows if one["state"] != "refused" and one["not_applied"] is None]
    links = [(one["kernel_before"], one["kernel"]) for one in applied]
    sides = [connected_names(name, links) for name in pair]
    if act == "refuse" and pair[1] in sides[0]:
        through = "; ".join(f"{old} and {new}" for old, new in links if {old, new} <= sides[0])
        raise UsageError(f"{pair[0]} and {pair[1]} are one series through other names; refuse one of: {through}")
    for one in rows if act == "link" else ():
        names = [one["kernel_before"], one["kernel"]]
        if one["state"] == "refused" and any(names[0] in side and names[1] in other for side, other in
                                             (sides, sides[::-1])):  # fmt: skip
            raise UsageError(f"then {names[0]} and {names[1]} were one series, which {one['said_by']} refused: "
                             f"{one['because']}; undo that first")  # fmt: skip


def _project_of(engine: "Engine", *names: str) -> str:
    """Return the project that has all kernels of these names."""
    found = [
        project for project in store.projects(engine)
        if all(store.kernels_named(engine, name, project) for name in names)
    ]  # fmt: skip
    if len(found) > 1:
        raise UsageError(f"{len(found)} projects have both kernels: {first_of(found, 5)}; give one as project")
    if not found:
        for name in names:
            kernels(engine, name)  # says which is missing
        raise NotFoundError("no project has both kernels; list kernels with: profsvc show RUN")
    return found[0]


def _kernel(engine: "Engine", name: str, project: str) -> dict[str, Any]:
    found = kernels(engine, name, project)
    if len(found) > 1:
        listed = first_of((f"{one['kernel']} (#{one['kernel_id']})" for one in found), 5, "; ")
        raise UsageError(f"{len(found)} kernels match {name!r}; give the full name or number of one: {listed}")
    return found[0]
