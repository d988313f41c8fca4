"""``components``: power consumption of each unit of a device."""

from functools import partial
from typing import Annotated

from click import Context

from profsvc.cli.console.common import OutputOption, open_reader, open_service, print_view
from profsvc.cli.console.declaration import Group, Option


def components(
    context: Context,
    device: Annotated[str | None, Option(help="Device by name; required if power was measured on several.")] = None,
    kernels: Annotated[bool, Option("--kernels", help="One row per kernel: measured and predicted power.")] = False,
    output: OutputOption = "table",
) -> None:
    """Fit the power consumption of each unit of a device to all kernels with power and counters.

    Each kernel is left out in turn and predicted from the others. The error of guessing the mean power is printed for
    comparison.

    Examples:

      profsvc components

      profsvc components --device h200 --kernels -o csv
    """
    from profsvc.reports.text.power.components import components as in_words
    from profsvc.views.power import components as power_components

    if service := open_service(context):
        view = service.components(device)
    else:
        view = power_components.components(open_reader(context), device)
    columns = power_components.KERNELS if kernels else power_components.UNITS
    page = partial(in_words, with_kernels=kernels)
    print_view(view, output, page, columns, view["kernels" if kernels else "units"])


def register(app: Group) -> None:
    """Add the command of this file."""
    app.function()(components)
