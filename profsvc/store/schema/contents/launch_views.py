"""The views of launches, their counters, metrics and rules; a launch that several files contain appears once.

``uploads.same_as`` marks a file whose launches are all in another file, which represents them. ``twins`` maps its
launches to those of that file, and ``uploads.repeats`` lists what the file repeats. The views that end in ``_all`` show
the rows of every file.
"""

from profsvc.store.schema.column_types import IDS_PER_UPLOAD
from profsvc.store.schema.contents.wide_metrics import LINE_SQL, MAX_BLOCK_LAUNCHES, RAW_TEXT_SQL, VALUE_SQL
from profsvc.store.schema.view_definition import (
    UPLOAD_ID_RANGE_SQL,
    ViewDefinition,
    counted_once,
    for_every_file,
    text_of,
    view_columns,
)

# Left joins: a query only pays for the tables whose columns it names.
_NAMES = " LEFT JOIN shapes h ON h.shape_id = l.shape_id LEFT JOIN kernels k ON k.kernel_id = h.kernel_id"
_FILE = f"JOIN uploads u ON u.upload_id = l.launch_id / {IDS_PER_UPLOAD} AND l.launch_id {UPLOAD_ID_RANGE_SQL}"
EVERY = f"launches l LEFT {_FILE}{_NAMES}"
"""Launches of every file."""
ONCE = f"launches l {_FILE} AND u.same_as IS NULL{_NAMES}"
"""Launches, each once."""
COUNTERS_ONCE = (
    "v1_counters_all a WHERE a.run_id IS NOT NULL AND NOT EXISTS (SELECT 1 FROM uploads f"
    f" WHERE f.upload_id = a.launch_id / {IDS_PER_UPLOAD} AND f.same_as IS NOT NULL)"
)
"""The rows of ``v1_counters_all`` whose launches are those of `ONCE`."""


# A block has few launches, so the block of a launch is in a short range of keys. The launch comes first and the names
# last, because Postgres only optimizes the order of the first eight tables.
_WIDE = (
    "{launches} JOIN wide_blocks b"
    f" ON b.first_launch BETWEEN l.launch_id - {MAX_BLOCK_LAUNCHES - 1} AND l.launch_id{{launch}}"
    f" JOIN uploads u ON u.upload_id = b.first_launch / {IDS_PER_UPLOAD}"
    f" AND b.first_launch {UPLOAD_ID_RANGE_SQL}{{files}}"
    " JOIN wide_columns c ON c.layout_id = b.layout_id"
    " JOIN {table} w ON w.cell_id = b.first_cell + c.place{each}"
    " JOIN metric_names n ON n.metric_id = c.metric_id JOIN unit_names i ON i.unit_id = c.unit_id"
    "{shown} JOIN kernels k ON k.kernel_id = h.kernel_id"
)
_CELL = {"text": "e.value", "point": "{point}"}
# SQLite only pushes conditions into a union if the types of its columns agree.
_OF_WIDE = {"statistic": "NULL", "invocations": "CAST(NULL AS BIGINT)", "line": LINE_SQL}
# Sources of metrics and rules: every file; files that represent themselves; launches that another file represents.
_ITSELF = ("launches l", " JOIN shapes h ON h.shape_id = l.shape_id")
_TWINS = "twins o JOIN launches l ON l.launch_id = o.launch_id"
_FIRST = " JOIN launches f ON f.launch_id = o.first_id JOIN shapes h ON h.shape_id = f.shape_id"
_STANDS = f" AND u.same_as IS NULL AND {counted_once('metrics')}"
_STANDS_NOT = f" AND u.same_as IS NOT NULL AND {counted_once('metrics')}"
_METRICS = (
    f"uploads u JOIN metrics m ON m.launch_ref / {IDS_PER_UPLOAD} = u.upload_id"
    f" AND m.launch_ref {UPLOAD_ID_RANGE_SQL}{{files}}"
    " JOIN metric_names n ON n.metric_id = m.metric_id JOIN unit_names i ON i.unit_id = m.unit_id"
    " LEFT JOIN {launches} LEFT JOIN shapes h ON h.shape_id = l.shape_id"
    " LEFT JOIN kernels k ON k.kernel_id = coalesce(h.kernel_id, m.kernel_id)"
)


