"""The cost of a barrier comes back from times, with its error."""

import pytest

from profsvc.errors import UsageError
from profsvc.views.calculators.answers import calculate
from profsvc.views.calculators.catalog import CALCULATORS

MODEL = CALCULATORS["fit-barriers"]
HEAD = "cycles,barriers,barrier_cycles\n"


def test_the_cost_of_the_source() -> None:
    view = calculate(MODEL, MODEL.examples[0].values)
    assert [row["value"] for row in view["rows"]] == pytest.approx([64.0, 0.0, 1000.0, 1.0])


def test_what_barriers_do_not_explain_is_said() -> None:
    view = calculate(MODEL, {"versions": HEAD + "1000,0,10\n900,1,10\n"})
    assert view["rows"][1]["value"] is None  # two versions have no error
    assert "something other than barriers" in view["notes"][-1]
    with pytest.raises(UsageError, match="differ in their barriers"):
        calculate(MODEL, {"versions": HEAD + "1000,1,10\n1100,1,10\n"})
