"""Write an upload: one file in one transaction, batch by batch, so that memory does not grow with the file.

An upload is identified by its run and the SHA-256 of its unmodified bytes. Duplicate files in a run are ignored. A file
that fails part way leaves no data behind.
"""

import json
import secrets
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, closing, contextmanager
from itertools import chain
from typing import Any

import numpy as np
from sqlalchemy import insert
from sqlalchemy.exc import IntegrityError

from profsvc.errors import DomainError, InputError, ServiceError
from profsvc.store.connection.sql import Connection, Engine, text
from profsvc.store.connection.timestamps import now
from profsvc.store.connection.transactions import in_transaction, writing
from profsvc.store.connection.urls import file_of
from profsvc.store.ingest.archived_runs import require_rows
from profsvc.store.ingest.duplicates.shared_launches import mark_duplicates
from profsvc.store.ingest.inserts.dictionaries import Names
from profsvc.store.ingest.inserts.row_insert import insert_rows
from profsvc.store.ingest.inserts.writer_thread import in_writer_thread, statement_canceller
from profsvc.store.ingest.missing_launches import refuse_missing_launches
from profsvc.store.ingest.runs import (
    RunInfo,
    StoredUpload,
    UploadInfo,
    find_or_create_run,
    find_upload,
    lock_content,
    lookup_upload,
    update_run,
    update_run_device,
)
from profsvc.store.ingest.source_launches import join_source_pages, save_source_counts
from profsvc.store.ingest.staging import DirectSink, Sink, reserve_upload_id, staging
from profsvc.store.ingest.store_copy import MIN_PART_BYTES, ReadingPace, ShareRead, copying
from profsvc.store.ingest.writers.encoder import Encoder
from profsvc.store.ingest.writers.kernel_totals import KernelTotal
from profsvc.store.ingest.writers.running_timeline import RunningTimeline
from profsvc.store.schema.column_types import IDS_PER_UPLOAD
from profsvc.store.schema.tables import metadata
from profsvc.tables import Batch, Table, check, check_wide
from profsvc.tables.column_tables import integers_of

PrepareStore = Callable[[Connection], None]
CompleteRun = Callable[[int], object]
# A file with at most this many rows is kept in memory until it is stored.
SMALL_FILE_ROWS = 20_000
# Number of cells of a wide page that count as one row.
ESTIMATED_CELLS_PER_ROW = 10
SHA256_BYTES = 32
LINE_COUNTS = ("lines_stored", "lines_skipped", "lines_rejected")


def write_upload(
    engine: Engine,
    upload: UploadInfo,
    run: RunInfo,
    batches: Iterable[Batch],
    prepare: PrepareStore | None = None,
    complete: CompleteRun = lambda run_id: None,
    share_read: ShareRead | None = None,
) -> StoredUpload:
    """Store a file completely, or nothing after any error, including errors of ``batches``.

    A file that was stored before is given with its number. ``prepare`` runs first in the same transaction, for example
    to remove its old rows, and ``complete`` runs last to update the results of the run. ``share_read`` returns how much
    of the file is read, from 0 to 1; without it a long file is copied into a SQLite store when all of it is read.
    """
    waiting = iter(batches)
    first = _leading_batches(waiting)
    try:
        if file_of(engine) is None or sum(map(_rows, first)) <= SMALL_FILE_ROWS:
            return _write(engine, upload, run, chain(first, waiting), prepare, complete)
        return _stage(engine, upload, run, chain(first, waiting), prepare, complete, share_read)
    except _KnownBytesError as found:
        return found.upload
    except ServiceError as error:
        # On a server two transactions may both find nothing. The second insert of the bytes fails and is reported.
        if isinstance(error.__cause__, IntegrityError) and (known := find_upload(engine, upload.digest(), run)):
            return known
        raise


def _rows(batch: Batch) -> int:
    cells = 0 if batch.wide is None else batch.wide.values.size
    return sum(map(len, batch.given.values())) + cells // ESTIMATED_CELLS_PER_ROW


