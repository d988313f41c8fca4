"""Rows are filled in part by part: killed and resumed, while others write, and nothing of it is lost or done twice."""

import os
import shutil
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from alembic import command
from alembic.config import Config
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, Engine, inspect, text

from profsvc import store
from profsvc.errors import StoreBusyError
from profsvc.store.connection import postgres
from profsvc.store.connection.transactions import reading, writing
from profsvc.store.maintenance import backfill, migrations, readiness
from profsvc.store.schema.column_types import IDS_PER_UPLOAD
from tests.conftest import ROOT
from tests.environment.postgres import Server
from tests.store.conftest import COUNTERS, Filled, batches, info, only_on
from tests.store.ingest.writers.test_samples import HEAT, POWER, log, sample

VIEWS = ("v1_launches", "v1_kernel_totals", "v1_sensors", "v1_samples", "v1_counters")
THIRD = f'''
import sqlalchemy as sa
from alembic import op

from profsvc.store.maintenance.backfill import Fill, complete

revision = "9999"
down_revision = "{store.latest_revision()}"


def expand():
    op.add_column("launches", sa.Column("duration_us", sa.REAL()))


MAKE = "UPDATE launches SET duration_us = duration_ns / 1000 WHERE launch_id >= :first AND launch_id < :end"
FILL = Fill(revision, expand, (), (MAKE,))


def upgrade():
    complete(op.get_bind(), FILL)
    query = "SELECT count(*) FROM launches WHERE duration_us IS NULL"
    assert op.get_bind().execute(sa.text(query)).scalar() == 0
'''
KILLED = """
import os, signal, sys
from profsvc import store
from profsvc.store.maintenance import backfill, migrations
done, fill_part = [], backfill._fill_part

def fill_some(connection, fill):
    if len(done) == 3:
        os.kill(os.getpid(), signal.SIGKILL)
    done.append(fill_part(connection, fill))
    return done[-1]

backfill.ROWS_AT_ONCE, backfill._fill_part = 4, fill_some
migrations.upgrade(store.connect(sys.argv[1]), ())
"""


def lower(engine: Engine, revision: str) -> None:
    """Bring the store back to an older schema."""
    config = Config()
    config.set_main_option("script_location", str(readiness.migrations_folder()))
    with migrations.changing_schema(engine) as connection:
        config.attributes["connection"] = connection
        command.downgrade(config, revision)


def everything(engine: Engine) -> dict[str, Any]:
    """Return all rows of the views; sums of doubles to what their order leaves of them."""
    found = {view: store.select(engine, view) for view in VIEWS}
    for row in found["v1_kernel_totals"]:
        row |= {name: pytest.approx(row[name], rel=1e-15) for name in ("p50_ns", "p95_ns")}
    return found


@pytest.fixture(scope="module")
def rows_of_filled() -> dict[str, dict[str, Any]]:
    """What the views show of the store that `older` fills, by the kind of store."""
    return {}


