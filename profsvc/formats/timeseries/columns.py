"""Columns of sensor logs, and their cells as values.

A cell becomes a number in SI units, a state (Active is 1, 0x4 is 4), or null with the reason.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache

import numpy as np
import numpy.typing as npt

from profsvc.errors import BrokenInputError
from profsvc.formats.columnar.categorical import CategoryColumn
from profsvc.formats.parsing.timestamps import Int64s
from profsvc.specs import units

Floats = npt.NDArray[np.float64]
Objects = npt.NDArray[np.object_]
Parsed = tuple[float, str | None]

UNKNOWN = "unknown"
TEXT = "text"
TRAILING = "spare"
AMBIGUOUS_SEPARATORS = "odd separators"
MAX_MEMO_CELLS = 1 << 16
# A longer cell cannot be a number, and the time to match it would grow with the square of its length.
MAX_CELL_CHARS = 100
# More distinct cells are parsed together.
MAX_DISTINCT_TEXTS = 256
STATES = {
    "active": 1.0,
    "not active": 0.0,
    "enabled": 1.0,
    "disabled": 0.0,
    "yes": 1.0,
    "no": 0.0,
    "on": 1.0,
    "off": 0.0,
    "true": 1.0,
    "false": 0.0,
}
NO_VALUES = {"": "empty", "-": "not supported", "n/a": "n/a", "nan": "nan", "inf": "inf", "err!": "error", "na": "n/a"}

_PLAIN = re.compile(r"([-+]?[0-9]+(?:\.[0-9]+)?(?:[eE][-+]?[0-9]{1,3})?) ?([A-Za-z%°/]+(?:\(s\))?)?")
_MANY_PLAIN = re.compile(r"[0-9]{1,15}(?:\.[0-9]{1,15})?(?:\n[0-9]{1,15}(?:\.[0-9]{1,15})?)*")
_MANY_WHOLE = re.compile(r"[0-9]{1,18}(?:\n[0-9]{1,18})*")
# In a column of whole numbers its point may group thousands.
_THOUSANDS = re.compile(r"[-+]?[1-9][0-9]{0,2}\.[0-9]{3}")
_HEX = re.compile(r"0[xX][0-9a-fA-F]{1,16}")
_PSTATE = re.compile(r"P([0-9]{1,2})")
_BRACKETS = re.compile(r"\[(.{1,60})\]")
_ODD_NUMBER = re.compile(r"[-+]?[0-9][0-9.,'\u2019\s]*[.,'\u2019\s][0-9.,'\u2019\s]*[0-9] ?[A-Za-z%°/]*")
_GROUPED = re.compile(r"[-+]?[0-9]{1,3}(?:[ \u00a0\u202f][0-9]{3})+(?:[.,][0-9]+)? ?[A-Za-z%°/]*")


class AmbiguousNumberError(ValueError):
    """A cell looks like a number, but with separators that the tool never prints."""


@cache
def si_scale(token: str) -> tuple[float, str] | None:
    """Return the factor and the SI unit of a printed unit; None if it is unknown.

    >>> si_scale("MHz"), si_scale("furlong")
    ((1000000.0, 'Hz'), None)
    """
    unit = units("sensor").get(token)
    return (unit.factor, unit.si_unit) if unit else None


def scale_exactly(value: float, factor: float) -> float:
    """Multiply by ``factor``; exactly for a power of ten below 1, because 1000 is an exact double but 1/1000 is not.

    >>> scale_exactly(79467.0, 0.001)
    79.467
    """
    return value / round(1 / factor) if factor < 1 else value * factor


@dataclass(frozen=True)
class Column:
    """A column of a log: its quantity, the SI unit of its sensor, and the unit in its header.

    ``role`` is ``value`` for a sensor; ``open`` if the cells decide (states become sensors, texts metrics); ``text``
    for texts; ``time``, ``elapsed``, ``gpu`` and ``device`` for the time and the GPU of the others; ``spare`` for a
    column without a name, which must be empty.
    """

    name: str
    role: str = "value"
    quantity: str = "state"
    unit: str = "1"
    token: str = ""
    whole: bool = False
    note: str = ""


def with_unique_names(columns: Sequence[Column]) -> list[Column]:
    """Return columns with unique names, because a property that was queried twice is two sensors.

    >>> [column.name for column in with_unique_names([Column("a"), Column("a"), Column("b")])]
    ['a', 'a (column 2)', 'b']
    """
    names = {(column.name, column.quantity): place for place, column in reversed(list(enumerate(columns)))}
    return [
        replace(column, name=f"{column.name} (column {place + 1})")
        if column.role in ("value", "open") and names[column.name, column.quantity] != place
        else column
        for place, column in enumerate(columns)
    ]


def parse_number(cell: str, column: Column) -> Parsed:
    """Return the value of a cell in the unit of its column, or NaN and the reason.

    Raise `AmbiguousNumberError` for a number with separators that the tool never prints, as in another locale.

    >>> parse_number(" 38.74 W", Column("power.draw", quantity="power", unit="W"))
    (38.74, None)
    >>> parse_number("[Not Supported]", Column("fan.speed", unit="1")), parse_number("0x10", Column("reasons"))
    ((nan, 'not supported'), (16.0, None))
    """
    text = cell.strip()
    if match := _PLAIN.fullmatch(text):
        return _with_unit(text, match[1], match[2] or column.token, column)
    lower = text.lower()
    if brackets := _BRACKETS.fullmatch(lower):
        return np.nan, NO_VALUES.get(brackets[1], brackets[1])
    if lower in NO_VALUES:
        return np.nan, NO_VALUES[lower]
    if column.unit == "1":
        if lower in STATES:
            return STATES[lower], None
        if match := _PSTATE.fullmatch(text):
            return float(match[1]), None
        if _HEX.fullmatch(text):
            value = float(int(text, 16))
            return (value, None) if int(value) == int(text, 16) else (np.nan, "too large")
    if (
        column.role == "value"
        and len(text) <= MAX_CELL_CHARS
        and (_ODD_NUMBER.fullmatch(text) or _GROUPED.fullmatch(text))
    ):
        raise AmbiguousNumberError(text)
    return np.nan, TEXT


def _with_unit(text: str, digits: str, token: str, column: Column) -> Parsed:
    if column.whole and _THOUSANDS.fullmatch(digits):
        raise AmbiguousNumberError(text)
    if column.unit == UNKNOWN:
        found: tuple[float, str] | None = (1.0, UNKNOWN)
    else:
        found = si_scale(token) if token else (1.0, column.unit)
    if found is None or found[1] != column.unit:
        return np.nan, TEXT if column.role == "open" else f"unit {token}, not {column.unit}"[:80]
    value = scale_exactly(float(digits), found[0])
    return (value, None) if np.isfinite(value) else (np.nan, "too large")


def parse_plain_numbers(texts: Sequence[str], column: Column) -> Floats | None:
    """Parse many cells together, if all are bare numbers or all have the unit of the column; None otherwise.

    >>> parse_plain_numbers([" 79.46 W", " 80 W"], Column("power.draw", quantity="power", unit="W", token="W"))
    array([79.46, 80.  ])
    """
    found = si_scale(column.token) if column.token else (1.0, column.unit)
    if found is None or found[1] != column.unit:
        return None
    bare = [text.strip() for text in texts]
    if column.token and bare[0].endswith(f" {column.token}"):
        ended = len(column.token) + 1
        if not all(text.endswith(f" {column.token}") for text in bare):
            return None
        bare = [text[:-ended] for text in bare]
    if not (_MANY_WHOLE if column.whole else _MANY_PLAIN).fullmatch("\n".join(bare)):
        return None
    values = np.array([float(text) for text in bare])
    return values / round(1 / found[0]) if found[0] < 1 else values * found[0]


class CellParser:
    """Parses the cells of a column, each distinct text once."""

    def __init__(self, tool: str) -> None:
        """Parse cells of a log of ``tool``, which error messages name."""
        self._tool = tool
        self._memo: dict[Column, dict[str, Parsed]] = {}

    def read(self, cells: CategoryColumn, column: Column, lines: Int64s) -> tuple[Floats, Objects | None]:
        """Return the values, and the reasons unless every cell has a value."""
        if cells.numbers is not None:
            return cells.numbers, None
        codes, texts = cells.codes, cells.texts
        if len(texts) > MAX_DISTINCT_TEXTS and column.role != TEXT:
            plain = parse_plain_numbers(texts, column)
            if plain is not None:
                return plain[codes], None
        memo = self._memo.setdefault(column, {})
        if len(memo) > MAX_MEMO_CELLS:
            memo.clear()
        read = [memo.get(text) or self._one(text, column, memo) for text in texts]
        values = np.array([value for value, _ in read], np.float64)[codes]
        if all(reason is None for _, reason in read):
            return values, None
        reasons = np.array([reason for _, reason in read], dtype=object)[codes]
        for place in np.flatnonzero(reasons == AMBIGUOUS_SEPARATORS)[:1].tolist():
            raise BrokenInputError(
                f"line {lines[place]}: {column.name} is {cells[place].strip()[:60]!r}, but {self._tool} prints "
                f"{'whole numbers' if column.whole else 'a decimal point'} and no thousands separators, so the number "
                "is ambiguous; record the log again with LC_ALL=C"
            )
        return values, reasons

    @staticmethod
    def _one(text: str, column: Column, memo: dict[str, Parsed]) -> Parsed:
        try:
            found = parse_number(text, column)
        except AmbiguousNumberError:
            found = np.nan, AMBIGUOUS_SEPARATORS
        if column.role == TEXT and found[1] in (None, AMBIGUOUS_SEPARATORS):
            found = np.nan, TEXT  # versions such as 9.0 are texts
        memo[text] = found
        return found


def gpu_number(cell: str) -> int | None:
    """Return the index of a GPU: 3, GPU 3, gpu3 and card3 are 3.

    >>> gpu_number(" GPU 3"), gpu_number("card0"), gpu_number("x")
    (3, 0, None)
    """
    text = cell.strip().lower().removeprefix("gpu").removeprefix("card").strip()
    return int(text) if text.isascii() and text.isdigit() and len(text) < 5 else None


def unknown_column(name: str, why: str) -> Column:
    """Return a column of unknown quantity, whose numbers are stored as printed."""
    return Column(name, "value", UNKNOWN, UNKNOWN, note=why)
