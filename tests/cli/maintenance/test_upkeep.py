"""What removes is listed first and asked for; what was removed comes back; ``doctor`` says what is wrong."""

import json
import re

import pytest

from profsvc.cli.console import common


@pytest.fixture
def stored(cli, fixtures, monkeypatch):
    monkeypatch.setenv("PROFSVC_FREE_BYTES", "1")
    cli("upload", fixtures / "ncu_raw" / "plain.csv", fixtures / "hioki" / "pw3335.csv", "--run", "r")
    return cli


def test_nothing_goes_without_being_asked_for(stored, rows_sha, monkeypatch):
    before = rows_sha()
    for command in (("delete", "r", "--all"), ("delete", "r", "--upload", "1")):
        result = stored(*command)
        assert result.code == 2
        assert "will be deleted:\n  upload 1 (plain.csv): 2 launches, 603 bytes\n" in result.err
        assert result.err.endswith("Error: nothing was changed; add --yes to skip the prompt\n")
    monkeypatch.setattr(common, "is_interactive", lambda: True)
    monkeypatch.setattr(common, "confirm", lambda *_, **__: False)
    assert stored("delete", "r", "--all").code == 0
    assert rows_sha() == before
    monkeypatch.setattr(common, "confirm", lambda *_, **__: True)
    assert "run 'r' (id 1) deleted with 2 uploads" in stored("delete", "r", "--all").err
    assert rows_sha() != before


def test_a_deletion_is_undone_until_it_is_for_good(stored, rows_sha):
    before = stored("show", "r").out
    assert (
        "to restore it before the next profsvc db vacuum: profsvc undelete 1 2\n"
        in stored("delete", "r", "--all", "--yes").err
    )
    listed = json.loads(stored("undelete", "-o", "json").out)["rows"]
    assert [(row["upload_id"], row["run"], row["file_name"]) for row in listed] == [
        (1, "r", "plain.csv"),
        (2, "r", "pw3335.csv"),
    ]
    result = stored("undelete", "1", "2")
    assert (result.code, result.err.splitlines()[0]) == (0, "upload 1 (plain.csv) is restored in run 'r' (id 1)")
    assert stored("show", "r").out == before
    again = stored("undelete", "1").err
    assert again == "upload 1 (plain.csv) is not deleted, nothing changed: it is in run 'r' (id 1)\n"
    stored("delete", "r", "--upload", "1", "--yes")
    blob_store = rows_sha()
    result = stored("db", "vacuum")
    assert result.code == 2
    assert "permanently" in result.err
    assert rows_sha() == blob_store
    assert re.search(
        r"[1-9]\d* bytes of kept files and \d+ bytes of the database freed", stored("db", "vacuum", "--yes").err
    )
    result = stored("undelete", "1")
    assert (result.code, "no deleted upload has the number 1" in result.err) == (3, True)


def test_reparse_says_what_changed(stored, store_file):
    assert stored("reparse").code == 2
    said = ["upload 1 (plain.csv) of run 'r' (id 1): read again, the same counts",
            "upload 2 (pw3335.csv) of run 'r' (id 1): read again, the same counts"]  # fmt: skip
    assert stored("reparse", "r", "--upload", "2").err.splitlines() == said
    assert stored("reparse", "--all").err.splitlines() == said
    next(store_file.with_name("store.sqlite.files").rglob("*.zst")).unlink()
    result = stored("reparse", "--all")
    assert result.code == 5
    assert result.err.count("unchanged: ") == 1
    assert result.err.endswith("Error: 1 of 2 uploads could not be read again\n")


