import os
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Connection, Engine, event, text
from sqlalchemy.pool import Pool

from profsvc import store
from profsvc.errors import ServiceError, StoreBusyError, UsageError
from profsvc.store.connection import engine as engines
from profsvc.store.connection.errors import BUSY_SECONDS, user_error
from profsvc.store.connection.filesystem import wal_is_safe
from profsvc.store.connection.postgres import joined_as_written
from profsvc.store.connection.transactions import (
    SCAN_KIB,
    in_transaction,
    keep_connections,
    kept_connections,
    reading,
    scanning,
    writing,
)
from profsvc.store.maintenance.migrations import changing_schema
from tests.store.conftest import COUNTERS, batches, info, only_on


@pytest.mark.parametrize(
    ("version", "safe"),
    [
        ((3, 40, 1), False),
        ((3, 44, 5), False),
        ((3, 44, 6), True),
        ((3, 45, 0), False),
        ((3, 50, 6), False),
        ((3, 50, 7), True),
        ((3, 51, 2), False),
        ((3, 51, 3), True),
        ((3, 54, 1), True),
    ],
)
def test_the_write_ahead_log_is_used_only_where_it_loses_nothing(version: tuple[int, ...], safe: bool) -> None:
    assert wal_is_safe(version) is safe


@only_on("sqlite", "its settings are of the connection")
def test_a_connection_is_set_up(engine: Engine) -> None:
    with reading(engine) as connection:
        found = {
            p: connection.exec_driver_sql(f"PRAGMA {p}").scalar_one()
            for p in ("foreign_keys", "synchronous", "busy_timeout", "journal_mode")
        }
    assert found == {
        "foreign_keys": 1,
        "synchronous": 2,
        "busy_timeout": 10_000,
        "journal_mode": "wal" if wal_is_safe() else "delete",
    }


@only_on("sqlite", "a server has its own caches")
def test_what_scans_a_long_table_keeps_few_pages_meanwhile(engine: Engine) -> None:
    def cache(connection: Connection) -> int:
        return int(connection.exec_driver_sql("PRAGMA cache_size").scalar_one())

    with kept_connections(engine):
        with scanning(engine) as outer, in_transaction(engine, outer), scanning(engine) as inner:
            assert (inner, cache(inner)) == (outer, -SCAN_KIB)
        with reading(engine) as after:
            assert (after, cache(after)) == (outer, -32768)


@only_on("sqlite", "it alone has journals to choose from")
def test_a_store_left_in_a_log_is_taken_out_of_it(engine: Engine, url: str) -> None:
    with closing(sqlite3.connect(url)) as other:
        other.execute("PRAGMA journal_mode = wal")
    store.open_store(url, COUNTERS)
    with closing(sqlite3.connect(url)) as other:
        assert other.execute("PRAGMA journal_mode").fetchone() == ("wal" if wal_is_safe() else "delete",)


@only_on("sqlite", "one writer at a time")
def test_a_second_writer_is_told_and_a_reader_is_not(
    engine: Engine, url: str, stored: store.StoredUpload, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engines, "BUSY_SECONDS", 0.1)
    impatient = store.connect(url)
    with writing(engine) as connection:
        connection.exec_driver_sql("DELETE FROM run_tags")
        with pytest.raises(StoreBusyError, match="another process has been writing"):
            store.write_upload(impatient, info("b"), store.RunInfo(), batches())
        assert len(store.select(impatient, "v1_launches")) == 4


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ("database or disk is full", "free some space"),
        ("attempt to write a readonly database", "check the permissions"),
        ("unable to open database file", "check that its folder exists"),
        ("disk I/O error", "check the disk"),
        ("database disk image is malformed", "restore it from a backup"),
        ("something else", "unexpected database error: something else"),
    ],
)
def test_what_a_database_says_is_explained(said: str, words: str) -> None:
    error = user_error(said, "lab.sqlite")
    assert str(error).startswith("lab.sqlite: ")
    assert words in str(error)


