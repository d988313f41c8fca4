"""A small instance of ``python -m tests.robustness.durability``, and disks that are full or cannot be written."""

import io
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import Engine

from profsvc import pipeline, store
from profsvc.errors import NoSpaceError, ServiceError
from profsvc.store.connection.transactions import reading
from tests.environment.mounts import mounted
from tests.robustness.comparison import compare
from tests.robustness.durability import FORK, book, crowd, drive, kills
from tests.robustness.numbered_files import content

RUN = store.RunInfo(name="r")


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    on_server = request.param == "postgresql"
    url = str(request.getfixturevalue("postgres_whole_url") if on_server else tmp_path / "store.sqlite")
    store.open_store(url).dispose()  # with the views of this program, which those who upload need not make
    return url


def test_killed_uploads_lose_nothing_that_was_acknowledged(url: str, tmp_path: Path) -> None:
    outcome = kills(url, tmp_path, 4)
    assert outcome.wrong == []
    assert outcome.done["kills"] > 0


def test_many_at_once_store_every_file_once(url: str, tmp_path: Path) -> None:
    outcome = crowd(url, tmp_path, 4, 4)
    assert outcome.wrong == []
    assert (outcome.done["acknowledged"], outcome.done["stored"]) == (16, 8)


def test_the_harness_sees_what_is_wrong(tmp_path: Path) -> None:
    engine = store.open_store(str(tmp_path / "store.sqlite"))
    files = store.blob_store_of(engine)
    entries = []
    for number in (1, 4):
        verdict = pipeline.ingest(engine, io.BytesIO(content(number)), f"{number}.csv", RUN, files=files)
        entries.append((number, verdict.sha256, int(verdict.upload_id or 0)))
    assert compare(engine, tmp_path, entries) == []
    lost = (7, "0" * 64, 3)
    assert compare(engine, tmp_path, [*entries, lost]) == ["file 7 was acknowledged and is gone"]
    with reading(engine) as connection:
        connection.exec_driver_sql("UPDATE sample_blocks SET least = least + 1 WHERE sensor_id = 1000000001")
        connection.exec_driver_sql("INSERT INTO metrics (launch_ref, item, metric_id, unit_id, raw_text, line)"
                                   " VALUES (99000000001, 0, 1, 1, '', 1)")  # fmt: skip
        connection.exec_driver_sql("INSERT INTO runs (project, name, created_at) VALUES ('p', 'empty', '')")
    (files.folder / "stray").touch()
    files.blob(entries[0][1]).write_bytes(b"broken")
    wrong = "\n".join(compare(engine, tmp_path, entries))
    for words in ("file 1: ", "1 rows of metrics belong to no upload", "run 'empty' has no upload",
                  "stray is left over", "kept bytes of file 1: damaged"):  # fmt: skip
        assert words in wrong


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of 6 MiB."""
    place = tmp_path / "disk"
    place.mkdir()
    with mounted(place, ["mount", "-t", "tmpfs", "-o", "size=6m", "tmpfs"]):
        yield place


def put(engine: Engine, number: int, files: store.BlobStore) -> pipeline.ImportResult:
    return pipeline.ingest(engine, io.BytesIO(content(number)), f"{number}.csv", RUN, files=files)


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root mounts a disk")
@pytest.mark.parametrize("free_kib", [0, 8, 90])
def test_a_full_disk_is_said_and_loses_nothing(small_disk: Path, free_kib: int) -> None:
    engine = store.open_store(str(small_disk / "store.sqlite"))
    files = store.BlobStore(small_disk / "store.sqlite.files", free_bytes=1)
    entries = [(number, v.sha256, int(v.upload_id or 0)) for number in (1, 0) for v in [put(engine, number, files)]]
    ballast = small_disk / "ballast"
    free = os.statvfs(small_disk).f_bavail * os.statvfs(small_disk).f_frsize
    ballast.write_bytes(bytes(max(0, free - free_kib * 1024)))
    failures = []
    for number in (2, 3):
        try:
            put(engine, number, files)
        except ServiceError as error:
            failures.append(str(error))
    assert failures
    assert all("free" in words and "nothing was" in words for words in failures)
    stored = {row["file_name"] for row in store.select(engine, "v1_uploads")}
    assert {"1.csv", "0.csv"} <= stored
    assert store.unneeded_files(engine, files) == ([], [])
    ballast.unlink()
    for number in (2, 3):
        verdict = put(engine, number, files)
        entries.append((number, verdict.sha256, int(verdict.upload_id or 0)))
    engine.dispose()
    assert compare(engine, small_disk, entries) == []


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root mounts a disk")
def test_a_vacuum_on_a_full_disk_says_what_is_removed(small_disk: Path) -> None:
    engine = store.open_store(str(small_disk / "store.sqlite"))
    files = store.BlobStore(small_disk / "store.sqlite.files", free_bytes=1)
    first, second = put(engine, 1, files), put(engine, 4, files)
    assert first.upload_id
    store.delete_upload(engine, first.upload_id)
    free = os.statvfs(small_disk).f_bavail * os.statvfs(small_disk).f_frsize
    (small_disk / "ballast").write_bytes(bytes(free - 60 * 1024))
    with pytest.raises(
        NoSpaceError, match=r"the deleted uploads are removed, [\d,]+ bytes of kept files with them, but"
    ):
        store.vacuum(engine, files)
    assert store.deleted_uploads(engine) == []
    (small_disk / "ballast").unlink()
    of_files, of_database = store.vacuum(engine, files)
    assert (of_files, of_database > 0) == (0, True)
    engine.dispose()
    assert compare(engine, small_disk, [(4, second.sha256, int(second.upload_id or 0))]) == []


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root mounts a disk")
def test_a_disk_that_cannot_be_written_is_said(small_disk: Path, tmp_path: Path) -> None:
    engine = store.open_store(str(small_disk / "store.sqlite"))
    files = store.BlobStore(small_disk / "store.sqlite.files", free_bytes=1)
    first = put(engine, 1, files)
    subprocess.run(["mount", "-o", "remount,ro", small_disk], check=True)
    assert len(store.select(engine, "v1_uploads")) == 1
    for keep in (True, False):
        with pytest.raises(ServiceError, match="Read-only file system"):
            put(engine, 4, store.BlobStore(files.folder, 1, keep))
    checks = {check.check: check for check in store.run_checks(engine, lambda: files)}
    assert checks["rights"].state == "fail"
    done = store.backup(engine, tmp_path / "copy.sqlite", files)  # of what is on it, a copy can be made
    assert (done.rows["uploads"], done.files, done.missing) == (1, 1, 0)
    assert len(store.select(store.open_store(str(tmp_path / "copy.sqlite")), "v1_uploads")) == 1
    subprocess.run(["mount", "-o", "remount,rw", small_disk], check=True)
    second = put(engine, 4, files)
    entries = [(n, v.sha256, int(v.upload_id or 0)) for n, v in ((1, first), (4, second))]
    assert compare(engine, small_disk, entries) == []


def test_an_interrupt_leaves_the_store_whole(url: str, tmp_path: Path) -> None:
    ledger = tmp_path / "ledger"
    for wait in (0.1, 0.35):
        first = len(book(ledger))
        numbers = list(range(first, first + 99))
        process = FORK.Process(target=drive, args=(url, str(tmp_path / "kept"), str(ledger), numbers))
        process.start()
        time.sleep(wait)
        for _ in range(4):  # Python ignores an interrupt within the callback of a weak reference
            if process.exitcode is None:
                os.kill(process.pid, signal.SIGINT)
                process.join(5)
        assert process.exitcode is not None
    errors = [path.read_text() for path in tmp_path.glob("ledger.*.error")]
    assert errors
    assert all("KeyboardInterrupt" in words for words in errors)
    engine = store.open_store(url)
    try:
        assert compare(engine, tmp_path, book(ledger)) == []
        left = store.unneeded_files(engine, store.blob_store_of(engine, str(tmp_path / "kept")))
        assert left.leftovers == []
    finally:
        engine.dispose()
