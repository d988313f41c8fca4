"""Base tables and views of events other than launches: transfers, API calls, ranges and totals."""

from profsvc.store.schema.column_types import IDS_PER_UPLOAD, check, fields, index, key, table
from profsvc.store.schema.view_definition import (
    FILE_COLUMNS,
    UPLOAD_ID_RANGE_SQL,
    ViewDefinition,
    counted_once,
    for_every_file,
    text_of,
    view_columns,
)

transfers = table(
    "transfers",
    key("transfer_id"),
    *fields(
        "kind_id int, start_ns int?, duration_ns float?, bytes int?, source_memory_id int?, target_memory_id int?",
        "device_index int?, device_id int?, process_id int?, context int?, stream int?, line int",
    ),
)
api_calls = table(
    "api_calls",
    key("call_id"),
    *fields(
        "name_id int, start_ns int?, duration_ns float?, process_id int?, thread_id int?, correlation_id int?",
        "line int",
    ),
)
ranges = table(
    "ranges",
    key("range_id"),
    *fields(
        "name_id int, start_ns int?, duration_ns float?, domain_id int?, process_id int?, thread_id int?, line int",
        "active_sms int?, launches int?",
    ),
)
kernel_summaries = table(
    "kernel_summaries",
    key("summary_id"),
    *fields(
        "category_id int, kernel_id int?, name_id int?, calls int, total_ns float?, mean_ns float?, min_ns float?",
        "max_ns float?, total_bytes float?, device_index int?, line int, report_id int?",
    ),
    check("(kernel_id IS NULL) <> (name_id IS NULL)", "named"),
    # These find what another report of a run says of the same kernel or operation.
    index("kernel_id", "summary_id"),
    index("name_id", "summary_id"),
)

TABLES = (transfers, api_calls, ranges, kernel_summaries)

_LINE = ("line", "int", "e.line", "line in the file, from 1; row number in a database")

_DURATION = ("duration_ns", "float", "e.duration_ns", "duration; null if the tool prints none")

_PROCESS = ("process_id", "int", "e.process_id", "process")

_THREAD = ("thread_id", "int", "e.thread_id", "thread of that process")

_DEVICE = "(SELECT NULLIF(d.name, '') FROM devices d WHERE d.device_id = e.device_id)"

# Reports of nsys stats that sum up the same kernels, copies or calls, the most specific ones first.
_SUMMARY_REPORTS = (
    ("cuda_gpu_kern_sum", "cuda_gpu_mem_time_sum", "gpumemtimesum", "cuda_api_sum"),
    ("cuda_gpu_sum",),
    ("cuda_gpu_kern_gb_sum",),
)


def _rank(report_id: str) -> str:
    """Return the SQL of the place of a report among those of the same events; null for all others."""
    ranks = (
        f"WHEN r.text IN ({', '.join(map(repr, names))}) THEN {rank}" for rank, names in enumerate(_SUMMARY_REPORTS)
    )
    return f"(SELECT CASE {' '.join(ranks)} END FROM texts r WHERE r.text_id = {report_id})"


def _summary_beside(same: str, condition: str) -> str:
    """Return the SQL condition that a file of the run has a summary of the same category with the same name."""
    return (
        "EXISTS (SELECT 1 FROM uploads v JOIN kernel_summaries s"
        f" ON s.summary_id BETWEEN v.upload_id * {IDS_PER_UPLOAD}"
        f" AND v.upload_id * {IDS_PER_UPLOAD} + {IDS_PER_UPLOAD - 1}"
        f" WHERE v.run_id = u.run_id AND s.{same} = e.{same} AND s.category_id = e.category_id AND {condition})"
    )


_EARLIER_RANK = f"{_rank('s.report_id')} < {_rank('e.report_id')}"
_IN_ANOTHER_REPORT = (
    f"coalesce({_rank('e.report_id')}, 0) > 0"
    f" AND ({_summary_beside('kernel_id', _EARLIER_RANK)} OR {_summary_beside('name_id', _EARLIER_RANK)})"
)

_KEYS = {"transfers": "transfer_id", "api_calls": "call_id", "ranges": "range_id", "kernel_summaries": "summary_id"}


