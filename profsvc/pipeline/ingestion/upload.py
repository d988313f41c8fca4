"""A file on its way into the store: read, stored in one transaction, and its run analyzed.

Reading and analysis are taken from the package, which imports them when they are used: known bytes need neither.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, BinaryIO

from profsvc import pipeline, store, tables
from profsvc.errors import InputError, NotFoundError, ServiceError, first_of
from profsvc.formats.parsing.unpacked_copies import copies_in
from profsvc.pipeline.ingestion.import_result import ImportResult, Progress, result_from_store
from profsvc.pipeline.ingestion.kept_bytes import OpenUpload, open_arriving_or_kept, open_kept_bytes
from profsvc.pipeline.ingestion.reading_options import DEFAULT_OPTIONS, ReadOptions
from profsvc.pipeline.malloc import MAX_FREE_BYTES, free_blocks
from profsvc.specs.files.formats import MEMORY_TRACE

if TYPE_CHECKING:
    from sqlalchemy import Engine

    from profsvc.tables import Batch


def check_file(
    source: BinaryIO,
    file_name: str,
    how: ReadOptions = DEFAULT_OPTIONS,
    progress: Progress | None = None,
    files: store.BlobStore | None = None,
) -> ImportResult:
    """Read a file to its end without storing anything, and say what would be stored; unpack it where ``files`` are."""
    verdict, room = ImportResult(file_name), partial(store.unpack_folder, files)
    with copies_in(room), store.open_incoming(source, room, progress=progress) as arrival:
        for _ in pipeline.file_batches.read_batches(arrival.stream(), how, verdict):
            pass
        verdict.sha256 = arrival.sha256
    return verdict


@store.keep_connections
def ingest(
    engine: "Engine",
    source: BinaryIO,
    file_name: str,
    run: store.RunInfo,
    how: ReadOptions = DEFAULT_OPTIONS,
    progress: Progress | None = None,
    files: store.BlobStore | None = None,
    *,
    power_later: bool = False,
    results_later: bool = False,
) -> ImportResult:
    """Store a file in one transaction, then analyse its run; a run has the same bytes once. They are kept in ``files``.

    Where a server goes meanwhile, the file is read and stored again: that is safe, for its bytes are known. What was
    stored and not analysed, because of a kill between the two, is analysed when the bytes come again. With
    ``power_later`` the caller analyses the power of runs that logged it; with ``results_later`` it calls
    `analyze_stored` for the run when its last file is stored.
    """
    store.check_run_names(run)
    room = partial(store.unpack_folder, files)
    with copies_in(room), store.open_incoming(source, room, progress) as arrival:

        def attempt() -> tuple[ImportResult, store.StoredUpload]:
            verdict = ImportResult(file_name)
            # A file of another length than all in the store is none of them: it is hashed while it is read.
            sized = store.size_is_stored(engine, arrival.size)
            known = store.find_upload(engine, arrival.sha256, run) if sized else None
            stored = known or _store(engine, arrival, run, how, files, verdict)
            verdict.sha256 = arrival.sha256
            return verdict, stored

        try:
            verdict, stored = store.retry(engine, attempt)
        except InputError as error:
            _note_refusal(engine, run, file_name, arrival.sha256, error)
            raise
        if arrival.size > MAX_FREE_BYTES:
            free_blocks()
        here = partial(open_arriving_or_kept, arrival, files)
        finish = _simulate_traces if results_later else partial(_analyze_if_unfinished, power_later=power_later)
        told = f"{file_name} is stored as upload {stored.upload_id} of run {stored.run!r} (id {stored.run_id})"
        try:
            with _results_of(told, stored.run_id):
                store.retry(engine, partial(finish, engine, stored.run_id, here))
        except NotFoundError:
            if store.select(engine, "v1_runs", run_id=stored.run_id):
                raise
            raise NotFoundError(
                f"{file_name} was stored in run {stored.run!r}, which was deleted before its results were computed; "
                "upload the file again, or restore it with: profsvc undelete"
            ) from None
    verdict.known, verdict.upload_id = stored.known, stored.upload_id
    verdict.run_id, verdict.run = stored.run_id, stored.run
    verdict.message = stored.message  # which has what is known only when all is stored
    if verdict.known:
        verdict = result_from_store(engine, verdict, how, run.device)
        describe = partial(store.describe_run, engine, stored.run_id, run)
        verdict.run_changed = store.retry(engine, describe)
    if said := store.duplicate_messages(engine, stored.run_id, stored.upload_id):
        verdict.message = "; ".join(filter(None, (verdict.message, *said)))
    if verdict.characterized:
        devices = first_of(sorted(verdict.characterized))
        advice = f"measured: {devices}; to recompute the runs on it, run: profsvc analyze --all"
        verdict.message = f"{verdict.message}; {advice}" if verdict.message else advice
    return verdict


@contextmanager
def _results_of(stored: str, run_id: int) -> Iterator[None]:
    """Say in an error of the store that the file is ``stored`` all the same, and how to compute its results."""
    try:
        yield
    except ServiceError as error:
        cause = str(error).replace("nothing was changed; ", "")
        error.args = (f"{stored}, but its results are not: {cause}; then run: profsvc analyze id:{run_id}",)
        raise


def _analyze_if_unfinished(engine: "Engine", run_id: int, opened: OpenUpload, *, power_later: bool = False) -> bool:
    """Compute what is not finished of a run, whatever cut it short; tell whether there was anything."""
    _simulate_traces(engine, run_id, opened)
    if wanted := run_id in store.unfinished(engine, run_id):
        pipeline.analysis.analyze(engine, run_id, power_later=power_later, keep=True)
    return wanted


def _simulate_traces(engine: "Engine", run_id: int, opened: OpenUpload) -> None:
    """Simulate the memory traces of a run while their bytes are here: they may not be kept."""
    if store.select(engine, "v1_uploads", run_id=run_id, format=MEMORY_TRACE):
        pipeline.memory_traces.simulate_traces(engine, run_id, opened)


@store.keep_connections
def analyze_stored(engine: "Engine", files: store.BlobStore, run_id: int, *, power_later: bool = False) -> None:
    """Analyse a run once, after `ingest` stored several files in it with ``results_later``."""
    finish = partial(_analyze_if_unfinished, power_later=power_later)
    try:
        with _results_of(f"run {run_id} is stored", run_id):
            store.retry(engine, partial(finish, engine, run_id, open_kept_bytes(files)))
    except NotFoundError:
        if store.select(engine, "v1_runs", run_id=run_id):
            raise
        raise NotFoundError(
            f"run {run_id} was deleted before its results were computed; upload its files again, or restore it with: "
            "profsvc undelete"
        ) from None


@store.keep_connections
def analyze_unfinished(engine: "Engine", files: store.BlobStore) -> dict[int, list[str]]:
    """Compute what is not finished of all runs; return what that was."""
    waiting = store.unfinished(engine)
    for run_id in waiting:
        store.retry(engine, partial(_analyze_if_unfinished, engine, run_id, open_kept_bytes(files)))
    return waiting


def _note_refusal(engine: "Engine", run: store.RunInfo, file_name: str, sha256: str, error: InputError) -> None:
    """Write down for the nightly report that a file was refused; a store that cannot be written hides no error."""
    with suppress(ServiceError):
        project, name = run.project, run.name
        if run.run_id and (known := store.select(engine, "v1_runs", run_id=run.run_id)):
            project, name = known[0]["project"], known[0]["name"]
        store.save_refusal(engine, project, name, file_name, sha256, error)


def _store(
    engine: "Engine",
    arrival: store.IncomingFile,
    run: store.RunInfo,
    how: ReadOptions,
    files: store.BlobStore | None,
    verdict: ImportResult,
) -> store.StoredUpload:
    """Read a file that is not in the store yet into it; its bytes are on the disk before its rows are committed."""
    try:
        with store.storing_blob(files, arrival) as kept:
            batches = pipeline.file_batches.read_batches(arrival.stream(), how, verdict)
            first = pipeline.file_batches.with_given_device(
                next(batches, tables.Batch()), run.device
            )  # the reader is known, and the file is one of its kind
            upload = store.UploadInfo(verdict.file_name, lambda: arrival.sha256, arrival.size, verdict.format)
            parts = chain([first], batches, _run_after_batches(kept))
            return store.write_upload(engine, upload, run, parts, share_read=arrival.share_read)
    except ServiceError:
        store.discard_blob(engine, files, arrival.sha256)  # a disk that is full needs its space
        raise


def _run_after_batches(work: Callable[[], None]) -> "Iterator[Batch]":
    """Work when all batches before are taken; there is none in it."""
    work()
    yield from ()
