"""What upper halves of indices of 64 bits cost, in machine code."""

import pytest

from profsvc.analysis.source_code.addresses import loops_of
from profsvc.analysis.source_code.registers import operands
from profsvc.analysis.source_code.wide_indices import MOST_PLACES, upper_half_threads

CLAMPED = [  # a sum of 64 bits, held below a limit
    "IADD3 R4, P0, R8, R6, RZ", "IADD3.X R5, R9, R7, RZ, P0, !PT", "ISETP.LT.U32.AND P1, PT, R4, UR4, PT",
    "ISETP.LT.U32.AND.EX P1, PT, R5, UR5, PT, P1", "SEL R4, R4, UR4, P1", "SEL R5, R5, UR5, P1",
]  # fmt: skip
PLACE = ["LEA R2, P2, R4, UR6, 0x2", "LEA.HI.X R3, R4, UR7, R5, 0x2, P2"]
LOAD = "LDG.E R0, desc[UR8][R2.64]"
PRODUCT = [
    "IMAD R10, R5, UR10, RZ", "IMAD R11, R4, UR11, R10", "IMAD.WIDE.U32 R12, R4, UR10, R6",
    "IMAD.IADD R13, R13, 0x1, R11",
    "LEA R2, P2, R12, UR6, 0x2", "LEA.HI.X R3, R12, UR7, R13, 0x2, P2",
]  # fmt: skip


def threads(*code: str, on: float = 32.0) -> float:
    rows = [
        {"sass": sass, "address": hex(16 * place), "instructions": 1, "thread_instructions_on": on}
        for place, sass in enumerate(code)
    ]
    return upper_half_threads(rows, [operands(row["sass"]) for row in rows], loops_of(rows))


def test_an_address_has_one_upper_half_and_an_index_none() -> None:
    assert threads(*PLACE, LOAD) == 0
    assert threads("IMAD.WIDE R2, R4, 0x4, R6", LOAD) == 0
    assert threads(*CLAMPED, *PLACE, LOAD) == 2 * 32


def test_a_product_of_64_bits_has_three_more() -> None:
    assert threads(*PRODUCT, LOAD) == 3 * 32
    # The sum of a carried index is no product.
    assert threads("IMAD.WIDE.U32 R12, R4, UR10, R6", "IMAD.IADD R4, R4, 0x1, R11", *PLACE, LOAD) == 0


def test_values_of_64_bits_are_no_indices() -> None:
    stored = [*CLAMPED, "IMAD.WIDE R2, R14, 0x8, R16", "STG.E.64 desc[UR8][R2.64], R4"]
    assert threads(*stored) == 0
    assert threads(*CLAMPED) == 0
    loaded = ["LDG.E.64 R4, desc[UR8][R20.64]", *PLACE, LOAD]
    assert threads(*CLAMPED, *loaded) == 0


def test_a_loop_reads_what_its_end_wrote() -> None:
    assert threads(*PLACE, LOAD, *CLAMPED, "@P3 BRA 0x0") == 2 * 32


@pytest.mark.parametrize("on", [0.0, 2 * MOST_PLACES])
def test_what_was_not_executed_wastes_nothing_and_more_places_need_longer_indices(on: float) -> None:
    assert threads(*CLAMPED, *PLACE, LOAD, on=on) == 0
