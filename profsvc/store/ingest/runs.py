"""Find or create the run of a file, and detect duplicate files.

The bytes of a file are kept once and may belong to several runs and projects; each run has its own upload of them.
Within one run duplicate files are ignored. Without a run name, an existing upload of the project is returned.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import PurePath
from typing import Any

from profsvc.errors import NotFoundError, UsageError
from profsvc.store.connection.sql import Connection, Engine, text
from profsvc.store.connection.timestamps import format_time, now
from profsvc.store.connection.transactions import reading, writing
from profsvc.store.ingest.inserts.dictionaries import Names

MAX_NAME_CHARS = 500
EARLIEST_TIME = datetime(1970, 1, 2, tzinfo=UTC)
_FOUND = """
    SELECT u.upload_id, u.run_id, r.name AS run, u.launches, u.lines, u.lines_stored, u.lines_skipped,
           u.lines_rejected, u.status, u.message
    FROM uploads u JOIN runs r ON r.run_id = u.run_id WHERE u.sha256 = :sha256 AND {} ORDER BY u.upload_id LIMIT 1
"""


@dataclass(frozen=True)
class UploadInfo:
    """Facts about a file before it is read; number and time only if it was stored before.

    ``sha256`` may be a function that returns it, for bytes that are hashed while they are read.
    """

    file_name: str
    sha256: str | Callable[[], str]
    size_bytes: int
    format: str
    upload_id: int | None = None
    received_at: str | None = None

    def digest(self) -> str:
        """Return the SHA-256 of the bytes; this may read all of them."""
        return self.sha256 if isinstance(self.sha256, str) else self.sha256()


@dataclass(frozen=True)
class RunInfo:
    """The run that a file belongs to.

    ``run_id`` names a run that exists. Else ``project`` and ``name`` name one, new or not. Without a name the file
    begins a new run that takes the name of the file. What is given replaces what the run has. Bytes that the project
    holds already stay where they are if no run is named, or if they may be ``anywhere``. ``at``, if it is not now, is
    when it was measured: the night that it counts for. ``new_run_id`` is the number of a run that is new, out of
    `reserve_run_ids`.
    """

    project: str = "default"
    name: str | None = None
    run_id: int | None = None
    device: str | None = None
    host: str | None = None
    commit_id: str | None = None
    started_at: str | None = None
    tags: Mapping[str, str] = field(default_factory=dict)
    anywhere: bool = False
    at: str | None = None
    new_run_id: int | None = None


@dataclass(frozen=True)
class StoredUpload:
    """A stored file; ``known`` if it was stored before."""

    upload_id: int
    run_id: int
    run: str
    launches: int
    lines: int
    lines_stored: int
    lines_skipped: int
    lines_rejected: int
    status: str
    message: str
    known: bool = False


def parse_measured_at(words: str) -> str:
    """Return the time of a measurement in the format of the store; a time without a zone is UTC.

    >>> parse_measured_at("2026-03-29T03:30:00+02:00"), parse_measured_at("2026-03-29")
    ('2026-03-29T01:30:00Z', '2026-03-29T00:00:00Z')
    """
    try:
        said = datetime.fromisoformat(words)
        when = (said if said.tzinfo else said.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError):
        raise UsageError(f"{words!r} is not a time; write it as {now()} or {now()[:10]}") from None
    if not EARLIEST_TIME <= when <= datetime.now(UTC):
        raise UsageError(f"{words!r} must lie between 1970 and now, which is {now()}")
    return format_time(when)


def find_upload(engine: Engine, sha256: str, run: RunInfo) -> StoredUpload | None:
    """Return the upload of these bytes in the run, or in the project if no run is given; None if not stored."""
    with reading(engine) as connection:
        return lookup_upload(connection, sha256, run)


def stored_file_names(engine: Engine, project: str) -> list[tuple[str, str]]:
    """Return the run and the name of every file that is stored in a project."""
    query = "SELECT r.name, u.file_name FROM uploads u JOIN runs r ON r.run_id = u.run_id WHERE r.project = :project"
    with reading(engine) as connection:
        return [(name, file) for name, file in connection.execute(text(query), {"project": project})]


def check_run_names(run: RunInfo, *others: str | None) -> None:
    """Raise `UsageError` for names and tags of a run, and ``others``, that cannot be seen or stored.

    Control characters and bidirectional marks are allowed: whatever shows a name shows them as escapes.
    """
    for what, name in (("project", run.project), ("run", run.name), ("device", run.device)):
        if name is not None and not is_visible(name):
            raise UsageError(f"the name of the {what} is {name[:20]!r}, which cannot be seen; give one with a letter")
    for key in run.tags:
        if not is_visible(key):
            raise UsageError(f"a tag has the key {key[:20]!r}, which cannot be seen; give one with a letter")
    check_texts(run.project, run.name, run.device, run.commit_id, *run.tags, *run.tags.values(), *others)


def check_texts(*texts: str | None) -> None:
    """Raise `UsageError` for texts that are too long, or that have what no database accepts."""
    for text_ in filter(None, texts):
        if len(text_) > MAX_NAME_CHARS:
            raise UsageError(
                f"the text {text_[:40]!r}... has {len(text_)} characters; names and tags may have {MAX_NAME_CHARS}"
            )
        if "\0" in text_ or any("\ud800" <= letter <= "\udfff" for letter in text_):
            raise UsageError(f"the text {text_[:200]!r} contains an invalid character; give another")


def is_visible(name: str) -> bool:
    """Tell whether a name has a character that is seen: no space, line end or control character.

    >>> is_visible("a b"), is_visible(""), is_visible(" \u200b\\n")
    (True, False, False)
    """
    return any(letter.isprintable() and not letter.isspace() for letter in name)


def lookup_upload(connection: Connection, sha256: str, run: RunInfo, *, known: bool = True) -> StoredUpload | None:
    """Return the upload of these bytes, as visible in this transaction."""
    named = "r.project = :project" + (" AND r.name = :name" if run.name is not None and not run.anywhere else "")
    query = text(_FOUND.format("u.run_id = :run_id" if run.run_id is not None else named))
    asked = {"sha256": sha256, "run_id": run.run_id, "project": run.project, "name": run.name}
    row = connection.execute(query, asked).mappings().first()
    return StoredUpload(**row, known=known) if row else None


def lock_content(connection: Connection, sha256: str) -> None:
    """Lock the content on a server, so that only this transaction stores it; a SQLite file has a single writer."""
    if connection.dialect.name == "postgresql":
        connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": int(sha256[:15], 16)})


def find_or_create_run(connection: Connection, run: RunInfo, file_name: str) -> int:
    """Find or create the run. On a server a concurrent upload may create the run; then that one is returned."""
    while (run_id := _existing_run(connection, run)) is None and (
        run_id := _create_run(connection, run, file_name)
    ) is None:
        pass
    return run_id


def _create_run(connection: Connection, run: RunInfo, file_name: str) -> int | None:
    name = run.name or _free_name(connection, run.project, file_name)
    row: dict[str, Any] = {"project": run.project, "name": name, "created_at": now()}
    if run.new_run_id is not None:
        row["run_id"] = run.new_run_id
    query = text(
        f"INSERT INTO runs ({', '.join(row)}) VALUES (:{', :'.join(row)}) ON CONFLICT DO NOTHING RETURNING run_id"
    )
    return connection.execute(query, row).scalar()


def reserve_run_ids(engine: Engine, count: int) -> list[int]:
    """Return ascending numbers for runs, each unique for ever, so that runs can be stored in any order."""
    with writing(engine) as connection:
        if connection.dialect.name == "postgresql":
            query = text("SELECT nextval(pg_get_serial_sequence('runs', 'run_id')) FROM generate_series(1, :count)")
            return sorted(connection.execute(query, {"count": count}).scalars())
        last = reserve_sqlite_ids(connection, "runs", count)
        return list(range(last - count + 1, last + 1))


def reserve_sqlite_ids(connection: Connection, table: str, count: int = 1) -> int:
    """Advance the numbers that SQLite gives to the rows of a table; return the last that no row will get."""
    connection.execute(
        text(
            "INSERT INTO sqlite_sequence (name, seq)"
            " SELECT :table, 0 WHERE NOT EXISTS (SELECT 1 FROM sqlite_sequence WHERE name = :table)"
        ),
        {"table": table},
    )
    query = text("UPDATE sqlite_sequence SET seq = seq + :count WHERE name = :table RETURNING seq")
    return int(connection.execute(query, {"table": table, "count": count}).scalar_one())


def _existing_run(connection: Connection, run: RunInfo) -> int | None:
    """Find the run, and on a server lock it against deletion."""
    stays = " FOR KEY SHARE" if connection.dialect.name == "postgresql" else ""
    if run.run_id is not None:
        query = text(f"SELECT run_id FROM runs WHERE run_id = :run_id{stays}")
        if connection.execute(query, {"run_id": run.run_id}).first() is None:
            raise NotFoundError(f"no run has the number {run.run_id}")
        return run.run_id
    if run.name is None:
        return None
    query = text(f"SELECT run_id FROM runs WHERE project = :project AND name = :name{stays}")
    return connection.execute(query, {"project": run.project, "name": run.name}).scalar()


def _free_name(connection: Connection, project: str, file_name: str) -> str:
    """Return the file name without folder and suffixes, with a number appended if a run has that name."""
    stem = PurePath(file_name).name.split(".")[0]
    stem = stem if is_visible(stem) else "run"
    query = text("SELECT name FROM runs WHERE project = :project AND substr(name, 1, :length) = :stem")
    taken = set(connection.execute(query, {"project": project, "stem": stem, "length": len(stem)}).scalars())
    number = 1
    while (name := stem if number == 1 else f"{stem}-{number}") in taken:
        number += 1
    return name


def describe_run(engine: Engine, run_id: int, run: RunInfo) -> list[str]:
    """Update an existing run with the data of the user; return the names of the changed columns."""
    if not (run.tags or run.host or run.commit_id or run.started_at or run.at):
        return []
    with writing(engine) as connection:
        return update_run(connection, run_id, run)


def update_run(connection: Connection, run_id: int, run: RunInfo) -> list[str]:
    """Update a run with the data of the user; return the names of the changed columns."""
    columns = ("host", "commit_id", "started_at")
    said = {"host": run.host, "commit_id": run.commit_id, "started_at": run.started_at or run.at}
    given: dict[str, Any] = {name: value for name, value in said.items() if value is not None}
    query = f"SELECT {', '.join(columns)} FROM runs WHERE run_id = :run_id"
    had = dict(connection.execute(text(query), {"run_id": run_id}).mappings().one())
    changed = [name for name, value in given.items() if had[name] != value]
    if changed:
        assigned = ", ".join(f"{name} = :{name}" for name in given)
        connection.execute(text(f"UPDATE runs SET {assigned} WHERE run_id = :run_id"), {"run_id": run_id, **given})
    query = "SELECT key, value FROM run_tags WHERE run_id = :run_id"
    tags = {row.key: row.value for row in connection.execute(text(query), {"run_id": run_id})}
    for key, value in sorted(run.tags.items()):
        if tags.get(key) == value:
            continue
        connection.execute(
            text(
                "INSERT INTO run_tags (run_id, key, value) VALUES (:run_id, :key, :value)"
                " ON CONFLICT (run_id, key) DO UPDATE SET value = excluded.value"
            ),
            {"run_id": run_id, "key": key, "value": value},
        )
        changed.append(f"tag {key}")
    return changed


def count_change(connection: Connection, run_id: int) -> None:
    """Increment the change count of a run, so that its results are computed again."""
    connection.execute(text("UPDATE runs SET changes = changes + 1 WHERE run_id = :run_id"), {"run_id": run_id})


_NAMED = text("""
    SELECT d.name, max(d.device_id) AS device_id FROM uploads u
    JOIN upload_devices x ON x.upload_id = u.upload_id JOIN devices d ON d.device_id = x.device_id
    WHERE u.run_id = :run_id AND d.name <> '' GROUP BY d.name
