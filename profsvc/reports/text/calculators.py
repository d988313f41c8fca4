"""The answer of a calculator as text for a terminal."""

from collections.abc import Iterator, Mapping
from textwrap import wrap
from typing import Any

from profsvc.reports.rows import render, visible

LINE = 112


def page(view: Mapping[str, Any], width: int | None = None) -> str:
    """Return the rows of an answer, its notes, its source and its error on measurements."""
    return "\n".join(visible(line) for line in _lines(view, width)) + "\n"


def _lines(view: Mapping[str, Any], width: int | None) -> Iterator[str]:
    yield f"{view['model']['title']} ({view['model']['source']})"
    yield ""
    titles = [name.replace("_", " ") for name in view["columns"]]
    rows = [dict(zip(titles, (row[name] for name in view["columns"]), strict=True)) for row in view["rows"]]
    yield from str(render(titles, rows, "table", width=width)).splitlines()
    for note in [*view["notes"], f"accuracy: {view['model']['accuracy']}"]:
        yield from wrap(note, LINE, subsequent_indent="  ") or [""]
