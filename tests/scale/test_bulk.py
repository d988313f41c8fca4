"""Files and runs in bulk, in this process: what becomes of each, and what runs take from each other."""

import os
import re
import shutil
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine

from profsvc import pipeline, scale, store
from profsvc.errors import ServiceError
from profsvc.scale import bulk
from profsvc.scale.work import Opened, analyze_boards
from tests.benchmarks.cluster import different, export, rows_of_views
from tests.conftest import ROOT

FIXTURES = ROOT / "fixtures"
HOW = pipeline.ReadOptions(zone="UTC")


def load(place: Opened, mapped: Any, *paths: Path, **options: Any) -> list[scale.Outcome]:
    groups = scale.group_files(list(map(str, paths)))
    return list(scale.ingest(place, mapped, groups, store.RunInfo(project="lab"), HOW, **options))


def backwards(place: Opened) -> Any:
    """Work in this process, the last item first, as if its worker were the fastest."""

    def mapped(function: Any, items: Iterable[Any]) -> Iterator[tuple[Any, Any]]:
        for item in reversed(list(items)):
            yield item, function(place, item)

    return mapped


def test_a_bad_file_stops_no_other_and_a_second_time_all_are_known(place: Opened, tmp_path: Path) -> None:
    good, bad = FIXTURES / "ncu_raw" / "plain.csv", FIXTURES / "ncu_raw" / "bad_cut_header.csv"
    (tmp_path / "locked.csv").mkdir()
    done = load(place, scale.one_process(place), bad, good)
    assert [(Path(one.file).name, one.run, one.status, one.exit_code) for one in done] == [
        ("bad_cut_header.csv", "bad_cut_header", "refused", 6),
        ("plain.csv", "plain", "stored", 0),
    ]
    assert "unrecognized format" in done[0].message
    again = load(place, scale.one_process(place), bad, good)
    assert [one.status for one in again] == ["refused", "known"]
    assert [run["launches"] for run in store.select(place.engine, "v1_runs")] == [2]


def test_what_is_no_file_and_odd_names_are_told(place: Opened, tmp_path: Path) -> None:
    (folder := tmp_path / "exports").mkdir()
    good = (FIXTURES / "ncu_raw" / "plain.csv").read_bytes()
    (folder / "a_link.csv").symlink_to(tmp_path / "nowhere")
    os.mkfifo(folder / "b_pipe.csv")
    (folder / "c_empty.csv").touch()
    (folder / os.fsdecode(b"d_bad\xff.csv")).write_bytes(good)
    (folder / f"e_{'n' * 240}.csv").write_bytes(good + b"\n")
    done = load(place, scale.one_process(place), folder)
    assert [(one.status, one.run[:8]) for one in done] == [
        *(("refused", "a_link"), ("refused", "b_pipe"), ("refused", "c_empty")),
        *(("stored", r"d_bad\xff"[:8]), ("stored", "e_nnnnnn")),
    ]
    assert [one.message for one in done[:3]] == [
        f"it is a link to '{tmp_path / 'nowhere'}', which is not there; remove or mend the link",
        "it is a pipe, a socket or a device, not a file; to read a pipe, give its name to profsvc upload",
        "c_empty.csv is empty; re-run the export",
    ]
    assert next(run["name"] for run in store.select(place.engine, "v1_runs")) == r"d_bad\xff"


def test_a_defect_in_one_file_is_told_and_stops_no_other(place: Opened, monkeypatch: pytest.MonkeyPatch) -> None:
    ingest = pipeline.ingest

    def broken(engine: Engine, stream: Any, name: str, *given: Any, **named: Any) -> Any:
        if name == "swiss.csv":
            raise ZeroDivisionError("by nothing")
        return ingest(engine, stream, name, *given, **named)

    monkeypatch.setattr(pipeline, "ingest", broken)
    done = load(place, scale.one_process(place), FIXTURES / "ncu_raw" / "swiss.csv", FIXTURES / "ncu_raw" / "plain.csv")
    assert [(one.status, one.exit_code) for one in done] == [("failed", 5), ("stored", 0)]
    assert "ZeroDivisionError: by nothing" in done[0].message
    assert "PROFSVC_DEBUG=1 profsvc upload" in done[0].message


def test_files_whose_workers_died_are_told(place: Opened) -> None:
    done = load(place, lambda function, items: ((item, None) for item in items), FIXTURES / "ncu_raw" / "plain.csv")
    assert [(one.status, one.exit_code) for one in done] == [("failed", 5)]
    assert "the worker that read it died again and again" in done[0].message


