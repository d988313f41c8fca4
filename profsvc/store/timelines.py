"""The timeline of an upload: sums over its launches in the order of their start, made while they are loaded.

Launches that do not come in that order, and those of several files together, are added up later, in an order that the
database makes; the sums of one file are kept then.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pandas as pd
from sqlalchemy import Connection, Engine, text

from profsvc.analysis.timeline import Timeline, extended, follows
from profsvc.store.engine import reading, writing
from profsvc.store.read import select

ROWS_AT_ONCE = 100_000
_TIMED = "start_ns IS NOT NULL AND duration_ns IS NOT NULL"


class Running:
    """The timeline of an upload as far as it is loaded; none any more once a launch began before one above it."""

    def __init__(self) -> None:
        """Begin with no launch."""
        self.line: Timeline | None = None
        self.in_order = True

    def add(self, launches: pd.DataFrame) -> None:
        """Put the launches of a batch behind those before."""
        timed = (launches["start_ns"].notna() & launches["duration_ns"].notna()).to_numpy()
        start = launches["start_ns"].to_numpy(dtype=np.int64, na_value=0)[timed]
        self.in_order = self.in_order and follows(self.line, start)
        if self.in_order:
            self.line = extended(self.line, start, launches["duration_ns"].to_numpy()[timed])

    def save(self, connection: Connection, upload_id: int) -> None:
        """Write the timeline of a whole upload; nothing where it is not known yet."""
        if self.in_order:
            _save(connection, upload_id, self.line)


def _save(connection: Connection, upload_id: int, line: Timeline | None) -> None:
    if line is not None and not np.isfinite(line).all():
        return  # a database need not know infinity
    values = dict.fromkeys(Timeline._fields) if line is None else line._asdict()
    names = ["upload_id", *values]
    row = {name: int(value) if isinstance(value, bool) else value for name, value in values.items()}
    places = ", ".join(f":{name}" for name in names)
    query = f"INSERT INTO timelines ({', '.join(names)}) VALUES ({places}) ON CONFLICT DO NOTHING"
    connection.execute(text(query), {"upload_id": upload_id, **row})


def _kept(connection: Connection, upload_id: int) -> tuple[bool, Timeline | None]:
    """Tell whether the timeline of an upload is known, and return it; None if none of its launches has times."""
    query = text(f"SELECT {', '.join(Timeline._fields)} FROM timelines WHERE upload_id = :upload_id")
    row = connection.execute(query, {"upload_id": upload_id}).first()
    if row is None or row.first_ns is None:
        return row is not None, None
    line = Timeline(*row)
    return True, line._replace(overlapped=bool(line.overlapped), suspected=bool(line.suspected))


def _of_upload(engine: Engine, upload_id: int) -> Timeline | None:
    with reading(engine) as connection:
        known, line = _kept(connection, upload_id)
    if not known:
        line = _ordered(engine, [upload_id])
        with writing(engine) as connection:
            _save(connection, upload_id, line)
    return line


def timeline(engine: Engine, run_id: int) -> Timeline | None:
    """Return the timeline of all launches of a run that have a start and a duration; None if there are none.

    Launches that several files tell of count once, by the file that stands for them, else by the first with times.
    The clocks of different files are taken for one.
    """
    timed = timed_files(engine, run_id)
    if len(timed) > 1:
        return _ordered(engine, list(timed))
    return next(iter(timed.values()), None)


def timed_files(engine: Engine, run_id: int) -> dict[int, Timeline]:
    """Return the files of a run whose launches have times, each launch in one of them, with their timelines."""
    found: dict[int, tuple[int, Timeline]] = {}
    uploads = select(engine, "v1_uploads", run_id=run_id)
    for upload in sorted(uploads, key=lambda upload: (upload["same_as"] is not None, upload["upload_id"])):
        first = upload["same_as"] or upload["upload_id"]
        if upload["launches"] and first not in found and (line := _of_upload(engine, upload["upload_id"])):
            found[first] = upload["upload_id"], line
    return dict(sorted(found.values()))


def chunks(engine: Engine, query: str, **values: Any) -> Iterator[Sequence[Any]]:
    """Yield the rows of a query, some at a time."""
    with reading(engine) as connection:
        streamed = text(query).execution_options(stream_results=True)  # set on the connection it would stay so
        yield from connection.execute(streamed, values).partitions(ROWS_AT_ONCE)


def _ordered(engine: Engine, upload_ids: list[int]) -> Timeline | None:
    """Add up the launches of uploads in the order of their start, which the database sorts."""
    line, among = None, ", ".join(str(int(number)) for number in upload_ids)
    query = (
        f"SELECT start_ns, duration_ns FROM v1_launches_all WHERE upload_id IN ({among}) AND {_TIMED} ORDER BY start_ns"
    )
    for rows in chunks(engine, query):
        start, duration = zip(*rows, strict=True)
        line = extended(line, np.array(start, dtype=np.int64), np.array(duration, dtype=np.float64))
    return line
