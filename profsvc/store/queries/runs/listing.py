"""The list of runs as people look through it: searched, ordered, page by page, and counted up to a limit.

It asks the base tables, for the view counts uploads and launches of every run it looks at. What is shown of the runs
of a page is read for them alone.
"""

from collections.abc import Mapping, Sequence
from statistics import median
from typing import Any, NamedTuple

from profsvc.errors import UsageError
from profsvc.store.connection.sql import Connection, Engine, text
from profsvc.store.queries.time_limit import reading_with_timeout
from profsvc.store.schema.column_types import IDS_PER_UPLOAD

MAX_COUNTED_RUNS = 10_000
"""Maximum number of runs that are counted; above it the list only reports that there are more."""
MAX_OFFSET = 2**53
MAX_GROUPED_RUNS = 2000
"""Newest runs that are grouped."""
MAX_POINTS = 30
"""Newest runs of a group whose times are shown."""
_GROUPED = """
    SELECT n.run_id, n.project, n.name, n.at, t.value AS branch,
           (SELECT sum(CASE WHEN u.same_as IS NULL THEN u.gpu_time_ns END) FROM uploads u WHERE u.run_id = n.run_id)
           AS gpu_time_ns
    FROM (SELECT r.run_id, r.project, r.name, coalesce(r.started_at, r.created_at) AS at FROM runs r
          {where} ORDER BY r.run_id DESC LIMIT :most) n
    LEFT JOIN run_tags t ON t.run_id = n.run_id AND t.key = 'branch'
    ORDER BY n.run_id DESC
"""
_SUMS = (
    "LEFT JOIN (SELECT run_id, sum(CASE WHEN same_as IS NULL THEN {} END) AS total FROM uploads GROUP BY run_id) o"
    " ON o.run_id = r.run_id"
)
_BOUND = (
    "LEFT JOIN potential o ON o.run_id = r.run_id AND o.launch_id = 0 AND o.kernel_id = 0"
    " AND o.version_id = r.version_id"
)
# Order -> what it sorts by, and the join that this needs.
RUN_ORDERS: Mapping[str, tuple[str, str]] = {
    "run": ("r.run_id", ""),
    "name": ("r.name", ""),
    "project": ("r.project", ""),
    "started": ("coalesce(r.started_at, r.created_at)", ""),
    "time": ("o.total", _SUMS.format("gpu_time_ns")),
    "launches": ("o.total", _SUMS.format("launches")),
    "potential": ("o.speedup", _BOUND),
}
_LOGGED = (
    "r.device_id IS NULL AND r.run_id IN"
    f" (SELECT u.run_id FROM sensors s JOIN uploads u ON u.upload_id = s.sensor_id / {IDS_PER_UPLOAD}"
    " WHERE s.device {})"
)
# LIKE of SQLite ignores the case. Matching devices and tags are determined once, not for each run.
_LIKE = {"sqlite": "LIKE", "postgresql": "ILIKE"}
_CONTAINS = (
    "r.name {like} :{word} ESCAPE '\\'",
    "r.project {like} :{word} ESCAPE '\\'",
    "r.commit_id {like} :{word} ESCAPE '\\'",
    "r.device_id IN (SELECT device_id FROM devices WHERE name {like} :{word} ESCAPE '\\')",
    _LOGGED.format("{like} :{word} ESCAPE '\\'"),
    "r.run_id IN (SELECT run_id FROM run_tags WHERE key || '=' || value {like} :{word} ESCAPE '\\')",
)
_EXACT = {
    "project": "r.project = :project",
    "device": f"(r.device_id IN (SELECT device_id FROM devices WHERE name = :device) OR {_LOGGED.format('= :device')})",
    "commit": "r.commit_id = :commit",
}
_TAGGED = "EXISTS (SELECT 1 FROM run_tags t WHERE t.run_id = r.run_id AND {})"


class RunFilter(NamedTuple):
    """What is looked for: a text anywhere in name, project, device, commit or tags, and exact values."""

    search: str = ""
    project: str = ""
    device: str = ""
    commit: str = ""
    tag: str = ""
    """``key`` or ``key=value``."""


EVERY_RUN = RunFilter()


class RunPage(NamedTuple):
    """A page of runs, whether more follow, and how many there are; ``COUNTED + 1`` stands for more than counted."""

    rows: list[dict[str, Any]]
    truncated: bool
    total: int