def _leading_batches(batches: Iterator[Batch]) -> list[Batch]:
    """Read batches until they exceed the size of a short file."""
    taken, rows = [], 0
    for batch in batches:
        taken.append(batch)
        rows += _rows(batch)
        if rows > SMALL_FILE_ROWS:
            break
    return taken


def _prepare(
    connection: Connection, upload: UploadInfo, run: RunInfo, prepare: PrepareStore | None
) -> StoredUpload | None:
    """Run ``prepare``; return the upload if its bytes are already in the run."""
    lock_content(connection, upload.digest())
    if prepare is not None:
        prepare(connection)
    known = lookup_upload(connection, upload.digest(), run)
    if known and prepare is not None:
        raise ServiceError(
            f"another process stored {upload.file_name} meanwhile, as upload {known.upload_id}; nothing was changed"
        )
    return known


def _write(
    engine: Engine,
    upload: UploadInfo,
    run: RunInfo,
    batches: Iterable[Batch],
    prepare: PrepareStore | None,
    complete: CompleteRun,
) -> StoredUpload:
    """Store a file in the transaction that reads it.

    On a server, bytes that are hashed while they are read are looked up afterwards, so that they are read once.
    """
    with writing(engine) as connection:
        is_hashed_later = (
            connection.dialect.name == "postgresql" and prepare is None and not isinstance(upload.sha256, str)
        )
        if not is_hashed_later and (known := _prepare(connection, upload, run, prepare)):
            return known
        sha256 = secrets.token_hex(SHA256_BYTES) if is_hashed_later else upload.digest()
        run_id, upload_id = _begin(connection, upload, run, sha256)
        with (
            _direct(connection) as sink,
            closing(_Upload(connection, sink, upload_id, run)) as loading,
        ):
            for batch in batches:
                loading.add(batch)
            loading.end()
            if is_hashed_later:
                _take_hash(connection, upload, run, upload_id)
            loading.sum_up()
            loading.finish(connection, run, run_id, upload.upload_id is not None)
        return _complete(engine, connection, upload, run_id, complete)


class _KnownBytesError(Exception):
    """Undoes a transaction with bytes that are stored already."""

    def __init__(self, upload: StoredUpload) -> None:
        super().__init__()
        self.upload = upload


def _take_hash(connection: Connection, upload: UploadInfo, run: RunInfo, upload_id: int) -> None:
    """Give an upload whose bytes are all read its hash; raise `_KnownBytesError` if the run has them."""
    if known := _prepare(connection, upload, run, None):
        raise _KnownBytesError(known)
    query = text("UPDATE uploads SET sha256 = :sha256 WHERE upload_id = :upload_id")
    connection.execute(query, {"sha256": upload.digest(), "upload_id": upload_id})


@contextmanager
def _direct(connection: Connection) -> Iterator[Sink]:
    """Yield a sink for rows in the open transaction; a server processes rows while the next are read."""
    if connection.dialect.name == "sqlite":
        yield DirectSink(connection)
        return
    with in_writer_thread(DirectSink(connection), statement_canceller(connection)) as sink:
        yield sink


