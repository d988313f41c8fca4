"""The history of a kernel: durations, criteria, potential and power per run, newest first.

The cost depends on the size of a page, not of the store. The queries go from the totals or power windows of the kernel
to the newest runs only, by primary keys and one index.
"""

from collections.abc import Collection, Iterable, Sequence
from typing import Any, NamedTuple

from profsvc.errors import NotFoundError
from profsvc.kernel_names import matching_kernels, short_name_prefix
from profsvc.store.connection.sql import Connection, Engine, Result, bindparam, dicts_of, text
from profsvc.store.connection.transactions import reading
from profsvc.store.queries.time_limit import reading_with_timeout
from profsvc.store.schema.column_types import IDS_PER_UPLOAD, WHOLE_RUN_ID
from profsvc.store.schema.contents.run_views import BRANCH_SQL
from profsvc.store.schema.results.power import VIEW_DEFINITIONS
from profsvc.store.schema.view_definition import UPLOAD_ID_RANGE_SQL

MAX_POINTS = 10_000
"""Maximum number of runs per page."""
NO_UPLOAD = 2**62 // IDS_PER_UPLOAD
"""Above the number of every upload and run, and small enough for the numbers of its rows."""
NEAR_RUNS = 100
"""Number of newest runs whose kernels are searched for a name similar to one that is not found."""

# One row, not EXISTS, for which Postgres joins every upload and run before it looks for the first.
_KERNELS = f"""
    SELECT k.kernel_id, k.kernel, k.kernel_short FROM kernels k
    WHERE ({{named}}) AND ((
      SELECT 1 FROM kernel_totals t JOIN uploads u ON u.upload_id = t.upload_id JOIN runs r ON r.run_id = u.run_id
      WHERE t.kernel_id = k.kernel_id{{among}} LIMIT 1) IS NOT NULL OR (
      SELECT 1 FROM kernel_summaries s JOIN uploads u ON u.upload_id = s.summary_id / {IDS_PER_UPLOAD}
      JOIN runs r ON r.run_id = u.run_id WHERE s.kernel_id = k.kernel_id{{among}} LIMIT 1) IS NOT NULL)
    ORDER BY k.kernel_id
"""
# The order of a CROSS JOIN is kept by SQLite, which otherwise may begin with every kernel, or every run of the project.
_NEWEST_RUNS = "(SELECT run_id FROM runs r WHERE 1 = 1{among} ORDER BY run_id DESC LIMIT :near) n"
_OF_NEWEST = f"""
    SELECT n.run_id, t.kernel_id, t.total_ns
    FROM {_NEWEST_RUNS} CROSS JOIN uploads u CROSS JOIN kernel_totals t
    WHERE u.run_id = n.run_id AND u.same_as IS NULL AND t.upload_id = u.upload_id
"""
_SUMMED_OF_NEWEST = f"""
    SELECT n.run_id, s.kernel_id, s.total_ns
    FROM {_NEWEST_RUNS} CROSS JOIN uploads u CROSS JOIN kernel_summaries s
    WHERE u.run_id = n.run_id AND u.same_as IS NULL AND s.kernel_id IS NOT NULL
      AND s.summary_id BETWEEN u.upload_id * {IDS_PER_UPLOAD} AND u.upload_id * {IDS_PER_UPLOAD} + {IDS_PER_UPLOAD - 1}
"""
_NEAR = f"""
    SELECT k.kernel_short FROM ({_OF_NEWEST} UNION ALL {_SUMMED_OF_NEWEST}) t
    JOIN kernels k ON k.kernel_id = t.kernel_id GROUP BY k.kernel_short
"""
_RECENT = """
    SELECT k.kernel_id, k.kernel, k.kernel_short, count(DISTINCT t.run_id) AS runs, sum(t.total_ns) AS total_ns
    FROM ({rows}) t JOIN kernels k ON k.kernel_id = t.kernel_id GROUP BY k.kernel_id, k.kernel, k.kernel_short
    ORDER BY coalesce(sum(t.total_ns), 0) DESC, k.kernel_id LIMIT :most
"""
_RUN = f"""r.run_id, r.project, r.name AS run, NULLIF(d.name, '') AS device, r.commit_id, r.started_at, r.created_at,
           {BRANCH_SQL} AS branch"""
