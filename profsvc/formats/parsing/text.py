"""Bytes to lines: encodings and physical lines.

`Text` decodes a stream, whose lines a reader may read several times. A physical line ends with a line feed; a last line
without one counts as a line.
"""

import codecs
import io
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import IO, BinaryIO, NamedTuple, cast
from weakref import WeakKeyDictionary

import numpy as np

from profsvc.errors import InputError
from profsvc.formats.parsing import unpacked_copies
from profsvc.formats.parsing.stream import CHUNK_BYTES, peek, read_chunks, stream_of

# Small enough for the caches of the processor, and at least the buffer of a stream, to avoid another copy.
ENCODING_SAMPLE_BYTES = 1 << 18
MAX_LINE_CHARS = 16 << 20
BYTE_ORDER_MARKS = {codecs.BOM_UTF8: "utf-8-sig", codecs.BOM_UTF16_LE: "utf-16", codecs.BOM_UTF16_BE: "utf-16"}
# UTF-16 without a byte order mark is recognized by its first bytes: every second one is NUL, the others are not.
UTF16_SAMPLE_BYTES, MIN_UTF16_CHARS = 64, 8
MAX_NUL_TEXT_CHARS = 200


class RepeatedLines(NamedTuple):
    """The first and the last line of a table that repeats an earlier one, and the first line of that."""

    first: int
    last: int
    earlier: int


@dataclass
class LineNotes:
    """Lines of a stream with NUL bytes, repeated tables, and a last line without a line end.

    Readers do not see lines with NUL bytes, which a power cut may leave in a log; ``nul_lines`` has their numbers and
    ``nul_texts`` their text without the NUL bytes. ``repeated`` has tables that are stored once, by the lines that the
    reader sees. ``unended`` is the text of a last line without a line feed.
    """

    nul_lines: list[int] = field(default_factory=list)
    nul_texts: list[str] = field(default_factory=list)
    repeated: list[RepeatedLines] = field(default_factory=list)
    unended: str = ""


_NOTES: "WeakKeyDictionary[BinaryIO, LineNotes]" = WeakKeyDictionary()


def line_notes(stream: BinaryIO) -> LineNotes:
    """Return the notes on the lines of a stream, which all users of the stream share."""
    return _NOTES.setdefault(stream, LineNotes())


def ends_inside(line: str, cell: str) -> bool:
    """Tell whether the file ends inside a line: it has no line end, and its last required ``cell`` is empty.

    A last line that lacks only its line end is valid; `LineNotes` has it.

    >>> ends_inside("1,2.5", "2.5"), ends_inside("1,", ""), ends_inside("1,\\n", "")
    (False, True, False)
    """
    return not line.endswith(("\n", "\r")) and not cell.strip()


def replace_nuls(stream: BinaryIO) -> tuple[BinaryIO, Callable[[], int]]:
    """Return a stream with spaces instead of NUL bytes, which serial ports insert, and a function that counts them.

    A UTF-16 stream is returned unchanged.
    """
    count, notes = 0, line_notes(stream)
    head, stream = peek(stream, UTF16_SAMPLE_BYTES)
    if marked_encoding(head):
        return stream, lambda: 0

    def without_nuls() -> Iterator[bytes]:
        nonlocal count
        for chunk in read_chunks(stream):
            count += chunk.count(b"\0")
            yield chunk.replace(b"\0", b" ")

    whole = stream_of(without_nuls())
    _NOTES[whole] = notes
    return whole, lambda: count


def marked_encoding(head: bytes) -> str | None:
    """Return the encoding of a byte order mark; UTF-16 without one is recognized by its NUL bytes.

    >>> [marked_encoding(head) for head in ("Zeit".encode("utf-16"), "Zeit;P (W)".encode("utf-16-le"), b"Zeit")]
    ['utf-16', 'utf-16-le', None]
    """
    if name := next((name for mark, name in BYTE_ORDER_MARKS.items() if head.startswith(mark)), None):
        return name
    even, odd = head[:UTF16_SAMPLE_BYTES:2], head[1:UTF16_SAMPLE_BYTES:2]
    if len(odd) < MIN_UTF16_CHARS or b"\0" not in head[:2]:
        return None
    candidates = {"utf-16-le": (even, odd), "utf-16-be": (odd, even)}
    return next((name for name, (text, nuls) in candidates.items() if not any(nuls) and all(text)), None)


def _without_marks(lines: str) -> str:
    """Return lines without byte order marks at their begins, as of files that were appended to each other."""
    return lines.removeprefix("\ufeff").replace("\n\ufeff", "\n") if "\ufeff" in lines else lines


