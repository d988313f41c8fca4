"""The head of a file, by which readers recognize their format.

Dozens of readers examine the same head, so its text, its lines and its possible headers are computed once.
`memoize_on_head` does the same for other functions of the head.
"""

import codecs
import re
from collections.abc import Callable, Sequence
from functools import cached_property, wraps
from typing import Any, TypeVar

from profsvc.formats.parsing.text import marked_encoding

# A row begins with a number or a time, with or without quotes.
_ROW = re.compile(r'[ \t]*"?[-+]?[0-9][-+0-9.:/T ]*"?[ \t]*[,;\t]')
T = TypeVar("T")


class Head(bytes):
    """The first bytes of a file, decompressed."""

    @cached_property
    def text(self) -> str:
        """The decoded bytes; the last character may be cut."""
        encoding = marked_encoding(self)
        if encoding is None:
            try:
                codecs.getincrementaldecoder("utf-8")().decode(self)
                encoding = "utf-8"
            except UnicodeDecodeError:
                encoding = "latin-1"
        return self.decode(encoding, errors="replace")

    @cached_property
    def lines(self) -> list[str]:
        """The lines of the text, without their ends."""
        return self.text.split("\n")

    @cached_property
    def header_lines(self) -> list[str]:
        """The lines that may be headers."""
        return [line for line in self.lines if may_be_header(line)]

    @cached_property
    def answers(self) -> dict[Callable[..., Any], Any]:
        """The results of functions decorated with `memoize_on_head`."""
        return {}


def memoize_on_head(look: Callable[[bytes], T]) -> Callable[[bytes], T]:
    """Return a function that is computed once per `Head`.

    >>> length = memoize_on_head(lambda head: print("computed") or len(head))
    >>> head = Head(b"ab")
    >>> length(head), length(head), length(b"abc")
    computed
    computed
    (2, 2, 3)
    """

    @wraps(look)
    def looked(head: bytes) -> T:
        if not isinstance(head, Head):
            return look(head)
        if look not in head.answers:
            head.answers[look] = look(head)
        answer: T = head.answers[look]
        return answer

    return looked


def may_be_header(line: str) -> bool:
    """Tell whether a line may be the header of a table, as it does not begin with a number or a time and a separator.

    >>> [may_be_header(line) for line in ("Time,P1", "12 V,Time", '"0.5",7', "12:00:01;7")]
    [True, True, False, False]
    """
    return not _ROW.match(line)


def _head(head: bytes) -> Head:
    return head if isinstance(head, Head) else Head(head)


def head_text(head: bytes) -> str:
    """Decode the first bytes of a file.

    >>> head_text("größe".encode("utf-16"))
    'größe'
    """
    return _head(head).text


def head_lines(head: bytes, most: int | None = None) -> list[str]:
    """Return the first lines of a file, without their ends.

    >>> head_lines(b"a\\n1,2\\nb", 2)
    ['a', '1,2']
    """
    return _head(head).lines[:most]


def header_lines(head: bytes, words: Sequence[str] = ()) -> list[str]:
    """Return the first lines of a file that may be headers; with ``words``, those that contain one of them.

    >>> header_lines(b"Name,Time\\n1,2\\n{}\\nTime,Name\\nEnd", ("Time", "End", "Start"))
    ['Name,Time', 'Time,Name', 'End']
    """
    one = _head(head)
    if not words:
        return one.header_lines
    # The head of a trace has thousands of lines, and most of these words nowhere.
    present = [word for word in words if word in one.text]
    places = {place for word in present for place, line in enumerate(one.header_lines) if word in line}
    return [one.header_lines[place] for place in sorted(places)]
