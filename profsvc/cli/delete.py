"""``delete``, ``undelete`` and ``reparse``: files and runs out of the store, back into it, and read again."""

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import typer

from profsvc.cli.common import Output, Sure, agreed, engine_of, files_of, put, say
from profsvc.errors import NotFoundError, ProfsvcError, ServiceError, UsageError, counted

if TYPE_CHECKING:
    from profsvc.pipeline import Verdict

DELETED = ("upload_id", "project", "run", "run_id", "file_name", "launches", "samples", "size_bytes", "deleted_at")
COMPARED = ("format", "launches", "samples", "lines", "lines_stored", "lines_skipped", "lines_rejected", "message")


def delete(
    context: typer.Context,
    run: Annotated[str, typer.Argument(help="Run by name or id.")],
    upload: Annotated[int, typer.Option(help="Number of the upload to delete from the run.")] = 0,
    every: Annotated[bool, typer.Option("--all", help="Delete the run with all its uploads.")] = False,
    yes: Sure = False,
) -> None:
    """Delete an upload of a run, or the whole run, after listing it; ``undelete`` brings it back.

    Example:

      profsvc delete nightly --upload 7 --yes
    """
    from profsvc import pipeline, store

    if bool(upload) == every:
        raise UsageError("give --upload N for one file of the run, or --all for the run itself")
    engine = engine_of(context)
    run_id = store.find_run(engine, run)
    uploads = {int(row["upload_id"]): row for row in store.select(engine, "v1_uploads", run_id=run_id)}
    if upload and upload not in uploads:
        raise NotFoundError(f"run {run!r} has no upload {upload}; it has {', '.join(map(str, uploads)) or 'none'}")
    chosen = [uploads[upload]] if upload else list(uploads.values())
    what = f"upload {upload} ({chosen[0]['file_name']}) of run" if upload else "run"
    agreed(f"{what} {run!r} (id {run_id}) goes", _listed(chosen), yes)
    if every:
        store.delete_run(engine, run_id)
        say(f"run {run!r} (id {run_id}) deleted with {counted(len(uploads), 'upload')}; {_way_back(list(uploads))}")
        return
    store.delete_upload(engine, upload, partial(pipeline.analyze, engine))
    say(f"{what} {run!r} (id {run_id}) deleted; {_way_back([upload])}")


def _listed(uploads: Sequence[dict[str, Any]]) -> list[str]:
    from profsvc import store

    return [f"upload {row['upload_id']} ({row['file_name']}): {store.holding(row)}" for row in uploads]


def _way_back(uploads: list[int]) -> str:
    return f"until `profsvc db vacuum` it can be had back with: profsvc undelete {' '.join(map(str, uploads))}"


def undelete(
    context: typer.Context,
    uploads: Annotated[list[int] | None, typer.Argument(help="Numbers of deleted uploads; none lists them.")] = None,
    output: Output = "table",
) -> None:
    """Bring deleted uploads back, under their numbers and in their runs; without a number, list what there is.

    Examples:

      profsvc undelete

      profsvc undelete 7
    """
    from profsvc import pipeline, store

    engine = engine_of(context)
    if not uploads:
        rows = store.deleted_uploads(engine)
        put(DELETED, [{name: row[name] for name in DELETED} for row in rows], output)
        if not rows:
            say("no upload is deleted that could be had back")
        return
    files = files_of(engine)
    for number in uploads:
        verdict = pipeline.undelete(engine, files, number)
        back = "was back already" if verdict.known else "is back"
        say(f"upload {number} ({verdict.file_name}) {back} in run {verdict.run!r} (id {verdict.run_id})")


def reparse(
    context: typer.Context,
    runs: Annotated[list[str] | None, typer.Argument(help="Runs by name or id.")] = None,
    upload: Annotated[list[int] | None, typer.Option(help="Number of an upload; may be repeated.")] = None,
    every: Annotated[bool, typer.Option("--all", help="Every upload of the store.")] = False,
) -> None:
    """Read the kept bytes of uploads again with today's readers, and say what changed; numbers and times stay.

    Each file is one transaction: where it cannot be read now, its rows stay as they are.

    Examples:

      profsvc reparse nightly

      profsvc reparse --upload 7

      profsvc reparse --all
    """
    from profsvc import pipeline, store

    if not runs and not upload and not every:
        raise UsageError("name the runs to read again, or give --upload N, or --all")
    engine = engine_of(context)
    files = files_of(engine)
    numbers = list(upload or [])
    ids = store.runs(engine)["run_id"].tolist() if every else [store.find_run(engine, run) for run in runs or []]
    for run_id in ids:
        numbers += [int(row["upload_id"]) for row in store.select(engine, "v1_uploads", run_id=int(run_id))]
    failed, numbers = 0, sorted(set(numbers))
    for number in numbers:
        try:
            then, now = pipeline.reparse(engine, files, number)
        except ProfsvcError as error:
            failed += 1
            say(f"upload {number}: stays as it was: {error}")
            continue
        say(f"upload {number} ({now.file_name}) of run {now.run!r} (id {now.run_id}): {_changed(then, now)}")
    if failed:
        raise ServiceError(f"{failed} of {len(numbers)} uploads could not be read again")


def _changed(then: "Verdict", now: "Verdict") -> str:
    """Say what a new reading made otherwise."""
    pairs = [(name, getattr(then, name), getattr(now, name)) for name in COMPARED]
    changed = [f"{name} {old!r} -> {new!r}" for name, old, new in pairs if old != new]
    return f"read again, {'; '.join(changed) or 'the same counts'}"


def register(app: typer.Typer) -> None:
    """Add the commands of this file."""
    app.command()(delete)
    app.command()(undelete)
    app.command()(reparse)
