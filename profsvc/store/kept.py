"""The bytes of uploads as they were given: compressed with zstd, named by their SHA-256, in a folder of the store.

::

    lock                  held by uploads under way together, and by who removes files alone
    spool/<pid>-*.zst     bytes on their way in; a killed upload leaves its own here
    blobs/ab/abcd....zst  bytes of an upload; on disk before its rows are committed

So an upload whose rows are in the store has its bytes here, and a file here without rows is an orphan: its upload was
killed, or failed, before it was committed.
"""

import errno
import hashlib
import os
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from threading import Event
from typing import IO, BinaryIO, cast

import zstandard
from sqlalchemy import Engine, text

from profsvc.errors import NoSpaceError, ServiceError
from profsvc.store import locks
from profsvc.store.arrival import IN_MEMORY, Arrival
from profsvc.store.engine import data_folder, file_of, reading

LEVEL = 1
FREE_BYTES = 1 << 30
SMALL_DISK = 20  # of a small disk this part must stay free, and no more
CHUNK = 1 << 20
WORDS = {"shared": "it removes kept bytes", "alone": "it uploads a file"}


@dataclass(frozen=True)
class Files:
    """The folder of the kept bytes, how much of its disk must stay free, and whether bytes that come in are kept."""

    folder: Path
    free_bytes: int = FREE_BYTES
    keep: bool = True

    @property
    def spool(self) -> Path:
        """Where bytes are on their way in."""
        return self.folder / "spool"

    def blob(self, sha256: str) -> Path:
        """Where the bytes with this SHA-256 lie."""
        return self.folder / "blobs" / sha256[:2] / f"{sha256}.zst"


@contextmanager
def _disk_errors(files: Files) -> Iterator[None]:
    """Turn what the disk says into one sentence."""
    try:
        yield
    except OSError as error:
        full = error.errno in {errno.ENOSPC, errno.EDQUOT}
        what = "no space is left" if full else str(error.strerror or error)
        do = "free some space" if full else "check the folder and your rights to it"
        raise (NoSpaceError if full else ServiceError)(
            f"the bytes of the file cannot be kept in {files.folder}: {what}; nothing was stored; {do} and repeat, "
            "or give PROFSVC_KEEP=0 to store files without keeping their bytes"
        ) from None


def files_of(engine: Engine, folder: str = "", free_bytes: int = FREE_BYTES, keep: bool = True) -> Files:
    """Return where the bytes of a store are kept: beside a SQLite file, else in ``folder``.

    There, by default in the user's data folder, every server's store has a folder of its own.
    """
    file = file_of(engine)
    if file is not None:
        return Files(Path(f"{file.absolute()}.files"), free_bytes, keep)
    with reading(engine) as connection:
        name = connection.execute(text("SELECT value FROM facts WHERE name = 'store_id'")).scalar_one()
    return Files((Path(folder).absolute() if folder else data_folder() / "files") / str(name), free_bytes, keep)


def _make(files: Files) -> None:
    with _disk_errors(files):
        for folder in (files.folder, files.spool):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)


def ready(files: Files) -> None:
    """Make the folders, and raise `ServiceError` where too little of the disk is free."""
    _make(files)
    with _disk_errors(files):
        _has_room(files.folder, files.free_bytes)


