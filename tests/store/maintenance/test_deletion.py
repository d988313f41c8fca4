"""Deletion that can be undone."""

import io
import json
from datetime import timedelta
from pathlib import Path

import pytest
from sqlalchemy import Engine, text

from profsvc import pipeline, store
from profsvc.errors import NotFoundError, ServiceError, UsageError
from profsvc.store.connection.transactions import reading, writing
from profsvc.store.ingest import upload
from profsvc.store.ingest.blob_store import BlobStore
from tests.store.maintenance.kept import DETAILS, FIXTURES, RAW, put, rows


def test_a_deleted_run_is_restored_as_it_was(full: Engine, files: BlobStore) -> None:
    before = rows(full)
    store.delete_run(full, 1)
    assert [row["name"] for row in store.select(full, "v1_runs")] == ["q"]
    deleted = store.deleted_uploads(full)
    assert [(row["upload_id"], row["run"], row["launches"], row["samples"]) for row in deleted] == [
        (1, "r", 0, 8),
        (2, "r", 2, 0),
    ]
    for number in (2, 1):
        pipeline.undelete(full, files, number)
    assert rows(full) == before
    assert store.deleted_uploads(full) == []


def test_a_deleted_upload_is_restored_into_its_run(full: Engine, files: BlobStore) -> None:
    before = rows(full)
    store.delete_upload(full, 1)
    pipeline.analyze(full, 1)
    assert store.select(full, "v1_samples") == []
    pipeline.undelete(full, files, 1)
    assert rows(full) == before


def test_a_run_without_files_has_no_facts_of_them(full: Engine, files: BlobStore) -> None:
    before = rows(full)
    for number, device in ((2, "H100"), (1, None)):  # the user gave it with the first file too
        store.delete_upload(full, number)
        run = store.select(full, "v1_runs", run_id=1)[0]
        assert (run["device"], run["commit_id"], run["tags"]) == (device, "c0ffee", before["v1_runs"][0]["tags"])
    assert (run["host"], run["launches"]) == (None, 0)
    for number in (2, 1):
        pipeline.undelete(full, files, number)
    assert rows(full) == before


def test_pages_of_one_report_are_found_again(engine: Engine, files: BlobStore, tmp_path: Path) -> None:
    again = tmp_path / "again.csv"
    again.write_bytes(RAW.read_bytes() + b"\n")
    for path in (RAW, again):
        put(engine, path, files)
    launches = store.select(engine, "v1_runs")[0]["launches"]
    before = rows(engine)
    assert [row["same_as"] for row in before["v1_uploads"]] == [None, 1]
    store.delete_upload(engine, 1)
    assert [row["same_as"] for row in store.select(engine, "v1_uploads")] == [None]
    assert store.select(engine, "v1_runs")[0]["launches"] == launches
    pipeline.undelete(engine, files, 1)
    assert rows(engine) == before


def test_a_run_whose_name_is_taken_is_restored_under_another(full: Engine, files: BlobStore) -> None:
    store.delete_run(full, 2)
    put(full, FIXTURES / "ncu_raw" / "french.csv", files, store.RunInfo(name="q"))
    assert pipeline.undelete(full, files, 3).run == "q-2"
    assert {row["run_id"]: row["name"] for row in store.select(full, "v1_runs")} == {1: "r", 2: "q-2", 3: "q"}


def test_what_was_uploaded_again_is_not_restored_twice(full: Engine, files: BlobStore) -> None:
    store.delete_run(full, 2)
    assert put(full, DETAILS, files, store.RunInfo(name="q")) == 4
    before = rows(full)
    with pytest.raises(UsageError, match="its bytes were uploaded again as upload 4; delete that one first"):
        pipeline.undelete(full, files, 3)
    with pytest.raises(NotFoundError, match="no deleted upload has the number 9; those that can be restored: 3"):
        pipeline.undelete(full, files, 9)
    assert rows(full) == before


