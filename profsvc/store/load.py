"""Write an upload: one file, one transaction, batch by batch, so that memory does not grow with the file.

An upload is known by its run and the SHA-256 of its bytes as given. Into one run the same bytes are stored once,
whoever gives them and how often; a file that fails half way leaves nothing behind.
"""

import json
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager
from itertools import chain
from typing import Any

import pandas as pd
from sqlalchemy import Connection, Engine, insert, text
from sqlalchemy.exc import IntegrityError

from profsvc.errors import DomainError, InputError, ServiceError
from profsvc.store.behind import behind, cancelling
from profsvc.store.belonging import (
    RunInfo,
    Stored,
    UploadInfo,
    alone_with,
    describe,
    find_upload,
    found_upload,
    now,
    run_of,
)
from profsvc.store.bulk import insert_rows
from profsvc.store.encode import Encoder
from profsvc.store.engine import file_of, within, writing
from profsvc.store.names import Names
from profsvc.store.run_device import settle_device
from profsvc.store.schema import STEP, metadata
from profsvc.store.staging import Direct, Sink, reserve, staging
from profsvc.store.timelines import Running
from profsvc.store.totals import Total
from profsvc.store.twins import settle
from profsvc.store.wide import first_without_launch
from profsvc.tables import Batch, check, check_wide

Prepare = Callable[[Connection], None]
Complete = Callable[[int], object]
# A file of so many rows is kept in memory until it is stored.
SHORT = 20_000
# So many cells of a wide page weigh as a row.
CELLS_A_ROW = 10
LINES = ("lines_stored", "lines_skipped", "lines_rejected")
_LOST = {
    table: f"SELECT min(m.{key}) FROM {table} m WHERE m.{key} > :first AND m.{key} < :end"
    f" AND NOT EXISTS (SELECT 1 FROM launches l WHERE l.launch_id = m.{key})"
    for table, key in (("metrics", "launch_ref"), ("rules", "launch_id"))
}


def write_upload(
    engine: Engine,
    upload: UploadInfo,
    run: RunInfo,
    batches: Iterable[Batch],
    prepare: Prepare | None = None,
    complete: Complete = lambda run_id: None,
) -> Stored:
    """Store a file: all of it, or nothing if anything goes wrong on the way, in ``batches`` too.

    A file that was in the store before is given with its number, with what must ``prepare`` the store for it in the
    same transaction, such as to clear what was read from it then, and with what must be ``complete`` of its run then.
    """
    waiting = iter(batches)
    first = _first(waiting)
    try:
        if file_of(engine) is None or sum(map(_rows, first)) <= SHORT:
            return _write(engine, upload, run, chain(first, waiting), prepare, complete)
        return _stage(engine, upload, run, chain(first, waiting), prepare, complete)
    except ServiceError as error:
        # On a server two transactions may both find nothing; the second to insert the bytes fails, and is told.
        if isinstance(error.__cause__, IntegrityError) and (known := find_upload(engine, upload.sha256, run)):
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


def _prepared(connection: Connection, upload: UploadInfo, run: RunInfo, prepare: Prepare | None) -> Stored | None:
    """Do what must be done first; return the upload if its bytes are in the run already."""
    alone_with(connection, upload.sha256)
    if prepare is not None:
        prepare(connection)
    known = found_upload(connection, upload.sha256, run)
    if known and prepare is not None:
        raise ServiceError(f"{upload.file_name} was uploaded meanwhile, as upload {known.upload_id}; it stays so")
    return known


def _write(
    engine: Engine,
    upload: UploadInfo,
    run: RunInfo,
    batches: Iterable[Batch],
    prepare: Prepare | None,
    complete: Complete,
) -> Stored:
    """Store a file in the transaction that reads it."""
    with writing(engine) as connection:
        if known := _prepared(connection, upload, run, prepare):
            return known
        run_id, upload_id = _begin(connection, upload, run)
        with (
            _direct(connection) as sink,
            closing(_Loading(connection, sink, upload_id, run)) as loading,
        ):
            loading.read(batches)
            loading.finish(connection, run, run_id, upload.upload_id is not None)
        return _completed(engine, connection, upload, run_id, complete)


@contextmanager
def _direct(connection: Connection) -> Iterator[Sink]:
    """Give what takes rows into the open transaction; a server works on them while the next are read."""
    if connection.dialect.name == "sqlite":
        yield Direct(connection)
        return
    with behind(Direct(connection), cancelling(connection)) as sink:
        yield sink


def _stage(
    engine: Engine,
    upload: UploadInfo,
    run: RunInfo,
    batches: Iterable[Batch],
    prepare: Prepare | None,
    complete: Complete,
) -> Stored:
    """Read a file before the transaction that stores it; only the names in it are kept as they come."""
    if prepare is None and (known := find_upload(engine, upload.sha256, run)):
        return known
    upload_id = upload.upload_id or reserve(engine)
    with staging(engine) as staged, behind(staged) as sink, closing(_Loading(engine, sink, upload_id, run)) as loading:
        loading.read(batches)
        with writing(engine, staged.files) as connection:
            if known := _prepared(connection, upload, run, prepare):
                return known
            run_id, _ = _begin(connection, upload, run, upload_id)
            staged.copy(connection)
            loading.finish(connection, run, run_id, upload.upload_id is not None)
            return _completed(engine, connection, upload, run_id, complete)


def _completed(engine: Engine, connection: Connection, upload: UploadInfo, run_id: int, complete: Complete) -> Stored:
    """Complete the run in the transaction that stores its file; return what is stored."""
    with within(engine, connection):
        complete(run_id)
    found = found_upload(connection, upload.sha256, RunInfo(run_id=run_id), known=False)
    assert found is not None, "the row was just written"
    return found


def _begin(connection: Connection, upload: UploadInfo, run: RunInfo, number: int | None = None) -> tuple[int, int]:
    """Write the run and what is known of the file; return the numbers of both."""
    run_id = run_of(connection, run, upload.file_name)
    row = {
        "received_at": run.at or now(),
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
        unlikely = self.encoder.sensors.finish(connection)
        self.message = "; ".join(part for part in (self.message, *unlikely) if part)
        totals = [(self.upload_id, *total) for total in self.encoder.totals.rows()]
        insert_rows(connection, "kernel_totals", ("upload_id", *Total._fields), totals)
        # First: on a server, uploads of one run end one after the other.
        self._describe_run(connection, run, run_id, again)
        devices = [(self.upload_id, device_id) for device_id in sorted(self.encoder.launch_devices)]
        insert_rows(connection, "upload_devices", ("upload_id", "device_id"), devices)
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
            "message": self.message,
        }
        assignments = ", ".join(f"{column} = :{column}" for column in row)
        connection.execute(text(f"UPDATE uploads SET {assignments} WHERE upload_id = :upload_id"), row)
        self.timeline.save(connection, self.upload_id)
        settle(connection, run_id, self.upload_id, again=again)
        settle_device(connection, run_id)

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
        query = f"UPDATE runs SET device_id = {replace}, host = coalesce(host, :host)"
        query += ", changes = changes + 1"  # what was computed of the run has to be computed again
        found = {"device_id": device, "host": self.encoder.first_host}
        connection.execute(text(f"{query} WHERE run_id = :run_id"), {"run_id": run_id, **found})
        describe(connection, run_id, run)
