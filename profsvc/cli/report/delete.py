"""``report delete``: remove a nightly report."""

from typing import Annotated

from click import Context

from profsvc.cli.console.common import YesOption, confirm_removal, open_engine, print_message
from profsvc.cli.console.declaration import Argument
from profsvc.errors import counted


def delete(
    context: Context,
    report: Annotated[int, Argument(help="Number of the report: profsvc report nightly --list.")],
    yes: YesOption = False,
) -> None:
    """List and remove a nightly report with its findings; the next report checks its runs again.

    For example a report made while the clock was wrong. It cannot be restored, but the same night can be reported
    again as long as there is no later report.

    Example:

      profsvc report delete 7 --yes
    """
    from profsvc import store

    engine = open_engine(context)
    held = store.report_contents(engine, report)
    listed = [
        f"{counted(held['findings'], 'finding')}, {held['said']} of them with a comment",
        f"{held['moves']} states of older findings",
        f"{counted(held['deliveries'], 'delivery record')}",
    ]
    confirm_removal(
        f"report {report} of {held['project'] or 'all'}, night of {held['night']}, will be removed with", listed, yes
    )
    store.delete_report(engine, report)
    print_message(f"report {report} deleted")
