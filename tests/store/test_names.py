"""The names that the store gives out, each of which imports its module when it is first used."""

from types import ModuleType

import pytest

from profsvc import store


@pytest.mark.parametrize("name", store.__all__)
def test_a_name_is_no_module(name: str) -> None:
    """A module is found under its package only after somebody else has imported it."""
    assert not isinstance(getattr(store, name), ModuleType)
