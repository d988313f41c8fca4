"""``sql``: read-only, bounded questions to the v1_ views."""

from collections.abc import Sequence
from typing import Annotated

import typer

from profsvc.cli.common import Output, engine_of, pairs, put


def sql(
    context: typer.Context,
    query: Annotated[str, typer.Argument(help="One SELECT over the v1_ views; - reads it from stdin.")],
    param: Annotated[
        list[str], typer.Option(help="k=v for :k in the query, as text: cast(:k as real) is its number; repeatable.")
    ] = [],  # noqa: B006
    limit: Annotated[int, typer.Option(min=0, help="Row limit; 0 is PROFSVC_SQL_ROWS.")] = 0,
    output: Output = "table",
) -> None:
    """Ask the store with SQL; nothing can be written, and time and rows are limited.

    The limits are PROFSVC_SQL_SECONDS and PROFSVC_SQL_ROWS.

    Examples:

      profsvc sql "select kernel, criterion, value, speedup from v1_criteria"

      profsvc sql "select * from v1_launches where kernel_short = :k" --param k=saxpy -o csv
    """
    import sys

    from profsvc import settings, store

    params = pairs("--param", param)
    values = settings.load()
    text = sys.stdin.read() if query == "-" else query
    answer = store.query(
        engine_of(context),
        text,
        params,
        max_rows=limit or int(values["sql_rows"]),
        seconds=float(values["sql_seconds"]),
    )
    columns = _distinct(answer.columns)
    put(columns, [dict(zip(columns, row, strict=True)) for row in answer.rows], output, truncated=answer.truncated)


def _distinct(names: Sequence[str]) -> list[str]:
    """Number the names that a join gives twice, so that no column hides another.

    >>> _distinct(["value", "value", "value_2"])
    ['value', 'value_3', 'value_2']
    """
    distinct: list[str] = []
    for place, name in enumerate(names):
        number, new = 1, name
        while new in distinct or (number > 1 and new in names[place + 1 :]):
            number += 1
            new = f"{name}_{number}"
        distinct.append(new)
    return distinct


def register(app: typer.Typer) -> None:
    """Add the commands of this file."""
    app.command()(sql)
