"""Pages of the rows of a view: filtered, ordered, with limits of rows and time.

If the view has a key and is ordered by it, pages are found by key, so that the thousandth page is as fast as the first.
Otherwise they are found by offset. The position of the next page is an opaque text.
"""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from typing import Any, NamedTuple

from profsvc import specs
from profsvc.errors import AccessError, NotFoundError, UsageError
from profsvc.store.connection.sql import Connection, Engine, dicts_of, text
from profsvc.store.queries.readings import sample_blocks
from profsvc.store.queries.rows import ORDER, files_of_launch
from profsvc.store.queries.time_limit import reading_with_timeout
from profsvc.store.queries.view_conditions import Condition, conditions_sql, require_column
from profsvc.store.schema.catalog import COUNTER_VIEWS, KINDS
from profsvc.store.schema.column_types import IDS_PER_UPLOAD

MAX_ROWS = 10_000
"""Maximum number of rows per page."""
JSON_COLUMNS = {
    "v1_runs": ("tags",),
    "v1_uploads": ("facts",),
    "v1_devices": ("facts",),
    "v1_causes": ("evidence",),
    "v1_causes_history": ("evidence",),
    "v1_rules": ("focus_metrics",),
    "v1_rules_all": ("focus_metrics",),
    "v1_reports": ("document",),
    "v1_saved_queries": ("params", "chart"),
    "v1_schedules": ("arguments", "last_deliveries"),
    "v1_slots": ("deliveries",),
}
"""Columns of views that hold JSON objects as texts; SQL gives them so, everything else opens them."""
MAX_OFFSET = 2**53
# The number of its own that each row of a view has, whose order is that of the view.
KEYS = {
    "v1_runs": "run_id",
    "v1_uploads": "upload_id",
    "v1_devices": "device_id",
    "v1_kernels": "kernel_id",
    "v1_launches": "launch_id",
    "v1_counters": "launch_id",
    "v1_transfers": "transfer_id",
    "v1_api_calls": "call_id",
    "v1_ranges": "range_id",
    "v1_kernel_summaries": "summary_id",
    "v1_sensors": "sensor_id",
    "v1_samples": "sample_id",
    "v1_archives": "archive_id",
    "v1_predictions": "prediction_id",
    "v1_saved_queries": "query_id",
    "v1_schedules": "schedule_id",
    "v1_slots": "slot_id",
    "v1_findings": "finding_id",
    "v1_reports": "report_id",
    "v1_refusals": "refusal_id",
    "v1_deliveries": "delivery_id",
    "v1_source_kernels": "source_id",
    "v1_source_lines": "line_id",
}
KEYS |= {f"{view}_all": key for view, key in KEYS.items() if f"{view}_all" in KINDS}
# Keys that contain the number of the upload: ``upload_id * IDS_PER_UPLOAD`` plus an ordinal.
UPLOAD_RANGE_KEYS = {
    *("launch_id", "transfer_id", "call_id", "range_id", "summary_id", "sensor_id", "sample_id", "source_id"),
    "line_id",
}
# Their rows lie in blocks or are found by others, so that their pages are sorted.
UNWALKED_KEYS = {None, "sample_id", "line_id"}
MAX_SHORT_PAGE = 1000
"""Rows of a page that is made in some milliseconds."""
OWNER_CONDITIONS = {
    "run_id": "run_id = {}",
    "upload_id": "upload_id = {}",
    "sensor_id": f"upload_id = {{}} / {IDS_PER_UPLOAD}",
}
# The columns that name the runs of a row, where they are called otherwise: a project sees a row if all are its own.
RUN_COLUMNS = {"v1_predictions": ("run_before", "run_after")}


class Page(NamedTuple):
    """Rows of a view; ``truncated`` if there are more, which ``after`` leads to."""

    columns: list[str]
    rows: list[dict[str, Any]]
    truncated: bool
    after: str | None


