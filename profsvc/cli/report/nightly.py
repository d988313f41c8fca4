"""``report nightly``: what changed in a night."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from click import Context, echo
from click.exceptions import Exit

from profsvc.cli.console.common import current_user, load_channels, open_engine, open_service, print_json, print_message
from profsvc.cli.console.declaration import Option
from profsvc.cli.console.terminal import table_width
from profsvc.errors import ServiceError, UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from sqlalchemy import Engine

    from profsvc.channels import Channel

FORMS = ("text", "md", "html", "json", "junit", "github", "sarif")
ENDINGS = {"text": "txt", "md": "md", "html": "html", "json": "json", "junit": "junit.xml", "sarif": "sarif"}
"""Of the files that --out writes."""
FAIL_ON = ("new", "worse")
LISTS = ("text", "json")
ROWS = 'profsvc sql "select * from v1_reports" -o csv'


def _check_form(text: str, *, listed: bool) -> None:
    allowed, what = (LISTS, "the list of reports") if listed else (FORMS, "a report")
    if text not in allowed:
        rows = f"; as rows: {ROWS}" if listed else ""
        raise UsageError(f"-o {text!r} is not a format of {what}; choose one of {', '.join(allowed)}{rows}")


def _check_options(fail_on: str, out: Path | None, *, sends_dry: bool) -> None:
    """Refuse what cannot be done before anything is."""
    if fail_on not in ("", *FAIL_ON):
        raise UsageError(f"--fail-on {fail_on!r} is not known; give {' or '.join(FAIL_ON)}")
    if out is not None and out.exists() and not out.is_dir():
        raise UsageError(f"--out {out} is a file; give a folder")
    if sends_dry:
        raise UsageError("--dry-run sends nothing; remove it or --channel")


def nightly(
    context: Context,
    project: Annotated[str, Option(help="Only this project; default: one report for all projects.")] = "",
    date: Annotated[str, Option(help="Day of the report, as YYYY-MM-DD in the zone; default: today.")] = "",
    zone: Annotated[str, Option(help="Time zone in which the day ends, such as Europe/Berlin.")] = "UTC",
    out: Annotated[
        Path | None,
        Option(help="Also write it to this folder as text, Markdown, HTML, JSON, JUnit XML and SARIF.", metavar="DIR"),
    ] = None,
    dry_run: Annotated[bool, Option("--dry-run", help="Store neither the report nor findings.")] = False,
    fail_on: Annotated[str, Option(help="Exit with 1 on any new finding (new), or only on regressions (worse).")] = "",
    channel: Annotated[list[str], Option(help="Send it to this channel of PROFSVC_CHANNELS; repeatable.")] = [],
    listed: Annotated[bool, Option("--list", help="Only list stored reports and their deliveries.")] = False,
    output: Annotated[
        str,
        Option(
            "-o",
            "--output",
            help="text, md, html, json, junit, github, sarif; of --list text or json.",
            metavar="FORM",
        ),
    ] = "text",
) -> None:
    """Report what changed since the last report, worst first.

    Each kernel, power window and file of new runs is compared with its history: duration, criteria, potential, power
    and energy at one temperature, data quality. Changes are stored as findings. A second report of the same night
    replaces the first.

    Examples:

      profsvc report nightly

      profsvc report nightly --project lab --zone Europe/Berlin --out reports --fail-on worse

      profsvc report nightly --date 2026-11-20 --dry-run -o md

      profsvc report nightly -o github

      profsvc report nightly --list
    """
    from profsvc import channels
    from profsvc.analysis.changes.open_findings import OPEN_STATES
    from profsvc.pipeline.nightly import report_of_night
    from profsvc.reports.nightly import formats as nightly_formats

    _check_form(output, listed=listed)
    if listed:
        _list(context, project or None, output)
        return
    _check_options(fail_on, out, sends_dry=dry_run and bool(channel))
    service = open_service(context)
    if service and channel:
        raise UsageError(
            "--channel needs a store: give one with --store, or let the service send it with "
            "profsvc schedule add nightly --channel"
        )
    to = channels.select_channels(load_channels(), channel)
    engine = None
    if service:
        document = service.nightly(project=project or None, date=date or None, zone=zone, dry_run=dry_run)
    else:
        engine = open_engine(context, only_reads=dry_run)
        document = report_of_night(engine, project or None, date or None, zone, dry_run=dry_run)
    if out is not None:
        _write(document, out)
    echo(nightly_formats.in_form(document, output, table_width()), nl=False)
    if dry_run:
        print_message("dry run: nothing was stored")
    undelivered = _send(engine, document, to) if engine is not None else []
    open_ = [row for row in document["findings"] if row["state"] in OPEN_STATES]
    broken = [row for row in open_ if fail_on == "new" or row["worse"] == 1]
    lost = f"the report is stored, but was not delivered to {', '.join(undelivered)}"
    if fail_on and broken:  # the findings were asked for first
        if undelivered:
            print_message(f"Error: {lost}", kind="error")
        raise Exit(1)
    if undelivered:
        raise ServiceError(lost)


def _list(context: Context, project: str | None, output: str) -> None:
    """Print the newest reports and their deliveries."""
    from profsvc.reports.rows import visible
    from profsvc.views.nightly import report as report_view

    service = open_service(context)
    found = (
        service.reports(project)
        if service
        else report_view.reports_with_deliveries(open_engine(context, only_reads=True), project)
    )
    if output == "json":
        print_json(found)
        return
    for row in found["reports"]:
        lines = [f"{row['night']}  {row['project'] or 'all'}  report {row['report_id']}: {row['one_line']}"]
        lines += [f"  {report_view.sent(one)}" for one in row["deliveries"]]
        echo("\n".join(map(visible, lines)))
    if not found["reports"]:
        print_message("no stored report; create one with: profsvc report nightly")
    if found["truncated"]:
        print_message(f"only the newest {len(found['reports'])} reports; v1_reports and v1_deliveries hold all")


def _send(engine: "Engine", document: "Mapping[str, Any]", to: "Sequence[Channel]") -> list[str]:
    """Send a report to channels and store the outcomes; return the channels that did not get it."""
    from profsvc.pipeline import delivery

    done = delivery.deliver(engine, document, to, current_user())
    for one in done:
        print_message(f"{one.channel}: {'delivered' if one.delivered else 'not delivered'}: {one.outcome}")
    return [one.channel for one in done if not one.delivered]


def _write(document: "Mapping[str, Any]", folder: Path) -> None:
    """Write every format of a report into a folder."""
    from profsvc.reports.export import new_file
    from profsvc.reports.nightly import formats as nightly_formats

    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ServiceError(f"{folder}: cannot be created: {error.strerror}") from None
    for form, ending in ENDINGS.items():
        file = folder / f"nightly-{document['night']}.{ending}"
        with new_file(file) as stream:
            stream.write(nightly_formats.in_form(document, form).encode("utf-8", "backslashreplace"))
        print_message(f"written: {file}")
