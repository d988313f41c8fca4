"""What users ask of the launches of many runs: the views answer as the tables do, and both databases alike."""

from collections.abc import Iterator

import pytest
from sqlalchemy import Engine

from profsvc import store
from profsvc.store.connection.transactions import reading
from tests.benchmarks.users_questions import QUESTIONS, comparable, fill
from tests.conftest import COUNTERS, MakeOnce, copied
from tests.environment import postgres
from tests.store.conftest import only_on

RUNS, LAUNCHES = 41, 70
"""Two runs in three are of the week that is asked for, and three have metrics."""
# Other ways to ask ``by kernel``.
NUMBERED = ("by number of the kernel", "by number, names joined")


def fill_store(engine: Engine) -> None:
    fill(engine, RUNS, LAUNCHES)


@pytest.fixture(scope="module")
def on_sqlite(made_once: MakeOnce) -> Iterator[Engine]:
    engine = store.open_store(str(made_once("users_questions", fill_store)), pooled=True)
    yield engine
    engine.dispose()


@pytest.fixture(scope="module")
def on_postgresql(postgres_server: postgres.Server, postgres_template: str) -> Iterator[Engine]:
    with copied(postgres_server, postgres_template) as url:
        engine = store.open_store(url, COUNTERS)
        fill_store(engine)
        yield engine
        engine.dispose()


@pytest.mark.parametrize("question", QUESTIONS)
def test_views_answer_as_the_tables_on_both(on_sqlite: Engine, on_postgresql: Engine, question: str) -> None:
    views, tables = QUESTIONS[question]
    answers = []
    for engine in (on_sqlite, on_postgresql):
        answers.append(comparable(store.query(engine, views).rows))
        with reading(engine) as connection:
            answers.append(comparable([tuple(row) for row in connection.exec_driver_sql(tables)]))
    assert answers[0]
    assert answers == [answers[0]] * 4


@pytest.mark.parametrize("question", NUMBERED)
def test_launches_grouped_by_the_number_of_their_kernel_are_those_grouped_by_its_name(
    on_sqlite: Engine, on_postgresql: Engine, question: str
) -> None:
    for engine in (on_sqlite, on_postgresql):
        named, numbered = (store.query(engine, QUESTIONS[name][0]).rows for name in ("by kernel", question))
        assert comparable(named) == comparable(numbered)


def test_totals_of_stored_files_are_those_of_their_launches(on_sqlite: Engine, on_postgresql: Engine) -> None:
    totals = "SELECT kernel, sum(launches), sum(total_ns) FROM v1_kernel_totals GROUP BY kernel"
    for engine in (on_sqlite, on_postgresql):
        assert comparable(store.query(engine, totals).rows) == comparable(
            store.query(engine, QUESTIONS["by kernel"][0]).rows
        )


@only_on("sqlite", "plans are the database's own")
def test_a_group_by_number_sorts_no_names(engine: Engine) -> None:
    """The sort holds what the query names of a launch: the program of the query reads no names before it."""
    query = QUESTIONS["by number, names joined"][0]
    with reading(engine) as connection:
        steps = [tuple(row) for row in connection.exec_driver_sql(f"EXPLAIN {query}")]
        (kernels,) = connection.exec_driver_sql("SELECT rootpage FROM sqlite_master WHERE name = 'kernels'").one()
    sorts = next(number for number, name, *_ in steps if name == "SorterSort")
    opened = {first for number, name, first, second, *_ in steps if name == "OpenRead" and second == kernels}
    assert opened
    assert not [number for number, name, first, *_ in steps if name == "Column" and first in opened and number < sorts]
