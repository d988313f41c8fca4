"""Write closed months to Parquet files, verify them, and only then delete their rows from the store."""

import hashlib
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, date, datetime
from functools import partial
from typing import Any, NamedTuple

import pyarrow as pa
from sqlalchemy import insert

from profsvc.errors import ServiceError, UsageError, counted
from profsvc.store.connection import postgres
from profsvc.store.connection.sql import Connection, Engine, bindparam, dicts_of, text
from profsvc.store.connection.timestamps import now
from profsvc.store.connection.transactions import reading, writing
from profsvc.store.maintenance.archive import contents
from profsvc.store.maintenance.archive.contents import Group, Leaving
from profsvc.store.maintenance.archive.metric_rows import long_metrics_queries, rows_of_blocks
from profsvc.store.maintenance.archive.parquet_files import (
    ParquetFile,
    Span,
    require_whole,
    schema_of_table,
    schema_of_view,
)
from profsvc.store.maintenance.archive.place import (
    Place,
    file_size,
    has_file,
    open_place,
    reading_file,
    remove_file,
    writing_file,
)
from profsvc.store.maintenance.readiness import latest_revision
from profsvc.store.results.finished_parts import unfinished
from profsvc.store.schema.tables import metadata

RUNS_PER_GROUP = 50
LINES_PER_GROUP = 500_000
ROWS_PER_FETCH = 5_000
Progress = Callable[[str], None]

# The month of a run is that of its newest file, like its age.
_CLOSED = """
    SELECT r.run_id, r.changes, substr(max(u.received_at), 1, 7) AS month, sum(u.lines_stored) AS lines,
           sum(u.launches) AS launches, sum(u.samples) AS samples, count(*) AS uploads
    FROM runs r JOIN uploads u ON u.run_id = r.run_id
    GROUP BY r.run_id, r.changes HAVING max(u.received_at) < :before AND max(u.archive_id) IS NULL
    ORDER BY month, r.run_id
"""
_UPLOADS = "SELECT upload_id, run_id FROM uploads WHERE run_id IN :runs ORDER BY upload_id"
# A second process that archives or deletes one of these runs waits.
_CHANGES = "SELECT run_id, changes FROM runs WHERE run_id IN :runs ORDER BY run_id{lock}"
_MARK = "UPDATE uploads SET archive_id = :archive_id WHERE run_id IN :runs"
_VALUES = "INSERT INTO archived_values (run_id, kernel_id, criterion_id, value, low, high, reason_id)"
# What the history of a kernel and the nightly report compute from the rows that leave; see `archived_values`.
_KEEP = (
    f"""{_VALUES}
    SELECT c.run_id, h.kernel_id, c.criterion_id,
           sum(c.value * l.duration_ns) / sum(CASE WHEN c.value IS NOT NULL THEN l.duration_ns END),
           min(c.value), max(c.value), max(c.reason_id)
    FROM runs r JOIN criteria c ON c.run_id = r.run_id AND c.version_id = r.version_id AND c.kernel_id = 0
    JOIN launches l ON l.launch_id = c.launch_id JOIN shapes h ON h.shape_id = l.shape_id
    WHERE r.run_id IN :runs AND l.duration_ns > 0 GROUP BY c.run_id, h.kernel_id, c.criterion_id""",
    f"""{_VALUES}
    SELECT p.run_id, h.kernel_id, 0,
           sum(CASE WHEN p.speedup IS NOT NULL THEN p.duration_ns END)
             / sum(CASE WHEN p.speedup IS NOT NULL THEN p.ideal_ns END),
           min(p.speedup), max(p.speedup), max(p.reason_id)
    FROM runs r JOIN potential p ON p.run_id = r.run_id AND p.version_id = r.version_id AND p.kernel_id = 0
    JOIN launches l ON l.launch_id = p.launch_id JOIN shapes h ON h.shape_id = l.shape_id
    WHERE r.run_id IN :runs GROUP BY p.run_id, h.kernel_id""",
    f"""{_VALUES}
    SELECT c.run_id, 0, 0, CAST(sum(CASE WHEN c.value IS NULL THEN 1 ELSE 0 END) AS DOUBLE PRECISION) / count(*),
           NULL, NULL, NULL
    FROM runs r JOIN criteria c ON c.run_id = r.run_id AND c.version_id = r.version_id
    WHERE r.run_id IN :runs AND c.launch_id > 0 GROUP BY c.run_id""",
)


