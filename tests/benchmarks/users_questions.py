"""What users ask of the launches of many runs, through the views and of the tables joined by hand, on both engines.

    python -m tests.benchmarks.users_questions [--runs 400] [--launches 10000]

A SQLite store and a Postgres server of the tests are filled with the same runs, of which one in twenty has metrics.
Every question is asked in both ways in turn. Times are seconds of the processor, of this process or of the server's,
the least of several rounds: other programs disturb them less. A ratio above 1 means that the view takes longer; it may
take twice as long. The answers must be equal, in both ways and on both engines. Plans of the slower ones are printed.
"""

import resource
import sqlite3
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import psycopg
from sqlalchemy import Engine

from profsvc import store
from profsvc.store.schema.column_types import IDS_PER_UPLOAD
from profsvc.tables import Batch, frame, frame_of_arrays
from tests.benchmarks.launch_keys import processor_s
from tests.command_line import parser_of
from tests.environment import postgres
from tests.inputs.launches import launch_columns, put_run
from tests.inputs.long_exports import KERNELS

EVERY_METRICS, PROFILED, METRICS = 20, 200, 10
SIGNIFICANT = 9
"""Digits in which sums of equal numbers in another order agree."""
SINCE = "2026-11-24"
MAX_RATIO = 2.0
ONE_PROCESS = "SET max_parallel_workers_per_gather = 0"
"""The clock of a connection does not count its helpers."""
MIN_S = 0.2
"""A question is asked again until its answers have taken so long: clocks of servers count hundredths of seconds."""
# SQLite keeps the order of a CROSS JOIN.
BASE = "launches l CROSS JOIN shapes h"
OF_SHAPE = "h.shape_id = l.shape_id"
RUNS = "runs r JOIN uploads u ON u.run_id = r.run_id CROSS JOIN launches l"
OF_RUN = f"l.launch_id BETWEEN u.upload_id * {IDS_PER_UPLOAD} AND u.upload_id * {IDS_PER_UPLOAD} + {IDS_PER_UPLOAD - 1}"
NAMED = "SELECT k.{name}, {columns} FROM ({rows}) g JOIN kernels k ON k.kernel_id = g.kernel_id"
TOTALS = (
    f"SELECT h.kernel_id, count(*) AS n, sum(l.duration_ns) AS total FROM {BASE} WHERE {OF_SHAPE} GROUP BY h.kernel_id"
)
WEEK = (
    f"SELECT h.kernel_id, count(*) AS n, sum(l.duration_ns) AS total FROM {RUNS} CROSS JOIN shapes h"
    f" WHERE r.started_at >= '{SINCE}' AND {OF_RUN} AND {OF_SHAPE} GROUP BY h.kernel_id"
)
P95 = """
    SELECT {key}, max(CASE WHEN place = (95 * n + 99) / 100 THEN duration_ns END) AS p95 FROM (
        SELECT {key}, duration_ns, row_number() OVER (PARTITION BY {key} ORDER BY duration_ns) AS place,
               count(*) OVER (PARTITION BY {key}) AS n
        FROM {rows}) ranked GROUP BY {key}
"""
BASE_P95 = P95.format(key="kernel_id", rows=f"{BASE} WHERE {OF_SHAPE}")
P95_NAMED = "SELECT k.kernel, g.p95 FROM ({}) g JOIN {} k ON k.kernel_id = g.kernel_id"
KERNEL = KERNELS[7]
METRICS_OF_RUN = (
    f"SELECT l.launch_id, k.kernel_short, l.duration_ns, n.metric, m.value FROM {RUNS} CROSS JOIN metrics m"
    " JOIN metric_names n ON n.metric_id = m.metric_id JOIN shapes h ON h.shape_id = l.shape_id"
    f" JOIN kernels k ON k.kernel_id = h.kernel_id WHERE r.run_id = 1 AND {OF_RUN} AND m.launch_ref = l.launch_id"
)
# Question -> SQL over the views, and over the base tables.
QUESTIONS = {
    "by kernel": (
        "SELECT kernel, count(*), sum(duration_ns) FROM v1_launches GROUP BY kernel",
        NAMED.format(name="kernel", columns="n, total", rows=TOTALS),
    ),
    "by number of the kernel": (
        "SELECT max(kernel), count(*), sum(duration_ns) FROM v1_launches GROUP BY kernel_id",
        NAMED.format(name="kernel", columns="n, total", rows=TOTALS),
    ),
    "by number, names joined": (
        "SELECT k.kernel, g.n, g.total FROM (SELECT kernel_id, count(*) AS n, sum(duration_ns) AS total"
        " FROM v1_launches GROUP BY kernel_id) g JOIN v1_kernels k ON k.kernel_id = g.kernel_id",
        NAMED.format(name="kernel", columns="n, total", rows=TOTALS),
    ),
    "by short name": (
        "SELECT kernel_short, count(*), sum(duration_ns) FROM v1_launches GROUP BY kernel_short",
        NAMED.format(name="kernel_short", columns="sum(n), sum(total)", rows=TOTALS) + " GROUP BY 1",
    ),
    "number and sum": (
        "SELECT count(*), sum(duration_ns) FROM v1_launches",
        "SELECT count(*), sum(duration_ns) FROM launches",
    ),
    "a kernel by run": (
        f"SELECT run_id, count(*), avg(duration_ns) FROM v1_launches WHERE kernel = '{KERNEL}' GROUP BY run_id",
        f"SELECT u.run_id, count(*), avg(l.duration_ns) FROM {BASE} CROSS JOIN uploads u WHERE {OF_SHAPE}"
        f" AND h.kernel_id = (SELECT kernel_id FROM kernels WHERE kernel = '{KERNEL}')"
        f" AND u.upload_id = l.launch_id / {IDS_PER_UPLOAD} GROUP BY u.run_id",
    ),
    "a kernel by run, totals": (
        f"SELECT run, launches, mean_ns, p95_ns FROM v1_kernel_totals WHERE kernel = '{KERNEL}'",
        "SELECT r.name, t.launches, t.total_ns / t.timed, t.p95_ns FROM kernels k JOIN kernel_totals t"
        " ON t.kernel_id = k.kernel_id JOIN uploads u ON u.upload_id = t.upload_id JOIN runs r ON r.run_id = u.run_id"
        f" WHERE k.kernel = '{KERNEL}'",
    ),
    "kernels of a week": (
        "SELECT l.kernel, count(*), sum(l.duration_ns) FROM v1_launches l JOIN v1_runs r ON r.run_id = l.run_id"
        f" WHERE r.started_at >= '{SINCE}' GROUP BY l.kernel ORDER BY 3 DESC LIMIT 20",
        NAMED.format(name="kernel", columns="n, total", rows=WEEK) + " ORDER BY 3 DESC LIMIT 20",
    ),
    "the same by numbers": (
        "SELECT k.kernel, g.n, g.total FROM (SELECT kernel_id, count(*) AS n, sum(duration_ns) AS total"
        f" FROM v1_launches WHERE run_id IN (SELECT run_id FROM v1_runs WHERE started_at >= '{SINCE}')"
        " GROUP BY kernel_id) g JOIN v1_kernels k ON k.kernel_id = g.kernel_id ORDER BY 3 DESC LIMIT 20",
        NAMED.format(name="kernel", columns="n, total", rows=WEEK) + " ORDER BY 3 DESC LIMIT 20",
    ),
    "kernels of a week, totals": (
        "SELECT t.kernel, sum(t.launches), sum(t.total_ns) FROM v1_kernel_totals t JOIN v1_runs r"
        f" ON r.run_id = t.run_id WHERE r.started_at >= '{SINCE}' GROUP BY t.kernel ORDER BY 3 DESC LIMIT 20",
        "SELECT k.kernel, sum(t.launches), sum(t.total_ns) FROM runs r JOIN uploads u ON u.run_id = r.run_id"
        " JOIN kernel_totals t ON t.upload_id = u.upload_id JOIN kernels k ON k.kernel_id = t.kernel_id"
        f" WHERE r.started_at >= '{SINCE}' GROUP BY k.kernel ORDER BY 3 DESC LIMIT 20",
    ),
    "a metric of launches": (
        "SELECT l.kernel_short, avg(m.value), avg(l.duration_ns) FROM v1_launches l JOIN v1_metrics m"
        " ON m.launch_id = l.launch_id WHERE m.metric = 'metric 3' GROUP BY l.kernel_short",
        "SELECT k.kernel_short, avg(m.value), avg(l.duration_ns) FROM metric_names n JOIN metrics m"
        " ON m.metric_id = n.metric_id JOIN launches l ON l.launch_id = m.launch_ref JOIN shapes h"
        f" ON {OF_SHAPE} JOIN kernels k ON k.kernel_id = h.kernel_id WHERE n.metric = 'metric 3' GROUP BY 1",
    ),
    "metrics of a run": (
        "SELECT l.launch_id, l.kernel_short, l.duration_ns, m.metric, m.value FROM v1_launches l JOIN v1_metrics m"
        " ON m.launch_id = l.launch_id WHERE l.run_id = 1",
        METRICS_OF_RUN,
    ),
    "the same, run named twice": (
        "SELECT l.launch_id, l.kernel_short, l.duration_ns, m.metric, m.value FROM v1_launches l JOIN v1_metrics m"
        " ON m.launch_id = l.launch_id WHERE l.run_id = 1 AND m.run_id = 1",
        METRICS_OF_RUN,
    ),
    "95th percentile by kernel": (P95.format(key="kernel", rows="v1_launches"), P95_NAMED.format(BASE_P95, "kernels")),
    "the same by number": (
        P95_NAMED.format(P95.format(key="kernel_id", rows="v1_launches"), "v1_kernels"),
        P95_NAMED.format(BASE_P95, "kernels"),
    ),
    "95th percentile by run": (
        P95.format(key="run_id", rows="v1_launches"),
        P95.format(key="run_id", rows=f"launches l JOIN uploads u ON u.upload_id = l.launch_id / {IDS_PER_UPLOAD}"),
    ),
    "by run and day": (
        "SELECT r.run_id, substr(r.started_at, 1, 10), count(*), sum(l.duration_ns) FROM v1_launches l"
        " JOIN v1_runs r ON r.run_id = l.run_id GROUP BY r.run_id, substr(r.started_at, 1, 10)",
        f"SELECT r.run_id, substr(r.started_at, 1, 10), count(*), sum(l.duration_ns) FROM {RUNS} WHERE {OF_RUN}"
        " GROUP BY r.run_id, substr(r.started_at, 1, 10)",
    ),
}  # fmt: skip


