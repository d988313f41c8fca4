"""``sql``: read-only queries of the v1_ views, and whole results as files."""

import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from click import Context

from profsvc.cli.console.common import (
    OutputOption,
    open_engine,
    open_reader,
    open_service,
    parse_pairs,
    print_message,
    print_rows,
)
from profsvc.cli.console.declaration import Argument, Group, Option
from profsvc.errors import ProfsvcError, UsageError, counted, first_of

if TYPE_CHECKING:
    from sqlalchemy import Engine

    from profsvc.client import Client


# Views that keep the rows of a month when it is archived; all others lose rows of launches, metrics and readings.
KEPT_VIEWS = {"v1_runs", "v1_uploads", "v1_kernel_totals", "v1_kernel_summaries", "v1_sensors", "v1_archives"}
MAX_MONTHS = 3


def _formula(text: str) -> str:
    if text not in {"safe", "raw"}:
        raise UsageError(f"--formula {text!r} is not known; it can be safe or raw")
    return text


def sql(
    context: Context,
    query: Annotated[str, Argument(help="One SELECT over the v1_ views; - reads it from stdin.")] = "",
    param: Annotated[
        list[str],
        Option(help="Value of :KEY in the query, as text (cast(:KEY as real) for a number); repeatable."),
    ] = [],
    limit: Annotated[int, Option(min=0, help="Maximum number of rows; 0 means PROFSVC_SQL_ROWS.")] = 0,
    out: Annotated[Path | None, Option(help="Write the whole result to this file: csv, ndjson, parquet.")] = None,
    whole: Annotated[bool, Option("--all", help="Write the whole result to stdout.")] = False,
    seconds: Annotated[float, Option(min=0, help="Time limit; 0 means the setting named above.")] = 0,
    formula: Annotated[
        str,
        Option(
            help="For csv: safe puts a ' before text that a spreadsheet would run; raw does not.", callback=_formula
        ),
    ] = "safe",
    example: Annotated[str, Option(help="Run an example by its name.")] = "",
    examples: Annotated[bool, Option("--examples", help="List the examples.")] = False,
    output: OutputOption = "",
) -> None:
    """Run a read-only SQL query; time, rows and memory are limited.

    The limits are PROFSVC_SQL_SECONDS and PROFSVC_SQL_ROWS. With --out or --all the whole result is written without a
    row limit, within PROFSVC_SQL_EXPORT_SECONDS. A file appears once it is complete.

    Examples:

      profsvc sql "select kernel, criterion, value, speedup from v1_criteria"

      profsvc sql "select * from v1_launches where kernel_short = :k" --param k=saxpy -o csv

      profsvc sql --example top_kernels --param run=today

      profsvc sql "select * from v1_samples" --out samples.parquet
    """
    from profsvc import settings, specs, store
    from profsvc.reports.rows import distinct

    if examples:
        rows = [
            {"name": q.name, "title": q.title, "params": " ".join(f"{k}={v}" for k, v in q.params.items())}
            for q in specs.questions().values()
        ]
        print_rows(["name", "title", "params"], rows, output or "table")
        return
    text, params = _question(query, example, parse_pairs("--param", param))
    values = settings.load()
    if limit and (out or whole):
        raise UsageError("--limit truncates a result, --out and --all write all of it; give one of them")
    limit_s = seconds or float(values["sql_export_seconds" if out or whole else "sql_seconds"])
    is_raw = formula == "raw"
    if service := open_service(context):
        if out or whole:
            _fetch(service, text, params, out, output, raw=is_raw)
        else:
            said = service.ask(text, params, limit=limit or None, seconds=seconds or None)
            cut = bool(said["truncated"])
            _print_answer(said["columns"], said["rows"], output, truncated=cut, limit=limit, raw=is_raw)
        _note_archived(service.rows, text)
        return
    engine = _engine(context)
    if out or whole:
        _write(engine, text, params, out, output, limit_s, raw=is_raw)
    else:
        answer = store.query(engine, text, params, max_rows=limit or int(values["sql_rows"]), seconds=limit_s)
        columns = distinct(answer.columns)
        found = [dict(zip(columns, row, strict=True)) for row in answer.rows]
        _print_answer(columns, found, output, truncated=answer.truncated, limit=limit, raw=is_raw)
    _note_archived(partial(store.select, engine), text)


