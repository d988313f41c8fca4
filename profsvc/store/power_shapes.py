"""The views of what the analysis of power and temperature found; the columns of its frames with the run and sensors."""

from profsvc.store.power_schema import FRAMES
from profsvc.store.schema import STEP
from profsvc.store.shapes import DEVICE, FLAG_NAMES, Shape, text_of

SENTENCES = {
    "power_windows": "Power and energy of a window of time, as read and corrected to one temperature.",
    "power_coefficients": "A temperature coefficient of power, fitted or refused.",
    "power_models": "One quantity of a model of power or temperature, with its interval.",
    "power_quality": "Something to beware of in the power and temperature logs of a run.",
}
NAMES = {"power_windows": "v1_power"}
_SOURCE = (
    "runs r JOIN {table} c ON c.run_id = r.run_id LEFT JOIN sensors n ON n.sensor_id = c.sensor_id{other}"
    " LEFT JOIN devices d ON d.device_id = r.device_id"
)
_OTHER = " LEFT JOIN sensors m ON m.sensor_id = c.temperature_sensor_id"
_RUN = (
    ("run_id", "int", "r.run_id", "the run"),
    ("project", "text", "r.project", "project of the run"),
    ("run", "text", "r.name", "name of the run"),
)
_DEVICE = (
    ("gpu_index", "int", "n.gpu_index", "GPU that the sensor is of"),
    (
        "device",
        "text",
        f"coalesce(n.device, {DEVICE})",
        "product name or UUID of that GPU, as the log says it; else the device of the run",
    ),
)
_SENSOR = ("sensor", "text", "n.name", "the sensor's own name as printed")
# What stands behind a column of a frame.
_BEHIND = {
    "sensor_id": (_SENSOR, *_DEVICE),
    "temperature_sensor_id": (("temperature_sensor", "text", "m.name", "the temperature sensor's own name"),),
}
_FILE = ("upload_id", "int", f"c.sensor_id / {STEP}", "the file that the sensor is in")
_LAST = (
    ("item", "int", "c.item", "ordinal of the row in the analysis of the run, from 0"),
    ("analysis_version", "text", text_of("c.version_id"), "version of the analysis that computed the row"),
)


def _shape(table: str) -> Shape:
    columns = list(_RUN)
    names = {column.name for column in FRAMES[table]}
    for column in FRAMES[table]:
        sql = text_of(f"c.{column.name}_id") if column.kind == "text" else f"c.{column.name}"
        is_flags = column.name == "flags"
        columns.append(
            (column.name, "text" if is_flags else column.kind, FLAG_NAMES if is_flags else sql, column.meaning)
        )
        columns += _BEHIND.get(column.name, ())
        columns += [_FILE] * (column.name == "sensor_id" and "upload_id" not in names)
    other = _OTHER if "temperature_sensor_id" in names else ""
    return Shape(SENTENCES[table], _SOURCE.format(table=table, other=other), (*columns, *_LAST))


SHAPES = {NAMES.get(table, f"v1_{table}"): _shape(table) for table in FRAMES}