def rows_of_run(run: int, launches: int) -> Iterator[Batch]:
    """Yield a run; the first, and one in `EVERY_METRICS`, has metrics of its first launches."""
    draw = np.random.default_rng(run)
    columns = launch_columns(draw, launches)
    columns["start_ns"] += run * 10**15
    durations = columns["duration_ns"]
    columns["block_x"] = np.where(durations > np.median(durations), 256, 128)
    tables = {"launches": frame_of_arrays("launches", launches, columns)}
    if run % EVERY_METRICS == 0:
        cells = [(index, metric) for index in range(min(PROFILED, launches)) for metric in range(METRICS)]
        values = draw.lognormal(3, 1, len(cells)).round(3).tolist()
        metrics: dict[str, list[object]] = {
            "launch_index": [index for index, _ in cells],
            "metric": [f"metric {metric}" for _, metric in cells],
            "raw_text": [repr(value) for value in values],
            "unit": ["%"] * len(cells),
            "value": list(values),
            "si_unit": ["%"] * len(cells),
            "line": [index + 4 for index, _ in cells],
        }
        tables["metrics"] = frame("metrics", metrics)
    yield Batch(tables, lines_stored=launches)


def fill(engine: Engine, runs: int, launches: int) -> None:
    """Write runs to a store, four a day until the end of November 2026."""
    for run in range(runs):
        day = np.datetime64("2026-11-30") - (runs - 1 - run) // 4
        put_run(engine, run, rows_of_run(run, launches), at=f"{day}T{run % 4:02}:00:00Z")


