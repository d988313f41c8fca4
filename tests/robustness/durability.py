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

import io
import multiprocessing
import os
import random
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import NamedTuple

from profsvc import pipeline, store
from profsvc.store.ingest import staging
from profsvc.store.ingest import upload as load
from profsvc.store.ingest.store_copy import ReadingPace
from profsvc.store.results import writer as results_writer
from tests.command_line import parser_of
from tests.environment import postgres
from tests.robustness.comparison import compare
from tests.robustness.numbered_files import KINDS, content, run_of

SLOWER = 2  # a file takes so much longer on a server, whose connections are made again
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
        "tests.inputs.long_exports",
        "tests.environment.postgres",
        "profsvc.client.spool",
        "profsvc.web.app",
        "tests.web.conftest",
    ]
)


class Outcome(NamedTuple):
    """What was done and what was wrong."""

    done: dict[str, float]
    wrong: list[str]


class EagerPace(ReadingPace):
    """It is always time to copy."""

    def is_time_to_copy(self, _: int) -> bool:
        return True


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
