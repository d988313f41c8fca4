"""How fast the history of a kernel is answered in a full store: 100,000 runs with 10 million metrics.

Run it with ``python -m tests.benchmarks.history`` (``--runs 5000`` for less, ``--url`` for a server that is there
already, whose database must be new; without it a SQLite file and a Postgres server of the tests are filled). Every
quantity is asked many times, of a kernel that each run has, of a rare one, of one project and from the middle on.
"""

import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType

import numpy as np
from sqlalchemy import Engine, text

from profsvc import store
from profsvc.store.connection.transactions import writing
from profsvc.store.queries.kernels.history import HistoryFilter
from profsvc.store.schema.column_types import IDS_PER_UPLOAD
from profsvc.views import history
from tests.command_line import parser_of
from tests.conftest import COUNTERS
from tests.environment import postgres

METRICS, PROJECTS, EVERY_RARE, EVERY_POWER = 100, 20, 500, 4
KERNELS = ("gemm<16>(float*)", "saxpy(int)", "reduce(int)", "rare(int)")
CRITERIA = ("divergence", "load_balance_sm", "l1_granularity")
FIRST_TEXT = 1001  # the store has texts of its own
GROUPS = 3  # launches of a run: one of each of the first three kernels; the rare one takes the place of the third
NUMBERS = "WITH RECURSIVE n(i) AS (SELECT CAST({first} AS BIGINT) UNION ALL SELECT i + 1 FROM n WHERE i < {last})"
# What makes each table: columns, the SQL of a row of number i, whatever else it is joined with, and a condition.
RUN = "(i - 1) / {groups} + 1"
KERNEL = (
    f"CASE WHEN (i - 1) % {GROUPS} < 2 THEN (i - 1) % {GROUPS} + 1 WHEN ({RUN}) % {EVERY_RARE} = 0 THEN 4 ELSE 3 END"
)
DURATION = f"(1000.0 + (i * 7919) % 50 + 200 * (({RUN}) / {{half}}))"
LAUNCH = f"({RUN}) * {IDS_PER_UPLOAD} + (i - 1) % {GROUPS} + 1"
TABLES = {
    "runs": (1, "run_id, project, name, commit_id, created_at, device_id, version_id",
             f"i, 'project ' || (i % {PROJECTS}), 'run ' || i, 'c' || (i / 3), '2026-01-01T00:00:00Z',"
             " 1 + i % 2, 1001"),
    "uploads": (1, "upload_id, run_id, file_name, sha256, size_bytes, format, status, lines, lines_stored,"
                   " lines_skipped, lines_rejected, launches, samples, message, facts, received_at",
                f"i, i, 'raw.csv', substr('{'0' * 64}' || i, length(CAST(i AS text)) + 1), 1,"
                f" 'ncu-raw', 'stored', 1, 1, 0, 0, {GROUPS}, 0, '',"
                " '{}', '2026-01-01T00:00:00Z'"),
    "launches": (GROUPS, "launch_id, place_id, shape_id, duration_ns, line", f"{LAUNCH}, 1, {KERNEL}, {DURATION}, 1"),
    "kernel_totals": (GROUPS, "kernel_id, upload_id, launches, timed, total_ns, min_ns, p50_ns, p95_ns, max_ns",
                      f"{KERNEL}, {RUN}, 1, 1, {', '.join([DURATION] * 5)}"),
    "criteria": (GROUPS * len(CRITERIA), "run_id, launch_id, kernel_id, criterion_id, version_id, value, flags",
                 f"{RUN}, ({RUN}) * {IDS_PER_UPLOAD} + (i - 1) / {len(CRITERIA)} % {GROUPS} + 1, 0,"
                 f" (i - 1) % {len(CRITERIA)} + 1002, 1001, ((i * 31) % 100) / 100.0, 0"),
    "potential": (GROUPS, "run_id, launch_id, kernel_id, version_id, speedup, ideal_ns, duration_ns, flags",
                  f"{RUN}, {LAUNCH}, 0, 1001, 2.0, {DURATION} / 2, {DURATION}, 0"),
    "metrics": (METRICS, "launch_ref, item, kernel_id, metric_id, unit_id, raw_text, value, line",
                f"({RUN}) * {IDS_PER_UPLOAD} + (i - 1) % {GROUPS} + 1, (i - 1) % {METRICS},"
                f" NULL, 1, 1, '1234.5', 1234.5, 1"),
    "sensors": (1, "sensor_id, quantity, name, unit, gpu_index, samples",
                f"i * {IDS_PER_UPLOAD} + 1, 'power', 'board', 'W', 0, 0"),
    "power_windows": (1, "run_id, item, window_id, kind_id, source_id, load_id, sensor_id, begin_ns, end_ns,"
                         " duration_s, readings, mean_power_w, mean_temperature_c, reference_temperature_c,"
                         " coefficient_w_per_c, coefficient_low, coefficient_high, corrected_power_w,"
                         " corrected_power_low_w, corrected_power_high_w, energy_j, corrected_energy_j,"
                         " corrected_energy_low_j, corrected_energy_high_j, version_id",
                      f"i, 0, 1005, 1006, 1007, 1005, i * {IDS_PER_UPLOAD} + 1, 0, 1000, 10.0, 100, 300 + i % 7,"
                      " 50 + i % 7,"
                      " 50.0, 1.0, 0.9, 1.1, 300.0, 299.0, 301.0, 3000, 3000, 2990, 3010, 1001"),
}  # fmt: skip
ONLY = {"sensors": f"i % {EVERY_POWER} = 0", "power_windows": f"i % {EVERY_POWER} = 0"}
TEXTS = ("version", *CRITERIA, "saxpy", "load", "marks")
ASKED = {
    "each run has it": ("saxpy(int)", {}),
    "all of it": ("saxpy(int)", {"points": 5000}),
    "from the middle": ("saxpy(int)", {"before": "half"}),
    "one project": ("saxpy(int)", {"project": "project 8"}),
    "one device": ("saxpy(int)", {"device": "NVIDIA H200"}),
    "rare": ("rare(int)", {}),
    "rare in one project": ("rare(int)", {"project": "project 0"}),
}


