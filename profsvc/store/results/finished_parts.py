"""Which parts of the analysis of a run are finished, so that a part that was cut short is seen, and done again.

``runs.changes`` counts what came into a run and went out of it. A part is marked in the transaction that writes its
results, with the count that it was computed at. So a kill between two parts, an upload whose analysis never began and a
backup taken in between all look the same: a part that is wanted has no mark at the count of its run.
"""

from sqlalchemy import insert

from profsvc.errors import NotFoundError
from profsvc.store.connection.sql import Connection, Engine, text
from profsvc.store.connection.transactions import reading
from profsvc.store.schema.tables import metadata

LAUNCHES_PART, POWER_PART = "launches", "power"
BASIS_PART = "basis"  # nothing to compute: what the results of launches were computed with
# Every run has a part for its launches; where it has samples, one for power and heat. A run without files has none.
_WANTED = f"""
    SELECT r.run_id, w.part FROM runs r JOIN (SELECT '{LAUNCHES_PART}' AS part UNION ALL SELECT '{POWER_PART}') w
      ON EXISTS (SELECT 1 FROM uploads u WHERE u.run_id = r.run_id AND (w.part = '{LAUNCHES_PART}' OR u.samples > 0))
    WHERE NOT EXISTS (SELECT 1 FROM finished_parts f
                      WHERE f.run_id = r.run_id AND f.part = w.part AND f.changes = r.changes)
"""


def change_count(engine: Engine, run_id: int) -> int:
    """Return the count of a run's changes, to be asked before its rows are read for an analysis."""
    with reading(engine) as connection:
        return counted_changes(connection, run_id)


def counted_changes(connection: Connection, run_id: int) -> int:
    """Return the count of a run's changes as this transaction sees it."""
    found = connection.execute(text("SELECT changes FROM runs WHERE run_id = :run_id"), {"run_id": run_id}).scalar()
    if found is None:
        raise NotFoundError(f"no run has the number {run_id}")
    return int(found)


def mark_finished(connection: Connection, run_id: int, part: str, version_id: int) -> None:
    """Mark a part of a run as finished, in the transaction that writes its results."""
    row = {"run_id": run_id, "part": part, "version_id": version_id, "changes": counted_changes(connection, run_id)}
    connection.execute(text("DELETE FROM finished_parts WHERE run_id = :run_id AND part = :part"), row)
    connection.execute(insert(metadata.tables["finished_parts"]).values(row))


def unfinished(engine: Engine, run_id: int | None = None) -> dict[int, list[str]]:
    """Return the parts that wait to be computed, by run; of one run or of all."""
    one = "" if run_id is None else " AND r.run_id = :run_id"
    with reading(engine) as connection:
        rows = connection.execute(text(f"{_WANTED}{one} ORDER BY r.run_id, w.part"), {"run_id": run_id}).all()
    found: dict[int, list[str]] = {}
    for number, part in rows:
        found.setdefault(int(number), []).append(str(part))
    return found
