"""How fast exports get into a store, each beside the bulk loaders of the databases, with the same rows in the same run.

Run it with ``python -m tests.benchmarks.loading``. It generates a gpu-trace of nvprof (5 million rows), a log of the
power of a board (10 million readings) and a details page of Nsight Compute (1.6 million rows; ``--scale 0.1`` makes a
tenth of everything), and loads each into SQLite and Postgres: profsvc reads, stores and sums it up, and keeps a copy of
the bytes; the peers take the rows as they are. psql loads the trace also into a table with a primary key, as a store
has one for its launches: ``python -m tests.benchmarks.launch_keys`` says what that costs. Two lines are of profsvc:
until what the file says is committed and can be queried, as the peers do, and until the results of the analysis are
there as well, which no peer has. Of each peer the ratios to both are printed; above 1 profsvc is the faster. Times are
without the imports; the memory is the highest of the process, for the peers with that of their programs; profsvc
manages it as ``profsvc upload`` does, garbage included.
"""

import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

from profsvc import specs
from tests.benchmarks.reading import ROOT
from tests.command_line import parser_of
from tests.environment.postgres import Server, migrated, server
from tests.inputs.long_exports import details, gpu_trace, power_log, write

START = """
import os, resource, subprocess, sys, time
path, target, skip = sys.argv[1], sys.argv[2], int(sys.argv[3])
names = sys.argv[4].split(",")
key = sys.argv[5]
"""
END = """
took = time.perf_counter() - begin
most = max(resource.getrusage(who).ru_maxrss for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
print(took, most * 1024 / 1e6)
"""
OURS = """
import gc
from profsvc import formats, pipeline, store
from profsvc.cli import MIN_OBJECTS_TO_COLLECT
from profsvc.pipeline.ingestion import upload as ingestion
from profsvc.pipeline.malloc import keep_blocks
gc.set_threshold(MIN_OBJECTS_TO_COLLECT)
keep_blocks()
formats.READERS, store.write_upload, pipeline.file_batches  # what is imported when it is used
engine = store.open_store(target)
files = store.blob_store_of(engine, os.path.dirname(path))
analyze = ingestion._analyze_if_unfinished
def noting(*given, **named):
    global begin
    print("committed", time.perf_counter() - begin)  # the analysis follows, which needs frames
    paused = time.perf_counter()
    pipeline.analysis
    begin += time.perf_counter() - paused
    return analyze(*given, **named)
ingestion._analyze_if_unfinished = noting
begin = time.perf_counter()
with open(path, "rb") as stream:
    verdict = ingestion.ingest(engine, stream, os.path.basename(path), store.RunInfo(name="bench"), files=files)
assert verdict.lines_rejected == 0 and verdict.lines_stored
"""
IMPORT = """
begin = time.perf_counter()
columns = ", ".join(f'"{name}" TEXT' for name in names)
words = f"CREATE TABLE rows ({columns});\\n.import --csv --skip {skip} '{path}' rows\\n"
subprocess.run(["sqlite3", target], input=words, text=True, check=True)
"""
DUCKDB = """
import duckdb
begin = time.perf_counter()
with duckdb.connect(target) as connection:
    connection.execute(f"SET threads = 2")
    connection.execute(
        f"CREATE TABLE rows AS SELECT * FROM read_csv(?, skip = {skip}, header = false, names = ?)", [path, names]
    )
"""
TO_SQL = """
import sqlite3
import pandas as pd
begin = time.perf_counter()
connection = sqlite3.connect(target)
for chunk in pd.read_csv(path, skiprows=skip, names=names, chunksize=100_000):
    chunk.to_sql("rows", connection, if_exists="append", index=False)
connection.commit()
"""
COPY = """
begin = time.perf_counter()
columns = ", ".join(f'"{name}" TEXT' for name in names)
run = ["psql", "-q", "-v", "ON_ERROR_STOP=1", target]
subprocess.run([*run, "-c", f"CREATE TABLE rows ({columns})"], check=True)
words = f"\\\\copy rows FROM PROGRAM 'tail -n +{skip + 1} {path}' WITH (FORMAT csv)"
subprocess.run([*run, "-c", words], check=True)
"""
# Numbers of launches are unique, so they can be the key of a trace; the other files have no such column.
KEYED_COPY = COPY.replace('"{name}" TEXT', '"{name}" {"BIGINT PRIMARY KEY" if name == key else "TEXT"}')
PEERS = {
    "sqlite": (("sqlite3 .import", IMPORT), ("DuckDB, own file", DUCKDB), ("pandas to_sql", TO_SQL)),
    "postgresql": (("psql \\copy", COPY), ("\\copy, with a key", KEYED_COPY)),
}


class Case(NamedTuple):
    """A file: what makes it, its rows, the lines above them, their columns, and that of a key."""

    title: str
    lines: Callable[[int], Iterator[str]]
    rows: int
    skip: int
    columns: int
    key: int | None = None


