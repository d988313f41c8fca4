"""A copy of a store in a safe place."""

import os
import shutil
import sqlite3
import subprocess
from collections.abc import Iterator
from contextlib import closing, contextmanager, nullcontext
from pathlib import Path
from typing import Any, NamedTuple

from profsvc.errors import ServiceError, UsageError
from profsvc.store.connection.errors import user_error
from profsvc.store.connection.file_permissions import create_private
from profsvc.store.connection.sql import Connection, Engine, text
from profsvc.store.connection.timestamps import now
from profsvc.store.connection.transactions import exclusive_writer, reading, writing
from profsvc.store.connection.urls import file_of
from profsvc.store.ingest import blob_store
from profsvc.store.ingest.blob_store import BlobStore
from profsvc.store.maintenance.cleanup import _needed
from profsvc.store.results.finished_parts import unfinished

# What a backup says that it holds; most samples are numbers in the list of a block.
_COUNTS = {
    **{table: f"SELECT count(*) FROM {table}" for table in ("runs", "uploads", "launches")},
    "samples": "SELECT coalesce(sum(last_id - first_id + 1), 0) FROM sample_blocks",
    "deleted_uploads": "SELECT count(*) FROM deleted_uploads",
}


class Backup(NamedTuple):
    """What a backup holds: rows by table, files of kept bytes, those that should be there and are not.

    ``unfinished`` are the runs whose analysis was under way, which the copy may lack.
    """

    rows: dict[str, int]
    files: int
    missing: int
    unfinished: list[int]


def backup(engine: Engine, target: Path, files: BlobStore | None = None) -> Backup:
    """Copy the store to a file that does not exist yet, as it is at one moment, and check the copy.

    With ``files`` the kept bytes go to ``<target>.files`` beside it. A server's store is written by ``pg_dump``.
    """
    beside = Path(f"{target}.files")
    # What a backup that was killed brought there is whole, file by file, and is gone on with.
    begun = files is not None and beside.is_dir() and {path.name for path in beside.iterdir()} <= {"blobs"}
    for path in (target, *([] if begun else [beside])):
        if path.exists():
            raise UsageError(f"{path} exists; a backup replaces nothing, give another name")
    done: list[bool] = []
    fixed = _is_read_only(engine)
    with blob_store.protecting_blobs(files) if files and not fixed else nullcontext(), writing_to(target) as part:
        waiting = unfinished(engine)
        rows = _dump(engine, part) if file_of(engine) is None else _copy(engine, part)
        waiting |= unfinished(engine)
        if files is not None:  # before the store gets its name, which says that all is there
            done = _copy_blobs(engine, files, BlobStore(beside.absolute()))
    if not fixed:
        with writing(engine) as connection:
            _record_backup(connection, f"{now()} {target.absolute()}")
    return Backup(rows, sum(done), len(done) - sum(done), sorted(waiting))


@contextmanager
def writing_to(target: Path) -> Iterator[Path]:
    """Give a name to write to; only what is whole gets the name that was asked for."""
    part = Path(f"{target}.part")
    try:
        part.unlink(missing_ok=True)
        create_private(part)
        yield part
        with part.open("rb+") as file:
            os.fsync(file.fileno())
        part.rename(target)
        blob_store.sync_folder(target.absolute().parent)
    except OSError as error:
        raise ServiceError(f"{target} cannot be written: {error.strerror}; there is no backup") from None
    finally:
        part.unlink(missing_ok=True)


def _copy(engine: Engine, part: Path) -> dict[str, int]:
    """Copy a SQLite store; writers wait meanwhile, for without a write-ahead log they could not end."""
    with nullcontext() if _is_read_only(engine) else exclusive_writer(engine), reading(engine) as connection:
        rows = _rows(connection)
        source: Any = connection.connection.driver_connection
        try:
            with closing(sqlite3.connect(part)) as copy:
                source.backup(copy)
                verdict = copy.execute("PRAGMA quick_check").fetchone()[0]
                copied = {table: copy.execute(_COUNTS[table]).fetchone()[0] for table in rows}
        except sqlite3.Error as error:
            raise user_error(str(error), str(part)) from error
    if verdict != "ok" or copied != rows:
        raise ServiceError(f"the copy is not whole ({verdict}; rows {copied}, should be {rows}); there is no backup")
    return rows


def _is_read_only(engine: Engine) -> bool:
    """Tell whether the store is a file of a disk where nothing can be written, not even a lock."""
    file = file_of(engine)
    return file is not None and bool(os.statvfs(file).f_flag & os.ST_RDONLY)


def _rows(connection: Connection) -> dict[str, int]:
    return {table: int(connection.execute(text(query)).scalar_one()) for table, query in _COUNTS.items()}


def _dump(engine: Engine, part: Path) -> dict[str, int]:
    url = engine.url.set(drivername="postgresql")
    shown = url._replace(password=None).render_as_string()
    program = shutil.which("pg_dump")
    command = f"pg_dump --format=custom --file={part.with_suffix('')} {shown}"
    if program is None:
        raise ServiceError(f"a store on a server is backed up by pg_dump, which is not installed; install it, or run "
                           f"where it is: {command}")  # fmt: skip
    secret = {"PGPASSWORD": url.password} if url.password else {}
    done = subprocess.run(
        [program, "--format=custom", f"--file={part}", shown],
        env=os.environ | secret,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        said = " ".join(done.stderr.split())
        raise ServiceError(f"pg_dump failed: {said}; there is no backup; the command was: {command}")
    with reading(engine) as connection:
        return _rows(connection)


def _copy_blobs(engine: Engine, files: BlobStore, target: BlobStore) -> list[bool]:
    """Bring the kept bytes that the store needs beside its backup; tell of each whether it was there."""
    lying, done = blob_store.stored_blobs(files), []
    for sha256 in sorted(_needed(engine)):
        done.append(sha256 in lying)
        if sha256 in lying:
            blob = target.blob(sha256)
            blob.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            if blob.exists():
                continue
            try:
                os.link(lying[sha256], blob)  # a blob never changes, so a second name is as good as a copy
            except OSError:
                shutil.copyfile(lying[sha256], part := blob.with_suffix(".part"))
                part.replace(blob)
    getattr(os, "sync", lambda: None)()
    return done


def _record_backup(connection: Connection, value: str) -> None:
    statement = (
        "INSERT INTO facts (name, value) VALUES ('backup', :value) ON CONFLICT (name) DO UPDATE SET value = :value"
    )
    connection.execute(text(statement), {"value": value})


def last_backup(engine: Engine) -> str | None:
    """Return when the last backup was made (UTC) and where it was put; None if none was."""
    with reading(engine) as connection:
        return connection.execute(text("SELECT value FROM facts WHERE name = 'backup'")).scalar()