def test_a_restore_that_fails_changes_nothing(full: Engine, files: BlobStore) -> None:
    store.delete_run(full, 2)
    files.blob(store.deleted_uploads(full)[0]["sha256"]).write_bytes(b"broken")
    before = rows(full)
    with pytest.raises(ServiceError, match=r"its kept bytes in .* are damaged"):
        pipeline.undelete(full, files, 3)
    assert rows(full) == before
    assert len(store.deleted_uploads(full)) == 1


def test_history_loaded_today_is_not_old(full: Engine) -> None:
    with writing(full) as connection:
        connection.execute(text("UPDATE uploads SET received_at = '2020-01-01T00:00:00Z'"))
        added = connection.execute(text("SELECT created_at FROM runs ORDER BY run_id")).scalars().all()
    assert store.aged_runs(full, timedelta(days=30)) == []
    assert [row["last_added"] for row in store.aged_runs(full, timedelta(hours=-1))] == added


def test_old_runs_are_chosen_by_their_last_file(full: Engine) -> None:
    with writing(full) as connection:
        connection.execute(text("UPDATE runs SET created_at = '2019-01-01T00:00:00Z'"))
        connection.execute(text("UPDATE uploads SET received_at = '2020-01-01T00:00:00Z' WHERE upload_id <> 2"))

    def chosen(**options) -> list[str]:
        return [row["run"] for row in store.aged_runs(full, timedelta(days=30), **options)]

    assert chosen() == ["q"]
    with writing(full) as connection:
        connection.execute(text("UPDATE uploads SET received_at = '2020-01-01T00:00:00Z'"))
    assert chosen() == ["r", "q"]
    assert chosen(project="p") == ["r"]
    assert chosen(keep_tagged={"keep": None}) == chosen(keep_tagged={"keep": "yes", "x": None}) == ["q"]
    assert chosen(keep_tagged={"keep": "no"}) == ["r", "q"]
    assert store.aged_runs(full, timedelta(days=36500)) == []
    row = store.aged_runs(full, timedelta(days=30))[0]
    assert store.content_summary(row) == f"2 uploads, 2 launches, 8 samples, {row['size_bytes']} bytes"


def test_a_run_that_changed_since_it_was_listed_is_not_pruned_and_stops_no_other(
    full: Engine, files: BlobStore
) -> None:
    with writing(full) as connection:
        connection.execute(text("UPDATE uploads SET received_at = '2020-01-01T00:00:00Z'"))
        connection.execute(text("UPDATE runs SET created_at = '2019-01-01T00:00:00Z'"))
    listed = store.aged_runs(full, timedelta(days=30))
    assert [row["run"] for row in listed] == ["r", "q"]
    content = io.BytesIO((FIXTURES / "ncu_raw" / "swiss.csv").read_bytes())
    pipeline.ingest(full, content, "new.csv", store.RunInfo(run_id=listed[0]["run_id"]), files=files)
    assert [row["run"] for row in store.delete_aged_runs(full, listed)] == ["q"]
    assert [row["name"] for row in store.select(full, "v1_runs")] == ["r"]
    gone, *_ = listed[::-1]
    with writing(full) as connection:
        connection.execute(text("UPDATE uploads SET received_at = '2020-01-01T00:00:00Z'"))
    again = [gone, *store.aged_runs(full, timedelta(days=30))]
    assert [row["run"] for row in store.delete_aged_runs(full, again)] == ["r"]
    assert store.select(full, "v1_runs") == []


def test_a_long_file_is_restored(full: Engine, files: BlobStore, monkeypatch) -> None:
    before = rows(full)
    store.delete_run(full, 1)
    monkeypatch.setattr(upload, "SMALL_FILE_ROWS", 1)
    for number in (1, 2):
        pipeline.undelete(full, files, number)
    assert rows(full) == before
    pipeline.reparse(full, files, 1)
    assert rows(full) == before


def test_the_record_of_a_deletion_has_all_facts_of_the_run(full: Engine) -> None:
    store.delete_run(full, 1)
    facts = json.loads(store.deleted_uploads(full)[0]["run_facts"])
    assert (facts["commit_id"], facts["tags"]) == ("c0ffee", {"keep": "yes", "a": "b"})
    with reading(full) as connection:
        assert connection.execute(text("SELECT count(*) FROM run_tags")).scalar_one() == 0
