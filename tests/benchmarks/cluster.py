"""How fast many exports get into a store with the workers of a local cluster, beside one process, with the same files.

Run it with ``python -m tests.benchmarks.cluster``. It makes 2,000 exports of the sizes that profilers write in a night
of tests (``--files`` makes fewer): traces of 200 launches of nvprof and Nsight Systems, power logs, and raw pages of
Nsight Compute with 34 launches, each with other names and numbers. They are loaded into Postgres by two workers, as the
role of ``db create-loader``; one worker is killed on the way. Then one process loads them into another database, and
the rows of all views are compared. The overhead of a task is what Dask takes for work that does nothing. ``--serial``
loads only some of the files by one process, spread over all; the power of their boards differs then, because it
depends on all earlier runs. The number of rows of every run is compared in every view, and all rows of one run in
``EVERY``.
"""

import argparse
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
from collections.abc import Container, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from sqlalchemy import Engine

from profsvc import pipeline, scale, store
from profsvc.errors import counted
from profsvc.scale.work import Opened
from profsvc.store.schema.catalog import VIEWS
from profsvc.store.schema.column_types import IDS_PER_UPLOAD
from tests.benchmarks.reading import ROOT, gpu_trace, nsys_trace, smi_log
from tests.postgres import Server, migrated, server

RAW_PAGE = ROOT / "fixtures" / "demo" / "ncu_raw.csv.gz"
EVERY = 11  # not a divisor of the kinds' cycle of twenty
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


def rows_of_views(engine: Engine, only: Container[str] | None = None) -> dict[str, Counter[str]]:
    """Return the rows of every view, with runs and files by name instead of by the numbers they happened to get.

    With ``only`` those of these runs.
    """
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

    def rows(view: str) -> Iterator[Mapping[str, Any]]:
        if only is None:
            yield from store.select(engine, view)
        elif "run_id" in VIEWS[view][1]:
            for run_id, name in runs.items():
                if name in only:
                    yield from store.select(engine, view, run_id=run_id)

    return {view: Counter(map(plain, rows(view))) for view in VIEWS}


def counts_of_views(engine: Engine) -> dict[str, Counter[str]]:
    """Return how many rows each run has in every view."""
    runs = {row["run_id"]: row["name"] for row in store.select(engine, "v1_runs")}
    views = [view for view in VIEWS if "run_id" in VIEWS[view][1]]
    with engine.connect() as connection:
        found = {
            view: connection.exec_driver_sql(f"SELECT run_id, count(*) FROM {view} GROUP BY run_id").all()
            for view in views
        }
    return {view: Counter({runs[run]: count for run, count in rows if run in runs}) for view, rows in found.items()}


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


def kill_one(pids: Sequence[int], engine: Engine, at: int) -> threading.Thread:
    """Kill the first worker when so many files are stored."""

    def stored() -> int:
        with engine.connect() as connection:
            return int(connection.exec_driver_sql("SELECT count(*) FROM v1_uploads").scalar_one())

    def wait() -> None:
        while stored() < at:
            time.sleep(0.2)
        os.kill(pids[0], signal.SIGKILL)

    thread = threading.Thread(target=wait, daemon=True)
    thread.start()
    return thread


def nothing(_: Opened, item: int) -> int:
    """Do nothing, to time what that takes."""
    return item


def load(place: Opened, files: Sequence[Path], folder: Path, workers: int, kill_at: int = 0) -> tuple[float, float]:
    """Load the files; return the seconds, and the seconds of a task that does nothing (0 in this process)."""
    groups = scale.group_files([str(folder)])
    wanted = {str(file) for file in files}
    groups = [group for group in groups if wanted.intersection(group.files)]
    given = store.RunInfo(), pipeline.ReadOptions(zone="UTC")
    if not workers:
        began = time.perf_counter()
        done = list(scale.ingest(place, scale.one_process(place), groups, *given))
        took, overhead = time.perf_counter() - began, 0.0
    else:
        with scale.workers("local", place, workers) as mapped:
            pids = sorted({pid for _, pid in mapped(process_id, range(40))})
            began = time.perf_counter()
            assert [item for item, _ in mapped(nothing, range(1000))]
            overhead = (time.perf_counter() - began) / 1000
            killer = kill_one(pids, place.engine, kill_at) if kill_at else None
            began = time.perf_counter()
            done = list(scale.ingest(place, mapped, groups, *given))
            took = time.perf_counter() - began
            if killer:
                killer.join(5)
                assert not killer.is_alive(), "no worker was killed"
    wrong = [outcome for outcome in done if outcome.exit_code]
    assert not wrong, wrong[:3]
    return took, overhead


def process_id(_: Opened, item: int) -> int:
    """Return the process that works."""
    time.sleep(0.01)
    return os.getpid()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--files", type=int, default=2000)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--serial", type=int, default=0, help="time only so many files by one process")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as made, server() as at:
        folder = Path(made) / "exports"
        files = exports(folder, asked.files)
        size = sum(file.stat().st_size for file in files) / 1e6
        machine = f"{os.cpu_count()} processors, load {os.getloadavg()[0]:.1f}"
        print(f"{counted(len(files), 'file')}, {size:.0f} MB, {machine}")
        _compare(at, files, folder, asked.workers, asked.serial)


def _compare(at: Server, files: list[Path], folder: Path, workers: int, serial: int) -> None:
    stores = [at.url(migrated(at)) for _ in range(2)]
    admin = store.connect(
        at.admin.set(drivername="postgresql+psycopg", database=stores[0].database).render_as_string(False)
    )
    role = store.create_loader(admin, f"loader_{stores[0].database}")
    cluster = opened(role.url, folder.parent / "kept")
    took, overhead = load(cluster, files, folder, workers, kill_at=len(files) // 3)
    loaded = len(store.select(cluster.engine, "v1_runs"))
    print(f"{workers} workers, one killed: {took:.1f} s, {took / len(files) * 1e3:.0f} ms a file; {loaded} runs")
    print(f"overhead of a task: {overhead * 1e3:.2f} ms")
    some = files[:: max(len(files) // serial // EVERY * EVERY, 1)] if serial else files
    alone = opened(stores[1].render_as_string(hide_password=False), folder.parent / "kept")
    alone_took, _ = load(alone, some, folder, 0)
    each, each_alone = took / len(files), alone_took / len(some)
    print(f"one process: {alone_took:.1f} s, {each_alone * 1e3:.0f} ms a file; speed-up {each_alone / each:.2f}")
    names = sorted(row["name"] for row in store.select(alone.engine, "v1_runs"))
    counted_rows = counts_of_views(cluster.engine), counts_of_views(alone.engine)
    if not serial:
        said = different(*counted_rows) or "none"
        print(f"rows of the views: {sum(counted_rows[0]['v1_metrics'].values())} metrics, "
              f"{sum(counted_rows[0]['v1_launches'].values())} launches; runs with another number: {said}")  # fmt: skip
    compared = set(names[::EVERY] if len(names) > 20 * EVERY else names)
    found, expected = (rows_of_views(place.engine, compared) for place in (cluster, alone))
    print(f"rows of {counted(len(compared), 'run')}: {sum(sum(rows.values()) for rows in found.values())}; "
          f"different: {different(found, expected) or 'none'}")  # fmt: skip
    for place in (cluster.engine, alone.engine, admin):
        place.dispose()
    with at.session(str(stores[0].database)) as session:
        session.execute(f'DROP OWNED BY "{role.name}"; DROP ROLE "{role.name}"')


if __name__ == "__main__":
    main()
