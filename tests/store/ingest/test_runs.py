"""The same bytes in several runs and projects: kept once, each run's own, gone with their last user."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import Engine

from profsvc import pipeline, store
from profsvc.errors import UsageError
from profsvc.store.ingest.blob_store import BlobStore

FIXTURES = Path(__file__).parents[3] / "fixtures"
RAW, SMI = FIXTURES / "ncu_raw" / "plain.csv", FIXTURES / "nvidia_smi" / "units.csv"
ONE, OTHER, ELSEWHERE = store.RunInfo(name="a"), store.RunInfo(name="b"), store.RunInfo("p", "a")


@pytest.fixture
def files(tmp_path: Path) -> BlobStore:
    return BlobStore(tmp_path / "kept", free_bytes=1)


@pytest.fixture
def put(engine: Engine, files: BlobStore) -> Iterator:
    def given(run: store.RunInfo, path: Path = RAW, **how: object) -> pipeline.ImportResult:
        with path.open("rb") as stream:
            return pipeline.ingest(engine, stream, path.name, run, pipeline.ReadOptions(**how), files=files)  # type: ignore[arg-type]

    return given


def blobs(files: BlobStore) -> int:
    return len(list(files.folder.glob("blobs/??/*.zst")))


def test_a_named_run_is_made_although_the_bytes_are_in_another(engine: Engine, files: BlobStore, put) -> None:
    made = [put(run) for run in (ONE, OTHER, ELSEWHERE)]
    assert [(one.known, one.upload_id, one.run_id, one.run) for one in made] == [
        (False, 1, 1, "a"),
        (False, 2, 2, "b"),
        (False, 3, 3, "a"),
    ]
    assert blobs(files) == 1
    runs = {row["run_id"]: row for row in store.select(engine, "v1_runs")}
    assert {row["launches"] for row in runs.values()} == {2}
    assert {row["gpu_time_ns"] for row in runs.values()} == {runs[1]["gpu_time_ns"]}
    assert (
        len(store.select(engine, "v1_potential", run_id=3)) == len(store.select(engine, "v1_potential", run_id=1)) > 0
    )


@pytest.mark.usefixtures("unanalysed")
def test_into_the_same_run_the_same_bytes_come_once(put) -> None:
    first = put(ONE)
    for run in (ONE, store.RunInfo(run_id=first.run_id), store.RunInfo()):
        again = put(run)
        assert (again.known, again.upload_id, again.run_id) == (True, 1, 1)


@pytest.mark.usefixtures("unanalysed")
def test_who_names_no_run_gets_what_the_own_project_has_and_nothing_of_others(put) -> None:
    put(ONE)
    own = put(store.RunInfo("p"))
    assert (own.known, own.upload_id, own.run) == (False, 2, "plain")
    assert put(store.RunInfo("p")).upload_id == 2


@pytest.mark.usefixtures("unanalysed")
def test_bytes_that_may_be_anywhere_stay_where_they_are(put) -> None:
    put(ONE)
    found = put(store.RunInfo(name="waited", anywhere=True))
    assert (found.known, found.run) == (True, "a")
    other = put(store.RunInfo("p", "waited", anywhere=True))
    assert (other.known, other.run) == (False, "waited")


@pytest.mark.usefixtures("unanalysed")
def test_options_given_with_known_bytes_are_not_swallowed(engine: Engine, put) -> None:
    put(ONE, SMI)
    given = store.RunInfo(name="a", tags={"branch": "main"}, commit_id="c0ffee", device="H100")
    again = put(given, SMI)
    assert (again.known, again.run_changed) == (True, ["commit_id", "tag branch"])
    assert "it was read with no --device and stays as it was read" in again.message
    (run,) = store.select(engine, "v1_runs")
    assert (run["commit_id"], run["tags"]) == ("c0ffee", '{"branch":"main"}')
    assert put(given, SMI).run_changed == []
    assert "--timezone" in put(ONE, SMI, zone="Europe/Berlin").message


@pytest.mark.usefixtures("unanalysed")
def test_kept_bytes_go_with_the_last_upload_of_them(engine: Engine, files: BlobStore, put) -> None:
    put(ONE)
    put(OTHER)
    store.delete_run(engine, 1)
    store.vacuum(engine, files)
    assert blobs(files) == 1
    pipeline.reparse(engine, files, 2)
    store.delete_run(engine, 2)
    store.vacuum(engine, files)
    assert blobs(files) == 0


@pytest.mark.usefixtures("unanalysed")
def test_a_deleted_upload_comes_back_beside_another_of_its_bytes(engine: Engine, files: BlobStore, put) -> None:
    put(ONE)
    put(OTHER)
    store.delete_upload(engine, 1)
    assert pipeline.undelete(engine, files, 1).run == "a"
    assert [row["upload_id"] for row in store.select(engine, "v1_uploads")] == [1, 2]


@pytest.mark.usefixtures("unanalysed")
def test_a_missing_file_is_missing_for_each_upload_of_it(engine: Engine, files: BlobStore, put) -> None:
    sha256 = put(ONE).sha256
    put(OTHER)
    checks = {check.check: check for check in store.run_checks(engine, lambda: files)}
    assert checks["kept bytes"].state == "ok"
    files.blob(sha256).write_bytes(b"broken")
    checks = {check.check: check for check in store.run_checks(engine, lambda: files, deep=True)}
    assert checks["kept bytes, read whole"].found == "damaged: uploads 1, 2"
    files.blob(sha256).unlink()
    checks = {check.check: check for check in store.run_checks(engine, lambda: files)}
    assert checks["kept bytes"].found == "0 files; missing for uploads 1, 2"


@pytest.mark.usefixtures("unanalysed")
def test_a_month_of_history_is_imported_as_a_month(engine: Engine, put) -> None:
    for day in (3, 1, 2):
        at = store.parse_measured_at(f"2026-10-0{day}T03:00:00Z")
        put(store.RunInfo(name=f"n{day}", at=at))
    uploads = store.select(engine, "v1_uploads")
    assert {row["received_at"] for row in uploads} == {f"2026-10-0{day}T03:00:00Z" for day in (1, 2, 3)}
    for last in (1, 2, 3):  # what a report of each night looks at
        seen = store.nightly_runs(engine, "", f"2026-10-0{last}T22:00:00Z", 0, 99)
        assert seen["run"].tolist() == [f"n{day}" for day in range(1, last + 1)]
    moved = put(store.RunInfo(name="n2", at="2026-10-05T00:00:00Z"))
    assert (moved.known, moved.run_changed) == (True, ["started_at"])


@pytest.mark.parametrize(
    "words", ["yesterday", "2026-13-01", "2999-01-01", "1969-01-01", "0001-01-01T00:00+23:59", "1e9"]
)
def test_a_time_that_cannot_be_meant_is_refused(words: str) -> None:
    with pytest.raises(UsageError, match=r"is not a time|must lie between 1970 and now"):
        store.parse_measured_at(words)
