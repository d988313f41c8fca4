"""How the service answers many readers at once: seconds of mixed pages, errors, pages a second, and memory.

    python -m tests.benchmarks.readers [--readers 8 32 64] [--workers 1 2] [--seconds 20] [--launches 5000000]
                                       [--change-every SECONDS]

A store holds the bundled profile twice and a trace of so many launches; ``--store URL`` takes one that was filled
before, or a database on Postgres, which is filled first. `profsvc serve` runs as a process of its own. Each reader asks
for one page after the other, drawn from a list of all kinds, over one connection. Printed are the median, the 99th
percentile and the longest time of pages, how many were sent away (503) or failed, pages a second, the processor time of
the service and of the readers, and the most memory of all processes of the service together (proportional set size).
Every page is asked once before the clock starts, so the kinds are also printed with the time of their first answer.

A service keeps pages of runs until its store changes. With ``--change-every`` the store changes so often meanwhile,
as where files are loaded while people read.
"""

import http.client
import json
import os
import random
import re
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote

from profsvc import store
from profsvc.store.connection.sql import text
from profsvc.store.connection.transactions import writing
from tests.command_line import parser_of
from tests.conftest import DEMO, ROOT
from tests.inputs.long_exports import gpu_trace, write

TRACE_RUN = "trace"
PROFILE_RUNS = ("h200", "h200-again")
RETRY_S = 1.0


class Answer(NamedTuple):
    """One answer: the kind of page, its status (0: the connection broke), and its time."""

    kind: str
    status: int
    seconds: float


def fill(store_url: str, launches: int, folder: Path) -> None:
    """Load the profile twice and the trace by the command line."""
    trace = folder / "trace.csv"
    write(trace, gpu_trace(launches))
    for run, path in (*((name, DEMO) for name in PROFILE_RUNS), (TRACE_RUN, trace)):
        command = [sys.executable, "-m", "profsvc", "--store", store_url, "-q", "upload", str(path), "--run", run]
        subprocess.run(command, check=True, cwd=ROOT)


@contextmanager
def changing(store_url: str, every: float) -> Iterator[None]:
    """Commit a change that changes no value every so many seconds; never if that is 0."""
    if not every:
        yield
        return
    engine, done = store.open_store(store_url, pooled=True), threading.Event()

    def change() -> None:
        while not done.wait(every):
            with writing(engine) as connection:
                connection.execute(text("UPDATE runs SET name = name"))

    writer = threading.Thread(target=change)
    writer.start()
    try:
        yield
    finally:
        done.set()
        writer.join()
        engine.dispose()


@contextmanager
def serving(store_url: str, workers: int) -> Iterator[tuple[subprocess.Popen[str], int]]:
    """Run the service; yield its process and its port."""
    command = [sys.executable, "-m", "profsvc", "--store", store_url, "serve", "--port", "0", "--no-schedule"]
    command += ["--workers", str(workers)] if workers > 1 else []
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        try:
            assert process.stdout
            while not (found := re.search(r" at http://127\.0\.0\.1:(\d+)/", line := process.stdout.readline())):
                assert line, "the service ended"
            drain = threading.Thread(target=process.stdout.read, daemon=True)
            drain.start()
            yield process, int(found[1])
        finally:
            process.terminate()
            process.wait(60)


def family(pid: int) -> list[int]:
    """Return a process and all below it."""
    found = [pid]
    for one in found:
        for task in Path(f"/proc/{one}/task").glob("*/children"):
            try:
                found += map(int, task.read_text().split())
            except OSError:
                continue
    return found


def memory_mb(pid: int) -> float:
    """Return the proportional set size of a process and all below it."""
    total = 0
    for one in family(pid):
        try:
            total += int(re.search(r"^Pss:\s+(\d+)", Path(f"/proc/{one}/smaps_rollup").read_text(), re.M)[1])  # type: ignore[index]
        except (OSError, TypeError):
            continue
    return total / 1e3


def processor_s(pid: int) -> float:
    """Return the processor time of a process and all below it."""
    total = 0
    for one in family(pid):
        try:
            total += sum(map(int, Path(f"/proc/{one}/stat").read_text().rpartition(")")[2].split()[11:15]))
        except OSError:
            continue
    return total / os.sysconf("SC_CLK_TCK")


def ask(connection: http.client.HTTPConnection, path: str) -> tuple[int, bytes]:
    """Ask for a page; a status of 0 says that the connection broke."""
    try:
        connection.request("GET", path, headers={"Accept": "text/html", "Host": "localhost"})
        answer = connection.getresponse()
        return answer.status, answer.read()
    except (OSError, http.client.HTTPException):
        connection.close()
        return 0, b""


