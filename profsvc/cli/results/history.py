"""``history``: one kernel over runs."""

from pathlib import Path
from typing import Annotated

from click import Context

from profsvc.cli.console.common import (
    OutputOption,
    open_reader,
    open_service,
    picture_format,
    print_message,
    print_view,
    write_picture,
)
from profsvc.cli.console.declaration import Argument, Group, Option


def history(
    context: Context,
    kernel: Annotated[str, Argument(help="Kernel by name, short name or number; for power, also a load.")],
    project: Annotated[str | None, Option(help="Only runs of this project.")] = None,
    device: Annotated[str | None, Option(help="Only runs on this device.")] = None,
    quantity: Annotated[
        str,
        Option(help="duration, potential, a criterion, power, energy, energy_per_launch, clock, raw_power, ..."),
    ] = "duration",
    points: Annotated[int, Option(help="Number of most recent runs.")] = 500,
    before: Annotated[
        int | None, Option(help="Show runs older than this run id, as the note below newer ones says.")
    ] = None,
    plot: Annotated[Path | None, Option(help="Plot it to FILE.svg or FILE.png.", metavar="FILE")] = None,
    output: OutputOption = "table",
) -> None:
    """Show one kernel over runs: one value per run, and detected changes.

    Power and energy are corrected to the temperature of the newest run; raw_power and raw_energy are as measured.

    Examples:

      profsvc history saxpy

      profsvc history saxpy --quantity shared_efficiency --project nightly -o csv

      profsvc history saxpy --quantity power --plot saxpy.svg
    """
    from profsvc.reports.text import history as history_text
    from profsvc.store.queries.kernels.history import HistoryFilter
    from profsvc.views import history as history_view

    form = picture_format("--plot", plot)
    if service := open_service(context):
        view = service.history(kernel, quantity, project=project, device=device, points=points, before=before)
    else:
        view = history_view.history(
            open_reader(context),
            kernel,
            quantity,
            HistoryFilter(project, device, points, before, history_view.PATIENT_SECONDS),
        )
    if plot is not None:
        from profsvc.reports.plots import history as history_plot

        write_picture(plot, history_plot.draw(view, form))
    print_view(view, output, history_text.page, history_view.POINTS, view["points"])
    if output not in {"json", "table"}:
        for words in view["notes"]:
            print_message(f"note: {words}")


def register(app: Group) -> None:
    """Add the command of this file."""
    app.function()(history)
