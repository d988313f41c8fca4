"""How a shell calls this program, as commands are printed for people to copy."""

import pytest

from profsvc.cli.console.terminal import program_in_shell
from profsvc.settings import SETTINGS, SettingValue, shown

STORES = [
    ("postgresql://lab:s3cret@db/profsvc", "postgresql://lab:***@db/profsvc"),
    ("postgresql://lab:s3:c/ret@db/profsvc", "postgresql://lab:***@db/profsvc"),
    ("postgresql://db/profsvc?user=lab&password=s3cret&a=b", "postgresql://db/profsvc?user=lab&password=***&a=b"),
    ("postgresql://db:5432/profsvc", "postgresql://db:5432/profsvc"),
    ("a:b@c.sqlite", "a:b@c.sqlite"),
]


@pytest.mark.parametrize(("store", "printed"), STORES)
def test_the_password_of_a_store_is_not_repeated(store, printed):
    (word,) = (word for word in program_in_shell(store).split() if word.strip("'").endswith(printed[-9:]))
    assert word.strip("'") == printed
    assert shown(SettingValue(SETTINGS[0], store, "environment")) == printed


def test_without_a_store_none_is_named():
    assert "--store" not in program_in_shell("")
