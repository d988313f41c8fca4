"""The joiner: bytes -> tidy tables -> store -> analysis -> results. Every front door calls this one pipeline."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any, BinaryIO, cast

import pandas as pd

from profsvc import formats, store
from profsvc.analysis.clocks import placed, placed_ranges, zone_of
from profsvc.analysis.plausible import plausible
from profsvc.errors import InputError, ServiceError
from profsvc.formats.clock import LOCAL, UTC
from profsvc.formats.copies import copies_in
from profsvc.formats.named_columns import read_columns
from profsvc.formats.placed_sensors import placed_sensors, read_positions
from profsvc.pipeline import memory_traces
from profsvc.pipeline.analyzing import analyze, analyze_again
from profsvc.pipeline.content import Content
from profsvc.pipeline.demo import demo_files, demo_runs
from profsvc.pipeline.power import analyze_power
from profsvc.pipeline.reading import AS_IT_IS, OPTIONS, Reading
from profsvc.tables import Batch

if TYPE_CHECKING:
    from sqlalchemy import Connection, Engine

__all__ = [
    "Reading",
    "Verdict",
    "analyze",
    "analyze_again",
    "analyze_power",
    "check",
    "demo_files",
    "demo_runs",
    "finish",
    "ingest",
    "reparse",
    "undelete",
]

Progress = Callable[[int], None]


@dataclass
class Verdict:
    """What a reader made of a file, whether it was stored or only checked.

    ``run_changed``: what was written on the run of a file that is ``known``, as its options say.
    """

    file_name: str
    sha256: str = ""
    format: str = ""
    known: bool = False
    upload_id: int | None = None
    run_id: int | None = None
    run: str = ""
    launches: int = 0
    metrics: int = 0
    samples: int = 0
    phases: int = 0
    lines: int = 0
    lines_stored: int = 0
    lines_skipped: int = 0
    lines_rejected: int = 0
    message: str = ""
    facts: dict[str, str] = field(default_factory=dict)
    characterized: set[str] = field(default_factory=set)
    warnings: list[str] = field(default_factory=list)
    run_changed: list[str] = field(default_factory=list)
    implausible: list[str] = field(default_factory=list)


def _read(stream: BinaryIO, how: Reading, verdict: Verdict) -> Iterator[Batch]:
    """Read a file: its clock brought to UTC, its columns and channels as the user said."""
    reader, batches = formats.read(stream, how.form, verdict.file_name, read_columns(how.columns), how.most_bytes)
    verdict.format = reader.NAME
    zone, positions, said = None if how.zone is None else zone_of(how.zone), read_positions(how.positions), how.said()
    content = Content()
    for read in _counted(verdict, map(content.seen, batches)):
        batch, unlikely = plausible(read)
        verdict.implausible += unlikely
        tables = dict(batch.tables)
        if "samples" in tables and (zone is not None or how.offset_s):
            tables["samples"] = placed(tables["samples"], zone, how.offset_s)
        if "sensors" in tables and positions:
            tables["sensors"] = placed_sensors(tables["sensors"], positions)
        facts = dict(batch.facts)
        if "ranges" in tables and reader.NAME == formats.marks.NAME:
            local = zone if facts["clock"] == LOCAL else None
            if local or facts["clock"] == UTC:  # else the clock stays the file's own, as that of samples does
                tables["ranges"] = placed_ranges(tables["ranges"], local, how.offset_s)
                facts["clock"] = UTC
        on_clock = {"samples", "sensors"} & set(tables) or reader.NAME == formats.marks.NAME
        about = {name: text for name, text in said.items() if name == "reader" or on_clock}
        yield replace(batch, tables=tables, facts={**facts, **about})
    if why := content.emptiness(verdict):
        raise InputError(why)
    if verdict.implausible:
        verdict.message = "; ".join(part for part in (verdict.message, _unlikely(verdict.implausible)) if part)
        yield Batch(message=verdict.message)


def _unlikely(reasons: Sequence[str]) -> str:
    """Say what of a file cannot be; the metrics of the same name keep what stood there."""
    cells = "1 value is" if len(reasons) == 1 else f"{len(reasons)} values are"
    return f"{cells} kept out of results, such as: {reasons[0]}"


def _counted(verdict: Verdict, batches: Iterator[Batch]) -> Iterator[Batch]:
    """Pass batches through and keep the account of their lines."""
    for batch in batches:
        verdict.lines_stored += batch.lines_stored
        verdict.lines_skipped += batch.lines_skipped
        verdict.lines_rejected += batch.lines_rejected
        verdict.launches += len(batch.tables.get("launches", ()))
        verdict.metrics += len(batch.tables.get("metrics", ()))
        verdict.metrics += 0 if batch.wide is None else int(batch.wide.collected.sum())
        verdict.samples += len(batch.tables.get("samples", ()))
        if verdict.format == formats.marks.NAME:
            verdict.phases += len(batch.tables.get("ranges", ()))
        if "sensors" in batch.tables:
            verdict.warnings += _warnings(batch.tables["sensors"])
        if "characterizations" in batch.tables:
            verdict.characterized.update(batch.tables["characterizations"]["device"])
        verdict.facts.update(batch.facts)
        verdict.message = batch.message or verdict.message
        yield batch
    verdict.lines = verdict.lines_stored + verdict.lines_skipped + verdict.lines_rejected


def _warnings(sensors: pd.DataFrame) -> list[str]:
    """Say of each sensor what to beware of in it."""
    doubtful = sensors[sensors["quality"].notna()]
    named = zip(doubtful["name"], doubtful["gpu_index"], doubtful["quality"], strict=True)
    return [f"{name}{'' if pd.isna(gpu) else f' of GPU {gpu}'}: {quality}" for name, gpu, quality in named]


def check(
    source: BinaryIO,
    file_name: str,
    how: Reading = AS_IT_IS,
    progress: Progress | None = None,
    files: store.Files | None = None,
) -> Verdict:
    """Read a file to its end without storing anything, and say what would be stored; unpack it where ``files`` are."""
    verdict, room = Verdict(file_name), partial(store.room_of, files)
    with copies_in(room), store.arriving(source, room, progress=progress) as arrival:
        for _ in _read(arrival.stream(), how, verdict):
            pass
        verdict.sha256 = arrival.sha256
    return verdict


@store.on_kept_connections
def ingest(
    engine: "Engine",
    source: BinaryIO,
    file_name: str,
    run: store.RunInfo,
    how: Reading = AS_IT_IS,
    progress: Progress | None = None,
    files: store.Files | None = None,
) -> Verdict:
    """Store a file in one transaction, then analyse its run; a run has the same bytes once. They are kept in ``files``.

    Where a server goes meanwhile, the file is read and stored again: that is safe, for its bytes are known. What was
    stored and not analysed, because of a kill between the two, is analysed when the bytes come again.
    """
    room = partial(store.room_of, files)
    with copies_in(room), store.arriving(source, room, progress) as arrival:

        def attempt() -> tuple[Verdict, store.Stored]:
            verdict = Verdict(file_name)
            # A file of another length than all in the store is none of them: it is hashed while it is read.
            sized = store.has_size(engine, arrival.size)
            known = store.find_upload(engine, arrival.sha256, run) if sized else None
            stored = known or _store(engine, arrival, run, how, files, verdict)
            verdict.sha256 = arrival.sha256
            return verdict, stored

        try:
            verdict, stored = store.repeated(engine, attempt)
        except InputError as error:
            _note_refusal(engine, run, file_name, arrival.sha256, error)
            raise
        here = partial(memory_traces.this_or_kept, arrival, files)
        store.repeated(engine, partial(_finish, engine, stored.run_id, here))
    verdict.known, verdict.upload_id = stored.known, stored.upload_id
    verdict.run_id, verdict.run = stored.run_id, stored.run
    verdict.message = stored.message  # which has what is known only when all is stored
    if verdict.known:
        verdict = _recalled(engine, verdict, how, run.device)
        told = partial(store.describe_run, engine, stored.run_id, run)
        verdict.run_changed = store.repeated(engine, told)
    if said := store.twins.said_of_files(engine, stored.run_id, stored.upload_id):
        verdict.message = "; ".join(filter(None, (verdict.message, *said)))
    if verdict.characterized:
        devices = ", ".join(sorted(verdict.characterized))
        advice = f"measured: {devices}; recompute the runs on it with: profsvc analyze --all"
        verdict.message = f"{verdict.message}; {advice}" if verdict.message else advice
    return verdict


def _finish(engine: "Engine", run_id: int, opened: memory_traces.Opened) -> bool:
    """Compute what is not finished of a run, whatever cut it short; tell whether there was anything."""
    memory_traces.simulate_traces(engine, run_id, opened)
    if wanted := run_id in store.unfinished(engine, run_id):
        analyze(engine, run_id)
    return wanted


@store.on_kept_connections
def finish(engine: "Engine", files: store.Files) -> dict[int, list[str]]:
    """Compute what is not finished of all runs; return what that was."""
    waiting = store.unfinished(engine)
    for run_id in waiting:
        store.repeated(engine, partial(_finish, engine, run_id, memory_traces.kept_in(files)))
    return waiting


def _note_refusal(engine: "Engine", run: store.RunInfo, file_name: str, sha256: str, error: InputError) -> None:
    """Write down for the nightly report that a file was refused; a store that cannot be written hides no error."""
    with suppress(ServiceError):
        project, name = run.project, run.name
        if run.run_id and (known := store.select(engine, "v1_runs", run_id=run.run_id)):
            project, name = known[0]["project"], known[0]["name"]
        store.note_refusal(engine, project, name, file_name, sha256, error)


def _store(
    engine: "Engine",
    arrival: store.Arrival,
    run: store.RunInfo,
    how: Reading,
    files: store.Files | None,
    verdict: Verdict,
) -> store.Stored:
    """Read a file that is not in the store yet into it; its bytes are on the disk before its rows are committed."""
    batches = _read(arrival.stream(), how, verdict)
    first = _told(next(batches, Batch()), run.device)  # the reader is known, and the file is one of its kind
    upload = store.UploadInfo(verdict.file_name, arrival.sha256, arrival.size, verdict.format)
    try:
        with store.keeping(files, arrival) as kept:
            return store.write_upload(engine, upload, run, chain([first], batches, _lastly(kept)))
    except ServiceError:
        store.forget(engine, files, arrival.sha256)  # a disk that is full needs its space
        raise


def _lastly(work: Callable[[], None]) -> Iterator[Batch]:
    """Work when all batches before are taken; there is none in it."""
    work()
    yield from ()


def _recalled(engine: "Engine", verdict: Verdict, how: Reading, device: str | None = None) -> Verdict:
    """Fill a verdict on bytes that are stored already from what was stored then."""
    row = store.upload(engine, cast("int", verdict.upload_id))
    for name in ("format", "lines", "lines_stored", "lines_skipped", "lines_rejected", "message"):
        setattr(verdict, name, row[name])
    verdict.launches = int(row["launches"])
    verdict.facts = json.loads(row["facts"])
    on_a_clock = row["samples"] > 0 or row["format"] == formats.marks.NAME
    if kept := _kept(verdict, how, device, on_a_clock=on_a_clock):
        verdict.message = f"{verdict.message}; {kept}" if verdict.message else kept
    return verdict


@store.on_kept_connections
def reparse(engine: "Engine", files: store.Files, upload_id: int) -> tuple[Verdict, Verdict]:
    """Read the kept bytes of an upload again, with today's readers, and analyse its run; return it before and after.

    The upload, its run, its time and the options it was read with stay. If it cannot be read now, nothing changes: its
    rows and the results of its run are replaced in one transaction.
    """
    row = store.upload(engine, upload_id)
    same: tuple[str, ...] = ("sha256", "format", "upload_id", "run_id", "launches", "samples", "message")
    same += ("lines", "lines_stored", "lines_skipped", "lines_rejected")
    then = Verdict(row["file_name"], **{name: row[name] for name in same})
    clear = store.rereading(upload_id, row["run_id"])
    return then, store.repeated(engine, partial(_read_again, engine, files, row, clear))


@store.on_kept_connections
def undelete(engine: "Engine", files: store.Files, upload_id: int) -> Verdict:
    """Read the kept bytes of a deleted upload again, under its number and in its run, and analyse that.

    All of it is one transaction. What is back already, as after a kill between two of them, stays so, and is ``known``.
    """

    def attempt() -> Verdict:
        if store.select(engine, "v1_uploads", upload_id=upload_id):
            row = store.upload(engine, upload_id)
            run = store.select(engine, "v1_runs", run_id=row["run_id"])[0]["name"]
            about = {"known": True, "upload_id": upload_id, "run_id": row["run_id"], "run": run}
            return _recalled(engine, Verdict(row["file_name"], row["sha256"], **about), AS_IT_IS)
        record = store.deleted_upload(engine, upload_id)
        return _read_again(engine, files, record, store.restoring(record))

    return store.repeated(engine, attempt)


def _read_again(
    engine: "Engine", files: store.Files, row: Mapping[str, Any], prepare: Callable[["Connection"], None]
) -> Verdict:
    facts = json.loads(row["facts"])
    verdict = Verdict(row["file_name"], row["sha256"])
    with (
        copies_in(partial(store.room_of, files)),
        store.kept_bytes(files, verdict.sha256, verdict.file_name) as stream,
    ):
        batches = _read(stream, Reading.as_said(facts), verdict)
        device = facts.get("given_device")
        first = _told(next(batches, Batch()), device)
        upload = store.UploadInfo(
            *(verdict.file_name, verdict.sha256, row["size_bytes"], verdict.format),
            *(row["upload_id"], row["received_at"]),
        )
        run = store.RunInfo(run_id=row["run_id"], device=device)

        def complete(run_id: int) -> None:
            memory_traces.simulate_traces(engine, run_id, memory_traces.kept_in(files))
            analyze(engine, run_id)

        stored = store.write_upload(engine, upload, run, chain([first], batches), prepare, complete)
    verdict.upload_id, verdict.run_id, verdict.run = stored.upload_id, stored.run_id, stored.run
    return verdict


def _told(batch: Batch, device: str | None) -> Batch:
    """Keep with the file which device the user named."""
    return batch if device is None else replace(batch, facts={**batch.facts, "given_device": device})


def _kept(verdict: Verdict, how: Reading, device: str | None, *, on_a_clock: bool) -> str:
    """Say how a stored file was read, and that it stays so where it is given with other options now."""
    then, now = ({option: facts.get(n, "") for n, option in OPTIONS.items()} for facts in (verdict.facts, how.said()))
    # Without samples or marks there is nothing that these options act on.
    other = [option for option in OPTIONS.values() if now[option] != then[option] and on_a_clock]
    for option, given, was in (
        ("--format", how.form, verdict.format),
        ("--device", device, verdict.facts.get("given_device", "")),
    ):
        if given not in (None, was):
            other.append(option)
            then[option] = was
    if not other:
        return ""
    said = ", ".join(f"{option} {then[option]}" if then[option] else f"no {option}" for option in other)
    return (
        f"it was read with {said} and is kept as it was read then; to read it otherwise, delete it with: "
        f"profsvc delete {verdict.run_id} --upload {verdict.upload_id}, and upload it again"
    )
