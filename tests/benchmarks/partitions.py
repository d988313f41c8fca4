"""Whether launches and samples should be partitioned on Postgres: the same store with plain tables and with parts.

Run it with ``python -m tests.benchmarks.partitions``. It fills two databases of a server of the tests with 200 runs
(``--runs``) of 10,000 launches and 10,000 readings each, in the order in which they come in: one as profsvc makes it,
and one in which ``launches`` and ``samples`` are partitioned by range of their keys, which is the order of arrival
(``--parts 10``; a row has no time of its own that all tools print). Then both are asked the same by the same program,
and the older half of the runs is deleted: row by row, or its partitions dropped first. Printed are the median of
seconds, of the write-ahead log in MB, and their ratio: above 1 the partitions cost less.

What it says: a partition that is dropped writes next to nothing to the log, 1 MB against 130, and yet the deletion took
as long (1.1) with everything else that goes with a run; loads came out slower (0.94), and so did the launches and the
readings of a run (0.7 to 1.0), in 2 million of each. Against partitions also stand runs that are kept by a tag and
files that are had back, whose parts can be neither dropped nor left out. So the tables are plain. What did make
deletions slow were two foreign keys to ``launches``: looking them up took 0.65 of the 0.71 s for 50,000 launches; they
are gone.
"""

import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from sqlalchemy import Engine, text

from profsvc import store
from profsvc.store.connection.transactions import reading
from profsvc.store.maintenance.migrations import changing_schema
from profsvc.store.schema.column_types import IDS_PER_UPLOAD
from profsvc.tables import Batch, frame, frame_of_arrays
from tests.benchmarks.querying import RANKED
from tests.command_line import parser_of
from tests.conftest import COUNTERS
from tests.environment import postgres
from tests.inputs.launches import launch_columns, put_run
from tests.inputs.long_exports import KERNELS

TABLES = {"launches": "launch_id", "samples": "sample_id"}
ROWS = 10_000
ASKED = {
    "one run's launches": "SELECT * FROM v1_launches WHERE run_id = {run}",
    "one launch": "SELECT * FROM v1_launches WHERE launch_id = {run}000000777",
    "one run's samples": "SELECT * FROM v1_samples WHERE run_id = {run}",
    "totals by kernel": "SELECT kernel, sum(launches), sum(total_ns) FROM v1_kernel_totals GROUP BY kernel",
    "the same from every launch": "SELECT kernel_id, count(*), sum(duration_ns) FROM v1_launches GROUP BY kernel_id",
    "p95 by kernel": RANKED.format(kernel="kernel_id", source="v1_launches"),
    "history of one kernel": "SELECT run, launches, mean_ns FROM v1_kernel_totals WHERE kernel = '{kernel}'"
    " ORDER BY run_id",
}


class Cost(NamedTuple):
    """What something cost: seconds, and MB of the write-ahead log."""

    seconds: float
    log_mb: float


def parted(engine: Engine, runs: int, parts: int) -> None:
    """Create the big tables of an empty store in partitions of so many uploads of a run, and one for the others."""
    edges = [round(runs * part / parts) + 1 for part in range(parts + 1)]
    with changing_schema(engine) as connection:
        for table, key in TABLES.items():
            connection.execute(text(f"ALTER TABLE {table} RENAME TO plain"))
            connection.execute(text(f"CREATE TABLE {table} (LIKE plain) PARTITION BY RANGE ({key})"))
            connection.execute(text("DROP TABLE plain"))
            connection.execute(text(f"ALTER TABLE {table} ADD PRIMARY KEY ({key})"))
            for part, (low, high) in enumerate(pairwise(edges)):
                words = f"FOR VALUES FROM ({low * IDS_PER_UPLOAD}) TO ({high * IDS_PER_UPLOAD})"
                connection.execute(text(f"CREATE TABLE {table}_{part} PARTITION OF {table} {words}"))
            connection.execute(text(f"CREATE TABLE {table}_more PARTITION OF {table} DEFAULT"))
    store.upgrade(engine, COUNTERS)


