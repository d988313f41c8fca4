"""Kernels that go on under another name, as nightly reports found."""

from collections.abc import Sequence
from typing import Any

from profsvc.store.connection.sql import Connection, Engine, text
from profsvc.store.connection.transactions import reading
from profsvc.store.ingest.writers.bulk_insert import insert_rows

RENAME_COLUMNS = (
    "project", "device", "branch", "kernel_before", "kernel", "run_id", "renamed_at", "because",
)  # fmt: skip
_KNOWN = f"""
    SELECT {", ".join(f"k.{name}" for name in RENAME_COLUMNS)}
    FROM kernel_renames k JOIN reports n ON n.report_id = k.report_id
    WHERE n.night <= :night AND NOT (n.night = :night AND n.project = :project) AND :project IN ('', k.project)
    ORDER BY k.renamed_at, k.rename_id
"""


def known_renames(engine: Engine, project: str, night: str) -> list[dict[str, Any]]:
    """Return the renames that were found before this night's report of this scope, as `RENAME_COLUMNS`."""
    with reading(engine) as connection:
        rows = connection.execute(text(_KNOWN), {"project": project, "night": night}).mappings()
        return [dict(row) for row in rows]


def write_renames(connection: Connection, report_id: int, renames: Sequence[tuple[Any, ...]]) -> None:
    """Write the renames that a report found, of `RENAME_COLUMNS`, in place of those that it found before."""
    connection.execute(text("DELETE FROM kernel_renames WHERE report_id = :r"), {"r": report_id})
    if renames:
        insert_rows(
            connection, "kernel_renames", ["report_id", *RENAME_COLUMNS], [(report_id, *row) for row in renames]
        )
