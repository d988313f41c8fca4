"""Delete files and runs, and list deletions that can be undone: a record and the kept bytes stay.

The record contains everything needed to read the kept bytes again into the same upload and run. It is removed with the
bytes, by `profsvc.store.maintenance.cleanup`.
"""

import json
import re
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import insert

from profsvc.errors import NotFoundError, UsageError, counted
from profsvc.store.connection.sql import Connection, Engine, bindparam, dicts_of, text
from profsvc.store.connection.timestamps import format_time, now
from profsvc.store.connection.transactions import in_transaction, reading, writing
from profsvc.store.ingest.archived_runs import require_rows
from profsvc.store.ingest.duplicates.shared_launches import mark_duplicates
from profsvc.store.ingest.inserts.dictionaries import Names
from profsvc.store.ingest.runs import RunInfo, forget_deleted_facts, lookup_upload
from profsvc.store.ingest.source_launches import join_source_pages
from profsvc.store.ingest.upload import CompleteRun
from profsvc.store.results.writer import clear_results, clear_upload
from profsvc.store.schema.tables import metadata

AGE_UNITS = {"h": "hours", "d": "days", "w": "weeks"}
RUN_COLUMNS = ("host", "commit_id", "started_at", "created_at")
_UPLOADS = """
    SELECT u.upload_id, u.run_id, r.project, r.name AS run, u.file_name, u.sha256, u.size_bytes, u.format, u.launches,
           u.samples, u.facts, u.received_at
    FROM uploads u JOIN runs r ON r.run_id = u.run_id WHERE u.upload_id IN :numbers ORDER BY u.upload_id
"""
_RUN = """
    SELECT r.host, r.commit_id, r.started_at, r.created_at, d.name AS device,
           coalesce(d.compute_capability, '') AS compute_capability
    FROM runs r LEFT JOIN devices d ON d.device_id = r.device_id WHERE r.run_id = :run_id
"""
# The age of a run counts from its newest file, but not from before the run was added: ``--at`` may lie years back.
_AGED = """
    SELECT r.run_id, r.project, r.name AS run,
           CASE WHEN max(u.received_at) > r.created_at THEN max(u.received_at) ELSE r.created_at END AS last_added,
           count(u.upload_id) AS uploads, max(u.upload_id) AS newest_upload_id,
           coalesce(sum(u.launches), 0) AS launches,
           coalesce(sum(u.samples), 0) AS samples, coalesce(sum(u.size_bytes), 0) AS size_bytes
    FROM runs r LEFT JOIN uploads u ON u.run_id = r.run_id
    GROUP BY r.run_id, r.project, r.name, r.created_at ORDER BY r.run_id
"""

_FILES_OF_RUN = """
    SELECT count(*) AS uploads, max(upload_id) AS newest_upload_id FROM uploads WHERE run_id = :run_id
"""


def _lock_run(connection: Connection, run_id: int) -> bool:
    """Return whether a run exists; on a server lock it against uploads, after waiting for running ones."""
    alone = " FOR UPDATE" if connection.dialect.name == "postgresql" else ""
    query = text(f"SELECT run_id FROM runs WHERE run_id = :run_id{alone}")
    return connection.execute(query, {"run_id": run_id}).first() is not None


def delete_upload(engine: Engine, upload_id: int, complete: CompleteRun = lambda run_id: None) -> None:
    """Delete a file with all its rows, and the results of its run, which depend on them.

    ``complete`` computes new results in the same transaction, so no reader sees the run without results.
    """
    with writing(engine) as connection:
        for row in _uploads(connection, [upload_id]):
            _lock_run(connection, row["run_id"])
        found = _uploads(connection, [upload_id])  # after the lock no process can read the file again
        if not found:
            raise NotFoundError(f"no upload has the number {upload_id}")
        require_rows(connection, found[0]["run_id"], "the results without this file need")
        _record_deletion(connection, found)
        clear_upload(connection, upload_id)
        clear_results(connection, found[0]["run_id"])
        mark_duplicates(connection, found[0]["run_id"])
        join_source_pages(connection, found[0]["run_id"])
        forget_deleted_facts(connection, found[0]["run_id"])
        with in_transaction(engine, connection):
            complete(found[0]["run_id"])


def delete_run(engine: Engine, run_id: int) -> None:
    """Delete a run with its files and results."""
    if not _delete_run(engine, run_id):
        raise NotFoundError(f"no run has the number {run_id}")


