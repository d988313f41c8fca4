"""The SQL views: the stable, documented surface of the store. Their names and columns are a contract.

A view is a sentence, a FROM clause and a row a column: name, kind (int, float, text), SQL, meaning. They are written
in `profsvc.store.shapes`, the modules beside it that end in ``_shapes`` and, for results, here. From these come the
views themselves, their documentation (`VIEWS`) and the types of what `profsvc.store.read` returns (`KINDS`).

The joins look redundant and are not: a range beside an equality lets both databases walk from an upload to its
launches and from a launch to its upload by primary keys. A ``LEFT JOIN`` whose column the view shows becomes a plain
join, and so a look-up, as soon as a query asks for one value of it.
"""

import json
from collections.abc import Iterable, Mapping

from profsvc.errors import DomainError
from profsvc.store import (
    event_shapes,
    launch_shapes,
    night_shapes,
    power_shapes,
    prediction_shapes,
    schedule_shapes,
    shapes,
    trace_shapes,
)  # fmt: skip
from profsvc.store.schema import STEP, WHOLE
from profsvc.store.shapes import FLAG_NAMES, FLAGS, Shape, flag_names, text_of

# The one place where the SQL of the views differs: key-value pairs as a JSON object in text, names in one text, the
# cells of a column, and the place of the point in one.
SPELLED: Mapping[str, Mapping[str, str]] = {
    "sqlite": {
        "json_object": "json_group_object(t.key, t.value)",
        "names": "group_concat(n.name, ' + ')",
        "point": "instr(e.value, '.')",
        "now": "strftime('%Y-%m-%dT%H:%M:%SZ', 'now')",
        "cells": """json_each('["' || replace(t.texts, ' ', '","') || '"]') e""",
    },
    "postgresql": {
        "json_object": (
            "'{' || coalesce(string_agg(CAST(to_json(t.key) AS text) || ':' || CAST(to_json(t.value) AS text),"
            " ',' ORDER BY t.key), '') || '}'"
        ),
        "names": "string_agg(n.name, ' + ' ORDER BY n.name)",
        "point": "strpos(e.value, '.')",
        "now": """to_char(timezone('UTC', now()), 'YYYY-MM-DD"T"HH24:MI:SS"Z"')""",
        "cells": (
            "LATERAL (SELECT x.value, x.number - 1 AS key"
            " FROM unnest(string_to_array(t.texts, ' ')) WITH ORDINALITY x(value, number)) e"
        ),
    },
}


OF_COUNTERS = ("v1_counters", "v1_counters_all")
"""The views with a column for each counter besides."""

CEILING_FLAGS = flag_names("c.ceiling_flags")
_SUBJECT = (
    f" LEFT JOIN launches l ON l.launch_id = c.launch_id"
    f" AND c.run_id = (SELECT o.run_id FROM uploads o WHERE o.upload_id = l.launch_id / {STEP})"
    " LEFT JOIN shapes h ON h.shape_id = l.shape_id"
    f" LEFT JOIN kernels k ON k.kernel_id = CASE c.kernel_id WHEN {WHOLE} THEN h.kernel_id ELSE c.kernel_id END"
)
_RUN = ("run_id", "int", "c.run_id", "the run")
_SUBJECT_COLUMNS = (
    ("launch_id", "int", "l.launch_id", "the launch; null for the whole run or for all launches of a kernel"),
    ("kernel", "text", "k.kernel", "full name of the kernel; null for the whole run"),
    ("kernel_short", "text", "k.kernel_short", "its name without types and parameters"),
)
_JUDGED = (
    ("flags", "text", FLAG_NAMES, f"what to beware of, names with a space between: {' '.join(FLAGS)}"),
    ("reason", "text", text_of("c.reason_id"), "why a value is null"),
    ("analysis_version", "text", text_of("c.version_id"), "version of the analysis that computed the row"),
)


