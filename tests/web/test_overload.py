"""Under load the service sends readers away with a time to come back, and never tells them to ask for less."""

import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from profsvc import store
from profsvc.errors import TimeLimitError
from profsvc.views.comparison import two_runs as side_by_side
from profsvc.web.http.state import Limits
from profsvc.web.pages.runs import listing
from tests.web.conftest import error_of, running

BROWSER = {"Accept": "text/html"}


@pytest.fixture
def held(monkeypatch):
    """Let pages and answers of comparisons wait until they may go on."""
    go_on = threading.Event()
    for where, name in ((listing.store, "list_runs"), (side_by_side, "compare")):
        real = getattr(where, name)
        monkeypatch.setattr(where, name, lambda *a, _real=real, **k: (go_on.wait(90), _real(*a, **k))[1])
    yield go_on
    go_on.set()


def wait_for(what):
    until = time.monotonic() + 60
    while not what() and time.monotonic() < until:
        time.sleep(0.01)
    assert what()


def test_a_page_beyond_the_queue_is_sent_away_with_a_time_to_come_back(site, held):
    with running(site(limits=Limits(pages_at_once=1, pages_waiting=1))) as service, ThreadPoolExecutor(2) as pool:
        waiting = [pool.submit(service.get, "/") for _ in range(2)]
        wait_for(lambda: service.site.page_limit.in_use == 2)
        answer = service.get("/findings")
        assert (answer.status_code, answer.headers["retry-after"], error_of(answer)["code"]) == (503, "2", "overloaded")
        page = service.http.get(f"{service.url}/findings", headers=BROWSER)
        assert (page.status_code, page.headers["retry-after"]) == (503, "2")
        assert "2 pages are running or waiting; retry in 2 s" in page.text
        assert service.get("/livez").status_code == service.get("/readyz").status_code == 200
        held.set()
        assert [one.result().status_code for one in waiting] == [200, 200]
    assert service.site.page_limit.in_use == 0


def test_a_page_waits_for_its_turn_no_longer_than_the_limit(site, held):
    with running(site(limits=Limits(pages_at_once=1, queue_seconds=0.2))) as service, ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(service.get, "/")
        wait_for(lambda: service.site.page_limit.in_use == 1)
        answer = service.get("/findings")
        assert (answer.status_code, answer.headers["retry-after"]) == (503, "2")
        assert "no turn after 0.2 s; 1 other pages wait" in error_of(answer)["message"]
        held.set()
        assert waiting.result().status_code == 200
        assert service.get("/findings").status_code == 200


