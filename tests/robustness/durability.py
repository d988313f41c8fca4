"""Kills uploads at random moments, and lets many processes upload at once, and holds the store against what it said.

``python -m tests.robustness.durability --kills 500`` runs it on SQLite, with ``--postgres`` on a server (of the tests,
or the one that PROFSVC_TEST_POSTGRES names). A process uploads file after file, each as a run or with ``--runs 3`` into
so many, and writes down each that was acknowledged; it is killed (SIGKILL) after a random time, and another goes on at
the first file that was not acknowledged. At the end the same files are uploaded undisturbed to a second store. Wrong is
an acknowledged file that is not there, a file whose rows are not those of the second store, a run whose results are
not, once what was cut short is finished, a file that is there twice, a row of no file, kept bytes that are missing or
damaged, a database that fails its own check, and a file left over that ``doctor`` does not list.

``--crowd 16`` lets so many processes upload 100 files each at once, half of which others upload too.
"""

import hashlib
import io
import multiprocessing
import os
import random
import re
import signal
import sqlite3
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from sqlalchemy import Engine, text

from profsvc import pipeline, store
from profsvc.store.connection.transactions import reading
from profsvc.store.connection.urls import file_of
from profsvc.store.ingest import blob_store, staging
from profsvc.store.ingest import upload as load
from profsvc.store.ingest.store_copy import ReadingPace
from profsvc.store.maintenance import cleanup
from profsvc.store.results import writer as results_writer
from profsvc.store.schema.column_types import IDS_PER_UPLOAD
from profsvc.store.schema.results import launch_results as schema
from tests.benchmarks.reading import gpu_trace, ncu_raw, smi_log
from tests.command_line import parser_of
from tests.environment import postgres

Make = Callable[[int], Iterator[str]]
SLOWER = 2  # a file takes so much longer on a server, whose connections are made again
KINDS: tuple[tuple[Make, int], ...] = ((gpu_trace, 400), (smi_log, 150), (partial(ncu_raw, metrics=100), 3))
RUNS = 4  # that a crowd uploads into
# A new process that has imported what this module imports and what an upload imports when it first needs it, and no
# thread of the one that asks for it; also what a service and its clients import, of which other tests kill some. The
# module itself runs in every process.
FORK = multiprocessing.get_context("forkserver")
FORK.set_forkserver_preload(
    [
        "profsvc.pipeline.ingestion.upload",
        "profsvc.pipeline.analysis",
        "profsvc.formats.reading",
        "profsvc.store.opening",
        "pyarrow.csv",
        "scipy.special",
        "tests.benchmarks.reading",
        "tests.environment.postgres",
        "profsvc.client.spool",
        "profsvc.web.app",
        "tests.web.conftest",
    ]
)
# Whatever an upload has rows in, and the key that says whose they are.
TABLES = {"launches": "launch_id", "metrics": "launch_ref", "samples": "sample_id", "transfers": "transfer_id"}
TABLES |= {"sample_blocks": "sensor_id"}
SUMS = {"launches": "duration_ns", "metrics": "line", "samples": "value", "transfers": "line"}
SUMS |= {"sample_blocks": "coalesce(length(readings) + radix + least, 0)"}


RESULTS = ("v1_criteria", "v1_potential", "v1_models", "v1_causes", "v1_power", "v1_power_quality")
# What the rows and the results of a file come to that was uploaded undisturbed, by its number.
UNDISTURBED: dict[int, tuple[Any, list[int]]] = {}


class Outcome(NamedTuple):
    """What was done and what was wrong."""

    done: dict[str, float]
    wrong: list[str]


class EagerPace(ReadingPace):
    """It is always time to copy."""

    def is_time_to_copy(self, _: int) -> bool:
        return True


def content(number: int) -> bytes:
    """Return the bytes of a file; every number gives another."""
    make, rows = KINDS[number % len(KINDS)]
    said = "" if make is smi_log else f"the program's output {number}\n"
    text = said + "".join(make(rows + number % 7))
    if make is gpu_trace:  # a program that begins at another second
        text = re.sub(r"(?m)^0\.", f"{number}.", text)
    if make is smi_log:
        last = datetime(2027, 1, 1) + timedelta(seconds=number)
        text += f"{last:%Y/%m/%d %H:%M:%S}.000, 0, 60.00 W, 30, 345 MHz, 0 %\n"
    return text.encode()


def run_of(number: int, runs: int) -> str:
    """Name the run of a file: its own, or one of so many."""
    return f"run {number % runs}" if runs else f"file {number}"


