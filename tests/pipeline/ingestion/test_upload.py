"""The joiner: the same account whether checked or stored, the same rows however often."""

import gzip
import hashlib
import io
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from sqlalchemy import Engine

from profsvc import analysis, pipeline, store
from profsvc.errors import InputError, NoSpaceError, NotFoundError
from profsvc.store.ingest import incoming_file
from profsvc.views.explain.numbers import explain

FIXTURES = Path(__file__).parents[3] / "fixtures"
FILES = sorted(
    path
    for folder in ("ncu_raw", "ncu_details", "ncu_text", "ncu_summary", "ncu_session")
    for path in (FIXTURES / folder).iterdir()
    if path.suffix in {".csv", ".txt", ".gz"} and not path.name.startswith("bad_")
)
BAD = sorted(path for path in FIXTURES.glob("*/bad_*") if path.suffix != ".txt")
ACCOUNT = ("sha256", "format", "launches", "metrics", "lines", "lines_stored", "lines_skipped", "lines_rejected",
           "message", "facts")  # fmt: skip
RUN = store.RunInfo(name="r")


def ingest(engine: Engine, path: Path, run: store.RunInfo = RUN, **options: object) -> pipeline.ImportResult:
    with path.open("rb") as stream:
        return pipeline.ingest(engine, stream, path.name, run, **options)


def check(path: Path, **options: object) -> pipeline.ImportResult:
    with path.open("rb") as stream:
        return pipeline.check_file(stream, path.name, **options)


@store.snapshot
def rows(engine: Engine) -> dict[str, list[dict]]:
    return {view: store.select(engine, view) for view in store.VIEWS}


def test_a_disk_that_fills_after_the_file_is_stored_is_not_said_to_have_stored_nothing(engine, monkeypatch):
    def full(*_: object, **__: object) -> None:
        raise NoSpaceError("a.sqlite: the disk of the store is full; nothing was changed; free some space and retry")

    file = FIXTURES / "ncu_raw" / "plain.csv"
    with monkeypatch.context() as patched:
        patched.setattr(pipeline.analysis, "analyze", full)
        with pytest.raises(NoSpaceError) as raised:
            ingest(engine, file)
    assert str(raised.value) == (
        "plain.csv is stored as upload 1 of run 'r' (id 1), but its results are not: a.sqlite: the disk of the store "
        "is full; free some space and retry; then run: profsvc analyze id:1"
    )
    assert len(store.select(engine, "v1_uploads")) == 1
    assert ingest(engine, file).known  # the same command goes on
    assert store.select(engine, "v1_criteria")


def test_a_run_that_is_deleted_while_its_results_are_computed_is_told(engine, monkeypatch):
    analyze = pipeline.analysis.analyze

    def deleted_first(engine: Engine, run_id: int, **how: object) -> int:
        store.delete_run(engine, run_id)
        return analyze(engine, run_id, **how)

    monkeypatch.setattr(pipeline.analysis, "analyze", deleted_first)
    told = r"plain.csv was stored in run 'r', which was deleted before its results were computed; upload the file again"
    with pytest.raises(NotFoundError, match=told):
        ingest(engine, FIXTURES / "ncu_raw" / "plain.csv")
    monkeypatch.undo()
    assert ingest(engine, FIXTURES / "ncu_raw" / "plain.csv").launches == 2


def test_checking_and_storing_give_one_account(engine, monkeypatch):
    monkeypatch.setattr(pipeline.analysis, "analyze", lambda *_, **__: 0)
    for path in FILES:
        try:
            checked = check(path)
        except InputError:
            with pytest.raises(InputError, match="it contains nothing to store"):
                ingest(engine, path, store.RunInfo(name=path.name))
            continue
        stored = ingest(engine, path, store.RunInfo(name=str(path)))
        assert {k: getattr(stored, k) for k in ACCOUNT} == {k: getattr(checked, k) for k in ACCOUNT}, path
        assert checked.lines == checked.lines_stored + checked.lines_skipped + checked.lines_rejected > 0
        assert (checked.upload_id, checked.run_id, checked.known, stored.known) == (None, None, False, False)
        assert stored.sha256 == hashlib.sha256(path.read_bytes()).hexdigest()
        recalled = ingest(engine, path, store.RunInfo(name=str(path)))
        assert recalled.known
        for name in ACCOUNT:
            if name not in {"metrics", "facts"}:
                assert getattr(recalled, name) == getattr(stored, name), (path, name)


