"""``db archive`` and ``db restore``: closed months as Parquet files, and back."""

from datetime import date, datetime
from typing import TYPE_CHECKING, Annotated

from click import Context

from profsvc.cli.console.common import YesOption, confirm_removal, open_engine, print_message
from profsvc.cli.console.declaration import Argument, Group, Option
from profsvc.errors import UsageError, counted

if TYPE_CHECKING:
    from sqlalchemy import Engine

    from profsvc.store import Archive, Month


def _place(engine: "Engine", given: str) -> str:
    """Return the folder or URL of the archive: --to, else PROFSVC_ARCHIVE, else a folder beside a SQLite store."""
    from profsvc import settings, store

    known = given or str(settings.load()["archive"])
    if known:
        return known
    if store.is_server_of(engine):
        raise UsageError("say where the files go: --to FOLDER, --to s3://BUCKET/PATH, or set PROFSVC_ARCHIVE")
    return f"{engine.url.database}.archive"


def _date(words: str) -> date:
    try:
        return datetime.strptime(words, "%Y-%m-%d").date()
    except ValueError:
        raise UsageError(f"--before {words!r} must be a date such as 2026-04-01") from None


def _summary(month: "Month") -> str:
    counts = {"launch": "launches", "sample": "samples"}
    held = [counted(sum(run[name] for run in month.runs), one) for one, name in counts.items()]
    waiting = f"; run {', '.join(map(str, month.waiting))} stays: its analysis is not finished" if month.waiting else ""
    return f"{month.month}: {', '.join([counted(len(month.runs), 'run'), *held])}{waiting}"


def _describe(done: "Archive") -> str:
    return (
        f"{done.month}: {counted(done.rows, 'row')} of {counted(done.runs, 'run')} moved to {done.place}, "
        f"{counted(done.size_bytes, 'byte')} of Parquet"
    )


def archive(
    context: Context,
    before: Annotated[str, Option(help="Months that end by this date (UTC), such as 2026-04-01.", metavar="DATE")],
    to: Annotated[
        str, Option(help="Folder, or URL such as s3://bucket/profsvc. Default: PROFSVC_ARCHIVE.", metavar="PLACE")
    ] = "",
    dry_run: Annotated[bool, Option("--dry-run", help="Only list what would be archived.")] = False,
    yes: YesOption = False,
) -> None:
    """Move closed months to Parquet files: launches, counters, metrics, readings and results of launches.

    The files are read back and compared before a row leaves the store. Totals by kernel, criteria of runs, findings and
    reports stay. An interrupted archive is finished by the next call.

    Examples:

      profsvc db archive --before 2026-04-01 --dry-run

      profsvc db archive --before 2026-04-01 --to archive --yes
    """
    from profsvc import store

    engine, until = open_engine(context), _date(before)
    if not dry_run:
        for done in store.finish_interrupted(engine):
            print_message(f"finished an interrupted archive; {_describe(done)}")
    months = store.closed_months(engine, until)
    ready = [month for month in months if month.runs]
    if not months:
        print_message(f"nothing to archive: no month with rows in the store ends by {until}")
        return
    place = _place(engine, to)
    confirm_removal(
        f"{'would be' if dry_run else 'This will be'} moved to {place}", list(map(_summary, months)), yes or dry_run
    )
    if dry_run:
        return
    for month in ready:
        print_message(_describe(store.archive_month(engine, month, place, print_message)))
    if ready:
        how = "profsvc help howto/archive" if "://" in place else f"duckdb -init {place}/views.sql"
        print_message(f"DuckDB reads it with: {how}; profsvc db vacuum frees the space")


def restore(
    context: Context,
    months: Annotated[list[str], Argument(help="Months such as 2026-03.", metavar="MONTH...")],
) -> None:
    """Bring archived months back into the store, bit for bit. The Parquet files stay.

    Example:

      profsvc db restore 2026-03
    """
    from profsvc import store

    engine = open_engine(context)
    for month in months:
        for back in store.restore_month(engine, month):
            gone = f"; {counted(back.deleted, 'file')} deleted since" if back.deleted else ""
            print_message(f"{month}: {counted(back.rows, 'row')} of {counted(back.uploads, 'file')} restored{gone}")


def register(group: Group) -> None:
    """Add the commands of this file to ``db``."""
    group.function()(archive)
    group.function()(restore)
