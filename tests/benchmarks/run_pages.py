"""How long until the pages and answers about a run with millions of launches, beside plain SQLite.

    python -m tests.benchmarks.run_pages [--launches 5000000] [--store FILE]

A trace of nvprof is uploaded into a new SQLite store (a fifth of its rows are copies). Pages are asked of a service in
a process of its own, until the first byte, and ``show`` runs as a whole process. Plain SQLite answers the main question
of each from the tables of launches and copies alone, without any summary. A ratio above 1 means that profsvc is
faster. The last lines group all launches by kernel through ``v1_launches``, by its name and by its number, and ask for
the totals that are made when a file is stored. SQLite always groups by number and then takes the names; profsvc may
take twice as long.
"""

import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import httpx

from profsvc import pipeline, store
from tests.benchmarks.reading import ROOT
from tests.command_line import parser_of
from tests.inputs.long_exports import gpu_trace, write

ROUNDS = 5
MAX_SECONDS = 600
LONGEST = "SELECT * FROM launches ORDER BY duration_ns DESC LIMIT 50"
COPIES = "SELECT kind_id, count(*), sum(duration_ns), sum(bytes) FROM transfers GROUP BY kind_id"
TOTALS = """
    SELECT k.kernel, g.* FROM (
        SELECT h.kernel_id, count(*), sum(l.duration_ns) FROM launches l JOIN shapes h ON h.shape_id = l.shape_id
        GROUP BY h.kernel_id) g JOIN kernels k ON k.kernel_id = g.kernel_id
"""
OF_KERNEL = """
    SELECT * FROM launches WHERE shape_id IN (SELECT shape_id FROM shapes WHERE kernel_id = 3)
    ORDER BY duration_ns DESC LIMIT 50
"""
BY_NAME = """
    SELECT l.* FROM launches l JOIN shapes h ON h.shape_id = l.shape_id JOIN kernels k ON k.kernel_id = h.kernel_id
    ORDER BY k.kernel_short, l.launch_id LIMIT 50
"""
DEEP = "SELECT * FROM launches ORDER BY duration_ns DESC LIMIT 50 OFFSET 900"
# Page -> its path, and what plain SQLite answers.
PAGES = {
    "run page": ("/runs/1", (LONGEST, COPIES, TOTALS)),
    "launches by number": ("/runs/1?order=launch&after=2000000", ("SELECT * FROM launches LIMIT 50 OFFSET 2000000",)),
    "launches by kernel": ("/runs/1?order=kernel", (BY_NAME,)),
    "launches by potential": ("/runs/1?order=-potential", (LONGEST,)),
    "launches, 900 further": ("/runs/1?after=900", (DEEP,)),
    "launches of a kernel": ("/runs/1/kernels/3", (OF_KERNEL,)),
    "compare": ("/compare?before=1&after=1", (TOTALS, TOTALS)),
}
SHOW = {"show": ((), (LONGEST, COPIES, TOTALS)), "show a kernel": (("--kernel", "17"), (LONGEST,))}
GROUPED = {
    "kernel": "SELECT kernel, count(*), sum(duration_ns) FROM v1_launches GROUP BY kernel",
    "kernel_short": "SELECT kernel_short, count(*), avg(duration_ns) FROM v1_launches GROUP BY kernel_short",
    "kernel_id": (
        "SELECT k.kernel, g.* FROM (SELECT kernel_id, count(*), sum(duration_ns) FROM v1_launches GROUP BY kernel_id) g"
        " JOIN v1_kernels k ON k.kernel_id = g.kernel_id"
    ),
    "totals of kernels": "SELECT kernel, sum(launches), sum(total_ns) FROM v1_kernel_totals GROUP BY kernel",
}


def timed(ask: Callable[[], Any], rounds: int = ROUNDS) -> float:
    """Return the median of seconds of several answers after a first one."""
    ask()
    took = []
    for _ in range(rounds):
        begin = time.perf_counter()
        ask()
        took.append(time.perf_counter() - begin)
    return statistics.median(took)


@contextmanager
def service(path: Path) -> Iterator[str]:
    """Serve a store in a process of its own; yield the address."""
    command = [sys.executable, "-m", "profsvc", "--store", str(path), "serve", "--port", "0", "--no-schedule"]
    with subprocess.Popen(command, cwd=ROOT, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr
        try:
            url = next(word for line in process.stderr for word in line.split() if word.startswith("http://127"))
            yield url.rstrip(".,;")
        finally:
            process.terminate()


def first_byte(client: httpx.Client, path: str) -> None:
    with client.stream("GET", path, follow_redirects=True) as answer:
        assert answer.status_code == 200, f"{path}: {answer.status_code}"
        next(answer.iter_raw())


def report(what: str, ours: float, plain: float) -> None:
    print(f"{what:26}{1e3 * ours:12.0f}{1e3 * plain:12.0f}{plain / ours:9.2f}", flush=True)


def main() -> None:
    """Print the times."""
    parser = parser_of(__doc__)
    parser.add_argument("--launches", type=int, default=5_000_000)
    parser.add_argument("--store", help="a store that an earlier run left, or where to leave it")
    wanted = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        path = Path(wanted.store or Path(name) / "store.sqlite")
        if not path.exists():
            export = Path(name) / "trace.csv"
            write(export, gpu_trace(wanted.launches * 5 // 4))
            with export.open("rb") as stream:
                pipeline.ingest(store.open_store(str(path)), stream, "trace.csv", store.RunInfo(name="long"))
            export.unlink()
        with closing(sqlite3.connect(path)) as plain:
            (launches,) = plain.execute("SELECT count(*) FROM launches").fetchone()
            print(f"{launches:,} launches, {path.stat().st_size / 1e6:.0f} MB")
            print(f"{'answer':26}{'profsvc ms':>12}{'SQLite ms':>12}{'ratio':>9}")

            def bare(queries: tuple[str, ...]) -> float:
                return timed(lambda: [plain.execute(query).fetchall() for query in queries], 2)

            with service(path) as url, httpx.Client(base_url=url, timeout=60) as client:
                for what, (page, queries) in PAGES.items():
                    report(what, timed(lambda page=page: first_byte(client, page)), bare(queries))
            for what, (options, queries) in SHOW.items():
                command = [sys.executable, "-m", "profsvc", "--store", str(path), "show", "1", *options]
                run = lambda command=command: subprocess.run(command, cwd=ROOT, capture_output=True, check=True)  # noqa: E731
                report(what, timed(run, 3), bare(queries))
            engine = store.open_store(str(path))
            for what, query in GROUPED.items():
                ask = lambda query=query: store.query(engine, query, seconds=MAX_SECONDS)  # noqa: E731
                report(f"by {what}", timed(ask, 2), bare((TOTALS,)))


if __name__ == "__main__":
    main()