@pytest.fixture(scope="module")
def refusing(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Engine, list[str]]]:
    """A store with a file in it, which no test may change, and all its rows."""
    engine = store.open_store(str(tmp_path_factory.mktemp("refusing") / "store.sqlite"), pooled=True)
    ingest(engine, FIXTURES / "ncu_raw" / "plain.csv")
    yield engine, whole(engine)
    engine.dispose()


def whole(engine: Engine) -> list[str]:
    """Every row of every table of a SQLite store, as SQL; but for what was refused."""
    with closing(sqlite3.connect(str(engine.url.database))) as connection:
        return [line for line in connection.iterdump() if '"refusals"' not in line and "'refusals'" not in line]


@pytest.mark.parametrize("path", BAD, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_a_refused_file_leaves_nothing_but_a_note(refusing, path):
    engine, before = refusing
    with pytest.raises(InputError) as stored:
        ingest(engine, path)
    noted = store.select(engine, "v1_refusals")[-1]
    assert (noted["file_name"], noted["code"]) == (path.name, stored.value.code())
    assert noted["message"] == str(stored.value)[: len(noted["message"])]
    assert noted["sha256"] == hashlib.sha256(path.read_bytes()).hexdigest()
    with pytest.raises(InputError) as checked:
        check(path)
    assert str(stored.value) == str(checked.value)
    assert whole(engine) == before
    assert len([line for line in before if line.startswith('INSERT INTO "launches"')]) > 0


def test_the_same_bytes_are_stored_once(engine):
    path = FIXTURES / "ncu_raw" / "h200_three_launches.csv.gz"
    first = ingest(engine, path)
    before = rows(engine)
    for run in (RUN, store.RunInfo(run_id=1), store.RunInfo()):  # who names no run gets what the project has
        again = ingest(engine, path, run)
        assert (again.known, again.upload_id, again.run_id, again.run) == (True, first.upload_id, first.run_id, "r")
    assert rows(engine) == before


def test_other_bytes_of_the_same_text_are_another_upload(engine):
    path = FIXTURES / "ncu_raw" / "plain.csv"
    first = ingest(engine, path)
    packed = pipeline.ingest(engine, io.BytesIO(gzip.compress(path.read_bytes())), "plain.csv.gz", RUN)
    assert (packed.known, packed.run_id) == (False, first.run_id)
    assert packed.lines == first.lines
    assert store.select(engine, "v1_runs")[0]["uploads"] == 2


def test_an_analysis_cut_short_is_made_up_for_by_the_same_bytes(engine, monkeypatch):
    path = FIXTURES / "ncu_raw" / "plain.csv"
    with monkeypatch.context() as patched:
        patched.setattr(analysis, "analyze_launches", lambda *_: (_ for _ in ()).throw(MemoryError("cut short")))
        with pytest.raises(MemoryError):
            ingest(engine, path)
    (run,) = store.select(engine, "v1_runs")
    assert (run["launches"], run["analysis_version"]) == (2, None)
    assert store.select(engine, "v1_criteria") == []
    assert ingest(engine, path).known
    assert store.select(engine, "v1_runs")[0]["analysis_version"] == analysis.VERSION
    assert len(store.select(engine, "v1_criteria")) > 0


@pytest.mark.usefixtures("computed")
def test_analyses_repeat_bit_for_bit(engine):
    ingest(engine, FIXTURES / "ncu_raw" / "h200_three_launches.csv.gz")
    before, seen = rows(engine), []
    assert pipeline.analyze(engine, 1, seen.append) == 3
    assert seen == [3]
    assert rows(engine) == before


def test_analysis_does_not_depend_on_the_order_of_files(tmp_path):
    paths = [FIXTURES / "ncu_raw" / "h200_three_launches.csv.gz", FIXTURES / "ncu_raw" / "plain.csv"]
    found = []
    for number, order in enumerate((paths, paths[::-1])):
        engine = store.open_store(str(tmp_path / f"{number}.sqlite"), pooled=True)
        for path in order:
            ingest(engine, path)
        names = {u["upload_id"]: u["file_name"] for u in store.select(engine, "v1_uploads")}
        where = {
            n["launch_id"]: (names[n["upload_id"]], n["launch_index"]) for n in store.select(engine, "v1_launches")
        }
        found.append(
            {
                (where[row["launch_id"]], row["criterion"]): (row["value"], row["speedup"], row["flags"])
                for row in store.select(engine, "v1_criteria")
                if row["launch_id"] is not None
            }
        )
        engine.dispose()
    assert found[0] == found[1]


@pytest.mark.parametrize("name", ["ncu_raw/plain.csv", "ncu_raw/h200_three_launches.csv.gz"])
def test_progress_adds_up_to_the_size(engine, name, monkeypatch):
    monkeypatch.setattr(incoming_file, "BLOCK_BYTES", 250)
    path, seen, again = FIXTURES / name, [], []
    check(path, progress=seen.append)
    ingest(engine, path, progress=again.append)
    assert sum(seen) == sum(again) == path.stat().st_size
    assert len(seen) == -(-path.stat().st_size // 1000)


def test_the_demo_files_are_there_and_are_read():
    files = pipeline.demo_files()
    assert files
    assert sum(check(path).launches for path in files) == 34


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_a_session_page_names_the_device_of_another_page(engine: Engine, order: tuple[int, int]) -> None:
    pages = (FIXTURES / "ncu_details" / "columns_15.csv", FIXTURES / "ncu_session" / "h200.csv")
    for place in order:
        ingest(engine, pages[place])
    counters = store.select(engine, "v1_counters")
    assert counters
    assert {row["sm_count"] for row in counters} == {132}
    run_id = store.select(engine, "v1_runs")[0]["run_id"]
    steps = explain(engine, "sm_count", str(run_id), "0")["trace"]
    assert [(row["file"], row["line"]) for row in steps if row.get("metric")] == [("h200.csv", 28)]


@pytest.mark.parametrize(
    ("file", "how", "clock", "moved_s"),
    [
        ("local", pipeline.ReadOptions(), "local", 0),
        ("local", pipeline.ReadOptions(offset_s=1.5), "local", 0),
        ("local", pipeline.ReadOptions(zone="Europe/Berlin", offset_s=1.5), "utc", -3601.5),
        ("h200", pipeline.ReadOptions(zone="Europe/Berlin"), "utc", 0),
        ("h200", pipeline.ReadOptions(offset_s=1.5), "utc", -1.5),
    ],
)
def test_marks_are_placed_as_readings_are(engine, file, how, clock, moved_s):
    ingest(engine, FIXTURES / "marks" / f"{file}.csv", how=how)
    first = store.marks_of_run(engine, 1).iloc[0]
    assert (first["clock"], first["start_ns"]) == (clock, 1795180576203000000 + round(moved_s * 1e9))
    assert first["duration_ns"] == 25e9


@pytest.mark.parametrize(("zone", "extra", "told"), [
    (None, "", "the time goes back 1 time"), ("Europe/Berlin", "", None),
    ("Europe/Berlin", "2024/10/27 03:30:00.000, 99.5\n2024/10/27 03:10:00.000, 98.5\n",
     "the time goes back 1 time"),
])  # fmt: skip
def test_the_time_goes_back_only_where_that_in_the_zone_does(engine, zone, extra, told):
    rows = [f"2024/10/27 02:{minute:02}:00.000, {100 + minute}.5\n" for minute in range(60)]
    before = [row.replace(" 02:", " 01:") for row in rows]
    log = "timestamp, power.draw [W]\n" + "".join([*before, *rows, *rows[:30], extra])
    result = pipeline.ingest(engine, io.BytesIO(log.encode()), "smi.csv", RUN, how=pipeline.ReadOptions(zone=zone))
    assert result.warnings == ([f"power.draw: {told}"] if told else [])
    (sensor,) = store.select(engine, "v1_sensors")
    assert sensor["quality"] == told


def test_marks_that_are_there_say_how_they_were_placed(engine):
    path = FIXTURES / "marks" / "local.csv"
    ingest(engine, path, how=pipeline.ReadOptions(zone="Europe/Berlin"))
    again = ingest(engine, path, how=pipeline.ReadOptions(zone="UTC"))
    assert "it was read with --timezone Europe/Berlin and stays as it was read" in again.message


def test_a_run_without_a_log_of_power_has_nothing_of_it_written(engine, monkeypatch):
    monkeypatch.setattr(store, "save_power", lambda *_: pytest.fail("a load without power must not pay for it"))
    ingest(engine, FIXTURES / "ncu_raw" / "plain.csv")
    ingest(engine, FIXTURES / "marks" / "h200.csv")


def test_a_file_that_comes_during_an_analysis_is_in_it(engine, monkeypatch):
    """The older analysis is not written over the newer one, whichever ends last."""
    saved, own, power = [], store.save_results, store.save_power

    def slowly(engine, run_id, parts, version, seen, scope):
        found = list(parts)  # the launches of one file
        if len(saved) < 1:
            saved.append("begun")
            ingest(engine, FIXTURES / "ncu_raw" / "h200_three_launches.csv.gz", store.RunInfo(run_id=run_id))
        done = own(engine, run_id, found, version, seen, scope)
        saved.append(done)
        return done

    def with_power(engine, run_id, frames, version, seen):
        assert not power(engine, run_id, frames, version, seen - 1)
        return power(engine, run_id, frames, version, seen)

    monkeypatch.setattr(store, "save_results", slowly)
    monkeypatch.setattr(store, "save_power", with_power)
    run_id = ingest(engine, FIXTURES / "ncu_raw" / "plain.csv").run_id
    ingest(engine, FIXTURES / "nvidia_smi" / "units.csv", store.RunInfo(run_id=run_id))
    assert saved == ["begun", True, False, True, True]
    rows = store.select(engine, "v1_potential", run_id=run_id)
    launches = {row["launch_id"] for row in store.select(engine, "v1_launches", run_id=run_id)}
    assert {row["launch_id"] for row in rows} == launches | {None}
    assert {row["upload_id"] for row in store.select(engine, "v1_uploads", run_id=run_id)} == {1, 2, 3}


def test_a_launch_has_the_same_results_alone_in_its_file(engine):
    content = gzip.decompress((FIXTURES / "ncu_raw" / "h200_three_launches.csv.gz").read_bytes())
    *header, first, second, third = (line for line in content.splitlines(keepends=True) if line.startswith(b'"'))
    for run, files in (("whole", [(first, second, third)]), ("parts", [(first,), (second,), (third,)])):
        for lines in files:
            pipeline.ingest(engine, io.BytesIO(b"".join([*header, *lines])), "f.csv", store.RunInfo(name=run))
    for view in ("v1_counters", "v1_criteria", "v1_potential", "v1_models", "v1_causes"):
        whole, parts = (
            [
                {key: value for key, value in row.items() if key not in {"run_id", "launch_id"}}
                for row in store.select(engine, view, run_id=run_id)
            ]
            for run_id in (1, 2)
        )
        assert len(whole) == len(parts) > 0
        for one, other in zip(whole, parts, strict=True):
            same = {key: value if isinstance(value, str) else pytest.approx(value) for key, value in other.items()}
            assert one == same