def fill(engine: Engine, runs: int, fewer: Mapping[str, int] = MappingProxyType({})) -> None:
    """Write so many runs, by the same statements on both databases; ``fewer`` rows a run in some tables."""
    with writing(engine) as connection:
        for number, words in enumerate(TEXTS, FIRST_TEXT):
            connection.execute(text("INSERT INTO texts VALUES (:number, :words)"), {"number": number, "words": words})
        for number, name in enumerate(KERNELS, 1):
            short = name.partition("<")[0].partition("(")[0]
            values = {"number": number, "name": name, "short": short, "key": f"key {number}"}
            connection.execute(text("INSERT INTO kernels VALUES (:number, :name, :short)"), values)
            query = "INSERT INTO shapes (shape_id, key, kernel_id) VALUES (:number, :key, :number)"
            connection.execute(text(query), {name: values[name] for name in ("number", "key")})
        for number, name in enumerate(("NVIDIA H200", "NVIDIA A100"), 1):
            query = "INSERT INTO devices (device_id, name, compute_capability) VALUES (:number, :name, '9.0')"
            connection.execute(text(query), {"number": number, "name": name})
        connection.execute(text("INSERT INTO places (place_id, key) VALUES (1, 'key')"))
        connection.execute(text("INSERT INTO metric_names VALUES (1, 'metric', '', '')"))
        connection.execute(text("INSERT INTO unit_names VALUES (1, '', '')"))
        for name, (each, columns, values) in TABLES.items():
            rows = fewer.get(name, each)
            made = values.replace("{groups}", str(rows)).replace("{half}", str(max(1, runs // 2)))
            only = f" WHERE {ONLY[name]}" if name in ONLY else ""
            numbers = NUMBERS.format(first=1, last=runs * rows)
            connection.execute(text(f"INSERT INTO {name} ({columns}) {numbers} SELECT {made} FROM n{only}"))
    if engine.dialect.name == "postgresql":
        with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
            connection.execute(text("VACUUM ANALYZE"))


def measured(engine: Engine, runs: int, times: int) -> Iterator[tuple[str, str, int, float, float]]:
    """Yield of each question what was asked, of which quantity, how many points came, and median and p95 in ms."""
    for what, (kernel, more) in ASKED.items():
        limits = {**more, **({"before": runs // 2} if more.get("before") else {})}
        for quantity in ("duration", "divergence", "potential", "power"):
            if quantity == "power" and kernel.startswith("rare"):
                continue
            spent, points = [], 0
            for _ in range(times):
                began = time.perf_counter()
                points = len(history.history(engine, kernel, quantity, HistoryFilter(**limits))["points"])
                spent.append(1e3 * (time.perf_counter() - began))
            yield what, quantity, points, float(np.median(spent)), float(np.quantile(spent, 0.95))


@contextmanager
def stores(url: str | None) -> Iterator[list[str]]:
    """Give the stores to fill: the one of a URL, else a new one of each kind."""
    if url:
        yield [url]
        return
    with tempfile.TemporaryDirectory() as folder, postgres.server() as server:
        address = server.url(postgres.migrated(server, COUNTERS)).render_as_string(hide_password=False)
        yield [str(Path(folder) / "store.sqlite"), address]


def main() -> None:
    """Fill both, ask, and print."""
    parser = parser_of(__doc__)
    parser.add_argument("--runs", type=int, default=100_000)
    parser.add_argument("--times", type=int, default=20)
    parser.add_argument("--url")
    asked = parser.parse_args()
    with stores(asked.url) as urls:
        for url in urls:
            engine = store.open_store(url, COUNTERS)
            began = time.monotonic()
            fill(engine, asked.runs)
            rows = asked.runs * METRICS
            print(f"{engine.dialect.name}: {asked.runs} runs, {rows} metrics in {time.monotonic() - began:.0f} s")
            for what, quantity, points, median, p95 in measured(engine, asked.runs, asked.times):
                print(f"  {what:20} {quantity:12} {points:5} points  median {median:6.1f} ms  p95 {p95:6.1f} ms")
            engine.dispose()


if __name__ == "__main__":
    main()
