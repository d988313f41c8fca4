"""Write an upload: one file, one transaction, batch by batch, so that memory does not grow with the file.

An upload is known by the SHA-256 of its bytes as given. The same bytes are stored once, whoever gives them and how
often; a file that fails half way leaves nothing behind.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import chain
from pathlib import PurePath
from typing import Any

import pandas as pd
from sqlalchemy import Connection, Engine, insert, text
from sqlalchemy.exc import IntegrityError

from profsvc.errors import DomainError, InputError, NotFoundError, ServiceError
from profsvc.store.behind import behind, cancelling
from profsvc.store.bulk import insert_rows
from profsvc.store.encode import Encoder
from profsvc.store.engine import file_of, reading, writing
from profsvc.store.names import Names
from profsvc.store.same_capture import settle
from profsvc.store.same_report import same_report
from profsvc.store.schema import STEP, metadata
from profsvc.store.staging import Direct, Sink, reserve, staging
from profsvc.store.timelines import Running
from profsvc.store.totals import Total
from profsvc.store.wide import first_without_launch
from profsvc.tables import Batch, check, check_wide

Prepare = Callable[[Connection], None]
# A file of so many rows is kept in memory until it is stored.
SHORT = 20_000
# So many cells of a wide page weigh as a row.
CELLS_A_ROW = 10
LINES = ("lines_stored", "lines_skipped", "lines_rejected")
_FOUND = """
    SELECT u.upload_id, u.run_id, r.name AS run, u.launches, u.lines, u.lines_stored, u.lines_skipped,
           u.lines_rejected, u.status, u.message
    FROM uploads u JOIN runs r ON r.run_id = u.run_id WHERE u.sha256 = :sha256
"""
_LOST = {
    table: f"SELECT min(m.{key}) FROM {table} m WHERE m.{key} > :first AND m.{key} < :end"
    f" AND NOT EXISTS (SELECT 1 FROM launches l WHERE l.launch_id = m.{key})"
    for table, key in (("metrics", "launch_ref"), ("rules", "launch_id"))
}


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
    begins a new run that takes the name of the file. What is given replaces what the run has.
    """

    project: str = "default"
    name: str | None = None
    run_id: int | None = None
    device: str | None = None
    host: str | None = None
    commit_id: str | None = None
    started_at: str | None = None
    tags: Mapping[str, str] = field(default_factory=dict)


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
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def find_upload(engine: Engine, sha256: str) -> Stored | None:
    """Return the upload of these bytes, None if they are not stored."""
    with reading(engine) as connection:
        return _found(connection, sha256)


def _found(connection: Connection, sha256: str, known: bool = True) -> Stored | None:
    row = connection.execute(text(_FOUND), {"sha256": sha256}).mappings().first()
    return Stored(**row, known=known) if row else None


def write_upload(
    engine: Engine, upload: UploadInfo, run: RunInfo, batches: Iterable[Batch], prepare: Prepare | None = None
) -> Stored:
    """Store a file: all of it, or nothing if anything goes wrong on the way, in ``batches`` too.

    A file that was in the store before is given with its number, and with what must ``prepare`` the store for it in
    the same transaction, such as to clear what was read from it then.
    """
    waiting = iter(batches)
    first = _first(waiting)
    try:
        if file_of(engine) is None or sum(map(_rows, first)) <= SHORT:
            return _write(engine, upload, run, chain(first, waiting), prepare)
        return _stage(engine, upload, run, chain(first, waiting), prepare)
    except ServiceError as error:
        # On a server two transactions may both find nothing; the second to insert the bytes fails, and is told.
        if isinstance(error.__cause__, IntegrityError) and (known := find_upload(engine, upload.sha256)):
            return known
        raise


def _rows(batch: Batch) -> int:
    cells = 0 if batch.wide is None else batch.wide.values.size
    return sum(map(len, batch.tables.values())) + cells // CELLS_A_ROW


def _first(batches: Iterator[Batch]) -> list[Batch]:
    """Take batches until there are more rows than a short file has."""
    taken, rows = [], 0
    for batch in batches:
        taken.append(batch)
        rows += _rows(batch)
        if rows > SHORT:
            break
    return taken


def _prepared(connection: Connection, upload: UploadInfo, prepare: Prepare | None) -> Stored | None:
    """Do what must be done first; return the upload if its bytes are in the store already."""
    if prepare is not None:
        prepare(connection)
    known = _found(connection, upload.sha256)
    if known and prepare is not None:
        raise ServiceError(f"{upload.file_name} was uploaded meanwhile, as upload {known.upload_id}; it stays so")
    return known


