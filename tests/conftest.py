"""Stores and exports that several tests look at."""

import os
import sys

# Each test process takes a core, so its sums take one thread: threads of several processes would wait for each other.
# NumPy asks when it is loaded, which an import below does.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
# Processes that tests start take the program as this one compiled it: to compile is a sixth of their time, and to
# rewrite the assertions of what is imported below takes two seconds of every process.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
if sys.dont_write_bytecode:
    sys.dont_write_bytecode = False

import gc
import shutil
import signal
import tempfile
import threading
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path

import pytest
from _pytest.doctest import DoctestItem, DoctestModule
from hypothesis import settings
from sqlalchemy import Engine

from profsvc import pipeline, store
from profsvc.pipeline.nightly import report_of_night
from profsvc.store import opening
from profsvc.store.connection.locks import hold_lock
from profsvc.store.connection.transactions import exclusive_writer, kept_connections
from profsvc.store.connection.urls import file_of
from profsvc.store.maintenance.migrations import upgrade
from tests.environment import postgres
from tests.environment.remembered import Memory
from tests.inputs.uploads import without_analysis
from tests.robustness import hostile

# The same examples every time: a red test can be run again. PROFSVC_TEST_EXAMPLES=N looks at N new ones a test.
EXAMPLES = int(os.environ.get("PROFSVC_TEST_EXAMPLES", "0"))
settings.register_profile("repeatable", derandomize=not EXAMPLES, deadline=None, max_examples=EXAMPLES or 40)
settings.load_profile("repeatable")

ROOT = Path(__file__).parents[1]
COUNTERS = ("duration_ns", "dram_read_bytes", "ipc_sm")
DEMO = ROOT / "fixtures" / "demo" / "ncu_raw.csv.gz"
# A file system in memory, and the bytes that must be free on it.
MEMORY, ROOM = Path("/dev/shm"), 2 << 30


def pytest_configure() -> None:
    """Let stores and servers of tests lie in memory, where commits and copies wait for no disk; TMPDIR says another."""
    if "TMPDIR" not in os.environ and MEMORY.is_dir() and shutil.disk_usage(MEMORY).free > ROOM:
        os.environ["TMPDIR"], tempfile.tempdir = str(MEMORY), None


# What `-m fast` leaves out: a test that asks for one of these, or that draws its own examples.
NOT_FAST = {
    "empty", "demo", "engine", "hostile_store", "held_out_store", "store_file", "url", "postgres_server", "chromium",
}  # fmt: skip
# Folders of what computes alone. Of them, those that put every file through the same, fit long logs, simulate many
# nights or caches or draw pictures take too long, and so do modules that read every file in two ways, and these tests.
COMPUTING = ("channels", "formats", "formulas", "reports", "specs")
LONG = {"change", "invariants", "memory_hierarchy", "plots", "power", "thermal"}
TWICE = ("_and_pages", "_blocks", "_both_ways", "_chunks")
LONG_TESTS = {
    "test_any_pace_of_reading", "test_cut_and_damaged_files", "test_damaged_bytes_end_as_a_sentence",
    "test_fit_leaves_out_what_is_no_measurement_and_needs_three", "test_header_after_much_output",
    "test_memory_does_not_grow_with_the_rows", "test_random_rows_under_sanitizers",
    "test_scaled_units_give_the_same_counters", "test_the_pages_of_one_report_hold_the_same_launches",
    "test_the_wheel_names_its_platform_if_it_has_the_module",
}  # fmt: skip


# What takes tens of seconds begins first: at the end the other process would wait for it.
BEGIN_FIRST = {
    "test_the_store_works_on", "test_every_page_is_whole", "test_uploads_go_on_while_processes_are_killed",
    "test_one_worker_killed_on_the_way_and_everything_there_once", "test_two_processes_are_one_service",
    "test_nothing_keeps_anyone_from_using_a_page_without_script",
    "test_ctrl_c_leaves_whole_files_and_the_same_command_goes_on",
    "test_processes_share_memory_and_connections_and_that_of_the_schedules_is_replaced",
    "test_uploads_of_several_processes_to_a_service_that_comes_and_goes_are_each_there_once",
    "test_the_flawed_line_leads_in_most_kernels_of_the_later_sets",
}  # fmt: skip


