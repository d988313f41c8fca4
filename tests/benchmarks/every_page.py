"""How long each page takes with 100,000 runs and with a run of 20,000 launches, beside the same page of a small store.

    python -m tests.benchmarks.every_page [--runs 100000] [--launches 20000] [--store FILE]

The store is that of `tests.benchmarks.lists`, and one more run whose launches are those of the demo again and again;
with ``--store`` it is kept, and used again. The small store has the demo alone. Every page is asked twice in this
process, without a socket. Of the second time are printed the milliseconds until the first byte and until all of it,
those of the processor, and these as a multiple of the same page of the small store, which other work on the machine
changes least.
"""

import asyncio
import csv
import gzip
import io
import logging
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import httpx
from sqlalchemy import Engine

from profsvc import pipeline, store
from profsvc.web.app import create_app
from profsvc.web.http.state import AppState
from tests.benchmarks.lists import fill
from tests.command_line import parser_of
from tests.conftest import DEMO

MAX_FIRST_MS, MAX_ALL_MS = 300, 1000
PAGES = {
    "runs": "/",
    "runs, searched": "/?search=nightly-0000",
    "runs, grouped": "/?by=branch",
    "run": "/runs/{run}",
    "run, by potential": "/runs/{run}?order=-potential&after=200",
    "run, one cause": "/runs/{run}?cause=tail_wave",
    "launch": "/runs/{run}/launches/{launch}",
    "metrics": "/runs/{run}/launches/{launch}/metrics",
    "metrics beside": "/runs/{run}/launches/{launch}/metrics?baseline=1",
    "kernel": "/runs/{run}/kernels/{kernel}",
    "compare": "/compare?before={run}&after={run}",
    "compare, choose": "/compare",
    "history": "/history?kernel=gemm_naive",
    "history, choose": "/history",
    "history, 300 points": "/history?kernel={common}&points=300",
    "explain": "/explain/divergence?run={run}&launch={launch}",
    "findings": "/findings",
    "reports": "/reports",
    "devices": "/devices",
    "device": "/devices/NVIDIA%20H200",
    "models": "/models?run={run}",
    "sql": "/sql",
    "sql, rows": "/sql?q=select+*+from+v1_criteria+where+run_id+%3D+{run}",
    "settings": "/settings/storage",
    "upload": "/upload",
    "documentation": "/docs/reference/commands",
    "api": "/docs/api",
    "run as JSON": "/v1/runs/{run}",
    "roofline as JSON": "/v1/runs/{run}/plots/roofline?limit=200",
}


class Took(NamedTuple):
    """Milliseconds of a page, its status and its bytes."""

    first: float
    whole: float
    cpu: float
    status: int
    size: int


def repeated(launches: int) -> bytes:
    """Return the raw page of the demo, its launches again and again."""
    rows = list(csv.reader(io.StringIO(gzip.decompress(DEMO.read_bytes()).decode())))
    head, body = rows[:2], rows[2:]
    out = io.StringIO()
    writer = csv.writer(out, quoting=csv.QUOTE_ALL)
    writer.writerows(head)
    writer.writerows([str(n), *body[n % len(body)][1:]] for n in range(launches))
    return out.getvalue().encode()


def _with_run(engine: Engine, launches: int) -> None:
    file = io.BytesIO(repeated(launches))
    pipeline.ingest(engine, file, "raw.csv", store.RunInfo(name="many", project="demo"))


def _filled(path: Path, runs: int, launches: int) -> Engine:
    is_new = not path.exists()
    engine = store.open_store(str(path), pooled=True)
    if is_new:
        began = time.monotonic()
        if runs:
            fill(engine, engine, runs)
        _with_run(engine, launches)
        print(f"{path.name}: {runs} runs and a run of {launches} launches in {time.monotonic() - began:.0f} s")
    return engine


def _numbers(engine: Engine) -> dict[str, Any]:
    run = store.find_run(engine, "many")
    row = store.list_launches(engine, run, store.LaunchFilter(), limit=1)[0][0]
    with engine.connect() as connection:
        common = connection.exec_driver_sql(
            "SELECT kernel_id FROM v1_kernel_totals GROUP BY kernel_id ORDER BY count(*) DESC LIMIT 1"
        ).scalar_one()
    return {"run": run, "launch": row["launch_id"], "kernel": row["kernel_id"], "common": common}


async def _asked(engine: Engine, numbers: Mapping[str, Any]) -> dict[str, Took]:
    app = create_app(AppState(engine, store.blob_store_of(engine, free_bytes=1)))
    found = {}
    head = {"accept": "text/html", "accept-encoding": "gzip"}
    transport = httpx.ASGITransport(app=app)
    async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1", timeout=300, headers=head) as http:
        for name, path in PAGES.items():
            for _ in range(2):
                began, cpu = time.perf_counter(), time.process_time()
                answer = await http.get(path.format(**numbers))
                answer.raise_for_status()
                whole = 1e3 * (time.perf_counter() - began)
                busy = 1e3 * (time.process_time() - cpu)
            first = 1e3 * answer.elapsed.total_seconds()
            found[name] = Took(min(first, whole), whole, busy, answer.status_code, len(answer.content))
    return found


def main() -> None:
    """Fill both stores, ask all pages, and print the times."""
    parser = parser_of(__doc__)
    parser.add_argument("--runs", type=int, default=100_000)
    parser.add_argument("--launches", type=int, default=20_000)
    parser.add_argument("--store", type=Path)
    wanted = parser.parse_args()
    logging.disable(logging.CRITICAL)
    with tempfile.TemporaryDirectory() as folder:
        large = _filled(wanted.store or Path(folder, "large.sqlite"), wanted.runs, wanted.launches)
        small = _filled(Path(folder, "small.sqlite"), 0, 34)
        before, after = (asyncio.run(_asked(engine, _numbers(engine))) for engine in (small, large))
    print(f"{'page':22}{'status':>7}{'first ms':>10}{'whole ms':>10}{'CPU ms':>9}{'ratio':>7}{'KB':>7}")
    for name, took in after.items():
        slow = "  SLOW" if took.first > MAX_FIRST_MS or took.whole > MAX_ALL_MS else ""
        print(f"{name:22}{took.status:7}{took.first:10.0f}{took.whole:10.0f}{took.cpu:9.0f}"
              f"{took.cpu / before[name].cpu:7.1f}{took.size / 1e3:7.0f}{slow}")  # fmt: skip


if __name__ == "__main__":
    main()
