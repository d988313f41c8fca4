"""``watch``: upload the files of a folder and move them to ``done`` or ``failed``."""

import contextlib
import dataclasses
import errno
import os
import stat
import threading
from collections.abc import Iterator, Mapping, Sequence
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, BinaryIO, NamedTuple

from click import Context

from profsvc.cli.console.common import describe_upload, parse_pairs, print_message
from profsvc.cli.console.declaration import Argument, Group, Option
from profsvc.cli.load.upload import OF_FILE, one, taking, written_at
from profsvc.cli.service.schedule import stop_on_signal
from profsvc.errors import InputError, NotFoundError, PartlyStoredError, ServiceError, UsageError, counted

if TYPE_CHECKING:
    from profsvc.cli.load.upload import Take
    from profsvc.pipeline import ImportResult, Progress
    from profsvc.store import RunInfo

DONE, FAILED, REASON = "done", "failed", ".reason.txt"
# Names of unfinished files, as editors, browsers and copying programs give them.
UNFINISHED = (".part", ".partial", ".tmp", ".temp", ".swp", ".crdownload", ".filepart", "~")
SETTLED_POLLS = 2
LINK = "it is a link, which is not followed; move the file or folder itself here"


class Seen(NamedTuple):
    """What a poll sees of a file; as long as that changes somebody writes it."""

    size: int
    modified_ns: int
    number: int


class Watch:
    """The state of a watched folder; a new instance can rebuild all of it."""

    def __init__(self, folder: Path, *, dated: bool = False) -> None:
        """Take the folder whose files and whose folders' files are taken, ``dated`` by when each was written."""
        self.folder = folder
        self.dated = dated
        self._seen: dict[Path, tuple[Seen, int]] = {}
        self._refused: dict[Path, Seen] = {}
        self._passed: dict[Path, str] = {}
        self._told: dict[Path, str] = {}

    def settled(self) -> list[Path]:
        """Poll once; return the files that were stable in the last polls, oldest first."""
        self._passed = {}
        found = dict(self._files())
        polls = {
            path: (seen, self._seen[path][1] + 1 if path in self._seen and self._seen[path][0] == seen else 1)
            for path, seen in found.items()
        }
        self._seen = polls
        ready = [
            path for path, (seen, count) in polls.items() if count >= SETTLED_POLLS and self._refused.get(path) != seen
        ]
        return sorted(ready, key=lambda path: (found[path].modified_ns, path))

    def passed(self) -> Iterator[tuple[Path, str]]:
        """Yield what the last poll found and did not take, and why; each is said once as long as it is there."""
        told, self._told = self._told, self._passed
        yield from sorted(self._passed.items() - told.items())

    def number(self, path: Path) -> int:
        """Return the number that the file system gave to a file that was looked at."""
        return self._seen[path][0].number

    def leave(self, path: Path) -> None:
        """Leave a file that cannot be moved where it is, until it changes."""
        self._refused[path] = self._seen[path][0]

    def _files(self) -> Iterator[tuple[Path, Seen]]:
        kept = {self.folder / DONE, self.folder / FAILED}
        for place, folders, names in os.walk(self.folder, onerror=self._unlisted):
            here = Path(place)
            folders[:] = [name for name in folders if not name.startswith(".") and here / name not in kept]
            self._passed |= {here / name: LINK for name in folders if (here / name).is_symlink()}
            for name in names:
                if name.startswith((".", "~")) or name.lower().endswith(UNFINISHED):
                    continue
                with contextlib.suppress(OSError):
                    about = (here / name).lstat()
                    if (here / name).is_symlink():
                        self._passed[here / name] = LINK
                    elif (here / name).is_file():
                        yield here / name, Seen(about.st_size, about.st_mtime_ns, about.st_ino)
                    else:
                        self._passed[here / name] = "it is a pipe, a socket or a device, not a file"

    def _unlisted(self, error: OSError) -> None:
        self._passed[Path(error.filename)] = f"its files cannot be listed: {error.strerror}"


def run_of(folder: Path, path: Path, info: "RunInfo") -> "RunInfo":
    """Return the run of a file: the one that was named, else that of its sub-folder, else one named after the file."""
    inside = path.relative_to(folder).parts[:-1]
    if info.name or not inside:
        return info
    return dataclasses.replace(info, name=os.fsencode("/".join(inside)).decode("utf-8", "backslashreplace"))


def moved(folder: Path, path: Path, where: str, reason: str = "") -> Path:
    """Move a file to ``done`` or ``failed``, under a name that is free, with the reason beside it.

    Whoever may put files into the folder may put links there too: nothing is written through one.
    """
    inside = Path(where) / path.relative_to(folder)
    stem, *suffixes = inside.name.split(".")
    said = {REASON: f"{reason}\n".encode("utf-8", "backslashreplace")} if reason else {}
    with _place(folder, inside.parent.parts) as place:
        for number in count(1):
            name = ".".join([f"{stem}-{number}" if number > 1 else stem, *suffixes])
            made = _made(place, {name: b""} | {name + end: words for end, words in said.items()})
            if made or (not reason and _is_empty(place, name)):
                break
        try:
            os.rename(path, name, dst_dir_fd=place)  # a `Path` knows no place but its own name
        except OSError:
            for one in made:
                os.unlink(one, dir_fd=place)
            raise
    return folder / inside.parent / name


@contextlib.contextmanager
def _place(folder: Path, parts: Sequence[str]) -> Iterator[int]:
    """Give a folder inside another, made where it is not there; one that is a link, or somebody else's, is refused."""
    place = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        for part in parts:
            with contextlib.suppress(FileExistsError):
                os.mkdir(part, dir_fd=place)
            inner = os.open(part, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=place)
            os.close(place)
            place = inner
            if os.fstat(place).st_uid not in (os.geteuid(), 0):
                raise PermissionError(errno.EPERM, f"{part!a} belongs to another user")
        yield place
    finally:
        os.close(place)