def drive(url: str, folder: str, ledger: str, numbers: list[int], runs: int = 0) -> None:
    """Upload files until killed, each as a run or into so many runs; write down each that is stored."""
    os.environ["PROFSVC_FILES"] = folder
    signal.signal(signal.SIGINT, signal.default_int_handler)  # behind ``&`` the server of forks ignores it
    try:
        engine = store.open_store(url)
        files = store.blob_store_of(engine, folder)
        with Path(ledger).open("ab", buffering=0) as book:
            for number in numbers:
                data = content(number)
                load.SMALL_FILE_ROWS = (
                    100 if number % 2 else 20_000
                )  # half of the files wait beside the store, as long ones do
                # Of these some are copied while they are read.
                staging.MIN_ROWS_FOR_PAGES, load.MIN_PART_BYTES = (1, 0) if number % 4 == 1 else (500, 8 << 20)
                load.ReadingPace = EagerPace if number % 4 == 1 else ReadingPace
                results_writer.MIN_STAGED_ROWS = 0 if number % 4 < 2 else 50_000
                run = store.RunInfo(name=run_of(number, runs), tags={"a": "1", "b": str(number)})
                verdict = pipeline.ingest(engine, io.BytesIO(data), f"{number}.csv", run, files=files)
                book.write(f"{number} {verdict.sha256} {verdict.upload_id}\n".encode())
    except BaseException:
        Path(f"{ledger}.{os.getpid()}.error").write_text(traceback.format_exc(), encoding="utf-8")
        os._exit(1)
    os._exit(0)


def book(ledger: Path) -> list[tuple[int, str, int]]:
    """Read what was acknowledged; a line that was cut by a kill does not count."""
    if not ledger.exists():
        return []
    whole = ledger.read_text().rpartition("\n")[0].splitlines()
    return [(int(number), sha256, int(upload)) for number, sha256, upload in map(str.split, whole)]


def _warm() -> float:
    """Upload a file of each kind, so that a new process has all imported; return the longest wait for a kill."""
    with tempfile.TemporaryDirectory() as folder:
        for turn in range(2):
            began, store_file = time.perf_counter(), f"{folder}/{turn}.sqlite"
            engine = store.open_store(store_file)
            for number in range(len(KINDS)):
                pipeline.ingest(
                    engine, io.BytesIO(content(number)), "", store.RunInfo(), files=store.blob_store_of(engine)
                )
            engine.dispose()
    return time.perf_counter() - began


def kills(url: str, folder: Path, count: int, seed: int = 1, runs: int = 0) -> Outcome:
    """Kill uploads so often, each file a run or into so many runs; return how it went."""
    draw, ledger, longest = random.Random(seed), folder / "ledger", _warm()
    if url.startswith("postgresql"):
        longest *= SLOWER
    began, inside = time.perf_counter(), 0
    for _ in range(count):
        first = len(book(ledger))
        process = FORK.Process(
            target=drive, args=(url, str(folder / "kept"), str(ledger), list(range(first, first + 99)), runs)
        )
        process.start()
        time.sleep(draw.uniform(0, longest))
        process.kill()
        process.join()
        inside += process.exitcode == -signal.SIGKILL
    took = time.perf_counter() - began
    acknowledged = book(ledger)
    wrong = [path.read_text() for path in folder.glob("ledger.*.error")]
    engine = store.open_store(url)
    try:
        left = store.unneeded_files(engine, store.blob_store_of(engine, str(folder / "kept")))
        wrong += compare(engine, folder, acknowledged, runs)
    finally:
        engine.dispose()
    if count > 50 and not acknowledged:
        wrong.append("no file was acknowledged: every process was killed too soon for the test to show anything")
    done = {"kills": inside, "acknowledged": len(acknowledged), "seconds": round(took, 1)}
    return Outcome(done | {"leftovers": len(left.leftovers), "orphans": len(left.orphans)}, wrong)


