"""How much of their potential mended kernels achieved: a row for each flaw, and an error that says what is wrong."""

import pytest

from profsvc.errors import DomainError
from profsvc.specs.advice.causes import causes
from profsvc.specs.advice.mended_ranges import MENDED_RANGES, mended_ranges, read_mended_ranges
from profsvc.specs.table_files import text_of


def test_each_flaw_has_a_range_around_its_potential() -> None:
    assert set(mended_ranges()) == {name for name, cause in causes().items() if cause.kind == "flaw"}
    assert all(0 < one.least_exponent <= 1 <= one.largest_factor < 3 for one in mended_ranges().values())
    assert sum(one.pairs for one in mended_ranges().values()) > 700


@pytest.mark.parametrize(
    ("old", "new", "what"),
    [
        ("tail_wave,0.", "tail_wave,1.", "least_exponent must lie in"),
        ("tail_wave,0.", "tail_wave,x", "must be a number but is"),
        ("tail_wave,", "memory_limit,", "needs a row for each flaw"),
        ("largest_factor", "factor", "needs the columns"),
    ],
)
def test_a_wrong_table_says_what_is_wrong(old: str, new: str, what: str) -> None:
    text = text_of(MENDED_RANGES)
    assert old in text
    with pytest.raises(DomainError, match=what):
        read_mended_ranges(text.replace(old, new))