def _stage(
    engine: Engine,
    upload: UploadInfo,
    run: RunInfo,
    batches: Iterable[Batch],
    prepare: PrepareStore | None,
    complete: CompleteRun,
    share_read: ShareRead | None,
) -> StoredUpload:
    """Read most of a file before the transaction that stores it; only new names are written immediately.

    The first rows are copied while the last are read, in the same transaction.
    """
    if prepare is None and isinstance(upload.sha256, str) and (known := find_upload(engine, upload.sha256, run)):
        return known  # bytes that are hashed while they are read are looked up afterwards
    upload_id = upload.upload_id or reserve_upload_id(engine)
    pace = ReadingPace(share_read)
    with (
        staging(engine) as staged,
        in_writer_thread(staged) as sink,
        closing(_Upload(engine, sink, upload_id, run)) as loading,
        ExitStack() as opened,
    ):
        early = None
        for batch in batches:
            loading.add(batch)
            if early is None and prepare is None and pace.is_time_to_copy(staged.paged_bytes()):
                early = opened.enter_context(copying(engine, [part := staged.end_pages(sink.settle)]))
                run_id, _ = _begin(early.connection, upload, run, secrets.token_hex(SHA256_BYTES), upload_id)
                opened.enter_context(in_transaction(engine, early.connection, early.wait))
                early.start([part])
            elif early and staged.paged_bytes() > MIN_PART_BYTES and early.takes_more():
                early.start([staged.end_pages(sink.settle)])
        loading.end()
        copy = early or opened.enter_context(copying(engine, staged.files))
        if early is None:
            if known := _prepare(copy.connection, upload, run, prepare):
                return known
            run_id, _ = _begin(copy.connection, upload, run, upload.digest(), upload_id)
        copy.start(staged.files)
        loading.sum_up()
        copy.wait()
        if early:
            _take_hash(copy.connection, upload, run, upload_id)
        loading.finish(copy.connection, run, run_id, upload.upload_id is not None)
        return _complete(engine, copy.connection, upload, run_id, complete)


def _complete(
    engine: Engine, connection: Connection, upload: UploadInfo, run_id: int, complete: CompleteRun
) -> StoredUpload:
    """Complete the run in the transaction that stores its file; return what is stored."""
    with in_transaction(engine, connection):
        complete(run_id)
    found = lookup_upload(connection, upload.digest(), RunInfo(run_id=run_id), known=False)
    assert found is not None, "the row was just written"
    return found


def _begin(
    connection: Connection, upload: UploadInfo, run: RunInfo, sha256: str, number: int | None = None
) -> tuple[int, int]:
    """Write the run and the known facts about the file; return the numbers of both."""
    run_id = find_or_create_run(connection, run, upload.file_name)
    require_rows(connection, run_id, "a further file is analyzed with")
    row = {
        "received_at": run.at or now(),
        **{name: value for name, value in vars(upload).items() if value is not None},
        "sha256": sha256,
        **dict.fromkeys(("lines", *LINE_COUNTS, "launches", "samples"), 0),
        "run_id": run_id,
        "status": "stored",
        "message": "",
        "facts": "{}",
    }
    if number is not None:
        row["upload_id"] = number
    table = metadata.tables["uploads"]
    return run_id, int(connection.execute(insert(table).values(row).returning(table.c.upload_id)).scalar_one())