class Month(NamedTuple):
    """A closed month: the rows of its runs, and the runs that must wait because their analysis is not finished."""

    month: str
    runs: list[Mapping[str, Any]]
    waiting: list[int]


class Archive(NamedTuple):
    """A written archive: its month, place, number of runs, and the rows that left the store."""

    month: str
    place: str
    runs: int
    rows: int
    size_bytes: int


def closed_months(engine: Engine, before: date) -> list[Month]:
    """Return the months that end by a date, and are over, with runs that have rows in the store; oldest first."""
    before = min(before, datetime.now(UTC).date())
    with reading(engine) as connection:
        query, values = text(_CLOSED), {"before": f"{before:%Y-%m}-01"}
        rows = dicts_of(connection.execute(query, values))
    waits = unfinished(engine)
    months: dict[str, Month] = {}
    for row in rows:
        month = months.setdefault(row["month"], Month(row["month"], [], []))
        if row["run_id"] in waits:
            month.waiting.append(row["run_id"])
        else:
            month.runs.append(row)
    return list(months.values())


def archive_month(engine: Engine, month: Month, address: str, tell: Progress = lambda said: None) -> Archive:
    """Write a month to a place, verify what was written, then delete its rows from the store."""
    place, store_id = open_place(address), _store_id(engine)
    part = _next_part(engine, place, month.month, store_id)
    groups = _grouped(engine, month.runs)
    files: dict[str, dict[str, Any]] = {}
    for view in contents.VIEWS:
        path = contents.view_path(view, month.month, part)
        files[path], _ = _write(place, path, schema_of_view(view), groups, partial(_of_view, engine, view))
        tell(f"{month.month}: {view.removeprefix('v1_')} written, {counted(format(files[path]['rows'], ','), 'row')}")
    for name, table in contents.TABLES.items():
        path = contents.table_path(name, month.month, part)
        rows_of = partial(_of_table, engine, name, table)
        files[path], spans = _write(place, path, schema_of_table(name), groups, rows_of)
        for group, span in zip(groups, spans, strict=True):
            group.spans[name] = span
    for path, expected in files.items():
        require_whole(place, path, expected)
        expected["size_bytes"] = file_size(place, path)
    tell(f"{month.month}: {counted(len(files), 'file')} read back, all values as written")
    about = {"month": month.month, "part": part, "made_at": now(), "store": store_id, "schema": latest_revision()}
    manifest = contents.manifest_bytes(about, files, groups)
    _put(place, contents.manifest_path(month.month, part), manifest)
    _put(place, "views.sql", contents.duckdb_views(place))
    _remove_stale(place, month.month, part, store_id)
    rows = sum(span.rows for group in groups for span in group.spans.values())
    row = {
        "month": month.month, "part": part, "place": place.address, "state": "dropping", "made_at": about["made_at"],
        "sha256": hashlib.sha256(manifest).hexdigest(), "row_count": rows,
        "size_bytes": sum(expected["size_bytes"] for expected in files.values()),
    }  # fmt: skip
    archive_id = postgres.retry(engine, partial(_register, engine, row, groups))
    _drop(engine, archive_id, groups)
    return Archive(month.month, place.address, len(month.runs), rows, row["size_bytes"])


def finish_interrupted(engine: Engine) -> list[Archive]:
    """Delete the rows of months whose files are complete but whose deletion was interrupted."""
    done = []
    for row in _archives(engine, "dropping"):
        place = open_place(row["place"])
        manifest = contents.read_manifest(place, row["month"], row["part"], row["sha256"])
        for path, expected in manifest["files"].items():
            require_whole(place, path, expected)
        groups = contents.groups_of(manifest)
        _drop(engine, row["archive_id"], groups)
        runs = sum(len(group.runs) for group in groups)
        done.append(Archive(row["month"], row["place"], runs, row["row_count"], row["size_bytes"]))
    return done


def _archives(engine: Engine, state: str) -> list[dict[str, Any]]:
    with reading(engine) as connection:
        query = text("SELECT * FROM archives WHERE state = :state ORDER BY month, part")
        return dicts_of(connection.execute(query, {"state": state}))


