"""Power results of earlier runs of the same board."""

from collections.abc import Sequence

import pandas as pd

from profsvc.store.connection.sql import Engine, bindparam, text
from profsvc.store.connection.transactions import reading

# Number of newest runs of a board whose coefficients are pooled; more runs add little.
MAX_RUNS = 20
_RUNS = """
    SELECT r.run_id FROM runs r JOIN runs own ON own.run_id = :run_id
    WHERE r.project = own.project AND r.run_id < own.run_id AND coalesce(r.host, '') = coalesce(own.host, '')
    AND EXISTS (SELECT 1 FROM power_coefficients c WHERE c.run_id = r.run_id)
    ORDER BY r.run_id DESC LIMIT :most
"""
_WITH_LOGS = """
    SELECT DISTINCT r.run_id, r.project, coalesce(r.host, '') AS host
    FROM v1_sensors s JOIN runs r ON r.run_id = s.run_id WHERE s.quantity = 'power' AND s.run_id IN :runs
"""
RUNS_AT_ONCE = 5_000  # parameters of one query
_COEFFICIENTS = """
    SELECT run_id, sensor, device, gpu_index, clock_hz, load, coefficient_w_per_c, coefficient_low, coefficient_high,
           temperature_low_c, temperature_high_c
    FROM v1_power_coefficients WHERE run_id IN :runs AND form = 'consistent' AND law = 'linear' AND sound = 1
    ORDER BY run_id, item
"""
_WINDOWS = """
    SELECT run_id, sensor, device, gpu_index, kind, source, load, active_sms, launches, duration_s, mean_clock_hz,
           settled_power_w, mean_temperature_c
    FROM v1_power WHERE run_id IN :runs AND source IN ('marks', 'launches') AND settled_power_w IS NOT NULL
    AND mean_temperature_c IS NOT NULL
    ORDER BY run_id, item
"""


def runs_by_board(engine: Engine, runs: Sequence[int]) -> list[list[int]]:
    """Return those of the runs that have logs of power, in ascending order, by the project and host they are of.

    Which runs are of one board only their analysis tells, and it looks no further than that.
    """
    found: dict[tuple[str, str], list[int]] = {}
    with reading(engine) as connection:
        for first in range(0, len(runs), RUNS_AT_ONCE):
            asked = {"runs": list(runs[first : first + RUNS_AT_ONCE])}
            rows = connection.execute(text(_WITH_LOGS).bindparams(bindparam("runs", expanding=True)), asked)
            for row in rows:
                found.setdefault((row.project, row.host), []).append(row.run_id)
    return [sorted(chain) for chain in found.values()]


def earlier_power_of_board(engine: Engine, run_id: int) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return the sound coefficients and the windows of earlier runs that may be of the boards of this one.

    They are of its project and host. Which sensor of which board each is of, its ``sensor``, ``device`` and
    ``gpu_index`` say.
    """
    with reading(engine) as connection:
        runs = [row[0] for row in connection.execute(text(_RUNS), {"run_id": run_id, "most": MAX_RUNS})]
        frames = []
        for query in (_COEFFICIENTS, _WINDOWS):
            result = connection.execute(text(query).bindparams(bindparam("runs", runs or [-1], expanding=True)))
            frames.append(pd.DataFrame(result.all(), columns=list(result.keys())))
    return frames[0], frames[1]
