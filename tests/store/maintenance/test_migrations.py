import gc
import os
import shutil
import sqlite3
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from unittest.mock import Mock

import pytest
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Engine, create_mock_engine, event, text

from profsvc import specs, store
from profsvc.errors import DomainError, ServiceError, StoreBusyError, StoreVersionError
from profsvc.store.connection import postgres
from profsvc.store.connection.transactions import reading, writing
from profsvc.store.connection.urls import file_of
from profsvc.store.maintenance import migrations, readiness
from profsvc.store.maintenance.migrations import drop_views
from profsvc.store.schema.tables import metadata
from profsvc.tables import Batch
from tests.environment.postgres import Server
from tests.store.conftest import COUNTERS, batches, info, only_on
from tests.store.ingest.writers.test_packed_samples import LONG, MS, STEPS, VALUES, rows_of, series, unpacked
from tests.store.ingest.writers.test_samples import HEAT, POWER, log, sample

UNCHECKED = ("rules", "counters", "criteria", "potential", "models", "causes")
SECOND = f"""
import sqlalchemy as sa
from alembic import op

revision = "9999"
down_revision = "{store.latest_revision()}"


def upgrade():
    recreate = "always" if op.get_bind().dialect.name == "sqlite" else "never"
    with op.batch_alter_table("runs", recreate=recreate) as table:
        table.add_column(sa.Column("note", sa.Text()))
"""


@pytest.fixture(autouse=True, scope="module")
def _no_leaks() -> Iterator[None]:
    yield
    gc.collect()  # an unclosed connection would warn here, and warnings are errors


@pytest.fixture
def newer(tmp_path: Path) -> Path:
    place = tmp_path / "newer"
    shutil.copytree(readiness.migrations_folder(), place, ignore=shutil.ignore_patterns("__pycache__"))
    (place / "versions" / "9999_notes.py").write_text(SECOND)
    return place


def test_metadata_and_migrations_agree(engine: Engine) -> None:
    # Postgres keeps these unique by their hash, which Alembic does not look at, and looks up no names of these tables.
    others = {"uq_kernels_kernel", "uq_texts_text"}
    others |= {key.name for name in UNCHECKED for key in metadata.tables[name].foreign_key_constraints}
    others = others if engine.dialect.name == "postgresql" else set()
    with reading(engine) as connection:
        options = {"include_object": lambda _, name, *__: name not in others}
        assert compare_metadata(MigrationContext.configure(connection, opts=options), metadata) == []


@only_on("postgresql", "SQLite looks up in memory what a row names")
def test_rows_of_results_are_written_without_looking_up_what_they_name(engine: Engine) -> None:
    query = "SELECT conname FROM pg_constraint WHERE contype = 'f' AND conrelid = CAST(:table AS regclass)"
    with reading(engine) as connection:
        checks = {name: connection.execute(text(query), {"table": name}).all() for name in (*UNCHECKED, "wall_time")}
    assert [name for name, found in checks.items() if found] == ["wall_time"]


@only_on("sqlite", "it alone has strict and clustered tables")
def test_strict_and_clustered_tables_are_made_so(engine: Engine) -> None:
    with reading(engine) as connection:
        made = {
            row.name: (bool(row.strict), bool(row.wr))
            for row in connection.exec_driver_sql("PRAGMA table_list")
            if row.name in metadata.tables
        }
    options = {name: table.dialect_options["sqlite"] for name, table in metadata.tables.items()}
    assert made == {name: (o["strict"], not o["with_rowid"]) for name, o in options.items()}


@only_on("postgresql", "texts compare byte by byte on SQLite anyway")
def test_texts_compare_byte_by_byte(engine: Engine) -> None:
    query = (
        "SELECT c.table_name, c.column_name, c.collation_name FROM information_schema.columns c"
        " JOIN information_schema.tables t USING (table_schema, table_name) WHERE t.table_type = 'BASE TABLE'"
        " AND c.data_type = 'text' AND c.table_schema = current_schema() AND c.collation_name IS DISTINCT FROM 'C'"
    )
    with reading(engine) as connection:
        assert connection.execute(text(query)).all() == []


def test_file_names_say_the_revisions() -> None:
    config = Config()
    config.set_main_option("script_location", str(readiness.migrations_folder()))
    scripts = ScriptDirectory.from_config(config)
    assert [s.revision for s in scripts.walk_revisions()][::-1] == readiness.revisions()
    assert scripts.get_heads() == [store.latest_revision()]


def test_a_new_file_is_at_head(engine: Engine) -> None:
    assert store.schema_revision(engine) == store.latest_revision()
    assert store.upgrade(engine, COUNTERS) == store.latest_revision()


