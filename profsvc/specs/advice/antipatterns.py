"""What keeps a parallel program from its least time: the anti-parallel patterns, their metrics and their remedies."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType

from profsvc.specs.advice.causes import causes
from profsvc.specs.published.references import references
from profsvc.specs.table_files import rows_of

FILE = "advice/patterns.csv"


@dataclass(frozen=True)
class Pattern:
    """A pattern: what it loses, the metric that says how much, how to read that metric, and what to do.

    ``needs`` names the counters (``@name``) and model inputs that the metric is computed from, ``causes`` the causes of
    lost time that it is behind.
    """

    key: str
    title: str
    lost: str
    metric: str
    reading: str
    needs: tuple[str, ...]
    causes: tuple[str, ...]
    remedy: str
    source: str


def read_patterns(text: str | None = None) -> dict[str, Pattern]:
    """Read ``patterns.csv``: key, then pattern."""
    from profsvc.formulas.performance.time_bound import READINGS  # imports numpy, which a list of names need not

    known: dict[str, Pattern] = {}
    columns = ("pattern", "title", "lost", "metric", "reading", "needs", "causes", "remedy", "source")
    for row in rows_of(FILE, columns, text):
        key = row["pattern"]
        if not key or key in known:
            raise row.wrong(f"pattern {key!r} is empty or there twice")
        if empty := [column for column in columns if not row[column] and column != "causes"]:
            raise row.wrong(f"{key!r} needs {', '.join(empty)}")
        if row["source"].strip("[]") not in references():
            raise row.wrong(f"source must be a [reference] of references.toml but is {row['source']!r}")
        row.one_of("reading", READINGS)
        if wrong := [name for name in row["causes"].split() if name not in causes()]:
            raise row.wrong(f"causes: {', '.join(wrong)} is no cause of causes.toml")
        needs, of_causes = (tuple(row[column].split()) for column in ("needs", "causes"))
        known[key] = Pattern(
            key,
            row["title"],
            row["lost"],
            row["metric"],
            row["reading"],
            needs,
            of_causes,
            row["remedy"],
            row["source"],
        )
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
