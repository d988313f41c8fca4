"""Copies that readers make of what they unpack: where the caller has room for them, and no further than that goes.

A small file may unpack to very much. What reads it looks at the disk as the copy grows, and at its end, not before.
"""

import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import IO, BinaryIO

from profsvc.errors import disk_error

CHUNK = 1 << 20
LOOK_EVERY = 64 << 20
# In memory up to here.
SPOOL_BYTES = 32 << 20
Room = Callable[[], str | None]
_ROOM: ContextVar[Room] = ContextVar("room", default=lambda: None)


@contextmanager
def copies_in(room: Room) -> Iterator[None]:
    """Let copies be made in the folder that ``room`` gives (None: the system's own); it raises where it is too full."""
    token = _ROOM.set(room)
    try:
        yield
    finally:
        _ROOM.reset(token)


def folder() -> str | None:
    """Return the folder for a copy; raise `NoSpaceError` where its disk is too full for any."""
    return _ROOM.get()()


def spooled() -> "tempfile.SpooledTemporaryFile[bytes]":
    """Make a file for a copy, in memory as long as it is short; it goes when it is closed."""
    return tempfile.SpooledTemporaryFile(max_size=SPOOL_BYTES, dir=folder())


def copied(stream: BinaryIO, file: IO[bytes]) -> Iterator[bytes]:
    """Copy a stream into a file, and yield what was copied; raise `NoSpaceError` where the disk has no room for it."""
    looked = 0
    while chunk := stream.read(CHUNK):
        looked += len(chunk)
        if looked >= LOOK_EVERY:
            looked = 0
            folder()
        try:
            file.write(chunk)
        except OSError as error:
            raise disk_error(error, "the copy of what was unpacked") from None
        yield chunk
    try:
        file.flush()
    except OSError as error:
        raise disk_error(error, "the copy of what was unpacked") from None


def copy(stream: BinaryIO, file: IO[bytes]) -> int:
    """Copy a stream into a file as `copied` does; return how many bytes that was."""
    return sum(map(len, copied(stream, file)))