def test_an_older_store_is_brought_up(engine: Engine, stored: store.StoredUpload, newer: Path) -> None:
    before = store.select(engine, "v1_launches")
    assert migrations.upgrade(engine, COUNTERS, newer) == "9999"
    assert store.schema_revision(engine) == "9999"
    assert store.select(engine, "v1_launches") == before  # the table was made again and nothing cascaded


@only_on("sqlite", "servers have backups of their own")
def test_an_older_store_is_copied_first(engine: Engine, stored: store.StoredUpload, newer: Path) -> None:
    told: list[str] = []
    migrations.upgrade(engine, COUNTERS, newer, told.append)
    copy = Path(f"{file_of(engine)}.before-9999")
    assert told == [
        f"{file_of(engine)}: migrated from schema {store.latest_revision()} to 9999; as it was before: {copy}"
    ]
    with closing(sqlite3.connect(copy)) as old:
        assert old.execute("SELECT version_num FROM alembic_version").fetchall() == [(store.latest_revision(),)]
        assert old.execute("SELECT count(*) FROM launches").fetchall() == [(4,)]
    assert migrations._copy(engine, "9999") == Path(f"{copy}-2")


@only_on("sqlite", "servers have backups of their own")
def test_an_upgrade_that_is_stopped_leaves_one_whole_copy(
    engine: Engine, stored: store.StoredUpload, newer: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = Path(str(file_of(engine)))
    half = Path(f"{file}.before-9999.part")
    half.write_bytes(b"what a killed upgrade wrote")

    def interrupt(_file: int) -> None:
        assert half.stat().st_size > 10_000
        assert not half.with_suffix("").exists()
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", interrupt)
        with pytest.raises(KeyboardInterrupt):
            migrations.upgrade(engine, COUNTERS, newer)
    assert list(file.parent.glob("*.before-*")) == []
    with monkeypatch.context() as patched:
        patched.setattr(migrations, "_migrate", Mock(side_effect=KeyboardInterrupt))
        for _ in range(3):
            with pytest.raises(KeyboardInterrupt):
                migrations.upgrade(engine, COUNTERS, newer)
    assert migrations.upgrade(engine, COUNTERS, newer) == "9999"
    assert list(file.parent.glob("*.before-*")) == [half.with_suffix("")]
    assert migrations._copy(engine, "9999") == Path(f"{file}.before-9999-2")  # another content has another copy


def test_a_failed_upgrade_changes_nothing(engine: Engine, stored: store.StoredUpload, newer: Path) -> None:
    file = newer / "versions" / "9999_notes.py"
    file.write_text(SECOND + "    op.execute('DELETE FROM kernels')\n")
    with pytest.raises(ServiceError, match=r"shapes|kernel_totals"):
        migrations.upgrade(engine, COUNTERS, newer)
    assert store.schema_revision(engine) == store.latest_revision()
    assert len(store.select(engine, "v1_launches")) == 4


def test_a_newer_store_is_refused(engine: Engine, newer: Path, url: str) -> None:
    migrations.upgrade(engine, COUNTERS, newer)
    with pytest.raises(
        StoreVersionError, match=f"schema 9999, but this profsvc knows only 0001 to {store.latest_revision()}; install"
    ):
        store.open_store(url, COUNTERS)


def test_another_programs_database_is_refused(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "other.db")) as other:
        other.execute("PRAGMA journal_mode = wal")
        other.execute("CREATE TABLE songs (title)")
    before = (tmp_path / "other.db").read_bytes()
    with pytest.raises(ServiceError, match="another program: it has the table 'songs'"):
        store.open_store(str(tmp_path / "other.db"), COUNTERS)
    assert (tmp_path / "other.db").read_bytes() == before


def test_views_follow_the_counters(engine: Engine, url: str) -> None:
    again = store.open_store(url, [*COUNTERS, "l2_bytes"])
    assert "l2_bytes" in store.table(again, "v1_counters").columns
    store.open_store(url, COUNTERS)
    assert "l2_bytes" not in store.table(again, "v1_counters").columns


@pytest.mark.parametrize("name", ["launch_id", "run_id", "Upper", "two words", 'quote"d', "1st"])
def test_a_counter_must_be_able_to_be_a_column(engine: Engine, name: str) -> None:
    with pytest.raises(DomainError, match="is not a valid counter name"):
        store.upgrade(engine, [name])


def test_migrations_are_found_in_a_wheel_and_in_a_checkout(tmp_path: Path) -> None:
    assert readiness.migrations_folder().parent == Path(store.__file__).parents[2]
    package = tmp_path / "site-packages" / "profsvc"
    shutil.copytree(readiness.migrations_folder(), package / "migrations")
    assert readiness.migrations_folder(package) == package / "migrations"
    engine = store.connect(str(tmp_path / "wheel.sqlite"))
    assert migrations.upgrade(engine, COUNTERS, readiness.migrations_folder(package)) == store.latest_revision()
    with pytest.raises(ServiceError, match="install profsvc again"):
        readiness.migrations_folder(tmp_path / "nowhere")


