"""The service ends when it is told to, and says that it takes no uploads when it takes none."""

import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path

import httpx
import pytest

from profsvc import store
from profsvc.web.api import uploads
from profsvc.web.http.state import Limits
from tests.web.conftest import PLAIN, running

ROOT = Path(__file__).parents[2]
# A service whose reader never comes back.
HUNG = """
import sys, time
from profsvc import store
from profsvc.web import server
from profsvc.web.api import uploads
uploads.store_or_check = lambda *_: time.sleep(600)
engine = store.open_store(sys.argv[1])
limits = server.Limits(grace_seconds=1.0)
files = store.blob_store_of(engine)
server.serve(engine, files, server.Endpoint(port=0), limits, lambda words: print(words, flush=True))
"""

# A service that is told to stop while it starts, before its server listens to signals.
TOLD_EARLY = """
import os, runpy, signal, sys
from profsvc.web import server, workers
def after_a_signal(work):
    def told(*given):
        os.kill(os.getpid(), signal.SIGTERM)
        return work(*given)
    return told
server.server_for = after_a_signal(server.server_for)
workers.Workers.run = after_a_signal(workers.Workers.run)
sys.argv = ["profsvc", "--store", sys.argv[1], "serve", "--port", "0", *sys.argv[2:]]
runpy.run_module("profsvc", run_name="__main__")
"""


@pytest.mark.parametrize("workers", ["1", "2"])
def test_a_signal_while_the_service_starts_is_not_lost(tmp_path, workers):
    command = [sys.executable, "-c", TOLD_EARLY, str(tmp_path / "s.sqlite"), "--workers", workers]
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    assert " at http://127.0.0.1:" in done.stderr


@pytest.mark.parametrize(
    "signals", [[signal.SIGTERM], [signal.SIGTERM, signal.SIGTERM], [signal.SIGINT, signal.SIGINT]]
)
@pytest.mark.usefixtures("interruptible")
def test_a_service_ends_in_its_time_whatever_a_reader_does(tmp_path, signals):
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-c", HUNG, str(tmp_path / "s.sqlite")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment) as process:
        try:
            assert process.stdout
            url = process.stdout.readline().decode().split(" at ")[1].strip()

            def send() -> None:
                with suppress(httpx.TransportError):
                    httpx.post(f"{url}v1/uploads", content=PLAIN.read_bytes(), timeout=60, verify=False)

            sender = threading.Thread(target=send)
            sender.start()
            while "profsvc_queue_depth 1.0" not in httpx.get(f"{url}metrics", timeout=60, verify=False).text:
                time.sleep(0.05)
            began = time.monotonic()
            for number in signals:
                process.send_signal(number)
                time.sleep(0.2)
            assert process.wait(30) == 128 + signals[0]
            assert time.monotonic() - began < 10
            sender.join()
            assert process.stderr
            assert b"running requests did not finish in time" in process.stderr.read()
        finally:
            process.kill()
    engine = store.open_store(str(tmp_path / "s.sqlite"))
    assert store.select(engine, "v1_uploads") == []
    engine.dispose()


def test_a_service_whose_every_reader_is_at_work_for_long_is_not_ready(site, profile, monkeypatch):
    go_on, read = threading.Event(), uploads.store_or_check
    monkeypatch.setattr(uploads, "store_or_check", lambda *given: (go_on.wait(60), read(*given))[1])
    with running(site(limits=Limits(uploads_at_once=1, full_seconds=0.3))) as service:
        assert service.ok("/readyz")["checks"]["uploads"] == "ok"
        sender = threading.Thread(target=service.upload, args=(profile,))
        sender.start()
        try:
            deadline = time.monotonic() + 20
            while (answer := service.get("/readyz")).status_code == 200 and time.monotonic() < deadline:
                time.sleep(0.05)
            assert (answer.status_code, answer.json()["checks"]["uploads"]) == (503, "overloaded")
        finally:
            go_on.set()
            sender.join()
        assert service.ok("/readyz")["checks"]["uploads"] == "ok"
