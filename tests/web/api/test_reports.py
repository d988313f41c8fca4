"""Nightly reports and findings over HTTP."""

import shutil

import numpy as np
import pytest

from profsvc import store
from profsvc.reports.nightly import formats as forms
from profsvc.views.nightly import report as nightly
from tests.inputs.nights import day, put, report
from tests.web.conftest import error_of

NIGHTS = 12


@pytest.fixture(scope="module")
def nights_file(tmp_path_factory, empty):
    file = shutil.copy(empty, tmp_path_factory.mktemp("nights") / "store.sqlite")
    engine = store.open_store(str(file), pooled=True)
    rng = np.random.default_rng(2)
    for night in range(NIGHTS):
        put(engine, night, rng, temperature_c=None, slower=(1.1 if night >= NIGHTS - 3 else 1.0, 1.0))
    report(engine, NIGHTS - 1)
    engine.dispose()
    return file


@pytest.fixture
def engine(tmp_path, nights_file):
    engine = store.open_store(str(shutil.copy(nights_file, tmp_path / "store.sqlite")), pooled=True)
    yield engine
    engine.dispose()


@pytest.fixture
def nights(engine):
    return engine


def test_a_report_is_there_in_every_form(nights, service):
    document = nightly.report(nights, 1)
    for name in ("newest", "1", "1.json", "newest.json"):
        assert service.ok(f"/v1/reports/{name}")["report"] == document
    for suffix, form in (("md", "md"), ("html", "html"), ("txt", "text")):
        answer = service.get(f"/v1/reports/newest.{suffix}")
        assert (answer.status_code, answer.text) == (200, forms.in_form(document, form))
        assert "default-src 'none'" in answer.headers["content-security-policy"]
        assert answer.headers["x-content-type-options"] == "nosniff"
    assert service.ok("/v1/reports", columns="night,one_line")["rows"] == [
        {"night": day(NIGHTS - 1).isoformat(), "one_line": document["one_line"]}
    ]
    for path, words in (("/v1/reports/7", "no report has the number 7"), ("/v1/reports/x", "no report named"),
                        ("/v1/reports/1.pdf", "no report format named")):  # fmt: skip
        assert words in service.refused(path, 404)
    assert "takes no parameters; remove 'a'" in service.refused("/v1/reports/1", 400, a=1)


def test_lists_have_no_rows_of_an_unknown_project_and_refuse_what_no_name_holds(nights, service):
    for path in ("/v1/reports", "/v1/reports/list", "/v1/findings", "/v1/findings/list", "/v1/runs"):
        answer = service.ok(path, project="unknown")
        assert answer["reports" if "reports" in answer else "rows"] == []
        assert "project: a text holds no NUL character" in service.refused(path, 400, project="\0")
    for path, name in (("findings/list", "kernel"), ("findings", "subject__contains"), ("history", "kernel")):
        assert "holds no NUL character" in service.refused(f"/v1/{path}", 400, **{name: "\0"})


def test_a_report_is_made(nights, service):
    def made(**body):
        return service.http.post(f"{service.url}/v1/reports", json=body)

    again = made(date=day(NIGHTS - 1).isoformat())
    assert (again.status_code, again.json()["report"]) == (201, nightly.report(nights, 1))
    assert service.http.post(f"{service.url}/v1/reports").status_code == 201
    # Berlin is ahead of UTC: for an hour or two its night is the next one, after which UTC's could not be reported.
    assert made(project="lab", zone="Europe/Berlin").json()["report"]["project"] == "lab"
    for body, status, words in (
        ({"date": "x"}, 400, "is not a date"), ({"project": "no"}, 404, "no project"),
        ({"nigth": "x"}, 400, "key of the body"),
        ({"dry_run": "yes"}, 400, "must be true or false"),
        ({"zone": 1}, 400, "must be a string"), ({"project": "a\0"}, 400, "without NUL"),
        ({"date": day(1).isoformat()}, 400, "was already reported"),
    ):  # fmt: skip
        answer = made(**body)
        assert answer.status_code == status
        assert words in error_of(answer)["message"]
    answer = service.http.post(f"{service.url}/v1/reports", content=b"[1]")
    assert (answer.status_code, "JSON object" in error_of(answer)["message"]) == (400, True)


