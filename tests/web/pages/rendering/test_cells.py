"""A row that is made without a template has what a template makes of it, which escapes all that it shows."""

from typing import Any

import pytest
from markupsafe import Markup
from starlette.requests import Request

from profsvc.web.pages.rendering import cells, page
from profsvc.web.pages.rendering.tables import Column

VALUES = (None, 0, 17, 12345678, 0.5, 1234.5678, 1e300, -3, True)
TEXTS = ("", "a <b> & \"c\" 'd'", "x\u202ey\x1b", "two\nlines", "n" * 60_000)
TEMPLATE = page._TEMPLATES.from_string("""
{%- for column in columns -%}
{%- set given = row[column.name] -%}
{%- set explain = "" if by_title else column.explained_as(row) -%}
{%- set text = texts[column.kind](given) -%}
<td class="{{ column.side or (given | column_width) }}"{{ given | exported(column.side) }}>
{%- if explain and text != "–" -%}
<a class="number" data-explain href="{{ url('/explain/' ~ explain, **(column.where(row) if column.where else {})) }}">
{{- text }}</a>
{%- elif not explain and column.kind in ("text", "number") and column.link and column.link(row) -%}
<a href="{{ url(column.link(row)) }}">{{ text }}</a>
{%- else -%}{{ text }}{%- endif -%}
</td>
{%- endfor -%}""")
SHAPES: tuple[dict[str, Any], ...] = (
    {},
    {"explain": "v1_criteria.value"},
    {"explain": lambda row: "v1_<x>" if row["v"] else "", "where": lambda row: {"run": 7, "row": "a&b"}},
    {"link": lambda row: "/runs/ü & <7>" if row["v"] else None},
    {"link": lambda row: "/runs/7", "explain": "run.x", "where": lambda row: {"run": 7}},
)


def url(path: str, **query: Any) -> str:
    return page.path_to(Request({"type": "http", "root_path": "/tools"}), path, query)


def left_over(*_: object) -> Markup:
    return Markup("of the template")


@pytest.mark.parametrize("by_title", [False, True])
@pytest.mark.parametrize("kind", sorted(cells.TEXTS))
def test_a_cell_is_that_of_a_template(kind: str, by_title: bool) -> None:
    columns = [Column("v", "Title", kind, **shape) for shape in SHAPES]
    for value in VALUES + (TEXTS if kind in cells.MAY_LINK else ()):
        row = {"v": value}
        expected = TEMPLATE.render(columns=columns, row=row, by_title=by_title, url=url, texts=cells.TEXTS)
        assert cells.cells(url, columns, row, by_title, left_over) == expected


def test_other_kinds_are_left_to_the_template() -> None:
    columns = [Column("v", "Title", kind) for kind in ("name", "flags", "bar", "when")]
    columns.append(Column("v", "Title", "speedup", flags="f"))
    assert cells.cells(url, columns, {"v": None, "f": ""}, False, left_over).count("of the template") == 5


def test_no_text_of_a_file_is_markup() -> None:
    columns = [Column("v", "Title", link=lambda row: row["v"]), Column("v", "Title", explain=lambda row: row["v"])]
    made = cells.cells(url, columns, {"v": "\"><script>'"}, False, left_over)
    assert "<script" not in made
    assert made.count("&lt;script&gt;&#39;") == 2
