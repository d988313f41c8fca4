"""``delete``, ``undelete`` and ``reparse``: remove, restore and re-read uploads."""

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

from click import Context

from profsvc.cli.console.common import (
    LimitOption,
    OutputOption,
    YesOption,
    confirm_removal,
    open_engine,
    open_files,
    print_message,
    print_rows,
)
from profsvc.cli.console.declaration import Argument, Group, Option
from profsvc.errors import NotFoundError, ProfsvcError, ServiceError, UsageError, counted

if TYPE_CHECKING:
    from profsvc.pipeline import ImportResult

DELETED = ("upload_id", "project", "run", "run_id", "file_name", "launches", "samples", "size_bytes", "deleted_at")
COMPARED = ("format", "launches", "samples", "lines", "lines_stored", "lines_skipped", "lines_rejected", "message")


def delete(
    context: Context,
    run: Annotated[str, Argument(help="Run by name or id.")],
    upload: Annotated[int, Option(help="Number of the upload to delete from the run.")] = 0,
    every: Annotated[bool, Option("--all", help="Delete the run with all its uploads.")] = False,
    yes: YesOption = False,
) -> None:
    """List and delete one upload of a run, or the whole run; profsvc undelete restores it.

    Example:

      profsvc delete nightly --upload 7 --yes
    """
    from profsvc import pipeline, store

    if bool(upload) == every:
        raise UsageError("give --upload N for one file of the run, or --all for the run itself")
    engine = open_engine(context)
    run_id = store.find_run(engine, run)
    uploads = {int(row["upload_id"]): row for row in store.select(engine, "v1_uploads", run_id=run_id)}
    if upload and upload not in uploads:
        raise NotFoundError(f"run {run!r} has no upload {upload}; it has {', '.join(map(str, uploads)) or 'none'}")
    chosen = [uploads[upload]] if upload else list(uploads.values())
    what = f"upload {upload} ({chosen[0]['file_name']}) of run" if upload else "run"
    confirm_removal(f"{what} {run!r} (id {run_id}) will be deleted", _listed(chosen), yes)
    if every:
        store.delete_run(engine, run_id)
        print_message(
            f"run {run!r} (id {run_id}) deleted with {counted(len(uploads), 'upload')}; {_way_back(list(uploads))}"
        )
        return
    store.delete_upload(engine, upload, partial(pipeline.analyze, engine))
    print_message(f"{what} {run!r} (id {run_id}) deleted; {_way_back([upload])}")


def _listed(uploads: Sequence[dict[str, Any]]) -> list[str]:
    from profsvc import store

    return [f"upload {row['upload_id']} ({row['file_name']}): {store.content_summary(row)}" for row in uploads]


def _way_back(uploads: list[int]) -> str:
    return f"to restore it before the next profsvc db vacuum: profsvc undelete {' '.join(map(str, uploads))}"


def undelete(
    context: Context,
    uploads: Annotated[list[int] | None, Argument(help="Numbers of deleted uploads; omit them for a list.")] = None,
    limit: LimitOption = 0,
    output: OutputOption = "table",
) -> None:
    """Restore deleted uploads, with their numbers and runs; without a number, list them.

    Examples:

      profsvc undelete

      profsvc undelete 7
    """
    from profsvc import pipeline, store

    engine = open_engine(context)
    if not uploads:
        rows = store.deleted_uploads(engine)
        print_rows(DELETED, [{name: row[name] for name in DELETED} for row in rows], output, limit=limit)
        if not rows:
            print_message("no deleted upload can be restored")
        return
    files = open_files(engine)
    for number in uploads:
        verdict = pipeline.undelete(engine, files, number)
        back = "is not deleted, nothing changed: it is" if verdict.known else "is restored"
        print_message(f"upload {number} ({verdict.file_name}) {back} in run {verdict.run!r} (id {verdict.run_id})")


def reparse(
    context: Context,
    runs: Annotated[list[str] | None, Argument(help="Runs by name or id.")] = None,
    upload: Annotated[list[int] | None, Option(help="Number of an upload; repeatable.")] = None,
    every: Annotated[bool, Option("--all", help="Every upload of the store.")] = False,
) -> None:
    """Read the kept bytes of uploads again with the current readers, and report changes.

    Each file is one transaction: if it cannot be read now, its rows stay unchanged.

    Examples:

      profsvc reparse nightly

      profsvc reparse --upload 7

      profsvc reparse --all
    """
    from profsvc import pipeline, store

    if not runs and not upload and not every:
        raise UsageError("name the runs to read again, or give --upload N, or --all")
    engine = open_engine(context)
    files = open_files(engine)
    numbers = [int(store.upload(engine, number)["upload_id"]) for number in upload or []]
    ids = store.runs(engine)["run_id"].tolist() if every else [store.find_run(engine, run) for run in runs or []]
    for run_id in ids:
        numbers += [int(row["upload_id"]) for row in store.select(engine, "v1_uploads", run_id=int(run_id))]
    failed, numbers = 0, sorted(set(numbers))
    for number in numbers:
        try:
            then, now = pipeline.reparse(engine, files, number)
        except ProfsvcError as error:
            failed += 1
            print_message(f"upload {number}: unchanged: {error}")
            continue
        print_message(f"upload {number} ({now.file_name}) of run {now.run!r} (id {now.run_id}): {_changed(then, now)}")
    if failed:
        raise ServiceError(f"{failed} of {len(numbers)} uploads could not be read again")


def _changed(then: "ImportResult", now: "ImportResult") -> str:
    """Describe what the new reading changed."""
    pairs = [(name, getattr(then, name), getattr(now, name)) for name in COMPARED]
    changed = [f"{name} {old!r} -> {new!r}" for name, old, new in pairs if old != new]
    return f"read again, {'; '.join(changed) or 'the same counts'}"


def register(app: Group) -> None:
    """Add the commands of this file."""
    app.function()(delete)
    app.function()(undelete)
    app.function()(reparse)
