"""A service on a port of this machine, as a test reaches it."""

import asyncio
import gzip
import shutil
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import pytest
import uvicorn.server
from sqlalchemy import Engine

from profsvc import store
from profsvc.web.http.state import AppState, Limits
from profsvc.web.server import Endpoint, listening_socket, server_for

ROOT = Path(__file__).parents[2]
PLAIN = ROOT / "fixtures" / "ncu_raw" / "plain.csv"
SMI = ROOT / "fixtures" / "nvidia_smi" / "units.csv"
CHROMIUMS = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")


class Service(NamedTuple):
    """A running service: where it is, what it is, and a browser of no kind that asks it."""

    url: str
    port: int
    site: AppState
    http: httpx.Client

    def get(self, path: str, **params: Any) -> httpx.Response:
        return self.http.get(self.url + path, params=params or None)

    def ok(self, path: str, **params: Any) -> dict[str, Any]:
        answer = self.get(path, **params)
        assert answer.status_code == 200, answer.text
        body = answer.json()
        assert body.pop("ok") is True
        return body

    def refused(self, path: str, status: int, **params: Any) -> str:
        answer = self.get(path, **params)
        assert answer.status_code == status, answer.text
        return error_of(answer)["message"]

    def upload(self, content: bytes, **params: Any) -> httpx.Response:
        return self.http.post(f"{self.url}/v1/uploads", content=content, params=params)


def error_of(answer: httpx.Response) -> dict[str, str]:
    """The error of an answer, which has the one shape."""
    body = answer.json()
    assert set(body) == {"ok", "error"}
    assert body["ok"] is False
    assert set(body["error"]) == {"code", "message", "request_id"}
    assert body["error"]["request_id"] == answer.headers["x-request-id"]
    return body["error"]


class Impatient:
    """What a server knows of asyncio, but that it looks ten times as often whether it shall end or its work is done."""

    def __getattr__(self, name: str) -> Any:
        return getattr(asyncio, name)

    @staticmethod
    async def sleep(seconds: float) -> None:
        await asyncio.sleep(seconds / 10)


uvicorn.server.asyncio = Impatient()  # type: ignore[assignment]
LOCAL = Endpoint()


@contextmanager
def running(site: AppState, connections: int = 100, endpoint: Endpoint = LOCAL) -> Iterator[Service]:
    """Run a service until the end of the block; it ends by itself then, with all that was under way."""
    server = server_for(site, endpoint, connections)
    with listening_socket("127.0.0.1", 0) as line:
        port = line.getsockname()[1]
        thread = threading.Thread(target=server.run, kwargs={"sockets": [line]})
        thread.start()
        try:
            # Certificates are not asked for: to load them takes as long as a page.
            with httpx.Client(timeout=20.0, verify=False) as http:
                yield Service(f"http://127.0.0.1:{port}", port, site, http)
        finally:
            server.should_exit = True
            thread.join(20.0)
            assert not thread.is_alive()


@pytest.fixture(scope="session")
def looked_at(demo: Engine) -> Iterator[Service]:
    """A service on the store with the run ``h200``; only for what reads."""
    with running(AppState(demo, store.blob_store_of(demo))) as service:
        yield service


@pytest.fixture
def engine(tmp_path: Path, empty: Path) -> Iterator[Engine]:
    """A store of this test's own, whose connections stay open as those of a service."""
    shutil.copy(empty, tmp_path / "store.sqlite")
    engine = store.open_store(str(tmp_path / "store.sqlite"), pooled=True)
    yield engine
    engine.dispose()


Make = Callable[..., AppState]


@pytest.fixture
def site(engine: Engine) -> Make:
    """Make a service on a store of this test's own."""

    def make(*, limits: Limits | None = None, **options: Any) -> AppState:
        return AppState(engine, store.blob_store_of(engine, free_bytes=1), limits=limits, **options)

    return make


@pytest.fixture
def service(site: Make) -> Iterator[Service]:
    with running(site()) as service:
        yield service


@pytest.fixture(scope="session")
def profile() -> bytes:
    """A small export of Nsight Compute."""
    return PLAIN.read_bytes()


@pytest.fixture(scope="session")
def packed(profile: bytes) -> bytes:
    return gzip.compress(profile)


@pytest.fixture(scope="session")
def chromium() -> Iterator[Any]:
    """A Chromium of this system, without a window; that which knows none takes a fifth less time."""
    path = next(filter(None, map(shutil.which, CHROMIUMS)), None)
    if path is None:
        pytest.skip("no Chromium is installed: apt-get install chromium-headless-shell")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as player:
        browser = player.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield browser
        browser.close()
