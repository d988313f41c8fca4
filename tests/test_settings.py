"""The table of settings."""

import tomllib
from contextlib import suppress

import jsonschema_rs
import pytest

from profsvc.errors import UsageError
from profsvc.settings import SETTINGS, load, resolve, schema, shown


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


def test_the_file_is_read_where_the_environment_is_silent(tmp_path):
    file = tmp_path / "config.toml"
    file.write_text('store = "from file"\nsql_rows = 7\nsql_seconds = 3\nkeep = false\n', encoding="utf-8")
    assert jsonschema_rs.validator_for(schema()).is_valid(tomllib.loads(file.read_text(encoding="utf-8")))
    known = {one.setting.name: one for one in resolve({"PROFSVC_CONFIG": str(file), "PROFSVC_SQL_ROWS": "9"})}
    assert (known["store"].value, known["store"].source) == ("from file", "file")
    assert (known["sql_rows"].value, known["sql_rows"].source) == (9, "environment")
    assert (known["sql_seconds"].value, known["keep"].value) == (3.0, False)
    assert known["url"].source == "default"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("sql_row = 5", "unknown setting 'sql_row'; did you mean 'sql_rows'?"),
        ("PROFSVC_URL = 'x'", "did you mean 'url'?"),
        ("sql_rows = 0", "sql_rows is 0 but must be a whole number above 0"),
        ("sql_rows = true", "sql_rows is True but must be a whole number above 0"),
        ("store = 5", "store is 5 but must be"),
        ("store = ", "is not valid TOML"),
    ],
)
def test_a_wrong_file_is_refused_with_its_name(tmp_path, text, said):
    with suppress(tomllib.TOMLDecodeError):
        assert not jsonschema_rs.validator_for(schema()).is_valid(tomllib.loads(text))
    file = tmp_path / "config.toml"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(UsageError) as caught:
        load({"PROFSVC_CONFIG": str(file)})
    assert str(file) in str(caught.value)
    assert said in str(caught.value)


def test_a_file_that_is_named_and_absent_is_refused(tmp_path):
    with pytest.raises(UsageError, match="cannot be read: No such file or directory; check PROFSVC_CONFIG"):
        load({"PROFSVC_CONFIG": str(tmp_path / "none.toml")})


def test_secrets_are_not_shown(tmp_path):
    one = {s.setting.name: shown(s) for s in resolve({"PROFSVC_TOKEN": "t", "PROFSVC_STORE": "postgresql://a:b@c/d"})}
    assert one["token"] == "***"
    assert one["store"] == "postgresql://a:***@c/d"