def _store_id(engine: Engine) -> str:
    """Return the identity of the store, by which a place knows whose archives it has."""
    with writing(engine) as connection:
        query = text("INSERT INTO facts (name, value) VALUES ('store_id', :value) ON CONFLICT (name) DO NOTHING")
        connection.execute(query, {"value": uuid.uuid4().hex})
        return str(connection.execute(text("SELECT value FROM facts WHERE name = 'store_id'")).scalar_one())


def _next_part(engine: Engine, place: Place, month: str, store_id: str) -> int:
    """Return the next ordinal of a month; files of an interrupted or restored archive are replaced."""
    with reading(engine) as connection:
        query = text("SELECT coalesce(max(part) + 1, 0) FROM archives WHERE month = :month")
        part = int(connection.execute(query, {"month": month}).scalar_one())
    if has_file(place, contents.manifest_path(month, part)):
        found = contents.read_manifest(place, month, part)
        if found["store"] != store_id:
            raise UsageError(
                f"{place.address} has the month {month} of another store, which would be replaced; give --to another "
                "folder"
            )
    return part


def _remove_stale(place: Place, month: str, part: int, store_id: str) -> None:
    """Remove later parts, whose rows were restored and are in this part now."""
    part += 1
    while has_file(place, manifest := contents.manifest_path(month, part)):
        found = contents.read_manifest(place, month, part)
        if found["store"] != store_id:
            return
        for path in found["files"]:
            if has_file(place, path):
                remove_file(place, path)
        remove_file(place, manifest)
        part += 1


def _grouped(engine: Engine, runs: Sequence[Mapping[str, Any]]) -> list[Group]:
    """Return runs in groups of limited size, each with its files."""
    groups: list[Group] = []
    lines = 0
    for run in runs:
        lines += int(run["lines"])
        if not groups or len(groups[-1].runs) >= RUNS_PER_GROUP or lines > LINES_PER_GROUP:
            groups.append(Group({}, {}, {}))
            lines = int(run["lines"])
        groups[-1].runs[int(run["run_id"])] = int(run["changes"])
    with reading(engine) as connection:
        for group in groups:
            group.uploads.update(_uploads(connection, group))
    return groups


def _uploads(connection: Connection, group: Group) -> dict[int, int]:
    rows = connection.execute(_of_runs(_UPLOADS), {"runs": list(group.runs)})
    return {int(upload_id): int(run_id) for upload_id, run_id in rows}


def _of_runs(query: str) -> Any:
    return text(query).bindparams(bindparam("runs", expanding=True))


def _write(
    place: Place, path: str, schema: Any, groups: Sequence[Group], rows: Callable[[Group], Iterator[Any]]
) -> tuple[dict[str, Any], list[Span]]:
    """Write the rows of all groups to a file; return its row count and checksum, and where each group is."""
    spans = []
    with writing_file(place, path) as stream:
        file = ParquetFile(stream, schema)
        for group in groups:
            file.end_group()
            first, before = file.groups, file.rows
            for some in rows(group):
                file.add(some)
            file.end_group()
            spans.append(Span(first, file.groups - first, file.rows - before))
        written = file.close()
    return written, spans


def _of_view(engine: Engine, view: str, group: Group) -> Iterator[Any]:
    """Yield the rows that a view has of some runs."""
    schema = schema_of_view(view)
    if view == "v1_metrics":
        yield from rows_of_blocks(engine, list(group.runs), schema)
        for query in long_metrics_queries():
            yield from _asked(engine, f"{query} WHERE u.run_id IN", schema, group)
        return
    columns = ", ".join(f'"{name}"' for name in schema.names)
    yield from _asked(engine, f"SELECT {columns} FROM {view} WHERE run_id IN", schema, group)


def _asked(engine: Engine, query: str, schema: Any, group: Group) -> Iterator[Any]:
    """Yield the rows of a query that ends before the list of the runs of a group."""
    yield from _rows(engine, f"{query} ({', '.join(str(int(run)) for run in group.runs)})", schema)