def _wide(files: str, launches: str, shown: str, launch_id: str) -> tuple[tuple[str, dict[str, str]], ...]:
    """Return the sources of the metrics with columnar storage."""
    own = _OF_WIDE | {"launch_id": launch_id}
    parts = {"files": files, "launches": launches, "shown": shown}
    constants = _WIDE.format(
        **parts, table="wide_constants", each="", launch=" AND l.launch_id < b.first_launch + b.launches"
    )
    cells = _WIDE.format(
        **parts, table="wide_cells", launch="",
        each=" JOIN wide_lists t ON t.list_id = w.list_id"
        " JOIN {cells} ON e.value <> '' AND l.launch_id = b.first_launch + e.key",
    )  # fmt: skip
    return (
        (
            constants,
            own
            | {
                "raw_text": "w.raw_text",
                "value": "w.value",
                "si_unit": "CASE WHEN w.reason IS NULL THEN NULLIF(i.si_unit, '') END",
                "reason": "w.reason",
            },
        ),
        (
            cells,
            own
            | {
                "raw_text": f"CAST({RAW_TEXT_SQL.format(ending='t.ending', **_CELL)} AS TEXT)",
                "value": f"CAST({VALUE_SQL.format(factor='c.factor', **_CELL)} AS DOUBLE PRECISION)",
                "reason": "CAST(NULL AS TEXT)",
            },
        ),
    )


_TOLD_BY = "(SELECT count(*) + 1 FROM twins o WHERE o.first_id = l.launch_id)"
_FIRST_ID = "(SELECT o.first_id FROM twins o WHERE o.launch_id = l.launch_id)"
_OF_TWIN = (
    "(SELECT max(NULLIF(e.{column}, '')) FROM twins o JOIN launches x ON x.launch_id = o.launch_id"
    " JOIN places y ON y.place_id = x.place_id JOIN devices e ON e.device_id = y.device_id"
    " WHERE o.first_id = l.launch_id)"
)
# A page that only prints the compute capability belongs to the device of the run with that capability.
_OF_RUN = (
    "(SELECT NULLIF(e.name, '') FROM runs q JOIN devices e ON e.device_id = q.device_id"
    " WHERE q.run_id = u.run_id AND e.compute_capability = d.compute_capability)"
)
_OWN_DEVICE = f"coalesce(NULLIF(d.name, ''), {_OF_RUN})"
_DEVICE = f"coalesce(NULLIF(d.name, ''), {_OF_TWIN.format(column='name')}, {_OF_RUN})"
_CAPABILITY = f"coalesce(NULLIF(d.compute_capability, ''), {_OF_TWIN.format(column='compute_capability')})"
_PLACED = " LEFT JOIN places a ON a.place_id = l.place_id LEFT JOIN devices d ON d.device_id = a.device_id"
_TOTALS = (
    "uploads u JOIN runs r ON r.run_id = u.run_id{} JOIN kernel_totals t ON t.upload_id = u.upload_id"
    " JOIN kernels k ON k.kernel_id = t.kernel_id"
)
_RULES = " JOIN rules g ON g.launch_id = "

