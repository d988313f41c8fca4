"""The views of runs, files, devices, launches and what was measured of each launch."""

from typing import NamedTuple

from profsvc.store.schema import STEP
from profsvc.store.wide import LINE, MOST_LAUNCHES, RAW_TEXT, VALUE


class Shape(NamedTuple):
    """A view as it is written here: what it is, where its rows come from, and its columns.

    ``others`` are more sources of rows, each with the SQL of the columns that it has otherwise.
    """

    sentence: str
    source: str
    columns: tuple[tuple[str, str, str, str], ...]
    others: tuple[tuple[str, dict[str, str]], ...] = ()


def text_of(ref: str) -> str:
    """SQL for the text that ``ref`` numbers."""
    return f"(SELECT x.text FROM texts x WHERE x.text_id = {ref})"


FLAGS = (
    "ZERO_DENOM", "NOT_APPLICABLE", "RAW_OUT_OF_RANGE", "CLIPPED", "EXTRAPOLATED", "INPUT_SUSPECT", "UPPER_BOUND",
    "TAIL_EFFECT", "CASE_AMBIGUOUS", "OVERLAP", "LOWER_BOUND",
)  # fmt: skip


def flag_names(column: str) -> str:
    """SQL for the names of the flags that are raised in a column of results."""
    named = (f"CASE WHEN {column} & {1 << bit} <> 0 THEN '{name} ' ELSE '' END" for bit, name in enumerate(FLAGS))
    return f"rtrim({' || '.join(named)})"


FLAG_NAMES = flag_names("c.flags")
"""SQL for the names of the flags that are raised in a row of results."""

RANGE = f"BETWEEN u.upload_id * {STEP} AND u.upload_id * {STEP} + {STEP - 1}"
DEVICE = (  # of a run of logs alone the one that they name; null where that is several
    "coalesce(NULLIF(d.name, ''), (SELECT CASE WHEN min(s.device) = max(s.device) THEN min(s.device) END"
    f" FROM uploads u JOIN sensors s ON s.sensor_id {RANGE} WHERE u.run_id = r.run_id))"
)
# Left joins, so that a query pays only for the tables whose columns it names.
LAUNCHES = (
    f"launches l LEFT JOIN uploads u ON u.upload_id = l.launch_id / {STEP} AND l.launch_id {RANGE}"
    " LEFT JOIN shapes h ON h.shape_id = l.shape_id LEFT JOIN kernels k ON k.kernel_id = h.kernel_id"
)

# A block has few launches, so the one of a launch lies in a short range of keys. The launch stands first and the names
# last: Postgres looks for the best order among the first eight tables only.
WIDE = (
    "launches l JOIN wide_blocks b"
    f" ON b.first_launch BETWEEN l.launch_id - {MOST_LAUNCHES - 1} AND l.launch_id{{launch}}"
    f" JOIN uploads u ON u.upload_id = b.first_launch / {STEP} AND b.first_launch {RANGE}"
    " JOIN wide_columns c ON c.layout_id = b.layout_id"
    " JOIN {table} w ON w.cell_id = b.first_cell + c.place{each}"
    " JOIN metric_names n ON n.metric_id = c.metric_id JOIN unit_names i ON i.unit_id = c.unit_id"
    " JOIN shapes h ON h.shape_id = l.shape_id JOIN kernels k ON k.kernel_id = h.kernel_id"
)
_CELL = {"text": "e.value", "point": "{point}"}
# SQLite takes the conditions of a query, and of a join, into a union only where the types of its columns agree.
_OF_WIDE = {"statistic": "NULL", "invocations": "CAST(NULL AS BIGINT)", "line": LINE}

TIMELINE = {"first_start_ns": "t.first_ns", "span_ns": "t.span_ns", "busy_ns": "t.busy_ns"}

