"""The list of models, and the answer of one to given inputs, as text for a terminal."""

from collections.abc import Iterator, Mapping
from textwrap import wrap
from typing import Any

from profsvc.errors import counted
from profsvc.reports.rows import render, visible

Row = Mapping[str, Any]
LINE = 112
INDENT = "  "


def answer(view: Row, width: int | None = None) -> str:
    """Return the rows of an answer, its notes, its source and its error on measurements."""
    return "\n".join(visible(line) for line in _answer_lines(view, width)) + "\n"


def _answer_lines(view: Row, width: int | None) -> Iterator[str]:
    yield f"{view['model']['title']} ({view['model']['source']})"
    yield ""
    titles = [name.replace("_", " ") for name in view["columns"]]
    rows = [dict(zip(titles, (row[name] for name in view["columns"]), strict=True)) for row in view["rows"]]
    yield from str(render(titles, rows, "table", width=width)).splitlines()
    for note in [*view["notes"], f"accuracy: {view['model']['accuracy']}"]:
        yield from wrap(note, LINE, subsequent_indent="  ") or [""]


def index(view: Row, width: int | None = None) -> str:
    """Return every model with its question, its command, and whether the run answers."""
    return "\n".join(visible(line) for line in _index_lines(view, min(width or LINE, LINE))) + "\n"


def _index_lines(view: Row, width: int) -> Iterator[str]:
    run, rows = view["run"], view["rows"]
    if run is None:
        yield f"{counted(len(rows), 'model')}. profsvc models RUN says which a run can answer."
    else:
        answered = sum(row["answers"] == "yes" for row in rows)
        of_runs = sum(row["answers"] != "from inputs" for row in rows)
        yield f"Run {run['name']} (id {run['run_id']}) answers {answered} of {of_runs} models about a run."
    for row in rows:
        yield ""
        answers = f" [{row['answers']}]" if run is not None else ""
        yield f"{row['name']}: {row['title']}{answers}"
        parts = [row["question"], f"{row['command']}  ({', '.join(filter(None, (row['view'], row['page'])))})"]
        parts += [row["why"]] if run is not None and row["why"] else [f"needs: {row['inputs']}"] if run is None else []
        parts += [f"source: {row['source']}", f"accuracy: {row['accuracy']}"]
        for part in parts:
            yield from wrap(part, width, initial_indent=INDENT, subsequent_indent=2 * INDENT)
