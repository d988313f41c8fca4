"""``whatif``: a launch with other SMs, grids, warps, clock or bandwidth, or on another device."""

from typing import Annotated

from click import Context

from profsvc.cli.console.common import OutputOption, open_reader, open_service, print_view
from profsvc.cli.console.declaration import Argument, Group, Option

Values = list[str] | None


def whatif(
    context: Context,
    run: Annotated[str, Argument(help="Run by name or id.")],
    kernel: Annotated[
        str, Option(help="Launch number or (part of) a kernel's name; default: the longest launch.")
    ] = "",
    sms: Annotated[Values, Option(help="Active SMs, such as 33,66 or x0.5.", metavar="A,B,..")] = None,
    blocks: Annotated[Values, Option(help="Blocks of the grid, with the same total work.", metavar="A,B,..")] = None,
    block_size: Annotated[Values, Option(help="Threads per block, with the same total work.", metavar="A,B,..")] = None,
    registers: Annotated[Values, Option(help="Registers per thread, such as 32 or +1.", metavar="A,B,..")] = None,
    shared: Annotated[
        Values, Option(help="Shared memory per block in bytes, such as 8192, 8KiB or +1.", metavar="A,B,..")
    ] = None,
    warps: Annotated[Values, Option(help="Resident warps per SM, such as 16,32.", metavar="A,B,..")] = None,
    frequency: Annotated[Values, Option(help="SM clock, such as 1200MHz or x0.8.", metavar="A,B,..")] = None,
    bandwidth: Annotated[
        Values, Option(help="DRAM bandwidth, such as 2000 (GB/s), 2TB/s or x1.5.", metavar="A,B,..")
    ] = None,
    device: Annotated[str | None, Option(help="On this device, from: profsvc devices --catalogue.")] = None,
    output: OutputOption = "table",
) -> None:
    """Predict a launch with other SMs, grids, registers, warps, clocks or bandwidth, or on another device.

    The expected time is computed from the measured warp latency and unit load. Two published models are printed for
    comparison: memory and computation warps, and the throughput model. Several values of several options are combined;
    without options, one parameter at a time is changed.

    Examples:

      profsvc whatif today --kernel saxpy

      profsvc whatif today --kernel 3 --sms 33,66,132 --bandwidth x0.5,x2

      profsvc whatif today --kernel saxpy --warps 8,16,32 --block-size 128

      profsvc whatif today --kernel gemm --registers +1,64 --shared x2

      profsvc whatif today --device A100-SXM-80GB --frequency 1.1GHz -o json
    """
    from profsvc.reports.text.models import what_if as what_if_text
    from profsvc.views.models import what_if

    given = {"sms": sms, "blocks": blocks, "block_threads": block_size, "registers": registers,
             "shared_bytes": shared, "warps": warps, "frequency_hz": frequency,
             "bandwidth_bytes_per_s": bandwidth}  # fmt: skip
    axes = {name: [part for text in texts or [] for part in text.split(",")] for name, texts in given.items()}
    if service := open_service(context):
        view = service.what_if(run, kernel or None, {what_if.OPTIONS[name]: axes[name] for name in axes}, device)
    else:
        view = what_if.what_if(open_reader(context), run, kernel or None, axes, device)
    print_view(view, output, what_if_text.what_if, what_if.COLUMNS, view["rows"])


def register(app: Group) -> None:
    """Add the command of this file."""
    app.function()(whatif)
