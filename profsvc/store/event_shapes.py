"""The views of events beside the launches, of sums over them, and of sensors with their samples."""

from profsvc.store.schema import STEP
from profsvc.store.shapes import RANGE, Shape, of_every_file, text_of, told_once

_FILE = (
    ("run_id", "int", "u.run_id", "its run"),
    ("upload_id", "int", "u.upload_id", "the file it came in"),
)
_LINE = ("line", "int", "e.line", "line in the file, from 1; row number in a database")
_DURATION = ("duration_ns", "float", "e.duration_ns", "null where the tool prints none")
_PROCESS = ("process_id", "int", "e.process_id", "the process")
_THREAD = ("thread_id", "int", "e.thread_id", "thread of that process")
_DEVICE = "(SELECT NULLIF(d.name, '') FROM devices d WHERE d.device_id = e.device_id)"
_OUTSIDE = "(s.value < n.plausible_low OR s.value > n.plausible_high)"
_SENSORS = f"uploads u JOIN sensors n ON n.sensor_id / {STEP} = u.upload_id AND n.sensor_id {RANGE}"


_KEYS = {"transfers": "transfer_id", "api_calls": "call_id", "ranges": "range_id", "kernel_summaries": "summary_id"}


def _events(table: str, *, once: bool = True) -> str:
    """Return where the rows of a table of events come from, by the file that they came in: once each, or of all."""
    files = f" AND {told_once(table)}" if once else ""
    names = " LEFT JOIN kernels k ON k.kernel_id = e.kernel_id" if table == "kernel_summaries" else ""
    key = _KEYS[table]
    return f"uploads u JOIN {table} e ON e.{key} / {STEP} = u.upload_id AND e.{key} {RANGE}{files}{names}"


# nsys stats sums up the times of copies in one report, their sizes in another, and counts them in both.
_SIZES_BESIDE_TIMES = (
    "e.total_ns IS NULL AND e.total_bytes IS NOT NULL AND EXISTS ("
    "SELECT 1 FROM uploads v JOIN kernel_summaries s"
    f" ON s.summary_id BETWEEN v.upload_id * {STEP} AND v.upload_id * {STEP} + {STEP - 1}"
    " WHERE v.run_id = u.run_id AND s.category_id = e.category_id AND s.name_id = e.name_id AND s.total_ns IS NOT NULL)"
)


def _clock(clock: str) -> str:
    """Return the SQL for what a clock showed at a sample, which is kept as a difference."""
    return f"n.{clock}_origin_ns + coalesce(s.elapsed_ns, 0) + s.{clock}_shift_ns"


def _counted(what: str) -> str:
    """Return the SQL for what counts up from the first sample of a block to its last."""
    return f"b.first_{what} + s.sample_id - b.first_id + s.{what}_shift"


