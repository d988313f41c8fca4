"""The base table and views of the wall time of traces: budget, named parts of gaps, iterations and notes."""

from profsvc.store.schema.column_types import fields, key, ref, table
from profsvc.store.schema.view_definition import ViewDefinition, text_of, view_columns

WALL_TIME_TABLE = table(
    "wall_time",
    ref("run_id", "runs.run_id", cascade=True, primary_key=True),
    key("item"),
    *fields("part text, upload_id int, process_id int?, device_index int?, wall_ns int, category text?, time_ns int?"),
    *fields("hidden_ns int?, events int?"),
    ref("name_id", "texts.text_id"),
    *fields("iteration int?, start_ns int?, message text?"),
    clustered=True,
)

_NAME, _SHARE = text_of("c.name_id"), "CAST(c.time_ns AS DOUBLE PRECISION) / NULLIF(c.wall_ns, 0)"
# What kernels could save is another budget.
_RECOVERABLE = "CASE WHEN c.category IN ('kernels', 'graphs') THEN NULL ELSE c.time_ns END"


def _view(sentence: str, part: str, *own: str) -> ViewDefinition:
    source = f"runs r JOIN wall_time c ON c.run_id = r.run_id AND c.part = '{part}'"
    lane = (
        "run_id | int | run number",
        "upload_id | int | file of the trace; files of several ranks have a budget each",
        "process_id | int | process; null if the trace names none",
        "device_index | int | device ordinal as printed; null if the trace names none",
    )
    item = "item | int | ordinal of the row in the analysis of the run, from 0"
    return ViewDefinition(sentence, source, view_columns("c", *lane, *own, item))


_CATEGORY = "category | text | what went on: work of the device, or what the host did in a gap"
_SHARE_COLUMN = f"share | float | {_SHARE} | time_ns / wall_ns"
_WALL = "wall_ns | int | wall time of the device: from the first start to the last end of work on it"

VIEW_DEFINITIONS = {
    "v1_wall_time": _view(
        "The wall time of each device of a trace by what went on; the rows of a device add up to its wall time.",
        "budget",
        _CATEGORY,
        "time_ns | int | part of the wall time: an instant counts once, for the first category active in it",
        _SHARE_COLUMN,
        "hidden_ns | int | further time of the category, overlapped by categories above it",
        f"recoverable_ns | int | {_RECOVERABLE} | upper limit of what the wall time could lose; null for kernels",
        "events | int | number of kernels, copies, calls, ranges or late launches",
        _WALL,
    ),
    "v1_wall_time_details": _view(
        "Parts of the gaps of v1_wall_time: calls, ranges and late kernels, the 20 with most time per category.",
        "detail",
        _CATEGORY,
        f"name | text | {_NAME} | call or range (# for numbers) of the host, or kernel that had not started",
        "time_ns | int | part of the time of the category",
        _SHARE_COLUMN,
        _WALL,
    ),
    "v1_wall_time_iterations": _view(
        "The wall time of each iteration by what went on; iterations are ranges such as ProfilerStep#1.",
        "iteration",
        "iteration | int | ordinal of the iteration on the device, from 0",
        f"name | text | {_NAME} | name of its range",
        "start_ns | int | start of its range",
        _CATEGORY,
        "time_ns | int | part of the time of the iteration",
    ),
    "v1_wall_time_notes": _view(
        "What a trace does not tell of the wall time of a device.",
        "note",
        "message | text | what is unknown, and why",
    ),
}
