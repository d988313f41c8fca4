"""What every command needs: the store or service, messages, and output in the requested format."""

import getpass
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from click import Context, confirm, echo
from click.exceptions import Exit

from profsvc.cli.console import verbosity
from profsvc.cli.console.declaration import Option
from profsvc.cli.console.terminal import colored, has_color, table_width, with_store
from profsvc.errors import UsageError, counted

if TYPE_CHECKING:
    from sqlalchemy import Engine

    from profsvc.channels import Channel
    from profsvc.client import Client
    from profsvc.pipeline import ImportResult
    from profsvc.store import BlobStore

MAX_WARNINGS = 5
PAIR_EXAMPLES = {"--tag": "KEY=VALUE, such as branch=main", "--map": "OLD=NEW, such as reduce_v1=reduce_v7",
         "--param": "KEY=VALUE, such as kernel=saxpy", "--set": "KEY=VALUE, such as folder=/backups"}  # fmt: skip


def _check_format(text: str) -> str:
    """Refuse an unknown format before any work is done."""
    from profsvc.reports import rows

    return rows.known(text) if text else text


OutputOption = Annotated[
    str,
    Option(
        "-o",
        "--output",
        help="Output format: table, csv, json, ndjson, md or parquet.",
        metavar="FORM",
        callback=_check_format,
    ),
]
LimitOption = Annotated[int, Option(min=0, help="Maximum number of rows; 0 means all.", metavar="N")]
YesOption = Annotated[bool, Option("--yes", "-y", help="Skip the prompt.")]


def open_reader(context: Context) -> "Engine":
    """Return the store of this call for questions, created and migrated if it must be; see `open_engine`."""
    from profsvc import store

    if read_store(context):
        return open_engine(context, only_reads=True)
    return _opened(context, lambda asked: store.open_reader(asked, tell=print_message))


def open_main_reader(context: Context) -> "Engine":
    """Return the store itself, not its replica, for questions, and for a command that writes little after them.

    A replica may lack what was written last, and cannot keep anything.
    """
    return open_engine(context) if read_store(context) else open_reader(context)


def read_store(context: Context) -> str:
    """Return the address of the replica for what only reads; empty if it is not set or --store is given."""
    from profsvc import settings

    return "" if context.obj["store"] else str(settings.load()["read_store"])


def open_engine(context: Context, *, as_it_is: bool = False, only_reads: bool = False) -> "Engine":
    """Return the store of this call: --store, else PROFSVC_STORE, else the file in the user's data folder.

    It is created and migrated, unless it is wanted ``as_it_is``. Where PROFSVC_URL names a service, a command that
    needs a store refuses to pick one. What ``only_reads`` gets the replica of PROFSVC_READ_STORE if that can answer.
    """
    from profsvc import store

    if only_reads and (url := read_store(context)):

        def opened(asked: str | None) -> "Engine":
            place = store.open_to_read(asked, url, as_it_is=as_it_is)
            if place.warning:
                print_message(f"warning: {place.warning}", kind="warning")
            return place.engine

        return _opened(context, opened)
    if as_it_is:
        return _opened(context, store.connect)
    return _opened(context, lambda asked: store.open_store(asked, tell=print_message, pooled=True))


def _opened(context: Context, opened: "Callable[[str | None], Engine]") -> "Engine":
    from profsvc import settings

    known = settings.load()
    if known["url"] and not context.obj["store"]:
        raise UsageError(
            f"PROFSVC_URL is {known['url']}, but this command needs a store; give one with --store, or "
            "unset PROFSVC_URL"
        )
    engine = opened(context.obj["store"] or str(known["store"]) or None)
    context.call_on_close(engine.dispose)
    return engine


def open_service(context: Context) -> "Client | None":
    """Return the service that PROFSVC_URL names; None where a store is meant, as --store always does."""
    from profsvc import settings

    known = settings.load()
    if context.obj["store"] or not known["url"]:
        return None
    from profsvc.client import Client

    token, spool = str(known["token"]) or None, str(known["spool"]) or None
    client = Client(str(known["url"]), token, spool=spool, report=print_message)
    context.call_on_close(client.close)
    return client


def open_files(engine: "Engine") -> "BlobStore":
    """Return where this store keeps the bytes of its uploads, as the user set it."""
    from profsvc import settings, store

    values = settings.load()
    return store.blob_store_of(engine, str(values["files"]), int(values["free_bytes"]), bool(values["keep"]))


def load_channels() -> "dict[str, Channel]":
    """Return the channels that reports may be sent to, as the file of PROFSVC_CHANNELS names them."""
    from profsvc import channels, settings

    return channels.load(str(settings.load()["channels"]))


def is_interactive() -> bool:
    """Tell whether a person can answer."""
    return sys.stdin.isatty()


def confirm_removal(what: str, listed: Sequence[str], yes: bool) -> None:
    """List what a command is about to remove; go on only if the person says so, here or with --yes."""
    print_message("\n".join([f"{what}:", *(f"  {line}" for line in listed)]))
    if yes:
        return
    if not is_interactive():
        raise UsageError("nothing was changed; add --yes to skip the prompt")
    if not confirm("Continue?", err=True):
        raise Exit(0)


