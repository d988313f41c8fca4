"""``findings``: what nightly reports found, and what people say of it."""

from typing import Annotated, Any

import typer

from profsvc.cli.common import Output, engine_of, put, put_json, say, service_of, user

WIDE = ("subject", "run_before", "changed_at")
"""Columns that a table has no room for; the label says what the subject does."""

group = typer.Typer(no_args_is_help=True, help="Changes that nightly reports found, and what became of them.")


@group.command("list")
def list_(
    context: typer.Context,
    project: Annotated[str, typer.Option(help="Only this project.")] = "",
    state: Annotated[
        list[str] | None, typer.Option(help="new, confirmed, accepted or fixed; repeatable. Default: all.")
    ] = None,
    quantity: Annotated[str, typer.Option(help="Only this quantity, such as duration or power.")] = "",
    kernel: Annotated[str, typer.Option(help="Only what has this in its name.")] = "",
    worse: Annotated[bool, typer.Option("--worse", help="Only regressions.")] = False,
    limit: Annotated[int, typer.Option(min=1, max=10000, help="So many at most.")] = 200,
    output: Output = "table",
) -> None:
    """List the findings, the newest changes first.

    Examples:

      profsvc findings list --state new --state confirmed --worse

      profsvc findings list --kernel saxpy -o json
    """
    from profsvc.views import findings as of_findings

    only: dict[str, Any] = {"project": project, "quantity": quantity, "kernel": kernel}
    only = {name: value or None for name, value in only.items()} | {"limit": limit}
    if service := service_of(context):
        view = service.findings(state=state or None, worse=1 if worse else None, **only)
    else:
        view = of_findings.findings(engine_of(context), states=state or (), worse=True if worse else None, **only)
    columns = [name for name in of_findings.COLUMNS if output != "table" or name not in WIDE]
    put(columns, view["findings"], output, truncated=view["truncated"])
    if not view["findings"]:
        say("no finding like this is stored; nights find them: profsvc report nightly")


@group.command()
def show(
    context: typer.Context,
    finding: Annotated[int, typer.Argument(help="Number of the finding.")],
    output: Output = "table",
) -> None:
    """Show the series of a finding, run by run; -o json besides with all that was said of it.

    Example:

      profsvc findings show 3
    """
    from profsvc.views import findings as of_findings

    service = service_of(context)
    view = service.finding(finding) if service else of_findings.finding(engine_of(context), finding)
    if output == "json":
        put_json(view)
        return
    row = view["finding"]
    said = "".join(f"; {one['state']} by {one['said_by'] or 'the nights'}: {one['because']}" for one in view["states"])
    say(f"finding {finding}: {row['label']} {row['quantity']} changed in run {row['run']} ({row['unit']}){said}")
    put(("run_id", "run", "at", "value", "low", "high", "raw"), view["points"], output)


@group.command("set")
def set_(
    context: typer.Context,
    finding: Annotated[int, typer.Argument(help="Number of the finding.")],
    state: Annotated[str, typer.Argument(help="accepted, fixed, or new to take that back.")],
    because: Annotated[str, typer.Option(help="Why; kept with it.")],
) -> None:
    """Say what became of a finding: an accepted one is the new normal, a fixed one is over.

    Examples:

      profsvc findings set 3 accepted --because "wider tiles, ticket 17"

      profsvc findings set 3 new --because "not so after all"
    """
    from profsvc.views import findings as of_findings

    if service := service_of(context):
        row = service.set_finding(finding, state, because)
    else:
        row = of_findings.set_state(engine_of(context), finding, state, because, user())
    say(f"finding {finding} ({row['label']} {row['quantity']}) is {row['state']}")


def register(app: typer.Typer) -> None:
    """Add the commands of this file."""
    app.add_typer(group, name="findings", epilog="Example: profsvc findings list")
