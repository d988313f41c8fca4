"""``profsvc db snapshot``: the views as plain tables, equal to what the store says, from both engines."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from sqlalchemy import Engine

from profsvc import pipeline, store
from profsvc.store.maintenance.sqlite_snapshot import write_snapshot
from tests.cli.conftest import Call
from tests.conftest import DEMO


def rows(file: Path, query: str) -> list[tuple[object, ...]]:
    with closing(sqlite3.connect(file)) as connection:
        return connection.execute(query).fetchall()


def test_every_view_is_a_table_with_the_same_rows(demo: Engine, tmp_path: Path) -> None:
    file = tmp_path / "snapshot.sqlite"
    counts = write_snapshot(demo, file)
    assert set(counts) == set(store.VIEWS)
    assert (counts["v1_runs"], counts["v1_launches"]) == (1, 34)
    for view in ("v1_runs", "v1_launches", "v1_criteria", "v1_causes", "v1_counters"):
        expected = [tuple(row.values()) for row in store.select(demo, view)]
        assert sorted(map(repr, rows(file, f"SELECT * FROM {view}"))) == sorted(map(repr, expected))
    tables = {name for (name,) in rows(file, "SELECT name FROM sqlite_master WHERE type = 'table'")}
    assert tables == set(store.VIEWS)
    assert rows(file, "SELECT meaning FROM v1_columns WHERE view_name = 'v1_runs' AND column_name = 'run_id'") == [
        ("run number",)
    ]


def test_the_command(on_demo: Call, tmp_path: Path) -> None:
    file = tmp_path / "some.sqlite"
    done = on_demo("db", "snapshot", file, "--view", "runs", "--view", "v1_launches", "--project", "demo")
    assert (done.code, done.out) == (0, "")
    assert done.err.endswith(f" of 3 views; open it with: datasette {file}\n")
    assert rows(file, "SELECT count(*) FROM v1_launches") == [(34,)]
    assert file.stat().st_mode & 0o077 == 0
    again = on_demo("db", "snapshot", file)
    assert (again.code, "exists; a snapshot replaces nothing" in again.err) == (2, True)


@pytest.mark.parametrize(
    ("options", "code", "words"),
    [
        (["--view", "launch"], 3, "no view named 'launch'; did you mean 'v1_launches'"),
        (["--view", "devices", "--project", "demo"], 2, "v1_devices has no runs"),
    ],
)
def test_what_cannot_be_written(on_demo: Call, tmp_path: Path, options: list[str], code: int, words: str) -> None:
    done = on_demo("db", "snapshot", tmp_path / "none.sqlite", *options)
    assert (done.code, words in done.err) == (code, True), done.err
    assert list(tmp_path.glob("none*")) == []


def test_a_folder_that_is_not_there(on_demo: Call, tmp_path: Path) -> None:
    done = on_demo("db", "snapshot", tmp_path / "no" / "file.sqlite")
    assert (done.code, "cannot be written" in done.err) == (5, True), done.err


def test_another_project_has_no_rows(demo: Engine, tmp_path: Path) -> None:
    counts = write_snapshot(demo, tmp_path / "other.sqlite", ["runs", "launches"], "other")
    assert (counts.pop("v1_columns") > 100, counts) == (True, {"v1_runs": 0, "v1_launches": 0})


def test_from_postgres_it_is_the_same_file(postgres_whole_url: str, tmp_path: Path) -> None:
    engines = (
        store.open_store(postgres_whole_url, pooled=True),
        store.open_store(str(tmp_path / "store.sqlite"), pooled=True),
    )
    views = ["launches", "criteria", "potential", "counters", "uploads"]
    found = []
    for number, engine in enumerate(engines):
        with DEMO.open("rb") as stream:
            pipeline.ingest(engine, stream, DEMO.name, store.RunInfo(name="h200", project="demo"))
        file = tmp_path / f"{number}.sqlite"
        counts = write_snapshot(engine, file, views)
        engine.dispose()
        columns = "launch_index, kernel, duration_ns, grid_x, start_ns"
        found.append((counts, rows(file, f"SELECT {columns} FROM v1_launches ORDER BY launch_index")))
    assert found[0] == found[1]
