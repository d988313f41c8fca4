"""``report``: what many runs say together. Each command has a file of its own."""

import typer

from profsvc.cli import accuracy, nightly, remove_report

group = typer.Typer(no_args_is_help=True, help="Reports over many runs.")


def register(app: typer.Typer) -> None:
    """Add the commands of this group."""
    group.command()(nightly.nightly)
    group.command()(accuracy.accuracy)
    group.command()(remove_report.delete)
    app.add_typer(group, name="report", epilog="Example: profsvc report nightly")
