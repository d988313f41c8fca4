"""A JSON text read piece by piece: one value of a long list at a time, with the lines that it stands on.

Numbers with a fraction come as `Decimal`, so that microseconds since 1970 keep their nanoseconds. What stands in
memory is one value, of at most `VALUE_LIMIT` characters.
"""

import json
import math
import re
from collections.abc import Iterator
from decimal import Decimal, InvalidOperation

from profsvc.errors import BrokenInputError

VALUE_LIMIT = 16 << 20
LONGEST_NUMBER = 60
# A word or an escape that the end of the file cuts is noticed at its beginning.
_LONGEST_TOKEN = 12


class CutError(Exception):
    """The text ends before its value does."""


class BrokenValueError(BrokenInputError):
    """A value is no JSON; the reading stands before it still."""


def clean(text: str) -> str:
    """Replace what no database stores: halves of characters, and NUL."""
    return text.replace("\0", "\ufffd").encode("utf-8", "replace").decode()


def _fraction(text: str) -> Decimal | float:
    try:
        return Decimal(text) if len(text) <= LONGEST_NUMBER else math.nan
    except InvalidOperation:
        return math.nan


_DECODER = json.JSONDecoder(parse_float=_fraction, strict=False)


def loads(text: str) -> object:
    """Return the one value that ``text`` holds, as `Json.value` does; `ValueError` if it holds none."""
    return _DECODER.decode(text)


class Json:
    """Where the reading stands in a JSON text; ``line`` is the line of the next character."""

    def __init__(self, pieces: Iterator[str]) -> None:
        """Begin before the first character of ``pieces``."""
        self.line = 1
        self._pieces = pieces
        self._buffer = ""
        self._place = 0
        self._ended = False
        self._decode = _DECODER.raw_decode

    def _more(self) -> None:
        """Make the unread part of the buffer at least twice as long, or reach the end."""
        parts = [self._buffer[self._place :]]
        size, wanted = len(parts[0]), 2 * len(parts[0]) + 1
        while size < wanted and not self._ended:
            piece = next(self._pieces, None)
            self._ended = piece is None
            parts.append(piece or "")
            size += len(parts[-1])
        self._buffer, self._place = "".join(parts), 0

    def _step(self, place: int) -> None:
        self.line += self._buffer.count("\n", self._place, place)
        self._place = place

    def peek(self) -> str:
        """Return the next character that is no space; an empty text at the end."""
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
        """Step over the next sign, which must be among ``signs``, and return it."""
        sign = self.peek()
        if not sign:
            raise CutError
        if sign not in signs:
            raise self.broken(f"{sign!r} stands where {' or '.join(signs)} must")
        self._step(self._place + 1)
        return sign

    def broken(self, what: str) -> BrokenInputError:
        """Return the error that the text is no JSON."""
        return BrokenInputError(f"line {self.line}: {what}, so this is no JSON; write the trace again")

    def value(self) -> object:
        """Read one value; raise `CutError` if the text ends inside it, `BrokenValueError` if it is none."""
        if not self.peek():
            raise CutError
        while True:
            try:
                value, end = self._decode(self._buffer, self._place)
                # A number at the end of the buffer may go on.
                if end < len(self._buffer) or self._ended:
                    self._step(end)
                    return value
            except json.JSONDecodeError as error:
                self._judge(error)
            except (RecursionError, ValueError) as error:
                raise self.broken(f"a value cannot be read ({str(error)[:100]})") from None
            if len(self._buffer) - self._place > VALUE_LIMIT:
                raise self.broken(f"a value is broken or longer than {VALUE_LIMIT} characters")
            self._more()

    def _judge(self, error: json.JSONDecodeError) -> None:
        """Raise what a text is that cannot be read; return if more of it may help."""
        end = len(self._buffer.rstrip())
        if error.msg.startswith("Unterminated string") or error.pos >= end - _LONGEST_TOKEN:
            if self._ended:
                raise CutError
            return
        line = self.line + self._buffer.count("\n", self._place, error.pos)
        raise BrokenValueError(f"line {line}: {error.msg}, so this is no JSON; write the trace again")

    def until(self, end: re.Pattern[str]) -> str:
        """Step over the text to the end of the first match of ``end`` and return it; an empty text if none follows."""
        while (found := end.search(self._buffer, self._place)) is None or found.end() + _LONGEST_TOKEN > len(
            self._buffer
        ):
            if self._ended or len(self._buffer) - self._place > VALUE_LIMIT:
                break
            self._more()
        if found is None:
            return ""
        text = self._buffer[self._place : found.end()]
        self._step(found.end())
        return text

    def ahead(self, size: int) -> str:
        """Return the text that follows, of at least ``size`` characters if there are so many."""
        while len(self._buffer) - self._place < size and not self._ended:
            self._more()
        return self._buffer[self._place : self._place + size]

    def skip(self, size: int) -> None:
        """Step over values that were read in what is `ahead`."""
        self._step(self._place + size)

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