def test_a_failure_of_power_between_the_files_is_tried_again_at_the_end_and_told(
    place: Opened, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bulk, "RUNS_PER_ANALYSIS", 1)
    (folder := tmp_path / "exports").mkdir()
    for number in range(3):
        (folder / f"{number}_power.csv").write_text(board_log(number))
    files = [folder / f"{number}_power.csv" for number in range(3)]

    def broken(engine: Engine, run_id: int, **options: Any) -> Any:
        raise ServiceError(f"no power of {run_id}")

    with monkeypatch.context() as patched:
        patched.setattr(pipeline, "analyze_power", broken)
        groups = scale.group_files(list(map(str, files)))
        working = scale.ingest(place, scale.one_process(place), groups, store.RunInfo(), HOW)
        assert [next(working).status for _ in range(3)] == ["stored"] * 3
        with pytest.raises(ServiceError, match="no power of 1"):
            next(working)
    assert store.unfinished(place.engine) == {run: [store.POWER_PART] for run in (1, 2, 3)}
    assert [
        one.status for one in list(scale.ingest(place, scale.one_process(place), groups, store.RunInfo(), HOW))
    ] == ["known"] * 3
    assert not store.unfinished(place.engine)


def test_a_worker_that_dies_of_the_power_is_told(place: Opened, tmp_path: Path) -> None:
    (tmp_path / "power.csv").write_text(board_log(0))
    here = scale.one_process(place)

    def mapped(function: Any, items: Iterable[Any]) -> Iterator[tuple[Any, Any]]:
        return here(function, items) if function is not analyze_boards else ((item, None) for item in items)

    with pytest.raises(ServiceError, match="died again and again; run: profsvc analyze id:1"):
        load(place, mapped, tmp_path / "power.csv")


def test_the_time_of_a_file_is_that_of_its_run(place: Opened, tmp_path: Path) -> None:
    file = tmp_path / "plain.csv"
    file.write_bytes((FIXTURES / "ncu_raw" / "plain.csv").read_bytes())
    os.utime(file, (1_700_000_000, 1_700_000_000))
    load(place, scale.one_process(place), file, dated=True)
    assert store.select(place.engine, "v1_runs")[0]["started_at"] == "2023-11-14T22:13:20Z"


def loaded_both_ways(place: Opened, folder: Path, other: Path, empty: Path) -> dict[str, Any]:
    """Load a folder in order and backwards, see that the rows are equal, and return them."""
    other.write_bytes(empty.read_bytes())
    engine = store.open_store(str(other), pooled=True)
    turned = Opened(engine, store.blob_store_of(engine))
    try:
        load(place, scale.one_process(place), folder)
        load(turned, backwards(turned), folder)
        runs = {run["run_id"]: run["name"] for run in store.select(engine, "v1_runs")}
        assert [runs[number] for number in sorted(runs)] == sorted(runs.values())
        rows = rows_of_views(place.engine)
        assert different(rows_of_views(engine), rows) == {}
        return rows
    finally:
        engine.dispose()


@pytest.mark.parametrize("at_once", [2, 20])
def test_later_runs_of_a_board_take_what_earlier_ones_found_whoever_ends_first(
    at_once: int, place: Opened, tmp_path: Path, empty: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bulk, "RUNS_PER_ANALYSIS", at_once)
    analyzed: list[int] = []
    analyze_power = pipeline.analyze_power

    def noted(engine: Engine, run_id: int, **options: Any) -> Any:
        analyzed.append(run_id)
        return analyze_power(engine, run_id, **options)

    monkeypatch.setattr(pipeline, "analyze_power", noted)
    (folder := tmp_path / "exports").mkdir()
    for number in range(3):
        (folder / f"{number}_power.csv").write_text(board_log(number))
    (folder / "9_plain.csv").write_bytes((FIXTURES / "ncu_raw" / "plain.csv").read_bytes())
    rows = loaded_both_ways(place, folder, tmp_path / "other.sqlite", empty)
    assert analyzed == [1, 2, 3] * 2, "each run once, in order, however they are stored"
    assert not store.unfinished(place.engine)
    assert rows["v1_power_coefficients"], "the logs tell no coefficient, so the test shows nothing"


@pytest.fixture
def address(request: pytest.FixtureRequest, tmp_path: Path, empty: Path) -> str:
    """The address of an empty store of each kind."""
    if request.getfixturevalue("database") == "postgres":
        return str(request.getfixturevalue("postgres_whole_url"))
    (tmp_path / "store_of_killed.sqlite").write_bytes(empty.read_bytes())
    return str(tmp_path / "store_of_killed.sqlite")


# Loads files in a process that is killed at the n-th call of a function of the pipeline.
KILLED = """
import os, signal, sys
from pathlib import Path
from profsvc import pipeline, scale, store
from profsvc.scale import bulk
from tests.benchmarks.cluster import opened
url, kept, folder, name, at = sys.argv[1:]
bulk.RUNS_PER_ANALYSIS = 2
function, calls = getattr(pipeline, name), []
def killed(*given, **named):
    calls.append(1)
    if len(calls) == int(at):
        os.kill(os.getpid(), signal.SIGKILL)
    return function(*given, **named)
setattr(pipeline, name, killed)
place = opened(url, Path(kept))
groups = scale.group_files([folder])
how = pipeline.ReadOptions(zone="UTC")
list(scale.ingest(place, scale.one_process(place), groups, store.RunInfo(project="lab"), how))
"""


