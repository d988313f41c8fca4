"""Units that stand in the cells of a log, behind each number: 52.10 W, 30 %."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from profsvc.formats.readings import unit_of
from profsvc.formats.sensors import NO_VALUES

_CELL = re.compile(r"([-+]?[0-9][0-9.,'\u2019]*(?:[eE][-+]?[0-9]+)?) ?([^\W\d_][^\W\d_]{0,9}|%|\u00b0[CF])")


@dataclass
class CellUnits:
    """The unit of each column, by place, whose numbers all come with the same one; None where they differ.

    A column that begins with other words has none: a note may say "5 V" once.
    """

    tokens: dict[int, str | None] = field(default_factory=dict)

    def see(self, place: int, cell: str) -> str:
        """Take in a cell, and return it without its unit."""
        if self.tokens.get(place, "") is None:
            return cell
        match = _CELL.fullmatch(cell)
        if match is None or unit_of(match[2]) is None:
            if cell.strip("[]").lower() not in NO_VALUES:
                self.tokens.setdefault(place, None)
            return cell
        known = self.tokens.setdefault(place, match[2])
        if known != match[2]:
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
            if token and found[at].endswith(token):
                found[at] = found[at].removesuffix(token).rstrip()
        return found
