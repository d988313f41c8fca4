import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from datetime import UTC, date, datetime
from pathlib import Path
from threading import Event
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from sqlalchemy import Engine, text

from profsvc import pipeline, store
from profsvc.errors import NotFoundError, ProfsvcError, ServiceError, UsageError
from profsvc.store.connection.transactions import reading, writing
from profsvc.store.ingest.blob_store import BlobStore
from profsvc.store.maintenance.archive import archiving, restoring
from profsvc.store.queries.kernels.history import HistoryFilter, criterion_of_kernel, potential_of_kernel
from profsvc.store.schema.tables import metadata
from tests.store.conftest import only_on
from tests.store.maintenance.archive.stores import RUNS, base_rows, close, put

only_sqlite = only_on("sqlite", "the order of the steps is the program's own")


def history(engine: Engine) -> dict[str, Any]:
    """Return what nights and histories read of all runs."""
    runs = [row["run_id"] for row in store.select(engine, "v1_runs")]
    found: dict[str, Any] = {
        name: frame.to_dict("records") for name, frame in store.series_of_runs(engine, runs).items()
    }
    for kernel in store.select(engine, "v1_kernels"):
        number = kernel["kernel_id"]
        found[f"durations {number}"] = store.durations_of_kernel(engine, number, HistoryFilter())
        found[f"potential {number}"] = potential_of_kernel(engine, number, runs, 10)
        for criterion in ("thread_divergence", "shared_efficiency", "load_balance_sm"):
            found[f"{criterion} {number}"] = criterion_of_kernel(engine, number, criterion, runs, 10)
    return found


def test_months_leave_and_return_bit_for_bit(year: Engine, place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archiving, "RUNS_PER_GROUP", 1)
    before, known = base_rows(year), history(year)
    assert known["potential"]
    assert known["criteria"]
    months = store.closed_months(year, date(2025, 5, 20))
    assert [(month.month, len(month.runs), month.waiting) for month in months] == [
        ("2025-03", 2, []),
        ("2025-04", 1, []),
    ]
    done = [store.archive_month(year, month, place) for month in months]
    after = base_rows(year)
    left = {name: len(before[name]) - len(rows) for name, rows in after.items()}
    assert sum(archive.rows for archive in done) == sum(left.values())
    assert before["cause_totals"]
    assert before["criterion_totals"]
    staying = ("runs", "uploads", "kernel_totals", "cause_totals", "criterion_totals", "sensors", "finished_parts")
    assert not any(left[name] for name in (*staying, "texts"))
    assert {name for name, count in left.items() if count} >= {
        *("launches", "counters", "rules", "metrics", "samples", "sample_blocks", "wide_blocks", "wide_lists"),
        *("api_calls", "transfers", "source_lines", "criteria", "potential", "models", "causes"),
    }
    assert store.closed_months(year, date(2025, 5, 20)) == []
    assert history(year) == close(known)
    states = [(row["month"], row["part"], row["state"], row["uploads"]) for row in store.select(year, "v1_archives")]
    assert states == [("2025-03", 0, "archived", 6), ("2025-04", 0, "archived", 2)]
    for month, uploads in (("2025-04", 2), ("2025-03", 6)):
        assert [(back.uploads, back.deleted) for back in store.restore_month(year, month)] == [(uploads, 0)]
    assert base_rows(year) == before
    assert history(year) == known
    assert store.select(year, "v1_archives") == []


def test_an_archived_run_says_so(year: Engine, march: store.Month, place: str, files: BlobStore) -> None:
    store.archive_month(year, march, place)
    told = {row["name"]: row["archived"] for row in store.select(year, "v1_runs")}
    today = store.format_time(archiving_time(year))[:10]
    assert told["march-1"] == f"archived on {today} to {place}; to restore its rows, run: profsvc db restore 2025-03"
    assert (told["march-2"], told["april"], told["may"]) == (told["march-1"], None, None)
    assert {row["archived"] for row in store.select(year, "v1_uploads", run_id=1)} == {told["march-1"]}
    assert store.select(year, "v1_launches", run_id=1) == []
    assert store.select(year, "v1_criteria", run_id=1, launch_id=None, kernel=None) != []
    assert put(year, files, "march-1") == [1, 2, 3]  # the same bytes are recognized
    for refused in (
        lambda: pipeline.analyze_again(year, files, 1),
        lambda: pipeline.reparse(year, files, 1),
        lambda: store.delete_upload(year, 1),
        lambda: write_more(year),
    ):
        with pytest.raises(UsageError, match=r"run default/march-1 \(id 1\) is archived .* profsvc db restore 2025-03"):
            refused()
    assert store.unfinished(year) == {}


