"""A reader of a Postgres store reads the views, and every other door is closed to it."""

import psycopg
import pytest
from sqlalchemy import Engine

from profsvc import store
from profsvc.errors import ServiceError, StoreRightsError, UsageError
from profsvc.store.connection.transactions import reading
from profsvc.store.sandbox import postgres as sandbox
from profsvc.store.sandbox.reader_role import create_reader, excess_privileges
from tests.environment.postgres import Server
from tests.store.conftest import COUNTERS, only_on

ON_POSTGRES = only_on("postgresql", "roles are its own")
ATTACKS = [
    "SELECT * FROM runs",
    "SELECT * FROM facts",
    "UPDATE runs SET name = 'x'",
    "DELETE FROM v1_kernels",
    "CREATE TABLE mine (a int)",
    "CREATE TEMP TABLE mine (a int)",
    "CREATE SCHEMA mine",
    "SELECT lo_create(0)",
    "SELECT lo_from_bytea(0, 'x')",
    "SELECT pg_advisory_lock(1)",
    "SELECT pg_try_advisory_xact_lock(1, 2)",
    "SELECT pg_notify('a', 'b')",
    "SELECT pg_logical_emit_message(true, 'a', 'b')",
    "SELECT query_to_xml('select 1', true, true, '')",
    "SELECT set_config('statement_timeout', '0', false)",
    "SELECT pg_sleep(100)",
    "SELECT pg_terminate_backend(1)",
    "SELECT pg_export_snapshot()",
    "SELECT pg_read_file('PG_VERSION')",
    "SELECT * FROM pg_shadow",
    "SELECT * FROM pg_authid",
    "COPY v1_runs TO PROGRAM 'cat'",
    "COPY v1_runs TO '/tmp/stolen'",
    "CREATE FUNCTION mine() RETURNS int LANGUAGE sql AS 'SELECT 1'",
    "CREATE ROLE mine",
    "SET ROLE postgres",
    "SET temp_file_limit = -1",
    "COMMENT ON VIEW v1_runs IS 'x'",
]


@pytest.fixture
def reader(role: str) -> str:
    return role


@ON_POSTGRES
def test_a_reader_reads_the_views_and_nothing_else(
    as_superuser: Engine, stored: store.StoredUpload, reader: str
) -> None:
    made = create_reader(as_superuser, reader)
    assert (made.name, made.excess_privileges) == (reader, [])
    assert made.password
    assert made.password in made.url
    with psycopg.connect(made.url, autocommit=True) as session:
        assert session.execute("SELECT launches FROM v1_runs").fetchall() == [(4,)]
        assert len(session.execute("SELECT * FROM v1_metrics").fetchall()) == 8
        for attack in ATTACKS:
            with pytest.raises(psycopg.Error) as refused:
                session.execute(attack)
            assert refused.value.sqlstate in {"42501", "25006"}, attack
        session.execute("SET default_transaction_read_only = off")
        for attack in ATTACKS:
            with pytest.raises(psycopg.Error) as refused:
                session.execute(attack)
            assert refused.value.sqlstate == "42501", attack
        found = session.execute("SELECT name, setting FROM pg_settings WHERE name ~ '_timeout|temp_file'").fetchall()
    assert dict(found)["statement_timeout"] == "60000"
    assert dict(found)["temp_file_limit"] == str(256 << 10)


@ON_POSTGRES
def test_a_view_that_is_not_granted_is_told_apart_from_a_table(
    as_superuser: Engine, postgres_server: Server, reader: str
) -> None:
    made = create_reader(as_superuser, reader)
    with postgres_server.session(as_superuser.url.database) as session:
        session.execute(f"REVOKE SELECT ON v1_kernels FROM {reader}")
    asking = store.connect(made.url)
    try:
        with pytest.raises(StoreRightsError, match=r"may not read v1_kernels; .*GRANT SELECT ON v1_kernels"):
            store.query(asking, "select * from v1_kernels")
        with pytest.raises(UsageError, match="'uploads' cannot be read, only the views can"):
            store.query(asking, "select * from uploads")
    finally:
        asking.dispose()


