"""Several processes of one service: limits and metrics are those of all, and whoever is killed is replaced."""

import asyncio
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

import httpx
import pytest
from sqlalchemy import Engine

from profsvc import store
from profsvc.web.http.slots import SharedSlots
from profsvc.web.shared_folder import PREFIX
from tests.environment.event_loop import run_async
from tests.web.conftest import PLAIN

ROOT = Path(__file__).parents[2]


def children(number: int) -> list[int]:
    found: list[int] = []
    for task in Path(f"/proc/{number}/task").glob("*/children"):
        with suppress(OSError):
            found += map(int, task.read_text().split())
    return found


class Served(NamedTuple):
    """A running service with several processes."""

    url: str
    process: "subprocess.Popen[str]"
    log: list[str]

    def schedulers(self) -> list[int]:
        """Return the numbers of the processes that have run the schedules."""
        started = [line for line in list(self.log) if '"scheduler started"' in line]
        return [int(json.loads(line)["owner"].split(":")[1]) for line in started]

    def workers(self) -> list[int]:
        """Return the numbers of the processes that answer, once the schedules run."""
        schedulers = self.schedulers()
        return [one for one in children(self.process.pid) if schedulers and one not in schedulers]

    def get(self, path: str, **params: str) -> httpx.Response:
        """Ask over a connection of its own, which any process may take; again if that was killed."""
        until = time.monotonic() + 60
        while True:
            try:
                return httpx.get(self.url + path, params=params, timeout=60, verify=False)
            except httpx.TransportError:
                assert time.monotonic() < until
                time.sleep(0.1)


@contextmanager
def serving(engine: Engine, folder: Path, **settings: str) -> Iterator[Served]:
    """Serve a store with two processes until the end of the block; what a killed one leaves lies in a folder."""
    url = engine.url.render_as_string(hide_password=False)
    command = [sys.executable, "-m", "profsvc", "--store", url, "serve", "--port", "0", "--workers", "2"]
    environment = os.environ | {"PYTHONPATH": str(ROOT), "PROFSVC_FREE_BYTES": "1", "TMPDIR": str(folder)} | settings
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment) as one:
        try:
            assert one.stdout
            lines: list[str] = []
            while not (found := re.search(r" at (http://127\.0\.0\.1:\d+)/", line := one.stdout.readline())):
                lines.append(line)
                assert line, "".join(lines)
            reader = threading.Thread(target=lines.extend, args=(one.stdout,), daemon=True)
            reader.start()
            yield Served(found[1], one, lines)
            if one.poll() is None:  # its lines end with its processes, which end with it
                one.kill()
            reader.join(10)
        finally:
            one.kill()


def wait_for(what, seconds=90):
    until = time.monotonic() + seconds
    while not (found := what()) and time.monotonic() < until:
        time.sleep(0.1)
    assert found
    return found


def counted(text: str, name: str) -> float:
    """Return the sum of a metric over its labels."""
    return sum(float(number) for number in re.findall(rf"^{name}(?:\{{[^}}]*\}})? (\S+)$", text, re.MULTILINE))


def exports(count: int) -> list[bytes]:
    plain = PLAIN.read_bytes()
    return [plain.replace(b"1.5e3", b"1.5%02de3" % number) for number in range(count)]


@pytest.fixture(params=["sqlite", "postgresql"])
def either(request: pytest.FixtureRequest) -> Iterator[Engine]:
    """A store of this test's own on each engine."""
    if request.param == "sqlite":
        yield request.getfixturevalue("engine")
        return
    made = store.open_store(request.getfixturevalue("postgres_whole_url"))
    yield made
    made.dispose()


