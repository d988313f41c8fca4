import multiprocessing
import random
import string
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import replace
from pathlib import Path

import pytest
from sqlalchemy import Engine, text

from profsvc import store
from profsvc.errors import DomainError, InputError, NotFoundError, ProfsvcError
from profsvc.store.connection.transactions import reading, writing
from profsvc.store.ingest import staging
from profsvc.store.ingest import upload as load
from profsvc.store.ingest.inserts.dictionaries import NAME_COLUMNS
from profsvc.store.schema.tables import metadata
from profsvc.tables import Batch, frame
from tests.store.conftest import COUNTERS, KERNELS, batches, info, only_on


def rows(engine: Engine) -> dict[str, int]:
    with reading(engine) as connection:
        counts = {t: connection.execute(text(f"SELECT count(*) FROM {t}")).scalar_one() for t in metadata.tables}
    return {t: n for t, n in counts.items() if n and t not in {"facts", "texts"}}


def left(engine: Engine) -> set[str]:
    """Return the tables with rows; a name may stay when the file that brought it does not."""
    return rows(engine).keys() - set(NAME_COLUMNS)


def test_a_file_becomes_rows(engine: Engine, stored: store.StoredUpload) -> None:
    assert stored == store.StoredUpload(1, 1, "first", 4, 6, 4, 2, 0, "stored", "")
    (run,) = store.select(engine, "v1_runs")
    assert (run["name"], run["project"], run["device"], run["host"]) == ("first", "default", "NVIDIA H200", "node1")
    assert (run["launches"], run["gpu_time_ns"], run["tags"]) == (4, 5003.0, '{"branch":"main"}')
    upload = store.upload(engine, 1)
    assert (upload["tool"], upload["tool_version"], upload["facts"]) == (
        "ncu",
        "2025.1",
        '{"number_format": "1,000.5"}',
    )
    launches = store.launches(engine, 1)
    assert launches["launch_id"].tolist() == [1_000_000_001, 1_000_000_002, 1_000_000_003, 1_000_000_004]
    assert launches["kernel_short"].tolist() == ["gemm", "saxpy", "gemm", "saxpy"]
    assert launches["duration_ns"].tolist() == [1250.0, 1250.5, 1251.0, 1251.5]
    assert launches["start_ns"].tolist() == [2**60 + i for i in range(4)]
    assert launches["stream"].isna().all()
    assert launches["stream"].dtype == "Int64"


def test_metrics_keep_what_came(engine: Engine, stored: store.StoredUpload) -> None:
    rows = store.select(engine, "v1_metrics", launch_id=1_000_000_002)
    first, second = sorted(rows, key=lambda row: str(row["metric"]), reverse=True)
    assert (first["raw_text"], first["unit"], first["value"], first["si_unit"]) == ("1,000", "Kbyte", 1e6, "byte")
    assert (first["metric"], first["section"], first["line"]) == ("dram__bytes_read.sum", None, 4)
    assert (second["value"], second["reason"], second["section"]) == (None, "not a number", "Memory")
    assert (second["kernel"], second["upload_id"], second["run_id"]) == (KERNELS[1], 1, 1)


def test_names_are_written_once(engine: Engine, stored: store.StoredUpload) -> None:
    store.write_upload(engine, info("b"), store.RunInfo(), batches())
    assert rows(engine) == {
        "kernels": 2,
        "metric_names": 2,
        "unit_names": 2,
        "devices": 1,
        "upload_devices": 2,
        "runs": 2,
        "run_tags": 1,
        "uploads": 2,
        "timelines": 2,
        "places": 1,
        "shapes": 2,
        "launches": 8,
        "kernel_totals": 4,
        "place_totals": 2,
        "shape_totals": 4,
        "metrics": 16,
    }


def test_the_same_bytes_are_stored_once(engine: Engine, stored: store.StoredUpload) -> None:
    before = rows(engine)
    again = store.write_upload(engine, info(), store.RunInfo(run_id=stored.run_id), iter(()))
    assert again.known
    assert (again.upload_id, again.run_id, again.lines) == (stored.upload_id, stored.run_id, stored.lines)
    assert rows(engine) == before
    assert store.find_upload(engine, info().sha256, store.RunInfo(run_id=stored.run_id)) == again
    assert store.find_upload(engine, "0" * 64, store.RunInfo()) is None


