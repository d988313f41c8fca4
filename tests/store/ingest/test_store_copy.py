"""Rows of a long file are copied into SQLite while the last of them are read: when that begins, and that it is safe."""

import io
import sqlite3
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from pathlib import Path
from types import SimpleNamespace

import pytest
from sqlalchemy import Engine, text

from profsvc import pipeline, store
from profsvc.errors import InputError
from profsvc.formats.nvprof import two_pass
from profsvc.store.connection.transactions import reading, writing
from profsvc.store.ingest import store_copy
from profsvc.store.ingest import upload as load
from profsvc.store.ingest.store_copy import MIN_PART_BYTES, ReadingPace, StagedFile, StoreCopy, copying
from profsvc.tables import Batch
from tests.inputs.long_exports import gpu_trace
from tests.store.conftest import batches, info, only_on

RUN = store.RunInfo(name="r")


@pytest.mark.parametrize(
    ("shares", "staged", "expected"),
    [
        pytest.param([0.1, 0.6], 1 << 30, True, id="4 s are left, 7 s to copy"),
        pytest.param([0.1, 0.2], 1 << 30, False, id="40 s are left"),
        pytest.param([0.1, 0.6], MIN_PART_BYTES - 1, False, id="too few rows"),
        pytest.param([1.0, 1.0], 1 << 30, False, id="read before its rows came"),
        pytest.param([0.1, 1.0], 1 << 30, False, id="read to its end"),
        pytest.param([0.1, 0.1], 1 << 30, False, id="nothing was read since"),
    ],
)
def test_the_copy_begins_when_the_rest_is_read_as_soon(
    shares: list[float], staged: int, expected: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A clock of its own: a service of another test, which asks that of the process, goes on beside this one.
    monkeypatch.setattr(store_copy, "time", SimpleNamespace(monotonic=iter([100.0, 105.0]).__next__))
    monkeypatch.setattr(store_copy.os, "cpu_count", lambda: 2)
    pace = ReadingPace(iter(shares).__next__)
    assert pace.is_time_to_copy(staged) == expected


def test_one_processor_copies_when_all_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store_copy.os, "cpu_count", lambda: 1)
    assert not ReadingPace(iter([0.1, 0.9]).__next__).is_time_to_copy(1 << 40)


def stored_rows(engine: Engine, trace: bytes) -> list[object]:
    verdict = pipeline.ingest(engine, io.BytesIO(trace), "trace.csv", RUN)
    assert (verdict.launches, verdict.lines_rejected) == (48_000, 0)
    with reading(engine) as connection:
        return [
            connection.execute(text(f"SELECT * FROM {view} ORDER BY 1, 2, 3, 4, 5")).all()
            for view in ("v1_launches", "v1_transfers", "kernel_totals", "shape_totals")
        ]


@only_on("sqlite", "a server takes the rows as they come")
def test_a_long_trace_has_the_same_rows(engine: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    trace = "".join(gpu_trace(60_000)).encode()
    monkeypatch.setattr(load, "SMALL_FILE_ROWS", 1000)
    monkeypatch.setattr(two_pass, "BLOCK_BYTES", 1 << 18)  # else all is read ahead before the first rows come
    plain = store.open_store(str(tmp_path / "plain.sqlite"))
    expected = stored_rows(plain, trace)
    plain.dispose()
    parts: list[Sequence[StagedFile]] = []
    start = StoreCopy.start

    def counted(self: StoreCopy, files: Sequence[StagedFile]) -> None:
        parts.append(files)
        start(self, files)

    monkeypatch.setattr(StoreCopy, "start", counted)
    for module in (store_copy, load):
        monkeypatch.setattr(module, "MIN_PART_BYTES", 0)
    monkeypatch.setattr(store_copy, "COPIED_BYTES_PER_SECOND", 1.0)
    assert stored_rows(engine, trace) == expected
    assert len(parts) >= 2, "some rows are copied before all are read"


def failing(first: list[Batch]) -> Iterator[Batch]:
    yield from first
    raise InputError("the rest is cut off")


@pytest.fixture
def early(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every batch is copied before the next is read."""
    monkeypatch.setattr(load, "SMALL_FILE_ROWS", -1)
    monkeypatch.setattr(ReadingPace, "is_time_to_copy", lambda *_: True)
    monkeypatch.setattr(load, "MIN_PART_BYTES", 0)
    monkeypatch.setattr("profsvc.store.ingest.staging.MIN_ROWS_FOR_PAGES", 1)


@only_on("sqlite", "a server takes the rows as they come")
def test_a_file_that_fails_after_rows_were_copied_leaves_nothing(engine: Engine, early: None) -> None:
    first, _ = batches()
    _, last = batches(kernel=["late", "later"])
    with pytest.raises(InputError, match="the rest is cut off"):
        store.write_upload(engine, info(), RUN, failing([first, last]))
    assert store.select(engine, "v1_runs") == []
    assert store.select(engine, "v1_launches") == []
    with reading(engine) as connection:
        names = connection.execute(text("SELECT kernel_short FROM kernels ORDER BY 1")).scalars().all()
    assert names == ["gemm", "saxpy"], "what was named in the transaction goes with it"


@only_on("sqlite", "a server takes the rows as they come")
def test_another_writer_waits_until_the_file_is_stored(engine: Engine, early: None) -> None:
    others: list[Future[store.StoredUpload]] = []

    def batches_and_another() -> Iterator[Batch]:
        yield from batches()
        others.append(pool.submit(store.write_upload, engine, info("b"), store.RunInfo(name="other"), batches()))
        assert not wait(others, 0.3).done

    with ThreadPoolExecutor(1) as pool:
        store.write_upload(engine, info(), RUN, batches_and_another())
        assert others[0].result(60).run == "other"
    assert [run["name"] for run in store.select(engine, "v1_runs")] == ["r", "other"]


@only_on("sqlite", "a server takes the rows as they come")
def test_bytes_that_are_known_in_the_end_change_nothing(engine: Engine, early: None) -> None:
    first = store.write_upload(engine, info(), RUN, batches())
    later = info()
    later = type(later)(later.file_name, lambda: info().digest(), later.size_bytes, later.format)
    again = store.write_upload(engine, later, RUN, batches())
    assert (again.known, again.upload_id) == (True, first.upload_id)
    assert len(store.select(engine, "v1_uploads")) == 1


@only_on("sqlite", "a server takes the rows as they come")
def test_a_copy_is_stopped_in_the_middle(engine: Engine, tmp_path: Path) -> None:
    """The rows of this file have no end."""
    path = tmp_path / "endless.sqlite"
    with sqlite3.connect(path) as file:
        file.execute(
            "CREATE VIEW texts AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n)"
            " SELECT i + 1000, 'text ' || i FROM n"
        )
    file.close()
    endless = StagedFile("endless", path, ["texts"])
    began = time.monotonic()

    def interrupted() -> None:
        with copying(engine, [endless]) as copy:
            copy.start([endless])
            time.sleep(0.2)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert time.monotonic() - began < 30
    with writing(engine) as connection:
        assert connection.execute(text("SELECT count(*) FROM texts WHERE text LIKE 'text %'")).scalar_one() == 0