@pytest.mark.usefixtures("interruptible")
def test_two_processes_are_one_service(either, tmp_path):
    engine = either
    files = str(tmp_path / "files")
    with serving(engine, tmp_path, PROFSVC_FILES=files) as service, ThreadPoolExecutor(4) as pool:
        first, second = wait_for(lambda: len(found := service.workers()) == 2 and found)
        sent = list(
            pool.map(
                lambda given: httpx.post(
                    f"{service.url}/v1/uploads?run=r{given[0]}", content=given[1], timeout=60, verify=False
                ),
                enumerate(exports(6)),
            )
        )
        assert [one.status_code for one in sent] == [201] * 6
        assert [service.get("/v1/runs").status_code for _ in range(10)] == [200] * 10
        metrics = service.get("/metrics").text
        assert counted(metrics, "profsvc_uploads_total") == 6
        assert counted(metrics, "profsvc_queue_depth") == counted(metrics, "profsvc_uploads_receiving") == 0
        assert "profsvc_db_up 1.0" in metrics
        # A process that is killed takes nothing along: neither what was stored nor what was counted.
        os.kill(first, signal.SIGKILL)
        os.kill(second, signal.SIGKILL)
        wait_for(lambda: len(found := service.workers()) == 2 and not {first, second} & set(found) and found)
        assert len(service.get("/v1/runs").json()["rows"]) == 6
        assert counted(service.get("/metrics").text, "profsvc_uploads_total") == 6
        began = time.monotonic()
        service.process.send_signal(signal.SIGTERM)
        assert service.process.wait(60) == 0
        assert time.monotonic() - began < 30
    assert len(store.select(engine, "v1_uploads")) == 6
    log = "".join(service.log)
    assert log.count('"scheduler stopped"') == 1
    assert log.count('"worker ended"') == 2


@pytest.mark.usefixtures("interruptible")
def test_uploads_go_on_while_processes_are_killed(engine, tmp_path):
    with serving(engine, tmp_path) as service:
        wait_for(lambda: len(service.workers()) == 2)
        told: dict[int, int] = {}

        def send(number: int, body: bytes) -> None:
            until = time.monotonic() + 120
            while number not in told and time.monotonic() < until:
                with suppress(httpx.TransportError):
                    answer = httpx.post(
                        f"{service.url}/v1/uploads?run=r{number}", content=body, timeout=60, verify=False
                    )
                    if answer.status_code in (200, 201):
                        told[number] = answer.json()["upload_id"]
                time.sleep(0.05)

        threads = [threading.Thread(target=send, args=one) for one in enumerate(exports(12))]
        for one in threads:
            one.start()
        for _ in range(3):
            time.sleep(0.4)
            if workers := service.workers():
                with suppress(ProcessLookupError):
                    os.kill(workers[0], signal.SIGKILL)
        for one in threads:
            one.join()
        stored = {row["upload_id"]: row["status"] for row in store.select(engine, "v1_uploads")}
        assert sorted(told.values()) == sorted(stored)
        assert len(told) == 12
        # Whatever kills the parent, its processes do not stay.
        workers = wait_for(lambda: len(found := service.workers()) == 2 and found)
        service.process.kill()
        wait_for(lambda: not any(Path(f"/proc/{number}/cmdline").exists() for number in workers))


def private_share(number: int) -> float:
    """Return the part of the memory of a process, files left out, that it shares with no other."""
    told = Path(f"/proc/{number}/smaps_rollup").read_text()
    kib = dict(re.findall(r"^(Anonymous|Private_Dirty):\s+(\d+)", told, re.MULTILINE))
    return int(kib["Private_Dirty"]) / int(kib["Anonymous"])


def are_even(service: Served) -> bool:
    """Connect twenty times; tell whether each process answers half of the connections."""
    with ExitStack() as held:
        clients = [held.enter_context(httpx.Client(timeout=60, verify=False)) for _ in range(20)]
        assert all(one.get(f"{service.url}/livez").is_success for one in clients)
        folders = [Path(f"/proc/{number}/fd") for number in service.workers()]
        sockets = [sum("socket" in str(one.readlink()) for one in folder.iterdir()) for folder in folders]
        return len(sockets) == 2 and max(sockets) - min(sockets) <= 1


