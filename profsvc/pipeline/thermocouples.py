"""Thermocouples of a run: their logs out of the store, and the heat map and the turned spacer made of them."""

from collections.abc import Collection
from typing import TYPE_CHECKING

import pandas as pd

from profsvc import store
from profsvc.analysis import sensor_turns, thermocouples
from profsvc.analysis.sensor_series import Log, named, placed
from profsvc.analysis.settled import frame, row
from profsvc.analysis.thermocouples import Mapped

if TYPE_CHECKING:
    from sqlalchemy import Engine

# A settled temperature is told by the end of a log: so many readings, which cover at least so many seconds of it.
LAST, LEAST_S = 6000, 600.0


def log_of_run(engine: "Engine", run_id: int, names: Collection[str] | None = None) -> Log:
    """Return the sensors of a run with the last readings of those on the die, or of the channels of these names."""
    sensors = store.table(engine, "v1_sensors", run_id=run_id)
    wanted = placed(sensors) if names is None else named(sensors, names)
    return Log(sensors, store.last_samples(engine, [int(one) for one in wanted["sensor_id"]], LAST, LEAST_S))


def map_of_run(
    engine: "Engine",
    run_id: int,
    minus: int | None = None,
    calibration: int | None = None,
    rc_s: float | None = None,
) -> Mapped:
    """Return the heat map of a run with its rows, or why there is none; the other runs by number."""
    device = store.select(engine, "v1_runs", run_id=run_id)[0]["device"]
    log = log_of_run(engine, run_id)
    below = None if minus is None else log_of_run(engine, minus)
    names = {str(name) for one in (log, below) if one is not None for name in placed(one.sensors)["name"]}
    plates = None if calibration is None else log_of_run(engine, calibration, names)
    found = thermocouples.heat_map(log, calibration=plates, minus=below, die=thermocouples.die_mm(device), rc_s=rc_s)
    return found._replace(rows=_with_cut(found.rows, log, below, plates))


def turned(
    engine: "Engine", run_id: int, second: int, angle_deg: float, calibration: int | None = None,
    rc_s: float | None = None,
) -> sensor_turns.Verdict:  # fmt: skip
    """Return whether a second run, with the spacer turned or put back, shows the same chip; runs by number."""
    log = log_of_run(engine, run_id)
    names = {str(name) for name in placed(log.sensors)["name"]}
    again = log_of_run(engine, second, names)
    plates = None if calibration is None else log_of_run(engine, calibration, names)
    found = sensor_turns.turned(log, again, angle_deg, calibration=plates, rc_s=rc_s)
    return found._replace(rows=_with_cut(found.rows, log, again, plates))


def models_of_run(engine: "Engine", run_id: int) -> pd.DataFrame:
    """Return the rows of the heat map of a run and of its thermocouples; none where no sensor is on the die."""
    sensors = store.table(engine, "v1_sensors", run_id=run_id)
    return pd.DataFrame() if placed(sensors).empty else map_of_run(engine, run_id).rows


def _with_cut(rows: pd.DataFrame, *logs: Log | None) -> pd.DataFrame:
    """Say where only the end of a log was looked at."""
    read = [one.sensors[one.sensors["sensor_id"].isin(one.samples["sensor_id"])] for one in logs if one is not None]
    longest = [int(count) for sensors in read for count in sensors["samples"] if count > LAST]
    if not longest:
        return rows
    words = (
        f"{len(longest)} sensors have more than {LAST} readings, up to {max(longest)}: of each the last {LAST} were "
        f"looked at, or as many that cover its last {LEAST_S / 60:g} minutes"
    )
    told = frame([row("heat_map", "readings_looked_at", LAST, float("nan"), "1", form="end of the log", reason=words)])
    return pd.concat([rows, told], ignore_index=True)
