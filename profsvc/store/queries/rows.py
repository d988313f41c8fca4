"""Rows of the views as dicts, and the questions that need no frame: the number of a run, a file by its number."""

import re
from collections.abc import Mapping
from typing import Any

from profsvc.errors import NotFoundError, UsageError
from profsvc.store.connection.sql import Engine, dicts_of, text
from profsvc.store.connection.transactions import reading
from profsvc.store.schema.catalog import KINDS, in_dialect
from profsvc.store.schema.column_types import IDS_PER_UPLOAD, WHOLE_RUN_ID
from profsvc.store.schema.results import launch_results as results
from profsvc.store.schema.results import power, wall_time

# The order of the rows of a view; other views have the order of the database.
ORDER = {
    "v1_runs": "run_id",
    "v1_uploads": "upload_id",
    "v1_rejects": "upload_id, line",
    "v1_characterizations": "upload_id, line",
    "v1_devices": "device_id",
    "v1_kernels": "kernel_id",
    "v1_launches": "launch_id",
    "v1_transfers": "upload_id, transfer_id",
    "v1_api_calls": "upload_id, call_id",
    "v1_ranges": "upload_id, range_id",
    "v1_kernel_summaries": "upload_id, summary_id",
    "v1_sensors": "upload_id, sensor_id",
    "v1_samples": "upload_id, sensor_id, block_id, sample_id",
    "v1_kernel_totals": "upload_id, kernel_id",
    "v1_counters": "launch_id",
    "v1_counter_values": "launch_id, counter",
    "v1_rules": "launch_id, line",
    "v1_criteria": "run_id, launch_id NULLS FIRST, kernel NULLS FIRST, criterion",
    "v1_potential": "run_id, launch_id NULLS FIRST, kernel NULLS FIRST",
    "v1_models": "run_id, launch_id NULLS FIRST, kernel NULLS FIRST, model, quantity, form NULLS FIRST",
    "v1_causes": "run_id, launch_id NULLS FIRST, kernel NULLS FIRST, rank",
    "v1_archives": "archive_id",
    "v1_saved_queries": "query_id",
    "v1_schedules": "schedule_id",
    "v1_slots": "slot_id",
    **dict.fromkeys(power.VIEW_DEFINITIONS, "run_id, item"),
    **dict.fromkeys(wall_time.VIEW_DEFINITIONS, "run_id, item"),
    "v1_predictions": "prediction_id",
    "v1_findings": "finding_id",
    "v1_finding_differences": "finding_id, item",
    "v1_kernel_renames": "rename_id",
    "v1_rename_decisions": "decision_id",
    "v1_reports": "report_id",
    "v1_refusals": "refusal_id",
    "v1_deliveries": "delivery_id",
    "v1_source_kernels": "source_id",
    "v1_source_lines": "line_id",
    "v1_source_stalls": "line_id, reason",
}
ORDER |= {f"{view}_all": ORDER[view] for view in ORDER if f"{view}_all" in KINDS}

NEAREST_RUNS = 1000
"""Number of newest runs that are searched for a name similar to one that is not found."""
NUMBER = re.compile(r"(id:)?(\d{1,18})", re.ASCII)
"""A run by its number; with ``id:`` it cannot be a name."""


