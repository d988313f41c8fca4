"""What can be scheduled: a table of kinds, each with its arguments and its work. A kind is one row and one function."""

import re
import shutil
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

from sqlalchemy import Engine

from profsvc import channels, store
from profsvc.analysis.clocks import zone_of
from profsvc.errors import NotFoundError, ServiceError, UsageError, counted

DELIVERED = "delivered"
BACKUP = re.compile(r"profsvc-\d{4}-\d\d-\d\dT\d{4}Z(-\d+)?\.(sqlite|dump)")


class Job(NamedTuple):
    """A slot at work: what it works on, what it was told, when it was due, and what of it is done already.

    ``note`` keeps what each channel made of it; it raises where the slot is somebody else's by now. ``by`` is
    who works.
    """

    engine: Engine
    files: store.Files
    channels: Mapping[str, channels.Channel]
    project: str | None
    zone: str
    arguments: Mapping[str, Any]
    due_at: datetime
    attempts: int
    deliveries: Mapping[str, str]
    note: Callable[[Mapping[str, str]], None]
    by: str = "a schedule"


class Argument(NamedTuple):
    """An argument of a kind: what it is where it is not given (None: it must be), how its text is read, and words."""

    default: Any
    read: Callable[[str], Any]
    words: str


class Kind(NamedTuple):
    """Something that can be scheduled; its work returns a sentence on what came of it."""

    sentence: str
    work: Callable[[Job], str]
    arguments: Mapping[str, Argument]
    takes_project: bool = False


def _name(text: str) -> str:
    if not text.strip():
        raise ValueError
    return text


def _age(text: str) -> str:
    store.read_age(text)
    return text


def _number(text: str) -> int:
    if not 1 <= (number := int(text)) <= 10_000:
        raise ValueError
    return number


def _switch(text: str) -> bool:
    return {"yes": True, "no": False}[text]


def nightly(job: Job) -> str:
    """Make the report of the night that the slot lies in, and send it to the channels that have not got it yet."""
    from profsvc.pipeline import delivery, night

    wanted = channels.chosen(job.channels, job.arguments["channel"])
    document = night.report_of_night(job.engine, job.project, job.due_at.astimezone(zone_of(job.zone)).date(), job.zone)
    said, failed = dict(job.deliveries), []
    waiting = [channel for channel in wanted if not said.get(channel.name, "").startswith(DELIVERED)]
    left = channels.Time(len(waiting))
    for channel in waiting:
        (done,) = delivery.deliver(job.engine, document, [channel], job.by, left.share())
        reason = channels.told(done)
        said[channel.name] = f"{DELIVERED if done.delivered else 'failed'} {done.at}" + (
            f": {reason}" if reason else ""
        )
        job.note(said)
        failed += [] if done.delivered else [f"{channel.name}: {reason}"]
    if failed:
        raise ServiceError(
            f"{document['one_line']}; the report is stored, but was not delivered to {'; '.join(failed)}"
        )
    return str(document["one_line"])


def prune(job: Job) -> str:
    """Delete old runs, which can be had back until they are vacuumed, and what uploads that were killed left behind."""
    tags = {
        key: value if given else None for key, given, value in (t.partition("=") for t in job.arguments["keep_tagged"])
    }
    runs = store.aged_runs(job.engine, store.read_age(job.arguments["older_than"]), job.project, tags)
    for run in runs:
        store.delete_run(job.engine, run["run_id"])
    freed = counted(store.sweep(job.engine, job.files), "byte")
    return f"{counted(len(runs), 'run')} deleted, {freed} of leftovers removed"


def vacuum(job: Job) -> str:
    """Remove for good what was deleted, and give its space back."""
    of_files, of_database = (counted(freed, "byte") for freed in store.vacuum(job.engine, job.files))
    return f"{of_files} of kept files and {of_database} of the database are free again"


def backup(job: Job) -> str:
    """Copy the store into a folder under the time of the slot, and remove the oldest copies beyond those to keep."""
    folder = Path(job.arguments["folder"])
    again = f"-{job.attempts}" if job.attempts > 1 else ""  # an earlier try may have left a copy without its files
    end = "dump" if store.is_server_of(job.engine) else "sqlite"
    target = folder / f"profsvc-{job.due_at.strftime('%Y-%m-%dT%H%M')}Z{again}.{end}"
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        done = store.backup(job.engine, target, job.files if job.arguments["with_files"] else None)
        copies = sorted(path for path in folder.iterdir() if BACKUP.fullmatch(path.name))
        removed = copies[: -job.arguments["keep"]]
        for path in removed:
            path.unlink()
            shutil.rmtree(f"{path}.files", ignore_errors=True)
    except OSError as error:
        raise ServiceError(f"{folder} does not take the backup: {error.strerror}") from None
    held = ", ".join(f"{name.replace('_', ' ')}: {count}" for name, count in done.rows.items() if count) or "no rows"
    gone = f"; {counted(len(removed), 'older copy')} removed" if removed else ""
    return f"{target}: whole; {held}{gone}"


KINDS: Mapping[str, Kind] = {
    "nightly": Kind(
        "The report of the night: what changed since the one before, sent to channels.",
        nightly,
        {"channel": Argument([], _name, "a channel of the file of PROFSVC_CHANNELS, again for more")},
        takes_project=True,
    ),
    "prune": Kind(
        "Deletes runs without a new file for some time.",
        prune,
        {
            "older_than": Argument(None, _age, "how long, such as 90d"),
            "keep_tagged": Argument([], _name, "KEY or KEY=VALUE, runs with this tag stay; again for more"),
        },
        takes_project=True,
    ),
    "vacuum": Kind("Removes for good what was deleted.", vacuum, {}),
    "backup": Kind(
        "Copies the store into a folder.",
        backup,
        {
            "folder": Argument(None, _name, "a folder"),
            "with_files": Argument(False, _switch, "yes or no: with the kept bytes of uploads"),
            "keep": Argument(7, _number, "how many copies stay, 1 to 10000"),
        },
    ),
}


def kind_of(name: str) -> Kind:
    """Return the kind of this name."""
    if name not in KINDS:
        raise NotFoundError.near("kind of schedule", name, KINDS)
    return KINDS[name]


def checked(name: str, project: str | None, said: Iterable[tuple[str, str]]) -> dict[str, Any]:
    """Return the arguments of a kind as its work takes them; raise `UsageError` for what it does not take."""
    kind = kind_of(name)
    if project is not None and not kind.takes_project:
        raise UsageError(f"{name} is about every project; leave out --project")
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
