"""``upload`` and ``analyze``: files in, results recomputed."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from profsvc.cli.common import Output, engine_of, put, say
from profsvc.errors import InputError, NotFoundError, PartlyStoredError, UsageError

if TYPE_CHECKING:
    from profsvc.pipeline import Verdict

COLUMNS = (
    "file_name", "run", "run_id", "upload_id", "known", "format", "launches",
    "lines", "lines_stored", "lines_skipped", "lines_rejected", "message",
)  # fmt: skip


def _files(paths: list[str]) -> list[str]:
    """Expand folders to the files in them; - is stdin."""
    files: list[str] = []
    for text in paths:
        path = Path(text)
        if text != "-" and not path.exists():
            raise NotFoundError(f"no file {text!r}; give an existing file, a folder, or - for stdin")
        files += sorted(str(p) for p in path.rglob("*") if p.is_file()) if path.is_dir() else [text]
    if not files:
        raise NotFoundError(f"no files in {', '.join(paths)}")
    return files


def _tags(pairs: list[str]) -> dict[str, str]:
    tags = dict(pair.split("=", 1) for pair in pairs if "=" in pair)
    if wrong := [pair for pair in pairs if "=" not in pair]:
        raise UsageError(f"--tag {wrong[0]!r} must look like key=value, such as --tag branch=main")
    return tags


def _one(text: str, work: Any) -> "Verdict":
    """Open a file (or stdin) with a progress bar on a terminal, and hand it to ``work``."""
    from rich.console import Console
    from rich.progress import Progress, wrap_file

    if text == "-":
        return work(sys.stdin.buffer, "stdin", None)
    path = Path(text)
    with path.open("rb") as stream:
        if not sys.stderr.isatty():
            return work(stream, path.name, None)
        with Progress(console=Console(stderr=True), transient=True) as bar:
            task = bar.add_task(path.name, total=path.stat().st_size)
            return work(stream, path.name, lambda n: bar.advance(task, n))
    del wrap_file


def describe(verdict: "Verdict", checked: bool) -> str:
    """Say in one sentence what became of a file."""
    account = (
        f"{verdict.launches} launches; of {verdict.lines} lines {verdict.lines_stored} stored, "
        f"{verdict.lines_skipped} skipped, {verdict.lines_rejected} rejected"
    )
    where = f"run {verdict.run!r} (id {verdict.run_id})"
    if checked:
        text = f"{verdict.file_name}: {verdict.format}, would store {account}"
    elif verdict.known:
        text = (
            f"{verdict.file_name}: already stored as upload {verdict.upload_id} of {where}, nothing changed; {account}"
        )
    else:
        text = f"{verdict.file_name}: {verdict.format} stored as upload {verdict.upload_id} of {where}; {account}"
    return text + (f"\n  note: {verdict.message}" if verdict.message else "")


def upload(
    context: typer.Context,
    paths: Annotated[
        list[str], typer.Argument(help="Files or folders; - is stdin. .gz and .zst are read as they are.")
    ],
    run: Annotated[str, typer.Option(help="Run the files belong to; default: named after the first file.")] = "",
    project: Annotated[str, typer.Option(help="Project of the run.")] = "default",
    device: Annotated[str, typer.Option(help="Device, where the files do not name it.")] = "",
    commit: Annotated[str, typer.Option(help="Commit that was measured.")] = "",
    tag: Annotated[list[str], typer.Option(help="key=value, kept with the run; may be repeated.")] = [],  # noqa: B006
    form: Annotated[str, typer.Option("--format", help="Reader to use, instead of recognising the file.")] = "",
    check: Annotated[bool, typer.Option("--check", help="Only say what would be stored; nothing is written.")] = False,
    output: Output = "",
) -> None:
    """Read profiler exports, store them, and compute their criteria and potential speedups.

    Examples:

      profsvc upload ncu_raw.csv.gz

      profsvc upload --run nightly --tag branch=main results/

      ncu --csv --page raw -i report.ncu-rep | profsvc upload - --run today
    """
    from profsvc import pipeline, store

    info = store.RunInfo(
        project=project, name=run or None, device=device or None, tags=_tags(tag), commit_id=commit or None
    )
    engine = None if check else engine_of(context)
    verdicts: list[Verdict] = []
    refused: list[InputError] = []
    for text in _files(paths):

        def work(stream: Any, name: str, progress: Any) -> "Verdict":
            if engine is None:
                return pipeline.check(stream, name, form or None, progress)
            return pipeline.ingest(engine, stream, name, info, form or None, progress)

        try:
            verdict = _one(text, work)
        except InputError as error:
            refused.append(error)
            say(f"{text}: refused: {error}")
            continue
        verdicts.append(verdict)
        if info.name is None and verdict.run_id is not None:
            info = store.RunInfo(**{**vars(info), "run_id": verdict.run_id})
        say(describe(verdict, check))
    if output:
        put(COLUMNS, [vars(v) for v in verdicts], output)
    if refused and verdicts:
        raise PartlyStoredError(f"{len(refused)} of {len(refused) + len(verdicts)} files were refused")
    if refused:
        raise type(refused[0])("nothing was stored")


def analyze(
    context: typer.Context,
    runs: Annotated[list[str] | None, typer.Argument(help="Runs by name or id.")] = None,
    every: Annotated[bool, typer.Option("--all", help="Every run of the store.")] = False,
) -> None:
    """Recompute counters, criteria and potential from the stored metrics.

    Examples:

      profsvc analyze nightly

      profsvc analyze --all
    """
    from profsvc import pipeline, store

    engine = engine_of(context)
    if not runs and not every:
        raise UsageError("name the runs to recompute, or give --all")
    ids = [int(r) for r in store.runs(engine)["run_id"]] if every else [store.find_run(engine, r) for r in runs or []]
    for run_id in ids:
        say(f"run {run_id}: {pipeline.analyze(engine, run_id)} launches recomputed")


def register(app: typer.Typer) -> None:
    """Add the commands of this file."""
    app.command()(upload)
    app.command()(analyze)