def list_runs(
    engine: Engine,
    only: RunFilter = EVERY_RUN,
    *,
    order: str = "-run",
    skip: int = 0,
    limit: int = 50,
    project: str | None = None,
    seconds: float = 10.0,
) -> RunPage:
    """Return runs with what was found of each: its potential, its worst criterion and its power.

    ``order`` is a name of `RUN_ORDERS`, with ``-`` before it downwards. With a ``project`` no other is seen. Raise
    `UsageError` after ``seconds``.
    """
    by, join = _order(order)
    if not 0 <= skip <= MAX_OFFSET:
        raise UsageError(f"{skip} runs cannot be skipped; start again from the first page")
    where, values = _conditions(only, project, _LIKE[engine.dialect.name])
    with reading_with_timeout(engine, seconds) as connection:
        query = f"SELECT r.run_id FROM runs r {join}{where} ORDER BY {by} LIMIT :most OFFSET :skip"
        # A search looks at every run anyway, so the runs are not searched again to be counted.
        most = max(limit, MAX_COUNTED_RUNS - skip if where else 0) + 1
        ids = list(connection.execute(text(query), values | {"most": most, "skip": skip}).scalars())
        chosen = ids[:limit]
        is_last = len(ids) < most and bool(chosen or not skip)
        total = min(skip + len(ids), MAX_COUNTED_RUNS + 1) if is_last else _count(connection, where, values)
        if not chosen:
            return RunPage([], False, total)
        found = {query: connection.execute(text(query)).mappings().all() for query in _detail_queries(chosen)}
    return RunPage(_with_details(chosen, *found.values()), len(ids) > limit, total)


def _count(connection: Connection, where: str, values: Mapping[str, Any]) -> int:
    query = text(f"SELECT count(*) FROM (SELECT 1 FROM runs r{where} LIMIT {MAX_COUNTED_RUNS + 1}) n")
    return int(connection.execute(query, values).scalar_one())


def _order(order: str) -> tuple[str, str]:
    name = order.removeprefix("-")
    if name not in RUN_ORDERS:
        raise UsageError(
            f"order={order!r} is not known; it can be {' or '.join(RUN_ORDERS)}, downwards with a - before it"
        )
    sql, join = RUN_ORDERS[name]
    down = " DESC" * order.startswith("-")
    return (f"{sql}{down} NULLS LAST, r.run_id DESC" if name != "run" else f"{sql}{down}"), join


def _like(value: str) -> str:
    kept = value.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
    return f"%{kept}%"


def _conditions(only: RunFilter, project: str | None, like: str) -> tuple[str, dict[str, Any]]:
    """Return the WHERE of a filter and the values in it."""
    if any("\0" in part for part in only):
        raise UsageError("a text holds no NUL character")
    parts, values = [], dict[str, Any]()
    for place, word in enumerate(only.search.split()[:8]):
        name = f"word_{place}"
        parts.append(f"({' OR '.join(one.format(like=like, word=name) for one in _CONTAINS)})")
        values[name] = _like(word)
    for name, sql in _EXACT.items():
        if given := getattr(only, name):
            parts.append(sql)
            values[name] = given
    if only.tag:
        key, sign, value = only.tag.partition("=")
        parts.append(_TAGGED.format("t.key = :tag_key" + " AND t.value = :tag_value" * bool(sign)))
        values |= {"tag_key": key} | ({"tag_value": value} if sign else {})
    if project is not None:
        parts.append("r.project = :in_project")
        values["in_project"] = project
    return (f" WHERE {' AND '.join(parts)}" if parts else ""), values


def _detail_queries(run_ids: Sequence[int]) -> list[str]:
    among = ", ".join(str(int(number)) for number in run_ids)
    whole = f"run_id IN ({among}) AND launch_id IS NULL AND kernel IS NULL"
    return [
        f"SELECT * FROM v1_runs WHERE run_id IN ({among})",
        f"SELECT run_id, bound, speedup, speedup_ceiling, flags, ceiling_flags, reason FROM v1_potential WHERE {whole}",
        f"SELECT run_id, criterion, value, share, speedup FROM v1_criteria WHERE {whole} AND value IS NOT NULL",
        "SELECT run_id, mean_power_w, corrected_power_w, reference_temperature_c, energy_j FROM v1_power"
        f" WHERE run_id IN ({among}) AND kind = 'run' ORDER BY run_id, corrected_power_w IS NULL, item",
    ]