Collected = Generator[None, list[pytest.Collector], list[pytest.Collector]]


@pytest.hookimpl(wrapper=True)
def pytest_collect_file(file_path: Path) -> Collected:
    """Look for examples in docstrings only where some are: to import and search a module takes milliseconds."""
    found = yield
    return [one for one in found if not isinstance(one, DoctestModule) or b">>>" in file_path.read_bytes()]


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Import no module without a fast test where ``-m fast`` asks for nothing else."""
    return True if config.option.markexpr == "fast" and not _may_be_fast(collection_path) else None


@cache
def _may_be_fast(path: Path) -> bool:
    """Tell whether a folder or a module is of what computes alone; doctests of the program are."""
    tests = Path(__file__).parent
    if tests not in path.parents:
        return True
    folder, *parts = path.relative_to(tests).parts
    return folder in COMPUTING and not LONG.intersection(parts) and not path.stem.endswith(TWICE)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark as ``fast`` what needs no store, no server, no browser and no made-up examples; before ``-m`` chooses."""
    items.sort(key=lambda item: getattr(item, "originalname", None) not in BEGIN_FIRST)
    for item in items:
        if _is_fast(item):
            item.add_marker(pytest.mark.fast)


def _is_fast(item: pytest.Item) -> bool:
    if not _may_be_fast(item.path):
        return False
    if isinstance(item, DoctestItem):
        return True
    is_long = hasattr(getattr(item, "obj", None), "hypothesis") or getattr(item, "originalname", None) in LONG_TESTS
    return not is_long and not NOT_FAST.intersection(getattr(item, "fixturenames", ()))


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Search for no garbage while tests are collected, which live to the end; then leave them out, and search less."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()
        gc.set_threshold(20_000, 20, 100)


