"""``watch``: files that arrive in a folder are uploaded, and moved to ``done`` or ``failed``."""

import contextlib
import dataclasses
import errno
import os
import threading
from collections.abc import Iterator, Mapping, Sequence
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, BinaryIO, NamedTuple

import typer

from profsvc.cli.common import describe, pairs, say
from profsvc.cli.schedule import stopping
from profsvc.cli.upload import OF_FILE, one, taking, written_at
from profsvc.errors import InputError, NotFoundError, PartlyStoredError, ServiceError, UsageError, counted

if TYPE_CHECKING:
    from profsvc.cli.upload import Take
    from profsvc.pipeline import Progress, Verdict
    from profsvc.store import RunInfo

DONE, FAILED, REASON = "done", "failed", ".reason.txt"
# Names of files that somebody is still writing, as editors, browsers and copying programs give them.
UNFINISHED = (".part", ".partial", ".tmp", ".temp", ".swp", ".crdownload", ".filepart", "~")
SETTLED_POLLS = 2


class Seen(NamedTuple):
    """What a poll sees of a file; as long as that changes somebody writes it."""

    size: int
    modified_ns: int
    number: int


class Watch:
    """What a watch knows of its folder: nothing that a new one would not find out again."""

    def __init__(self, folder: Path, *, dated: bool = False) -> None:
        """Take the folder whose files and whose folders' files are taken, ``dated`` by when each was written."""
        self.folder = folder
        self.dated = dated
        self._seen: dict[Path, tuple[Seen, int]] = {}
        self._refused: dict[Path, Seen] = {}

    def settled(self) -> list[Path]:
        """Look once; return the files that were the same in the last polls, oldest first."""
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

    def number(self, path: Path) -> int:
        """Return the number that the file system gave to a file that was looked at."""
        return self._seen[path][0].number

    def leave(self, path: Path) -> None:
        """Leave a file that cannot be moved where it is, until it changes."""
        self._refused[path] = self._seen[path][0]

    def _files(self) -> Iterator[tuple[Path, Seen]]:
        kept = {self.folder / DONE, self.folder / FAILED}
        for place, folders, names in os.walk(self.folder):
            here = Path(place)
            folders[:] = [name for name in folders if not name.startswith(".") and here / name not in kept]
            for name in names:
                if name.startswith((".", "~")) or name.lower().endswith(UNFINISHED):
                    continue
                with contextlib.suppress(OSError):
                    about = (here / name).lstat()
                    if (here / name).is_file() and not (here / name).is_symlink():
                        yield here / name, Seen(about.st_size, about.st_mtime_ns, about.st_ino)


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
            if made := _made(place, {name: b""} | {name + end: words for end, words in said.items()}):
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
    context: typer.Context,
    folder: Annotated[Path, typer.Argument(help="Folder that files arrive in.")],
    run: Annotated[
        str, typer.Option(help="Run of every file; default: the name of its sub-folder, else its own.")
    ] = "",
    project: Annotated[str, typer.Option(help="Project of the runs.")] = "default",
    device: Annotated[str, typer.Option(help="Device, where the files do not name it.")] = "",
    tag: Annotated[list[str], typer.Option(help="key=value, kept with the runs; may be repeated.")] = [],
    at: Annotated[
        str, typer.Option(help="file: date each file by when it was last written, not by when it is taken.")
    ] = "",
    timezone: Annotated[str, typer.Option(help="Zone of the clock of logs that name none.")] = "",
    every: Annotated[float, typer.Option(min=0.05, help="Seconds from one look to the next.")] = 5.0,
    once: Annotated[bool, typer.Option("--once", help="Take what is there and settled, then end: for cron.")] = False,
) -> None:
    """Upload every file that arrives in a folder, then move it to its done, or its failed with the reason beside it.

    A file is taken when two looks in a row find the same size and time of it; hidden files and names of unfinished ones
    (.part, .tmp, ...) are left alone. Looking works on network file systems too. What is stopped goes on where it was
    when it is started again: nothing is lost, for the same bytes are stored once. Files in a sub-folder are one run,
    of its name.

    Examples:

      profsvc watch /data/incoming --project nightly

      profsvc watch /data/incoming --once

      PROFSVC_URL=http://profsvc.lab:8765 profsvc watch results/ --every 30
    """
    from profsvc import pipeline, store

    if not folder.is_dir():
        raise NotFoundError(f"no folder {str(folder)!r}; give one that files arrive in")
    if at not in ("", OF_FILE):
        raise UsageError(f"--at {at!r} is one time for all files; watch takes --at file")
    info = store.RunInfo(project=project, name=run or None, device=device or None, tags=pairs("--tag", tag))
    take = taking(context, pipeline.Reading(None, timezone or None), keeps=False)
    seen, counts = Watch(folder, dated=at == OF_FILE), {DONE: 0, FAILED: 0}
    with stopping() as stop:
        say(
            f"{folder}: "
            + ("looking once" if once else f"looking every {every:g} s; Ctrl-C ends it after the file at work")
        )
        seen.settled()
        while not stop.wait(every):
            ready = seen.settled()
            _take_all(seen, ready, take, info, counts, stop)
            if once:
                break
    say(f"{folder}: {counted(counts[DONE], 'file')} stored, {counts[FAILED]} refused")
    if once and counts[FAILED]:
        raise PartlyStoredError(f"{counted(counts[FAILED], 'file')} refused; see {folder / FAILED}, with the reasons")


def _take_all(
    seen: Watch, ready: list[Path], take: "Take", info: "RunInfo", counts: dict[str, int], stop: threading.Event
) -> None:
    """Take the files one after the other; stop between two of them, or where the store or the service is away."""
    for path in ready:
        if stop.is_set():
            return
        name = str(path.relative_to(seen.folder))
        try:
            where, reason, said = _taken(seen, path, take, run_of(seen.folder, path, info))
        except ServiceError as error:
            say(f"{name}: {error}; it stays and is tried again")
            return
        say(said)
        try:
            moved(seen.folder, path, where, reason)
        except OSError as error:
            seen.leave(path)
            say(f"{name}: {seen.folder / where} does not take it ({error.strerror}), so it stays; check its rights")
        counts[where] += 1


def _taken(seen: Watch, path: Path, take: "Take", info: "RunInfo") -> tuple[str, str, str]:
    """Upload a file that was looked at; return where it goes to, the reason if it is refused, and what to say."""

    def work(stream: BinaryIO, name: str, progress: "Progress | None") -> "Verdict | None":
        about = os.fstat(stream.fileno())
        if about.st_ino != seen.number(path):  # a link to what its owner may not read, perhaps
            raise InputError("it was changed for a link or another file while it was looked at; put the file there")
        return take(stream, name, progress, dataclasses.replace(info, at=written_at(about)) if seen.dated else info)

    try:
        verdict = one(str(path), work)
    except (InputError, UsageError, NotFoundError) as error:
        return FAILED, str(error), f"{path}: refused: {error}"
    assert verdict is not None, "what has to wait is an error here"
    return DONE, "", describe(verdict, checked=False)


def register(app: typer.Typer) -> None:
    """Add the command of this file."""
    app.command()(watch)
