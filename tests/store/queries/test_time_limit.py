"""Questions end when their time is up, and nothing else does."""

import threading
import time

import pytest
from sqlalchemy import Engine

from profsvc import store
from profsvc.errors import TimeLimitError
from profsvc.store.connection.transactions import keep_connections, reading
from profsvc.store.queries.time_limit import reading_with_timeout
from tests.store.conftest import batches, info

COUNT = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {}) SELECT count(*) FROM n"
ENDLESS = COUNT.format(100_000_000)


def test_a_question_has_a_time_limit(engine: Engine) -> None:
    store.write_upload(engine, info("a"), store.RunInfo(name="a"), batches())
    with pytest.raises(TimeLimitError, match=r"took longer than 0\.2 s"), reading_with_timeout(engine, 0.2) as one:
        one.exec_driver_sql(ENDLESS)
    assert [row["name"] for row in store.select(engine, "v1_runs")] == ["a"]


def test_a_statement_that_begins_after_the_time_is_up_ends_too(engine: Engine) -> None:
    def ask() -> None:
        with reading_with_timeout(engine, 0.1) as connection:
            time.sleep(0.3)
            connection.exec_driver_sql(ENDLESS)

    with pytest.raises(TimeLimitError):
        ask()


def test_each_of_several_questions_has_its_own_limit(engine: Engine) -> None:
    found = dict[float, float]()

    def ask(seconds: float) -> None:
        began = time.monotonic()
        with pytest.raises(TimeLimitError), reading_with_timeout(engine, seconds) as connection:
            connection.exec_driver_sql(ENDLESS)
        found[seconds] = time.monotonic() - began

    threads = [threading.Thread(target=ask, args=(seconds,)) for seconds in (0.9, 0.1, 0.5)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert sorted(found, key=found.__getitem__) == [0.1, 0.5, 0.9]
    assert all(took >= seconds for seconds, took in found.items())


def test_what_follows_on_the_same_connection_is_not_cut_short(engine: Engine) -> None:
    @keep_connections
    def ask(of: Engine) -> tuple[int, int]:
        with reading_with_timeout(of, 0.2) as connection:
            first = connection.exec_driver_sql(COUNT.format(5)).scalar_one()
        time.sleep(0.3)  # the limit of the block before passes
        with reading(of) as connection:
            return first, connection.exec_driver_sql(COUNT.format(3_000_000)).scalar_one()

    assert ask(engine) == (5, 3_000_000)
