"""The ten categories of the throughput model: what limits an application, what to do, and which is better."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType

from profsvc.specs.published.references import references
from profsvc.specs.table_files import rows_of

FILE = "advice/categories.csv"
NUMBERS = tuple(range(1, 11))


@dataclass(frozen=True)
class Category:
    """A category: its place in the order of merit, 1 the best, several in one place; verdict and advice."""

    number: int
    merit: int
    verdict: str
    advice: str
    source: str


def read_categories(text: str | None = None) -> dict[int, Category]:
    """Read ``categories.csv``: number, then category."""
    known: dict[int, Category] = {}
    for row in rows_of(FILE, ("category", "merit", "verdict", "advice", "source"), text):
        number = int(row.one_of("category", [str(n) for n in NUMBERS]))
        if number in known:
            raise row.wrong(f"category {number} occurs twice")
        merit = int(row.one_of("merit", [str(n) for n in NUMBERS]))
        if not (row["verdict"] and row["advice"]):
            raise row.wrong(f"category {number} needs a verdict and an advice")
        if row["source"].strip("[]") not in references():
            raise row.wrong(f"source must be a [reference] of references.toml but is {row['source']!r}")
        known[number] = Category(number, merit, row["verdict"], row["advice"], row["source"])
    return known


@cache
def _categories() -> dict[int, Category]:
    return read_categories()


def categories() -> Mapping[int, Category]:
    """Return the categories that `formulas.throughput.category` gives, by their numbers.

    The print repeats the verdict of category 6 for 7, whose bandwidth suffices; repaired here.

    >>> categories()[10].merit, categories()[5].advice
    (1, 'More warps certainly help. Until then a lower core frequency costs little.')
    """
    return MappingProxyType(_categories())
