"""Tables of pages as data: for each column what it holds, how it is written, and where its numbers are explained."""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, NamedTuple

Row = Mapping[str, Any]
NUMBERS = {"number", "speedup", "duration", "percent", "size", "light", "bar", "part"}
"""Kinds of cells that are numbers, and stand right."""


def row_of(key: str, run: str = "run_id") -> Callable[[Row], Mapping[str, Any]]:
    """Return what finds a row in its view: the run, and the number of the row, which stands under ``key``."""
    return lambda row: {"run": row[run], "row": row[key]}


class Column(NamedTuple):
    """A column: the key of its values in a row, its title, and the kind of its cells.

    Kinds: text, name (cut in its middle; ``full`` is the key of the whole one), flags, when, number, speedup, duration
    (ns), percent (of a share), size (bytes), light (a bar, marked at 60 and 80 %), bar (a value of 0 to 1), part
    (a bar of a share, in percent), noted (a text, with ``said`` of the row under it).
    """

    name: str
    title: str
    kind: str = "text"
    explain: str | Callable[[Row], str] = ""
    """What `/explain/` is asked for, or how a row names it; the number leads there."""
    where: Callable[[Row], Mapping[str, Any]] | None = None
    """The run and launch of a row, for the explanation: {"run": 1, "launch": 17000000001}."""
    link: Callable[[Row], str | None] | None = None
    """The path that a text or name leads to, without what a proxy puts before it."""
    sort: str = ""
    """The word of ``?order=`` that sorts by it."""
    width: int = 48
    full: str = ""
    flags: str = ""
    """The key of the flags of a row that make the speedup a bound."""

    def explained_as(self, row: Row) -> str:
        """Return what `/explain/` is asked for of a row."""
        return self.explain if isinstance(self.explain, str) else self.explain(row)

    @property
    def side(self) -> str:
        """The class of its cells."""
        return "n" if self.kind in NUMBERS else ""


def known(columns: Sequence[Column], rows: Sequence[Row], always: Collection[str] = ()) -> list[Column]:
    """Return the columns that hold something in some row, and those that are wanted ``always``."""
    return [one for one in columns if one.name in always or any(row.get(one.name) not in (None, "") for row in rows)]


def columns_of(
    rows: list[dict[str, Any]], leave: tuple[str, ...] = (), explain: Mapping[str, str] | None = None
) -> list[Column]:
    """Return plain columns for rows of any kind, such as those behind a figure; ``explain`` has a name for each."""
    names = [name for name in (rows[0] if rows else {}) if name not in leave]
    found = []
    for name in names:
        known = [row[name] for row in rows if row.get(name) is not None]
        numeric = bool(known) and all(isinstance(one, int | float) for one in known)
        said = (explain or {}).get(name, "") if numeric else ""
        found.append(Column(name, name.replace("_", " "), "number" if numeric else "text", said))
    return found
