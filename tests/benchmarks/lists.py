"""How fast a service answers about 100,000 runs with 10 million metrics: p50 and p95 of what people look at.

    python -m tests.benchmarks.lists [--runs 100000] [--only sqlite]

A few exports are uploaded; their rows are copied in the database itself until there are so many runs, each with a file
of two launches of 50 metrics, criteria, potential and tags, in 20 projects, on 4 devices; of its two kernels one is in
each 20th run and one in each third. Every question is asked over HTTP, one after the other, each time about another
run. The service is of this process, whose CPU time is printed too, the databases as they are set up for work.
"""

import csv
import gzip
import io
import logging
import shutil
import statistics
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from datetime import datetime, timedelta
from itertools import groupby, islice
from operator import itemgetter
from pathlib import Path
from random import Random
from typing import Any, NamedTuple
from urllib.parse import quote

import httpx
from sqlalchemy import Connection, Engine, text

from profsvc import pipeline, store
from profsvc.store.connection.engine import make_engine
from profsvc.store.connection.transactions import writing
from profsvc.store.schema.column_types import IDS_PER_UPLOAD
from profsvc.store.schema.tables import metadata
from tests.benchmarks.loading import DURABLE
from tests.command_line import parser_of
from tests.conftest import ROOT
from tests.environment.postgres import migrated, server
from tests.inputs.long_exports import KERNELS

DETAILS = ROOT / "fixtures" / "ncu_details" / "h200_three_launches_min.csv.gz"
TEMPLATES, METRICS, PROJECTS, DEVICES, ASKED = 20, 50, 20, 4, 40
RUNS = 100_000
MOST_MS = 300
# Tables whose rows are copied, and their columns that number rows of an upload, or a run or an upload.
COPIED = {
    "launches": ("launch_id",), "metrics": ("launch_ref",), "rules": ("launch_id",), "counters": ("launch_id",),
    "kernel_totals": ("upload_id",), "timelines": ("upload_id",), "criteria": ("run_id", "launch_id"),
    "potential": ("run_id", "launch_id"), "models": ("run_id", "launch_id"),
    "wide_blocks": ("first_launch", "first_cell"), "wide_cells": ("cell_id", "list_id"), "wide_lists": ("list_id",),
    "wide_constants": ("cell_id",),
}  # fmt: skip
START = datetime(2020, 1, 1)


def page(template: int) -> bytes:
    """Return an export of two launches; the second kernel of every template is one of three."""
    lines = list(filter(None, csv.reader(io.StringIO(gzip.decompress(DETAILS.read_bytes()).decode()))))
    header, rows = lines[0], lines[1:]
    name, metric = header.index("Kernel Name"), header.index("Metric Name")
    kernels = (KERNELS[template], KERNELS[TEMPLATES + template % 3])
    out = io.StringIO()
    writer = csv.writer(out, quoting=csv.QUOTE_ALL)
    writer.writerow(header)
    for kernel, (_, launch) in zip(kernels, groupby(rows, itemgetter(0)), strict=False):
        launch = list(launch)
        kept = [*islice((row for row in launch if row[metric]), METRICS), *(row for row in launch if not row[metric])]
        writer.writerows([*row[:name], kernel, *row[name + 1 :]] for row in kept)
    return out.getvalue().encode()


def fill(engine: Engine, bulk: Engine, runs: int) -> None:
    """Upload the templates, and copy what came of them; ``bulk`` is the same store for who may pass over its checks."""
    for template in range(TEMPLATES):
        run = store.RunInfo(name=f"template-{template}", device=f"NVIDIA H{100 + template % DEVICES}")
        pipeline.ingest(engine, io.BytesIO(page(template)), "details.csv", run)
    copies = runs // TEMPLATES - 1
    with writing(bulk) as connection:
        if bulk.dialect.name == "postgresql":
            connection.execute(text("SET LOCAL session_replication_role = replica"))
            connection.execute(text("SET LOCAL work_mem = '1GB'"))
        _runs(connection, copies)
        connection.execute(text("CREATE TEMPORARY TABLE copies (n BIGINT)"))
        connection.execute(text("INSERT INTO copies VALUES (:n)"), [{"n": 1 + copy} for copy in range(copies)])
        for table, numbers in COPIED.items():
            connection.execute(text(_copy(table, numbers)))
        connection.execute(text("DROP TABLE copies"))


