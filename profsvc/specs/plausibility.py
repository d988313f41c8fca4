"""The range that each quantity can lie in; what lies outside is stored, flagged and kept out of results."""

import re
from dataclasses import dataclass
from functools import cache

from profsvc.specs.table_files import rows_of

FILE = "ranges.csv"
COLUMNS = ("of", "unit", "name", "low", "high", "why")


@dataclass(frozen=True)
class PlausibleRange:
    """A range, both ends included, and why nothing lies outside it.

    ``of``: the quantity of a sensor, or the table and column of a cell; ``name``: what a sensor of it is called, where
    it is not for all.
    """

    of: str
    unit: str
    name: re.Pattern[str] | None
    low: float
    high: float
    why: str

    def reason(self, value: float) -> str:
        """Say why a value is not used.

        >>> range_of("fan", "1").reason(70)
        "fan 70 is implausible; the range is 0 to 2, where 1 is 100 % (a share of the fan's rated speed)"
        """
        unit, share = ("", ", where 1 is 100 %") if self.unit == "1" else (f" {self.unit}", "")
        limits = f"{self.low:g} to {self.high:g}{unit}{share}"
        return f"{self.of} {value:.6g}{unit} is implausible; the range is {limits} ({self.why})"


def read_ranges(text: str | None = None) -> tuple[PlausibleRange, ...]:
    """Read ``ranges.csv``; raise `DomainError` for a row that is wrong."""
    found: list[PlausibleRange] = []
    for row in rows_of(FILE, COLUMNS, text):
        low, high = row.number("low"), row.number("high")
        if not row["of"] or not row["unit"] or not row["why"]:
            raise row.wrong("a range needs what it is of, a unit and a reason")
        if not low < high:
            raise row.wrong(f"low must be below high but they are {low:g} and {high:g}")
        if any(other.of == row["of"] and other.unit == row["unit"] and other.name is None for other in found):
            raise row.wrong(f"a range of {row['of']!r} for all names stands above it, so that it is never used")
        try:
            name = re.compile(row["name"], re.IGNORECASE) if row["name"] else None
        except re.error as error:
            raise row.wrong(f"name is not a valid pattern: {error}") from None
        found.append(PlausibleRange(row["of"], row["unit"], name, low, high, row["why"]))
    return tuple(found)


@cache
def ranges() -> tuple[PlausibleRange, ...]:
    """Return the ranges; of those of one quantity the first that fits counts.

    >>> [one.high for one in ranges() if one.of == "power"]
    [4000.0, 10000000.0]
    """
    return read_ranges()


def range_of(of: str, unit: str, name: str = "") -> PlausibleRange | None:
    """Return the range of a quantity in a unit, None where there is none.

    >>> range_of("temperature", "degC", "temperature.gpu").high, range_of("temperature", "degC", "TC 3").high
    (150.0, 1372.0)
    """
    fits = (one for one in ranges() if (one.of, one.unit) == (of, unit) and (one.name is None or one.name.search(name)))
    return next(fits, None)
