"""Which runs of a project may be the baseline of another."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from profsvc.api.local_store import LocalStore
    from profsvc.client import Client

MAX_BASELINE_RUNS = 1000
"""Newest runs of a project that are searched for a baseline."""


def matching_runs(
    target: "LocalStore | Client",
    project: str,
    tags: Mapping[str, str] | None = None,
    commits: Sequence[str] = (),
    before: int | None = None,
) -> list[dict[str, Any]]:
    """Return runs of a project that may be a baseline, best first.

    They have all the ``tags``. With ``commits`` they are of one of these, in this order; of one commit the newest is
    first. Only runs older than the run ``before`` count.
    """
    return best_matches(
        target.rows("runs", project=project, order="-run_id", limit=MAX_BASELINE_RUNS), tags, commits, before
    )


def best_matches(
    rows: Sequence[Mapping[str, Any]],
    tags: Mapping[str, str] | None = None,
    commits: Sequence[str] = (),
    before: int | None = None,
) -> list[dict[str, Any]]:
    """Return the runs among ``rows`` that `matching_runs` wants, best first.

    >>> rows = [{"run_id": n, "commit_id": commit, "tags": {"branch": "main"}} for n, commit in enumerate("abca")]
    >>> [row["run_id"] for row in best_matches(rows, {"branch": "main"}, ["b", "a"])]
    [1, 3, 0]
    """
    place = {commit: number for number, commit in reversed(list(enumerate(commits)))}
    wanted = (tags or {}).items()
    found = [
        dict(row)
        for row in rows
        if (before is None or row["run_id"] < before)
        and wanted <= (row["tags"] or {}).items()
        and (not place or row["commit_id"] in place)
    ]
    return sorted(found, key=lambda row: (place.get(row["commit_id"], 0), -row["run_id"]))