def test_without_keeping_there_is_no_way_back(cli, fixtures, store_file, monkeypatch):
    monkeypatch.setenv("PROFSVC_KEEP", "0")
    assert cli("upload", fixtures / "ncu_raw" / "plain.csv", "--run", "r").code == 0
    assert not store_file.with_name("store.sqlite.files").exists()
    assert "keeping" in cli("doctor").out
    assert (
        "with PROFSVC_KEEP=0, or by a version that did not keep bytes); nothing was changed" in cli("reparse", "r").err
    )
    monkeypatch.setenv("PROFSVC_KEEP", "no")
    assert cli("upload", fixtures / "ncu_raw" / "plain.csv").err == "Error: PROFSVC_KEEP is 'no' but must be 1 or 0\n"


def test_a_full_disk_is_said_before_anything(cli, fixtures, monkeypatch):
    monkeypatch.setenv("PROFSVC_FREE_BYTES", str(10**18))
    from profsvc.store.ingest import blob_store

    monkeypatch.setattr(blob_store, "MAX_RESERVED_DISK_PART", 1)
    result = cli("upload", fixtures / "ncu_raw" / "plain.csv")
    assert result.code == 5
    assert "nothing was stored; free some space, or lower PROFSVC_FREE_BYTES" in result.err
    assert cli("doctor").code == 5


def test_old_runs_are_listed_and_deleted(stored, rows_sha):
    before = rows_sha()
    assert stored("db", "prune", "--older-than", "1h").err == "nothing to remove\n"
    for words, code in (("soon", 2), ("0d", 0)):
        result = stored("db", "prune", "--older-than", words, "--dry-run")
        assert result.code == code
    assert stored("db", "prune", "--project", "p").code == 2
    assert rows_sha() == before


def test_what_was_left_behind_is_removed(stored, store_file):
    left = store_file.with_name("store.sqlite.files") / "spool" / "1-x.zst"
    left.write_bytes(b"12345")
    assert f"would be removed:\n  left behind: {left}\n" in stored("db", "prune", "--dry-run").err
    assert left.exists()
    assert stored("db", "prune").code == 2
    assert "0 runs deleted, 5 bytes of leftovers removed" in stored("db", "prune", "--yes").err
    assert not left.exists()


def test_a_backup_says_what_it_holds(stored, tmp_path):
    target = tmp_path / "copy.sqlite"
    result = stored("db", "backup", target, "--with-files")
    assert (result.code, result.err) == (
        0,
        f"{target}: whole; 1 run, 2 uploads, 2 launches, 8 samples; 2 files of kept bytes\n",
    )
    assert stored("db", "backup", target).code == 2
    # Commands to copy repeat the store that was given, and stand on lines of their own if they are long.
    shown, expected = (
        " ".join(stored(*words, "show", "r", "--all").out.split()) for words in (["--store", target], [])
    )
    assert shown.replace(f" --store {target}", "") == expected
    assert stored("--store", target, "doctor", "--deep").code == 0


def test_doctor_says_what_reads_reports(stored, monkeypatch):
    monkeypatch.setattr("profsvc.formats.ncu.report.package_folder", lambda: None)
    monkeypatch.setattr("shutil.which", lambda name: f"/opt/{name}")
    found = {row["check"]: row for row in json.loads(stored("doctor", "-o", "json").out)["rows"]}
    assert found["ncu-report"]["found"].startswith("not installed; this package reads .ncu-rep")
    assert found["ncu-report"]["fix"].startswith("pip install 'profsvc[ncu]'")
    assert found["nsys"]["found"].startswith("/opt/nsys; this program reads .nsys-rep")
    assert {found[name]["state"] for name in ("ncu-report", "nsys")} == {"ok"}


def test_doctor_prints_a_row_a_check(stored, store_file):
    result = stored("doctor", "-o", "json")
    rows = json.loads(result.out)["rows"]
    assert result.code == 0
    assert [(row["check"], row["fix"]) for row in rows if row["state"] != "ok"] == [
        ("backup", "profsvc db backup FILE --with-files")
    ]
    next(store_file.with_name("store.sqlite.files").rglob("*.zst")).write_bytes(b"broken")
    result = stored("doctor", "--deep")
    assert result.code == 5
    assert result.err.endswith("checks failed: kept bytes, read whole\n")