@only_on("sqlite", "its size can be limited by the page")
def test_a_full_disk_leaves_the_store_whole(engine: Engine, url: str, stored: store.StoredUpload) -> None:
    from sqlalchemy import event

    @event.listens_for(engine, "connect")
    def small(connection: sqlite3.Connection, _: object) -> None:
        pages = connection.execute("PRAGMA page_count").fetchone()[0]
        connection.execute(f"PRAGMA max_page_count = {pages + 2}")

    with pytest.raises(ServiceError, match="the disk of the store is full"):
        store.write_upload(engine, info("b"), store.RunInfo(), batches(2000, 500))
    assert len(store.select(store.connect(url), "v1_uploads")) == 1


def test_paths_and_urls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    default = store.open_store(None, COUNTERS)
    assert default.url.database == str(tmp_path / "data" / "profsvc" / "profsvc.sqlite")
    assert (tmp_path / "data" / "profsvc").stat().st_mode & 0o777 == 0o700
    store.open_store(f"sqlite:///{tmp_path}/b.sqlite", COUNTERS)
    odd = tmp_path / "100% #1?.sqlite"
    assert store.query(store.open_store(str(odd), COUNTERS), "SELECT count(*) FROM v1_runs").rows == [(0,)]
    assert (tmp_path / "b.sqlite").exists()


