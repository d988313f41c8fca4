"""The views of launches and of what was measured of each: a launch once, however many files tell of it.

``uploads.same_as`` marks the files whose launches are all in another file, which stands for them; ``twins`` says which
launch is which, and ``uploads.repeats`` what a file tells again. The views that end in ``_all`` have every file's own.
"""

from profsvc.store.schema import STEP
from profsvc.store.shapes import RANGE, Shape, of_every_file, text_of, told_once
from profsvc.store.wide import LINE, MOST_LAUNCHES, RAW_TEXT, VALUE

# Left joins, so that a query pays only for the tables whose columns it names.
_NAMES = " LEFT JOIN shapes h ON h.shape_id = l.shape_id LEFT JOIN kernels k ON k.kernel_id = h.kernel_id"
_FILE = f"JOIN uploads u ON u.upload_id = l.launch_id / {STEP} AND l.launch_id {RANGE}"
EVERY = f"launches l LEFT {_FILE}{_NAMES}"
"""Launches as every file has them."""
ONCE = f"launches l {_FILE} AND u.same_as IS NULL{_NAMES}"
"""Launches once each."""


# A block has few launches, so the one of a launch lies in a short range of keys. The launch stands first and the names
# last: Postgres looks for the best order among the first eight tables only.
_WIDE = (
    "{launches} JOIN wide_blocks b"
    f" ON b.first_launch BETWEEN l.launch_id - {MOST_LAUNCHES - 1} AND l.launch_id{{launch}}"
    f" JOIN uploads u ON u.upload_id = b.first_launch / {STEP} AND b.first_launch {RANGE}{{files}}"
    " JOIN wide_columns c ON c.layout_id = b.layout_id"
    " JOIN {table} w ON w.cell_id = b.first_cell + c.place{each}"
    " JOIN metric_names n ON n.metric_id = c.metric_id JOIN unit_names i ON i.unit_id = c.unit_id"
    "{shown} JOIN kernels k ON k.kernel_id = h.kernel_id"
)
_CELL = {"text": "e.value", "point": "{point}"}
# SQLite takes the conditions of a query, and of a join, into a union only where the types of its columns agree.
_OF_WIDE = {"statistic": "NULL", "invocations": "CAST(NULL AS BIGINT)", "line": LINE}
# Whose metrics and rules: those of every file; of files that stand for themselves; of launches that another file has.
_ITSELF = ("launches l", " JOIN shapes h ON h.shape_id = l.shape_id")
_TWINS = "twins o JOIN launches l ON l.launch_id = o.launch_id"
_FIRST = " JOIN launches f ON f.launch_id = o.first_id JOIN shapes h ON h.shape_id = f.shape_id"
_STANDS = f" AND u.same_as IS NULL AND {told_once('metrics')}"
_STANDS_NOT = f" AND u.same_as IS NOT NULL AND {told_once('metrics')}"
_METRICS = (
    f"uploads u JOIN metrics m ON m.launch_ref / {STEP} = u.upload_id AND m.launch_ref {RANGE}{{files}}"
    " JOIN metric_names n ON n.metric_id = m.metric_id JOIN unit_names i ON i.unit_id = m.unit_id"
    " LEFT JOIN {launches} LEFT JOIN shapes h ON h.shape_id = l.shape_id"
    " LEFT JOIN kernels k ON k.kernel_id = coalesce(h.kernel_id, m.kernel_id)"
)


def _wide(files: str, launches: str, shown: str, launch_id: str) -> tuple[tuple[str, dict[str, str]], ...]:
    """Return the sources of the metrics that are kept column by column."""
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
                "raw_text": f"CAST({RAW_TEXT.format(ending='t.ending', **_CELL)} AS TEXT)",
                "value": f"CAST({VALUE.format(factor='c.factor', **_CELL)} AS DOUBLE PRECISION)",
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
# A page that prints no more than the compute capability is about the device of its run that has it.
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

SHAPES: dict[str, Shape] = {
    "v1_launches": Shape(
        "One execution of a kernel.",
        f"{ONCE}{_PLACED}",
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
            ("device", "text", _DEVICE, "product name of the device; null if not known"),
            (
                "compute_capability",
                "text",
                _CAPABILITY,
                "of the device; null if not known",
            ),
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
            ("sources", "int", _TOLD_BY, "how many files tell of it; v1_launches_all has them"),
            ("same_as", "int", "CAST(NULL AS BIGINT)", "null; in v1_launches_all the launch that stands for it"),
        ),
    ),
    "v1_kernel_totals": Shape(
        "All launches of a kernel in a file, summed up when the file was stored.",
        _TOTALS.format(" AND u.same_as IS NULL"),
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
            ("same_as", "int", "u.same_as", "null; in v1_kernel_totals_all the file that stands for this one"),
        ),
    ),
    "v1_counters": Shape(
        "The canonical counters of a launch: a column each, null where the export does not give it.",
        ONCE,
        (
            ("launch_id", "int", "l.launch_id", "the launch"),
            ("run_id", "int", "u.run_id", "its run"),
            ("kernel_short", "text", "k.kernel_short", "its kernel's name without types and parameters"),
        ),
    ),
    "v1_counter_values": Shape(
        "A counter of a launch with the expression over the tool's metrics that it was computed by.",
        f"{ONCE} JOIN counters c ON c.launch_id = l.launch_id",
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
        _METRICS.format(files=_STANDS, launches="launches l ON l.launch_id = m.launch_ref"),
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
    "v1_rules": Shape(
        "What the tool itself advised on a launch.",
        f"{ONCE}{_RULES}l.launch_id",
        (
            ("launch_id", "int", "l.launch_id", "the launch"),
            ("run_id", "int", "u.run_id", "its run"),
            ("tool", "text", "u.tool", "tool whose rule it is"),
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
        (
            (
                f"twins o{_RULES}o.launch_id JOIN uploads v ON v.upload_id = o.launch_id / {STEP}"
                f" AND {told_once('rules', 'v')} JOIN launches l ON l.launch_id = o.first_id {_FILE}{_NAMES}",
                {"tool": "v.tool"},
            ),
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

SHAPES |= {
    "v1_launches_all": of_every_file(
        SHAPES["v1_launches"],
        f"{EVERY}{_PLACED}",
        same_as=_FIRST_ID,
        device=_OWN_DEVICE,
        compute_capability="NULLIF(d.compute_capability, '')",
    ),
    "v1_kernel_totals_all": of_every_file(SHAPES["v1_kernel_totals"], _TOTALS.format("")),
    "v1_counters_all": of_every_file(SHAPES["v1_counters"], EVERY),
    "v1_counter_values_all": of_every_file(
        SHAPES["v1_counter_values"], f"{EVERY} JOIN counters c ON c.launch_id = l.launch_id"
    ),
    "v1_metrics_all": of_every_file(
        SHAPES["v1_metrics"], _METRICS.format(files="", launches="launches l ON l.launch_id = m.launch_ref")
    )._replace(others=_wide("", *_ITSELF, "l.launch_id")),
    "v1_rules_all": of_every_file(SHAPES["v1_rules"], f"{EVERY}{_RULES}l.launch_id"),
}