def _events(table: str, *, once: bool = True) -> str:
    """Return the FROM clause of a table of events: each event once, or the events of every file."""
    files = f" AND {counted_once(table)}" if once else ""
    if once and table == "kernel_summaries":
        files += f" AND NOT ({_IN_ANOTHER_REPORT})"
    names = " LEFT JOIN kernels k ON k.kernel_id = e.kernel_id" if table == "kernel_summaries" else ""
    key = _KEYS[table]
    of_upload = f"e.{key} / {IDS_PER_UPLOAD} = u.upload_id AND e.{key} {UPLOAD_ID_RANGE_SQL}"
    return f"uploads u JOIN {table} e ON {of_upload}{files}{names}"


# nsys stats prints the total times of copies in one report and their total sizes in another; both count the copies.
_SIZES_BESIDE_TIMES = "e.total_ns IS NULL AND e.total_bytes IS NOT NULL AND " + _summary_beside(
    "name_id", "s.total_ns IS NOT NULL"
)

VIEW_DEFINITIONS: dict[str, ViewDefinition] = {
    "v1_transfers": ViewDefinition(
        "Memory copies and memory sets.",
        _events("transfers"),
        view_columns(
            "e",
            "transfer_id | int | transfer number",
            *FILE_COLUMNS,
            f"kind | text | {text_of('e.kind_id')} | HtoD, DtoH, DtoD, PtoP, HtoH, memset and so on",
            "start_ns | int | start on the device clock",
            _DURATION,
            "bytes | int | number of bytes",
            f"source_memory | text | {text_of('e.source_memory_id')} | kind of the source memory, as printed",
            f"target_memory | text | {text_of('e.target_memory_id')} | kind of the target memory, as printed",
            f"device | text | {_DEVICE} | product name of the device; null if unknown",
            "device_index | int | device ordinal as printed",
            _PROCESS,
            "context | int | CUDA context",
            "stream | int | CUDA stream",
            _LINE,
        ),
    ),
    "v1_api_calls": ViewDefinition(
        "CUDA API calls.",
        _events("api_calls"),
        view_columns(
            "e",
            "call_id | int | call number",
            *FILE_COLUMNS,
            f"name | text | {text_of('e.name_id')} | name of the call, as printed",
            "start_ns | int | start on the host clock of the tool",
            _DURATION,
            _PROCESS,
            _THREAD,
            "correlation_id | int | number of the tool that joins the call to its launch",
            _LINE,
        ),
    ),
    "v1_ranges": ViewDefinition(
        "Ranges and markers that the program set.",
        _events("ranges"),
        view_columns(
            "e",
            "range_id | int | range number",
            *FILE_COLUMNS,
            f"name | text | {text_of('e.name_id')} | name of the range or marker",
            "start_ns | int | start on the host clock of the tool; UTC where the file's facts say so",
            "duration_ns | float | duration; null for a marker or an open range",
            f"domain | text | {text_of('e.domain_id')} | domain or category",
            _PROCESS,
            _THREAD,
            "active_sms | int | number of active SMs, from a log of phase marks",
            "launches | int | number of launches in it, from a log of phase marks",
            _LINE,
        ),
    ),
    "v1_kernel_summaries": ViewDefinition(
        "Totals per kernel, copy, call or range, from exports that contain only totals.",
        _events("kernel_summaries"),
        view_columns(
            "e",
            "summary_id | int | row number",
            *FILE_COLUMNS,
            (
                f"category | text | {text_of('e.category_id')} | kind of event: kernel, memory, api, os (system "
                "calls), range or domain"
            ),
            f"kernel | text | coalesce(k.kernel, {text_of('e.name_id')}) | name of the kernel, copy, call or range",
            "kernel_short | text | k.kernel_short | kernel name without types and parameters",
            (
                f"calls | int | CASE WHEN {_SIZES_BESIDE_TIMES} THEN NULL ELSE e.calls END | number of events; null "
                "for a row of sizes if a row of times counts the same copies"
            ),
            "total_ns | float | total duration; null for a row of sizes",
            "mean_ns | float | mean duration",
            "min_ns | float | shortest duration",
            "max_ns | float | longest duration",
            "total_bytes | float | total size, for a row of sizes",
            "device_index | int | device ordinal, if the row is about one device",
            (
                f"report | text | {text_of('e.report_id')} | report of nsys stats that has the row; null for other "
                "tools. If a run has several reports of the same events, the rows of the most specific one count"
            ),
            "line | int | line in the file, from 1",
        ),
    ),
}

VIEW_DEFINITIONS |= {
    f"v1_{table}_all": for_every_file(VIEW_DEFINITIONS[f"v1_{table}"], _events(table, once=False)) for table in _KEYS
}