_NEWEST = f"""
    SELECT t.upload_id AS place, {_RUN}
    FROM kernel_totals t CROSS JOIN uploads u CROSS JOIN runs r LEFT JOIN devices d ON d.device_id = r.device_id
    WHERE t.kernel_id = :kernel_id AND t.upload_id < :before AND u.upload_id = t.upload_id AND u.same_as IS NULL
      AND r.run_id = u.run_id{{among}}
    ORDER BY t.upload_id DESC LIMIT :most
"""
_NEWEST_SUMMED = f"""
    SELECT n.upload_id AS place, {_RUN}
    FROM (SELECT DISTINCT summary_id / {IDS_PER_UPLOAD} AS upload_id FROM kernel_summaries
          WHERE kernel_id = :kernel_id AND summary_id < :before * {IDS_PER_UPLOAD}) n
    CROSS JOIN uploads u CROSS JOIN runs r LEFT JOIN devices d ON d.device_id = r.device_id
    WHERE u.upload_id = n.upload_id AND u.same_as IS NULL AND r.run_id = u.run_id{{among}}
    ORDER BY n.upload_id DESC LIMIT :most
"""
_SUMS = """
    SELECT s.run_id, sum(s.calls) AS launches, sum(s.total_ns) / sum(s.calls) AS value, min(s.min_ns) AS low,
           max(s.max_ns) AS high, count(DISTINCT s.upload_id) AS files
    FROM v1_kernel_summaries s JOIN kernels k ON k.kernel = s.kernel
    WHERE s.run_id IN ({runs}) AND k.kernel_id = :kernel_id AND s.category = 'kernel' AND s.calls > 0
    GROUP BY s.run_id
"""
_TOTALS = """
    SELECT u.run_id, t.launches, t.timed, t.total_ns, t.min_ns, t.p50_ns, t.p95_ns, t.max_ns, u.received_at
    FROM uploads u CROSS JOIN kernel_totals t
    WHERE u.run_id IN ({runs}) AND u.same_as IS NULL AND t.kernel_id = :kernel_id AND t.upload_id = u.upload_id
    ORDER BY u.run_id, t.timed DESC, u.upload_id
"""
_OF_LAUNCHES = f"""
    FROM uploads u CROSS JOIN kernel_totals t CROSS JOIN launches l CROSS JOIN shapes h CROSS JOIN {{table}} c
    WHERE u.run_id IN ({{runs}}) AND t.kernel_id = :kernel_id AND t.upload_id = u.upload_id
      AND l.launch_id / {IDS_PER_UPLOAD} = u.upload_id AND l.launch_id {UPLOAD_ID_RANGE_SQL}
      AND h.shape_id = l.shape_id AND h.kernel_id = :kernel_id
      AND c.run_id = u.run_id AND c.launch_id = l.launch_id AND c.kernel_id = {WHOLE_RUN_ID}
"""
# The version of a run is compared once a run: among the launches, Postgres compares each with those of all runs.
_IN_VERSION = """
    SELECT g.run_id, g.value, g.low, g.high, g.reason_id
    FROM ({} GROUP BY u.run_id, c.version_id) g CROSS JOIN runs r
    WHERE r.run_id = g.run_id AND r.version_id = g.version_id
"""
_REASONED = "SELECT m.*, (SELECT x.text FROM texts x WHERE x.text_id = m.reason_id) AS reason FROM ({}) m"
_CRITERION = _REASONED.format(
    _IN_VERSION.format(f"""
    SELECT u.run_id, c.version_id,
           sum(c.value * l.duration_ns) / sum(CASE WHEN c.value IS NOT NULL THEN l.duration_ns END) AS value,
           min(c.value) AS low, max(c.value) AS high, max(c.reason_id) AS reason_id
    {_OF_LAUNCHES.format(table="criteria", runs="{runs}")}
      AND c.criterion_id = (SELECT x.text_id FROM texts x WHERE x.text = :criterion)
      AND l.duration_ns > 0
    """)
)
# For exports with only averages per kernel, a run has a row for the kernel itself.
_OF_MEANS = """
    SELECT r.run_id, c.{column} AS value, NULL AS low, NULL AS high, c.reason_id
    FROM runs r CROSS JOIN {table} c
    WHERE r.run_id IN ({{runs}}) AND c.run_id = r.run_id AND c.launch_id = {whole} AND c.kernel_id = :kernel_id
      AND c.version_id = r.version_id
"""
_CRITERION_OF_MEANS = _REASONED.format(
    _OF_MEANS.format(column="value", table="criteria", whole=WHOLE_RUN_ID)
    + "AND c.criterion_id = (SELECT x.text_id FROM texts x WHERE x.text = :criterion)"
)
_POTENTIAL_OF_MEANS = _REASONED.format(_OF_MEANS.format(column="speedup", table="potential", whole=WHOLE_RUN_ID))
_POTENTIAL = _REASONED.format(
    _IN_VERSION.format(f"""
    SELECT u.run_id, c.version_id, sum(CASE WHEN c.speedup IS NOT NULL THEN c.duration_ns END)
           / sum(CASE WHEN c.speedup IS NOT NULL THEN c.ideal_ns END) AS value,
           min(c.speedup) AS low, max(c.speedup) AS high, max(c.reason_id) AS reason_id
    {_OF_LAUNCHES.format(table="potential", runs="{runs}")}
    """)
)
# What an archive left of the launches of a run.
_ARCHIVED = _REASONED.format("""
    SELECT c.run_id, c.value, c.low, c.high, c.reason_id FROM archived_values c
    WHERE c.run_id IN ({runs}) AND c.kernel_id = :kernel_id AND c.criterion_id =
""")
_CRITERION_ARCHIVED = _ARCHIVED.replace(
    "c.criterion_id =", "c.criterion_id = (SELECT x.text_id FROM texts x WHERE x.text = :criterion)"
)
_POTENTIAL_ARCHIVED = _ARCHIVED.replace("c.criterion_id =", "c.criterion_id = 0")
_NUMBERS = "(SELECT x.text_id FROM texts x WHERE x.text IN ({names}))"
# One of these for each name: so both databases read the newest of them off the index and stop.
_OF_LOAD = """
    SELECT run_id FROM (
      SELECT DISTINCT c.run_id FROM power_windows c
      WHERE c.{column}_id = (SELECT x.text_id FROM texts x WHERE x.text = :{name}) AND c.run_id < :before
        AND EXISTS (SELECT 1 FROM runs r WHERE r.run_id = c.run_id{{among}})
      ORDER BY c.run_id DESC LIMIT :most
    ) {column}_{name}
"""
_NEWEST_POWER = f"""
    SELECT n.run_id AS place, {_RUN}
    FROM ({{loads}}) n CROSS JOIN runs r LEFT JOIN devices d ON d.device_id = r.device_id
    WHERE r.run_id = n.run_id ORDER BY n.run_id DESC LIMIT :most
"""
# The view, asked by the numbers of the texts: by the texts themselves Postgres expects one row, and joins them all.
_POWER = f"""
    SELECT {", ".join(f'{sql} AS "{name}"' for name, _, sql, _ in VIEW_DEFINITIONS["v1_power"].columns)}
    FROM {VIEW_DEFINITIONS["v1_power"].source}
    WHERE c.run_id IN ({{runs}}) AND c.kind_id IN (SELECT x.text_id FROM texts x WHERE x.text IN ('load', 'kernel'))
      AND (c.load_id IN {_NUMBERS} OR c.window_id IN {_NUMBERS})
    ORDER BY c.run_id, c.item
"""


