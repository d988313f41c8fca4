"""``components``: what each unit of a device draws."""

from typing import Annotated

import typer

from profsvc.cli.common import Output, engine_of, put, put_json, service_of, width


def components(
    context: typer.Context,
    device: Annotated[str | None, typer.Option(help="Device by name; needed if power was measured on several.")] = None,
    kernels: Annotated[
        bool, typer.Option("--kernels", help="A row a kernel: its power, and what was foretold.")
    ] = False,
    output: Output = "table",
) -> None:
    """Fit what each unit of a device draws, to all kernels of the store with a power and counters.

    Each kernel is left out in turn and foretold from the others; beside that error stands the one of guessing their
    mean power, which a model has to beat before it may claim anything.

    Examples:

      profsvc components

      profsvc components --device h200 --kernels -o csv
    """
    from profsvc.reports.component_text import components as in_words
    from profsvc.views import power_components

    if service := service_of(context):
        view = service.components(device)
    else:
        view = power_components.components(engine_of(context), device)
    if output == "json":
        put_json(view)
    elif output == "table":
        typer.echo(in_words(view, kernels, width()), nl=False)
    elif kernels:
        put(power_components.KERNELS, view["kernels"], output)
    else:
        put(power_components.UNITS, view["units"], output)


def register(app: typer.Typer) -> None:
    """Add the command of this file."""
    app.command()(components)
