"""The analysis itself is looked at: nothing of it is remembered."""

from collections.abc import Iterator

import pytest
from sqlalchemy import Engine

from profsvc import store
from tests.benchmarks import causes
from tests.conftest import MakeOnce
from tests.environment.remembered import Memory


@pytest.fixture(scope="module", autouse=True)
def _computed(memory: Memory) -> Iterator[None]:
    with memory.off():
        yield


@pytest.fixture(scope="session")
def first_flaws(made_once: MakeOnce, memory: Memory) -> Iterator[Engine]:
    """A store with the first set of flawed kernels as its run 1; tests only read it."""
    with memory.off():
        file = made_once("first flaws", lambda engine: causes.upload(engine, causes.FOLDERS["first"]))
    engine = store.open_store(str(file), pooled=True)
    yield engine
    engine.dispose()
