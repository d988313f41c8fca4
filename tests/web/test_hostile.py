"""What a file says goes through every route and form as text, and acts on nothing."""

import base64
import io
import json
import logging
import socket
import time
from contextlib import suppress
from urllib.parse import quote

import pytest

from profsvc import store
from profsvc.web.api.views import view_names
from profsvc.web.app import create_app
from profsvc.web.http.json_log import LOG, JsonFormatter
from profsvc.web.http.state import AppState
from tests.robustness import hostile
from tests.web.conftest import running

FORMS = ("", ".json", ".csv", ".ndjson")
# What people look at.
PAGES = {
    "/": ["/", "/?search=%3Cscript%3E"],
    "/static/{name}": [],
    "/login": ["/login?after=%3Cscript%3E"],
    "/runs/{run}": ["/runs/1", "/runs/2"],
    "/runs/{run}/kernels/{kernel}": ["/runs/1/kernels/1"],
    "/runs/{run}/rejects": ["/runs/1/rejects", "/runs/2/rejects"],
    "/runs/{run}/launches/{launch}": ["/runs/1/launches/1000000001", "/runs/1/launches/1000000004"],
    "/runs/{run}/launches/{launch}/source": ["/runs/1/launches/1000000001/source"],
    "/runs/{run}/launches/{launch}/metrics": ["/runs/1/launches/1000000001/metrics?baseline=1"],
    "/runs/{run}/source": ["/runs/1/source?kernel=%3Cscript%3E"],
    "/runs/{run}/means/{kernel:path}": ["/runs/1/means/1"],
    "/runs/{run}/power": ["/runs/1/power", "/runs/2/power"],
    "/devices": ["/devices"],
    "/devices/{name:path}": ["/devices/%3Cscript%3E"],
    "/upload": ["/upload?run=%3Cscript%3E"],
    "/docs/api": ["/docs/api"],
    "/docs/api/{operation}": ["/docs/api/list_launches", "/docs/api/%3Cb%3E"],
    "/docs/api/{operation}/ask": ["/docs/api/show_run/ask?run=1", "/docs/api/show_run/ask"],
    "/docs": ["/docs"],
    "/docs/{name:path}": ["/docs/reference/formats", "/docs/%3Cscript%3E", "/docs/pictures/%3Cscript%3E.svg"],
    "/explain/{name:path}": ["/explain/divergence?run=1", "/explain/duration_ns?run=1"],
    "/compare": ["/compare", "/compare?before=1&after=2"],
    "/compare/{pair:path}": [],
    "/history": ["/history", "/history?kernel=1", "/history?kernel=2", "/history?kernel=3&quantity=divergence"],
    "/history/{kernel:path}": [],
    "/commits/{commit:path}": [],
    "/sql": ["/sql", "/sql?q=select+*+from+v1_launches", "/sql?q=select+*+from+v1_runs", "/sql?q=%3Cscript%3E"],
    "/findings": ["/findings"],
    "/renames": ["/renames"],
    "/findings/{finding}": ["/findings/1"],
    "/models": ["/models"],
    "/models/{name}": ["/models/work-depth?tree=16"],
    "/runs/{run}/timeline": ["/runs/1/timeline", "/runs/2/timeline"],
    "/runs/{run}/graph": ["/runs/1/graph", "/runs/2/graph?show=warps"],
    "/reports": ["/reports"],
    "/reports/{report}": ["/reports/newest"],
    "/settings": ["/settings"],
    "/settings/{part}": ["/settings/schedules", "/settings/storage", "/settings/%3Cscript%3E"],
}
# Routes that are no list, each with what it is asked here.
OTHERS = {
    "/v1/runs/{run:path}": ["/v1/runs/1", "/v1/runs/2", "/v1/runs/1?kernel=0", "/v1/runs/1?kernel=5"],
    "/v1/runs/{run:path}/power": ["/v1/runs/1/power", "/v1/runs/2/power?draw=svg", "/v1/runs/2/power?draw=html"],
    "/v1/runs/{run:path}/power-series": ["/v1/runs/1/power-series", "/v1/runs/2/power-series"],
    **{f"/v1/runs/{{run:path}}/timeline{form}": [f"/v1/runs/{run}/timeline{form}" for run in (1, 2)]
       for form in ("", ".json", ".svg")},
    "/v1/runs/{run:path}/heat-map": ["/v1/runs/1/heat-map"],
    "/v1/runs/{run:path}/thermal": ["/v1/runs/1/thermal?load=500&duration=60"],
    "/v1/runs/{run:path}/rotated": ["/v1/runs/1/rotated?second=2"],
    "/v1/compare": ["/v1/compare?before=1&after=2&fail_on=duration=1%25"],
    "/v1/compare/runs": ["/v1/compare/runs?run=1&run=2"],
    "/v1/runs/{run:path}/timeline/search": ["/v1/runs/1/timeline/search?text=%3Cscript%3E"],
    "/v1/explain/{name:path}": ["/v1/explain/divergence?run=1&kernel=0", "/v1/explain/duration_ns?run=1&kernel=3"],
    "/v1/runs/{run:path}/whatif": ["/v1/runs/1/whatif?kernel=0"],
    "/v1/models/list": ["/v1/models/list"],
    "/v1/models/{name}": ["/v1/models/work-depth?tree=16"],
    "/v1/runs/{run:path}/antipatterns": ["/v1/runs/1/antipatterns"],
    "/v1/runs/{run:path}/unit-power": ["/v1/runs/2/unit-power"],
    "/v1/runs/{run:path}/sm-counts": ["/v1/runs/2/sm-counts"],
    "/v1/versions": ["/v1/versions?run=1&run=2"],
    "/v1/runs/{run:path}/graph": ["/v1/runs/1/graph?show=warps"],
    "/v1/runs/{run:path}/source": ["/v1/runs/1/source"],
    **{f"/v1/{name}": [f"/v1/{name}"] for name in ("tokens", "schedules/list", "channels", "storage", "groups")},
    "/v1/runs/{run:path}/metrics": ["/v1/runs/1/metrics?kernel=0&baseline=1"],
    **{
        f"/v1/runs/{{run:path}}/plots/{{kind}}{form}": [f"/v1/runs/1/plots/roofline{form}"]
        for form in ("", ".json", ".svg", ".png")
    },
    "/v1/accuracy": ["/v1/accuracy"],
    "/v1/history": ["/v1/history?kernel=1", "/v1/history?kernel=3&quantity=divergence"],
    "/v1/reports/{report}": [],
    "/v1/reports/list": ["/v1/reports/list"],
    "/v1/findings/list": ["/v1/findings/list"],
    "/v1/findings/{finding}": [],
    "/v1/renames": ["/v1/renames"],
    "/v1/components": ["/v1/components"],
    "/v1/cores": [],
    "/v1/formats": ["/v1/formats"],
    "/v1/sql/examples": ["/v1/sql/examples"],
    **{f"/v1/sql{form}": [f"/v1/sql{form}?q=select+kernel+from+v1_launches"] for form in FORMS},
    **{path: [path] for path in ("/livez", "/readyz", "/metrics", "/openapi.json", "/v1")},
}  # fmt: skip


