"""A store of each kind of database, and small uploads to put into it."""

import hashlib
import shutil
from collections.abc import Callable, Container, Iterable, Iterator
from contextlib import nullcontext
from contextvars import Context
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine

from profsvc import store
from profsvc.store import opening
from profsvc.store.connection.transactions import kept_connections
from profsvc.store.ingest import staging, upload
from profsvc.store.maintenance.migrations import upgrade
from profsvc.tables import Batch, frame
from tests.conftest import COUNTERS

KERNELS = ("void ns::gemm<16>(const float *, float *)", "saxpy(int, float *)")
Filled = Callable[..., Engine]


def only_on(database: str, reason: str) -> pytest.MarkDecorator:
    """Mark a test that runs on one kind of database alone, and say why."""
    assert reason
    return pytest.mark.parametrize("url", [database], indirect=True)


def mostly_on_sqlite(
    name: str, cases: Iterable[Any], on_both: Container[Any], ids: Callable[[Any], str] = str
) -> pytest.MarkDecorator:
    """Run every case on SQLite, and on Postgres those of ``on_both``; for cases that are the program's own affair."""
    chosen = [pytest.param("sqlite", case, id=f"sqlite-{ids(case)}") for case in cases]
    chosen += [pytest.param("postgresql", case, id=f"postgresql-{ids(case)}") for case in cases if case in on_both]
    return pytest.mark.parametrize(("url", name), chosen, indirect=["url"])


# Tests of these modules store files in the way of the long ones as well, copied after and while they are read.
STAGED = {
    "test_characterizations", "test_events", "test_report_pages", "test_samples", "test_upload", "test_wide_metrics",
}  # fmt: skip
# Those of this one write results in the way of the many as well, as pages of another file.
PAGED = {"test_writer"}
assert all(any(Path(__file__).parent.rglob(f"{name}.py")) for name in STAGED | PAGED)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run each test of a store on every kind of database, unless `only_on` says which."""
    chosen = [
        mark
        for mark in metafunc.definition.iter_markers("parametrize")
        if mark.args[0][:1] == ("url",) or mark.args[0] == "url"
    ]
    if "url" in metafunc.fixturenames and not chosen:
        module = metafunc.module.__name__.split(".")[-1]
        others = ["staged", "copied early"] * (module in STAGED) + ["paged"] * (module in PAGED)
        metafunc.parametrize("url", ["sqlite", *others, "postgresql"], indirect=True)


# Whose tests make new stores as the program does, and none of a copy.
MIGRATING = {"connection", "maintenance"}


@pytest.fixture(autouse=True)
def real_migrations(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make new stores as the program does, where that is looked at."""
    if MIGRATING.intersection(request.path.parts):
        monkeypatch.setattr(opening, "upgrade", upgrade)


