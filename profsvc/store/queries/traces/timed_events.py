"""All events of a run with a start, as arrays for drawing: kernels, copies, API calls and ranges."""

from itertools import count
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Engine, text

from profsvc.store.connection.transactions import reading
from profsvc.store.queries.traces.recordings import Recording
from profsvc.store.queries.traces.timelines import chunks, integer_columns

_KERNELS = """
    SELECT coalesce(device_index, 0), coalesce(stream, -1), kernel_id, start_ns,
           start_ns + CAST(round(CAST(coalesce(duration_ns, 0) AS NUMERIC)) AS BIGINT), launch_id
    FROM v1_launches WHERE run_id = {} AND start_ns IS NOT NULL{}
"""
_KERNEL_NAMES = "SELECT kernel_id, kernel_short FROM v1_kernels"
# Other kinds -> their columns: device or process, stream or thread, name, start_ns, duration_ns and number.
_QUERIES = {
    "transfers": "coalesce(device_index, 0), coalesce(stream, -1), kind, start_ns, duration_ns, 0 FROM v1_transfers",
    "api_calls": "coalesce(process_id, 0), coalesce(thread_id, -1), name, start_ns, duration_ns, 0 FROM v1_api_calls",
    "ranges": "coalesce(process_id, 0), coalesce(thread_id, -1), name, start_ns, duration_ns, 0 FROM v1_ranges",
}


class TimedEvents(NamedTuple):
    """The events of one kind; ``name`` is the place of a name in ``names``, ``number`` that of a launch or 0."""

    kind: str
    owner: NDArray[np.int64]
    thread: NDArray[np.int64]
    name: NDArray[np.int64]
    start_ns: NDArray[np.int64]
    end_ns: NDArray[np.int64]
    number: NDArray[np.int64]
    names: list[str]


def timed_events(engine: Engine, run_id: int, kind: str, recording: Recording | None = None) -> TimedEvents:
    """Return the events of a kind that have a start, of one recording or all; an event without a duration has none.

    The memory is 48 bytes an event. The starts are those of the files, and of a recording in UTC.
    """
    found = _events(engine, run_id, kind, "" if recording is None else f" AND upload_id = {recording.upload_id:d}")
    if recording is None:
        return found
    begin_ns = recording.begin_ns
    return found._replace(start_ns=found.start_ns + begin_ns, end_ns=found.end_ns + begin_ns)


def _events(engine: Engine, run_id: int, kind: str, of_file: str) -> TimedEvents:
    if kind == "kernels":
        return _kernels(engine, run_id, of_file)
    where = f" WHERE run_id = :run_id AND start_ns IS NOT NULL{of_file}"
    places: dict[str, int] = {}
    new = count()
    parts = []
    for rows in chunks(engine, f"SELECT {_QUERIES[kind]}{where}", run_id=run_id):
        owners, threads, name, start, duration, numbers = zip(*rows, strict=True)
        for one in set(name) - places.keys():
            places[one] = next(new)
        lengths = np.nan_to_num(np.array(duration, np.float64))  # None becomes NaN
        begin = np.array(start, np.int64)
        ids = np.fromiter((places[one] for one in name), np.int64, len(name))
        ends = begin + np.rint(lengths).astype(np.int64)
        parts.append([np.array(owners), np.array(threads), ids, begin, ends, np.array(numbers)])
    found = [np.concatenate(column) for column in zip(*parts, strict=True)] or [np.empty(0, np.int64)] * 6
    owner, thread, ids, begin, ends, number = found
    return TimedEvents(kind, owner, thread, ids, begin, ends, number, [str(name) for name in places])


def _kernels(engine: Engine, run_id: int, of_file: str) -> TimedEvents:
    """Return the launches of a run, which are most of a trace, without a text for each."""
    parts = list(integer_columns(engine, _KERNELS.format(int(run_id), of_file), 6))
    columns = np.concatenate(parts, axis=1) if parts else np.empty((6, 0), np.int64)
    used, place = np.unique(columns[2], return_inverse=True)
    with reading(engine) as connection:
        known = {row[0]: str(row[1]) for row in connection.execute(text(_KERNEL_NAMES))}
    owner, thread, _, begin, end, number = columns
    return TimedEvents("kernels", owner, thread, place, begin, end, number, [known[one] for one in used.tolist()])