def _copy(table: str, numbers: Sequence[str]) -> str:
    """Return the statement that copies a table's rows, those of a copy behind each other."""
    columns = [column.name for column in metadata.tables[table].columns]
    step = {"run_id": 1, "upload_id": 1}
    found = {name: f"o.{name} + c.n * {TEMPLATES * step.get(name, IDS_PER_UPLOAD)}" for name in numbers}
    if "run_id" in numbers:  # a result of the whole run has the launch 0
        found["launch_id"] = f"CASE o.launch_id WHEN 0 THEN 0 ELSE {found['launch_id']} END"
    found |= {
        name: f"o.{name} * (0.9 + (c.n * 7919 + {place}) % 1000 / 5000.0)"
        for place, name in enumerate(columns)
        if name.endswith("_ns") and table != "timelines"
    }
    chosen = ", ".join(found.get(name, f"o.{name}") for name in columns)
    keys = ", ".join(f"o.{column.name}" for column in metadata.tables[table].primary_key)
    # The rows of the templates have low numbers: a scan finds them first, and copies are not copied again.
    return (
        f"INSERT INTO {table} ({', '.join(columns)}) SELECT {chosen} FROM copies c CROSS JOIN {table} o"
        f" ORDER BY c.n, {keys}"
    )


def _runs(connection: Connection, copies: int) -> None:
    """Write the runs, their tags and their files."""
    rows = {
        name: [dict(row) for row in connection.execute(text(f"SELECT * FROM {name}")).mappings()]
        for name in ("runs", "uploads")
    }
    draw, first, made = Random(1), TEMPLATES + 1, list[dict[str, Any]]()
    tags, files = list[dict[str, Any]](), list[dict[str, Any]]()
    for number in range(first, first + copies * TEMPLATES):
        run, upload = (rows[name][(number - 1) % TEMPLATES] for name in ("runs", "uploads"))
        at = (START + timedelta(minutes=30 * number)).strftime("%Y-%m-%dT%H:%M:%SZ")
        named = {"project": f"project-{draw.randrange(PROJECTS)}", "name": f"nightly-{number:06}"}
        made.append(run | named | {"run_id": number, "created_at": at, "started_at": at, "commit_id": f"{number:07x}"})
        files.append(
            upload | {"upload_id": number, "run_id": number, "sha256": f"{number:064x}", "received_at": at,
                      "gpu_time_ns": upload["gpu_time_ns"] * draw.uniform(0.9, 1.1)}
        )  # fmt: skip
        tags += [
            {"run_id": number, "key": "branch", "value": f"branch-{draw.randrange(10)}"},
            {"run_id": number, "key": "night", "value": at[:10]},
        ]
    for name, found in (("runs", made), ("uploads", files), ("run_tags", tags)):
        connection.execute(metadata.tables[name].insert(), found)


# What is asked -> the path, with what is drawn again each time.
QUESTIONS = {
    "runs, first page": "runs?limit=50",
    "runs, the newest": "runs?limit=50&order=-run_id",
    "runs, deep page": "runs?limit=50&after=k{run}",
    "runs, deep page from the newest": "runs?limit=50&order=-run_id&after=k{run}",
    "runs by start": "runs?limit=50&order=-started_at",
    "runs by start, deep page": "runs?limit=50&order=-started_at&after=o{run}",
    "runs by GPU time": "runs?limit=50&order=-gpu_time_ns",
    "runs searched by name": "runs?limit=50&name__contains={run:06}",
    "runs searched for what is not": "runs?limit=50&name__contains=nowhere",
    "runs of a project": "runs?limit=50&order=-run_id&project={project}",
    "runs on a device": "runs?limit=50&order=-run_id&device={device}",
    "runs with a tag": "runs?limit=50&order=-run_id&tags__contains={branch}",
    "runs of a night": "runs?limit=50&tags__contains={night}",
    "a run": "runs/{run}",
    "a run by name": "runs/nightly-{run:06}",
    "a launch": "runs/{run}?kernel=1",
    "compare": "compare?before={run}&after={other}",
    "explain": "explain/divergence?run={run}&kernel=0",
    "kernel history, a page": "kernel_totals?order=-run_id&limit=100&kernel={kernel}",
    "kernel history of a project": "kernel_totals?order=-run_id&limit=1000&project={project}&kernel={kernel}",
    "kernel history by short name": "kernel_totals?order=-run_id&limit=100&kernel_short=transpose",
    "uploads, the newest": "uploads?limit=50&order=-upload_id",
    "launches of a run": "launches?run_id={run}",
    "launches, deep page": "launches?after=k{launch}",
    "launches of a kernel": "launches?kernel={kernel}",
    "metrics of a run": "metrics?run_id={run}",
    "metrics, first page": "metrics",
    "counters of a run": "counters?run_id={run}",
    "criteria of a run": "criteria?run_id={run}",
    "criteria, first page": "criteria",
}


