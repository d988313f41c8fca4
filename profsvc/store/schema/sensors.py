"""Sensors and their readings: base tables and views."""

from profsvc.store.schema.column_types import IDS_PER_UPLOAD, fields, key, table
from profsvc.store.schema.view_definition import (
    FILE_COLUMNS,
    UPLOAD_ID_RANGE_SQL,
    ViewDefinition,
    text_of,
    view_columns,
)

sensors = table(
    "sensors",
    key("sensor_id"),
    *fields(
        "quantity text, name text, unit text, gpu_index int?, device text?, x_mm float?, y_mm float?, quality text?",
        "line int?, samples int, time_origin_ns int?, local_origin_ns int?, plausible_low float?",
        "plausible_high float?, implausible int?",
    ),
)

samples = table(
    "samples",
    key("sample_id"),
    *fields(
        "elapsed_ns int?, time_shift_ns int?, local_shift_ns int?, value float?, reason_id int?, index_shift int",
        "line_shift int",
    ),
)

sample_blocks = table(
    "sample_blocks",
    key("sensor_id"),
    key("first_id"),
    *fields("last_id int, first_index int, first_line int"),
    clustered=True,
)

_OUTSIDE = "(s.value < n.plausible_low OR s.value > n.plausible_high)"

_SENSORS = (
    f"uploads u JOIN sensors n ON n.sensor_id / {IDS_PER_UPLOAD} = u.upload_id AND n.sensor_id {UPLOAD_ID_RANGE_SQL}"
)


def _clock(clock: str) -> str:
    """Return the SQL for the clock time of a sample, which is stored as a difference."""
    return f"n.{clock}_origin_ns + coalesce(s.elapsed_ns, 0) + s.{clock}_shift_ns"


def _counted(what: str) -> str:
    """Return the SQL for an ordinal or line, which counts up within a block of samples."""
    return f"b.first_{what} + s.sample_id - b.first_id + s.{what}_shift"


VIEW_DEFINITIONS: dict[str, ViewDefinition] = {
    "v1_sensors": ViewDefinition(
        "Sensors: logged channels such as power, temperature or clocks.",
        _SENSORS,
        view_columns(
            "n",
            "sensor_id | int | sensor number",
            *FILE_COLUMNS,
            f"sensor_index | int | n.sensor_id - u.upload_id * {IDS_PER_UPLOAD} - 1 | ordinal in the file, from 0",
            "quantity | text | power, energy, temperature, clock, utilization, memory and so on",
            "name | text | name of the channel as printed",
            "unit | text | unit of its values: W, J, degC, Hz, 1, byte, V, A",
            "gpu_index | int | index of its GPU",
            "device | text | product name or UUID of that GPU",
            "x_mm | float | position on the die",
            "y_mm | float | position on the die",
            "quality | text | data-quality warnings, with figures",
            "samples | int | number of readings",
            "plausible_low | float | lowest plausible reading; null: no limit",
            "plausible_high | float | highest plausible reading; null: no limit",
            (
                "implausible | int | coalesce(n.implausible, 0) | number of readings outside these limits; they are "
                "stored but excluded from all results"
            ),
            "line | int | line that names the sensor, from 1",
        ),
    ),
    "v1_samples": ViewDefinition(
        "Sensor readings.",
        # CROSS JOIN fixes the join order on SQLite, which otherwise scans all samples first.
        f"{_SENSORS} CROSS JOIN sample_blocks b CROSS JOIN samples s"
        " WHERE b.sensor_id = n.sensor_id AND s.sample_id BETWEEN b.first_id AND b.last_id",
        view_columns(
            "n",
            "sensor_id | int | sensor",
            *FILE_COLUMNS,
            "block_id | int | b.first_id | first reading of its storage block",
            "sample_id | int | s.sample_id | reading number",
            "quantity | text | quantity of the sensor",
            "name | text | name of the sensor as printed",
            "unit | text | unit of value",
            "gpu_index | int | index of the GPU of the sensor",
            f"sample_index | int | {_counted('index')} | ordinal of the reading in the file",
            f"time_ns | int | {_clock('time')} | UTC time since 1970; null if the time zone of the file is unknown",
            f"local_ns | int | {_clock('local')} | clock of the file read as UTC, if its time zone is unknown",
            "elapsed_ns | int | s.elapsed_ns | time since the first reading of the file",
            (
                f"value | float | CASE WHEN {_OUTSIDE} THEN NULL ELSE s.value END | reading; null if missing or "
                "implausible"
            ),
            (
                "reason",
                "text",
                f"CASE WHEN {_OUTSIDE} THEN 'implausible: outside plausible_low to plausible_high of v1_sensors'"
                f" ELSE {text_of('s.reason_id')} END",
                "reason for a null value",
            ),
            "as_read | float | s.value | number as read, plausible or not",
            f"line | int | {_counted('line')} | line in the file, from 1",
        ),
    ),
}
