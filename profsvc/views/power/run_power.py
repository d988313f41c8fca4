"""The power of a run: windows as measured and corrected, coefficients, models and data-quality warnings."""

import shlex
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from profsvc import store
from profsvc.analysis.power.options import Options
from profsvc.errors import NotFoundError, UsageError
from profsvc.formats.timeseries.labels import UNKNOWN
from profsvc.formulas.numerics.flags import flag_names
from profsvc.store.schema.results.power import FRAMES

if TYPE_CHECKING:
    import pandas as pd
    from sqlalchemy import Engine

Row = dict[str, Any]
AS_STORED = Options()
NAMES = {"power_windows": "windows", "power_coefficients": "coefficients", "power_models": "models",
         "power_quality": "quality"}  # fmt: skip
VIEWS = {name: "v1_power" if name == "power_windows" else f"v1_{name}" for name in NAMES}
WINDOWS = (
    "window", "kind", "sensor", "gpu_index", "duration_s", "mean_power_w", "settled_power_w", "mean_temperature_c",
    "corrected_power_w", "corrected_power_low_w", "corrected_power_high_w", "reference_temperature_c",
    "coefficient_w_per_c",
    "coefficient_low", "coefficient_high", "energy_j", "corrected_energy_j", "corrected_energy_low_j",
    "corrected_energy_high_j", "runtime_energy_j", "energy_per_launch_j", "quality", "reason",
)  # fmt: skip


def upload_command(run: Mapping[str, Any]) -> str:
    """Return the command that adds a file to a run, which an upload names and never numbers.

    >>> upload_command({"name": "a b", "project": "default"}), upload_command({"name": "7", "project": "p"})
    ("profsvc upload --run 'a b' FILE", 'profsvc upload --project p --run 7 FILE')
    """
    project = "" if run["project"] == "default" else f" --project {shlex.quote(run['project'])}"
    return f"profsvc upload{project} --run {shlex.quote(run['name'])} FILE"


def power(engine: "Engine", name: str | int, options: Options = AS_STORED) -> dict[str, Any]:
    """Return the power of a run for all power sensors or one: windows, coefficients, models and warnings.

    Stored results are returned if the options only select a sensor. Otherwise results are computed but not stored, and
    ``stored`` is false.
    """
    run_id = store.find_run(engine, name)
    info = store.select(engine, "v1_runs", run_id=run_id)[0]
    sensors = store.select(engine, "v1_sensors", run_id=run_id, quantity="power")
    if not sensors:
        heat = store.select(engine, VIEWS["power_models"], run_id=run_id, model="heat_map")
        hint = f"; for its thermocouples: profsvc power id:{run_id} --heat-map FILE.svg" if heat else ""
        if unknown := store.select(engine, "v1_sensors", run_id=run_id, quantity=UNKNOWN):
            column, upload_id = unknown[0]["name"], unknown[0]["upload_id"]
            hint += (
                f"; its column {column!r} has no unit: if it is a power, profsvc delete id:{run_id} --upload "
                f"{upload_id}, and upload the file with --column {shlex.quote(f'{column}=power:W')}"
            )
        raise NotFoundError(
            f"run {info['name']!r} has no log of power; upload one (nvidia-smi, DCGM, a power meter; see profsvc "
            f"formats): {upload_command(info)}{hint}"
        )
    if options.host_power_w is not None and options.sensor is None and len(sensors) > 1:
        names = ", ".join(dict.fromkeys(str(one["name"]) for one in sensors))
        raise UsageError(
            f"--host-power is subtracted from a wall meter, but run {info['name']!r} has {len(sensors)} power "
            f"sensors: {names}; select the wall meter with --sensor NAME"
        )
    found = {key: store.select(engine, view, run_id=run_id) for key, view in VIEWS.items()}
    is_stored = options._replace(sensor=None) == AS_STORED and any(found.values())
    if not is_stored:
        from profsvc.pipeline.power import power_of_run  # imports pandas and the analysis, 0.4 s

        frames = power_of_run(engine, run_id, options)
        every = store.select(engine, "v1_sensors", run_id=run_id)
        found = {key: rows_of(key, frames.get(key), info, every) for key in NAMES}
    found = _of_sensor(found, sensors, options.sensor)
    return {"run": info, "stored": is_stored, **{NAMES[key]: rows for key, rows in found.items()}}


def _of_sensor(found: Mapping[str, list[Row]], sensors: Sequence[Row], name: str | None) -> dict[str, list[Row]]:
    """Return the rows of the sensors with a name or number, and of the whole run."""
    if name is None:
        return dict(found)
    ids = {one["sensor_id"] for one in sensors if name in (one["name"], str(one["sensor_id"]))}
    if not ids:
        raise NotFoundError.near("power sensor", name, {str(one["name"]) for one in sensors})
    return {key: [row for row in rows if row["sensor_id"] in {*ids, None}] for key, rows in found.items()}


def rows_of(table: str, frame: "pd.DataFrame | None", run: Row, sensors: Sequence[Row]) -> list[Row]:
    """Return the rows of a frame in the form of its view."""
    import pandas as pd

    from profsvc.analysis.power.analyze import VERSION

    known = {one["sensor_id"]: one for one in sensors}
    about = {"run_id": run["run_id"], "project": run["project"], "run": run["name"]}
    rows = []
    for item, own in enumerate([] if frame is None else frame.to_dict("records")):
        row: Row = {column.name: own.get(column.name) for column in FRAMES[table]}
        row = {name: None if pd.isna(value) else value for name, value in row.items()}
        sensor = known.get(row["sensor_id"], {})
        row |= {"sensor": sensor.get("name"), "gpu_index": sensor.get("gpu_index")}
        row["device"] = sensor.get("device") or run["device"]
        row.setdefault("upload_id", sensor.get("upload_id"))
        if "temperature_sensor_id" in row:
            row["temperature_sensor"] = known.get(row["temperature_sensor_id"], {}).get("name")
        if "flags" in row:
            row["flags"] = " ".join(flag_names(int(row["flags"] or 0)))
        rows.append(about | row | {"item": item, "analysis_version": VERSION})
    return rows
