"""Queries that return frames: columns of the views with the types of `profsvc.store.schema.catalog`."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from sqlalchemy import Engine, text

from profsvc.errors import NotFoundError, UsageError
from profsvc.store.connection.transactions import reading
from profsvc.store.schema import power, wall_time
from profsvc.store.schema.catalog import KINDS
from profsvc.store.schema.column_types import IDS_PER_UPLOAD
from profsvc.tables import DTYPES

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
    "v1_schedules": "schedule_id",
    "v1_slots": "slot_id",
    **dict.fromkeys(power.VIEW_DEFINITIONS, "run_id, item"),
    **dict.fromkeys(wall_time.VIEW_DEFINITIONS, "run_id, item"),
    "v1_predictions": "prediction_id",
    "v1_findings": "finding_id",
    "v1_finding_differences": "finding_id, item",
    "v1_reports": "report_id",
    "v1_refusals": "refusal_id",
    "v1_deliveries": "delivery_id",
    "v1_source_kernels": "source_id",
    "v1_source_lines": "line_id",
    "v1_source_stalls": "line_id, reason",
}

NEAREST_RUNS = 1000
"""Number of newest runs that are searched for a name similar to one that is not found."""

_CHARACTERIZATIONS = """
    SELECT m.device, m.quantity, m.x, m.y
    FROM characterizations m
    JOIN (SELECT device, quantity, max(upload_id) AS upload_id FROM characterizations GROUP BY device, quantity) n
      ON n.device = m.device AND n.quantity = m.quantity AND n.upload_id = m.upload_id
    ORDER BY m.upload_id, m.item
"""

_ATTRIBUTES = """
    SELECT u.upload_id, u.file_name, CAST(substr(n.section, 8) AS INTEGER) AS device_index, n.metric, m.raw_text,
           m.value, t.si_unit, m.line
    FROM uploads u
    JOIN metrics m ON m.launch_ref = u.upload_id * :step
    JOIN metric_names n ON n.metric_id = m.metric_id
    JOIN unit_names t ON t.unit_id = m.unit_id
    WHERE u.run_id = :run_id AND u.format = 'ncu-session' AND n.section LIKE 'Device %'
    ORDER BY u.upload_id, m.item
