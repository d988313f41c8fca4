"""What every command needs: the store that was asked for, and the output in the form that was asked for."""

import shutil
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from sqlalchemy import Engine

Output = Annotated[str, typer.Option("-o", "--output", help="table, csv, json, ndjson, md or parquet.", metavar="FORM")]


def engine_of(context: typer.Context) -> "Engine":
    """Open the store of this call: --store, else PROFSVC_STORE, else the file in the user's data folder."""
    from profsvc import settings, store

    asked = context.obj["store"] or str(settings.load()["store"])
    return store.open_store(asked or None)


def say(text: str) -> None:
    """Say words to the person; never part of the data."""
    typer.echo(text, err=True)


def put(columns: Sequence[str], rows: Sequence[Mapping[str, Any]], form: str, *, truncated: bool = False) -> None:
    """Print rows in the form asked for."""
    from profsvc.reports.rows import render

    width = shutil.get_terminal_size((160, 24)).columns if sys.stdout.isatty() else None
    out = render(columns, rows, form, truncated=truncated, width=width)
    if isinstance(out, bytes):
        sys.stdout.buffer.write(out)
    else:
        typer.echo(out, nl=False)
    if truncated:
        say(f"cut: only the first {len(rows)} rows are shown; raise the limit or narrow the question")


def put_json(value: Mapping[str, Any]) -> None:
    """Print one answer as JSON."""
    import json

    typer.echo(json.dumps({"ok": True, **value}, ensure_ascii=False, indent=1, default=str))