def _rows(engine: Engine, query: str, schema: Any) -> Iterator[Any]:
    """Yield the rows of a query without parameters, some at a time, from a server as Arrow tables."""
    with reading(engine) as connection:
        # A server writes bytes as text that Arrow does not read.
        if engine.dialect.name == "postgresql" and pa.binary() not in schema.types:
            from profsvc.store.maintenance.archive.copying import copied

            yield from copied(connection, query, schema)
            return
        streamed = text(query).execution_options(stream_results=True, max_row_buffer=ROWS_PER_FETCH)
        yield from connection.execute(streamed).partitions(ROWS_PER_FETCH)


def _of_table(engine: Engine, name: str, table: Leaving, group: Group) -> Iterator[Any]:
    """Yield the rows of a base table that leave, in the order of its key."""
    columns = ", ".join(column.name for column in metadata.tables[name].columns)
    keys = ", ".join(column.name for column in metadata.tables[name].primary_key)
    for query, bounds in _conditions(table, group):
        where = query.replace(":first", str(bounds["first"])).replace(":end", str(bounds["end"]))
        yield from _rows(engine, f"SELECT {columns} FROM {name} WHERE {where} ORDER BY {keys}", schema_of_table(name))


def _conditions(table: Leaving, group: Group) -> Iterator[tuple[str, dict[str, int]]]:
    """Yield the conditions for the rows of a group in a base table, one per range of its key."""
    for first, last in contents.ranges(group.owners(table)):
        bounds = {"first": first * table.per_owner, "end": (last + 1) * table.per_owner}
        yield f"{table.key} >= :first AND {table.key} < :end{table.condition}", bounds


def _put(place: Place, path: str, content: bytes) -> None:
    """Write a short file, and read it back."""
    with writing_file(place, path) as file:
        file.write(content)
    with reading_file(place, path) as file:
        if file.read() != content:
            raise ServiceError(f"{place.address}/{path} differs from what was written; nothing was changed")


def _register(engine: Engine, row: dict[str, Any], groups: Sequence[Group]) -> int:
    """Note the archive in the store, if all its runs are as they were read."""
    with writing(engine) as connection:
        for group in groups:
            _require_unchanged(connection, group)
        table = metadata.tables["archives"]
        return int(connection.execute(insert(table).values(row).returning(table.c.archive_id)).scalar_one())


def _require_unchanged(connection: Connection, group: Group) -> None:
    lock = " FOR UPDATE" if connection.dialect.name == "postgresql" else ""
    rows = connection.execute(_of_runs(_CHANGES.format(lock=lock)), {"runs": list(group.runs)})
    found = {int(run_id): int(changes) for run_id, changes in rows}
    if found != group.runs or _uploads(connection, group) != group.uploads:
        changed = sorted(run for run in group.runs if found.get(run) != group.runs[run])
        raise ServiceError(
            f"run {', '.join(map(str, changed))} changed while its month was archived; its rows stay in the store; "
            "run the command again; if it ends so again, run: profsvc db restore MONTH, then archive it again"
        )


def _drop(engine: Engine, archive_id: int, groups: Sequence[Group]) -> None:
    """Delete the rows of all groups, each in one transaction; groups that are gone already are skipped."""
    for group in groups:
        postgres.retry(engine, partial(_drop_group, engine, archive_id, group))
    with writing(engine) as connection:
        query = text("UPDATE archives SET state = 'archived' WHERE archive_id = :archive_id")
        connection.execute(query, {"archive_id": archive_id})


def _drop_group(engine: Engine, archive_id: int, group: Group) -> None:
    runs = {"runs": list(group.runs)}
    with writing(engine) as connection:
        query = _of_runs("SELECT count(*) FROM uploads WHERE run_id IN :runs AND archive_id = :archive_id")
        if connection.execute(query, runs | {"archive_id": archive_id}).scalar_one():
            return
        _require_unchanged(connection, group)
        for statement in _KEEP:
            connection.execute(_of_runs(statement), runs)
        for name, table in contents.TABLES.items():
            gone = 0
            for condition, bounds in _conditions(table, group):
                gone += connection.execute(text(f"DELETE FROM {name} WHERE {condition}"), bounds).rowcount
            if gone != group.spans[name].rows:
                raise ServiceError(
                    f"{name} has {gone:,} rows of the runs {min(group.runs)} to {max(group.runs)}, but "
                    f"{group.spans[name].rows:,} were archived; nothing was deleted; run the command again"
                )
        connection.execute(_of_runs(_MARK), runs | {"archive_id": archive_id})
