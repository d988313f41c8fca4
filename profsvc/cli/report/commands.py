"""``report``: reports over many runs. Each command has its own module."""

from profsvc.cli.console.declaration import Group
from profsvc.cli.report import accuracy, nightly
from profsvc.cli.report import delete as delete_report

group = Group(help="Reports over many runs.")


def register(app: Group) -> None:
    """Add the commands of this group."""
    group.function()(nightly.nightly)
    group.function()(accuracy.accuracy)
    group.function()(delete_report.delete)
    app.add_group(group, "report", epilog="Example: profsvc report nightly")
