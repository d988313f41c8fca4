"""``versions``: speedups along a series of versions of a program or kernel."""

from typing import Annotated

from click import Context

from profsvc.cli.console.common import OutputOption, open_reader, open_service, print_view
from profsvc.cli.console.declaration import Argument, Group, Option


def versions(
    context: Context,
    runs: Annotated[
        list[str], Argument(help="Runs in order, by name or id; of one run its launches.", metavar="RUN..")
    ],
    kernel: Annotated[str, Option(help="Kernels with this name, or with this part of it.")] = "",
    output: OutputOption = "table",
) -> None:
    """Show the speedup of each version over the one before and over the first, and what is left.

    Versions are runs in the order given, or the launches of one run. The potential of the first version divided by
    what was reached is what its prediction leaves. Between runs, the kernel that gained most is named.

    Examples:

      profsvc versions today --kernel reduce

      profsvc versions before after-tiling after-unrolling
    """
    from profsvc.reports.text.models import versions as versions_text
    from profsvc.views.models import versions as versions_view

    if service := open_service(context):
        view = service.versions(runs, kernel or None)
    else:
        view = versions_view.versions(open_reader(context), runs, kernel or None)
    print_view(view, output, versions_text.page, versions_view.COLUMNS, view["rows"])


def register(app: Group) -> None:
    """Add the command of this file."""
    app.function()(versions)
