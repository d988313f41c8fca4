"""What keeps a parallel program from its least time: the anti-parallel patterns, their metrics and their remedies."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType

from profsvc.formulas.performance.time_bound import READINGS
from profsvc.specs.references import references
from profsvc.specs.table_files import rows_of

FILE = "patterns.csv"


@dataclass(frozen=True)
class Pattern:
    """A pattern: what it loses, the metric that says how much, how to read that metric, and what to do."""

    key: str
    title: str
    lost: str
    metric: str
    reading: str
    remedy: str
    source: str


def read_patterns(text: str | None = None) -> dict[str, Pattern]:
    """Read ``patterns.csv``: key, then pattern."""
    known: dict[str, Pattern] = {}
    columns = ("pattern", "title", "lost", "metric", "reading", "remedy", "source")
    for row in rows_of(FILE, columns, text):
        key = row["pattern"]
        if not key or key in known:
            raise row.wrong(f"pattern {key!r} is empty or there twice")
        if empty := [column for column in columns if not row[column]]:
            raise row.wrong(f"{key!r} needs {', '.join(empty)}")
        if row["source"].strip("[]") not in references():
            raise row.wrong(f"source must be a [reference] of references.toml but is {row['source']!r}")
        row.one_of("reading", READINGS)
        known[key] = Pattern(*(row[column] for column in columns))
    return known


@cache
def _patterns() -> dict[str, Pattern]:
    return read_patterns()


def patterns() -> Mapping[str, Pattern]:
    """Return the patterns by their keys, in the order of the table.

    >>> patterns()["divergence"].reading, patterns()["divergence"].remedy
    ('kept', 'reorder threads, predicate, split kernels')
    """
    return MappingProxyType(_patterns())
