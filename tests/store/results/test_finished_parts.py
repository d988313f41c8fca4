"""An analysis that is cut short is seen, whatever cut it, and is done by the next upload, analyze or doctor."""

import io
import os
import signal
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from sqlalchemy import Engine

from profsvc import pipeline, store
from profsvc.store.connection.transactions import reading, writing
from profsvc.store.ingest.blob_store import BlobStore
from tests.robustness.durability import FORK
from tests.store.conftest import mostly_on_sqlite

FIXTURES = Path(__file__).parents[3] / "fixtures"
METER, RAW = FIXTURES / "nvidia_smi" / "units.csv", FIXTURES / "ncu_raw" / "plain.csv"
TRACE = FIXTURES / "memory_trace" / "bom_crlf.csv"
RUN = store.RunInfo(name="r")


class Killed(BaseException):
    """Stands for a kill: nothing of ours catches it."""


@pytest.fixture
def files(tmp_path: Path) -> BlobStore:
    return BlobStore(tmp_path / "kept", free_bytes=1)


def put(engine: Engine, path: Path, files: BlobStore | None, run: store.RunInfo = RUN) -> pipeline.ImportResult:
    with path.open("rb") as stream:
        return pipeline.ingest(engine, stream, path.name, run, files=files)


def killed(*_args: object, **_options: object) -> None:
    raise Killed


def cut(monkeypatch: pytest.MonkeyPatch, before: str, work: Callable[[], object]) -> None:
    """Do something that is killed before the store is called so."""
    with monkeypatch.context() as patched:
        patched.setattr(store, before, killed)
        with pytest.raises(Killed):
            work()


def power(engine: Engine) -> int:
    return len(store.select(engine, "v1_power")) + len(store.select(engine, "v1_power_quality"))


@store.snapshot
def rows(engine: Engine) -> dict[str, list[dict]]:
    return {view: sorted(store.select(engine, view), key=repr) for view in store.VIEWS}


HEALED_BY = {
    "the same bytes": lambda engine, files: put(engine, METER, files),
    "another file": lambda engine, files: put(engine, RAW, files),
    "analyze": lambda engine, files: pipeline.analyze_again(engine, files, 1),
    "doctor": pipeline.analyze_unfinished,
}


# What heals is the program's own affair; on Postgres each kind of kill is healed once.
CUT_AND_HEALED = [(before, healed_by) for before in ("save_results", "save_power") for healed_by in HEALED_BY]
ON_BOTH = [("save_results", "another file"), ("save_power", "doctor")]


@mostly_on_sqlite("cut_and_healed", CUT_AND_HEALED, ON_BOTH, ids=" ".join)
def test_an_upload_killed_between_the_parts_of_its_analysis_is_healed(
    engine: Engine, files: BlobStore, monkeypatch, cut_and_healed: tuple[str, str]
) -> None:
    before, healed_by = cut_and_healed
    cut(monkeypatch, before, lambda: put(engine, METER, files))
    assert power(engine) == 0
    parts = ["launches", "power"] if before == "save_results" else ["power"]
    assert store.unfinished(engine) == {1: parts}
    HEALED_BY[healed_by](engine, files)
    assert store.unfinished(engine) == {}
    assert power(engine) > 0


def test_a_second_file_whose_analysis_never_began_leaves_its_run_unfinished(
    engine: Engine, files: BlobStore, monkeypatch
) -> None:
    put(engine, RAW, files)
    cut(monkeypatch, "save_results", lambda: put(engine, METER, files))
    assert store.select(engine, "v1_runs")[0]["analysis_version"] is not None  # of the first file
    assert store.unfinished(engine) == {1: ["launches", "power"]}
    assert put(engine, METER, files).known
    assert (store.unfinished(engine), power(engine) > 0) == ({}, True)


def test_what_a_device_says_of_itself_is_there_when_the_launches_count_as_finished(
    engine: Engine, files: BlobStore, monkeypatch
) -> None:
    path = FIXTURES / "ncu_raw" / "h200_three_launches.csv.gz"
    cut(monkeypatch, "describe_device", lambda: put(engine, path, files))
    assert store.unfinished(engine) == {1: ["launches"]}
    put(engine, path, files)
    assert store.select(engine, "v1_devices")[0]["sms"] == 132


def test_a_memory_trace_that_was_not_simulated_is_when_another_file_comes(
    engine: Engine, files: BlobStore, monkeypatch
) -> None:
    cut(monkeypatch, "save_trace", lambda: put(engine, TRACE, files))
    assert store.unfinished(engine) == {1: ["launches"]}
    put(engine, RAW, files)
    assert len(store.select(engine, "v1_traces")) == 1
    assert store.unfinished(engine) == {}


