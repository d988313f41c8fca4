"""The base tables of what the analysis of power and temperature found, and the columns of the frames they keep.

`FRAMES` says everything: the tables here, what `profsvc.store.power` takes and the views of
`profsvc.store.power_shapes` follow from it. The rows of a run are those of its newest analysis;
texts stand as numbers of ``texts``.
"""

from collections.abc import Mapping
from typing import Any

from sqlalchemy import Column as Field
from sqlalchemy import Index, Table

from profsvc.store.parts import integer, key, real, ref, table
from profsvc.tables import Column, columns

FRAMES: Mapping[str, tuple[Column, ...]] = {
    "power_windows": columns(
        "window | text | its label; a word of SQL, so in double quotes on Postgres",
        "kind | text | run, idle, load or kernel",
        "source | text | what it comes from: log, marks, launches or change_points",
        "load | text? | what windows of one load have in common, on whatever number of SMs",
        "kernel | text? | kernel that ran in it",
        "active_sms | int? | SMs that were kept busy in it",
        "launches | int? | launches in it",
        "sensor_id | int | the power sensor",
        "temperature_sensor_id | int? | the temperature sensor that went with it",
        "begin_ns | int | begin, UTC since 1970, or on the log's own clock where its zone is unknown",
        "end_ns | int | end, on that clock",
        "duration_s | float | time between them",
        "readings | int | distinct readings of the power in it",
        "mean_power_w | float? | mean power: energy over the time that the readings cover",
        "settled_power_w | float? | mean power of its inner part, in which the sensor averages nothing of before it",
        "power_sd_w | float? | standard deviation of the readings",
        "idle_power_w | float? | power of the idle device or system",
        "runtime_power_w | float? | mean power less idle power; null in an idle window, in which nothing runs",
        "slope_w_per_s | float? | drift of the power over the window",
        "slope_se_w_per_s | float? | its standard error",
        "mean_temperature_c | float? | mean temperature",
        "lowest_temperature_c | float? | lowest temperature",
        "highest_temperature_c | float? | highest temperature",
        "mean_clock_hz | float? | mean clock of the SMs",
        "reference_temperature_c | float? | temperature that the power is corrected to",
        "coefficient_w_per_c | float? | power that a degree adds, which it is corrected with",
        "coefficient_low | float? | lower end of its 95 % interval",
        "coefficient_high | float? | upper end of its 95 % interval",
        "corrected_power_w | float? | mean power at the reference temperature; null if it cannot be said",
        "corrected_power_low_w | float? | lower end of its 95 % interval",
        "corrected_power_high_w | float? | upper end of its 95 % interval",
        "corrected_slope_w_per_s | float? | drift that the correction leaves",
        "corrected_slope_se_w_per_s | float? | its standard error",
        "energy_j | float? | energy, the integral of the power",
        "runtime_energy_j | float? | energy less that of the idle power; null in an idle window",
        "corrected_energy_j | float? | energy at the reference temperature",
        "corrected_energy_low_j | float? | lower end of its 95 % interval",
        "corrected_energy_high_j | float? | upper end of its 95 % interval",
        "counter_energy_j | float? | energy by the device's own energy counter",
        "counter_ratio | float? | integral of the power over the energy counter",
        "energy_per_launch_j | float? | energy of a launch",
        "energy_delay_js | float? | energy times time",
        "energy_delay2_js2 | float? | energy times time squared",
        "quality | text? | what to beware of, short codes with '; ' between; v1_power_quality explains them",
        "reason | text? | why it is not corrected, or why a value is null",
    ),
    "power_coefficients": columns(
        "sensor_id | int | the power sensor",
        "temperature_sensor_id | int? | the temperature sensor",
        "law | text | linear, exponential or endpoint",
        "form | text | consistent: of this run; pooled: with earlier runs of the board; as_published: as printed",
        "clock_hz | float? | clock of the SMs that it holds at",
        "coefficient_w_per_c | float? | power that a degree adds",
        "coefficient_low | float? | lower end of its 95 % interval",
        "coefficient_high | float? | upper end of its 95 % interval",
        "coefficient_per_c | float? | share of the power that a degree adds, of the exponential law",
        "temperature_low_c | float? | lowest temperature it was fitted on",
        "temperature_high_c | float? | highest temperature it was fitted on",
        "range_c | float? | range of temperature it was fitted on",
        "segments | int? | stretches of constant load it was fitted on",
        "readings | int? | readings it was fitted on",
        "used | int | 1 for the one that the windows are corrected with, else 0",
        "reason | text? | why it is refused",
        "load | text? | the load that it holds for alone; null: for all at this clock",
        "basis | text? | what it rests on: windows of the run, repeats of a load, earlier runs of the board",
        "sound | int? | 1 where it may be pooled with other runs of the board, 0 where something contradicts it",
    ),
    "power_models": columns(
        "model | text | idle, thermal, active_sms, components, performance_per_watt, join and so on",
        "quantity | text | what of the model",
        "value | float? | the value in unit",
        "low | float? | lower end of its 95 % interval",
        "high | float? | upper end of its 95 % interval",
        "unit | text? | unit of value, low and high",
        "sensor_id | int? | the power sensor; null for the whole run",
        "window | text? | label of the window; null for all; in double quotes on Postgres",
        "form | text? | as_published or consistent",
        "flags | int? | what to beware of, names with a space between",
        "reason | text? | why value is null",
    ),
    "power_quality": columns(
        "sensor_id | int? | the sensor; null for the whole run",
        "upload_id | int? | the file",
        "window | text? | label of the window; null for all; in double quotes on Postgres",
        "flag | text | short code: slow_sensor, averaged, stuck, gap, clock_moved, throttled and so on",
        "value | float? | the figure that decided it",
        "unit | text? | unit of value",
        "message | text | what was seen, in words",
    ),
}


def _field(column: Column) -> Field[Any]:
    options = {"nullable": column.nullable}
    if column.kind == "text":
        return ref(f"{column.name}_id", "texts.text_id", **options)
    return integer(column.name, **options) if column.kind == "int" else real(column.name, **options)


def _table(name: str) -> Table:
    return table(
        name,
        ref("run_id", "runs.run_id", cascade=True, primary_key=True),
        key("item"),
        *map(_field, FRAMES[name]),
        ref("version_id", "texts.text_id", nullable=False),
        clustered=True,
    )


POWER = {name: _table(name) for name in FRAMES}
# The history of a load or of a window is read off them, the newest runs first.
for _name in ("load_id", "window_id"):
    Index(None, POWER["power_windows"].c[_name], POWER["power_windows"].c.run_id)
