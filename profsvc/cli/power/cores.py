"""``cores``: what runs with known active cores show of each core, of pairs, and of sets."""

from pathlib import Path
from typing import Annotated, Any

from click import Context

from profsvc.cli.console.common import (
    OutputOption,
    open_reader,
    open_service,
    picture_format,
    print_view,
    write_picture,
)
from profsvc.cli.console.declaration import Argument, Group, Option


def cores(
    context: Context,
    runs: Annotated[list[str], Argument(help="Runs by name or id.")],
    idle: Annotated[str | None, Option(help="Idle run with the thermocouples on the die.")] = None,
    calibration: Annotated[str | None, Option(help="Calibration run between plates of one temperature.")] = None,
    tpcs: Annotated[int, Option(help="Clusters of the device; SM k is in cluster k mod this.")] = 7,
    active: Annotated[int | None, Option(help="Find so many cores with the coolest hot spot.")] = None,
    rc_s: Annotated[
        float | None, Option("--rc-s", help="Time constant of the chip in s, for logs that begin with the load.")
    ] = None,
    plot: Annotated[Path | None, Option(help="Plot to FILE.svg or FILE.png.", metavar="FILE")] = None,
    output: OutputOption = "table",
) -> None:
    """Compare runs with known active SMs: the map of each alone, SMs of one cluster, and power against temperature.

    The active cores of a run are its tag, such as --tag cores=0-7-1-8 of upload. A load of a power log may be marked
    'cores 0-7-1-8' instead.

    Examples:

      profsvc cores core0 core1 core7 core8 --idle idle --active 2 --plot cores.svg

      profsvc cores four_cores
    """
    from profsvc.reports.text.power import cores as cores_text
    from profsvc.views.power import cores as cores_view

    form = picture_format("--plot", plot)
    cores_view.check(runs, tpcs, active)
    asked: dict[str, Any] = {"idle": idle, "calibration": calibration, "tpcs": tpcs, "active": active, "rc_s": rc_s}
    if service := open_service(context):
        view = service.cores(runs, **asked)
    else:
        view = cores_view.cores(open_reader(context), runs, **asked)
    if plot is not None:
        write_picture(plot, cores_view.drawn(view, form))
    print_view(view, output, cores_text.page, cores_view.COLUMNS, view["rows"])


def register(app: Group) -> None:
    """Add the command of this file."""
    app.function()(cores)
