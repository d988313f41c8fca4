"""How columns of the views are computed that are neither counters nor criteria."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType

from profsvc.errors import DomainError
from profsvc.specs.files import tables_of
from profsvc.specs.literature import references

FILE = "columns.toml"


@dataclass(frozen=True)
class Computed:
    """The formula of a column, named ``view.column``, and whose it is; ``reference`` is empty for what needs none."""

    name: str
    formula: str
    reference: str = ""
    section: str = ""


def read_computed(text: str | None = None) -> dict[str, Computed]:
    """Read ``columns.toml``."""
    known = {}
    for name, table in tables_of(FILE, text).items():
        if unknown := sorted(set(table) - {"formula", "reference", "section"}):
            raise DomainError(f"{FILE} [{name}]: {unknown} not known; there is formula, reference and section")
        if not table.get("formula"):
            raise DomainError(f"{FILE} [{name}]: formula is missing or empty")
        if (reference := table.get("reference", "")) and reference not in references():
            raise DomainError(f"{FILE} [{name}]: reference {reference!r} is not in references.toml")
        known[name] = Computed(name, **table)
    return known


@cache
def computed() -> Mapping[str, Computed]:
    """Return the columns by name.

    >>> computed()["v1_power.energy_j"].formula
    'integral of the power over the window'
    """
    return MappingProxyType(read_computed())
