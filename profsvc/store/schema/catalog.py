"""SQL views: the stable, documented interface of the store. Their names and columns are a contract.

A view has a sentence, a FROM clause and one entry per column: name, kind (int, float, text), SQL, meaning. Each module
of this folder defines the views of its subject as ``VIEW_DEFINITIONS``. This module makes the SQL of the views, their
documentation (`VIEWS`) and the column types of frames (`KINDS`) from them.

The joins look redundant but are needed: a range next to an equality lets both databases find the launches of an upload,
and the upload of a launch, by primary keys. A ``LEFT JOIN`` becomes a plain join, and so a lookup, as soon as a query
filters by one of its columns.
"""

import json
from collections.abc import Iterable, Mapping

from profsvc.errors import DomainError
from profsvc.store.schema import archives, service
from profsvc.store.schema.contents import events, launch_views, run_views, sensors, source
from profsvc.store.schema.results import findings, launch_results, memory_traces, power, predictions, wall_time
from profsvc.store.schema.view_definition import ViewDefinition

# A number as JSON with all its digits, the same text from both databases: whole numbers without a point.
_IS_WHOLE = "n.value = round(n.value) AND abs(n.value) < 9e18"
_SHORTEST_DIGITS = " ".join(
    f"WHEN CAST(printf('%!.{digits}g', n.value) AS REAL) = n.value THEN printf('%!.{digits}g', n.value)"
    for digits in (15, 16)
)
_SQLITE_NUMBER = (
    f"CASE WHEN {_IS_WHOLE} THEN CAST(n.value AS INTEGER)"
    f" ELSE json(replace(CASE {_SHORTEST_DIGITS} ELSE printf('%!.17g', n.value) END, '.0e', 'e')) END"
)
_POSTGRES_NUMBER = f"CASE WHEN {_IS_WHOLE} THEN to_json(CAST(n.value AS bigint)) ELSE to_json(n.value) END"
_IS_FINITE = "abs(n.value) <= 1.7976931348623157e308"  # false without a value; JSON has no other numbers

# The only SQL that differs between the databases: key-value pairs as a JSON object, names joined into one text, the
# cells of a column, the position of the decimal point, an address as text, the counters that show a cause, and the
# readings of packed blocks.
DIALECT_SQL: Mapping[str, Mapping[str, str]] = {
    "sqlite": {
        "json_object": "json_group_object(t.key, t.value)",
        "names": "group_concat(n.name, ' + ')",
        "point": "instr(e.value, '.')",
        "hex_address": "printf('0x%x', e.address)",
        "now": "strftime('%Y-%m-%dT%H:%M:%SZ', 'now')",
        "evidence": (
            f"(SELECT json_group_array(json_object('counter', x.text, 'value', {_SQLITE_NUMBER},"
            " 'unit', json_extract(e.value, '$[1]'))) FROM json_each(q.evidence) e"
            # CROSS JOIN keeps the order of the list: SQLite does not reorder it.
            " CROSS JOIN texts x ON x.text = json_extract(e.value, '$[0]')"
            " CROSS JOIN counters n ON n.launch_id = c.launch_id AND n.counter_id = x.text_id"
            f" WHERE {_IS_FINITE})"
        ),
        "cells": """json_each('["' || replace(t.texts, ' ', '","') || '"]') e""",
        **sensors.DIALECT_SQL["sqlite"],
    },
    "postgresql": {
        "json_object": (
            "'{' || coalesce(string_agg(CAST(to_json(t.key) AS text) || ':' || CAST(to_json(t.value) AS text),"
            " ',' ORDER BY t.key), '') || '}'"
        ),
        "names": "string_agg(n.name, ' + ' ORDER BY n.name)",
        "point": "strpos(e.value, '.')",
        "hex_address": "'0x' || to_hex(e.address)",
        "evidence": (
            f"(SELECT coalesce(CAST(json_agg(json_build_object('counter', x.text, 'value', {_POSTGRES_NUMBER},"
            " 'unit', e.value ->> 1) ORDER BY e.number) AS text), '[]')"
            " FROM json_array_elements(CAST(q.evidence AS json)) WITH ORDINALITY e(value, number)"
            " JOIN texts x ON x.text = e.value ->> 0"
            " JOIN counters n ON n.launch_id = c.launch_id AND n.counter_id = x.text_id"
            f" WHERE {_IS_FINITE})"
        ),
        "now": """to_char(timezone('UTC', now()), 'YYYY-MM-DD"T"HH24:MI:SS"Z"')""",
        "cells": (
            "LATERAL (SELECT x.value, x.number - 1 AS key"
            " FROM unnest(string_to_array(t.texts, ' ')) WITH ORDINALITY x(value, number)) e"
        ),
        **sensors.DIALECT_SQL["postgresql"],
    },
}

