"""A store with three kept files in two runs, and what the tests of its maintenance ask of it."""

from pathlib import Path

from sqlalchemy import Engine

from profsvc import pipeline, store
from profsvc.store.ingest.blob_store import BlobStore
from profsvc.store.maintenance import checks as health

FIXTURES = Path(__file__).parents[3] / "fixtures"
DETAILS = FIXTURES / "ncu_details" / "columns_15.csv"
RAW, METER = FIXTURES / "ncu_raw" / "plain.csv", FIXTURES / "hioki" / "pw3335.csv"
CAMPAIGN = store.RunInfo(name="r", project="p", device="H100", commit_id="c0ffee", tags={"keep": "yes", "a": "b"})


def put(engine: Engine, path: Path, files: BlobStore, run: store.RunInfo = CAMPAIGN) -> int:
    with path.open("rb") as stream:
        return int(pipeline.ingest(engine, stream, path.name, run, files=files).upload_id or 0)


@store.snapshot
def rows(engine: Engine) -> dict[str, list[dict]]:
    return {view: sorted(store.select(engine, view), key=repr) for view in store.VIEWS}


def found(engine: Engine, files: BlobStore, deep: bool = False) -> dict[str, health.Check]:
    return {check.check: check for check in store.run_checks(engine, lambda: files, deep)}
