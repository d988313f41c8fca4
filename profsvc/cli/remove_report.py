"""``report delete``: a nightly report out of the store."""

from typing import Annotated

import typer

from profsvc.cli.common import Sure, agreed, engine_of, say
from profsvc.errors import counted


def delete(
    context: typer.Context,
    report: Annotated[int, typer.Argument(help="Number of the report: profsvc report nightly --list.")],
    yes: Sure = False,
) -> None:
    """Remove a nightly report with what it found, after listing it; the next report looks at its runs again.

    Such as one that was made while the clock stood in the future. It cannot be had back, but the same night can be
    reported again while no later one is.

    Example:

      profsvc report delete 7 --yes
    """
    from profsvc import store

    engine = engine_of(context)
    held = store.held_by_report(engine, report)
    listed = [
        f"{counted(held['findings'], 'finding')}, {held['said']} of them with a word of somebody",
        f"{held['moves']} states that it gave older findings",
        f"what became of {counted(held['deliveries'], 'sending')}",
    ]
    agreed(f"report {report} of {held['project'] or 'all'}, night of {held['night']}, goes with", listed, yes)
    store.delete_report(engine, report)
    say(f"report {report} deleted")