def comparable(rows: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """Return rows in one order, with numbers as far as their digits agree."""
    return sorted(
        tuple(f"{float(cell):.{SIGNIFICANT}g}" if not isinstance(cell, str) else cell for cell in row) for row in rows
    )


def own_s() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def compare(what: str, ask: Callable[[str], list[Any]], clock: Callable[[], float], rounds: int) -> list[Any]:
    """Print the times of every question; return the answers."""
    print(f"\n{what:28}{'view ms':>10}{'tables ms':>11}{'ratio':>7}")
    answers = []
    for question, both in QUESTIONS.items():
        best = [float("inf")] * 2
        for _ in range(rounds):
            found = []
            for way, query in enumerate(both):
                begin, asked = clock(), 0
                while not asked or clock() - begin < MIN_S:
                    rows = ask(query)
                    asked += 1
                best[way] = min(best[way], (clock() - begin) / asked)
                found.append(rows)
        assert comparable(found[0]) == comparable(found[1]), question
        answers.append(comparable(found[0]))
        ratio = best[0] / best[1]
        print(f"{question:28}{best[0] * 1e3:10.1f}{best[1] * 1e3:11.1f}{ratio:7.2f}", flush=True)
        if ratio > MAX_RATIO:
            plan = "EXPLAIN " if what == "Postgres" else "EXPLAIN QUERY PLAN "
            print(*(f"    {row[-1]}" for row in ask(plan + both[0])), sep="\n")
    return answers


def main() -> None:
    """Print the times."""
    parser = parser_of(__doc__)
    parser.add_argument("--runs", type=int, default=400)
    parser.add_argument("--launches", type=int, default=10_000, help="launches of a run")
    parser.add_argument("--rounds", type=int, default=3)
    wanted = parser.parse_args()
    answers = []
    with tempfile.TemporaryDirectory() as name:
        path = Path(name) / "store.sqlite"
        engine = store.open_store(str(path))
        fill(engine, wanted.runs, wanted.launches)
        engine.dispose()
        with closing(sqlite3.connect(path)) as plain:
            answers.append(compare("SQLite", lambda query: plain.execute(query).fetchall(), own_s, wanted.rounds))
    with postgres.own_server() as server:
        database = postgres.migrated(server)
        url = server.url(database)
        engine = store.open_store(url.render_as_string(hide_password=False))
        fill(engine, wanted.runs, wanted.launches)
        engine.dispose()
        address = url.set(drivername="postgresql").render_as_string(hide_password=False)
        with psycopg.connect(address, autocommit=True) as session:
            session.execute("ANALYZE")
            session.execute(ONE_PROCESS)
            answers.append(
                compare(
                    "Postgres",
                    lambda query: session.execute(query).fetchall(),  # type: ignore[call-overload]
                    lambda: processor_s(session),
                    wanted.rounds,
                )
            )
    for question, one, other in zip(QUESTIONS, *answers, strict=True):
        assert one == other, question


if __name__ == "__main__":
    main()
