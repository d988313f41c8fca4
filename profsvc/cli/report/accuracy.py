"""``report accuracy``: how well speedups were predicted."""

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
from profsvc.cli.console.declaration import Option


def accuracy(
    context: Context,
    project: Annotated[str, Option(help="Only predictions for runs of this project.")] = "",
    source: Annotated[str, Option(help="Only predictions of this source, such as profsvc or ncu.")] = "",
    acted: Annotated[
        bool, Option("--acted", help="Also score criteria that the change improved by 0.05 or more.")
    ] = False,
    best: Annotated[bool, Option("--best", help="Of several runs after one, score only the fastest.")] = False,
    unchanged: Annotated[
        bool, Option("--unchanged", help="Also score pairs without evidence that the kernel changed.")
    ] = False,
    plot: Annotated[
        Path | None, Option(help="Plot predicted against achieved to FILE.svg or FILE.png.", metavar="FILE")
    ] = None,
    output: OutputOption = "table",
) -> None:
    """Score predicted against achieved speedups, for profsvc and for the profiler's estimates.

    profsvc compare A B saves the predictions for A with what B achieved. A pair is scored if both runs do the same
    work and the kernel really changed: its instructions, traffic or launch shape. Without counters the runs must name
    two binaries (profsvc upload --tag binary=ID) or commits. The error is the median factor between predicted and
    achieved; the error of a constant guess is printed for comparison. Fewer than 8 pairs get no score.

    Examples:

      profsvc report accuracy

      profsvc report accuracy --best --plot accuracy.svg

      profsvc report accuracy --source ncu -o csv
    """
    from profsvc.reports.plots import models as model_plots
    from profsvc.reports.text.models import accuracy as accuracy_text
    from profsvc.views.models import predictions

    form = picture_format("--plot", plot)
    asked = project or None, source or None
    if service := open_service(context):
        view = service.accuracy(*asked, acted=acted, best=best, unchanged=unchanged)
    else:
        view = predictions.accuracy(open_reader(context), *asked, acted=acted, best=best, unchanged=unchanged)
    if plot is not None:
        write_picture(plot, model_plots.calibration(view, form))
    print_view(view, output, accuracy_text.accuracy, predictions.SCORES, view["scores"])
    if view["truncated"]:
        print_message(f"only the newest {view['counted']} predictions were scored")
