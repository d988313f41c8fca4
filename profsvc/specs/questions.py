"""The example queries of queries.toml."""

import datetime
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType

from profsvc.errors import DomainError, NotFoundError, UsageError
from profsvc.specs.table_files import tables_of

FILE = "queries.toml"


@dataclass(frozen=True)
class Question:
    """A question in SQL over the views; a default of its parameters is a text, or a number of days from today."""

    name: str
    title: str
    sql: str
    params: Mapping[str, str | int]

    def values(self, given: Mapping[str, str], today: datetime.date | None = None) -> dict[str, str]:
        """Return the value of each parameter: as given, else its default on the day ``today`` in UTC."""
        if unknown := sorted(set(given) - set(self.params)):
            known = ", ".join(self.params) or "none"
            raise UsageError(f"the example {self.name!r} has no parameter {unknown[0]!r}; it has: {known}")
        today = today or datetime.datetime.now(datetime.UTC).date()
        days = {name: (today + datetime.timedelta(d)) for name, d in self.params.items() if isinstance(d, int)}
        return {name: given.get(name, str(days.get(name, default))) for name, default in self.params.items()}


def read_questions(text: str | None = None) -> dict[str, Question]:
    """Read ``queries.toml``: name, then `Question`."""
    known = {}
    for name, table in tables_of(FILE, text).items():
        if set(table) | {"params"} != {"title", "sql", "params"}:
            raise DomainError(f"{FILE} [{name}]: it has {sorted(table)} but needs title and sql, and may have params")
        params = table.get("params", {})
        if wrong := [key for key, default in params.items() if type(default) not in {str, int}]:
            raise DomainError(f"{FILE} [{name}]: the default of {wrong[0]!r} must be a text or a number of days")
        known[name] = Question(name, table["title"], table["sql"].strip(), MappingProxyType(params))
    return known


@cache
def questions() -> Mapping[str, Question]:
    """Return the example queries by name.

    >>> questions()["top_kernels"].values({}, datetime.date(2026, 1, 31))
    {'run': ''}
    """
    return MappingProxyType(read_questions())


def question(name: str) -> Question:
    """Return the example query of a name; raise `NotFoundError` with the nearest names."""
    if name not in questions():
        raise NotFoundError.near("example", name, questions())
    return questions()[name]