COUNTER_VIEWS = ("v1_counters", "v1_counters_all")
"""Views with one more column for each counter."""

COLUMNS_FACT = "columns"
"""The name of the row of ``facts`` that holds those of ``v1_columns``, as JSON, in a SQLite file."""

_DEFINITIONS: dict[str, ViewDefinition] = {
    **run_views.VIEW_DEFINITIONS,
    **launch_views.VIEW_DEFINITIONS,
    **events.VIEW_DEFINITIONS,
    **sensors.VIEW_DEFINITIONS,
    **launch_results.VIEW_DEFINITIONS,
    **power.VIEW_DEFINITIONS,
    **predictions.VIEW_DEFINITIONS,
    **memory_traces.VIEW_DEFINITIONS,
    **source.VIEW_DEFINITIONS,
    **wall_time.VIEW_DEFINITIONS,
    **service.VIEW_DEFINITIONS,
    **findings.VIEW_DEFINITIONS,
    **archives.VIEW_DEFINITIONS,
}

_DEFINITIONS["v1_columns"] = ViewDefinition(
    "Columns of all views, one row per column.",
    "",
    (
        ("view_name", "text", "v.column1", "name of the view"),
        ("column_name", "text", "v.column2", "name of the column"),
        ("kind", "text", "v.column3", "int, float or text"),
        ("meaning", "text", "v.column4", "meaning of the column"),
    ),
)

VIEWS: Mapping[str, tuple[str, dict[str, str]]] = {
    view: (shape.sentence, {name: meaning for name, _, _, meaning in shape.columns})
    for view, shape in _DEFINITIONS.items()
}
"""Every view: its sentence and the meanings of its columns; ``v1_counters`` also has a column for each counter."""

KINDS: Mapping[str, dict[str, str]] = {
    view: {name: kind for name, kind, _, _ in shape.columns} for view, shape in _DEFINITIONS.items()
}
"""The kind (int, float, text) of every column of a view; a counter's is float."""


def column_kinds() -> dict[str, str]:
    """Return the kind of every column name that has one kind in all views.

    >>> column_kinds()["run_id"], column_kinds()["value"]
    ('int', 'float')
    """
    found: dict[str, set[str]] = {}
    for columns in KINDS.values():
        for name, kind in columns.items():
            found.setdefault(name, set()).add(kind)
    return {name: kinds.pop() for name, kinds in found.items() if len(kinds) == 1}


def check_counters(counters: Iterable[str]) -> list[str]:
    """Return the counters' names if each can be a column of ``v1_counters``; raise `DomainError` otherwise."""
    names = list(counters)
    for name in names:
        if not (name.isascii() and name.isidentifier() and name == name.lower()) or name in KINDS["v1_counters"]:
            raise DomainError(
                f"{name!r} is not a valid counter name; use a lower-case identifier that is not a column of v1_counters"
            )
    return names


def documentation(counters: Mapping[str, str]) -> dict[str, tuple[str, list[tuple[str, str, str]]]]:
    """Return the sentence and the columns (name, kind, meaning) of every view; ``counters``: those of counters."""
    return {view: (shape.sentence, _columns(view, counters)) for view, shape in _DEFINITIONS.items()}


def _columns(view: str, counters: Mapping[str, str]) -> list[tuple[str, str, str]]:
    columns = [(name, kind, says) for name, kind, _, says in _DEFINITIONS[view].columns]
    if view in COUNTER_VIEWS:
        columns += [(name, "float", says) for name, says in counters.items()]
    return columns


def quote_literal(text: str) -> str:
    """Return a text as an SQL literal.

    >>> quote_literal("a view's name")
    "'a view''s name'"
    """
    return "'" + text.replace("'", "''") + "'"


