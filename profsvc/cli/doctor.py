"""``doctor``: what is wrong with the store and its machine, and what to do."""

from typing import Annotated

import typer

from profsvc.cli.common import Output, engine_of, files_of, put
from profsvc.errors import ServiceError


def doctor(
    context: typer.Context,
    deep: Annotated[bool, typer.Option(help="Read the whole database and all kept bytes.")] = False,
    output: Output = "table",
) -> None:
    """Check the store: versions, disk, schema, damage, work left unfinished; each with what to do. Nothing is changed.

    Exit code 5 if a check fails.

    Example:

      profsvc doctor
    """
    from profsvc import analysis, store

    engine = engine_of(context, as_it_is=True)
    checks = store.examine(engine, lambda: files_of(engine), deep, analysis.VERSION)
    put(store.Check._fields, [check._asdict() for check in checks], output)
    if failed := [check.check for check in checks if check.state == "fail"]:
        raise ServiceError(f"{len(failed)} of {len(checks)} checks failed: {', '.join(failed)}")


def register(app: typer.Typer) -> None:
    """Add the command of this file."""
    app.command()(doctor)
