"""The page of an archived run says why rows are absent; so do the pages and answers that need them."""

from datetime import date
from pathlib import Path

from sqlalchemy import Engine

from profsvc import pipeline, store, views
from profsvc.web.http.state import AppState
from tests.web.conftest import ROOT, running

TRACE = ROOT / "fixtures" / "ncu_raw" / "h200_three_launches.csv.gz"


def test_an_archived_run_says_so(engine: Engine, tmp_path: Path) -> None:
    with TRACE.open("rb") as stream:
        pipeline.ingest(engine, stream, TRACE.name, store.RunInfo(name="old", at="2025-03-02T00:00:00Z"))
    causes = views.run(engine, "old")["causes"]
    assert causes
    (month,) = store.closed_months(engine, date(2025, 4, 1))
    store.archive_month(engine, month, str(tmp_path / "archive"))
    with running(AppState(engine, store.blob_store_of(engine))) as service:
        page = service.get("/runs/1")
        assert page.status_code == 200
        assert "The rows of its launches, metrics and readings are archived on" in page.text
        assert "profsvc db restore 2025-03" in page.text
        assert ">Kernels</h2>" in page.text
        answer = service.get("/v1/runs/1").json()
        assert answer["run"]["archived"].endswith("profsvc db restore 2025-03")
        assert (answer["launches"], len(answer["kernels"])) == ([], 3)
        assert answer["causes"] == causes
        assert causes[0]["title"] in page.text
        listed = service.get(f"/runs/1?cause={causes[0]['cause']}")
        assert listed.status_code == 200
        for path in ("/runs/1/launches/1000000001", "/runs/1/launches/0", "/v1/runs/1/launches/0"):
            refused = service.get(path)
            assert refused.status_code in {400, 404}, path
        assert service.get("/v1/archives").json()["rows"][0]["month"] == "2025-03"
