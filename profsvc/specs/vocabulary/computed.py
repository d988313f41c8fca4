"""Origin of numbers other than counters, criteria and model results: columns of views, totals of pages."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType
from typing import Any

from profsvc.errors import DomainError
from profsvc.specs.published.references import references
from profsvc.specs.table_files import tables_of

FILE = "vocabulary/columns.toml"
KEYS = {"formula", "read", "meaning", "unit", "of", "reference", "section"}


@dataclass(frozen=True)
class ComputedNumber:
    """A number named ``view.column``, ``view`` for all other columns of it, or ``page.number`` with a ``meaning``.

    It is computed by the ``formula``, of the columns ``of`` of the same row, or ``read`` in a file;
    ``reference`` is empty for what needs none.
    """

    name: str
    formula: str = ""
    read: str = ""
    meaning: str = ""
    unit: str = ""
    of: tuple[str, ...] = ()
    reference: str = ""
    section: str = ""


def read_computed(text: str | None = None) -> dict[str, ComputedNumber]:
    """Read ``columns.toml``; raise `DomainError` for a table that is wrong."""
    return {name: _one(name, table) for name, table in tables_of(FILE, text).items()}


def _one(name: str, table: dict[str, Any]) -> ComputedNumber:
    if unknown := sorted(set(table) - KEYS):
        raise DomainError(f"{FILE} [{name}]: {unknown} not known; there is {', '.join(sorted(KEYS))}")
    if bool(table.get("formula")) == bool(table.get("read")):
        raise DomainError(
            f"{FILE} [{name}]: formula is missing or empty, and so is read; it needs one of them, not both"
        )
    if (reference := table.get("reference", "")) and reference not in references():
        raise DomainError(f"{FILE} [{name}]: reference {reference!r} is not in references.toml")
    own = {key: value for key, value in table.items() if key != "of"}
    return ComputedNumber(name, of=tuple(table.get("of", ())), **own)


@cache
def computed() -> Mapping[str, ComputedNumber]:
    """Return the numbers by name.

    >>> computed()["v1_power.energy_j"].formula
    'integral of the power over the window'
    """
    return MappingProxyType(read_computed())
