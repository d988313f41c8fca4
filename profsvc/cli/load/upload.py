"""``upload`` and ``analyze``: load files, recompute results."""

import dataclasses
import os
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, BinaryIO, NamedTuple

from click import Context

from profsvc.cli.console import verbosity
from profsvc.cli.console.common import (
    OutputOption,
    describe_upload,
    open_engine,
    open_files,
    open_service,
    parse_pairs,
    print_message,
    print_rows,
)
from profsvc.cli.console.declaration import Argument, Group, Option
from profsvc.cli.console.progress import progress_of
from profsvc.cli.load.ingest import ClusterOption, WorkersOption, working
from profsvc.errors import InputError, NotFoundError, PartlyStoredError, ProfsvcError, UsageError, counted

if TYPE_CHECKING:
    from profsvc.pipeline import ImportResult, Progress, ReadOptions
    from profsvc.store import RunInfo

    Work = Callable[[BinaryIO, str, Progress | None], ImportResult | None]
    Take = Callable[[BinaryIO, str, Progress | None, RunInfo, bool], ImportResult | None]

OF_FILE = "file"
MAX_FILES_TOLD = 10
"""Of more files on a terminal there is a summary, and not a line for each."""
COLUMNS = (
    "file_name", "run", "run_id", "upload_id", "known", "format", "launches", "samples",
    "lines", "lines_stored", "lines_skipped", "lines_rejected", "message",
)  # fmt: skip


class Taking(NamedTuple):
    """What takes a file, told whether more of its run follow, and what analyses a run after its last file.

    The second is None where the first does that.
    """

    take: "Take"
    finish: "Callable[[int], None] | None" = None


def _files(paths: Sequence[str]) -> tuple[list[str], dict[str, str]]:
    """Expand folders to what they hold; return the files, and why each of the rest is not read; - is stdin.

    A pipe is read if it is named, but not if it lies in a folder, where perhaps no program writes into it.
    """
    from profsvc.pipeline.ingestion.folder_files import files_in, refusal

    files: list[str] = []
    refused: dict[str, str] = {}
    for text in paths:
        path = Path(text)
        if text != "-" and not path.exists():
            raise NotFoundError(f"no file {text!r}; give an existing file, a folder, or - for stdin")
        if text == "-" or not path.is_dir():
            files.append(text)
            continue
        for file in files_in(path):
            if reason := refusal(file):
                refused[str(file)] = reason
            else:
                files.append(str(file))
    if not files and not refused:
        raise NotFoundError(f"no files in {', '.join(paths)}")
    return files, refused


def one(text: str, work: "Work", *, bar: bool = True) -> "ImportResult | None":
    """Open a file (or stdin) and hand it to ``work``, with a progress bar on a terminal."""
    if text == "-":
        return work(sys.stdin.buffer, "stdin", None)
    path = Path(text)
    name = os.fsencode(path.name).decode("utf-8", "backslashreplace")  # a name may hold bytes that are not text
    try:
        stream = path.open("rb")
    except OSError as error:
        raise InputError(f"it cannot be read: {error.strerror}") from None
    with stream:
        if not bar or not sys.stderr.isatty():
            return work(stream, name, None)
        from rich.console import Console
        from rich.markup import escape
        from rich.progress import Progress as Bar

        from profsvc.reports.rows import visible

        with Bar(console=Console(stderr=True), transient=True) as shown:
            task = shown.add_task(escape(visible(name)), total=path.stat().st_size)
            return work(stream, name, partial(shown.advance, task))


