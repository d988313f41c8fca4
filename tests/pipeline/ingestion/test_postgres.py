"""Files on their way into Postgres: the same rows as in SQLite, whoever uploads beside, and when the server goes."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from sqlalchemy import Engine
from sqlalchemy.exc import OperationalError

from profsvc import pipeline, store
from profsvc.errors import ServiceError, StoreLostError
from profsvc.store.connection import postgres as server
from profsvc.tables import Batch
from tests.environment import postgres
from tests.views import power_logs

FIXTURES = Path(__file__).parents[3] / "fixtures"
# Numbers of names are given as they come, and times are those of the upload.
OWN = {"kernel_id", "device_id", "received_at", "created_at"}


FILES = (
    *("ncu_raw/h200_three_launches.csv.gz", "ncu_details/h200_three_launches_min.csv.gz", "ncu_session/cut.csv"),
    *("nsys_sqlite/two_devices.sqlite", "nsys_stats/several_reports.csv", "nsys_stats/rejects.csv", "kineto/cuda.json"),
    *("nvprof/two_processes.csv", "nvprof/events_and_metrics.csv", "nvprof/output_inside.csv"),
    *("rocprof/counters_without_times.csv", "characterization/latin1_no_end.csv", "hioki/pw3335.csv"),
    *("tdms/elapsed.tdms", "tegrastats/orin.txt", "memory_trace/plain.csv"),
    *("ncu_report_lines/instructions.jsonl", "ncu_source/h200_lines_and_instructions.csv"),
)


RAW = FIXTURES / FILES[0]
# What no upload fills -> the test of the store, on both databases, that does.
ELSEWHERE = {"v1_predictions": "results/test_predictions", "v1_schedules": "service/test_schedules",
             "v1_slots": "service/test_schedules", "v1_deliveries": "results/test_reports",
             "v1_wall_time_iterations": "../pipeline/test_wall_time",
             "v1_finding_differences": "results/test_findings",
             **dict.fromkeys(("v1_kernel_renames", "v1_rename_decisions"), "results/test_renames"),
             "v1_saved_queries": "service/test_saved_queries",
             "v1_archives": "maintenance/archive/test_archiving",
             **dict.fromkeys(("v1_findings", "v1_reports", "v1_refusals"), "results/test_findings")}  # fmt: skip


def ingest(engine: Engine, path: Path, run: str = "r") -> pipeline.ImportResult:
    with path.open("rb") as stream:
        return pipeline.ingest(engine, stream, path.name, store.RunInfo(name=run, tags={"é": '"', "b": "\\"}))


def alike(value: Any) -> Any:
    """Return a JSON value with 14 digits of its numbers: SQLite writes 15, and Postgres whole ones without a point."""
    if isinstance(value, dict):
        return {name: alike(one) for name, one in value.items()}
    if isinstance(value, list):
        return [alike(one) for one in value]
    return float(f"{value:.14g}") if isinstance(value, int | float) and not isinstance(value, bool) else value


@store.snapshot
def rows(engine: Engine) -> dict[str, list[str]]:
    def of(view: str) -> list[str]:
        shown = [
            row | {name: alike(row[name]) for name in store.JSON_COLUMNS.get(view, ()) if name in row}
            for row in store.parse_json_columns(view, store.select(engine, view))
        ]
        found = ({k: v for k, v in row.items() if k not in OWN} for row in shown)
        return sorted(json.dumps(row, sort_keys=True, default=str) for row in found)

    return {view: of(view) for view in store.VIEWS}


@pytest.mark.parametrize(
    ("said", "kind"),
    [
        ("FATAL: the database system is starting up", StoreLostError),
        ("FATAL: the database system is shutting down", StoreLostError),
        (
            "FATAL: the database system is not yet accepting connections DETAIL: Consistent recovery state has not "
            "been yet reached.",
            StoreLostError,
        ),
        ("server closed the connection unexpectedly", StoreLostError),
        ('FATAL: password authentication failed for user "lab"', ServiceError),
    ],
)
def test_a_server_that_comes_soon_is_asked_again(said: str, kind: type[ServiceError]) -> None:
    assert type(server.user_error(psycopg.OperationalError(said), "db.lab")) is kind


def test_both_databases_hold_the_same_rows(tmp_path: Path, postgres_whole_url: str) -> None:
    engines = [
        store.open_store(str(tmp_path / "s.sqlite"), pooled=True),
        store.open_store(postgres_whole_url, pooled=True),
    ]
    for name in FILES:
        accounts = [vars(ingest(engine, FIXTURES / name, name.rsplit(".", 1)[0])) for engine in engines]
        assert accounts[0] == accounts[1], name
    for engine in engines:
        power_logs.fill(engine)
    found = [rows(engine) for engine in engines]
    for engine in engines:
        engine.dispose()
    for view in store.VIEWS:
        assert found[1][view] == found[0][view], view
    empty = {view for view in store.VIEWS if not found[0][view]}
    assert empty == set(ELSEWHERE)
    assert all((FIXTURES.parent / "tests" / "store" / f"{test}.py").exists() for test in ELSEWHERE.values())


@pytest.fixture(scope="module")
def own_server() -> Iterator[postgres.Server]:
    """A server that a test may crash."""
    with postgres.own_server() as ours:
        yield ours


@pytest.fixture(scope="module")
def template(own_server: postgres.Server) -> str:
    return postgres.migrated(own_server)


@pytest.fixture
def engine(own_server: postgres.Server, template: str) -> Iterator[Engine]:
    engine = store.open_store(own_server.url(own_server.database(template)).render_as_string(hide_password=False))
    yield engine
    engine.dispose()


def crashing(monkeypatch: pytest.MonkeyPatch, ours: postgres.Server, times: int) -> None:
    """Make the server crash after the first batch of a file, as often as said."""
    reads, left = pipeline.file_batches.read_batches, iter(range(times))

    def read(*arguments: Any) -> Iterator[Batch]:
        batches = reads(*arguments)
        yield next(batches)
        if next(left, None) is not None:
            ours.restart()
        yield from batches

    monkeypatch.setattr(pipeline.file_batches, "read_batches", read)
    monkeypatch.setattr(store.ingest.upload, "SMALL_FILE_ROWS", 0)


def test_a_server_that_crashes_in_the_middle_is_only_a_delay(
    engine: Engine, own_server: postgres.Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    crashing(monkeypatch, own_server, times=1)
    verdict = ingest(engine, RAW)
    assert (verdict.known, verdict.launches, verdict.upload_id is not None) == (False, 3, True)
    assert [row["launches"] for row in store.select(engine, "v1_uploads")] == [3]
    assert len(store.select(engine, "v1_launches")) == 3
    assert ingest(engine, RAW).known


def test_a_server_that_goes_is_one_error_and_no_line_of_the_driver(
    engine: Engine, own_server: postgres.Server, caplog: pytest.LogCaptureFixture
) -> None:
    lost = pytest.raises(OperationalError)
    with lost, engine.connect() as connection:
        driver: Any = connection.connection.driver_connection
        with driver.pipeline(), own_server.session() as session:
            session.execute("SELECT pg_terminate_backend(%s)", (driver.info.backend_pid,))
            for _ in range(3):
                connection.exec_driver_sql("SELECT 1").all()
    assert caplog.records == []


def test_a_server_that_stays_away_is_said_and_nothing_is_stored(
    engine: Engine, own_server: postgres.Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "RETRY_DELAYS_SECONDS", ())
    crashing(monkeypatch, own_server, times=1)
    with pytest.raises(StoreLostError, match="uncommitted changes were rolled back; retry"):
        ingest(engine, RAW)
    assert store.select(engine, "v1_uploads") == []
    assert not ingest(engine, RAW).known  # it works again by itself


def test_a_lost_answer_does_not_store_a_file_twice(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "RETRY_DELAYS_SECONDS", (0.0,))
    write, losses = store.write_upload, iter([True])

    def lossy(*arguments: Any, **options: Any) -> store.StoredUpload:
        stored = write(*arguments, **options)
        if next(losses, False):
            raise StoreLostError("the connection broke after the commit")
        return stored

    monkeypatch.setattr(store, "write_upload", lossy)
    assert ingest(engine, RAW).launches == 3
    assert len(store.select(engine, "v1_uploads")) == 1
