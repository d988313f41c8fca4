"""``plot``: what the models say of a run, as a picture or as its data."""

from pathlib import Path
from typing import Annotated

import typer

from profsvc.cli.common import Output, draw_to, engine_of, picture_form, put, put_json, say, service_of


def plot(
    context: typer.Context,
    run: Annotated[str, typer.Argument(help="Run by name or id.")],
    kind: Annotated[str, typer.Argument(help="roofline, benefit, warps, sms or hits.")],
    kernel: Annotated[str, typer.Option(help="Launch number or (part of) a kernel's name.")] = "",
    limit: Annotated[int, typer.Option(min=1, help="Show so many launches at most, the longest.")] = 40,
    out: Annotated[
        Path | None, typer.Option(help="Draw it: FILE.svg or FILE.png; else the data is printed.", metavar="FILE")
    ] = None,
    dark: Annotated[bool, typer.Option("--dark", help="Light on dark.")] = False,
    output: Output = "table",
) -> None:
    """Draw what the models say of the launches of a run, or print the data of the picture.

    roofline: the rate of each launch below the ceilings of memory and arithmetic. benefit: what memory and computation
    cost each launch, and what it would gain. warps, sms: one launch against the warps on an SM and the SMs at work,
    with the speed per watt where the power is known. hits: hit ratios of the caches, of a memory trace.

    Examples:

      profsvc plot today roofline --out roofline.svg

      profsvc plot today benefit --kernel gemm --out benefit.png --dark

      profsvc plot today sms --kernel 3 -o json
    """
    from profsvc.reports import model_plots as drawing
    from profsvc.views import model_plots

    form = picture_form("--out", out)
    if service := service_of(context):
        data = service.plot(run, kind, kernel or None, limit)
    else:
        data = model_plots.plot(engine_of(context), run, kind, kernel or None, limit)
    if out is not None:
        draw_to(out, drawing.draw(data, form, dark=dark))
    elif output == "json":
        put_json(data)
    else:
        put(data["columns"], data["rows"], output, truncated=data["truncated"])
    if data["notes"] and (out is not None or output == "table"):
        say("\n".join(data["notes"]))


def register(app: typer.Typer) -> None:
    """Add the command of this file."""
    app.command()(plot)
