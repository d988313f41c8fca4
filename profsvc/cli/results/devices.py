"""``devices``: those of the store, those built in, and what was measured of one."""

from pathlib import Path
from typing import Annotated

from click import Context

from profsvc.cli.console.common import (
    LimitOption,
    OutputOption,
    open_reader,
    open_service,
    picture_format,
    print_message,
    print_rows,
    write_picture,
)
from profsvc.cli.console.declaration import Argument, Group, Option
from profsvc.errors import UsageError


def devices(
    context: Context,
    name: Annotated[
        str, Argument(help="Device to show the characterization of; default: list devices.", metavar="[NAME]")
    ] = "",
    catalogue: Annotated[bool, Option("--catalogue", help="List the devices whose data sheets are built in.")] = False,
    out: Annotated[Path | None, Option(help="Plot its curves to FILE.svg or FILE.png.", metavar="FILE")] = None,
    dark: Annotated[bool, Option("--dark", help="Dark theme.")] = False,
    limit: LimitOption = 0,
    output: OutputOption = "table",
) -> None:
    """List the devices of the store, or those built in, or what was measured of one.

    The value of a curve is the share of peak at which it saturates. The spread is the half-width of the 95 % interval
    of the median over the median; of a curve the widest of its points. Of a device that is not characterized the data
    sheet is shown if it is built in, each figure with its source.

    Examples:

      profsvc devices

      profsvc devices --catalogue -o csv

      profsvc devices "NVIDIA H200" --out curves.svg
    """
    from profsvc import views

    form = picture_format("--out", out)
    if name and not catalogue:
        _characterization(context, name, out, form, dark, limit, output)
    elif out is not None:
        raise UsageError("--out plots the curves of one device: give its name")
    elif catalogue:
        rows = views.catalogue()
        print_rows(list(rows[0]), rows, output, limit=limit)
    else:
        service = open_service(context)
        rows = service.rows("devices") if service else views.devices(open_reader(context))
        print_rows(["device_id", "name", "compute_capability", "sms"], rows, output, limit=limit)


def _characterization(
    context: Context, name: str, out: Path | None, form: str, dark: bool, limit: int, output: str
) -> None:
    """Print what was measured of a device, else its data sheet; plot its curves where a file is given."""
    from profsvc.reports.plots import characterization as characterization_plots
    from profsvc.views import device as device_view

    service = open_service(context)
    rows = service.rows("characterizations") if service else device_view.all_measured(open_reader(context))
    known = [] if out or device_view.characterizations_of(rows, name) else device_view.figures_of(name)
    if known:
        figures = [{key: one[key] for key in device_view.FIGURE} for one in known]
        print_rows(list(device_view.FIGURE), figures, output, limit=limit)
        print_message(f"{name} {device_view.NOT_CHARACTERIZED}")
        return
    found = device_view.summary(rows, name)
    if out is not None:
        curves = device_view.characterization(device_view.characterizations_of(rows, name))["curves"]
        write_picture(out, characterization_plots.draw_all(curves, form, dark=dark))
    print_rows(list(device_view.SUMMARY), found, output, limit=limit)


def register(app: Group) -> None:
    """Add the command."""
    app.function()(devices)
