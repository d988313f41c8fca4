"""What an opened launch shows of its counters, section by section: speed of light, stalls, memory, pipes, occupancy."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType

from profsvc.specs.metrics.vocabulary import counters
from profsvc.specs.table_files import rows_of

FILE = "metrics/breakdown.csv"
SECTIONS = ("light", "stalls", "stall_groups", "memory", "hits", "pipes", "occupancy", "shape")
UNITS = {"share": "1", "bytes": "byte", "rate": "byte/s", "cycles": "cycle/inst"}


@dataclass(frozen=True)
class ShownCounter:
    """A counter as a section shows it; kind is share, bytes, rate, cycles, count or number."""

    title: str
    counter: str
    kind: str


def read_breakdown(text: str | None = None) -> dict[str, tuple[ShownCounter, ...]]:
    """Read ``breakdown.csv``; raise `DomainError` for a row that is wrong."""
    found: dict[str, list[ShownCounter]] = {section: [] for section in SECTIONS}
    for row in rows_of(FILE, ("section", "title", "counter", "kind"), text):
        section, kind = row.one_of("section", SECTIONS), row.one_of("kind", (*UNITS, "count", "number"))
        if row["counter"] not in counters():
            raise row.wrong(f"counter must be among the counters but is {row['counter']!r}")
        unit = counters()[row["counter"]].unit
        if kind in UNITS and unit != UNITS[kind]:
            raise row.wrong(f"{row['counter']} is in {unit!r}, which is not a {kind}")
        if not row["title"] or row["title"] in {one.title for one in found[section]}:
            raise row.wrong(f"title must be a new one in {section} but is {row['title']!r}")
        found[section].append(ShownCounter(row["title"], row["counter"], kind))
    return {section: tuple(rows) for section, rows in found.items()}


@cache
def breakdown() -> Mapping[str, tuple[ShownCounter, ...]]:
    """Return the sections in their order.

    >>> breakdown()["light"][0].counter
    'sol_sm_fraction'
    """
    return MappingProxyType(read_breakdown())
