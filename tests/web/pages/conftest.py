"""A service with something on every page, and a browser that tolerates nothing: no error, no failed request, no other
host."""

import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import numpy as np
import pytest
from sqlalchemy import text

from profsvc import store
from profsvc.store.connection.transactions import writing
from profsvc.web.http.state import AppState
from tests.conftest import MakeOnce
from tests.inputs import nights
from tests.inputs.uploads import ingest_all
from tests.store.ingest.test_source_launches import REDUCE, SAXPY, both, launches
from tests.store.queries.kernels import test_means as test_kernel_metrics
from tests.store.queries.told import raw
from tests.views import thermocouple_logs
from tests.web.conftest import ROOT, Service, running

HELD_OUT = ROOT / "fixtures" / "held_out"
SHOTS = os.environ.get("PROFSVC_SCREENSHOTS")
NIGHTS, CHANGED = 15, 10
NUMBERS = "numbers.json"


class Shown(NamedTuple):
    """A service, the numbers in its paths, and the pages read of it once. Tests change nothing in its store."""

    service: Service
    numbers: dict[str, int]
    read: dict[str, str]

    def path(self, pattern: str) -> str:
        return pattern.format(**self.numbers)

    def html(self, pattern: str, **headers: str) -> str:
        if headers or pattern not in self.read:
            text = self._asked(pattern, headers)
            return text if headers else self.read.setdefault(pattern, text)
        return self.read[pattern]

    def _asked(self, pattern: str, headers: dict[str, str]) -> str:
        answer = self.service.http.get(
            self.service.url + self.path(pattern), headers={"accept": "text/html", **headers}
        )
        assert answer.headers["content-type"].startswith("text/html"), answer.text[:300]
        assert "default-src 'none'" in answer.headers["content-security-policy"]
        return answer.text


def _fill(engine: Any) -> None:
    """Add NVIDIA's own estimates to the profile, and a run with a power log."""
    files = store.blob_store_of(engine, free_bytes=1)
    fixtures, board = ROOT / "fixtures", {"device": "NVIDIA H200"}
    h200 = {"commit_id": "4268209c", "tags": {"branch": "main"}}
    for run, more, names in (
        ("h200", h200, ("ncu_details/h200_three_launches.csv.gz",)),
        ("board", board, ("held_out/power_marks.csv", "held_out/power_smi.csv.gz")),
        ("measured", {}, ("characterization/rejects.csv", "characterization/plain.csv")),
        ("traced", {}, ("nsys_stats/several_reports.csv", "nvprof/gpu_trace.csv", "memory_trace/plain.csv")),
    ):
        contents = [((fixtures / name).read_bytes(), Path(name).name) for name in names]
        ingest_all(engine, contents, store.RunInfo(name=run, project="demo", **more), files=files)


def _fill_more(engine: Any) -> None:
    """Add kernels that are known by means, thermocouples on a die, and a profile with its source."""
    test_kernel_metrics.stored(engine, test_kernel_metrics.METRICS, test_kernel_metrics.TRACE)
    thermocouple_logs.fill(engine, "spacer", thermocouple_logs.log(thermocouple_logs.field()))
    pages = (raw(launches(REDUCE, SAXPY)).encode(), "raw.csv"), (both(REDUCE, SAXPY).encode(), "source.csv")
    ingest_all(engine, pages, store.RunInfo(name="sourced", project="demo"))


def fill_nights(engine: Any) -> dict[str, int]:
    """Add nights: the room warms up, and from the tenth on a kernel takes longer and draws more."""
    rng = np.random.default_rng(5)
    with writing(engine) as connection:
        connection.execute(text("DELETE FROM reports"))  # that of the demo is of today, and nights go forward
    runs = []
    for night in range(NIGHTS):
        worse = {"more_w": 12.0, "slower": (1.06, 1.0)} if night >= CHANGED else {}
        runs.append(nights.put(engine, night, rng, temperature_c=40.0 + 0.4 * night, commit=f"{night:07x}", **worse))
    reports = [nights.report(engine, night) for night in range(CHANGED - 1, NIGHTS)]
    found = store.select(engine, "v1_findings", quantity="power")[0]["finding_id"]
    telling = max(reports, key=lambda one: len(one["findings"]))["report_id"]
    return {"night_before": runs[CHANGED - 1], "night": runs[-1], "finding": found, "report": telling}


