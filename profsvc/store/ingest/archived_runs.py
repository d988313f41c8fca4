"""Runs whose rows are in an archive: work that needs the rows is refused with the command that restores them."""

from profsvc.errors import UsageError
from profsvc.store.connection.sql import Connection, Engine, text
from profsvc.store.connection.transactions import reading

_ARCHIVES = """
    SELECT DISTINCT r.project, r.name, a.month, a.place FROM uploads u
    JOIN archives a ON a.archive_id = u.archive_id JOIN runs r ON r.run_id = u.run_id
    WHERE u.run_id = :run_id ORDER BY a.month
"""


def require_rows(connection: Connection, run_id: int, what: str) -> None:
    """Raise `UsageError` if rows of a run are archived; ``what`` says what needs them."""
    for row in connection.execute(text(_ARCHIVES), {"run_id": run_id}):
        raise UsageError(
            f"run {row.project}/{row.name} (id {run_id}) is archived in {row.place}, and {what} its rows; run: "
            f"profsvc db restore {row.month}"
        )


def archived_runs(engine: Engine) -> set[int]:
    """Return the runs whose rows are archived."""
    with reading(engine) as connection:
        return set(connection.execute(text("SELECT run_id FROM uploads WHERE archive_id IS NOT NULL")).scalars())


def require_rows_of(engine: Engine, run_id: int, what: str) -> None:
    """Raise `UsageError` if rows of a run are archived."""
    with reading(engine) as connection:
        require_rows(connection, run_id, what)
