"""Numbers in any locale: detects the decimal and the thousands separator of a file.

The separators follow the locale of the machine that wrote the file, so they are a property of the file. `Evidence`
collects the cells; `Evidence.decide` returns the `NumberFormat`, or refuses the file and quotes the ambiguous cells:
``1,234`` alone may be 1234 or 1.234. ``1.234`` alone is 1.234, as in the C locale, unless other cells have a decimal
comma.
"""

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from decimal import Decimal

import numpy as np
from numpy.typing import NDArray

from profsvc.errors import BrokenInputError

# C++ prints the narrow space of a locale such as French as a normal space.
SPACES = " \u00a0\u202f\u2009"
APOSTROPHES = "'\u2019"
NOT_NUMBERS = {
    "": "empty",
    "nan": "nan",
    "-nan": "nan",
    "(!) nan": "nan",
    "inf": "inf",
    "-inf": "inf",
    "+inf": "inf",
    "infinity": "inf",
    "n/a": "n/a",
    "(!) n/a": "n/a",
    "[n/a]": "n/a",
    "no data": "no data",
}
MAX_INT64 = 2**63 - 1
MAX_EXACT_INT = 2**53
"""Doubles represent every integer up to this one exactly."""
MAX_MEMO_CELLS = 1 << 16

# A cell may end with the instances of a metric: "1,234 (1,000; 234)"; the number before them is the cell's value.
_END = r"(?: \([^\0]*\))?(?![^\0])"
_START = r"(?<![^\0])[-+]?"
_EXPONENT = r"(?:[eE][-+]?[0-9]+)?"
# Exponents of numbers whose digits would not fit into memory.
_FAR = re.compile(r"[eE][-+]?0*[1-9][0-9]{3}")
_SHAPES = {
    "group_comma": r"[0-9]{1,3}(?:(?:,[0-9]{3}){2,}|(?:,[0-9]{3})+\.[0-9]+)",
    "group_dot": r"[0-9]{1,3}(?:(?:\.[0-9]{3}){2,}|(?:\.[0-9]{3})+,[0-9]+)",
    "decimal_comma": rf"(?:(?:0[0-9]*|[0-9]{{4,}}|),[0-9]+|[0-9]+,(?:[0-9]{{1,2}}|[0-9]{{4,}})){_EXPONENT}",
    "decimal_dot": rf"(?:(?:0[0-9]*|[0-9]{{4,}}|)\.[0-9]+|[0-9]+\.(?:[0-9]{{1,2}}|[0-9]{{4,}})){_EXPONENT}",
    "maybe_comma": r"[1-9][0-9]{0,2},[0-9]{3}",
    "maybe_dot": r"[1-9][0-9]{0,2}\.[0-9]{3}",
    "space_comma": rf"[0-9]{{1,3}}(?:[{SPACES}][0-9]{{3}})+,[0-9]+",
    "space_dot": rf"[0-9]{{1,3}}(?:[{SPACES}][0-9]{{3}})+\.[0-9]+",
    "space": rf"[0-9]{{1,3}}(?:[{SPACES}][0-9]{{3}})+",
    "apostrophe_comma": rf"[0-9]{{1,3}}(?:[{APOSTROPHES}][0-9]{{3}})+,[0-9]+",
    "apostrophe_dot": rf"[0-9]{{1,3}}(?:[{APOSTROPHES}][0-9]{{3}})+\.[0-9]+",
    "apostrophe": rf"[0-9]{{1,3}}(?:[{APOSTROPHES}][0-9]{{3}})+",
}
_COMMA_MARKS_DECIMALS = ("decimal_comma", "group_dot", "space_comma", "apostrophe_comma")
_ONE_GROUP = re.compile(r"[1-9][0-9]{0,2}([,.])[0-9]{3}").fullmatch
_DOT_MARKS_DECIMALS = ("decimal_dot", "group_comma", "space_dot", "apostrophe_dot")
DOT_MARKS_DECIMALS = {*_DOT_MARKS_DECIMALS, "maybe_dot"}
"""Shapes of cells in which the point is, or may be, the decimal separator."""