@pytest.fixture(scope="module")
def attacked(hostile_store):
    """A service on a store whose every name is hostile; only for what reads."""
    engine = store.open_store(str(hostile_store), pooled=True)
    with running(AppState(engine, store.blob_store_of(engine, free_bytes=1))) as service:
        yield service
    engine.dispose()


def held(answer):
    """Hold an answer: its head is harmless, it is what it says it is, and no browser takes it for anything else."""
    for name, value in answer.headers.items():
        hostile.header(name)
        hostile.header(value)
    assert "set-cookie" not in answer.headers
    assert answer.headers["x-content-type-options"] == "nosniff"
    kind = answer.headers["content-type"].partition(";")[0]
    if kind == "application/json":
        answer.json()
    elif kind == "text/csv":
        hostile.csv_text(answer.text)
    elif kind == "application/x-ndjson":
        for line in filter(None, answer.content.split(b"\n")):
            json.loads(line)
    elif kind in {"text/html", "image/svg+xml"}:
        hostile.html(answer.text)
    else:
        assert kind in {"text/plain", "image/png"}, kind


def test_every_list_goes_out_as_text(attacked):
    for name in view_names():
        for form in ("", ".csv", ".ndjson"):
            answer = attacked.get(f"/v1/{name}{form}", limit=60)
            assert answer.status_code == 200, answer.text[:300]
            held(answer)


def test_every_other_route_goes_out_as_text(attacked):
    listed = {f"/v1/{name}{form}" for name in view_names() for form in FORMS}
    routes = {route.path for route in create_app(attacked.site).routes if "GET" in route.methods}
    assert routes - listed == set(OTHERS) | set(PAGES), "a new route says here what it is asked"
    for path in [one for asked in OTHERS.values() for one in asked]:
        answer = attacked.get(path)
        # The runs have no thermocouples, no source page and no load on several numbers of SMs.
        missing = path.partition("?")[0].endswith(("heat-map", "rotated", "/source", "sm-counts"))
        unsaid = "whatif" in path or "plots" in path  # these tell why they have nothing for such launches
        assert answer.status_code in ({404} if missing else {200, 400, 404} if unsaid else {200}), (path, answer.text)
        held(answer)


def test_every_page_goes_out_as_text(attacked):
    for path in [one for asked in PAGES.values() for one in asked]:
        answer = attacked.http.get(attacked.url + path, headers={"accept": "text/html"})
        assert answer.status_code in {200, 303, 400, 404}, (path, answer.text[:300])
        if answer.status_code != 303:
            assert answer.headers["content-type"].startswith("text/html"), path
            assert len(answer.content) < 2_000_000, path
            held(answer)


