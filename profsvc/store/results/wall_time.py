"""The wall time of the traces of a run: written by the analysis."""

from collections.abc import Iterable, Mapping
from typing import Any

from profsvc.store.connection.sql import Engine, text
from profsvc.store.connection.transactions import lock_existing_row, writing
from profsvc.store.ingest.inserts.dictionaries import Names
from profsvc.store.ingest.inserts.row_insert import insert_rows
from profsvc.store.results.finished_parts import counted_changes
from profsvc.store.schema.tables import metadata


def save_wall_time(engine: Engine, run_id: int, rows: Iterable[Mapping[str, Any]], seen: int) -> bool:
    """Write the rows of the wall time of a run, in place of what was there; columns that are left out are null.

    Return whether they were written: False if the run has changed since its change count was ``seen``.
    """
    with writing(engine) as connection:
        lock_existing_row(connection, "runs", "run_id", run_id)
        if counted_changes(connection, run_id) != seen:
            return False
        connection.execute(text("DELETE FROM wall_time WHERE run_id = :run_id"), {"run_id": run_id})
        names = Names(connection, "texts")
        columns = [
            column.name
            for column in metadata.tables["wall_time"].columns
            if column.name not in ("run_id", "item", "name_id")
        ]
        found = [
            (
                run_id,
                item,
                None if (name := row.get("name")) is None else names[name,],
                *(row.get(one) for one in columns),
            )
            for item, row in enumerate(rows)
        ]
        insert_rows(connection, "wall_time", ("run_id", "item", "name_id", *columns), found)
    return True
