"""Streams of bytes: `open_stream` decompresses .gz and .zst, and `peek` returns the head without consuming it."""

import gzip
import io
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, cast

import zstandard

from profsvc.errors import InputError, TooLargeError

CHUNK_BYTES = 1 << 20
# A few bytes of zstd can contain 128 KiB of zeros: small pieces of input limit the output of one step.
ZSTD_CHUNK_BYTES = 4 << 10
GZIP_MAGIC = b"\x1f\x8b"
ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"


class _Chunks(io.RawIOBase):
    """A readable stream over an iterator of byte strings."""

    def __init__(self, chunks: Iterator[bytes]) -> None:
        self._chunks = chunks
        self._rest = memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: object) -> int:
        target = memoryview(cast(bytearray, buffer)).cast("B")
        while not self._rest:
            chunk = next(self._chunks, None)
            if chunk is None:
                return 0
            self._rest = memoryview(chunk)
        size = min(len(target), len(self._rest))
        target[:size] = self._rest[:size]
        self._rest = self._rest[size:]
        return size


def stream_of(chunks: Iterator[bytes]) -> BinaryIO:
    """Return a stream of the bytes in ``chunks``."""
    return io.BufferedReader(_Chunks(chunks), CHUNK_BYTES)


def read_chunks(stream: BinaryIO, size: int = CHUNK_BYTES) -> Iterator[bytes]:
    """Yield the rest of a stream in pieces of at most ``size`` bytes."""
    while chunk := stream.read(size):
        yield chunk


def _file_chunks(path: Path) -> Iterator[bytes]:
    try:
        with path.open("rb") as stream:
            yield from read_chunks(stream)
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror or error}") from None


def _gunzip(stream: BinaryIO) -> Iterator[bytes]:
    try:
        with gzip.GzipFile(fileobj=stream, mode="rb") as members:
            while chunk := members.read(CHUNK_BYTES):
                yield chunk
    except EOFError:
        raise InputError(
            "the gzip stream ends before its end mark, so the file is cut; compress or copy it again"
        ) from None
    except (zlib.error, OSError) as error:
        raise InputError(f"the gzip stream is damaged ({error}); compress or copy the file again") from None


def _unzstd(stream: BinaryIO) -> Iterator[bytes]:
    frame = zstandard.ZstdDecompressor().decompressobj()
    whole = True
    try:
        for piece in read_chunks(stream, ZSTD_CHUNK_BYTES):
            data = piece
            while data:
                yield frame.decompress(data)
                whole = frame.eof
                data = frame.unused_data if whole else b""
                if whole:
                    frame = zstandard.ZstdDecompressor().decompressobj()
    except zstandard.ZstdError as error:
        raise InputError(f"the zstd stream is damaged ({error}); compress or copy the file again") from None
    if not whole:
        raise InputError("the zstd stream ends inside a frame, so the file is cut; compress or copy it again")


def _has_at_most(stream: BinaryIO, limit: int) -> bool:
    """Tell whether a stream is seekable and has at most ``limit`` bytes."""
    if not stream.seekable():
        return False
    start = stream.tell()
    size = stream.seek(0, io.SEEK_END) - start
    stream.seek(start)
    return size <= limit


def _limited(chunks: Iterator[bytes], limit: int) -> Iterator[bytes]:
    size = 0
    for chunk in chunks:
        size += len(chunk)
        if size > limit:
            raise TooLargeError(f"the file has more than {limit} bytes when decompressed; split it or raise the limit")
        yield chunk


def peek(stream: BinaryIO, size: int) -> tuple[bytes, BinaryIO]:
    """Return the first ``size`` bytes (fewer at the end of the file) and a stream that still begins with them."""
    start = stream.tell() if stream.seekable() else None
    head = bytearray()
    while len(head) < size and (chunk := stream.read(size - len(head))):
        head += chunk
    if start is not None:
        stream.seek(start)
        return bytes(head), stream

    def again() -> Iterator[bytes]:
        yield bytes(head)
        yield from read_chunks(stream)

    return bytes(head), stream_of(again())


def open_stream(source: str | Path | BinaryIO, limit: int | None = None) -> BinaryIO:
    """Open a path or a binary stream, and decompress gzip (any number of members) or zstd, detected by the first bytes.

    ``limit`` is the maximum of decompressed bytes. A cut or damaged compressed stream raises `InputError` where the
    damage is reached.
    """
    if isinstance(source, str | Path):
        source = stream_of(_file_chunks(Path(source)))
    magic, stream = peek(source, 4)
    if not magic.startswith(GZIP_MAGIC) and magic != ZSTD_MAGIC and (limit is None or _has_at_most(stream, limit)):
        return stream  # unchanged: a seekable stream need not be copied
    chunks = read_chunks(stream)
    if magic.startswith(GZIP_MAGIC):
        chunks = _gunzip(stream)
    elif magic == ZSTD_MAGIC:
        chunks = _unzstd(stream)
    return stream_of(chunks if limit is None else _limited(chunks, limit))