def upload(
    context: Context,
    paths: Annotated[list[str], Argument(help="Files or folders; - is stdin. .gz and .zst are decompressed.")],
    run: Annotated[
        str | None, Option(help="Run to add the files to; default: a run named after the first file.")
    ] = None,
    project: Annotated[str, Option(help="Project of the run.")] = "default",
    device: Annotated[str, Option(help="Device, if the files do not name it.")] = "",
    commit: Annotated[str, Option(help="Commit that was measured.")] = "",
    tag: Annotated[list[str], Option(help="Tag of the run, such as branch=main; repeatable.")] = [],
    at: Annotated[
        str,
        Option(help="When it was measured: 2026-10-24T03:00:00Z, a date, or 'file' for each file's modification time."),
    ] = "",
    form: Annotated[str, Option("--format", help="Format of the files, instead of detecting it.")] = "",
    timezone: Annotated[str, Option(help="Time zone of logs that name none, such as Europe/Berlin.")] = "",
    clock_offset: Annotated[float, Option(help="Seconds by which the clock of the files was ahead.")] = 0.0,
    column: Annotated[
        list[str],
        Option(
            help="Meaning of a column of a log, such as Main=power:mW, t=time:ms, Note=skip or #2=...; "
            "repeatable. The files are read as format timeseries."
        ),
    ] = [],
    position: Annotated[
        list[str], Option(help="Position of a channel on the die in mm, such as T1=3.5,12; repeatable.")
    ] = [],
    check: Annotated[bool, Option("--check", help="Only report what would be stored; write nothing.")] = False,
    output: OutputOption = "",
) -> None:
    """Load profiler exports and logs, and compute criteria and potential speedups.

    Examples:

      profsvc upload ncu_raw.csv.gz

      profsvc upload --run nightly --tag branch=main results/

      ncu --csv --page raw -i report.ncu-rep | profsvc upload - --run today

      profsvc upload --run 2026-10-24 --at 2026-10-24T03:00:00Z old/2026-10-24.csv

      for night in nights/*.csv; do profsvc upload --at file "$night"; done

      profsvc upload --run today --timezone Europe/Berlin meter.csv

      profsvc upload --run today --column t=time:ms --column P=power:mW --column T1=temperature:degC mine.csv

      profsvc upload --run today --position "T1=3.5,12" picolog.csv
    """
    from profsvc import pipeline, store

    info = store.RunInfo(
        project=project,
        name=run,
        device=device or None,
        tags=parse_pairs("--tag", tag),
        commit_id=commit or None,
        at=store.parse_measured_at(at) if at and at != OF_FILE else None,
    )
    store.check_run_names(info)
    files, unread = _files(paths)
    if at == OF_FILE and "-" in files:
        raise UsageError("--at file: stdin has no file time; give the time, such as --at 2026-10-24T03:00:00Z")
    how = pipeline.ReadOptions(form or None, timezone or None, clock_offset, tuple(column), tuple(position))
    taken = taking(context, how, check, several=len(files) > 1)
    for file, reason in unread.items():
        print_message(f"{file}: refused: {reason}", kind="error")
    if not run and len(files) > 1 and any(Path(path).is_dir() for path in paths):
        print_message(
            f"the {len(files)} files are stored in one run, as given without --run; for a run of each: profsvc ingest"
        )
    verdicts, refused = store_files(files, taken, info, check, dated=at == OF_FILE)
    refused += len(unread)
    if output:
        print_rows(COLUMNS, [vars(v) for v in verdicts], output)
    if refused and verdicts:
        verb = "was" if refused == 1 else "were"
        raise PartlyStoredError(f"{refused} of {counted(len(files) + len(unread), 'file')} {verb} refused")
    if refused:
        raise InputError("nothing was stored")


def taking(
    context: Context, how: "ReadOptions", check: bool = False, keeps: bool = True, several: bool = True
) -> Taking:
    """Return what takes files: a check only, the service, or the store.

    With ``keeps``, a file is queued while the service is unreachable; otherwise that is an error. With ``several``, a
    run in this store is analysed once, after its last file.
    """
    from profsvc import pipeline
    from profsvc.pipeline.malloc import keep_blocks

    keep_blocks()  # before any thread is there
    if check:
        return Taking(lambda stream, name, progress, _, __: pipeline.check_file(stream, name, how, progress))
    if service := open_service(context):
        from profsvc.cli.service.remote import sending

        return Taking(sending(service, how, keeps))
    engine = open_engine(context)
    kept = open_files(engine)

    def take(stream: BinaryIO, name: str, progress: "Progress | None", info: "RunInfo", _: bool) -> "ImportResult":
        return pipeline.ingest(engine, stream, name, info, how, progress, kept, results_later=several)

    return Taking(take, partial(pipeline.analyze_stored, engine, kept) if several else None)


def written_at(about: os.stat_result) -> str:
    """Return when a file was last written, as the store writes times."""
    from profsvc import store

    return store.parse_measured_at(datetime.fromtimestamp(about.st_mtime, UTC).isoformat())


def store_files(
    files: Sequence[str], taking: Taking, info: "RunInfo", checked: bool = False, *, dated: bool = False
) -> tuple[list["ImportResult"], int]:
    """Take the files, ``dated`` each by when it was written; return the verdicts on them, and how many were refused.

    On a terminal many files have one bar and one sentence, and those that were refused are listed.
    """
    verdicts: list[ImportResult] = []
    refusals: list[str] = []
    brief = len(files) > MAX_FILES_TOLD and sys.stderr.isatty() and verbosity.level == verbosity.NORMAL
    began = time.monotonic()
    try:
        with progress_of(len(files), "files") if brief else nullcontext() as advance:
            _take_files(files, taking.take, info, verdicts, refusals, checked=checked, dated=dated, advance=advance)
            if taking.finish:
                for run_id in _run_ids(verdicts):
                    taking.finish(run_id)
    except (KeyboardInterrupt, ProfsvcError):
        if taking.finish and verdicts:
            runs = " ".join(f"id:{run_id}" for run_id in _run_ids(verdicts))
            print_message(
                f"stopped after {len(verdicts)} of {counted(len(files), 'file')}; the same command goes on, or "
                f"compute the results of what is stored with: profsvc analyze {runs}",
                kind="error",
            )
        raise
    finally:
        for refusal in refusals if brief else ():
            print_message(refusal, kind="error")
    if brief:
        _print_summary(verdicts, len(refusals), len(files), time.monotonic() - began, checked=checked)
    return verdicts, len(refusals)


