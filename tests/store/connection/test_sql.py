"""A SQLite store read by the standard library gives what SQLAlchemy gives."""

from pathlib import Path

import pytest
from sqlalchemy import bindparam as theirs
from sqlalchemy import text as their_text

from profsvc import store
from profsvc.errors import NotFoundError, ServiceError, UsageError
from profsvc.store.connection.sql import FileReader, Statement, bindparam, text
from profsvc.store.connection.sqlite_file import reader_of
from profsvc.store.connection.transactions import reading, writing


@pytest.fixture(scope="module")
def reader(demo):
    return reader_of(Path(demo.url.database), lambda: demo)


@pytest.mark.parametrize("view", sorted(store.VIEWS))
def test_views_have_the_same_rows(demo, reader, view: str) -> None:
    assert store.list_view(reader, view, limit=2000) == store.list_view(demo, view, limit=2000)


def test_pages_conditions_and_orders_are_the_same(demo, reader) -> None:
    for only in (
        [store.Condition("kernel_short", "contains", "GEMM_")],
        [store.Condition("duration_ns", "gte", "1e5"), store.Condition("stream", "null", "0")],
    ):
        for order in ([], ["-duration_ns"], ["kernel", "-launch_index"]):
            pages = [store.list_view(one, "v1_launches", only, order=order, limit=3) for one in (reader, demo)]
            assert pages[0] == pages[1]
            if pages[0].after:
                again = [
                    store.list_view(one, "v1_launches", only, order=order, limit=3, after=pages[0].after)
                    for one in (reader, demo)
                ]
                assert again[0] == again[1]


QUERY = "SELECT launch_id, grid_x FROM v1_launches WHERE launch_index IN :some AND duration_ns > :least ORDER BY 1"


@pytest.mark.parametrize("some", [[], [0], [3, 1, 2]])
def test_results_have_the_same_shapes(demo, reader, some: list[int]) -> None:
    given = {"some": some, "least": 0}
    own = text(QUERY).bindparams(bindparam("some", expanding=True))
    other = their_text(QUERY).bindparams(theirs("some", expanding=True))

    def shapes(connection, query):
        def ask():
            return connection.execute(query, given)

        yield [tuple(row) for row in ask()]
        yield [(row.launch_id, row.grid_x) for row in ask().all()]
        yield [dict(row) for row in ask().mappings()]
        yield list(ask().scalars())
        yield ask().scalar()
        yield list(ask().keys())
        yield [list(map(tuple, part)) for part in ask().partitions(2)]
        first = ask().first()
        yield None if first is None else tuple(first)
        yield connection.execute(text("SELECT count(*) FROM runs")).scalar_one()
        yield connection.exec_driver_sql("SELECT 1 AS x").one().x

    with reading(reader) as connection:
        read = list(shapes(connection, own))
    with reading(demo) as connection:
        assert read == list(shapes(connection, other)) == list(shapes(connection, own))


def test_values_and_escaped_colons_are_kept() -> None:
    assert Statement("SELECT '\\:x', :x").bindparams(x=1).for_sqlite({}) == ("SELECT ':x', :x", {"x": 1})


def test_what_fails_says_the_same(demo, reader, tmp_path: Path) -> None:
    for one in (demo, reader):
        with pytest.raises(ServiceError, match=r"sqlite:///.*no such table: nowhere"), reading(one) as connection:
            connection.execute(text("SELECT * FROM nowhere"))
        with pytest.raises(UsageError, match="-1 s"):
            store.list_view(one, "v1_metrics", order=["-value"], seconds=-1)
        with pytest.raises(NotFoundError):
            store.find_run(one, "nothing")
    broken = tmp_path / "broken.sqlite"
    broken.write_bytes(b"no database" * 100)
    for opened in (store.open_reader, store.open_store):
        with pytest.raises(ServiceError, match="not a SQLite database"):
            opened(str(broken))


def test_a_reader_writes_by_sqlalchemy(tmp_path: Path) -> None:
    file = tmp_path / "store.sqlite"
    store.open_store(str(file)).dispose()
    reader = store.open_reader(str(file))
    assert isinstance(reader, FileReader)
    with writing(reader) as connection:
        connection.execute(text("INSERT INTO texts (text) VALUES (:one)").bindparams(one="one"))
    with reading(reader) as connection:
        assert connection.execute(text("SELECT count(*) FROM texts WHERE text = 'one'")).scalar() == 1
    reader.dispose()


def test_a_new_an_old_and_a_missing_store_are_opened_as_ever(tmp_path: Path) -> None:
    file = tmp_path / "store.sqlite"
    assert not isinstance(store.open_reader(str(file)), FileReader)
    assert isinstance(store.open_reader(str(file)), FileReader)
    engine = store.connect(str(file))
    with writing(engine) as connection:
        connection.execute(text("UPDATE facts SET value = 'old' WHERE name = 'views'"))
    assert not isinstance(store.open_reader(str(file)), FileReader)
    assert isinstance(store.open_reader(str(file)), FileReader)
    with pytest.raises(ServiceError, match="does not exist"):
        store.open_reader(str(tmp_path / "no" / "store.sqlite"))