def files_of_launch(engine: Engine, launch_id: int) -> str:
    """Return the SQL condition that rows are of the files that tell of a launch.

    Postgres does not find the few metrics of a launch that are kept column by column without it.
    """
    with reading(engine) as connection:
        query = text(f"SELECT DISTINCT launch_id / {IDS_PER_UPLOAD} FROM twins WHERE first_id = :launch_id")
        found = [launch_id // IDS_PER_UPLOAD, *connection.execute(query, {"launch_id": launch_id}).scalars()]
    return f"upload_id IN ({', '.join(map(str, found))})"


def select_of(engine: Engine, view: str, only: Mapping[str, Any]) -> str:
    """Return the SELECT for the rows of a view with these column values."""
    if view not in KINDS:
        raise NotFoundError.near("view", view, KINDS)
    for column in only:
        if column not in KINDS[view]:
            raise NotFoundError.near(f"column of {view}", column, KINDS[view])
    # In quotes, because a column may be called as SQL calls something else.
    asked = [f'"{c}" IS NULL' if value is None else f'"{c}" = :{c}' for c, value in only.items()]
    if view == "v1_metrics" and only.get("launch_id") is not None:
        asked.append(files_of_launch(engine, int(only["launch_id"])))
    conditions = " AND ".join(asked)
    order = f" ORDER BY {ORDER[view]}" if view in ORDER else ""
    return f"SELECT * FROM {view}{' WHERE ' * bool(conditions)}{conditions}{order}"


def select(engine: Engine, view: str, **only: Any) -> list[dict[str, Any]]:
    """Return the rows of a view with these column values (None: is null), as dicts with None for null."""
    query = select_of(engine, view, only)
    with reading(engine) as connection:
        return dicts_of(connection.execute(text(query), only))


def newest_characterizations(engine: Engine, project: str | None = None) -> list[dict[str, Any]]:
    """Return the rows of ``v1_characterizations`` of the upload that counts, the newest of each device and quantity.

    With a ``project`` only uploads to its runs are seen.
    """
    of_project = "" if project is None else " WHERE run_id IN (SELECT run_id FROM runs WHERE project = :project)"
    seen = f"SELECT * FROM v1_characterizations{of_project}"
    newest = f"SELECT device, quantity, max(upload_id) AS newest FROM ({seen}) AS a GROUP BY device, quantity"
    query = text(
        f"SELECT m.* FROM ({seen}) AS m JOIN ({newest}) AS n"
        " ON n.device = m.device AND n.quantity = m.quantity AND n.newest = m.upload_id ORDER BY m.upload_id, m.line"
    )
    with reading(engine) as connection:
        values = {} if project is None else {"project": project}
        return dicts_of(connection.execute(query, values))


def results_without_launch(engine: Engine, view: str, run_id: int) -> list[dict[str, Any]]:
    """Return the rows of a view of results about a whole run and about kernels, which have no launch.

    They are found by the key of the table; the view itself reads the results of every launch to see which have none.
    """
    found = results.VIEW_DEFINITIONS[view]
    columns = ", ".join(f'{in_dialect(sql, engine.dialect.name)} AS "{name}"' for name, _, sql, _ in found.columns)
    query = text(
        f"SELECT {columns} FROM {found.source} WHERE c.run_id = :run_id AND c.launch_id = {WHOLE_RUN_ID}"
        f" ORDER BY {ORDER[view]}"
    )
    with reading(engine) as connection:
        return dicts_of(connection.execute(query, {"run_id": run_id}))


def find_run(engine: Engine, name_or_id: str | int, project: str | None = None) -> int:
    """Return the number of a run from its number, its name, or ``project/name``; an int is never a name.

    A name wins over a number, so that a run called "2024" is found however many runs there are; ``id:7`` is always the
    number; commands to copy use it. With a ``project`` the runs of no other are found, nor named.
    """
    wanted, among = str(name_or_id), "" if project is None else " AND project = :project"
    digits = NUMBER.fullmatch(wanted)
    is_number = isinstance(name_or_id, int) or (digits is not None and digits[1] is not None)
    named = "run_id = :number" if is_number else "name = :wanted"
    named += " OR project || '/' || name = :wanted" if "/" in wanted else ""  # no index has it
    number = int(digits[2]) if digits else -1
    values = {"wanted": wanted, "number": number, "project": project}
    values = {name: value for name, value in values.items() if name != "project" or project is not None}
    with reading(engine) as connection:

        def rows(condition: str, tail: str = "") -> list[Any]:
            query = f"SELECT run_id, project, name FROM runs WHERE ({condition}){among}{tail}"
            used = {name: value for name, value in values.items() if f":{name}" in query}
            return list(connection.execute(text(query), used).all())

        found = rows(named) or ([] if is_number else rows("run_id = :number"))
        if not found:
            newest = rows("0 = 0", f" ORDER BY run_id DESC LIMIT {NEAREST_RUNS}")
    if len(found) > 1:
        several = ", ".join(f"{row.project}/{row.name} (id:{row.run_id})" for row in found)
        raise UsageError(f"{wanted!r} names several runs: {several}; say which, such as id:{found[0].run_id}")
    if not found:
        raise NotFoundError.near("run", wanted, [row.name for row in newest])
    return int(found[0].run_id)


def upload(engine: Engine, upload_id: int) -> dict[str, Any]:
    """Return a row of ``v1_uploads``."""
    if found := select(engine, "v1_uploads", upload_id=upload_id):
        return found[0]
    raise NotFoundError(f"no upload has the number {upload_id}")


def size_is_stored(engine: Engine, size_bytes: int) -> bool:
    """Return whether a file of this size is stored."""
    with reading(engine) as connection:
        query = text("SELECT 1 FROM uploads WHERE size_bytes = :size_bytes LIMIT 1")
        return connection.execute(query, {"size_bytes": size_bytes}).first() is not None


def sensors(engine: Engine, run_id: int) -> list[dict[str, Any]]:
    """Return the sensors of a run, each with the number of readings and their mean, minimum and maximum."""
    query = text(
        "SELECT s.*, t.readings, t.mean_value, t.min_value, t.max_value FROM v1_sensors s LEFT JOIN"
        " (SELECT sensor_id, count(value) AS readings, avg(value) AS mean_value, min(value) AS min_value,"
        "  max(value) AS max_value FROM v1_samples WHERE run_id = :run_id GROUP BY sensor_id) t"
        " ON t.sensor_id = s.sensor_id WHERE s.run_id = :run_id ORDER BY s.sensor_id"
    )
    with reading(engine) as connection:
        return dicts_of(connection.execute(query, {"run_id": run_id}))