def _results(sentence: str, table: str, own: Iterable[tuple[str, str, str, str]], joins: str = "") -> dict[str, Shape]:
    """Make the pair of views of a table of results: the rows of the newest analysis, and those of every one."""
    source = f"runs r JOIN {table} c ON c.run_id = r.run_id{{newest}}{_SUBJECT}{joins}"
    columns = (_RUN, *_SUBJECT_COLUMNS, *own, *_JUDGED)
    current = (
        "is_current",
        "int",
        "CASE WHEN c.version_id = r.version_id THEN 1 ELSE 0 END",
        "1 for the newest analysis",
    )
    return {
        f"v1_{table}": Shape(sentence, source.format(newest=" AND c.version_id = r.version_id"), columns),
        f"v1_{table}_history": Shape(
            f"The rows of v1_{table} as every version of the analysis computed them.",
            source.format(newest=""),
            (*columns, current),
        ),
    }


_SHAPES: dict[str, Shape] = {
    **shapes.SHAPES,
    **launch_shapes.SHAPES,
    **event_shapes.SHAPES,
    **_results(
        "One criterion of a launch, of a kernel or of a whole run, by the newest analysis.",
        "criteria",
        (
            ("criterion", "text", text_of("c.criterion_id"), "name of the criterion"),
            ("value", "float", "c.value", "1 is ideal, 0 is worst; consistent form"),
            ("share", "float", "c.share", "share of the time that the criterion is about"),
            ("speedup", "float", "c.speedup", "potential speedup if the criterion became 1; consistent form"),
            ("value_as_published", "float", "c.value_as_published", "the printed formula, literally"),
            ("speedup_as_published", "float", "c.speedup_as_published", "the printed formula, literally"),
        ),
    ),
    **_results(
        "The potential speedup of a launch, of a kernel or of a whole run, by the newest analysis.",
        "potential",
        (
            ("bound", "text", text_of("c.bound_id"), "busiest unit; latency where none is near its peak"),
            ("ideal_bound", "text", text_of("c.ideal_bound_id"), "unit that limits the ideal version"),
            ("mem_throughput_ratio", "float", "c.mem_throughput_ratio", "memory throughput over its peak"),
            ("arith_throughput_ratio", "float", "c.arith_throughput_ratio", "arithmetic throughput over its peak"),
            ("speedup", "float", "c.speedup", "potential speedup, consistent form"),
            ("speedup_as_published", "float", "c.speedup_as_published", "the printed formula, literally"),
            ("speedup_ceiling", "float", "c.speedup_ceiling", "no change passes it that keeps algorithm, type, units"),
            ("ideal_ns", "float", "c.ideal_ns", "time at the potential speedup"),
            ("duration_ns", "float", "c.duration_ns", "time it took"),
            ("ceiling_flags", "text", CEILING_FLAGS, "what to beware of in speedup_ceiling, as flags has it"),
        ),
    ),
    **_results(
        "One quantity of a performance model, by the newest analysis.",
        "models",
        (
            ("model", "text", "q.model", "name of the model"),
            ("quantity", "text", "q.quantity", "what it computes"),
            ("value", "float", "c.value", "the value in unit"),
            ("unit", "text", "NULLIF(q.unit, '')", "unit of value"),
            (
                "form",
                "text",
                "NULLIF(q.form, '')",
                "as_published or consistent; of an input where it is from",
            ),
            ("label", "text", text_of("c.label_id"), "what a coded value means"),
        ),
        " JOIN model_names q ON q.model_id = c.model_id",
    ),
    **power_shapes.SHAPES,
    **prediction_shapes.SHAPES,
    **trace_shapes.SHAPES,
    **schedule_shapes.SHAPES,
    **night_shapes.SHAPES,
}

_SHAPES["v1_columns"] = Shape(
    "What the views hold: a row a column.",
    "",
    (
        ("view_name", "text", "v.column1", "name of the view"),
        ("column_name", "text", "v.column2", "name of the column"),
        ("kind", "text", "v.column3", "int, float or text"),
        ("meaning", "text", "v.column4", "what it holds"),
    ),
)

VIEWS: Mapping[str, tuple[str, dict[str, str]]] = {
    view: (shape.sentence, {name: meaning for name, _, _, meaning in shape.columns}) for view, shape in _SHAPES.items()
}
"""Every view: what it is, and what its columns mean. ``v1_counters`` has a column for each counter besides."""

KINDS: Mapping[str, dict[str, str]] = {
    view: {name: kind for name, kind, _, _ in shape.columns} for view, shape in _SHAPES.items()
}
"""The kind (int, float, text) of every column of a view; a counter's is float."""


