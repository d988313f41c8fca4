"""``compare``: two runs beside each other."""

from typing import Annotated

import typer

from profsvc.cli.common import Output, engine_of, pairs, put, put_json, say, service_of, width


def compare(
    context: typer.Context,
    before: Annotated[str, typer.Argument(help="The run before, by name or id.")],
    after: Annotated[str, typer.Argument(help="The run after, by name or id.")],
    mapped: Annotated[
        list[str] | None, typer.Option("--map", help="Which kernel became which, as OLD=NEW; may be repeated.")
    ] = None,
    fail_on: Annotated[
        list[str] | None,
        typer.Option(help="Exit with 1 beyond this, such as duration=5% or divergence=0.05; may be repeated."),
    ] = None,
    output: Output = "table",
) -> None:
    """Compare two runs: what became of each kernel, and whether what was foretold came true.

    Kernels are the same by name, or by a short name that each run has once; --map says the others.

    Examples:

      profsvc compare monday tuesday

      profsvc compare v1 v2 --map reduce_v1=reduce_v7 -o json

      profsvc compare main branch --fail-on duration=3% --fail-on divergence=0.05
    """
    from profsvc.reports.comparison import comparison
    from profsvc.views import compare as side_by_side

    limits = fail_on or []
    side_by_side.failures({"kernels": [], "criteria": []}, limits)  # a wrong limit is said before any work
    became = pairs("--map", mapped or [])
    if service := service_of(context):
        view = service.compare(before, after, became)
        del view["failures"]  # they are found here, in the same way
    else:
        view = side_by_side.compare(engine_of(context), before, after, became)
    if output == "json":
        put_json(view)
    elif output == "table":
        typer.echo(comparison(view, width()), nl=False)
    else:
        put(side_by_side.KERNELS, view["kernels"], output)
    if broken := side_by_side.failures(view, limits):
        say("\n".join(broken))
        raise typer.Exit(1)


def register(app: typer.Typer) -> None:
    """Add the command of this file."""
    app.command()(compare)
