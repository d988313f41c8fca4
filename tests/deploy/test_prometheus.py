"""A real Prometheus scrapes ``/metrics`` and answers from it, where one is installed."""

import shutil
import subprocess
import time
from pathlib import Path
from typing import Any

import httpx
import pytest
from sqlalchemy import Engine

from profsvc import store
from profsvc.web.http.state import AppState
from tests.environment.postgres import free_port
from tests.web.conftest import running

PROMETHEUS, PROMTOOL = shutil.which("prometheus"), shutil.which("promtool")
SECONDS = 60


@pytest.mark.skipif(not PROMETHEUS, reason="no Prometheus is installed")
def test_prometheus_scrapes_the_service(engine: Engine, tmp_path: Path) -> None:
    port = free_port()
    with running(AppState(engine, store.blob_store_of(engine, str(tmp_path / "kept"), free_bytes=1))) as one:
        target = one.url.removeprefix("http://")
        (config := tmp_path / "prometheus.yml").write_text(
            "global: {scrape_interval: 1s}\n"
            f"scrape_configs: [{{job_name: profsvc, static_configs: [{{targets: ['{target}']}}]}}]\n"
        )
        assert PROMETHEUS
        command = [PROMETHEUS, f"--config.file={config}", f"--web.listen-address=127.0.0.1:{port}"]
        with (tmp_path / "log").open("wb") as log:
            server = subprocess.Popen([*command, f"--storage.tsdb.path={tmp_path / 'data'}"], stdout=log, stderr=log)
        try:
            assert answered(port, "up") == "1"
            assert answered(port, "profsvc_db_up") == "1"
        finally:
            server.terminate()
            server.wait(SECONDS)


def answered(port: int, query: str) -> Any:
    """Return the value of a series, as soon as there is one."""
    end = time.monotonic() + SECONDS
    while time.monotonic() < end:
        try:
            answer = httpx.get(f"http://127.0.0.1:{port}/api/v1/query", params={"query": query})
            found = answer.json()["data"]["result"] if answer.is_success else []
        except httpx.TransportError:  # it is starting
            found = []
        if found and found[0]["value"][1] != "0":
            return found[0]["value"][1]
        time.sleep(0.5)
    return None


@pytest.mark.skipif(not PROMTOOL, reason="no promtool is installed")
def test_promtool_finds_nothing_wrong_with_the_metrics(engine: Engine, tmp_path: Path) -> None:
    with running(AppState(engine, store.blob_store_of(engine, str(tmp_path / "kept"), free_bytes=1))) as one:
        metrics = httpx.get(f"{one.url}/metrics").text
    assert PROMTOOL
    said = subprocess.run([PROMTOOL, "check", "metrics"], input=metrics, capture_output=True, text=True, check=False)
    assert (said.returncode, said.stdout, said.stderr) == (0, "", "")