def _print_summary(
    verdicts: "Sequence[ImportResult]", refused: int, files: int, seconds: float, *, checked: bool
) -> None:
    """Print the outcome of many files in one sentence, and how to see more of each."""
    known = sum(one.known for one in verdicts)
    counts = {
        "would be stored" if checked else "stored": len(verdicts) - known,
        "already stored": known,
        "queued": files - len(verdicts) - refused,
        "refused": refused,
    }
    shown = ", ".join(f"{count} {what}" for what, count in counts.items() if count)
    runs = {one.run_id: one.run for one in verdicts if one.run_id is not None}
    where = "".join(f"; run {name!r} (id {number})" for number, name in runs.items())
    where = where if len(runs) < 2 else f"; {len(runs)} runs"
    print_message(f"{counted(files, 'file')} in {seconds:.1f} s: {shown}{where}")
    if noted := sum(bool(one.message or one.warnings or one.lines_rejected) for one in verdicts):
        verb = "has" if noted == 1 else "have"
        print_message(f"{counted(noted, 'file')} {verb} notes or warnings; --verbose prints each, -o json has all")


def _run_ids(verdicts: "Sequence[ImportResult]") -> list[int]:
    return sorted({one.run_id for one in verdicts if one.run_id is not None})


def _take_files(
    files: Sequence[str],
    take: "Take",
    info: "RunInfo",
    verdicts: list["ImportResult"],
    refusals: list[str],
    *,
    checked: bool,
    dated: bool,
    advance: "Callable[[], None] | None",
) -> None:
    """Take the files; add the verdict on each that is stored, and the words on each that is refused.

    Both are printed at once, but not with ``advance``, which is called for each file.
    """
    for number, text in enumerate(files, 1):
        if dated:
            info = dataclasses.replace(info, at=written_at(Path(text).stat()))

        def work(
            stream: BinaryIO,
            name: str,
            progress: "Progress | None",
            info: "RunInfo" = info,
            more: bool = number < len(files),
        ) -> "ImportResult | None":
            return take(stream, name, progress, info, more)

        verdict = None
        try:
            verdict = one(text, work, bar=advance is None)
        except InputError as error:
            refusals.append(f"{text}: refused: {error}")
            if advance is None:
                print_message(refusals[-1], kind="error")
        if advance is not None:
            advance()
        if verdict is None:  # it is refused, or queued for the service
            continue
        verdicts.append(verdict)
        if info.name is None and verdict.run_id is not None:
            info = dataclasses.replace(info, run_id=verdict.run_id)  # the first file makes the run of the others
        if advance is None:
            print_message(describe_upload(verdict, checked=checked))


def analyze(
    context: Context,
    runs: Annotated[list[str] | None, Argument(help="Runs by name or id.")] = None,
    every: Annotated[bool, Option("--all", help="Every run of the store.")] = False,
    cluster: ClusterOption = "",
    workers: WorkersOption = 0,
) -> None:
    """Recompute counters, criteria and potential speedups from stored metrics.

    Examples:

      profsvc analyze nightly

      profsvc analyze --all

      profsvc analyze --all --cluster local --workers 4
    """
    from profsvc import scale, store

    if not runs and not every:
        raise UsageError("name the runs to recompute, or give --all")
    with working(context, cluster, workers) as (opened, mapped):
        engine = opened.engine
        known = (int(run) for run in store.runs(engine)["run_id"]) if every else ()
        archived = store.archived_runs(engine) if every else set()
        ids = sorted(known) if every else [store.find_run(engine, run) for run in runs or []]
        for run_id in archived.intersection(ids):
            print_message(f"run {run_id}: skipped, its rows are archived")
        ids = [run_id for run_id in ids if run_id not in archived]
        for run_id, launches in scale.analyze(opened, mapped, ids):
            print_message(f"run {run_id}: {counted(launches, 'launch')} recomputed")


def register(app: Group) -> None:
    """Add the commands of this file."""
    app.function()(upload)
    app.function()(analyze)
