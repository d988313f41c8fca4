"""The published figures that the formulas were held against: reproduced, contradicted by their own source, or not."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from profsvc.specs.published.references import references
from profsvc.specs.table_files import rows_of

FILE = "published/reproduced.csv"
COLUMNS = (
    *("figure", "source", "place", "inputs", "formula", "printed", "unit", "tolerance"),
    *("computed", "reproduced", "why"),
)
YES, NO, CANNOT = "yes", "no", "cannot"


@dataclass(frozen=True)
class Figure:
    """A figure as printed, and what the formula gives for the inputs printed with it.

    ``reproduced`` is yes, no (its source contradicts itself, or rounds on the way) or cannot (what it was computed from
    is not printed); ``why`` says more.
    """

    name: str
    source: str
    place: str
    inputs: Mapping[str, Any] = field(hash=False)
    formula: str
    printed: str
    unit: str
    tolerance: float | None
    computed: str
    reproduced: str
    why: str


def read_reproduced(text: str | None = None) -> tuple[Figure, ...]:
    """Read ``reproduced.csv``; raise `DomainError` for a row that is wrong."""
    found: list[Figure] = []
    for row in rows_of(FILE, COLUMNS, text):
        if not row["figure"] or row["figure"] in {one.name for one in found}:
            raise row.wrong(f"figure must be a new name but is {row['figure']!r}")
        if row["source"] not in references():
            raise row.wrong(f"source {row['source']!r} is not among the references")
        verdict = row.one_of("reproduced", (YES, NO, CANNOT))
        if verdict != YES and not row["why"]:
            raise row.wrong(f"it says {verdict} but not why")
        if (verdict == CANNOT) != (not row["computed"]):
            raise row.wrong(f"reproduced is {verdict} but computed is {row['computed']!r}")
        tolerance = row.number("tolerance") if row["tolerance"] else None
        inputs = json.loads(row["inputs"] or "{}")
        cells = {name: row[name] for name in ("source", "place", "formula", "printed", "unit", "computed", "why")}
        found.append(Figure(row["figure"], inputs=inputs, tolerance=tolerance, reproduced=verdict, **cells))
    return tuple(found)


@cache
def reproduced() -> tuple[Figure, ...]:
    """Return the published figures in the order of the file.

    >>> next(figure.computed for figure in reproduced() if figure.name == "ryoo_regs_11")
    '8448'
    """
    return read_reproduced()