class HistoryRuns(NamedTuple):
    """The newest runs of a kernel: their rows by number, the newest first; ``older`` is where more begin, else None."""

    runs: dict[int, dict[str, Any]]
    older: int | None


def kernels_named(engine: Engine, name: str, project: str | None = None) -> list[dict[str, Any]]:
    """Return the kernels of a full name, else of a short one, a number (7 or #7), or a name as pages print it.

    With a ``project`` only those that its runs have.
    """
    digits = name.removeprefix("#")
    is_number = digits.isascii() and digits.isdigit() and len(digits) < 19
    asked: list[tuple[str, str | int]] = [("k.kernel = :name", name), ("k.kernel_short = :name", name)]
    asked += [("k.kernel_id = :name", int(digits))] if is_number else []
    among, values = _among(project, None)
    with reading_with_timeout(engine, 60.0) as connection:
        for condition, value in asked:
            query = text(_KERNELS.format(named=condition, among=among))
            if rows := dicts_of(connection.execute(query, values | {"name": value})):
                return rows
        values["begin"] = begin = short_name_prefix(name)
        if not begin or "\0" in begin:
            return []
        like = text(_KERNELS.format(named=f"substr(k.kernel_short, 1, {len(begin)}) = :begin", among=among))
        rows = dicts_of(connection.execute(like, values))
    meant = set(matching_kernels(name, [row["kernel"] for row in rows]))
    return [row for row in rows if row["kernel"] in meant]


