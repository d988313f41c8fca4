"""Questions to runs of any size: what is answered is bounded, whatever the run holds."""

from collections.abc import Iterable, Sequence
from typing import Any

from profsvc.store.connection.sql import Engine, dicts_of, text
from profsvc.store.connection.transactions import reading
from profsvc.store.queries.launches.ordered import LaunchOrder
from profsvc.store.queries.rows import ORDER
from profsvc.store.schema.column_types import IDS_PER_UPLOAD
from profsvc.store.schema.view_definition import UPLOAD_ID_RANGE_SQL, counted_once

IDS_PER_QUERY = 500

_KERNELS = """
    SELECT kernel_id, kernel, kernel_short, CAST(sum(launches) AS BIGINT) AS launches, sum(total_ns) / 1e6 AS total_ms,
           sum(total_ns) / sum(timed) / 1e3 AS mean_us, CASE WHEN count(*) = 1 THEN max(p95_ns) END / 1e3 AS p95_us,
           max(max_ns) / 1e3 AS max_us
    FROM v1_kernel_totals WHERE run_id = :run_id
    GROUP BY kernel_id, kernel, kernel_short
    ORDER BY coalesce(sum(total_ns), 0) DESC, sum(launches) DESC, kernel LIMIT :limit
"""
_CAUSES = """
    SELECT k.kernel_id, k.kernel, k.kernel_short, q.cause, q.title, q.first_step, t.saving_ns, t.launches
    FROM runs r JOIN cause_totals t ON t.run_id = r.run_id AND t.version_id = r.version_id
    JOIN cause_names q ON q.cause_id = t.cause_id AND q.kind = 'flaw'
    JOIN kernels k ON k.kernel_id = t.kernel_id
    WHERE r.run_id = :run_id ORDER BY t.saving_ns DESC, k.kernel, q.cause LIMIT :limit
"""
_TRANSFERS = f"""
    SELECT (SELECT x.text FROM texts x WHERE x.text_id = t.kind_id) AS kind,
           CAST(sum(t.transfers) AS BIGINT) AS count, sum(t.total_ns) / 1e6 AS duration_ms,
           CAST(sum(t.bytes) AS BIGINT) AS bytes
    FROM uploads u JOIN transfer_totals t ON t.upload_id = u.upload_id
    WHERE u.run_id = :run_id AND {counted_once("transfers")} GROUP BY t.kind_id
    ORDER BY duration_ms DESC NULLS LAST, kind
"""
_NUMBERS = f"""
    SELECT min(f.first) - 1 AS first, max(f.last) - 1 AS last FROM (
        SELECT (SELECT min(l.launch_id) FROM launches l WHERE l.launch_id {UPLOAD_ID_RANGE_SQL})
                 - u.upload_id * {IDS_PER_UPLOAD} AS first,
               (SELECT max(l.launch_id) FROM launches l WHERE l.launch_id {UPLOAD_ID_RANGE_SQL})
                 - u.upload_id * {IDS_PER_UPLOAD} AS last
        FROM uploads u WHERE u.run_id = :run_id AND u.same_as IS NULL) f
"""


def _rows(engine: Engine, query: str, **values: Any) -> list[dict[str, Any]]:
    with reading(engine) as connection:
        return dicts_of(connection.execute(text(query), values))


def _among(numbers: Iterable[int]) -> str:
    return ", ".join(str(int(number)) for number in numbers)


def launches_among(engine: Engine, view: str, ids: Sequence[int]) -> tuple[str, dict[str, int | None]]:
    """Return the FROM and WHERE of the rows of a view, as ``m``, about these launches, and the values of both.

    For SQLite, to which a view is long to prepare, the text is the same for other launches: their numbers are
    parameters, and up to the next power of two there are some that no launch has.
    """
    if engine.dialect.name != "sqlite":
        return f"{view} m WHERE m.launch_id IN ({_among(ids)})", {}
    numbers = [*map(int, ids), *[None] * ((1 << (len(ids) - 1).bit_length()) - len(ids))]
    listed = ", ".join(f"(:launch_{place})" for place in range(len(numbers)))
    values = {f"launch_{place}": number for place, number in enumerate(numbers)}
    return f"(VALUES {listed}) ids CROSS JOIN {view} m WHERE m.launch_id = ids.column1", values


