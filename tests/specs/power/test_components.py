"""The units that draw power: the printed tables, and rows that are refused."""

import re
from collections.abc import Callable

import pytest

from profsvc.errors import DomainError, NotFoundError
from profsvc.specs import components, device, instruction_units
from profsvc.specs.power.components import read_components, read_instruction_units

# Tables 8 and 11 of [Hong2012].
PRINTED = {
    "GTX280": {
        "FP": 0.2, "REG": 0.3, "ALU": 0.2, "SFU": 0.5, "INT": 0.25, "FDS": 0.5, "Shared": 1, "Texture": 0.9,
        "Constant": 0.4, "Const_SM": 0.813, "Global": 52, "Local": 52,
    },
    "GTX580": {
        "FP": 1.1, "INT": 1.1, "REG": 0.8, "FDS": 0.6, "Shared": 1.4, "Constant": 1.0, "Activation": 64, "Global": 28,
        "L1": 1.6, "L2": 12, "SFU": 0.6, "Texture": 0.9,
    },
}  # fmt: skip


@pytest.mark.parametrize("key", PRINTED)
def test_max_power_is_that_of_the_tables(key: str) -> None:
    assert {c.name: c.max_power_w for c in components(device(key).name)} == PRINTED[key]


def test_kinds_of_units() -> None:
    gtx280 = {c.name: c for c in components("GTX280")}
    assert sum(c.special for c in gtx280.values()) == 8
    assert [name for name, c in gtx280.items() if c.always_on] == ["Const_SM"]
    assert [c.name for c in components("GTX580") if not c.per_sm] == ["Activation", "Global", "L2"]


@pytest.mark.parametrize(
    ("key", "sms", "lanes", "sfus", "schedulers", "register_kib"),
    [("GTX280", 30, 8, 2, 1, 64), ("GTX580", 16, 32, 4, 2, 128)],  # table 10 of [Hong2012]
)
def test_devices_of_the_tables(key: str, sms: int, lanes: int, sfus: int, schedulers: int, register_kib: int) -> None:
    known = device(key)
    assert (known.sms, known.fp32_lanes_per_sm, known.sfu_per_sm) == (sms, lanes, sfus)
    assert (known.schedulers_per_sm, known.registers_per_sm * 4) == (schedulers, register_kib * 1024)


def test_instructions_of_the_table_and_what_is_repaired() -> None:
    printed, repaired = instruction_units("as_published"), instruction_units()
    assert list(printed) == list(repaired)
    assert len(printed) == 52
    assert {i for i in printed if printed[i] != repaired[i]} == {"fma_fp", "lg2_fp", "ex2_fp", "st_shared"}
    assert all("FDS" in units for units in printed.values())
    assert {i for i, units in repaired.items() if "REG" not in units} == {"bar", "bra"}
    counts = {unit: sum(unit in units for units in printed.values()) for unit in ("INT", "FP", "SFU", "ALU", "REG")}
    assert counts == {"INT": 14, "FP": 11, "SFU": 5, "ALU": 12, "REG": 46}


def test_what_is_not_known() -> None:
    with pytest.raises(NotFoundError, match="no device with a published MaxPower of its units named 'H200'"):
        components("NVIDIA H200")
    with pytest.raises(NotFoundError, match="GTX280"):
        components("GTX 281")
    with pytest.raises(ValueError, match="no form 'printed'"):
        instruction_units("printed")


HEAD = "device,component,max_power_w,scope,response,source\n"
MAP = "instruction,as_published,consistent\n"


@pytest.mark.parametrize(
    ("read", "text", "message"),
    [
        (read_components, HEAD + "GTX999,FP,1,sm,linear,[Hong2012]\n", "line 2: no device 'GTX999' in the catalogue"),
        (read_components, HEAD + "GTX280,FP,1,sm,linear,[Hong2012]\n" * 2, "line 3: 'FP' of 'GTX280' occurs twice"),
        (read_components, HEAD + "GTX280,,1,sm,linear,[Hong2012]\n", "line 2: a component needs a name"),
        (read_components, HEAD + "GTX280,FP,-1,sm,linear,[Hong2012]\n", "line 2: max_power_w must be a number of"),
        (read_components, HEAD + "GTX280,FP,nan,sm,linear,[Hong2012]\n", "line 2: max_power_w must be a number of"),
        (read_components, HEAD + "GTX280,FP,one,sm,linear,[Hong2012]\n", "line 2: max_power_w must be a number but"),
        (read_components, HEAD + "GTX280,FP,1,chip,linear,[Hong2012]\n", "line 2: scope must be one of"),
        (read_components, HEAD + "GTX280,FP,1,sm,square,[Hong2012]\n", "line 2: response must be one of"),
        (read_components, HEAD + "GTX280,FP,1,sm,linear,[Hong1999]\n", "line 2: source must begin with a [reference]"),
        (read_instruction_units, MAP + "add,FP,Magic\n", "line 2: consistent must name units of power/components.csv"),
        (read_instruction_units, MAP + "add,FP FP,FP\n", "line 2: as_published must name units of power/"),
        (read_instruction_units, MAP + "add,,FP\n", "line 2: as_published must name units of power/"),
        (read_instruction_units, MAP + "add,FP,FP\n" * 2, "line 3: instruction 'add' is empty or there twice"),
    ],
)  # fmt: skip
def test_a_wrong_row_is_named(read: Callable[[str], object], text: str, message: str) -> None:
    with pytest.raises(DomainError, match=re.escape(message)):
        read(text)
