"""Stored uploads read again from their kept bytes: with today's readers, or after they were deleted."""

import json
from collections.abc import Callable, Mapping
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any

from profsvc import store
from profsvc.formats.parsing.unpacked_copies import copies_in
from profsvc.pipeline import memory_traces
from profsvc.pipeline.analysis import analyze
from profsvc.pipeline.ingestion.file_batches import read_batches, with_given_device
from profsvc.pipeline.ingestion.import_result import ImportResult, result_from_store
from profsvc.pipeline.ingestion.kept_bytes import open_kept_bytes
from profsvc.pipeline.ingestion.reading_options import DEFAULT_OPTIONS, ReadOptions
from profsvc.tables import Batch

if TYPE_CHECKING:
    from sqlalchemy import Connection, Engine


@store.keep_connections
def reparse(engine: "Engine", files: store.BlobStore, upload_id: int) -> tuple[ImportResult, ImportResult]:
    """Read the kept bytes of an upload again, with today's readers, and analyse its run; return it before and after.

    The upload, its run, its time and the options it was read with stay. If it cannot be read now, nothing changes: its
    rows and the results of its run are replaced in one transaction.
    """
    row = store.upload(engine, upload_id)
    same: tuple[str, ...] = ("sha256", "format", "upload_id", "run_id", "launches", "samples", "message")
    same += ("lines", "lines_stored", "lines_skipped", "lines_rejected")
    then = ImportResult(row["file_name"], **{name: row[name] for name in same})
    clear = store.rereading(upload_id, row["run_id"])
    return then, store.retry(engine, partial(_read_again, engine, files, row, clear))


@store.keep_connections
def undelete(engine: "Engine", files: store.BlobStore, upload_id: int) -> ImportResult:
    """Read the kept bytes of a deleted upload again, under its number and in its run, and analyse that.

    All of it is one transaction. What is back already, as after a kill between two of them, stays so, and is ``known``.
    """

    def attempt() -> ImportResult:
        if store.select(engine, "v1_uploads", upload_id=upload_id):
            row = store.upload(engine, upload_id)
            run = store.select(engine, "v1_runs", run_id=row["run_id"])[0]["name"]
            about = {"known": True, "upload_id": upload_id, "run_id": row["run_id"], "run": run}
            return result_from_store(engine, ImportResult(row["file_name"], row["sha256"], **about), DEFAULT_OPTIONS)
        record = store.deleted_upload(engine, upload_id)
        return _read_again(engine, files, record, store.restoring(record))

    return store.retry(engine, attempt)


def _read_again(
    engine: "Engine", files: store.BlobStore, row: Mapping[str, Any], prepare: Callable[["Connection"], None]
) -> ImportResult:
    facts = json.loads(row["facts"])
    verdict = ImportResult(row["file_name"], row["sha256"])
    with (
        copies_in(partial(store.unpack_folder, files)),
        store.open_blob(files, verdict.sha256, verdict.file_name) as stream,
    ):
        batches = read_batches(stream, ReadOptions.as_said(facts), verdict)
        device = facts.get("given_device")
        first = with_given_device(next(batches, Batch()), device)
        upload = store.UploadInfo(
            *(verdict.file_name, verdict.sha256, row["size_bytes"], verdict.format),
            *(row["upload_id"], row["received_at"]),
        )
        run = store.RunInfo(run_id=row["run_id"], device=device)

        def complete(run_id: int) -> None:
            memory_traces.simulate_traces(engine, run_id, open_kept_bytes(files))
            analyze(engine, run_id)

        stored = store.write_upload(engine, upload, run, chain([first], batches), prepare, complete)
    verdict.upload_id, verdict.run_id, verdict.run = stored.upload_id, stored.run_id, stored.run
    return verdict
