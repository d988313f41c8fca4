"""Logs that a script has indented have the values of those that it has not."""

import pytest

from tests.formats.conftest import values_of
from tests.formats.fixtures import good, shown

DMON = [path for path in good("dcgm", "nvidia_smi_dmon") if path.read_bytes().lstrip().startswith(b"#")]


@pytest.mark.parametrize("path", DMON, ids=shown)
def test_an_indented_log(path, read_all):
    data = path.read_bytes()
    indented = b"".join(b"    " + line for line in data.splitlines(keepends=True))
    once, again = read_all(data), read_all(indented)
    assert again.reader == once.reader
    assert values_of(again) == values_of(once)
    assert (again.stored, again.skipped, again.rejected) == (once.stored, once.skipped, once.rejected)
