"""A year of a busy team in Postgres, compressed in time: what grows with the months, and what does not.

Run it with ``python -m tests.benchmarks.busy_year``. A busy team makes 1,000 runs a day of 200 launches with 2,000
metrics each, and 86.4 million readings. Here a month has few such runs (``--runs``), each as large as theirs and with
its share of the readings, spread over the days of the month. ``--loaded`` of them are real files that go through
the whole pipeline: a raw page of Nsight Compute and a log of `nvidia-smi`. The others are copies of these rows inside
the database, with new numbers, a new time, and durations that scatter by 1 %. So the store has the rows of so many
real runs, which the last line prints as a share of a year.

After each month are measured: the seconds to load a run and those of the nightly report, both also of the processor of
this program, median and 95th percentile of
the history of kernels, and the size of the database. With ``--workers 2`` the last month is also loaded by so many
processes at once. ``--archive`` archives the first half of the year at the end and measures again.

Times are of this machine and its other work; their growth is what counts. A server of such a team has less memory than
its tables have pages; ``--buffers 16MB`` gives this one as little for its few rows.
"""

import calendar
import hashlib
import os
import statistics
import subprocess
import sys
import tempfile
import time
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sqlalchemy import Connection, Engine, Text, text

from profsvc import pipeline, store
from profsvc.pipeline.nightly import report_of_night
from profsvc.store.connection.transactions import reading, writing
from profsvc.store.queries.kernels.history import HistoryFilter
from profsvc.store.results.writer import RANGE_KEYS
from profsvc.store.schema.column_types import IDS_PER_UPLOAD
from profsvc.store.schema.results.launch_results import RESULT_TOTALS, RESULTS
from profsvc.store.schema.tables import POWER, metadata
from profsvc.views import history
from tests.benchmarks.reading import ROOT
from tests.command_line import parser_of
from tests.conftest import COUNTERS
from tests.environment import postgres
from tests.inputs.long_exports import ncu_raw, smi_log, write

YEAR_RUNS = 365_000
READINGS = 86_400_000 // 1000
CHANNELS = 4  # readings per line of the log
YEAR = 2025
QUESTIONS = 40
NOISE = 0.01
# Columns that contain the number of an upload in the way of `IDS_PER_UPLOAD`, beside the keys of the tables.
SHIFTED = {
    *RANGE_KEYS.values(),
    *("first_cell", "list_id", "first_id", "last_id", "source_id", "first_launch"),
}
OF_UPLOADS = ("upload_devices", "kernel_totals", "place_totals", "shape_totals", "timelines", "launch_lists")
OF_RUNS = ("run_tags", "finished_parts", "wall_time", *RESULTS, *RESULT_TOTALS, *POWER)
LOAD = """
import sys
from profsvc import pipeline, store
engine = store.open_store(sys.argv[1])
for name in sys.argv[4:]:
    for path in sys.argv[2:4]:
        with open(path, "rb") as stream:
            pipeline.ingest(engine, stream, path, store.RunInfo(project="busy", name=name, at="2025-12-31T20:00:00Z"))
"""


class Size(NamedTuple):
    """How large a run is, and how many there are."""

    months: int
    runs: int
    loaded: int
    launches: int
    metrics: int
    readings: int


class Month(NamedTuple):
    """What was measured after a month."""

    runs: int
    load_s: float
    load_cpu_s: float
    night_s: float
    night_cpu_s: float
    history_ms: float
    history_p95_ms: float
    history_cpu_ms: float
    database_mb: float