def archiving_time(engine: Engine) -> Any:
    return store.parse_time(store.select(engine, "v1_archives")[0]["made_at"])


def write_more(engine: Engine) -> None:
    info = store.UploadInfo("more.csv", "0" * 64, 1, "ncu_raw")
    store.write_upload(engine, info, store.RunInfo(name="march-1"), [])


def test_a_run_that_was_deleted_meanwhile_stays_so(year: Engine, march: store.Month, place: str) -> None:
    store.archive_month(year, march, place)
    store.delete_run(year, 1)
    (back,) = store.restore_month(year, "2025-03")
    assert (back.uploads, back.deleted) == (3, 3)
    assert {row["run_id"] for row in store.select(year, "v1_launches")} == {2, 3, 4}


@only_on("postgresql", "on SQLite one process writes at a time")
def test_a_run_is_deleted_after_its_rows_are_back(
    year: Engine, march: store.Month, place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.archive_month(year, march, place)
    begun, go, put_back = Event(), Event(), restoring._return_table

    def halting(*arguments: Any) -> int:
        begun.set()
        assert go.wait(60)
        return put_back(*arguments)

    monkeypatch.setattr(restoring, "_return_table", halting)
    with ThreadPoolExecutor(2) as pool:
        back = pool.submit(store.restore_month, year, "2025-03")
        assert begun.wait(60)
        deleting = pool.submit(store.delete_run, year, 1)
        assert not wait([deleting], 0.2).done
        go.set()
        back.result(60)
        deleting.result(60)
    owners = "SELECT DISTINCT launch_id / 1000000000 FROM {} WHERE launch_id > 0 AND launch_id / 1000000000 NOT IN"
    with reading(year) as connection:
        for table in ("launches", "counters", "criteria"):
            lost = connection.execute(text(f"{owners.format(table)} (SELECT upload_id FROM uploads)")).all()
            assert lost == [], table


class KilledError(Exception):
    pass


def failing(place: Callable[..., Any], at: int) -> Callable[..., Any]:
    """Return a function that fails at its call with this number."""
    calls = 0

    def call(*arguments: Any, **options: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls == at:
            raise KilledError
        return place(*arguments, **options)

    return call


@only_sqlite
@pytest.mark.parametrize(
    ("step", "at"), [("_write", 1), ("_write", 25), ("require_whole", 3), ("_put", 1), ("_put", 2), ("_register", 1)]
)
def test_a_kill_before_the_rows_go_loses_nothing(
    year: Engine, march: store.Month, place: str, monkeypatch: pytest.MonkeyPatch, step: str, at: int
) -> None:
    before = base_rows(year)
    with monkeypatch.context() as patch:
        patch.setattr(archiving, step, failing(getattr(archiving, step), at))
        with pytest.raises(KilledError):
            store.archive_month(year, march, place)
    assert base_rows(year) == before
    assert store.finish_interrupted(year) == []
    store.archive_month(year, march, place)
    store.restore_month(year, "2025-03")
    assert base_rows(year) == before


def test_a_kill_while_the_rows_go_is_finished(
    year: Engine, march: store.Month, place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(archiving, "RUNS_PER_GROUP", 1)
    before = base_rows(year)
    with monkeypatch.context() as patch:
        patch.setattr(archiving, "_drop_group", failing(archiving._drop_group, 2))
        with pytest.raises(KilledError):
            store.archive_month(year, march, place)
    assert [row["state"] for row in store.select(year, "v1_archives")] == ["dropping"]
    assert store.archived_runs(year) == {1}
    assert [archive.month for archive in store.finish_interrupted(year)] == ["2025-03"]
    assert store.archived_runs(year) == {1, 2}
    with monkeypatch.context() as patch:
        patch.setattr(restoring, "_return", failing(restoring._return, 2))
        with pytest.raises(KilledError):
            store.restore_month(year, "2025-03")
    assert [row["state"] for row in store.select(year, "v1_archives")] == ["restoring"]
    store.restore_month(year, "2025-03")
    assert base_rows(year) == before


@only_sqlite
def test_a_half_dropped_month_can_be_restored(
    year: Engine, march: store.Month, place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(archiving, "RUNS_PER_GROUP", 1)
    before = base_rows(year)
    with monkeypatch.context() as patch:
        patch.setattr(archiving, "_drop_group", failing(archiving._drop_group, 2))
        with pytest.raises(KilledError):
            store.archive_month(year, march, place)
    with writing(year) as connection:
        connection.execute(text("UPDATE runs SET changes = changes + 1 WHERE run_id = 2"))
    with pytest.raises(ServiceError, match=r"run 2 changed while .* profsvc db restore MONTH"):
        store.finish_interrupted(year)
    store.restore_month(year, "2025-03")
    with writing(year) as connection:
        connection.execute(text("UPDATE runs SET changes = changes - 1 WHERE run_id = 2"))
    assert base_rows(year) == before


@only_sqlite
def test_a_run_that_changes_meanwhile_stays(
    year: Engine, march: store.Month, place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    before, whole = base_rows(year), archiving._remove_stale

    def changing(*arguments: Any) -> None:
        with writing(year) as connection:
            connection.execute(text("UPDATE runs SET changes = changes + 1 WHERE run_id = 2"))
        whole(*arguments)

    monkeypatch.setattr(archiving, "_remove_stale", changing)
    with pytest.raises(ServiceError, match="run 2 changed while its month was archived; its rows stay"):
        store.archive_month(year, march, place)
    after = base_rows(year)
    assert {name for name, rows in after.items() if rows != before[name]} == {"runs"}
    assert store.select(year, "v1_archives") == []


@only_sqlite
def test_rows_beyond_those_written_are_not_deleted(
    year: Engine, march: store.Month, place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = archiving._register

    def adding(*arguments: Any) -> int:
        with writing(year) as connection:
            connection.execute(text("INSERT INTO twins (launch_id, first_id) VALUES (1000000009, 2000000009)"))
        return whole(*arguments)

    monkeypatch.setattr(archiving, "_register", adding)
    with pytest.raises(ServiceError, match=r"twins has 4 rows .* 3 were archived; nothing was deleted") as error:
        store.archive_month(year, march, place)
    assert isinstance(error.value, ProfsvcError)
    assert len(store.select(year, "v1_launches", run_id=1)) == 3


@only_sqlite
@pytest.mark.parametrize("damage", ["one byte", "cut", "missing", "manifest"])
def test_a_damaged_file_is_not_restored(year: Engine, march: store.Month, place: str, damage: str) -> None:
    store.archive_month(year, march, place)
    after = base_rows(year)
    file = Path(place) / "store" / "launches" / "month=2025-03" / "part-0.parquet"
    if damage == "manifest":
        file = Path(place) / "manifests" / "month=2025-03" / "part-0.json"
    content = bytearray(file.read_bytes())
    if damage == "missing":
        file.unlink()
    elif damage == "cut":
        file.write_bytes(content[:-20])
    else:
        content[70] ^= 1  # of the values: before them are statistics, which are not read back
        file.write_bytes(content)
    with pytest.raises(ServiceError, match=r"part-0\."):
        store.restore_month(year, "2025-03")
    assert base_rows(year) == after


@only_sqlite
def test_a_column_that_was_added_since_is_null(
    year: Engine, march: store.Month, place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The archive is of before the column; a column that must not be null makes it another layout."""
    before = base_rows(year)
    whole = archiving.schema_of_table
    criteria = metadata.tables["criteria"]
    with monkeypatch.context() as patched:
        old = [column for column in criteria.columns if column.name != "value_conditional"]
        tables = {**metadata.tables, "criteria": SimpleNamespace(columns=old, primary_key=criteria.primary_key)}
        patched.setattr(archiving, "metadata", SimpleNamespace(tables=tables))
        patched.setattr(
            archiving,
            "schema_of_table",
            lambda name: pa.schema([f for f in whole(name) if f.name != "value_conditional"]),
        )
        store.archive_month(year, march, place)
    with monkeypatch.context() as patched:
        patched.setattr(criteria.columns["value_conditional"], "nullable", False)
        with pytest.raises(ServiceError, match="differs in columns of criteria: value_conditional"):
            store.restore_month(year, "2025-03")
    store.restore_month(year, "2025-03")
    with writing(year) as connection:
        ids = ", ".join(str(run["run_id"]) for run in march.runs)
        query = f"SELECT count(value), count(value_conditional) FROM criteria WHERE run_id IN ({ids}) AND launch_id > 0"
        known, conditional = connection.execute(text(query)).one()
    assert known > 0
    assert conditional == 0
    after = base_rows(year)
    assert {name: len(rows) for name, rows in after.items()} == {name: len(rows) for name, rows in before.items()}
    assert {name: rows for name, rows in after.items() if name != "criteria"} == {
        name: rows for name, rows in before.items() if name != "criteria"
    }


@only_sqlite
def test_a_place_of_another_store_is_not_replaced(year: Engine, march: store.Month, place: str) -> None:
    store.archive_month(year, march, place)
    store.restore_month(year, "2025-03")
    file = Path(place) / "manifests" / "month=2025-03" / "part-0.json"
    manifest = json.loads(file.read_text())
    store.archive_month(year, march, place)  # its own is replaced
    store.restore_month(year, "2025-03")
    file.write_text(json.dumps(manifest | {"store": "another"}))
    with pytest.raises(UsageError, match="month 2025-03 of another store"):
        store.archive_month(year, march, place)


@only_sqlite
def test_a_month_in_two_parts(year: Engine, place: str, files: BlobStore) -> None:
    """A run of an archived month may come later; its rows become a second part."""
    before = base_rows(year)
    (month,) = store.closed_months(year, date(2025, 4, 1))
    first = month._replace(runs=month.runs[:1])
    store.archive_month(year, first, place)
    (rest,) = store.closed_months(year, date(2025, 4, 1))
    assert [run["run_id"] for run in rest.runs] == [2]
    store.archive_month(year, rest, place)
    assert [row["part"] for row in store.select(year, "v1_archives")] == [0, 1]
    assert len(store.restore_month(year, "2025-03")) == 2
    assert base_rows(year) == before
    store.archive_month(year, month, place)  # in one part, so the second one goes
    assert not list(Path(place).rglob("part-1.*"))
    store.restore_month(year, "2025-03")
    assert base_rows(year) == before


@only_sqlite
def test_a_month_in_a_file_system_of_fsspec(year: Engine, march: store.Month) -> None:
    before = base_rows(year)
    done = store.archive_month(year, march, "memory://lab/profsvc")
    assert done.place == "memory://lab/profsvc"
    assert done.rows == sum(map(len, before.values())) - sum(map(len, base_rows(year).values()))
    store.restore_month(year, "2025-03")
    assert base_rows(year) == before


@only_sqlite
def test_what_is_not_archived_is_not_restored(year: Engine, march: store.Month, place: str) -> None:
    with pytest.raises(NotFoundError, match="no month '2025-03' is archived; archived months: none"):
        store.restore_month(year, "2025-03")
    store.archive_month(year, march, place)
    with pytest.raises(NotFoundError, match="archived months: 2025-03"):
        store.restore_month(year, "2025-02")


@only_sqlite
def test_a_month_that_is_not_over_stays(year: Engine, files: BlobStore, monkeypatch: pytest.MonkeyPatch) -> None:
    now = datetime.now(UTC)
    monkeypatch.setitem(RUNS, "today", (f"{now:%Y-%m}-01T00:00:00Z", ("ncu_raw/plain.csv",)))
    put(year, files, "today")
    assert [month.month for month in store.closed_months(year, date(9999, 1, 1))] == ["2025-03", "2025-04", "2025-05"]


@only_sqlite
def test_unfinished_runs_wait(year: Engine) -> None:
    with writing(year) as connection:
        connection.execute(text("UPDATE runs SET changes = changes + 1 WHERE run_id = 2"))
    (month,) = store.closed_months(year, date(2025, 4, 1))
    assert ([run["run_id"] for run in month.runs], month.waiting) == ([1], [2])
