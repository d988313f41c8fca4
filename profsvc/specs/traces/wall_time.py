"""The categories of the wall time of a trace, in the order in which they cover each other."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType

from profsvc.specs.table_files import rows_of

FILE = "traces/wall_time.csv"
DEVICE, GAP = "device", "gap"
KERNELS, GRAPHS = "kernels", "graphs"


@dataclass(frozen=True)
class WallTimeCategory:
    """A category: whether the device works (device) or waits (gap) in it, its title, meaning and first step."""

    category: str
    kind: str
    title: str
    meaning: str
    first_step: str

    @property
    def is_recoverable(self) -> bool:
        """Whether its time is a loss of the wall time; what kernels could save is another budget."""
        return self.category not in (KERNELS, GRAPHS)


def read_categories(text: str | None = None) -> dict[str, WallTimeCategory]:
    """Read ``wall_time.csv``: categories in the order in which they cover each other."""
    known: dict[str, WallTimeCategory] = {}
    columns = ("category", "kind", "title", "meaning", "first_step")
    for row in rows_of(FILE, columns, text):
        row.one_of("kind", (DEVICE, GAP))
        if not row["category"] or row["category"] in known:
            raise row.wrong(f"category {row['category']!r} is empty or there twice")
        if empty := [column for column in columns if not row[column]]:
            raise row.wrong(f"{row['category']!r} needs {', '.join(empty)}")
        known[row["category"]] = WallTimeCategory(*(row[column] for column in columns))
    return known


@cache
def wall_time_categories() -> Mapping[str, WallTimeCategory]:
    """Return the categories in the order in which they cover each other: an instant counts for the first of them."""
    return MappingProxyType(read_categories())
