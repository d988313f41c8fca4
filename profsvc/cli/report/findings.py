"""``findings``: changes that nightly reports found, and their states."""

from typing import Annotated, Any

from click import Context

from profsvc.cli.console.common import (
    OutputOption,
    current_user,
    open_engine,
    open_reader,
    open_service,
    print_json,
    print_message,
    print_row,
    print_rows,
)
from profsvc.cli.console.declaration import Argument, Group, Option

WIDE = ("subject", "run_before", "changed_at")
"""Columns that are left out of the table; the label contains the subject."""

group = Group(help="Changes that nightly reports found, and their states.")


@group.function("list")
def list_(
    context: Context,
    project: Annotated[str, Option(help="Only this project.")] = "",
    state: Annotated[
        list[str] | None, Option(help="new, confirmed, accepted or fixed; repeatable. Default: all.")
    ] = None,
    quantity: Annotated[str, Option(help="Only this quantity, such as duration or power.")] = "",
    kernel: Annotated[str, Option(help="Only kernels with this in their name.")] = "",
    worse: Annotated[bool, Option("--worse", help="Only regressions.")] = False,
    limit: Annotated[int, Option(min=1, max=10000, help="Maximum number of rows.")] = 200,
    output: OutputOption = "table",
) -> None:
    """List the findings, the newest changes first.

    Examples:

      profsvc findings list --state new --state confirmed --worse

      profsvc findings list --kernel saxpy -o json
    """
    from profsvc.views.nightly import findings as findings_view

    only: dict[str, Any] = {"project": project, "quantity": quantity, "kernel": kernel}
    only = {name: value or None for name, value in only.items()} | {"limit": limit}
    if service := open_service(context):
        view = service.findings(state=state or None, worse=1 if worse else None, **only)
    else:
        view = findings_view.findings(open_reader(context), states=state or (), worse=True if worse else None, **only)
    columns = [name for name in findings_view.COLUMNS if output != "table" or name not in WIDE]
    print_rows(columns, view["findings"], output, truncated=view["truncated"])
    if not view["findings"]:
        print_message("No findings match. Nightly reports add findings: profsvc report nightly")


@group.function()
def show(
    context: Context,
    finding: Annotated[int, Argument(help="Number of the finding.")],
    output: OutputOption = "table",
) -> None:
    """Show the values around a finding, one row per run; --json also has its status history.

    Example:

      profsvc findings show 3
    """
    from profsvc.reports.nightly.content import amount, first_run, percent
    from profsvc.reports.nightly.differences import difference_lines
    from profsvc.views.nightly import findings as findings_view

    service = open_service(context)
    view = service.finding(finding) if service else findings_view.finding(open_reader(context), finding)
    if output == "json":
        print_json(view)
        return
    row = view["finding"]
    said = "".join(
        f"; {one['state']} by {one['said_by'] or 'a nightly check'}: {one['because']}" for one in view["states"]
    )
    was, now = (amount(row[name], row["unit"]) for name in ("value_before", "value_after"))
    print_message(
        f"finding {finding}: {row['label']} {row['quantity']} {percent(row, 'value_before', 'value_after')}"
        f" ({was} to {now}) in {first_run(row)}{said}"
    )
    for line in difference_lines(view.get("differences", ())):
        print_message(line)
    points = [{**point, "unit": row["unit"]} for point in view["points"]]
    print_rows(("run_id", "run", "at", "value", "low", "high", "raw", "unit"), points, output)


@group.function("set")
def set_(
    context: Context,
    finding: Annotated[int, Argument(help="Number of the finding.")],
    state: Annotated[str, Argument(help="accepted, fixed, or new to reopen it.")],
    because: Annotated[str, Option(help="Reason, kept in the status history.")],
    output: OutputOption = "table",
) -> None:
    """Set the state of a finding: accepted (new baseline), fixed (resolved), or new (reopened).

    Examples:

      profsvc findings set 3 accepted --because "wider tiles, ticket 17"

      profsvc findings set 3 new --because "not so after all"
    """
    from profsvc.views.nightly import findings as findings_view

    if service := open_service(context):
        row = service.set_finding(finding, state, because)
    else:
        row = findings_view.set_state(open_engine(context), finding, state, because, current_user())
    if output == "table":
        print_message(f"finding {finding} ({row['label']} {row['quantity']}) is {row['state']}")
    else:
        print_row(row, output)


def register(app: Group) -> None:
    """Add the commands of this file."""
    app.add_group(group, "findings", epilog="Example: profsvc findings list")
