"""Finds the bounds of the objects of a JSON list in a block of text, without parsing them.

Quotes, braces, brackets and line ends show where each object begins and ends. The bounds are correct for valid JSON;
the parser rejects anything else.
"""

import re

import numpy as np
import numpy.typing as npt

from profsvc.formats.columnar.line_blocks import WORD_BYTES, require_plain
from profsvc.formats.parsing.timestamps import Flags, Int64s

# Deeper values may overflow the stack of a parser; only some parsers refuse longer numbers.
MAX_DEPTH = 64
MAX_GAP_CHARS = 4000
MAX_DECIMAL_CHARS = 24
QUOTE, LINE_END = ord('"'), ord("\n")
_BETWEEN = re.compile(rb"[ \t\r\n]*,[ \t\r\n]*")
# I and N begin Infinity and NaN, which parsers spell differently.
_MARKS = bytes(letter in b'"{}[]\nIN' for letter in range(256))
_STEPS = np.zeros(256, np.int8)
_STEPS[np.frombuffer(b"{[", np.uint8)] = 1
_STEPS[np.frombuffer(b"}]", np.uint8)] = -1
_DIGITS, _ENDS, _IS_NAME, _BEHIND = (
    np.isin(np.arange(256), np.frombuffer(signs, np.uint8)) for signs in (b"-.0123456789", b",} \t\r\n", b"IN", b":,}")
)


