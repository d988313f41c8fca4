"""Upkeep of a store: what nobody needs any more, space given back, a copy in a safe place."""

import os
import shutil
import sqlite3
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager, nullcontext, suppress
from pathlib import Path
from typing import Any, NamedTuple

from sqlalchemy import Connection, Engine, text

from profsvc.errors import ServiceError, UsageError, counted
from profsvc.store import kept
from profsvc.store.belonging import now
from profsvc.store.engine import explained, file_of, plain_errors, reading, turn, writing
from profsvc.store.finished import unfinished
from profsvc.store.kept import Files
from profsvc.store.rights import own
from profsvc.store.schema import metadata
from profsvc.store.staging import left_over

CHECKED = ("runs", "uploads", "launches", "samples", "deleted_uploads")


class Waste(NamedTuple):
    """Files that nobody needs: of uploads that were killed on their way in, or before their rows were committed."""

    leftovers: list[Path]
    orphans: list[Path]


class Backup(NamedTuple):
    """What a backup holds: rows by table, files of kept bytes, those that should be there and are not.

    ``unfinished`` are the runs whose analysis was under way, which the copy may lack.
    """

    rows: dict[str, int]
    files: int
    missing: int
    unfinished: list[int]


def waste(engine: Engine, files: Files) -> Waste:
    """Return what lies in the folder of kept bytes and is not needed; while uploads are under way, theirs is in it."""
    lying = kept.blobs(files)
    needed = _needed(engine)
    file = file_of(engine)
    places = left_over(file) if file is not None else []
    return Waste([*kept.leftovers(files), *places], [path for sha256, path in lying.items() if sha256 not in needed])


def _needed(engine: Engine) -> set[str]:
    with reading(engine) as connection:
        return {
            sha256
            for table in ("uploads", "deleted_uploads")
            for (sha256,) in connection.execute(text(f"SELECT sha256 FROM {table}"))
        }


def sweep(engine: Engine, files: Files) -> int:
    """Remove what is not needed, when no upload is under way; return how many bytes that gave back."""
    with kept.removing(files):
        found = waste(engine, files)
        return kept.remove([*found.leftovers, *found.orphans])


def forget(engine: Engine, files: Files | None, sha256: str) -> None:
    """Remove the kept bytes of a file whose rows could not be committed; while others upload, a later sweep does."""
    if files is None:
        return
    with suppress(ServiceError), kept.removing(files, seconds=0.1):
        if sha256 not in _needed(engine):
            kept.remove([files.blob(sha256)])


def vacuum(engine: Engine, files: Files) -> tuple[int, int]:
    """Remove for good what was deleted, and give free space of the database back.

    Return how many bytes that freed of the kept files and of the database. No deletion before can be undone after.
    """
    before = _size(engine)
    with kept.removing(files):
        with writing(engine) as connection:
            connection.execute(text("DELETE FROM deleted_uploads"))
        freed = sweep(engine, files)
    with turn(engine), plain_errors(engine), engine.connect() as connection:
        if file_of(engine) is None:
            connection.execution_options(isolation_level="AUTOCOMMIT").exec_driver_sql("VACUUM (ANALYZE)")
        else:
            driver: Any = connection.connection.driver_connection
            driver.execute("VACUUM")
            driver.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return freed, max(0, before - _size(engine))


def _size(engine: Engine) -> int:
    file = file_of(engine)
    if file is not None:
        return sum(path.stat().st_size for path in (file, Path(f"{file}-wal")) if path.exists())
    with reading(engine) as connection:
        return int(connection.execute(text("SELECT pg_database_size(current_database())")).scalar_one())


def backup(engine: Engine, target: Path, files: Files | None = None) -> Backup:
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
    with kept.using(files) if files else nullcontext(), _arriving_at(target) as part:
        waiting = unfinished(engine)
        rows = _dump(engine, part) if file_of(engine) is None else _copy(engine, part)
        waiting |= unfinished(engine)
        if files is not None:  # before the store gets its name, which says that all is there
            done = _link(engine, files, Files(beside.absolute()))
    with writing(engine) as connection:
        _note(connection, f"{now()} {target.absolute()}")
    return Backup(rows, sum(done), len(done) - sum(done), sorted(waiting))


@contextmanager
def _arriving_at(target: Path) -> Iterator[Path]:
    """Give a name to write to; only what is whole gets the name that was asked for."""
    part = Path(f"{target}.part")
    try:
        part.unlink(missing_ok=True)
        own(part)
        yield part
        with part.open("rb+") as file:
            os.fsync(file.fileno())
        part.rename(target)
        kept.sync(target.absolute().parent)
    except OSError as error:
        raise ServiceError(f"{target} cannot be written: {error.strerror}; there is no backup") from None
    finally:
        part.unlink(missing_ok=True)


def _copy(engine: Engine, part: Path) -> dict[str, int]:
    """Copy a SQLite store; writers wait meanwhile, for without a write-ahead log they could not end."""
    with turn(engine), reading(engine) as connection:
        rows = _rows(connection)
        source: Any = connection.connection.driver_connection
        try:
            with closing(sqlite3.connect(part)) as copy:
                source.backup(copy)
                verdict = copy.execute("PRAGMA quick_check").fetchone()[0]
                copied = {table: copy.execute(f"SELECT count(*) FROM {table}").fetchone()[0] for table in rows}
        except sqlite3.Error as error:
            raise explained(str(error), str(part)) from error
    if verdict != "ok" or copied != rows:
        raise ServiceError(f"the copy is not whole ({verdict}; rows {copied}, should be {rows}); there is no backup")
    return rows


def _rows(connection: Connection) -> dict[str, int]:
    there = [table for table in CHECKED if table in metadata.tables]
    return {table: connection.execute(text(f"SELECT count(*) FROM {table}")).scalar_one() for table in there}


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


def _link(engine: Engine, files: Files, target: Files) -> list[bool]:
    """Bring the kept bytes that the store needs beside its backup; tell of each whether it was there."""
    lying, done = kept.blobs(files), []
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


def _note(connection: Connection, value: str) -> None:
    statement = (
        "INSERT INTO facts (name, value) VALUES ('backup', :value) ON CONFLICT (name) DO UPDATE SET value = :value"
    )
    connection.execute(text(statement), {"value": value})


def last_backup(engine: Engine) -> str | None:
    """Return when the last backup was made (UTC) and where it was put; None if none was."""
    with reading(engine) as connection:
        return connection.execute(text("SELECT value FROM facts WHERE name = 'backup'")).scalar()


HELD = {"uploads": "upload", "launches": "launch", "samples": "sample"}


def holding(row: Mapping[str, Any]) -> str:
    """Say what a run or an upload holds, of a row with its launches, samples and bytes."""
    counts = [counted(row[name], what) for name, what in HELD.items() if row.get(name)]
    return ", ".join([*counts, counted(row["size_bytes"], "byte")])
