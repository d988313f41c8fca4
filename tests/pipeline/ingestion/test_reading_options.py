"""Options of reading a file: refused before any file is read, and kept so that it can be read the same way again."""

import pytest

from profsvc.errors import UsageError
from profsvc.pipeline import ReadOptions


@pytest.mark.parametrize("seconds", [float("nan"), float("inf"), -float("inf"), 1e300, -1.1e9])
def test_an_offset_that_no_clock_has_is_refused(seconds):
    with pytest.raises(UsageError, match=r"give seconds from -1e[+]09 to 1e[+]09"):
        ReadOptions(offset_s=seconds)


@pytest.mark.parametrize("seconds", [0.0, 2.0, -0.1, 1234567.25, 1e9, 1 / 3])
def test_an_offset_is_kept_with_all_its_digits(seconds):
    assert ReadOptions.as_said(ReadOptions(offset_s=seconds).said()).offset_s == seconds
