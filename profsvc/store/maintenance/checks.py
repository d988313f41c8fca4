"""Health checks of a store and its machine, each with advice."""

import os
import platform
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

from profsvc.errors import ProfsvcError, ServiceError, counted, first_of
from profsvc.store.connection.errors import translate_errors
from profsvc.store.connection.filesystem import LOCAL_FILE_SYSTEMS, file_system, journal_of, wal_is_safe
from profsvc.store.connection.sql import Engine, text
from profsvc.store.connection.timestamps import parse_time
from profsvc.store.connection.transactions import reading
from profsvc.store.connection.urls import file_of
from profsvc.store.ingest import blob_store
from profsvc.store.ingest.archived_runs import archived_runs
from profsvc.store.ingest.blob_store import BlobStore
from profsvc.store.maintenance import backup, cleanup
from profsvc.store.maintenance.migrations import check_views
from profsvc.store.maintenance.readiness import latest_revision, schema_state
from profsvc.store.results.finished_parts import unfinished
from profsvc.store.sandbox import user_query

MIN_POSTGRES_VERSION = 15
MAX_BRIEF_BYTES = 128 << 20
MAX_LOG_BYTES = 64 << 20
MAX_BACKUP_AGE = timedelta(days=7)
MAX_SHOWN = 5
MAX_BRIEF_UPLOADS = 10_000
"""Uploads that are looked at one by one for a page."""


class Check(NamedTuple):
    """The result of a check: ``ok``, ``warn`` or ``fail``, what was found, and what to do."""

    check: str
    state: str
    found: str
    fix: str = ""


CheckFunction = Callable[[Engine, BlobStore], Iterator[Check]]


def run_checks(
    engine: Engine, files_of: Callable[[], BlobStore], deep: bool = False, version: str = "", *, brief: bool = False
) -> list[Check]:
    """Run all checks; ``deep`` reads the whole database and all kept bytes, ``brief`` leaves out what takes long.

    ``version`` is that of today's analysis; without one results of any will do.
    ``files_of`` says where bytes are kept; of a server it is asked only if its store can be read.
    """
    file = file_of(engine)
    first = [_python, _postgres, _schema] if file is None else [_python, _sqlite, _place, _room, _schema]
    beside = BlobStore(Path()) if file is None else files_of()
    found = [check for look in first for check in _run_check(look, engine, beside)]
    schema = next(check for check in found if check.check == "schema")
    if schema.state != "ok" or (file is not None and not file.exists()):
        return found
    of_uploads: list[CheckFunction] = [_unfinished, _analysed(version), _kept(deep)]
    if brief and (newest := _newest_upload(engine)) > MAX_BRIEF_UPLOADS:
        of_uploads = [_unread(newest)]
    rest: list[CheckFunction] = [_sql, _whole(deep, brief), _log, *of_uploads, _deleted, _backup]
    if file is None:
        rest.append(_room)
    files = files_of()
    return [*found, *(check for look in rest for check in _run_check(look, engine, files))]


def _run_check(look: CheckFunction, engine: Engine, files: BlobStore) -> list[Check]:
    """Run a check; an error of the check counts as a failure."""
    try:
        with translate_errors(engine):
            return list(look(engine, files))
    except ProfsvcError as error:
        return [Check(look.__name__.strip("_"), "fail", str(error))]


def _python(_engine: Engine, _files: BlobStore) -> Iterator[Check]:
    yield Check("python", "ok", platform.python_version())


def _sqlite(engine: Engine, _files: BlobStore) -> Iterator[Check]:
    file = _file(engine)
    version = sqlite3.sqlite_version
    safe = "" if wal_is_safe() else ", whose write-ahead log may lose rows: a rollback journal is kept"
    yield Check("sqlite", "ok", f"{version}{safe}")
    if not file.exists():
        return
    wanted, kind = journal_of(file), _pragma(engine, "journal_mode")
    if kind == wanted:
        yield Check("journal", "ok", kind)
    else:
        yield Check("journal", "fail", f"{kind}, but only {wanted} is safe here", "profsvc db upgrade")


def _place(engine: Engine, _files: BlobStore) -> Iterator[Check]:
    file = _file(engine)
    kind = file_system(file)
    if kind is None or kind in LOCAL_FILE_SYSTEMS:
        yield Check("file system", "ok", kind or "not told by this system")
    else:
        fix = "put the store on a disk of this machine, or on Postgres"
        yield Check("file system", "warn", f"{kind}: locks of other machines may not hold here", fix)
    if closed := _unwritable(file, file.absolute().parent):
        yield Check("rights", "fail", f"cannot be written: {', '.join(closed)}", f"chmod u+w {' '.join(closed)}")
    else:
        yield Check("rights", "ok", "the store and its folder can be written")


