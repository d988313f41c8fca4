"""How much of their potential mended kernels achieved, by the first cause: the table ``advice/mended_ranges.csv``."""

import dataclasses
from collections.abc import Mapping
from functools import cache
from types import MappingProxyType

from profsvc.errors import DomainError
from profsvc.specs.advice.causes import FILE as CAUSES
from profsvc.specs.advice.causes import causes
from profsvc.specs.table_files import rows_of

MENDED_RANGES = "advice/mended_ranges.csv"
COLUMNS = ("cause", "least_exponent", "largest_factor", "pairs")


@dataclasses.dataclass(frozen=True, slots=True)
class MendedRange:
    """What nine of ten mended kernels achieve at least, and do not exceed, and how many pairs that comes from.

    ``least_exponent`` is the power of the potential, ``largest_factor`` what it is multiplied by.
    """

    least_exponent: float
    largest_factor: float
    pairs: int


def read_mended_ranges(text: str | None = None) -> Mapping[str, MendedRange]:
    """Read ``mended_ranges.csv``: every flaw of ``causes.toml`` by name."""
    found: dict[str, MendedRange] = {}
    for row in rows_of(MENDED_RANGES, COLUMNS, text):
        exponent, factor, pairs = (row.number(column) for column in COLUMNS[1:])
        if not (0 <= exponent <= 1 <= factor and pairs >= 0):
            raise row.wrong(
                f"least_exponent must lie in [0, 1], largest_factor be 1 or more and pairs be 0 or more, but they are "
                f"{exponent:g}, {factor:g} and {pairs:g}"
            )
        found[row["cause"]] = MendedRange(exponent, factor, int(pairs))
    flaws = {name for name, cause in causes().items() if cause.kind == "flaw"}
    if wrong := sorted(flaws ^ set(found)):
        raise DomainError(f"{MENDED_RANGES}: needs a row for each flaw of {CAUSES}, and for nothing else: {wrong}")
    return MappingProxyType(found)


@cache
def mended_ranges() -> Mapping[str, MendedRange]:
    """Return the range of each flaw.

    >>> mended_ranges()["bank_conflicts"].least_exponent < 1
    True
    """
    return read_mended_ranges()
