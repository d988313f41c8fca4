"""The least shares of causes are those of the record, and do better on sets that they were not fitted to."""

import numpy as np
import pytest

from profsvc.specs.causes import least_shares
from tests.benchmarks.unseen import FLAWS, Launches, answered, fitted, left_out, recorded


@pytest.fixture(scope="module")
def launches() -> Launches:
    return recorded()


def test_the_table_is_the_fit_to_all_that_was_said_at_first_sight(launches: Launches) -> None:
    table = [least_shares()[name].share for name in FLAWS]
    assert fitted(launches).least == pytest.approx(table, abs=0.011)
    assert [least_shares()[name].pairs for name in FLAWS] == [launches.flaw.count(name) for name in FLAWS]


def test_shares_fitted_to_other_sets_name_more_flaws_first_and_more_limits(launches: Launches) -> None:
    then, fit = (np.sum(counts, axis=0) for counts in zip(*left_out(launches).values(), strict=True))
    pairs, others = fit[0], fit[3]
    assert fit[1] >= then[1] + 5
    assert fit[2] >= then[2] - 2
    assert fit[4] >= then[4] + 10
    assert fit[1] / pairs > 0.77
    assert fit[4] / others > 0.9


def test_the_answer_is_what_exceeds_its_share_most() -> None:
    shares, least = np.zeros((2, len(FLAWS))), np.full(len(FLAWS), 0.2)
    shares[0, :2], shares[1, 0] = (0.3, 0.25), 0.19
    least[1] = 0.1
    assert answered(shares, least)[0][:2] == [FLAWS[1], FLAWS[0]]
    assert answered(shares, least)[1][:2] == ["limit", FLAWS[0]]
