"""Cells of nvprof tables to numbers: units, levels, and the meaning of unit prefixes.

KB means 1024 bytes in newer versions (observed since CUDA 8) and 1000 in older ones. A trace prints size, duration and
throughput of each copy; if the prefixes of size and throughput differ, the numbers show which base is meant.
"""

import math
import re
from dataclasses import dataclass, field
from decimal import Decimal
from functools import cache, cached_property
from typing import NamedTuple

from profsvc.errors import BrokenInputError
from profsvc.formats.parsing.numbers import MAX_EXACT_INT, NumberFormat, Numbers
from profsvc.specs import units
from profsvc.specs.metrics.vocabulary import PREFIXES

BINARY_BASE, DECIMAL_BASE = 1024, 1000
MAX_SAMPLES = 1000
MAX_BYTES = 2.0**62
MAX_TIME_S = 1e9
REPLAY_WARNING = "Warning: Some kernel(s) will be replayed"

_NUMBER = r"[-+]?[0-9][0-9.,'\u2019\u00a0\u202f\u2009]*(?:[eE][-+]?[0-9]+)?"
_INLINE = re.compile(rf"({_NUMBER}|-?nan|-?inf)([A-Za-z%][A-Za-z/]*)?", re.IGNORECASE)
_LEVEL = re.compile(r"(Idle|Low|Mid|High|Max) \(([0-9]|10)\)")
_BYTES = {"byte", "byte/s"}


class Value(NamedTuple):
    """A cell: its printed unit, and its value in ``si_unit`` or the reason why it has no value."""

    unit: str
    value: float | None
    si_unit: str | None
    reason: str | None


def split_unit(cell: str, unit: str = "") -> tuple[str, str]:
    """Return the number and the unit of a cell: the unit of its column, else the unit after the number.

    >>> split_unit("12.5GB/s"), split_unit("12.5", "ms"), split_unit("Low (2)")
    (('12.5', 'GB/s'), ('12.5', 'ms'), ('Low (2)', ''))
    """
    match = None if unit else _INLINE.fullmatch(cell)
    return (match[1], match[2] or "") if match else (cell, unit)


def _half_step(number: Decimal) -> float:
    """Return half of the last digit of a plain number, relative to the number."""
    exponent = number.as_tuple().exponent
    return float(Decimal((0, (5,), int(exponent) - 1)) / number) if isinstance(exponent, int) else 0.0


class UnitScales(dict[str, tuple[float, str] | None]):
    """Maps a printed unit to (factor, SI unit); None for an unknown unit."""

    def __init__(self, base: int) -> None:
        """Take the units of ``units.csv`` with prefixes of ``base``."""
        known = units("nvprof")
        super().__init__()
        for token, unit in known.items():
            power = PREFIXES.find(token[:1]) + 1 if unit.si_unit in _BYTES and token not in ("B", "B/s") else 0
            self[token] = (unit.factor * (base / BINARY_BASE) ** power, unit.si_unit)

    def __missing__(self, unit: str) -> None:
        """Return None for an unknown unit."""
        return


@cache
def _scales(base: int) -> UnitScales:
    return UnitScales(base)


@dataclass
class MemcpyUnits:
    """Sizes, durations and throughputs of copies, which show the base of unit prefixes."""

    fits: dict[int, int] = field(default_factory=dict)
    samples: int = 0
    old: str = ""

    def add(self, line: int, sample: list[tuple[str, str]]) -> None:
        """Add the size, the duration and the throughput of a copy, each with its unit."""
        if not self.full and all(number for number, _ in sample):
            self.samples += 1
            numbers = _printed(sample)
            bases = [base for base in (BINARY_BASE, DECIMAL_BASE) if numbers and _fits(*numbers, _scales(base))]
            if len(bases) == 1:
                self.fits.setdefault(bases[0], line)

    @property
    def full(self) -> bool:
        """Whether enough copies were examined."""
        return self.samples >= MAX_SAMPLES

    @property
    def settled(self) -> bool:
        """Whether no later line can change the result."""
        return self.full and bool(self.fits or self.old)

    def decide(self) -> tuple[int, str]:
        """Return the base of the prefixes and its source."""
        fits = self.fits
        if len(fits) == 2:
            raise BrokenInputError(
                f"by the sizes and throughputs of copies, K means {BINARY_BASE} on line {fits[BINARY_BASE]} and "
                f"{DECIMAL_BASE} on line {fits[DECIMAL_BASE]}; put the output of each nvprof version into its own file"
            )
        for base in fits:
            return base, f"{base}, by the sizes and throughputs of copies"
        if self.old:
            return DECIMAL_BASE, f"{DECIMAL_BASE}, as versions print that {self.old}"
        return BINARY_BASE, f"{BINARY_BASE}, as versions since CUDA 8 print"


