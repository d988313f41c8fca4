"""Kernels that go on under another name, as nightly reports found, and what people decided about two names."""

from collections.abc import Sequence
from typing import Any

from profsvc.errors import UsageError
from profsvc.store.connection.sql import Connection, Engine, text
from profsvc.store.connection.timestamps import now
from profsvc.store.connection.transactions import reading, writing
from profsvc.store.ingest.inserts.row_insert import insert_row, insert_rows, reject_nul
from profsvc.store.results.findings import MAX_REASON_CHARS
from profsvc.store.schema.column_types import IDS_PER_UPLOAD

RENAME_COLUMNS = (
    "project", "device", "branch", "kernel_before", "kernel", "run_id", "renamed_at", "because",
)  # fmt: skip
_KNOWN = f"""
    SELECT {", ".join(f"k.{name}" for name in RENAME_COLUMNS)}
    FROM kernel_renames k JOIN reports n ON n.report_id = k.report_id
    WHERE n.night <= :night AND NOT (n.night = :night AND n.project = :project) AND :project IN ('', k.project)
    ORDER BY k.renamed_at, k.rename_id
"""
DECISION_COLUMNS = ("project", "kernel_before", "kernel", "decision", "said_by", "because", "said_at")
_DECISIONS = f"""
    SELECT {", ".join(DECISION_COLUMNS)} FROM rename_decisions
    WHERE decision_id IN (SELECT max(decision_id) FROM rename_decisions GROUP BY project, kernel_before, kernel)
      AND :project IN ('', project)
    ORDER BY decision_id
"""
_RUNS_OF_KERNEL = f"""
    SELECT u.run_id FROM kernel_totals t JOIN uploads u ON u.upload_id = t.upload_id WHERE t.kernel_id = :{{one}}
    UNION SELECT u.run_id FROM kernel_summaries s JOIN uploads u ON u.upload_id = s.summary_id / {IDS_PER_UPLOAD}
    WHERE s.kernel_id = :{{one}}
"""
_WITH_BOTH = f"""
    SELECT r.name FROM runs r WHERE r.project = :project AND r.run_id IN ({_RUNS_OF_KERNEL.format(one="before")})
      AND r.run_id IN ({_RUNS_OF_KERNEL.format(one="since")}) ORDER BY r.run_id LIMIT 1
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


def any_renames(engine: Engine) -> bool:
    """Tell whether a report found a renamed kernel, or a person decided about one."""
    asked = "SELECT 1 WHERE EXISTS (SELECT 1 FROM kernel_renames) OR EXISTS (SELECT 1 FROM rename_decisions)"
    with reading(engine) as connection:
        return connection.execute(text(asked)).first() is not None


def rename_decisions(engine: Engine, project: str = "") -> list[dict[str, Any]]:
    """Return the newest decision about each two names, as `DECISION_COLUMNS`; an empty project is all of them."""
    with reading(engine) as connection:
        rows = connection.execute(text(_DECISIONS), {"project": project}).mappings()
        return [dict(row) for row in rows]


def decide_rename(
    engine: Engine, project: str, kernels: tuple[str, str], decision: str, because: str, by: str
) -> dict[str, Any]:
    """Append a decision about two names of kernels, the one of before first, and return it as `DECISION_COLUMNS`."""
    if not because.strip() or len(because) > MAX_REASON_CHARS:
        raise UsageError(f"say why, in up to {MAX_REASON_CHARS} characters, such as: templated on the tile, ticket 17")
    reject_nul([project, *kernels, because, by])
    values = (project, *kernels, decision, by, because.strip(), now())
    row = dict(zip(DECISION_COLUMNS, values, strict=True))
    with writing(engine) as connection:
        insert_row(connection, "rename_decisions", "decision_id", row)
    return row


def run_with_both_kernels(engine: Engine, project: str, before: int, since: int) -> str | None:
    """Return the name of the first run of a project that has both kernels, of these numbers; None if none has."""
    with reading(engine) as connection:
        asked = {"project": project, "before": before, "since": since}
        return connection.execute(text(_WITH_BOTH), asked).scalar()
