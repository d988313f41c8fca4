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
    *fields(
        "last_id int, first_index int, first_line int, line_step int?, first_ns int?, rise int?, unit_ns int?",
        "radix int?, least int?, divisor float?, reason_id int?, time_shift_ns int?, local_shift_ns int?",
        "least_elapsed_ns int?, most_elapsed_ns int?, readings text?",
    ),
)


def _elapsed(place: str, number: str) -> str:
    """Return the SQL for the time of a reading in a packed block, from its place there and its number."""
    straight = f"{place} * b.rise / (b.last_id - b.first_id)"
    return f"b.first_ns + ({straight} + {number} / b.radix) * b.unit_ns"


def _value(number: str) -> str:
    """Return the SQL for the value of a reading in a packed block, from its number."""
    return f"(b.least + {number} % b.radix) / b.divisor"


# A reading is a row of ``samples``, or a number in the list of a packed block. SQLite computes
# in each row only what is asked for. Postgres does so in both parts of a union, and moves conditions into them; SQLite
# joins no union that depends on the row before.
DIALECT_SQL: dict[str, dict[str, str]] = {
    "sqlite": {
        "samples": (
            "LEFT JOIN samples s ON s.sample_id BETWEEN b.first_id AND b.last_id LEFT JOIN json_each(b.readings) o"
        ),
        "sample_id": "coalesce(s.sample_id, b.first_id + o.key)",
        "sample_elapsed_ns": f"coalesce(s.elapsed_ns, {_elapsed('o.key', 'o.value')})",
        "sample_value": f"coalesce(s.value, {_value('o.value')})",
        "sample_time_shift_ns": "coalesce(s.time_shift_ns, b.time_shift_ns)",
        "sample_local_shift_ns": "coalesce(s.local_shift_ns, b.local_shift_ns)",
        "sample_reason_id": "coalesce(s.reason_id, b.reason_id)",
        "sample_index": "coalesce(o.key, s.sample_id - b.first_id + s.index_shift)",
        "sample_line": "coalesce(o.key * b.line_step, s.sample_id - b.first_id + s.line_shift)",
    },
    "postgresql": {
        "samples": (
            "CROSS JOIN LATERAL (SELECT r.sample_id, r.elapsed_ns, r.value, r.time_shift_ns, r.local_shift_ns,"
            " r.reason_id, r.sample_id - b.first_id + r.index_shift AS index, r.sample_id - b.first_id + r.line_shift"
            " AS line FROM samples r WHERE b.readings IS NULL AND r.sample_id BETWEEN b.first_id AND b.last_id"
            f" UNION ALL SELECT b.first_id + o.key, {_elapsed('o.key', 'o.value')}, {_value('o.value')},"
            " b.time_shift_ns, b.local_shift_ns, b.reason_id, o.key, o.key * b.line_step"
            " FROM (SELECT x.place - 1 AS key, x.value FROM"
            " unnest(CAST(translate(b.readings, '[]', '{}') AS bigint[])) WITH ORDINALITY x(value, place)) o) s"
        ),
        "sample_id": "s.sample_id",
        **{f"sample_{name}": f"s.{name}" for name in (
            "elapsed_ns", "value", "time_shift_ns", "local_shift_ns", "reason_id", "index", "line"
        )},
    },
}  # fmt: skip
# The limits are compared only where a reading lies outside them.
_OUTSIDE = "(n.implausible > 0 AND ({sample_value} < n.plausible_low OR {sample_value} > n.plausible_high))"
_LONGEST_NS = 2**63 - 1

_SENSORS = (
    f"uploads u JOIN sensors n ON n.sensor_id / {IDS_PER_UPLOAD} = u.upload_id AND n.sensor_id {UPLOAD_ID_RANGE_SQL}"
)


def _clock(clock: str) -> str:
    """Return the SQL for the clock time of a sample, which is stored as a difference."""
    return f"n.{clock}_origin_ns + coalesce({{sample_elapsed_ns}}, 0) + {{sample_{clock}_shift_ns}}"


def _block_clock(end: str) -> str:
    """Return the SQL for the UTC time of the first or last reading of a packed block; null for other blocks."""
    return f"n.time_origin_ns + b.{end}_elapsed_ns + b.time_shift_ns"


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
        f"{_SENSORS} CROSS JOIN sample_blocks b {{samples}} WHERE b.sensor_id = n.sensor_id",
        view_columns(
            "n",
            "sensor_id | int | sensor",
            *FILE_COLUMNS,
            "block_id | int | b.first_id | first reading of its storage block",
            "sample_id | int | {sample_id} | reading number",
            "quantity | text | quantity of the sensor",
            "name | text | name of the sensor as printed",
            "unit | text | unit of value",
            "gpu_index | int | index of the GPU of the sensor",
            "sample_index | int | b.first_index + {sample_index} | ordinal of the reading in the file",
            f"time_ns | int | {_clock('time')} | UTC time since 1970; null if the time zone of the file is unknown",
            f"local_ns | int | {_clock('local')} | clock of the file read as UTC, if its time zone is unknown",
            "elapsed_ns | int | {sample_elapsed_ns} | time since the first reading of the file",
            (
                f"value | float | CASE WHEN {_OUTSIDE} THEN NULL ELSE {{sample_value}} END | reading; null if missing "
                "or implausible"
            ),
            (
                "reason",
                "text",
                f"CASE WHEN {_OUTSIDE} THEN 'implausible: outside plausible_low to plausible_high of v1_sensors'"
                f" ELSE {text_of('{sample_reason_id}')} END",
                "reason for a null value",
            ),
            "as_read | float | {sample_value} | number as read, plausible or not",
            "line | int | b.first_line + {sample_line} | line in the file, from 1",
            "block_last_id | int | b.last_id | last reading of its storage block",
            (
                f"block_least_ns | int | coalesce(b.least_elapsed_ns, -{_LONGEST_NS}) | a time before which its block"
                " has no reading: a condition on it leaves out whole blocks, one on elapsed_ns does not"
            ),
            (
                f"block_most_ns | int | coalesce(b.most_elapsed_ns, {_LONGEST_NS}) | a time after which its block has"
                " no reading"
            ),
            (
                f"block_least_time_ns | int | coalesce({_block_clock('least')}, -{_LONGEST_NS}) | a UTC time before"
                " which its block has no reading, for conditions on time_ns"
            ),
            (
                f"block_most_time_ns | int | coalesce({_block_clock('most')}, {_LONGEST_NS}) | a UTC time after which"
                " its block has no reading"
            ),
        ),
    ),
}
