"""``explain`` and ``formats``: what a number and a format mean."""

from typing import Annotated

from click import Context, echo

from profsvc.cli.console.common import OutputOption, open_reader, open_service, print_json, print_rows
from profsvc.cli.console.declaration import Argument, Group, Option
from profsvc.errors import UsageError

TRACE = ("launch", "name", "value", "unit", "from", "metric", "raw_text", "file", "line")
DEFINITIONS = ("name", "unit", "meaning", "ncu", "nvprof", "nsys")


def explain(
    context: Context,
    name: Annotated[
        str,
        Argument(help="Title or name of a criterion, counter, metric, model or flag; 'potential'; 'reproduced'."),
    ],
    run: Annotated[str, Option(help="Run by name or id, to trace its numbers to lines of the upload.")] = "",
    kernel: Annotated[str, Option(help="Launch number or (part of) a kernel's name.")] = "",
    output: OutputOption = "table",
) -> None:
    """Explain a number: formula, source, counters, metrics, file and line.

    Examples:

      profsvc explain divergence

      profsvc explain divergence --run nightly --kernel 0

      profsvc explain reproduced
    """
    from profsvc.reports.text import explanation
    from profsvc.views.explain import numbers as explain_view

    if kernel and not run:
        raise UsageError("--kernel needs --run; add it")
    if run and (service := open_service(context)):
        view = service.explain(name, run, kernel or None)
    else:
        view = explain_view.explain(open_reader(context) if run else None, name, run or None, kernel or None)
    if output == "table":
        echo(explanation.explanation(view), nl=False)
    elif output == "json":
        print_json(view)
    elif "figures" in view:
        print_rows(list(view["figures"][0]), view["figures"], output)
    elif run:
        print_rows(TRACE, view["trace"], output)
    else:
        print_rows(DEFINITIONS, [one | one["expressions"] for one in view["definitions"]], output)


def formats(name: Annotated[str, Argument(help="Format to describe.")] = "", output: OutputOption = "table") -> None:
    """List the supported formats, or describe one.

    Examples:

      profsvc formats

      profsvc formats ncu-raw
    """
    from profsvc import views

    if name and output == "table":
        echo(views.reader(name).strip())
    elif name:
        print_rows(["format", "page"], [{"format": name, "page": views.reader(name)}], output)
    else:
        print_rows(["format", "what"], views.readers(), output)


def register(app: Group) -> None:
    """Add the commands of this file."""
    for command in (explain, formats):
        app.function()(command)