"""


def typed_frame(rows: Sequence[Sequence[Any]], columns: Sequence[str], kinds: Mapping[str, str]) -> pd.DataFrame:
    """Make a frame whose types do not depend on which values are null; equal texts are one object."""
    parts = list(zip(*rows, strict=True)) or [()] * len(columns)
    once: dict[Any, Any] = {}
    series = {
        name: pd.Series(
            [once.setdefault(cell, cell) for cell in part] if kinds.get(name) == "text" else list(part),
            dtype=DTYPES[kinds.get(name, "float")],
        )
        for name, part in zip(columns, parts, strict=True)
    }
    return pd.DataFrame(series, columns=list(columns))


ORDER |= {f"{view}_all": ORDER[view] for view in ORDER if f"{view}_all" in KINDS}


def files_of_launch(engine: Engine, launch_id: int) -> str:
    """Return the SQL condition that rows are of the files that tell of a launch.

    Postgres does not find the few metrics of a launch that are kept column by column without it.
    """
    with reading(engine) as connection:
        query = text(f"SELECT DISTINCT launch_id / {IDS_PER_UPLOAD} FROM twins WHERE first_id = :launch_id")
        found = [launch_id // IDS_PER_UPLOAD, *connection.execute(query, {"launch_id": launch_id}).scalars()]
    return f"upload_id IN ({', '.join(map(str, found))})"


def _query(engine: Engine, view: str, only: Mapping[str, Any]) -> str:
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


def table(engine: Engine, view: str, **only: Any) -> pd.DataFrame:
    """Return the rows of a view with these column values (None: is null), as a frame."""
    query = _query(engine, view, only)
    with reading(engine) as connection:
        result = connection.execute(text(query), only)
        return typed_frame(result.all(), list(result.keys()), KINDS[view])


def select(engine: Engine, view: str, **only: Any) -> list[dict[str, Any]]:
    """Return the rows of a view with these column values (None: is null), as dicts with None for null."""
    query = _query(engine, view, only)
    with reading(engine) as connection:
        return [dict(row) for row in connection.execute(text(query), only).mappings()]


def runs(engine: Engine, project: str | None = None) -> pd.DataFrame:
    """Return the runs, of one project or of all."""
    return table(engine, "v1_runs", **({} if project is None else {"project": project}))


def find_run(engine: Engine, name_or_id: str | int, project: str | None = None) -> int:
    """Return the number of a run from its number, its name, or ``project/name``; an int is never a name.

    With a ``project`` the runs of no other are found, nor named.
    """
    wanted, among = str(name_or_id), "" if project is None else " AND project = :project"
    is_number = isinstance(name_or_id, int)
    named = "run_id = :number" if is_number else "name = :wanted OR project || '/' || name = :wanted"
    number = int(wanted) if wanted.isascii() and wanted.isdigit() and len(wanted) < 19 else -1
    values = {"wanted": wanted, "number": number, "project": project}
    values = {name: value for name, value in values.items() if name != "project" or project is not None}
    with reading(engine) as connection:

        def rows(condition: str, tail: str = "") -> list[Any]:
            query = f"SELECT run_id, project, name FROM runs WHERE ({condition}){among}{tail}"
            used = {name: value for name, value in values.items() if f":{name}" in query}
            return list(connection.execute(text(query), used).all())

        # A name wins over a number, so that a run called "2024" can be found at all; "#7" would be no better.
        found = rows(named) or ([] if is_number else rows("run_id = :number"))
        if not found:
            newest = rows("0 = 0", f" ORDER BY run_id DESC LIMIT {NEAREST_RUNS}")
    if len(found) > 1:
        several = ", ".join(f"{row.project}/{row.name} ({row.run_id})" for row in found)
        raise UsageError(f"{wanted!r} names several runs: {several}; say which")
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


def uploads(engine: Engine, run_id: int) -> pd.DataFrame:
    """Return the files of a run."""
    return table(engine, "v1_uploads", run_id=run_id)


def launches(engine: Engine, run_id: int) -> pd.DataFrame:
    """Return the launches of a run in the order of its files."""
    return table(engine, "v1_launches", run_id=run_id)


def rules(engine: Engine, run_id: int) -> pd.DataFrame:
    """Return the advice of the tool on the launches of a run."""
    return table(engine, "v1_rules", run_id=run_id)


def criteria(engine: Engine, run_id: int) -> pd.DataFrame:
    """Return the criteria of a run by the newest analysis."""
    return table(engine, "v1_criteria", run_id=run_id)


def potential(engine: Engine, run_id: int) -> pd.DataFrame:
    """Return the potential speedups of a run by the newest analysis."""
    return table(engine, "v1_potential", run_id=run_id)


def models(engine: Engine, run_id: int) -> pd.DataFrame:
    """Return the quantities of the models of a run by the newest analysis."""
    return table(engine, "v1_models", run_id=run_id)


def characterizations(engine: Engine) -> pd.DataFrame:
    """Return what was measured of devices (device, quantity, x, y), of each quantity of a device as uploaded last.

    Devices are named as the uploads name them; the rows follow each other as they were uploaded.
    """
    with reading(engine) as connection:
        rows = connection.execute(text(_CHARACTERIZATIONS)).all()
    return typed_frame(rows, ["device", "quantity", "x", "y"], KINDS["v1_characterizations"])


def device_attributes(engine: Engine, run_id: int) -> pd.DataFrame:
    """Return the device properties from the session pages of a run, in the order of the files."""
    kinds = dict.fromkeys(("upload_id", "file_name", "device_index", "metric", "raw_text", "value", "si_unit"), "text")
    kinds |= {"upload_id": "int", "device_index": "int", "value": "float", "line": "int"}
    with reading(engine) as connection:
        rows = connection.execute(text(_ATTRIBUTES), {"run_id": run_id, "step": IDS_PER_UPLOAD}).all()
    return typed_frame(rows, list(kinds), kinds)


def counters(engine: Engine, run_id: int) -> pd.DataFrame:
    """Return one row per launch (index ``launch_id``) and one column per counter of the run."""
    query = (
        "SELECT c.launch_id, t.text, c.value FROM uploads u"
        f" JOIN counters c ON c.launch_id BETWEEN u.upload_id * {IDS_PER_UPLOAD}"
        f" AND u.upload_id * {IDS_PER_UPLOAD} + {IDS_PER_UPLOAD - 1}"
        " JOIN texts t ON t.text_id = c.counter_id WHERE u.run_id = :run_id AND u.same_as IS NULL"
        " ORDER BY c.launch_id, c.counter_id"
    )
    with reading(engine) as connection:
        rows = connection.execute(text(query), {"run_id": run_id}).all()
    kinds = {"launch_id": "int", "counter": "text", "value": "float"}
    long = typed_frame(rows, list(kinds), kinds)
    names = list(dict.fromkeys(long["counter"]))
    wide = long.pivot_table(index="launch_id", columns="counter", values="value", dropna=False, observed=True)
    wide.columns.name = None
    return wide.reindex(columns=names)


def metrics(engine: Engine, upload_id: int, launch_ids: Iterable[int] | None = None) -> pd.DataFrame:
    """Return the metrics of the launches of an upload, of all or of these, in the order of the file.

    Only those that are kept as rows; `profsvc.store.ingest.writers.wide_metrics` has the cells kept column by column.
    Columns: ``launch_id``, ``section`` (None without), ``metric``, ``value`` (NaN where the cell is not a number) and
    ``si_unit`` (None without). Names are shared objects, so that a million rows cost little more than their numbers.
    """
    first = upload_id * IDS_PER_UPLOAD
    asked = None if launch_ids is None else np.unique(np.fromiter(launch_ids, dtype="int64"))
    low, high = (first + 1, first + IDS_PER_UPLOAD - 1) if asked is None or not len(asked) else (asked[0], asked[-1])
    query = text(
        "SELECT launch_ref, metric_id, unit_id, value FROM metrics"
        " WHERE launch_ref BETWEEN :low AND :high ORDER BY launch_ref, item"
    )
    with reading(engine) as connection:
        rows = connection.execute(query, {"low": int(low), "high": int(high)}).all()
        names = {
            i: (s or None, m)
            for i, m, s in connection.execute(text("SELECT metric_id, metric, section FROM metric_names"))
        }
        units = {
            i: si or None for i, _, si in connection.execute(text("SELECT unit_id, unit, si_unit FROM unit_names"))
        }
    frame = pd.DataFrame(
        {
            "launch_id": pd.Series([row[0] for row in rows], dtype="Int64"),
            "section": pd.Series([names[row[1]][0] for row in rows], dtype="object"),
            "metric": pd.Series([names[row[1]][1] for row in rows], dtype="object"),
            "value": pd.Series([row[3] for row in rows], dtype="float64"),
            "si_unit": pd.Series([units[row[2]] for row in rows], dtype="object"),
        }
    )
    return frame if asked is None else frame[frame["launch_id"].isin(asked)].reset_index(drop=True)


def sensors(engine: Engine, run_id: int) -> list[dict[str, Any]]:
    """Return the sensors of a run, each with the number of readings and their mean, minimum and maximum."""
    query = text(
        "SELECT s.*, t.readings, t.mean_value, t.min_value, t.max_value FROM v1_sensors s LEFT JOIN"
        " (SELECT sensor_id, count(value) AS readings, avg(value) AS mean_value, min(value) AS min_value,"
        "  max(value) AS max_value FROM v1_samples WHERE run_id = :run_id GROUP BY sensor_id) t"
        " ON t.sensor_id = s.sensor_id WHERE s.run_id = :run_id ORDER BY s.sensor_id"
    )
    with reading(engine) as connection:
        return [dict(row) for row in connection.execute(query, {"run_id": run_id}).mappings()]
