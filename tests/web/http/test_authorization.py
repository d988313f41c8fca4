"""Who may do what. Every route is in the table here: a new one fails until somebody says who may ask it."""

import re
import socket

import httpx
import pytest

from profsvc import store
from profsvc.errors import AccessError, ServiceError, UsageError
from profsvc.web.api.views import view_names
from profsvc.web.app import create_app
from profsvc.web.http import authorization
from profsvc.web.http.state import AppState, Limits
from profsvc.web.server import Endpoint, app_state_for, listening_socket, startup_lines
from tests.web.conftest import error_of, running

FORMS = ("", ".json", ".csv", ".ndjson")
WHO = {
    ("GET", "/livez"): "anyone",
    ("GET", "/readyz"): "anyone",
    ("GET", "/metrics"): "read",
    ("GET", "/openapi.json"): "read",
    ("POST", "/v1/uploads"): "upload",
    ("POST", "/v1/sql"): "sql",
    **{("GET", f"/v1/sql{form}"): "sql" for form in FORMS},
    ("GET", "/v1/sql/examples"): "read",
    ("GET", "/v1/runs/{run:path}"): "read",
    ("GET", "/v1/runs/{run:path}/whatif"): "read",
    ("GET", "/v1/runs/{run:path}/metrics"): "read",
    ("GET", "/v1/runs/{run:path}/antipatterns"): "read",
    ("GET", "/v1/runs/{run:path}/sm-counts"): "read",
    ("GET", "/v1/runs/{run:path}/unit-power"): "read",
    ("GET", "/v1/runs/{run:path}/power-series"): "read",
    ("GET", "/v1/runs/{run:path}/timeline"): "read",
    ("GET", "/v1/runs/{run:path}/timeline/search"): "read",
    ("GET", "/v1/runs/{run:path}/timeline.svg"): "read",
    ("GET", "/v1/runs/{run:path}/timeline.json"): "read",
    ("GET", "/v1"): "read",
    ("GET", "/v1/versions"): "read",
    ("GET", "/v1/compare/runs"): "read",
    ("GET", "/v1/runs/{run:path}/graph"): "read",
    ("GET", "/v1/runs/{run:path}/source"): "read",
    **{("GET", f"/v1/runs/{{run:path}}/plots/{{kind}}{form}"): "read" for form in ("", ".json", ".svg", ".png")},
    **{("GET", f"/v1/runs/{{run:path}}/{word}"): "read" for word in ("power", "thermal", "heat-map", "rotated")},
    ("GET", "/v1/components"): "read",
    ("GET", "/v1/cores"): "read",
    ("GET", "/v1/compare"): "read",
    ("GET", "/v1/history"): "read",
    ("POST", "/v1/compare"): "upload",
    ("GET", "/v1/accuracy"): "read",
    ("GET", "/v1/explain/{name:path}"): "read",
    ("GET", "/v1/formats"): "read",
    ("GET", "/v1/reports/{report}"): "read",
    ("POST", "/v1/reports"): "admin",
    ("POST", "/v1/findings/{finding}"): "admin",
    ("GET", "/v1/renames"): "read",
    ("POST", "/v1/renames"): "admin",
    ("GET", "/v1/findings/{finding}"): "read",
    ("GET", "/v1/findings/list"): "read",
    ("GET", "/v1/reports/list"): "read",
    ("GET", "/v1/models/list"): "read",
    ("GET", "/v1/models/{name}"): "read",
    ("POST", "/v1/models/{name}"): "read",
    **{("GET", f"/v1/{name}"): "admin" for name in ("tokens", "schedules/list", "channels", "storage")},
    **{("POST", f"/v1/{name}"): "admin" for name in ("tokens", "tokens/{token}", "schedules", "schedules/{schedule}")},
    ("POST", "/v1/channels/{channel}"): "admin",
    ("POST", "/v1/runs/{run:path}"): "admin",
    ("DELETE", "/v1/runs/{run:path}"): "admin",
    ("POST", "/v1/uploads/{upload}/restore"): "admin",
    ("GET", "/v1/groups"): "read",
    ("PUT", "/v1/saved_queries/{name:path}"): "sql",
    ("DELETE", "/v1/saved_queries/{name:path}"): "sql",
    **{("GET", f"/v1/{name}{form}"): "read" for name in view_names() for form in FORMS},
}
QUESTIONS = {"/v1/sql": "?q=select+1+as+a", "/v1/compare": "?before=1&after=1", "/v1/history": "?kernel=saxpy"}
# What people look at; not in the description of the interface.
PAGES = {
    ("GET", "/static/{name}"): "anyone",
    ("GET", "/login"): "anyone",
    ("POST", "/login"): "anyone",
    ("POST", "/logout"): "anyone",
    ("POST", "/theme"): "anyone",
    ("GET", "/"): "read",
    ("GET", "/runs/{run}"): "read",
    ("GET", "/runs/{run}/kernels/{kernel}"): "read",
    ("GET", "/runs/{run}/rejects"): "read",
    ("GET", "/runs/{run}/launches/{launch}"): "read",
    ("GET", "/runs/{run}/launches/{launch}/source"): "read",
    ("GET", "/runs/{run}/launches/{launch}/metrics"): "read",
    ("GET", "/runs/{run}/source"): "read",
    ("GET", "/runs/{run}/graph"): "read",
    ("GET", "/runs/{run}/means/{kernel:path}"): "read",
    ("GET", "/models"): "read",
    ("GET", "/models/{name}"): "read",
    ("POST", "/models/{name}"): "read",
    ("GET", "/devices"): "read",
    ("GET", "/devices/{name:path}"): "read",
    ("GET", "/upload"): "upload",
    ("POST", "/upload"): "upload",
    ("GET", "/explain/{name:path}"): "read",
    ("GET", "/docs"): "anyone",
    ("GET", "/docs/api"): "read",
    ("GET", "/docs/api/{operation}"): "read",
    ("GET", "/docs/api/{operation}/ask"): "read",
    ("GET", "/docs/{name:path}"): "anyone",
    ("GET", "/compare"): "read",
    ("GET", "/compare/{pair:path}"): "read",
    ("GET", "/history"): "read",
    ("GET", "/history/{kernel:path}"): "read",
    ("GET", "/commits/{commit:path}"): "read",
    ("GET", "/runs/{run}/power"): "read",
    ("GET", "/runs/{run}/timeline"): "read",
    ("GET", "/sql"): "sql",
    ("POST", "/sql"): "sql",
    ("GET", "/findings"): "read",
    ("GET", "/findings/{finding}"): "read",
    ("POST", "/findings/{finding}"): "admin",
    ("GET", "/renames"): "read",
    ("POST", "/renames"): "admin",
    ("GET", "/reports"): "read",
    ("POST", "/reports"): "admin",
    ("GET", "/reports/{report}"): "read",
    ("GET", "/settings"): "admin",
    ("POST", "/runs/{run}"): "admin",
    ("POST", "/restore"): "admin",
    ("GET", "/settings/{part}"): "admin",
    ("POST", "/settings/{part}"): "admin",
}
VALUES = {"launch": "1000000001", "operation": "list_runs", "name": "divergence", "kind": "roofline"}


