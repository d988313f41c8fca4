"""Rows that sum up a summary of ``nsys stats``, which spreadsheets and scripts add below: a total is not a kernel."""

from collections.abc import Callable, Sequence
from decimal import Decimal


def _sum(values: Sequence[Decimal]) -> Decimal:
    return sum(values, Decimal())


# A name in small letters -> what its value is of those above. A row without a name is taken for a sum.
_SUMS: dict[str, Callable[[Sequence[Decimal]], Decimal]] = {
    **dict.fromkeys(("", "total", "totals", "sum", "grand total", "summe", "gesamt"), _sum),
    **dict.fromkeys(("average", "avg", "mean"), lambda values: _sum(values) / len(values)),
    **dict.fromkeys(("min", "minimum"), min),
    **dict.fromkeys(("max", "maximum"), max),
}
# Percent by which a sum of printed values may differ from the sum of the values.
TOLERANCE = Decimal("0.5")


class TotalRows:
    """Remembers the values of one summary, whose rows each are of one kernel, copy or call."""

    def __init__(self) -> None:
        """Start above the first row."""
        self._values: list[Decimal] = []

    def check(self, name: str, value: Decimal | None) -> None:
        """Add a row; raise `ValueError` if it sums up those above it.

        >>> rows = TotalRows()
        >>> rows.check("fill", Decimal(4512)), rows.check("Total", Decimal(7)), rows.check("saxpy", Decimal(4000))
        (None, None, None)
        >>> rows.check("Total", Decimal(8519))
        Traceback (most recent call last):
        ValueError: it is called 'Total' and sums up the 3 rows above it, so it is not one of them
        """
        sums_up = _SUMS.get(name.strip(" :").lower())
        if sums_up is not None and value is not None and self._values:
            expected = sums_up(self._values)
            if abs(value - expected) * 100 <= abs(expected) * TOLERANCE:
                rows = "row" if len(self._values) == 1 else f"{len(self._values)} rows"
                raise ValueError(f"it is called {name!r} and sums up the {rows} above it, so it is not one of them")
        if value is not None:
            self._values.append(value)
