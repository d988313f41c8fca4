"""``sync`` and uploads to a service: queued while it is unreachable."""

import dataclasses
import secrets
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, BinaryIO, cast

from click import Context

from profsvc.cli.console.common import describe_upload, open_service, print_message
from profsvc.cli.console.declaration import Group
from profsvc.errors import PartlyStoredError, ProfsvcError, ServiceError, UsageError, counted

if TYPE_CHECKING:
    from profsvc.client import Client
    from profsvc.pipeline import ImportResult, Progress, ReadOptions
    from profsvc.store import RunInfo

WAITS = "the service cannot take it now; queued in {}; the next upload sends it, or: profsvc sync ({})"


def sending(
    service: "Client", how: "ReadOptions", keeps: bool = True
) -> "Callable[[BinaryIO, str, Progress | None, RunInfo, bool], ImportResult | None]":
    """Return a function that sends a file to a service; it returns None for a queued file, where it ``keeps`` those."""
    # Files of an unnamed run stay together although the service has not named it yet. One whose
    # answer was lost is there already, in a run of its own.
    common = {"run": f"waited-{secrets.token_hex(4)}", "anywhere": 1}
    waited = False

    def send(
        stream: BinaryIO, name: str, progress: "Progress | None", info: "RunInfo", more: bool
    ) -> "ImportResult | None":
        nonlocal waited
        options, unnamed = _options(info, how), not (info.name or info.run_id)
        if unnamed and waited:
            options |= common
        spool: Any = keeps and (common if unnamed else True)
        with portable(stream, name, how.form) as (content, sent_as, form):
            options |= {"format": form} if form else {}
            said = service.submit(content, file_name=sent_as, spool=spool, progress=progress, more=more, **options)
        if "spooled" in said:
            waited = True
            print_message(f"{name}: {WAITS.format(said['spooled'], said['because'])}")
            return None
        return _verdict(said)

    if keeps:
        with suppress(ProfsvcError):  # the file itself will be told
            _report(service)
    return send


@contextmanager
def portable(stream: BinaryIO, name: str, form: str | None) -> "Iterator[tuple[BinaryIO, str, str | None]]":
    """Give what a service reads without the tools of a vendor: content, file name and format; others as they are."""
    from profsvc.client import protocol
    from profsvc.formats.ncu import report, report_lines
    from profsvc.formats.nsys import report as nsys_report
    from profsvc.formats.parsing.stream import open_stream, peek

    with protocol.rewindable(stream) as (file, _):
        file.seek(0)
        begin, file = peek(file, 64)
        head, content = peek(open_stream(file), len(report.MAGIC))
        if form in (None, report.NAME) and report.sniff(head) and report.package_folder():
            with tempfile.TemporaryFile() as lines:
                lines.writelines(report.lines_of(content))
                lines.seek(0)
                yield cast(BinaryIO, lines), name, report_lines.NAME if form else None
            return
        file.seek(0)
        if form is None and nsys_report.can_export(begin, name):
            with nsys_report.exported(file, name) as database:
                yield database, f"{name}.sqlite", None
            return
        yield file, name, form


def _options(info: "RunInfo", how: "ReadOptions") -> dict[str, Any]:
    """Return the questions of an upload, those alone that say something."""
    said: dict[str, Any] = {
        "run": None if info.run_id else info.name,
        "run_id": info.run_id,
        "project": info.project,
        "device": info.device,
        "commit": info.commit_id,
        "at": info.at,
        "tag": [f"{key}={value}" for key, value in info.tags.items()],
        "format": how.form,
        "timezone": how.zone,
        "clock_offset": how.offset_s,
        "column": list(how.columns),
        "position": list(how.positions),
    }
    return {name: value for name, value in said.items() if value}


def _verdict(said: dict[str, Any]) -> "ImportResult":
    from profsvc.pipeline import ImportResult

    fields = {field.name for field in dataclasses.fields(ImportResult)}
    return ImportResult(**{name: value for name, value in said.items() if name in fields})


def _report(service: "Client") -> tuple[int, int, int]:
    """Send queued uploads and report each; return how many there were, were refused, and stay queued."""
    refused = waits = 0
    verdicts = service.sync()
    for said in verdicts:
        if said["ok"]:
            print_message(describe_upload(_verdict(said), checked=False))
        elif "waits" in said:
            waits += 1
            print_message(f"{said['file_name']}: stays queued: {said['because']}")
        else:
            refused += 1
            print_message(f"{said['file_name']}: refused: {said['refused']}; it is kept as {said['kept']}")
    return len(verdicts), refused, waits


def sync(context: Context) -> None:
    """Send uploads that were queued while the service of PROFSVC_URL was unreachable.

    Example:

      PROFSVC_URL=http://profsvc.lab:8765 profsvc sync
    """
    service = open_service(context)
    if service is None:
        raise UsageError("set PROFSVC_URL to the service that the queued uploads are for")
    every, refused, waits = _report(service)
    if not every:
        print_message(f"nothing is queued for {service.url} in {service.spool}")
    if refused:
        verb = "was" if refused == 1 else "were"
        raise PartlyStoredError(f"{refused} of {counted(every, 'file')} {verb} refused")
    if waits:
        raise ServiceError(f"{waits} of {counted(every, 'file')} could not be sent; try again later")


def register(app: Group) -> None:
    """Add the command of this file."""
    app.function()(sync)
