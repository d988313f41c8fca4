"""Reporting threshold of each quantity."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType

from profsvc.errors import DomainError, NotFoundError
from profsvc.specs.table_files import tables_of

FILE = "changes.toml"
KEYS = ("unit", "relative", "absolute", "worse", "reason")
WORSE = ("up", "down", "neither")


@dataclass(frozen=True)
class SmallestChange:
    """A change matters when it reaches both; ``worse`` is the direction that is a regression."""

    quantity: str
    unit: str
    relative: float
    absolute: float
    worse: str
    reason: str


def read_changes(text: str | None = None) -> dict[str, SmallestChange]:
    """Read ``changes.toml``: quantity, then `SmallestChange`."""
    known = {}
    for quantity, table in tables_of(FILE, text).items():
        where = f"{FILE} [{quantity}]"
        if set(table) != set(KEYS):
            raise DomainError(f"{where}: needs exactly {list(KEYS)} but has {list(table)}")
        for name in ("relative", "absolute"):
            if not isinstance(table[name], int | float) or not 0 <= table[name] < float("inf"):
                raise DomainError(f"{where}: {name} must be a number from 0 but is {table[name]!r}")
        if table["relative"] == table["absolute"] == 0:
            raise DomainError(f"{where}: relative or absolute must be above 0, else nothing is too small")
        if table["worse"] not in WORSE:
            raise DomainError(f"{where}: worse must be one of {list(WORSE)} but is {table['worse']!r}")
        known[quantity] = SmallestChange(quantity, **table)
    return known


@cache
def changes() -> Mapping[str, SmallestChange]:
    """Return the smallest changes by quantity.

    >>> changes()["power"].relative, changes()["duration"].worse
    (0.02, 'up')
    """
    return MappingProxyType(read_changes())


def smallest_change(quantity: str) -> SmallestChange:
    """Return the smallest change of ``quantity`` that matters.

    >>> smallest_change("criterion").absolute
    0.02
    """
    if quantity not in changes():
        raise NotFoundError.near("quantity", quantity, list(changes()))
    return changes()[quantity]