def kernels_with_same_short_name(engine: Engine, kernels: Collection[str]) -> list[str]:
    """Return the full names of all kernels that share a short name with one of these."""
    if not kernels:  # an empty list has no type on a server
        return []
    query = text(
        "SELECT kernel FROM kernels WHERE kernel_short IN (SELECT kernel_short FROM kernels WHERE kernel IN :kernels)"
        " ORDER BY kernel"
    ).bindparams(bindparam("kernels", expanding=True))
    with reading(engine) as connection:
        return list(connection.execute(query, {"kernels": list(kernels)}).scalars())


def kernel_not_found(engine: Engine, name: str, project: str | None = None) -> NotFoundError:
    """Return the error for a kernel that is not there, with the nearest names among the newest runs."""
    among, values = _among(project, None)
    with reading_with_timeout(engine, 60.0) as connection:
        found = connection.execute(text(_NEAR.format(among=among)), values | {"near": NEAR_RUNS})
        return NotFoundError.near("kernel", name, {str(row[0]) for row in found})


def recent_kernels(engine: Engine, project: str | None = None, most: int = 40) -> list[dict[str, Any]]:
    """Return the kernels that took most of the time of the newest runs: names, number, runs, total_ns."""
    among, values = _among(project, None)
    with reading_with_timeout(engine, 60.0) as connection:
        asked = values | {"near": NEAR_RUNS, "most": most}
        for rows in (_OF_NEWEST, _SUMMED_OF_NEWEST):
            query = text(_RECENT.format(rows=rows).format(among=among))
            if found := dicts_of(connection.execute(query, asked)):
                return found
        return []


def _among(project: str | None, device: str | None) -> tuple[str, dict[str, Any]]:
    sql, values = "", dict[str, Any]()
    if project is not None:
        sql, values = " AND r.project = :project", {"project": project}
    if device is not None:
        sql += " AND r.device_id IN (SELECT d.device_id FROM devices d WHERE d.name = :device)"
        values["device"] = device
    return sql, values


class HistoryFilter(NamedTuple):
    """The selected runs: project, device, maximum number, position, and time limit."""

    project: str | None = None
    device: str | None = None
    points: int = 500
    before: int | None = None
    seconds: float = 10.0


def durations_of_kernel(
    engine: Engine, kernel_id: int, asked: HistoryFilter
) -> tuple[HistoryRuns, dict[int, dict[str, Any]]]:
    """Return the newest runs with a kernel, and of each how its launches are spread.

    Over several files of a run sums add up; a percentile over all of them is not known from those of each, and that of
    the file with most launches stands for it, while ``files`` says of how many.
    """
    with reading_with_timeout(engine, asked.seconds) as connection:
        found = _newest(connection, _NEWEST, {"kernel_id": kernel_id}, asked)
        rows = _rows(connection, _TOTALS, found.runs, kernel_id=kernel_id)
    spread: dict[int, dict[str, Any]] = {}
    for row in rows:
        known = spread.setdefault(row["run_id"], row | {"files": 0})
        known["files"] += 1
        if known["files"] > 1:
            known |= {name: known[name] + row[name] for name in ("launches", "timed")}
            known |= {name: _combine(how, known[name], row[name]) for name, how in _OVER_FILES.items()}
    return found, spread