""")


_GIVEN = text("SELECT 1 FROM uploads WHERE run_id = :run_id AND facts LIKE '%\"given_device\"%' LIMIT 1")


_ASSIGN = "UPDATE runs SET device_id = :device_id WHERE run_id = :run_id"


def update_run_device(connection: Connection, run_id: int) -> None:
    """Clear the device of a run with launches on several devices, and set it again if one is left.

    A device given by the user is kept.
    """
    found = connection.execute(_NAMED, {"run_id": run_id}).all()
    if not found or connection.execute(_GIVEN, {"run_id": run_id}).first() is not None:
        return
    if len(found) > 1:
        connection.execute(text(_ASSIGN), {"run_id": run_id, "device_id": None})
    else:
        query = text(f"{_ASSIGN} AND device_id IS NULL")
        connection.execute(query, {"run_id": run_id, "device_id": found[0].device_id})


def forget_deleted_facts(connection: Connection, run_id: int) -> None:
    """Give a run the device that its files name after one was deleted; without files it has neither device nor host.

    Where no file names a device, it is that which the user gave with the newest of them.
    """
    uploads = text("SELECT facts FROM uploads WHERE run_id = :run_id ORDER BY upload_id DESC")
    facts = list(connection.execute(uploads, {"run_id": run_id}).scalars())
    given = next((name for one in facts if one and (name := json.loads(one).get("given_device"))), None)
    if not facts:
        query = text("UPDATE runs SET device_id = NULL, host = NULL WHERE run_id = :run_id")
        connection.execute(query, {"run_id": run_id})
    elif given and connection.execute(_NAMED, {"run_id": run_id}).first() is None:
        device = Names(connection, "devices")[given, ""]
        connection.execute(text(_ASSIGN), {"run_id": run_id, "device_id": device})
    update_run_device(connection, run_id)