def hang_up(service, path):
    """Ask for a page, and go once the question waits in its queue."""
    with socket.create_connection(("127.0.0.1", service.port)) as line:
        line.sendall(f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
        time.sleep(0.2)


def test_nothing_is_computed_for_those_who_hung_up_in_the_queue(site, monkeypatch):
    asked, go_on = [], threading.Event()
    real = store.query

    def query(engine, text, *args, **options):
        asked.append(text)
        return (go_on.wait(60), real(engine, text, *args, **options))[1]

    monkeypatch.setattr(store, "query", query)
    with running(site(limits=Limits(sql_at_once=1))) as service, ThreadPoolExecutor(2) as pool:
        first = pool.submit(service.get, "/v1/sql", q="select 1")
        wait_for(lambda: asked)
        for number in (2, 3):
            hang_up(service, f"/v1/sql?q=select+{number}")
        last = pool.submit(service.get, "/v1/sql", q="select 4")
        wait_for(lambda: service.site.query_limit.in_use == 4)
        go_on.set()
        assert (first.result().status_code, last.result().status_code) == (200, 200)
        assert asked == ["select 1", "select 4"]
        wait_for(lambda: service.site.query_limit.in_use == 0)


def test_no_page_is_computed_for_those_who_hung_up_in_the_queue(site, monkeypatch):
    asked, go_on = [], threading.Event()
    real = listing.store.list_runs
    monkeypatch.setattr(
        listing.store, "list_runs", lambda *a, **k: (asked.append(time.monotonic()), go_on.wait(60), real(*a, **k))[2]
    )
    with running(site(limits=Limits(pages_at_once=1))) as service, ThreadPoolExecutor(1) as pool:
        first = pool.submit(service.get, "/")
        wait_for(lambda: asked)
        for _ in range(3):
            hang_up(service, "/")
        assert service.site.page_limit.in_use == 4
        go_on.set()
        assert first.result().status_code == 200
        wait_for(lambda: service.site.page_limit.in_use == 0)
        assert len(asked) == 1
        assert service.get("/").status_code == 200
        assert len(asked) == 2


def test_heavy_questions_keep_no_page_waiting(site, held, profile):
    with running(site(limits=Limits(long_at_once=1, sql_at_once=1))) as service, ThreadPoolExecutor(3) as pool:
        for name in ("a", "b"):
            assert service.upload(profile, run=name).status_code == 201
        waiting = [pool.submit(service.get, "/compare", before="a", after="b") for _ in range(3)]
        wait_for(lambda: service.site.long_limit.in_use == 3)
        assert service.get("/findings").status_code == 200
        assert service.get("/v1/sql", q="select 1").status_code == 200
        held.set()
        assert [one.result().status_code for one in waiting] == [200, 200, 200]


def test_sql_keeps_no_page_waiting_and_its_queue_alone_is_full(site, profile):
    """Neither short nor long ones; what waits for the queue of SQL is told when to come back."""
    slow = "with recursive n(i) as (select 1 union all select i + 1 from n) select count(*) from n"
    limits = Limits(sql_at_once=1, sql_waiting=1, sql_seconds=2.0)
    with running(site(limits=limits)) as service, ThreadPoolExecutor(2) as pool:
        for name in ("a", "b"):
            assert service.upload(profile, run=name).status_code == 201
        waiting = [pool.submit(service.get, "/v1/sql", q=slow) for _ in range(2)]
        wait_for(lambda: service.site.query_limit.in_use == 2)
        for path in ("/findings", "/compare?before=a&after=b", "/v1/launches?run_id=1&order=-launch_id"):
            assert service.get(path).status_code == 200
        answer = service.get("/v1/sql", q="select 1")
        assert (answer.status_code, answer.headers["retry-after"]) == (503, "2")
        filtered = service.get("/v1/launches?grid_x=1")
        assert (filtered.status_code, filtered.headers["retry-after"]) == (503, "2")
        assert [one.result().status_code for one in waiting] == [400, 400]
        assert service.get("/v1/sql", q="select 1").status_code == 200


@pytest.mark.parametrize("path", ["/v1/sql", "/sql"])
def test_no_more_results_are_in_memory_than_slots(site, monkeypatch, path):
    """A result that waits for the queue of pages would add to those of all other readers."""
    held, most = [], []
    real = store.query

    class Kept(store.Answer):
        def __del__(self):
            held.pop()

    def query(*args, **options):
        held.append(1)
        most.append(len(held))
        return Kept(*real(*args, **options))

    monkeypatch.setattr(store, "query", query)
    with running(site(limits=Limits(sql_at_once=2, pages_at_once=1))) as service, ThreadPoolExecutor(24) as pool:
        asked = [pool.submit(service.get, path, q="select 1") for _ in range(24)]
        assert {one.result().status_code for one in asked} == {200}
    assert len(most) == 24
    assert max(most) <= 6  # some may not be given up yet


@pytest.mark.parametrize("path", ["/", "/findings", "/v1/runs/1"])
def test_a_question_of_the_service_itself_that_takes_too_long_is_no_fault_of_the_reader(
    service, profile, monkeypatch, path
):
    assert service.upload(profile, run="a").status_code == 201

    def late(*_given, **_named):
        raise TimeLimitError("the query took longer than 10 s; select less data")

    for name in ("list_runs", "find_run", "select", "list_view"):
        monkeypatch.setattr(store, name, late)
    answer = service.get(path)
    assert (answer.status_code, answer.headers["retry-after"]) == (503, "2")
    assert "less data" not in answer.text


def test_a_question_of_the_reader_that_takes_too_long_is_told_so(site, profile):
    with running(site(limits=Limits(sql_seconds=1e-9))) as service:
        assert service.upload(profile, run="a").status_code == 201
        slow = "with recursive n(i) as (select 1 union all select i + 1 from n) select count(*) from n"
        answer = service.get("/v1/sql", q=slow)
        assert (answer.status_code, error_of(answer)["code"]) == (400, "time_limit")
        assert "select less data" in error_of(answer)["message"]
