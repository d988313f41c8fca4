"""Results of launches that a new file of their run outdates: they are deleted with it, and computed again."""

from profsvc.store.connection.sql import Connection, text
from profsvc.store.schema.results.launch_results import RESULTS

OF_TWINS = "SELECT first_id FROM twins WHERE launch_id BETWEEN :first AND :last"
"""The launches that those of a file count for."""


def forget_results(connection: Connection, run_id: int, launches: str, **values: int) -> None:
    """Delete results and counters of launches, of every version; ``launches`` is the condition on their number in SQL.

    The results of a launch that stand in the store are those of all files that tell of it, so that an analysis keeps
    them when another file comes to the run.
    """
    for table in RESULTS:
        query = text(f"DELETE FROM {table} WHERE run_id = :run_id AND launch_id {launches}")
        connection.execute(query, {"run_id": run_id, **values})
    connection.execute(text(f"DELETE FROM counters WHERE launch_id {launches}"), values)
