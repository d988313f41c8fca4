"""The objects of a JSON list found in a block of its text at once, without a look at what they hold.

The marks of the text (quotes, braces, brackets, line ends) tell where each object begins and ends. That they are JSON
is left to the parser that gets them: what is found here is right for JSON, and harmless for anything else.
"""

import re

import numpy as np
import numpy.typing as npt

from profsvc.formats.blocks import WORD, must
from profsvc.formats.clock import Flags, Int64s

# Deeper values may end the stack of a parser; longer numbers are refused by some parsers only.
DEEPEST = 64
LONGEST_GAP = 4000
LONGEST_DECIMAL = 24
QUOTE, LINE_END = ord('"'), ord("\n")
_BETWEEN = re.compile(rb"[ \t\r\n]*,[ \t\r\n]*")
# I and N begin the names of what is no number, which parsers know in different spellings.
_MARKS = bytes(letter in b'"{}[]\nIN' for letter in range(256))
_STEPS = np.zeros(256, np.int8)
_STEPS[np.frombuffer(b"{[", np.uint8)] = 1
_STEPS[np.frombuffer(b"}]", np.uint8)] = -1
_DIGITS, _ENDS, _IS_NAME, _BEHIND = (
    np.isin(np.arange(256), np.frombuffer(signs, np.uint8)) for signs in (b"-.0123456789", b",} \t\r\n", b"IN", b":,}")
)


class Objects:
    """The whole objects at the beginning of ``text``, which stands inside a list: ``starts`` to ``ends`` each.

    ``first_lines`` and ``last_lines`` count the line ends before them. Raise `NotPlainError` if there is none, or if
    anything but objects is among them.
    """

    def __init__(self, text: bytes) -> None:
        """Find them in the UTF-8 ``text``."""
        self.text = text
        marked = text.replace(b"\\\\", b"__").replace(b'\\"', b"__") if b"\\" in text else text
        # Behind the text are NULs, so that some letters can be taken from any place.
        self.letters = np.frombuffer(marked + bytes(LONGEST_DECIMAL), np.uint8)
        places = np.flatnonzero(np.frombuffer(marked.translate(_MARKS), np.bool_))
        signs = self.letters[places]
        quotes = signs == QUOTE
        inside = np.cumsum(quotes, dtype=np.uint8) & 1 == 1
        steps = np.where(inside, 0, _STEPS.take(signs))
        depths = np.cumsum(steps, dtype=np.int32)
        # Below 0 is what follows the list.
        outside = np.flatnonzero(depths < 0)
        closes = np.flatnonzero((depths == 0) & (steps < 0))
        closes = closes[: np.searchsorted(closes, outside[0])] if len(outside) else closes
        must(len(closes) > 0)
        size = int(closes[-1]) + 1
        places, signs, quotes, inside = places[:size], signs[:size], quotes[:size], inside[:size]
        steps, depths = steps[:size], depths[:size]
        opens = np.flatnonzero((depths == 1) & (steps > 0))
        must(bool((signs[opens] == ord("{")).all() and (signs[closes] == ord("}")).all()))
        must(int(depths.max()) <= DEEPEST and not bool((_IS_NAME.take(signs) & ~inside).any()))
        far = np.flatnonzero(np.diff(places) > LONGEST_GAP)
        must(bool(inside[far].all()))
        self.starts, self.ends = places[opens], places[closes] + 1
        between = map(slice, self.ends[:-1].tolist(), self.starts[1:].tolist())
        must(self.starts[0] == 0 and all(map(_BETWEEN.fullmatch, {text[gap] for gap in between})))
        lines = np.cumsum(signs == LINE_END)
        self.first_lines, self.last_lines = lines[opens], lines[closes]
        self._names = places[quotes & inside & (depths == 1)]
        self._words = self.words(self._names)
        # The names that are looked for must not be written with escapes.
        first = self._words.view(np.uint8).reshape(-1, WORD)[:, :4]
        must(b"\\" not in marked or not bool((first == ord("\\")).any()))

    def __len__(self) -> int:
        """Count the objects."""
        return len(self.starts)

    def joined(self, some: Flags) -> bytes:
        """Return some of the objects, a line between each."""
        places = zip(self.starts[some].tolist(), self.ends[some].tolist(), strict=True)
        return b"\n".join([self.text[start:end] for start, end in places])

    def values(self, name: str) -> tuple[Int64s, Int64s]:
        """Return which objects have a key of 2 or 3 letters, and where each of its values begins."""
        quoted = f'"{name}"'.encode()
        wanted, letters = (int.from_bytes(part, "little") for part in (quoted, b"\xff" * len(quoted)))
        found = self._names[self._words & np.uint64(letters) == np.uint64(wanted)]
        behind = self.letters[found + len(quoted)]
        # Where another sign follows, it is the text of a value.
        must(bool(_BEHIND.take(behind).all()))
        found = found[behind == ord(":")]
        places = found + len(quoted) + 1
        places += self.letters[places] == ord(" ")
        return np.searchsorted(self.starts, found, "right") - 1, places

    def words(self, places: Int64s) -> npt.NDArray[np.uint64]:
        """Return the eight letters from each place as one word; behind the last letter are NULs."""
        words: npt.NDArray[np.uint64] = np.ndarray(len(self.letters) - WORD + 1, "<u8", self.letters, 0, (1,))[places]
        return words

    def must_be_decimals(self, name: str) -> None:
        """Raise `NotPlainError` if a value of a key is not a short number without an exponent.

        Parsers may take a number from a text, or lose the digits of small ones.
        """
        places = self.values(name)[1]
        letters = np.lib.stride_tricks.sliding_window_view(self.letters, LONGEST_DECIMAL)[places]
        others = ~_DIGITS.take(letters)
        ends = others.argmax(axis=1)
        behind = letters[np.arange(len(places)), ends]
        must(bool((ends > 0).all() and _ENDS.take(behind).all()))
