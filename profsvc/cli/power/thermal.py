"""``thermal``: the temperature of a board under planned loads."""

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
from profsvc.errors import UsageError

Values = list[str] | None


def thermal(
    context: Context,
    run: Annotated[str, Argument(help="Run by name or id.")],
    load: Annotated[Values, Option(help="Board power of each load in W, as a log shows it.", metavar="W,W,..")] = None,
    duration: Annotated[Values, Option("--for", help="Duration of each load in s.", metavar="S,S,..")] = None,
    start: Annotated[
        float | None, Option(help="Temperature at the start in degrees C; default: the idle board.")
    ] = None,
    limit: Annotated[float | None, Option(help="Temperature whose time is wanted, in degrees C.")] = None,
    plot: Annotated[Path | None, Option(help="Plot to FILE.svg or FILE.png.", metavar="FILE")] = None,
    output: OutputOption = "table",
) -> None:
    """Predict the temperature of a board under planned loads, from the power and temperature logs of a run.

    Peak temperature, time to a limit, and power and energy that the warmth adds, with intervals of 95 %. They come
    from the errors on the loads of the run, each left out of the fit. Without --load the plan is the heaviest load of
    the run.

    Examples:

      profsvc thermal board

      profsvc thermal board --load 600 --for 120 --limit 85

      profsvc thermal board --load 500,80,500 --for 60,30,60 --plot plan.svg
    """
    from profsvc.reports.text.power import thermal as thermal_text
    from profsvc.views.power import thermal as thermal_view

    form = picture_format("--plot", plot)
    loads, durations = _numbers("--load", load), _numbers("--for", duration)
    thermal_view.check_plan(loads, durations, start, limit)
    asked: dict[str, Any] = {"load": loads, "duration": durations, "start": start, "limit": limit}
    if service := open_service(context):
        from profsvc.client.protocol import decode_pictures

        view = service.thermal(run, **asked, draw=form or None)
        drawn = dict(decode_pictures(view)).get("thermal", b"") if form else b""
    else:
        view = thermal_view.thermal(open_reader(context), run, **asked)
        drawn = thermal_view.drawn(view, form) if form else b""
    if plot is not None:
        write_picture(plot, drawn)
    print_view(view, output, thermal_text.thermal, thermal_view.COLUMNS, view["answers"])


def _numbers(option: str, texts: Values) -> list[float]:
    parts = [part.strip() for text in texts or [] for part in text.split(",")]
    try:
        return [float(part) for part in parts]
    except ValueError:
        raise UsageError(f"{option} {','.join(parts)!r} must be numbers, such as {option} 500,80") from None


def register(app: Group) -> None:
    """Add the command of this file."""
    app.function()(thermal)
