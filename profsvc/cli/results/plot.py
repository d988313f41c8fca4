"""``plot``: model results of a run, as a picture or as data."""

from pathlib import Path
from typing import Annotated

from click import Context

from profsvc.cli.console.common import (
    OutputOption,
    open_reader,
    open_service,
    picture_format,
    print_json,
    print_message,
    print_rows,
    write_picture,
)
from profsvc.cli.console.declaration import Argument, Group, Option


def plot(
    context: Context,
    run: Annotated[str, Argument(help="Run by name or id.")],
    kind: Annotated[str, Argument(help="roofline, benefit, warps, sms or hits.")],
    kernel: Annotated[str, Option(help="Launch number or (part of) a kernel's name.")] = "",
    limit: Annotated[int, Option(min=1, help="Maximum number of launches, longest first.")] = 40,
    out: Annotated[
        Path | None, Option(help="Plot to FILE.svg or FILE.png; otherwise the data is printed.", metavar="FILE")
    ] = None,
    dark: Annotated[bool, Option("--dark", help="Dark theme.")] = False,
    output: OutputOption = "table",
) -> None:
    """Plot model results for a run, or print the data.

    roofline: arithmetic rate of each launch below the roofline. benefit: time cost of memory and computation, and the
    possible gain. warps, sms: one launch over resident warps or active SMs, with speed per watt where power is known.
    hits: cache hit ratios of a memory trace.

    Examples:

      profsvc plot today roofline --out roofline.svg

      profsvc plot today benefit --kernel gemm --out benefit.png --dark

      profsvc plot today sms --kernel 3 -o json
    """
    from profsvc.reports.plots import models as drawing
    from profsvc.views.models import plots as model_plots

    form = picture_format("--out", out)
    if service := open_service(context):
        data = service.plot(run, kind, kernel or None, limit)
    else:
        data = model_plots.plot(open_reader(context), run, kind, kernel or None, limit)
    if out is not None:
        write_picture(out, drawing.draw(data, form, dark=dark))
    elif output == "json":
        print_json(data)
    else:
        print_rows(data["columns"], data["rows"], output, truncated=data["truncated"])
    if data["notes"] and (out is not None or output == "table"):
        print_message("\n".join(data["notes"]))


def register(app: Group) -> None:
    """Add the command of this file."""
    app.function()(plot)
