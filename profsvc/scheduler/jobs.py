"""What can be scheduled: a table of kinds, each with its arguments and its work. A kind is one row and one function."""

import re
import shutil
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

from sqlalchemy import Engine

from profsvc import channels, store
from profsvc.analysis.timezones import time_zone
from profsvc.errors import NotFoundError, ServiceError, UsageError, counted

DELIVERED = "delivered"
BACKUP_NAME = re.compile(r"profsvc-\d{4}-\d\d-\d\dT\d{4}Z(-\d+)?\.(sqlite|dump)")


class Job(NamedTuple):
    """A running slot: its inputs, arguments, due time, and what earlier attempts completed.

    ``note`` keeps a delivery and what each channel made of it; it raises where the slot is somebody else's by now.
    ``by`` is who works.
    """

    engine: Engine
    files: store.BlobStore
    channels: Mapping[str, channels.Channel]
    project: str | None
    zone: str
    arguments: Mapping[str, Any]
    due_at: datetime
    attempts: int
    deliveries: Mapping[str, str]
    note: Callable[[Mapping[str, str], store.Delivery], None]
    by: str = "a schedule"


class Argument(NamedTuple):
    """An argument of a kind: what it is where it is not given (None: it must be), how its text is read, and words."""

    default: Any
    read: Callable[[str], Any]
    words: str


class JobKind(NamedTuple):
    """Something that can be scheduled; its work returns a sentence on what came of it."""

    sentence: str
    work: Callable[[Job], str]
    arguments: Mapping[str, Argument]
    takes_project: bool = False


def _parse_text(text: str) -> str:
    if not text.strip():
        raise ValueError
    return text


def _parse_age(text: str) -> str:
    try:
        age = store.read_age(text)
    except UsageError:
        raise ValueError from None
    if not age:  # no one is asked, and it would delete every run
        raise ValueError
    return text


def _parse_count(text: str) -> int:
    if not 1 <= (number := int(text)) <= 10_000:
        raise ValueError
    return number


def _parse_yes_no(text: str) -> bool:
    return {"yes": True, "no": False}[text]


def nightly(job: Job) -> str:
    """Make the report of the night that the slot lies in, and send it to the channels that have not got it yet."""
    from profsvc.pipeline import delivery
    from profsvc.pipeline import nightly as night

    wanted = channels.select_channels(job.channels, job.arguments["channel"])
    document = night.report_of_night(
        job.engine, job.project, job.due_at.astimezone(time_zone(job.zone)).date(), job.zone
    )
    said, failed = dict(job.deliveries), []
    waiting = [channel for channel in wanted if not said.get(channel.name, "").startswith(DELIVERED)]
    left = channels.TimeBudget(len(waiting))

    def keep(done: store.Delivery) -> None:
        reason = f": {done.message}" if done.message else ""
        said[done.channel] = f"{DELIVERED if done.delivered else 'failed'} {done.sent_at}{reason}"
        job.note(said, done)

    for channel in waiting:
        (done,) = delivery.deliver(job.engine, document, [channel], job.by, left.share(), keep)
        failed += [] if done.delivered else [f"{channel.name}: {channels.public_outcome(done)}"]
    if failed:
        raise ServiceError(
            f"{document['one_line']}; the report is stored, but was not delivered to {'; '.join(failed)}"
        )
    return str(document["one_line"])


def prune(job: Job) -> str:
    """Delete old runs, which can be restored until they are vacuumed, and leftovers of interrupted uploads."""
    tags = {
        key: value if given else None for key, given, value in (t.partition("=") for t in job.arguments["keep_tagged"])
    }
    runs = store.aged_runs(job.engine, store.read_age(job.arguments["older_than"]), job.project, tags)
    deleted = store.delete_aged_runs(job.engine, runs)
    freed = counted(store.remove_unneeded(job.engine, job.files), "byte")
    return f"{counted(len(deleted), 'run')} deleted, {freed} of leftovers removed"


