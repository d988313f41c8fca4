"""Lost time is divided among causes: made-up launches with one flaw each, and what the shares add up to."""

import numpy as np
import pandas as pd
import pytest

from profsvc import specs
from profsvc.analysis.causes.attribution import lost_time, savings
from profsvc.analysis.causes.time_budget import STALLS
from profsvc.analysis.potential.peaks import peaks
from profsvc.specs.causes import causes
from tests.analysis.causes.sample_launches import FLAWS, QUIET


def shares(launches: list[dict[str, float]]) -> pd.DataFrame:
    counters = pd.DataFrame(launches)
    return lost_time(counters, peaks(counters, specs.figures("NVIDIA H200", "9.0"))[0])


@pytest.mark.parametrize("flaw", FLAWS)
def test_a_flaw_is_the_first_cause(flaw: str) -> None:
    found = savings(shares([QUIET | FLAWS[flaw]]), np.array([1.0])).drop(columns="unexplained")
    assert found.iloc[0].idxmax() == flaw


def test_the_parts_of_the_time_add_up_to_it() -> None:
    table = shares([QUIET | flaw for flaw in FLAWS.values()])
    assert set(table) <= set(causes())
    assert (table >= -1e-12).all().all()
    np.testing.assert_allclose(table.sum(axis=1), 1.0, atol=0.02)


def test_flaws_save_the_loss_and_no_more() -> None:
    table = pd.DataFrame([{"barriers": 0.6, "uncoalesced_loads": 0.3, "memory_limit": 0.1}] * 3)
    found = savings(table, np.array([0.45, 0.95, np.nan]))
    assert list(found) == ["barriers", "uncoalesced_loads", "unexplained"]
    np.testing.assert_allclose(found["barriers"], [0.3, 0.6, 0.6])
    np.testing.assert_allclose(found["unexplained"], [0.0, 0.05, 0.0], atol=1e-12)
    np.testing.assert_allclose(found.sum(axis=1), [0.45, 0.95, 0.9])


def test_without_stalls_nothing_is_attributed() -> None:
    bare = {name: value for name, value in QUIET.items() if not name.startswith("stall_")}
    assert shares([bare]).isna().all(axis=None)
    assert len(STALLS) == len(set(STALLS))