class JsonObjects:
    """The complete objects at the beginning of ``text``, which is inside a list: ``starts`` to ``ends`` each.

    ``first_lines`` and ``last_lines`` count the line ends before them. Raise `IrregularBlockError` if the text has no
    complete object, or anything but objects.
    """

    def __init__(self, text: bytes) -> None:
        """Find them in the UTF-8 ``text``."""
        self.text = text
        marked = text.replace(b"\\\\", b"__").replace(b'\\"', b"__") if b"\\" in text else text
        # NULs follow the text, so that a fixed number of bytes can be read from any place.
        self.letters = np.frombuffer(marked + bytes(MAX_DECIMAL_CHARS), np.uint8)
        places = np.flatnonzero(np.frombuffer(marked.translate(_MARKS), np.bool_))
        signs = self.letters[places]
        quotes = signs == QUOTE
        inside = np.cumsum(quotes, dtype=np.uint8) & 1 == 1
        steps = np.where(inside, 0, _STEPS.take(signs))
        depths = np.cumsum(steps, dtype=np.int32)
        # A depth below 0 is after the end of the list.
        outside = np.flatnonzero(depths < 0)
        closes = np.flatnonzero((depths == 0) & (steps < 0))
        closes = closes[: np.searchsorted(closes, outside[0])] if len(outside) else closes
        require_plain(len(closes) > 0)
        size = int(closes[-1]) + 1
        places, signs, quotes, inside = places[:size], signs[:size], quotes[:size], inside[:size]
        steps, depths = steps[:size], depths[:size]
        opens = np.flatnonzero((depths == 1) & (steps > 0))
        require_plain(bool((signs[opens] == ord("{")).all() and (signs[closes] == ord("}")).all()))
        require_plain(int(depths.max()) <= MAX_DEPTH and not bool((_IS_NAME.take(signs) & ~inside).any()))
        far = np.flatnonzero(np.diff(places) > MAX_GAP_CHARS)
        require_plain(bool(inside[far].all()))
        self.starts, self.ends = places[opens], places[closes] + 1
        require_plain(self.starts[0] == 0)
        self._apart = self._without_commas()
        lines = np.cumsum(signs == LINE_END)
        self.first_lines, self.last_lines = lines[opens], lines[closes]
        self._names = places[quotes & inside & (depths == 1)]
        self._text_ends = places[quotes & ~inside]
        self._words = self.words(self._names)
        # The searched names must not contain escapes.
        first = self._words.view(np.uint8).reshape(-1, WORD_BYTES)[:, :4]
        require_plain(b"\\" not in marked or not bool((first == ord("\\")).any()))

    def __len__(self) -> int:
        """Count the objects."""
        return len(self.starts)

    def _without_commas(self) -> bytes:
        """Return the text of all objects, with line ends for the commas between them; nothing else may stand there."""
        begins, widths = self.ends[:-1], self.starts[1:] - self.ends[:-1]
        if widths.max(initial=0) < WORD_BYTES:
            # The width stands in the last byte, so that a NUL in the text is no end of it.
            bits = (8 * widths).astype(np.uint64)
            words = self.words(begins) & ((np.uint64(1) << bits) - np.uint64(1))
            distinct, codes = np.unique(words | widths.astype(np.uint64) << np.uint64(56), return_inverse=True)
            gaps = [word.to_bytes(WORD_BYTES, "little")[: word >> 56] for word in distinct.tolist()]
        else:
            cells = [self.text[start:end] for start, end in zip(begins.tolist(), self.starts[1:].tolist(), strict=True)]
            number = {gap: place for place, gap in enumerate(dict.fromkeys(cells))}
            gaps, codes = list(number), np.array([number[cell] for cell in cells], np.intp)
        require_plain(all(map(_BETWEEN.fullmatch, gaps)))
        letters = np.frombuffer(self.text, np.uint8, int(self.ends[-1])).copy()
        if gaps:
            letters[begins + np.array([gap.index(b",") for gap in gaps])[codes]] = LINE_END
        return letters.tobytes()

    def joined(self, some: Flags) -> bytes:
        """Return some of the objects, with line ends between them."""
        # Adjacent objects are copied together.
        edges = np.flatnonzero(np.diff(some, prepend=False, append=False))
        places = zip(self.starts[edges[::2]].tolist(), self.ends[edges[1::2] - 1].tolist(), strict=True)
        return b"\n".join([self._apart[start:end] for start, end in places])

    def values(self, name: str) -> tuple[Int64s, Int64s]:
        """Return which objects have a key of 2 or 3 letters, and where its values begin."""
        quoted = f'"{name}"'.encode()
        wanted, letters = (int.from_bytes(part, "little") for part in (quoted, b"\xff" * len(quoted)))
        found = self._names[self._words & np.uint64(letters) == np.uint64(wanted)]
        behind = self.letters[found + len(quoted)]
        # Without a colon it is a string value, not a key.
        require_plain(bool(_BEHIND.take(behind).all()))
        found = found[behind == ord(":")]
        places = found + len(quoted) + 1
        places += self.letters[places] == ord(" ")
        return np.searchsorted(self.starts, found, "right") - 1, places

    def words(self, places: Int64s) -> npt.NDArray[np.uint64]:
        """Return the eight bytes from each place as one word; NULs follow the last byte."""
        words: npt.NDArray[np.uint64] = np.ndarray(len(self.letters) - WORD_BYTES + 1, "<u8", self.letters, 0, (1,))[
            places
        ]
        return words

    def has_text_ending(self, *endings: bytes) -> bool:
        """Tell whether a text, or a key, ends in one of ``endings``.

        >>> objects = JsonObjects(b'{"cat": "GPU COPY", "n": 1}')
        >>> objects.has_text_ending(b"Python", b"COPY"), objects.has_text_ending(b"GPU", b'"cats')
        (True, False)
        """
        words = self.words(np.maximum(self._text_ends - WORD_BYTES, 0))
        for ending in endings:
            last = ending[-WORD_BYTES:]
            alike = words >> np.uint64(8 * (WORD_BYTES - len(last))) == np.uint64(int.from_bytes(last, "little"))
            if alike.any() and ending + b'"' in self.text:
                return True
        return False

    def must_be_decimals(self, name: str) -> None:
        """Raise `IrregularBlockError` if a value of a key is not a short number without an exponent.

        Parsers may accept a quoted number, or lose digits of small numbers.
        """
        places = self.values(name)[1]
        letters = np.lib.stride_tricks.sliding_window_view(self.letters, MAX_DECIMAL_CHARS)[places]
        others = ~_DIGITS.take(letters)
        ends = others.argmax(axis=1)
        behind = letters[np.arange(len(places)), ends]
        require_plain(bool((ends > 0).all() and _ENDS.take(behind).all()))
