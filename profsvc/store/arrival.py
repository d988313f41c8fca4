"""A file on its way in: it is hashed as it is read for the first time, and what is read again is what was hashed.

A regular file is read where it lies, for a copy of a gigabyte costs more than all else here. So its bytes may change
under the reader; a checksum a block, made when it is hashed, notices that. Anything else is copied once.
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
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import IO, Any, BinaryIO, cast

from profsvc.errors import InputError, NoSpaceError, ServiceError

# Small enough for the caches of the processor, large enough that a block is no work of its own.
BLOCK = 256 << 10
BLOCKS_AT_ONCE = 4
PIECES_BEHIND = 4
IN_MEMORY = 16 << 20
Progress = Callable[[int], None]


class Arrival:
    """A file of ``size`` bytes; whoever asks first for a block, or for the hash, has all before it hashed."""

    def __init__(self, file: IO[bytes], start: int, size: int, pool: ThreadPoolExecutor, progress: Progress | None):
        """Begin before the first byte; ``pool`` makes the hash beside whoever reads."""
        self.file, self.start, self.size = file, start, size
        self._turn = threading.Lock()
        self._pool, self._progress = pool, progress
        self._digest = hashlib.sha256()
        self._hashing: deque[Future[None]] = deque()
        self._sums = array("L")
        self._fresh: tuple[int, bytes] = (0, b"")  # what was hashed last, and its first block

    @property
    def sha256(self) -> str:
        """The hash of all bytes."""
        with self._turn:
            while len(self._sums) * BLOCK < self.size:
                self._hash_next()
            while self._hashing:
                self._hashing.popleft().result()
        return self._digest.hexdigest()

    def _hash_next(self) -> None:
        """Read on; the hash is made on another thread, and falls behind no further than a few pieces."""
        number = len(self._sums)
        piece = self._read(number, BLOCKS_AT_ONCE)
        self._hashing.append(self._pool.submit(self._digest.update, piece))
        self._sums.extend(_sums(piece))
        self._fresh = number, piece
        if len(self._hashing) > PIECES_BEHIND:
            self._hashing.popleft().result()
        if self._progress:
            self._progress(len(piece))

    def _read(self, number: int, count: int) -> bytes:
        """Read blocks; raise `InputError` if the file ends before they do."""
        length = min(count * BLOCK, self.size - number * BLOCK)
        self.file.seek(self.start + number * BLOCK)
        data = _piece(self.file, length)
        if len(data) != length:
            raise _changed(number)
        return data

    def block(self, number: int) -> bytes | memoryview:
        """Return a block of the bytes; raise `InputError` if it is not what was hashed."""
        with self._turn:
            while number >= len(self._sums):
                self._hash_next()
            first, piece = self._fresh
            if 0 <= (number - first) * BLOCK < len(piece):
                return memoryview(piece)[(number - first) * BLOCK : (number - first + 1) * BLOCK]
            data = self._read(number, 1)
        if zlib.crc32(data) != self._sums[number]:
            raise _changed(number)
        return data

    def blocks(self) -> Iterator[bytes | memoryview]:
        """Yield the bytes from the first to the last."""
        return map(self.block, range(-(-self.size // BLOCK)))

    def stream(self) -> BinaryIO:
        """Return a stream over the bytes that can seek."""
        return cast("BinaryIO", io.BufferedReader(_Checked(self), BLOCK))


class _Checked(io.RawIOBase):
    """The bytes of an arrival as a stream."""

    def __init__(self, arrival: Arrival) -> None:
        self._arrival = arrival
        self._place = 0
        self._last: tuple[int, bytes | memoryview] = (-1, b"")

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
    with ThreadPoolExecutor(1, "hash") as pool:
        if file is not None:
            start = source.tell()
            yield Arrival(file, start, max(0, os.fstat(file.fileno()).st_size - start), pool, progress)
            return
        with tempfile.SpooledTemporaryFile(max_size=IN_MEMORY, dir=spool()) as copy:
            size = sum(write_out(chunk, cast("IO[bytes]", copy)) for chunk in _chunks(source))
            yield Arrival(cast("IO[bytes]", copy), 0, size, pool, progress)


def _regular(source: BinaryIO) -> IO[bytes] | None:
    """Return a file without a buffer of its own, None if ``source`` is a pipe, or no file at all."""
    raw = getattr(source, "raw", source)
    if isinstance(raw, io.FileIO) and stat.S_ISREG(os.fstat(raw.fileno()).st_mode):
        return cast("IO[bytes]", raw)
    return None


def _changed(number: int) -> InputError:
    return InputError(
        f"it changed while it was read, near byte {number * BLOCK}; nothing was stored; repeat when it is done"
    )


def write_out(chunk: bytes | bytearray, file: IO[bytes]) -> int:
    """Write what came in to a file; raise `ServiceError` where the disk does not take it."""
    try:
        return file.write(chunk)
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
