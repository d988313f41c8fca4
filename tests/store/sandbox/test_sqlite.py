"""The process that answers queries on a SQLite store: what it may take, and how it ends."""

import contextlib
import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import pytest
from sqlalchemy import Engine

from profsvc import store
from profsvc.errors import ServiceError, UsageError
from profsvc.store.connection.urls import file_of
from profsvc.store.sandbox import sqlite as sandbox_sqlite
from profsvc.workers import process
from tests.store.conftest import only_on

pytestmark = only_on("sqlite", "a server is a process of its own already")

ENDLESS = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c)"
# Runs the worker from a bare process, whose own memory does not blur what the worker took.
MEASURE = """
import json, resource, subprocess, sys
done = subprocess.run([sys.executable, "-I", "-S", *sys.argv[1:]], stdin=0, stdout=subprocess.DEVNULL)
used = resource.getrusage(resource.RUSAGE_CHILDREN)
print(json.dumps({"kilobytes": used.ru_maxrss, "rc": done.returncode}))
"""


def workers() -> list[Path]:
    """The processes that answer queries for this one, as folders of /proc."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            parent = int((folder / "stat").read_text(encoding="utf-8").rpartition(")")[2].split()[1])
            if parent == os.getpid() and b"sqlite_job.py" in (folder / "cmdline").read_bytes():
                found.append(folder)
    return found


@pytest.mark.parametrize(
    "sql",
    [
        f"{ENDLESS} SELECT zeroblob(900000) FROM c ORDER BY random()",
        f"{ENDLESS} SELECT count(DISTINCT randomblob(90000)) FROM c",
        f"{ENDLESS} SELECT {', '.join(['zeroblob(1000000)'] * 1500)} FROM c",
        f"{ENDLESS} SELECT {', '.join(f'hex(randomblob(400000)) AS c{n}' for n in range(300))} FROM c ORDER BY 1",
        f"{ENDLESS}, d AS MATERIALIZED (SELECT randomblob(90000) AS b FROM c) SELECT count(*) FROM d",
        f"{ENDLESS} SELECT json_group_array(x) FROM c",
    ],
)
def test_memory_is_bounded(engine: Engine, tmp_path: Path, sql: str) -> None:
    before = set(tmp_path.iterdir())
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", MEASURE, str(process.WORKER), str(sandbox_sqlite.JOB)],
        input=sandbox_sqlite.request_frame(file_of(engine), sql, {}, 2.0, sys.maxsize),
        capture_output=True,
        env={"SQLITE_TMPDIR": str(tmp_path)},
        timeout=60,
        check=True,
    )
    kilobytes = json.loads(done.stdout)["kilobytes"]
    assert 1000 < kilobytes < (sandbox_sqlite.MAX_MEMORY_BYTES >> 10) + 50_000
    assert set(tmp_path.iterdir()) == before


def test_too_much_memory_is_said(engine: Engine) -> None:
    wide = f"SELECT {', '.join(['zeroblob(1000000)'] * 1500)}"
    with pytest.raises(UsageError, match="limit of memory or time"):
        store.query(engine, wide)


def test_a_sort_that_fills_its_share_of_the_disk_is_said(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sandbox_sqlite, "MAX_TEMP_FILE_BYTES", 1 << 20)
    with pytest.raises(UsageError, match="more temporary disk space than allowed"):
        store.query(engine, f"{ENDLESS} SELECT randomblob(90000) AS b FROM c ORDER BY b LIMIT 1 OFFSET 1000000")


def test_a_process_that_is_killed_is_no_traceback(engine: Engine) -> None:
    with store.export(engine, f"{ENDLESS} SELECT x FROM c") as found:
        (worker,) = workers()
        os.kill(int(worker.name), signal.SIGKILL)
        with pytest.raises(UsageError, match="was stopped"):
            list(found.chunks)


def test_no_process_is_left(engine: Engine) -> None:
    for _ in range(3):
        with pytest.raises(UsageError):
            store.query(engine, f"{ENDLESS} SELECT count(*) FROM c", seconds=0.1)
        store.query(engine, "SELECT 1")
    assert workers() == []


def test_the_environment_of_the_service_stays_outside(monkeypatch: pytest.MonkeyPatch, engine: Engine) -> None:
    monkeypatch.setenv("PROFSVC_TOKEN", "psv_secret")
    with store.export(engine, f"{ENDLESS} SELECT x FROM c"):
        (worker,) = workers()
        environment = (worker / "environ").read_bytes()
        files = [str(file.readlink()) for file in (worker / "fd").iterdir()]
    assert b"psv_secret" not in environment
    assert [file for file in files if file.startswith("/") and "store.sqlite" not in file and file != "/dev/null"] == []


def test_a_store_that_is_locked_is_said_in_time(engine: Engine) -> None:
    with closing(sqlite3.connect(str(file_of(engine)), isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        started = time.perf_counter()
        with pytest.raises((ServiceError, UsageError), match=r"has been writing|longer than"):
            store.query(engine, "SELECT count(*) FROM v1_runs", seconds=0.3)
        assert time.perf_counter() - started < 1.5


@pytest.mark.parametrize(
    ("sql", "is_kept"),
    [
        ("SELECT count(*) AS n FROM v1_runs", True),
        ("SELECT upper('a') AS n", True),
        ("SELECT random() AS n", False),
        ("SELECT RANDOM() AS n", False),
        ("SELECT hex(randomblob(8)) AS n", False),
        ("SELECT strftime('%f', 'now') AS n", False),
        ("SELECT CURRENT_TIMESTAMP AS n", False),
        ("SELECT count(*) AS n FROM v1_schedules", False),  # its view looks at the clock
    ],
)
def test_a_service_asks_again_what_may_have_another_answer(
    url: str, engine: Engine, monkeypatch: pytest.MonkeyPatch, sql: str, is_kept: bool
) -> None:
    pooled, asked = store.connect(url, pooled=True), []
    stream = sandbox_sqlite.stream_rows
    monkeypatch.setattr(sandbox_sqlite, "stream_rows", lambda *args: asked.append(1) or stream(*args))
    answers = [store.query(pooled, sql) for _ in range(2)]
    assert len(asked) == (1 if is_kept else 2)
    assert answers[0].columns == answers[1].columns == ["n"]
    pooled.dispose()
