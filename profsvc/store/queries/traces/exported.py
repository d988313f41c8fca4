"""All events of a run with a start, some at a time, as a trace for other programs needs them."""

from collections.abc import Iterator
from typing import Any

from profsvc.store.connection.sql import Engine
from profsvc.store.queries.traces.timelines import chunks

# Kind of event -> its columns lane, thread, name, start_ns, duration_ns and argument, in the order of their starts.
_QUERIES = {
    "kernels": """
        SELECT coalesce(device_index, 0) AS lane, stream AS thread, kernel_short AS name, start_ns, duration_ns,
               kernel AS argument FROM v1_launches""",
    "transfers": """
        SELECT coalesce(device_index, 0) AS lane, stream AS thread, kind AS name, start_ns, duration_ns,
               bytes AS argument FROM v1_transfers""",
    "api_calls": """
        SELECT coalesce(process_id, 0) AS lane, thread_id AS thread, name, start_ns, duration_ns, NULL AS argument
        FROM v1_api_calls""",
    "ranges": """
        SELECT coalesce(process_id, 0) AS lane, thread_id AS thread, name, start_ns, duration_ns, domain AS argument
        FROM v1_ranges""",
}
_UNTIMED = "SELECT count(*) FROM {} WHERE run_id = :run_id AND start_ns IS NULL"
_SAMPLES = """
    SELECT s.sensor_id, coalesce(n.name, n.quantity) AS name, n.unit, s.time_ns, s.value
    FROM v1_samples s JOIN v1_sensors n ON n.sensor_id = s.sensor_id
    WHERE s.run_id = :run_id AND n.run_id = :run_id AND s.time_ns BETWEEN :first AND :last AND s.value IS NOT NULL
    ORDER BY s.sample_id
"""
EVENT_KINDS = tuple(_QUERIES)


def trace_events(engine: Engine, run_id: int, kind: str, upload_id: int | None = None) -> Iterator[Any]:
    """Yield the events of a kind of `EVENT_KINDS` that have a start: lane, thread, name, start_ns, duration_ns, ..."""
    of_file = "" if upload_id is None else f" AND upload_id = {upload_id:d}"
    where = f"WHERE run_id = :run_id AND start_ns IS NOT NULL{of_file}"
    query = f"{_QUERIES[kind]} {where} ORDER BY start_ns, duration_ns DESC"
    for part in chunks(engine, query, run_id=run_id):
        yield from part


def untimed_events(engine: Engine, run_id: int, kind: str) -> int:
    """Return how many events of a kind have no start."""
    view = "v1_launches" if kind == "kernels" else f"v1_{kind}"
    return int(next(iter(chunks(engine, _UNTIMED.format(view), run_id=run_id)))[0][0])


def samples_between(engine: Engine, run_id: int, first_ns: int, last_ns: int) -> Iterator[Any]:
    """Yield the readings of the sensors of a run in a span of time: sensor_id, name, unit, time_ns, value."""
    for part in chunks(engine, _SAMPLES, run_id=run_id, first=first_ns, last=last_ns):
        yield from part
