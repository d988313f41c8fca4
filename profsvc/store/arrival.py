"""A file on its way in: its SHA-256 is known before it is read, and what is read later is what was hashed.

A regular file is read where it lies, for a copy of a gigabyte costs more than all else here. So its bytes may change
under the reader; a checksum a block, made while it is hashed, notices that. Anything else is copied once.
"""

import errno
import hashlib
import io
import os
import stat
import tempfile
import threading
import zlib
from array import array
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import IO, Any, BinaryIO, cast

from profsvc.errors import InputError, NoSpaceError, ServiceError

# Small enough for the caches of the processor, large enough that a block is no work of its own.
BLOCK = 256 << 10
BLOCKS_AT_ONCE = 4
IN_MEMORY = 16 << 20
Progress = Callable[[int], None]


@dataclass(frozen=True)
class Arrival:
    """A file that was hashed: its SHA-256, its size, and its bytes, which are checked whenever they are read."""

    sha256: str
    size: int
    sums: "array[int]"
    file: IO[bytes]
    start: int
    turn: threading.Lock

    def block(self, number: int) -> bytes:
        """Return a block of the bytes; raise `InputError` if it is not what was hashed."""
        length = min(BLOCK, self.size - number * BLOCK)
        with self.turn:
            self.file.seek(self.start + number * BLOCK)
            data = _piece(self.file, length)
        if len(data) != length or zlib.crc32(data) != self.sums[number]:
            raise InputError(
                f"it changed while it was read, near byte {number * BLOCK}; nothing was stored; repeat when it is done"
            )
        return data

    def blocks(self) -> Iterator[bytes]:
        """Yield the bytes from the first to the last."""
        return map(self.block, range(len(self.sums)))

    def stream(self) -> BinaryIO:
        """Return a stream over the bytes that can seek."""
        return cast("BinaryIO", io.BufferedReader(_Checked(self), BLOCK))


class _Checked(io.RawIOBase):
    """The bytes of an arrival as a stream."""

    def __init__(self, arrival: Arrival) -> None:
        self._arrival = arrival
        self._place = 0
        self._last: tuple[int, bytes] = (-1, b"")

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        self._place = max(
            0, offset + {os.SEEK_SET: 0, os.SEEK_CUR: self._place, os.SEEK_END: self._arrival.size}[whence]
        )
        return self._place

    def readinto(self, buffer: Any) -> int:
        target = memoryview(buffer).cast("B")
        wanted = min(len(target), max(0, self._arrival.size - self._place))
        done = 0
        while done < wanted:
            number, skipped = divmod(self._place, BLOCK)
            if self._last[0] != number:
                self._last = (number, self._arrival.block(number))
            piece = memoryview(self._last[1])[skipped : skipped + wanted - done]
            target[done : done + len(piece)] = piece
            done += len(piece)
            self._place += len(piece)
        return done


@contextmanager
def arriving(
    source: BinaryIO, spool: Callable[[], str | None] = lambda: None, progress: Progress | None = None
) -> Iterator[Arrival]:
    """Take ``source`` in from where it stands; ``spool`` is asked for the folder of a copy, where one is needed."""
    file = _regular(source)
    if file is not None:
        start = source.tell()
        file.seek(start)
        yield _hashed(file, file, start, progress)
        return
    with tempfile.SpooledTemporaryFile(max_size=IN_MEMORY, dir=spool()) as copy:
        yield _hashed(source, cast("IO[bytes]", copy), 0, progress)


def _regular(source: BinaryIO) -> IO[bytes] | None:
    """Return a file without a buffer of its own, None if ``source`` is a pipe, or no file at all."""
    raw = getattr(source, "raw", source)
    if isinstance(raw, io.FileIO) and stat.S_ISREG(os.fstat(raw.fileno()).st_mode):
        return cast("IO[bytes]", raw)
    return None


def _hashed(source: IO[bytes], file: IO[bytes], start: int, progress: Progress | None) -> Arrival:
    """Hash ``source`` to its end, copying it to ``file`` if that is another one."""
    digest, size, sums = hashlib.sha256(), 0, array("L")
    with ThreadPoolExecutor(1) as pool:
        for chunk in _chunks(source):
            waiting = pool.submit(_sums, chunk)  # beside the digest, which is as much work
            digest.update(chunk)
            sums.extend(waiting.result())
            size += len(chunk)
            if file is not source:
                write_out(chunk, file)
            if progress:
                progress(len(chunk))
    return Arrival(digest.hexdigest(), size, sums, file, start, threading.Lock())


def write_out(chunk: bytes | bytearray, file: IO[bytes]) -> None:
    """Write what came in to a file; raise `ServiceError` where the disk does not take it."""
    try:
        file.write(chunk)
    except OSError as error:
        full = error.errno in {errno.ENOSPC, errno.EDQUOT}
        raise (NoSpaceError if full else ServiceError)(
            f"what comes in cannot be written to disk: {error.strerror}; nothing was stored; free some space and repeat"
        ) from None


def _chunks(source: IO[bytes]) -> Iterator[bytes]:
    """Yield whole blocks, a few at once, however little the source gives at a time."""
    size = BLOCK * BLOCKS_AT_ONCE
    while chunk := _piece(source, size):
        while len(chunk) < size and (piece := _piece(source, size - len(chunk))):
            chunk += piece
        yield chunk


def _piece(source: IO[bytes], size: int) -> bytes:
    try:
        return source.read(size)
    except OSError as error:
        raise InputError(f"it cannot be read to its end: {error.strerror or error}; nothing was stored") from None


def _sums(chunk: bytes) -> list[int]:
    view = memoryview(chunk)
    return [zlib.crc32(view[begin : begin + BLOCK]) for begin in range(0, len(chunk), BLOCK)]
