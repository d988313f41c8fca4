"""``antipatterns``: what keeps a launch, or the launches of a run, from their least time."""

from typing import Annotated

from click import Context

from profsvc.cli.console.common import OutputOption, open_reader, open_service, print_view
from profsvc.cli.console.declaration import Argument, Group, Option


def antipatterns(
    context: Context,
    run: Annotated[str, Argument(help="Run by name or id.")],
    kernel: Annotated[
        str, Option(help="Launch number or (part of) a kernel's name; default: means over the run.")
    ] = "",
    output: OutputOption = "table",
) -> None:
    """Show the 13 anti-parallel patterns of a launch or of a run, each with its measured ratio.

    Lost is the share of its own resource that a pattern loses: lanes, transactions, warp slots and so on. Time saved
    is the share of the time that the causes behind the pattern cost. What cannot be measured is listed with the
    missing counter or page.

    Examples:

      profsvc antipatterns today

      profsvc antipatterns today --kernel reduce -o json
    """
    from profsvc.reports.text.models import antipatterns as antipatterns_text
    from profsvc.views.models import antipatterns as antipatterns_view

    if service := open_service(context):
        view = service.antipatterns(run, kernel or None)
    else:
        view = antipatterns_view.antipatterns(open_reader(context), run, kernel or None)
    print_view(view, output, antipatterns_text.page, antipatterns_view.COLUMNS, view["rows"])


def register(app: Group) -> None:
    """Add the command of this file."""
    app.function()(antipatterns)
