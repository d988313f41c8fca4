"""``whatif``: a launch with other SMs, grids, warps, clock or bandwidth, or on another device."""

from typing import Annotated

import typer

from profsvc.cli.common import Output, engine_of, put, put_json, service_of, width

Values = list[str] | None


def whatif(
    context: typer.Context,
    run: Annotated[str, typer.Argument(help="Run by name or id.")],
    kernel: Annotated[str, typer.Option(help="Launch number or (part of) a kernel's name; else the longest.")] = "",
    sms: Annotated[Values, typer.Option(help="SMs at work, such as 33,66 or x0.5.", metavar="A,B,..")] = None,
    blocks: Annotated[Values, typer.Option(help="Blocks of the grid; the work is held.", metavar="A,B,..")] = None,
    block_size: Annotated[Values, typer.Option(help="Threads of a block; the work is held.", metavar="A,B,..")] = None,
    warps: Annotated[Values, typer.Option(help="Warps resident on an SM, such as 16,32.", metavar="A,B,..")] = None,
    frequency: Annotated[Values, typer.Option(help="Clock of the SMs: 1200MHz, x0.8.", metavar="A,B,..")] = None,
    bandwidth: Annotated[Values, typer.Option(help="Of DRAM: 2000 (GB/s), 2TB/s, x1.5.", metavar="A,B,..")] = None,
    device: Annotated[str | None, typer.Option(help="On this device (profsvc devices --catalogue).")] = None,
    output: Output = "table",
) -> None:
    """Say what a launch would take on other SMs, with other grids, warps, clocks or bandwidths, or on another device.

    The expected time follows from the latency of the warps and the load of the units as they were measured. Two
    published models answer beside it, the one of memory and computation warps and the throughput model: the change of
    the time, what limits it then, and what they suggest. Several values of several options are combined; without any,
    one thing at a time is changed.

    Examples:

      profsvc whatif today --kernel saxpy

      profsvc whatif today --kernel 3 --sms 33,66,132 --bandwidth x0.5,x2

      profsvc whatif today --kernel saxpy --warps 8,16,32 --block-size 128

      profsvc whatif today --device A100-SXM-80GB --frequency 1.1GHz -o json
    """
    from profsvc.reports import what_if_text
    from profsvc.views import what_if

    given = {"sms": sms, "blocks": blocks, "block_threads": block_size, "warps": warps, "frequency_hz": frequency,
             "bandwidth_bytes_per_s": bandwidth}  # fmt: skip
    axes = {name: [part for text in texts or [] for part in text.split(",")] for name, texts in given.items()}
    if service := service_of(context):
        view = service.what_if(run, kernel or None, {what_if.OPTIONS[name]: axes[name] for name in axes}, device)
    else:
        view = what_if.what_if(engine_of(context), run, kernel or None, axes, device)
    if output == "json":
        put_json(view)
    elif output == "table":
        typer.echo(what_if_text.what_if(view, width()), nl=False)
    else:
        put(what_if.COLUMNS, view["rows"], output)


def register(app: typer.Typer) -> None:
    """Add the command of this file."""
    app.command()(whatif)
