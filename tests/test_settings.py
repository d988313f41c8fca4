"""The table of settings."""

import pytest

from profsvc.errors import UsageError
from profsvc.settings import SETTINGS, load


def test_every_setting_has_a_default_of_its_type_and_help():
    names = [setting.name for setting in SETTINGS]
    assert len(names) == len(set(names))
    assert load({}) == {setting.name: setting.default for setting in SETTINGS}
    for setting in SETTINGS:
        assert setting.name.isidentifier()
        assert setting.help.endswith(".")


def test_the_environment_wins_and_empty_is_unset(monkeypatch):
    for name, text, value in (("STORE", "a b", "a b"), ("SQL_SECONDS", "2", 2.0), ("SQL_ROWS", "5", 5)):
        monkeypatch.setenv(f"PROFSVC_{name}", text)
        assert load()[name.lower()] == value
        assert load({f"PROFSVC_{name}": ""}) == load({})
    assert type(load()["sql_seconds"]) is float


@pytest.mark.parametrize("text", ["many", "1.5", "0", "-1", "1e3", "nan"])
def test_rows_are_a_whole_number_above_0(text):
    with pytest.raises(UsageError) as caught:
        load({"PROFSVC_SQL_ROWS": text})
    assert str(caught.value) == f"PROFSVC_SQL_ROWS is {text!r} but must be a whole number above 0, such as 10000"


@pytest.mark.parametrize("text", ["soon", "0", "-1", "nan", "inf", "-inf"])
def test_seconds_are_a_finite_number_above_0(text):
    with pytest.raises(UsageError, match=r"must be a number above 0, such as 10\.0$"):
        load({"PROFSVC_SQL_SECONDS": text})
