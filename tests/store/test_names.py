"""The names that the store gives out, each of which imports its module when it is first used."""

from types import ModuleType

from profsvc import store


def test_no_name_is_a_module() -> None:
    """A module is found under its package only after somebody else has imported it."""
    assert len(store.__all__) > 200
    assert [name for name in store.__all__ if isinstance(getattr(store, name), ModuleType)] == []
