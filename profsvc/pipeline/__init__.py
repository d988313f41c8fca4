"""The joiner: bytes -> tidy tables -> store -> analysis -> results. Every front door calls this one pipeline."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, cast

import pandas as pd

from profsvc import analysis, formats, specs, store
from profsvc.analysis.clocks import placed, placed_ranges, zone_of
from profsvc.analysis.kernels import TOOL
from profsvc.errors import ServiceError
from profsvc.formats.clock import LOCAL, UTC
from profsvc.formats.named_columns import read_columns
from profsvc.formats.placed_sensors import placed_sensors, read_positions
from profsvc.pipeline import memory_traces
from profsvc.pipeline.kernels import means_of_run, results_of_kernels
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
    "ingest",
    "reparse",
    "undelete",
]

LAUNCHES_AT_ONCE = 200
MOST_AT_ONCE = 20_000
METRICS_AT_ONCE = 50_000
# What an export says of its own device; the same in every launch, up to the clock.
DEVICE_FIGURES = (
    "sm_count", "max_warps_per_sm", "dram_peak_bytes_per_s", "fp32_peak_flop_per_s", "fp64_peak_flop_per_s",
    "l2_size_bytes", "sm_clock_max_hz", "mem_clock_max_hz",
)  # fmt: skip
Progress = Callable[[int], None]


@dataclass
class Verdict:
    """What a reader made of a file, whether it was stored or only checked."""

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


def _read(stream: BinaryIO, how: Reading, verdict: Verdict) -> Iterator[Batch]:
    """Read a file: its clock brought to UTC, its columns and channels as the user said."""
    reader, batches = formats.read(stream, how.form, verdict.file_name, read_columns(how.columns), how.most_bytes)
    verdict.format = reader.NAME
    zone, positions, said = None if how.zone is None else zone_of(how.zone), read_positions(how.positions), how.said()
    for batch in _counted(verdict, batches):
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


def check(source: BinaryIO, file_name: str, how: Reading = AS_IT_IS, progress: Progress | None = None) -> Verdict:
    """Read a file to its end without storing anything, and say what would be stored."""
    verdict = Verdict(file_name)
    with store.arriving(source, progress=progress) as arrival:
        for _ in _read(arrival.stream(), how, verdict):
            pass
        verdict.sha256 = arrival.sha256
    return verdict


def ingest(
    engine: "Engine",
    source: BinaryIO,
    file_name: str,
    run: store.RunInfo,
    how: Reading = AS_IT_IS,
    progress: Progress | None = None,
    files: store.Files | None = None,
) -> Verdict:
    """Store a file in one transaction, then analyse its run; the same bytes are stored once, and kept in ``files``.

    Where a server goes meanwhile, the file is read and stored again: that is safe, for its bytes are known.
    """
    with store.arriving(source, partial(store.spool_of, files), progress) as arrival:

        def attempt() -> tuple[Verdict, store.Stored]:
            verdict = Verdict(file_name)
            # A file of another length than all in the store is none of them: it is hashed while it is read.
            known = store.find_upload(engine, arrival.sha256) if store.has_size(engine, arrival.size) else None
            stored = known or _store(engine, arrival, run, how, files, verdict)
            verdict.sha256 = arrival.sha256
            return verdict, stored

        verdict, stored = store.repeated(engine, attempt)
        form = store.upload(engine, stored.upload_id)["format"] if stored.known else verdict.format
        if form == formats.memory_trace.NAME:
            here = partial(memory_traces.this_or_kept, arrival, files)
            store.repeated(engine, partial(memory_traces.simulate_traces, engine, stored.run_id, here))
    verdict.known, verdict.upload_id = stored.known, stored.upload_id
    verdict.run_id, verdict.run = stored.run_id, stored.run
    if verdict.known:
        verdict = _recalled(engine, verdict, how)
    # A run whose analysis was cut short is analysed when its bytes come again.
    if not verdict.known or store.select(engine, "v1_runs", run_id=stored.run_id)[0]["analysis_version"] is None:
        store.repeated(engine, partial(analyze, engine, stored.run_id))
    if verdict.characterized:
        devices = ", ".join(sorted(verdict.characterized))
        advice = f"measured: {devices}; recompute the runs on it with: profsvc analyze --all"
        verdict.message = f"{verdict.message}; {advice}" if verdict.message else advice
    return verdict


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


def _recalled(engine: "Engine", verdict: Verdict, how: Reading) -> Verdict:
    """Fill a verdict on bytes that are stored already from what was stored then."""
    row = store.upload(engine, cast("int", verdict.upload_id))
    for name in ("format", "lines", "lines_stored", "lines_skipped", "lines_rejected", "message"):
        setattr(verdict, name, row[name])
    verdict.launches = int(row["launches"])
    verdict.facts = json.loads(row["facts"])
    if kept := _kept(verdict, how, on_a_clock=row["samples"] > 0 or row["format"] == formats.marks.NAME):
        verdict.message = f"{verdict.message}; {kept}" if verdict.message else kept
    return verdict


def reparse(engine: "Engine", files: store.Files, upload_id: int) -> tuple[Verdict, Verdict]:
    """Read the kept bytes of an upload again, with today's readers, and analyse its run; return it before and after.

    The upload, its run, its time and the options it was read with stay. If it cannot be read now, nothing changes.
    """
    row = store.upload(engine, upload_id)
    same: tuple[str, ...] = ("sha256", "format", "upload_id", "run_id", "launches", "samples", "message")
    same += ("lines", "lines_stored", "lines_skipped", "lines_rejected")
    then = Verdict(row["file_name"], **{name: row[name] for name in same})
    return then, _read_again(engine, files, row, store.rereading(upload_id, row["run_id"]))


def undelete(engine: "Engine", files: store.Files, upload_id: int) -> Verdict:
    """Read the kept bytes of a deleted upload again, under its number and in its run, and analyse that."""
    row = store.deleted_upload(engine, upload_id)
    return _read_again(engine, files, row, store.restoring(row))


def _read_again(
    engine: "Engine", files: store.Files, row: Mapping[str, Any], prepare: Callable[["Connection"], None]
) -> Verdict:
    facts = json.loads(row["facts"])
    verdict = Verdict(row["file_name"], row["sha256"])
    with store.kept_bytes(files, verdict.sha256, verdict.file_name) as stream:
        batches = _read(stream, Reading.as_said(facts), verdict)
        device = facts.get("given_device")
        first = _told(next(batches, Batch()), device)
        upload = store.UploadInfo(
            *(verdict.file_name, verdict.sha256, row["size_bytes"], verdict.format),
            *(row["upload_id"], row["received_at"]),
        )
        run = store.RunInfo(run_id=row["run_id"], device=device)
        stored = store.write_upload(engine, upload, run, chain([first], batches), prepare)
    verdict.upload_id, verdict.run_id, verdict.run = stored.upload_id, stored.run_id, stored.run
    memory_traces.simulate_traces(engine, stored.run_id, memory_traces.kept_in(files))
    analyze(engine, stored.run_id)
    return verdict


def _told(batch: Batch, device: str | None) -> Batch:
    """Keep with the file which device the user named."""
    return batch if device is None else replace(batch, facts={**batch.facts, "given_device": device})


def _kept(verdict: Verdict, how: Reading, *, on_a_clock: bool) -> str:
    """Say how a stored file was read, and that it stays so where it is given with other options now."""
    then, now = ({option: facts.get(n, "") for n, option in OPTIONS.items()} for facts in (verdict.facts, how.said()))
    # Without samples or marks there is nothing that these options act on.
    other = [option for option in OPTIONS.values() if now[option] != then[option] and on_a_clock]
    if how.form not in (None, verdict.format):
        other.append("--format")
        then["--format"] = verdict.format
    if not other:
        return ""
    was = ", ".join(f"{option} {then[option]}" if then[option] else f"no {option}" for option in other)
    return (
        f"it was read with {was} and is kept as it was read then; to read it otherwise, delete it with: "
        f"profsvc delete {verdict.run_id} --upload {verdict.upload_id}, and upload it again"
    )


def analyze_again(engine: "Engine", files: store.Files, run_id: int) -> int:
    """Recompute a run because somebody asks: its memory traces where they were not simulated, then all else."""
    memory_traces.simulate_traces(engine, run_id, memory_traces.kept_in(files))
    return analyze(engine, run_id, asked=True)


def analyze(engine: "Engine", run_id: int, progress: Progress | None = None, *, asked: bool = False) -> int:
    """Recompute the counters, criteria, potential and power of a run; return how many launches it has.

    Launches without metrics get no rows of results, and none of them is read: they count by sums over their file.
    Where another file comes to the run meanwhile, it is all computed again: of two analyses no older one is the last.
    """
    while (total := _analyze_launches(engine, run_id)) is None:
        continue
    analyze_power(engine, run_id, asked=asked)
    if progress:
        progress(total)
    return total


def _analyze_launches(engine: "Engine", run_id: int) -> int | None:
    """Recompute what is known of the launches of a run; None where it has other files by now."""
    uploads = store.select(engine, "v1_uploads", run_id=run_id)
    tools = {upload["upload_id"]: str(upload["format"]).split("-")[0] for upload in uploads if upload["launches"]}
    launches, lent = _measured(engine, run_id, tools)
    rest = _rest(engine, run_id, uploads, launches)
    counters = _counters(engine, launches, lent, tools)
    of_kernels: Iterator[dict[str, pd.DataFrame]] = iter(())
    if means := means_of_run(engine, run_id):
        of_kernels = results_of_kernels(engine, run_id, means, rest, whole=launches.empty)
        rest = rest._replace(launches=0)
    results = analysis.analyze(launches, counters, store.characterizations(engine), specs.criteria(), rest)
    results = chain(results, of_kernels)
    figures: list[pd.DataFrame] = []
    parts = chain(_noting_devices(results, launches, figures), memory_traces.rows_of_run(engine, run_id))
    if not store.save_results(engine, run_id, parts, analysis.VERSION, [upload["upload_id"] for upload in uploads]):
        return None
    _describe_devices(engine, figures)
    return sum(int(upload["launches"]) for upload in uploads)


def _counters(
    engine: "Engine", launches: pd.DataFrame, lent: pd.DataFrame, tools: Mapping[int, str]
) -> Iterator[tuple[pd.DataFrame, Mapping[str, Any], str]]:
    """Yield the counters of launches and their tool, as many at once as have few enough metrics for the memory."""
    for upload_id, group in launches.groupby("upload_id"):
        tool = tools[int(str(upload_id))]
        for (device, capability), same in group.groupby(["device", "compute_capability"], dropna=False):
            name, known = (part if isinstance(part, str) else None for part in (device, capability))
            catalogue = specs.figures(name, known) if tool == TOOL else {}
            known = known or cast("str | None", catalogue.get("compute_capability"))
            begin, size = 0, LAUNCHES_AT_ONCE
            while begin < len(same):
                some = same.iloc[begin : begin + size]
                metrics = store.metrics(engine, int(str(upload_id)), some["launch_id"].tolist())
                if tool == "ncu" and len(lent):  # the launch's own cells come first, and the first counts
                    metrics = pd.concat([metrics, lent[lent["launch_id"].isin(some["launch_id"])]], ignore_index=True)
                wide = store.wide_values(engine, some["launch_id"].tolist(), analysis.metrics_used(tool, known))
                yield *analysis.counters_of(some, metrics, tool, known, wide, catalogue), tool
                begin += size
                # Launches of a trace have few metrics or none: then many of them take no more memory.
                size = max(LAUNCHES_AT_ONCE, min(MOST_AT_ONCE, METRICS_AT_ONCE * len(some) // (len(metrics) + 1)))


def _measured(engine: "Engine", run_id: int, tools: Mapping[int, str]) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return the launches of a run that have metrics, their own or lent by a session page, and those that are lent."""
    attributes = store.device_attributes(engine, run_id)
    launches = store.measured_launches(engine, [u for u, tool in tools.items() if analysis.feeds_criteria(tool)])
    own = launches["launch_id"]
    if len(attributes):
        pages = [upload for upload, tool in tools.items() if tool == "ncu"]
        launches = pd.concat([launches, store.measured_launches(engine, pages, measured=False)], ignore_index=True)
    named, lent = analysis.lend(launches, attributes)
    kept = named[named["launch_id"].isin(own) | named["launch_id"].isin(lent["launch_id"])]
    return kept.sort_values("launch_id").reset_index(drop=True), lent


