"""``compare``: two runs beside each other."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from profsvc.cli.common import Output, engine_of, pairs, put, put_json, say, service_of, width
from profsvc.errors import AccessError, NotFoundError, ServiceError

if TYPE_CHECKING:
    from sqlalchemy import Engine

    from profsvc.client import Client


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
    record: Annotated[
        bool, typer.Option("--record/--no-record", help="Keep what was foretold and achieved: profsvc report accuracy.")
    ] = True,
    power: Annotated[bool, typer.Option("--power", help="Only the power, window by window.")] = False,
    output: Output = "table",
) -> None:
    """Compare two runs: what became of each kernel, and whether what was foretold came true.

    Kernels are the same by name, or by a short name that each run has once; --map says the others. Windows of power are
    the same by label, or by a load on as many SMs that each run has once; their power is compared at the temperature of
    the run before.

    What was foretold of the run before is recorded with what the run after achieved, in place of what this pair of runs
    has; it counts for profsvc report accuracy where both do the same work, as many threads a launch or by --map, and
    the kernel changed.

    A limit of --fail-on by which nothing could be judged, as the runs have nothing of that name in common, ends with 3.

    Examples:

      profsvc compare monday tuesday

      profsvc compare v1 v2 --map reduce_v1=reduce_v7 -o json

      profsvc compare main branch --fail-on duration=3% --fail-on divergence=0.05

      profsvc compare main branch --power --fail-on power=3% -o csv
    """
    from profsvc.reports.comparison import comparison, power_alone
    from profsvc.views import compare as side_by_side
    from profsvc.views.compare_power import POWER

    limits = fail_on or []
    side_by_side.failures({"kernels": [], "criteria": []}, limits)  # a wrong limit is said before any work
    became = pairs("--map", mapped or [])
    if service := service_of(context):
        view = _asked(service, before, after, became, record)
    else:
        engine = engine_of(context)
        view = side_by_side.compare(engine, before, after, became)
        if record:
            view["predictions"] = _recorded(engine, view)
    if output == "json":
        put_json(view)
    elif output == "table":
        typer.echo((power_alone if power else comparison)(view, width()), nl=False)
    elif power:
        put(POWER, view["power"], output)
    else:
        put(side_by_side.KERNELS, view["kernels"], output)
    if unjudged := side_by_side.unjudged(view, limits):
        say("\n".join(unjudged))
    if broken := side_by_side.failures(view, limits):
        say("\n".join(broken))
        raise typer.Exit(1)
    if unjudged:
        raise typer.Exit(NotFoundError.exit_code)


def _recorded(engine: "Engine", view: dict[str, Any]) -> dict[str, Any] | None:
    """Keep what was foretold; a store that cannot be written to is no reason to answer nothing."""
    from profsvc.views import predictions

    try:
        return predictions.record(engine, view)
    except ServiceError as error:
        say(f"what was foretold is not recorded: {error}")
        return None


def _asked(service: "Client", before: str, after: str, became: dict[str, str], record: bool) -> dict[str, Any]:
    """Ask a service, which records where the token may write."""
    try:
        view = service.compare(before, after, became, record=record)
    except AccessError as error:
        if not record:
            raise
        view = service.compare(before, after, became)
        say(f"what was foretold is not recorded: {error}")
    for name in ("failures", "unjudged"):  # they are found here, in the same way
        view.pop(name, None)
    return view


def register(app: typer.Typer) -> None:
    """Add the command of this file."""
    app.command()(compare)
