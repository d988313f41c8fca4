"""How fast questions to millions of launches are answered, beside the best that the bare engine can do.

Run it with ``python -m tests.benchmarks.querying``. It fills a SQLite store with 500 runs of 10,000 launches of 60
kernels (``--runs 50`` for less), and asks for count, total and 95th percentile of the durations by kernel, and for the
history of one kernel: of the views, of the base tables by the plan that SQLite does best, and of DuckDB on the same
rows as Parquet. A ratio above 1 means that the views are the faster. The plans of the views are printed.
"""

import sqlite3
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np

from profsvc import store
from profsvc.tables import Batch, frame_of_arrays
from tests.command_line import parser_of
from tests.inputs.launches import launch_columns, put_run
from tests.inputs.long_exports import KERNELS

LAUNCHES = 10_000
RANKED = """
    WITH ranked AS (
        SELECT {kernel} AS kernel, duration_ns, row_number() OVER (PARTITION BY {kernel} ORDER BY duration_ns) AS place,
            count(*) OVER (PARTITION BY {kernel}) AS launches
        FROM {source}
    )
    SELECT kernel, max(launches), sum(duration_ns), max(CASE WHEN place <= 0.95 * launches THEN duration_ns END)
    FROM ranked GROUP BY kernel
"""
BASE = "launches l CROSS JOIN shapes h WHERE h.shape_id = l.shape_id"
# Question -> SQL over the views, over the base tables, and over the Parquet file.
QUESTIONS = {
    "count and total by kernel": (
        "SELECT kernel, sum(launches), sum(total_ns) FROM v1_kernel_totals GROUP BY kernel_id",
        f"SELECT h.kernel_id, count(*), sum(l.duration_ns) FROM {BASE} GROUP BY h.kernel_id",
        "SELECT kernel, count(*), sum(duration_ns) FROM rows GROUP BY kernel",
    ),
    "the same from every launch": (
        "SELECT kernel_id, count(*), sum(duration_ns) FROM v1_launches GROUP BY kernel_id",
        f"SELECT h.kernel_id, count(*), sum(l.duration_ns) FROM {BASE} GROUP BY h.kernel_id",
        "SELECT kernel, count(*), sum(duration_ns) FROM rows GROUP BY kernel",
    ),
    "count, total, p95 by kernel": (
        RANKED.format(kernel="kernel_id", source="v1_launches"),
        RANKED.format(kernel="h.kernel_id", source=BASE),
        "SELECT kernel, count(*), sum(duration_ns), quantile_cont(duration_ns, 0.95) FROM rows GROUP BY kernel",
    ),
    "history of one kernel": (
        f"SELECT run, launches, mean_ns, p95_ns FROM v1_kernel_totals WHERE kernel = '{KERNELS[7]}' ORDER BY run_id",
        "SELECT l.launch_id / 1000000000, count(*), avg(l.duration_ns) FROM launches l CROSS JOIN shapes h"
        " WHERE h.shape_id = l.shape_id"
        f" AND h.kernel_id = (SELECT kernel_id FROM kernels WHERE kernel = '{KERNELS[7]}')"
        " GROUP BY 1",
        f"SELECT run, count(*), avg(duration_ns), quantile_cont(duration_ns, 0.95) FROM rows"
        f" WHERE kernel = '{KERNELS[7]}' GROUP BY run",
    ),
}


def launches(run: int) -> Iterator[Batch]:
    columns = launch_columns(np.random.default_rng(run), LAUNCHES)
    yield Batch({"launches": frame_of_arrays("launches", LAUNCHES, columns)}, lines_stored=LAUNCHES)


def fill(folder: Path, runs: int) -> Path:
    """Make a store with so many runs."""
    path = folder / "store.sqlite"
    engine = store.open_store(str(path))
    for run in range(runs):
        put_run(engine, run, launches(run))
    engine.dispose()
    return path


def parquet(folder: Path, runs: int) -> Path:
    """Write the same rows for DuckDB."""
    import pyarrow as pa
    import pyarrow.parquet

    path = folder / "rows.parquet"
    schema = pa.schema([("run", pa.int32()), ("kernel", pa.string()), ("duration_ns", pa.float64())])
    with pyarrow.parquet.ParquetWriter(path, schema) as writer:
        for run in range(runs):
            table = next(launches(run)).tables["launches"]
            columns = [np.full(LAUNCHES, run, np.int32), table["kernel"].to_numpy(), table["duration_ns"].to_numpy()]
            writer.write_table(pa.table([pa.array(column) for column in columns], schema=schema))
    return path


def timed(ask: Callable[[], Any], repeats: int) -> float:
    """Return the median of seconds that an answer takes."""
    took = []
    for _ in range(repeats):
        begin = time.perf_counter()
        ask()
        took.append(time.perf_counter() - begin)
    return statistics.median(took)


def main() -> None:
    import duckdb

    parser = parser_of(__doc__)
    parser.add_argument("--runs", type=int, default=500, help="runs of 10,000 launches")
    parser.add_argument("--repeats", type=int, default=3)
    wanted = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        path, rows = fill(Path(name), wanted.runs), parquet(Path(name), wanted.runs)
        print(f"{wanted.runs * LAUNCHES} launches in {wanted.runs} runs, store of {path.stat().st_size / 1e6:.0f} MB")
        print(f"{'question':30}{'views ms':>10}{'tables ms':>11}{'ratio':>7}{'DuckDB ms':>11}{'ratio':>7}")
        with closing(sqlite3.connect(path)) as ours, duckdb.connect() as theirs:
            theirs.execute("SET threads = 2")
            theirs.execute(f"CREATE VIEW rows AS SELECT * FROM '{rows}'")
            for question, (views, tables, other) in QUESTIONS.items():
                a, b = (timed(lambda q=q: ours.execute(q).fetchall(), wanted.repeats) for q in (views, tables))
                c = timed(lambda q=other: theirs.execute(q).fetchall(), wanted.repeats)
                print(f"{question:30}{a * 1e3:10.1f}{b * 1e3:11.1f}{b / a:7.2f}{c * 1e3:11.1f}{c / a:7.2f}", flush=True)
            for question, (views, _, _) in QUESTIONS.items():
                print(f"\n{question}:")
                for row in ours.execute(f"EXPLAIN QUERY PLAN {views}"):
                    print(f"  {row[3]}")


if __name__ == "__main__":
    main()
