"""A run of kernels with a known flaw each, which several tests look at."""

from pathlib import Path

import pytest

from profsvc import store
from tests.inputs.uploads import ingest_all, unpacked

FLAWS = Path(__file__).parents[2] / "fixtures" / "flaws"
WITH_SOURCE = (b'"march(', b'"hash_a(')


@pytest.fixture(scope="session")
def flawed(made_once):
    """A store with the run ``flaws``, 92 launches, and the source pages of a few. Tests only read it."""

    def fill(engine):
        pages = unpacked(FLAWS / "ncu_source.csv.zst").split(b'"File Path"')
        source = b'"File Path"'.join([pages[0], *(page for page in pages if any(name in page for name in WITH_SOURCE))])
        raw = unpacked(FLAWS / "ncu_raw_base.csv.gz")
        ingest_all(engine, [(raw, "raw.csv"), (source, "source.csv")], store.RunInfo(name="flaws"))

    engine = store.open_store(str(made_once("flawed", fill)), pooled=True)
    yield engine
    engine.dispose()