class Text:
    """The decoded lines of a byte stream, which may be read several times in bounded memory.

    A stream that is not seekable is copied into a spooled file first. ``encoding`` is ``utf-8``, ``utf-8-sig`` or
    ``utf-16`` as detected, else ``latin-1``. A character cut by the end of the file becomes U+FFFD. Lines with a NUL
    are left out and noted in `line_notes`. A file is refused if most of its lines have one, or if it is not made of
    lines.

    ASCII is equal in most encodings. So `blocks` are read as long as they are ASCII without NUL, and only then what
    follows is examined to its end, as all is that is needed before: a long file is mostly read once.
    """

    def __init__(self, stream: BinaryIO) -> None:
        """Begin at the current position of the stream."""
        self._encoding, self._notes = "utf-8", line_notes(stream)
        self._turn = threading.RLock()  # blocks may be read on another thread
        self._is_examined = False
        self._spool: IO[bytes] | None = None
        if stream.seekable():
            self._file, self._start = cast("IO[bytes]", stream), stream.tell()
            self._plain = self._start  # all before is ASCII without NUL
            if self._read_at(self._start, UTF16_SAMPLE_BYTES)[1]:
                self._examine_rest()
            return
        # close() or the end of a with statement removes the file.
        self._spool = self._file = cast("IO[bytes]", unpacked_copies.spooled_file())
        self._start = self._plain = 0
        try:
            self._examine(unpacked_copies.copy_chunks(stream, self._file))
        except BaseException:
            self._spool.close()
            raise

    def __enter__(self) -> "Text":
        """Return the text itself."""
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        """Note the NUL bytes of what was not read; remove the spooled copy."""
        try:
            if kind is None:
                self._examine_rest()
        finally:
            self.close()

    def close(self) -> None:
        """Remove the spooled copy."""
        if self._spool is not None:
            self._spool.close()

    @property
    def encoding(self) -> str:
        """Return the encoding of the whole text."""
        self._examine_rest()
        return self._encoding

    def _examine_rest(self) -> None:
        """Find the encoding and NUL bytes of what is not known to be ASCII without NUL."""
        with self._turn:
            if not self._is_examined:
                self._file.seek(self._plain)
                self._examine(read_chunks(cast("BinaryIO", self._file), ENCODING_SAMPLE_BYTES))

    def _examine(self, chunks: Iterator[bytes]) -> None:
        """Find the encoding and NUL bytes; most chunks are ASCII, which is equal in most encodings."""
        decoder, has_nul = None, False
        for chunk in chunks:
            if decoder is None:
                marked = marked_encoding(chunk) if self._plain == self._start else None
                self._encoding = marked or "utf-8"
                decoder = codecs.getincrementaldecoder(self._encoding)("replace" if marked else "strict")
            if not self._encoding.startswith("utf-16") and not decoder.getstate()[0] and chunk.isascii():
                has_nul = has_nul or b"\0" in chunk
            else:
                try:
                    text = decoder.decode(chunk)
                except UnicodeDecodeError:
                    self._encoding = "latin-1"
                    decoder = codecs.getincrementaldecoder(self._encoding)()
                    text = decoder.decode(chunk)
                has_nul = has_nul or "\0" in text
        self._is_examined = True
        if has_nul:
            self._find_nuls()

    def _find_nuls(self) -> None:
        """Note the lines with a NUL."""
        lines, numbers, texts = 0, [], []
        for lines, line in enumerate(self._all_lines(self._start), 1):
            if "\0" in line:
                numbers.append(lines)
                texts.append(line.replace("\0", "").strip()[:MAX_NUL_TEXT_CHARS])
        self._notes.nul_texts, self._notes.nul_lines = texts, numbers
        if 2 * len(numbers) > lines:
            raise self._with_nul()

    def _with_nul(self) -> InputError:
        return InputError(
            f"line {self._notes.nul_lines[0]} has a NUL byte, as {len(self._notes.nul_lines)} lines do, so the file is "
            "not a text export; export it again as text"
        )

    def pieces(self) -> Iterator[str]:
        """Yield the text in pieces, for formats that are not made of lines; refuse NUL bytes."""
        self._examine_rest()
        if self._notes.nul_lines:
            raise self._with_nul()
        yield from self._pieces(self._start)

    def tail(self, size: int) -> str:
        """Return the end of the text, of about ``size`` bytes."""
        self._examine_rest()
        end = self._file.seek(0, io.SEEK_END)
        place = max(self._start, end - size)
        self._file.seek(place - (place - self._start) % 2)  # a character of UTF-16 has two bytes
        return self._file.read(size + 1).decode(self._encoding.removesuffix("-sig"), "replace")

    def _pieces(self, place: int) -> Iterator[str]:
        decoder = codecs.getincrementaldecoder(self._encoding)("replace")
        final = False
        while not final:
            with self._turn:
                self._file.seek(place)
                chunk = self._file.read(CHUNK_BYTES)
            place += len(chunk)
            final = not chunk
            yield decoder.decode(chunk, final)

    def lines(self) -> Iterator[str]:
        """Yield every physical line with its line end; only a line feed is a line end."""
        for block in self.blocks(CHUNK_BYTES):
            pieces = str(block, "utf-8", "replace").split("\n")
            rest = pieces.pop()
            for piece in pieces:
                yield piece + "\n"
            if rest:
                yield rest

    def _lines(self, place: int) -> Iterator[str]:
        if not self._notes.nul_lines:
            yield from self._all_lines(place)
            return
        for line in self._all_lines(place):
            if "\0" not in line:
                yield line

    def _all_lines(self, place: int) -> Iterator[str]:
        rest = ""
        for text in self._pieces(place):
            pieces = (rest + text).split("\n")
            rest = pieces.pop()
            self._check_length(len(rest))
            for piece in pieces:
                yield piece + "\n"
        if rest:
            self._end(rest)
            yield rest

    def _end(self, line: str) -> None:
        """Note a last line without a line feed."""
        self._notes.unended = "" if "\0" in line else line

    def blocks(self, size: int, first: int | None = None) -> Iterator[bytes | memoryview]:
        """Yield blocks of whole lines in UTF-8 of about ``size`` bytes; the last may lack its line end.

        ``first`` is the size of the first block, of which a reader may need only the header; the next ones grow.
        """
        yield from self._blocks(self._start, size, first or size)

    def blocks_at(self, place: int, size: int, first: int | None = None) -> Iterator[bytes]:
        """Yield the same bytes in blocks from a place in them, which a reader of `blocks` has passed."""
        if not self._is_examined or (self._encoding == "utf-8" and not self._notes.nul_lines):
            yield from map(bytes, self._blocks(self._start + place, size, first or size))
            return
        for block in self._encoded_blocks(self._start, size):
            if place < len(block):
                yield block[place:]
            place = max(0, place - len(block))

    def note_repeated(self, lines: RepeatedLines) -> None:
        """Note a table that repeats an earlier one."""
        self._notes.repeated.append(lines)

    def _blocks(self, place: int, size: int, wanted: int) -> Iterator[bytes | memoryview]:
        while True:
            piece, is_special = self._read_at(place, wanted)
            if is_special:
                self._examine_rest()
            if self._is_examined and (self._encoding != "utf-8" or self._notes.nul_lines):
                yield from self._encoded_blocks(place, size)
                return
            end = piece.rfind(b"\n") + 1
            if len(piece) < wanted:
                self._is_examined = True
                if end < len(piece):
                    self._end(piece[end:].decode("utf-8", "replace"))
                # Views avoid copies of the block.
                yield from filter(len, (memoryview(piece)[:end], memoryview(piece)[end:]))
                return
            if end:
                yield memoryview(piece)[:end]
                place, wanted = place + end, min(8 * wanted, size)
            else:
                self._check_length(len(piece))
                wanted = min(2 * wanted, MAX_LINE_CHARS + 1)

    def _read_at(self, place: int, size: int) -> tuple[bytes, bool]:
        """Return bytes at a place before which all are known, and whether the encoding depends on them."""
        with self._turn:
            self._file.seek(place)
            piece = self._file.read(size)
            if self._is_examined or place + len(piece) <= self._plain:
                return piece, False
            # As signed bytes, ASCII without NUL is what is above 0: one pass over a long piece.
            if np.frombuffer(piece, np.int8).min(initial=1) <= 0:
                return piece, True
            self._plain = place + len(piece)
            return piece, False

    def _encoded_blocks(self, place: int, size: int) -> Iterator[bytes]:
        block = ""
        for text in self._lines(place) if self._notes.nul_lines else self._pieces(place):
            block += text
            if len(block) >= size and (end := block.rfind("\n") + 1):
                yield _without_marks(block[:end]).encode()
                block = block[end:]
            self._check_length(len(block) - size)
        if block:
            if not block.endswith("\n"):
                self._end(block[block.rfind("\n") + 1 :])
            yield _without_marks(block).encode()

    @staticmethod
    def _check_length(size: int) -> None:
        if size > MAX_LINE_CHARS:
            raise InputError(
                f"a line is longer than {MAX_LINE_CHARS} characters, which no format allows; check the file"
            )
