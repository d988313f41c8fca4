"""Queries that return frames: columns of the views with the types of `profsvc.store.schema.catalog`."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from profsvc.store.connection.sql import Engine, text
from profsvc.store.connection.transactions import reading
from profsvc.store.queries.id_ranges import id_range, id_ranges
from profsvc.store.queries.rows import select_of
from profsvc.store.schema.catalog import KINDS
from profsvc.store.schema.column_types import IDS_PER_UPLOAD
from profsvc.tables import DTYPES

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
    index = pd.RangeIndex(len(rows))
    cells = {
        name: _typed(kinds.get(name, "float"), part, index, once) for name, part in zip(columns, parts, strict=True)
    }
    return pd.DataFrame(cells, index)


def _typed(kind: str, cells: Sequence[Any], index: pd.RangeIndex, once: dict[Any, Any]) -> Any:
    """Return the cells as a column that a frame takes as it is: to make a series of each takes four times as long."""
    if kind == "text":
        texts = np.empty(len(cells), dtype=object)
        texts[:] = [once.setdefault(cell, cell) for cell in cells]
        return pd.Series(texts, index, dtype=DTYPES[kind], copy=False)  # an array would be searched for its type
    if kind == "int":
        absent = np.array([cell is None for cell in cells], dtype=np.bool_)
        return pd.arrays.IntegerArray(np.array([cell or 0 for cell in cells], dtype=np.int64), absent)
    return np.array(cells, dtype=np.float64)


def table(engine: Engine, view: str, **only: Any) -> pd.DataFrame:
    """Return the rows of a view with these column values (None: is null), as a frame."""
    query = select_of(engine, view, only)
    with reading(engine) as connection:
        result = connection.execute(text(query), only)
        return typed_frame(result.all(), list(result.keys()), KINDS[view])


def runs(engine: Engine, project: str | None = None) -> pd.DataFrame:
    """Return the runs, of one project or of all."""
    return table(engine, "v1_runs", **({} if project is None else {"project": project}))


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


def metrics(engine: Engine, upload_id: int | None, launch_ids: Iterable[int] | None = None) -> pd.DataFrame:
    """Return the metrics of all launches of an upload, or of these of any uploads, in the order of the files.

    Only those that are kept as rows; `profsvc.store.ingest.writers.wide_metrics` has the cells kept column by column.
    Columns: ``launch_id``, ``section`` (None without), ``metric``, ``value`` (NaN where the cell is not a number) and
    ``si_unit`` (None without). Names are shared objects, so that a million rows cost little more than their numbers.
    """
    asked = None if launch_ids is None else np.unique(np.fromiter(launch_ids, dtype="int64"))
    ranges = id_ranges(asked) if asked is not None else [id_range(upload_id or 0)]
    query = text(
        "SELECT launch_ref, metric_id, unit_id, value FROM metrics"
        " WHERE launch_ref BETWEEN :low AND :high ORDER BY launch_ref, item"
    )
    with reading(engine) as connection:
        rows = [row for low, high in ranges for row in connection.execute(query, {"low": low, "high": high})]
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
