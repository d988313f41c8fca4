"""Rows of tables. Cells that are a number or a text with a link need no template: pages have hundreds of them."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from markupsafe import Markup, escape

from profsvc.web.pages.rendering import filters
from profsvc.web.pages.rendering.tables import Column, Row

Url = Callable[..., str]
"""Returns the path of a page of the service: its path without the root path of a proxy, and parameters."""
TEXTS: Mapping[str, Callable[[Any], str]] = {
    "text": filters.value,
    "number": filters.value,
    "unit": filters.unit,
    "duration": filters.duration,
    "percent": filters.percent,
    "size": filters.size,
    "speedup": filters.speedup,
}
"""How values of these kinds are written."""
MAY_LINK = ("text", "number")


def explained(url: Url, text: str, name: str, where: Mapping[str, Any]) -> Markup:
    """Return a number that links to its formula and source, if it has a name for `/explain/`.

    >>> explained(lambda path, **query: f"{path}?{query['run']}&", "1 < 2", "v1_models.value", {"run": 7})
    Markup('<a class="number" data-explain href="/explain/v1_models.value?7&amp;">1 &lt; 2</a>')
    >>> explained(lambda path: path, "1", "", {})
    Markup('1')
    """
    shown = escape(filters.escape_unsafe(text))
    if text == filters.MISSING or not name:
        return shown
    path = escape(filters.escape_unsafe(url(f"/explain/{name}", **where)))
    return Markup(f'<a class="number" data-explain href="{path}">{shown}</a>')  # both parts are escaped


def cells(
    url: Url,
    columns: Sequence[Column],
    row: Row,
    explained_by_title: bool,
    template_cell: Callable[[Column, Row, bool], Markup],
) -> Markup:
    """Return the cells of a row; ``template_cell`` makes the content of those that are more than a text and a link."""
    made = []
    for one in columns:
        given = row[one.name]
        content = _content(url, one, row, explained_by_title) or template_cell(one, row, explained_by_title)
        width = one.side or filters.column_width(given)
        made.append(f'<td class="{width}"{filters.exported(given, one.side)}>{content}</td>')
    return Markup("".join(made))  # every part is escaped


def _content(url: Url, column: Column, row: Row, explained_by_title: bool) -> Markup | None:
    if column.kind not in (*TEXTS, "quantity") or (column.kind == "speedup" and column.flags):
        return None
    given = row[column.name]
    text = filters.quantity(given, row["unit"]) if column.kind == "quantity" else TEXTS[column.kind](given)
    explain = "" if explained_by_title else column.explained_as(row)
    if not explain and column.link and column.kind in MAY_LINK and (path := column.link(row)):
        href = escape(filters.escape_unsafe(url(path)))
        return Markup(f'<a href="{href}">{escape(filters.escape_unsafe(text))}</a>')  # both parts are escaped
    return explained(url, text, explain, column.where(row) if column.where and explain else {})
