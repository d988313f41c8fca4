"""``runs``, ``show``, ``explain``, ``formats``, ``devices``: what the store and the program know."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from profsvc.cli.common import Output, engine_of, put, put_json, say, service_of, width
from profsvc.errors import NotFoundError, UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

CRITERIA = (
    "launch", "kernel", "criterion", "value", "share", "speedup", "value_as_published", "speedup_as_published",
    "flags", "reason",
)  # fmt: skip
TRACE = ("launch", "name", "value", "unit", "from", "metric", "raw_text", "file", "line")
MOST_OF_SERVICE = 10_000
NO_RUN = "the store holds no run yet; make one with: profsvc upload FILE"
DEFINITIONS = ("name", "unit", "meaning", "ncu", "nvprof", "nsys")


def runs(
    context: typer.Context,
    project: Annotated[str, typer.Option(help="Only this project.")] = "",
    output: Output = "table",
) -> None:
    """List the runs, newest first.

    Example:

      profsvc runs --project lab -o json
    """
    from profsvc import store

    only = {"project": project} if project else {}
    service = service_of(context)
    found = service.rows("runs", **only) if service else store.select(engine_of(context), "v1_runs", **only)
    rows = sorted(store.with_objects("v1_runs", found), key=lambda r: -r["run_id"])
    columns = ["run_id", "project", "name", "device", "launches", "gpu_time_ns", "started_at", "commit_id", "tags"]
    put(columns, rows, output)
    if not rows:
        say(f"no run of project {project!r}" if project else NO_RUN)


def show(
    context: typer.Context,
    run: Annotated[str, typer.Argument(help="Run by name or id; without it, the newest.")] = "",
    kernel: Annotated[str, typer.Option(help="Open one launch by number, or a kernel by (part of) its name.")] = "",
    limit: Annotated[int, typer.Option(min=1, help="Show so many launches at most, the longest.")] = 40,
    every: Annotated[bool, typer.Option("--all", help="Show all launches, however many.")] = False,
    output: Output = "table",
) -> None:
    """Show a run: a row a launch, what limits it, its potential and what to do first.

    Examples:

      profsvc show

      profsvc show nightly --kernel saxpy

      profsvc show nightly -o csv
    """
    from profsvc import store, views
    from profsvc.reports import text

    most = None if every else limit
    if service := service_of(context):
        run = run or _newest(service.rows("runs", order="-run_id", limit=1))
        most = MOST_OF_SERVICE if every else limit
        view = service.launch(run, kernel, limit=most) if kernel else service.run(run, limit=most)
    else:
        engine = engine_of(context)
        run = run or _newest(store.list_view(engine, "v1_runs", order=["-run_id"], limit=1).rows)
        view = views.launch(engine, run, kernel, most) if kernel else views.run(engine, run, most)
    if output == "json":
        put_json(view)
    elif output == "table":
        typer.echo(text.launches(view) if kernel else text.run(view, width()), nl=False)
    elif kernel:
        put(CRITERIA, _criteria(view), output, truncated=view["truncated"])
    else:
        put(views.SUMMARY, view["launches"], output, truncated=view["truncated"])


def _newest(runs: "Sequence[Mapping[str, Any]]") -> str:
    if not runs:
        raise NotFoundError(NO_RUN)
    return str(runs[0]["run_id"])


def _criteria(opened: "Mapping[str, Any]") -> list[dict[str, Any]]:
    """The criteria of the opened launches, a row each."""
    return [
        {"launch": one["launch"]["launch_index"], "kernel": one["launch"]["kernel"]} | dict(row)
        for one in opened["launches"]
        for row in one["criteria"]
    ]


def explain(
    context: typer.Context,
    name: Annotated[str, typer.Argument(help="A criterion, a counter, a metric, 'potential', or 'reproduced'.")],
    run: Annotated[str, typer.Option(help="Run by name or id, to walk from its numbers to lines of the upload.")] = "",
    kernel: Annotated[str, typer.Option(help="Launch number or (part of) a kernel's name.")] = "",
    output: Output = "table",
) -> None:
    """Say what a number means and where it comes from: formula, source, counters, metrics, upload and line.

    Examples:

      profsvc explain divergence

      profsvc explain divergence --run nightly --kernel 0

      profsvc explain reproduced
    """
    from profsvc.reports import text
    from profsvc.views import explain as walk

    if kernel and not run:
        raise UsageError("--kernel names a launch of a run; give --run too")
    if run and (service := service_of(context)):
        view = service.explain(name, run, kernel or None)
    else:
        view = walk.explain(engine_of(context) if run else None, name, run or None, kernel or None)
    if output == "table":
        typer.echo(text.explained(view), nl=False)
    elif output == "json":
        put_json(view)
    elif "figures" in view:
        put(list(view["figures"][0]), view["figures"], output)
    elif run:
        put(TRACE, view["trace"], output)
    else:
        put(DEFINITIONS, [one | one["expressions"] for one in view["definitions"]], output)


def formats(
    name: Annotated[str, typer.Argument(help="Show the page of one format.")] = "", output: Output = "table"
) -> None:
    """List the formats that are read, or show the page of one.

    Examples:

      profsvc formats

      profsvc formats ncu-raw
    """
    from profsvc import views

    if name and output == "table":
        typer.echo(views.reader(name).strip())
    elif name:
        put(["format", "page"], [{"format": name, "page": views.reader(name)}], output)
    else:
        put(["format", "what"], views.readers(), output)


def devices(
    context: typer.Context,
    catalogue: Annotated[bool, typer.Option("--catalogue", help="The devices this program has figures for.")] = False,
    output: Output = "table",
) -> None:
    """List the devices of the store, or those of the catalogue.

    Examples:

      profsvc devices

      profsvc devices --catalogue -o csv
    """
    from profsvc import views

    if catalogue:
        rows = views.catalogue()
        put(list(rows[0]), rows, output)
    else:
        service = service_of(context)
        rows = service.rows("devices") if service else views.devices(engine_of(context))
        put(["device_id", "name", "compute_capability", "sms"], rows, output)


def register(app: typer.Typer) -> None:
    """Add the commands of this file."""
    for command in (runs, show, explain, formats, devices):
        app.command()(command)