@pytest.mark.parametrize("before", ["save_results", "save_power"])
def test_a_killed_undelete_leaves_the_file_deleted_and_can_be_repeated(
    engine: Engine, files: BlobStore, monkeypatch, before: str
) -> None:
    put(engine, METER, files)
    put(engine, RAW, files)
    whole = rows(engine)
    store.delete_run(engine, 1)
    pipeline.undelete(engine, files, 2)
    cut(monkeypatch, before, lambda: pipeline.undelete(engine, files, 1))
    assert [row["upload_id"] for row in store.deleted_uploads(engine)] == [1]
    assert store.unfinished(engine) == {}
    assert [pipeline.undelete(engine, files, number).known for number in (2, 1)] == [True, False]
    assert rows(engine) == whole


@pytest.mark.parametrize("before", ["save_results", "save_power"])
def test_a_killed_reparse_keeps_the_results_that_were_there(
    engine: Engine, files: BlobStore, monkeypatch, before: str
) -> None:
    put(engine, METER, files)
    whole = rows(engine)
    cut(monkeypatch, before, lambda: pipeline.reparse(engine, files, 1))
    assert rows(engine) == whole
    pipeline.reparse(engine, files, 1)
    assert rows(engine) == whole


def test_nobody_sees_rows_without_results_while_a_file_is_read_again(
    engine: Engine, files: BlobStore, monkeypatch
) -> None:
    put(engine, METER, files)
    seen, own = [], store.save_power

    def looking(*args: object, **options: object) -> bool:
        with monkeypatch.context() as alone:
            alone.setattr("profsvc.store.connection.transactions._TRANSACTION", _Nobody())  # as another process reads
            seen.append((power(engine), store.unfinished(engine)))
        return bool(own(*args, **options))

    before = power(engine)
    monkeypatch.setattr(store, "save_power", looking)
    pipeline.reparse(engine, files, 1)
    assert seen == [(before, {})]


class _Nobody:
    @staticmethod
    def get() -> None:
        return None


def test_a_deletion_killed_before_the_analysis_of_the_rest_deletes_nothing(
    engine: Engine, files: BlobStore, monkeypatch
) -> None:
    put(engine, METER, files)
    put(engine, RAW, files)
    whole = rows(engine)
    cut(monkeypatch, "save_results", lambda: store.delete_upload(engine, 2, partial(pipeline.analyze, engine)))
    assert rows(engine) == whole
    store.delete_upload(engine, 2, partial(pipeline.analyze, engine))
    assert (power(engine) > 0, store.unfinished(engine)) == (True, {})


def test_an_analysis_of_rows_that_were_read_again_meanwhile_is_not_kept(
    engine: Engine, files: BlobStore, monkeypatch
) -> None:
    put(engine, METER, files)
    tries, own = [], store.save_power

    def slowly(engine: Engine, run_id: int, frames: object, version: str, seen: int) -> bool:
        if not tries:
            with monkeypatch.context() as alone:
                alone.setattr(store, "save_power", own)
                pipeline.reparse(engine, files, 1)
        tries.append(own(engine, run_id, frames, version, seen))  # type: ignore[arg-type]
        return tries[-1]

    monkeypatch.setattr(store, "save_power", slowly)
    pipeline.analyze(engine, 1)
    assert tries == [False, True]


def test_a_run_of_an_older_store_that_lacks_its_power_is_seen(engine: Engine, files: BlobStore) -> None:
    put(engine, METER, files)
    put(engine, RAW, files, store.RunInfo(name="q"))
    with writing(engine) as connection:  # as the migration finds it: no mark of power, for it had no rows
        connection.exec_driver_sql("DELETE FROM finished_parts WHERE run_id = 1 AND part = 'power'")
    assert store.unfinished(engine) == {1: ["power"]}
    pipeline.analyze_unfinished(engine, files)
    assert store.unfinished(engine) == {}


def _put_many(url: str, folder: str, path: str) -> None:
    engine, data = store.open_store(url), Path(path).read_bytes()
    files = BlobStore(Path(folder), free_bytes=1)
    for number in range(99):
        more = data + b"\n" * number
        pipeline.ingest(engine, io.BytesIO(more), "smi.csv", store.RunInfo(name=f"r{number}"), files=files)
    os._exit(0)


def test_whatever_a_kill_leaves_is_finished_by_one_look(url: str, files: BlobStore) -> None:
    store.open_store(url).dispose()
    for wait in (0.7, 1.1, 1.3):
        process = FORK.Process(target=_put_many, args=(url, str(files.folder), str(METER)))
        process.start()
        time.sleep(wait)
        process.kill()
        process.join()
        assert process.exitcode == -signal.SIGKILL
    engine = store.open_store(url)
    try:
        pipeline.analyze_unfinished(engine, files)
        with reading(engine) as connection:
            sampled = connection.exec_driver_sql("SELECT run_id FROM uploads WHERE samples > 0").scalars().all()
        analysed = {row["run_id"] for row in store.select(engine, "v1_power")}
        analysed |= {row["run_id"] for row in store.select(engine, "v1_power_quality")}
        assert set(sampled) <= analysed
        assert store.unfinished(engine) == {}
    finally:
        engine.dispose()
