"""Kernels with measured power, and their utilization of the units of the device."""

from collections.abc import Iterable

import pandas as pd
from sqlalchemy import Engine, bindparam, text

from profsvc.store.connection.transactions import reading

_POWER = """
    SELECT run_id, run, project, device, sensor, "window", load, kernel, active_sms,
           settled_power_w AS mean_power_w,
           settled_power_w + corrected_power_w - mean_power_w AS corrected_power_w,
           reference_temperature_c, idle_power_w, duration_s, quality
    FROM v1_power WHERE kind IN ('load', 'kernel') AND settled_power_w IS NOT NULL
    ORDER BY run_id, sensor_id, item
"""
_RATES = """
    SELECT l.run_id, l.kernel, l.kernel_short, c.counter, sum(c.value * l.duration_ns) / sum(l.duration_ns) AS value
    FROM v1_counter_values c JOIN v1_launches l ON l.launch_id = c.launch_id
    WHERE c.counter IN :counters AND c.value IS NOT NULL AND l.duration_ns > 0
    GROUP BY l.run_id, l.kernel, l.kernel_short, c.counter ORDER BY l.run_id, l.kernel, c.counter
"""


def powers_of_loads(engine: Engine) -> pd.DataFrame:
    """Return every window of a load or a kernel in which the sensor settled, in the order of the runs.

    Its power values come from the settled part, because the sensor averages the first readings with earlier power.
    """
    with reading(engine) as connection:
        result = connection.execute(text(_POWER))
        return pd.DataFrame(result.all(), columns=list(result.keys()))


def mean_counters(engine: Engine, counters: Iterable[str]) -> pd.DataFrame:
    """Return the mean of each counter over the launches of a kernel in a run, weighted by time."""
    query = text(_RATES).bindparams(bindparam("counters", expanding=True))
    with reading(engine) as connection:
        result = connection.execute(query, {"counters": list(counters)})
        return pd.DataFrame(result.all(), columns=list(result.keys()))