def vacuum(job: Job) -> str:
    """Permanently remove deleted uploads, and free their space."""
    of_files, of_database = (counted(freed, "byte") for freed in store.vacuum(job.engine, job.files))
    return f"{of_files} of kept files and {of_database} of the database freed"


def backup(job: Job) -> str:
    """Copy the store into a folder under the time of the slot, and remove the oldest copies beyond those to keep."""
    folder = Path(job.arguments["folder"])
    again = f"-{job.attempts}" if job.attempts > 1 else ""  # an earlier try may have left a copy without its files
    end = "dump" if store.is_server_of(job.engine) else "sqlite"
    target = folder / f"profsvc-{job.due_at.strftime('%Y-%m-%dT%H%M')}Z{again}.{end}"
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        done = store.backup(job.engine, target, job.files if job.arguments["with_files"] else None)
        copies = sorted(path for path in folder.iterdir() if BACKUP_NAME.fullmatch(path.name))
        removed = copies[: -job.arguments["keep"]]
        for path in removed:
            path.unlink()
            shutil.rmtree(f"{path}.files", ignore_errors=True)
    except OSError as error:
        raise ServiceError(f"{folder} cannot store the backup: {error.strerror}") from None
    held = ", ".join(f"{name.replace('_', ' ')}: {count}" for name, count in done.rows.items() if count) or "no rows"
    gone = f"; {counted(len(removed), 'older copy')} removed" if removed else ""
    return f"{target}: whole; {held}{gone}"


KINDS: Mapping[str, JobKind] = {
    "nightly": JobKind(
        "The report of the night: what changed since the one before, sent to channels.",
        nightly,
        {"channel": Argument([], _parse_text, "a channel of the file of PROFSVC_CHANNELS, again for more")},
        takes_project=True,
    ),
    "prune": JobKind(
        "Deletes runs that were added, and got their last file, some time ago.",
        prune,
        {
            "older_than": Argument(None, _parse_age, "at least 1h, in h, d or w, such as 90d"),
            "keep_tagged": Argument([], _parse_text, "KEY or KEY=VALUE, runs with this tag stay; again for more"),
        },
        takes_project=True,
    ),
    "vacuum": JobKind("Removes for good what was deleted.", vacuum, {}),
    "backup": JobKind(
        "Copies the store into a folder.",
        backup,
        {
            "folder": Argument(None, _parse_text, "a folder"),
            "with_files": Argument(False, _parse_yes_no, "yes or no: with the kept bytes of uploads"),
            "keep": Argument(7, _parse_count, "how many copies stay, 1 to 10000"),
        },
    ),
}


def job_kind(name: str) -> JobKind:
    """Return the kind of this name."""
    if name not in KINDS:
        raise NotFoundError.near("kind of schedule", name, KINDS)
    return KINDS[name]


def parse_arguments(name: str, project: str | None, said: Iterable[tuple[str, str]]) -> dict[str, Any]:
    """Return the arguments of a kind as its work takes them; raise `UsageError` for what it does not take."""
    kind = job_kind(name)
    if project is not None and not kind.takes_project:
        raise UsageError(f"{name} always covers every project; remove --project")
    found: dict[str, Any] = {key: argument.default for key, argument in kind.arguments.items()}
    for key, text in said:
        if key not in found:
            raise UsageError(f"{name} takes no {key!r}; it takes {', '.join(found) or 'nothing'}")
        argument = kind.arguments[key]
        try:
            value = argument.read(text)
        except (ValueError, KeyError):
            raise UsageError(f"{key}={text!r} must be {argument.words}") from None
        found[key] = [*found[key], value] if isinstance(argument.default, list) else value
    for key, value in found.items():
        if value is None:
            raise UsageError(f"{name} needs {key}: --set {key}=..., {kind.arguments[key].words}")
    return found
