"""Many processes that upload at once, with files and names in common: nothing may be lost, doubled or refused.

``python -m tests.crowd [processes] [files] [database URL]`` prints how long it took; without a URL it starts a server.
"""

import hashlib
import multiprocessing
import random
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass

from sqlalchemy import text

from profsvc import store
from profsvc.store.engine import reading
from profsvc.tables import Batch, frame
from tests import postgres
from tests.conftest import COUNTERS

NAMES, LAUNCHES = 60, 40


@dataclass(frozen=True)
class Told:
    """What a process was told of a file: how it is stored, or the error."""

    file: int
    upload_id: int = 0
    known: bool = False
    launches: int = 0
    error: str = ""


def batches(file: int) -> Iterator[Batch]:
    """Yield a file: launches of kernels, and metrics, that many files have in common, each in an order of its own."""
    own = random.Random(file)
    for begin in (0, LAUNCHES):
        kernels = [f"kernel_{n}(int)" for n in own.sample(range(NAMES), LAUNCHES)]
        metrics = [f"metric_{n}" for n in own.sample(range(NAMES), LAUNCHES)]
        index = list(range(begin, begin + LAUNCHES))
        line = [i + 1 for i in index]
        launches = {"launch_index": index, "kernel": kernels, "device": [f"D{file % 3}"] * LAUNCHES, "line": line}
        values = {"launch_index": index, "metric": metrics, "raw_text": ["1"] * LAUNCHES, "line": line}
        yield Batch(
            {"launches": frame("launches", launches), "metrics": frame("metrics", values)}, lines_stored=LAUNCHES
        )


def upload(
    url: str, files: list[int], start: "multiprocessing.synchronize.Event", told: "multiprocessing.Queue[list[Told]]"
) -> None:
    """Upload files as a process of its own."""
    engine, answers = store.open_store(url, COUNTERS), []
    start.wait()
    for file in files:
        sha256 = hashlib.sha256(str(file).encode()).hexdigest()
        info = store.UploadInfo(f"file{file}.csv", sha256, 1, "x")
        run = store.RunInfo(name=f"run{file % 4}" if file % 2 else None, tags={"a": "1", "b": "2"}, host=f"h{file}")
        try:
            done = store.repeated(engine, lambda: store.write_upload(engine, info, run, batches(file)))  # noqa: B023
            answers.append(Told(file, done.upload_id, done.known, done.launches))
        except Exception as error:
            answers.append(Told(file, error=f"{type(error).__name__}: {error}"))
    engine.dispose()
    told.put(answers)


def crowd(url: str, processes: int, files: int) -> list[Told]:
    """Let processes upload files at once, of which each one is uploaded by two; return what they were told."""
    context = multiprocessing.get_context("fork")
    start, told = context.Event(), context.Queue()
    shares = [list(range(p * files // 2, p * files // 2 + files)) for p in range(processes - 1)]
    shares.append([*range((processes - 1) * files // 2, processes * files // 2), *range(files // 2)])
    for p, share in enumerate(shares):
        random.Random(p).shuffle(share)
    working = [context.Process(target=upload, args=(url, share, start, told)) for share in shares]
    for process in working:
        process.start()
    start.set()
    answers = [answer for _ in working for answer in told.get(timeout=600)]
    for process in working:
        process.join()
    told.close()
    return answers


def faults(url: str, told: list[Told]) -> list[str]:
    """Return what is wrong in the store after a crowd, a sentence each."""
    found = [f"file {one.file}: {one.error}" for one in told if one.error]
    numbers: dict[int, set[int]] = {}
    for one in told:
        if not one.error:
            numbers.setdefault(one.file, set()).add(one.upload_id)
    found += [f"file {file} has the numbers {sorted(ids)}" for file, ids in numbers.items() if len(ids) > 1]
    engine = store.connect(url)
    with reading(engine) as connection:
        uploads = connection.execute(text("SELECT count(*), sum(launches) FROM uploads")).one()
        launches = connection.execute(text("SELECT count(*), count(DISTINCT kernel) FROM v1_launches")).one()
        metrics = connection.execute(text("SELECT count(*) FROM v1_metrics")).scalar_one()
    engine.dispose()
    rows = 2 * LAUNCHES * len(numbers)
    if (*uploads, *launches, metrics) != (len(numbers), rows, rows, NAMES, rows):
        found.append(f"{uploads} uploads, {launches} launches, {metrics} metrics of {len(numbers)} files")
    return found


def main(processes: int = 16, files: int = 20, url: str = "") -> None:
    """Print what a crowd does."""
    with postgres.own_server() as server:
        if not url:
            url = server.url(postgres.migrated(server, COUNTERS)).render_as_string(hide_password=False)
        began = time.perf_counter()
        told = crowd(url, processes, files)
        seconds = time.perf_counter() - began
        wrong = faults(url, told)
    print(f"{processes} processes x {files} files: {seconds:.1f} s, {len(told) / seconds:.0f} files/s; faults: {wrong}")  # noqa: T201


if __name__ == "__main__":
    main(*map(int, sys.argv[1:3]), *sys.argv[3:4])
