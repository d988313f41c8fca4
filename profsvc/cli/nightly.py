"""``report nightly``: what changed in a night."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from profsvc.cli.common import channels_of, engine_of, put_json, say, service_of, user, width
from profsvc.errors import ServiceError, UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from sqlalchemy import Engine

    from profsvc.channels import Channel

FORMS = ("text", "md", "html", "json")
ENDINGS = {"text": "txt"}
FAIL_ON = ("new", "worse")
LISTS = ("text", "json")
ROWS = 'profsvc sql "select * from v1_reports" -o csv'


def _check_form(text: str, *, listed: bool) -> None:
    allowed, what = (LISTS, "the list of reports") if listed else (FORMS, "a report")
    if text not in allowed:
        rows = f"; as rows: {ROWS}" if listed else ""
        raise UsageError(f"-o {text!r} is no form of {what}; choose one of {', '.join(allowed)}{rows}")


def nightly(
    context: typer.Context,
    project: Annotated[str, typer.Option(help="Only this project; by default all of them in one report.")] = "",
    date: Annotated[str, typer.Option(help="The night, as YYYY-MM-DD in the zone; by default today.")] = "",
    zone: Annotated[str, typer.Option(help="Time zone in which the day ends, such as Europe/Berlin.")] = "UTC",
    out: Annotated[
        Path | None, typer.Option(help="Write it into this folder as text, Markdown, HTML and JSON.", metavar="DIR")
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Store nothing, neither the report nor findings.")] = False,
    fail_on: Annotated[
        str, typer.Option(help="Exit with 1 on a new finding (new), or on one that is a regression (worse).")
    ] = "",
    channel: Annotated[
        list[str], typer.Option(help="Send it to this channel of the file of PROFSVC_CHANNELS; repeatable.")
    ] = [],
    listed: Annotated[
        bool, typer.Option("--list", help="Make none: list those that are stored, and what became of each sending.")
    ] = False,
    output: Annotated[
        str, typer.Option("-o", "--output", help="text, md, html or json; of --list text or json.", metavar="FORM")
    ] = "text",
) -> None:
    """Report what changed since the last report, worst first; 'nothing changed' in one line.

    Every kernel, window of power and file of the runs that came in is held against its history: durations, criteria,
    potential, power and energy at one temperature (as measured beside it), data quality. What is found is kept as
    findings. The same night again replaces its report.

    Examples:

      profsvc report nightly

      profsvc report nightly --project lab --zone Europe/Berlin --out reports --fail-on worse

      profsvc report nightly --date 2026-11-20 --dry-run -o md

      profsvc report nightly --list
    """
    from profsvc import channels
    from profsvc.analysis.night import OPEN
    from profsvc.pipeline.night import report_of_night
    from profsvc.reports import nightly as written

    _check_form(output, listed=listed)
    if listed:
        _list(context, project or None, output)
        return
    if fail_on not in ("", *FAIL_ON):
        raise UsageError(f"--fail-on {fail_on!r} is not known; give {' or '.join(FAIL_ON)}")
    if out is not None and out.exists() and not out.is_dir():
        raise UsageError(f"--out {out} is a file; give a folder")
    if dry_run and channel:
        raise UsageError("--dry-run sends nothing; leave it out, or --channel")
    service = service_of(context)
    if service and channel:
        raise UsageError(
            "--channel sends from a store alone: give it with --store, or have the service send with "
            "profsvc schedule add nightly --channel"
        )
    to = channels.chosen(channels_of(), channel)
    engine = None
    if service:
        document = service.nightly(project=project or None, date=date or None, zone=zone, dry_run=dry_run)
    else:
        engine = engine_of(context)
        document = report_of_night(engine, project or None, date or None, zone, dry_run=dry_run)
    if out is not None:
        _write(document, out)
    typer.echo(written.in_form(document, output, width()), nl=False)
    if dry_run:
        say("tried only: nothing was stored")
    if engine is not None and to:
        _send(engine, document, to)
    open_ = [row for row in document["findings"] if row["state"] in OPEN]
    broken = [row for row in open_ if fail_on == "new" or row["worse"] == 1]
    if fail_on and broken:
        raise typer.Exit(1)


def _list(context: typer.Context, project: str | None, output: str) -> None:
    """Print the newest reports and what became of each that was sent."""
    from profsvc.reports.rows import visible
    from profsvc.views import nightly as of_nights

    service = service_of(context)
    found = service.reports(project) if service else of_nights.told(engine_of(context), project)
    if output == "json":
        put_json(found)
        return
    for row in found["reports"]:
        lines = [f"{row['night']}  {row['project'] or 'all'}  report {row['report_id']}: {row['one_line']}"]
        lines += [f"  {of_nights.sent(one)}" for one in row["deliveries"]]
        typer.echo("\n".join(map(visible, lines)))
    if not found["reports"]:
        say("no report is stored; make one with: profsvc report nightly")
    if found["truncated"]:
        say(f"only the newest {len(found['reports'])} reports; v1_reports and v1_deliveries hold all")


def _send(engine: "Engine", document: "Mapping[str, Any]", to: "Sequence[Channel]") -> None:
    """Send a report to channels, and keep what became of it; one that fails keeps it from no other."""
    from profsvc.pipeline import delivery

    done = delivery.deliver(engine, document, to, user())
    for one in done:
        say(f"{one.channel}: {'delivered' if one.delivered else 'not delivered'}: {one.said}")
    if failed := [one.channel for one in done if not one.delivered]:
        raise ServiceError(f"the report is stored, but was not delivered to {', '.join(failed)}")


def _write(document: "Mapping[str, Any]", folder: Path) -> None:
    """Write every form of a report into a folder."""
    from profsvc.reports import nightly as written
    from profsvc.reports.whole import new_file

    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ServiceError(f"{folder}: cannot be made: {error.strerror}") from None
    for form in FORMS:
        file = folder / f"nightly-{document['night']}.{ENDINGS.get(form, form)}"
        with new_file(file) as stream:
            stream.write(written.in_form(document, form).encode("utf-8", "backslashreplace"))
        say(f"written: {file}")