def test_processes_share_memory_and_connections_and_that_of_the_schedules_is_replaced(engine, tmp_path):
    with serving(engine, tmp_path) as service:
        found = wait_for(lambda: len(found := service.workers()) == 2 and found)
        wait_for(lambda: service.get("/livez").is_success)
        assert max(map(private_share, [*found, *service.schedulers()])) < 0.6
        wait_for(lambda: are_even(service))  # once both have begun
        (first,) = service.schedulers()
        os.kill(first, signal.SIGKILL)
        wait_for(lambda: len(service.schedulers()) == 2)
        assert service.get("/v1/runs").is_success
        service.process.send_signal(signal.SIGTERM)
        assert service.process.wait(60) == 0
    log = "".join(service.log)
    assert log.count('"scheduler ended"') == log.count('"scheduler stopped"') == 1
    assert '"worker ended"' not in log


def test_a_service_leaves_no_folder_however_it_ends(engine, tmp_path):
    def left() -> list[Path]:
        return list(tmp_path.glob(f"{PREFIX}*"))

    with serving(engine, tmp_path) as service:
        workers = wait_for(lambda: len(found := service.workers()) == 2 and found)
        with serving(engine, tmp_path) as second:
            wait_for(lambda: len(second.workers()) == 2)
            assert len(left()) == 2  # a second service leaves that of the first alone
            second.process.kill()
            wait_for(lambda: len(left()) == 1)  # its processes end with it, and the last one removes the folder
        killed = [service.process.pid, *children(service.process.pid)]
        assert set(workers) < set(killed)
        service.process.send_signal(signal.SIGSTOP)  # so that it replaces no process
        for pid in killed[::-1]:
            os.kill(pid, signal.SIGKILL)
    (folder,) = left()
    with serving(engine, tmp_path) as service:
        wait_for(lambda: len(service.workers()) == 2)
        assert not folder.exists()
        service.process.send_signal(signal.SIGTERM)
        assert service.process.wait(60) == 0
    assert left() == []


def test_a_slot_of_a_killed_process_is_free(tmp_path):
    code = (
        "import asyncio, sys, time; from pathlib import Path; from profsvc.web.http.slots import SharedSlots\n"
        "asyncio.run(SharedSlots(Path(sys.argv[1]), 'q', 1).acquire()); print('taken', flush=True); time.sleep(60)"
    )
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    own = SharedSlots(tmp_path, "q", 1)
    with subprocess.Popen(
        [sys.executable, "-c", code, str(tmp_path)], stdout=subprocess.PIPE, text=True, env=environment
    ) as other:
        assert other.stdout
        assert other.stdout.readline() == "taken\n"
        assert not own._take()
        (taken,) = own.taken_at()
        assert 0 <= time.monotonic() - taken < 60
        other.kill()
    assert own._take()
    own.release()
    assert own.taken_at() == []


def test_those_who_wait_for_a_slot_get_it_in_turn(tmp_path):
    """Also beside another process, and if some of them give up."""

    async def run() -> tuple[list[int], list[int]]:
        own, other = (SharedSlots(tmp_path, "q", 1) for _ in range(2))
        turns = list[int](), list[int]()

        async def work(slots: SharedSlots, number: int, got: list[int]) -> None:
            async with asyncio.timeout(0.001 if number % 4 == 3 else 10):
                await slots.acquire()
            got.append(number)
            await asyncio.sleep(0.002)
            slots.release()

        await own.acquire()
        waiting = [
            asyncio.create_task(work(slots, number, got))
            for number in range(12)
            for slots, got in zip((own, other), turns, strict=True)
        ]
        await asyncio.sleep(0.05)
        own.release()
        await asyncio.gather(*waiting, return_exceptions=True)
        assert own.taken_at() == []
        return turns

    for got in run_async(run):
        assert got == [number for number in range(12) if number % 4 != 3]