@pytest.mark.parametrize("error", [InputError("line 7"), KeyboardInterrupt(), ZeroDivisionError()])
def test_a_failure_half_way_leaves_nothing(engine: Engine, error: BaseException) -> None:
    def broken() -> Iterator[Batch]:
        yield from batches()
        raise error

    with pytest.raises(type(error)):
        store.write_upload(engine, info(), store.RunInfo(tags={"a": "b"}), broken())
    assert not left(engine)
    assert not store.write_upload(engine, info(), store.RunInfo(), batches()).known


def test_runs_by_name_number_and_file(engine: Engine, stored: store.StoredUpload) -> None:
    same = store.write_upload(engine, info("b"), store.RunInfo(name="first", commit_id="abc"), batches(begin_ns=7))
    assert same.run_id == stored.run_id
    assert store.select(engine, "v1_runs")[0]["commit_id"] == "abc"
    other = store.write_upload(engine, info("c"), store.RunInfo(project="p", name="first"), batches())
    assert other.run_id != stored.run_id
    by_number = store.write_upload(engine, info("d"), store.RunInfo(run_id=other.run_id), batches(begin_ns=7))
    assert by_number.run_id == other.run_id
    names = [store.write_upload(engine, info(c), store.RunInfo(), batches()).run for c in ("e", "f", "g")]
    assert names == ["profile", "profile-2", "profile-3"]
    with pytest.raises(NotFoundError):
        store.write_upload(engine, info("h"), store.RunInfo(run_id=99), batches())


def test_a_named_device_stands_in_for_launches_without(engine: Engine) -> None:
    nameless = batches(2, device=[None, None])
    store.write_upload(engine, info(), store.RunInfo(device="H200"), nameless)
    assert store.launches(engine, 1)["device"].tolist() == ["H200", "H200"]
    assert store.select(engine, "v1_runs")[0]["device"] == "H200"
    store.write_upload(engine, info("b"), store.RunInfo(device="A100"), iter(()))
    assert store.select(engine, "v1_runs", run_id=2)[0]["device"] == "A100"


def test_rules_and_rejects(engine: Engine) -> None:
    extra = Batch(
        {
            "rules": frame(
                "rules", {"launch_index": [0], "rule": ["Roofline"], "kind": ["global"], "message": ["do"], "line": [3]}
            ),
            "rejects": frame("rejects", {"line": [9], "lines": [2], "reason": ["cut"], "text": ['"1,2']}),
            "metrics": frame(
                "metrics", {"launch_index": [None], "metric": ["clock"], "raw_text": ["1"], "value": [1.0], "line": [1]}
            ),
        },
        lines_rejected=2,
        message="half of it",
    )
    done = store.write_upload(engine, info(), store.RunInfo(), [*batches(1), extra])
    assert (done.status, done.lines, done.lines_rejected, done.message) == ("partial", 5, 2, "half of it")
    assert store.select(engine, "v1_rejects") == [
        {"upload_id": 1, "run_id": 1, "line": 9, "lines": 2, "reason": "cut", "text": '"1,2'}
    ]
    (rule,) = store.select(engine, "v1_rules")
    assert (rule["rule"], rule["kind"], rule["kernel_short"], rule["section"]) == ("Roofline", "global", "gemm", None)
    (whole,) = store.select(engine, "v1_metrics", launch_id=None)
    assert (whole["metric"], whole["kernel"], whole["upload_id"]) == ("clock", None, 1)


@pytest.mark.parametrize(
    ("batch", "words"),
    [
        (Batch({}, lines_rejected=1), "rejects span 0"),
        (
            Batch(
                {"metrics": frame("metrics", {"launch_index": [7], "metric": ["m"], "raw_text": ["1"], "line": [1]})}
            ),
            "metrics of launch 7",
        ),
    ],
)
def test_a_reader_that_contradicts_itself_is_refused(engine: Engine, batch: Batch, words: str) -> None:
    with pytest.raises(DomainError, match=words):
        store.write_upload(engine, info(), store.RunInfo(), [*batches(), batch])
    assert not left(engine)