def test_a_report_that_is_only_tried_is_not_stored(nights, service):
    answer = service.http.post(f"{service.url}/v1/reports", json={"date": day(1).isoformat(), "dry_run": True})
    assert (answer.status_code, answer.json()["report"]["report_id"]) == (200, None)
    assert len(service.ok("/v1/reports")["rows"]) == 1


def test_findings_are_listed_and_shown(nights, service):
    (row,) = service.ok("/v1/findings/list", state="new", worse=1, kernel="GEM", limit=5)["findings"]
    assert (row["label"], service.ok("/v1/findings/1")["finding"]) == ("gemm", row)
    assert service.ok("/v1/findings/list", worse=0)["findings"] == []
    assert "label" in service.ok("/v1/findings/list", worse=0)["columns"]
    assert service.ok("/v1/findings/list")["rows"] == service.ok("/v1/findings/list")["findings"]
    assert len(service.ok("/v1/findings/1")["points"]) == NIGHTS
    assert "no finding has number" in service.refused("/v1/findings/x", 404)
    assert "not a state of a finding" in service.refused("/v1/findings/list", 400, state="odd")
    assert "this path takes no parameters; remove 'a'" in service.refused("/v1/findings/1", 400, a=1)


def test_a_finding_is_set(nights, service):
    def said(number, **body):
        return service.http.post(f"{service.url}/v1/findings/{number}", json=body)

    done = said(1, state="accepted", because="wider tiles")
    assert done.status_code == 200
    row = done.json()["finding"]
    assert (row["state"], row["because"], row["said_by"]) == ("accepted", "wider tiles", "the service")
    assert row.pop("label") == "gemm"
    assert service.ok("/v1/findings", state="accepted")["rows"] == [row]
    for number, body, status in (
        (2, {"state": "fixed", "because": "x"}, 404), ("x", {}, 404), (1, {"state": "fixed"}, 400),
        (1, {"state": "gone", "because": "x"}, 400), (1, {"state": "fixed", "because": ""}, 400),
        (1, {"state": ["fixed"], "because": "x"}, 400),
    ):  # fmt: skip
        answer = said(number, **body)
        assert answer.status_code == status, answer.text
        error_of(answer)
    token = store.create_token(nights, "boss", ["admin"])
    headers = {"authorization": f"Bearer {token}"}
    answer = service.http.post(
        f"{service.url}/v1/findings/1", json={"state": "new", "because": "not so"}, headers=headers
    )
    assert answer.json()["finding"]["said_by"] == "token 1"


def test_a_token_of_a_project_sees_the_reports_of_that_project(nights, service):
    report(nights, NIGHTS - 1, project="lab")
    token = store.create_token(nights, "lab", ["read"], project="lab")
    headers = {"authorization": f"Bearer {token}"}
    assert service.http.get(f"{service.url}/v1/reports/2", headers=headers).status_code == 200
    assert service.http.get(f"{service.url}/v1/reports/1", headers=headers).status_code == 404
    rows = service.http.get(f"{service.url}/v1/reports", headers=headers).json()["rows"]
    assert [row["report_id"] for row in rows] == [2]
    assert len(service.http.get(f"{service.url}/v1/findings", headers=headers).json()["rows"]) == 1
    refused = service.http.get(f"{service.url}/v1/findings/list?project=else", headers=headers)
    assert "limited to the project 'lab'" in error_of(refused)["message"]
    found = service.http.get(f"{service.url}/v1/reports/list", headers=headers).json()["reports"]
    assert [(row["report_id"], row["deliveries"]) for row in found] == [(2, [])]
    other = store.create_token(nights, "other", ["read"], project="other")
    headers = {"authorization": f"Bearer {other}"}
    assert service.http.get(f"{service.url}/v1/findings", headers=headers).json()["rows"] == []
    assert service.http.get(f"{service.url}/v1/findings/list", headers=headers).json()["findings"] == []
    assert service.http.get(f"{service.url}/v1/findings/1", headers=headers).status_code == 404