def _share(process: int, each: int, processes: int) -> list[int]:
    """Return the files of a process; the last one's neighbour is the first."""
    numbers = [(process * each // 2 + k) % (processes * each // 2) for k in range(each)]
    random.Random(process).shuffle(numbers)
    return numbers


def crowd(url: str, folder: Path, processes: int, each: int) -> Outcome:
    """Let many processes upload at once into a few runs; half of the files of each are its neighbour's too.

    The files name the same kernels and metrics, each process in an order of its own.
    """
    began, ledgers = time.perf_counter(), [folder / f"ledger{n}" for n in range(processes)]
    working = [
        FORK.Process(
            target=drive,
            args=(url, str(folder / "kept"), str(ledger), _share(n, each, processes), RUNS),
        )
        for n, ledger in enumerate(ledgers)
    ]
    for process in working:
        process.start()
    for process in working:
        process.join()
    took = time.perf_counter() - began
    wrong = [path.read_text() for path in folder.glob("ledger*.error")]
    entries = [entry for ledger in ledgers for entry in book(ledger)]
    if len(entries) != processes * each:
        wrong.append(f"{len(entries)} files were acknowledged, not {processes * each}")
    distinct = sorted(set(entries))
    if len({number for number, _, _ in distinct}) != len(distinct):
        wrong.append("the same bytes got several numbers")
    engine = store.open_store(url)
    try:
        wrong += compare(engine, folder, distinct)
        stored = len(store.select(engine, "v1_uploads"))
    finally:
        engine.dispose()
    return Outcome({"acknowledged": len(entries), "stored": stored, "seconds": round(took, 1)}, wrong)


def compare(engine: Engine, folder: Path, acknowledged: list[tuple[int, str, int]], runs: int = 0) -> list[str]:
    """Hold a store against what was acknowledged and against one that was never disturbed, with as many ``runs``."""
    files = store.blob_store_of(engine, str(folder / "kept"))
    pipeline.analyze_unfinished(engine, files)
    found, wrong = prints(engine), [*unowned(engine), *damaged(engine)]
    wrong += [f"run {number} lacks {' and '.join(parts)}" for number, parts in store.unfinished(engine).items()]
    uploads = {row["sha256"]: row for row in store.select(engine, "v1_uploads")}
    candidates = {number for number, _, _ in acknowledged}
    candidates.add(max(candidates, default=-1) + 1)  # it may be stored, and killed before it was acknowledged
    numbers = {hashlib.sha256(content(number)).hexdigest(): number for number in candidates}
    wrong += [
        f"file {number} was acknowledged and is gone" for number, sha256, _ in acknowledged if sha256 not in found
    ]
    wrong += [
        f"file {number} was acknowledged as upload {upload}, but is {uploads[sha256]['upload_id']}"
        for number, sha256, upload in acknowledged
        if sha256 in uploads and uploads[sha256]["upload_id"] != upload
    ]
    wrong += [f"upload {row['upload_id']} is of no file" for sha256, row in uploads.items() if sha256 not in numbers]
    stored = [numbers[sha256] for sha256 in found if sha256 in numbers]
    undisturbed = upload_undisturbed(stored)
    should = {sha256: undisturbed[numbers[sha256]][0] for sha256 in found if sha256 in numbers}
    results = {f"file {number}": counts for number, (_, counts) in undisturbed.items()}
    if runs:
        results = results_in_runs(stored, runs)
    made = counted_results(engine)
    wrong += [
        f"{run}: results {made[run]}, should be {should_be}"
        for run, should_be in results.items()
        if run in made and made[run] != should_be
    ]
    wrong += [f"file {numbers[s]}: {found[s]}, should be {should[s]}" for s in should if found[s] != should[s]]
    wrong += [f"kept bytes of file {numbers[s]}: {bad}" for s in should if (bad := blob_store.blob_damage(files, s))]
    return wrong + unlisted(engine, files)


def results_in_runs(numbers: list[int], runs: int) -> dict[str, list[int]]:
    """Return how many results so many runs have that these files were uploaded into undisturbed."""
    with tempfile.TemporaryDirectory() as place:
        clean = store.open_store(str(Path(place) / "clean.sqlite"))
        for number in numbers:
            run = store.RunInfo(name=run_of(number, runs))
            pipeline.ingest(clean, io.BytesIO(content(number)), f"{number}.csv", run)
        found = counted_results(clean)
        clean.dispose()
    return found


def upload_undisturbed(numbers: list[int]) -> dict[int, tuple[Any, list[int]]]:
    """Return what files come to that nothing disturbs; each is uploaded once in a process, to a store of its own."""
    with tempfile.TemporaryDirectory() as place:
        clean = store.open_store(str(Path(place) / "clean.sqlite"))
        for number in (new := [number for number in numbers if number not in UNDISTURBED]):
            pipeline.ingest(clean, io.BytesIO(content(number)), f"{number}.csv", store.RunInfo(name=run_of(number, 0)))
        rows, results = prints(clean), counted_results(clean)
        clean.dispose()
    for number in new:
        UNDISTURBED[number] = rows[hashlib.sha256(content(number)).hexdigest()], results[f"file {number}"]
    return {number: UNDISTURBED[number] for number in numbers}


def prints(engine: Engine) -> dict[str, Any]:
    """Return of every file what its rows come to, by its SHA-256."""
    with reading(engine) as connection:
        named = connection.execute(text("SELECT upload_id, sha256 FROM uploads")).all()
        sums: dict[str, dict[int, Any]] = {}
        for table, key in TABLES.items():
            query = f"SELECT {key} / {IDS_PER_UPLOAD}, count(*), sum({SUMS[table]}) FROM {table}"
            query += f" GROUP BY {key} / {IDS_PER_UPLOAD}"
            sums[table] = {
                upload: (count, round(float(total or 0), 3)) for upload, count, total in connection.execute(text(query))
            }
    lines = {
        row["sha256"]: (row["lines"], row["launches"], row["samples"]) for row in store.select(engine, "v1_uploads")
    }
    return {sha256: (lines[sha256], *(sums[table].get(upload) for table in TABLES)) for upload, sha256 in named}


def counted_results(engine: Engine) -> dict[str, list[int]]:
    """Return how many rows of each kind of results every run has, by its name."""
    with reading(engine) as connection:
        names = connection.execute(text("SELECT run_id, name FROM runs")).all()
        queries = [text(f"SELECT run_id, count(*) FROM {view} GROUP BY run_id") for view in RESULTS]
        found = [dict(connection.execute(query).all()) for query in queries]
    return {name: [counts.get(run_id, 0) for counts in found] for run_id, name in names}


def unowned(engine: Engine) -> list[str]:
    """Return the rows that belong to no upload, and the bytes that are stored twice."""
    wrong = []
    with reading(engine) as connection:
        for table, key in TABLES.items():
            query = (
                f"SELECT count(*) FROM {table} WHERE {key} / {IDS_PER_UPLOAD} NOT IN (SELECT upload_id FROM uploads)"
            )
            if count := connection.execute(text(query)).scalar_one():
                wrong.append(f"{count} rows of {table} belong to no upload")
        for table in schema.RESULTS:
            query = f"SELECT count(*) FROM {table} WHERE run_id NOT IN (SELECT run_id FROM runs)"
            if count := connection.execute(text(query)).scalar_one():
                wrong.append(f"{count} rows of {table} belong to no run")
        twice = "SELECT sha256 FROM uploads GROUP BY run_id, sha256 HAVING count(*) > 1"
        wrong += [f"{sha256} is stored twice" for sha256 in connection.execute(text(twice)).scalars()]
        empty = "SELECT name FROM runs WHERE run_id NOT IN (SELECT run_id FROM uploads)"
        wrong += [f"run {name!r} has no upload" for name in connection.execute(text(empty)).scalars()]
    return wrong


def damaged(engine: Engine) -> list[str]:
    """Return what the database finds wrong with itself."""
    file = file_of(engine)
    if file is None:
        return []
    with closing(sqlite3.connect(file)) as connection:
        said = [words for (words,) in connection.execute("PRAGMA integrity_check")]
        said += [f"foreign key: {row}" for row in connection.execute("PRAGMA foreign_key_check")]
    return [words for words in said if words != "ok"]


def unlisted(engine: Engine, files: store.BlobStore) -> list[str]:
    """Return what lies in the folder of kept bytes and is neither needed nor listed as waste."""
    with reading(engine) as connection:
        needed = {files.blob(sha256) for sha256 in connection.execute(text("SELECT sha256 FROM uploads")).scalars()}
    known = {*needed, *(path for part in cleanup.unneeded_files(engine, files) for path in part), files.folder / "lock"}
    return [f"{path} is left over" for path in files.folder.rglob("*") if path.is_file() and path not in known]


@contextmanager
def place(on_server: bool) -> Iterator[tuple[str, Path]]:
    """Give a new store and a folder."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="profsvc-durability-")))
        if not on_server:
            yield str(folder / "store.sqlite"), folder
            return
        server = stack.enter_context(postgres.server())
        name = postgres.migrated(server, ())
        yield server.url(name).render_as_string(hide_password=False), folder


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("--kills", type=int, default=0)
    parser.add_argument("--runs", type=int, default=0, help="kill uploads into so many runs, instead of one per file")
    parser.add_argument("--crowd", type=int, default=0, help="how many processes")
    parser.add_argument("--each", type=int, default=100, help="files of each process")
    parser.add_argument("--postgres", action="store_true")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    bad = 0
    with place(options.postgres) as (url, folder):
        if not options.postgres:
            store.open_store(url).dispose()
        outcome = (
            crowd(url, folder, options.crowd, options.each)
            if options.crowd
            else kills(url, folder, options.kills or 500, options.seed, options.runs)
        )
        print(", ".join(f"{count} {name}" for name, count in outcome.done.items()))
        for words in outcome.wrong[:20]:
            print(f"WRONG: {words}")
        bad += len(outcome.wrong)
    print(f"{bad} wrong")
    sys.exit(bool(bad))


if __name__ == "__main__":
    main()
