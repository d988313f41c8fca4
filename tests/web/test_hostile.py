"""What a file says goes through every route and form as text, and acts on nothing."""

import csv
import io
import json
import shutil
import socket
from contextlib import suppress

import pytest

from profsvc import store
from profsvc.web.site import Site
from profsvc.web.views import names
from tests.web.conftest import PLAIN, running

SCRIPT = '<script>alert(1)</script>,"=cmd|x"&\u202e'
FORMULA = "=cmd|' /C calc'!A0"
LINES = "@sum\x1b[2J\x07 ../../etc/passwd =?utf-8?q?=0ABcc:_evil@x?="
LONG = "k" * 100_000
NAMES = [SCRIPT, FORMULA, LINES, LONG]
RUN = "=1+1<i>\r\nSet-Cookie: a=b"


@pytest.fixture(scope="module")
def attacked(tmp_path_factory, empty):
    """A service whose run, file, tag and kernels have hostile names."""
    file = tmp_path_factory.mktemp("attacked") / "store.sqlite"
    shutil.copy(empty, file)
    engine = store.open_store(str(file))
    header, units, launch = list(csv.reader(io.StringIO(PLAIN.read_text())))[:3]
    out = io.StringIO()
    rows = [[str(number), *launch[1:]] for number in range(len(NAMES))]
    for row, name in zip(rows, NAMES, strict=True):
        row[header.index("Kernel Name")] = name
    csv.writer(out, quoting=csv.QUOTE_ALL).writerows([header, units, *rows])
    with running(Site(engine, store.files_of(engine, free_bytes=1))) as service:
        answer = service.upload(
            out.getvalue().encode(), run=RUN, project="@p", tag="t=<script>", file_name="<b>\r\n&.csv"
        )
        assert answer.status_code == 201, answer.text
        assert "set-cookie" not in answer.headers
        yield service
    engine.dispose()


def test_json_and_ndjson_hold_every_name_as_it_came(attacked):
    assert [row["kernel"] for row in attacked.ok("/v1/launches")["rows"]] == NAMES
    lines = attacked.get("/v1/launches.ndjson").content.split(b"\n")
    assert [json.loads(line)["kernel"] for line in lines if line] == NAMES
    assert attacked.ok("/v1/runs/1")["run"]["name"] == RUN
    assert [row["run_id"] for row in attacked.ok("/v1/runs", name=RUN, project="@p")["rows"]] == [1]


@pytest.mark.parametrize("view", names())
def test_no_field_of_csv_is_a_formula(attacked, view):
    answer = attacked.get(f"/v1/{view}.csv", limit=50)
    for row in csv.reader(io.StringIO(answer.text, newline=""), strict=True):
        for field in row:
            assert not field.startswith(("=", "@", "\t", "\r", "\0")), field[:40]
    raw = attacked.get("/v1/launches.csv", columns="kernel", formula="raw").text
    assert [row[0] for row in csv.reader(io.StringIO(raw, newline=""))][1:] == NAMES


def test_sql_that_names_columns_badly_is_harmless(attacked):
    query = 'select kernel as "=head\r\nx: y", 1 as "<b>" from v1_launches order by launch_index'
    rows = list(csv.reader(io.StringIO(attacked.get("/v1/sql.csv", q=query).text, newline="")))
    assert rows[0] == ["'=head\r\nx: y", "<b>"]
    assert [row[0].lstrip("'") for row in rows[1:]] == NAMES
    assert attacked.ok("/v1/sql", q=query)["columns"] == ["=head\r\nx: y", "<b>"]


PATHS = (
    *("/v1/runs/{}", "/v1/explain/{}", "/v1/launches?kernel={}", "/v1/runs/1?kernel={}", "/{}"),
    *("/v1/reports/{}", "/v1/reports/1.{}"),
    *("/v1/compare?before={}&after=1", "/v1/launches?order={}", "/v1/sql?q={}"),
)
TEXTS = ("%3Cscript%3E", "..%2F..%2Fetc%2Fpasswd", "%0D%0ASet-Cookie:a=b", "%00", "%ff%fe", "%E2%80%AE")


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("text", TEXTS)
def test_hostile_questions_are_answered_as_json(attacked, path, text):
    answer = attacked.get(path.format(text))
    assert answer.status_code in {200, 400, 404}
    assert answer.headers["content-type"] == "application/json"
    assert "set-cookie" not in answer.headers
    assert "root:" not in answer.text
    answer.json()


def test_a_name_of_a_megabyte_is_refused(attacked):
    for path in ("/v1/runs/" + "x" * 60_000, "/v1/launches?kernel=" + "x" * 60_000):
        assert attacked.get(path).status_code in {200, 404}
    with socket.create_connection(("127.0.0.1", attacked.port), 5) as line, suppress(ConnectionError):
        line.sendall(b"GET /v1/runs/" + b"x" * 1_000_000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert line.recv(12) in {b"HTTP/1.1 431", b"HTTP/1.1 400", b"HTTP/1.1 404", b""}
    assert attacked.get("/livez").status_code == 200
