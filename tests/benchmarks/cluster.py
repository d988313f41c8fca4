"""How fast many exports get into a store with the workers of a local cluster, beside one process, with the same files.

Run it with ``python -m tests.benchmarks.cluster``. It makes 2,000 exports of the sizes that profilers write in a night
of tests (``--files`` makes fewer): traces of 200 launches of nvprof and Nsight Systems, power logs, and raw pages of
Nsight Compute with 34 launches, each with other names and numbers. They are loaded into Postgres by two workers, as the
role of ``db create-loader``; one worker is killed on the way. Then one process loads them into another database, and
all rows of all views are compared, by a hash of each that Postgres computes. The overhead of a task is what Dask takes
for work that does nothing.

The speed-up on the clock counts on a machine that does nothing else. The time of the processors counts on every
machine: one process and the server mostly wait for each other, so its files take the sum of both, while workers can at
best use all processors all the time.
"""

import csv
import gzip
import io
import json
import os
import re
import signal
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from sqlalchemy import Connection, Engine

from profsvc import pipeline, scale, store
from profsvc.errors import counted
from profsvc.scale.work import Opened
from profsvc.store.schema.catalog import KINDS as VIEW_COLUMNS
from profsvc.store.schema.catalog import VIEWS
from profsvc.store.schema.column_types import IDS_PER_UPLOAD
from tests.benchmarks.reading import ROOT
from tests.command_line import parser_of
from tests.environment.postgres import Server, migrated, server
from tests.inputs.long_exports import gpu_trace, nsys_trace, smi_log

RAW_PAGE = ROOT / "fixtures" / "demo" / "ncu_raw.csv.gz"
DECIMALS = re.compile(r"(?<![\d:.])\d+\.\d+(?!\.)")
KINDS = (("raw", 1), ("smi", 4), ("nvprof", 8), ("nsys", 7))  # files of each kind among twenty
# When and where something was stored, and numbers of rows that nothing else refers to.
NOT_COMPARED = {"received_at", "created_at", "refused_at", "kernel_id", "device_id", "item", "refusal_id"}


def changed(lines: Iterator[str], number: int) -> Iterator[str]:
    """Give lines other decimals and other kernel names."""

    def other(found: re.Match[str]) -> str:
        text = found[0]
        return f"{float(text) * (1 + number % 997 / 10_000):.{len(text.partition('.')[2])}f}"

    for line in lines:
        yield DECIMALS.sub(other, line).replace("layer", f"layer{number % 50}x")


def raw_page(number: int) -> str:
    """Return the raw page of the demonstration with other names and times."""
    rows = list(csv.reader(io.StringIO(gzip.decompress(RAW_PAGE.read_bytes()).decode())))
    name, took = (rows[0].index(column) for column in ("Kernel Name", "gpu__time_duration.sum"))
    for row in rows[2:]:
        row[name] = row[name].replace("reduce", f"reduce{number % 50}")
        row[took] = f"{float(row[took]) * (1 + number / 100_000):.6f}"
    out = io.StringIO()
    csv.writer(out, quoting=csv.QUOTE_ALL, lineterminator="\n").writerows(rows)
    return out.getvalue()


def export(kind: str, number: int, rows: int) -> str:
    """Return the text of an export."""
    if kind == "raw":
        return raw_page(number)
    make = {"smi": smi_log, "nvprof": gpu_trace, "nsys": nsys_trace}[kind]
    return "".join(changed(make(rows), number))


def exports(folder: Path, count: int, rows: int = 200, kinds: Sequence[tuple[str, int]] = KINDS) -> list[Path]:
    """Write the exports, of every kind its share; no two are the same."""
    of_twenty = [kind for kind, share in kinds for _ in range(share)]
    files = []
    for number in range(count):
        kind = of_twenty[number * 7 % len(of_twenty)]
        files.append(folder / f"{number // 100:02}" / f"{kind}_{number:05}.csv")
        files[-1].parent.mkdir(exist_ok=True, parents=True)
        files[-1].write_text(export(kind, number, rows))
    return files


