"""What a command may import: a question must not wait for what it does not use."""

import json
import os
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from profsvc.formats.splitter import rows as splitter
from tests.inputs.long_exports import gpu_trace, write

ROOT = Path(__file__).parents[2]
FRAMES = {"pandas", "pyarrow", "scipy", "matplotlib"}
HEAVY = FRAMES | {"numpy", "sqlalchemy", "alembic", "rich", "httpx", "fastapi", "apscheduler", "pydantic"}
# The words of a command, what it must not import, and how many modules it may: some more than it does.
COMMANDS = {
    "--version": (HEAVY | {"click", "sqlite3"}, 90),
    "--help": (FRAMES | {"sqlalchemy", "rich"}, 400),
    "runs --help": (HEAVY, 160),
    "runs": (HEAVY, 235),
    "runs -o json": (HEAVY, 235),
    "sql select/**/1": (HEAVY, 240),
    "findings list": (HEAVY, 240),
    "formats": (HEAVY, 250),
    "formats ncu-raw": (HEAVY, 250),
    "show": (HEAVY, 280),
    "show --all": (HEAVY, 280),
    "show h200 -o json": (HEAVY, 280),
    "compare h200 h200": (HEAVY - {"numpy"}, 400),
    "compare h200 h200 --no-record": (HEAVY - {"numpy"}, 400),
    "history gemm_naive": (HEAVY, 265),
    "devices": (HEAVY, 235),
    "explain divergence": (HEAVY - {"numpy"}, 430),
    "token list": (HEAVY, 235),
    "versions h200": (HEAVY - {"numpy"}, 350),
    "report accuracy": (HEAVY - {"numpy"}, 390),
    "whatif h200": ({"sqlalchemy"}, 820),
    "antipatterns h200": ({"sqlalchemy"}, 800),
    "show h200 --kernel 1": (HEAVY - {"numpy"}, 420),
    "show h200 --kernel gemm_naive -o json": (HEAVY - {"numpy"}, 420),
}
# The version is a module that the build writes; a checkout that was not built would read metadata instead.
CODE = """
import json, sys
version = type(sys)("profsvc._version")
version.VERSION = "0"
sys.modules[version.__name__] = version
from profsvc.cli import main
sys.argv = ["profsvc", *json.loads(sys.argv[1])]
try:
    main()
except SystemExit as end:
    if end.code:
        raise
finally:
    print(json.dumps(sorted(sys.modules)), file=sys.stderr)
"""


def modules_of(words: list[str], store: str) -> tuple[set[str], str]:
    """Run a command on a store; return what it imported, and what it said."""
    done = subprocess.run(
        [sys.executable, "-c", CODE, json.dumps(words)],
        # Whatever the width of the terminal of the tests: a table that does not fit is drawn by rich.
        env={name: value for name, value in os.environ.items() if name != "COLUMNS"} | {"PROFSVC_STORE": store},
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    *said, modules = done.stderr.splitlines()
    return set(json.loads(modules)), "\n".join(said)


@pytest.mark.parametrize("words", COMMANDS)
def test_a_command_imports_what_it_uses(demo, words: str) -> None:
    modules, _ = modules_of(words.split(), str(demo.url.database))
    forbidden, most = COMMANDS[words]
    assert sorted(forbidden & modules) == []
    assert len(modules) <= most


def test_the_source_of_a_launch_is_shown_without_frames(demo, tmp_path: Path) -> None:
    own = tmp_path / "store.sqlite"
    with closing(sqlite3.connect(demo.url.database)) as whole, closing(sqlite3.connect(own)) as copy:
        whole.backup(copy)
    modules_of(
        [
            "upload",
            "--project",
            "demo",
            "--run",
            "h200",
            str(ROOT / "fixtures/ncu_source/h200_lines_and_instructions.csv"),
        ],
        str(own),
    )
    modules, _ = modules_of(["show", "h200", "--kernel", "0", "--source", "-o", "json"], str(own))
    assert sorted(HEAVY & modules) == []


def test_bytes_that_are_known_are_neither_read_nor_analysed(demo, tmp_path: Path) -> None:
    own = tmp_path / "store.sqlite"
    with closing(sqlite3.connect(demo.url.database)) as whole, closing(sqlite3.connect(own)) as copy:
        whole.backup(copy)
    file = str(ROOT / "fixtures" / "demo" / "ncu_raw.csv.gz")
    modules, said = modules_of(["upload", "--project", "demo", "--run", "h200", file], str(own))
    assert "already stored" in said
    assert not (FRAMES | {"rich", "httpx", "alembic"}) & modules
    modules, said = modules_of(["upload", "--project", "demo", "--run", "another", file], str(own))
    assert "already stored" not in said
    assert "pandas" in modules


# Each file is stored by a process of its own, which begins with what every upload imports.
STORED = """
import os, sys
from profsvc import store
from profsvc.pipeline.ingestion import upload as ingestion
ingestion._analyze_if_unfinished = lambda *given, **named: None  # which makes frames
for address in sys.argv[1:]:
    if not (child := os.fork()):
        with open(f"{address}.log", "rb") as stream:
            stored = ingestion.ingest(store.open_store(address), stream, "file.csv", store.RunInfo())
        print(stored.lines_stored, *sorted({"pandas", "pyarrow", "scipy", "matplotlib"} & set(sys.modules)), flush=True)
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0, address
"""


@pytest.mark.skipif(not splitter.is_available(), reason="Arrow reads long files where the compiled splitter is missing")
def test_a_long_trace_is_stored_without_frames(tmp_path: Path, empty: Path) -> None:
    write(tmp_path / "trace.csv", gpu_trace(30_000))
    assert stored(tmp_path, empty, tmp_path / "trace.csv") == ["30000"]


# Logs of readings, texts, rejected lines and several GPUs, and how many of their lines are stored.
LOGS = {
    "nvidia_smi/asked_twice.csv": 2,
    "hioki/cut.csv": 1,
    "wattsup/log.txt": 2,
    "picolog/elapsed.csv": 3,
    "yokogawa/scpi_logger.csv": 3,
    "extech/dated.txt": 2,
    "codecarbon/emissions.csv": 3,
    "rocm_smi/amd.csv": 2,
    "joulescope/statistics.csv": 2,
    "jtop/old.csv": 2,
}


@pytest.fixture(scope="module")
def stored_logs(tmp_path_factory: pytest.TempPathFactory, empty: Path) -> dict[str, str]:
    """How many lines of each log were stored, and the libraries that were imported."""
    said = stored(tmp_path_factory.mktemp("logs"), empty, *(ROOT / "fixtures" / log for log in LOGS))
    return dict(zip(LOGS, said, strict=True))


@pytest.mark.parametrize("log", LOGS)
def test_a_sensor_log_is_stored_without_frames(log: str, stored_logs: dict[str, str]) -> None:
    assert stored_logs[log] == str(LOGS[log])


def stored(folder: Path, empty: Path, *files: Path) -> list[str]:
    """Store each file in a copy of an empty store, without its results; return how many lines, and what it imported."""
    stores = [folder / f"{number}.sqlite" for number in range(len(files))]
    for place, file in zip(stores, files, strict=True):
        shutil.copy(empty, place)
        shutil.copy(file, f"{place}.log")
    done = subprocess.run(
        [sys.executable, "-c", STORED, *map(str, stores)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()
