"""Queries that people save under a name; ``v1_saved_queries`` lists them."""

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from profsvc.errors import NotFoundError, UsageError
from profsvc.store.connection.sql import Engine, text
from profsvc.store.connection.timestamps import format_time
from profsvc.store.connection.transactions import reading, writing

MAX_NAME_CHARS = 100
MAX_SQL_CHARS = 100_000
MAX_VALUES_CHARS = 10_000
_SELECT = "SELECT query_id, name, sql, params, chart, author, saved_at FROM saved_queries"


def save_query(
    engine: Engine,
    name: str,
    sql: str,
    params: Mapping[str, str] | None = None,
    chart: Mapping[str, str] | None = None,
    *,
    author: str | None = None,
    replace: bool = True,
) -> dict[str, Any]:
    """Save a query under a name and return it; with ``replace`` it takes the place of one with this name."""
    name, sql = name.strip(), sql.strip()
    if not name or len(name) > MAX_NAME_CHARS or not name.isprintable():
        raise UsageError(f"a saved query needs a name of 1 to {MAX_NAME_CHARS} printable characters, not {name[:99]!r}")
    if not sql or len(sql) > MAX_SQL_CHARS:
        raise UsageError(f"a saved query needs a SELECT of at most {MAX_SQL_CHARS} characters")
    row = {
        "name": name,
        "sql": sql,
        "params": json.dumps(dict(params or {}), ensure_ascii=False),
        "chart": json.dumps(dict(chart or {}), ensure_ascii=False),
        "author": author,
        "saved_at": format_time(datetime.now(UTC)),
    }
    if max(len(row["params"] or ""), len(row["chart"] or "")) > MAX_VALUES_CHARS:
        raise UsageError(f"the values of a saved query may have at most {MAX_VALUES_CHARS} characters")
    columns = ", ".join(row)
    changed = ", ".join(f"{column} = excluded.{column}" for column in row if column != "name")
    then = f"UPDATE SET {changed}" if replace else "NOTHING"
    with writing(engine) as connection:
        done = connection.execute(
            text(
                f"INSERT INTO saved_queries ({columns}) VALUES (:{columns.replace(', ', ', :')})"
                f" ON CONFLICT (name) DO {then}"
            ),
            row,
        )
        if done.rowcount == 0:
            raise UsageError(
                f"a query named {name!r} is already saved; choose another name, or open that one and save it"
            )
    return find_query(engine, name)


def find_query(engine: Engine, name: str) -> dict[str, Any]:
    """Return a saved query with its parameters and chart as mappings."""
    with reading(engine) as connection:
        row = connection.execute(text(f"{_SELECT} WHERE name = :name"), {"name": name}).mappings().first()
        if row is None:
            names = connection.execute(text("SELECT name FROM saved_queries ORDER BY query_id LIMIT 1000")).scalars()
            raise NotFoundError.near("saved query", name, list(names))
    return dict(row) | {"params": json.loads(row["params"]), "chart": json.loads(row["chart"])}


def list_queries(engine: Engine) -> list[dict[str, Any]]:
    """Return the saved queries by name."""
    with reading(engine) as connection:
        rows = connection.execute(text(f"{_SELECT} ORDER BY name")).mappings()
        return [dict(row) | {"params": json.loads(row["params"]), "chart": json.loads(row["chart"])} for row in rows]


def delete_query(engine: Engine, name: str) -> dict[str, Any]:
    """Delete a saved query and return it, so that it can be saved again."""
    found = find_query(engine, name)
    with writing(engine) as connection:
        connection.execute(text("DELETE FROM saved_queries WHERE name = :name"), {"name": name})
    return found
