"""The objects at the beginning of a piece of a JSON list, parsed at once, and where each begins and ends."""

import re
from collections.abc import Iterator
from typing import Generic, NamedTuple, TypeVar

import msgspec
import numpy as np
import numpy.typing as npt

from profsvc.formats.columnar.line_blocks import IrregularBlockError, require_plain
from profsvc.formats.parsing.timestamps import Int64s

# What is parsed at once, and asked for its values before the caches of a processor lose it.
PIECE_BYTES = 128 << 10
# The standard library reads no longer integer; other parsers do.
MAX_DIGITS = 4000
# More blanks in a row between objects are looked for one object at a time.
MAX_BLANKS = 40
_HEAD = re.compile(rb'\{[ \t\r\n]*"[^"\\]*"[ \t\r\n]*:')
_LIST_END = re.compile(rb"\}[ \t\r\n]*\]")
_NEXT = re.compile(rb"[ \t\r\n]*,[ \t\r\n]*(?=\{)")
_BLANKS = b" \t\r\n"
_IS_BLANK = np.isin(np.arange(256), np.frombuffer(_BLANKS, np.uint8))
_IS_DIGIT = np.isin(np.arange(256), np.frombuffer(b"0123456789", np.uint8))
_OPEN, _CLOSE, _COMMA = b"{},"
_RAW = msgspec.json.Decoder(list[msgspec.Raw])
T = TypeVar("T")


class Objects(NamedTuple, Generic[T]):
    """Parsed objects, their ``size`` in bytes with what stands between them, and the places of their first and last."""

    values: list[T]
    size: int
    starts: Int64s
    stops: Int64s


def parse_pieces(text: bytes, decoder: "msgspec.json.Decoder[list[T]]") -> Iterator[Objects[T]]:
    """Yield the complete objects at the beginning of ``text``, which is inside a list, piece by piece.

    What follows a piece that is irregular is left; raise `IrregularBlockError` if that is the first one. Places and
    the size count from the beginning of ``text``.
    """
    begin = 0
    while True:
        try:
            found = parse_objects(text[begin : begin + PIECE_BYTES], decoder)
        except IrregularBlockError:
            if not begin:
                raise
            return
        size = begin + found.size
        yield Objects(found.values, size, found.starts + begin, found.stops + begin)
        between = _NEXT.match(text, size)
        if between is None:
            return
        begin = between.end()


def parse_objects(text: bytes, decoder: "msgspec.json.Decoder[list[T]]") -> Objects[T]:
    """Return the complete objects at the beginning of ``text``, which is inside a list.

    Raise `IrregularBlockError` if the first key of the first object begins no other, or if the objects are not those
    that ``decoder`` is for.

    >>> objects = parse_objects(b'{"a": 1},\\n{"a": 2}, {"a": ', msgspec.json.Decoder(list[dict[str, int]]))
    >>> objects.values, objects.size, objects.starts.tolist(), objects.stops.tolist()
    ([{'a': 1}, {'a': 2}], 18, [0, 10], [7, 17])
    """
    head = _HEAD.match(text)
    require_plain(head is not None)
    assert head is not None
    # Quotes inside texts are escaped, so this is the beginning of an object, if not of one in another.
    last = text.rfind(head[0])
    behind = _LIST_END.search(text, last)
    ends = [behind.start() + 1] if behind else []
    before = text[:last].rstrip(_BLANKS)
    if before.endswith(b","):
        ends.append(len(before[:-1].rstrip(_BLANKS)))
    for end in ends:
        piece = b"[" + text[:end] + b"]"
        try:
            values = decoder.decode(piece)
        except (msgspec.MsgspecError, RecursionError):
            continue
        letters = np.frombuffer(piece, np.uint8)
        require_plain(not _has_long_integer(piece, letters))
        starts, stops = _bounds(letters, len(values)) or _bounds_one_by_one(piece)
        return Objects(values, end, starts - 1, stops - 1)
    require_plain(False)
    raise AssertionError


def _bounds(letters: npt.NDArray[np.uint8], count: int) -> tuple[Int64s, Int64s] | None:
    """Return where objects begin and end, in a list of ``count``; None if something inside them looks like a bound.

    Between two objects there is always a brace, a comma, and a brace. If no more of these are found than there must be,
    each is a bound.
    """
    starts = np.flatnonzero(letters == _OPEN)
    commas = _back(letters, starts - 1)
    is_bound = letters[commas] == _COMMA
    starts, commas = starts[is_bound], commas[is_bound]
    stops = _back(letters, commas - 1)
    is_bound = letters[stops] == _CLOSE
    if np.count_nonzero(is_bound) != count - 1:
        return None
    return np.append(1, starts[is_bound]), np.append(stops[is_bound], len(letters) - 2)


def _back(letters: npt.NDArray[np.uint8], places: Int64s) -> Int64s:
    """Return the next place before each, or there, that is not blank; some blank if there are many."""
    for _ in range(MAX_BLANKS):
        blank = _IS_BLANK[letters[places]]
        if not blank.any():
            break
        places = places - blank
    return places


def _bounds_one_by_one(piece: bytes) -> tuple[Int64s, Int64s]:
    """Return where the objects of a list begin and end."""
    starts, stops, place = [], [], 0
    for raw in _RAW.decode(piece):
        start = piece.index(b"{", place)
        place = start + memoryview(raw).nbytes
        starts.append(start)
        stops.append(place - 1)
    return np.array(starts), np.array(stops)


def _has_long_integer(piece: bytes, letters: npt.NDArray[np.uint8]) -> bool:
    """Return whether so many digits follow each other that the standard library may refuse them."""
    step = MAX_DIGITS // 2
    digits = _IS_DIGIT[letters[::step]]
    places = np.flatnonzero(digits[:-1] & digits[1:]) * step
    return any(piece[place : place + step].isdigit() for place in places.tolist())
