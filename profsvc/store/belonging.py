"""Which run a file belongs to, and whether it is there already.

The bytes of a file are kept once, and may belong to several runs and projects: each run that they were given to has an
upload of them. Into one run the same bytes come once. Who names no run gets the upload that the project has, if any.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import PurePath
from typing import Any

from sqlalchemy import Connection, Engine, text

from profsvc.errors import NotFoundError, UsageError
from profsvc.store.engine import reading, writing

WRITTEN = "%Y-%m-%dT%H:%M:%SZ"
FIRST = datetime(1970, 1, 2, tzinfo=UTC)
_FOUND = """
    SELECT u.upload_id, u.run_id, r.name AS run, u.launches, u.lines, u.lines_stored, u.lines_skipped,
           u.lines_rejected, u.status, u.message
    FROM uploads u JOIN runs r ON r.run_id = u.run_id WHERE u.sha256 = :sha256 AND {} ORDER BY u.upload_id LIMIT 1
"""


@dataclass(frozen=True)
class UploadInfo:
    """What is known of a file before it is read; its number and time only if it was in the store before."""

    file_name: str
    sha256: str
    size_bytes: int
    format: str
    upload_id: int | None = None
    received_at: str | None = None


@dataclass(frozen=True)
class RunInfo:
    """The run that a file belongs to.

    ``run_id`` names a run that exists. Else ``project`` and ``name`` name one, new or not. Without a name the file
    begins a new run that takes the name of the file. What is given replaces what the run has. Bytes that the project
    holds already stay where they are if no run is named, or if they may be ``anywhere``. ``at``, if it is not now, is
    when it was measured: the night that it counts for.
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


@dataclass(frozen=True)
class Stored:
    """What is in the store of a file; ``known`` if it was there before."""

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


def now() -> str:
    """Return the time, UTC, as the store writes it."""
    return datetime.now(UTC).strftime(WRITTEN)


def read_at(words: str) -> str:
    """Read when something was measured, UTC where no zone is said; return it as the store writes it.

    >>> read_at("2026-03-29T03:30:00+02:00"), read_at("2026-03-29")
    ('2026-03-29T01:30:00Z', '2026-03-29T00:00:00Z')
    """
    try:
        said = datetime.fromisoformat(words)
        when = (said if said.tzinfo else said.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError):
        raise UsageError(f"{words!r} is no time; write it as {now()} or {now()[:10]}") from None
    if not FIRST <= when <= datetime.now(UTC):
        raise UsageError(f"{words!r} must lie between 1970 and now, which is {now()}")
    return when.strftime(WRITTEN)


def find_upload(engine: Engine, sha256: str, run: RunInfo) -> Stored | None:
    """Return the upload of these bytes in a run, or, where none is named, in a project; None if there is none."""
    _must_be_text(run)
    with reading(engine) as connection:
        return found_upload(connection, sha256, run)


def _must_be_text(run: RunInfo) -> None:
    """Refuse names with half characters, which no database takes."""
    for name in filter(None, (run.project, run.name, run.device, run.commit_id, *run.tags, *run.tags.values())):
        try:
            name.encode()
        except UnicodeEncodeError:
            raise UsageError(f"the name {name[:200]!r} holds what is no character; give another") from None


def found_upload(connection: Connection, sha256: str, run: RunInfo, *, known: bool = True) -> Stored | None:
    """Return the upload of these bytes as this transaction sees it."""
    named = "r.project = :project" + (" AND r.name = :name" if run.name is not None and not run.anywhere else "")
    query = text(_FOUND.format("u.run_id = :run_id" if run.run_id is not None else named))
    asked = {"sha256": sha256, "run_id": run.run_id, "project": run.project, "name": run.name}
    row = connection.execute(query, asked).mappings().first()
    return Stored(**row, known=known) if row else None


def alone_with(connection: Connection, sha256: str) -> None:
    """On a server let nobody else store the same bytes until this transaction ends; a SQLite file has one writer."""
    if connection.dialect.name == "postgresql":
        connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": int(sha256[:15], 16)})


def run_of(connection: Connection, run: RunInfo, file_name: str) -> int:
    """Find or make the run. On a server another upload may make a run of that name meanwhile: then that is found."""
    while (run_id := _existing(connection, run)) is None and (run_id := _made(connection, run, file_name)) is None:
        pass
    return run_id


def _made(connection: Connection, run: RunInfo, file_name: str) -> int | None:
    name = run.name or _free_name(connection, run.project, file_name)
    query = text(
        "INSERT INTO runs (project, name, created_at) VALUES (:project, :name, :created_at)"
        " ON CONFLICT DO NOTHING RETURNING run_id"
    )
    return connection.execute(query, {"project": run.project, "name": name, "created_at": now()}).scalar()


def _existing(connection: Connection, run: RunInfo) -> int | None:
    """Find the run. On a server it is not deleted from here on, or is found no more."""
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
    """Return the file's name without folder and suffixes, with a number behind it if a run has that name."""
    stem = PurePath(file_name).name.split(".")[0] or "run"
    query = text("SELECT name FROM runs WHERE project = :project AND substr(name, 1, :length) = :stem")
    taken = set(connection.execute(query, {"project": project, "stem": stem, "length": len(stem)}).scalars())
    number = 1
    while (name := stem if number == 1 else f"{stem}-{number}") in taken:
        number += 1
    return name


def describe_run(engine: Engine, run_id: int, run: RunInfo) -> list[str]:
    """Write on a run that is there what the user says of it; return the names of what is another by that."""
    if not (run.tags or run.host or run.commit_id or run.started_at or run.at):
        return []
    with writing(engine) as connection:
        return describe(connection, run_id, run)


def describe(connection: Connection, run_id: int, run: RunInfo) -> list[str]:
    """Write on a run what the user says of it; return the names of what is another by that."""
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
