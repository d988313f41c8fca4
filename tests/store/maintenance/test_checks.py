"""What doctor finds."""

import os
from pathlib import Path

from sqlalchemy import Engine, text

from profsvc import store
from profsvc.store.connection.transactions import reading, writing
from profsvc.store.ingest.blob_store import BlobStore
from profsvc.store.ingest.staging import staging
from profsvc.store.maintenance import checks as health
from tests.store.conftest import only_on
from tests.store.maintenance.kept import found


def test_doctor_finds_nothing_in_a_good_store(full: Engine, files: BlobStore) -> None:
    checks = found(full, files, deep=True)
    assert {name for name, check in checks.items() if check.state != "ok"} == {"backup"}
    assert {check.fix for check in checks.values() if check.state == "ok"} == {""}
    assert checks["kept bytes, read whole"].found == "3 files as stored"
    assert checks["schema"].found == store.latest_revision()


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
        "1 leftover in the spool, 1 kept file without an upload",
        "profsvc db prune",
    )
    assert checks["analysis"][1:] == (
        "warn",
        "runs whose analysis is not finished: 1 (launches and power), 2 (launches)",
        "profsvc analyze id:1 id:2",
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
        (f"not {version}", ("warn", words, "profsvc analyze id:1 id:2")),
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


@only_on("sqlite", "a server is not a file")
def test_a_large_file_is_not_read_for_a_page(full: Engine, files: BlobStore, monkeypatch) -> None:
    monkeypatch.setattr(health, "MAX_BRIEF_BYTES", 0)
    (brief,) = [one for one in store.run_checks(full, lambda: files, brief=True) if one.check == "database"]
    assert "not read" in brief.found
    (whole,) = [one for one in store.run_checks(full, lambda: files) if one.check == "database"]
    assert whole.found == "quick_check: ok"


def test_many_uploads_are_not_looked_at_for_a_page(full: Engine, files: BlobStore, monkeypatch) -> None:
    one_by_one = {"unfinished uploads", "analysis", "kept bytes"}
    few = {one.check: one for one in store.run_checks(full, lambda: files, brief=True)}
    assert one_by_one <= set(few)
    monkeypatch.setattr(health, "MAX_BRIEF_UPLOADS", 0)
    many = {one.check: one for one in store.run_checks(full, lambda: files, brief=True)}
    assert "profsvc doctor" in many["uploads"].found
    assert set(few) - set(many) == one_by_one
    assert one_by_one <= {one.check for one in store.run_checks(full, lambda: files)}
