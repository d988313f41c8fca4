"""The unmodified bytes of uploads: compressed with zstd, named by their SHA-256, in a folder of the store.

::

    lock                  shared by running uploads; exclusive for the removal of files
    spool/<pid>-*.zst     bytes of running uploads; killed uploads leave theirs here
    blobs/ab/abcd....zst  bytes of an upload; on disk before its rows are committed

So the bytes of every stored upload are here. A file without rows is an orphan: its upload was killed or failed before
the commit.
"""

import errno
import hashlib
import os
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import IO, BinaryIO, cast

import zstandard

from profsvc.errors import NoSpaceError, ServiceError
from profsvc.store.connection import locks
from profsvc.store.connection.sql import Engine, text
from profsvc.store.connection.transactions import reading
from profsvc.store.connection.urls import data_folder, file_of
from profsvc.store.ingest.incoming_file import MAX_MEMORY_BYTES, IncomingFile

ZSTD_LEVEL = 1
# A quarter of the window of this level: a sixth less of the processor, for 2 to 4 % more on the disk.
MAX_WINDOW_LOG = 17
DEFAULT_FREE_BYTES = 1 << 30
MIB = 1 << 20
MAX_RESERVED_DISK_PART = 20  # on a small disk only this part must stay free
CHUNK_BYTES = 1 << 20
LOCK_MESSAGES = {"shared": "it removes kept bytes", "alone": "it uploads a file"}


@dataclass(frozen=True)
class BlobStore:
    """The folder of kept bytes, the disk space that must stay free, and whether new bytes are kept."""

    folder: Path
    free_bytes: int = DEFAULT_FREE_BYTES
    keep: bool = True

    @property
    def spool(self) -> Path:
        """Return the folder for the bytes of running uploads."""
        return self.folder / "spool"

    def blob(self, sha256: str) -> Path:
        """Return the path of the bytes with this SHA-256."""
        return self.folder / "blobs" / sha256[:2] / f"{sha256}.zst"


@contextmanager
def _disk_errors(files: BlobStore) -> Iterator[None]:
    """Raise errors of the disk as errors with a message for the user."""
    try:
        yield
    except OSError as error:
        full = error.errno in {errno.ENOSPC, errno.EDQUOT}
        what = "no space is left" if full else str(error.strerror or error)
        do = "free some space" if full else "check the folder and its permissions"
        raise (NoSpaceError if full else ServiceError)(
            f"cannot keep the bytes of the file in {files.folder}: {what}; nothing was stored; {do} and retry, "
            "or set PROFSVC_KEEP=0 to store files without keeping their bytes"
        ) from None


def blob_store_of(
    engine: Engine, folder: str = "", free_bytes: int = DEFAULT_FREE_BYTES, keep: bool = True
) -> BlobStore:
    """Return the blob store of a store: next to a SQLite file, else in ``folder``.

    ``folder`` is by default the data folder of the user and has one subfolder per store.
    """
    file = file_of(engine)
    if file is not None:
        return BlobStore(Path(f"{file.absolute()}.files"), free_bytes, keep)
    return BlobStore(
        (Path(folder).absolute() if folder else data_folder() / "files") / store_id(engine), free_bytes, keep
    )


def store_id(engine: Engine) -> str:
    """Return what no other store has, under whatever address it is reached."""
    with reading(engine) as connection:
        return str(connection.execute(text("SELECT value FROM facts WHERE name = 'store_id'")).scalar_one())


def _make(files: BlobStore) -> None:
    with _disk_errors(files):
        for folder in (files.folder, files.spool):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)


def prepare_folders(files: BlobStore) -> None:
    """Create the folders; raise `ServiceError` if too little disk space is free."""
    _make(files)
    with _disk_errors(files):
        _require_free_space(files.folder, files.free_bytes)