def create_view_sql(
    view: str, dialect: str, counters: Mapping[str, int], meanings: Mapping[str, str] | None = None
) -> str:
    """Return the statement that creates a view; ``counters`` gives the number of each counter's name.

    SQLite stores the statement as written, so the meanings of the view and its columns are comments in it.
    """
    shape = _DEFINITIONS[view]
    columns = _columns(view, meanings or dict.fromkeys(counters, ""))
    source, selected = shape.source, _selected(view, counters)
    if view == "v1_columns":
        source = _columns_source(meanings or {}, dialect)
    notes = [f"  -- {says}" if says and dialect == "sqlite" else "" for _, _, says in columns]
    if view == "v1_counters" and dialect == "sqlite":
        # Every connection to SQLite first parses all views, and those of counters are a third of that. So this one
        # takes all columns of the other, and names them in comments.
        source = launch_views.COUNTERS_ONCE
        lines = ["  a.*", *(f"  -- {name}{note}" for (name, _, _), note in zip(columns, notes, strict=True))]
    else:
        ends = [*[","] * (len(selected) - 1), ""]
        lines = [
            f"  {in_dialect(sql, dialect)}{end}{note}" for sql, end, note in zip(selected, ends, notes, strict=True)
        ]
    head = [f"CREATE VIEW {view} AS", *([f"-- {shape.sentence}"] if dialect == "sqlite" else []), "SELECT"]
    others = []
    for rows, more in shape.others:
        chosen = ", ".join(f"{more.get(name, sql)} AS {name}" for name, _, sql, _ in shape.columns)
        others.append(f"UNION ALL SELECT {chosen} FROM {rows}")
    return "\n".join(
        [*head, *lines, f"FROM {in_dialect(source, dialect)}", *(in_dialect(other, dialect) for other in others)]
    )


def _selected(view: str, counters: Mapping[str, int]) -> list[str]:
    """Return what a view selects: SQL and name of each column."""
    selected = [f"{sql} AS {name}" for name, _, sql, _ in _DEFINITIONS[view].columns]
    if view in COUNTER_VIEWS:
        # One lookup per column instead of a pivot by GROUP BY: a query only pays for the columns that it names.
        value = "(SELECT value FROM counters WHERE launch_id = l.launch_id AND counter_id = {})"
        own = launch_views.OWN_COUNTERS
        selected += [
            f'{f"coalesce({value}, {own[name]})" if name in own else value} AS "{name}"'.replace("{}", str(number))
            for name, number in counters.items()
        ]
    return selected


def in_dialect(sql: str, dialect: str) -> str:
    """Return SQL with the fields that databases spell in their own way."""
    # Not str.format: the statement contains braces that are not fields.
    for name, spelling in DIALECT_SQL[dialect].items():
        sql = sql.replace(f"{{{name}}}", spelling)
    return sql


def _columns_source(meanings: Mapping[str, str], dialect: str) -> str:
    """Return SQL for the rows of ``v1_columns``, with Postgres's column names of VALUES (column1, ...).

    Every connection to SQLite first parses all views, so there the rows lie in the table ``facts``.
    """
    if dialect == "sqlite":
        cells = ", ".join(f"json_extract(value, '$[{number}]') AS column{number + 1}" for number in range(4))
        return f"(SELECT {cells} FROM json_each((SELECT value FROM facts WHERE name = '{COLUMNS_FACT}'))) v"
    rows = (f"({', '.join(map(quote_literal, row))})" for row in _column_rows(meanings))
    return f"(VALUES {', '.join(rows)}) v"


def _column_rows(meanings: Mapping[str, str]) -> list[tuple[str, str, str, str]]:
    """Return the rows of ``v1_columns``."""
    return [
        (view, name, kind, says)
        for view, (_, columns) in documentation(meanings).items()
        for name, kind, says in columns
    ]


def columns_statement(meanings: Mapping[str, str]) -> str:
    """Return the statement that stores the rows of ``v1_columns`` in a SQLite file."""
    rows = quote_literal(json.dumps(_column_rows(meanings), ensure_ascii=False))
    return f"INSERT INTO facts (name, value) VALUES ('{COLUMNS_FACT}', {rows})"


def comment_statements(meanings: Mapping[str, str]) -> list[str]:
    """Return the statements that store the meanings of views and columns as comments on Postgres."""
    made = []
    for view, (sentence, columns) in documentation(meanings).items():
        made.append(f"COMMENT ON VIEW {view} IS {quote_literal(sentence)}")
        made += [f'COMMENT ON COLUMN {view}."{name}" IS {quote_literal(says)}' for name, _, says in columns]
    return made
