"""Units in the cells of a log, after each number: 52.10 W, 30 %."""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from profsvc.formats.timeseries.columns import NO_VALUES
from profsvc.formats.timeseries.labels import TEMPERATURE_SHIFTS, unit_of

# Fluke prints 1.2345 A DC.
_CELL = re.compile(
    r"([-+]?[0-9][0-9.,'\u2019]*(?:[eE][-+]?[0-9]+)?) ?([^\W\d_][^\W\d_]{0,9}|%|\u00b0[CF])(?: (?:AC|DC|AC\+DC))?"
)


def _power(token: str, other: str) -> int | None:
    """Return the power of ten between two units; None if their ratio is not a power of ten.

    >>> _power("W", "kW"), _power("W", "V"), _power("C", "K")
    (3, None, None)
    """
    unit, larger = unit_of(token), unit_of(other)
    if unit is None or larger is None or unit.dimension != larger.dimension:
        return None
    power = round(math.log10(larger.factor / unit.factor))
    same = math.isclose(larger.factor, unit.factor * 10.0**power, rel_tol=1e-9)
    return power if same and TEMPERATURE_SHIFTS.get(unit.token) == TEMPERATURE_SHIFTS.get(larger.token) else None


def _in(cell: str, token: str) -> str:
    """Return the number of a cell in the unit ``token``; the cell itself if it has no unit.

    >>> _in("968.5 W", "W"), _in("1.02 kW", "W"), _in("N/A", "W"), _in("1.25 A DC", "A")
    ('968.5', '1.02e3', 'N/A', '1.25e0')
    """
    bare = cell.removesuffix(token).rstrip()
    if bare != cell and bare[-1:].isdigit():
        return bare
    match = _CELL.fullmatch(cell)
    power = _power(token, match[2]) if match else None
    return cell if match is None or power is None or "e" in match[1].lower() else f"{match[1]}e{power}"


@dataclass
class CellUnits:
    """The unit of the first number of each column, by place; None if other units of the column are not multiples.

    A column that begins with other texts has no unit: a note may contain "5 V" once.
    """

    tokens: dict[int, str | None] = field(default_factory=dict)

    def see(self, place: int, cell: str) -> str:
        """Add a cell, and return it without its unit."""
        if self.tokens.get(place, "") is None:
            return cell
        match = _CELL.fullmatch(cell)
        if match is None or unit_of(match[2]) is None:
            if cell.strip("[]").lower() not in NO_VALUES:
                self.tokens.setdefault(place, None)
            return cell
        known = self.tokens.setdefault(place, match[2])
        if known != match[2] and (known is None or _power(known, match[2]) is None):
            self.tokens[place] = None
            return cell
        return match[1]

    def bare(self, places: Sequence[int], cells: Sequence[str]) -> list[str]:
        """Return the cells at ``places``, each without the unit of its column.

        >>> CellUnits({1: "W"}).bare([0, 1, 1], ["7 W", "52.10 W"])
        ['7 W', '52.10', '52.10']
        """
        found = [cells[place] for place in places]
        for at, place in enumerate(places) if self.tokens else ():
            token = self.tokens.get(place)
            if token:
                found[at] = _in(found[at], token)
        return found