SHAPES: dict[str, Shape] = {
    "v1_runs": Shape(
        "An execution of a program, or a campaign of measurements, on a device.",
        "runs r LEFT JOIN devices d ON d.device_id = r.device_id",
        (
            ("run_id", "int", "r.run_id", "the run's number"),
            ("project", "text", "r.project", "project it belongs to"),
            ("name", "text", "r.name", "its name, unique in the project"),
            (
                "device",
                "text",
                DEVICE,
                "product name of the device, as given or as its files say, if they name one alone",
            ),
            ("compute_capability", "text", "NULLIF(d.compute_capability, '')", "of that device, such as 9.0"),
            ("host", "text", "r.host", "host it ran on"),
            ("commit_id", "text", "r.commit_id", "commit of the program"),
            ("started_at", "text", "r.started_at", "start of the run, UTC, ISO 8601"),
            ("created_at", "text", "r.created_at", "when it came into the store, UTC, ISO 8601"),
            (
                "tags",
                "text",
                "(SELECT {json_object} FROM run_tags t WHERE t.run_id = r.run_id)",
                "tags as a JSON object of texts",
            ),
            ("uploads", "int", "(SELECT count(*) FROM uploads u WHERE u.run_id = r.run_id)", "how many files it has"),
            (
                "launches",
                "int",
                "(SELECT CAST(coalesce(sum(u.launches), 0) AS BIGINT) FROM uploads u"
                " WHERE u.run_id = r.run_id AND u.same_as IS NULL)",
                "launches of its files; those of several pages of one report count once",
            ),
            (
                "gpu_time_ns",
                "float",
                "(SELECT sum(u.gpu_time_ns) FROM uploads u WHERE u.run_id = r.run_id AND u.same_as IS NULL)",
                "sum of their durations; null if no file has durations",
            ),
            (
                "samples",
                "int",
                "(SELECT CAST(coalesce(sum(u.samples), 0) AS BIGINT) FROM uploads u WHERE u.run_id = r.run_id)",
                "readings of sensors in its files",
            ),
            ("analysis_version", "text", text_of("r.version_id"), "newest analysis of it; null before the first"),
        ),
    ),
    "v1_uploads": Shape(
        "A file as it was uploaded into a run, known there by the SHA-256 of its bytes.",
        "uploads u LEFT JOIN timelines t ON t.upload_id = u.upload_id",
        tuple(
            (name, kind, TIMELINE.get(name, f"u.{name}"), meaning)
            for name, kind, meaning in (
                ("upload_id", "int", "the upload's number"),
                ("run_id", "int", "the run it belongs to"),
                ("file_name", "text", "name of the file as given"),
                ("sha256", "text", "SHA-256 of its bytes as given, compressed or not"),
                ("size_bytes", "int", "their number"),
                ("format", "text", "the reader that read it"),
                ("tool", "text", "tool that wrote it"),
                ("tool_version", "text", "version of that tool"),
                ("status", "text", "stored, or partial where lines were rejected"),
                ("lines", "int", "lines of the file, unpacked"),
                ("lines_stored", "int", "lines that became rows"),
                ("lines_skipped", "int", "lines recognised as holding no data"),
                ("lines_rejected", "int", "lines refused; v1_rejects holds them"),
                ("launches", "int", "launches in it"),
                ("samples", "int", "readings of sensors in it"),
                ("same_as", "int", "upload of the run that holds the same launches, as another page of one report"),
                ("gpu_time_ns", "float", "sum of their durations; null if it has none"),
                ("first_start_ns", "int", "start of the first; null if none has start and duration"),
                ("span_ns", "float", "from there to the end of the last"),
                ("busy_ns", "float", "time of this in which at least one of them ran"),
                ("message", "text", "a sentence about the whole file"),
                ("facts", "text", "what else the reader found out, as a JSON object of texts"),
                ("received_at", "text", "when it was stored, or the time given with it (--at), UTC, ISO 8601"),
            )
        ),
    ),
    "v1_rejects": Shape(
        "A record of a file that was not stored, and why.",
        "rejects j JOIN uploads u ON u.upload_id = j.upload_id",
        (
            ("upload_id", "int", "j.upload_id", "the upload"),
            ("run_id", "int", "u.run_id", "its run"),
            ("line", "int", "j.line", "first line of the record, from 1"),
            (
                "lines",
                "int",
                "j.lines",
                "how many lines it spans; 0 where another record has its line",
            ),
            ("reason", "text", "j.reason", "why it was rejected"),
            ("text", "text", "j.text", "its first 2000 characters"),
        ),
    ),
    "v1_characterizations": Shape(
        "A measured point of a function of a device, or a measured cost of an operation.",
        "characterizations m JOIN uploads u ON u.upload_id = m.upload_id",
        (
            ("upload_id", "int", "m.upload_id", "the upload; the newest counts, for each device and quantity"),
            ("run_id", "int", "u.run_id", "its run"),
            ("device", "text", "m.device", "product name of the device that was measured"),
            ("quantity", "text", "m.quantity", "a function such as F_DRAMThr, or a cost such as k_l2_load"),
            ("x", "float", "m.x", "place in the sweep of a function; null for a cost without one"),
            ("y", "float", "m.y", "share of the peak for a function; cycles an operation for a cost"),
            ("unit", "text", "m.unit", "unit of y as it came"),
            ("method", "text", "m.method", "how it was measured"),
            ("line", "int", "m.line", "line in the file, from 1"),
        ),
    ),
    "v1_devices": Shape(
        "A kind of GPU that runs or launches name.",
        "devices d",
        (
            ("device_id", "int", "d.device_id", "the device's number"),
            ("name", "text", "NULLIF(d.name, '')", "product name; null if the export does not say it"),
            ("compute_capability", "text", "NULLIF(d.compute_capability, '')", "such as 9.0; null if not said"),
            ("sms", "int", "d.sms", "streaming multiprocessors; null if not known"),
            ("facts", "text", "d.facts", "its other figures, as a JSON object"),
        ),
    ),
    "v1_kernels": Shape(
        "A distinct kernel.",
        "kernels k",
        (
            ("kernel_id", "int", "k.kernel_id", "the kernel's number"),
            ("kernel", "text", "k.kernel", "full name as printed"),
            ("kernel_short", "text", "k.kernel_short", "its name without types and parameters"),
        ),
    ),
    "v1_launches": Shape(
        "One execution of a kernel.",
        f"{LAUNCHES} LEFT JOIN places a ON a.place_id = l.place_id LEFT JOIN devices d ON d.device_id = a.device_id",
        (
            ("launch_id", "int", "l.launch_id", "the launch's number"),
            ("run_id", "int", "u.run_id", "its run"),
            ("upload_id", "int", "u.upload_id", "the file it came in"),
            ("launch_index", "int", f"l.launch_id - u.upload_id * {STEP} - 1", "its ordinal in the file, from 0"),
            ("source_id", "text", "l.source_id", "the ID the tool printed for it"),
            ("correlation_id", "int", "l.correlation_id", "joins it to the call that launched it, in v1_api_calls"),
            ("kernel_id", "int", "h.kernel_id", "its kernel's number"),
            ("kernel", "text", "k.kernel", "full name of its kernel"),
            ("kernel_short", "text", "k.kernel_short", "its name without types and parameters"),
            ("device_id", "int", "a.device_id", "its device's number"),
            ("device", "text", "NULLIF(d.name, '')", "product name of the device; null if not known"),
            ("compute_capability", "text", "NULLIF(d.compute_capability, '')", "of the device; null if not known"),
            ("device_index", "int", "a.device_index", "device ordinal as printed"),
            ("tool", "text", "u.tool", "tool that wrote the file"),
            ("host", "text", text_of("a.host_id"), "host as printed"),
            ("process_id", "int", "a.process_id", "process that launched it"),
            ("process_name", "text", text_of("a.process_name_id"), "name of that process"),
            ("context", "int", "a.context", "CUDA context"),
            ("stream", "int", "a.stream", "CUDA stream"),
            ("start_ns", "int", "l.start_ns", "start on the device clock"),
            ("duration_ns", "float", "l.duration_ns", "execution time; null if the export does not hold it"),
            ("grid_x", "int", "l.grid_x", "blocks"),
            ("grid_y", "int", "l.grid_y", "blocks"),
            ("grid_z", "int", "l.grid_z", "blocks"),
            ("block_x", "int", "h.block_x", "threads"),
            ("block_y", "int", "h.block_y", "threads"),
            ("block_z", "int", "h.block_z", "threads"),
            ("registers_per_thread", "int", "h.registers_per_thread", "registers; null where they are a counter"),
            (
                "shared_mem_static_bytes",
                "int",
                "h.shared_mem_static_bytes",
                "shared memory of a block, as compiled; null where it is a counter",
            ),
            (
                "shared_mem_dynamic_bytes",
                "int",
                "l.shared_mem_dynamic_bytes",
                "shared memory of a block, as asked for at launch; null where it is a counter",
            ),
            ("line", "int", "l.line", "first line of the launch in the file, from 1"),
            (
                "same_as",
                "int",
                f"l.launch_id + (u.same_as - u.upload_id) * {STEP}",
                "the same launch in another page of the same report, uploaded before; null for the first",
            ),
        ),
    ),
    "v1_kernel_totals": Shape(
        "All launches of a kernel in a file, summed up when the file was stored.",
        "uploads u JOIN runs r ON r.run_id = u.run_id JOIN kernel_totals t ON t.upload_id = u.upload_id"
        " JOIN kernels k ON k.kernel_id = t.kernel_id",
        (
            ("run_id", "int", "u.run_id", "its run"),
            ("upload_id", "int", "u.upload_id", "the file"),
            ("project", "text", "r.project", "project of the run"),
            ("run", "text", "r.name", "name of the run"),
            ("commit_id", "text", "r.commit_id", "commit of the program"),
            ("started_at", "text", "r.started_at", "start of the run, UTC, ISO 8601"),
            ("received_at", "text", "u.received_at", "when the file was stored, UTC, ISO 8601"),
            ("kernel_id", "int", "t.kernel_id", "the kernel's number"),
            ("kernel", "text", "k.kernel", "full name of the kernel"),
            ("kernel_short", "text", "k.kernel_short", "its name without types and parameters"),
            ("launches", "int", "t.launches", "how many"),
            ("timed", "int", "t.timed", "how many of them have a duration"),
            ("total_ns", "float", "t.total_ns", "sum of the durations; null if there are none"),
            ("mean_ns", "float", "t.total_ns / t.timed", "mean of those that have a duration"),
            ("min_ns", "float", "t.min_ns", "shortest"),
            ("p50_ns", "float", "t.p50_ns", "median duration"),
            ("p95_ns", "float", "t.p95_ns", "duration that 95 % of them do not exceed"),
            ("max_ns", "float", "t.max_ns", "longest"),
            ("same_as", "int", "u.same_as", "upload that holds the same launches, as another page of one report"),
        ),
    ),
    "v1_counters": Shape(
        "The canonical counters of a launch: a column each, null where the export does not give it.",
        LAUNCHES,
        (
            ("launch_id", "int", "l.launch_id", "the launch"),
            ("run_id", "int", "u.run_id", "its run"),
            ("kernel_short", "text", "k.kernel_short", "its kernel's name without types and parameters"),
        ),
    ),
    "v1_counter_values": Shape(
        "A counter of a launch with the expression over the tool's metrics that it was computed by.",
        f"{LAUNCHES} JOIN counters c ON c.launch_id = l.launch_id",
        (
            ("launch_id", "int", "l.launch_id", "the launch"),
            ("run_id", "int", "u.run_id", "its run"),
            ("kernel_short", "text", "k.kernel_short", "its kernel's name without types and parameters"),
            ("counter", "text", text_of("c.counter_id"), "name of the counter"),
            ("value", "float", "c.value", "its value, in the unit of its name"),
            ("expression", "text", text_of("c.expression_id"), "what it was computed by; @name is another counter"),
            ("reason", "text", text_of("c.reason_id"), "why it is null"),
        ),
    ),
    "v1_metrics": Shape(
        "A value under the tool's own name, as it came and as a number.",
        f"uploads u JOIN metrics m ON m.launch_ref / {STEP} = u.upload_id AND m.launch_ref {RANGE}"
        " JOIN metric_names n ON n.metric_id = m.metric_id JOIN unit_names i ON i.unit_id = m.unit_id"
        " LEFT JOIN launches l ON l.launch_id = m.launch_ref LEFT JOIN shapes h ON h.shape_id = l.shape_id"
        " LEFT JOIN kernels k ON k.kernel_id = coalesce(h.kernel_id, m.kernel_id)",
        (
            ("run_id", "int", "u.run_id", "its run"),
            ("upload_id", "int", "u.upload_id", "the file it came in"),
            ("launch_id", "int", "l.launch_id", "its launch; null for a value of the whole file or of a kernel"),
            ("kernel", "text", "k.kernel", "full name of the kernel; null for a value of the whole file"),
            ("kernel_short", "text", "k.kernel_short", "its name without types and parameters"),
            ("section", "text", "NULLIF(n.section, '')", "section of the page, where the tool prints one"),
            ("metric", "text", "n.metric", "the tool's own name of the metric"),
            (
                "statistic",
                "text",
                "NULLIF(n.statistic, '')",
                "avg, min, max or sum over the launches of a kernel; null for the only value",
            ),
            ("invocations", "int", "m.invocations", "how many launches a value of a kernel is over"),
            ("raw_text", "text", "m.raw_text", "the cell as it came"),
            ("unit", "text", "NULLIF(i.unit, '')", "the unit as it came"),
            ("value", "float", "m.value", "the number in si_unit; null if the cell is not a number"),
            ("si_unit", "text", "NULLIF(i.si_unit, '')", "unit of value"),
            ("reason", "text", "m.reason", "why value is null"),
            ("line", "int", "m.line", "line of the cell in the file, from 1"),
        ),
        (
            (
                WIDE.format(table="wide_constants", each="", launch=" AND l.launch_id < b.first_launch + b.launches"),
                _OF_WIDE
                | {
                    "raw_text": "w.raw_text",
                    "value": "w.value",
                    "si_unit": "CASE WHEN w.reason IS NULL THEN NULLIF(i.si_unit, '') END",
                    "reason": "w.reason",
                },
            ),
            (
                WIDE.format(
                    table="wide_cells",
                    each=" JOIN wide_lists t ON t.list_id = w.list_id"
                    " JOIN {cells} ON e.value <> '' AND l.launch_id = b.first_launch + e.key",
                    launch="",
                ),
                _OF_WIDE
                | {
                    "raw_text": f"CAST({RAW_TEXT.format(ending='t.ending', **_CELL)} AS TEXT)",
                    "value": f"CAST({VALUE.format(factor='c.factor', **_CELL)} AS DOUBLE PRECISION)",
                    "reason": "CAST(NULL AS TEXT)",
                },
            ),
        ),
    ),
    "v1_rules": Shape(
        "What the tool itself advised on a launch.",
        f"{LAUNCHES} JOIN rules g ON g.launch_id = l.launch_id",
        (
            ("launch_id", "int", "g.launch_id", "the launch"),
            ("run_id", "int", "u.run_id", "its run"),
            ("kernel", "text", "k.kernel", "full name of its kernel"),
            ("kernel_short", "text", "k.kernel_short", "its name without types and parameters"),
            ("section", "text", text_of("g.section_id"), "section of the page"),
            ("rule", "text", text_of("g.rule_id"), "the tool's name of the rule"),
            ("rule_type", "text", text_of("g.rule_type_id"), "OPT, WRN or INF as printed"),
            ("kind", "text", text_of("g.kind_id"), "global: share of run time saved; local: of a unit's inefficiency"),
            ("estimated_saving_fraction", "float", "g.estimated_saving_fraction", "the estimate divided by 100"),
            ("estimated_speedup", "float", "g.estimated_speedup", "1 / (1 - saving) for kind global, else null"),
            ("message", "text", "g.message", "the rule's words"),
            ("line", "int", "g.line", "line in the file, from 1"),
        ),
    ),
}

