"""Through which role a user's SQL is answered on a Postgres store, and through which not."""

import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from sqlalchemy import Engine, make_url

from profsvc import store
from profsvc.errors import ServiceError, UsageError
from profsvc.store.connection.transactions import writing
from profsvc.store.maintenance.migrations import drop_views
from profsvc.store.sandbox import postgres as sandbox_postgres
from profsvc.store.sandbox import postgres_memory
from profsvc.store.sandbox.reader_role import create_reader
from tests.environment.postgres import Server
from tests.store.conftest import only_on

pytestmark = only_on("postgresql", "a file has no roles")
WHO = "SELECT current_user, session_user"
WRITING = ["SELECT set_config('a.b', 'c', false)", "SELECT lo_create(4711)", "SELECT pg_advisory_lock(1)"]


@contextmanager
def reached(url: object) -> Iterator[Engine]:
    engine = store.connect(str(url))
    yield engine
    engine.dispose()


@pytest.fixture
def administrator(engine: Engine, postgres_server: Server) -> Iterator[Engine]:
    """The store as a superuser reaches it."""
    url = postgres_server.admin.set(database=engine.url.database)
    with postgres_server.session() as session:
        (superuser,) = session.execute("SELECT rolsuper FROM pg_roles WHERE rolname = current_user").fetchone() or ()
    if not superuser:
        pytest.skip("the server of the tests has no superuser")
    with reached(url.render_as_string(hide_password=False)) as found:
        yield found


@pytest.fixture
def reader(administrator: Engine, postgres_server: Server) -> Iterator[str]:
    """The URL of a role that may only read the views."""
    name = f"looker_{administrator.url.database}"
    yield create_reader(administrator, name).url
    with postgres_server.session(administrator.url.database) as session:
        session.execute(f"DROP OWNED BY {name}; DROP ROLE {name}".encode())


def test_a_superuser_is_refused_with_the_command_that_helps(administrator: Engine) -> None:
    with pytest.raises(ServiceError, match=r"is a superuser.*profsvc db create-reader NAME"):
        store.query(administrator, "SELECT 1")


def test_a_superuser_becomes_the_reader(administrator: Engine, reader: str, stored: store.StoredUpload) -> None:
    ((current, session),) = store.query(administrator, WHO).rows
    assert (current, session) == (make_url(reader).username, administrator.url.username)
    assert store.query(administrator, "SELECT name FROM v1_runs").rows == [("first",)]
    for sql in (*WRITING, "SELECT * FROM runs", "SELECT pg_read_file('PG_VERSION')"):
        with pytest.raises(UsageError):
            store.query(administrator, sql)


def test_the_owner_becomes_the_reader(engine: Engine, reader: str, stored: store.StoredUpload) -> None:
    ((current, session),) = store.query(engine, WHO).rows
    assert (current, session) == (make_url(reader).username, engine.url.username)
    assert store.query(engine, "SELECT name FROM v1_runs").rows == [("first",)]
    assert len(store.query(engine, "SELECT * FROM v1_launches").rows) == 4


def test_the_owner_alone_is_held_by_the_check(engine: Engine, stored: store.StoredUpload) -> None:
    assert store.query(engine, WHO).rows == [(engine.url.username, engine.url.username)]
    for sql in (*WRITING, "SELECT * FROM runs"):
        with pytest.raises(UsageError, match=r"not allowed|only the views"):
            store.query(engine, sql)


def test_the_reader_itself_is_held_by_its_rights(engine: Engine, reader: str, stored: store.StoredUpload) -> None:
    with reached(reader) as looking:
        assert store.query(looking, "SELECT name FROM v1_runs").rows == [("first",)]
        for sql in (
            *WRITING,
            "SELECT * FROM runs",
            "SELECT 1; SELECT 2",
            "SELECT 1) a, (SELECT 2",
            "CREATE TABLE x ()",
        ):
            with pytest.raises(UsageError):
                store.query(looking, sql)
        with pytest.raises(UsageError, match="'runs' cannot be read, only the views can"):
            store.query(looking, "SELECT * FROM runs")
        with pytest.raises(UsageError, match="the function 'lo_create' is not allowed"):
            store.query(looking, "SELECT lo_create(4711)")


def test_a_reader_with_an_open_door_is_refused(
    engine: Engine, administrator: Engine, reader: str, stored: store.StoredUpload
) -> None:
    with writing(administrator) as connection:
        connection.exec_driver_sql("GRANT EXECUTE ON FUNCTION pg_notify(text, text) TO PUBLIC")
    with reached(reader) as looking, pytest.raises(ServiceError, match="may call 'pg_notify', so SQL of users is not"):
        store.query(looking, "SELECT 1")


