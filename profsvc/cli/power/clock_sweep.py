"""``energy sweep``: the best clock for energy from runs at several clocks."""

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


def sweep(
    context: Context,
    runs: Annotated[list[str], Argument(help="Runs by name or id, with power logs at several clocks.")],
    load: Annotated[str | None, Option(help="Only windows of this load, as the marks name it.", metavar="NAME")] = None,
    sensor: Annotated[str | None, Option(help="Only this power sensor, by name.", metavar="NAME")] = None,
    exponent: Annotated[float, Option(help="Power of the clock in the dynamic power.", metavar="NUMBER")] = 3.0,
    plot: Annotated[Path | None, Option(help="Plot to FILE.svg or FILE.png.", metavar="FILE")] = None,
    output: OutputOption = "table",
) -> None:
    """Find the clock of least energy from the power windows of runs, as energy frequency does from a table.

    Each window of a load gives a point: its mean SM clock, its time per launch where the marks count launches, and its
    power at one temperature where it is known. The clock may change between runs or between windows of one run.

    Examples:

      profsvc energy sweep clock_900 clock_1200 clock_1500 clock_1980

      profsvc energy sweep clocks --load gemm --plot clocks.svg
    """
    from profsvc.reports.plots import lines
    from profsvc.reports.text.models.index import answer
    from profsvc.views.power.clock_sweep import clock_sweep

    form = picture_format("--plot", plot)
    view = clock_sweep(_windows(context, runs), load, sensor, {"exponent": f"{exponent:g}"})
    if plot is not None:
        write_picture(plot, lines.draw(view["figure"], form))
    print_view(view, output, answer, view["columns"], view["rows"])


def _windows(context: Context, runs: list[str]) -> list[dict[str, Any]]:
    """Return the power windows of runs."""
    if service := open_service(context):
        return [row for run in runs for row in service.power(run)["windows"]]
    from profsvc.views.power.run_power import power

    engine = open_reader(context)
    return [row for run in runs for row in power(engine, run)["windows"]]


def register(group: Group) -> None:
    """Add the command to the group ``energy``, which the calculators of energy make."""
    group.function()(sweep)
