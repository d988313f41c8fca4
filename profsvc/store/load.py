"""Write an upload: one file, one transaction, batch by batch, so that memory does not grow with the file.

An upload is known by the SHA-256 of its bytes as given. The same bytes are stored once, whoever gives them and how
often; a file that fails half way leaves nothing behind.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import PurePath
from typing import Any

import pandas as pd
from sqlalchemy import Connection, Engine, insert, text
from sqlalchemy.exc import IntegrityError

from profsvc.errors import DomainError, InputError, NotFoundError, ServiceError
from profsvc.store.encode import Encoder
from profsvc.store.engine import reading, writing
from profsvc.store.names import Names
from profsvc.store.schema import STEP, metadata
from profsvc.store.wide import first_without_launch
from profsvc.tables import Batch, check, check_wide

_FOUND = """
    SELECT u.upload_id, u.run_id, r.name AS run, u.launches, u.lines, u.lines_stored, u.lines_skipped,
           u.lines_rejected, u.status, u.message
    FROM uploads u JOIN runs r ON r.run_id = u.run_id WHERE u.sha256 = :sha256
"""
# All launches of two files agree in all that a page prints of them; pages print durations to three digits at least.
_SAME_REPORT = """
    SELECT min(o.upload_id) FROM uploads o
    WHERE o.run_id = :run_id AND o.upload_id < :upload_id AND o.launches = :launches AND o.same_as IS NULL
      AND :launches = (
        SELECT count(*) FROM launches a
        JOIN launches b ON b.launch_id = a.launch_id + (:upload_id - o.upload_id) * :step
        WHERE a.launch_id BETWEEN o.upload_id * :step AND o.upload_id * :step + :step - 1
          AND (a.source_id = b.source_id OR a.correlation_id = b.correlation_id)
          AND a.process_id = b.process_id AND a.kernel_id = b.kernel_id
          AND a.grid_x = b.grid_x AND a.grid_y = b.grid_y AND a.grid_z = b.grid_z
          AND a.block_x = b.block_x AND a.block_y = b.block_y AND a.block_z = b.block_z
          AND abs(a.duration_ns - b.duration_ns) <= 0.005 * b.duration_ns)
