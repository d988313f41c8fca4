"""The example queries run on both kinds of database, over a store of real exports."""

import json
import re
import sqlite3
import string
from collections.abc import Iterator

import pytest
from sqlalchemy import Engine, text

from profsvc import docs, specs, store
from profsvc.store.connection.transactions import reading
from tests.conftest import MakeOnce
from tests.docs.cookbook import cookbook
from tests.environment import postgres
from tests.store.queries.questions import EMPTY, PARAMS, fill

NAMES = list(specs.questions())
# The views that the examples name. Of the metrics, a million cells, those rows that the examples look at.
NAMED = sorted({view for name in NAMES for view in re.findall(r"\bv1_\w+", specs.question(name).sql)})
LOOKED_AT = {"v1_metrics": "WHERE value IS NULL OR metric = 'gpu__time_duration.sum'"}
COUNTS = {"launches", "timed", "calls", "lines", "uploads", "readings", "samples", "begin_ns", "start_ns", "size_bytes"}


@pytest.fixture(scope="module")
def on_sqlite(made_once: MakeOnce) -> Iterator[Engine]:
    engine = store.open_store(str(made_once("questions", fill)), pooled=True)
    yield engine
    engine.dispose()


@pytest.fixture(scope="module")
def on_postgresql(postgres_server: postgres.Server) -> Iterator[Engine]:
    name = postgres_server.database()
    engine = store.connect(postgres_server.url(name).render_as_string(hide_password=False))
    store.upgrade(engine)
    fill(engine)
    yield engine
    engine.dispose()
    postgres_server.drop(name)


def ask(engine: Engine, name: str) -> store.Answer:
    question = specs.question(name)
    return store.query(engine, question.sql, question.values(PARAMS.get(name, {})))


def test_there_are_thirty() -> None:
    assert len(NAMES) >= 30
    assert set(PARAMS) | EMPTY <= set(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_an_example_gives_the_same_rows_on_both(on_sqlite: Engine, on_postgresql: Engine, name: str) -> None:
    answers = [ask(engine, name) for engine in (on_sqlite, on_postgresql)]
    assert answers[0].columns == answers[1].columns
    assert len(set(answers[0].columns)) == len(answers[0].columns)
    assert bool(answers[0].rows) == (name not in EMPTY)
    assert not answers[0].truncated
    rows = [sorted(map(comparable, answer.rows)) for answer in answers]
    assert rows[0] == rows[1]


def comparable(row: tuple[object, ...]) -> str:
    """A row without the time of its upload, with nine digits of its numbers."""
    cells = (f"{float(cell):.9g}" if isinstance(cell, int | float) else str(cell) for cell in row)
    return " | ".join("a time" if cell.endswith("Z") and cell[:2] == "20" else cell for cell in cells)


@pytest.fixture(scope="module")
def stored_otherwise(on_sqlite: Engine) -> Iterator[dict[str, list[sqlite3.Connection]]]:
    """The views as tables, their rows as they come and the other way round; besides with all measures alike."""
    made = {kind: [sqlite3.connect(":memory:") for _ in range(2)] for kind in ("as they are", "all alike")}
    with reading(on_sqlite) as connection:
        for view in NAMED:
            result = connection.execute(text(f"SELECT * FROM {view} {LOOKED_AT.get(view, '')}"))
            columns, rows = list(result.keys()), [tuple(row) for row in result]
            alike = [tuple(map(levelled, columns, row)) for row in rows]
            for kind, table in (("as they are", rows), ("all alike", alike)):
                for database, ordered in zip(made[kind], (table, table[::-1]), strict=True):
                    database.execute(f"CREATE TABLE {view} ({', '.join(map(json.dumps, columns))})")
                    database.executemany(f"INSERT INTO {view} VALUES ({', '.join('?' * len(columns))})", ordered)
    yield made
    for database in (*made["as they are"], *made["all alike"]):
        database.close()


def levelled(column: str, cell: object) -> object:
    """A cell without what is measured or counted; what only says which row it is stays."""
    if isinstance(cell, float):
        return 1.0
    if column.endswith("_at"):
        return "2026-01-01T00:00:00Z" if cell else cell
    return 1 if column in COUNTS and cell is not None else cell


@pytest.mark.parametrize("kind", ["as they are", "all alike"])
@pytest.mark.parametrize("name", NAMES)
def test_an_example_has_one_order_however_its_rows_are_stored(stored_otherwise, kind: str, name: str) -> None:
    question = specs.question(name)
    values = question.values(PARAMS.get(name, {}))
    answers = [database.execute(question.sql, values).fetchall() for database in stored_otherwise[kind]]
    assert [comparable(row) for row in answers[0]] == [comparable(row) for row in answers[1]]


def test_rows_that_tie_come_otherwise_where_nothing_orders_them(stored_otherwise) -> None:
    query = "SELECT launch_id FROM v1_launches ORDER BY duration_ns LIMIT 5"
    first, second = (database.execute(query).fetchall() for database in stored_otherwise["all alike"])
    assert first != second


@pytest.mark.parametrize("name", NAMES)
def test_an_example_runs_without_being_given_anything(on_sqlite: Engine, name: str) -> None:
    question = specs.question(name)
    assert store.query(on_sqlite, question.sql, question.values({})).columns


@pytest.mark.parametrize("name", NAMES)
def test_an_example_names_what_it_takes(name: str) -> None:
    question = specs.question(name)
    assert all(f":{param}" in question.sql for param in question.params)
    assert question.title[0] in string.ascii_uppercase + string.digits
    assert not question.title.endswith(".")


def test_what_the_examples_say_is_true(on_sqlite: Engine) -> None:
    percents = [row[3] for row in ask(on_sqlite, "top_kernels").rows]
    assert sum(percents) == pytest.approx(100)
    energy = {row[1]: row for row in ask(on_sqlite, "energy").rows}
    power = store.query(
        on_sqlite, "select elapsed_ns, value from v1_samples where name = 'P' and quantity = 'power' order by 1"
    ).rows
    (first, watts), (last, watts_after) = power
    assert energy["P"][4] == pytest.approx((watts + watts_after) / 2 * (last - first) / 1e9)
    durations = store.query(
        on_sqlite,
        "select duration_ns from v1_launches where kernel_short = 'saxpy' and run_id = 3 order by 1 desc",
    ).rows
    assert [row[2] for row in ask(on_sqlite, "kernel_p95").rows if row[0] == "trace"] == [durations[0][0] / 1e3]


@pytest.mark.parametrize("engine", ["on_sqlite", "on_postgresql"])
def test_the_sql_of_the_documentation_runs_on_both(engine: str, request: pytest.FixtureRequest) -> None:
    """Postgres refuses what SQLite takes, such as a column beside an aggregate that is not grouped by."""
    text = docs.topic("howto/sql").text
    blocks = re.findall(r"^```sql\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    queries = [query for block in blocks for query in block.split(";") if query.strip()]
    assert queries
    for query in queries:
        assert store.query(request.getfixturevalue(engine), query, {}).rows


def test_the_cookbook_shows_the_first_rows(on_sqlite: Engine) -> None:
    assert docs.topic("howto/cookbook").text == cookbook(on_sqlite), "run: python -m tests.docs"
