"""Kernels with measured power, and their utilization of the units of the device."""

from collections.abc import Iterable, Sequence
from typing import Any

import pandas as pd

from profsvc.store.connection.sql import Engine, bindparam, text
from profsvc.store.connection.transactions import reading

_POWER = """
    SELECT run_id, run, project, device, sensor, "window", load, kernel, active_sms,
           settled_power_w AS mean_power_w,
           settled_power_w + corrected_power_w - mean_power_w AS corrected_power_w,
           reference_temperature_c, idle_power_w, duration_s, quality
    FROM v1_power WHERE kind IN ('load', 'kernel') AND settled_power_w IS NOT NULL {runs}
    ORDER BY run_id, sensor_id, item
"""
_RATES = """
    SELECT l.run_id, l.kernel, l.kernel_short, c.counter, sum(c.value * l.duration_ns) / sum(l.duration_ns) AS value
    FROM v1_counter_values c JOIN v1_launches l ON l.launch_id = c.launch_id
    WHERE c.counter IN :counters AND c.value IS NOT NULL AND l.duration_ns > 0 {runs}
    GROUP BY l.run_id, l.kernel, l.kernel_short, c.counter ORDER BY l.run_id, l.kernel, c.counter
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
    return _frame(engine, _RATES, "l.run_id", runs, counters=list(counters))


def _frame(engine: Engine, sql: str, column: str, runs: Sequence[int] | None, **lists: list[str]) -> pd.DataFrame:
    values: dict[str, list[Any]] = lists if runs is None else {**lists, "runs": list(runs)}
    query = text(sql.format(runs="" if runs is None else f"AND {column} IN :runs"))
    query = query.bindparams(*(bindparam(name, expanding=True) for name in values))
    with reading(engine) as connection:
        result = connection.execute(query, values)
        return pd.DataFrame(result.all(), columns=list(result.keys()))
