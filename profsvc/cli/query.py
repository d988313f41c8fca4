"""``sql``: read-only, bounded questions to the v1_ views."""

from typing import Annotated

import typer

from profsvc.cli.common import Output, engine_of, put
from profsvc.errors import UsageError


def sql(
    context: typer.Context,
    query: Annotated[str, typer.Argument(help="One SELECT over the v1_ views; - reads it from stdin.")],
    param: Annotated[list[str], typer.Option(help="k=v for :k in the query; may be repeated.")] = [],  # noqa: B006
    limit: Annotated[int, typer.Option(help="Row limit; default PROFSVC_SQL_ROWS.")] = 0,
    output: Output = "table",
) -> None:
    """Ask the store with SQL; nothing can be written, and time and rows are limited.

    Examples:

      profsvc sql "select kernel, criterion, value, speedup from v1_criteria"

      profsvc sql "select * from v1_launches where kernel_short = :k" --param k=saxpy -o csv
    """
    import sys

    from profsvc import settings, store

    if wrong := [p for p in param if "=" not in p]:
        raise UsageError(f"--param {wrong[0]!r} must look like key=value")
    values = settings.load()
    text = sys.stdin.read() if query == "-" else query
    answer = store.query(
        engine_of(context),
        text,
        dict(p.split("=", 1) for p in param),
        max_rows=limit or int(values["sql_rows"]),
        seconds=float(values["sql_seconds"]),
    )
    rows = [dict(zip(answer.columns, row, strict=True)) for row in answer.rows]
    put(answer.columns, rows, output, truncated=answer.truncated)


def register(app: typer.Typer) -> None:
    """Add the commands of this file."""
    app.command()(sql)
