"""A store with kept files."""

from pathlib import Path

import pytest
from sqlalchemy import Engine

from profsvc import store
from profsvc.store.ingest.blob_store import BlobStore
from tests.inputs.uploads import without_analysis
from tests.store.conftest import Filled
from tests.store.maintenance.kept import CAMPAIGN, DETAILS, METER, RAW, put


@pytest.fixture
def files(tmp_path: Path) -> BlobStore:
    return BlobStore(tmp_path / "kept", free_bytes=1)


@pytest.fixture
def full(engine: Engine, files: BlobStore, filled: Filled) -> Engine:
    """Three uploads in two runs."""

    def fill() -> None:
        with without_analysis():  # the next file has the run analysed, with both
            put(engine, METER, files)
        for path, run in ((RAW, CAMPAIGN), (DETAILS, store.RunInfo(name="q"))):
            put(engine, path, files, run)

    return filled(fill, files.folder)
