"""An incoming file: it is hashed on the first read, and later reads are checked against that.

A regular file is read in place, because copying a gigabyte costs more than all other steps. If its bytes change during
the upload, checksums per block detect it. Other sources, such as pipes, are copied once.
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

# Small enough for the CPU caches, large enough that the overhead per block is negligible.
BLOCK_BYTES = 256 << 10
BLOCKS_PER_READ = 4
MAX_UNHASHED_PIECES = 4
MAX_MEMORY_BYTES = 16 << 20
Progress = Callable[[int], None]


class IncomingFile:
    """A file of ``size`` bytes; the first request for a block or the hash also hashes all earlier bytes.

    Hash and checksums are computed on a thread of their own, at most a few chunks behind. Who needs all bytes as well
    takes them `following` the hash, so that they are read once.
    """

    def __init__(self, file: IO[bytes], start: int, size: int, pool: ThreadPoolExecutor, progress: Progress | None):
        """Begin before the first byte; ``pool`` has a single thread, which sums up the bytes beside the reader."""
        self.file, self.start, self.size = file, start, size
        self._turn = threading.Lock()
        self._pool, self._progress = pool, progress
        self._digest = hashlib.sha256()
        self._hashing: deque[Future[None]] = deque()
        self._follow: Callable[[bytes | memoryview], Future[None]] | None = None
        self._blocks = 0  # as far as the bytes were read, of which `_sums` may still lack the last
        self._sums = array("L")
        self._fresh: tuple[int, bytes] = (0, b"")  # the chunk that was hashed last, and its first block

    @property
    def sha256(self) -> str:
        """Return the hash of all bytes."""
        with self._turn:
            while self._blocks * BLOCK_BYTES < self.size:
                self._hash_next()
            self._finish_sums(0)
        return self._digest.hexdigest()

    def share_read(self) -> float:
        """Return how much of the file was read at least once, from 0 to 1."""
        return min(1.0, self._blocks * BLOCK_BYTES / self.size) if self.size else 1.0

    def _hash_next(self) -> None:
        """Read the next chunk, and have it summed up."""
        piece = self._read(self._blocks, BLOCKS_PER_READ)
        self._hashing.append(self._pool.submit(self._sum_up, piece))
        if self._follow:
            self._hashing.append(self._follow(piece))
        self._fresh = self._blocks, piece
        self._blocks += -(-len(piece) // BLOCK_BYTES)
        self._finish_sums(MAX_UNHASHED_PIECES)
        if self._progress:
            self._progress(len(piece))

    def _sum_up(self, piece: bytes) -> None:
        self._digest.update(piece)
        self._sums.extend(_checksums(piece))

    def _finish_sums(self, most: int) -> None:
        """Wait until at most so many chunks are not summed up or not followed."""
        while len(self._hashing) > most:
            self._hashing.popleft().result()

    def _read(self, number: int, count: int) -> bytes:
        """Read blocks; raise `InputError` if the file ends before they do."""
        length = min(count * BLOCK_BYTES, self.size - number * BLOCK_BYTES)
        self.file.seek(self.start + number * BLOCK_BYTES)
        data = _read_piece(self.file, length)
        if len(data) != length:
            raise _changed(number)
        return data

    def block(self, number: int) -> bytes | memoryview:
        """Return a block of the bytes; raise `InputError` if it differs from the hashed bytes."""
        with self._turn:
            while number >= self._blocks:
                self._hash_next()
            if (fresh := self._fresh_block(number)) is not None:
                return fresh
            data, known = self._read(number, 1), self._sum_of(number)
        _require_same(data, known, number)
        return data

    def _fresh_block(self, number: int) -> memoryview | None:
        """Return a block of the chunk that was hashed last."""
        first, piece = self._fresh
        if not 0 <= (number - first) * BLOCK_BYTES < len(piece):
            return None
        return memoryview(piece)[(number - first) * BLOCK_BYTES : (number - first + 1) * BLOCK_BYTES]

    @contextmanager
    def following(self, take: Callable[[bytes | memoryview], None]) -> Iterator[None]:
        """Give ``take`` all bytes in their order, on a thread of its own, as they are read and hashed during the block.

        What was hashed before is given first, before the block begins. ``take`` must not raise.
        """
        with ThreadPoolExecutor(1, "follow") as pool:
            with self._turn:
                for number in range(self._blocks):
                    fresh = self._fresh_block(number)
                    data = self._read(number, 1) if fresh is None else fresh
                    _require_same(data, self._sum_of(number), number)
                    take(data)
                self._follow = lambda piece: pool.submit(take, piece)
            try:
                yield
            finally:
                with self._turn:
                    self._follow = None

    def block_into(self, number: int, target: memoryview) -> int:
        """Read a block to the beginning of a buffer; return its size, 0 if it is to be taken from `block`.

        So a block that was hashed before is not copied.
        """
        size = min(BLOCK_BYTES, self.size - number * BLOCK_BYTES)
        with self._turn:
            if number >= self._fresh[0] or size > len(target):
                return 0
            self.file.seek(self.start + number * BLOCK_BYTES)
            try:
                read = cast("io.FileIO", self.file).readinto(target[:size])
            except OSError as error:
                raise _unreadable(error) from None
            if read != size:
                raise _changed(number)
            known = self._sum_of(number)
        _require_same(target[:size], known, number)
        return size

    def _sum_of(self, number: int) -> int:
        if number >= len(self._sums):
            self._finish_sums(0)
        return self._sums[number]

    def blocks(self) -> Iterator[bytes | memoryview]:
        """Yield the bytes from the first to the last."""
        return map(self.block, range(-(-self.size // BLOCK_BYTES)))

    def stream(self) -> BinaryIO:
        """Return a seekable stream over the bytes."""
        return cast("BinaryIO", io.BufferedReader(_CheckedStream(self), BLOCK_BYTES))


class _CheckedStream(io.RawIOBase):
    """The bytes of an incoming file as a stream."""

    def __init__(self, arrival: IncomingFile) -> None:
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
            number, skipped = divmod(self._place, BLOCK_BYTES)
            size = 0 if skipped else self._arrival.block_into(number, target[done:wanted])
            if not size:
                if self._last[0] != number:
                    self._last = (number, self._arrival.block(number))
                piece = memoryview(self._last[1])[skipped : skipped + wanted - done]
                size = len(piece)
                target[done : done + size] = piece
            done += size
            self._place += size
        return done


@contextmanager
def open_incoming(
    source: BinaryIO, spool: Callable[[], str | None] = lambda: None, progress: Progress | None = None
) -> Iterator[IncomingFile]:
    """Yield ``source`` from its current position as a file; ``spool`` returns the folder for a copy if needed."""
    file = _regular(source)
    with ThreadPoolExecutor(1, "hash") as pool:
        if file is not None:
            start = source.tell()
            yield IncomingFile(file, start, max(0, os.fstat(file.fileno()).st_size - start), pool, progress)
            return
        with tempfile.SpooledTemporaryFile(max_size=MAX_MEMORY_BYTES, dir=spool()) as copy:
            size = sum(write_chunk(chunk, cast("IO[bytes]", copy)) for chunk in _chunks(source))
            yield IncomingFile(cast("IO[bytes]", copy), 0, size, pool, progress)


def _regular(source: BinaryIO) -> IO[bytes] | None:
    """Return the unbuffered file of ``source``; None if it is not a regular file."""
    raw = getattr(source, "raw", source)
    if isinstance(raw, io.FileIO) and stat.S_ISREG(os.fstat(raw.fileno()).st_mode):
        return cast("IO[bytes]", raw)
    return None


def _changed(number: int) -> InputError:
    return InputError(
        f"the file changed during the upload, near byte {number * BLOCK_BYTES}; nothing was stored; "
        "retry when it is complete"
    )


def _require_same(block: bytes | memoryview, known: int, number: int) -> None:
    if zlib.crc32(block) != known:
        raise _changed(number)


def arriving_file(folder: str | None) -> IO[bytes]:
    """Return a file without a name for an upload that arrives; raise `ServiceError` if the disk refuses it."""
    try:
        return tempfile.TemporaryFile(dir=folder)
    except OSError as error:
        raise _unwritable(error) from None


def write_chunk(chunk: bytes | bytearray, file: IO[bytes]) -> int:
    """Write a chunk to a file; raise `ServiceError` if the disk refuses it."""
    try:
        return file.write(chunk)
    except OSError as error:
        raise _unwritable(error) from None


def _unwritable(error: OSError) -> ServiceError:
    full = error.errno in {errno.ENOSPC, errno.EDQUOT}
    do = "free some space" if full else "check the disk and its permissions"
    return (NoSpaceError if full else ServiceError)(
        f"cannot write the upload to disk: {error.strerror}; nothing was stored; {do} and retry"
    )


def _chunks(source: IO[bytes]) -> Iterator[bytes]:
    """Yield whole blocks, a few at a time, even if the source returns small pieces."""
    size = BLOCK_BYTES * BLOCKS_PER_READ
    while chunk := _read_piece(source, size):
        while len(chunk) < size and (piece := _read_piece(source, size - len(chunk))):
            chunk += piece
        yield chunk


def _read_piece(source: IO[bytes], size: int) -> bytes:
    try:
        return source.read(size)
    except OSError as error:
        raise _unreadable(error) from None


def _unreadable(error: OSError) -> InputError:
    return InputError(f"reading the file failed: {error.strerror or error}; nothing was stored")


def _checksums(chunk: bytes) -> list[int]:
    view = memoryview(chunk)
    return [zlib.crc32(view[begin : begin + BLOCK_BYTES]) for begin in range(0, len(chunk), BLOCK_BYTES)]