def batch(run: int, rows: int) -> Iterator[Batch]:
    """Yield a file with launches and a log of power."""
    draw = np.random.default_rng(run)
    launches = launch_columns(draw, rows)
    samples = {
        "sensor_index": 0, "sample_index": np.arange(rows), "elapsed_ns": np.arange(rows) * 10**7,
        "value": np.round(60 + 600 * draw.random(rows), 2), "line": np.arange(rows) + 2,
    }  # fmt: skip
    sensors = {"sensor_index": [0], "quantity": ["power"], "name": ["power.draw"], "unit": ["W"], "line": [1]}
    tables = {
        "launches": frame_of_arrays("launches", rows, launches),
        "sensors": frame("sensors", sensors),
        "samples": frame_of_arrays("samples", rows, samples),
    }
    yield Batch(tables, lines_stored=2 * rows)


def load(engine: Engine, run: int, rows: int) -> None:
    put_run(engine, run, batch(run, rows))


def ask(engine: Engine, query: str) -> int:
    with reading(engine) as connection:
        return len(connection.execute(text(query)).all())


def prune(engine: Engine, runs: int, parts: Sequence[str]) -> None:
    """Delete the older half of the runs; of partitions that hold nothing else first themselves."""
    with engine.begin() as connection:
        for part in parts:
            connection.execute(text(f"DROP TABLE {part}"))
    for run in range(1, runs // 2 + 1):
        store.delete_run(engine, run)
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.execute(text("VACUUM (ANALYZE)"))


def cost(engine: Engine, action: Callable[[], object]) -> Cost:
    """Do it, and return what it cost."""
    place = "SELECT CAST(pg_current_wal_insert_lsn() - '0/0' AS double precision)"
    with reading(engine) as connection:
        before = connection.execute(text(place)).scalar_one()
    began = time.perf_counter()
    action()
    took = time.perf_counter() - began
    with reading(engine) as connection:
        return Cost(took, (connection.execute(text(place)).scalar_one() - before) / 1e6)


def median(costs: Sequence[Cost]) -> Cost:
    return Cost(*(statistics.median(column) for column in zip(*costs, strict=True)))


def measured(
    plain: Engine, split: Engine, runs: int, parts: int, rows: int, times: int
) -> Iterator[tuple[str, Cost, Cost]]:
    """Yield of each thing to do what it cost with plain tables and with partitions."""
    loads = [
        tuple(cost(e, lambda e=e, run=run: load(e, run, rows)) for e in (plain, split)) for run in range(1, runs + 1)
    ]
    yield "load of a run", *(median([pair[n] for pair in loads]) for n in (0, 1))
    for engine in (plain, split):
        with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
            connection.execute(text("VACUUM (ANALYZE)"))
    for what, words in ASKED.items():
        query = words.format(run=runs // 2, kernel=KERNELS[7])
        pairs = [tuple(cost(e, lambda e=e, q=query: ask(e, q)) for e in (plain, split)) for _ in range(times)]
        yield what, *(median([pair[n] for pair in pairs]) for n in (0, 1))
    whole = [f"{table}_{part}" for table in TABLES for part in range(parts // 2)]
    yield (
        "older half deleted",
        *(cost(e, lambda e=e, old=old: prune(e, runs, old)) for e, old in ((plain, []), (split, whole))),
    )


@contextmanager
def stores(server: postgres.Server, runs: int, parts: int) -> Iterator[tuple[Engine, Engine]]:
    """Give an empty store with plain tables and one with partitions."""
    names = [postgres.migrated(server, COUNTERS) for _ in range(2)]
    urls = [server.url(name).render_as_string(hide_password=False) for name in names]
    plain, split = engines = [store.open_store(url, COUNTERS) for url in urls]
    parted(split, runs, parts)
    try:
        yield plain, split
    finally:
        for name, engine in zip(names, engines, strict=True):
            engine.dispose()
            server.drop(name)


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--parts", type=int, default=10)
    parser.add_argument("--times", type=int, default=7)
    wanted = parser.parse_args()
    print(
        f"{wanted.runs * ROWS} launches and as many readings in {wanted.runs} runs, {wanted.parts} partitions a table"
    )
    print(f"{'work':28}{'plain ms':>10}{'parts ms':>10}{'ratio':>7}{'plain MB':>10}{'parts MB':>10}")
    with postgres.server() as server, stores(server, wanted.runs, wanted.parts) as (plain, split):
        for what, one, other in measured(plain, split, wanted.runs, wanted.parts, ROWS, wanted.times):
            ratio = one.seconds / other.seconds
            print(f"{what:28}{one.seconds * 1e3:10.1f}{other.seconds * 1e3:10.1f}{ratio:7.2f}"
                  f"{one.log_mb:10.2f}{other.log_mb:10.2f}", flush=True)  # fmt: skip


if __name__ == "__main__":
    main()