SHAPES: dict[str, Shape] = {
    "v1_transfers": Shape(
        "A copy between memories, or a memory set.",
        _events("transfers"),
        (
            ("transfer_id", "int", "e.transfer_id", "the transfer's number"),
            *_FILE,
            ("kind", "text", text_of("e.kind_id"), "HtoD, DtoH, DtoD, PtoP, HtoH, memset and so on"),
            ("start_ns", "int", "e.start_ns", "start on the device clock"),
            _DURATION,
            ("bytes", "int", "e.bytes", "bytes moved or set"),
            ("source_memory", "text", text_of("e.source_memory_id"), "kind of memory it came from, as printed"),
            ("target_memory", "text", text_of("e.target_memory_id"), "kind of memory it went to, as printed"),
            ("device", "text", _DEVICE, "product name of the device; null if not known"),
            ("device_index", "int", "e.device_index", "device ordinal as printed"),
            _PROCESS,
            ("context", "int", "e.context", "CUDA context"),
            ("stream", "int", "e.stream", "CUDA stream"),
            _LINE,
        ),
    ),
    "v1_api_calls": Shape(
        "A call of the CUDA interface.",
        _events("api_calls"),
        (
            ("call_id", "int", "e.call_id", "the call's number"),
            *_FILE,
            ("name", "text", text_of("e.name_id"), "the call, as printed"),
            ("start_ns", "int", "e.start_ns", "start on the host clock of the tool"),
            _DURATION,
            _PROCESS,
            _THREAD,
            ("correlation_id", "int", "e.correlation_id", "the tool's number that joins it to what it launched"),
            _LINE,
        ),
    ),
    "v1_ranges": Shape(
        "A range or a mark that the program set.",
        _events("ranges"),
        (
            ("range_id", "int", "e.range_id", "the range's number"),
            *_FILE,
            ("name", "text", text_of("e.name_id"), "name of the range or mark"),
            ("start_ns", "int", "e.start_ns", "start on the host clock of the tool; UTC where the file's facts say so"),
            ("duration_ns", "float", "e.duration_ns", "null for a mark or an open range"),
            ("domain", "text", text_of("e.domain_id"), "domain or category"),
            _PROCESS,
            _THREAD,
            ("active_sms", "int", "e.active_sms", "SMs that it kept busy, as a log of marks says"),
            ("launches", "int", "e.launches", "launches in it, as a log of marks says"),
            _LINE,
        ),
    ),
    "v1_kernel_summaries": Shape(
        "The sum of all launches of a kernel, or of all events of a name, from an export that holds only sums.",
        _events("kernel_summaries"),
        (
            ("summary_id", "int", "e.summary_id", "the row's number"),
            *_FILE,
            (
                "category",
                "text",
                text_of("e.category_id"),
                "what is summed up: kernel, memory, api, os (calls of the system), range or domain",
            ),
            (
                "kernel",
                "text",
                f"coalesce(k.kernel, {text_of('e.name_id')})",
                "name of the kernel, copy, call or range",
            ),
            ("kernel_short", "text", "k.kernel_short", "a kernel's name without types and parameters"),
            (
                "calls",
                "int",
                f"CASE WHEN {_SIZES_BESIDE_TIMES} THEN NULL ELSE e.calls END",
                "how many; null for a row of sizes beside the row of times of the same copies, which counts them",
            ),
            ("total_ns", "float", "e.total_ns", "sum of their durations; null for a row of sizes"),
            ("mean_ns", "float", "e.mean_ns", "mean duration"),
            ("min_ns", "float", "e.min_ns", "shortest"),
            ("max_ns", "float", "e.max_ns", "longest"),
            ("total_bytes", "float", "e.total_bytes", "sum of their sizes, for a row of sizes"),
            ("device_index", "int", "e.device_index", "device ordinal, where the row is about one"),
            ("line", "int", "e.line", "line in the file, from 1"),
        ),
    ),
    "v1_sensors": Shape(
        "A channel that was read again and again: power, temperature, a clock.",
        _SENSORS,
        (
            ("sensor_id", "int", "n.sensor_id", "the sensor's number"),
            *_FILE,
            ("sensor_index", "int", f"n.sensor_id - u.upload_id * {STEP} - 1", "its ordinal in the file, from 0"),
            ("quantity", "text", "n.quantity", "power, energy, temperature, clock, utilization, memory and so on"),
            ("name", "text", "n.name", "the channel's own name as printed"),
            ("unit", "text", "n.unit", "unit of its values: W, J, degC, Hz, 1, byte, V, A"),
            ("gpu_index", "int", "n.gpu_index", "GPU that it is of"),
            ("device", "text", "n.device", "product name or UUID of that GPU"),
            ("x_mm", "float", "n.x_mm", "place on the die"),
            ("y_mm", "float", "n.y_mm", "place on the die"),
            ("quality", "text", "n.quality", "what to beware of, with the figure"),
            ("samples", "int", "n.samples", "how many readings it has"),
            ("plausible_low", "float", "n.plausible_low", "the least that its readings can be; null: no limit"),
            ("plausible_high", "float", "n.plausible_high", "the most that they can be"),
            (
                "implausible",
                "int",
                "coalesce(n.implausible, 0)",
                "readings outside these, which are stored and kept out of all results",
            ),
            ("line", "int", "n.line", "line that names it, from 1"),
        ),
    ),
    "v1_samples": Shape(
        "A reading of a sensor.",
        # Crossed, because SQLite keeps that order: nothing else tells it not to walk all samples first.
        f"{_SENSORS} CROSS JOIN sample_blocks b CROSS JOIN samples s"
        " WHERE b.sensor_id = n.sensor_id AND s.sample_id BETWEEN b.first_id AND b.last_id",
        (
            ("sensor_id", "int", "n.sensor_id", "the sensor"),
            *_FILE,
            ("block_id", "int", "b.first_id", "the first of the readings that it is kept with"),
            ("sample_id", "int", "s.sample_id", "the reading's number"),
            ("quantity", "text", "n.quantity", "what the sensor reads"),
            ("name", "text", "n.name", "the sensor's own name as printed"),
            ("unit", "text", "n.unit", "unit of value"),
            ("gpu_index", "int", "n.gpu_index", "GPU that the sensor is of"),
            ("sample_index", "int", _counted("index"), "ordinal of the reading in the file"),
            ("time_ns", "int", _clock("time"), "UTC since 1970; null where the zone of the file's clock is unknown"),
            ("local_ns", "int", _clock("local"), "the file's own clock as if it were UTC, where its zone is unknown"),
            ("elapsed_ns", "int", "s.elapsed_ns", "since the first reading of the file"),
            (
                "value",
                "float",
                f"CASE WHEN {_OUTSIDE} THEN NULL ELSE s.value END",
                "the reading; null if there is none that can be",
            ),
            (
                "reason",
                "text",
                f"CASE WHEN {_OUTSIDE} THEN 'outside what is plausible: plausible_low to plausible_high of v1_sensors'"
                f" ELSE {text_of('s.reason_id')} END",
                "why value is null",
            ),
            ("as_read", "float", "s.value", "the number as it was read, plausible or not"),
            ("line", "int", _counted("line"), "line in the file, from 1"),
        ),
    ),
}

SHAPES |= {f"v1_{table}_all": of_every_file(SHAPES[f"v1_{table}"], _events(table, once=False)) for table in _KEYS}
