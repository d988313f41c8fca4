"""A copy of what the views say, as plain tables of a SQLite file: for Datasette and other tools that read such files.

A SQLite store has private tables and views that take time. The snapshot has one table per view, with its name, columns
and values; it is the same from SQLite and from Postgres.
"""

import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from profsvc.errors import NotFoundError, ServiceError, UsageError
from profsvc.store.connection.file_permissions import create_private
from profsvc.store.connection.sql import Engine, text
from profsvc.store.connection.transactions import reading, snapshot
from profsvc.store.schema.catalog import VIEWS

ROWS_AT_ONCE = 5_000
KEYS = ("run_id", "launch_id", "upload_id", "sensor_id")
COLUMNS_VIEW = "v1_columns"
"""The meanings of all columns; it is in every snapshot."""


def write_snapshot(
    engine: Engine, target: Path, views: Sequence[str] = (), project: str | None = None
) -> dict[str, int]:
    """Write the views, or those named, to a new SQLite file; return the rows of each.

    With a ``project`` only rows of its runs are written, and views without runs are left out. The rows are those of one
    moment.
    """
    chosen = [_known(name) for name in views] or list(VIEWS)
    if project is not None:
        without = [view for view in chosen if "run_id" not in VIEWS[view][1]]
        if views and without:
            raise UsageError(f"{without[0]} has no runs, so it cannot be limited to a project; leave it out")
        chosen = [view for view in chosen if view not in without]
    if target.exists():
        raise UsageError(f"{target} exists; a snapshot replaces nothing, give another name")
    part = Path(f"{target}.part")
    try:
        part.unlink(missing_ok=True)
        create_private(part)
        part.open("rb+").close()  # a folder that is missing is found here
        rows = _write(engine, part, chosen, project)
        part.rename(target)
    except OSError as error:
        raise ServiceError(f"{target} cannot be written: {error.strerror}; there is no snapshot") from None
    finally:
        part.unlink(missing_ok=True)
    return rows


def _known(name: str) -> str:
    view = name if name.startswith("v1_") else f"v1_{name}"
    if view not in VIEWS:
        raise NotFoundError.near("view", name, VIEWS)
    return view


@snapshot
def _write(engine: Engine, part: Path, views: Sequence[str], project: str | None) -> dict[str, int]:
    """Copy the views into a file on one state of the store."""
    counts: dict[str, int] = {}
    with closing(sqlite3.connect(part)) as copy, reading(engine) as connection:
        copy.execute("PRAGMA journal_mode = OFF")
        copy.execute("PRAGMA synchronous = OFF")
        for view in dict.fromkeys([*views, COLUMNS_VIEW]):
            query, values = f'SELECT * FROM "{view}"', {}
            if project is not None and view != COLUMNS_VIEW:
                query += " WHERE run_id IN (SELECT run_id FROM v1_runs WHERE project = :project)"
                values = {"project": project}
            found = connection.execution_options(stream_results=True).execute(text(query), values)
            try:
                counts[view] = _copy_rows(copy, view, list(found.keys()), found)
            except sqlite3.Error as error:
                raise ServiceError(f"{part} cannot be written: {error}; there is no snapshot") from None
        copy.commit()
    return counts


def _copy_rows(copy: sqlite3.Connection, view: str, columns: Sequence[str], found: Any) -> int:
    """Create the table of a view, fill it, and index its keys; return the number of rows."""
    named = ", ".join(f'"{column}"' for column in columns)
    copy.execute(f'CREATE TABLE "{view}" ({named})')
    insert = f'INSERT INTO "{view}" VALUES ({", ".join("?" * len(columns))})'
    count = 0
    while chunk := found.fetchmany(ROWS_AT_ONCE):
        copy.executemany(insert, [tuple(row) for row in chunk])
        count += len(chunk)
    for key in KEYS:
        if key in columns:
            copy.execute(f'CREATE INDEX "{view}_{key}" ON "{view}" ("{key}")')
    return count
