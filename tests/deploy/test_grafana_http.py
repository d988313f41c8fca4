"""The dashboard for Grafana over HTTP: the service answers each query as the Infinity data source sends it."""

import json
import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import pytest
import yaml

from profsvc import pipeline, store
from profsvc.errors import InputError
from profsvc.web.http.state import AppState
from tests.conftest import ROOT
from tests.inputs.nights import report_of_night
from tests.inputs.uploads import ingest_all
from tests.views import power_logs
from tests.web.conftest import running

FOLDER = ROOT / ".deploy" / "grafana" / "http"
BOARD: dict[str, Any] = json.loads((FOLDER / "profsvc-http.json").read_text(encoding="utf-8"))
PANELS = {panel["title"]: panel for panel in BOARD["panels"]}
FULL = set(PANELS) - {"Open findings"}  # nothing has changed between the runs of this store
VALUES = {
    "__from:date:iso": "2020-01-01T00:00:00.000Z",
    "__to:date:iso": f"{datetime.now(UTC) + timedelta(days=1):%Y-%m-%dT%H:%M:%S}.000Z",
}
KINDS: dict[str, type | tuple[type, ...]] = {"timestamp": str, "string": str, "number": (int, float)}


@pytest.fixture(scope="module", params=["sqlite", "postgres"])
def service(request: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, str]]:
    """The address and a token of a service with a profile, a power log, a refused file and a nightly report."""
    folder = tmp_path_factory.mktemp("grafana")
    url = str(folder / "store.sqlite")
    if request.param == "postgres":
        server = request.getfixturevalue("postgres_server")
        name = server.database(request.getfixturevalue("postgres_whole_template"))
        url = server.url(name).render_as_string(hide_password=False)
    engine = store.open_store(url, pooled=True)
    profile = (ROOT / "fixtures" / "ncu_raw" / "plain.csv").read_bytes()
    contents = [
        (profile, "plain.csv"),
        (power_logs.marks().encode(), "marks.csv"),
        (power_logs.log().encode(), "smi.csv"),
    ]
    info = store.RunInfo(project="lab", name="today", at="2026-10-24T03:00:00Z")
    ingest_all(engine, contents, info, pipeline.ReadOptions(zone="UTC"))
    store.save_refusal(engine, "lab", None, "bad.csv", "0" * 64, InputError("nothing that anybody reads"))
    report_of_night(engine)
    token = store.create_token(engine, "grafana", ["read", "sql"])
    with running(AppState(engine, store.blob_store_of(engine, str(folder), free_bytes=1))) as one:
        yield one.url, token
    engine.dispose()


def asked(service: tuple[str, str], target: dict[str, Any], project: str) -> list[dict[str, Any]]:
    """Return the rows that the data source takes from the answer to a query."""
    assert (target["type"], target["source"], target["parser"]) == ("json", "url", "backend")

    def value(found: re.Match[str]) -> str:
        return (VALUES | {"project": project})[found[1]]

    params = {one["key"]: re.sub(r"\$\{([^}]+)\}", value, one["value"]) for one in target["url_options"]["params"]}
    address, token = service
    headers = {"authorization": f"Bearer {token}"}
    answer = httpx.request(
        target["url_options"]["method"], address + target["url"], params=params, headers=headers, verify=False
    )
    assert answer.status_code == 200, answer.text
    rows: list[dict[str, Any]] = answer.json()[target["root_selector"]]
    for row in rows:
        for column in target["columns"]:
            cell = row[column["selector"]]
            assert cell is None or isinstance(cell, KINDS[column["type"]]), (column, cell)
            if column["type"] == "timestamp":
                datetime.fromisoformat(cell)
    return rows


@pytest.mark.parametrize("title", PANELS)
def test_the_service_answers_every_panel(service: tuple[str, str], title: str) -> None:
    for target in PANELS[title]["targets"]:
        rows = asked(service, target, "*")
        assert bool(rows) == (title in FULL)
        assert asked(service, target, "lab") == rows
        if title != "Nightly reports":  # the report is of all projects
            assert asked(service, target, "it's <none>") == []
        if target["format"] == "timeseries":
            assert [column["selector"] for column in target["columns"]] == ["time", "metric", "value"]


def test_the_variable_lists_the_projects(service: tuple[str, str]) -> None:
    (variable,) = BOARD["templating"]["list"]
    assert asked(service, variable["query"]["infinityQuery"], "") == [{"project": "lab"}]
    assert variable["allValue"] == "*"


def test_the_dashboard_names_only_what_it_has() -> None:
    (source,) = yaml.safe_load((FOLDER / "datasources.yaml").read_text(encoding="utf-8"))["datasources"]
    assert {panel["datasource"]["uid"] for panel in BOARD["panels"]} == {source["uid"]}
    assert set(re.findall(r"\$\{([^}]+)\}", json.dumps(BOARD))) == {"project", *VALUES}
    places = [(panel["gridPos"]["x"], panel["gridPos"]["y"]) for panel in BOARD["panels"]]
    assert len({panel["id"] for panel in BOARD["panels"]}) == len(set(places)) == len(places)