def _print_answer(
    columns: Sequence[str], rows: Sequence[Mapping[str, Any]], output: str, *, truncated: bool, limit: int, raw: bool
) -> None:
    """Print the rows of a query, and by what they were cut off if there are more."""
    raised = "raise --limit" if limit else "raise PROFSVC_SQL_ROWS, which limits the rows of a query"
    more = f"{raised}, or write all with --all or --out FILE"
    print_rows(columns, rows, output or "table", truncated=truncated, raw=raw, more=more)


def _note_archived(rows_of: "Callable[..., list[dict[str, Any]]]", query: str) -> None:
    """Say which months the rows of a query lack because they are archived; a role may not see that."""
    if not set(re.findall(r"\bv1_[a-z_]+", query.lower())) - KEPT_VIEWS:
        return
    with suppress(ProfsvcError):
        if months := sorted({row["month"] for row in rows_of("v1_archives", state="archived")}):
            print_message(
                f"note: rows of {first_of(months, MAX_MONTHS)} are archived and not counted here; to restore a month: "
                f"profsvc db restore {months[0]}"
            )


def _question(query: str, example: str, params: Mapping[str, str]) -> tuple[str, Mapping[str, str]]:
    """Return the SQL that was asked for, and the values in it."""
    import sys

    from profsvc import specs, store

    if bool(query) == bool(example):
        raise UsageError("give one query, or the name of one example with --example; --examples lists them")
    if example:
        question = specs.question(example)
        values = question.values(params)
        if lacking := [name for name, value in values.items() if value == "" and name != "run"]:
            given = " ".join(f"--param {name}=..." for name in lacking)
            raise UsageError(f"the example {example!r} needs a value: {given}")
        if values.get("run") == "":
            print_message("using the newest run; choose another with --param run=NAME")
        return question.sql, values
    text = sys.stdin.read() if query == "-" else query
    names = store.parameter_names(text)
    if unused := [name for name in params if name not in names]:
        there = ", ".join(f":{name}" for name in names) or "none"
        raise UsageError(f"--param {unused[0]} is given, but the query has no :{unused[0]}; it has {there}")
    return text, params


def _engine(context: Context) -> "Engine":
    """Return the store; a server is asked as it is, for a role that may only look cannot see its schema's number."""
    from profsvc import settings, store

    asked = context.obj["store"] or str(settings.load()["store"]) or None
    return open_engine(context, as_it_is=True, only_reads=True) if store.is_server(asked) else open_reader(context)


def _fetch(
    service: "Client", text: str, params: Mapping[str, str], out: Path | None, output: str, *, raw: bool
) -> None:
    """Write the whole result as the service sends it to a file, or to stdout."""
    import sys
    from contextlib import nullcontext

    from profsvc.reports import export

    form = export.form_of(output, out)
    if form == "parquet":
        raise UsageError("a service sends whole results as csv or ndjson; choose one with -o, or use --store")
    with (
        service.export(text, params, form=form, raw=raw) as pieces,
        export.new_file(out) if out else nullcontext(sys.stdout.buffer) as file,
    ):
        for piece in pieces:
            file.write(piece)
    if out:
        print_message(f"written to {out}")


def _write(
    engine: "Engine", text: str, params: Mapping[str, Any], out: Path | None, output: str, seconds: float, *, raw: bool
) -> None:
    """Write the whole result to a file, or to stdout."""
    import sys
    from contextlib import nullcontext

    from profsvc import store
    from profsvc.reports import export
    from profsvc.reports.rows import distinct

    form = export.form_of(output, out)
    with store.export(engine, text, params, seconds=seconds) as found:
        columns = distinct(found.columns)
        with export.new_file(out) if out else nullcontext(sys.stdout.buffer) as file:
            rows = export.write(form, columns, found.chunks, file, raw=raw, kinds=store.column_kinds())
    if out:
        print_message(f"{counted(rows, 'row')} written to {out}")


def register(app: Group) -> None:
    """Add the commands of this file."""
    app.function()(sql)
