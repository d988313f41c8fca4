"""What every command needs: the store that was asked for, and the output in the form that was asked for."""

import getpass
import shutil
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from profsvc.errors import UsageError, counted

if TYPE_CHECKING:
    from sqlalchemy import Engine

    from profsvc.channels import Channel
    from profsvc.client import Client
    from profsvc.pipeline import Verdict
    from profsvc.store import Files

WIDTH = 160
WARNINGS = 5
PAIRS = {"--tag": "KEY=VALUE, such as branch=main", "--map": "OLD=NEW, such as reduce_v1=reduce_v7",
         "--param": "KEY=VALUE, such as kernel=saxpy", "--set": "KEY=VALUE, such as folder=/backups"}  # fmt: skip


def _form(text: str) -> str:
    """Refuse an unknown form before any work is done for it."""
    from profsvc.reports import rows

    return rows.known(text) if text else text


Output = Annotated[
    str, typer.Option("-o", "--output", help="table, csv, json, ndjson, md or parquet.", metavar="FORM", callback=_form)
]
Sure = Annotated[bool, typer.Option("--yes", "-y", help="Do it without asking.")]


def engine_of(context: typer.Context, *, as_it_is: bool = False) -> "Engine":
    """Return the store of this call: --store, else PROFSVC_STORE, else the file in the user's data folder.

    It is made and brought up to date, unless it is wanted ``as_it_is``. Where PROFSVC_URL says that a service is meant,
    a command that cannot speak to one works on no store by chance.
    """
    from profsvc import settings, store

    known = settings.load()
    if known["url"] and not context.obj["store"]:
        raise UsageError(
            f"PROFSVC_URL is {known['url']}, and this command works on a store alone; give it with --store, or "
            "unset PROFSVC_URL"
        )
    asked = context.obj["store"] or str(known["store"])
    engine = store.connect(asked or None) if as_it_is else store.open_store(asked or None, tell=say)
    context.call_on_close(engine.dispose)
    return engine


def service_of(context: typer.Context) -> "Client | None":
    """Return the service that PROFSVC_URL names; None where a store is meant, as --store always does."""
    from profsvc import settings

    known = settings.load()
    if context.obj["store"] or not known["url"]:
        return None
    from profsvc.client import Client

    client = Client(str(known["url"]), str(known["token"]) or None, spool=str(known["spool"]) or None)
    context.call_on_close(client.close)
    return client


def files_of(engine: "Engine") -> "Files":
    """Return where this store keeps the bytes of its uploads, as the user set it."""
    from profsvc import settings, store

    values = settings.load()
    return store.files_of(engine, str(values["files"]), int(values["free_bytes"]), bool(values["keep"]))


def channels_of() -> "dict[str, Channel]":
    """Return the channels that reports may be sent to, as the file of PROFSVC_CHANNELS names them."""
    from profsvc import channels, settings

    return channels.load(str(settings.load()["channels"]))


def at_terminal() -> bool:
    """Tell whether a person can answer."""
    return sys.stdin.isatty()


def agreed(what: str, listed: Sequence[str], yes: bool) -> None:
    """List what a command is about to remove; go on only if the person says so, here or with --yes."""
    say("\n".join([f"{what}:", *(f"  {line}" for line in listed)]))
    if yes:
        return
    if not at_terminal():
        raise UsageError("nothing was changed; give --yes to do it")
    if not typer.confirm("Do it?", err=True):
        raise typer.Exit(0)


def pairs(option: str, texts: Sequence[str]) -> dict[str, str]:
    """Read the values of an option that takes key=value.

    >>> pairs("--tag", ["branch=main", "note=a=b"])
    {'branch': 'main', 'note': 'a=b'}
    """
    for text in texts:
        if not text.partition("=")[0] or "=" not in text:
            raise UsageError(f"{option} {text!r} must look like {PAIRS.get(option, 'KEY=VALUE')}")
    return dict(text.split("=", 1) for text in texts)


