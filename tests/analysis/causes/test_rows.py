"""The rows of causes: ranked, with evidence, and savings that add up to the loss."""

import pandas as pd
import pytest

from profsvc import specs
from profsvc.analysis.causes.rows import COLUMNS, launch_causes
from profsvc.analysis.potential.peaks import peaks
from tests.analysis.causes.sample_launches import FLAWS, QUIET


def rows(launches: list[dict[str, float]], ideal_ns: float) -> pd.DataFrame:
    counters = pd.DataFrame(launches, index=[10 + place for place in range(len(launches))])
    figures = peaks(counters, specs.figures("NVIDIA H200", "9.0"))[0]
    return launch_causes(counters, figures, counters[["duration_ns"]].assign(ideal_ns=ideal_ns))


def test_savings_add_up_to_the_loss() -> None:
    table = rows([QUIET | flaw for flaw in FLAWS.values()], 0.3e5)
    assert tuple(table) == COLUMNS
    assert set(table["launch_id"]) == {10 + place for place in range(len(FLAWS))}
    for _, own in table.groupby("launch_id"):
        assert list(own["rank"]) == list(range(1, len(own) + 1))
        assert own["saving_fraction"].sum() <= 0.7 + 1e-9
        assert (own["low"] <= own["saving_fraction"]).all()
        assert (own["saving_fraction"] <= own["high"]).all()


def test_evidence_is_numbers_with_a_unit() -> None:
    table = rows([QUIET | FLAWS["grid_too_small"]], 0.1e5)
    first = table.iloc[0]
    assert first["cause"] == "grid_too_small"
    assert {"counter": "grid_blocks", "value": 33.0, "unit": "block"} in first["evidence"]
    assert first["saving_ns"] == pytest.approx(first["saving_fraction"] * 1e5)


def test_a_launch_without_stalls_has_no_row() -> None:
    assert rows([{name: value for name, value in QUIET.items() if not name.startswith("stall_")}], 1e4).empty