"""


@dataclass(frozen=True)
class UploadInfo:
    """What is known of a file before it is read."""

    file_name: str
    sha256: str
    size_bytes: int
    format: str


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


def write_upload(engine: Engine, upload: UploadInfo, run: RunInfo, batches: Iterable[Batch]) -> Stored:
    """Store a file: all of it, or nothing if anything goes wrong on the way, in ``batches`` too."""
    try:
        with writing(engine) as connection:
            if known := _found(connection, upload.sha256):
                return known
            run_id = _run(connection, run, upload)
            loading = _Loading(connection, upload, run, run_id)
            for batch in batches:
                loading.add(batch)
            loading.finish()
            return _stored(_found(connection, upload.sha256, known=False))
    except ServiceError as error:
        # On a server two transactions may both find nothing; the second to insert the bytes fails, and is told.
        if isinstance(error.__cause__, IntegrityError) and (known := find_upload(engine, upload.sha256)):
            return known
        raise


def _stored(found: Stored | None) -> Stored:
    assert found is not None, "the row was just written"
    return found


def _run(connection: Connection, run: RunInfo, upload: UploadInfo) -> int:
    """Find or make the run, and write on it what is given."""
    given = {k: getattr(run, k) for k in ("host", "commit_id", "started_at") if getattr(run, k) is not None}
    run_id = _existing(connection, run)
    if run_id is None:
        name = run.name or _free_name(connection, run.project, upload.file_name)
        row = {"project": run.project, "name": name, "created_at": now(), **given}
        table = metadata.tables["runs"]
        run_id = int(connection.execute(insert(table).values(row).returning(table.c.run_id)).scalar_one())
    elif given:
        assignments = ", ".join(f"{column} = :{column}" for column in given)
        connection.execute(text(f"UPDATE runs SET {assignments} WHERE run_id = :run_id"), {**given, "run_id": run_id})
    for key, value in run.tags.items():
        connection.execute(
            text(
                "INSERT INTO run_tags (run_id, key, value) VALUES (:run_id, :key, :value)"
                " ON CONFLICT (run_id, key) DO UPDATE SET value = excluded.value"
            ),
            {"run_id": run_id, "key": key, "value": value},
        )
    return run_id


def _existing(connection: Connection, run: RunInfo) -> int | None:
    if run.run_id is not None:
        found = connection.execute(text("SELECT run_id FROM runs WHERE run_id = :run_id"), {"run_id": run.run_id})
        if found.first() is None:
            raise NotFoundError(f"no run has the number {run.run_id}")
        return run.run_id
    if run.name is None:
        return None
    query = text("SELECT run_id FROM runs WHERE project = :project AND name = :name")
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


class _Loading:
    """An upload on its way into the store."""

    def __init__(self, connection: Connection, upload: UploadInfo, run: RunInfo, run_id: int) -> None:
        self.connection = connection
        self.run = run
        self.run_id = run_id
        self.facts: dict[str, str] = {}
        self.message = ""
        self.lines = {"lines_stored": 0, "lines_skipped": 0, "lines_rejected": 0}
        self.lines_in_rejects = 0
        self.launches = 0
        self.highest_launch = -1
        self.highest_subject = -1
        self.gpu_time_ns: float | None = None
        table = metadata.tables["uploads"]
        row = {
            **vars(upload),
            **dict.fromkeys(("lines", *self.lines, "launches", "samples"), 0),
            "run_id": run_id,
            "status": "stored",
            "message": "",
            "facts": "{}",
            "received_at": now(),
        }
        self.upload_id = int(connection.execute(insert(table).values(row).returning(table.c.upload_id)).scalar_one())
        self.encoder = Encoder(connection, self.upload_id, run_id, run.device)

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
            if table["duration_ns"].notna().any():
                self.gpu_time_ns = (self.gpu_time_ns or 0.0) + float(table["duration_ns"].sum())

    def finish(self) -> None:
        """Check the account and write what is known only at the end."""
        if self.lines_in_rejects != self.lines["lines_rejected"]:
            raise DomainError(
                f"the reader says that it rejected {self.lines['lines_rejected']} lines, "
                f"but its rejects span {self.lines_in_rejects}"
            )
        self.encoder.wide.finish()
        self._check_launches()
        self.encoder.sensors.finish()
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
            "same_as": self._same_report(),
            "message": self.message,
        }
        assignments = ", ".join(f"{column} = :{column}" for column in row)
        self.connection.execute(text(f"UPDATE uploads SET {assignments} WHERE upload_id = :upload_id"), row)
        self._describe_run()

    def _same_report(self) -> int | None:
        """Return the first upload of the run with the same launches: another page of one report, not new work."""
        if not self.launches:
            return None
        query = text(_SAME_REPORT)
        bounds = {"upload_id": self.upload_id, "run_id": self.run_id, "launches": self.launches, "step": STEP}
        found = self.connection.execute(query, bounds).scalar()
        return None if found is None else int(found)

    def _check_launches(self) -> None:
        """Refuse values of launches that the file does not have: `metrics` has no foreign key that would."""
        dense = self.highest_launch == self.launches - 1
        if dense and self.highest_subject <= self.highest_launch:
            return
        first = self.upload_id * STEP
        query = text(
            "SELECT min(m.launch_ref) FROM metrics m WHERE m.launch_ref > :first AND m.launch_ref < :end"
            " AND NOT EXISTS (SELECT 1 FROM launches l WHERE l.launch_id = m.launch_ref)"
        )
        bounds = {"first": first, "end": first + STEP}
        if lost := self.connection.execute(query, bounds).scalar() or first_without_launch(self.connection, bounds):
            raise DomainError(f"the reader gives metrics of launch {lost - first - 1}, but no such launch")

    def _describe_run(self) -> None:
        """Give the run the device of its launches or measurements, and their host, where the user named none."""
        device = self.encoder.first_device or self.encoder.copying_device
        named = self.run.device or self.encoder.measured_device
        if named is not None and device is None:
            device = Names(self.connection, "devices")[named, ""]
        # A page may print no more than the compute capability: a later one that names the product knows better.
        named = "(SELECT d.device_id FROM devices d WHERE d.device_id = runs.device_id AND d.name <> '')"
        replace = "coalesce(:device_id, device_id)" if self.run.device else f"coalesce({named}, :device_id, device_id)"
        self.connection.execute(
            text(f"UPDATE runs SET device_id = {replace}, host = coalesce(host, :host) WHERE run_id = :run_id"),
            {"device_id": device, "host": self.encoder.first_host, "run_id": self.run_id},
        )
