"""Bring the rows of archived months back into the store, bit for bit."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

from profsvc.errors import NotFoundError, ServiceError
from profsvc.store.connection import postgres
from profsvc.store.connection.sql import Connection, Engine, bindparam, text
from profsvc.store.connection.transactions import reading, writing
from profsvc.store.ingest.staging import DirectSink
from profsvc.store.maintenance.archive import contents
from profsvc.store.maintenance.archive.contents import Group, Leaving
from profsvc.store.maintenance.archive.parquet_files import require_whole, row_groups, schema_of_table
from profsvc.store.maintenance.archive.place import Place, open_place
from profsvc.store.results.totals import write_totals
from profsvc.store.schema.tables import metadata

_WAITING = (
    "SELECT u.upload_id, u.run_id FROM uploads u JOIN runs r ON r.run_id = u.run_id"
    " WHERE u.archive_id = :archive_id AND u.run_id IN :runs ORDER BY r.run_id{lock}"
)


class Restored(NamedTuple):
    """A restored month: its place, the files and rows that are back, and the files that were deleted meanwhile."""

    month: str
    place: str
    uploads: int
    rows: int
    deleted: int


def restore_month(engine: Engine, month: str) -> list[Restored]:
    """Restore the archives of a month. The Parquet files stay, until the month is archived there again."""
    with reading(engine) as connection:
        every = [
            dict(row) for row in connection.execute(text("SELECT * FROM archives ORDER BY month, part")).mappings()
        ]
    found = [row for row in every if row["month"] == month]
    if not found:
        listed = ", ".join(sorted({row["month"] for row in every})) or "none"
        raise NotFoundError(f"no month {month!r} is archived; archived months: {listed}")
    return [_restore(engine, row) for row in reversed(found)]


def _restore(engine: Engine, row: Mapping[str, Any]) -> Restored:
    place = open_place(row["place"])
    manifest = contents.read_manifest(place, row["month"], row["part"], row["sha256"])
    paths = {name: contents.table_path(name, row["month"], row["part"]) for name in contents.TABLES}
    _require_known_columns(place, manifest, paths)
    for path in paths.values():
        require_whole(place, path, manifest["files"][path])
    groups = contents.groups_of(manifest)
    with writing(engine) as connection:
        connection.execute(text("UPDATE archives SET state = 'restoring' WHERE archive_id = :archive_id"), row)
    uploads = rows = 0
    for group in groups:
        back = postgres.retry(engine, partial(_return, engine, row["archive_id"], place, paths, group))
        uploads, rows = uploads + back[0], rows + back[1]
    with writing(engine) as connection:
        connection.execute(text("DELETE FROM archives WHERE archive_id = :archive_id"), row)
    deleted = sum(len(group.uploads) for group in groups) - _remaining(engine, groups)
    return Restored(row["month"], row["place"], uploads, rows, deleted)


def _remaining(engine: Engine, groups: Sequence[Group]) -> int:
    query = text("SELECT count(*) FROM uploads WHERE upload_id IN :uploads")
    query = query.bindparams(bindparam("uploads", expanding=True))
    with reading(engine) as connection:
        return sum(connection.execute(query, {"uploads": list(group.uploads)}).scalar_one() for group in groups)


def _require_known_columns(place: Place, manifest: Mapping[str, Any], paths: Mapping[str, str]) -> None:
    """Raise `ServiceError` if the tables have changed since so that the rows do not fit.

    A column that was added since and may be null is null in the rows that come back.
    """
    for name, path in paths.items():
        wanted = set(schema_of_table(name).names)
        needed = {column.name for column in metadata.tables[name].columns if not column.nullable}
        if path not in manifest["files"]:
            raise _other_layout(place, manifest, f"lacks the table {name}")
        for table in row_groups(place, path):
            if not needed <= set(table.column_names) <= wanted:
                differing = ", ".join(sorted(set(table.column_names) ^ wanted))
                raise _other_layout(place, manifest, f"differs in columns of {name}: {differing}")
            break


def _other_layout(place: Place, manifest: Mapping[str, Any], what: str) -> ServiceError:
    return ServiceError(
        f"{place.address}: the archive of {manifest['month']} has the schema {manifest['schema']} and {what}; nothing "
        "was changed; to read the kept bytes of a run instead: profsvc delete RUN --all, then profsvc undelete N"
    )


def _return(engine: Engine, archive_id: int, place: Place, paths: Mapping[str, str], group: Group) -> tuple[int, int]:
    """Return the rows of a group to their tables in one transaction; return how many files and rows came back."""
    with writing(engine) as connection:
        lock = " FOR UPDATE OF r" if connection.dialect.name == "postgresql" else ""
        query = text(_WAITING.format(lock=lock)).bindparams(bindparam("runs", expanding=True))
        waiting = connection.execute(query, {"archive_id": archive_id, "runs": list(group.runs)}).all()
        if not waiting:
            return 0, 0
        whole = len(waiting) == len(group.uploads)
        uploads = {int(row.upload_id): int(row.run_id) for row in waiting}
        back = Group(dict.fromkeys(uploads.values(), 0), uploads, group.spans)
        rows = sum(
            _return_table(connection, name, table, place, paths[name], back, whole)
            for name, table in reversed(contents.TABLES.items())
        )
        values = {"runs": list(back.runs)}
        for query_text in (
            "DELETE FROM archived_values WHERE run_id IN :runs",
            "UPDATE uploads SET archive_id = NULL WHERE run_id IN :runs",
        ):
            connection.execute(text(query_text).bindparams(bindparam("runs", expanding=True)), values)
        write_totals(connection, values["runs"])
        return len(waiting), rows


def _return_table(
    connection: Connection, name: str, table: Leaving, place: Place, path: str, group: Group, whole: bool
) -> int:
    """Insert the rows that a group has in a file; without some of its files, only those of the others."""
    import pyarrow as pa
    import pyarrow.compute as pc

    owners, sink, rows = group.owners(table), DirectSink(connection), 0
    for part in row_groups(place, path, group.spans[name]):
        kept = part
        if not whole:
            of_row = pc.divide(part[table.key], table.per_owner)
            kept = part.filter(pc.is_in(of_row, value_set=pa.array(owners, pa.int64())))
        if kept.num_rows:
            sink.write(name, _columns(kept))
            rows += kept.num_rows
    if whole and rows != group.spans[name].rows:
        raise ServiceError(
            f"{place.address}/{path} has {rows:,} rows of {group.spans[name].rows:,}; nothing was changed"
        )
    return rows


def _columns(table: Any) -> dict[str, Sequence[Any]]:
    """Return the columns of an Arrow table as lists."""
    return {name: table[name].to_pylist() for name in table.column_names}