def _unwritable(*paths: Path) -> list[str]:
    return [str(path) for path in paths if path.exists() and not os.access(path, os.W_OK)]


def require_writable(engine: Engine, files: BlobStore) -> None:
    """Raise `ServiceError` if the store or its kept bytes are read-only, or too little disk space is free."""
    file = file_of(engine)
    places = [] if file is None else [file, file.absolute().parent]
    if closed := _unwritable(*places, *((files.folder, files.spool) if files.keep else ())):
        raise ServiceError(f"cannot be written: {', '.join(closed)}; check the disk and your rights to it")
    if file is None:
        with reading(engine) as connection:
            query = "SELECT pg_is_in_recovery() OR current_setting('default_transaction_read_only') = 'on'"
            if connection.exec_driver_sql(query).scalar_one():
                raise ServiceError("the server only reads, as a standby does; use the primary one")
    blob_store.spool_folder(files)


def _room(engine: Engine, files: BlobStore) -> Iterator[Check]:
    file = file_of(engine)
    folder = next(folder for folder in (files.folder, *files.folder.absolute().parents) if folder.is_dir())
    disk = shutil.disk_usage(folder)
    wanted = min(files.free_bytes, disk.total // blob_store.MAX_RESERVED_DISK_PART)
    low = disk.free < wanted
    found = f"{disk.free >> 20} MiB of {disk.total >> 20} MiB free in {folder}"
    fix = f"free {(wanted - disk.free) >> 20} MiB, such as with: profsvc db vacuum" if low else ""
    yield Check("free disk" if file is not None else "free disk for kept bytes", "fail" if low else "ok", found, fix)


def _postgres(engine: Engine, _files: BlobStore) -> Iterator[Check]:
    import psycopg

    with reading(engine) as connection:
        version = int(connection.exec_driver_sql("SHOW server_version_num").scalar_one()) // 10000
    yield Check("psycopg", "ok", psycopg.__version__)
    old = version < MIN_POSTGRES_VERSION
    fix = f"upgrade the server to Postgres {MIN_POSTGRES_VERSION} or newer" if old else ""
    yield Check("postgres", "fail" if old else "ok", str(version), fix)


def _schema(engine: Engine, _files: BlobStore) -> Iterator[Check]:
    file = file_of(engine)
    if file is not None and not file.exists():
        yield Check("schema", "warn", f"there is no store {file} yet", "profsvc upload FILE")
        return
    found = schema_state(engine)
    if found == "current":
        yield Check("schema", "ok", latest_revision())
    else:
        words = {"new": "the database is empty", "old": f"older than {latest_revision()}, the program's"}
        yield Check("schema", "fail", words[found], "profsvc db upgrade")


def _sql(engine: Engine, _files: BlobStore) -> Iterator[Check]:
    """Run a query as users do, because SQL may fail or a view may lack its tables despite the right schema."""
    with reading(engine) as connection:
        check_views(connection)
    user_query.query(engine, "SELECT count(*) FROM v1_runs")
    yield Check("sql", "ok", "a question of a user is answered")


def _whole(deep: bool, brief: bool) -> CheckFunction:
    def database(engine: Engine, _files: BlobStore) -> Iterator[Check]:
        file = file_of(engine)
        if file is None:
            return
        if brief and (size := file.stat().st_size) > MAX_BRIEF_BYTES:
            yield Check("database", "ok", f"{size >> 20} MiB, not read for this page; it is read by: profsvc doctor")
            return
        pragma = "integrity_check" if deep else "quick_check"
        said = _pragma(engine, pragma)
        fix = "" if said == "ok" else "restore the store from a backup"
        yield Check("database", "ok" if said == "ok" else "fail", f"{pragma}: {said}", fix)

    return database


def _log(engine: Engine, _files: BlobStore) -> Iterator[Check]:
    log = Path(f"{file_of(engine)}-wal")
    if log.exists():
        size = log.stat().st_size
        fix = "end what reads the store for long, then: profsvc db vacuum" if size > MAX_LOG_BYTES else ""
        yield Check("write-ahead log", "warn" if fix else "ok", f"{size >> 20} MiB", fix)


def _newest_upload(engine: Engine) -> int:
    with reading(engine) as connection:
        return int(connection.execute(text("SELECT coalesce(max(upload_id), 0) FROM uploads")).scalar_one())


def _unread(newest: int) -> CheckFunction:
    def uploads(_engine: Engine, _files: BlobStore) -> Iterator[Check]:
        found = f"up to {newest:,} uploads, not looked at one by one for this page; they are by: profsvc doctor"
        yield Check("uploads", "ok", found)

    return uploads


def _unfinished(engine: Engine, files: BlobStore) -> Iterator[Check]:
    found = cleanup.unneeded_files(engine, files)
    count = len(found.leftovers) + len(found.orphans)
    leftovers, orphans = counted(len(found.leftovers), "leftover"), counted(len(found.orphans), "kept file")
    words = f"{leftovers} in the spool, {orphans} without an upload"
    under_way = " (an upload under way may be among them)" if count and not blob_store.is_unused(files) else ""
    yield Check("unfinished uploads", "warn" if count else "ok", words + under_way, "profsvc db prune" if count else "")


def _analysed(version: str) -> CheckFunction:
    def analysis(engine: Engine, _files: BlobStore) -> Iterator[Check]:
        query = "SELECT r.run_id, x.text FROM runs r LEFT JOIN texts x ON x.text_id = r.version_id ORDER BY r.run_id"
        with reading(engine) as connection:
            rows = connection.execute(text(query)).all()
        waiting, archived = unfinished(engine), archived_runs(engine)
        cut = {str(number): f"{number} ({' and '.join(parts)})" for number, parts in waiting.items()}
        old = {
            str(number): str(number)
            for number, by in rows
            if version and by not in (None, version) and number not in archived
        }
        other = "runs whose newest is of another version than today's"
        for what, runs in (("runs whose analysis is not finished", cut), (other, old)):
            if runs:
                which = ["--all"] if len(runs) > MAX_SHOWN else [f"id:{number}" for number in runs]
                fix = f"profsvc analyze {' '.join(which)}"
                yield Check("analysis", "warn", f"{what}: {first_of(runs.values(), MAX_SHOWN)}", fix)
        if not cut and not old:
            yield Check("analysis", "ok", "every run has one")

    return analysis


def _kept(deep: bool) -> CheckFunction:
    def kept_bytes(engine: Engine, files: BlobStore) -> Iterator[Check]:
        if not files.keep:
            yield Check("keeping", "warn", "off: what comes in now cannot be read again", "unset PROFSVC_KEEP")
        with reading(engine) as connection:
            rows = connection.execute(text("SELECT sha256, upload_id FROM uploads")).all()
        wanted: dict[str, list[int]] = {}
        for sha256, number in rows:
            wanted.setdefault(str(sha256), []).append(int(number))
        lying = blob_store.stored_blobs(files)
        missing = sorted(number for sha256, numbers in wanted.items() if sha256 not in lying for number in numbers)
        fix = "upload these files again after: profsvc delete RUN --upload N" if missing else ""
        words = counted(len(lying), "file") + (f"; missing for {_listed('upload', missing)}" if missing else "")
        yield Check("kept bytes", "warn" if missing else "ok", words, fix)
        if deep:
            broken = [sha256 for sha256 in lying if blob_store.blob_damage(files, sha256) not in ("", "missing")]
            damaged = sorted(number for sha256 in broken for number in wanted.get(sha256, [0]))
            yield _damage(damaged, len(lying))

    return kept_bytes


def _damage(damaged: list[int], count: int) -> Check:
    if not damaged:
        return Check("kept bytes, read whole", "ok", f"{counted(count, 'file')} as stored")
    fix = "restore these files of the blobs folder from a backup"
    return Check("kept bytes, read whole", "fail", f"damaged: {_listed('upload', damaged)}", fix)


def _listed(what: str, numbers: list[int]) -> str:
    return f"{what}{'s' * (len(numbers) > 1)} {first_of(map(str, numbers), MAX_SHOWN)}"


def _deleted(engine: Engine, _files: BlobStore) -> Iterator[Check]:
    with reading(engine) as connection:
        query = text("SELECT count(*), coalesce(sum(size_bytes), 0) FROM deleted_uploads")
        count, size = connection.execute(query).one()
    yield Check("deleted uploads", "ok", f"{count} that can be restored, {int(size)} bytes as they were given")


def _backup(engine: Engine, _files: BlobStore) -> Iterator[Check]:
    last = backup.last_backup(engine)
    when = None if last is None else parse_time(last.split()[0])
    late = when is None or datetime.now(UTC) - when > MAX_BACKUP_AGE
    fix = "profsvc db backup FILE --with-files" if late else ""
    yield Check("backup", "warn" if late else "ok", last or "none was made with profsvc", fix)


def _file(engine: Engine) -> Path:
    file = file_of(engine)
    assert file is not None, "only asked of SQLite"
    return file


def _pragma(engine: Engine, name: str) -> str:
    with reading(engine) as connection:
        said: Any = connection.exec_driver_sql(f"PRAGMA {name}").scalar_one()
    return str(said)