@pytest.fixture
def older(
    engine: Engine,
    filled: Filled,
    rows_of_filled: dict[str, dict[str, Any]],
    request: pytest.FixtureRequest,
    monkeypatch: pytest.MonkeyPatch,
) -> tuple[Engine, dict[str, Any]]:
    """A store of an older schema with eight files, and what the views of the newest show of it."""
    monkeypatch.setattr(backfill, "ROWS_AT_ONCE", 4)
    monkeypatch.setattr(backfill, "PROGRESS_SECONDS", 0)
    kind = request.node.callspec.params["url"]

    def fill() -> None:
        for number in range(5):
            store.write_upload(engine, info(f"launches {number}"), store.RunInfo(name=f"run {number}"), batches(3))
        for number in range(3):
            rows = [sample(i % 2, i // 2 * 3, None, None, (i + number) * 10**7) for i in range(5)]
            store.write_upload(engine, info(f"log {number}"), store.RunInfo(name="log"), [log((POWER, HEAT), *rows)])
        rows_of_filled[kind] = everything(engine)
        lower(engine, "0002")

    return filled(fill), rows_of_filled[kind]


def at_0002(connection: Connection) -> dict[str, list[Any]]:
    return {
        "launches": list(connection.execute(text("SELECT * FROM launches ORDER BY launch_id"))),
        "samples": list(connection.execute(text("SELECT * FROM samples ORDER BY sensor_id, sample_index"))),
        "uploads": list(connection.execute(text("SELECT upload_id, sha256 FROM uploads ORDER BY upload_id"))),
    }


def steps(told: list[str]) -> list[str]:
    """Return what was said of single steps; a file of SQLite is said to be migrated at the end."""
    return [words for words in told if words.endswith(" rows")]


def test_parts_make_the_whole_and_tell_how_far_they_are(older: tuple[Engine, dict[str, Any]]) -> None:
    engine, wanted = older
    told: list[str] = []
    assert migrations.upgrade(engine, COUNTERS, tell=told.append) == store.latest_revision()
    assert everything(engine) == wanted
    # A file is not cut: 3 rows and 3 more would be too many at once.
    done = (3, 6, 9, 12, 15, 20, 25, 30)
    assert steps(told) == [
        f"schema {revision}: {rows} of 30 rows" for revision in ("0003", "0032", "0036") for rows in done
    ]
    with reading(engine) as connection:
        assert not inspect(connection).has_table("filled")


def test_small_files_go_together(older: tuple[Engine, dict[str, Any]], monkeypatch: pytest.MonkeyPatch) -> None:
    engine, wanted = older
    monkeypatch.setattr(backfill, "ROWS_AT_ONCE", 10)
    told: list[str] = []
    migrations.upgrade(engine, COUNTERS, tell=told.append)
    assert [int(words.split()[2]) for words in steps(told)] == 3 * [9, 15, 25, 30]
    assert everything(engine) == wanted


def test_what_is_killed_goes_on(
    older: tuple[Engine, dict[str, Any]], url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine, wanted = older
    with reading(engine) as connection:
        before = at_0002(connection)
    done = subprocess.run([sys.executable, "-c", KILLED, url], cwd=ROOT, env=os.environ, check=False)
    assert done.returncode == -signal.SIGKILL
    assert store.schema_revision(engine) == "0002"
    with reading(engine) as connection:
        assert at_0002(connection) == before
    told: list[str] = []
    migrations.upgrade(engine, COUNTERS, tell=told.append)
    assert everything(engine) == wanted
    # On a server three parts were kept; a file of SQLite is as it was.
    first = "3 of 30" if engine.dialect.name == "sqlite" else "3 of 21"
    assert told[0] == f"schema 0003: {first} rows"


def again(connection: Connection, old: int, new: int, longer: float = 0.0) -> None:
    """Store a file again under another number, as a program of the older schema does."""
    columns = "run_id, file_name, size_bytes, format, tool, tool_version, status, lines, lines_stored, lines_skipped," \
        " lines_rejected, launches, samples, gpu_time_ns, same_as, message, facts, received_at"  # fmt: skip
    digest = f"{new:064d}"
    connection.execute(
        text(
            f"INSERT INTO uploads (upload_id, sha256, {columns}) SELECT {new}, '{digest}', {columns}"
            f" FROM uploads WHERE upload_id = {old}"
        )
    )
    shift = (new - old) * IDS_PER_UPLOAD
    rest = "run_id, launch_index, kernel_id, device_id, host_id, grid_x, start_ns, line"
    connection.execute(
        text(
            f"INSERT INTO launches (launch_id, upload_id, duration_ns, {rest}) SELECT launch_id + {shift}, {new},"
            f" duration_ns + {longer}, {rest} FROM launches WHERE upload_id = {old}"
        )
    )
    connection.execute(
        text(
            "INSERT INTO samples (sensor_id, sample_index, elapsed_ns, value, line) SELECT"
            f" sensor_id + {shift}, sample_index, elapsed_ns, value, line FROM samples"
            f" WHERE sensor_id / {IDS_PER_UPLOAD} = {old}"
        )
    )


def gone(connection: Connection, upload_id: int) -> None:
    connection.execute(text(f"DELETE FROM samples WHERE sensor_id / {IDS_PER_UPLOAD} = {upload_id}"))
    connection.execute(text(f"DELETE FROM uploads WHERE upload_id = {upload_id}"))


@only_on("postgresql", "a file of SQLite has one writer at a time")
def test_others_write_meanwhile(
    older: tuple[Engine, dict[str, Any]], postgres_server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine, _ = older
    admin = postgres_server.admin.set(drivername="postgresql+psycopg", database=engine.url.database)
    program = store.connect(admin.render_as_string(hide_password=False))
    parts, run = [0], backfill._run

    def others(connection: Connection, statements: tuple[str, ...], low: int, high: int) -> None:
        """Do a part, and while it is not yet committed what an upload does; one that waits long fails."""
        run(connection, statements, low, high)
        parts[0] += 1
        with writing(engine) as writer:
            writer.exec_driver_sql("SET LOCAL lock_timeout = '2s'")
            if parts[0] == 2:
                again(writer, 1, 20)  # what is new
                gone(writer, 1)  # what was done is deleted
            if parts[0] == 4:
                gone(writer, 2)  # what was done is read again, and is another
                again(writer, 4, 2, longer=7.0)
            if parts[0] == 5:
                writer.execute(text("UPDATE uploads SET same_as = 3 WHERE upload_id = 4"))
                again(writer, 6, 21)
            if parts[0] == 7:
                gone(writer, low)  # what is just being done, 5, is deleted

    monkeypatch.setattr(backfill, "_run", others)
    script = ScriptDirectory(str(readiness.migrations_folder()))
    backfill.fill_ahead(program, script.get_revision("0003").module.FILL)
    monkeypatch.setattr(backfill, "_run", run)
    assert parts[0] > 9
    with writing(engine) as writer:  # and after all parts, before the migration itself
        gone(writer, 6)
        again(writer, 3, 22)
        seen = at_0002(writer)
    migrations.upgrade(program, COUNTERS)
    with reading(engine) as connection:
        owners = "SELECT DISTINCT pg_get_userbyid(relowner) FROM pg_class WHERE relnamespace = 'public'::regnamespace"
        assert connection.exec_driver_sql(owners).scalars().all() == [engine.url.username]
        assert connection.exec_driver_sql(migrations._UNCHECKED).all() == []
    total = {(row["upload_id"], row["kernel_short"]): row for row in store.select(engine, "v1_kernel_totals_all")}
    assert total[2, "gemm"]["total_ns"] == pytest.approx(2 * 7.0 + total[4, "gemm"]["total_ns"])
    assert sorted({upload for upload, _ in total}) == [2, 3, 4, 20, 22]
    lower(engine, "0002")
    with reading(engine) as connection:
        assert at_0002(connection) == seen
    program.dispose()


@pytest.fixture
def newer(tmp_path: Path) -> Path:
    place = tmp_path / "newer"
    shutil.copytree(readiness.migrations_folder(), place, ignore=shutil.ignore_patterns("__pycache__"))
    (place / "versions" / "9999_microseconds.py").write_text(THIRD)
    return place


@only_on("postgresql", "a file of SQLite has one writer at a time")
def test_uploads_go_on_while_a_column_is_filled_in(
    engine: Engine, newer: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(backfill, "ROWS_AT_ONCE", 1)
    monkeypatch.setattr(backfill, "PROGRESS_SECONDS", 0)
    for number in range(10):
        store.write_upload(engine, info(f"{number}"), store.RunInfo(name=f"run {number}"), batches(3))
    over, stored, failed = threading.Event(), [], []

    def upload(writer: int) -> None:
        for number in range(1000):
            if over.is_set():
                return
            try:
                rows = batches(3, begin_ns=10_000 * (2 * number + writer))
                done = store.write_upload(engine, info(f"{writer} {number}"), store.RunInfo(name="busy"), rows)
                stored.append((done.upload_id, over.is_set()))
            except Exception as error:
                failed.append(error)

    writers = [threading.Thread(target=upload, args=(number,)) for number in range(2)]
    for writer in writers:
        writer.start()
    try:
        assert migrations.upgrade(engine, COUNTERS, newer) == "9999"
    finally:
        over.set()
        for writer in writers:
            writer.join()
    assert failed == []
    assert len(stored) > 2
    assert len(store.select(engine, "v1_uploads")) == 10 + len(stored)


@only_on("postgresql", "it has locks on tables")
def test_who_holds_the_table_is_waited_for_a_little(
    older: tuple[Engine, dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    engine, wanted = older
    monkeypatch.setattr(postgres, "LOCK_TIMEOUT_SECONDS", 0.1)
    monkeypatch.setattr(postgres, "RETRY_DELAYS_SECONDS", (0.01,))
    with writing(engine) as loading:  # a file that takes long to load
        again(loading, 1, 20)
        with pytest.raises(
            StoreBusyError, match="another process holds a lock on these rows; nothing was changed; retry"
        ):
            migrations.upgrade(engine, COUNTERS)
        with reading(engine) as connection:  # the tables are there for others, and what was filled in is kept
            assert connection.execute(text("SELECT count(*) FROM uploads")).scalar() == 8
            assert connection.execute(text("SELECT count(*) FROM filled")).scalar() == 8
        loading.rollback()
    migrations.upgrade(engine, COUNTERS)
    assert everything(engine) == wanted
