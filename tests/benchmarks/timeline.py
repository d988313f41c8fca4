"""How long until the timeline of a run with a million events answers, the first time and when one zooms.

    python -m tests.benchmarks.timeline [--events 1000000]

A trace of nvprof is uploaded into a new SQLite store. The first answer reads all events; each later one is for half of
the span before it, down to a thousandth of a millionth. Plain SQLite answers the same zoom by grouping the launches
and copies of the span into as many columns: the ratio is its time over that of the answer. Times contain HTTP and JSON;
the processor time is that of the view in this process, which other work on the machine changes less.

With ``--perfetto`` the run is only exported for Perfetto, and the slices of the file, as Perfetto's own trace processor
reads them, are counted and summed beside the rows of the store.
"""

import io
import shutil
import sqlite3
import tempfile
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx
from sqlalchemy import Engine, text

from profsvc import pipeline, store
from profsvc.store.connection.transactions import reading
from profsvc.views.traces.export import write_perfetto
from profsvc.views.traces.timeline import search, timeline
from tests.benchmarks.run_pages import service
from tests.command_line import parser_of
from tests.inputs.long_exports import gpu_trace, write

ZOOMS, COLUMNS = 16, 600
GROUPED = """
    SELECT (start_ns - :begin) * :columns / (:end - :begin) AS at, count(*), sum(duration_ns) FROM {}
    WHERE start_ns BETWEEN :begin AND :end GROUP BY at
"""


def main() -> None:
    """Print the seconds of the first answer and of each zoom."""
    parser = parser_of(__doc__)
    parser.add_argument("--events", type=int, default=1_000_000)
    parser.add_argument("--perfetto", action="store_true")
    wanted = parser.parse_args()
    events = wanted.events
    with tempfile.TemporaryDirectory() as folder:
        trace, file = Path(folder, "trace.csv"), Path(folder, "store.sqlite")
        write(trace, gpu_trace(events))
        engine = store.open_store(str(file))
        with trace.open("rb") as stream:
            pipeline.ingest(engine, stream, trace.name, store.RunInfo(name="traced"))
        if wanted.perfetto:
            _export(engine)
            return
        busy = time.process_time()
        timeline(engine, 1)
        print(f"processor time of reading the events: {time.process_time() - busy:.2f} s")
        with (
            service(file) as url,
            httpx.Client(base_url=url, timeout=120) as http,
            closing(sqlite3.connect(file)) as db,
        ):
            took, whole = _ask(http, {})
            print(f"{whole['events']} events; first answer {took:.3f} s, {len(whole['lanes'])} lanes")
            busy = time.process_time()
            found = search(engine, 1, whole["by_name"][0]["name"], 1)
            busy = time.process_time() - busy
            print(f"search: {1e3 * busy:.1f} ms of the processor, {found['events']} events have the name")
            length = whole["length_ns"]
            for zoom in range(ZOOMS):
                begin = length // 3
                asked = {"from": begin, "to": begin + max(1, length >> zoom), "columns": COLUMNS}
                took, view = _ask(http, asked)
                items = sum(len(lane["start_ns"]) for lane in view["lanes"])
                plain = _plain(db, whole["begin_ns"] + asked["from"], whole["begin_ns"] + asked["to"])
                busy = time.process_time()
                timeline(engine, 1, asked["from"], asked["to"], COLUMNS)
                busy = time.process_time() - busy
                print(f"zoom {zoom:2}: {1e3 * took:6.1f} ms, processor {1e3 * busy:6.1f} ms, {items:6} items; "
                      f"SQLite {1e3 * plain:7.1f} ms, "
                      f"ratio {plain / took:.1f}")  # fmt: skip


def _export(engine: Engine) -> None:
    from playwright.sync_api import sync_playwright

    from tests.environment.trace_processor import trace_processor

    content, busy = io.BytesIO(), time.process_time()
    write_perfetto(engine, 1, content)
    print(f"{len(content.getvalue()) / 1e6:.1f} MB written in {time.process_time() - busy:.1f} s of processor time")
    with sync_playwright() as player:
        browser = player.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        with trace_processor(browser) as processor:
            began = time.perf_counter()
            processor.load(content.getvalue())
            print(f"loaded by the trace processor in {time.perf_counter() - began:.1f} s")
            ((slices, total),) = processor.query("SELECT count(*), sum(dur) FROM slice")
        browser.close()
    with reading(engine) as connection:
        rows = [
            round(ns)
            for table in ("launches", "transfers")
            for ns in connection.execute(text(f"SELECT duration_ns FROM {table}")).scalars()
        ]
    same = "equal" if (len(rows), sum(rows)) == (slices, total) else "DIFFERENT"
    print(f"{slices} slices of {total} ns; {len(rows)} rows of {sum(rows)} ns: {same}")


def _ask(http: httpx.Client, asked: dict[str, int]) -> tuple[float, dict[str, Any]]:
    begin = time.perf_counter()
    answer = http.get("/v1/runs/1/timeline", params=asked)
    took = time.perf_counter() - begin
    answer.raise_for_status()
    return took, answer.json()


def _plain(db: sqlite3.Connection, begin: int, end: int) -> float:
    started = time.perf_counter()
    for table in ("launches", "transfers"):
        db.execute(GROUPED.format(table), {"begin": begin, "end": end, "columns": COLUMNS}).fetchall()
    return time.perf_counter() - started


if __name__ == "__main__":
    main()