def _write(
    engine: Engine, upload: UploadInfo, run: RunInfo, batches: Iterable[Batch], prepare: Prepare | None
) -> Stored:
    """Store a file in the transaction that reads it."""
    with writing(engine) as connection:
        if known := _prepared(connection, upload, prepare):
            return known
        run_id, upload_id = _begin(connection, upload, run)
        with (
            _direct(connection) as sink,
            closing(_Loading(connection, sink, upload_id, run)) as loading,
        ):
            loading.read(batches)
            loading.finish(connection, run, run_id, upload.upload_id is not None)
        return _stored(_found(connection, upload.sha256, known=False))


@contextmanager
def _direct(connection: Connection) -> Iterator[Sink]:
    """Give what takes rows into the open transaction; a server works on them while the next are read."""
    if connection.dialect.name == "sqlite":
        yield Direct(connection)
        return
    with behind(Direct(connection), cancelling(connection)) as sink:
        yield sink


def _stage(
    engine: Engine, upload: UploadInfo, run: RunInfo, batches: Iterable[Batch], prepare: Prepare | None
) -> Stored:
    """Read a file before the transaction that stores it; only the names in it are kept as they come."""
    if prepare is None and (known := find_upload(engine, upload.sha256)):
        return known
    upload_id = upload.upload_id or reserve(engine)
    with staging(engine) as staged, behind(staged) as sink, closing(_Loading(engine, sink, upload_id, run)) as loading:
        loading.read(batches)
        with writing(engine, staged.files) as connection:
            if known := _prepared(connection, upload, prepare):
                return known
            run_id, _ = _begin(connection, upload, run, upload_id)
            staged.copy(connection)
            loading.finish(connection, run, run_id, upload.upload_id is not None)
            return _stored(_found(connection, upload.sha256, known=False))


def _stored(found: Stored | None) -> Stored:
    assert found is not None, "the row was just written"
    return found


def _run(connection: Connection, run: RunInfo, upload: UploadInfo) -> int:
    """Find or make the run. On a server another upload may make a run of that name meanwhile: then that is found."""
    while (run_id := _existing(connection, run)) is None and (run_id := _made(connection, run, upload)) is None:
        pass
    return run_id


def _made(connection: Connection, run: RunInfo, upload: UploadInfo) -> int | None:
    name = run.name or _free_name(connection, run.project, upload.file_name)
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


def _begin(connection: Connection, upload: UploadInfo, run: RunInfo, number: int | None = None) -> tuple[int, int]:
    """Write the run and what is known of the file; return the numbers of both."""
    run_id = _run(connection, run, upload)
    row = {
        "received_at": now(),
        **{name: value for name, value in vars(upload).items() if value is not None},
        **dict.fromkeys(("lines", *LINES, "launches", "samples"), 0),
        "run_id": run_id,
        "status": "stored",
        "message": "",
        "facts": "{}",
    }
    if number is not None:
        row["upload_id"] = number
    table = metadata.tables["uploads"]
    return run_id, int(connection.execute(insert(table).values(row).returning(table.c.upload_id)).scalar_one())