def _require_free_space(folder: Path, free_bytes: int) -> None:
    disk = shutil.disk_usage(folder)
    wanted = min(free_bytes, disk.total // MAX_RESERVED_DISK_PART)
    if disk.free < wanted:
        raise NoSpaceError(
            f"only {disk.free / MIB:.4g} MiB are free on the disk of {folder}, but {wanted / MIB:.4g} MiB must stay "
            "free; nothing was stored; free some space, or lower PROFSVC_FREE_BYTES"
        )


def unpack_folder(files: BlobStore | None) -> str:
    """Return the folder for unpacked copies; raise `NoSpaceError` if too little disk space is free.

    It is the spool, or the temporary folder of the system if no bytes are kept.
    """
    if (spool := spool_folder(files)) is not None:
        return spool
    place = tempfile.gettempdir()
    _require_free_space(Path(place), DEFAULT_FREE_BYTES if files is None else files.free_bytes)
    return place


def spool_folder(files: BlobStore | None) -> str | None:
    """Return the folder for the bytes of a running upload; None (that of the system) if no bytes are kept."""
    if files is None or not files.keep:
        return None
    prepare_folders(files)
    return str(files.spool)


@contextmanager
def protecting_blobs(files: BlobStore) -> Iterator[None]:
    """Protect kept bytes from removal during the block."""
    _make(files)
    with locks.hold_lock(files.folder / "lock", LOCK_MESSAGES["shared"], shared=True):
        yield


@contextmanager
def removing_blobs(files: BlobStore, seconds: float | None = None) -> Iterator[None]:
    """Lock out all uploads during the block, so that all files in the spool and all bytes without rows are orphans."""
    _make(files)
    with locks.hold_lock(files.folder / "lock", LOCK_MESSAGES["alone"], seconds=seconds):
        yield


@contextmanager
def storing_blob(files: BlobStore | None, arrival: IncomingFile) -> Iterator[Callable[[], None]]:
    """Keep the bytes of an incoming file, compressed as they are read and hashed; without ``files`` nothing is kept.

    Yield a function that waits until the bytes are on disk under their final name, and reads those that were not read
    yet. Call it before the rows are committed, and commit inside the block.
    """
    if files is None or not files.keep:
        yield lambda: None
        return
    prepare_folders(files)
    with protecting_blobs(files), _spool_file(files) as (path, out):
        packer = _Packer(out, arrival.size)

        def place() -> None:
            sha256 = arrival.sha256  # all bytes are read and taken by the packer
            with _disk_errors(files):
                packer.finish()
                _place(path, files.blob(sha256))

        with arrival.following(packer.take):
            yield place


@contextmanager
def _spool_file(files: BlobStore) -> Iterator[tuple[Path, IO[bytes]]]:
    """Yield a file in the spool, locked while its writer is alive."""
    with _disk_errors(files):
        number, name = tempfile.mkstemp(prefix=f"{os.getpid()}-", suffix=".zst", dir=files.spool)
    out = os.fdopen(number, "wb")
    try:
        locks.try_lock(out)
        yield Path(name), out
    finally:
        for end in (out.close, partial(Path(name).unlink, missing_ok=True)):
            with suppress(OSError):  # a full disk was already reported by the write
                end()


class _Packer:
    """Compresses bytes into a file; an error of the disk is raised at the end."""

    def __init__(self, out: IO[bytes], size: int) -> None:
        """Begin before the first of ``size`` bytes."""
        self._out = out
        of_size = partial(zstandard.ZstdCompressionParameters.from_level, ZSTD_LEVEL, source_size=size)
        how = of_size(window_log=min(of_size().window_log, MAX_WINDOW_LOG))
        # No checksum: whoever reads the bytes compares their SHA-256.
        self._packer = zstandard.ZstdCompressor(compression_params=how).compressobj(size=size)
        self._error: OSError | None = None

    def take(self, piece: bytes | memoryview) -> None:
        """Compress the next bytes."""
        if self._error is None:
            try:
                self._out.write(self._packer.compress(piece))
            except OSError as error:
                self._error = error

    def finish(self) -> None:
        """Bring all bytes to the disk."""
        if self._error is not None:
            raise self._error
        self._out.write(self._packer.flush())
        self._out.flush()
        os.fsync(self._out.fileno())


def _place(path: Path, blob: Path) -> None:
    """Give the bytes their final name. A file with that name, from a killed or deleted upload, has the same bytes."""
    made = [folder for folder in (blob.parent.parent, blob.parent) if not folder.is_dir()]
    blob.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    path.replace(blob)
    for folder in (blob.parent, *(new.parent for new in made)):
        sync_folder(folder)


def sync_folder(folder: Path) -> None:
    """Write the names in a folder to disk, if the system supports it."""
    with suppress(PermissionError):  # Windows cannot open folders
        number = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(number)
        finally:
            os.close(number)


def _decompressed(blob: Path) -> Iterator[bytes]:
    with blob.open("rb") as packed, zstandard.ZstdDecompressor().stream_reader(packed) as stream:
        while chunk := stream.read(CHUNK_BYTES):
            yield chunk


def blob_damage(files: BlobStore, sha256: str) -> str:
    """Return the damage of kept bytes, which are read completely; an empty text if they match the SHA-256."""
    digest = hashlib.sha256()
    try:
        for chunk in _decompressed(files.blob(sha256)):
            digest.update(chunk)
    except FileNotFoundError:
        return "missing"
    except (OSError, zstandard.ZstdError) as error:
        return f"damaged: {error}"
    return "" if digest.hexdigest() == sha256 else "damaged: the SHA-256 differs"


@contextmanager
def open_blob(files: BlobStore, sha256: str, file_name: str) -> Iterator[BinaryIO]:
    """Yield the kept bytes of a file as a seekable stream; raise `ServiceError` if they are missing or damaged."""
    with (
        protecting_blobs(files),
        tempfile.SpooledTemporaryFile(max_size=MAX_MEMORY_BYTES, dir=str(files.spool)) as copy,
    ):
        digest = hashlib.sha256()
        try:
            for chunk in _decompressed(files.blob(sha256)):
                digest.update(chunk)
                copy.write(chunk)
            wrong = "" if digest.hexdigest() == sha256 else "the SHA-256 differs"
        except FileNotFoundError:
            raise ServiceError(
                f"{file_name}: its bytes are not in {files.folder} (stored with PROFSVC_KEEP=0, or by a version "
                "that did not keep bytes); nothing was changed; delete the file if it is stored, and upload it again"
            ) from None
        except (OSError, zstandard.ZstdError) as error:
            wrong = str(error)
        if wrong:
            raise ServiceError(
                f"{file_name}: its kept bytes in {files.blob(sha256)} are damaged: {wrong}; nothing was changed; "
                "restore that file from a backup"
            )
        copy.seek(0)
        yield cast("BinaryIO", copy)


def orphaned_spool_files(files: BlobStore) -> list[Path]:
    """Return the files in the spool whose writer is dead."""
    found = []
    for path in sorted(files.spool.glob("*")) if files.spool.is_dir() else []:
        with suppress(FileNotFoundError), path.open("rb") as file:
            if locks.try_lock(file):
                found.append(path)
    return found


def is_unused(files: BlobStore) -> bool:
    """Return whether no upload is running."""
    lock = files.folder / "lock"
    if not lock.exists():
        return True
    with lock.open("rb") as file:
        return locks.try_lock(file)


def stored_blobs(files: BlobStore) -> dict[str, Path]:
    """Return the files of all kept bytes by SHA-256."""
    return {path.name.removesuffix(".zst"): path for path in sorted((files.folder / "blobs").glob("??/*.zst"))}


def remove_files(paths: Iterable[Path]) -> int:
    """Remove files and folders of files; return their size in bytes."""
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