def parse_pairs(option: str, texts: Sequence[str]) -> dict[str, str]:
    """Read the values of an option that takes key=value.

    >>> parse_pairs("--tag", ["branch=main", "note=a=b"])
    {'branch': 'main', 'note': 'a=b'}
    """
    for text in texts:
        if not text.partition("=")[0] or "=" not in text:
            raise UsageError(f"{option} {text!r} must look like {PAIR_EXAMPLES.get(option, 'KEY=VALUE')}")
    return dict(text.split("=", 1) for text in texts)


def current_user() -> str:
    """Return the name of the user, as far as the system knows it."""
    try:
        return getpass.getuser()
    except (KeyError, OSError, ImportError):
        return "command line"


def print_message(text: str, *, kind: str = "message", only_verbose: bool = False) -> None:
    """Print a message to stderr, where it is never part of the data; --quiet leaves only errors."""
    from profsvc.reports.rows import visible

    level = verbosity.level
    if (kind != "error" and level == verbosity.QUIET) or (only_verbose and level != verbosity.VERBOSE):
        return
    lines = [visible(line) for line in with_store(text).split("\n")]
    echo("\n".join(colored(line, kind, sys.stderr) for line in lines), err=True, color=has_color(sys.stderr))


REJECTS_COMMAND = 'profsvc sql "select line, reason, text from v1_rejects where upload_id = {}"'


def describe_upload(verdict: "ImportResult", checked: bool) -> str:
    """Describe the outcome of an upload in one sentence."""
    from profsvc.formats.timeseries.labels import AS_PRINTED

    counts = {"launch": verdict.launches, "sample": verdict.samples, "phase": verdict.phases}
    held = ", ".join(counted(count, what) for what, count in counts.items() if count)
    if not held and "references" in verdict.facts:
        held = counted(int(verdict.facts["references"]), "reference")
    if not held and verdict.facts.get("page") == "source":
        held = counted(verdict.lines_stored, "source line")
    if not held:
        counts = {"summary": verdict.summaries, "transfer": verdict.transfers}
        held = ", ".join(counted(count, what) for what, count in counts.items() if count)
        held += " and no launches" if held else ""
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
        text += f"\n  why lines were rejected: {REJECTS_COMMAND.format(verdict.upload_id)}"
    more = len(verdict.warnings) - MAX_WARNINGS
    shown = [*verdict.warnings[:MAX_WARNINGS], *([f"and {more} more channels: profsvc show"] if more > 0 else [])]
    text = "".join([text, *(f"\n  warning: {warning}" for warning in shown)])
    if any(AS_PRINTED in warning for warning in verdict.warnings):
        again = "" if checked else f", after: profsvc delete id:{verdict.run_id} --upload {verdict.upload_id}"
        text += f"\n  to give a column its unit: --column 'NAME=power:W'{again}"
    return text


def print_rows(
    columns: Sequence[str],
    rows: Sequence[Mapping[str, Any]],
    form: str,
    *,
    truncated: bool = False,
    limit: int = 0,
    raw: bool = False,
    more: str = "raise the limit or narrow the query",
) -> None:
    """Print rows in the requested format, with a ``limit`` only the first of them; ``more`` tells how to see others."""
    from profsvc.reports.rows import render

    if 0 < limit < len(rows):
        rows, truncated = rows[:limit], True
    out = render(columns, rows, form, truncated=truncated, width=table_width(), raw=raw)
    echo(out, nl=False, color=True)  # "color" keeps what looks like one, for the text is data
    if truncated:
        verb = "is" if len(rows) == 1 else "are"
        print_message(f"truncated: only the first {counted(len(rows), 'row')} {verb} shown; {more}")


def picture_format(option: str, file: Path | None, *others: str) -> str:
    """Return the format that the name of a picture asks for, an image or one of the ``others``.

    Any other is refused, before any work is done; without a file it is empty.
    """
    if file is None:
        return ""
    from profsvc.reports.plots.figure import FORMS

    *most, last = (f".{form}" for form in (*FORMS, *others))
    if file.suffix.lower() not in {*most, last}:
        allowed = f"{', '.join(most)} or {last}"
        raise UsageError(f"{option} {str(file)!r} has no known image format: end it with {allowed}")
    return file.suffix.lower()[1:]


def write_picture(file: Path, data: bytes) -> None:
    """Write a picture to its file, which appears whole or not at all."""
    from profsvc.reports.export import new_file

    with new_file(file) as stream:
        stream.write(data)
    print_message(f"written: {file}")


def print_row(row: Mapping[str, Any], form: str, text: str = "") -> None:
    """Print one row: as ``text`` on a terminal, else in the requested format."""
    if form == "table":
        echo(text)
    elif form == "json":
        print_json(row)
    else:
        print_rows(list(row), [row], form)


def print_view(
    view: Mapping[str, Any],
    form: str,
    page: Callable[[Any, int | None], str],
    columns: Sequence[str],
    rows: Sequence[Mapping[str, Any]],
) -> None:
    """Print one answer: as JSON, as the page of a terminal, or its rows in any other format."""
    if form == "json":
        print_json(view)
    elif form == "table":
        echo(with_store(page(view, table_width())), nl=False)
    else:
        print_rows(columns, rows, form)


def print_json(value: Mapping[str, Any]) -> None:
    """Print one answer as JSON."""
    import json

    from profsvc.reports.rows import plain

    echo(json.dumps(plain({"ok": True, **value}), ensure_ascii=False, indent=1))