@pytest.mark.parametrize(
    ("given", "error", "words"),
    [
        ("sqlite://", UsageError, "in-memory"),
        ("mysql://host/db", UsageError, "can be sqlite or postgresql"),
        ("://", UsageError, "not a database URL"),
        ("postgresql://me:secret@host:x/db", UsageError, r"'postgresql://\*\*\*@host:x/db' is not a database URL"),
        ("missing/folder/a.sqlite", ServiceError, "does not exist"),
    ],
)
def test_a_store_that_cannot_be(given: str, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        store.open_store(given, COUNTERS)


def test_a_file_that_is_no_database(tmp_path: Path) -> None:
    (tmp_path / "a.sqlite").write_text("hello, this is certainly not a database" * 50)
    with pytest.raises(ServiceError, match="not a SQLite database"):
        store.open_store(str(tmp_path / "a.sqlite"), COUNTERS)


@only_on("sqlite", "it is a file")
@pytest.mark.skipif(os.geteuid() == 0, reason="root writes everywhere")
def test_a_store_that_cannot_be_written(engine: Engine, url: str) -> None:
    Path(url).chmod(0o400)
    assert store.select(store.open_store(url, COUNTERS), "v1_runs") == []
    with pytest.raises(ServiceError, match="check the permissions"):
        store.write_upload(engine, info(), store.RunInfo(), batches())


def test_the_usual_start_does_not_load_alembic(engine: Engine, url: str) -> None:
    code = "import sys; from profsvc import store; store.open_store(sys.argv[1], sys.argv[2:])"
    done = subprocess.run(
        [sys.executable, "-c", f"{code}; print('alembic' in sys.modules)", url, *COUNTERS],
        capture_output=True,
        text=True,
        check=True,
        cwd=Path(__file__).parents[3],
    )
    assert done.stdout.strip() == "False"


def test_a_question_is_answered_from_one_state_over_one_connection(engine: Engine) -> None:
    store.write_upload(engine, info("a"), store.RunInfo(name="a"), batches())
    opened: list[object] = []
    event.listen(engine, "connect", lambda connection, _: opened.append(connection))

    @store.snapshot
    def inner(engine: Engine) -> int:
        return len(store.runs(engine))

    @store.snapshot
    def asked(engine: Engine, more: str) -> list[int]:
        counts = [inner(engine)]
        if more:  # somebody else writes meanwhile; without a log of changes SQLite lets nobody
            other = store.connect(engine.url.render_as_string(hide_password=False))
            store.write_upload(other, info(more), store.RunInfo(name=more), batches())
            other.dispose()
        return [*counts, inner(engine), len(store.runs(engine))]

    before = len(opened)
    together = wal_is_safe() or engine.dialect.name == "postgresql"
    assert asked(engine, "b" if together else "") == [1, 1, 1]
    assert len(opened) - before == 1
    assert len(store.runs(engine)) == 1 + together
    with pytest.raises(ServiceError, match=r"no such table|does not exist"):
        store.snapshot(lambda engine: wrong(engine))(engine)
    assert inner(engine) == 1 + together


def test_a_store_that_is_as_it_should_be_is_opened_over_one_connection(engine: Engine, url: str) -> None:
    opened: list[object] = []

    def note(connection: object, _: object) -> None:
        opened.append(connection)

    event.listen(Pool, "connect", note)
    try:
        store.open_store(url, COUNTERS).dispose()
        assert len(opened) == 1
        store.upgrade(engine, COUNTERS[:1])
        store.open_store(url, COUNTERS).dispose()
    finally:
        event.remove(Pool, "connect", note)
    assert list(store.table(engine, "v1_counters"))[-len(COUNTERS) :] == list(COUNTERS)


def wrong(engine: Engine) -> None:
    with reading(engine) as connection:
        connection.exec_driver_sql("SELECT 1 FROM nowhere")


@only_on("postgresql", "its planner is told")
def test_the_planner_reads_the_rows_of_an_upload_by_their_range(engine: Engine) -> None:
    with reading(engine) as connection:
        assert connection.exec_driver_sql("SHOW random_page_cost").scalar_one() == "1.1"
        assert connection.exec_driver_sql("SHOW jit").scalar_one() == "off"


def opened_by(engine: Engine, work: Callable[..., object]) -> int:
    """Return how many connections a piece of work opens; none may be left."""
    opened: list[object] = []
    closed: list[object] = []
    event.listen(engine, "connect", lambda connection, _: opened.append(connection))
    event.listen(engine, "close", lambda connection, _: closed.append(connection))
    try:
        keep_connections(lambda engine: work(engine))(engine)
    finally:
        assert len(closed) == len(opened)
    return len(opened)


def count(engine: Engine) -> int:
    with reading(engine) as connection:
        return int(connection.execute(text("SELECT count(*) FROM texts")).scalar_one())


def add(engine: Engine, value: str) -> None:
    with writing(engine) as connection:
        connection.execute(text("INSERT INTO texts (text) VALUES (:value)"), {"value": value})


def test_work_goes_over_few_connections_and_sees_what_others_wrote(engine: Engine) -> None:
    other = store.connect(engine.url.render_as_string(hide_password=False))
    seen: list[int] = []

    def work(engine: Engine) -> None:
        for step in range(3):
            seen.append(count(engine))
            add(engine, f"own {step}")
            keep_connections(lambda engine: seen.append(count(engine)))(engine)
            add(other, f"other {step}")
            with writing(engine) as connection:
                seen.append(count(engine))
                assert connection.execute(text("SELECT count(*) FROM texts")).scalar_one() == seen[-1]

    assert opened_by(engine, work) == 2
    first = seen[0]
    assert [number - first for number in seen] == [0, 1, 2, 2, 3, 4, 4, 5, 6]


def test_an_upload_looks_its_names_up_over_the_connections_of_its_work(engine: Engine) -> None:
    opened = opened_by(engine, lambda engine: store.write_upload(engine, info(), store.RunInfo(name="a"), batches()))
    assert opened == (1 if engine.dialect.name == "sqlite" else 2)  # rows, and the names beside them


def add_and_fail(engine: Engine) -> None:
    with writing(engine) as connection:
        connection.execute(text("INSERT INTO texts (text) VALUES ('lost')"))
        connection.execute(text("SELECT nothing FROM nowhere"))


def test_what_goes_wrong_in_work_leaves_no_connection_to_be_used_again(engine: Engine) -> None:
    def work(engine: Engine) -> None:
        before = count(engine)
        add(engine, "kept")
        with pytest.raises(ServiceError):
            add_and_fail(engine)
        assert count(engine) == before + 1
        add(engine, "after")
        assert count(engine) == before + 2

    assert opened_by(engine, work) == 2
    with pytest.raises(ZeroDivisionError):
        opened_by(engine, lambda engine: 1 // (count(engine) * 0))


def test_a_thread_of_work_has_connections_of_its_own(engine: Engine) -> None:
    def work(engine: Engine) -> None:
        count(engine)
        with ThreadPoolExecutor(1) as pool:
            assert pool.submit(count, engine).result() == count(engine)

    assert opened_by(engine, work) == 2


def pooled(file: Path) -> Engine:
    return store.open_store(str(file), pooled=True)


def connection_of(engine: Engine, *, writes: bool = False) -> int:
    with (writing if writes else reading)(engine) as connection:
        return id(connection.connection.dbapi_connection)


def test_a_service_keeps_what_reads_and_writes_a_file_and_closes_what_has_others_beside_it(tmp_path: Path) -> None:
    engine = pooled(tmp_path / "store.sqlite")
    with reading(engine) as connection:
        first = connection.connection.dbapi_connection
        count_before = count(engine)
    assert connection_of(engine) == id(first)
    assert connection_of(engine, writes=True) == id(first)
    add(store.connect(str(tmp_path / "store.sqlite")), "by another process")  # no lock is held meanwhile
    with writing(engine) as connection:
        connection.execute(text("INSERT INTO texts (text) VALUES ('new')"))
    assert count(engine) == count_before + 2
    with reading(engine) as connection:
        assert connection.exec_driver_sql("PRAGMA busy_timeout").scalar() == BUSY_SECONDS * 1000
    sqlite3.connect(tmp_path / "other.sqlite").close()
    with writing(engine, {"other": tmp_path / "other.sqlite"}) as connection:
        assert connection.connection.dbapi_connection is first
    with reading(engine) as connection:
        assert connection.connection.dbapi_connection is first
        assert len(connection.exec_driver_sql("PRAGMA database_list").all()) == 1
        assert connection.exec_driver_sql("PRAGMA cache_size").scalar() == -engines.POOLED_CACHE_KIB
    with suppress(ZeroDivisionError), writing(engine, {"other": tmp_path / "other.sqlite"}) as connection:
        beside = connection.connection.dbapi_connection
        raise ZeroDivisionError
    with changing_schema(engine) as connection:
        migrated = connection.connection.dbapi_connection
    assert beside is not migrated
    for closed in (beside, migrated):
        assert isinstance(closed, sqlite3.Connection)
        with pytest.raises(sqlite3.ProgrammingError, match="closed"):
            closed.execute("SELECT 1")
    engine.dispose()


def test_what_still_has_a_copied_file_beside_it_is_closed_and_its_rows_are_stored(tmp_path: Path) -> None:
    engine, other = pooled(tmp_path / "store.sqlite"), tmp_path / "other.sqlite"
    with closing(sqlite3.connect(other, isolation_level=None)) as made:
        made.execute("CREATE TABLE words AS VALUES ('a'), ('b')")
    before = count(engine)
    with kept_connections(engine):
        with writing(engine, {"other": other}) as connection:
            connection.execute(text("INSERT INTO texts (text) SELECT column1 FROM other.words"))
            driver: Any = connection.connection.dbapi_connection
            unread = driver.execute("SELECT * FROM other.words")
            assert unread.fetchone() == ("a",)
        assert count(engine) == before + 2
        assert connection_of(engine) != id(driver)
    engine.dispose()


def test_a_service_reads_the_file_that_was_put_in_the_place_of_its_own(tmp_path: Path) -> None:
    engine, other = pooled(tmp_path / "store.sqlite"), store.open_store(str(tmp_path / "backup.sqlite"))
    add(other, "only in the backup")
    before, after = count(engine), count(other)
    assert before != after
    (tmp_path / "backup.sqlite").replace(tmp_path / "store.sqlite")
    assert count(engine) == after
    (tmp_path / "store.sqlite").unlink()
    with pytest.raises(ServiceError, match="no such table"):
        count(engine)
    engine.dispose()


def test_tables_are_joined_as_written_until_the_block_ends(engine: Engine) -> None:
    def limit(connection: Connection) -> str:
        query = "SHOW join_collapse_limit" if engine.dialect.name == "postgresql" else "SELECT ''"
        return connection.exec_driver_sql(query).scalar_one()

    with reading(engine) as connection:
        before = limit(connection)
        with joined_as_written(connection):
            assert limit(connection) == ("1" if before else "")
        assert limit(connection) == before