@pytest.fixture
def url(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A store of this test's own: a SQLite file that is not yet there, or a Postgres database with the schema.

    On ``staged`` every file goes the way of the long ones, on ``copied early`` each batch is copied before the next.
    """
    if request.param == "postgresql":
        yield request.getfixturevalue("postgres_url")
        return
    if request.param in ("staged", "copied early"):
        monkeypatch.setattr(upload, "SMALL_FILE_ROWS", -1)
        monkeypatch.setattr(staging, "MIN_ROWS_FOR_PAGES", 1)
    if request.param == "copied early":
        monkeypatch.setattr(upload.ReadingPace, "is_time_to_copy", lambda *_: True)
        monkeypatch.setattr(upload, "MIN_PART_BYTES", 0)
    file = tmp_path / "store.sqlite"
    yield str(file)
    assert open_files(file) == []


def open_files(file: Path) -> list[str]:
    """Return the handles that this process has on a file and what lies beside it (its log and its journal)."""
    handles = Path("/proc/self/fd")
    if not handles.is_dir():
        return []
    targets = [str(handle.readlink()) for handle in handles.iterdir() if handle.is_symlink()]
    return [target for target in targets if target.startswith(str(file))]


@pytest.fixture(scope="session")
def sqlite_template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A SQLite file with this program's schema and views, to be copied: 10 ms instead of 70."""
    file = tmp_path_factory.mktemp("template") / "store.sqlite"
    store.open_store(str(file), COUNTERS).dispose()
    assert open_files(file) == []
    return file


@pytest.fixture
def engine(request: pytest.FixtureRequest, url: str, sqlite_template: Path) -> Iterator[Engine]:
    """A store of this test's own, whose connections are reused, but by tests of connections.

    It is a copy of one with `COUNTERS`, so that it is ready needs no look.
    """
    if "://" not in url and not Path(url).exists():
        shutil.copy(sqlite_template, url)
    engine = store.connect(url)
    with nullcontext() if request.path.parent.name == "connection" else kept_connections(engine):
        yield engine
    engine.dispose()


@pytest.fixture(scope="module")
def contents() -> dict[tuple[str, str], tuple[str, Path]]:
    """What `filled` made in this module: a kind of store and the call, and the file or database and folder to copy."""
    return {}


@pytest.fixture
def filled(
    url: str,
    engine: Engine,
    contents: dict[tuple[str, str], tuple[str, Path]],
    request: pytest.FixtureRequest,
    tmp_path_factory: pytest.TempPathFactory,
) -> Filled:
    """Fill the store of this test: the first in a module by a call, others with this call by a copy of what it made.

    A folder that the call fills beside the store is copied with it.
    """
    kind, own = request.node.callspec.params["url"], str(engine.url.database)
    server = request.getfixturevalue("postgres_server") if kind == "postgresql" else None

    def fill(call: Callable[[], object], beside: Path | None = None) -> Engine:
        made = kind, call.__qualname__
        if made not in contents:
            Context().run(call)  # the file or database is copied, so no connection to it may be left
            assert server is None or server.left(own) == []
            folder = tmp_path_factory.mktemp("filled")
            found = server.database(own) if server else shutil.copy(own, folder / "store.sqlite")
            contents[made] = str(found), folder / "beside"
            if beside:
                shutil.copytree(beside, folder / "beside")
            return engine
        content, folder = contents[made]
        if server:
            server.drop(own)
            server.database(content, name=own)
        else:
            shutil.copy(content, own)
        if beside:
            shutil.copytree(folder, beside)
        return engine

    return fill


def info(content: str = "a", file_name: str = "profile.csv", form: str = "ncu_raw") -> store.UploadInfo:
    return store.UploadInfo(file_name, hashlib.sha256(content.encode()).hexdigest(), len(content), form)


def batches(launches: int = 4, per_batch: int = 2, begin_ns: int = 2**60, **changes: Any) -> Iterator[Batch]:
    """Yield an upload as a reader does: a launch and its two metrics a line; each capture has its own start."""
    for begin in range(0, launches, per_batch):
        index = list(range(begin, min(begin + per_batch, launches)))
        both = [i for i in index for _ in range(2)]
        line = [i + 3 for i in index]
        yield Batch(
            {
                "launches": frame(
                    "launches",
                    {
                        "launch_index": index,
                        "kernel": [KERNELS[i % 2] for i in index],
                        "device": ["NVIDIA H200"] * len(index),
                        "compute_capability": ["9.0"] * len(index),
                        "host": ["node1"] * len(index),
                        "duration_ns": [1250.0 + i / 2 for i in index],
                        "start_ns": [begin_ns + i for i in index],
                        "grid_x": [i + 1 for i in index],
                        "line": line,
                    }
                    | changes,
                ),
                "metrics": frame(
                    "metrics",
                    {
                        "launch_index": both,
                        "section": [None, "Memory"] * len(index),
                        "metric": ["dram__bytes_read.sum", "L2 Hit"] * len(index),
                        "raw_text": [t for i in index for t in (f"{i},000", "n/a")],
                        "unit": ["Kbyte", None] * len(index),
                        "value": [v for i in index for v in (i * 1e6, None)],
                        "si_unit": ["byte", None] * len(index),
                        "reason": [None, "not a number"] * len(index),
                        "line": [i + 3 for i in both],
                    },
                ),
            },
            lines_stored=len(index),
            lines_skipped=2 if begin == 0 else 0,
            facts={"tool": "ncu", "tool_version": "2025.1", "number_format": "1,000.5"},
        )


@pytest.fixture
def stored(engine: Engine) -> store.StoredUpload:
    return store.write_upload(engine, info(), store.RunInfo(name="first", tags={"branch": "main"}), batches())