def test_a_percent_sign_in_the_folder_does_no_harm(tmp_path: Path) -> None:
    place = tmp_path / "100%(here)s"
    shutil.copytree(readiness.migrations_folder(), place)
    assert migrations.upgrade(store.connect(str(tmp_path / "a.sqlite")), COUNTERS, place) == store.latest_revision()


def test_the_command_of_alembic_works_by_hand(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from alembic.config import main

    monkeypatch.chdir(readiness.migrations_folder().parent)
    main(["-x", f"url={tmp_path / 'hand.sqlite'}", "upgrade", "head"])
    engine = store.open_store(str(tmp_path / "hand.sqlite"), COUNTERS)
    assert not store.write_upload(engine, info(), store.RunInfo(), batches()).known
    main(["-x", f"url={tmp_path / 'hand.sqlite'}", "downgrade", "base"])


def test_postgres_understands_the_schema() -> None:
    made: list[str] = []
    mock = create_mock_engine("postgresql+psycopg://", lambda s, *_: made.append(str(s.compile(dialect=mock.dialect))))
    metadata.create_all(mock, checkfirst=False)
    ddl = "\n".join(made)
    assert len([s for s in made if "CREATE TABLE" in s]) == len(metadata.tables)
    assert "run_id BIGSERIAL" in ddl
    assert "launch_id BIGINT NOT NULL" in ddl
    assert "duration_ns DOUBLE PRECISION" in ddl
    assert "CONSTRAINT pk_sample_blocks PRIMARY KEY (sensor_id, first_id)" in ddl
    assert "STRICT" not in ddl


@only_on("postgresql", "it has locks on tables")
def test_an_upgrade_waits_a_little_for_readers_and_gives_up(
    engine: Engine, stored: store.StoredUpload, newer: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgres, "LOCK_TIMEOUT_SECONDS", 0.1)
    monkeypatch.setattr(postgres, "RETRY_DELAYS_SECONDS", (0.01,))
    with reading(engine) as connection:
        connection.execute(text("SELECT * FROM v1_runs"))
        with pytest.raises(StoreBusyError, match="another process holds a lock on these rows; nothing was changed"):
            migrations.upgrade(engine, COUNTERS, newer)
        monkeypatch.setattr(postgres, "RETRY_DELAYS_SECONDS", (0.2,) * 20)
        with ThreadPoolExecutor() as pool:
            done = pool.submit(migrations.upgrade, engine, COUNTERS, newer)
            time.sleep(0.5)
            assert not done.done()
            connection.rollback()
            assert done.result() == readiness.latest_revision(newer)
    assert len(store.select(engine, "v1_launches")) == 4


@only_on("postgresql", "files have no owner")
def test_an_upgrade_by_a_superuser_leaves_the_store_to_its_owner(
    engine: Engine, url: str, newer: Path, postgres_server: Server
) -> None:
    admin = postgres_server.admin.set(drivername="postgresql+psycopg", database=engine.url.database)
    migrations.upgrade(store.connect(admin.render_as_string(hide_password=False)), COUNTERS, newer)
    query = "SELECT DISTINCT pg_get_userbyid(relowner) FROM pg_class WHERE relnamespace = 'public'::regnamespace"
    with reading(engine) as connection:
        assert connection.exec_driver_sql(query).scalars().all() == [engine.url.username]


def test_two_processes_make_the_schema_of_an_empty_database_one_after_the_other(postgres_server: Server) -> None:
    name = postgres_server.database("template0")
    url = postgres_server.url(name).render_as_string(hide_password=False)
    with ThreadPoolExecutor() as pool:
        done = [pool.submit(migrations.upgrade, store.connect(url), COUNTERS) for _ in range(3)]
    assert {one.result() for one in done} == {readiness.latest_revision()}
    engine = store.connect(url)
    assert store.select(engine, "v1_runs") == []
    engine.dispose()
    postgres_server.drop(name)


def test_a_database_that_cannot_hold_every_text_is_refused(postgres_server: Server) -> None:
    name = postgres_server.database("template0", encoding="SQL_ASCII")
    with pytest.raises(ServiceError, match="stores texts as SQL_ASCII, which lacks characters; create a new database"):
        store.open_store(postgres_server.url(name).render_as_string(hide_password=False), COUNTERS)
    postgres_server.drop(name)


@only_on("postgresql", "it is a server")
def test_an_old_server_is_refused(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(postgres, "MIN_SERVER_VERSION", 99)
    with pytest.raises(StoreVersionError, match=r"postgresql://.* runs Postgres \d+; profsvc needs 99 or newer"):
        store.schema_revision(engine)


def test_numbers_of_deleted_files_are_not_given_again_after_an_upgrade(engine: Engine) -> None:
    for letter in "abc":
        store.write_upload(engine, info(letter), store.RunInfo(name=letter), batches(1))
    store.delete_upload(engine, 3)
    config = Config()
    config.set_main_option("script_location", str(readiness.migrations_folder()))
    with migrations.changing_schema(engine) as connection:
        config.attributes["connection"] = connection
        command.downgrade(config, "0020")
    migrations.upgrade(engine, COUNTERS)
    assert store.write_upload(engine, info("d"), store.RunInfo(name="d"), batches(1)).upload_id == 4
    assert not store.write_upload(engine, info("d"), store.RunInfo(name="s"), batches(1)).known


def test_what_an_older_schema_held_keeps_every_value(engine: Engine) -> None:
    times = [sample(i % 2, i // 2 * 3, 10**18 + i // 2 * 10**7, None, i // 2 * 10**7) for i in range(8)]
    store.write_upload(engine, info(), store.RunInfo(name="a"), batches(7))
    store.write_upload(engine, info("b"), store.RunInfo(name="b"), [log((POWER, HEAT), *times)])
    views = ("v1_launches", "v1_metrics", "v1_kernel_totals", "v1_sensors", "v1_samples")
    before = {view: store.select(engine, view) for view in views}
    config = Config()
    config.set_main_option("script_location", str(readiness.migrations_folder()))
    with migrations.changing_schema(engine) as connection:
        config.attributes["connection"] = connection
        command.downgrade(config, "0002")
    assert store.schema_revision(engine) == "0002"
    with reading(engine) as connection:
        assert connection.execute(text("SELECT count(DISTINCT kernel_id) FROM launches")).scalar_one() == 2
        assert connection.execute(text("SELECT sum(sample_index) FROM samples")).scalar_one() == 36
    assert migrations.upgrade(engine, COUNTERS) == store.latest_revision()
    for view, rows in before.items():
        now = store.select(engine, view)
        assert len(now) == len(rows)
        for one, other in zip(now, rows, strict=True):
            spread = {
                name: pytest.approx(value, rel=1e-15) for name, value in other.items() if name in {"p50_ns", "p95_ns"}
            }
            assert one == other | spread


def test_packed_samples_are_rows_in_an_older_schema(engine: Engine) -> None:
    columns = series(VALUES["two decimals"], -STEPS * 20 * MS + STEPS % 3 * MS, line=STEPS * 4 + 9)
    store.write_upload(engine, info(), store.RunInfo(name="a"), iter([Batch(unpacked(columns, LONG))]))
    before = rows_of(engine, 1)
    config = Config()
    config.set_main_option("script_location", str(readiness.migrations_folder()))
    for rows in (0, LONG):
        with reading(engine) as connection:
            assert connection.execute(text("SELECT count(*) FROM samples")).scalar_one() == rows
        with migrations.changing_schema(engine) as connection:
            config.attributes["connection"] = connection
            command.downgrade(config, "0040")
        assert migrations.upgrade(engine, COUNTERS) == store.latest_revision()
        assert rows_of(engine, 1) == before


def test_the_names_of_all_counters_are_looked_up_together(tmp_path: Path) -> None:
    engine = store.connect(str(tmp_path / "new.sqlite"))
    sent: list[str] = []
    event.listen(engine, "before_cursor_execute", lambda _connection, _cursor, words, *_: sent.append(words))
    store.upgrade(engine)
    engine.dispose()
    assert len(specs.counters()) > 400
    assert 1 < sum("FROM texts" in words for words in sent) < 10


@only_on("sqlite", "Postgres makes no view of a table that is not there")
def test_an_upgrade_that_leaves_a_view_without_its_table_fails(engine: Engine) -> None:
    """Such as a store of a schema that was put below another one later: its number is right, its tables are not."""
    with writing(engine) as connection:
        drop_views(connection)
        connection.exec_driver_sql("DROP TABLE deliveries")
    with pytest.raises(StoreVersionError, match=r"v1_deliveries does not answer .*no such table"):
        store.upgrade(engine, COUNTERS)
    with pytest.raises(StoreVersionError, match="v1_deliveries does not answer"):
        store.upgrade(engine, COUNTERS)


@only_on("sqlite", "Postgres drops no table that a view needs")
def test_doctor_tells_of_a_view_that_does_not_answer(engine: Engine) -> None:
    with writing(engine) as connection:
        connection.exec_driver_sql("DROP TABLE deliveries")
    checks = {check.check: check for check in store.run_checks(engine, lambda: store.blob_store_of(engine))}
    assert (checks["sql"].state, "v1_deliveries does not answer" in checks["sql"].found) == ("fail", True)
