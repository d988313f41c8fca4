"""The tools of assistants: each takes the store or service that a call may use, and arguments that describe themselves.

An assistant reads the docstrings, so they say what a tool answers.
"""

import io
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, WithJsonSchema

from profsvc import docs
from profsvc.mcp import answers
from profsvc.mcp.access import Target

MAX_DOC_CHARS = 8_000
MAX_ROWS = 200
MAX_CONTENT_CHARS = 4_000_000
_EXPLAINED = ("name", "kind", "title", "unit", "meaning", "formula", "source", "hint", "trace")
_UPLOADED = ("run_id", "run", "upload_id", "format", "known", "launches", "lines_rejected", "message", "warnings")


def _text_or_number(description: str, number: str) -> Any:
    """Return what makes an argument a text that may be given as a whole number, written as ``number`` then."""
    return (
        BeforeValidator(lambda given: number.format(given) if type(given) is int else given),
        WithJsonSchema({"anyOf": [{"type": "string"}, {"type": "integer"}], "description": description}),
    )


# A run_id of an answer is the number of a run, even if another run has digits for a name.
Run = Annotated[str, *_text_or_number("run, by name, project/name or id", "id:{}")]
Kernel = Annotated[
    str, *_text_or_number("launch number, or a part of the kernel name; empty: where most is to save", "{}")
]


def list_runs(target: Target, project: str = "", limit: Annotated[int, Field(ge=1, le=100)] = 20) -> Any:
    """List the newest runs."""
    return answers.runs(target, project, limit)


def show_run(target: Target, run: Run, limit: Annotated[int, Field(ge=1, le=50)] = 10) -> Any:
    """Show where a run can save most time: causes by time saved, and its longest launches."""
    return answers.run(target, run, limit)


def what_to_change(target: Target, run: Run, kernel: Kernel = "") -> Any:
    """Say what to change in a kernel: causes of lost time with evidence, cost, first step and source lines."""
    return answers.what_to_change(target, run, kernel)


def comparing(*, record: bool) -> Callable[..., Any]:
    """Return the tool that compares two runs, and records how accurate predictions were if it may."""

    def did_it_help(
        target: Target,
        before: Run,
        after: Run,
        renamed: Annotated[dict[str, str] | None, Field(description="old kernel name to new name")] = None,
    ) -> Any:
        """Say whether a change made kernels faster: speedup, noise, causes, and warnings such as other clocks."""
        return answers.did_it_help(target, before, after, renamed or {}, record=record)

    return did_it_help


def explain_number(target: Target, name: str, run: Run = "", kernel: Kernel = "") -> Any:
    """Say what a criterion, counter, metric or model means; with a run, from which file and line it comes."""
    view = target.explain(name, run or None, kernel or None)
    return {key: view[key][:20] if key == "trace" else view[key] for key in _EXPLAINED if view.get(key)}


def ask_sql(
    target: Target,
    query: Annotated[str, Field(description="one SELECT over the v1_ views; read_docs('views') lists them")],
    parameters: Annotated[dict[str, str | float | None] | None, Field(description="values of :name")] = None,
    limit: Annotated[int, Field(ge=1, le=MAX_ROWS)] = 50,
) -> Any:
    """Run a read-only SQL query over the documented views."""
    found = target.ask(query, parameters or {}, limit=limit)
    rows = [list(row.values()) for row in found["rows"]]
    return {"columns": found["columns"], "rows": rows, "truncated": found["truncated"]}


def read_docs(
    _target: Target, topic: str = "", start: Annotated[int, Field(ge=0, description="first character")] = 0
) -> Any:
    """Read a page of the documentation; without a topic, list the pages."""
    if not topic:
        return {"topics": {name: one.summary for name, one in docs.topics().items()}}
    page = docs.topic(topic)
    text, end = page.text, start + MAX_DOC_CHARS
    return {"topic": page.name, "text": text[start:end], "next_start": end if end < len(text) else None}


def upload_file(
    target: Target,
    path: Annotated[str, Field(description="file of this machine")],
    run: str,
    project: str = "",
    commit: str = "",
) -> Any:
    """Store a profiler export or power log in a run, and analyze it."""
    return _stored(target, path, Path(path).name, run, project, commit)


def upload_text(
    target: Target,
    content: Annotated[str, Field(description="text of the export", max_length=MAX_CONTENT_CHARS)],
    run: str,
    file_name: str = "profile.csv",
    project: str = "",
    commit: str = "",
) -> Any:
    """Store the text of a profiler export or power log in a run, and analyze it."""
    return _stored(target, io.BytesIO(content.encode()), file_name, run, project, commit)


def _stored(target: Target, source: Any, name: str, run: str, project: str, commit: str) -> Any:
    asked = {"run": run, "project": project, "commit": commit}
    given: dict[str, Any] = {key: value for key, value in asked.items() if value}
    said = target.submit(source, file_name=name, **given)
    return {key: said[key] for key in _UPLOADED} | {"see": answers.link(target, said["run_id"])}