def test_a_database_without_views_is_said(engine: Engine) -> None:
    with writing(engine) as connection:
        drop_views(connection)
    with pytest.raises(ServiceError, match="lacks the views of this program; run: profsvc --store URL db upgrade"):
        store.query(engine, "SELECT 1")


def test_a_server_that_is_away_is_said(engine: Engine) -> None:
    with (
        reached("postgresql://nobody@127.0.0.1:1/none") as away,
        pytest.raises(ServiceError, match=r"127\.0\.0\.1"),
    ):
        store.query(away, "SELECT 1")


def test_a_server_that_does_not_answer_is_left_in_time(
    engine: Engine, stored: store.StoredUpload, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server's own clock is set far off, so that only ours is left."""
    patient = sandbox_postgres._set
    monkeypatch.setattr(sandbox_postgres, "_set", lambda driver, settings, _: patient(driver, settings, 3600))
    started, threads = time.perf_counter(), threading.active_count()
    with pytest.raises(UsageError, match=r"longer than 0\.4 s"):
        store.query(engine, "SELECT count(*) FROM (SELECT generate_series(1, 100000000000)) x", seconds=0.4)
    assert time.perf_counter() - started < 2
    assert threading.active_count() <= threads + 1


def test_a_query_that_was_cut_is_stopped_in_the_server_too(engine: Engine, postgres_server: Server) -> None:
    with pytest.raises(UsageError, match=r"longer than 0\.2 s"):
        store.query(engine, "SELECT count(*) FROM (SELECT generate_series(1, 100000000000)) x", seconds=0.2)
    assert postgres_server.left(str(engine.url.database)) == []


def test_a_lock_does_not_hold_a_query(engine: Engine, stored: store.StoredUpload) -> None:
    with writing(engine) as connection:
        connection.exec_driver_sql("LOCK TABLE runs IN ACCESS EXCLUSIVE MODE")
        started = time.perf_counter()
        with pytest.raises(UsageError):
            store.query(engine, "SELECT name FROM v1_runs", seconds=2)
        assert time.perf_counter() - started < 2.5


def test_a_number_that_no_float_holds_comes_as_it_is_printed(engine: Engine) -> None:
    ((large, small, infinite, least),) = store.query(
        engine, "SELECT 10::numeric ^ 100000, 12345678901234567890123::numeric, 'inf'::numeric, (-2)::numeric ^ 63"
    ).rows
    assert str(large).startswith("1000")
    assert (small, infinite, least) == (1.2345678901234568e22, float("inf"), -(2**63))


GROWING = [
    "SELECT count(*) FROM v1_columns WHERE 5 NOT IN (SELECT generate_series(10, (SELECT 1000000000 OFFSET 0)))",
    "SELECT count(*) FROM (SELECT generate_series(1, (SELECT 1000000000 OFFSET 0)) EXCEPT SELECT 5) x",
    "SELECT length(replace((SELECT replace('" + "a" * 40000 + "', 'a', '" + "b" * 4000 + "') OFFSET 0), 'b', 'ccccc'))",
]


@pytest.mark.parametrize("sql", GROWING)
def test_a_query_that_takes_more_memory_than_predicted_is_stopped(
    engine: Engine, sql: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No estimate sees these coming; the process of the server is looked at from outside, as it is on this machine."""
    monkeypatch.setattr(postgres_memory, "MAX_MEMORY_BYTES", 64 << 20)
    seen: list[int] = []
    measured = postgres_memory._bytes

    def watched(pid: int, field: str) -> int | None:
        seen.append(found := measured(pid, field) or 0)
        return found

    monkeypatch.setattr(postgres_memory, "_bytes", watched)
    with pytest.raises(UsageError, match="limit of memory or time"):
        store.query(engine, sql, seconds=30)
    assert max(seen) < 600 << 20


def test_a_process_of_another_machine_is_not_looked_at(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its number is anyone's here."""
    with sandbox_postgres._own_connection(engine) as driver:
        own = driver.info.backend_pid
        assert postgres_memory._is_here(driver, own)
        assert not postgres_memory._is_here(driver, os.getpid())
        monkeypatch.setattr(postgres_memory, "PROC", Path("/nowhere"))
        assert not postgres_memory._is_here(driver, own)


def test_a_limit_of_the_system_holds_a_process(engine: Engine) -> None:
    """Where the server is run by who asks, the system refuses it more memory."""
    grow = "import sys; sys.stdin.read(1); bytearray(400 << 20)"
    with subprocess.Popen([sys.executable, "-c", grow], stdin=subprocess.PIPE, stderr=subprocess.PIPE) as child:
        assert child.stdin
        assert child.stderr
        held = postgres_memory._limit(child.pid, 300 << 20)
        child.stdin.write(b"x")
        child.stdin.close()
        said = child.stderr.read()
    assert held
    assert b"MemoryError" in said
