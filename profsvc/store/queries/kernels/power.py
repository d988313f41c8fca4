"""Kernels with measured power, and their utilization of the units of the device."""

from collections.abc import Iterable, Sequence
from typing import Any

import pandas as pd

from profsvc.store.connection.sql import Engine, bindparam, text
from profsvc.store.connection.transactions import reading
from profsvc.store.schema.column_types import IDS_PER_UPLOAD
from profsvc.store.schema.view_definition import UPLOAD_ID_RANGE_SQL

_POWER = """
    SELECT run_id, run, project, device, sensor, "window", load, kernel, active_sms,
           settled_power_w AS mean_power_w,
           settled_power_w + corrected_power_w - mean_power_w AS corrected_power_w,
           reference_temperature_c, idle_power_w, duration_s, quality
    FROM v1_power WHERE kind IN ('load', 'kernel') AND settled_power_w IS NOT NULL {runs}
    ORDER BY run_id, sensor_id, item
"""
# Tables and not views, of which each would look through the launches of all runs.
_RATES = f"""
    SELECT s.run_id, k.kernel, k.kernel_short, x.text AS counter, s.value
    FROM (SELECT u.run_id, h.kernel_id, c.counter_id, sum(c.value * l.duration_ns) / sum(l.duration_ns) AS value
          FROM uploads u JOIN launches l ON l.launch_id / {IDS_PER_UPLOAD} = u.upload_id
          AND l.launch_id {UPLOAD_ID_RANGE_SQL} JOIN shapes h ON h.shape_id = l.shape_id
          JOIN counters c ON c.launch_id = l.launch_id
          AND c.counter_id IN (SELECT text_id FROM texts WHERE text IN :counters)
          WHERE u.same_as IS NULL AND c.value IS NOT NULL AND l.duration_ns > 0 {{runs}}
          AND EXISTS (SELECT 1 FROM counters o WHERE o.launch_id {UPLOAD_ID_RANGE_SQL})
          GROUP BY u.run_id, h.kernel_id, c.counter_id) s
    JOIN kernels k ON k.kernel_id = s.kernel_id JOIN texts x ON x.text_id = s.counter_id
    ORDER BY s.run_id, k.kernel, x.text
"""


def newest_runs(engine: Engine, project: str, count: int) -> list[int]:
    """Return the numbers of the newest runs of a project."""
    query = text("SELECT run_id FROM runs WHERE project = :project ORDER BY run_id DESC LIMIT :count")
    with reading(engine) as connection:
        return list(connection.execute(query, {"project": project, "count": count}).scalars())


def powers_of_loads(engine: Engine, runs: Sequence[int] | None = None) -> pd.DataFrame:
    """Return every window of a load or a kernel in which the sensor settled, in the order of the runs.

    Its power values come from the settled part, because the sensor averages the first readings with earlier power.
    ``runs``: only of these.
    """
    return _frame(engine, _POWER, "run_id", runs)


def mean_counters(engine: Engine, counters: Iterable[str], runs: Sequence[int] | None = None) -> pd.DataFrame:
    """Return the mean of each counter over the launches of a kernel in a run, weighted by time."""
    return _frame(engine, _RATES, "u.run_id", runs, counters=list(counters))


def _frame(engine: Engine, sql: str, column: str, runs: Sequence[int] | None, **lists: list[str]) -> pd.DataFrame:
    values: dict[str, list[Any]] = lists if runs is None else {**lists, "runs": list(runs)}
    query = text(sql.format(runs="" if runs is None else f"AND {column} IN :runs"))
    query = query.bindparams(*(bindparam(name, expanding=True) for name in values))
    with reading(engine) as connection:
        result = connection.execute(query, values)
        return pd.DataFrame(result.all(), columns=list(result.keys()))
