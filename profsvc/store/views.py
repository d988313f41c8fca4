"""The SQL views: the stable, documented surface of the store. Their names and columns are a contract.

A view is a sentence, a FROM clause and a row a column: name, kind (int, float, text), SQL, meaning. From these come
the view itself, its documentation (`VIEWS`) and the types of what `profsvc.store.read` returns (`KINDS`).

The joins look redundant and are not: a range beside an equality lets both databases walk from an upload to its
launches and from a launch to its upload by primary keys. A ``LEFT JOIN`` whose column the view shows becomes a plain
join, and so a look-up, as soon as a query asks for one value of it.
"""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from profsvc.errors import DomainError
from profsvc.store.schema import LAUNCHES, WHOLE

FLAGS = (
    "ZERO_DENOM",
    "NOT_APPLICABLE",
    "RAW_OUT_OF_RANGE",
    "CLIPPED",
    "EXTRAPOLATED",
    "INPUT_SUSPECT",
    "UPPER_BOUND",
    "TAIL_EFFECT",
    "CASE_AMBIGUOUS",
    "OVERLAP",
)

# The one place where the SQL of the views differs: key-value pairs as a JSON object in text.
JSON_OBJECT = {
    "sqlite": "json_group_object(t.key, t.value)",
    "postgresql": "CAST(coalesce(json_object_agg(t.key, t.value), CAST('{}' AS json)) AS text)",
}


class Shape(NamedTuple):
    """A view as it is written here: what it is, where its rows come from, and its columns."""

    sentence: str
    source: str
    columns: tuple[tuple[str, str, str, str], ...]


def _text(ref: str) -> str:
    """SQL for the text that ``ref`` numbers."""
    return f"(SELECT x.text FROM texts x WHERE x.text_id = {ref})"


_FLAG_NAMES = "rtrim({})".format(
    " || ".join(f"CASE WHEN c.flags & {1 << bit} <> 0 THEN '{name} ' ELSE '' END" for bit, name in enumerate(FLAGS))
)
_RANGE = f"BETWEEN u.upload_id * {LAUNCHES} AND u.upload_id * {LAUNCHES} + {LAUNCHES - 1}"
_LAUNCHES = (
    f"uploads u JOIN launches l ON l.upload_id = u.upload_id AND l.launch_id {_RANGE}"
    " JOIN kernels k ON k.kernel_id = l.kernel_id"
)
_SUBJECT = (
    " LEFT JOIN launches l ON l.launch_id = c.launch_id AND l.run_id = c.run_id"
    f" LEFT JOIN kernels k ON k.kernel_id = CASE c.kernel_id WHEN {WHOLE} THEN l.kernel_id ELSE c.kernel_id END"
)
_RUN = ("run_id", "int", "c.run_id", "the run")
_SUBJECT_COLUMNS = (
    ("launch_id", "int", "l.launch_id", "the launch; null for the whole run or for all launches of a kernel"),
    ("kernel", "text", "k.kernel", "full name of the kernel; null for the whole run"),
    ("kernel_short", "text", "k.kernel_short", "its name without types and parameters"),
)
_JUDGED = (
    ("flags", "text", _FLAG_NAMES, f"what to beware of, names with a space between: {' '.join(FLAGS)}"),
    ("reason", "text", _text("c.reason_id"), "why a value is null"),
    ("analysis_version", "text", _text("c.version_id"), "version of the analysis that computed the row"),
)


def _results(sentence: str, table: str, own: Iterable[tuple[str, str, str, str]], joins: str = "") -> dict[str, Shape]:
    """Make the pair of views of a table of results: the rows of the newest analysis, and those of every one."""
    source = f"runs r JOIN {table} c ON c.run_id = r.run_id{{newest}}{_SUBJECT}{joins}"
    columns = (_RUN, *_SUBJECT_COLUMNS, *own, *_JUDGED)
    current = (
        "is_current",
        "int",
        "CASE WHEN c.version_id = r.version_id THEN 1 ELSE 0 END",
        "1 for the newest analysis",
    )
    return {
        f"v1_{table}": Shape(sentence, source.format(newest=" AND c.version_id = r.version_id"), columns),
        f"v1_{table}_history": Shape(
            f"The rows of v1_{table} as every version of the analysis computed them.",
            source.format(newest=""),
            (*columns, current),
        ),
    }


