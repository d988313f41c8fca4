"""Temporary copies of decompressed files, in the folder of the caller and within its free space.

A small file may decompress to a very large one, so the free space is checked while the copy grows.
"""

import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import IO, BinaryIO

from profsvc.errors import disk_error

CHUNK_BYTES = 1 << 20
CHECK_EVERY_BYTES = 64 << 20
# Copies up to this size stay in memory.
SPOOL_BYTES = 32 << 20
FolderWithSpace = Callable[[], str | None]
_ROOM: ContextVar[FolderWithSpace] = ContextVar("room", default=lambda: None)


@contextmanager
def copies_in(room: FolderWithSpace) -> Iterator[None]:
    """Make copies in the folder that ``room`` returns (None: that of the system); it raises if there is no space."""
    token = _ROOM.set(room)
    try:
        yield
    finally:
        _ROOM.reset(token)


def folder() -> str | None:
    """Return the folder for a copy; raise `NoSpaceError` if its disk is full."""
    return _ROOM.get()()


def spooled_file() -> "tempfile.SpooledTemporaryFile[bytes]":
    """Return a temporary file, which stays in memory while it is short."""
    return tempfile.SpooledTemporaryFile(max_size=SPOOL_BYTES, dir=folder())


def copy_chunks(stream: BinaryIO, file: IO[bytes]) -> Iterator[bytes]:
    """Copy a stream into a file, and yield the copied chunks; raise `NoSpaceError` if the disk is full."""
    checked = 0
    while chunk := stream.read(CHUNK_BYTES):
        checked += len(chunk)
        if checked >= CHECK_EVERY_BYTES:
            checked = 0
            folder()
        try:
            file.write(chunk)
        except OSError as error:
            raise disk_error(error, "the decompressed copy") from None
        yield chunk
    try:
        file.flush()
    except OSError as error:
        raise disk_error(error, "the decompressed copy") from None


def copy(stream: BinaryIO, file: IO[bytes]) -> int:
    """Copy a stream into a file as `copy_chunks` does; return the number of bytes."""
    return sum(map(len, copy_chunks(stream, file)))
