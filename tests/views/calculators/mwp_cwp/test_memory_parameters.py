"""Memory parameters come back from the loops of the source; what the loops cannot tell is said."""

import pytest

from profsvc.errors import UsageError
from profsvc.views.calculators.answers import calculate
from profsvc.views.calculators.catalog import CALCULATORS

MODEL = CALCULATORS["fit-memory"]
GIVEN = dict(MODEL.examples[0].values)


def test_the_parameters_of_table_5() -> None:
    values = {row["quantity"]: row["value"] for row in calculate(MODEL, GIVEN)["rows"]}
    assert values["Mem_LD"] == pytest.approx(420, rel=1e-3)
    assert values["dep_uncoal"] == pytest.approx(10, rel=1e-3)
    assert values["dep_coal"] == pytest.approx(4, rel=0.06)


def test_coalesced_loops_alone_do_not_tell_the_delay_of_others() -> None:
    head, *lines = GIVEN["benchmarks"].splitlines()
    coalesced = "\n".join([head, *(line for line in lines if ",0,32," in line or ",0,256," in line)])
    notes = calculate(MODEL, GIVEN | {"benchmarks": coalesced})["notes"]
    assert "cannot tell all three" in notes[0]
    with pytest.raises(UsageError, match="fewer than three"):
        calculate(MODEL, GIVEN | {"benchmarks": "\n".join([head, *lines[:2]])})
