"""``report accuracy``: how well speedups were foretold."""

from pathlib import Path
from typing import Annotated

import typer

from profsvc.cli.common import Output, draw_to, engine_of, picture_form, put, put_json, say, service_of, width


def accuracy(
    context: typer.Context,
    project: Annotated[str, typer.Option(help="Only predictions for runs of this project.")] = "",
    source: Annotated[str, typer.Option(help="Only those of this source, such as profsvc or ncu.")] = "",
    acted: Annotated[
        bool, typer.Option("--acted", help="Score criteria too that the change improved by 0.05 or more.")
    ] = False,
    best: Annotated[
        bool, typer.Option("--best", help="Of several runs after one, only the one that achieved most.")
    ] = False,
    unchanged: Annotated[
        bool, typer.Option("--unchanged", help="Count pairs too of which nothing says that the kernel changed.")
    ] = False,
    plot: Annotated[
        Path | None, typer.Option(help="Draw predicted against achieved: FILE.svg or FILE.png.", metavar="FILE")
    ] = None,
    output: Output = "table",
) -> None:
    """Score what was foretold against what later runs achieved: ours and the profiler's own estimates, side by side.

    profsvc compare A B records the predictions of A with what B achieved. They count where both do the same work and
    the kernel changed: it executes or moves something else, or is launched otherwise; where no counter tells, if the
    runs name two binaries (profsvc upload --tag binary=ID) or commits. An error is the factor between predicted and
    achieved, in the middle of all; beside it the error of always saying the median of what is achieved. Fewer than 8
    pairs get no score.

    Examples:

      profsvc report accuracy

      profsvc report accuracy --best --plot accuracy.svg

      profsvc report accuracy --source ncu -o csv
    """
    from profsvc.reports import accuracy_text, model_plots
    from profsvc.views import predictions

    form = picture_form("--plot", plot)
    asked = project or None, source or None
    if service := service_of(context):
        view = service.accuracy(*asked, acted=acted, best=best, unchanged=unchanged)
    else:
        view = predictions.accuracy(engine_of(context), *asked, acted=acted, best=best, unchanged=unchanged)
    if plot is not None:
        draw_to(plot, model_plots.calibration(view, form))
    if output == "json":
        put_json(view)
    elif output == "table":
        typer.echo(accuracy_text.accuracy(view, width()), nl=False)
    else:
        put(predictions.SCORES, view["scores"], output)
    if view["truncated"]:
        say(f"only the newest {view['counted']} predictions were scored")
