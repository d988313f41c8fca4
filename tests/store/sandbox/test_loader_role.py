"""A loader of a Postgres store stores files and results, and every other door is closed to it."""

import io

import psycopg
import pytest
from sqlalchemy import Engine, text

from profsvc import pipeline, store
from profsvc.errors import StoreRightsError, UsageError
from profsvc.store.connection.transactions import reading, writing
from profsvc.store.sandbox.loader_role import create_loader, excess_privileges, grant_loading
from profsvc.store.schema.tables import metadata
from tests.conftest import ROOT
from tests.environment.postgres import Server
from tests.store.conftest import only_on

ON_POSTGRES = only_on("postgresql", "roles are its own")
ATTACKS = [
    "SELECT * FROM tokens",
    "INSERT INTO tokens (name) VALUES ('mine')",
    "SELECT * FROM schedules",
    "UPDATE findings SET finding_id = 1",
    "DELETE FROM uploads",
    "DELETE FROM runs",
    "DELETE FROM launches",
    "UPDATE launches SET duration_ns = 1",
    "UPDATE facts SET value = ''",
    "TRUNCATE criteria",
    "DROP TABLE criteria",
    "CREATE TABLE mine (a int)",
    "CREATE SCHEMA mine",
    "CREATE ROLE mine",
    "SET ROLE postgres",
    "COPY runs TO PROGRAM 'cat'",
    "SELECT pg_read_file('PG_VERSION')",
]


@pytest.fixture
def loader(role: str) -> str:
    return role


@ON_POSTGRES
def test_a_loader_cannot_do_anything_else(
    as_superuser: Engine, stored: store.StoredUpload, loader: str, engine: Engine
) -> None:
    assert stored
    made = create_loader(as_superuser, loader)
    assert (made.name, made.excess_privileges) == (loader, [])
    with psycopg.connect(made.url, autocommit=True) as session:
        for attack in ATTACKS:
            with pytest.raises(psycopg.Error) as refused:
                session.execute(attack)
            assert refused.value.sqlstate == "42501", attack
    again = create_loader(as_superuser, loader)
    assert again.password is None
    assert create_loader(as_superuser, loader, rotate=True).password not in {None, made.password}


@ON_POSTGRES
@pytest.mark.parametrize("kind", ["ncu_raw/plain.csv", "nvprof/gpu_trace.csv", "nvidia_smi/bursts.csv", "memory_trace"])
def test_a_loader_stores_files_and_computes_results(
    as_superuser: Engine, postgres_whole_url: str, postgres_server: Server, kind: str
) -> None:
    path = ROOT / "fixtures" / kind
    file = path if path.is_file() else sorted(path.glob("[!b]*.csv"))[0]
    url = postgres_server.admin.set(
        drivername="postgresql+psycopg", database=store.connect(postgres_whole_url).url.database
    )
    superuser = store.connect(url.render_as_string(hide_password=False))
    name = f"loader_{url.database}"
    engine = store.open_store(create_loader(superuser, name).url)
    try:
        info, how = store.RunInfo(name="here", tags={"branch": "main"}), pipeline.ReadOptions(zone="UTC")
        done = pipeline.ingest(engine, io.BytesIO(file.read_bytes()), file.name, info, how)
        assert not done.known
        assert pipeline.ingest(engine, io.BytesIO(file.read_bytes()), file.name, info, how).known
        assert done.run_id is not None
        pipeline.analyze(engine, done.run_id, asked=True)
        pipeline.analyze_power(engine, done.run_id, asked=True)
        assert store.unfinished(engine) == {}
        words = (
            "lacks a privilege; nothing was changed; to read needs SELECT, and to write INSERT, UPDATE and DELETE "
            r"too, on every table of the store: .*permission denied for table \w+\)"
        )
        with pytest.raises(StoreRightsError, match=words) as refused:
            store.delete_run(engine, done.run_id)
        assert (refused.value.status, refused.value.exit_code) == (500, 5)  # a client would repeat what is a 503
    finally:
        engine.dispose()
        with postgres_server.session(url.database) as session:
            session.execute(f"DROP OWNED BY {name}; DROP ROLE {name}")


@ON_POSTGRES
def test_what_a_loader_could_do_besides_is_told(as_superuser: Engine, loader: str, postgres_server: Server) -> None:
    create_loader(as_superuser, loader)
    with writing(as_superuser) as connection:
        connection.execute(text(f"GRANT DELETE ON uploads TO {loader}"))
        connection.execute(text(f"ALTER ROLE {loader} CREATEDB"))
        assert excess_privileges(connection, loader) == ["it is able to create databases", "it may delete uploads"]


@ON_POSTGRES
def test_tables_that_are_made_anew_are_granted_again(as_superuser: Engine, loader: str) -> None:
    made = create_loader(as_superuser, loader)
    with writing(as_superuser) as connection:
        connection.execute(text(f"REVOKE ALL ON ALL TABLES IN SCHEMA public FROM {loader}"))
        grant_loading(connection)
    with psycopg.connect(made.url) as session:
        assert session.execute("SELECT count(*) FROM v1_launches").fetchone() == (0,)


@ON_POSTGRES
def test_a_role_of_somebody_else_is_left_alone(as_superuser: Engine, loader: str) -> None:
    with writing(as_superuser) as connection:
        connection.execute(text(f"CREATE ROLE {loader}"))
    with pytest.raises(UsageError, match="exists and is not a loader of this store"):
        create_loader(as_superuser, loader)


@only_on("sqlite", "a server has roles")
def test_a_file_has_no_roles(engine: Engine) -> None:
    with pytest.raises(UsageError, match="which has no roles"):
        store.create_loader(engine, "workers")


@ON_POSTGRES
def test_every_table_is_known_here(engine: Engine) -> None:
    """A table that is renamed must not fall out of a list of this role without anybody seeing it."""
    from profsvc.store.sandbox import loader_role

    with reading(engine) as connection:
        there = set(connection.execute(text(loader_role._RELATIONS)).scalars())
    assert set(metadata.tables) <= there
    assert {*loader_role.CLOSED, *loader_role.READ_ONLY, *loader_role.UPDATED, *loader_role.DELETED} <= there
