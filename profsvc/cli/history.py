"""``history``: one kernel over runs."""

from pathlib import Path
from typing import Annotated, Any

import typer

from profsvc.cli.common import Output, engine_of, put, put_json, say, service_of, width
from profsvc.errors import UsageError

FORMS = ("svg", "png")


def history(
    context: typer.Context,
    kernel: Annotated[str, typer.Argument(help="Kernel by name, short name or number; of power, also a load.")],
    project: Annotated[str | None, typer.Option(help="Only runs of this project.")] = None,
    device: Annotated[str | None, typer.Option(help="Only runs on this device.")] = None,
    quantity: Annotated[
        str, typer.Option(help="duration, potential, a criterion, power, energy, temperature, clock, raw_power, ...")
    ] = "duration",
    points: Annotated[int, typer.Option(help="So many of the newest runs.")] = 500,
    before: Annotated[
        int | None, typer.Option(help="Where older runs begin, as a note of the newer ones says.")
    ] = None,
    plot: Annotated[Path | None, typer.Option(help="Draw it: FILE.svg or FILE.png.", metavar="FILE")] = None,
    output: Output = "table",
) -> None:
    """Show one kernel over the runs that have it: a value a run, and the steps in its level.

    Power and energy are at one temperature, that of the newest run; raw_power and raw_energy are as measured.

    Examples:

      profsvc history saxpy

      profsvc history saxpy --quantity shared_efficiency --project nightly -o csv

      profsvc history saxpy --quantity power --plot saxpy.svg
    """
    from profsvc.reports import history_plot, history_text
    from profsvc.store.history import Asked
    from profsvc.views import history as of_kernel

    form = _form(plot)
    if service := service_of(context):
        view = service.history(kernel, quantity, project=project, device=device, points=points, before=before)
    else:
        view = of_kernel.history(
            engine_of(context), kernel, quantity, Asked(project, device, points, before, of_kernel.PATIENT_SECONDS)
        )
    if plot is not None:
        _write(plot, history_plot.draw(view, form))
    if output == "json":
        put_json(view)
    elif output == "table":
        typer.echo(history_text.page(view, width()), nl=False)
    else:
        put(of_kernel.POINTS, view["points"], output)
        for words in view["notes"]:
            say(f"note: {words}")


def _form(plot: Path | None) -> str:
    form = "svg" if plot is None else plot.suffix.lower().removeprefix(".")
    if form not in FORMS:
        raise UsageError(f"--plot {str(plot)!r} does not say how to draw: end it with .{' or .'.join(FORMS)}")
    return form


def _write(plot: Path, drawn: bytes) -> None:
    from profsvc.reports.whole import new_file

    stream: Any
    with new_file(plot) as stream:
        stream.write(drawn)
    say(f"written: {plot}")


def register(app: typer.Typer) -> None:
    """Add the command of this file."""
    app.command()(history)
