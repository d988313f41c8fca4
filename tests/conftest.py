"""Stores and exports that several tests look at."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings
from sqlalchemy import Engine

from profsvc import pipeline, store

# The same examples every time: a red test can be run again. Look for new ones with --hypothesis-profile=default.
settings.register_profile("repeatable", derandomize=True, deadline=None)
settings.load_profile("repeatable")

ROOT = Path(__file__).parents[1]
DEMO = ROOT / "fixtures" / "demo" / "ncu_raw.csv.gz"


@pytest.fixture(scope="session")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    """A store with the run ``h200``: 34 launches of real kernels. Tests only read it."""
    engine = store.open_store(str(tmp_path_factory.mktemp("demo") / "store.sqlite"))
    with DEMO.open("rb") as stream:
        pipeline.ingest(engine, stream, DEMO.name, store.RunInfo(name="h200", project="demo"))
    yield engine
    engine.dispose()
