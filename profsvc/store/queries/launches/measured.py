"""Launches by the million: which of them have metrics, and the time of the rest, without a row of them kept."""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pandas as pd

from profsvc.store.connection.sql import Connection, Engine, bindparam, text
from profsvc.store.connection.transactions import reading
from profsvc.store.queries.frames import typed_frame
from profsvc.store.queries.id_ranges import id_range
from profsvc.store.queries.traces.timelines import chunks
from profsvc.store.schema.catalog import KINDS
from profsvc.store.schema.column_types import IDS_PER_UPLOAD
from profsvc.store.schema.contents.wide_metrics import MAX_BLOCK_LAUNCHES

LAUNCHES_PER_FETCH = 2_000
# So few launches are faster looked up than all others are read.
MAX_LOOKED_UP = 20_000
IDS_PER_QUERY = 500
FEW_LAUNCHES = 200
_METRICS = "SELECT 1 FROM metrics m WHERE m.launch_ref"
_WIDE = "SELECT 1 FROM wide_blocks b WHERE b.first_launch"
_OF_UPLOAD = f"BETWEEN u.upload_id * {IDS_PER_UPLOAD} AND u.upload_id * {IDS_PER_UPLOAD} + {IDS_PER_UPLOAD - 1}"
_COUNTED, _HOLDING = (
    text(f"SELECT u.upload_id, u.launches FROM uploads u WHERE u.upload_id IN :uploads{condition}").bindparams(
        bindparam("uploads", expanding=True)
    )
    for condition in ("", f" AND (EXISTS ({_METRICS} {_OF_UPLOAD}) OR EXISTS ({_WIDE} {_OF_UPLOAD}))")
)
_IN_BLOCK = (
    f"BETWEEN v.launch_id - {MAX_BLOCK_LAUNCHES - 1} AND v.launch_id AND v.launch_id < b.first_launch + b.launches"
)


def measured_launches(engine: Engine, upload_ids: Iterable[int], *, measured: bool = True) -> pd.DataFrame:
    """Return the launches of uploads that have metrics, as ``v1_launches_all`` has them; or those that have none."""
    query = text(
        f"SELECT * FROM v1_launches_all v WHERE v.upload_id IN :uploads"
        f" AND {'' if measured else 'NOT '}(EXISTS ({_METRICS} = v.launch_id) OR EXISTS ({_WIDE} {_IN_BLOCK}))"
        " ORDER BY v.launch_id"
    ).bindparams(bindparam("uploads", expanding=True))
    kinds = KINDS["v1_launches_all"]
    parts: list[pd.DataFrame] = []
    waiting: list[Any] = []
    with reading(engine) as connection:
        for some in _read_together(connection, sorted(upload_ids), measured=measured):
            streamed = query.execution_options(stream_results=True)  # set on the connection it would stay so
            result = connection.execute(streamed, {"uploads": some})
            for rows in result.partitions(LAUNCHES_PER_FETCH):
                waiting += rows
                if len(waiting) >= LAUNCHES_PER_FETCH:
                    parts.append(typed_frame(waiting, list(kinds), kinds))
                    waiting = []
    if waiting or not parts:
        parts.append(typed_frame(waiting, list(kinds), kinds))
    return parts[0] if len(parts) == 1 else pd.concat(parts, ignore_index=True)


def _read_together(connection: Connection, upload_ids: Sequence[int], *, measured: bool) -> list[list[int]]:
    """Return which uploads to ask for at once, without those that have no metrics at all if those are wanted.

    Those with few launches are asked for together; each of the others alone, as its launches are stored in order.
    """
    groups: list[list[int]] = []
    waiting: list[int] = []
    for begin in range(0, len(upload_ids), IDS_PER_QUERY):
        values = {"uploads": upload_ids[begin : begin + IDS_PER_QUERY]}
        for upload_id, launches in connection.execute(_HOLDING if measured else _COUNTED, values):
            if launches > FEW_LAUNCHES:
                groups.append([upload_id])
            else:
                waiting.append(upload_id)
    return groups + [waiting[begin : begin + IDS_PER_QUERY] for begin in range(0, len(waiting), IDS_PER_QUERY)]


def metric_layouts(engine: Engine, upload_ids: Iterable[int]) -> dict[int, tuple[tuple[int, ...], tuple[int, ...]]]:
    """Return for each upload what tells whether another has the same metrics: its column layouts, its other metrics."""
    layouts = text("SELECT DISTINCT layout_id FROM wide_blocks WHERE first_launch BETWEEN :low AND :high ORDER BY 1")
    metrics = text("SELECT DISTINCT metric_id FROM metrics WHERE launch_ref BETWEEN :low AND :high ORDER BY 1")
    found: dict[int, tuple[tuple[int, ...], tuple[int, ...]]] = {}
    with reading(engine) as connection:
        for upload_id in upload_ids:
            bounds = dict(zip(("low", "high"), id_range(upload_id), strict=True))
            wide, rows = (tuple(connection.execute(query, bounds).scalars()) for query in (layouts, metrics))
            found[upload_id] = wide, rows
    return found


def time_without_metrics(engine: Engine, upload_id: int, launch_ids: Iterable[int]) -> float:
    """Return the sum of the durations of all launches of an upload but these, in ns."""
    but, total = np.fromiter(launch_ids, dtype="int64"), 0.0
    if len(but) < MAX_LOOKED_UP:
        return _time_without_few(engine, upload_id, but.tolist())
    query = (
        "SELECT launch_id, duration_ns FROM v1_launches_all WHERE upload_id = :upload_id AND duration_ns IS NOT NULL"
    )
    for rows in chunks(engine, query, upload_id=upload_id):
        ids, durations = map(np.array, zip(*rows, strict=True))
        total += float(durations[~np.isin(ids, but)].sum())
    return total


def _time_without_few(engine: Engine, upload_id: int, launch_ids: Sequence[int]) -> float:
    """Return the same from the sum of all durations, which the upload knows, where few launches are left out."""
    all_ns = text("SELECT coalesce(gpu_time_ns, 0) FROM uploads WHERE upload_id = :upload_id")
    some_ns = text("SELECT coalesce(sum(duration_ns), 0) FROM launches WHERE launch_id IN :some")
    some_ns = some_ns.bindparams(bindparam("some", expanding=True))
    with reading(engine) as connection:
        left = float(connection.execute(all_ns, {"upload_id": upload_id}).scalar_one())
        for begin in range(0, len(launch_ids), IDS_PER_QUERY):
            left -= float(connection.execute(some_ns, {"some": launch_ids[begin : begin + IDS_PER_QUERY]}).scalar_one())
    return max(left, 0.0)