def test_rules_of_no_launch_are_refused(engine: Engine) -> None:
    rule = {"launch_index": [7], "rule": ["Roofline"], "message": ["do"], "line": [3]}
    words = "rules of launch 7, but no such launch" if engine.dialect.name == "postgresql" else "FOREIGN KEY"
    with pytest.raises(ProfsvcError, match=words):
        store.write_upload(engine, info(), store.RunInfo(), [*batches(), Batch({"rules": frame("rules", rule)})])
    assert not left(engine)


def test_gaps_between_launches_are_allowed(engine: Engine) -> None:
    gap = batches(1, launch_index=[5])
    (batch,) = gap
    only = Batch({"launches": batch.tables["launches"]}, lines_stored=1)
    store.write_upload(engine, info(), store.RunInfo(), [only])
    assert store.launches(engine, 1)["launch_index"].tolist() == [5]


def test_too_many_launches_are_refused(engine: Engine) -> None:
    (batch,) = batches(1, launch_index=[10**9])
    with pytest.raises(InputError, match="split"):
        store.write_upload(engine, info(), store.RunInfo(), [batch])


def _hashed_later(content: str) -> store.UploadInfo:
    upload = info(content)
    return replace(upload, sha256=upload.digest)


def _upload(
    url: str,
    upload: store.UploadInfo,
    barrier: "multiprocessing.synchronize.Barrier",
    answers: "multiprocessing.Queue[object]",
) -> None:
    engine = store.open_store(url, COUNTERS)
    barrier.wait()
    done = store.write_upload(engine, upload, store.RunInfo(), batches(40))
    answers.put((done.upload_id, done.run_id, done.known))


@pytest.mark.parametrize("of", [info, _hashed_later])
def test_two_processes_with_the_same_file_make_one_upload(
    engine: Engine, url: str, of: Callable[[str], store.UploadInfo]
) -> None:
    context = multiprocessing.get_context("fork")
    barrier, answers = context.Barrier(3), context.Queue()
    processes = [context.Process(target=_upload, args=(url, of("same"), barrier, answers)) for _ in range(3)]
    for process in processes:
        process.start()
    got = sorted(answers.get(timeout=60) for _ in processes)
    for process in processes:
        process.join()
    answers.close()
    assert [known for _, _, known in got] == [False, True, True]
    assert len({(upload_id, run_id) for upload_id, run_id, _ in got}) == 1
    assert len(store.select(engine, "v1_uploads")) == 1


def test_bytes_that_are_hashed_as_they_are_read_are_stored_once(engine: Engine) -> None:
    first = store.write_upload(engine, _hashed_later("a"), store.RunInfo(name="r"), batches())
    counts = rows(engine)
    again = store.write_upload(engine, _hashed_later("a"), store.RunInfo(name="r"), batches())
    assert (again.known, again.upload_id) == (True, first.upload_id)
    assert rows(engine) == counts
    assert store.select(engine, "v1_uploads")[0]["sha256"] == info("a").digest()


def _after_the_first(go: threading.Event, begun: threading.Event) -> Iterator[Batch]:
    first, *rest = batches(begin_ns=7)
    yield first
    begun.set()
    assert go.wait(60)
    yield from rest