@dataclass(frozen=True)
class NumberFormat:
    """The separators of one file: ``decimal`` is ``.`` or ``,``; ``thousands`` has the grouping signs, or is empty."""

    decimal: str = "."
    thousands: str = ""

    def __str__(self) -> str:
        """Write the format as an example.

        >>> str(NumberFormat(",", "."))
        '1.234,5'
        """
        sign = " " if self.thousands == SPACES else self.thousands[:1]
        return f"1{sign}234{self.decimal}5"


@dataclass
class Evidence:
    """Collects evidence of the separators of a file; keeps one cell of each shape."""

    found: dict[str, tuple[str, int]] = field(default_factory=dict)
    integers: dict[str, tuple[str, int]] = field(default_factory=dict)
    advice: str = "export again with LC_ALL=C set, or add a metric with decimals such as --section SpeedOfLight"
    _seen: set[str] = field(default_factory=set)
    _pattern: re.Pattern[str] | None = None

    def add(self, cells: Iterable[str], line: int) -> bool:
        """Add the cells of a record that begins on ``line``; tell whether they are of a shape not met before."""
        new = [cell for cell in dict.fromkeys(cells) if cell not in self._seen]
        if not new:
            return False
        if len(self._seen) > MAX_MEMO_CELLS:
            self._seen.clear()
        self._seen.update(new)
        if self._pattern is None:
            missing = [f"(?P<{name}>{shape})" for name, shape in _SHAPES.items() if name not in self.found]
            self._pattern = re.compile(f"{_START}(?:{'|'.join(missing) or '(?!)'}){_END}")
        for match in self._pattern.finditer("\0".join(new)):
            self.found.setdefault(str(match.lastgroup), (match.group(), line))
            self._pattern = None
        return self._pattern is None

    def add_integers(self, cells: Iterable[str], line: int) -> None:
        """Add cells that can only be whole numbers: a single separator in one of them groups thousands."""
        for cell in cells:
            if match := _ONE_GROUP(cell):
                self.integers.setdefault("group_comma" if match[1] == "," else "group_dot", (cell, line))

    @property
    def settled(self) -> bool:
        """Whether a cell has shown which sign marks decimals.

        Any further cell then reads the same whatever follows it, or contradicts: a sign of thousands in it is itself
        the evidence for it. So a file may be read on with the format of `decide` so far.
        """
        return any(name in self.found for name in (*_COMMA_MARKS_DECIMALS, *_DOT_MARKS_DECIMALS))

    def decide(self) -> NumberFormat:
        """Return the number format of the file; raise `BrokenInputError` if the cells contradict or do not tell."""
        special = [name for name in ("space", "apostrophe") if any(found.startswith(name) for found in self.found)]
        grouped = [name for name in ("group_comma", "group_dot") if name in self.found]
        comma = [name for name in _COMMA_MARKS_DECIMALS if name in self.found]
        dot = [name for name in _DOT_MARKS_DECIMALS if name in self.found]
        if (comma and dot) or len(special) > 1 or (special and grouped):
            raise self._refusal("contradict each other", [*comma[:1], *dot[:1], *special, *grouped])
        if special and not comma and not dot:
            comma, dot = (["maybe_comma"] if "maybe_comma" in self.found else []), ["maybe_dot"]
            if comma and "maybe_dot" in self.found:
                raise self._refusal("contradict each other", [*comma, *dot, *special])
        elif not comma and not dot:
            comma, dot = self._decide_by_integers()
        other = "maybe_dot" if comma else "maybe_comma"
        if special and other in self.found:
            raise self._refusal("contradict each other", [*comma[:1], *dot[:1], *special, other])
        if special:
            return NumberFormat("," if comma else ".", SPACES if special == ["space"] else APOSTROPHES)
        if comma:
            return NumberFormat(",", "." if {"group_dot", "maybe_dot"} & set(self.found) else "")
        return NumberFormat(".", "," if {"group_comma", "maybe_comma"} & set(self.found) else "")

    def _decide_by_integers(self) -> tuple[list[str], list[str]]:
        comma = ["maybe_dot"] if "group_dot" in self.integers else []
        dot = ["maybe_comma"] if "group_comma" in self.integers else []
        if comma and dot:
            raise self._refusal("contradict each other", [*comma, *dot])
        if "maybe_comma" in self.found and not comma and not dot:
            raise self._refusal("do not tell thousands from decimals", ["maybe_comma", "maybe_dot"])
        return comma, dot

    def _refusal(self, what: str, names: Iterable[str]) -> BrokenInputError:
        cells = {**self.integers, **self.found}
        shown = [cells[name] for name in dict.fromkeys(names) if name in cells]
        for name in ("space", "apostrophe"):
            shown += [cell for key, cell in cells.items() if name in names and key.startswith(name)][:1]
        quoted = ", ".join(f"{cell!r} (line {line})" for cell, line in dict.fromkeys(shown))
        return BrokenInputError(f"the separators of the numbers {quoted} {what}; {self.advice}")


