"""Definitions of views, and SQL and columns that several views share."""

from typing import NamedTuple

from profsvc.store.schema.column_types import IDS_PER_UPLOAD, REPEATED_BITS

ViewColumn = tuple[str, str, str, str]
"""A column of a view: name, kind (int, float, text), SQL, meaning."""


def view_columns(alias: str, *rows: str | ViewColumn) -> tuple[ViewColumn, ...]:
    """Return the columns of a view, written as ``name | kind | SQL | meaning``.

    Without SQL it is the column of that name in the table ``alias``.

    >>> view_columns("r", "name | text | name of the run", "launches | int | count(*) | number of launches")
    (('name', 'text', 'r.name', 'name of the run'), ('launches', 'int', 'count(*)', 'number of launches'))
    """
    cells = (row.split(" | ") if isinstance(row, str) else row for row in rows)
    return tuple((name, kind, (sql or [f"{alias}.{name}"])[0], meaning) for name, kind, *sql, meaning in cells)


class ViewDefinition(NamedTuple):
    """A view: its sentence, the source of its rows, and its columns.

    ``others`` are further sources of rows, each with the SQL of the columns that differ.
    """

    sentence: str
    source: str
    columns: tuple[ViewColumn, ...]
    others: tuple[tuple[str, dict[str, str]], ...] = ()


def text_of(ref: str) -> str:
    """Return the SQL for the text with the number ``ref``."""
    return f"(SELECT x.text FROM texts x WHERE x.text_id = {ref})"


FLAGS = (
    "ZERO_DENOM", "NOT_APPLICABLE", "RAW_OUT_OF_RANGE", "CLIPPED", "EXTRAPOLATED", "INPUT_SUSPECT", "UPPER_BOUND",
    "TAIL_EFFECT", "CASE_AMBIGUOUS", "OVERLAP", "LOWER_BOUND",
)  # fmt: skip


def flag_names(column: str) -> str:
    """Return the SQL for the names of the flags in a column of results."""
    named = (f"CASE WHEN {column} & {1 << bit} <> 0 THEN '{name} ' ELSE '' END" for bit, name in enumerate(FLAGS))
    return f"rtrim({' || '.join(named)})"


FLAG_NAMES_SQL = flag_names("c.flags")
"""The SQL for the names of the flags in a row of results."""

UPLOAD_ID_RANGE_SQL = (
    f"BETWEEN u.upload_id * {IDS_PER_UPLOAD} AND u.upload_id * {IDS_PER_UPLOAD} + {IDS_PER_UPLOAD - 1}"
)

_RUN_DEVICES = (
    "uploads u JOIN upload_devices y ON y.upload_id = u.upload_id JOIN devices e ON e.device_id = y.device_id"
    " WHERE u.run_id = {} AND e.name <> ''"
)

_SEVERAL_DEVICES = f"(SELECT count(DISTINCT e.name) FROM {_RUN_DEVICES.format('r.run_id')}) > 1"

RUN_DEVICE_SQL = (  # for a run with only logs: the device they name; null if they name several
    "coalesce(NULLIF(d.name, ''), (SELECT CASE WHEN min(s.device) = max(s.device) THEN min(s.device) END"
    f" FROM uploads u JOIN sensors s ON s.sensor_id {UPLOAD_ID_RANGE_SQL}"
    f" WHERE u.run_id = r.run_id AND NOT {_SEVERAL_DEVICES}))"
)


def counted_once(what: str, file: str = "u") -> str:
    """Return the SQL for the files whose ``what`` counts: one file per execution."""
    return f"({file}.repeats IS NULL OR {file}.repeats & {REPEATED_BITS[what]} = 0)"


def for_every_file(shape: ViewDefinition, source: str, **others: str) -> ViewDefinition:
    """Return the variant of a view that shows the rows of every file."""
    columns = tuple((name, kind, others.get(name, sql), meaning) for name, kind, sql, meaning in shape.columns)
    return ViewDefinition(f"Rows of every file: {shape.sentence[0].lower()}{shape.sentence[1:]}", source, columns)


FILE_COLUMNS = view_columns(
    "u",
    "run_id | int | run",
    "upload_id | int | file that contains it",
)