@only_on("postgresql", "on SQLite one process writes at a time")
def test_a_run_is_deleted_after_those_who_load_into_it(
    engine: Engine, stored: store.StoredUpload, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(load, "SMALL_FILE_ROWS", -1)  # it begins to write before all is read
    go, begun = threading.Event(), threading.Event()
    with ThreadPoolExecutor(2) as pool:
        run = store.RunInfo(name="first")
        loading = pool.submit(store.write_upload, engine, info("b"), run, _after_the_first(go, begun))
        assert begun.wait(60)
        deleting = pool.submit(store.delete_run, engine, stored.run_id)
        assert not wait([deleting], 0.2).done
        go.set()
        assert loading.result(60).run_id == stored.run_id
        deleting.result(60)
    assert left(engine) == {"deleted_uploads"}
    assert [row["upload_id"] for row in store.deleted_uploads(engine)] == [1, 2]


@only_on("postgresql", "on SQLite one process writes at a time")
@pytest.mark.parametrize("by", ["name", "number"])
def test_who_loads_into_a_run_that_is_being_deleted_waits(engine: Engine, stored: store.StoredUpload, by: str) -> None:
    run = store.RunInfo(name="first") if by == "name" else store.RunInfo(run_id=stored.run_id)
    with ThreadPoolExecutor(1) as pool:
        with writing(engine) as connection:
            connection.execute(text("DELETE FROM runs"))
            loading = pool.submit(store.write_upload, engine, info("b"), run, batches())
            assert not wait([loading], 0.2).done
        if by == "number":
            with pytest.raises(NotFoundError, match="no run has the number 1"):
                loading.result(60)
        else:
            assert loading.result(60).run_id == stored.run_id + 1


@only_on("sqlite", "a server takes the rows as they come")
def test_what_goes_wrong_while_rows_are_laid_out_leaves_nothing(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise InputError("no space is left")

    monkeypatch.setattr(load, "SMALL_FILE_ROWS", -1)
    monkeypatch.setattr(staging.StagedSink, "write", full)
    with pytest.raises(InputError, match="no space is left"):
        store.write_upload(engine, info("b"), store.RunInfo(name="first"), batches())
    assert left(engine) == set()
    assert staging.orphaned_folders(Path(engine.url.database or "")) == []


def test_what_was_deleted_meanwhile_is_not_read_again(engine: Engine, stored: store.StoredUpload) -> None:
    again = replace(info(), upload_id=stored.upload_id)
    store.write_upload(engine, info("b"), store.RunInfo(run_id=stored.run_id), batches(begin_ns=7))
    prepare = store.rereading(stored.upload_id, stored.run_id)
    store.delete_upload(engine, stored.upload_id)
    with pytest.raises(NotFoundError, match="no upload has the number 1"):
        store.write_upload(engine, again, store.RunInfo(run_id=stored.run_id), batches(), prepare)
    assert [row["upload_id"] for row in store.select(engine, "v1_uploads")] == [2]


def test_a_name_with_nul_is_refused_everywhere(engine: Engine) -> None:
    with pytest.raises(InputError, match=r"the name 'sax.x00py' in the file contains a NUL character"):
        store.write_upload(engine, info(), store.RunInfo(), batches(2, kernel=["sax\0py", "a"]))
    sensor = {"sensor_index": [0], "quantity": ["power"], "name": ["rail\0"], "unit": ["W"], "line": [1]}
    with pytest.raises(InputError, match=r"the name 'rail.x00' in the file contains a NUL character"):
        store.write_upload(engine, info(), store.RunInfo(), [Batch({"sensors": frame("sensors", sensor)})])
    assert store.select(engine, "v1_uploads") == []


def test_long_names_of_templates_are_kept(engine: Engine) -> None:
    long = f"void run<{', '.join(f'Layout<Shape<C<{i}>, C<{i + 1}>>, Stride<C<1>, C<{i}>>>' for i in range(300))}>(int)"
    store.write_upload(engine, info(), store.RunInfo(), batches(2, kernel=[long, "a"]))
    assert {row["kernel"] for row in store.select(engine, "v1_launches")} == {long, "a"}
    assert len(long) > 10_000
    with reading(engine) as connection:
        assert connection.execute(text("SELECT count(*) FROM kernels")).scalar_one() == 2


@only_on("postgresql", "an index holds texts of any length elsewhere")
def test_a_name_that_no_index_holds_is_refused(engine: Engine) -> None:
    noise = "".join(random.Random(1).choices(string.ascii_letters, k=20_000))
    metric = {"metric": [noise], "raw_text": ["1"], "line": [1]}
    with pytest.raises(InputError, match="a name in the file is longer than the server can index"):
        store.write_upload(engine, info(), store.RunInfo(), [Batch({"metrics": frame("metrics", metric)})])
    assert store.select(engine, "v1_uploads") == []
