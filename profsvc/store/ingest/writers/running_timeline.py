"""The timeline of an upload: sums over its launches in the order of their start, made while they are loaded.

Launches that do not come in that order, and those of several files together, are added up later, in an order that the
database makes; the sums of one file are kept then.
"""

import numpy as np

from profsvc.analysis.launches.timeline import Timeline, append_launches, is_in_order
from profsvc.store.connection.sql import Connection, text
from profsvc.tables import Table
from profsvc.tables.column_tables import integers_of


class RunningTimeline:
    """The timeline of an upload as far as it is loaded; none any more once a launch began before one above it."""

    def __init__(self) -> None:
        """Begin with no launch."""
        self.line: Timeline | None = None
        self.in_order = True

    def add(self, launches: Table) -> None:
        """Put the launches of a batch behind those before."""
        if not self.in_order:
            return
        begun, duration = integers_of(launches["start_ns"]), np.asarray(launches["duration_ns"])
        timed = ~begun.missing & ~np.isnan(duration)
        start = begun.values
        if not timed.all():
            start, duration = start[timed], duration[timed]
        self.in_order = is_in_order(self.line, start)
        if self.in_order:
            self.line = append_launches(self.line, start, duration)

    def save(self, connection: Connection, upload_id: int) -> None:
        """Write the timeline of a whole upload; nothing where it is not known yet."""
        if self.in_order:
            save_timeline(connection, upload_id, self.line)


def save_timeline(connection: Connection, upload_id: int, line: Timeline | None) -> None:
    """Write the timeline of an upload, unless it is known already; one that is not finite is not stored."""
    if line is not None and not np.isfinite(line).all():
        return  # a database need not know infinity
    values = dict.fromkeys(Timeline._fields) if line is None else line._asdict()
    names = ["upload_id", *values]
    row = {name: int(value) if isinstance(value, bool) else value for name, value in values.items()}
    places = ", ".join(f":{name}" for name in names)
    query = f"INSERT INTO timelines ({', '.join(names)}) VALUES ({places}) ON CONFLICT DO NOTHING"
    connection.execute(text(query), {"upload_id": upload_id, **row})
