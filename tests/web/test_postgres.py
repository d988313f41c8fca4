"""The same service on a store that a server keeps."""

import csv
import io
import json

from profsvc import store
from profsvc.web.http.state import AppState
from tests.conftest import COUNTERS
from tests.web.conftest import error_of, running


def test_a_service_on_postgres(postgres_url, profile, tmp_path):
    engine = store.open_store(postgres_url, COUNTERS)
    files = store.blob_store_of(engine, str(tmp_path), free_bytes=1)
    with running(AppState(engine, files)) as service:
        first = service.upload(profile, run="today", project="lab")
        assert (first.status_code, service.upload(profile, project="lab").status_code) == (201, 200)
        rows = service.ok("/v1/launches", order="-duration_ns", kernel__contains="SAXPY")["rows"]
        assert rows
        text = service.get("/v1/launches.csv", columns="launch_id,kernel", duration_ns__gt="0").text
        assert len(list(csv.reader(io.StringIO(text)))) == 1 + len(
            service.ok("/v1/launches", duration_ns__gt=0)["rows"]
        )
        lines = service.get("/v1/sql.ndjson", q="select run_id, name from v1_runs where name = :n", **{"p.n": "today"})
        assert [json.loads(line) for line in lines.text.splitlines()] == [{"run_id": 1, "name": "today"}]
        assert (
            service.ok("/v1/sql", q="select count(*) as n from v1_launches")["rows"][0]["n"] == first.json()["launches"]
        )
        assert "cannot be read" in service.refused("/v1/sql", 400, q="select * from tokens")
        token = store.create_token(engine, "lab", ["read"], project="other")
        assert service.get("/v1/runs").status_code == 401
        seen = service.http.get(f"{service.url}/v1/runs", headers={"authorization": f"Bearer {token}"})
        assert seen.json()["rows"] == []
        lost = service.http.get(f"{service.url}/v1/runs/today", headers={"authorization": f"Bearer {token}"})
        assert (lost.status_code, error_of(lost)["code"]) == (404, "not_found")
    engine.dispose()
