"""The description of the interface is whole, its examples are real, and what it promises holds for made-up requests."""

import pytest

from profsvc import store
from profsvc.web.api.uploads import EXAMPLE_RESPONSE
from tests.benchmarks import schema_cases
from tests.conftest import DEMO
from tests.web.http.test_authorization import WHO

CASES = 2


@pytest.fixture(scope="module")
def described(looked_at):
    return looked_at.get("/openapi.json").json()


ASKED_AFTER_THE_PATH = {"/v1/compare"}  # written to without a body


def test_every_route_is_described(described):
    found = {
        (method.upper(), path): said for path, group in described["paths"].items() for method, said in group.items()
    }
    # Paths that end in a format are for links; Accept asks for the same at the path without it.
    routes = {
        (m, p.replace(":path", "")) for m, p in WHO if not p.endswith((".csv", ".ndjson", ".svg", ".png", ".json"))
    }
    assert routes | {("GET", "/openapi.json")} == set(found)
    names = [said["operationId"] for said in found.values()]
    assert len(names) == len(set(names))
    for (method, path), said in found.items():
        assert said["description"], path
        assert said["x-scope"] in {*store.SCOPES, "anyone"}
        assert said["responses"]["default"]["content"]["application/json"]["schema"]["$ref"].endswith("/Error")
        assert "422" not in said["responses"]
        assert ("requestBody" in said) == (method in ("POST", "PUT") and path not in ASKED_AFTER_THE_PATH)


def test_every_column_can_be_asked_by(described):
    for view, (_, meanings) in store.VIEWS.items():
        said = described["paths"][f"/v1/{view.removeprefix('v1_')}"]["get"]
        assert {one["name"] for one in said["parameters"]} >= set(meanings)


def test_the_examples_are_answers(looked_at, described):
    for path, group in described["paths"].items():
        said = group.get("get", {"parameters": []})
        asked = {one["name"]: one["example"] for one in said["parameters"] if "example" in one and one["in"] == "query"}
        for one in said["parameters"]:
            if one["in"] == "path":
                path = path.replace(f"{{{one['name']}}}", one["example"])
        if "get" in group and (asked or "{" in path):
            logged = path.rpartition("/")[2] in {
                "power",
                "thermal",
                "heat-map",
                "rotated",
                "search",
            }  # the run of the examples has no log and no trace
            logged |= path == "/v1/findings/1"  # nor has it a finding
            assert looked_at.get(path, **asked).status_code in ({400, 404} if logged else {200}), path


def test_the_example_of_an_upload_is_one(service):
    found = service.upload(DEMO.read_bytes(), run="h200", file_name=DEMO.name).json()
    assert set(EXAMPLE_RESPONSE) <= set(found)
    assert {key: type(value) for key, value in EXAMPLE_RESPONSE.items()} == {
        key: type(found[key]) for key in EXAMPLE_RESPONSE
    }
    assert found | EXAMPLE_RESPONSE == found | {"sha256": EXAMPLE_RESPONSE["sha256"]}


def test_made_up_requests_are_answered_as_described(looked_at):
    """The same as `python -m tests.benchmarks.schema_cases`, with few cases of the routes that differ."""
    paths = {"/v1/launches", "/v1/sql", "/v1/runs/{run}"}
    done = schema_cases.cases(looked_at.url, CASES, lambda path: path in paths)
    assert done.cases >= len(paths)
    assert done.breaches == []


def test_rows_of_views_have_types(described):
    content = described["paths"]["/v1/launches"]["get"]["responses"]["200"]["content"]["application/json"]
    columns = content["schema"]["properties"]["rows"]["items"]["properties"]
    assert (columns["duration_ns"]["type"], columns["kernel"]["type"]) == (["number", "null"], ["string", "null"])
    content = described["paths"]["/v1/runs"]["get"]["responses"]["200"]["content"]["application/json"]
    assert content["schema"]["properties"]["rows"]["items"]["properties"]["tags"]["type"] == ["object", "null"]


def test_the_index_leads_to_every_path(looked_at, described):
    index = looked_at.ok("/v1")
    assert {(one["method"].lower(), one["href"]) for one in index["paths"]} == {
        (method, path) for path, group in described["paths"].items() for method in group
    }
    assert [one["name"] for one in index["versions"]] == ["v1"]
    for path in index["links"].values():
        assert looked_at.get(path).status_code == 200, path
    answer = looked_at.http.get(
        f"{looked_at.url}/v1", headers={"accept": "text/html,*/*;q=0.8"}, follow_redirects=False
    )
    assert (answer.status_code, answer.headers["location"]) == (303, "/docs/api")


@pytest.mark.parametrize(
    ("path", "accept", "kind"),
    [
        ("/v1/runs", "text/csv", "text/csv"),
        ("/v1/runs", "text/html,application/xhtml+xml,*/*;q=0.8", "application/json"),
        ("/v1/runs", "application/json;q=0.1, application/x-ndjson;q=0.9", "application/x-ndjson"),
        ("/v1/runs", "text/*", "text/csv"),
        ("/v1/runs", "application/xml", "application/json"),
        ("/v1/runs", "text/csv;q=x, ;;, */*", "application/json"),
        ("/v1/runs.csv", "application/json", "text/csv"),
        ("/v1/sql?q=select+1+as+a", "text/csv", "text/csv"),
        ("/v1/runs/h200/plots/roofline", "image/avif,image/svg+xml,image/*,*/*;q=0.8", "image/svg+xml"),
        ("/v1/runs/h200/plots/roofline", "*/*", "application/json"),
    ],
)
def test_a_path_answers_in_the_form_that_is_accepted(looked_at, path, accept, kind):
    answer = looked_at.http.get(looked_at.url + path, headers={"accept": accept})
    assert answer.status_code == 200
    assert answer.headers["content-type"].partition(";")[0] == kind
    assert "Accept" in answer.headers["vary"]


def test_services_of_one_process_share_their_routes_and_nothing_else(looked_at, service):
    assert service.ok("/v1/runs")["rows"] == []
    assert [row["name"] for row in looked_at.ok("/v1/runs")["rows"]] == ["h200"]
    assert service.ok("/v1/runs")["rows"] == []
