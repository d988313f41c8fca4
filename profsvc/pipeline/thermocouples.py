"""Thermocouples of a run: their logs out of the store, and the heat map and the turned spacer made of them."""

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

import pandas as pd

from profsvc import store
from profsvc.analysis.thermocouples import cores, heat_map, rotation
from profsvc.analysis.thermocouples.heat_map import HeatMapResult
from profsvc.analysis.thermocouples.series import Log, sensors_named, sensors_on_die
from profsvc.analysis.thermocouples.steady_state import result_frame, result_row

if TYPE_CHECKING:
    from sqlalchemy import Engine

# The end of a log determines the steady temperature: at most this many readings, over at least this many seconds.
MAX_READINGS, MIN_SPAN_S = 6000, 600.0


def log_of_run(engine: "Engine", run_id: int, names: Collection[str] | None = None) -> Log:
    """Return the sensors of a run with the last readings of those on the die, or of the channels of these names."""
    sensors = store.table(engine, "v1_sensors", run_id=run_id)
    wanted = sensors_on_die(sensors) if names is None else sensors_named(sensors, names)
    return Log(sensors, store.last_samples(engine, [int(one) for one in wanted["sensor_id"]], MAX_READINGS, MIN_SPAN_S))


def map_of_run(
    engine: "Engine",
    run_id: int,
    minus: int | None = None,
    calibration: int | None = None,
    rc_s: float | None = None,
) -> HeatMapResult:
    """Return the heat map of a run with its rows, or why there is none; the other runs by number."""
    device = store.select(engine, "v1_runs", run_id=run_id)[0]["device"]
    log = log_of_run(engine, run_id)
    below = None if minus is None else log_of_run(engine, minus)
    names = {str(name) for one in (log, below) if one is not None for name in sensors_on_die(one.sensors)["name"]}
    plates = None if calibration is None else log_of_run(engine, calibration, names)
    found = heat_map.heat_map(log, calibration=plates, minus=below, die=heat_map.die_mm(device), rc_s=rc_s)
    return found._replace(rows=_note_shortened_logs(found.rows, log, below, plates))


def rotation_of_runs(
    engine: "Engine", run_id: int, second: int, angle_deg: float, calibration: int | None = None,
    rc_s: float | None = None,
) -> rotation.RotationResult:  # fmt: skip
    """Return whether a second run, with the spacer turned or put back, shows the same chip; runs by number."""
    log = log_of_run(engine, run_id)
    names = {str(name) for name in sensors_on_die(log.sensors)["name"]}
    again = log_of_run(engine, second, names)
    plates = None if calibration is None else log_of_run(engine, calibration, names)
    found = rotation.compare_spacer_runs(log, again, angle_deg, calibration=plates, rc_s=rc_s)
    return found._replace(rows=_note_shortened_logs(found.rows, log, again, plates))


def cores_of_runs(
    engine: "Engine", runs: Sequence[tuple[int, cores.Cores]], idle: int, active: int | None = None,
    calibration: int | None = None, rc_s: float | None = None,
) -> cores.CoreMaps:  # fmt: skip
    """Return what runs with known active cores show above an idle run; runs by number, with their cores."""
    cold = log_of_run(engine, idle)
    names = {str(name) for name in sensors_on_die(cold.sensors)["name"]}
    plates = None if calibration is None else log_of_run(engine, calibration, names)
    logs = [(chosen, log_of_run(engine, run_id, names)) for run_id, chosen in runs]
    return cores.core_maps(logs, cold, active, plates, rc_s)


def models_of_run(engine: "Engine", run_id: int) -> pd.DataFrame:
    """Return the rows of the heat map of a run and of its thermocouples; none where no sensor is on the die."""
    sensors = store.table(engine, "v1_sensors", run_id=run_id)
    return pd.DataFrame() if sensors_on_die(sensors).empty else map_of_run(engine, run_id).rows


def _note_shortened_logs(rows: pd.DataFrame, *logs: Log | None) -> pd.DataFrame:
    """Say where only the end of a log was looked at."""
    read = [one.sensors[one.sensors["sensor_id"].isin(one.samples["sensor_id"])] for one in logs if one is not None]
    longest = [int(count) for sensors in read for count in sensors["samples"] if count > MAX_READINGS]
    if not longest:
        return rows
    words = (
        f"{len(longest)} sensors have more than {MAX_READINGS} readings (up to {max(longest)}); only the last "
        f"{MAX_READINGS} of each were used, or as many as cover its last {MIN_SPAN_S / 60:g} minutes"
    )
    told = result_frame(
        [
            result_row(
                "heat_map", "readings_looked_at", MAX_READINGS, float("nan"), "1", form="end of the log", reason=words
            )
        ]
    )
    return pd.concat([rows, told], ignore_index=True)
