"""``report``: reports over many runs. Each command has its own module."""

import typer

from profsvc.cli.report import accuracy, nightly
from profsvc.cli.report import delete as delete_report

group = typer.Typer(no_args_is_help=True, help="Reports over many runs.")


def register(app: typer.Typer) -> None:
    """Add the commands of this group."""
    group.command()(nightly.nightly)
    group.command()(accuracy.accuracy)
    group.command()(delete_report.delete)
    app.add_typer(group, name="report", epilog="Example: profsvc report nightly")