@pytest.fixture(scope="session")
def shown(demo: Any, made_once: MakeOnce) -> Iterator[Shown]:
    """A running service on a store with the runs ``h200``, ``board`` and ``measured``."""

    def fill(engine: Any) -> None:
        _fill(engine)
        _fill_more(engine)
        numbers = _numbers(engine) | fill_nights(engine)
        Path(engine.url.database).with_name(NUMBERS).write_text(json.dumps(numbers), encoding="utf-8")

    file = made_once("shown", fill, demo)
    engine = store.open_store(str(file), pooled=True)
    numbers = json.loads(file.with_name(NUMBERS).read_text(encoding="utf-8"))
    with running(AppState(engine, store.blob_store_of(engine, free_bytes=1))) as service:
        yield Shown(service, numbers, {})
    engine.dispose()


def _numbers(engine: Any) -> dict[str, int]:
    launch = store.select(engine, "v1_launches", run_id=store.find_run(engine, "h200"), launch_index=3)[0]
    numbers = {
        name: store.find_run(engine, name)
        for name in ("h200", "board", "measured", "traced", "means", "spacer", "sourced")
    }
    numbers["sourced_launch"] = store.select(engine, "v1_launches", run_id=numbers["sourced"])[0]["launch_id"]
    return numbers | {"run": numbers["h200"], "launch": launch["launch_id"]}


class Window(NamedTuple):
    """A page of the browser on a service, and what went wrong on it."""

    page: Any
    url: str
    wrong: list[str]

    def open(self, path: str) -> Any:
        return self.page.goto(self.url + path, wait_until="load")


# The page that is lent for each set of options: to open a window of its own takes the browser a second.
PAGES: dict[str, Any] = {}
VIEWPORT = {"width": 1280, "height": 720}
FORGET = "location.protocol.startsWith('http') && (localStorage.clear(), sessionStorage.clear())"


@contextmanager
def window(
    chromium: Any, url: str, viewport: dict[str, int] | None = None, color_scheme: str = "light", **options: Any
) -> Iterator[Window]:
    """Lend a page of the browser that remembers nothing of whoever had it before; at the end nothing may be wrong."""
    page, wrong = _page(chromium, options), list[str]()
    host = urlsplit(url).netloc
    page.set_viewport_size(viewport or VIEWPORT)
    page.emulate_media(color_scheme=color_scheme)

    def of_console(message: Any) -> None:
        # A page that is not found says so with its status, which the browser repeats.
        if message.type in ("error", "warning") and "the server responded with a status of 4" not in message.text:
            wrong.append(f"{message.type}: {message.text}")

    # The icon is still on its way where a test goes on to the next page.
    aborted = "net::ERR_ABORTED"
    listeners: dict[str, Callable[[Any], None]] = {
        "console": of_console,
        "pageerror": lambda error: wrong.append(f"script: {error}"),
        "requestfailed": lambda one: None if one.failure == aborted else wrong.append(f"{one.url} {one.failure}"),
        "request": lambda one: wrong.append(f"foreign: {one.url}") if _is_foreign(one.url, host) else None,
    }
    for event, listener in listeners.items():
        page.on(event, listener)
    try:
        yield Window(page, url, wrong)
        assert wrong == []
    except BaseException:
        PAGES.pop(json.dumps(options)).context.close()
        raise
    for event, listener in listeners.items():
        page.remove_listener(event, listener)
    _forget(page)


def _page(chromium: Any, options: dict[str, Any]) -> Any:
    key = json.dumps(options)
    if key not in PAGES:
        PAGES[key] = chromium.new_context(**options).new_page()
    return PAGES[key]


def _forget(page: Any) -> None:
    page.unroute_all()
    for other in page.context.pages:
        if other != page:
            other.close()
    page.evaluate(FORGET)
    page.context.clear_cookies()
    page.goto("about:blank")
    page.mouse.move(0, 0)


def _is_foreign(url: str, host: str) -> bool:
    return urlsplit(url).scheme not in ("data", "blob") and urlsplit(url).netloc != host


@pytest.fixture
def browser_page(chromium: Any, shown: Shown) -> Iterator[Window]:
    """A page of the browser on ``shown``."""
    with window(chromium, shown.service.url, viewport={"width": 1280, "height": 900}) as found:
        yield found


@pytest.fixture(scope="session")
def shot() -> Callable[[Any, str], None]:
    """Write a picture of a page where pictures are wanted."""

    def take(page: Any, name: str) -> None:
        if SHOTS:
            folder = Path(SHOTS)
            folder.mkdir(parents=True, exist_ok=True)
            page.screenshot(path=folder / f"{name}.png", full_page=True)

    return take