def parse_json_columns(view: str, rows: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return rows of a view with what it holds as JSON texts as objects."""
    objects = JSON_COLUMNS.get(view, ())
    return [
        {**row, **{name: json.loads(row[name]) for name in objects if isinstance(row.get(name), str)}} for row in rows
    ]


def column_kinds_of(view: str) -> dict[str, str]:
    """Return the kind of each column of a view; ``v1_counters`` also has one column per counter."""
    if view not in KINDS:
        raise NotFoundError.near("view", view, KINDS)
    return KINDS[view] | (dict.fromkeys(specs.counters(), "float") if view in COUNTER_VIEWS else {})


def key_column(view: str) -> str | None:
    """Return the column that numbers the rows of a view, where it has one.

    >>> key_column("v1_sensors"), key_column("v1_criteria")
    ('sensor_id', None)
    """
    return KEYS.get(view)


def may_be_long(view: str, only: Sequence[Condition] = (), order: Sequence[str] = (), limit: int = 100) -> bool:
    """Tell whether a page may need many more rows of a view than it has.

    A view with few rows for each upload is short. Of others the next rows along the key are at hand, of a run or a file
    as well; other orders and filters look at every row.

    >>> may_be_long("v1_runs"), may_be_long("v1_launches"), may_be_long("v1_metrics")
    (False, False, True)
    >>> may_be_long("v1_launches", [Condition("run_id", "", "7")], ["-launch_id"])
    False
    >>> may_be_long("v1_launches", [Condition("grid_x", "", "7")]), may_be_long("v1_launches", order=["start_ns"])
    (True, True)
    """
    key = KEYS.get(view)
    if key is not None and key not in UPLOAD_RANGE_KEYS:
        return False
    along_key = key not in UNWALKED_KEYS and _key_of(view, order) is not None and limit <= MAX_SHORT_PAGE
    return not (along_key and len(_owners(only)) == len(only))


def list_view(
    engine: Engine,
    view: str,
    only: Sequence[Condition] = (),
    *,
    columns: Sequence[str] = (),
    order: Sequence[str] = (),
    limit: int = 100,
    after: str = "",
    project: str | None = None,
    seconds: float = 10.0,
) -> Page:
    """Return a page of a view: the rows that satisfy every condition, in the order asked for (``-column`` downwards).

    ``after`` is what the page before gave. With a ``project`` only rows of its runs are seen. Raise `UsageError` for
    what the view does not have, and after ``seconds``.
    """
    if not 1 <= limit <= MAX_ROWS:
        raise UsageError(f"a page has 1 to {MAX_ROWS} rows, not {limit}")
    key = _key_of(view, order)
    place, offset = _page_start(after, key)
    shown = list(columns) or list(column_kinds_of(view))
    asked = [*shown, key[0]] if key and key[0] not in shown else shown
    within = files_of_conditions(engine, view, only)
    within += _key_range(key[0], only) if key and engine.dialect.name == "postgresql" else []
    if view == sample_blocks.VIEW:
        within += sample_blocks.block_conditions(only)
        within += sample_blocks.page_conditions(only, key[1], place) if key else []
    query, values = select_statement(
        view, only, columns=asked, order=order, project=project, place=place, within=within
    )
    values |= {"most": limit + 1} | ({"skipped": offset} if offset else {})
    page = " LIMIT :most" + (" OFFSET :skipped" if offset else "")
    if view in KEYS and key is None:
        # Of the rows that are not on the page no more is computed than what they are sorted by.
        sought, _ = select_statement(view, only, columns=[KEYS[view]], order=order, project=project)
        query, _ = select_statement(view, columns=asked, order=order, among=sought + page)
    else:
        query += page
    with reading_with_timeout(engine, seconds) as connection:
        if engine.dialect.name == "postgresql" and not (only or order or project or key) and offset < MAX_ROWS:
            # Any first rows will do: they are there at once, unless all cells of all pages are hashed or sorted before.
            for way in ("hashjoin", "mergejoin"):
                connection.exec_driver_sql(f"SET LOCAL enable_{way} = off")
        if engine.dialect.name == "sqlite" and key and _is_of_files(key[0], only, project):
            rows = _rows_by_file(connection, view, only, key, place, asked, project, limit + 1)
        else:
            rows = dicts_of(connection.execute(text(query), values))
    truncated = len(rows) > limit
    found, following = rows[:limit], None
    if truncated:
        following = f"k{found[-1][key[0]]}" if key else f"o{offset + limit}"
    return Page(shown, [{name: row[name] for name in shown} for row in found], truncated, following)


def select_statement(
    view: str,
    only: Sequence[Condition] = (),
    *,
    columns: Sequence[str] = (),
    order: Sequence[str] = (),
    project: str | None = None,
    place: int | None = None,
    among: str = "",
    within: Sequence[str] = (),
) -> tuple[str, dict[str, Any]]:
    """Return the SELECT for rows of a view and the values in it; ``among`` is one for the keys that are sought.

    ``within`` are conditions that follow from ``only`` and say so to a planner that does not see it.
    """
    kinds = column_kinds_of(view)
    for what, names in (("columns", columns), ("order", order)):
        if len(names) > len(kinds):
            raise UsageError(f"{what} names {len(names)} columns, but {view} has {len(kinds)}; name each once")
    for column in columns:
        require_column(view, column, kinds)
    asked, values = conditions_sql(view, only, kinds)
    conditions = [*within, *asked]
    if project is not None and view != "v1_columns":
        conditions += _project_conditions(view, kinds, project)
        values["in_project"] = project
    if (key := _key_of(view, order)) and place is not None:
        conditions.append(f'"{key[0]}" {key[1]} :place')
        values["place"] = place
    if among:
        conditions.append(f'"{KEYS[view]}" IN ({among})')
    shown = ", ".join(f'"{column}"' for column in columns) or "*"
    where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
    return f"SELECT {shown} FROM {view}{where}{_order(view, order, kinds)}", values


def _project_conditions(view: str, kinds: Mapping[str, str], project: str) -> list[str]:
    """Return the conditions that keep the rows of other projects back."""
    if "project" in kinds and view not in RUN_COLUMNS:
        return ["project = :in_project"]
    runs = [name for name in RUN_COLUMNS.get(view, ("run_id",)) if name in kinds]
    if not runs:
        raise AccessError(f"{view} tells of every project, and the token is for the project {project!r} alone")
    return [f"{name} IN (SELECT run_id FROM v1_runs WHERE project = :in_project)" for name in runs]


def _key_of(view: str, order: Sequence[str]) -> tuple[str, str] | None:
    """Return the column that pages of this order follow each other by, and how; None where there is none."""
    key = KEYS.get(view)
    if key is None or list(order) not in ([], [key], [f"-{key}"]):
        return None
    return key, "<" if list(order) == [f"-{key}"] else ">"


def files_of_conditions(engine: Engine, view: str, only: Sequence[Condition]) -> list[str]:
    """Return in which files the metrics of a launch lie that conditions ask for."""
    if view != "v1_metrics":
        return []
    asked = (one.value for one in only if one.column == "launch_id" and not one.how)
    return [files_of_launch(engine, int(value)) for value in asked if re.fullmatch(r"\d{1,18}", value, re.ASCII)]


def _key_range(key: str, only: Sequence[Condition]) -> list[str]:
    """Return between which keys the rows of a run, a file or a sensor lie.

    For a page in the order of the key Postgres walks along it, and takes the rows that are asked for to be everywhere.
    """
    if key not in UPLOAD_RANGE_KEYS:
        return []
    owners = _owners(only)
    uploads = [f"(SELECT {end}(upload_id) FROM uploads WHERE {' AND '.join(owners)})" for end in ("min", "max")]
    return (
        [f"{key} >= {uploads[0]} * {IDS_PER_UPLOAD}", f"{key} < ({uploads[1]} + 1) * {IDS_PER_UPLOAD}"]
        if owners
        else []
    )


def _owners(only: Sequence[Condition]) -> list[str]:
    """Return which files the rows of a run, a file or a sensor are in."""
    return [
        OWNER_CONDITIONS[one.column].format(f":value_{n}")
        for n, one in enumerate(only)
        if not one.how and one.column in OWNER_CONDITIONS
    ]


def _is_of_files(key: str, only: Sequence[Condition], project: str | None) -> bool:
    """Tell whether a page in the order of this key has rows of some files alone, which follow each other along it."""
    return key in UPLOAD_RANGE_KEYS - {"sample_id"} and (project is not None or bool(_owners(only)))


def _rows_by_file(
    connection: Connection,
    view: str,
    only: Sequence[Condition],
    key: tuple[str, str],
    place: int | None,
    columns: Sequence[str],
    project: str | None,
    most: int,
) -> list[dict[str, Any]]:
    """Return the first rows in the order of their keys, one file after the other.

    SQLite would sort all rows of a run for each of its pages, because it cannot know that the keys of the next file are
    larger. Within a file it walks along the key, and stops when the page is full.
    """
    (name, sign), kinds = key, column_kinds_of(view)
    order = " DESC" if sign == "<" else ""
    conditions, values = conditions_sql(view, only, kinds)
    files = _owners(only)
    if project is not None:
        files.append("run_id IN (SELECT run_id FROM v1_runs WHERE project = :in_project)")
        values["in_project"] = project
    if place is not None:
        files.append(f"upload_id {sign}= :first_file")
        values["first_file"] = place // IDS_PER_UPLOAD
    range_of = '"{0}" > {1} * {2} AND "{0}" < ({1} + 1) * {2}'
    within = " AND ".join([range_of.format(name, "f.upload_id", IDS_PER_UPLOAD), *conditions])
    listed = (
        f"SELECT f.upload_id, f.run_id FROM uploads f WHERE {' AND '.join(files)}"
        f" AND EXISTS (SELECT 1 FROM {view} WHERE {within}) ORDER BY f.upload_id{order}"
    )
    shown = ", ".join(f'"{column}"' for column in columns)
    conditions += [f'"{name}" > :low', f'"{name}" < :high', "run_id = :file_run"]
    query = text(f'SELECT {shown} FROM {view} WHERE {" AND ".join(conditions)} ORDER BY "{name}"{order} LIMIT :most')
    rows: list[dict[str, Any]] = []
    with closing(connection.execute(text(listed), values)) as found:
        for upload_id, run_id in found:
            low, high = upload_id * IDS_PER_UPLOAD, (upload_id + 1) * IDS_PER_UPLOAD
            if place is not None:
                low, high = (max(low, place), high) if sign == ">" else (low, min(high, place))
            given = values | {"low": low, "high": high, "file_run": run_id, "most": most - len(rows)}
            rows += dicts_of(connection.execute(query, given))
            if len(rows) >= most:
                break
    return rows


def _page_start(after: str, key: tuple[str, str] | None) -> tuple[int | None, int]:
    """Read where a page begins: behind a key, or after so many rows."""
    kind, digits = after[:1], after[1:]
    number = int(digits) if digits.isascii() and digits.isdigit() and len(digits) < 19 else -1
    if after and (number < 0 or kind != ("k" if key else "o") or (kind == "o" and number > MAX_OFFSET)):
        raise UsageError(f"after={after!r} is not what the page before gave for this order; begin without it")
    return (number, 0) if key and after else (None, max(number, 0))


def _order(view: str, order: Sequence[str], kinds: Mapping[str, str]) -> str:
    if not order:
        by = KEYS.get(view) or ORDER.get(view)
        return f" ORDER BY {by}" if by else ""
    names = [require_column(view, name.removeprefix("-"), kinds) for name in order]
    key = KEYS.get(view)
    parts = [
        f'"{name}"{" DESC" * asked.startswith("-")}{"" if name == key else " NULLS LAST"}'
        for name, asked in zip(names, order, strict=True)
    ]
    return f" ORDER BY {', '.join(parts + ([key] if key and key not in names else []))}"
