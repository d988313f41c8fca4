"""Lost time is divided among causes: made-up launches with one flaw each, and what the shares add up to."""

import numpy as np
import pandas as pd
import pytest

from profsvc import specs
from profsvc.analysis.causes.attribution import lost_time, ranked
from profsvc.analysis.causes.time_budget import STALLS
from profsvc.analysis.potential.peaks import peaks
from profsvc.specs.causes import causes
from tests.analysis.causes.sample_launches import FLAWS, QUIET

KINDS = {name: cause.kind for name, cause in causes().items()}


def shares(launches: list[dict[str, float]]) -> pd.DataFrame:
    counters = pd.DataFrame(launches)
    return lost_time(counters, peaks(counters, specs.figures("NVIDIA H200", "9.0"))[0])


@pytest.mark.parametrize("flaw", FLAWS)
def test_a_flaw_is_the_first_cause(flaw: str) -> None:
    parts = shares([QUIET | FLAWS[flaw]]).iloc[0].dropna().to_dict()
    assert ranked(parts, 1.0, KINDS)[0][0] == flaw


def test_the_parts_of_the_time_add_up_to_it() -> None:
    table = shares([QUIET | flaw for flaw in FLAWS.values()])
    assert set(table) <= set(KINDS)
    assert (table >= -1e-12).all().all()
    np.testing.assert_allclose(table.sum(axis=1), 1.0, atol=0.02)


def test_shares_of_flaws_never_pass_the_loss() -> None:
    found = ranked({"barriers": 0.6, "uncoalesced_loads": 0.3, "memory_limit": 0.1}, 0.45, KINDS)
    assert [name for name, _ in found] == ["barriers", "uncoalesced_loads"]
    assert sum(share for _, share in found) == pytest.approx(0.45)
    assert ranked({"memory_limit": 1.0}, 0.45, KINDS) == []


def test_without_stalls_nothing_is_attributed() -> None:
    bare = {name: value for name, value in QUIET.items() if not name.startswith("stall_")}
    assert shares([bare]).isna().all(axis=None)
    assert len(STALLS) == len(set(STALLS))
