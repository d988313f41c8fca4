"""Reporting threshold of each quantity, and the facts that are compared where one changed."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from types import MappingProxyType

from profsvc.errors import DomainError, NotFoundError
from profsvc.specs.table_files import rows_of, tables_of

FILE = "changes.toml"
KEYS = ("unit", "relative", "absolute", "worse", "reason")
WORSE = ("up", "down", "neither")
FACTS_FILE = "change_facts.csv"
FACT_KEYS = ("fact", "part", "title", "unit", "relative", "absolute")
FACT_PARTS = (
    "event", "context", "build", "inputs", "launch", "resources", "occupancy", "power", "work", "traffic", "causes",
    "kernels",
)  # fmt: skip
"""What a fact is about, in the order of reports."""


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


@dataclass(frozen=True)
class ChangeFact:
    """A fact of a run or kernel that is compared where a series changed; smaller differences are left out."""

    fact: str
    part: str
    title: str
    unit: str
    relative: float
    absolute: float


def read_change_facts(text: str | None = None) -> dict[str, ChangeFact]:
    """Read ``change_facts.csv``: fact, then `ChangeFact`, in the order of reports."""
    known: dict[str, ChangeFact] = {}
    for row in rows_of(FACTS_FILE, FACT_KEYS, text):
        if row["fact"] in known:
            raise row.wrong(f"{row['fact']!r} is already known")
        if not row["title"]:
            raise row.wrong("title must be there")
        limits = row.number("relative"), row.number("absolute")
        if not all(0 <= one < float("inf") for one in limits):
            raise row.wrong("relative and absolute must be numbers from 0")
        part = row.one_of("part", FACT_PARTS)
        known[row["fact"]] = ChangeFact(row["fact"], part, row["title"], row["unit"], *limits)
    return known


@cache
def change_facts() -> Mapping[str, ChangeFact]:
    """Return the facts that are compared, by name.

    >>> change_facts()["registers_per_thread"].title
    'registers'
    """
    return MappingProxyType(read_change_facts())


def change_fact(name: str) -> ChangeFact | None:
    """Return a compared fact by its name; None for one that is not compared.

    >>> change_fact("copied:HtoD").title, change_fact("luck")
    ('bytes copied (HtoD)', None)
    """
    if found := change_facts().get(name):
        return found
    family, colon, own = name.partition(":")
    found = change_facts().get(f"{family}:*") if colon else None
    return found and replace(found, fact=name, title=found.title.replace("*", own))
