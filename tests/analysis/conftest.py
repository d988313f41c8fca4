"""The analysis itself is looked at: nothing of it is remembered."""

from collections.abc import Iterator

import pytest

from tests.environment.remembered import Memory


@pytest.fixture(scope="module", autouse=True)
def _computed(memory: Memory) -> Iterator[None]:
    with memory.off():
        yield
