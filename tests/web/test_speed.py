"""What the benchmarks of serving and of lists measure is done, whatever time it takes: small ones of each."""

import pytest

from tests.benchmarks import serving


@pytest.mark.parametrize("page", serving.PAGES)
def test_a_page_is_sent_stored_and_shown(page, tmp_path):
    ((said, took),) = serving.rounds(page, 0.05, tmp_path, 1)
    assert said["bytes"] > 50_000
    assert said["launches"] > 0
    assert said["lines_rejected"] == 0
    assert all(seconds > 0 for seconds in took)
