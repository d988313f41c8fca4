"""``ingest``, and ``analyze`` in bulk."""

import json
import shutil


def test_many_files_each_a_run_of_its_own(cli, fixtures, tmp_path):
    folder = tmp_path / "exports"
    (folder / "deep").mkdir(parents=True)
    for name in ("plain.csv", "swiss.csv", "bad_cut_header.csv"):
        shutil.copy(fixtures / "ncu_raw" / name, folder / "deep")
    result = cli("ingest", folder, "--tag", "branch=main", "--at", "2026-03-01", "-o", "json")
    assert result.code == 7
    rows = json.loads(result.out)["rows"]
    assert [(row["run"], row["status"], row["launches"]) for row in rows] == [
        ("deep/bad_cut_header", "refused", None),
        ("deep/plain", "stored", 2),
        ("deep/swiss", "stored", 2),
    ]
    assert "3 files in " in result.err
    assert ": 1 refused, 2 stored" in result.err
    assert "bad_cut_header.csv: refused: unrecognized format" in result.err
    assert result.err.endswith("Error: 1 of 3 files not stored\n")
    runs = json.loads(cli("runs", "-o", "json").out)["rows"]
    assert sorted((run["name"], run["tags"], run["started_at"]) for run in runs) == [
        ("deep/plain", {"branch": "main"}, "2026-03-01T00:00:00Z"),
        ("deep/swiss", {"branch": "main"}, "2026-03-01T00:00:00Z"),
    ]
    again = cli("ingest", folder / "deep" / "plain.csv", folder / "deep" / "swiss.csv", "--run-by", "folder")
    assert again.code == 0
    assert "2 files in " in again.err


def test_nothing_stored_is_an_error_of_its_kind(cli, fixtures):
    assert cli("ingest", fixtures / "ncu_raw" / "bad_cut_header.csv").code == 6
    assert cli("ingest", "nowhere").code == 3
    assert cli("ingest", fixtures / "ncu_raw" / "plain.csv", "--run-by", "night").code == 2


def test_a_cluster_is_refused_with_what_to_do(cli, fixtures):
    result = cli("ingest", fixtures / "ncu_raw" / "plain.csv", "--cluster", "tcp://dask.lab:8786")
    assert result.code == 2
    assert "tcp://dask.lab:8786 is not encrypted, and who reaches a Dask scheduler runs any code" in result.err
    assert "a SQLite store has one writer at a time" in result.err
    assert "--workers needs --cluster local" in cli("analyze", "--all", "--workers", 2).err