@pytest.fixture(scope="session", autouse=True)
def copied_schema(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Let a new SQLite store be a copy of one that was migrated: 10 ms instead of 150. Tests of the store migrate."""
    template = tmp_path_factory.mktemp("schema") / "store.sqlite"

    def migrated() -> Path:
        if not template.exists():
            made = template.with_name(f"{os.getpid()} {threading.get_ident()}.sqlite")
            engine = store.connect(str(made))
            upgrade(engine)
            engine.dispose()
            made.rename(template)
        return template

    def copied(
        engine: Engine, counters: Iterable[str] | None = None, tell: Callable[[str], None] | None = None
    ) -> None:
        file = file_of(engine)
        if counters is None and file is not None and not file.exists():
            part = file.with_name(f"{file.name}.part")
            with suppress(OSError), exclusive_writer(engine):
                if not file.exists():
                    shutil.copy(migrated(), part)
                    part.rename(file)
                    return  # its schema and views are those of this program
        upgrade(engine, counters, tell=tell)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(opening, "upgrade", copied)
        yield


@pytest.fixture(scope="session")
def shared_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of all processes of this run; those of pytest-xdist have folders beside each other.

    A run that a test starts gets that of the test's own run in ``PROFSVC_TEST_SHARED``.
    """
    if given := os.environ.get("PROFSVC_TEST_SHARED"):
        return Path(given)
    own = tmp_path_factory.getbasetemp()
    return own.parent if "PYTEST_XDIST_WORKER" in os.environ else own


@pytest.fixture(scope="session", autouse=True)
def memory(shared_folder: Path) -> Iterator[Memory]:
    """Let the analysis of what was analysed before in this run be a copy: a fourth of many tests."""
    folder = shared_folder / "remembered"
    with Memory(folder).in_place() as memory:
        yield memory
    if "PROFSVC_TEST_SHARED" not in os.environ:
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def computed(memory: Memory) -> Iterator[None]:
    """Let all analyses of a test be computed."""
    with memory.off():
        yield


@pytest.fixture
def unanalysed() -> Iterator[None]:
    """Let nothing be computed, for tests of what is stored: a fifth of the time."""
    with without_analysis():
        yield


MakeOnce = Callable[..., Path]


@pytest.fixture(scope="session")
def made_once(shared_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> MakeOnce:
    """Make a store that a call fills, with what lies beside it, once for all processes; each gets a copy of its own.

    It begins as a copy of the store ``begin`` if there is one.
    """

    def made(name: str, fill: Callable[[Engine], object], begin: Engine | None = None) -> Path:
        first = shared_folder / f"made {name}"
        with hold_lock(shared_folder / f"made {name}.lock", f"the store {name} is made"):
            if not first.exists():
                part = Path(tempfile.mkdtemp(dir=shared_folder))
                if begin is not None:
                    store.backup(begin, part / "store.sqlite")
                engine = store.open_store(str(part / "store.sqlite"), pooled=True)
                fill(engine)
                engine.dispose()
                part.rename(first)
        return Path(shutil.copytree(first, tmp_path_factory.mktemp("made") / "made")) / "store.sqlite"

    return made


@pytest.fixture(scope="session")
def demo(made_once: MakeOnce) -> Iterator[Engine]:
    """A store with the run ``h200``, 34 launches of real kernels, and its nightly report. Tests only read it.

    Its connections stay open, as those of a service: to learn every view again takes longer than most questions.
    """

    def fill(engine: Engine) -> None:
        with DEMO.open("rb") as stream:
            pipeline.ingest(engine, stream, DEMO.name, store.RunInfo(name="h200", project="demo"))
        report_of_night(engine)

    engine = store.open_store(str(made_once("demo", fill)), pooled=True)
    yield engine
    engine.dispose()


@pytest.fixture(scope="session")
def empty(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with nothing in it, to be copied: to make one takes longer than most tests."""
    file = tmp_path_factory.mktemp("empty") / "store.sqlite"
    store.open_store(str(file)).dispose()
    return file


@contextmanager
def opened(url: str) -> Iterator[Engine]:
    """Open a store whose connections are reused: to learn every view again takes longer than most steps."""
    engine = store.open_store(url)
    try:
        with kept_connections(engine):
            yield engine
    finally:
        engine.dispose()


@pytest.fixture
def engine(tmp_path: Path, empty: Path) -> Iterator[Engine]:
    """A store of this test's own; that it is ready needs no look, for it is a copy."""
    shutil.copy(empty, tmp_path / "store.sqlite")
    engine = store.connect(str(tmp_path / "store.sqlite"))
    with kept_connections(engine):
        yield engine
    engine.dispose()


@pytest.fixture(scope="session")
def hostile_store(made_once: MakeOnce) -> Path:
    """The file of a store whose every name attacks what shows it; tests only read it."""

    def fill(engine: Engine) -> None:
        assert hostile.fill(engine) == [1, 2]

    return made_once("hostile", fill)


@pytest.fixture(scope="session")
def held_out_store(made_once: MakeOnce) -> Path:
    """The file of a store with a profile of the held-out kernels and the power of each; tests only read or copy it."""

    def fill(engine: Engine) -> None:
        # The marks first: without them the log would be analysed once more, as one of unknown loads.
        files = {"ncu_raw_base.csv.gz": "profile", "power_marks.csv": "measured", "power_smi.csv.gz": "measured"}
        for name, run in files.items():
            with (ROOT / "fixtures" / "held_out" / name).open("rb") as stream:
                pipeline.ingest(engine, stream, name, store.RunInfo(name=run), pipeline.ReadOptions(zone="UTC"))

    return made_once("held_out", fill)


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