@pytest.fixture
def closed(site, engine, profile):
    """A service that needs tokens, with a run in each of two projects, and a token of each kind."""
    with running(site(is_public=True)) as service:
        tokens = {scope: store.create_token(engine, scope, [scope]) for scope in store.SCOPES}
        tokens["lab"] = store.create_token(engine, "lab", ["read", "upload"], project="lab")
        tokens["old"] = store.create_token(engine, "old", ["admin"], days=1e-9)
        tokens["revoked"] = store.create_token(engine, "revoked", ["admin"])
        store.revoke_token(engine, "revoked")
        for number, project in enumerate(("lab", "secret")):
            body = profile.replace(b"saxpy", b"kernel%d" % number)
            headers = {"authorization": f"Bearer {tokens['upload']}"}
            params = {"run": f"{project}-run", "project": project}
            answer = httpx.post(f"{service.url}/v1/uploads", content=body, params=params, headers=headers, verify=False)
            assert answer.status_code == 201, answer.text
        yield service, tokens


def ask(service, token, path, method="GET", **options):
    headers = {"authorization": f"Bearer {token}"} if token else {}
    return service.http.request(method, service.url + path, headers=headers, **options)


def test_every_route_says_who_may_ask_it(looked_at):
    found = {}
    for route in create_app(AppState(looked_at.site.engine, looked_at.site.files)).routes:
        for method in route.methods:
            found[method, route.path] = authorization.scope_of(route)
    assert found == WHO | PAGES


