"""``compare``: two runs side by side."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from click import Context
from click.exceptions import Exit

from profsvc.cli.console.common import (
    OutputOption,
    open_main_reader,
    open_reader,
    open_service,
    parse_pairs,
    print_message,
    print_view,
)
from profsvc.cli.console.declaration import Argument, Group, Option
from profsvc.errors import AccessError, NotFoundError, ServiceError

if TYPE_CHECKING:
    from sqlalchemy import Engine

    from profsvc.client import Client


def compare(
    context: Context,
    before: Annotated[str, Argument(help="Run before the change, by name or id.")],
    after: Annotated[str, Argument(help="Run after the change, by name or id.")],
    mapped: Annotated[list[str] | None, Option("--map", help="Renamed kernel, as OLD=NEW; repeatable.")] = None,
    fail_on: Annotated[
        list[str] | None,
        Option(help="Exit with 1 beyond this limit, such as duration=5% or divergence=0.05; repeatable."),
    ] = None,
    record: Annotated[
        bool,
        Option("--record/--no-record", help="Save predicted and achieved speedups for profsvc report accuracy."),
    ] = True,
    power: Annotated[bool, Option("--power", help="Only power, one row per window.")] = False,
    summary: Annotated[
        Path | None, Option(help="Also append the verdict as Markdown to this file.", metavar="FILE")
    ] = None,
    output: OutputOption = "table",
) -> None:
    """Compare two runs kernel by kernel, with the predicted speedup.

    Kernels are matched by name, or by a short name that is unique in each run; --map adds pairs. Power windows are
    matched by label, or by a load on the same number of SMs. Their power is compared at the temperature of run BEFORE.

    The predictions for run BEFORE are saved with what run AFTER achieved. They are scored by profsvc report accuracy
    if both runs do the same work and the kernel really changed.

    The exit code is 3 if a --fail-on limit matches nothing that both runs have.

    Examples:

      profsvc compare monday tuesday

      profsvc compare v1 v2 --map reduce_v1=reduce_v7 -o json

      profsvc compare main branch --fail-on duration=3% --fail-on divergence=0.05

      profsvc compare main branch --fail-on duration=5% --summary summary.md

      profsvc compare main branch --power --fail-on power=3% -o csv
    """
    from profsvc.reports.text.comparison.summary import summary as verdict
    from profsvc.reports.text.comparison.two_runs import comparison, power_alone
    from profsvc.views.comparison import two_runs
    from profsvc.views.power.comparison import POWER

    limits = fail_on or []
    two_runs.check_limits(limits)
    became = parse_pairs("--map", mapped or [])
    if service := open_service(context):
        view = _asked(service, before, after, became, record)
    else:
        engine = open_main_reader(context) if record else open_reader(context)
        view = two_runs.compare(engine, before, after, became)
        if record:
            view["predictions"] = _recorded(engine, view)
    if power:
        print_view(view, output, power_alone, POWER, view["power"])
    else:
        print_view(view, output, comparison, two_runs.KERNELS, view["kernels"])
    unjudged, broken = two_runs.unjudged(view, limits), two_runs.failures(view, limits)
    if summary:
        with summary.open("a", encoding="utf-8") as file:
            file.write(verdict(view, broken, unjudged))
    if unjudged:
        print_message("\n".join(unjudged))
    if broken:
        print_message("\n".join(broken))
        raise Exit(1)
    if unjudged:
        raise Exit(NotFoundError.exit_code)


def _recorded(engine: "Engine", view: dict[str, Any]) -> dict[str, Any] | None:
    """Save the predictions; a read-only store does not prevent the comparison."""
    from profsvc.views.models import predictions

    try:
        return predictions.record(engine, view)
    except ServiceError as error:
        print_message(f"predictions are not saved: {error}")
        return None


def _asked(service: "Client", before: str, after: str, became: dict[str, str], record: bool) -> dict[str, Any]:
    """Ask a service, which records where the token may write."""
    try:
        view = service.compare(before, after, became, record=record)
    except AccessError as error:
        if not record:
            raise
        view = service.compare(before, after, became)
        print_message(f"predictions are not saved: {error}")
    for name in ("failures", "unjudged"):  # they are found here, in the same way
        view.pop(name, None)
    return view


def register(app: Group) -> None:
    """Add the command of this file."""
    app.function()(compare)