def means_of_kernel(
    engine: Engine, kernel_id: int, asked: HistoryFilter
) -> tuple[HistoryRuns, dict[int, dict[str, Any]]]:
    """Return the newest runs whose exports have totals of a kernel, and of each the mean duration of its launches."""
    with reading_with_timeout(engine, asked.seconds) as connection:
        found = _newest(connection, _NEWEST_SUMMED, {"kernel_id": kernel_id}, asked)
        rows = _rows(connection, _SUMS, found.runs, kernel_id=kernel_id)
    return found, {row["run_id"]: row for row in rows}


_OVER_FILES: dict[str, Any] = {"total_ns": sum, "min_ns": min, "max_ns": max, "received_at": min}


def _combine(how: Any, one: Any, other: Any) -> Any:
    known = [value for value in (one, other) if value is not None]
    return how(known) if known else None


def criterion_of_kernel(
    engine: Engine, kernel_id: int, criterion: str, runs: Sequence[int], seconds: float
) -> dict[int, dict[str, Any]]:
    """Return by run the mean of a criterion over the launches of a kernel, weighted by time, the least and greatest."""
    with reading_with_timeout(engine, seconds) as connection:
        asked = {"kernel_id": kernel_id, "criterion": criterion}
        return _first_known(connection, (_CRITERION, _CRITERION_ARCHIVED, _CRITERION_OF_MEANS), runs, **asked)


def potential_of_kernel(
    engine: Engine, kernel_id: int, runs: Sequence[int], seconds: float
) -> dict[int, dict[str, Any]]:
    """Return by run the potential of all launches of a kernel together, and the least and greatest of one."""
    with reading_with_timeout(engine, seconds) as connection:
        return _first_known(
            connection, (_POTENTIAL, _POTENTIAL_ARCHIVED, _POTENTIAL_OF_MEANS), runs, kernel_id=kernel_id
        )


def _first_known(
    connection: Connection, queries: Sequence[str], runs: Sequence[int], **asked: Any
) -> dict[int, dict[str, Any]]:
    """Return one row per run: that of its launches, else of its archive, else of the kernel average."""
    found: dict[int, dict[str, Any]] = {}
    for query in queries:
        if without := [run for run in runs if run not in found or found[run]["value"] is None]:
            found |= {row["run_id"]: row for row in _rows(connection, query, without, **asked)}
    return found


def powers_of_load(
    engine: Engine, names: Iterable[str], asked: HistoryFilter
) -> tuple[HistoryRuns, list[dict[str, Any]]]:
    """Return the newest runs with a window, load or kernel of one of these names, and those windows of power."""
    named = {f"name_{number}": name for number, name in enumerate(dict.fromkeys(names))}
    listed = ", ".join(f":{name}" for name in named)
    parts = (_OF_LOAD.format(name=name, column=column) for name in named for column in ("load", "window"))
    query = _NEWEST_POWER.replace("{loads}", " UNION ".join(parts))
    with reading_with_timeout(engine, asked.seconds) as connection:
        found = _newest(connection, query, named, asked)
        return found, _rows(connection, _POWER.replace("{names}", listed), found.runs, **named)


def _newest(connection: Connection, query: str, values: dict[str, Any], asked: HistoryFilter) -> HistoryRuns:
    """Return the requested number of newest runs of a query that yields one row per file, newest first."""
    among, more = _among(asked.project, asked.device)
    values = values | more | {"most": asked.points + 1, "before": asked.before or NO_UPLOAD}
    places = _dicts(connection.execute(text(query.replace("{among}", among)), values))
    kept = places[: asked.points]
    older = kept[-1]["place"] if len(places) > len(kept) else None
    runs: dict[int, dict[str, Any]] = {}
    for row in kept:
        del row["place"]
        runs.setdefault(row["run_id"], row)
    return HistoryRuns(runs, older)


def _rows(connection: Connection, query: str, runs: Iterable[int], **values: Any) -> list[dict[str, Any]]:
    listed = ", ".join(str(int(run)) for run in runs) or "NULL"
    return _dicts(connection.execute(text(query.replace("{runs}", listed)), values))


def _dicts(result: Result[Any]) -> list[dict[str, Any]]:
    """Return the rows as dicts; ten thousand of them are faster so than one by one."""
    names = list(result.keys())
    return [dict(zip(names, row, strict=True)) for row in result.all()]