def _rest(engine: "Engine", run_id: int, uploads: Sequence[Mapping[str, Any]], launches: pd.DataFrame) -> analysis.Rest:
    """Return what a run has beside ``launches``, those with metrics; launches of several pages count once."""
    first = launches["same_as"].fillna(launches["launch_id"])
    report_of = {upload["upload_id"]: upload["same_as"] or upload["upload_id"] for upload in uploads}
    report = launches["upload_id"].map(report_of)
    number, time_ns, advice = 0, 0.0, ""
    for upload in uploads:
        if upload["same_as"] is not None or not upload["launches"]:
            continue
        known = first[report == upload["upload_id"]].unique().tolist()
        if lacking := upload["launches"] - len(known):
            whole = upload["gpu_time_ns"] or 0.0
            time_ns += store.time_without(engine, upload["upload_id"], known) if known else whole
            number += lacking
            advice = specs.how_to_measure(str(upload["format"]).split("-")[0])
    return analysis.Rest(store.timeline(engine, run_id), number, time_ns, advice)


def _noting_devices(
    results: Iterator[dict[str, pd.DataFrame]], launches: pd.DataFrame, figures: list[pd.DataFrame]
) -> Iterator[dict[str, pd.DataFrame]]:
    """Pass results through, and keep in ``figures`` the most that the export says of each device."""
    device_of = launches.set_index("launch_id")["device_id"]
    for part in results:
        if "counters" in part:
            said = part["counters"][part["counters"]["counter"].isin(DEVICE_FIGURES)]
            said = said.assign(device_id=said["launch_id"].map(device_of)).dropna(subset=["device_id"])
            figures.append(said.groupby(["device_id", "counter"])[["value"]].max().reset_index())
        yield part


def _describe_devices(engine: "Engine", said: list[pd.DataFrame]) -> None:
    """Keep what the export says of its devices themselves."""
    for device_id, group in pd.concat(said).groupby("device_id") if said else ():
        known = {str(name): value for name, value in group.groupby("counter")["value"].max().items()}
        sms = known.pop("sm_count", None)
        store.describe_device(engine, int(str(device_id)), None if sms is None else int(sms), known)


def demo_files() -> list[Path]:
    """Return the bundled exports of the demonstration, wherever the package is installed."""
    here = Path(__file__).parent.parent
    folder = here / "demo" if (here / "demo").is_dir() else here.parent / "fixtures" / "demo"
    return sorted(p for p in folder.iterdir() if p.suffix in {".gz", ".csv"})