def test_every_route_keeps_out_whoever_has_not_its_scope(closed):
    service, tokens = closed
    bad = {"none": None, "made up": "psvc_" + "0" * 64, "no token at all": "x", "old": tokens["old"],
           "revoked": tokens["revoked"]}  # fmt: skip
    tried = set()
    for (method, path), scope in (WHO | PAGES).items():
        if scope == "anyone":
            assert ask(service, None, path, method).status_code not in {401, 403} or path == "/login", path
            continue
        stem, _, form = re.sub(r"{(\w+)(:path)?}", lambda part: VALUES.get(part[1], "1"), path).partition(".")
        real = stem + f".{form}" * bool(form) + QUESTIONS.get(stem, "")
        for kind, token in list(bad.items())[: None if scope not in tried else 1]:
            answer = ask(service, token, real, method)
            assert answer.status_code == 401, (path, kind)
            assert answer.headers["www-authenticate"].startswith("Bearer")
            error_of(answer)
        tried.add(scope)
        assert ask(service, tokens["upload" if scope != "upload" else "read"], real, method).status_code == 403, path
        for who in (scope,) if not form else ():
            answer = ask(service, tokens[who], real, method, json={"q": "select 1"} if method == "POST" else None)
            assert answer.status_code not in {401, 403}, (path, answer.text)
    for path in ("/v1/runs", "/v1/sql?q=select+1+as+a", "/metrics"):
        assert ask(service, tokens["admin"], path).status_code == 200


def test_a_token_of_a_project_sees_that_project_alone(closed):
    service, tokens = closed
    lab = tokens["lab"]
    for name, view in view_names().items():
        for form in ("", ".csv") if name in {"runs", "launches", "columns", "devices"} else ("",):
            answer = ask(service, lab, f"/v1/{name}{form}")
            if not {"run_id", "run_before", "project"} & set(store.column_kinds_of(view)) and name != "columns":
                assert (answer.status_code, error_of(answer)["code"]) == (403, "access")
                continue
            assert answer.status_code == 200, answer.text
            assert "secret" not in answer.text
            assert "kernel1" not in answer.text
    assert [row["name"] for row in ask(service, lab, "/v1/runs").json()["rows"]] == ["lab-run"]
    assert ask(service, lab, "/v1/runs/lab-run").status_code == ask(service, lab, "/v1/runs/1").status_code == 200
    for path in ("/v1/runs/2", "/v1/runs/secret-run", "/v1/runs/secret%2Fsecret-run", "/v1/compare?before=1&after=2",
                 "/v1/explain/duration_ns?run=2", "/v1/runs/secre", "/v1/runs/2/power", "/v1/runs/2/thermal",
                 "/v1/runs/2/heat-map",
                 "/v1/runs/2/rotated?second=1", "/v1/runs/1/rotated?second=2", "/v1/runs/1/heat-map?minus=2",
                 "/v1/runs/1/heat-map?calibration=2"):  # fmt: skip
        answer = ask(service, lab, path)
        assert answer.status_code == 404, path
        assert "secret-run" not in error_of(answer)["message"].partition(";")[2]
    for path in ("/v1/sql?q=select+1", "/v1/sql.csv?q=select+1", "/v1/components"):
        assert ask(service, lab, path).status_code == 403


def test_a_token_of_a_project_uploads_there_alone(closed, profile):
    service, tokens = closed
    path = "/v1/uploads"
    assert ask(service, tokens["lab"], f"{path}?project=secret", "POST", content=profile).status_code == 403
    assert ask(service, tokens["lab"], f"{path}?run_id=2", "POST", content=profile).status_code == 404
    stored = ask(service, tokens["lab"], f"{path}?run=mine", "POST", content=profile)
    assert stored.status_code == 201
    seen = ask(service, tokens["lab"], "/v1/runs?name=mine").json()["rows"]
    assert [row["project"] for row in seen] == ["lab"]
    elsewhere = profile.replace(b"saxpy", b"kernel1")
    own = ask(service, tokens["lab"], path, "POST", content=elsewhere)
    assert (own.status_code, own.json()["known"]) == (201, False)  # as if nobody had them
    assert "secret" not in own.text


def test_a_store_opens_to_this_machine_alone_until_it_has_a_token(service, engine):
    assert service.get("/v1/runs").status_code == 200
    token = store.create_token(engine, "first", ["read"])
    assert service.get("/v1/runs").status_code == 401
    assert ask(service, token, "/v1/runs").status_code == 200
    store.revoke_token(engine, "first")
    assert service.get("/v1/runs").status_code == 401
    assert "revoked" in error_of(ask(service, token, "/v1/runs"))["message"]


def test_a_wrong_token_is_refused_even_where_none_is_needed(service):
    for said in ("Bearer psvc_" + "1" * 64, "Bearer", "Basic dXNlcjpwYXNz", "Bearer \u00e9"):
        answer = httpx.get(f"{service.url}/v1/runs", headers={"authorization": said.encode()}, verify=False)
        assert answer.status_code == 401, said
    assert service.get("/livez").status_code == 200