def _printed(sample: list[tuple[str, str]]) -> tuple[list[tuple[float, str]], float] | None:
    """Return numbers with their units, and the sum of their half steps; None if one is 0, not finite or no number."""
    values, slack = [], 1e-6
    for text, unit in sample:
        try:
            number = Decimal(text)
            if not number.is_finite() or not number:
                return None
            slack += _half_step(number)
            values.append((float(text), unit))
        except (ArithmeticError, ValueError):  # Decimal and float strip different spaces
            return None
    return values, slack


def _fits(printed: list[tuple[float, str]], slack: float, scales: UnitScales) -> bool:
    """Return whether size / duration is the throughput, within the printed digits."""
    known = [(value, scale[0]) for value, unit in printed if (scale := scales[unit]) is not None]
    if len(known) < len(printed):
        return False
    size, duration, throughput = (value * factor for value, factor in known)
    return duration > 0 and throughput > 0 and abs(size / duration / throughput - 1) <= 1.1 * slack


@dataclass
class Values:
    """Reads the cells of one file."""

    number_format: NumberFormat
    base: int = BINARY_BASE

    @cached_property
    def numbers(self) -> Numbers:
        """The numbers of the file by their text."""
        return Numbers(self.number_format)

    @cached_property
    def scales(self) -> UnitScales:
        """The units of the file."""
        return UnitScales(self.base)

    def read(self, cell: str, unit: str = "") -> Value:
        """Read a cell of a column in ``unit``.

        >>> Values(NumberFormat()).read("Low (2)")
        Value(unit='Low (n)', value=0.2, si_unit='1', reason=None)
        >>> Values(NumberFormat()).read("2.5KB")
        Value(unit='KB', value=2560.0, si_unit='byte', reason=None)
        """
        if match := _LEVEL.fullmatch(cell):
            return Value(f"{match[1]} (n)", int(match[2]) / 10, "1", None)
        number, unit = split_unit(cell, unit)
        value, scale = self.numbers[number], self.scales[unit]
        if value != value or "(" in number:
            reason = "overflow" if "OVERFLOW" in cell.upper() else self.numbers.reason(number)
            return Value(unit, None, None, "text" if "(" in number else reason)
        if scale is None:
            return Value(unit, None, None, f"unknown unit {unit[:20]!r}")
        product = value * scale[0]
        return Value(unit, product, scale[1], None) if math.isfinite(product) else Value(unit, None, None, "too large")

    def time_ns(self, name: str, cell: str, unit: str = "") -> float | None:
        """Return a time in ns; None for an empty cell. Raise `ValueError` for anything else."""
        if not cell:
            return None
        value = self.read(cell, unit)
        if value.value is None or value.si_unit != "s" or not 0 <= value.value < MAX_TIME_S:
            raise ValueError(f"{name} is {cell[:40]!r}{' in ' + unit if unit else ''}, not a time with its unit")
        # Time factors are powers of ten, at least 1 ns; rounding makes 1.44 us exactly 1440 ns.
        factor = units("nvprof")[value.unit].factor
        return round(self.numbers[split_unit(cell, unit)[0]] * round(factor * 1e9), 6)

    def calls(self, total: str, mean: str) -> int:
        """Return how many calls have these printed times, sum and mean, each with its unit.

        Raise `ValueError` unless the printed digits leave exactly one number.

        >>> Values(NumberFormat()).calls("1.5000ms", "500.00us")
        3
        """
        times = [(self.time_ns("Time", cell), self.numbers.exact(split_unit(cell)[0])) for cell in (total, mean)]
        if not all(time and number for time, number in times):
            raise ValueError("Time or Avg is empty or 0, so they do not tell the number of calls")
        (sum_ns, mean_ns), slack = (float(time or 0) for time, _ in times), sum(_half_step(n) for _, n in times if n)
        low, high = (sum_ns / mean_ns * (1 + 1.1 * end) for end in (-slack, slack))
        if math.floor(high) != math.ceil(low):
            raise ValueError(f"the column Calls is missing, and {total} / {mean} may be {low:.7g} to {high:.7g} calls")
        return math.floor(high)

    def whole(self, name: str, cell: str) -> int | None:
        """Return an integer; None for an empty cell. Raise `ValueError` for anything else."""
        if not cell:
            return None
        value = self.numbers[cell]
        if value != value or value != int(value) or not 0 <= value < MAX_EXACT_INT or "(" in cell:
            raise ValueError(f"{name} is {cell[:40]!r}, not a whole number")
        return int(value)

    def size(self, cell: str, unit: str = "") -> float | None:
        """Return a number of bytes; None if the cell is not a size.

        Raise `ValueError` for a number with separators of another locale.
        """
        value = self.read(cell, unit) if cell else None
        if value and value.reason == "odd separators":
            raise ValueError(f"{cell[:40]!r} is a size with odd separators")
        fits = value and value.value is not None and value.si_unit == "byte" and 0 <= value.value < MAX_BYTES
        return value.value if value and fits else None
