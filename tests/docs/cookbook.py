"""The page ``howto/cookbook``: every example query with its first rows on the store of the tests of queries."""

from collections.abc import Iterator

from sqlalchemy import Engine

from profsvc import specs, store
from profsvc.reports.rows import render
from tests.docs.console import plain
from tests.store.queries.questions import PARAMS

SHOWN = 5


def _parts(engine: Engine) -> Iterator[str]:
    yield "# SQL cookbook"
    yield (
        "Every example query, with its first rows on a small store. `profsvc sql --example NAME` runs one on your "
        "store, on SQLite or Postgres. Give a value with `--param NAME=VALUE`. An empty `run` is the newest run."
    )
    for question in specs.questions().values():
        params = question.values(PARAMS.get(question.name, {}))
        answer = store.query(engine, question.sql, params)
        rows = [dict(zip(answer.columns, row, strict=True)) for row in answer.rows[:SHOWN]]
        given = " ".join(f"--param {name}={value}" for name, value in params.items() if name not in {"since", "until"})
        yield f"## {question.name}"
        yield f"{question.title}."
        yield f"```sql\n{question.sql}\n```"
        shown = plain(render(answer.columns, rows, "table", width=160)) if rows else "no rows on this store\n"
        more = f"... and {len(answer.rows) - SHOWN} more\n" if len(answer.rows) > SHOWN else ""
        command = f"profsvc sql --example {question.name} {given}".strip()
        yield f"```text\n$ {command}\n{shown}{more}```"


def cookbook(engine: Engine) -> str:
    """Return the page."""
    return "\n\n".join(_parts(engine)) + "\n"