def launch_rows(engine: Engine, view: str, run_id: int, launch_ids: Sequence[int], **only: Any) -> list[dict[str, Any]]:
    """Return the rows of a view about these launches of a run, in the order of the launches.

    SQLite would read all results of the run for a list of launches; from each launch of a join it finds its own.
    """
    ids = sorted(launch_ids)
    also, found = "".join(f" AND {column} = :{column}" for column in only), []
    with reading(engine) as connection:
        for begin in range(0, len(ids), IDS_PER_QUERY):
            part = ids[begin : begin + IDS_PER_QUERY]
            among, values = launches_among(engine, view, part)
            query = text(f"SELECT m.* FROM {among} AND m.run_id = :run_id{also} ORDER BY {ORDER[view]}")
            found += dicts_of(connection.execute(query, {"run_id": run_id, **values, **only}))
    return found


def longest_launches(
    engine: Engine, run_id: int, limit: int | None, index: int | None = None, kernel_ids: Iterable[int] | None = None
) -> tuple[list[dict[str, Any]], bool]:
    """Return the longest launches of a run, of those of a number or of kernels, and whether it has more.

    Launches that several files tell of count once. They follow each other by time where there are more, else, and
    without a limit, as in the files.
    """
    if limit is None or index is not None:
        ids = _all_launches(engine, run_id, index, kernel_ids)
        return launch_rows(engine, "v1_launches", run_id, ids[:limit]), limit is not None and len(ids) > limit
    with reading(engine) as connection:
        among = None if kernel_ids is None else list(kernel_ids)
        ids = LaunchOrder(connection, run_id, among).numbers("-duration", limit + 1)
    rows = launch_rows(engine, "v1_launches", run_id, ids[:limit])
    if len(ids) <= limit:
        return rows, False
    place = {number: place for place, number in enumerate(ids)}
    return sorted(rows, key=lambda row: place[row["launch_id"]]), True


def _all_launches(engine: Engine, run_id: int, index: int | None, kernel_ids: Iterable[int] | None) -> list[int]:
    """Return the numbers of all launches of a run, or of those with an ordinal or kernel."""
    query = (
        f"SELECT l.launch_id FROM uploads u JOIN launches l ON l.launch_id / {IDS_PER_UPLOAD} = u.upload_id"
        f" AND l.launch_id {UPLOAD_ID_RANGE_SQL} WHERE u.run_id = :run_id AND u.same_as IS NULL"
    )
    if index is not None:
        query += f" AND l.launch_id = u.upload_id * {IDS_PER_UPLOAD} + {int(index) + 1}"
    if kernel_ids is not None:
        shapes = f"SELECT h.shape_id FROM shapes h WHERE h.kernel_id IN ({_among(kernel_ids) or 'NULL'})"
        query += f" AND l.shape_id IN ({shapes})"
    return [row["launch_id"] for row in _rows(engine, query, run_id=run_id)]


def kernels_by_time(engine: Engine, run_id: int, limit: int) -> tuple[list[dict[str, Any]], bool]:
    """Return the kernels of a run that took the most time, and whether it has more.

    A percentile over several files is not known from those of each, and null.
    """
    rows = _rows(engine, _KERNELS, run_id=run_id, limit=limit + 1)
    return rows[:limit], len(rows) > limit


def costly_causes(engine: Engine, run_id: int, limit: int) -> list[dict[str, Any]]:
    """Return kernels and causes of a run with the time that removing the cause would save, largest first."""
    return _rows(engine, _CAUSES, run_id=run_id, limit=limit)


def transfers_by_kind(engine: Engine, run_id: int) -> list[dict[str, Any]]:
    """Return copies and sets of a run by kind: how many, how long, how much; null where none of them says it."""
    return _rows(engine, _TRANSFERS, run_id=run_id)


def launch_numbers(engine: Engine, run_id: int) -> tuple[int | None, int | None]:
    """Return the least and the greatest ordinal of the launches of a run; None where it has none."""
    (row,) = _rows(engine, _NUMBERS, run_id=run_id)
    return row["first"], row["last"]


def count(engine: Engine, view: str, run_id: int) -> int:
    """Return how many rows of a view are about a run."""
    return int(_rows(engine, f"SELECT count(*) AS n FROM {view} WHERE run_id = :run_id", run_id=run_id)[0]["n"])