def drawn(draw: Random, runs: int) -> dict[str, Any]:
    """Return what a question may be about."""
    run, other = (TEMPLATES + 1 + draw.randrange(runs - TEMPLATES) for _ in range(2))
    return {
        "run": run,
        "other": other,
        "launch": run * IDS_PER_UPLOAD,
        "project": f"project-{draw.randrange(PROJECTS)}",
        "branch": f"branch-{draw.randrange(10)}",
        "device": quote(f"NVIDIA H{100 + draw.randrange(DEVICES)}"),
        "kernel": quote(KERNELS[draw.randrange(TEMPLATES)]),
        "night": f"{START + timedelta(minutes=30 * run):%Y-%m-%d}",
    }


class Asked(NamedTuple):
    """How a question was answered: milliseconds of each time, of this process's CPU too, and the most rows."""

    question: str
    ms: list[float]
    cpu_ms: list[float]
    rows: int


def p95(ms: Sequence[float]) -> float:
    """Return the milliseconds that 95 % of the answers took no more than."""
    return sorted(ms)[max(0, round(0.95 * len(ms)) - 1)]


def answers(url: str, runs: int, times: int = ASKED, only: str = "") -> Iterator[Asked]:
    """Ask each question ``times`` times."""
    with httpx.Client(base_url=url, timeout=120) as client:
        for question, path in QUESTIONS.items():
            if only not in question:
                continue
            draw, took, worked, rows = Random(question), list[float](), list[float](), 0
            for _ in range(times):
                asked = f"/v1/{path.format(**drawn(draw, runs))}"
                began, cpu = time.perf_counter(), time.process_time()
                answer = client.get(asked)
                took.append(1e3 * (time.perf_counter() - began))
                worked.append(1e3 * (time.process_time() - cpu))
                assert answer.status_code == 200, f"{asked}: {answer.text[:300]}"
                rows = max(rows, len(answer.json().get("rows", [1])))
            yield Asked(question, took, worked, rows)


def main() -> None:
    """Fill a database, serve it, and ask."""
    from profsvc.web.http.state import AppState
    from tests.web.conftest import running

    parser = parser_of(__doc__)
    parser.add_argument("--runs", type=int, default=RUNS)
    parser.add_argument("--times", type=int, default=ASKED)
    parser.add_argument("--only", default="", help="sqlite or postgresql")
    parser.add_argument("--question", default="", help="part of the name of a question")
    wanted = parser.parse_args()
    logging.disable(logging.CRITICAL)
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        if (free := shutil.disk_usage(folder).free) < 60_000 * wanted.runs:
            raise SystemExit(f"{folder} has {free / 1e9:.1f} GB left; this needs {60_000 * wanted.runs / 1e9:.1f}")
        for database in ("sqlite", "postgresql"):
            if wanted.only not in database:
                continue
            if database == "sqlite":
                engine = bulk = store.open_store(str(folder / "store.sqlite"))
            else:
                there = stack.enter_context(server(**DURABLE))
                name = migrated(there)
                engine = store.open_store(there.url(name).render_as_string(hide_password=False))
                bulk = make_engine(there.admin.set(drivername="postgresql+psycopg", database=name))
            began = time.monotonic()
            fill(engine, bulk, wanted.runs)
            if database == "postgresql":  # as it does by itself after a while
                with engine.execution_options(isolation_level="AUTOCOMMIT").connect() as connection:
                    connection.execute(text("VACUUM ANALYZE"))
            print(f"{database}: {wanted.runs} runs in {time.monotonic() - began:.0f} s")
            print(f"{'question':34}{'rows':>6}{'p50 ms':>9}{'p95 ms':>9}{'most':>9}{'p95 CPU':>9}")
            with running(AppState(engine, store.blob_store_of(engine, free_bytes=1))) as service:
                for one in answers(service.url, wanted.runs, wanted.times, wanted.question):
                    columns = (statistics.median(one.ms), p95(one.ms), max(one.ms), p95(one.cpu_ms))
                    told = "".join(f"{ms:9.1f}" for ms in columns) + "  SLOW" * (p95(one.ms) >= MOST_MS)
                    print(f"{one.question:34}{one.rows:6}{told}", flush=True)
            engine.dispose()


if __name__ == "__main__":
    main()