def _has_room(folder: Path, free_bytes: int) -> None:
    disk = shutil.disk_usage(folder)
    wanted = min(free_bytes, disk.total // SMALL_DISK)
    if disk.free < wanted:
        raise NoSpaceError(
            f"only {disk.free >> 20} MiB are free where {folder} lies, and {wanted >> 20} MiB must stay so; "
            "nothing was stored; free some space, or lower PROFSVC_FREE_BYTES"
        )


def room_of(files: Files | None) -> str:
    """Return the folder for copies of what is unpacked; raise `NoSpaceError` where too little of its disk is free.

    It is the spool; where no bytes are kept, the system's own folder for such files.
    """
    if (spool := spool_of(files)) is not None:
        return spool
    place = tempfile.gettempdir()
    _has_room(Path(place), FREE_BYTES if files is None else files.free_bytes)
    return place


def spool_of(files: Files | None) -> str | None:
    """Return the folder for bytes on their way in; None, for the system's own, where nothing is kept."""
    if files is None or not files.keep:
        return None
    ready(files)
    return str(files.spool)


@contextmanager
def using(files: Files) -> Iterator[None]:
    """Let nobody remove kept bytes meanwhile."""
    _make(files)
    with locks.held(files.folder / "lock", WORDS["shared"], shared=True):
        yield


@contextmanager
def removing(files: Files, seconds: float | None = None) -> Iterator[None]:
    """Let nobody use kept bytes meanwhile: all that lies in the spool is left over then, and bytes without rows too."""
    _make(files)
    with locks.held(files.folder / "lock", WORDS["alone"], seconds=seconds):
        yield


@contextmanager
def keeping(files: Files | None, arrival: Arrival) -> Iterator[Callable[[], None]]:
    """Keep the bytes of an arrival, compressed beside the reader; without ``files`` nothing is kept.

    Yield what waits for the bytes to be on the disk under their name; call it before the rows are committed, and
    commit inside.
    """
    if files is None or not files.keep:
        yield lambda: None
        return
    ready(files)
    with using(files), _spooled(files) as (path, out), ThreadPoolExecutor(1) as pool:
        stop = Event()
        packing = pool.submit(_pack, arrival, out, stop)

        def place() -> None:
            with _disk_errors(files):
                packing.result()
                _place(path, files.blob(arrival.sha256))

        try:
            yield place
        finally:
            stop.set()


@contextmanager
def _spooled(files: Files) -> Iterator[tuple[Path, IO[bytes]]]:
    """Give a file in the spool; its lock says that its writer lives."""
    with _disk_errors(files):
        number, name = tempfile.mkstemp(prefix=f"{os.getpid()}-", suffix=".zst", dir=files.spool)
    out = os.fdopen(number, "wb")
    try:
        locks.free(out)
        yield Path(name), out
    finally:
        for end in (out.close, partial(Path(name).unlink, missing_ok=True)):
            with suppress(OSError):  # what did not fit was said when it was written
                end()


def _pack(arrival: Arrival, out: IO[bytes], stop: Event) -> None:
    packer = zstandard.ZstdCompressor(level=LEVEL, write_checksum=True).compressobj(size=arrival.size)
    for block in arrival.blocks():
        if stop.is_set():
            return
        out.write(packer.compress(block))
    out.write(packer.flush())
    out.flush()
    os.fsync(out.fileno())


def _place(path: Path, blob: Path) -> None:
    """Give the bytes their name; what had it before, of an upload that was killed or deleted, is the same bytes."""
    made = [folder for folder in (blob.parent.parent, blob.parent) if not folder.is_dir()]
    blob.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    path.replace(blob)
    for folder in (blob.parent, *(new.parent for new in made)):
        sync(folder)


def sync(folder: Path) -> None:
    """Bring the names in a folder to the disk, where the system can."""
    with suppress(PermissionError):  # Windows opens no folder
        number = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(number)
        finally:
            os.close(number)


def _unpacked(blob: Path) -> Iterator[bytes]:
    with blob.open("rb") as packed, zstandard.ZstdDecompressor().stream_reader(packed) as stream:
        while chunk := stream.read(CHUNK):
            yield chunk


def damage(files: Files, sha256: str) -> str:
    """Say what is wrong with kept bytes, which are read whole; nothing if they are those of the SHA-256."""
    digest = hashlib.sha256()
    try:
        for chunk in _unpacked(files.blob(sha256)):
            digest.update(chunk)
    except FileNotFoundError:
        return "missing"
    except (OSError, zstandard.ZstdError) as error:
        return f"damaged: {error}"
    return "" if digest.hexdigest() == sha256 else "damaged: they have another SHA-256"


@contextmanager
def kept_bytes(files: Files, sha256: str, file_name: str) -> Iterator[BinaryIO]:
    """Give the kept bytes of a file as a stream that can seek; raise `ServiceError` if they are gone or damaged."""
    with using(files), tempfile.SpooledTemporaryFile(max_size=IN_MEMORY, dir=str(files.spool)) as copy:
        digest = hashlib.sha256()
        try:
            for chunk in _unpacked(files.blob(sha256)):
                digest.update(chunk)
                copy.write(chunk)
            wrong = "" if digest.hexdigest() == sha256 else "they have another SHA-256"
        except FileNotFoundError:
            raise ServiceError(
                f"{file_name}: its bytes are not in {files.folder}: it was stored with PROFSVC_KEEP=0, or before bytes "
                "were kept; nothing was changed; upload the file again, after a delete if it is stored"
            ) from None
        except (OSError, zstandard.ZstdError) as error:
            wrong = str(error)
        if wrong:
            raise ServiceError(
                f"{file_name}: its kept bytes in {files.blob(sha256)} cannot be used: {wrong}; nothing was changed; "
                "restore that file from a backup"
            )
        copy.seek(0)
        yield cast("BinaryIO", copy)


def leftovers(files: Files) -> list[Path]:
    """Return what lies in the spool and has no living writer."""
    found = []
    for path in sorted(files.spool.glob("*")) if files.spool.is_dir() else []:
        with suppress(FileNotFoundError), path.open("rb") as file:
            if locks.free(file):
                found.append(path)
    return found


def idle(files: Files) -> bool:
    """Tell whether no upload is under way."""
    lock = files.folder / "lock"
    if not lock.exists():
        return True
    with lock.open("rb") as file:
        return locks.free(file)


def blobs(files: Files) -> dict[str, Path]:
    """Return the file of all bytes that are kept, by their SHA-256."""
    return {path.name.removesuffix(".zst"): path for path in sorted((files.folder / "blobs").glob("??/*.zst"))}


def remove(paths: Iterable[Path]) -> int:
    """Remove files, and folders of files; return how many bytes they took."""
    freed = 0
    for path in paths:
        with suppress(FileNotFoundError):
            inside = sorted(path.glob("*")) if path.is_dir() else [path]
            freed += sum(file.stat().st_size for file in inside)
            for file in inside:
                file.unlink()
            if path.is_dir():
                path.rmdir()
    return freed
