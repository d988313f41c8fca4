"""A store with runs of three months, and a folder for their archive."""

from datetime import date
from pathlib import Path

import pytest
from sqlalchemy import Engine

from profsvc import store
from profsvc.store.ingest.blob_store import BlobStore
from tests.store.conftest import Filled
from tests.store.maintenance.archive.stores import RUNS, put


@pytest.fixture
def files(tmp_path: Path) -> BlobStore:
    return BlobStore(tmp_path / "kept", free_bytes=1)


@pytest.fixture(scope="session")
def contents() -> dict[str, tuple[str, Path]]:
    """What the first `year` of each kind of store made, for all modules of this folder."""
    return {}


@pytest.fixture
def year(engine: Engine, files: BlobStore, filled: Filled) -> Engine:
    def fill() -> None:
        for run in RUNS:
            put(engine, files, run)

    return filled(fill, files.folder)


@pytest.fixture
def place(tmp_path: Path) -> str:
    return str(tmp_path / "archive")


@pytest.fixture
def march(year: Engine) -> store.Month:
    return store.closed_months(year, date(2025, 4, 30))[0]