VIEW_DEFINITIONS: dict[str, ViewDefinition] = {
    "v1_launches": ViewDefinition(
        "Kernel launches.",
        f"{ONCE}{_PLACED}",
        view_columns(
            "l",
            "launch_id | int | launch number",
            "run_id | int | u.run_id | run number",
            "upload_id | int | u.upload_id | upload number",
            f"launch_index | int | l.launch_id - u.upload_id * {IDS_PER_UPLOAD} - 1 | ordinal in the file, from 0",
            "source_id | text | ID printed by the tool",
            "correlation_id | int | number that joins the launch to its API call in v1_api_calls",
            "kernel_id | int | h.kernel_id | kernel number",
            "kernel | text | k.kernel | full name of the kernel",
            "kernel_short | text | k.kernel_short | kernel name without types and parameters",
            "device_id | int | a.device_id | device number",
            f"device | text | {_DEVICE} | product name of the device; null if unknown",
            f"compute_capability | text | {_CAPABILITY} | compute capability of the device; null if unknown",
            "device_index | int | a.device_index | device ordinal as printed",
            "tool | text | u.tool | tool that wrote the file",
            f"host | text | {text_of('a.host_id')} | host as printed",
            "process_id | int | a.process_id | process that launched it",
            f"process_name | text | {text_of('a.process_name_id')} | name of that process",
            "context | int | a.context | CUDA context",
            "stream | int | a.stream | CUDA stream",
            "start_ns | int | start on the device clock",
            "duration_ns | float | execution time; null if the export lacks it",
            "grid_x | int | grid size in blocks, x",
            "grid_y | int | grid size in blocks, y",
            "grid_z | int | grid size in blocks, z",
            "block_x | int | h.block_x | block size in threads, x",
            "block_y | int | h.block_y | block size in threads, y",
            "block_z | int | h.block_z | block size in threads, z",
            (
                "registers_per_thread | int | h.registers_per_thread | registers per thread; null if the export "
                "gives them as a counter"
            ),
            (
                "shared_mem_static_bytes | int | h.shared_mem_static_bytes | static shared memory per block; null "
                "if the export gives it as a counter"
            ),
            (
                "shared_mem_dynamic_bytes | int | dynamic shared memory per block; null if the export gives it as a "
                "counter"
            ),
            "line | int | first line of the launch in the file, from 1",
            (
                f"sources | int | {_TOLD_BY} | number of files that contain the launch; v1_launches_all has one row "
                "per file"
            ),
            "same_as | int | CAST(NULL AS BIGINT) | null; in v1_launches_all the launch that represents it",
        ),
    ),
    "v1_kernel_totals": ViewDefinition(
        "Totals per kernel and file, computed when the file was stored.",
        _TOTALS.format(" AND u.same_as IS NULL"),
        view_columns(
            "t",
            "run_id | int | u.run_id | run number",
            "upload_id | int | u.upload_id | upload number",
            "project | text | r.project | project of the run",
            "run | text | r.name | name of the run",
            "commit_id | text | r.commit_id | commit of the program",
            "started_at | text | r.started_at | start of the run, UTC, ISO 8601",
            "received_at | text | u.received_at | time of the upload, UTC, ISO 8601",
            "kernel_id | int | kernel number",
            "kernel | text | k.kernel | full name of the kernel",
            "kernel_short | text | k.kernel_short | kernel name without types and parameters",
            "launches | int | number of launches",
            "timed | int | number of launches with a duration",
            "total_ns | float | sum of the durations; null if there are none",
            "mean_ns | float | t.total_ns / t.timed | mean duration of the launches with a duration",
            "min_ns | float | shortest duration",
            "p50_ns | float | median duration",
            "p95_ns | float | 95th percentile of the durations",
            "max_ns | float | longest duration",
            "same_as | int | u.same_as | null; in v1_kernel_totals_all the file that represents this one",
        ),
    ),
    "v1_counters": ViewDefinition(
        "Canonical counters of launches, one column per counter; null if the export lacks it.",
        ONCE,
        view_columns(
            "l",
            "launch_id | int | launch number",
            "run_id | int | u.run_id | run number",
            "kernel_short | text | k.kernel_short | kernel name without types and parameters",
        ),
    ),
    "v1_counter_values": ViewDefinition(
        "Counters of launches, each with its expression over the tool's metrics.",
        f"{ONCE} JOIN counters c ON c.launch_id = l.launch_id",
        view_columns(
            "l",
            "launch_id | int | launch number",
            "run_id | int | u.run_id | run number",
            "kernel_short | text | k.kernel_short | kernel name without types and parameters",
            f"counter | text | {text_of('c.counter_id')} | name of the counter",
            "value | float | c.value | value, in the unit given in the name",
            f"expression | text | {text_of('c.expression_id')} | expression that computed it; @name is another counter",
            f"reason | text | {text_of('c.reason_id')} | reason for a null value",
        ),
    ),
    "v1_metrics": ViewDefinition(
        "Metrics under the tool's own names, as printed and as numbers.",
        _METRICS.format(files=_STANDS, launches="launches l ON l.launch_id = m.launch_ref"),
        view_columns(
            "m",
            "run_id | int | u.run_id | run number",
            "upload_id | int | u.upload_id | upload number",
            "launch_id | int | l.launch_id | launch number; null for a value of the whole file or of a kernel",
            "kernel | text | k.kernel | full name of the kernel; null for a value of the whole file",
            "kernel_short | text | k.kernel_short | kernel name without types and parameters",
            "section | text | NULLIF(n.section, '') | section of the page; null if the tool prints none",
            "metric | text | n.metric | name of the metric in the tool",
            (
                "statistic | text | NULLIF(n.statistic, '') | avg, min, max or sum over the launches of a kernel; "
                "null for a single value"
            ),
            "invocations | int | number of launches summarized by a value of a kernel",
            "raw_text | text | cell as printed",
            "unit | text | NULLIF(i.unit, '') | unit as printed",
            "value | float | number in si_unit; null if the cell is not a number",
            "si_unit | text | NULLIF(i.si_unit, '') | unit of value",
            "reason | text | reason for a null value",
            "line | int | line of the cell in the file, from 1",
        ),
        (
            (
                _METRICS.format(
                    files=_STANDS_NOT,
                    launches="twins o ON o.launch_id = m.launch_ref LEFT JOIN launches l ON l.launch_id = o.first_id",
                ),
                {"launch_id": "o.first_id"},
            ),
            *_wide(_STANDS, *_ITSELF, "l.launch_id"),
            *_wide(_STANDS_NOT, _TWINS, _FIRST, "o.first_id"),
        ),
    ),
    "v1_rules": ViewDefinition(
        "Advice of the tool on launches.",
        f"{ONCE}{_RULES}l.launch_id",
        view_columns(
            "g",
            "launch_id | int | l.launch_id | launch number",
            "run_id | int | u.run_id | run number",
            "tool | text | u.tool | tool that printed the rule",
            "kernel | text | k.kernel | full name of the kernel",
            "kernel_short | text | k.kernel_short | kernel name without types and parameters",
            f"section | text | {text_of('g.section_id')} | section of the page",
            f"rule | text | {text_of('g.rule_id')} | name of the rule in the tool",
            f"rule_type | text | {text_of('g.rule_type_id')} | OPT, WRN or INF as printed",
            (
                f"kind | text | {text_of('g.kind_id')} | global: share of the run time; local: share of the "
                "inefficiency of a unit"
            ),
            "estimated_saving_fraction | float | estimated saving as a fraction",
            "estimated_speedup | float | 1 / (1 - saving) for kind global, else null",
            "message | text | message of the rule",
            (
                "focus_metrics | text | metrics that the rule names, as JSON: name, value, severity, and info: what to "
                "do with it; null if it names none or the file is not a report"
            ),
            "line | int | line in the file, from 1",
        ),
        (
            (
                f"twins o{_RULES}o.launch_id JOIN uploads v ON v.upload_id = o.launch_id / {IDS_PER_UPLOAD}"
                f" AND {counted_once('rules', 'v')} JOIN launches l ON l.launch_id = o.first_id {_FILE}{_NAMES}",
                {"tool": "v.tool"},
            ),
        ),
    ),
}