def delete_aged_runs(engine: Engine, runs: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Delete runs as `aged_runs` listed them; return those that were deleted.

    A run that got a new file since, or that is gone, is left as it is.
    """
    return [run for run in runs if _delete_run(engine, run["run_id"], run)]


def _delete_run(engine: Engine, run_id: int, listed: Mapping[str, Any] | None = None) -> bool:
    """Delete a run unless it is gone, or its files are not those with which it was ``listed``; return whether."""
    with writing(engine) as connection:
        if not _lock_run(connection, run_id):
            return False
        if listed is not None:
            now_there = connection.execute(text(_FILES_OF_RUN), {"run_id": run_id}).mappings().one()
            if any(listed[name] != value for name, value in now_there.items()):
                return False
        query = text("SELECT upload_id FROM uploads WHERE run_id = :run_id")
        found = _uploads(connection, list(connection.execute(query, {"run_id": run_id}).scalars()))
        _record_deletion(connection, found)
        for row in found:
            clear_upload(connection, row["upload_id"])
        clear_results(connection, run_id)
        connection.execute(text("DELETE FROM runs WHERE run_id = :run_id"), {"run_id": run_id})
        return True


def _uploads(connection: Connection, numbers: list[int]) -> list[dict[str, Any]]:
    query = text(_UPLOADS).bindparams(bindparam("numbers", expanding=True))
    return dicts_of(connection.execute(query, {"numbers": numbers}))


def _record_deletion(connection: Connection, uploads: Iterable[Mapping[str, Any]]) -> None:
    """Record the deletion."""
    for row in uploads:
        run = dict(connection.execute(text(_RUN), {"run_id": row["run_id"]}).mappings().one())
        tags = connection.execute(text("SELECT key, value FROM run_tags WHERE run_id = :run_id"), row).all()
        run["tags"] = dict(tags)
        record = {**row, "run_facts": json.dumps(run, sort_keys=True), "deleted_at": now()}
        connection.execute(insert(metadata.tables["deleted_uploads"]).values(record))


def deleted_uploads(engine: Engine) -> list[dict[str, Any]]:
    """Return deleted files that are not yet removed permanently, lowest number first."""
    with reading(engine) as connection:
        query = text("SELECT * FROM deleted_uploads ORDER BY upload_id")
        return dicts_of(connection.execute(query))


def deleted_upload(engine: Engine, upload_id: int) -> dict[str, Any]:
    """Return the record of a deleted file; raise `UsageError` if it was uploaded to its run again since."""
    records = {row["upload_id"]: row for row in deleted_uploads(engine)}
    if upload_id not in records:
        listed = ", ".join(map(str, records)) or "none"
        raise NotFoundError(f"no deleted upload has the number {upload_id}; those that can be restored: {listed}")
    row = records[upload_id]
    with reading(engine) as connection:
        places = (RunInfo(run_id=row["run_id"]), RunInfo(row["project"], row["run"]))  # or in a new run with that name
        again = next(filter(None, (lookup_upload(connection, row["sha256"], place) for place in places)), None)
    if again is not None:
        raise UsageError(
            f"{row['file_name']}: its bytes were uploaded again as upload {again.upload_id}; delete that one first, "
            "or leave it as it is"
        )
    return row


def restoring(record: Mapping[str, Any]) -> Callable[[Connection], None]:
    """Return the preparation for restoring a deleted file: it creates the run and removes the record."""

    def restore(connection: Connection) -> None:
        connection.execute(text("DELETE FROM deleted_uploads WHERE upload_id = :upload_id"), record)
        if connection.execute(text(_RUN), record).first() is None:
            _restore_run(connection, record)
        clear_results(connection, record["run_id"])

    return restore


def _restore_run(connection: Connection, record: Mapping[str, Any]) -> None:
    facts = json.loads(record["run_facts"])
    query = text("SELECT name FROM runs WHERE project = :project")
    taken = set(connection.execute(query, record).scalars())
    name, number = record["run"], 1
    while name in taken:  # another run was given the name meanwhile
        number += 1
        name = f"{record['run']}-{number}"
    row = {"run_id": record["run_id"], "project": record["project"], "name": name}
    row |= {name: facts[name] for name in RUN_COLUMNS}
    if facts["device"] is not None:
        row["device_id"] = Names(connection, "devices")[facts["device"], facts["compute_capability"]]
    connection.execute(insert(metadata.tables["runs"]).values(row))
    for key, value in facts["tags"].items():
        tag = {"run_id": row["run_id"], "key": key, "value": value}
        connection.execute(insert(metadata.tables["run_tags"]).values(tag))


def rereading(upload_id: int, run_id: int) -> Callable[[Connection], None]:
    """Return the preparation for reading a stored file again: it removes the rows and their results."""

    def clear(connection: Connection) -> None:
        _lock_run(connection, run_id)
        if not _uploads(connection, [upload_id]):  # the transaction that held the lock deleted it
            raise NotFoundError(f"no upload has the number {upload_id}")
        require_rows(connection, run_id, "the results need")
        clear_upload(connection, upload_id)
        clear_results(connection, run_id)

    return clear


def read_age(words: str) -> timedelta:
    """Return the duration for an age such as 90d.

    >>> read_age("90d")
    datetime.timedelta(days=90)
    """
    if not (found := re.fullmatch(r"(\d{1,5})([hdw])", words)):
        raise UsageError(f"--older-than {words!r} must be a number and h, d or w, such as 90d")
    return timedelta(**{AGE_UNITS[found[2]]: int(found[1])})


def aged_runs(
    engine: Engine,
    older_than: timedelta,
    project: str | None = None,
    keep_tagged: Mapping[str, str | None] | None = None,
) -> list[dict[str, Any]]:
    """Return the runs that were added, and got their newest file, before this time; none with one of the tags.

    A tag without a value keeps any value of it. A time given with ``--at`` makes no run older.
    """
    before = format_time(datetime.now(UTC) - older_than)
    with reading(engine) as connection:
        rows = dicts_of(connection.execute(text(_AGED)))
        tags = connection.execute(text("SELECT run_id, key, value FROM run_tags")).all()
    wanted = keep_tagged or {}
    kept = {run for run, key, value in tags if key in wanted and wanted[key] in {None, value}}
    return [
        row
        for row in rows
        if row["last_added"] < before and row["run_id"] not in kept and project in {None, row["project"]}
    ]


CONTENT_COUNTS = {"uploads": "upload", "launches": "launch", "samples": "sample"}


def content_summary(row: Mapping[str, Any]) -> str:
    """Return the contents of a run or upload in words, from a row with its launches, samples and bytes."""
    counts = [counted(row[name], what) for name, what in CONTENT_COUNTS.items() if row.get(name)]
    return ", ".join([*counts, counted(row["size_bytes"], "byte")])