CASES = (
    Case("nvprof gpu-trace", gpu_trace, 5_000_000, 3, 20, key=19),
    Case("power log", power_log, 10_000_000, 1, 2),
    Case("ncu details", details, 1_600_000, 1, 20),
)


class Figures(NamedTuple):
    """What a loader took: seconds until the rows were committed and until all was done, memory and size there in MB."""

    committed_s: float
    took_s: float
    peak_mb: float
    size_mb: float = 0.0


def timed(body: str, path: Path, target: str, case: Case) -> Figures:
    """Run ``body`` on the file in a process of its own; seconds are without the imports."""
    names = ",".join(f"c{number}" for number in range(case.columns))
    done = subprocess.run(
        [sys.executable, "-c", START + body + END, str(path), target, str(case.skip), names, f"c{case.key}"],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    if done.returncode:
        raise SystemExit(done.stderr)
    *before, last = done.stdout.splitlines()
    took, peak = map(float, last.split())
    committed = [float(line.split()[1]) for line in before if line.startswith("committed ")]
    assert committed or body != OURS, "nothing said when the rows were committed"
    return Figures(committed[0] if committed else took, took, peak)


# A server as it is set up for work: what is committed is on the disk.
DURABLE = {"fsync": "on", "full_page_writes": "on", "synchronous_commit": "on", "max_wal_size": "'4GB'"}


def on_sqlite(case: Case, path: Path, body: str) -> Figures:
    """Load the file into a new SQLite or DuckDB file; its size is without kept uploads."""
    with tempfile.TemporaryDirectory(dir=path.parent) as folder:
        found = timed(body, path, str(Path(folder) / "rows.sqlite"), case)
        sizes = (file.stat().st_size for file in Path(folder).iterdir() if file.is_file())
        return found._replace(size_mb=sum(sizes) / 1e6)


def on_postgres(case: Case, path: Path, body: str, at: Server) -> Figures:
    """Load the file into a new database of a server."""
    database = migrated(at, specs.counters())
    try:
        url = at.url(database).render_as_string(hide_password=False)
        found = timed(body, path, url if body == OURS else url.replace("+psycopg", ""), case)
        with at.session(database) as session:
            (size,) = session.execute("SELECT pg_database_size(current_database())").fetchone() or (0,)
        return found._replace(size_mb=size / 1e6)
    finally:
        at.drop(database)


def rows_of(found: list[dict[str, Figures]]) -> Iterator[tuple[str, float, float, float, Figures]]:
    """Yield, of repeated runs of loaders, name, seconds, ratios to ours committed and with results, the medians."""
    for name in found[0]:
        middle = Figures(*(statistics.median(one[name][n] for one in found) for n in range(len(Figures._fields))))
        ratios = [
            statistics.median(one[name].took_s / getattr(one["profsvc"], to) for one in found)
            for to in ("committed_s", "took_s")
        ]
        if name == "profsvc":
            yield name, middle.committed_s, 1.0, middle.committed_s / middle.took_s, middle
            name = "with results"
        yield name, middle.took_s, *ratios, middle


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("--scale", type=float, default=1.0, help="part of the full size of each file")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--only", default="", help="part of the name of a case or a database")
    parser.add_argument("--without", default="nothing", help="part of the name of a peer to leave out, such as to_sql")
    wanted = parser.parse_args()
    print(
        f"{'work':18}{'database':12}{'rows':>9}{'MB':>6}{'loader':>18}{'s':>8}{'ratio':>7}{'all':>7}{'peak MB':>9}"
        f"{'MB there':>9}"
    )
    with ExitStack() as stack:
        running: list[Server] = []
        for case in CASES:
            folder = stack.enter_context(tempfile.TemporaryDirectory())
            rows, path = max(int(case.rows * wanted.scale), 1000), Path(folder) / "export.csv"
            asked = [database for database in PEERS if wanted.only in f"{case.title} {database}"]
            if asked:
                write(path, case.lines(rows))
            for database in asked:
                if database == "postgresql" and not running:
                    running.append(stack.enter_context(server(**DURABLE)))
                loaders = {"profsvc": OURS, **dict(PEERS[database])}
                loaders = {
                    name: body
                    for name, body in loaders.items()
                    if wanted.without not in name and (body != KEYED_COPY or case.key is not None)
                }
                found = [
                    {
                        name: on_sqlite(case, path, body)
                        if database == "sqlite"
                        else on_postgres(case, path, body, running[0])
                        for name, body in loaders.items()
                    }
                    for _ in range(wanted.repeats)
                ]
                for name, took, ratio, of_all, middle in rows_of(found):
                    print(
                        f"{case.title:18}{database:12}{rows:9}{path.stat().st_size / 1e6:6.0f}{name:>18}{took:8.2f}"
                        f"{ratio:7.2f}{of_all:7.2f}{middle.peak_mb:9.0f}{middle.size_mb:9.0f}",
                        flush=True,
                    )
            path.unlink(missing_ok=True)


if __name__ == "__main__":
    main()
