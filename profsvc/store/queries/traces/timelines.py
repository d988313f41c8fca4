"""Timelines of runs: sums over their launches in the order of their start."""

from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from functools import partial
from itertools import chain, count, islice
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from profsvc.analysis.launches.timeline import Timeline, append_launches
from profsvc.store.connection.sql import Engine, text
from profsvc.store.connection.transactions import reading, scanning, writing
from profsvc.store.ingest.writers.running_timeline import save_timeline
from profsvc.store.queries.rows import select

ROWS_PER_FETCH = 100_000
_CURSOR_NUMBERS = count()

_TIMED = "start_ns IS NOT NULL AND duration_ns IS NOT NULL"


_STORED = text(f"""
    SELECT t.upload_id, {", ".join(f"t.{name}" for name in Timeline._fields)}
    FROM uploads u JOIN timelines t ON t.upload_id = u.upload_id WHERE u.run_id = :run_id
""")


def _stored_timelines(engine: Engine, run_id: int) -> dict[int, Timeline | None]:
    """Return the timelines of uploads that are known; None if none of its launches has times."""
    with reading(engine) as connection:
        rows = connection.execute(_STORED, {"run_id": run_id}).all()
    found: dict[int, Timeline | None] = {}
    for upload_id, *cells in rows:
        line = Timeline(*cells)
        known = line._replace(overlapped=bool(line.overlapped), suspected=bool(line.suspected))
        found[upload_id] = None if line.first_ns is None else known
    return found


def _saved_timeline(engine: Engine, upload_id: int) -> Timeline | None:
    line = _computed_timeline(engine, [upload_id])
    with writing(engine) as connection:
        save_timeline(connection, upload_id, line)
    return line


def timeline(engine: Engine, run_id: int) -> Timeline | None:
    """Return the timeline of all launches of a run that have a start and a duration; None if there are none.

    Launches that several files tell of count once, by the file that stands for them, else by the first with times.
    The clocks of different files are taken for one.
    """
    timed = timed_files(engine, run_id)
    if len(timed) > 1:
        return _computed_timeline(engine, list(timed))
    return next(iter(timed.values()), None)


def timed_files(engine: Engine, run_id: int) -> dict[int, Timeline]:
    """Return the files of a run whose launches have times, each launch in one of them, with their timelines."""
    found: dict[int, tuple[int, Timeline]] = {}
    uploads, stored = select(engine, "v1_uploads", run_id=run_id), _stored_timelines(engine, run_id)
    for upload in sorted(uploads, key=lambda upload: (upload["same_as"] is not None, upload["upload_id"])):
        number = upload["upload_id"]
        first = upload["same_as"] or number
        if not upload["launches"] or first in found:
            continue
        if line := stored[number] if number in stored else _saved_timeline(engine, number):
            found[first] = number, line
    return dict(sorted(found.values()))


def chunks(engine: Engine, query: str, **values: Any) -> Iterator[Sequence[Any]]:
    """Yield the rows of a query, some at a time."""
    with reading(engine) as connection:
        streamed = text(query).execution_options(stream_results=True)  # set on the connection it would stay so
        yield from connection.execute(streamed, values).partitions(ROWS_PER_FETCH)


def integer_columns(
    engine: Engine, query: str, columns: int, rows_at_once: int = ROWS_PER_FETCH
) -> Iterator[NDArray[np.int64]]:
    """Yield so many columns of integers without null, as the rows of an array, some rows of the query at a time."""
    with _plain_rows(engine, query) as rows:
        cells = chain.from_iterable(rows)
        while (found := np.fromiter(islice(cells, columns * rows_at_once), np.int64)).size:
            yield found.reshape(-1, columns).T


def typed_rows(engine: Engine, query: str, dtype: Sequence[tuple[str, Any]]) -> Iterator[NDArray[np.void]]:
    """Yield rows without null as arrays with named columns, some rows of the query at a time."""
    with _plain_rows(engine, query) as rows:
        while (found := np.fromiter(islice(rows, ROWS_PER_FETCH), np.dtype(list(dtype)))).size:
            yield found


@contextmanager
def _plain_rows(engine: Engine, query: str) -> Iterator[Iterator[tuple[Any, ...]]]:
    """Yield the rows of a query as the driver has them.

    They go into arrays one by one: to keep them would make the search for garbage take half of the time.
    """
    with scanning(engine) as connection:
        # A cursor with a name is one of the server, which does not send all rows at once. Queries that are read in
        # turns over one connection have a cursor each.
        server = connection.dialect.name == "postgresql"
        driver = cast("Any", connection.connection).driver_connection
        name = f"columns_{next(_CURSOR_NUMBERS)}"
        with closing(driver.cursor(name, binary=True) if server else driver.cursor()) as cursor:
            cursor.execute(query)
            # A cursor of a server gives its rows in lists much faster than one by one.
            lists = iter(partial(cursor.fetchmany, ROWS_PER_FETCH // 10), []) if server else None
            yield cursor if lists is None else chain.from_iterable(lists)


def _computed_timeline(engine: Engine, upload_ids: list[int]) -> Timeline | None:
    """Add up the launches of uploads in the order of their start, which the database sorts."""
    line, among = None, ", ".join(str(int(number)) for number in upload_ids)
    query = (
        f"SELECT start_ns, duration_ns FROM v1_launches_all WHERE upload_id IN ({among}) AND {_TIMED} ORDER BY start_ns"
    )
    for rows in chunks(engine, query):
        start, duration = zip(*rows, strict=True)
        line = append_launches(line, np.array(start, dtype=np.int64), np.array(duration, dtype=np.float64))
    return line