def test_json_and_ndjson_hold_every_name_as_it_came(attacked):
    kernels = list(hostile.NAMES.values())
    assert [row["kernel"] for row in attacked.ok("/v1/launches", upload_id=1)["rows"]] == kernels
    lines = attacked.get("/v1/launches.ndjson", upload_id=1).content.split(b"\n")
    assert [json.loads(line)["kernel"] for line in lines if line] == kernels
    assert attacked.ok("/v1/runs/1")["run"]["name"] == hostile.RUN
    rows = attacked.ok("/v1/runs", name=hostile.RUN, project=hostile.NAMES["at"])["rows"]
    assert [row["run_id"] for row in rows] == [1]
    assert rows[0]["tags"][hostile.NAMES["image"]] == hostile.NAMES["crlf"]
    raw = attacked.get("/v1/launches.csv", columns="kernel", formula="raw", upload_id=1).text
    assert raw.split("\n", 1)[1].startswith(hostile.NAMES["script"].replace('"', '""').join('""'))


def test_the_page_of_power_holds_no_element_of_theirs(attacked):
    (page,) = attacked.ok("/v1/runs/1/power", draw="html")["pictures"]
    hostile.html(base64.b64decode(page["data"]).decode())
    for one in attacked.ok("/v1/runs/1/power", draw="svg")["pictures"]:
        drawn = base64.b64decode(one["data"]).decode()
        hostile.html(drawn.replace("<?xml", ""))
        assert "alert(1)>" not in drawn


def test_uploads_under_any_name_are_answered_and_logged_as_text(service):
    sink = io.StringIO()
    handler = logging.StreamHandler(sink)
    handler.setFormatter(JsonFormatter())
    LOG.addHandler(handler)
    level = LOG.level
    LOG.setLevel(logging.INFO)
    asked = 0
    try:
        for number, name in enumerate(hostile.SHORT.values()):
            body = f"name,begin,end\nload {number},1795180600,1795180601\n".encode()
            answer = service.upload(
                body, run=name, project=name, file_name=name, tag=f"a={name}", commit=name, device=name
            )
            assert answer.status_code == 201, answer.text
            held(answer)
            held(attacked := service.get(f"/v1/runs/{quote(name, safe='')}"))
            assert attacked.status_code in {200, 404}  # a name with a slash is one of a project
            held(service.get("/v1/runs", name=name))
            asked += 3
        for path in ("/v1/uploads?run=a%00b", "/v1/uploads?run=" + "x" * 501, "/v1/uploads?tag=" + "y" * 900):
            answer = service.http.post(service.url + path, content=b"x")
            assert answer.status_code == 400
            held(answer)
            asked += 1
        until = time.monotonic() + 10
        while sink.getvalue().count("\n") < asked and time.monotonic() < until:  # a line may come after its answer
            time.sleep(0.01)
    finally:
        LOG.removeHandler(handler)
        LOG.setLevel(level)
    hostile.log_lines(sink.getvalue(), asked)
    assert {row["name"] for row in service.ok("/v1/runs", limit=100)["rows"]} == set(hostile.SHORT.values())


def test_sql_that_names_columns_badly_is_harmless(attacked):
    query = 'select kernel as "=head\r\nx: y", 1 as "<b>" from v1_launches where upload_id = 1 and launch_index < 20'
    rows = hostile.csv_text(attacked.get("/v1/sql.csv", q=query).text)
    assert rows[0] == ["'=head\r\nx: y", "<b>"]
    assert {row[0].lstrip("'") for row in rows[1:]} == {name.lstrip("'") for name in hostile.SHORT.values()}
    assert attacked.ok("/v1/sql", q=query)["columns"] == ["=head\r\nx: y", "<b>"]


PATHS = (
    *("/v1/runs/{}", "/v1/explain/{}", "/v1/launches?kernel={}", "/v1/runs/1?kernel={}", "/{}"),
    *("/v1/compare?before={}&after=1", "/v1/launches?order={}", "/v1/sql?q={}", "/v1/runs/1/power?sensor={}"),
    *("/v1/runs/{}/power", "/v1/components?device={}", "/v1/runs/1/heat-map?minus={}", "/v1/{}.csv"),
    *("/v1/reports/{}", "/v1/reports/1.{}"),
)
ODD = ("%00", "%ff%fe", "%ed%a0%80", "%C0%AE%C0%AE/", "%", "%zz", "%0a%0d")


@pytest.mark.parametrize("path", PATHS)
def test_hostile_questions_are_answered_as_json(attacked, path):
    for text in (*(quote(name, safe="") for name in hostile.SHORT.values()), *ODD):
        answer = attacked.http.get(attacked.url + path.format(text))
        assert answer.status_code in {200, 400, 404}, (text, answer.status_code)
        assert answer.headers["content-type"] == "application/json"
        assert "root:" not in answer.text
        held(answer)


def test_a_name_of_a_megabyte_is_refused(attacked):
    for path in ("/v1/runs/" + "x" * 60_000, "/v1/launches?kernel=" + "x" * 60_000):
        assert attacked.get(path).status_code in {200, 404}
    with socket.create_connection(("127.0.0.1", attacked.port), 5) as line, suppress(ConnectionError):
        line.sendall(b"GET /v1/runs/" + b"x" * 1_000_000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert line.recv(12) in {b"HTTP/1.1 431", b"HTTP/1.1 400", b"HTTP/1.1 404", b""}
    assert attacked.get("/livez").status_code == 200