class Numbers(dict[str, float]):
    """Reads each distinct cell once: ``numbers[cell]`` is its value, NaN if it is not a number.

    >>> numbers = Numbers(NumberFormat(".", ","))
    >>> numbers["1,234.5"], numbers["12 (5; 7)"], numbers["n/a"], numbers.reason("n/a")
    (1234.5, 12.0, nan, 'n/a')
    """

    def __init__(self, number_format: NumberFormat) -> None:
        """Read numbers written in ``number_format``."""
        super().__init__()
        self.number_format = number_format
        decimal, thousands = re.escape(number_format.decimal), number_format.thousands
        groups = rf"[0-9]{{1,3}}(?:[{re.escape(thousands)}][0-9]{{3}})+|" if thousands else ""
        number = rf"[-+]?(?:(?:{groups}[0-9]+)(?:{decimal}[0-9]*)?|{decimal}[0-9]+){_EXPONENT}"
        self._match = re.compile(rf"({number})(?: \(.*\))?", re.DOTALL).fullmatch
        self._all_match = re.compile(rf"(?:{number}\0)+").fullmatch
        self._signs = [*((sign, "") for sign in thousands), (number_format.decimal, ".")]

    def __missing__(self, cell: str) -> float:
        """Read ``cell`` and remember it."""
        match = self._match(cell.strip())
        text = match[1] if match else "nan"
        for sign, plain in self._signs:
            text = text.replace(sign, plain)
        value = float(text)
        if len(self) >= MAX_MEMO_CELLS:
            self.clear()
        self[cell] = value = value if math.isfinite(value) else math.nan
        return value

    def many(self, cells: Sequence[str]) -> NDArray[np.float64]:
        """Read cells that are probably all numbers, many times faster than one by one.

        >>> Numbers(NumberFormat(".", ",")).many(["1,234.5", "2"]).tolist()
        [1234.5, 2.0]
        """
        text = "\0".join(cells) + "\0"
        if not self._all_match(text):
            return np.fromiter(map(self.__getitem__, cells), np.float64, len(cells))
        for sign, plain in self._signs:
            text = text.replace(sign, plain)
        values = np.fromiter(map(float, text[:-1].split("\0")), np.float64, len(cells))
        values[np.isinf(values)] = np.nan
        return values

    def exact(self, cell: str) -> Decimal | None:
        """Read ``cell`` with all its digits, as timestamps need; None if it is none alone or beyond all bounds.

        >>> Numbers(NumberFormat(".", ",")).exact("1,720,000,000,000,000,001.5")
        Decimal('1720000000000000001.5')
        """
        text = cell.strip()
        match = self._match(text)
        if match is None or match[1] != text or _FAR.search(text):
            return None
        for sign, plain in self._signs:
            text = text.replace(sign, plain)
        return Decimal(text)

    def reason(self, cell: str) -> str:
        """Say why ``cell`` has no value."""
        text = cell.strip()
        if self._match(text):
            return "too large"
        odd = "odd separators" if re.fullmatch(r"[-+]?[0-9][0-9.,\s'\u2019]*", text) else "text"
        return NOT_NUMBERS.get(text.lower(), odd)
