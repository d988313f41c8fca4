"""Launches by the million: which of them have metrics, and the sums over the rest, without a row of them kept."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import pandas as pd
from sqlalchemy import Engine, text

from profsvc.analysis.timeline import Timeline, extended
from profsvc.store.engine import reading
from profsvc.store.read import _typed, select
from profsvc.store.schema import STEP
from profsvc.store.views import KINDS

ROWS_AT_ONCE = 100_000
_TIMED = "start_ns IS NOT NULL AND duration_ns IS NOT NULL"
_METRICS = "SELECT 1 FROM metrics m WHERE m.launch_ref"


def measured_launches(engine: Engine, upload_ids: Iterable[int], *, measured: bool = True) -> pd.DataFrame:
    """Return the launches of uploads that have metrics, as ``v1_launches`` has them; or those that have none."""
    query = text(
        f"SELECT * FROM v1_launches v WHERE v.upload_id = :upload_id"
        f" AND {'' if measured else 'NOT '}EXISTS ({_METRICS} = v.launch_id) ORDER BY v.launch_id"
    )
    found: list[Any] = []
    with reading(engine) as connection:
        for upload_id in upload_ids:
            first = upload_id * STEP
            bounds = {"low": first + 1, "high": first + STEP - 1}
            some = connection.execute(text(f"{_METRICS} BETWEEN :low AND :high LIMIT 1"), bounds).first()
            if some or not measured:
                found += connection.execute(query, {"upload_id": upload_id}).all()
    return _typed(found, list(KINDS["v1_launches"]), KINDS["v1_launches"])


def _chunks(engine: Engine, query: str, **values: Any) -> Iterator[Sequence[Any]]:
    """Yield the rows of a query, some at a time."""
    with reading(engine) as connection:
        streaming = connection.execution_options(stream_results=True)
        yield from streaming.execute(text(query), values).partitions(ROWS_AT_ONCE)


def time_without(engine: Engine, upload_id: int, launch_ids: Iterable[int]) -> float:
    """Return the sum of the durations of all launches of an upload but these, in ns."""
    but, total = np.fromiter(launch_ids, dtype="int64"), 0.0
    query = "SELECT launch_id, duration_ns FROM v1_launches WHERE upload_id = :upload_id AND duration_ns IS NOT NULL"
    for rows in _chunks(engine, query, upload_id=upload_id):
        ids, durations = map(np.array, zip(*rows, strict=True))
        total += float(durations[~np.isin(ids, but)].sum())
    return total


def timeline(engine: Engine, run_id: int) -> Timeline | None:
    """Return the timeline of all launches of a run that have a start and a duration; None if there are none.

    Launches that several pages of one report hold count once, by the page that was uploaded first of those with times.
    The clocks of different files are taken for one.
    """
    timed: dict[int, int] = {}
    for upload in select(engine, "v1_uploads", run_id=run_id):
        report = upload["same_as"] or upload["upload_id"]
        if upload["launches"] and report not in timed and _is_timed(engine, upload["upload_id"]):
            timed[report] = upload["upload_id"]
    return _ordered(engine, list(timed.values())) if timed else None


def _is_timed(engine: Engine, upload_id: int) -> bool:
    query = text(f"SELECT 1 FROM v1_launches WHERE upload_id = :upload_id AND {_TIMED} LIMIT 1")
    with reading(engine) as connection:
        return connection.execute(query, {"upload_id": upload_id}).first() is not None


def _ordered(engine: Engine, upload_ids: list[int]) -> Timeline | None:
    """Add up the launches of uploads in the order of their start, which the database sorts."""
    line, among = None, ", ".join(str(int(number)) for number in upload_ids)
    query = f"SELECT start_ns, duration_ns FROM v1_launches WHERE upload_id IN ({among}) AND {_TIMED} ORDER BY start_ns"
    for rows in _chunks(engine, query):
        start, duration = zip(*rows, strict=True)
        line = extended(line, np.array(start, dtype=np.int64), np.array(duration, dtype=np.float64))
    return line
