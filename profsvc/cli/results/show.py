"""``runs`` and ``show``: which runs there are, and where one can save time."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from click import Context, echo

from profsvc.cli.console.common import (
    LimitOption,
    OutputOption,
    open_reader,
    open_service,
    parse_pairs,
    print_json,
    print_message,
    print_rows,
)
from profsvc.cli.console.declaration import Argument, Group, Option
from profsvc.cli.console.terminal import print_lines, program_in_shell, table_width, wrapped
from profsvc.errors import NotFoundError, UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

CRITERIA = (
    "launch", "kernel", "criterion", "value", "share", "speedup", "value_as_published", "speedup_as_published",
    "value_conditional", "flags", "reason",
)  # fmt: skip
MAX_SERVICE_LAUNCHES = 10_000
SOURCE_LINES = 20
SOURCE_COLUMNS = (
    "file", "source_line", "source_text", "samples", "samples_fraction", "main_stall", "main_stall_fraction",
    "time_fraction", "saving_fraction", "main_cause", "main_cause_fraction", "instructions", "threads_per_instruction",
    "l2_sectors", "ideal_l2_sectors", "shared_wavefronts", "ideal_shared_wavefronts",
)  # fmt: skip
NO_RUN = "the store has no runs yet; add one with: profsvc upload FILE"
DEFAULT_LAUNCHES = 40
OVERVIEW_LAUNCHES = 1000


def runs(
    context: Context,
    project: Annotated[str, Option(help="Only this project.")] = "",
    commit: Annotated[
        list[str], Option(help="Only runs of this commit; repeatable: those of the first commit come first.")
    ] = [],
    tag: Annotated[list[str], Option(help="Only runs with this tag; repeatable.")] = [],
    limit: LimitOption = 0,
    output: OutputOption = "table",
) -> None:
    """List the runs, newest first.

    Examples:

      profsvc runs --project lab --limit 5 -o json

      profsvc runs --commit 1f2e3d --commit 0a1b2c --tag branch=main --limit 1
    """
    from profsvc import api, store

    only = {"project": project} if project else {}
    service = open_service(context)
    found = service.rows("runs", **only) if service else store.select(open_reader(context), "v1_runs", **only)
    rows = api.best_matches(store.parse_json_columns("v1_runs", found), parse_pairs("--tag", tag), commit)
    columns = ["run_id", "project", "name", "device", "launches", "gpu_time_ns", "started_at", "commit_id", "tags"]
    print_rows(columns, rows, output, limit=limit)
    if not rows:
        which = " of this commit or with this tag" if commit or tag else ""
        print_message(f"no run{which} of project {project!r}" if project else f"no run{which}" if which else NO_RUN)


def show(
    context: Context,
    run: Annotated[str, Argument(help="Run by name or id; default: the newest.")] = "",
    kernel_or_launch: Annotated[str, Argument(help="The same as --kernel.", metavar="KERNEL")] = "",
    kernel: Annotated[str, Option(help="Details of one launch by number, or of a kernel by (part of) its name.")] = "",
    limit: Annotated[int, Option(min=0, help="Show one row per launch for this many, longest first.", metavar="N")] = 0,
    every: Annotated[bool, Option("--all", help="Show one row per launch, for all of them.")] = False,
    wall_time: Annotated[
        bool, Option("--wall-time", help="Show what the device did and waited for, from a trace.")
    ] = False,
    source: Annotated[
        bool, Option("--source", help="Show source lines and SASS with their samples, of one launch.")
    ] = False,
    source_folder: Annotated[
        Path | None,
        Option(help="With --source: read lines from here if the export lacks them.", metavar="DIR"),
    ] = None,
    before: Annotated[
        str,
        Option(help="With --source: compare by line with the same kernel of this earlier run.", metavar="RUN"),
    ] = "",
    before_kernel: Annotated[
        str, Option(help="With --source: compare by line with this kernel, of this run or of --before.", metavar="NAME")
    ] = "",
    published: Annotated[
        bool, Option("--published", help="With --kernel: also print values as the papers define them.")
    ] = False,
    conditional: Annotated[
        bool, Option("--conditional", help="With --kernel: also print each criterion without what others measure.")
    ] = False,
    output: OutputOption = "table",
) -> None:
    """Show where a run can save most time, what limits it there, and what to do first.

    With --all: one row per launch with its bottleneck, potential speedup and first step.

    Examples:

      profsvc show

      profsvc show nightly --all

      profsvc show nightly --kernel saxpy

      profsvc show nightly --wall-time

      profsvc show nightly --kernel saxpy --source

      profsvc show nightly --kernel saxpy --source --before yesterday

      profsvc show nightly -o csv
    """
    if kernel and kernel_or_launch:
        raise UsageError(f"{kernel_or_launch!r} and --kernel {kernel!r} say the same; give one of them")
    kernel = kernel or kernel_or_launch
    if source:
        if before or before_kernel:
            earlier, later = (before or run, before_kernel or kernel), (run, kernel)
            _show_source_changes(context, (earlier, later), every, source_folder, output)
        else:
            _show_source(context, run, kernel, None if every else limit or SOURCE_LINES, source_folder, output)
        return
    for name, given in {
        "--source-folder": source_folder,
        "--before": before,
        "--before-kernel": before_kernel,
    }.items():
        if given:
            raise UsageError(f"{name} needs --source; add it")
    from profsvc import views
    from profsvc.reports.text.launches import details as launch_text
    from profsvc.reports.text.runs import run as run_text
    from profsvc.reports.text.runs.overview import overview

    forms = {"--published": published, "--conditional": conditional}
    if wall_time and (kernel or every or limit or any(forms.values())):
        raise UsageError(f"--wall-time is of the whole run; leave out --kernel, --limit, --all, {' and '.join(forms)}")
    is_overview = output == "table" and not (kernel or every or limit or wall_time)
    limit = limit or (1 if wall_time else OVERVIEW_LAUNCHES if is_overview else DEFAULT_LAUNCHES)
    view = _run_or_launches(context, run, kernel, None if every else limit)
    if wall_time:
        _print_wall_time(view, output)
    elif output == "json":
        print_json(view)
    elif is_overview:
        print_lines(overview(view, table_width(), program_in_shell(context.obj["store"])))
    elif output == "table":
        of_kernel = {"published": published, "conditional": conditional}
        shown = launch_text.launches(view, **of_kernel) if kernel else run_text.run(view, table_width())
        echo(wrapped(shown), nl=False)
    elif kernel:
        print_rows(CRITERIA, _criteria(view), output, truncated=view["truncated"])
    else:
        print_rows(views.SUMMARY, view["launches"], output, truncated=view["truncated"])


def _run_or_launches(context: Context, run: str, kernel: str, most: int | None) -> dict[str, Any]:
    """Return the view of a run, or of its launches of a kernel; a service gives no more than it may."""
    from profsvc import store, views

    if service := open_service(context):
        run = run or _newest(service.rows("runs", order="-run_id", limit=1))
        most = MAX_SERVICE_LAUNCHES if most is None else most
        return service.launch(run, kernel, limit=most) if kernel else service.run(run, limit=most)
    engine = open_reader(context)
    run = run or _newest(store.list_view(engine, "v1_runs", order=["-run_id"], limit=1).rows)
    return views.launch(engine, run, kernel, most) if kernel else views.run(engine, run, most)


def _print_wall_time(view: dict[str, Any], output: str) -> None:
    """Print what the devices of a run did and waited for."""
    from profsvc.reports.text.runs import wall_time as wall_time_text
    from profsvc.views.traces import wall_time as wall_time_view

    if output == "json":
        print_json({"run": view["run"], "wall_time": view["wall_time"]})
    elif output == "table":
        echo(wrapped(wall_time_text.wall_time(view, table_width())), nl=False)
    else:
        print_rows(wall_time_view.COLUMNS, wall_time_view.flat(view["wall_time"]), output)


def _show_source(context: Context, run: str, kernel: str, limit: int | None, folder: Path | None, output: str) -> None:
    """Print the source of a launch."""
    from profsvc import store
    from profsvc.cli.results.source_files import add_source_texts
    from profsvc.reports.text.launches import source_lines as source_text
    from profsvc.views.launches import source_lines as source_view

    if service := open_service(context):
        run = run or _newest(service.rows("runs", order="-run_id", limit=1))
        view = service.source(run, kernel, limit=source_view.MAX_ROWS if limit is None else limit)
    else:
        engine = open_reader(context)
        run = run or _newest(store.list_view(engine, "v1_runs", order=["-run_id"], limit=1).rows)
        view = source_view.source_lines(engine, run, kernel, limit)
    for name in add_source_texts(view, folder) if folder else ():
        print_message(f"{folder} has no file {name}")
    if output == "json":
        print_json(view)
    elif output == "table":
        echo(source_text.source_lines(view, table_width(), every=limit is None), nl=False)
    else:
        print_rows(SOURCE_COLUMNS, view["lines"], output, truncated=len(view["lines"]) < view["lines_in_all"])


def _show_source_changes(
    context: Context, launches: "Iterable[tuple[str, str]]", every: bool, folder: Path | None, output: str
) -> None:
    """Print what each source line takes in the earlier and in the later of two launches, each of a run and a kernel."""
    from profsvc.reports.text.comparison import source_lines as source_changes_text
    from profsvc.views.comparison.source_lines import COLUMNS, source_changes

    (old, old_ns), (new, new_ns) = (_source_with_duration(context, *one) for one in launches)
    for name in dict.fromkeys(name for view in (old, new) if folder for name in _add_texts(view, folder)):
        print_message(f"{folder} has no file {name}")
    rows = source_changes(old, new, (old_ns, new_ns))
    if output == "json":
        print_json({"before": old["launch"], "after": new["launch"], "lines": rows})
    elif output == "table":
        echo(source_changes_text.source_changes(old, new, rows, table_width(), every=every), nl=False)
    else:
        print_rows(COLUMNS, rows, output)


def _add_texts(view: dict[str, Any], folder: Path) -> list[str]:
    from profsvc.cli.results.source_files import add_source_texts

    return list(add_source_texts(view, folder))


def _source_with_duration(context: Context, run: str, kernel: str) -> tuple[dict[str, Any], float | None]:
    """Return all source lines of a launch and its duration in ns, None if it is no known launch."""
    from profsvc import store
    from profsvc.views.launches import source_lines as source_view

    if service := open_service(context):
        run = run or _newest(service.rows("runs", order="-run_id", limit=1))
        view = service.source(run, kernel, limit=source_view.MAX_ROWS)
        key = view["launch"]["launch_id"]
        launches = [] if key is None else service.rows("launches", launch_id=key)
    else:
        engine = open_reader(context)
        run = run or _newest(store.list_view(engine, "v1_runs", order=["-run_id"], limit=1).rows)
        view = source_view.source_lines(engine, run, kernel, None)
        key = view["launch"]["launch_id"]
        launches = [] if key is None else store.select(engine, "v1_launches", launch_id=key)
    return view, launches[0]["duration_ns"] if launches else None


def _newest(runs: "Sequence[Mapping[str, Any]]") -> str:
    if not runs:
        raise NotFoundError(NO_RUN)
    return f"id:{runs[0]['run_id']}"


def _criteria(opened: "Mapping[str, Any]") -> list[dict[str, Any]]:
    """Return one row per criterion of each launch."""
    return [
        {"launch": one["launch"]["launch_index"], "kernel": one["launch"]["kernel"]} | dict(row)
        for one in opened["launches"]
        for row in one["criteria"]
    ]


def register(app: Group) -> None:
    """Add the commands of this file."""
    for command in (runs, show):
        app.function()(command)
