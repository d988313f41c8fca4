"""Totals over the launches of each kernel of a run, so that pages need not read the results of every launch.

They are written with the results that they sum up, and stay when the rows of the launches are archived.
"""

from collections.abc import Collection

from profsvc.store.connection.sql import Connection, bindparam, text
from profsvc.store.schema.results.launch_results import RESULT_TOTALS

_OF_LAUNCHES = """
    FROM runs r JOIN {table} c ON c.run_id = r.run_id AND c.version_id = r.version_id
    JOIN launches l ON l.launch_id = c.launch_id JOIN shapes h ON h.shape_id = l.shape_id
    WHERE r.run_id IN :runs
"""
_WRITE = (
    f"""
    INSERT INTO cause_totals (run_id, kernel_id, cause_id, version_id, launches, saving_ns)
    SELECT r.run_id, h.kernel_id, c.cause_id, c.version_id, count(*), sum(c.saving_ns)
    {_OF_LAUNCHES.format(table="causes")} GROUP BY 1, 2, 3, 4
    """,
    f"""
    INSERT INTO criterion_totals (run_id, kernel_id, criterion_id, version_id, value)
    SELECT r.run_id, h.kernel_id, c.criterion_id, c.version_id, sum(c.value * l.duration_ns) / sum(l.duration_ns)
    {_OF_LAUNCHES.format(table="criteria")} AND c.value IS NOT NULL AND l.duration_ns > 0 GROUP BY 1, 2, 3, 4
    """,
)


def write_totals(connection: Connection, runs: Collection[int]) -> None:
    """Write the totals of the newest results of runs in place of those that they have."""
    values = {"runs": list(runs)}
    for query in (*(f"DELETE FROM {name} WHERE run_id IN :runs" for name in RESULT_TOTALS), *_WRITE):
        connection.execute(text(query).bindparams(bindparam("runs", expanding=True)), values)