def _is_empty(place: int, name: str) -> bool:
    """Return whether a file is what a kill left between its making and the move: a file that was stored has bytes."""
    about = os.stat(name, dir_fd=place, follow_symlinks=False)
    return stat.S_ISREG(about.st_mode) and about.st_size == 0


def _made(place: int, contents: Mapping[str, bytes]) -> list[str]:
    """Make files that were not there, and return their names; none if one of them was."""
    made: list[str] = []
    try:
        for name, words in contents.items():
            handle = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o644, dir_fd=place)
            made.append(name)
            with os.fdopen(handle, "wb") as file:
                file.write(words)
    except BaseException as error:
        for name in made:
            os.unlink(name, dir_fd=place)
        if isinstance(error, FileExistsError):
            return []
        raise
    return made


def watch(
    context: Context,
    folder: Annotated[Path, Argument(help="Folder to watch.")],
    run: Annotated[
        str | None, Option(help="Run of every file; default: named after its subfolder, else after the file.")
    ] = None,
    project: Annotated[str, Option(help="Project of the runs.")] = "default",
    device: Annotated[str, Option(help="Device, where the files do not name it.")] = "",
    tag: Annotated[list[str], Option(help="Tag of the runs, such as branch=main; repeatable.")] = [],
    at: Annotated[str, Option(help="'file': date each file by its modification time.")] = "",
    timezone: Annotated[str, Option(help="Time zone of logs that name none.")] = "",
    every: Annotated[float, Option(min=0.05, help="Seconds between two polls.")] = 5.0,
    once: Annotated[bool, Option("--once", help="Upload what is there, then exit; for cron.")] = False,
) -> None:
    """Watch a folder: upload new files, move them to done/ or failed/ (with a .reason.txt file).

    A file is uploaded once its size and modification time are stable between two polls. Hidden and unfinished files
    (.part, .tmp, ...) are skipped. Links are named and not followed. Polling works on network file systems. If
    interrupted, it resumes on the next start; duplicate files are ignored. The files of a subfolder become one run
    with its name.

    Examples:

      profsvc watch /data/incoming --project nightly

      profsvc watch /data/incoming --once

      PROFSVC_URL=http://profsvc.lab:8765 profsvc watch results/ --every 30
    """
    from profsvc import pipeline, store

    if not folder.is_dir():
        raise NotFoundError(f"no folder {str(folder)!r}; give an existing folder")
    if at not in ("", OF_FILE):
        raise UsageError(f"--at {at!r} is one time for all files; watch takes --at file")
    info = store.RunInfo(project=project, name=run, device=device or None, tags=parse_pairs("--tag", tag))
    store.check_run_names(info)
    take = taking(context, pipeline.ReadOptions(None, timezone or None), keeps=False, several=False).take
    seen, counts = Watch(folder, dated=at == OF_FILE), {DONE: 0, FAILED: 0}
    with stop_on_signal() as stop:
        print_message(
            f"{folder}: "
            + ("polling once" if once else f"polling every {every:g} s; Ctrl-C stops after the current file")
        )
        seen.settled()
        while not stop.wait(every):
            ready = seen.settled()
            for path, reason in seen.passed():
                print_message(f"{path}: left where it is: {reason}")
            _take_all(seen, ready, take, info, counts, stop)
            if once:
                break
    print_message(f"{folder}: {counted(counts[DONE], 'file')} stored, {counts[FAILED]} refused")
    if once and counts[FAILED]:
        raise PartlyStoredError(f"{counted(counts[FAILED], 'file')} refused; see {folder / FAILED}, with the reasons")


def _take_all(
    seen: Watch, ready: list[Path], take: "Take", info: "RunInfo", counts: dict[str, int], stop: threading.Event
) -> None:
    """Upload the files one by one; stop between two of them, or while the store or service is unreachable."""
    for path in ready:
        if stop.is_set():
            return
        name = str(path.relative_to(seen.folder))
        if not os.path.lexists(path):
            print_message(f"{name}: it was removed before its turn, and nothing of it is stored")
            continue
        try:
            where, reason, said = _taken(seen, path, take, run_of(seen.folder, path, info))
        except ServiceError as error:
            print_message(f"{name}: {error}; it stays and will be retried")
            return
        print_message(said)
        try:
            moved(seen.folder, path, where, reason)
        except OSError as error:
            seen.leave(path)
            print_message(
                f"{name}: {seen.folder / where} cannot be written ({error.strerror}); the file stays, check permissions"
            )
        counts[where] += 1


def _taken(seen: Watch, path: Path, take: "Take", info: "RunInfo") -> tuple[str, str, str]:
    """Upload a file; return its target folder, the reason if it was refused, and the message."""

    def work(stream: BinaryIO, name: str, progress: "Progress | None") -> "ImportResult | None":
        about = os.fstat(stream.fileno())
        if about.st_ino != seen.number(path):  # a link to what its owner may not read, perhaps
            raise InputError("it was replaced by a link or another file while it was read; copy the file again")
        own = dataclasses.replace(info, at=written_at(about)) if seen.dated else info
        return take(stream, name, progress, own, False)

    try:
        verdict = one(str(path), work)
    except (InputError, UsageError, NotFoundError) as error:
        return FAILED, str(error), f"{path}: refused: {error}"
    assert verdict is not None, "files are never queued here"
    return DONE, "", describe_upload(verdict, checked=False)


def register(app: Group) -> None:
    """Add the command of this file."""
    app.function()(watch)