@ON_POSTGRES
def test_the_owner_can_hold_the_temporary_files_of_queries_that_it_answers(
    as_superuser: Engine, engine: Engine, reader: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    create_reader(as_superuser, reader)
    may = "SELECT has_parameter_privilege('temp_file_limit', 'SET')"
    with engine.connect() as connection:
        assert connection.exec_driver_sql(may).scalar() is True
    assert sandbox.MAX_TEMP_FILES == "256MB"
    monkeypatch.setattr(sandbox, "MAX_TEMP_FILES", "8MB")
    # Two columns of 40 MB are sorted, which go to the disk.
    wide = "SELECT i, md5(i::text) || md5(i::text) AS x FROM generate_series(1, (SELECT 600000 OFFSET 0)) i ORDER BY x"
    with pytest.raises(UsageError, match="more temporary disk space than allowed"):
        store.query(engine, wide, max_rows=1, seconds=60)


@ON_POSTGRES
def test_making_it_again_sets_it_right_and_keeps_the_password(
    as_superuser: Engine, engine: Engine, postgres_server: Server, reader: str
) -> None:
    first = create_reader(as_superuser, reader)
    with postgres_server.session(engine.url.database) as session:
        session.execute(f"GRANT SELECT ON runs TO {reader}; GRANT EXECUTE ON FUNCTION pg_sleep(float8) TO PUBLIC")
    with reading(engine) as connection:
        assert excess_privileges(connection, reader) == ["it may call pg_sleep(double precision)", "it may select runs"]
    again = create_reader(as_superuser, reader)
    assert again.password is None
    assert again.excess_privileges == ["it may select runs"]
    psycopg.connect(first.url).close()
    assert create_reader(as_superuser, reader, rotate=True).password not in {None, first.password}


@ON_POSTGRES
def test_views_that_are_made_anew_stay_readable(
    as_superuser: Engine, engine: Engine, url: str, stored: store.StoredUpload, reader: str
) -> None:
    made = create_reader(as_superuser, reader)
    store.open_store(url, [*COUNTERS, "l2_bytes"])
    with psycopg.connect(made.url) as session:
        assert session.execute("SELECT count(l2_bytes), count(*) FROM v1_counters").fetchall() == [(0, 4)]
    with reading(engine) as connection:
        assert excess_privileges(connection, reader) == []


@ON_POSTGRES
def test_the_owner_keeps_what_a_dump_needs(as_superuser: Engine, engine: Engine, reader: str) -> None:
    create_reader(as_superuser, reader)
    with reading(engine) as connection:
        assert connection.exec_driver_sql("SELECT set_config('search_path', '', true)").scalar_one() == ""
        connection.exec_driver_sql("CREATE TEMP TABLE mine (a int)")


@ON_POSTGRES
def test_who_may_not_make_roles_is_told(engine: Engine, reader: str) -> None:
    with pytest.raises(ServiceError, match=f"may not create or change the role '{reader}'; run it as a superuser"):
        create_reader(engine, reader)


@ON_POSTGRES
def test_what_only_a_superuser_can_close_is_said(
    engine: Engine, as_superuser: Engine, postgres_server: Server, reader: str
) -> None:
    with postgres_server.session() as session:
        session.execute(f"ALTER ROLE {engine.url.username} CREATEROLE")
        session.execute(f"REVOKE SET ON PARAMETER temp_file_limit FROM {engine.url.username}")
    try:
        left = create_reader(engine, reader).excess_privileges
    finally:
        with postgres_server.session() as session:
            session.execute(f"ALTER ROLE {engine.url.username} NOCREATEROLE")
    assert "it lacks the setting temp_file_limit" in left
    assert "it may call lo_create(oid)" in left
    assert {words.split()[2] for words in left} == {"the", "call"}
    assert create_reader(as_superuser, reader).excess_privileges == []


@ON_POSTGRES
@pytest.mark.parametrize("name", ["postgres", "pg_x", "Upper", "two words", "x" * 64, 'a"b', "x'; DROP TABLE runs"])
def test_a_role_that_is_not_a_reader_is_left_alone(as_superuser: Engine, name: str) -> None:
    with pytest.raises(UsageError, match=r"is not a valid role name|not a reader of this store"):
        create_reader(as_superuser, name)


@only_on("sqlite", "it has no roles")
def test_sqlite_says_what_to_do_instead(engine: Engine) -> None:
    with pytest.raises(UsageError, match="db backup"):
        create_reader(engine, "me")