class _Upload:
    """A running upload."""

    def __init__(self, at: Connection | Engine, sink: Sink, upload_id: int, run: RunInfo) -> None:
        self.encoder = Encoder(at, sink, upload_id, run.device)
        self.upload_id = upload_id
        self.facts: dict[str, str] = {}
        self.message = ""
        self.lines = dict.fromkeys(LINE_COUNTS, 0)
        self.lines_in_rejects = 0
        self.launches = 0
        self.highest_launch = -1
        self.highest_subject = -1
        self.gpu_time_ns: float | None = None
        self.timeline = RunningTimeline()
        self.kernel_totals: list[tuple[Any, ...]] = []

    def close(self) -> None:
        """Close temporary files."""
        self.encoder.totals.close()

    def end(self) -> None:
        """Write what was collected; no more batches follow."""
        self.encoder.wide.finish()
        self.encoder.sink.close()

    def add(self, batch: Batch) -> None:
        """Write the tables of a batch and sum up its line counts."""
        tables = {name: check(name, table) for name, table in batch.given.items()}
        for name in sorted(tables, key=lambda name: name != "launches"):  # rules refer to launches
            if len(tables[name]):
                self._note(name, tables[name])
                self.encoder.write(name, tables[name])
        if batch.wide is not None and len(batch.wide.lines):
            self.highest_subject = max(self.highest_subject, batch.wide.first_launch + len(batch.wide.lines) - 1)
            self.encoder.wide.write(check_wide(batch.wide))
        self.encoder.note_devices(batch.devices)
        for name in self.lines:
            self.lines[name] += getattr(batch, name)
        self.facts.update(batch.facts)
        self.message = batch.message or self.message

    def _note(self, name: str, table: Table) -> None:
        if name == "rejects":
            self.lines_in_rejects += int(integers_of(table["lines"]).values.sum())
        if "launch_index" not in table:
            return
        indexes = integers_of(table["launch_index"])
        highest = int(np.max(indexes.values, initial=-1, where=~indexes.missing))
        if highest > IDS_PER_UPLOAD - 2:
            raise InputError(f"launch {highest}: a file may have {IDS_PER_UPLOAD - 1:,} launches; split it")
        self.highest_subject = max(self.highest_subject, highest)
        if name == "launches":
            self.highest_launch = max(self.highest_launch, highest)
            self.launches += len(table)
            self.timeline.add(table)
            durations = np.asarray(table["duration_ns"])
            if not np.isnan(durations).all():
                self.gpu_time_ns = (self.gpu_time_ns or 0.0) + float(np.nansum(durations))

    def sum_up(self) -> None:
        """Compute the totals of all batches."""
        self.kernel_totals = [(self.upload_id, *total) for total in self.encoder.totals.rows()]
        self.encoder.launches.sum_up()
        self.encoder.listed.select()

    def finish(self, connection: Connection, run: RunInfo, run_id: int, again: bool) -> None:
        """Check the line counts and write the totals; a file read ``again`` does not change the data of its run."""
        if self.lines_in_rejects != self.lines["lines_rejected"]:
            raise DomainError(
                f"the reader says that it rejected {self.lines['lines_rejected']} lines, "
                f"but its rejects span {self.lines_in_rejects}"
            )
        if self.highest_launch != self.launches - 1 or self.highest_subject > self.highest_launch:
            refuse_missing_launches(connection, self.upload_id)
        unlikely = self.encoder.sensors.finish(connection)
        self.message = "; ".join(part for part in (self.message, *unlikely) if part)
        insert_rows(connection, "kernel_totals", ("upload_id", *KernelTotal._fields), self.kernel_totals)
        self.encoder.transfers.save(connection, self.upload_id)
        self.encoder.launches.save(connection, self.upload_id)
        self.encoder.listed.save(connection, self.upload_id)
        # This comes first, because it makes uploads of one run on a server finish one after the other.
        self._describe_run(connection, run, run_id, again)
        devices = [(self.upload_id, device_id) for device_id in sorted(self.encoder.file_devices)]
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
        mark_duplicates(connection, run_id, self.upload_id, again=again)
        save_source_counts(connection, self.upload_id)
        join_source_pages(connection, run_id)
        update_run_device(connection, run_id)

    def _describe_run(self, connection: Connection, run: RunInfo, run_id: int, again: bool) -> None:
        """Set device and host of the run: those given by the user, else those of its launches or measurements."""
        device = self.encoder.first_device or self.encoder.copying_device
        named = run.device or self.encoder.measured_device
        if named is not None and device is None:
            device = Names(connection, "devices")[named, ""]
        # A page may only print the compute capability; a later page with the product name replaces it.
        named = "(SELECT d.device_id FROM devices d WHERE d.device_id = runs.device_id AND d.name <> '')"
        told = run.device and not again
        replace = "coalesce(:device_id, device_id)" if told else f"coalesce({named}, :device_id, device_id)"
        query = f"UPDATE runs SET device_id = {replace}, host = coalesce(host, :host)"
        query += ", changes = changes + 1"  # what was computed of the run has to be computed again
        found = {"device_id": device, "host": self.encoder.first_host}
        connection.execute(text(f"{query} WHERE run_id = :run_id"), {"run_id": run_id, **found})
        update_run(connection, run_id, run)
