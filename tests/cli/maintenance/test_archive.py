"""``db archive`` and ``db restore``."""

import json
from pathlib import Path

from tests.cli.conftest import Call

FIXTURES = Path(__file__).parents[3] / "fixtures"
RAW = FIXTURES / "ncu_raw" / "h200_three_launches.csv.gz"


def test_a_month_goes_and_comes_back(cli: Call, tmp_path: Path) -> None:
    place = tmp_path / "old"
    assert cli("upload", RAW, "--run", "march", "--at", "2025-03-02").code == 0
    assert cli("upload", RAW, "--run", "april", "--at", "2025-04-02").code == 0
    shown = cli("show", "march", "--kernel", "0").out
    dry = cli("db", "archive", "--before", "2025-04-01", "--to", place, "--dry-run")
    assert (dry.code, dry.err) == (0, f"would be moved to {place}:\n  2025-03: 1 run, 3 launches, 0 samples\n")
    assert cli("db", "archive", "--before", "2025-04-01", "--to", place).code == 2  # nobody can be asked
    assert not place.exists()
    done = cli("db", "archive", "--before", "2025-04-30", "--to", place, "--yes")
    assert done.code == 0, done.err
    assert f"rows of 1 run moved to {place}" in done.err
    assert f"duckdb -init {place}/views.sql" in done.err
    (row,) = json.loads(cli("sql", "select name, archived from v1_runs where run_id = 1", "-o", "json").out)["rows"]
    assert "to restore its rows, run: profsvc db restore 2025-03" in row["archived"]
    assert "Its launches are archived" in cli("show", "march").out
    said = "".join(row["archived"].split())
    assert said in "".join(cli("show", "march").out.split())
    assert said in "".join(cli("show", "march", "--all").out.split())
    assert cli("show", "april").out.count("archived") == 0
    counted = cli("sql", "select count(*) as n from v1_launches", "-o", "csv")
    note = "note: rows of 2025-03 are archived and not counted here; to restore a month: profsvc db restore 2025-03\n"
    assert (counted.out, counted.err) == ("n\n3\n", note)
    assert cli("sql", "select count(*) as n from v1_runs", "-o", "csv").err == ""
    refused = cli("show", "march", "--kernel", "0")
    assert (refused.code, refused.err.count("profsvc db restore 2025-03")) == (2, 1)
    compared = cli("compare", "march", "april")
    assert (compared.code, said in "".join(compared.out.split())) == (0, True)
    assert "run 1: skipped, its rows are archived" in cli("analyze", "--all").err
    again = cli("upload", RAW, "--run", "march")
    assert (again.code, "already stored as upload 1" in again.err) == (0, True)
    assert cli("db", "archive", "--before", "2025-04-30", "--yes").err.startswith("nothing to archive")
    back = cli("db", "restore", "2025-03")
    assert (back.code, "of 1 file restored" in back.err) == (0, True)
    assert cli("show", "march", "--kernel", "0").out == shown
    assert cli("sql", "select count(*) as n from v1_launches").err == ""


def test_what_is_asked_wrongly(cli: Call, postgres_url: str) -> None:
    assert "must be a date such as 2026-04-01" in cli("db", "archive", "--before", "april").err
    assert cli("db", "restore", "2025-03").code == 3
    assert cli("--store", postgres_url, "db", "archive", "--before", "2025-04-01").err.startswith("nothing to archive")
