"""``renames``: two names of a kernel as one series, found by reports or decided by people."""

from typing import Annotated, Any

from click import Context

from profsvc.cli.console.common import (
    OutputOption,
    current_user,
    open_engine,
    open_reader,
    open_service,
    print_message,
    print_row,
    print_rows,
)
from profsvc.cli.console.declaration import Argument, Group, Option

group = Group(help="Renamed kernels whose series goes on: found by reports, linked or refused by people.")

Before = Annotated[str, Argument(help="Name of the kernel before: full, short, or its number.")]
Since = Annotated[str, Argument(help="Name of the kernel since.")]
Because = Annotated[str, Option(help="Reason, kept with the decision.")]
Project = Annotated[str, Option(help="Project of the kernels, if several have both.")]
EFFECTS = {
    "link": "are one series from the next report on",
    "refuse": "are two series from the next report on",
    "undo": "are decided by nightly reports again",
}


@group.function("list")
def list_(
    context: Context,
    project: Annotated[str, Option(help="Only this project.")] = "",
    output: OutputOption = "table",
) -> None:
    """List renamed kernels with who decided and when, the newest first.

    The state is found (a report links the names), linked or refused (a person decided). not_applied is a run that has
    both kernels; while there is one, they are two series.

    Example:

      profsvc renames list --project lab
    """
    from profsvc.views.nightly import renames as renames_view

    service = open_service(context)
    view = service.renames(project or None) if service else renames_view.renames(open_reader(context), project or None)
    print_rows((*renames_view.COLUMNS, "not_applied"), view["renames"], output)
    if not view["renames"]:
        print_message("No kernel was renamed. Link two names: profsvc renames link OLD NEW --because REASON")


@group.function()
def link(
    context: Context, before: Before, since: Since, because: Because, project: Project = "",
    output: OutputOption = "table",
) -> None:  # fmt: skip
    """Make two names of a kernel one series, which later reports and histories follow.

    No run may have both kernels. Findings of either name stay.

    Example:

      profsvc renames link saxpy axpy_fast --because "rewritten, ticket 17"
    """
    _decide(context, "link", (before, since), because, project, output)


@group.function()
def refuse(
    context: Context, before: Before, since: Since, because: Because, project: Project = "",
    output: OutputOption = "table",
) -> None:  # fmt: skip
    """Separate two names that a report or a person linked: each is a series of its own.

    Example:

      profsvc renames refuse saxpy axpy_fast --because "another algorithm"
    """
    _decide(context, "refuse", (before, since), because, project, output)


@group.function()
def undo(
    context: Context, before: Before, since: Since, because: Because, project: Project = "",
    output: OutputOption = "table",
) -> None:  # fmt: skip
    """Undo a link or a refusal: nightly reports decide about the two names again.

    Example:

      profsvc renames undo saxpy axpy_fast --because "refused the wrong one"
    """
    _decide(context, "undo", (before, since), because, project, output)


def _decide(
    context: Context, act: str, names: tuple[str, str], because: str, project: str, output: str
) -> None:  # fmt: skip
    from profsvc.views.nightly import renames as renames_view

    row: dict[str, Any]
    if service := open_service(context):
        row = service.decide_rename(act, *names, because, project=project or None)
    else:
        row = renames_view.decide(open_engine(context), act, *names, because, current_user(), project or None)
    if output == "table":
        print_message(f"{row['kernel_before']} and {row['kernel']} of project {row['project']} {EFFECTS[act]}")
    else:
        print_row(row, output)


def register(app: Group) -> None:
    """Add the commands of this file."""
    app.add_group(group, "renames", epilog="Example: profsvc renames list")
