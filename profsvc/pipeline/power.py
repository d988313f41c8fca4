"""Power and heat of a run: its logs out of the store, analysed, and what was found back into it."""

from collections.abc import Mapping, Sequence
from operator import attrgetter
from typing import TYPE_CHECKING

import pandas as pd

from profsvc import store
from profsvc.analysis.power import analyze as power_analysis
from profsvc.analysis.power.logs import Log
from profsvc.pipeline.component_power import unit_powers_of_run
from profsvc.pipeline.thermocouples import models_of_run

if TYPE_CHECKING:
    from sqlalchemy import Engine

# What goes with a power; other sensors of a run are not read for it.
QUANTITIES = {"power", "temperature", "energy", "clock", "fan", "state", "utilization"}
NAMED_BY_LOG = {"sensor": "name", "device": "device"}
DEFAULT_OPTIONS = power_analysis.Options()
# Longer logs are analysed when somebody asks for it: an upload of them would take several times as long.
MAX_READINGS_AT_UPLOAD = 1_000_000


def logs_of_run(engine: "Engine", run_id: int, also: str | None = None) -> list[Log]:
    """Return the logs of a run that power is analysed with; none where no power was logged.

    ``also``: name or number of a sensor that is wanted whatever it reads.
    """
    if not store.has_sensors(engine, run_id, "power"):
        return []
    sensors = store.sensors_of_run(engine, run_id)
    named = (sensors["name"] == also) | (sensors["sensor_id"].astype(str) == also)
    logs = []
    for row in sensors[sensors["quantity"].isin(QUANTITIES) | named].to_dict("records"):
        readings = store.sensor_readings(engine, row["sensor_id"])
        gpu = None if pd.isna(row["gpu_index"]) else int(row["gpu_index"])
        about = (row["sensor_id"], row["upload_id"], row["quantity"], row["name"], row["unit"], gpu, row["device"])
        read = (readings.clock, readings.time_ns, readings.value, readings.together)
        logs.append(Log(*about, *read, host=row["facts"].get("host")))
    return logs


def earlier_runs_of_board(engine: "Engine", run_id: int, logs: Sequence[Log]) -> dict[int, power_analysis.EarlierRuns]:
    """Return what earlier runs of the same board told of each power sensor, by its number.

    A board is known by its host, its name (or UUID) and its number in the host; an unnamed board is unknown.
    """
    frames = store.earlier_power_of_board(engine, run_id)
    run = store.select(engine, "v1_runs", run_id=run_id)[0]
    known = {}
    for log in logs:
        device = log.device or run["device"]
        if log.quantity != "power" or device is None:
            continue
        own = []
        for frame in frames:
            gpu = frame["gpu_index"].isna() if log.gpu_index is None else frame["gpu_index"] == log.gpu_index
            own.append(frame[(frame["sensor"] == log.name) & (frame["device"] == device) & gpu])
        known[log.sensor_id] = power_analysis.EarlierRuns(own[0], own[1])
    return known


def power_of_run(
    engine: "Engine", run_id: int, options: power_analysis.Options = DEFAULT_OPTIONS
) -> Mapping[str, pd.DataFrame]:
    """Return what the analysis of power and of thermocouples finds in a run; nothing of it is stored."""
    store.require_rows_of(engine, run_id, "other options than those of the stored results need")
    has_sensors = store.has_sensors(engine, run_id)  # most runs have none: their profile says all
    heat = models_of_run(engine, run_id) if has_sensors else None
    logs = logs_of_run(engine, run_id, options.temperature) if has_sensors else []
    frames: Mapping[str, pd.DataFrame] = {}
    if logs:
        marks, launches = store.marks_of_run(engine, run_id), store.launch_times(engine, run_id)
        known = earlier_runs_of_board(engine, run_id, logs)
        frames = power_analysis.analyze_power(logs, marks, launches, options, known)
    units = unit_powers_of_run(engine, run_id, _powers_of_windows(frames.get("power_windows"), run_id, logs))
    parts = [frame.astype(object) for frame in (frames.get("power_models"), heat, units) if frame is not None]
    models = [frame for frame in parts if len(frame)]
    if not models:
        return frames
    table = pd.concat(models, ignore_index=True)
    return {**frames, "power_models": table.where(table.notna(), None)}


def _powers_of_windows(windows: pd.DataFrame | None, run_id: int, logs: Sequence[Log]) -> pd.DataFrame | None:
    """Return windows that are not stored yet as `store.powers_of_loads` has those that are."""
    if windows is None or windows.empty:
        return None
    loads = windows[windows["kind"].isin(["load", "kernel"]) & windows["settled_power_w"].notna()]
    if loads.empty:
        return None
    log_of = {log.sensor_id: log for log in logs}
    named = {column: loads["sensor_id"].map(log_of).map(attrgetter(name)) for column, name in NAMED_BY_LOG.items()}
    return loads.assign(run_id=run_id, mean_power_w=loads["settled_power_w"], **named)


@store.keep_connections
def analyze_power(engine: "Engine", run_id: int, *, asked: bool = False) -> Mapping[str, pd.DataFrame]:
    """Analyse the power and the thermocouples of a run and store what was found, in place of what was there.

    A run without a log of power and without a thermocouple on the die has nothing stored: what an upload brought goes
    with it. A run with very long logs is analysed only where that was ``asked`` for; else what to do is stored.
    """
    while True:
        seen = store.change_count(engine, run_id)
        frames = (
            power_of_run(engine, run_id)
            if asked
            else _too_long_to_analyze(engine, run_id) or power_of_run(engine, run_id)
        )
        wanted = bool(frames) or store.POWER_PART in store.unfinished(engine, run_id).get(run_id, [])
        if not wanted or store.save_power(engine, run_id, frames, power_analysis.VERSION, seen):
            return frames


def _too_long_to_analyze(engine: "Engine", run_id: int) -> Mapping[str, pd.DataFrame]:
    """What stands in the store for a run whose logs are too long to analyse on the way; nothing for others."""
    if not store.has_sensors(engine, run_id, "power"):
        return {}
    sensors = store.sensors_of_run(engine, run_id)
    readings = int(sensors.loc[sensors["quantity"].isin(QUANTITIES), "samples"].sum())
    if readings <= MAX_READINGS_AT_UPLOAD:
        return {}
    words = f"{readings:,} readings are too many to analyze during an upload; run: profsvc analyze id:{run_id}"
    row = {"flag": "not_analysed", "value": float(readings), "unit": "1", "message": words}
    return {"power_quality": pd.DataFrame([row])}
