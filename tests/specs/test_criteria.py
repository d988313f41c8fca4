"""criteria.toml: what can be measured of a device, and that a wrong entry is named."""

import re

import pytest

from profsvc.errors import DomainError
from profsvc.formulas.performance.operations import OPERATIONS
from profsvc.specs.criteria import COST, FUNCTION, criteria, quantities, read_criteria
from profsvc.specs.table_files import text_of

TEXT = text_of("criteria.toml")
MORE = '\n[[characterization]]\nname = "{}"\nkind = "{}"\nmeaning = "x"\n'


def test_every_operation_has_its_cost_and_every_unit_its_function() -> None:
    kinds = quantities()
    assert [name for name, kind in kinds.items() if kind == COST] == [f"k_{operation}" for operation in OPERATIONS]
    for unit in criteria()["unit"]:
        assert kinds[unit["function"]] == kinds[f"{unit['function']}:{unit['name']}"] == FUNCTION
    assert {"F_Divergence", "F_DRAMThr", "F_ArithThr", "F_SHMEM"} <= set(kinds)
    assert "F_SHMEM:l1" not in kinds


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (TEXT + MORE.format("F_New", "curve"), "'F_New': kind must be function or cost but is 'curve'"),
        (TEXT + MORE.format("F_SHMEM", "function"), "characterization 'F_SHMEM': a name stands once, without a colon"),
        (TEXT + MORE.format("F_SHMEM:l1", "function"), "'F_SHMEM:l1': a name stands once, without a colon"),
        (TEXT + MORE.format("k_tensor", "cost"), "operations of the time shares must agree but ['k_tensor'] differ"),
        (TEXT.replace('"k_double"', '"k_half"'), "must agree but ['k_double', 'k_half'] differ"),
        (TEXT.replace('function = "F_L2Thr"', 'function = "k_l2_load"'), "unit 'l2': no function 'k_l2_load' among"),
        (TEXT + '\n[[characterization]]\nname = "F_New"\n', "characterization 'F_New': needs exactly"),
    ],
)
def test_a_wrong_entry_is_named(text: str, message: str) -> None:
    with pytest.raises(DomainError, match=re.escape(message)):
        read_criteria(text)