def column_kinds() -> dict[str, str]:
    """Return the kind of every column name that has the same one in each view with it.

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
            raise DomainError(f"{name!r} cannot be a counter: a lower case word that no column of v1_counters has")
    return names


def documented(counters: Mapping[str, str]) -> dict[str, tuple[str, list[tuple[str, str, str]]]]:
    """Return of every view its sentence and its columns (name, kind, meaning); ``counters`` gives those of counters."""
    return {view: (shape.sentence, _columns(view, counters)) for view, shape in _SHAPES.items()}


def _columns(view: str, counters: Mapping[str, str]) -> list[tuple[str, str, str]]:
    columns = [(name, kind, says) for name, kind, _, says in _SHAPES[view].columns]
    if view in OF_COUNTERS:
        columns += [(name, "float", says) for name, says in counters.items()]
    return columns


def quoted(text: str) -> str:
    """Return a text as it stands in SQL.

    >>> quoted("a view's name")
    "'a view''s name'"
    """
    return "'" + text.replace("'", "''") + "'"


def sql_of(view: str, dialect: str, counters: Mapping[str, int], meanings: Mapping[str, str] | None = None) -> str:
    """Return the statement that creates a view; ``counters`` gives the number of each counter's name.

    SQLite keeps the statement as it is written, and so what the view and its columns mean as comments in it.
    """
    shape = _SHAPES[view]
    columns = _columns(view, meanings or dict.fromkeys(counters, ""))
    selected = [f"{sql} AS {name}" for name, _, sql, _ in shape.columns]
    if view in OF_COUNTERS:
        # A look-up a column, not a pivot by GROUP BY: a query pays for the columns that it names, no more.
        value = "(SELECT c.value FROM counters c WHERE c.launch_id = l.launch_id AND c.counter_id = {})"
        own = launch_shapes.OWN_COUNTERS
        selected += [
            f'{f"coalesce({value}, {own[name]})" if name in own else value} AS "{name}"'.replace("{}", str(number))
            for name, number in counters.items()
        ]
    source = _listed(meanings or {}, dialect) if view == "v1_columns" else shape.source
    ends = [*[","] * (len(selected) - 1), ""]
    notes = [f"  -- {says}" if says and dialect == "sqlite" else "" for _, _, says in columns]
    lines = [
        f"  {_spelled(column, dialect)}{end}{note}" for column, end, note in zip(selected, ends, notes, strict=True)
    ]
    head = [f"CREATE VIEW {view} AS", *([f"-- {shape.sentence}"] if dialect == "sqlite" else []), "SELECT"]
    others = []
    for rows, more in shape.others:
        chosen = ", ".join(f"{more.get(name, sql)} AS {name}" for name, _, sql, _ in shape.columns)
        others.append(f"UNION ALL SELECT {chosen} FROM {rows}")
    return "\n".join([*head, *lines, f"FROM {source}", *(_spelled(other, dialect) for other in others)])


def _spelled(sql: str, dialect: str) -> str:
    # Plain replacement: the statement holds braces that are not fields.
    for name, spelling in SPELLED[dialect].items():
        sql = sql.replace(f"{{{name}}}", spelling)
    return sql


def _listed(meanings: Mapping[str, str], dialect: str) -> str:
    """SQL for the rows of ``v1_columns``, whose columns are called column1 and so on, as Postgres does those of VALUES.

    Every connection to SQLite reads the statements of all views first: one long text in a third less time than VALUES.
    """
    rows = [
        (view, name, kind, says) for view, (_, columns) in documented(meanings).items() for name, kind, says in columns
    ]
    if dialect == "sqlite":
        cells = ", ".join(f"json_extract(value, '$[{number}]') AS column{number + 1}" for number in range(4))
        return f"(SELECT {cells} FROM json_each({quoted(json.dumps(rows, ensure_ascii=False))})) v"
    return f"(VALUES {', '.join('(' + ', '.join(map(quoted, row)) + ')' for row in rows)}) v"


def comments(meanings: Mapping[str, str]) -> list[str]:
    """Return the statements that write down on Postgres what the views and their columns mean."""
    made = []
    for view, (sentence, columns) in documented(meanings).items():
        made.append(f"COMMENT ON VIEW {view} IS {quoted(sentence)}")
        made += [f'COMMENT ON COLUMN {view}."{name}" IS {quoted(says)}' for name, _, says in columns]
    return made
