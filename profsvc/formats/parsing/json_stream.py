"""Streaming JSON parser: yields one value of a long list at a time, with its line number.

Numbers with a fraction are `Decimal`, so that microseconds since 1970 keep their nanoseconds. Only one value, of at
most `MAX_VALUE_CHARS` characters, is held in memory.
"""

import json
import math
import re
from collections.abc import Iterator
from decimal import Decimal, InvalidOperation

from profsvc.errors import BrokenInputError

MAX_VALUE_CHARS = 16 << 20
MAX_NUMBER_CHARS = 60
# A word or an escape that is cut by the end of the file is reported at its beginning.
_MAX_TOKEN_CHARS = 12


class TruncatedJsonError(Exception):
    """The text ends inside a value."""


class BrokenValueError(BrokenInputError):
    """A value is invalid JSON; the parser is still before it."""


def storable_text(text: str) -> str:
    """Replace characters that databases cannot store: unpaired surrogates and NUL."""
    return text.replace("\0", "\ufffd").encode("utf-8", "replace").decode()


def _fraction(text: str) -> Decimal | float:
    try:
        return Decimal(text) if len(text) <= MAX_NUMBER_CHARS else math.nan
    except InvalidOperation:
        return math.nan


_DECODER = json.JSONDecoder(parse_float=_fraction, strict=False)


def loads(text: str) -> object:
    """Return the value of a complete JSON text; raise `ValueError` if it is invalid."""
    return _DECODER.decode(text)


class CountedLines:
    """The lines of a text without its mark of order, counted."""

    def __init__(self, lines: Iterator[str]) -> None:
        """Start before the first line."""
        self._lines, self.count = lines, 0

    def __iter__(self) -> Iterator[str]:
        """Yield the lines that were not yielded yet."""
        for line in self._lines:
            self.count += 1
            yield line.lstrip("\ufeff") if self.count == 1 else line


class Json:
    """A position in a JSON text; ``line`` is the line of the next character."""

    def __init__(self, pieces: Iterator[str]) -> None:
        """Start before the first character of ``pieces``."""
        self.line = 1
        self._pieces = pieces
        self._buffer, self._last = "", "\n"
        self._place = self._first = 0
        self._ended = False
        self._decode = _DECODER.raw_decode

    def _more(self) -> None:
        """Read until the unread part of the buffer is twice as long, or to the end."""
        parts = [self._buffer[self._place :]]
        size, wanted = len(parts[0]), 2 * len(parts[0]) + 1
        while size < wanted and not self._ended:
            piece = next(self._pieces, None)
            self._ended = piece is None
            parts.append(piece or "")
            self._last = parts[-1][-1:] or self._last
            size += len(parts[-1])
        self._buffer, self._place = "".join(parts), 0

    def text(self, size: int) -> str:
        """Return the first ``size`` characters of the value that was read last, as they are in the file."""
        return self._buffer[self._first : min(self._place, self._first + size)]

    def _step(self, place: int) -> None:
        self.line += self._buffer.count("\n", self._place, place)
        self._place = place

    def peek(self) -> str:
        """Return the next character that is not a space; an empty text at the end."""
        while True:
            rest = self._buffer[self._place : self._place + 64]
            stripped = rest.lstrip(" \t\r\n\ufeff")
            self._step(self._place + len(rest) - len(stripped))
            if stripped:
                return stripped[0]
            if not rest:
                if self._ended:
                    return ""
                self._more()

    def take(self, *signs: str) -> str:
        """Skip the next sign, which must be one of ``signs``, and return it."""
        sign = self.peek()
        if not sign:
            raise TruncatedJsonError
        if sign not in signs:
            raise self.broken(f"{sign!r} found instead of {' or '.join(signs)}")
        self._step(self._place + 1)
        return sign

    def broken(self, what: str) -> BrokenInputError:
        """Return the error for invalid JSON at the current line."""
        return BrokenInputError(f"line {self.line}: {what}, so the JSON is invalid; record the trace again")

    def value(self) -> object:
        """Read one value; raise `TruncatedJsonError` if the text ends inside it, `BrokenValueError` if invalid."""
        if not self.peek():
            raise TruncatedJsonError
        while True:
            try:
                value, end = self._decode(self._buffer, self._place)
                # A number at the end of the buffer may continue.
                if end < len(self._buffer) or self._ended:
                    self._first = self._place
                    self._step(end)
                    return value
            except json.JSONDecodeError as error:
                self._raise_unless_incomplete(error)
            except (RecursionError, ValueError) as error:
                raise self.broken(f"a value cannot be read ({str(error)[:100]})") from None
            if len(self._buffer) - self._place > MAX_VALUE_CHARS:
                raise self.broken(f"a value is broken or longer than {MAX_VALUE_CHARS} characters")
            self._more()

    def _raise_unless_incomplete(self, error: json.JSONDecodeError) -> None:
        """Raise the error for an invalid text; return if more of the text may complete it."""
        end = len(self._buffer.rstrip())
        if error.msg.startswith("Unterminated string") or error.pos >= end - _MAX_TOKEN_CHARS:
            if self._ended:
                raise TruncatedJsonError
            return
        line = self.line + self._buffer.count("\n", self._place, error.pos)
        raise BrokenValueError(f"line {line}: {error.msg}, so the JSON is invalid; record the trace again")

    def until(self, end: re.Pattern[str]) -> str:
        """Skip and return the text to the end of the first match of ``end``; an empty text if there is no match."""
        while (found := end.search(self._buffer, self._place)) is None or found.end() + _MAX_TOKEN_CHARS > len(
            self._buffer
        ):
            if self._ended or len(self._buffer) - self._place > MAX_VALUE_CHARS:
                break
            self._more()
        if found is None:
            return ""
        self._first, text = self._place, self._buffer[self._place : found.end()]
        self._step(found.end())
        return text

    def ahead(self, size: int) -> str:
        """Return the following text, of at least ``size`` characters unless the end is nearer."""
        while len(self._buffer) - self._place < size and not self._ended:
            self._more()
        return self._buffer[self._place : self._place + size]

    def skip(self, size: int, line_ends: int) -> None:
        """Skip ``size`` characters, which the caller has parsed, with so many line ends among them."""
        self.line += line_ends
        self._place += size

    def lines(self) -> int:
        """Read to the end of the text and return how many lines it has."""
        line_ends, last = self.line - 1 + self._buffer.count("\n", self._place), self._last
        for piece in self._pieces:
            line_ends, last = line_ends + piece.count("\n"), piece[-1:] or last
        return line_ends + (last != "\n")

    def members(self) -> Iterator[str]:
        """Yield the keys of the object that begins here; the caller reads each value."""
        self.take("{")
        if self.peek() == "}":
            self.take("}")
            return
        while True:
            key = self.value() if self.peek() in ('"', "") else self.take('"')
            self.take(":")
            yield str(key)
            if self.take(",", "}") == "}":
                return

    def items(self) -> Iterator[None]:
        """Yield once before each value of the list that begins here; the caller reads it."""
        self.take("[")
        while self.peek() != "]":
            yield
            if self.peek() != "]":
                self.take(",", "]")
        self.take("]")
