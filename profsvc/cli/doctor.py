"""``doctor``: what is wrong with the store and its machine, and what to do."""

from contextlib import suppress
from typing import TYPE_CHECKING, Annotated

import typer

from profsvc.cli.common import Output, engine_of, files_of, put, say
from profsvc.errors import ProfsvcError, ServiceError

if TYPE_CHECKING:
    from sqlalchemy import Engine


def doctor(
    context: typer.Context,
    deep: Annotated[bool, typer.Option(help="Read the whole database and all kept bytes.")] = False,
    output: Output = "table",
) -> None:
    """Check the store: versions, disk, schema, damage, work left unfinished; each with what to do.

    Analyses that were cut short, by a kill or a backup in between, are finished; nothing else is changed.

    Exit code 5 if a check fails.

    Example:

      profsvc doctor
    """
    from profsvc import analysis, store

    engine = engine_of(context, as_it_is=True)
    _finish(engine)
    checks = store.examine(engine, lambda: files_of(engine), deep, analysis.VERSION)
    put(store.Check._fields, [check._asdict() for check in checks], output)
    if failed := [check.check for check in checks if check.state == "fail"]:
        raise ServiceError(f"{len(failed)} of {len(checks)} checks failed: {', '.join(failed)}")


def _finish(engine: "Engine") -> None:
    """Finish what was cut short; a store where that cannot be done is told of by the checks."""
    from profsvc import pipeline, store

    with suppress(ProfsvcError):
        if not store.is_current(engine):
            return
        for run_id, parts in pipeline.finish(engine, files_of(engine)).items():
            say(f"run {run_id}: the analysis had been cut short; {' and '.join(parts)} done now")


def register(app: typer.Typer) -> None:
    """Add the command of this file."""
    app.command()(doctor)
