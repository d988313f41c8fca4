"""``ingest``: load many files at once, each as a run of its own, here or on the workers of a cluster."""

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Annotated, Any

from click import Context
from click.exceptions import Exit

from profsvc.cli.console.common import OutputOption, open_engine, open_files, parse_pairs, print_message, print_rows
from profsvc.cli.console.declaration import Argument, Group, Option
from profsvc.cli.console.exit_codes import INTERRUPTED
from profsvc.cli.console.progress import progress_of
from profsvc.errors import InputError, PartlyStoredError, ServiceError, UsageError, counted

if TYPE_CHECKING:
    from profsvc.scale import Outcome
    from profsvc.scale.bulk import Mapped
    from profsvc.scale.work import Opened

OF_FILE = "file"
COLUMNS = ("file", "run", "run_id", "upload_id", "status", "format", "launches", "samples", "lines", "lines_rejected",
           "message")  # fmt: skip
MAX_SHOWN = 20
ClusterOption = Annotated[
    str,
    Option(help="Work on a Dask cluster: local, or a scheduler such as tls://dask.lab:8786.", metavar="ADDRESS"),
]
WorkersOption = Annotated[
    int, Option(min=0, help="Worker processes of --cluster local; 0: one per processor.", metavar="N")
]


def ingest(
    context: Context,
    paths: Annotated[list[str], Argument(help="Files or folders. .gz and .zst are decompressed.")],
    run_by: Annotated[
        str, Option(help="What is one run: each file, or all files of a folder.", metavar="file|folder")
    ] = "file",
    project: Annotated[str, Option(help="Project of the runs.")] = "default",
    device: Annotated[str, Option(help="Device, if the files do not name it.")] = "",
    tag: Annotated[list[str], Option(help="Tag of the runs, such as branch=main; repeatable.")] = [],
    at: Annotated[
        str,
        Option(help="When it was measured: 2026-10-24T03:00:00Z, a date, or 'file' for each file's modification time."),
    ] = "",
    timezone: Annotated[str, Option(help="Time zone of logs that name none, such as Europe/Berlin.")] = "",
    cluster: ClusterOption = "",
    workers: WorkersOption = 0,
    output: OutputOption = "",
) -> None:
    """Load many files, each as a run of its own; with --cluster on several processors or machines at once.

    A file that is refused stops no other. Stored files are skipped, so after an interruption the same command goes on.

    Examples:

      profsvc ingest exports/ --cluster local

      profsvc ingest nights/ --run-by folder --at file --project lab

      profsvc --store postgresql://db.lab/profsvc ingest /shared/exports --cluster tls://dask.lab:8786
    """
    from profsvc import pipeline, scale, store
    from profsvc.scale.files import readable

    info = store.RunInfo(
        project=project,
        device=device or None,
        tags=parse_pairs("--tag", tag),
        at=store.parse_measured_at(at) if at and at != OF_FILE else None,
    )
    store.check_run_names(info)
    how = pipeline.ReadOptions(zone=timezone or None)
    groups = scale.group_files(paths, run_by)
    total = sum(len(group.files) for group in groups)
    began, outcomes, interrupted = perf_counter(), [], False
    with working(context, cluster, workers) as (opened, mapped), progress_of(total, "files") as step:
        try:
            for outcome in scale.ingest(opened, mapped, groups, info, how, dated=at == OF_FILE):
                outcomes.append(outcome)
                said = f"{outcome.file}: {outcome.status} in run {outcome.run!r}: {outcome.message}"
                print_message(said.removesuffix(": "), only_verbose=True)
                step()
        except KeyboardInterrupt:
            interrupted = True
    if interrupted:  # workers have ended, so nothing more is stored
        wanted = Counter((group.run, readable(Path(file).name)) for group in groups for file in group.files)
        stored = (wanted & Counter(store.stored_file_names(opened.engine, project))).total()
        print_message(
            f"interrupted: {stored} of {counted(total, 'file')} stored, each whole; the same command goes on with the "
            "others",
            kind="error",
        )
        raise Exit(INTERRUPTED)
    order = {file: n for n, file in enumerate(file for group in groups for file in group.files)}
    _report(sorted(outcomes, key=lambda outcome: order[outcome.file]), perf_counter() - began, output)


@contextmanager
def working(context: Context, cluster: str, count: int) -> "Iterator[tuple[Opened, Mapped]]":
    """Open the store, and start or reach the workers; without a cluster this process does the work."""
    from profsvc import scale, store
    from profsvc.scale.work import Opened

    if count and not cluster:
        raise UsageError("--workers needs --cluster local")
    engine = open_engine(context)
    opened = Opened(engine, open_files(engine))
    if cluster and not store.is_server_of(engine):
        print_message(
            "a SQLite store has one writer at a time: workers read and compute side by side but store one after the "
            "other; a Postgres store takes several"
        )
    made = (
        scale.workers(cluster, opened, count or None, print_message)
        if cluster
        else nullcontext(scale.one_process(opened))
    )
    with made as mapped:
        yield opened, mapped


def _report(outcomes: "Sequence[Outcome]", seconds: float, output: str) -> None:
    """Print the outcome of each file; raise an error where some or all were not stored."""
    if output:
        print_rows(COLUMNS, [_row(outcome) for outcome in outcomes], output)
    counts = Counter(outcome.status for outcome in outcomes)
    shown = ", ".join(f"{number} {status}" for status, number in counts.items())
    print_message(f"{counted(len(outcomes), 'file')} in {seconds:.1f} s: {shown}")
    bad = [outcome for outcome in outcomes if outcome.exit_code]
    if not bad:
        return
    for outcome in bad[:MAX_SHOWN]:
        print_message(f"{outcome.file}: {outcome.status}: {outcome.message}", kind="error")
    if len(bad) > MAX_SHOWN:
        print_message(f"and {len(bad) - MAX_SHOWN} more; -o csv lists all", kind="error")
    if len(bad) < len(outcomes):
        raise PartlyStoredError(f"{len(bad)} of {counted(len(outcomes), 'file')} not stored")
    refused = all(outcome.exit_code == InputError.exit_code for outcome in bad)
    raise (InputError if refused else ServiceError)("nothing was stored")


def _row(outcome: "Outcome") -> dict[str, Any]:
    result = outcome.result
    of_file = {name: getattr(result, name, None) for name in COLUMNS}
    return of_file | {name: getattr(outcome, name) for name in ("file", "run", "status", "message")}


def register(app: Group) -> None:
    """Add the commands of this file."""
    app.function()(ingest)