def _with_details(run_ids: Sequence[int], runs: Any, bounds: Any, criteria: Any, power: Any) -> list[dict[str, Any]]:
    """Put what was found of each run into its row."""
    by_run: dict[int, dict[str, Any]] = {row["run_id"]: dict(row) for row in runs}
    bound_of = {row["run_id"]: row for row in bounds}
    power_of: dict[int, Any] = {}
    for row in power:
        power_of.setdefault(row["run_id"], row)
    worst: dict[int, Any] = {}
    for row in criteria:
        known = worst.get(row["run_id"])
        if known is None or (row["speedup"] or 1.0, -row["value"]) > (known["speedup"] or 1.0, -known["value"]):
            worst[row["run_id"]] = row
    found = []
    for number in (one for one in run_ids if one in by_run):
        bound, least, drawn = bound_of.get(number, {}), worst.get(number, {}), power_of.get(number, {})
        found.append(
            by_run[number]
            | {"potential": bound.get("speedup"), "ceiling": bound.get("speedup_ceiling"), "bound": bound.get("bound"),
               "flags": bound.get("flags"), "ceiling_flags": bound.get("ceiling_flags"),
               "worst_criterion": least.get("criterion"), "worst_value": least.get("value"),
               "worst_speedup": least.get("speedup"), "mean_power_w": drawn.get("mean_power_w"),
               "corrected_power_w": drawn.get("corrected_power_w"),
               "reference_temperature_c": drawn.get("reference_temperature_c"), "energy_j": drawn.get("energy_j")}
        )  # fmt: skip
    return found


_LAST_REPORTS = """
    SELECT project, report_id, night FROM v1_reports r
    WHERE night = (SELECT max(night) FROM v1_reports o WHERE coalesce(o.project, '') = coalesce(r.project, ''))
"""
_OPEN_FINDINGS = """
    SELECT project, report_id, count(*) AS findings FROM v1_findings WHERE state IN ('new', 'confirmed')
    GROUP BY project, report_id
"""


def run_groups(engine: Engine, project: str | None = None, *, seconds: float = 10.0) -> list[dict[str, Any]]:
    """Return the newest `MAX_GROUPED_RUNS` runs by project and branch (tag ``branch``), newest first.

    project, branch (None without the tag), runs, newest_id, newest, at, and times: the GPU time [ns] of the newest
    runs, oldest first, None where it is unknown; ``change`` is the newest over the median of those before, - 1. A
    project with nightly reports has ``night``: the newest report that includes it, and its new and its open findings.
    """
    where = "" if project is None else "WHERE r.project = :project"
    values = {"most": MAX_GROUPED_RUNS} | ({} if project is None else {"project": project})
    groups: dict[tuple[str, str | None], dict[str, Any]] = {}
    with reading_with_timeout(engine, seconds) as connection:
        for row in connection.execute(text(_GROUPED.format(where=where)), values):
            group = groups.setdefault(
                (row.project, row.branch),
                {"project": row.project, "branch": row.branch, "runs": 0, "newest_id": row.run_id, "newest": row.name,
                 "at": row.at, "times": []},
            )  # fmt: skip
            group["runs"] += 1
            if len(group["times"]) < MAX_POINTS:
                group["times"].insert(0, row.gpu_time_ns)
        nights = _last_nights(connection)
    return [
        group | {"change": _change(group["times"]), "night": nights.get(group["project"]) or nights.get("")}
        for group in groups.values()
    ]


def _change(times: Sequence[float | None]) -> float | None:
    """Return the newest time over the median of the others, - 1; None if either is unknown.

    >>> _change([1.0, None, 3.0, 4.0]), _change([2.0]), _change([1.0, None])
    (1.0, None, None)
    """
    before = [time for time in times[:-1] if time]
    newest = times[-1] if times else None
    return newest / median(before) - 1 if before and newest is not None else None


def _last_nights(connection: Connection) -> dict[str, dict[str, Any]]:
    """Return the newest report of each project (empty: of all projects), with the findings of the project."""
    reports = connection.execute(text(_LAST_REPORTS)).mappings()
    found = {str(row["project"] or ""): {"report_id": row["report_id"], "night": row["night"]} for row in reports}
    if not found:
        return {}
    for row in connection.execute(text(_OPEN_FINDINGS)).mappings():
        project = str(row["project"] or "")
        night = found.setdefault(project, dict(found[""])) if "" in found else found.get(project)
        if night is not None:
            is_new = row["report_id"] == night["report_id"]
            night["new"] = night.get("new", 0) + (row["findings"] if is_new else 0)
            night["open"] = night.get("open", 0) + row["findings"]
    return {project: {"new": 0, "open": 0, **night} for project, night in found.items()}
