"""``delete``: files and runs out of the store."""

from typing import Annotated

import typer

from profsvc.cli.common import engine_of, say
from profsvc.errors import NotFoundError, UsageError


def delete(
    context: typer.Context,
    run: Annotated[str, typer.Argument(help="Run by name or id.")],
    upload: Annotated[int, typer.Option(help="Number of the upload to delete from the run.")] = 0,
    every: Annotated[bool, typer.Option("--all", help="Delete the run with all its uploads.")] = False,
) -> None:
    """Delete an upload of a run, or the whole run; what is deleted is gone.

    Example:

      profsvc delete nightly --upload 7
    """
    from profsvc import pipeline, store

    if bool(upload) == every:
        raise UsageError("give --upload N for one file of the run, or --all for the run itself")
    engine = engine_of(context)
    run_id = store.find_run(engine, run)
    uploads = {int(row["upload_id"]): row["file_name"] for row in store.select(engine, "v1_uploads", run_id=run_id)}
    if every:
        store.delete_run(engine, run_id)
        say(f"run {run!r} (id {run_id}) deleted with {len(uploads)} uploads")
        return
    if upload not in uploads:
        raise NotFoundError(f"run {run!r} has no upload {upload}; it has {', '.join(map(str, uploads)) or 'none'}")
    store.delete_upload(engine, upload)
    pipeline.analyze(engine, run_id)
    say(f"upload {upload} ({uploads[upload]}) of run {run!r} (id {run_id}) deleted")


def register(app: typer.Typer) -> None:
    """Add the command of this file."""
    app.command()(delete)
