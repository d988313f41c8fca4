"""Stores and exports that several tests look at."""

import gc
import os
import shutil
import signal
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import settings
from sqlalchemy import Engine

from profsvc import pipeline, store
from profsvc.pipeline.nightly import report_of_night
from tests import hostile, postgres

# The same examples every time: a red test can be run again. Look for new ones with --hypothesis-profile=default.
settings.register_profile("repeatable", derandomize=True, deadline=None)
settings.load_profile("repeatable")

ROOT = Path(__file__).parents[1]
COUNTERS = ("duration_ns", "dram_read_bytes", "ipc_sm")
DEMO = ROOT / "fixtures" / "demo" / "ncu_raw.csv.gz"
# A file system in memory, and the bytes that must be free on it.
MEMORY, ROOM = Path("/dev/shm"), 2 << 30


def pytest_configure() -> None:
    """Let stores and servers of tests lie in memory, where commits and copies wait for no disk; TMPDIR says another.

    Workers take a core each, so their sums take one thread: those of two workers would wait for each other.
    """
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    # Processes that tests start take the program as this one compiled it; to compile is a sixth of their time.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    sys.dont_write_bytecode = False
    if "TMPDIR" not in os.environ and MEMORY.is_dir() and shutil.disk_usage(MEMORY).free > ROOM:
        os.environ["TMPDIR"], tempfile.tempdir = str(MEMORY), None


def pytest_collection_finish() -> None:
    """Leave the tests themselves, which live to the end, out of every search for garbage, and search less often."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 100)


@pytest.fixture(scope="session")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    """A store with the run ``h200``, 34 launches of real kernels, and its nightly report. Tests only read it."""
    engine = store.open_store(str(tmp_path_factory.mktemp("demo") / "store.sqlite"))
    with DEMO.open("rb") as stream:
        pipeline.ingest(engine, stream, DEMO.name, store.RunInfo(name="h200", project="demo"))
    report_of_night(engine)
    yield engine
    engine.dispose()


@pytest.fixture(scope="session")
def empty(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with nothing in it, to be copied: to make one takes longer than most tests."""
    file = tmp_path_factory.mktemp("empty") / "store.sqlite"
    store.open_store(str(file)).dispose()
    return file


@pytest.fixture
def engine(tmp_path: Path, empty: Path) -> Iterator[Engine]:
    """A store of this test's own."""
    shutil.copy(empty, tmp_path / "store.sqlite")
    engine = store.open_store(str(tmp_path / "store.sqlite"))
    yield engine
    engine.dispose()


@pytest.fixture(scope="session")
def hostile_store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The file of a store whose every name attacks what shows it; tests only read it."""
    file = tmp_path_factory.mktemp("hostile") / "store.sqlite"
    engine = store.open_store(str(file))
    assert hostile.fill(engine) == [1, 2]
    engine.dispose()
    return file


@pytest.fixture(scope="session")
def held_out_store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The file of a store with a profile of the held-out kernels and the power of each; tests only read or copy it."""
    file = tmp_path_factory.mktemp("held_out") / "store.sqlite"
    engine = store.open_store(str(file))
    # The marks first: without them the log would be analysed once more, as one of unknown loads.
    files = {"ncu_raw_base.csv.gz": "profile", "power_marks.csv": "measured", "power_smi.csv.gz": "measured"}
    for name, run in files.items():
        with (ROOT / "fixtures" / "held_out" / name).open("rb") as stream:
            pipeline.ingest(engine, stream, name, store.RunInfo(name=run), pipeline.ReadOptions(zone="UTC"))
    engine.dispose()
    return file


@pytest.fixture
def interruptible() -> Iterator[None]:
    """Let new processes heed Ctrl-C even where this one ignores it, as behind ``nohup`` or ``&``."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[postgres.Server]:
    """A Postgres server, started when the first test asks for it."""
    with postgres.server() as server:
        yield server


@pytest.fixture(scope="session")
def postgres_template(postgres_server: postgres.Server) -> str:
    """The name of a database with this program's schema, to be copied."""
    return postgres.migrated(postgres_server, COUNTERS)


@pytest.fixture(scope="session")
def postgres_whole_template(postgres_server: postgres.Server) -> str:
    """The same with every counter of the program in its views."""
    return postgres.migrated(postgres_server)


@contextmanager
def copied(server: postgres.Server, template: str) -> Iterator[str]:
    """Give the URL of a copy of a database; no connection to it may be left at the end."""
    name = server.database(template)
    yield server.url(name).render_as_string(hide_password=False)
    left = server.left(name)
    server.drop(name)
    assert left == []


@pytest.fixture
def postgres_url(postgres_server: postgres.Server, postgres_template: str) -> Iterator[str]:
    """The URL of a store of this test's own."""
    with copied(postgres_server, postgres_template) as url:
        yield url


@pytest.fixture
def postgres_whole_url(postgres_server: postgres.Server, postgres_whole_template: str) -> Iterator[str]:
    """The URL of a store of this test's own, with every counter of the program in its views."""
    with copied(postgres_server, postgres_whole_template) as url:
        yield url
