"""A store with kept files."""

from pathlib import Path

import pytest
from sqlalchemy import Engine

from profsvc import store
from profsvc.store.ingest.blob_store import BlobStore
from tests.store.conftest import Filled
from tests.store.maintenance.kept import CAMPAIGN, DETAILS, METER, RAW, put


@pytest.fixture
def files(tmp_path: Path) -> BlobStore:
    return BlobStore(tmp_path / "kept", free_bytes=1)


@pytest.fixture
def full(engine: Engine, files: BlobStore, filled: Filled) -> Engine:
    """Three uploads in two runs."""

    def fill() -> None:
        for path, run in ((METER, CAMPAIGN), (RAW, CAMPAIGN), (DETAILS, store.RunInfo(name="q"))):
            put(engine, path, files, run)

    return filled(fill, files.folder)