# Counters that the columns of a launch give by themselves, so that a launch without metrics needs no rows of its own.
# Doubles throughout: a product of whole numbers may overflow. Where the tool says whose device it is, a warp is known.
_NVIDIA = "CASE WHEN u.format LIKE 'nvprof%' OR u.format LIKE 'nsys%' THEN {} END"
_OWN = {
    **{
        name: f"1.0 * {{{name}}}"
        for name in (
            *("duration_ns", "grid_x", "grid_y", "grid_z", "block_x", "block_y", "block_z"),
            *("registers_per_thread", "shared_mem_static_bytes", "shared_mem_dynamic_bytes"),
        )
    },
    "duration_s": "{duration_ns} * 1e-9",
    "grid_blocks": "1.0 * {grid_x} * {grid_y} * {grid_z}",
    "block_threads": "1.0 * {block_x} * {block_y} * {block_z}",
    "grid_threads": "1.0 * {grid_x} * {grid_y} * {grid_z} * {block_x} * {block_y} * {block_z}",
    "warp_size": _NVIDIA.format("32.0"),
    # ceil(x / 32) for whole x; SQLite may have been built without ceil.
    "warps_per_block": _NVIDIA.format("round((2.0 * {block_x} * {block_y} * {block_z} + 31.0) / 64.0)"),
}
_LAUNCH = {name: sql for name, _, sql, _ in SHAPES["v1_launches"].columns}
OWN_COUNTERS = {counter: sql.format(**_LAUNCH) for counter, sql in _OWN.items()}
"""SQL of the counters that need no metric, over the FROM clause of ``v1_counters``."""