_SHAPES: dict[str, Shape] = {
    "v1_runs": Shape(
        "An execution of a program, or a campaign of measurements, on a device.",
        "runs r LEFT JOIN devices d ON d.device_id = r.device_id",
        (
            ("run_id", "int", "r.run_id", "the run's number"),
            ("project", "text", "r.project", "project it belongs to"),
            ("name", "text", "r.name", "its name, unique in the project"),
            ("device", "text", "NULLIF(d.name, '')", "product name of the device, as given or as the export says"),
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
            ("analysis_version", "text", _text("r.version_id"), "newest analysis of it; null before the first"),
        ),
    ),
    "v1_uploads": Shape(
        "A file as it was uploaded, known by the SHA-256 of its bytes.",
        "uploads u",
        tuple(
            (name, kind, f"u.{name}", meaning)
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
                ("same_as", "int", "upload of the run that holds the same launches, as another page of one report"),
                ("gpu_time_ns", "float", "sum of their durations; null if it has none"),
                ("message", "text", "a sentence about the whole file"),
                ("facts", "text", "what else the reader found out, as a JSON object of texts"),
                ("received_at", "text", "when it was stored, UTC, ISO 8601"),
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
            ("lines", "int", "j.lines", "how many lines it spans"),
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
        f"{_LAUNCHES} LEFT JOIN devices d ON d.device_id = l.device_id",
        (
            ("launch_id", "int", "l.launch_id", "the launch's number"),
            ("run_id", "int", "u.run_id", "its run"),
            ("upload_id", "int", "u.upload_id", "the file it came in"),
            ("launch_index", "int", "l.launch_index", "its ordinal in the file, from 0"),
            ("source_id", "text", "l.source_id", "the ID the tool printed for it"),
            ("kernel_id", "int", "l.kernel_id", "its kernel's number"),
            ("kernel", "text", "k.kernel", "full name of its kernel"),
            ("kernel_short", "text", "k.kernel_short", "its name without types and parameters"),
            ("device_id", "int", "l.device_id", "its device's number"),
            ("device", "text", "NULLIF(d.name, '')", "product name of the device; null if not known"),
            ("compute_capability", "text", "NULLIF(d.compute_capability, '')", "of the device; null if not known"),
            ("device_index", "int", "l.device_index", "device ordinal as printed"),
            ("tool", "text", "u.tool", "tool that wrote the file"),
            ("host", "text", _text("l.host_id"), "host as printed"),
            ("process_id", "int", "l.process_id", "process that launched it"),
            ("process_name", "text", _text("l.process_name_id"), "name of that process"),
            ("context", "int", "l.context", "CUDA context"),
            ("stream", "int", "l.stream", "CUDA stream"),
            ("start_ns", "int", "l.start_ns", "start on the device clock"),
            ("duration_ns", "float", "l.duration_ns", "execution time; null if the export does not hold it"),
            ("grid_x", "int", "l.grid_x", "blocks"),
            ("grid_y", "int", "l.grid_y", "blocks"),
            ("grid_z", "int", "l.grid_z", "blocks"),
            ("block_x", "int", "l.block_x", "threads"),
            ("block_y", "int", "l.block_y", "threads"),
            ("block_z", "int", "l.block_z", "threads"),
            ("line", "int", "l.line", "first line of the launch in the file, from 1"),
            (
                "same_as",
                "int",
                f"u.same_as * {LAUNCHES} + l.launch_index + 1",
                "the same launch in another page of the same report, uploaded before; null for the first",
            ),
        ),
    ),
    "v1_counters": Shape(
        "The canonical counters of a launch: a column each, null where the export does not give it.",
        _LAUNCHES,
        (
            ("launch_id", "int", "l.launch_id", "the launch"),
            ("run_id", "int", "u.run_id", "its run"),
            ("kernel_short", "text", "k.kernel_short", "its kernel's name without types and parameters"),
        ),
    ),
    "v1_counter_values": Shape(
        "A counter of a launch with the expression over the tool's metrics that it was computed by.",
        f"{_LAUNCHES} JOIN counters c ON c.launch_id = l.launch_id",
        (
            ("launch_id", "int", "l.launch_id", "the launch"),
            ("run_id", "int", "u.run_id", "its run"),
            ("kernel_short", "text", "k.kernel_short", "its kernel's name without types and parameters"),
            ("counter", "text", _text("c.counter_id"), "name of the counter"),
            ("value", "float", "c.value", "its value, in the unit of its name"),
            ("expression", "text", _text("c.expression_id"), "what it was computed by; @name is another counter"),
            ("reason", "text", _text("c.reason_id"), "why it is null"),
        ),
    ),
    "v1_metrics": Shape(
        "A value under the tool's own name, as it came and as a number.",
        f"uploads u JOIN metrics m ON m.launch_ref / {LAUNCHES} = u.upload_id AND m.launch_ref {_RANGE}"
        " JOIN metric_names n ON n.metric_id = m.metric_id JOIN unit_names i ON i.unit_id = m.unit_id"
        " LEFT JOIN launches l ON l.launch_id = m.launch_ref"
        " LEFT JOIN kernels k ON k.kernel_id = coalesce(l.kernel_id, m.kernel_id)",
        (
            ("run_id", "int", "u.run_id", "its run"),
            ("upload_id", "int", "u.upload_id", "the file it came in"),
            ("launch_id", "int", "l.launch_id", "its launch; null for a value of the whole file or of a kernel"),
            ("kernel", "text", "k.kernel", "full name of the kernel; null for a value of the whole file"),
            ("kernel_short", "text", "k.kernel_short", "its name without types and parameters"),
            ("section", "text", "NULLIF(n.section, '')", "section of the page, where the tool prints one"),
            ("metric", "text", "n.metric", "the tool's own name of the metric"),
            ("raw_text", "text", "m.raw_text", "the cell as it came"),
            ("unit", "text", "NULLIF(i.unit, '')", "the unit as it came"),
            ("value", "float", "m.value", "the number in si_unit; null if the cell is not a number"),
            ("si_unit", "text", "NULLIF(i.si_unit, '')", "unit of value"),
            ("reason", "text", "m.reason", "why value is null"),
            ("line", "int", "m.line", "line of the cell in the file, from 1"),
        ),
    ),
    "v1_rules": Shape(
        "What the tool itself advised on a launch.",
        f"{_LAUNCHES} JOIN rules g ON g.launch_id = l.launch_id",
        (
            ("launch_id", "int", "g.launch_id", "the launch"),
            ("run_id", "int", "u.run_id", "its run"),
            ("kernel", "text", "k.kernel", "full name of its kernel"),
            ("kernel_short", "text", "k.kernel_short", "its name without types and parameters"),
            ("section", "text", _text("g.section_id"), "section of the page"),
            ("rule", "text", _text("g.rule_id"), "the tool's name of the rule"),
            ("rule_type", "text", _text("g.rule_type_id"), "OPT, WRN or INF as printed"),
            ("kind", "text", _text("g.kind_id"), "global: share of run time saved; local: of a unit's inefficiency"),
            ("estimated_saving_fraction", "float", "g.estimated_saving_fraction", "the estimate divided by 100"),
            ("estimated_speedup", "float", "g.estimated_speedup", "1 / (1 - saving) for kind global, else null"),
            ("message", "text", "g.message", "the rule's words"),
            ("line", "int", "g.line", "line in the file, from 1"),
        ),
    ),
    **_results(
        "One criterion of a launch, of a kernel or of a whole run, by the newest analysis.",
        "criteria",
        (
            ("criterion", "text", _text("c.criterion_id"), "name of the criterion"),
            ("value", "float", "c.value", "1 is ideal, 0 is worst; consistent form"),
            ("share", "float", "c.share", "share of the time that the criterion is about"),
            ("speedup", "float", "c.speedup", "potential speedup if the criterion became 1; consistent form"),
            ("value_as_published", "float", "c.value_as_published", "the printed formula, literally"),
            ("speedup_as_published", "float", "c.speedup_as_published", "the printed formula, literally"),
        ),
    ),
    **_results(
        "The potential speedup of a launch, of a kernel or of a whole run, by the newest analysis.",
        "potential",
        (
            ("bound", "text", _text("c.bound_id"), "busiest unit; latency where none is near its peak"),
            ("ideal_bound", "text", _text("c.ideal_bound_id"), "unit that limits the ideal version"),
            ("mem_throughput_ratio", "float", "c.mem_throughput_ratio", "memory throughput over its peak"),
            ("arith_throughput_ratio", "float", "c.arith_throughput_ratio", "arithmetic throughput over its peak"),
            ("speedup", "float", "c.speedup", "potential speedup, consistent form"),
            ("speedup_as_published", "float", "c.speedup_as_published", "the printed formula, literally"),
            ("speedup_ceiling", "float", "c.speedup_ceiling", "bound that no change of this code can pass"),
            ("ideal_ns", "float", "c.ideal_ns", "time at that speedup"),
            ("duration_ns", "float", "c.duration_ns", "time it took"),
        ),
    ),
    **_results(
        "One quantity of a performance model, by the newest analysis.",
        "models",
        (
            ("model", "text", "q.model", "name of the model"),
            ("quantity", "text", "q.quantity", "what it computes"),
            ("value", "float", "c.value", "the value in unit"),
            ("unit", "text", "NULLIF(q.unit, '')", "unit of value"),
            ("form", "text", "NULLIF(q.form, '')", "as_published or consistent"),
        ),
        " JOIN model_names q ON q.model_id = c.model_id",
    ),
}

VIEWS: Mapping[str, tuple[str, dict[str, str]]] = {
    view: (shape.sentence, {name: meaning for name, _, _, meaning in shape.columns}) for view, shape in _SHAPES.items()
}
"""Every view: what it is, and what its columns mean. ``v1_counters`` has a column for each counter besides."""

KINDS: Mapping[str, dict[str, str]] = {
    view: {name: kind for name, kind, _, _ in shape.columns} for view, shape in _SHAPES.items()
}
"""The kind (int, float, text) of every column of a view; a counter's is float."""


def check_counters(counters: Iterable[str]) -> list[str]:
    """Return the counters' names if each can be a column of ``v1_counters``; raise `DomainError` otherwise."""
    names = list(counters)
    for name in names:
        if not (name.isascii() and name.isidentifier() and name == name.lower()) or name in KINDS["v1_counters"]:
            raise DomainError(f"{name!r} cannot be a counter: a lower case word that no column of v1_counters has")
    return names


def sql_of(view: str, dialect: str, counters: Mapping[str, int]) -> str:
    """Return the statement that creates a view; ``counters`` gives the number of each counter's name."""
    shape = _SHAPES[view]
    selected = [f"{sql} AS {name}" for name, _, sql, _ in shape.columns]
    if view == "v1_counters":
        # A look-up a column, not a pivot by GROUP BY: a query pays for the columns that it names, no more.
        value = "(SELECT c.value FROM counters c WHERE c.launch_id = l.launch_id AND c.counter_id = {})"
        selected += [f'{value.format(number)} AS "{name}"' for name, number in counters.items()]
    # Plain replacement: the statement holds braces that are not fields.
    columns = ",\n  ".join(selected).replace("{json_object}", JSON_OBJECT[dialect])
    return f"CREATE VIEW {view} AS\nSELECT\n  {columns}\nFROM {shape.source}"