def pages(port: int) -> dict[str, list[str]]:
    """Return the paths of every kind of page."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
    runs = {row["name"]: row["run_id"] for row in json.loads(ask(connection, "/v1/runs")[1])["rows"]}
    profile, again, trace = (runs[name] for name in (*PROFILE_RUNS, TRACE_RUN))
    launches = re.findall(rb"/runs/\d+/launches/(\d+)", ask(connection, f"/runs/{profile}")[1])
    kernels = re.findall(rb'"/runs/\d+/kernels/(\d+)', ask(connection, f"/runs/{trace}")[1])
    connection.close()
    sql = quote("select kernel_short, duration_ns from v1_launches order by launch_id limit 50")
    found = {
        "runs": ["/"],
        "run": [f"/runs/{profile}", f"/runs/{again}"],
        "run of a trace": [f"/runs/{trace}"],
        "kernel of a trace": [f"/runs/{trace}/kernels/{int(kernel)}" for kernel in dict.fromkeys(kernels)][:5],
        "launch": [f"/runs/{profile}/launches/{int(launch)}" for launch in dict.fromkeys(launches)],
        "comparison": [f"/compare/{profile}...{again}", f"/compare?before={profile}&after={again}"][1:],
        "history": ["/history?kernel=gemm_naive"],
        "findings": ["/findings"],
        "reports": ["/reports"],
        "devices": ["/devices"],
        "models": ["/models"],
        "documentation": ["/docs"],
        "sql": [f"/sql?q={sql}"],
        "rows of launches": [f"/v1/launches?run_id={profile}", f"/v1/launches?run_id={trace}"],
    }
    return {kind: paths for kind, paths in found.items() if paths}  # a busy machine may not have told the kernels


def reader(port: int, kinds: dict[str, list[str]], until: float, seed: int, answers: list[Answer]) -> None:
    """Ask for one page after the other until the time is up."""
    draw, names = random.Random(seed), list(kinds)
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
    while time.monotonic() < until:
        kind = draw.choice(names)
        began = time.monotonic()
        status, _ = ask(connection, draw.choice(kinds[kind]))
        answers.append(Answer(kind, status, time.monotonic() - began))
        if status != 200:
            time.sleep(RETRY_S)
    connection.close()


def read_at_once(pid: int, port: int, kinds: dict[str, list[str]], readers: int, seconds: float) -> list[Answer]:
    """Let readers read; print what was measured."""
    answers: list[Answer] = []
    began, used, own = time.monotonic(), processor_s(pid), time.process_time()
    threads = [
        threading.Thread(target=reader, args=(port, kinds, began + seconds, number, answers))
        for number in range(readers)
    ]
    for one in threads:
        one.start()
    most = 0.0
    while any(one.is_alive() for one in threads):
        most = max(most, memory_mb(pid))
        time.sleep(0.25)
    took = time.monotonic() - began
    times = sorted(one.seconds for one in answers if one.status == 200)
    states = Counter(one.status for one in answers)
    away, failed = states[503], sum(count for status, count in states.items() if status not in (200, 503))
    told = "".join(f"{quantile(times, share):9.3f}" for share in (0.5, 0.99, 1.0))
    print(
        f"{readers:7}{told}{away:8}{failed:8}"
        f"{len(times) / took:9.1f}{processor_s(pid) - used:10.1f}{time.process_time() - own:9.1f}{most:8.0f}",
        flush=True,
    )
    return answers


def quantile(values: Sequence[float], share: float) -> float:
    """Return a quantile of sorted values."""
    return values[min(len(values) - 1, int(share * len(values)))] if values else float("nan")


def first_look(port: int, kinds: dict[str, list[str]]) -> None:
    """Ask for every page once, in a process of the service that has answered nothing, and print times of kinds."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
    for kind, paths in kinds.items():
        seconds, states = [], set[int]()
        for path in paths:
            began = time.monotonic()
            states.add(ask(connection, path)[0])
            seconds.append(time.monotonic() - began)
        again = time.monotonic()
        ask(connection, paths[0])
        again = time.monotonic() - again
        said = "" if states == {200} else f" status {sorted(states)}"
        print(f"  {kind:20} first {seconds[0]:6.3f} s, others at most {max(seconds[1:], default=0):6.3f} s, "
              f"again {again:6.3f} s{said}")  # fmt: skip
    connection.close()


def main() -> None:
    """Fill a store and let readers read it."""
    given = parser_of(__doc__)
    given.add_argument("--readers", type=int, nargs="+", default=[8, 32, 64])
    given.add_argument("--workers", type=int, nargs="+", default=[1, 2])
    given.add_argument("--seconds", type=float, default=20.0)
    given.add_argument("--launches", type=int, default=5_000_000)
    given.add_argument("--change-every", type=float, default=0.0)
    given.add_argument("--store", default="")
    asked = given.parse_args()
    with ExitStack() as held:
        folder = Path(held.enter_context(tempfile.TemporaryDirectory()))
        url = asked.store or str(folder / "store.sqlite")
        if not asked.store or (not Path(url).exists() and "://" not in url):
            fill(url, asked.launches, folder)
        for workers in asked.workers:
            with serving(url, workers) as (process, port):
                kinds = pages(port)
                print(f"{workers} worker{'s' * (workers > 1)}")
                first_look(port, kinds)
                print("readers   median      p99  longest     503  failed  pages/s service_s readers_s  most_MB")
                slow = Counter[str]()
                for readers in asked.readers:
                    with changing(url, asked.change_every):
                        answers = read_at_once(process.pid, port, kinds, readers, asked.seconds)
                    for one in answers:
                        slow[one.kind] = max(slow[one.kind], round(1e3 * one.seconds))
                longest = ", ".join(f"{kind} {ms / 1e3:.2f}" for kind, ms in slow.most_common(5))
                print(f"  longest by kind: {longest}")


if __name__ == "__main__":
    main()
