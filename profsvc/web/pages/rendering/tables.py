"""Tables of pages: the content, format and explanation of each column."""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, NamedTuple

Row = Mapping[str, Any]
NUMERIC_KINDS = {
    "number",
    "quantity",
    "speedup",
    "duration",
    "percent",
    "size",
    "light",
    "bar",
    "part",
    "signed",
    "change",
}
"""Kinds of numeric cells, which are right-aligned."""

UNITS = {
    **dict.fromkeys(("duration", "signed"), "ns"),
    **dict.fromkeys(("percent", "part", "light", "change"), "fraction"),
    "size": "bytes",
}


def row_reference(key: str, run: str = "run_id") -> Callable[[Row], Mapping[str, Any]]:
    """Return a function that identifies a row in its view by its run and its number in ``key``."""
    return lambda row: {"run": row[run], "row": row[key]}


class Column(NamedTuple):
    """A column: the key of its values in a row, its title, and the kind of its cells.

    Kinds: text, name (shortened in its middle; ``full`` is the key of the full one), unit, flags, when, number,
    quantity (a number in the ``unit`` of the row, written with the prefix that fits it), speedup, duration (ns),
    percent (of a share), size (bytes), light (a bar, marked at 60 and 80 %), bar (a value of 0 to 1), part (a bar of a
    share, in percent), signed (a difference in ns), change (a share with sign; ``flags`` is the key of the word beside
    it, slower or faster, which colours both), tick (a box that chooses the run of the row), launches (a number that
    opens to the worst launches), noted (a text with the ``remark`` of the row below it).
    """

    name: str
    title: str
    kind: str = "text"
    explain: str | Callable[[Row], str] = ""
    """Name for `/explain/`, or a function that returns it for a row."""
    where: Callable[[Row], Mapping[str, Any]] | None = None
    """The run and launch of a row, for the explanation: {"run": 1, "launch": 17000000001}."""
    link: Callable[[Row], str | None] | None = None
    """Returns the path of a link without the root path of a proxy."""
    sort: str = ""
    """Value of ``?order=`` that sorts by this column."""
    width: int = 48
    full: str = ""
    flags: str = ""
    """Key of the flags that make the speedup a bound."""

    def explained_as(self, row: Row) -> str:
        """Return the name for `/explain/` of a row."""
        return self.explain if isinstance(self.explain, str) else self.explain(row)

    @property
    def unit(self) -> str:
        """The unit of its values as numbers, for an export; empty if the title or the number says all."""
        return UNITS.get(self.kind, "")

    @property
    def side(self) -> str:
        """The CSS class of its cells."""
        return "n" if self.kind in NUMERIC_KINDS else ""


def nonempty_columns(columns: Sequence[Column], rows: Sequence[Row], always: Collection[str] = ()) -> list[Column]:
    """Return the columns with a value in some row, and those listed in ``always``."""
    return [one for one in columns if one.name in always or any(row.get(one.name) not in (None, "") for row in rows)]


def plain_columns(
    rows: list[dict[str, Any]], leave: tuple[str, ...] = (), explain: Mapping[str, str] | None = None
) -> list[Column]:
    """Return plain columns for rows such as the data of a figure; ``explain`` maps names to explanations."""
    names = [name for name in (rows[0] if rows else {}) if name not in leave]
    found = []
    for name in names:
        values = [row[name] for row in rows if row.get(name) is not None]
        numeric = bool(values) and all(isinstance(one, int | float) for one in values)
        explanation = (explain or {}).get(name, "") if numeric else ""
        found.append(Column(name, name.replace("_", " "), "number" if numeric else "text", explanation))
    return found
