"""``graph``: the work-flow graph of a run."""

from typing import Annotated

from click import Context

from profsvc.cli.console.common import LimitOption, OutputOption, open_reader, open_service, print_view
from profsvc.cli.console.declaration import Argument, Group, Option


def graph(
    context: Context,
    run: Annotated[str, Argument(help="Run by name or id.")],
    show: Annotated[str, Option(help="nodes, arcs or warps.", metavar="PART")] = "nodes",
    limit: LimitOption = 20,
    output: OutputOption = "table",
) -> None:
    """Show which kernels and transfers of a trace follow which, and how much of them could overlap.

    nodes: kernels and transfers, with how often an average stream visits each. arcs: what follows what on a stream.
    warps: the work-flow graph of an average warp of each of the longest launches, from their counters, with its bound,
    balance and predicted time. For a graph that you describe, see: profsvc work-flow.

    Examples:

      profsvc graph today

      profsvc graph today --show arcs -o csv

      profsvc graph today --show warps --limit 5
    """
    from profsvc.reports.text.models.index import answer
    from profsvc.views.models.run_graph import run_graph

    if service := open_service(context):
        view = service.graph(run, show, limit)
    else:
        view = run_graph(open_reader(context), run, show, limit or None)
    print_view(view, output, answer, view["columns"], view["rows"])


def register(app: Group) -> None:
    """Add the command of this file."""
    app.function()(graph)