def moments(month: int, runs: int) -> list[datetime]:
    """Return the times of the runs of a month, spread over its days.

    >>> [f"{at:%m-%d %H}" for at in moments(2, 4)]
    ['02-01 02', '02-08 02', '02-15 02', '02-22 02']
    """
    days = calendar.monthrange(YEAR, month)[1]
    return [datetime(YEAR, month, 1, 2, tzinfo=UTC) + timedelta(days=days * run // runs) for run in range(runs)]


def page(path: Path, size: Size, seed: int) -> None:
    """Write the raw page of a run: its numbers are those of one draw, its process and launches its own."""
    lines = ncu_raw(size.launches, size.metrics - 1)
    draw = np.random.default_rng(seed)
    with path.open("w", encoding="utf-8") as file:
        for number, line in enumerate(lines):
            more = ["gpu__time_duration.sum", "ns", f"{10_000 * (1 + number % 7) * (1 + NOISE * draw.normal()):.0f}"]
            file.write(f'{line.rstrip()},"{more[min(number, 2)]}"\n')


def load(engine: Engine, files: list[Path], at: datetime, name: str) -> int:
    """Load the files of a run through the whole pipeline; return its number."""
    run_id = 0
    for path in files:
        with path.open("rb") as stream:
            info = store.RunInfo(project="busy", name=name, at=f"{at:%Y-%m-%dT%H:%M:%SZ}", commit_id=f"{at:%m%d%H}")
            run_id = int(pipeline.ingest(engine, stream, path.name, info).run_id or 0)
    return run_id


def copy_run(connection: Connection, run_id: int, at: datetime, name: str, factor: float) -> None:
    """Copy the rows of a run under new numbers, with another time, and all durations times a factor."""
    stamp = f"{at:%Y-%m-%dT%H:%M:%SZ}"
    new = connection.execute(
        text(
            "INSERT INTO runs (project, name, host, commit_id, started_at, created_at, device_id, version_id, changes)"
            " SELECT project, :name, host, :commit, NULL, :at, device_id, version_id, changes FROM runs"
            " WHERE run_id = :run_id RETURNING run_id"
        ),
        {"name": name, "commit": name[-7:], "at": stamp, "run_id": run_id},
    ).scalar_one()
    others = [
        column.name
        for column in metadata.tables["uploads"].columns
        if column.name not in {"upload_id", "run_id", "sha256", "received_at"}
    ]
    for upload_id in connection.execute(
        text("SELECT upload_id FROM uploads WHERE run_id = :run_id ORDER BY upload_id"), {"run_id": run_id}
    ).scalars().all():  # fmt: skip
        digest = hashlib.sha256(f"{name} {upload_id}".encode()).hexdigest()
        listed = ", ".join(others)
        made = connection.execute(
            text(
                f"INSERT INTO uploads (run_id, sha256, received_at, {listed}) SELECT :new, :digest, :at, {listed}"
                " FROM uploads WHERE upload_id = :upload_id RETURNING upload_id"
            ),
            {"new": new, "digest": digest, "at": stamp, "upload_id": upload_id},
        ).scalar_one()
        shift = (made - upload_id) * IDS_PER_UPLOAD
        bounds = {"first": upload_id * IDS_PER_UPLOAD, "end": (upload_id + 1) * IDS_PER_UPLOAD}
        for table, key in RANGE_KEYS.items():
            _copy_rows(connection, table, f"{key} >= :first AND {key} < :end", factor, shift=shift, values=bounds)
        for table in OF_UPLOADS:
            _copy_rows(
                connection, table, "upload_id = :old", factor, values={"old": upload_id}, changed={"upload_id": made}
            )
        for table in RESULTS:
            condition = "run_id = :run_id AND launch_id >= :first AND launch_id < :end"
            values = {"run_id": run_id, **bounds}
            _copy_rows(connection, table, condition, factor, shift=shift, values=values, changed={"run_id": new})
    for table in OF_RUNS:
        condition = "run_id = :run_id" + " AND launch_id = 0" * (table in RESULTS)
        _copy_rows(connection, table, condition, factor, values={"run_id": run_id}, changed={"run_id": new})


def _copy_rows(
    connection: Connection,
    table: str,
    condition: str,
    factor: float,
    *,
    shift: int = 0,
    values: dict[str, int],
    changed: dict[str, int] | None = None,
) -> None:
    """Copy rows of a table within it."""
    cells = []
    for column in metadata.tables[table].columns:
        if column.name in (changed or {}):
            cells.append(str((changed or {})[column.name]))
        elif shift and column.name in SHIFTED and not isinstance(column.type, Text):
            cells.append(f"{column.name} + {shift}")
        elif column.name in {"duration_ns", "total_ns", "min_ns", "p50_ns", "p95_ns", "max_ns", "ideal_ns"}:
            cells.append(f"{column.name} * {factor}")
        else:
            cells.append(column.name)
    names = ", ".join(column.name for column in metadata.tables[table].columns)
    query = f"INSERT INTO {table} ({names}) SELECT {', '.join(cells)} FROM {table} WHERE {condition}"
    connection.execute(text(query), values)


def median(spent: list[tuple[float, float]]) -> tuple[float, float]:
    """Return the medians of seconds and of processor seconds."""
    wall, processor = zip(*spent, strict=True)
    return statistics.median(wall), statistics.median(processor)


def fill_month(engine: Engine, folder: Path, month: int, size: Size) -> tuple[float, float]:
    """Load the runs of a month; return the median seconds of those that were real files, and of the processor."""
    spent, draw, last = [], np.random.default_rng(month), 0
    times = moments(month, size.runs)
    for number, at in enumerate(times):
        name = f"run-{month:02}-{number:04}"
        if number < size.loaded:
            files = [folder / f"{name}.csv", folder / f"{name}.log"]
            page(files[0], size, month * 1000 + number)
            write(files[1], smi_log(size.readings // CHANNELS))
            began = time.perf_counter(), time.process_time()
            last = load(engine, files, at, name)
            spent.append((time.perf_counter() - began[0], time.process_time() - began[1]))
            for path in files:
                path.unlink()
        else:
            with writing(engine) as connection:
                copy_run(connection, last, at, name, 1 + NOISE * draw.normal())
    return median(spent)


def server_seconds(engine: Engine) -> float:
    """Return the processor seconds of all connections that ended, from the process that started them."""
    with reading(engine) as connection:
        backend = connection.execute(text("SELECT pg_backend_pid()")).scalar_one()
        parent = Path(f"/proc/{backend}/stat").read_text().rpartition(")")[2].split()[1]
    time.sleep(0.2)
    ticks = Path(f"/proc/{parent}/stat").read_text().rpartition(")")[2].split()[13:15]
    return sum(map(int, ticks)) / os.sysconf("SC_CLK_TCK")


def asked(engine: Engine, questions: int = QUESTIONS) -> tuple[float, float, float]:
    """Return median and 95th percentile of the history of kernels, and the mean of program and server alone, in ms."""
    with reading(engine) as connection:
        kernels = list(connection.execute(text("SELECT kernel FROM kernels ORDER BY kernel_id")).scalars())
    spent, processor = [], time.process_time() + server_seconds(engine)
    for number in range(questions):
        began = time.perf_counter()
        quantity = ("duration", "potential")[number % 2]
        history.history(engine, kernels[number % len(kernels)], quantity, HistoryFilter())
        spent.append(1e3 * (time.perf_counter() - began))
    processor = time.process_time() + server_seconds(engine) - processor
    return float(np.median(spent)), float(np.quantile(spent, 0.95)), 1e3 * processor / questions


def database_bytes(engine: Engine, tables: tuple[str, ...] = ()) -> int:
    """Return the size of the database, or of some tables with their indexes."""
    with reading(engine) as connection:
        if not tables:
            return int(connection.execute(text("SELECT pg_database_size(current_database())")).scalar_one())
        sizes = (text(f"SELECT pg_total_relation_size('{table}')") for table in tables)
        return sum(int(connection.execute(query).scalar_one()) for query in sizes)


def vacuum(engine: Engine) -> None:
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.execute(text("VACUUM (ANALYZE)"))


def measured(engine: Engine, folder: Path, month: int, size: Size) -> Month:
    """Load a month and measure after it."""
    load_s, load_cpu_s = fill_month(engine, folder, month, size)
    vacuum(engine)
    began, processor = time.perf_counter(), time.process_time()
    report_of_night(engine, night=date(YEAR, month, calendar.monthrange(YEAR, month)[1]))
    night_s, night_cpu_s = time.perf_counter() - began, time.process_time() - processor
    history_ms = asked(engine)
    return Month(month * size.runs, load_s, load_cpu_s, night_s, night_cpu_s, *history_ms, database_bytes(engine) / 1e6)


def at_once(url: str, folder: Path, size: Size, workers: int, runs: int = 4) -> float:
    """Return the seconds in which so many processes load some runs."""
    began, processes = time.perf_counter(), []
    for worker in range(workers):
        names = [f"worker-{workers}-{worker}-{number}" for number in range(runs // workers)]
        files = [folder / f"{workers}-{worker}.csv", folder / f"{workers}-{worker}.log"]
        page(files[0], size, 10**6 + 10 * workers + worker)
        write(files[1], smi_log(size.readings // CHANNELS))
        processes.append(subprocess.Popen([sys.executable, "-c", LOAD, url, *map(str, files), *names], cwd=ROOT))
    assert not any(process.wait() for process in processes)
    return time.perf_counter() - began


def unit_costs(engine: Engine) -> dict[str, float]:
    """Return MB on disk per million launches (with their results), metrics and readings."""
    with reading(engine) as connection:
        launches, samples = connection.execute(text("SELECT sum(launches), sum(samples) FROM uploads")).one()
        cells = connection.execute(
            text(
                "SELECT sum(b.launches * c.columns) FROM wide_blocks b JOIN (SELECT layout_id, count(*) AS columns"
                " FROM wide_columns GROUP BY layout_id) c ON c.layout_id = b.layout_id"
            )
        ).scalar_one()
    of_launches = ("launches", "counters", *RESULTS)
    of_cells = ("metrics", "wide_blocks", "wide_cells", "wide_lists", "wide_constants")
    return {
        "launch, with counters and results": database_bytes(engine, of_launches) / int(launches),
        "metric of a launch": database_bytes(engine, of_cells) / int(cells),
        "reading": database_bytes(engine, ("samples", "sample_blocks")) / int(samples),
    }


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("--months", type=int, default=3)
    parser.add_argument("--runs", type=int, default=4, help="runs per month")
    parser.add_argument("--loaded", type=int, default=2, help="of these, loaded from files")
    parser.add_argument("--launches", type=int, default=200)
    parser.add_argument("--metrics", type=int, default=2000)
    parser.add_argument("--readings", type=int, default=READINGS, help="readings per run")
    parser.add_argument("--workers", type=int, default=0, help="also load by so many processes at once")
    parser.add_argument("--archive", action="store_true", help="archive the first half at the end")
    parser.add_argument("--buffers", default="128MB", help="memory of the server for pages of tables and indexes")
    wanted = vars(parser.parse_args())
    workers, archived, buffers = wanted.pop("workers"), wanted.pop("archive"), wanted.pop("buffers")
    size = Size(**wanted)
    heads = ("month", "runs", "load s", "cpu s", "night s", "cpu s", "history ms", "p95 ms", "cpu ms", "MB")
    print("".join(f"{head:>11}" for head in heads))
    with tempfile.TemporaryDirectory() as name, postgres.server(shared_buffers=buffers) as server:
        folder = Path(name)
        url = server.url(postgres.migrated(server, COUNTERS)).render_as_string(hide_password=False)
        engine = store.open_store(url, COUNTERS, pooled=True)
        for month in range(1, size.months + 1):
            row = measured(engine, folder, month, size)
            print(
                f"{month:11}" + "".join(f"{cell:11}" if cell == row.runs else f"{cell:11.2f}" for cell in row),
                flush=True,
            )
        for what, each in unit_costs(engine).items():
            print(f"MB per million: {what}: {each:.1f}")
        if workers:
            one, several = (at_once(url, folder, size, count) for count in (1, workers))
            print(f"4 runs by 1 process {one:.1f} s, by {workers} {several:.1f} s: {one / several:.2f} times")
        if archived:
            _archive(engine, folder, size)
        engine.dispose()
    print(f"{size.months * size.runs} real-sized runs: {100 * size.months * size.runs / YEAR_RUNS:.3f} % of a year")


def _archive(engine: Engine, folder: Path, size: Size) -> None:
    """Archive the first half of the year, and print what it took and what is left."""
    before: Any = database_bytes(engine)
    for month in store.closed_months(engine, date(YEAR, size.months // 2 + 1, 1)):
        began = time.perf_counter()
        done = store.archive_month(engine, month, str(folder / "archive"))
        print(f"archived {done.month}: {done.runs} runs, {done.rows:,} rows, {done.size_bytes / 1e6:.0f} MB of Parquet,"
              f" {time.perf_counter() - began:.1f} s", flush=True)  # fmt: skip
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.execute(text("VACUUM (FULL, ANALYZE)"))
    history_ms, p95_ms, _ = asked(engine)
    print(f"after: {database_bytes(engine) / 1e6:.0f} MB of {before / 1e6:.0f}, history {history_ms:.1f} ms, "
          f"p95 {p95_ms:.1f}")  # fmt: skip


if __name__ == "__main__":
    main()