def board_logs(folder: Path) -> Path:
    """Make a folder with the logs of four runs of a board."""
    folder.mkdir()
    for number in range(4):
        (folder / f"{number}_power.csv").write_text(board_log(number))
    return folder


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory, empty: Path) -> dict[str, Counter[str]]:
    """The rows of those logs where nothing is killed."""
    place = tmp_path_factory.mktemp("undisturbed")
    shutil.copy(empty, place / "store.sqlite")
    engine = store.open_store(str(place / "store.sqlite"), pooled=True)
    whole = Opened(engine, store.blob_store_of(engine))
    load(whole, scale.one_process(whole), board_logs(place / "exports"))
    assert not store.unfinished(engine)
    rows = rows_without_numbers(engine)
    engine.dispose()
    return rows


@pytest.mark.parametrize(
    ("database", "name", "at", "waiting"),
    [  # what waits is decided in Python: on Postgres is the one that has stored and analysed
        ("sqlite", "ingest", 4, [3]),  # half way: the power of two of three runs is analysed
        ("sqlite", "analyze_power", 1, [1, 2]),
        ("sqlite", "analyze_power", 3, [3, 4]),
        ("postgres", "ingest", 4, [3]),
    ],
)
def test_a_kill_while_files_load_or_their_power_waits_changes_no_row(
    database: str, name: str, at: int, waiting: list[int], address: str, opening: Callable[[str], Opened],
    tmp_path: Path, undisturbed: dict[str, Counter[str]], monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    folder = board_logs(tmp_path / "exports")
    command = [sys.executable, "-c", KILLED, address, str(tmp_path / "kept0"), str(folder), name, str(at)]
    assert subprocess.run(command, cwd=ROOT, check=False).returncode == -signal.SIGKILL
    place = opening(address)
    assert sorted(store.unfinished(place.engine)) == waiting
    analyzed: list[int] = []
    analyze_power = pipeline.analyze_power

    def noted(engine: Engine, run_id: int, **options: Any) -> Any:
        analyzed.append(run_id)
        return analyze_power(engine, run_id, **options)

    with monkeypatch.context() as patched:
        patched.setattr(pipeline, "analyze_power", noted)
        for _ in range(2):
            load(place, scale.one_process(place), folder)
    runs = sorted(row["run_id"] for row in store.select(place.engine, "v1_runs"))
    assert analyzed == runs[waiting[0] - 1 :], "once, from the first that waited"
    assert not store.unfinished(place.engine)
    assert different(rows_without_numbers(place.engine), undisturbed) == {}


def rows_without_numbers(engine: Engine) -> dict[str, Counter[str]]:
    """Return the rows of all views without the numbers of runs in texts: a killed command had reserved some."""
    return {
        view: Counter(re.sub(r"runs [\d, ]+ of", "runs of", row) for row in rows.elements())
        for view, rows in rows_of_views(engine).items()
    }


def test_a_characterization_counts_for_all_runs_that_came_with_it(place: Opened, tmp_path: Path, empty: Path) -> None:
    (folder := tmp_path / "exports").mkdir()
    (folder / "1_plain.csv").write_bytes((FIXTURES / "ncu_raw" / "plain.csv").read_bytes())
    (folder / "2_measured.csv").write_bytes((FIXTURES / "characterization" / "plain.csv").read_bytes())
    loaded_both_ways(place, folder, tmp_path / "other.sqlite", empty)


def board_log(number: int) -> str:
    """Return a log of nvidia-smi of one board, whose power rises with its temperature under three equal loads."""
    lines = ["timestamp, name, index, power.draw [W], temperature.gpu"]
    temperature = 35.0
    for second in range(240):
        loaded = second // 60 % 2 == 1
        temperature += ((75.0 if loaded else 38.0) - temperature) / 25
        power = (300.0 + number if loaded else 80.0) + 0.8 * (temperature - 40.0) + second % 7 * 0.05
        clock = f"2026/03/0{number + 1} 10:{second // 60:02}:{second % 60:02}.000"
        lines.append(f"{clock}, NVIDIA H200, 0, {power:.2f} W, {temperature:.0f}")
    return "\n".join(lines) + "\n"


def test_the_exports_of_the_benchmark_differ_and_are_read() -> None:
    texts = {export(kind, number, 5) for kind in ("smi", "nvprof", "nsys") for number in range(3)}
    assert len(texts) == 9


def test_a_run_that_cannot_be_analyzed_is_told_of_each_of_its_files(
    place: Opened, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder := tmp_path / "night").mkdir()
    for name in ("plain.csv", "bad_cut_header.csv", "swiss.csv"):
        shutil.copy(FIXTURES / "ncu_raw" / name, folder)
    groups = scale.group_files([str(folder)], "folder")

    def statuses() -> list[tuple[str, int]]:
        done = scale.ingest(place, scale.one_process(place), groups, store.RunInfo(), HOW)
        return [(one.status, one.exit_code) for one in done]

    def broken(*_: Any, **__: Any) -> None:
        raise ServiceError("no room")

    with monkeypatch.context() as patched:
        patched.setattr(pipeline.analysis, "analyze", broken)
        assert statuses() == [("refused", 6), ("failed", 5), ("failed", 5)]
    assert statuses() == [("refused", 6), ("known", 0), ("known", 0)]
    assert not store.unfinished(place.engine)
    assert store.select(place.engine, "v1_criteria")
