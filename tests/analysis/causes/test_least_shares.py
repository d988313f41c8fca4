"""The least shares of causes are those of the sets by the rules of today, and do better on sets that are left out."""

import numpy as np
import pandas as pd
import pytest

from profsvc.specs.advice.causes import least_shares
from tests.benchmarks.unseen import FLAWS, TODAY, Launches, answered, design, fitted, left_out, recorded, said_today


@pytest.fixture(scope="module")
def launches() -> Launches:
    return recorded()


@pytest.fixture(scope="module")
def today() -> Launches:
    return recorded(TODAY)


def test_the_table_is_the_fit_to_all_sets_by_the_rules_of_today(launches: Launches, today: Launches) -> None:
    known = design(launches, today)
    table = [least_shares()[name].share for name in FLAWS]
    assert fitted(known).least == pytest.approx(table, abs=0.011)
    assert [least_shares()[name].pairs for name in FLAWS] == [known.flaw.count(name) for name in FLAWS]


def test_what_is_recorded_of_today_is_what_the_rules_say() -> None:
    now, then = (table.set_index(["launch", "cause"])["share"] for table in (said_today("fourth"), _recorded("fourth")))
    both = pd.concat([now, then], axis=1).fillna(0.0)
    assert np.abs(both.iloc[:, 0] - both.iloc[:, 1]).max() < 0.01


def _recorded(name: str) -> pd.DataFrame:
    table = pd.read_csv(TODAY)
    return table[table["set"] == name]


def test_shares_fitted_to_other_sets_name_more_flaws_first(launches: Launches, today: Launches) -> None:
    then, fit = (np.sum(counts, axis=0) for counts in zip(*left_out(launches, today).values(), strict=True))
    pairs, others = fit[0], fit[3]
    assert fit[1] >= then[1] + 15
    assert fit[2] >= then[2] - 2
    assert fit[4] >= then[4]
    assert fit[1] / pairs > 0.81
    assert fit[4] / others > 0.9


def test_the_answer_is_what_exceeds_its_share_most() -> None:
    shares, least = np.zeros((2, len(FLAWS))), np.full(len(FLAWS), 0.2)
    shares[0, :2], shares[1, 0] = (0.3, 0.25), 0.19
    least[1] = 0.1
    assert answered(shares, least)[0][:2] == [FLAWS[1], FLAWS[0]]
    assert answered(shares, least)[1][:2] == ["limit", FLAWS[0]]