class _Loading:
    """An upload on its way into the store."""

    def __init__(self, at: Connection | Engine, sink: Sink, upload_id: int, run: RunInfo) -> None:
        self.encoder = Encoder(at, sink, upload_id, run.device)
        self.upload_id = upload_id
        self.facts: dict[str, str] = {}
        self.message = ""
        self.lines = dict.fromkeys(LINES, 0)
        self.lines_in_rejects = 0
        self.launches = 0
        self.highest_launch = -1
        self.highest_subject = -1
        self.gpu_time_ns: float | None = None
        self.timeline = Running()

    def close(self) -> None:
        """Let go of what waits outside the memory."""
        self.encoder.totals.close()

    def read(self, batches: Iterable[Batch]) -> None:
        """Write all batches; the store has their rows then."""
        for batch in batches:
            self.add(batch)
        self.encoder.wide.finish()
        self.encoder.sink.close()

    def add(self, batch: Batch) -> None:
        """Write the tables of a batch and add up its account of lines."""
        tables = {name: check(name, table) for name, table in batch.tables.items()}
        for name in sorted(tables, key=lambda name: name != "launches"):  # rules refer to launches
            if len(tables[name]):
                self._note(name, tables[name])
                self.encoder.write(name, tables[name])
        if batch.wide is not None and len(batch.wide.lines):
            self.highest_subject = max(self.highest_subject, batch.wide.first_launch + len(batch.wide.lines) - 1)
            self.encoder.wide.write(check_wide(batch.wide))
        for name in self.lines:
            self.lines[name] += getattr(batch, name)
        self.facts.update(batch.facts)
        self.message = batch.message or self.message

    def _note(self, name: str, table: pd.DataFrame) -> None:
        if name == "rejects":
            self.lines_in_rejects += int(table["lines"].sum())
        if "launch_index" not in table:
            return
        highest = table["launch_index"].max()
        highest = -1 if pd.isna(highest) else int(highest)
        if highest > STEP - 2:
            raise InputError(f"launch {highest}: a file may have {STEP - 1:,} launches; split it")
        self.highest_subject = max(self.highest_subject, highest)
        if name == "launches":
            self.highest_launch = max(self.highest_launch, highest)
            self.launches += len(table)
            self.timeline.add(table)
            if table["duration_ns"].notna().any():
                self.gpu_time_ns = (self.gpu_time_ns or 0.0) + float(table["duration_ns"].sum())

    def finish(self, connection: Connection, run: RunInfo, run_id: int, again: bool) -> None:
        """Check the account and write what is known only at the end; a file read ``again`` says nothing of its run."""
        if self.lines_in_rejects != self.lines["lines_rejected"]:
            raise DomainError(
                f"the reader says that it rejected {self.lines['lines_rejected']} lines, "
                f"but its rejects span {self.lines_in_rejects}"
            )
        self._check_launches(connection)
        self.encoder.sensors.finish(connection)
        totals = [(self.upload_id, *total) for total in self.encoder.totals.rows()]
        insert_rows(connection, "kernel_totals", ("upload_id", *Total._fields), totals)
        # First: on a server, uploads of one run end one after the other.
        self._describe_run(connection, run, run_id, again)
        facts = dict(self.facts)
        row: dict[str, Any] = {
            "upload_id": self.upload_id,
            "tool": facts.pop("tool", None),
            "tool_version": facts.pop("tool_version", None),
            "facts": json.dumps(facts, sort_keys=True),
            "status": "partial" if self.lines["lines_rejected"] else "stored",
            "lines": sum(self.lines.values()),
            **self.lines,
            "launches": self.launches,
            "samples": self.encoder.sensors.samples.total(),
            "gpu_time_ns": self.gpu_time_ns,
            "same_as": same_report(connection, self.upload_id, run_id, self.launches),
            "message": self.message,
        }
        assignments = ", ".join(f"{column} = :{column}" for column in row)
        connection.execute(text(f"UPDATE uploads SET {assignments} WHERE upload_id = :upload_id"), row)
        self.timeline.save(connection, self.upload_id)
        settle(connection, self.upload_id, run_id, self.launches, again)

    def _check_launches(self, connection: Connection) -> None:
        """Refuse values and rules of launches that the file does not have: no foreign key would."""
        dense = self.highest_launch == self.launches - 1
        if dense and self.highest_subject <= self.highest_launch:
            return
        first = self.upload_id * STEP
        bounds = {"first": first, "end": first + STEP}
        lost = {what: connection.execute(text(query), bounds).scalar() for what, query in _LOST.items()}
        lost["metrics"] = lost["metrics"] or first_without_launch(connection, bounds)
        for what, launch in ((what, launch) for what, launch in lost.items() if launch):
            raise DomainError(f"the reader gives {what} of launch {launch - first - 1}, but no such launch")

    def _describe_run(self, connection: Connection, run: RunInfo, run_id: int, again: bool) -> None:
        """Write on the run what the user gave, else the device of its launches or measurements and their host."""
        device = self.encoder.first_device or self.encoder.copying_device
        named = run.device or self.encoder.measured_device
        if named is not None and device is None:
            device = Names(connection, "devices")[named, ""]
        # A page may print no more than the compute capability: a later one that names the product knows better.
        named = "(SELECT d.device_id FROM devices d WHERE d.device_id = runs.device_id AND d.name <> '')"
        told = run.device and not again
        replace = "coalesce(:device_id, device_id)" if told else f"coalesce({named}, :device_id, device_id)"
        given = {name: getattr(run, name) for name in ("commit_id", "started_at")}
        columns = "".join(f", {column} = coalesce(:{column}, {column})" for column in given)
        query = f"UPDATE runs SET device_id = {replace}, host = coalesce(:given, host, :host){columns}"
        found = {"device_id": device, "host": self.encoder.first_host}
        connection.execute(
            text(f"{query} WHERE run_id = :run_id"), {"run_id": run_id, "given": run.host, **given, **found}
        )
        for key, value in sorted(run.tags.items()):
            connection.execute(
                text(
                    "INSERT INTO run_tags (run_id, key, value) VALUES (:run_id, :key, :value)"
                    " ON CONFLICT (run_id, key) DO UPDATE SET value = excluded.value"
                ),
                {"run_id": run_id, "key": key, "value": value},
            )
