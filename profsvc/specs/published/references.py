"""The papers, books and manuals that formulas cite."""

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType

from profsvc.errors import DomainError
from profsvc.specs.table_files import tables_of

FILE = "published/references.toml"


@dataclass(frozen=True)
class Reference:
    """A publication; ``doi`` and ``url`` are empty where there is none."""

    key: str
    authors: tuple[str, ...]
    title: str
    year: int
    venue: str
    doi: str = ""
    url: str = ""

    def __str__(self) -> str:
        """Return the citation as one line."""
        link = f" https://doi.org/{self.doi}" if self.doi else f" {self.url}" if self.url else ""
        return f"{', '.join(self.authors)}: {self.title}. {self.venue}, {self.year}.{link}"


def read_references(text: str | None = None) -> dict[str, Reference]:
    """Read ``references.toml``: key, then `Reference`."""
    allowed = {field.name for field in dataclasses.fields(Reference)} - {"key"}
    known = {}
    for key, table in tables_of(FILE, text).items():
        if missing := sorted({"authors", "title", "year", "venue"} - {name for name, value in table.items() if value}):
            raise DomainError(f"{FILE} [{key}]: {missing} missing or empty")
        if unknown := sorted(set(table) - allowed):
            raise DomainError(f"{FILE} [{key}]: {unknown} not known; there is {sorted(allowed)}")
        known[key] = Reference(key=key, **{**table, "authors": tuple(table["authors"])})
    return known


@cache
def references() -> Mapping[str, Reference]:
    """Return the references by key.

    >>> references()["Williams2009"].year
    2009
    """
    return MappingProxyType(read_references())
