"""Requests as they come in and answers as they go out: one shape, in time, in bounds, one line of log each."""

import contextlib
import gzip
import json
import logging
import select
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest

from profsvc import store, views
from profsvc.errors import ServiceError
from profsvc.web.http import connection_limits, json_log
from profsvc.web.http.state import Limits
from profsvc.web.server import Endpoint
from tests.web.conftest import error_of, running

HASTY = Limits(header_seconds=0.4, body_seconds=0.4, slowest_bytes_per_s=1000.0, send_seconds=0.5)


@pytest.fixture
def hasty(site, monkeypatch):
    """A service that waits for nobody long."""
    monkeypatch.setattr(connection_limits.DeadlineProtocol, "check_interval_s", 0.1)
    monkeypatch.setattr(connection_limits, "LINGER_SECONDS", 0.3)
    with running(site(limits=HASTY), connections=20) as service:
        yield service


def connect(service):
    line = socket.create_connection(("127.0.0.1", service.port), 5)
    line.settimeout(5)
    return line


def rest(line):
    """Read to the end, however the other side ended it."""
    pieces = []
    try:
        while piece := line.recv(65536):
            pieces.append(piece)
    except ConnectionError:
        pass
    return b"".join(pieces)


def test_a_head_that_does_not_come_is_cut(hasty):
    for begun in (b"", b"GET /livez HTTP/1.1\r\nHost: localhost\r\nX: ", b"\r\n\r\n"):
        with connect(hasty) as line:
            line.sendall(begun)
            began = time.monotonic()
            assert rest(line) == b""
            assert 0.2 < time.monotonic() - began < 4


def test_a_head_that_drips_is_cut(hasty):
    with connect(hasty) as line:
        line.sendall(b"GET /livez HTTP/1.1\r\nHost: localhost\r\n")
        began = time.monotonic()
        with contextlib.suppress(ConnectionError):  # cut between the look and the next byte
            while not select.select([line], [], [], 0.05)[0] and time.monotonic() - began < 4:
                line.sendall(b"a")
        assert rest(line) == b""
        assert time.monotonic() - began < 3


def test_the_next_request_of_a_connection_has_its_deadline_too(hasty):
    with connect(hasty) as line:
        line.sendall(b"GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n")
        answer = b""
        while not answer.endswith(b"}"):
            answer += line.recv(65536)
        assert answer.startswith(b"HTTP/1.1 200")
        line.sendall(b"\r\nGET /livez HT")
        assert rest(line) == b""