def user() -> str:
    """Return who asks, as far as the system says."""
    try:
        return getpass.getuser()
    except (KeyError, OSError, ImportError):
        return "command line"


def say(text: str) -> None:
    """Say words to the person; never part of the data."""
    from profsvc.reports.rows import visible

    typer.echo("\n".join(map(visible, text.split("\n"))), err=True)


REJECTS = 'profsvc sql "select line, reason, text from v1_rejects where upload_id = {}"'


def describe(verdict: "Verdict", checked: bool) -> str:
    """Say in one sentence what became of a file."""
    counts = {"launch": verdict.launches, "sample": verdict.samples, "phase": verdict.phases}
    held = ", ".join(counted(count, what) for what, count in counts.items() if count)
    if not held and "references" in verdict.facts:
        held = counted(int(verdict.facts["references"]), "reference")
    if not held and not verdict.known:  # what is stored already may be told by its lines alone
        held = "no launches"
    account = (
        f"{held + '; ' if held else ''}of {counted(verdict.lines, 'line')} {verdict.lines_stored} stored, "
        f"{verdict.lines_skipped} skipped, {verdict.lines_rejected} rejected"
    )
    where = f"run {verdict.run!r} (id {verdict.run_id})"
    if checked:
        text = f"{verdict.file_name}: {verdict.format}, would store {account}"
    elif verdict.known:
        what = f"{', '.join(verdict.run_changed)} of the run changed" if verdict.run_changed else "nothing changed"
        text = f"{verdict.file_name}: already stored as upload {verdict.upload_id} of {where}, {what}; {account}"
    else:
        text = f"{verdict.file_name}: {verdict.format} stored as upload {verdict.upload_id} of {where}; {account}"
    text += f"\n  note: {verdict.message}" if verdict.message else ""
    if verdict.lines_rejected and not checked:
        text += f"\n  why lines were rejected: {REJECTS.format(verdict.upload_id)}"
    more = len(verdict.warnings) - WARNINGS
    shown = [*verdict.warnings[:WARNINGS], *([f"and {more} more channels: profsvc show"] if more > 0 else [])]
    return "".join([text, *(f"\n  beware: {warning}" for warning in shown)])


def width() -> int:
    """Return how many columns a table may take: those of the terminal, or a fixed number where there is none."""
    return shutil.get_terminal_size((WIDTH, 24)).columns if sys.stdout.isatty() else WIDTH


def put(
    columns: Sequence[str],
    rows: Sequence[Mapping[str, Any]],
    form: str,
    *,
    truncated: bool = False,
    raw: bool = False,
) -> None:
    """Print rows in the form asked for."""
    from profsvc.reports.rows import render

    out = render(columns, rows, form, truncated=truncated, width=width(), raw=raw)
    typer.echo(out, nl=False, color=True)  # "color" keeps what looks like one, for the text is data
    if truncated:
        say(f"cut: only the first {counted(len(rows), 'row')} are shown; raise the limit or narrow the question")


def picture_form(option: str, file: Path | None) -> str:
    """Return as what a picture is asked for by the name of its file; refuse others before any work is done."""
    from profsvc.reports.figures import FORMS

    form = "" if file is None else file.suffix.lower().removeprefix(".")
    if file is not None and form not in FORMS:
        raise UsageError(f"{option} {str(file)!r} does not say how to draw: end it with .{' or .'.join(FORMS)}")
    return form


def draw_to(file: Path, data: bytes) -> None:
    """Write a picture to its file, which appears whole or not at all."""
    from profsvc.reports.whole import new_file

    with new_file(file) as stream:
        stream.write(data)
    say(f"written: {file}")


def put_json(value: Mapping[str, Any]) -> None:
    """Print one answer as JSON."""
    import json

    from profsvc.reports.rows import plain

    typer.echo(json.dumps(plain({"ok": True, **value}), ensure_ascii=False, indent=1))