@pytest.mark.parametrize("host", ["evil.example", "evil.example:80", "", "127.0.0.1.evil.example", "[::2]", "10.0.0.1"])
def test_other_names_are_not_answered(service, host):
    with socket.create_connection(("127.0.0.1", service.port), 5) as line:
        line.sendall(f"GET /livez HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n".encode())
        assert line.makefile("rb").readline().split()[1] == b"403"


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:1", "127.0.0.1", "[::1]:80"])
def test_own_names_are_answered(service, host):
    assert service.http.get(f"{service.url}/livez", headers={"host": host}).status_code == 200


@pytest.mark.parametrize(
    ("method", "headers", "status"),
    [
        ("GET", {"sec-fetch-site": "cross-site", "sec-fetch-mode": "cors"}, 403),
        ("GET", {"sec-fetch-site": "same-site", "sec-fetch-mode": "no-cors"}, 403),
        ("GET", {"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate"}, 200),
        ("GET", {"sec-fetch-site": "same-origin", "sec-fetch-mode": "cors"}, 200),
        ("GET", {"sec-fetch-site": "none"}, 200),
        ("POST", {"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate"}, 403),
        ("POST", {"origin": "https://evil.example"}, 403),
        ("POST", {"origin": "null"}, 403),
        ("POST", {"sec-fetch-site": "same-origin", "origin": "SAME"}, 200),
        ("POST", {}, 200),
    ],
)
def test_pages_of_others_may_not_ask(service, method, headers, status):
    headers = {key: service.url if value == "SAME" else value for key, value in headers.items()}
    path = "/v1/sql" if method == "POST" else "/v1/runs"
    body = {"json": {"q": "select 1 as a"}} if method == "POST" else {}
    answer = service.http.request(method, service.url + path, headers=headers, **body)
    assert answer.status_code == status, answer.text
    assert "access-control-allow-origin" not in answer.headers


def test_a_public_place_is_refused_without_a_token(engine):
    files = store.blob_store_of(engine)
    others = [
        Endpoint("0.0.0.0"),
        Endpoint("::"),
        Endpoint(allowed_hosts=("lab",)),
        Endpoint(root_path="/p"),
        Endpoint("lab.example"),
        Endpoint(trusted_proxies=("10.0.0.1",)),
    ]
    for place in others:
        with pytest.raises(
            AccessError, match=r"create one first: profsvc --store \S+ token create NAME --scope upload"
        ):
            app_state_for(engine, files, place, Limits())
    assert not app_state_for(engine, files, Endpoint(), Limits()).is_public
    store.create_token(engine, "old", ["read"], days=1e-9)
    with pytest.raises(AccessError):
        app_state_for(engine, files, Endpoint("0.0.0.0"), Limits())
    store.create_token(engine, "new", ["read"])
    for place in others:
        site = app_state_for(engine, files, place, Limits())
        assert site.is_public
        said = startup_lines(site, place, 80)
        assert "authentication is on" in said[1]
        assert "PROFSVC_URL=http://0.0.0.0" not in said[2]
        assert site.any_address == (place.host != "127.0.0.1")
        assert set(place.allowed_hosts) <= site.hosts


@pytest.mark.parametrize(
    "place",
    [Endpoint(root_path="tools"), Endpoint(root_path="//evil"), Endpoint(root_path="/a\r\nb"), Endpoint(allowed_hosts=("http://a",)),
     Endpoint(allowed_hosts=("*.a",)), Endpoint(allowed_hosts=(" ",)), Endpoint(trusted_proxies=("lab",))],
)  # fmt: skip
def test_a_place_that_cannot_be_is_refused(place):
    with pytest.raises(UsageError, match="is not"):
        place.validated()


def test_a_port_that_is_taken_is_said(service):
    with pytest.raises(ServiceError, match=f"port {service.port}: Address already in use; choose another --port"):
        listening_socket("127.0.0.1", service.port)
    with pytest.raises(UsageError, match="not an address of this machine"):
        listening_socket("no such host", 0)


def test_only_a_trusted_proxy_says_who_asks(site, caplog):
    for proxies, client in (((), "127.0.0.1"), (("127.0.0.1",), "203.0.113.9")):
        caplog.clear()
        with (
            caplog.at_level("INFO", "profsvc.web"),
            running(site(), endpoint=Endpoint(trusted_proxies=proxies)) as service,
        ):
            service.http.get(f"{service.url}/livez", headers={"x-forwarded-for": "203.0.113.9"})
        assert [record.fields["client"] for record in caplog.records if hasattr(record, "fields")] == [client]