def test_a_body_that_drips_is_cut_with_words(hasty):
    with connect(hasty) as line:
        line.sendall(b"POST /v1/uploads HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\n")
        for _ in range(3):
            line.sendall(b"a")
            time.sleep(0.1)
        head, _, body = rest(line).partition(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 408")
        assert b"connection: close" in head
        assert json.loads(body)["error"]["code"] == "slow_client"
    assert hasty.site.receiving_limit.in_use == 0
    assert list(hasty.site.files.spool.iterdir()) == []


def test_a_steady_body_may_take_longer_than_the_grace(hasty, profile):
    def pieces():
        for begin in range(0, len(profile), 200):
            time.sleep(0.1)
            yield profile[begin : begin + 200]

    assert hasty.http.post(f"{hasty.url}/v1/uploads", content=pieces()).status_code == 201


def test_silent_connections_keep_nobody_out(hasty):
    lines = [connect(hasty) for _ in range(60)]
    try:
        for _ in range(5):
            assert httpx.get(f"{hasty.url}/livez", timeout=5, verify=False).status_code == 200
    finally:
        for line in lines:
            line.close()


def test_an_answer_that_nobody_takes_is_given_up(hasty, profile):
    query = "with recursive n(i) as (select 1 union all select i + 1 from n where i < 3000000) select i from n"
    with connect(hasty) as line:
        line.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        path = f"/v1/sql.ndjson?{httpx.QueryParams({'q': query})}"
        line.sendall(f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
        until = time.monotonic() + 8
        while not hasty.site.query_limit.in_use and time.monotonic() < until:
            time.sleep(0.02)
        while hasty.site.query_limit.in_use and time.monotonic() < until:
            time.sleep(0.05)
        assert hasty.site.query_limit.in_use == 0
        assert b"\r\n0\r\n\r\n" not in rest(line)


def test_a_head_that_is_too_large_is_refused(service):
    with connect(service) as line:
        line.sendall(b"GET /livez HTTP/1.1\r\nHost: localhost\r\n")
        try:
            for number in range(200):
                line.sendall(b"X%d: %s\r\n" % (number, b"a" * 1000))
        except ConnectionError:
            return
        assert rest(line)[:12] in {b"HTTP/1.1 431", b""}


@pytest.mark.parametrize("text", [b"nonsense\r\n\r\n", b"GET / HTTP/9.9\r\n\r\n", b"\x16\x03\x01\x02\x00"])
def test_what_is_no_request_is_refused(service, text):
    with connect(service) as line:
        line.sendall(text)
        line.shutdown(socket.SHUT_WR)
        assert rest(line).split(b" ")[1:2] in ([b"400"], [])
    assert service.get("/livez").status_code == 200


def test_a_body_that_is_not_wanted_does_no_harm(service):
    large = service.http.post(f"{service.url}/v1/sql", content=b"x" * (2 << 20))
    assert (large.status_code, error_of(large)["code"]) == (413, "too_large")
    lost = service.http.post(f"{service.url}/nowhere", content=b"x" * 500_000)
    assert (lost.status_code, error_of(lost)["code"]) == (404, "not_found")
    with connect(service) as line:  # who asks first is told before anything is sent
        line.sendall(b"POST /v1/sql HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99999999\r\n"
                     b"Expect: 100-continue\r\n\r\n")  # fmt: skip
        assert rest(line).startswith(b"HTTP/1.1 413")


def test_methods_that_nothing_answers(service):
    for method, path, allowed in (
        ("PUT", "/v1/runs", "GET"),
        ("DELETE", "/v1/uploads", "POST"),
        ("OPTIONS", "/livez", "GET"),
    ):
        answer = service.http.request(method, service.url + path)
        assert (answer.status_code, error_of(answer)["code"]) == (405, "method")
        assert allowed in answer.headers["allow"]


def test_a_head_request_is_answered_without_a_body(looked_at):
    full = looked_at.http.get(f"{looked_at.url}/v1/runs")
    head = looked_at.http.head(f"{looked_at.url}/v1/runs")
    assert (head.status_code, head.content) == (200, b"")
    assert head.headers["etag"] == full.headers["etag"]


def test_what_a_client_has_is_not_sent_again(looked_at):
    tag = looked_at.get("/v1/runs").headers["etag"]
    again = looked_at.http.get(f"{looked_at.url}/v1/runs", headers={"if-none-match": f'"x", {tag}'})
    assert (again.status_code, again.content, again.headers["etag"]) == (304, b"", tag)
    assert looked_at.http.get(f"{looked_at.url}/v1/launches", headers={"if-none-match": tag}).status_code == 200


def test_answers_are_packed_where_that_is_worth_it(looked_at):
    path = f"{looked_at.url}/v1/launches"
    with looked_at.http.stream("GET", path, headers={"accept-encoding": "gzip"}) as answer:
        packed = b"".join(answer.iter_raw())
    assert answer.headers["content-encoding"] == "gzip"
    plain = looked_at.http.get(path, headers={"accept-encoding": "identity"})
    assert "content-encoding" not in plain.headers
    assert gzip.decompress(packed) == plain.content


def test_every_answer_carries_what_browsers_must_know(looked_at):
    for path in ("/livez", "/v1/runs", "/v1/runs.csv", "/nowhere", "/v1/runs/nope"):
        headers = looked_at.get(path).headers
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["content-security-policy"].startswith("default-src 'none'")
        assert len(headers["x-request-id"]) == 16
        assert "server" not in headers


def test_a_defect_shows_its_number_and_nothing_else(service, monkeypatch, caplog):
    def broken(*_):
        raise RuntimeError("secret inside")

    monkeypatch.setattr(views, "readers", broken)
    with caplog.at_level(logging.INFO, "profsvc.web"):
        answer = service.get("/v1/formats")
    assert answer.status_code == 500
    assert "secret" not in answer.text
    number = error_of(answer)["request_id"]
    (said,) = [record for record in caplog.records if record.getMessage() == "defect"]
    assert said.fields["request_id"] == number
    assert "secret inside" in json_log.JsonFormatter().format(said)


def test_a_store_that_fails_is_503(service, monkeypatch):
    def gone(*_, **__):
        raise ServiceError("the disk failed")

    monkeypatch.setattr(store, "list_view", gone)
    answer = service.get("/v1/runs")
    assert (answer.status_code, error_of(answer)["message"]) == (503, "the disk failed")
    monkeypatch.setattr(store, "schema_state", gone)
    ready = service.get("/readyz")
    assert (ready.status_code, ready.json()["checks"]["store"]) == (503, "service")
    assert "profsvc_db_up 0.0" in service.get("/metrics").text


def test_a_line_of_log_a_request_and_nothing_forges_one(service, caplog):
    with caplog.at_level(logging.INFO, "profsvc.web"):
        service.get("/v1/runs/%0A%7B%22event%22%3A%22forged%22%7D%0D%0Ax")
        token = "psvc_" + "a" * 64
        httpx.get(f"{service.url}/v1/runs?name=secret", headers={"authorization": f"Bearer {token}"}, verify=False)
        until = time.monotonic() + 10
        while sum(record.name == "profsvc.web" for record in caplog.records) < 2 and time.monotonic() < until:
            time.sleep(0.01)  # an answer is sent before its line is written
    lines = [json_log.JsonFormatter().format(record) for record in caplog.records if record.name == "profsvc.web"]
    assert len(lines) == 2
    for line in lines:
        assert line.isascii()
        assert "\n" not in line
        assert token not in line
        assert "secret" not in line
    first = json.loads(lines[0])
    assert (first["event"], first["status"], first["method"]) == ("request", 404, "GET")
    assert first["path"] == '/v1/runs/\n{"event":"forged"}\r\nx'


@pytest.mark.parametrize("cut", [True, False], ids=["proxy cuts the path off", "proxy passes the path on"])
def test_a_path_under_a_proxy(site, profile, cut):
    root = "/tools/profsvc"
    with running(site(root_path=root), endpoint=Endpoint(root_path=root)) as service:
        before = "" if cut else root
        answer = service.http.post(f"{service.url}{before}/v1/uploads?run=r", content=profile)
        assert answer.json()["url"] == f"{root}/v1/runs/1"
        assert service.get(f"{before}/v1/runs/1").status_code == 200
        page = service.ok(f"{before}/v1/metrics", limit=2)
        assert page["next"].startswith(f"{root}/v1/metrics?")
        assert service.get(page["next"].removeprefix(root) if cut else page["next"]).status_code == 200
        described = service.get(f"{before}/openapi.json").json()
        assert described["servers"] == [{"url": root}]
        assert service.get("/elsewhere/v1/runs").status_code == 404
        assert service.get("/tools/profsvcx/v1/runs").status_code == 404


def test_queries_beyond_the_gate_are_sent_away(site, monkeypatch):
    go = threading.Event()
    real = store.query
    monkeypatch.setattr(store, "query", lambda *a, **k: (go.wait(10), real(*a, **k))[1])
    with running(site(limits=Limits(sql_at_once=1, sql_waiting=1))) as service, ThreadPoolExecutor(2) as pool:
        waiting = [pool.submit(service.get, "/v1/sql", q="select 1 as a") for _ in range(2)]
        until = time.monotonic() + 5
        while service.site.query_limit.in_use < 2 and time.monotonic() < until:
            time.sleep(0.01)
        answer = service.get("/v1/sql", q="select 1 as a")
        assert (answer.status_code, error_of(answer)["code"]) == (503, "overloaded")
        go.set()
        assert [one.result().status_code for one in waiting] == [200, 200]
    assert service.site.query_limit.in_use == 0
