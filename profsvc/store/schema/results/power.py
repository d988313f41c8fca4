"""The base tables and views of power and temperature results, and the columns of their frames.

`FRAMES` defines the tables and views here and the frames that `profsvc.store.results.power` accepts. The rows of a run
are those of its newest analysis. Texts are stored as numbers of ``texts``.
"""

from collections.abc import Mapping

from profsvc.store.schema.column_types import IDS_PER_UPLOAD, Declared, index, integer, key, real, ref, table
from profsvc.store.schema.view_definition import FLAG_NAMES_SQL, RUN_DEVICE_SQL, ViewDefinition, text_of, view_columns
from profsvc.tables import Column, columns

FRAMES: Mapping[str, tuple[Column, ...]] = {
    "power_windows": columns(
        "window | text | label of the window; a reserved word, so write it in double quotes on Postgres",
        "kind | text | run, idle, load or kernel",
        "source | text | origin of the window: log, marks, launches or change_points",
        "load | text? | name of the load, equal for any number of active SMs",
        "kernel | text? | kernel that ran in the window",
        "active_sms | int? | number of busy SMs",
        "launches | int? | number of launches in the window",
        "sensor_id | int | number of the power sensor",
        "temperature_sensor_id | int? | number of the temperature sensor used with it",
        "begin_ns | int | begin, UTC since 1970, or on the clock of the log if its time zone is unknown",
        "end_ns | int | end, on the same clock",
        "duration_s | float | time from begin to end",
        "readings | int | number of distinct power readings in the window",
        "mean_power_w | float? | mean power: energy divided by the time that the readings cover",
        "settled_power_w | float? | mean power of the settled part, where the sensor no longer averages earlier power",
        "power_sd_w | float? | standard deviation of the readings",
        "idle_power_w | float? | power of the idle device or system",
        "runtime_power_w | float? | mean power minus idle power; null in an idle window",
        "slope_w_per_s | float? | drift of the power over the window",
        "slope_se_w_per_s | float? | standard error of the drift",
        "mean_temperature_c | float? | mean temperature",
        "lowest_temperature_c | float? | lowest temperature",
        "highest_temperature_c | float? | highest temperature",
        "mean_clock_hz | float? | mean SM clock",
        "reference_temperature_c | float? | reference temperature of the corrected power",
        "coefficient_w_per_c | float? | power increase per degree, used for the correction",
        "coefficient_low | float? | lower end of the 95 % interval of the coefficient",
        "coefficient_high | float? | upper end of the 95 % interval of the coefficient",
        "corrected_power_w | float? | mean power at the reference temperature; null if unknown",
        "corrected_power_low_w | float? | lower end of its 95 % interval",
        "corrected_power_high_w | float? | upper end of its 95 % interval",
        "corrected_slope_w_per_s | float? | drift that remains after the correction",
        "corrected_slope_se_w_per_s | float? | standard error of the remaining drift",
        "energy_j | float? | energy, the integral of the power",
        "runtime_energy_j | float? | energy minus that of the idle power; null in an idle window",
        "corrected_energy_j | float? | energy at the reference temperature",
        "corrected_energy_low_j | float? | lower end of its 95 % interval",
        "corrected_energy_high_j | float? | upper end of its 95 % interval",
        "counter_energy_j | float? | energy from the device's energy counter",
        "counter_ratio | float? | energy_j divided by counter_energy_j",
        "energy_per_launch_j | float? | energy per launch",
        "energy_delay_js | float? | energy times time",
        "energy_delay2_js2 | float? | energy times time squared",
        "quality | text? | data-quality warnings as short codes separated by '; '; v1_power_quality explains them",
        "reason | text? | reason for a missing correction or a null value",
    ),
    "power_coefficients": columns(
        "sensor_id | int | number of the power sensor",
        "temperature_sensor_id | int? | number of the temperature sensor",
        "law | text | linear, exponential or endpoint",
        "form | text | consistent: from this run; pooled: with earlier runs of the board; as_published: as published",
        "clock_hz | float? | SM clock that it is valid for",
        "coefficient_w_per_c | float? | power increase per degree",
        "coefficient_low | float? | lower end of the 95 % interval of the coefficient",
        "coefficient_high | float? | upper end of the 95 % interval of the coefficient",
        "coefficient_per_c | float? | relative power increase per degree, for the exponential law",
        "temperature_low_c | float? | lowest temperature of the fit",
        "temperature_high_c | float? | highest temperature of the fit",
        "range_c | float? | temperature range of the fit",
        "segments | int? | number of constant-load segments in the fit",
        "readings | int? | number of readings in the fit",
        "used | int | 1 if the windows are corrected with it, else 0",
        "reason | text? | reason if it is rejected",
        "load | text? | load that it is valid for; null for all loads at this clock",
        "basis | text? | data of the fit: windows of the run, repeats of a load, earlier runs of the board",
        "sound | int? | 1 if it may be pooled with other runs of the board, 0 if other data contradicts it",
    ),
    "power_models": columns(
        "model | text | idle, thermal, active_sms, components, performance_per_watt, join and so on",
        "quantity | text | quantity of the model",
        "value | float? | value, in unit",
        "low | float? | lower end of its 95 % interval",
        "high | float? | upper end of its 95 % interval",
        "unit | text? | unit of value, low and high",
        "sensor_id | int? | number of the power sensor; null for the whole run",
        "window | text? | label of the window; null for all; write the column in double quotes on Postgres",
        "form | text? | as_published or consistent",
        "flags | int? | data-quality warnings, separated by spaces",
        "reason | text? | reason for a null value",
    ),
    "power_quality": columns(
        "sensor_id | int? | number of the sensor; null for the whole run",
        "upload_id | int? | upload number",
        "window | text? | label of the window; null for all; write the column in double quotes on Postgres",
        "flag | text | short code: slow_sensor, averaged, stuck, gap, clock_moved, throttled and so on",
        "value | float? | value that triggered the warning",
        "unit | text? | unit of value",
        "message | text | the warning as a sentence",
    ),
}