def rows_of_views(engine: Engine) -> dict[str, Counter[str]]:
    """Return the rows of every view, with runs and files by name instead of by the numbers they happened to get."""
    runs = {row["run_id"]: row["name"] for row in store.select(engine, "v1_runs")}
    uploads = {
        row["upload_id"]: f"{runs[row['run_id']]}:{row['sha256'][:12]}" for row in store.select(engine, "v1_uploads")
    }

    def named(column: str, value: Any) -> Any:
        if value is None:
            return None
        if column.startswith("run_") and column != "run_facts" and value in runs:
            return runs[value]
        if column in ("upload_id", "same_as"):
            return uploads[value]
        if column.endswith("_id") and isinstance(value, int) and value >= IDS_PER_UPLOAD:
            return uploads[value // IDS_PER_UPLOAD], value % IDS_PER_UPLOAD
        return value

    def plain(row: Mapping[str, Any]) -> str:
        return json.dumps({name: named(name, row[name]) for name in row if name not in NOT_COMPARED}, sort_keys=True)

    return {view: Counter(map(plain, store.select(engine, view))) for view in VIEWS}


def hashes_of_rows(engine: Engine) -> dict[tuple[str, str], tuple[int, int]]:
    """Return how many rows every run has of each kind, and the sum of their hashes, which Postgres computes.

    The kinds are the views, and the metrics as they are stored, of which the view is made with the launches: to ask it
    for each row takes longer than all else here. Runs and files stand by name instead of by the numbers they happened
    to get. Rows of no run are those of the run ''.
    """
    with _comparing(engine) as connection:
        connection.exec_driver_sql("ANALYZE")  # what was just loaded
        found = {}
        for kind, rows in _ROWS.items():
            digest = "('x' || substr(md5(cells::text), 1, 15))::bit(60)::bigint"
            query = f"SELECT run, count(*), sum({digest}) FROM ({rows}) s GROUP BY 1"
            for run, count, total in connection.exec_driver_sql(query):
                found[kind, run] = int(count), int(total)
        return found


def rows_of_run(engine: Engine, kind: str, run: str) -> Counter[str]:
    """Return the rows that `hashes_of_rows` counts of a run, to see which differ."""
    with _comparing(engine) as connection:
        query = f"SELECT cells::text FROM ({_ROWS[kind]}) s WHERE run = %(run)s"
        return Counter(connection.exec_driver_sql(query, {"run": run}).scalars())


@contextmanager
def _comparing(engine: Engine) -> Iterator[Connection]:
    """Yield a connection that has the names of runs and files in tables of its own."""
    with engine.connect() as connection:
        connection.exec_driver_sql(_NAMES)
        yield connection


_NAMES = """
    CREATE TEMP TABLE compared_runs AS SELECT run_id, name FROM v1_runs;
    CREATE TEMP TABLE compared_uploads (upload_id bigint PRIMARY KEY, run text, name text);
    INSERT INTO compared_uploads SELECT upload_id, r.name, r.name || ':' || sha256 FROM v1_uploads JOIN compared_runs r
    USING (run_id);
    ANALYZE compared_runs; ANALYZE compared_uploads;
"""


def _comparable(column: str, kind: str) -> str:
    """Return the SQL of a cell, as `rows_of_views` has it."""
    upload = "(SELECT u.name FROM compared_uploads u WHERE u.upload_id = {})"
    if column in ("upload_id", "same_as"):
        return upload.format(f"v.{column}")
    if kind != "int":
        return f"v.{column}"
    if column.startswith("run_") and column != "run_facts":
        return f"coalesce((SELECT c.name FROM compared_runs c WHERE c.run_id = v.{column}), v.{column}::text)"
    if column.endswith("_id"):
        owner, place = (f"v.{column} {sign} {IDS_PER_UPLOAD}" for sign in "/%")
        return (
            f"CASE WHEN v.{column} >= {IDS_PER_UPLOAD} THEN {upload.format(owner)} || ':' || {place}"
            f" ELSE v.{column}::text END"
        ).replace("%", "%%")
    return f"v.{column}"


def _view_rows(view: str, kinds: Mapping[str, str]) -> str:
    """Return the SQL of the rows of a view, each with its run."""
    cells = ", ".join(_comparable(name, kind) for name, kind in kinds.items() if name not in NOT_COMPARED)
    if "run_id" not in kinds:
        return f"SELECT '' AS run, ROW({cells}) AS cells FROM {view} v"
    joined = "LEFT JOIN compared_runs r ON r.run_id = v.run_id"
    return f"SELECT coalesce(r.name, '') AS run, ROW({cells}) AS cells FROM {view} v {joined}"


def _stored_rows(first: str, cells: str, rows: str) -> str:
    """Return the SQL of rows of base tables, each with its run, its file, and its place in that, by its ``first``."""
    return f"""
        SELECT f.run, ROW(f.name, {first} %% {IDS_PER_UPLOAD}, n.section, n.metric, n.statistic, i.unit, i.si_unit,
                          {cells}) AS cells
        FROM {rows} JOIN metric_names n USING (metric_id) JOIN unit_names i USING (unit_id)
        JOIN compared_uploads f ON f.upload_id = {first} / {IDS_PER_UPLOAD}"""


_BLOCKS = "wide_blocks b JOIN wide_columns c USING (layout_id) JOIN {} w ON w.cell_id = b.first_cell + c.place"
_ROWS = {
    **{view: _view_rows(view, kinds) for view, kinds in VIEW_COLUMNS.items() if not view.startswith("v1_metrics")},
    "metrics": _stored_rows(
        "m.launch_ref",
        "m.item, k.kernel, m.invocations, m.raw_text, m.value, m.reason, m.line",
        "metrics m LEFT JOIN kernels k USING (kernel_id)",
    ),
    "wide_constants": _stored_rows(
        "b.first_launch",
        "b.launches, c.factor, w.raw_text, w.value, w.reason, w.lines",
        _BLOCKS.format("wide_constants"),
    ),
    "wide_cells": _stored_rows(
        "b.first_launch",
        "b.launches, c.factor, t.ending, t.texts, w.lines",
        f"{_BLOCKS.format('wide_cells')} JOIN wide_lists t USING (list_id)",
    ),
}


def different(one: Mapping[str, Counter[str]], other: Mapping[str, Counter[str]]) -> dict[str, tuple[list[str], ...]]:
    """Return the views whose rows differ, with some rows of each that the other lacks."""
    return {
        view: (list(one[view] - other[view])[:3], list(other[view] - one[view])[:3])
        for view in one
        if one[view] != other[view]
    }


def opened(url: str, folder: Path) -> Opened:
    """Open a store whose kept bytes lie in a folder."""
    engine = store.open_store(url, pooled=True)
    return Opened(engine, store.blob_store_of(engine, str(folder)))


class Spent(NamedTuple):
    """Seconds on the clock, and of the processors: of the program, of the workers' scheduler, and of the server."""

    wall: float
    program: float
    scheduler: float
    server: float

    def of_each(self, files: int) -> str:
        wall, program, scheduler, server = (1e3 * seconds / files for seconds in self)
        return (
            f"{self.wall:.1f} s, {wall:.0f} ms a file; of the processors {program:.0f} + {scheduler:.0f} (Dask) + "
            f"{server:.0f} (server)"
        )

    @property
    def processors(self) -> float:
        return self.program + self.scheduler + self.server


def ticks(pid: int, *, ended: bool = False) -> float:
    """Return the processor seconds of a process, with those of its children that ended; 0 if it is gone."""
    try:
        cells = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return sum(map(int, cells[11 : 15 if ended else 13])) / os.sysconf("SC_CLK_TCK")


def server_seconds(engine: Engine) -> float:
    """Return the processor seconds of the server."""
    with engine.connect() as connection:
        backend = connection.exec_driver_sql("SELECT pg_backend_pid()").scalar_one()
    parent = Path(f"/proc/{backend}/stat").read_text().rpartition(")")[2].split()[1]
    children = Path(f"/proc/{parent}/task/{parent}/children").read_text().split()
    return ticks(int(parent), ended=True) + sum(map(ticks, map(int, children)))


def kill_one(pid: int, engine: Engine, at: int, spent: dict[int, float]) -> threading.Thread:
    """Kill a worker when so many files are stored, and note the processor seconds that it took."""

    def stored() -> int:
        with engine.connect() as connection:
            return int(connection.exec_driver_sql("SELECT count(*) FROM v1_uploads").scalar_one())

    def wait() -> None:
        while stored() < at:
            time.sleep(1)
        spent[pid] = ticks(pid)
        os.kill(pid, signal.SIGKILL)

    thread = threading.Thread(target=wait, daemon=True)
    thread.start()
    return thread


def process_id(_: Opened, item: int) -> int:
    """Return the process that works."""
    time.sleep(0.01)
    return os.getpid()


def nothing(_: Opened, item: int) -> int:
    """Do nothing, to time what that takes."""
    return item


def loop(_: Opened, item: int) -> int:
    """Compute for about a quarter of a second."""
    return sum(range(10_000_000))


def groups_of(folder: Path) -> tuple[Any, ...]:
    return scale.group_files([str(folder)]), store.RunInfo(), pipeline.ReadOptions(zone="UTC")


def load_alone(place: Opened, folder: Path) -> Spent:
    """Load the files by this process."""
    began = Spent(time.perf_counter(), time.process_time(), 0.0, server_seconds(place.engine))
    _require_stored(list(scale.ingest(place, scale.one_process(place), *groups_of(folder))))
    ended = Spent(time.perf_counter(), time.process_time(), 0.0, server_seconds(place.engine))
    return Spent(*(after - before for after, before in zip(ended, began, strict=True)))


def load_by_workers(place: Opened, folder: Path, workers: int, kill_at: int = 0) -> Spent:
    """Load the files by workers, of which one is killed when so many files are stored."""
    with scale.workers("local", place, workers) as mapped:
        before = {pid: ticks(pid) for _, pid in mapped(process_id, range(40))}
        _measure_machine(mapped, workers)
        killed = dict[int, float]()
        killer = kill_one(min(before), place.engine, kill_at, killed) if kill_at else None
        began = Spent(time.perf_counter(), 0.0, time.process_time(), server_seconds(place.engine))
        done = list(scale.ingest(place, mapped, *groups_of(folder)))
        wall, here = time.perf_counter() - began.wall, time.process_time() - began.scheduler
        server_s = server_seconds(place.engine) - began.server
        after = killed | {pid: ticks(pid) for _, pid in mapped(process_id, range(40))}
        if killer:
            killer.join(5)
            assert not killer.is_alive(), "no worker was killed"
    _require_stored(done)
    return Spent(wall, sum(spent - before.get(pid, 0.0) for pid, spent in after.items()), here, server_s)


def _measure_machine(mapped: Any, workers: int) -> None:
    """Print the overhead of a task, and how many times as fast as one all workers are with work that waits for none."""
    began = time.perf_counter()
    assert len(list(mapped(nothing, range(1000)))) == 1000
    print(f"overhead of a task: {time.perf_counter() - began:.2f} ms")
    spent = []
    for count in (1, workers):
        began = time.perf_counter()
        assert len(list(mapped(loop, range(count)))) == count
        spent.append(time.perf_counter() - began)
    print(f"a loop in {workers} workers at once: {workers * spent[0] / spent[1]:.2f} times one")


def _require_stored(done: Sequence[scale.Outcome]) -> None:
    wrong = [outcome for outcome in done if outcome.exit_code]
    assert not wrong, wrong[:3]


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("--files", type=int, default=2000)
    parser.add_argument("--workers", type=int, default=2)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as made, server() as at:
        folder = Path(made) / "exports"
        files = exports(folder, asked.files)
        size = sum(file.stat().st_size for file in files) / 1e6
        machine = f"{os.cpu_count()} processors, load {os.getloadavg()[0]:.1f}"
        print(f"{counted(len(files), 'file')}, {size:.0f} MB, {machine}", flush=True)
        _compare(at, len(files), folder, asked.workers)


def _compare(at: Server, files: int, folder: Path, workers: int) -> None:
    stores = [at.url(migrated(at)) for _ in range(2)]
    admin = store.connect(
        at.admin.set(drivername="postgresql+psycopg", database=stores[0].database).render_as_string(False)
    )
    role = store.create_loader(admin, f"loader_{stores[0].database}")
    cluster = opened(role.url, folder.parent / "kept")
    together = load_by_workers(cluster, folder, workers, kill_at=files // 3)
    print(f"{workers} workers, one killed: {together.of_each(files)}", flush=True)
    places = [opened(url.render_as_string(hide_password=False), folder.parent / "kept") for url in stores]
    alone = load_alone(places[1], folder)
    print(f"one process: {alone.of_each(files)}", flush=True)
    most = alone.processors / (together.processors / min(workers, os.cpu_count() or 1))
    print(f"speed-up {alone.wall / together.wall:.2f}; by the time of the processors at most {most:.2f}")
    began = time.perf_counter()
    with ThreadPoolExecutor() as both:
        found, expected = both.map(hashes_of_rows, (place.engine for place in places))
    rows = sum(count for count, _ in expected.values())
    wrong = sorted(key for key in found.keys() | expected.keys() if found.get(key) != expected.get(key))
    print(f"{len({run for _, run in expected} - {''})} runs, {rows:,} rows of {len(_ROWS)} kinds, compared in "
          f"{time.perf_counter() - began:.0f} s; different: {wrong[:20] or 'none'}")  # fmt: skip
    for kind, run in wrong[:3]:
        one, other = (rows_of_run(place.engine, kind, run) for place in places)
        print(f"{kind} of {run!r}: {list(one - other)[:3]} by workers, {list(other - one)[:3]} by one process")
    for engine in (cluster.engine, admin, *(place.engine for place in places)):
        engine.dispose()
    with at.session(str(stores[0].database)) as session:
        session.execute(f'DROP OWNED BY "{role.name}"; DROP ROLE "{role.name}"')
    if wrong:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