# Counters that follow from the columns of a launch, so that a launch without metrics needs no counter rows.
# Doubles throughout, because a product of integers may overflow. The warp size is known if the tool names the vendor.
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
    # ceil(x / 32) for integer x; SQLite may have been built without ceil.
    "warps_per_block": _NVIDIA.format("round((2.0 * {block_x} * {block_y} * {block_z} + 31.0) / 64.0)"),
}
_LAUNCH = {name: sql for name, _, sql, _ in VIEW_DEFINITIONS["v1_launches"].columns}
OWN_COUNTERS = {counter: sql.format(**_LAUNCH) for counter, sql in _OWN.items()}
"""SQL of the counters that need no metric, over the FROM clause of ``v1_counters``."""

VIEW_DEFINITIONS |= {
    "v1_launches_all": for_every_file(
        VIEW_DEFINITIONS["v1_launches"],
        f"{EVERY}{_PLACED}",
        same_as=_FIRST_ID,
        device=_OWN_DEVICE,
        compute_capability="NULLIF(d.compute_capability, '')",
    ),
    "v1_kernel_totals_all": for_every_file(VIEW_DEFINITIONS["v1_kernel_totals"], _TOTALS.format("")),
    "v1_counters_all": for_every_file(VIEW_DEFINITIONS["v1_counters"], EVERY),
    "v1_counter_values_all": for_every_file(
        VIEW_DEFINITIONS["v1_counter_values"], f"{EVERY} JOIN counters c ON c.launch_id = l.launch_id"
    ),
    "v1_metrics_all": for_every_file(
        VIEW_DEFINITIONS["v1_metrics"], _METRICS.format(files="", launches="launches l ON l.launch_id = m.launch_ref")
    )._replace(others=_wide("", *_ITSELF, "l.launch_id")),
    "v1_rules_all": for_every_file(VIEW_DEFINITIONS["v1_rules"], f"{EVERY}{_RULES}l.launch_id"),
}