def _table_column(column: Column) -> Declared:
    options = {"nullable": column.nullable}
    if column.kind == "text":
        return ref(f"{column.name}_id", "texts.text_id", **options)
    return integer(column.name, **options) if column.kind == "int" else real(column.name, **options)


def _table(name: str) -> Declared:
    return table(
        name,
        ref("run_id", "runs.run_id", cascade=True, primary_key=True),
        key("item"),
        *map(_table_column, FRAMES[name]),
        ref("version_id", "texts.text_id", nullable=False),
        *_INDEXES.get(name, ()),
        clustered=True,
    )


# These indexes give the history of a load or window, newest runs first.
_INDEXES = {"power_windows": (index("load_id", "run_id"), index("window_id", "run_id"))}
POWER = {name: _table(name) for name in FRAMES}


VIEW_SENTENCES = {
    "power_windows": "Power and energy of time windows, as measured and corrected to one temperature.",
    "power_coefficients": "Temperature coefficients of power, fitted or rejected.",
    "power_models": "Quantities of power and temperature models, with confidence intervals.",
    "power_quality": "Data-quality warnings about the power and temperature logs of a run.",
}

VIEW_NAMES = {"power_windows": "v1_power"}

_SOURCE = (
    "runs r JOIN {table} c ON c.run_id = r.run_id LEFT JOIN sensors n ON n.sensor_id = c.sensor_id{other}"
    " LEFT JOIN devices d ON d.device_id = r.device_id"
)

_OTHER = " LEFT JOIN sensors m ON m.sensor_id = c.temperature_sensor_id"

_RUN = view_columns(
    "r",
    "run_id | int | run number",
    "project | text | project of the run",
    "run | text | r.name | name of the run",
)

_DEVICE = view_columns(
    "n",
    "gpu_index | int | index of the GPU of the sensor",
    (
        f"device | text | coalesce(n.device, {RUN_DEVICE_SQL}) | product name or UUID of that GPU as "
        "logged, else the device of the run"
    ),
)

_SENSOR = ("sensor", "text", "n.name", "name of the sensor as printed")


# Further view columns that follow a column of a frame.
_DETAIL_COLUMNS = {
    "sensor_id": (_SENSOR, *_DEVICE),
    "temperature_sensor_id": (("temperature_sensor", "text", "m.name", "name of the temperature sensor as printed"),),
}

_FILE = ("upload_id", "int", f"c.sensor_id / {IDS_PER_UPLOAD}", "upload that contains the sensor")

_LAST = view_columns(
    "c",
    "item | int | ordinal of the row in the analysis of the run, from 0",
    f"analysis_version | text | {text_of('c.version_id')} | version of the analysis",
)


def _shape(table: str) -> ViewDefinition:
    columns = list(_RUN)
    names = {column.name for column in FRAMES[table]}
    for column in FRAMES[table]:
        sql = text_of(f"c.{column.name}_id") if column.kind == "text" else f"c.{column.name}"
        is_flags = column.name == "flags"
        columns.append(
            (column.name, "text" if is_flags else column.kind, FLAG_NAMES_SQL if is_flags else sql, column.meaning)
        )
        columns += _DETAIL_COLUMNS.get(column.name, ())
        columns += [_FILE] * (column.name == "sensor_id" and "upload_id" not in names)
    other = _OTHER if "temperature_sensor_id" in names else ""
    return ViewDefinition(VIEW_SENTENCES[table], _SOURCE.format(table=table, other=other), (*columns, *_LAST))


VIEW_DEFINITIONS = {VIEW_NAMES.get(table, f"v1_{table}"): _shape(table) for table in FRAMES}
